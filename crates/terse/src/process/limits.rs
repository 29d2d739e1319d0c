//! Limits of the process: connections, pipes, descriptors, memory.
//!
//! A connection costs two descriptors: the client's and the server's; a pipe costs two. Other open files (listeners, logs, checks,
//! the runtime's own) are counted once. Limits that are not set are computed as HAProxy computes them.

use super::container;
use super::settings::ProcessSettings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::path::Path;
use terse_proxy::splice::Spliced;

/// The limits in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections of the process.
    pub connections: u32,
    /// TLS connections of clients and servers, where the memory bounds them.
    pub tls_connections: Option<u32>,
    /// Pipes of the process.
    pub pipes: u32,
    /// Descriptors that all of these need.
    pub needed: u64,
    /// Descriptors of the process.
    pub descriptors: u64,
    /// True if `ulimit-n` sets them: then they are no more, either.
    pub is_exact: bool,
    /// `fd-hard-limit`: the number above which they are not raised.
    pub most: Option<u64>,
    /// `-m`, in MiB.
    pub memory_mib: Option<u64>,
}

/// Input from which the limits are computed.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// `-n`, then `maxconn`.
    pub connections: Option<u32>,
    /// Traffic that may go through pipes.
    pub pipes: Pipes,
    /// `ulimit-n`.
    pub descriptors: Option<u64>,
    /// `fd-hard-limit`.
    pub descriptors_most: Option<u64>,
    /// `-m`, and the demands on it.
    pub memory: Option<Memory>,
    /// Descriptors that do not belong to connections.
    pub fixed: u64,
    /// The most descriptors that the system grants: the higher one of the soft and hard limits.
    pub granted: u64,
}

/// Number of pipes.
#[derive(Clone, Copy, Debug)]
pub enum Pipes {
    /// So many: `maxpipes`, or none where nothing may go through them.
    Said(u32),
    /// A pipe for four of these connections.
    For(Spliced),
}

/// `-m`, and the demands on it.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The value of `-m`, in MiB.
    pub mib: u64,
    /// The bytes of one buffer.
    pub buffer_bytes: u64,
    /// `maxzlibmem`, in bytes.
    pub coders_bytes: u64,
    /// `tune.ssl.cachesize`.
    pub tls_sessions: u64,
    /// Number of sides that speak TLS anywhere: clients, servers.
    pub tls_sides: u64,
    /// `maxsslconn`; 0: not set.
    pub tls_connections: u64,
}

/// A limit that cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// More descriptors than the system grants.
    #[error("Cannot raise FD limit to {wanted}, limit is {granted}. Drop 'maxconn' and 'ulimit-n' to let it adapt, or lower them.")]
    Descriptors {
        /// Number that was needed.
        wanted: u64,
        /// Number that was granted.
        granted: u64,
    },
    /// The memory limit.
    #[error("Cannot fix MEM limit to {mib} megs: {error}")]
    Memory {
        /// Limit that was requested, in MiB.
        mib: u64,
        /// The system's error.
        error: io::Error,
    },
}

/// Limits that contradict each other: the memory of `-m` does not suffice for a number that the file sets.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
#[error("-m {mib}: '{word} {said}' needs more memory than that; {most} is the most without {others}; lower it, or raise -m")]
pub struct Contradiction {
    mib: u64,
    word: &'static str,
    said: u64,
    most: u64,
    others: &'static str,
}

