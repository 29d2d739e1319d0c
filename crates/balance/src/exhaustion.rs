//! Descriptors that the system refused: counted where it happens, reported in one line of log at intervals.
//!
//! Accepting, connecting, checks, name servers and logs meet `EMFILE` and `ENFILE` many times a second once descriptors
//! have run out. They count it here; one task of the process takes the counts and writes the line.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fmt::Write;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Purpose of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A client's connection.
    Accept,
    /// A connection to a server.
    Connect,
    /// A health check.
    Check,
    /// A query to a name server.
    Resolve,
    /// A socket for lines of log.
    Log,
    /// A pipe between two sockets.
    Pipe,
    /// A socket of a script.
    Script,
    /// A client of a stats socket.
    Command,
    /// A connection of a `peers` section.
    Peer,
    /// A query for a certificate's status.
    Certificate,
}

impl Purpose {
    const ALL: [Purpose; 10] = [
        Purpose::Accept,
        Purpose::Connect,
        Purpose::Check,
        Purpose::Resolve,
        Purpose::Log,
        Purpose::Pipe,
        Purpose::Script,
        Purpose::Command,
        Purpose::Peer,
        Purpose::Certificate,
    ];

    /// Whether the requester has no idle connections of its own to close.
    fn is_outside_workers(self) -> bool {
        matches!(self, Purpose::Check | Purpose::Resolve | Purpose::Log | Purpose::Command | Purpose::Peer | Purpose::Certificate)
    }

    fn name(self) -> &'static str {
        match self {
            Purpose::Accept => "accept",
            Purpose::Connect => "connect",
            Purpose::Check => "checks",
            Purpose::Resolve => "resolvers",
            Purpose::Log => "logs",
            Purpose::Pipe => "pipes",
            Purpose::Script => "scripts",
            Purpose::Command => "commands",
            Purpose::Peer => "peers",
            Purpose::Certificate => "certificates",
        }
    }
}

/// Refusals since the last line.
#[derive(Debug)]
pub struct Exhaustion {
    counts: [AtomicU64; Purpose::ALL.len()],
    /// Refusals outside of workers, for which workers have not closed idle connections yet.
    wanted: AtomicUsize,
    /// Whether the limit of the whole system was reached, not only that of the process.
    of_system: AtomicBool,
}

/// Refusals of the process.
pub static EXHAUSTION: Exhaustion = Exhaustion::new();

impl Exhaustion {
    const fn new() -> Exhaustion {
        Exhaustion {
            counts: [const { AtomicU64::new(0) }; Purpose::ALL.len()],
            wanted: AtomicUsize::new(0),
            of_system: AtomicBool::new(false),
        }
    }

    /// Counts an error if it is a refused descriptor; returns whether it is.
    pub fn note(&self, error: &io::Error, purpose: Purpose) -> bool {
        let (process, system) = (Errno::MFILE.raw_os_error(), Errno::NFILE.raw_os_error());
        let refused = error.raw_os_error().filter(|code| *code == process || *code == system);
        if let Some(code) = refused {
            self.counts[purpose as usize].fetch_add(1, Relaxed);
            self.of_system.fetch_or(code == system, Relaxed);
            if purpose.is_outside_workers() {
                self.wanted.fetch_add(1, Relaxed);
            }
        }
        refused.is_some()
    }

    /// Number of descriptors refused to requesters without idle connections of their own, since the last call.
    pub fn take_wanted(&self) -> usize {
        if self.wanted.load(Relaxed) == 0 { 0 } else { self.wanted.swap(0, Relaxed) }
    }

    /// Takes the line of log that is due, and restarts the count.
    pub fn take(&self) -> Option<String> {
        let counts = self.counts.each_ref().map(|count| if count.load(Relaxed) == 0 { 0 } else { count.swap(0, Relaxed) });
        if counts.iter().all(|count| *count == 0) {
            return None;
        }
        let mut line = String::from("Out of file descriptors: ");
        let _ = match self.of_system.swap(false, Relaxed) {
            true => write!(line, "the limit of the system is reached. Raise 'fs.file-max', or lower 'maxconn'"),
            false => {
                let limit = getrlimit(Resource::Nofile).current.map_or_else(|| "unknown".into(), |limit| limit.to_string());
                write!(line, "the limit of the process ({limit}) is reached. Raise 'ulimit-n', or lower 'maxconn'")
            }
        };
        line.push_str(" (refused:");
        for (purpose, count) in Purpose::ALL.iter().zip(counts).filter(|(_, count)| *count > 0) {
            let _ = write!(line, " {} {count}", purpose.name());
        }
        line.push_str(").");
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_become_one_line() {
        let (exhaustion, error) = (Exhaustion::new(), |errno: Errno| io::Error::from(errno));
        assert_eq!(exhaustion.take(), None);
        assert!(!exhaustion.note(&error(Errno::CONNREFUSED), Purpose::Connect));
        assert_eq!(exhaustion.take(), None);
        assert!(exhaustion.note(&error(Errno::MFILE), Purpose::Accept));
        assert!(exhaustion.note(&error(Errno::MFILE), Purpose::Accept));
        assert!(exhaustion.note(&error(Errno::MFILE), Purpose::Check));
        let limit = getrlimit(Resource::Nofile).current.unwrap();
        let line = exhaustion.take().unwrap();
        assert!(line.contains(&format!("of the process ({limit})")) && line.ends_with("(refused: accept 2 checks 1)."), "{line}");
        assert_eq!(exhaustion.take(), None);
        exhaustion.note(&error(Errno::NFILE), Purpose::Log);
        let line = exhaustion.take().unwrap();
        assert!(line.contains("of the system") && line.contains("logs 1"), "{line}");
        // A check and a log: a worker that accepts closes its own idle connections.
        assert_eq!((exhaustion.take_wanted(), exhaustion.take_wanted()), (2, 0));
    }

    #[test]
    fn purposes_have_their_own_counts() {
        for (at, purpose) in Purpose::ALL.iter().enumerate() {
            assert_eq!(*purpose as usize, at);
        }
    }
}
