//! Connections that end when a server goes down (`on-marked-down shutdown-sessions`), or when another one comes up
//! (`on-marked-up shutdown-backup-sessions`).
//!
//! Who makes a connection to such a server leaves a descriptor of it here for as long as it lives. Ending it is shutting both
//! directions down: who reads from it finds its end, wherever that is in the request.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Connections to one server.
#[derive(Clone, Default, Debug)]
pub struct Connections(Arc<Mutex<Registered>>);

#[derive(Default, Debug)]
struct Registered {
    descriptors: HashMap<u64, (OwnedFd, Arc<OnceLock<Ending>>)>,
    next: u64,
}

/// A connection's place here; dropping it gives it up.
#[derive(Debug)]
pub struct Registration {
    connections: Connections,
    number: u64,
    ending: Arc<OnceLock<Ending>>,
}

/// Why connections are ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Their server has gone down.
    Down,
    /// Their server is a backup, and one that is none has come up.
    Replaced,
}

impl Registration {
    /// Why the connection was ended, if it was.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.get().copied()
    }
}

impl Connections {
    /// Takes a second descriptor of a connection.
    pub fn register(&self, descriptor: OwnedFd) -> Registration {
        let mut registered = self.lock();
        let number = registered.next;
        registered.next += 1;
        let ending = Arc::new(OnceLock::new());
        registered.descriptors.insert(number, (descriptor, ending.clone()));
        Registration { connections: self.clone(), number, ending }
    }

    /// Ends all; says how many there were.
    pub fn end(&self, why: Ending) -> usize {
        let registered = self.lock();
        for (descriptor, ending) in registered.descriptors.values() {
            ending.get_or_init(|| why);
            // A connection that has ended by itself needs nothing.
            let _ = rustix::net::shutdown(descriptor, rustix::net::Shutdown::Both);
        }
        registered.descriptors.len()
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.connections.lock().descriptors.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_registered_ends() {
        let connections = Connections::default();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let kept = connections.register(near.try_clone().unwrap().into());
        let other = connections.register(UnixStream::pair().unwrap().0.into());
        drop(other);
        assert_eq!(connections.end(Ending::Down), 1);
        assert_eq!((near.read(&mut [0]).unwrap(), far.read(&mut [0]).unwrap()), (0, 0));
        drop(kept);
        assert_eq!(connections.end(Ending::Down), 0);
    }
}
