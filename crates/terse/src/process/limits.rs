//! How many connections and descriptors the process may have, and how much memory.
//!
//! A connection costs two descriptors: the client's and the server's; a pipe costs two. What else is open (listeners, logs, checks, the runtime's own)
//! is counted once.

use super::settings::ProcessSettings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// The limits in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections of the process.
    pub connections: u32,
    /// Pipes of the process.
    pub pipes: u32,
    /// Descriptors of the process.
    pub descriptors: u64,
    /// Whether `ulimit-n` says so: then they are no more, either.
    pub is_exact: bool,
}

/// What the limits are computed from.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// `-n`, then `maxconn`.
    pub connections: Option<u32>,
    /// `maxpipes`, where bytes may go through pipes: `None` where nothing is said.
    pub pipes: Option<u32>,
    /// `ulimit-n`.
    pub descriptors: Option<u64>,
    /// `fd-hard-limit`.
    pub descriptors_most: Option<u64>,
    /// `-m`, in bytes.
    pub memory_bytes: Option<u64>,
    /// The bytes of one buffer.
    pub buffer_bytes: u64,
    /// Descriptors that do not belong to connections.
    pub fixed: u64,
    /// The most descriptors that the system grants: the higher one of the soft and hard limits.
    pub granted: u64,
}

/// A limit that cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// More descriptors than the system grants.
    #[error("Cannot raise FD limit to {wanted}, limit is {granted}. Drop 'maxconn' and 'ulimit-n' to let it adapt, or lower them.")]
    Descriptors {
        /// What was needed.
        wanted: u64,
        /// What there is.
        granted: u64,
    },
    /// The memory limit.
    #[error("Cannot fix MEM limit to {mib} megs: {error}")]
    Memory {
        /// What was asked for.
        mib: u64,
        /// What the system says.
        error: io::Error,
    },
}

impl Wishes {
    /// What the command line and the configuration say, under the limits that the process was started with.
    ///
    /// `splices`: whether bytes may go through pipes.
    pub fn new(
        settings: &ProcessSettings,
        maxconn: Option<u32>,
        memory_mib: Option<u64>,
        buffer_bytes: u64,
        fixed: u64,
        splices: bool,
    ) -> Wishes {
        let limit = getrlimit(Resource::Nofile);
        Wishes {
            connections: maxconn.or(settings.maxconn),
            pipes: if splices { settings.pipes } else { Some(0) },
            descriptors: settings.descriptors,
            descriptors_most: settings.descriptors_most,
            memory_bytes: memory_mib.map(|mib| mib << 20),
            buffer_bytes,
            fixed: fixed + RESERVE,
            granted: limit.maximum.or(limit.current).unwrap_or(u64::MAX),
        }
    }

    /// The limits to set. Without a wish for connections there are as many as descriptors and memory allow.
    pub fn settle(&self) -> Limits {
        let most = self.descriptors_most.unwrap_or(DESCRIPTORS_MOST);
        let available = self.descriptors.unwrap_or_else(|| self.granted.min(most));
        let connections = self.connections.unwrap_or_else(|| {
            let left = available.saturating_sub(self.fixed);
            let by_descriptors = match self.pipes {
                Some(pipes) => left.saturating_sub(2 * u64::from(pipes)) / 2,
                None => left * u64::from(CONNECTIONS_A_PIPE) / (2 * u64::from(CONNECTIONS_A_PIPE) + 2),
            };
            let by_memory = self.memory_bytes.map_or(u64::MAX, |bytes| bytes / 4 * 3 / (2 * self.buffer_bytes + STREAM_BYTES));
            u32::try_from(by_descriptors.min(by_memory)).unwrap_or(u32::MAX).max(1)
        });
        let pipes = self.pipes.unwrap_or((connections / CONNECTIONS_A_PIPE).max(1));
        let needed = (u64::from(connections) + u64::from(pipes)) * 2 + self.fixed;
        Limits { connections, pipes, descriptors: self.descriptors.unwrap_or(needed), is_exact: self.descriptors.is_some() }
    }
}

