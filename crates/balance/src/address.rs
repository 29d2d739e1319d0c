//! Addresses of servers: over IP, or a unix socket of this machine.

use crate::destination::Destination;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::path::PathBuf;
use std::{fmt, io};
use terse_tls::Socket;
use tokio::net::{TcpStream, UnixStream};

/// Address of a server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Ip(SocketAddr),
    /// TCP over IP, the destination taken in part from the client's.
    AsAsked(Destination),
    /// A unix socket's path.
    Unix(PathBuf),
    /// A unix socket's name in the abstract namespace of Linux, without the leading NUL.
    Abstract(Vec<u8>),
}

impl Address {
    /// Opens a plain connection to it, for purposes of the proxy itself.
    ///
    /// # Errors
    /// The kernel's error; [`io::ErrorKind::AddrNotAvailable`] where only a client's destination would give the
    /// address.
    pub async fn connect(&self) -> io::Result<Socket> {
        Ok(match self {
            Address::Ip(ip) => Socket::Tcp(TcpStream::connect(ip).await?),
            Address::AsAsked(destination) => {
                let address = destination.of(None).ok_or(io::ErrorKind::AddrNotAvailable)?;
                Socket::Tcp(TcpStream::connect(address).await?)
            }
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path).await?),
            Address::Abstract(name) => Socket::Unix(connect_abstract(name)?),
        })
    }
}

/// Connects to a unix socket's name in the abstract namespace.
///
/// # Errors
/// The kernel's error.
pub fn connect_abstract(name: &[u8]) -> io::Result<UnixStream> {
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    let stream = std::os::unix::net::UnixStream::connect_addr(&address)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl Default for Address {
    fn default() -> Address {
        Destination::from(SocketAddr::from(([0, 0, 0, 0], 0))).into()
    }
}

impl From<Destination> for Address {
    fn from(destination: Destination) -> Address {
        destination.fixed().map_or(Address::AsAsked(destination), Address::Ip)
    }
}

impl Address {
    /// Address and port over IP; `None` for unix sockets.
    pub fn destination(&self) -> Option<Destination> {
        match self {
            Address::Ip(address) => Some((*address).into()),
            Address::AsAsked(destination) => Some(*destination),
            Address::Unix(_) | Address::Abstract(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(ip) => write!(f, "{ip}"),
            Address::AsAsked(destination) => write!(f, "{destination}"),
            Address::Unix(path) => write!(f, "unix@{}", path.display()),
            Address::Abstract(name) => {
                // Padded or not; the padding is not shown.
                let kind = if name.ends_with(b"\0") { "abns" } else { "abnsz" };
                write!(f, "{kind}@{}", String::from_utf8_lossy(name).trim_end_matches('\0'))
            }
        }
    }
}