impl Wishes {
    /// Collects the settings of the command line and the configuration, under the limits that the process was started with.
    ///
    /// `spliced`: the connections whose bytes may go through pipes; `None`: there are no pipes, whatever is set.
    pub fn new(
        settings: &ProcessSettings,
        maxconn: Option<u32>,
        memory: Option<Memory>,
        fixed: u64,
        spliced: Option<Spliced>,
    ) -> Wishes {
        let limit = getrlimit(Resource::Nofile);
        Wishes {
            connections: maxconn.or(settings.maxconn),
            pipes: match (spliced, settings.pipes) {
                (None, _) => Pipes::Said(0),
                (Some(_), Some(pipes)) => Pipes::Said(pipes),
                (Some(spliced), None) => Pipes::For(spliced),
            },
            descriptors: settings.descriptors,
            descriptors_most: settings.descriptors_most,
            memory,
            fixed: fixed + RESERVE,
            granted: limit.maximum.or(limit.current).unwrap_or(u64::MAX),
        }
    }

    /// The limits to set. Without a wish for connections there are as many as descriptors and memory allow.
    ///
    /// # Errors
    /// [`Contradiction`].
    pub fn settle(&self) -> Result<Limits, Contradiction> {
        let (connections, tls_connections) = match (self.connections, self.memory) {
            (Some(connections), None) => (connections, None),
            (Some(connections), Some(memory)) => (connections, memory.tls_connections_beside(connections)?),
            (None, None) => (self.by_descriptors(), None),
            (None, Some(memory)) => memory.connections(self.by_descriptors())?,
        };
        let pipes = self.pipes.number(Some(connections)).unwrap_or(0);
        let needed = (u64::from(connections) + u64::from(pipes)) * 2 + self.fixed;
        Ok(Limits {
            connections,
            tls_connections,
            pipes,
            needed,
            descriptors: self.descriptors.unwrap_or(needed),
            is_exact: self.descriptors.is_some(),
            most: self.descriptors_most,
            memory_mib: self.memory.map(|memory| memory.mib),
        })
    }

    /// Number of connections for which there are descriptors.
    fn by_descriptors(&self) -> u32 {
        let most = self.descriptors_most.unwrap_or(DESCRIPTORS_MOST);
        let available = self.descriptors.unwrap_or_else(|| self.granted.min(most));
        let left = available.saturating_sub(self.fixed);
        let connections = match self.pipes.number(None).map(|pipes| 2 * u64::from(pipes)) {
            // Pipes are optional: they take nothing where they would take all.
            Some(pipes) => (if pipes < left { left - pipes } else { left }) / 2,
            None => left * 2 / 5,
        };
        u32::try_from(connections).unwrap_or(u32::MAX).max(1)
    }
}

impl Pipes {
    /// Number of pipes for `connections` of the process; `None`: a quarter of the spliced connections, whose number is not known
    /// yet.
    fn number(self, connections: Option<u32>) -> Option<u32> {
        match self {
            Pipes::Said(pipes) => Some(pipes),
            Pipes::For(spliced) => {
                let connections = spliced.connections(connections.map(|most| most as usize))?;
                let pipes = if connections >= CONNECTIONS_A_PIPE { connections / CONNECTIONS_A_PIPE } else { connections };
                Some(u32::try_from(pipes).unwrap_or(u32::MAX))
            }
        }
    }
}

impl Memory {
    /// Connections, and TLS connections among them, where no number of connections is set; at most `most`.
    fn connections(&self, most: u32) -> Result<(u32, Option<u32>), Contradiction> {
        let (all, stream, tls) = (self.usable(), self.stream(), TLS_SESSION_BYTES + TLS_HANDSHAKE_BYTES);
        if self.tls_sides > 0 && self.tls_connections == 0 {
            // No connection has two handshakes at a time.
            let each = stream + self.tls_sides * TLS_SESSION_BYTES + TLS_HANDSHAKE_BYTES;
            let connections = rounded((all / each).min(most.into())).max(1);
            let tls = u32::try_from(self.tls_sides).unwrap_or(1).saturating_mul(connections);
            return Ok((connections, Some(tls)));
        }
        let for_tls = if self.tls_sides > 0 { tls.saturating_mul(self.tls_connections) } else { 0 };
        match all.checked_sub(for_tls).map(|left| left / stream).filter(|connections| *connections > 0) {
            Some(connections) => Ok((rounded(connections.min(most.into())), None)),
            None => Err(self.contradiction("maxsslconn", self.tls_connections, all / tls, "any other connection")),
        }
    }

