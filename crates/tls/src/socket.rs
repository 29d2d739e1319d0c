//! The socket below a connection: over IP, or of this machine.

use rustix::net::{RecvFlags, SendFlags};
use socket2::SockRef;
use std::io;
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// The socket below.
#[derive(Debug)]
pub enum Socket {
    /// Over IPv4 or IPv6.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(io) => io.poll_read_ready(cx),
            Socket::Unix(io) => io.poll_read_ready(cx),
        }
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(io) => io.poll_write_ready(cx),
            Socket::Unix(io) => io.poll_write_ready(cx),
        }
    }

    /// Does something to the socket, unless the runtime knows that it would have to wait.
    pub(crate) fn attempt<R>(&self, interest: Interest, f: impl FnOnce(&Socket) -> io::Result<R>) -> io::Result<R> {
        match self {
            Socket::Tcp(io) => io.try_io(interest, || f(self)),
            Socket::Unix(io) => io.try_io(interest, || f(self)),
        }
    }

    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        Ok(match self {
            Socket::Tcp(io) => rustix::net::recv(io, room, RecvFlags::empty())?.0,
            Socket::Unix(io) => rustix::net::recv(io, room, RecvFlags::empty())?.0,
        })
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(match self {
            Socket::Tcp(io) => rustix::net::send(io, bytes, SendFlags::NOSIGNAL)?,
            Socket::Unix(io) => rustix::net::send(io, bytes, SendFlags::NOSIGNAL)?,
        })
    }
}

impl<'s> From<&'s Socket> for SockRef<'s> {
    fn from(socket: &'s Socket) -> SockRef<'s> {
        match socket {
            Socket::Tcp(io) => SockRef::from(io),
            Socket::Unix(io) => SockRef::from(io),
        }
    }
}
