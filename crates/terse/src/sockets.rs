//! Listening sockets: what `bind` and `stats socket` lines name becomes descriptors.
//!
//! ```text
//! text of a line --address--> Endpoint --pool?--> taken over from the process before
//!                                     \--open---> opened here
//! ```
//!
//! All lines are tried before anything is reported, so that one start names every address that cannot be had. Unix sockets come up
//! under another name and take their place only in [`Sockets::publish`]. A start that fails leaves the sockets of the process
//! before alone.
//!
//! Invariant: every socket that is returned listens, does not block, and is closed on `exec`.

pub mod address;
pub mod open;
pub mod pool;
pub mod unix;

pub use address::Endpoint;
pub use pool::Pool;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use terse_balance::signature::Signature;

/// An address to listen on, with the settings of its line.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The number that the caller knows its line by.
    pub line: usize,
    /// Owner and place of its line, for errors: `[file:4] for frontend web`.
    pub owner: String,
    /// Address to listen on.
    pub endpoint: Endpoint,
    /// Settings of the socket.
    pub options: Options,
    /// Number of sockets: one for each worker that accepts on its own. Shared kinds come once.
    pub count: usize,
}

/// Settings of a line for its socket.
#[derive(Clone, Default, Debug)]
pub struct Options {
    /// Connections that the kernel may hold until they are accepted.
    pub backlog: Option<u32>,
    /// `interface`: the device that connections must come through.
    pub interface: Option<String>,
    /// `v6only`, `v4v6`: whether an IPv6 socket leaves IPv4 alone.
    pub v6only: Option<bool>,
    /// `transparent`: addresses that are not this machine's.
    pub transparent: bool,
    /// `defer-accept`: only connections that have sent something.
    pub defer_accept: bool,
    /// `tcp-ss`: whether the kernel keeps the packets that open connections, and how much of them.
    pub save_syn: u8,
    /// `tfo`: data in the first packet.
    pub fast_open: bool,
    /// `mss`: the largest segment.
    pub mss: Option<u32>,
    /// `tcp-ut`: time that sent bytes may go without an acknowledgement.
    pub user_timeout: Option<Duration>,
    /// `tcp-md5sig`: signatures of segments.
    pub signature: Option<Signature>,
    /// `cc`: TCP's algorithm against congestion.
    pub congestion: Option<String>,
    /// A single socket for all workers instead of one each.
    pub shared: bool,
    /// Of a unix socket's file.
    pub file: unix::FileOptions,
}

/// A socket that listens.
#[derive(Debug)]
pub struct Listening {
    /// The number of its line.
    pub line: usize,
    /// Address that it listens on.
    pub endpoint: Endpoint,
    /// The device that it is bound to.
    pub interface: Option<String>,
    /// The socket.
    pub socket: OwnedFd,
    /// True if there is one for each worker; otherwise it is the line's only one.
    pub own: bool,
}

/// An address that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("Binding {owner}: {step} ({}) for [{endpoint}]", reason(error))]
pub struct Refusal {
    owner: String,
    step: &'static str,
    endpoint: Endpoint,
    error: io::Error,
}

/// An address that another program listens on.
#[derive(Debug)]
pub struct Taken {
    /// The line that wants it, as in [`Wanted`].
    pub owner: String,
    /// The address.
    pub address: SocketAddr,
    /// True if another line of the same process wants it.
    pub is_double: bool,
    /// The same with the next port that is free.
    pub free: Option<SocketAddr>,
}

/// All sockets of a process.
#[derive(Debug, Default)]
pub struct Sockets {
    /// In the order of their lines.
    pub list: Vec<Listening>,
    pending: Vec<unix::Pending>,
    inherited: Vec<i32>,
}

impl Sockets {
    /// Opens all of them, taking from the pool the sockets of the process before.
    ///
    /// # Errors
    /// Every address that cannot be had; then nothing stays open.
    pub fn open(wanted: &[Wanted], pool: &mut Pool) -> Result<Sockets, Vec<Refusal>> {
        let mut sockets = Sockets::default();
        let mut refusals = Vec::new();
        for wanted in wanted {
            if let Err((step, error)) = sockets.add(wanted, pool) {
                refusals.push(Refusal { owner: wanted.owner.clone(), step, endpoint: wanted.endpoint.clone(), error });
            }
        }
        if refusals.is_empty() { Ok(sockets) } else { Err(refusals) }
    }

    /// Gives unix sockets their names, and lets go of the numbers under which sockets were inherited: their duplicates are in use.
    ///
    /// # Errors
    /// The first name that cannot be taken.
    pub fn publish(&mut self) -> Result<(), (PathBuf, io::Error)> {
        for pending in self.pending.drain(..) {
            pending.publish()?;
        }
        self.inherited.sort_unstable();
        self.inherited.dedup();
        self.inherited.drain(..).for_each(crate::process::sys::close_inherited);
        Ok(())
    }