    /// TLS connections beside `connections`, where no number of them is set.
    fn tls_connections_beside(&self, connections: u32) -> Result<Option<u32>, Contradiction> {
        if self.tls_sides == 0 || self.tls_connections > 0 {
            return Ok(None);
        }
        let (all, stream) = (self.usable(), self.stream());
        let left = all.saturating_sub(u64::from(connections).saturating_mul(stream));
        let tls = rounded(left / (TLS_SESSION_BYTES + TLS_HANDSHAKE_BYTES));
        if u64::from(tls) < self.tls_sides {
            return Err(self.contradiction("maxconn", connections.into(), all / stream, "TLS"));
        }
        let useful = u32::try_from(self.tls_sides).unwrap_or(1).saturating_mul(connections);
        Ok(Some(tls.min(useful)))
    }

    fn contradiction(&self, word: &'static str, said: u64, most: u64, others: &'static str) -> Contradiction {
        Contradiction { mib: self.mib, word, said, most, others }
    }

    /// The bytes for connections.
    fn usable(&self) -> u64 {
        let sessions = if self.tls_sides > 0 { self.tls_sessions.saturating_mul(TLS_REMEMBERED_BYTES) } else { 0 };
        let left = self.mib.saturating_mul(1 << 20).saturating_sub(sessions).saturating_sub(self.coders_bytes);
        left.saturating_mul(USABLE_PERCENT) / 100
    }

    /// Bytes of a connection without TLS: a buffer each way, and the state around them.
    fn stream(&self) -> u64 {
        STREAM_BYTES + 2 * self.buffer_bytes
    }
}

/// Rounds down to two digits, as HAProxy rounds what it computes from memory.
fn rounded(number: u64) -> u32 {
    let mut unit = 1;
    while number / unit >= 100 {
        unit *= 10;
    }
    u32::try_from(number / unit * unit).unwrap_or(u32::MAX)
}

impl Limits {
    /// Raises the process's limit of descriptors; lowers it only to the value of `ulimit-n`. The hard limit stays, for processes
    /// that come after this one.
    ///
    /// # Errors
    /// [`Refusal::Descriptors`]; then as many as the system and `fd-hard-limit` grant are set.
    pub fn apply(&self) -> Result<(), Refusal> {
        let old = getrlimit(Resource::Nofile);
        let is_too_much = self.most.is_some_and(|most| self.descriptors > most);
        if !self.is_exact && !is_too_much && old.current.is_none_or(|current| current >= self.descriptors) {
            return Ok(());
        }
        let raised = old.maximum.map(|hard| hard.max(self.descriptors));
        if !is_too_much && setrlimit(Resource::Nofile, Rlimit { current: Some(self.descriptors), maximum: raised }).is_ok() {
            return Ok(());
        }
        // Without the right to raise the hard limit, descriptors are granted up to it.
        let granted = old.maximum.into_iter().chain(self.most).min();
        let _ = setrlimit(Resource::Nofile, Rlimit { current: granted, maximum: old.maximum });
        Err(Refusal::Descriptors { wanted: self.descriptors, granted: granted.unwrap_or(u64::MAX) })
    }

    /// The connections that so many descriptors do for, where they are fewer than were wanted; a quarter of them at least, since hardly any
    /// process has all descriptors open that belong to none.
    pub fn connections_within(&self, descriptors: u64) -> u32 {
        let (wanted, missing) = (u64::from(self.connections), self.needed.saturating_sub(descriptors).div_ceil(2));
        let within = wanted.saturating_sub(missing).max(descriptors / 4).clamp(1, wanted.max(1));
        u32::try_from(within).unwrap_or(u32::MAX)
    }
}

