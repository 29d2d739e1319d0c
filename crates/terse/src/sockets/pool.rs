//! Sockets that the process before has handed over, found by their address.

use super::Endpoint;
use socket2::{Domain, SockRef, Type};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Listening sockets, until their addresses are asked for.
#[derive(Debug, Default)]
pub struct Pool {
    sockets: Vec<Pooled>,
}

#[derive(Debug)]
struct Pooled {
    key: Key,
    v6only: bool,
    interface: Option<String>,
    socket: OwnedFd,
}

#[derive(Debug)]
enum Key {
    Ip(SocketAddr),
    Path(Vec<u8>),
    Abstract(Vec<u8>),
}

impl Pool {
    /// Adds a socket; anything else than a listening stream socket of a known family is closed.
    pub fn add(&mut self, socket: OwnedFd, interface: Option<String>) {
        if let Some((key, v6only)) = identify(&socket) {
            self.sockets.push(Pooled { key, v6only, interface, socket });
        }
    }

    /// Number of sockets left.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// True if none is left.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Takes up to `most` sockets of that address. IPv6 ones must agree on IPv4, and all on the device.
    pub fn take(&mut self, endpoint: &Endpoint, v6only: Option<bool>, interface: Option<&str>, most: usize) -> Vec<OwnedFd> {
        let fits = |pooled: &mut Pooled| {
            let family =
                !matches!(endpoint, Endpoint::Ip(address) if address.is_ipv6()) || pooled.v6only == v6only.unwrap_or(false);
            family && pooled.interface.as_deref() == interface && pooled.key.is(endpoint)
        };
        self.sockets.extract_if(.., fits).take(most).map(|pooled| pooled.socket).collect()
    }
}

impl Key {
    fn is(&self, endpoint: &Endpoint) -> bool {
        match (self, endpoint) {
            (Key::Ip(mine), Endpoint::Ip(theirs)) => mine == theirs,
            (Key::Path(mine), Endpoint::Unix(theirs)) => same_path(mine, theirs),
            (Key::Abstract(mine), Endpoint::Abstract(theirs)) => mine == theirs,
            _ => false,
        }
    }
}

/// Compares paths. A socket remembers the name that it came up under: the path followed by `.<pid>.tmp` (here and in HAProxy
/// alike).
fn same_path(bound: &[u8], path: &Path) -> bool {
    match bound.strip_prefix(path.as_os_str().as_bytes()) {
        Some([]) => true,
        Some([b'.', rest @ ..]) => {
            rest.strip_suffix(b".tmp").is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
        }
        _ => false,
    }
}

fn identify(socket: &OwnedFd) -> Option<(Key, bool)> {
    let socket = SockRef::from(socket);
    if socket.r#type().ok()? != Type::STREAM || !socket.is_listener().ok()? {
        return None;
    }
    let address = socket.local_addr().ok()?;
    let v6only = socket.domain().ok()? == Domain::IPV6 && socket.only_v6().unwrap_or(false);
    let key = match (address.as_socket(), address.as_pathname(), address.as_abstract_namespace()) {
        (Some(address), ..) => Key::Ip(address),
        (_, Some(path), _) => Key::Path(path.as_os_str().as_bytes().to_vec()),
        (.., Some(name)) => Key::Abstract(name.to_vec()),
        _ => return None,
    };
    Some((key, v6only))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn temporary_names_are_the_same_path() {
        let path = Path::new("/run/sock");
        for bound in ["/run/sock", "/run/sock.1.tmp", "/run/sock.123.tmp"] {
            assert!(same_path(bound.as_bytes(), path), "{bound}");
        }
        for bound in ["/run/sock.tmp", "/run/sock..tmp", "/run/sock.1a.tmp", "/run/socks", "/run/sock.1.tmp.1", "/run/soc"] {
            assert!(!same_path(bound.as_bytes(), path), "{bound}");
        }
    }

    #[test]
    fn only_what_listens_is_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut pool = Pool::default();
        pool.add(TcpStream::connect(address).unwrap().into(), None);
        pool.add(std::fs::File::open("/dev/null").unwrap().into(), None);
        assert!(pool.is_empty());
        pool.add(listener.into(), None);
        assert!(pool.take(&Endpoint::Ip(address), None, Some("lo"), 9).is_empty());
        assert_eq!(pool.take(&Endpoint::Ip(address), None, None, 9).len(), 1);
        assert!(pool.is_empty());
    }

    #[test]
    fn no_more_are_taken_than_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Ip(listener.local_addr().unwrap());
        let mut pool = Pool::default();
        (0..3).for_each(|_| pool.add(listener.try_clone().unwrap().into(), None));
        assert_eq!((pool.take(&endpoint, None, None, 1).len(), pool.len()), (1, 2));
    }
}