    fn add(&mut self, wanted: &Wanted, pool: &mut Pool) -> Result<(), (&'static str, io::Error)> {
        let Options { interface, shared, .. } = &wanted.options;
        let own = !shared && matches!(wanted.endpoint, Endpoint::Ip(_));
        let count = if own { wanted.count.max(1) } else { 1 };
        let mut taken = pool.take(&wanted.endpoint, wanted.options.v6only, interface.as_deref(), if own { usize::MAX } else { 1 });
        for socket in &taken {
            open::reuse(socket, wanted)?;
        }
        // Sockets that were handed over are kept even if they are more than the workers: each may hold connections that wait.
        while taken.len() < count {
            match open::open(wanted, own) {
                Ok((socket, pending)) => {
                    self.pending.extend(pending);
                    taken.push(socket);
                }
                // The socket that was handed over may not let others beside it; then it serves alone.
                Err((_, error)) if error.kind() == io::ErrorKind::AddrInUse && !taken.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        if let Endpoint::Inherited(number) = wanted.endpoint {
            self.inherited.push(number);
        }
        self.list.extend(taken.into_iter().map(|socket| Listening {
            line: wanted.line,
            endpoint: wanted.endpoint.clone(),
            interface: interface.clone(),
            socket,
            own,
        }));
        Ok(())
    }
}

/// Addresses that another program listens on, each with the next port that is free: a socket that lets others beside it would be opened
/// all the same, and share its connections.
pub fn taken(wanted: &[Wanted]) -> Vec<Taken> {
    let mut taken = Vec::new();
    for (at, Wanted { owner, endpoint, .. }) in wanted.iter().enumerate() {
        let Endpoint::Ip(address) = *endpoint else { continue };
        let is_held = !is_free(address);
        let is_double = !is_held && address.port() > 0 && wanted[..at].iter().any(|other| other.endpoint == *endpoint);
        if is_held || is_double {
            let next = SocketAddr::new(address.ip(), address.port().saturating_add(1));
            taken.push(Taken { owner: owner.clone(), address, is_double, free: free(next) });
        }
    }
    taken
}

/// The address, or the same with the next port that is free.
pub fn free(address: SocketAddr) -> Option<SocketAddr> {
    let ports = (address.port()..=u16::MAX).take(1 + PORTS_TRIED);
    ports.map(|port| SocketAddr::new(address.ip(), port)).find(|address| is_free(*address))
}

/// True if no other program listens there, whether or not it would share the address.
fn is_free(address: SocketAddr) -> bool {
    !matches!(TcpListener::bind(address), Err(error) if error.kind() == io::ErrorKind::AddrInUse)
}

/// Number of ports that are tried after one that is taken.
const PORTS_TRIED: usize = 100;

/// The system's error, without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpStream;
    use std::os::fd::AsFd;

    fn wanted(text: &str, count: usize) -> Wanted {
        Wanted {
            line: 0,
            owner: "[t:1] for frontend web".into(),
            endpoint: Endpoint::parse(text, "").unwrap().remove(0),
            options: Options::default(),
            count,
        }
    }

    fn local(socket: &OwnedFd) -> SocketAddr {
        socket2::SockRef::from(socket).local_addr().unwrap().as_socket().unwrap()
    }

    #[test]
    fn each_worker_gets_a_socket_of_its_own() {
        let port = local(&Sockets::open(&[wanted("127.0.0.1:0", 1)], &mut Pool::default()).unwrap().list[0].socket).port();
        let sockets = Sockets::open(&[wanted(&format!("127.0.0.1:{port}"), 3)], &mut Pool::default()).unwrap();
        assert_eq!(sockets.list.len(), 3);
        assert!(sockets.list.iter().all(|s| s.own && local(&s.socket).port() == port));
    }

    #[test]
    fn all_that_cannot_be_had_is_named() {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let busy = holder.local_addr().unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no/sock");
        let wanted = [wanted(&busy, 1), wanted(path.to_str().unwrap(), 1), wanted("fd@9999", 1)];
        let refusals = Sockets::open(&wanted, &mut Pool::default()).unwrap_err();
        let texts: Vec<_> = refusals.iter().map(ToString::to_string).collect();
        assert_eq!(texts[0], format!("Binding [t:1] for frontend web: cannot bind socket (Address already in use) for [{busy}]"));
        assert!(texts[1].contains("cannot bind UNIX socket (No such file or directory)"), "{}", texts[1]);
        assert!(texts[2].contains("(Bad file descriptor) for [fd@9999]"), "{}", texts[2]);
    }

    #[test]
    fn one_inherited_socket_may_serve_two_lines() {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(holder.try_clone().unwrap());
        let text = format!("fd@{number}");
        let mut sockets = Sockets::open(&[wanted(&text, 4), wanted(&text, 4)], &mut Pool::default()).unwrap();
        assert_eq!(sockets.list.len(), 2);
        assert!(sockets.list.iter().all(|s| !s.own && local(&s.socket) == holder.local_addr().unwrap()));
        sockets.publish().unwrap();
        let address = holder.local_addr().unwrap();
        drop((holder, sockets));
        assert!(TcpStream::connect(address).is_err(), "the inherited number is let go of");
    }

    #[test]
    fn a_unix_socket_takes_its_place_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let text = path.to_str().unwrap().to_owned();
        let mut first = Sockets::open(&[wanted(&text, 2)], &mut Pool::default()).unwrap();
        assert!(!path.exists(), "not before all else is open");
        first.publish().unwrap();
        let failed = Sockets::open(&[wanted(&text, 2), wanted("fd@9999", 1)], &mut Pool::default());
        assert!(failed.is_err());
        std::os::unix::net::UnixStream::connect(&path).unwrap().write_all(b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a start that failed leaves nothing");
    }

    #[test]
    fn sockets_come_from_the_pool_first() {
        let mut old = Sockets::open(&[wanted("127.0.0.1:0", 1)], &mut Pool::default()).unwrap();
        let socket = old.list.remove(0).socket;
        let address = local(&socket);
        let mut waiting = TcpStream::connect(address).unwrap();
        let mut pool = Pool::default();
        pool.add(socket.as_fd().try_clone_to_owned().unwrap(), None);
        drop(socket);
        let sockets = Sockets::open(&[wanted(&address.to_string(), 2)], &mut pool).unwrap();
        assert_eq!(sockets.list.len(), 2);
        waiting.write_all(b"x").unwrap();
        let taken = TcpListener::from(sockets.list[0].socket.try_clone().unwrap());
        assert_eq!(taken.accept().unwrap().1, waiting.local_addr().unwrap(), "what waited before is served");
    }
}