/// Has the kernel limit the process's data, above the limit that the process keeps to by itself. The kernel counts mapped memory,
/// which is up to twice of what is used, and ends a process that is refused memory.
///
/// # Errors
/// [`Refusal::Memory`].
pub fn limit_memory(mib: u64) -> Result<(), Refusal> {
    let bytes = mib.saturating_mul(2 << 20).saturating_add(2 * PROGRAM_BYTES);
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Data, limit).map_err(|error| Refusal::Memory { mib, error: error.into() })
}

/// Default for the bytes that may wait in the process: a quarter of the machine's memory or of the container's. With `-m` it is
/// half of what that leaves beside the program itself.
pub fn buffer_memory(limit_mib: Option<u64>) -> usize {
    let system = rustix::system::sysinfo();
    let bytes = match limit_mib.map(|mib| mib.saturating_mul(1 << 20)) {
        Some(limit) => limit.saturating_sub(PROGRAM_BYTES).max(limit / 4) / 2,
        None => {
            let machine = (system.totalram as u64).saturating_mul(system.mem_unit.max(1).into());
            let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            container::memory(&groups, Path::new("/sys/fs/cgroup")).map_or(machine, |bytes| bytes.min(machine)) / 4
        }
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Descriptors of every process: standard streams, the control thread's runtime, files that are read.
const RESERVE: u64 = 32;

/// Connections for each pipe where `maxpipes` is not set, as in HAProxy.
const CONNECTIONS_A_PIPE: usize = 4;

/// Upper bound of automatic limits, as HAProxy's `fd-hard-limit` is unless it is set.
const DESCRIPTORS_MOST: u64 = 1_048_576;

/// Percentage of `-m` that connections may have, as in HAProxy.
const USABLE_PERCENT: u64 = 97;

/// Bytes of a stream beside its two buffers. Measured, a request that waits for its server holds 10 KB with a buffer that is hardly
/// filled.
const STREAM_BYTES: u64 = 2 * 1024 + 640;

/// Bytes of a TLS connection. Measured: 16 KB.
const TLS_SESSION_BYTES: u64 = 16 * 1024;

/// Bytes of a TLS handshake for as long as it lasts.
const TLS_HANDSHAKE_BYTES: u64 = 76 * 1024;

/// Bytes of a session that is remembered for an address.
const TLS_REMEMBERED_BYTES: u64 = 200;

/// The program's own data and the stacks of a few threads.
const PROGRAM_BYTES: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Wishes = Wishes {
        connections: None,
        pipes: Pipes::Said(0),
        descriptors: None,
        descriptors_most: None,
        memory: None,
        fixed: 20,
        granted: 1024,
    };
    const OPEN: Pipes = Pipes::For(Spliced { frontends: 0, backends: 0, is_open: true, open_backends: 0 });

    fn settled(wishes: Wishes) -> (u32, u32, u64, u64) {
        let limits = wishes.settle().unwrap();
        (limits.connections, limits.pipes, limits.needed, limits.descriptors)
    }

    #[test]
    fn connections_follow_what_is_granted() {
        assert_eq!(settled(NONE), (502, 0, 1024, 1024));
        assert_eq!(settled(Wishes { granted: u64::MAX, ..NONE }).3, DESCRIPTORS_MOST);
        assert_eq!(settled(Wishes { granted: u64::MAX, descriptors_most: Some(120), ..NONE }).0, 50);
        assert_eq!(settled(Wishes { granted: 3, ..NONE }).0, 1);
    }

    #[test]
    fn wishes_go_before() {
        assert_eq!(settled(Wishes { connections: Some(4000), ..NONE }), (4000, 0, 8020, 8020));
        let exact = Wishes { descriptors: Some(220), ..NONE };
        assert_eq!((settled(exact), exact.settle().unwrap().is_exact), ((100, 0, 220, 220), true));
        assert_eq!(settled(Wishes { connections: Some(10), descriptors: Some(5000), ..NONE }), (10, 0, 40, 5000));
    }

    #[test]
    fn fewer_descriptors_do_for_fewer_connections() {
        let limits = Wishes { connections: Some(4000), pipes: Pipes::Said(10), ..NONE }.settle().unwrap();
        assert_eq!(limits.needed, 8040);
        assert_eq!(
            [8040, 9000, 8039, 1040, 5].map(|descriptors| limits.connections_within(descriptors)),
            [4000, 4000, 3999, 500, 1]
        );
    }

    #[test]
    fn pipes_are_counted() {
        assert_eq!(settled(Wishes { pipes: OPEN, ..NONE }), (401, 100, 1022, 1022));
        assert_eq!(settled(Wishes { pipes: Pipes::Said(12), ..NONE }), (490, 12, 1024, 1024));
        assert_eq!(settled(Wishes { pipes: Pipes::Said(9999), ..NONE }).0, 502, "they are optional");
        assert_eq!(settled(Wishes { connections: Some(40), pipes: OPEN, ..NONE }), (40, 10, 120, 120));
        assert_eq!(settled(Wishes { connections: Some(3), pipes: OPEN, ..NONE }).1, 3);
        let small = Pipes::For(Spliced { frontends: 40, ..Spliced::default() });
        assert_eq!(settled(Wishes { pipes: small, ..NONE }), (492, 10, 1024, 1024));
        assert_eq!(settled(Wishes { pipes: Pipes::For(Spliced::default()), ..NONE }).1, 0);
    }

    const MEMORY: Memory =
        Memory { mib: 200, buffer_bytes: 16384, coders_bytes: 0, tls_sessions: 20_000, tls_sides: 0, tls_connections: 0 };

    /// HAProxy 2.6 computes these.
    #[test]
    fn memory_bounds_what_is_computed() {
        let of = |memory: Memory, connections: Option<u32>, granted: u64| {
            let limits = Wishes { memory: Some(memory), connections, granted, ..NONE }.settle();
            limits.map(|limits| (limits.connections, limits.tls_connections))
        };
        assert_eq!(of(MEMORY, None, u64::MAX), Ok((5700, None)));
        assert_eq!(of(MEMORY, None, 1016), Ok((490, None)));
        assert_eq!(of(Memory { buffer_bytes: 8192, ..MEMORY }, None, 19_860), Ok((9900, None)));
        assert_eq!(of(Memory { coders_bytes: 20 << 20, ..MEMORY }, None, u64::MAX), Ok((5100, None)));
        assert_eq!(of(MEMORY, Some(9999), 1024), Ok((9999, None)), "a wish is a wish");
        let tls = Memory { tls_sides: 1, ..MEMORY };
        assert_eq!(of(tls, None, u64::MAX), Ok((1500, Some(1500))));
        assert_eq!(of(Memory { tls_sides: 2, ..MEMORY }, None, u64::MAX), Ok((1300, Some(2600))));
        assert_eq!(of(tls, Some(1000), 1024), Ok((1000, Some(1000))));
        assert_eq!(of(Memory { tls_connections: 300, ..tls }, None, u64::MAX), Ok((4800, None)));
        assert_eq!(of(Memory { tls_connections: 300, ..MEMORY }, None, u64::MAX), Ok((5700, None)), "nobody speaks TLS");
        let said = of(tls, Some(10_000), 1024).unwrap_err().to_string();
        assert!(said.starts_with("-m 200: 'maxconn 10000' needs more memory than that; 56"), "{said}");
        let said = of(Memory { tls_connections: 30_000, ..tls }, None, 1024).unwrap_err().to_string();
        assert!(said.starts_with("-m 200: 'maxsslconn 30000' needs more memory than that; 21"), "{said}");
        assert_eq!([0, 99, 101, 5739, 123_456].map(rounded), [0, 99, 100, 5700, 120_000]);
    }
}
