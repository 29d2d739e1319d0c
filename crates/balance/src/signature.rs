//! Signatures of TCP segments (RFC 2385, `tcp-md5sig`): the kernel signs segments that a socket sends to a peer. It
//! drops those from the peer that are unsigned, or signed by another password.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use terse_config::{Args, Fault};

/// The password of both sides.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature(Arc<[u8]>);

/// `struct tcp_md5sig` of Linux.
#[repr(C, align(8))]
struct Key {
    /// A `struct sockaddr_storage`.
    address: [u8; 128],
    flags: u8,
    prefix_bits: u8,
    length: u16,
    interface: i32,
    key: [u8; MOST],
}

/// The longest password that Linux takes.
const MOST: usize = 80;
/// `TCP_MD5SIG`: for one address.
const ONE: i32 = 14;
/// `TCP_MD5SIG_EXT`: for a prefix of addresses, with [`PREFIX`] among the flags.
const MANY: i32 = 32;
const PREFIX: u8 = 1;

impl Signature {
    /// Parses the password of `tcp-md5sig`.
    ///
    /// # Errors
    /// It is missing or empty, or longer than the kernel takes.
    pub fn parse(args: &mut Args<'_>) -> Result<Signature, Fault> {
        let password = args.need_bytes("<password>")?;
        Signature::new(password).ok_or_else(|| args.fault(format!("a password has 1 to {MOST} bytes")))
    }

    fn new(password: &[u8]) -> Option<Signature> {
        (1..=MOST).contains(&password.len()).then(|| Signature(password.into()))
    }

    /// Signs segments between a socket, which is not connected yet, and a peer.
    ///
    /// # Errors
    /// The kernel is built without signatures, or has no memory.
    pub fn sign(&self, socket: impl AsFd, peer: IpAddr) -> io::Result<()> {
        set(socket, ONE, &self.key(peer, 0))
    }

    /// Signs segments between a listener and any peer.
    ///
    /// # Errors
    /// As [`Signature::sign`].
    pub fn sign_all(&self, listener: impl AsFd, address: SocketAddr) -> io::Result<()> {
        set(&listener, MANY, &self.key(unspecified(address.ip()), PREFIX))?;
        match address {
            SocketAddr::V4(_) => Ok(()),
            // Clients of IPv4 need a signature of their own.
            SocketAddr::V6(_) => set(&listener, MANY, &self.key(MAPPED, PREFIX)),
        }
    }

    fn key(&self, peer: IpAddr, flags: u8) -> Key {
        let mut key = Key { address: [0; 128], flags, prefix_bits: 0, length: self.0.len() as u16, interface: 0, key: [0; MOST] };
        let (family, at, ip) = match &peer {
            IpAddr::V4(ip) => (libc::AF_INET, 4, &ip.octets()[..]),
            IpAddr::V6(ip) => (libc::AF_INET6, 8, &ip.octets()[..]),
        };
        key.address[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        key.address[at..at + ip.len()].copy_from_slice(ip);
        key.key[..self.0.len()].copy_from_slice(&self.0);
        key
    }
}

/// `::ffff:0.0.0.0`
const MAPPED: IpAddr = IpAddr::V6(std::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped());

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::from([0; 4]),
        IpAddr::V6(_) => IpAddr::from([0; 16]),
    }
}

fn set(socket: impl AsFd, option: i32, key: &Key) -> io::Result<()> {
    let size = size_of::<Key>() as libc::socklen_t;
    // SAFETY: the kernel reads `size` bytes, which is the size of the pointer's target, all of it written; the
    // descriptor is open.
    let done =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), libc::IPPROTO_TCP, option, std::ptr::from_ref(key).cast(), size) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Output without the password.
impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::net::{TcpListener, TcpSocket, TcpStream};
    use tokio::time::timeout;

    #[test]
    fn passwords_have_a_length() {
        assert_eq!(size_of::<Key>(), 216);
        assert!(Signature::new(b"").is_none() && Signature::new(&[b'x'; MOST + 1]).is_none());
        assert_eq!(format!("{:?}", Signature::new(&[b'x'; MOST]).unwrap()), "Signature");
    }

    async fn connect(to: SocketAddr, password: &str) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if let Some(signature) = Signature::new(password.as_bytes()) {
            signature.sign(&socket, to.ip())?;
        }
        socket.connect(to).await
    }

    #[tokio::test]
    async fn only_who_knows_the_password_gets_through() {
        for (address, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(address).await else { continue };
            let address = listener.local_addr().unwrap();
            if Signature::new(b"one").unwrap().sign_all(&listener, address).is_err() {
                eprintln!("left out: this kernel signs no segments");
                return;
            }
            let to = SocketAddr::new(to.parse().unwrap(), address.port());
            connect(to, "one").await.unwrap();
            for other in ["", "two"] {
                // No peer answers: the kernel tries again and again.
                assert!(timeout(Duration::from_millis(200), connect(to, other)).await.is_err(), "{other:?}");
            }
        }
    }
}
