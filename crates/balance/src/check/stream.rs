//! A check's connection: TCP or a unix socket.

use crate::server::{Address, Server};
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// A connection to a server.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) async fn connect(server: &Server, port: Option<u16>) -> io::Result<Stream> {
        let check = &server.settings().check;
        match &*server.address() {
            Address::Ip(address) => {
                let ip = check.address.unwrap_or(address.ip());
                let port = port.or(check.port).unwrap_or(address.port());
                let stream = TcpStream::connect(SocketAddr::new(ip, port)).await?;
                // A check leaves by a reset, so that its port need not wait for packets that come late.
                stream.set_zero_linger()?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
            Address::Abstract(name) => {
                Ok(Stream::Unix(UnixStream::connect(OsStr::from_bytes(&[b"\0", &name[..]].concat())).await?))
            }
        }
    }

    /// Our address and the server's, over IP.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok().zip(stream.peer_addr().ok()),
            Stream::Unix(_) => None,
        }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes).await,
            Stream::Unix(stream) => stream.write_all(bytes).await,
        }
    }

    /// Appends what comes next; says how many bytes.
    pub(super) async fn receive(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read_buf(bytes).await,
            Stream::Unix(stream) => stream.read_buf(bytes).await,
        }
    }
}

/// An error in the log's words: HAProxy's name for it, and the system's.
pub(super) fn described(error: &io::Error) -> String {
    let text = error.to_string();
    let system = text.split(" (os error").next().unwrap_or_default();
    let name = match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED returned by OS",
        io::ErrorKind::ConnectionReset => "ECONNRESET returned by OS",
        io::ErrorKind::BrokenPipe => "EPIPE returned by OS",
        _ => "General socket error",
    };
    format!("{name} ({system})")
}