impl Limits {
    /// Raises the process's limit of descriptors; lowers it only to what `ulimit-n` says. The hard limit stays, for processes that
    /// come after this one.
    ///
    /// # Errors
    /// [`Refusal::Descriptors`]; then as many as the system grants are set.
    pub fn apply(&self) -> Result<(), Refusal> {
        let old = getrlimit(Resource::Nofile);
        if !self.is_exact && old.current.is_none_or(|current| current >= self.descriptors) {
            return Ok(());
        }
        let raised = old.maximum.map(|hard| hard.max(self.descriptors));
        if setrlimit(Resource::Nofile, Rlimit { current: Some(self.descriptors), maximum: raised }).is_ok() {
            return Ok(());
        }
        // Without the right to raise the hard limit, up to it is what can be had.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: old.maximum, maximum: old.maximum });
        Err(Refusal::Descriptors { wanted: self.descriptors, granted: old.maximum.unwrap_or(u64::MAX) })
    }
}

/// Limits the process's data, as HAProxy's `-m` does.
///
/// # Errors
/// [`Refusal::Memory`].
pub fn limit_memory(mib: u64) -> Result<(), Refusal> {
    let limit = Rlimit { current: Some(mib << 20), maximum: Some(mib << 20) };
    setrlimit(Resource::Data, limit).map_err(|error| Refusal::Memory { mib, error: error.into() })
}

/// The bytes that may wait in the process when nothing says: a quarter of the machine's memory, or half of what `-m` allows.
pub fn buffer_memory(limit_mib: Option<u64>) -> usize {
    let system = rustix::system::sysinfo();
    let bytes = match limit_mib {
        Some(mib) => (mib << 20) / 2,
        None => (system.totalram as u64).saturating_mul(system.mem_unit.max(1).into()) / 4,
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Standard streams, the control thread's runtime, files that are read: what every process has.
const RESERVE: u64 = 32;

/// Where nothing is said there is one pipe for so many connections, as in HAProxy.
const CONNECTIONS_A_PIPE: u32 = 4;

/// Where automatic limits end, as HAProxy's `fd-hard-limit` does unless it is set.
const DESCRIPTORS_MOST: u64 = 1_048_576;

/// What a stream costs beside its two buffers, on the safe side.
const STREAM_BYTES: u64 = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Wishes = Wishes {
        connections: None,
        pipes: Some(0),
        descriptors: None,
        descriptors_most: None,
        memory_bytes: None,
        buffer_bytes: 16384,
        fixed: 20,
        granted: 1024,
    };

    #[test]
    fn connections_follow_what_is_granted() {
        assert_eq!(NONE.settle(), Limits { connections: 502, pipes: 0, descriptors: 1024, is_exact: false });
        assert_eq!(Wishes { granted: u64::MAX, ..NONE }.settle().descriptors, DESCRIPTORS_MOST);
        assert_eq!(Wishes { granted: u64::MAX, descriptors_most: Some(120), ..NONE }.settle().connections, 50);
        assert_eq!(Wishes { granted: 3, ..NONE }.settle().connections, 1);
    }

    #[test]
    fn wishes_go_before() {
        assert_eq!(
            Wishes { connections: Some(4000), ..NONE }.settle(),
            Limits { connections: 4000, pipes: 0, descriptors: 8020, is_exact: false }
        );
        assert_eq!(
            Wishes { descriptors: Some(220), ..NONE }.settle(),
            Limits { connections: 100, pipes: 0, descriptors: 220, is_exact: true }
        );
        let both = Wishes { connections: Some(10), descriptors: Some(5000), ..NONE };
        assert_eq!(both.settle(), Limits { connections: 10, pipes: 0, descriptors: 5000, is_exact: true });
    }

    #[test]
    fn pipes_are_counted() {
        let limits = Wishes { pipes: None, ..NONE }.settle();
        assert_eq!(limits, Limits { connections: 401, pipes: 100, descriptors: 1022, is_exact: false });
        let limits = Wishes { pipes: Some(12), ..NONE }.settle();
        assert_eq!((limits.connections, limits.pipes, limits.descriptors), (490, 12, 1024));
        let limits = Wishes { connections: Some(40), pipes: None, ..NONE }.settle();
        assert_eq!((limits.pipes, limits.descriptors), (10, 120));
    }

    #[test]
    fn memory_bounds_automatic_connections() {
        let wishes = Wishes { memory_bytes: Some(64 << 20), granted: u64::MAX, ..NONE };
        assert_eq!(wishes.settle().connections, 1228);
        assert_eq!(Wishes { connections: Some(9999), ..wishes }.settle().connections, 9999, "a wish is a wish");
    }
}
