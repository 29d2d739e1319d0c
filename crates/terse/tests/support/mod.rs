//! Real processes under test.
//!
//! ```ignore
//! let terse = Terse::with("frontend web\n mode http\n bind fd@${web}\n http-request return status 200\n").listen("web").start();
//! let answer = client::get(terse.address("web"), "/");
//! assert_eq!(terse.stop().code(), Some(0));
//! ```
//!
//! A listener is opened here, before the process starts, and inherited under a number that the variable of its name holds (as VTest
//! does it). So its port is known, connections wait in the kernel until the process accepts them, and nothing waits for a start.
//! The configuration is a file in a folder of its own, whose path is the variable `dir`; other files can be put beside it.
//!
//! Invariant: no process outlives its [`Terse`]; its output is printed when a test fails.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admin;
pub mod client;
pub mod dns;
pub mod gzip;
pub mod origin;
mod process;
pub mod program;
pub mod proxy;
pub mod random;
pub mod server;

pub use admin::column_of;
pub use process::{Finished, Terse, number_in};

use rustix::event::{PollFd, PollFlags, poll};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The longest that anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Returns an address that no process has now, over TCP or UDP. Its port is none of those that the kernel gives to a socket that
/// asks for any (32768 and more). So no other process gets it before the process under test does. Each call has another one.
pub fn free_address() -> SocketAddr {
    static FIRST: OnceLock<usize> = OnceLock::new();
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    const PORTS: usize = 32_768 - 10_240;
    let first = FIRST.get_or_init(|| RandomState::new().build_hasher().finish() as usize % PORTS);
    until("a free port", || {
        let port = 10_240 + (first + GIVEN.fetch_add(1, Relaxed)) % PORTS;
        let address = SocketAddr::from(([127, 0, 0, 1], port as u16));
        (TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()).then_some(address)
    })
}

/// Waits until a condition gives something.
///
/// # Panics
/// When it does not in time; `what` names the awaited event.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// True if a descriptor can be read before the time is over.
pub fn readable(descriptor: impl AsFd, within: Duration) -> bool {
    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
    let within = rustix::event::Timespec::try_from(within).unwrap();
    rustix::io::retry_on_intr(|| poll(&mut descriptors, Some(&within))).unwrap() > 0
}

/// True if the other side has closed the connection; returns once it has done so or the time is over. Bytes that it sends are
/// thrown away.
pub fn is_closed(stream: &mut TcpStream, within: Duration) -> bool {
    use std::io::Read;
    stream.set_read_timeout(Some(within)).unwrap();
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
