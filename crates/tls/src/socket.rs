//! The socket below a connection: over IP, or of this machine.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{RecvFlags, SendFlags};
use socket2::SockRef;
use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll};
use tokio::io::{Interest, Ready};
use tokio::net::{TcpStream, UnixStream};

/// The socket below.
#[derive(Debug)]
pub enum Socket {
    /// Connection over IPv4 or IPv6.
    Tcp(TcpStream),
    /// Connection over a unix socket.
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

    /// Runs an operation on the socket, unless the runtime knows that it would have to wait.
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

impl Socket {
    /// Waits until the peer is [gone].
    pub(crate) async fn gone(&self) {
        match self {
            Socket::Tcp(io) => gone(io, |interest| io.ready(interest)).await,
            Socket::Unix(io) => gone(io, |interest| io.ready(interest)).await,
        }
    }
}

/// Waits until the peer has reset the connection or closed all of it: written bytes do not arrive any more. `ready` is the
/// socket's.
///
/// A peer that has closed its own half may still listen, and is waited for. Whether it does is not known before something
/// is written to it. TCP's answer is a reset then; a unix socket that was closed in two steps gives no sign.
pub async fn gone<F: Future<Output = io::Result<Ready>>>(socket: impl AsFd, ready: impl Fn(Interest) -> F) {
    // A full close of a unix socket is no error, but it can be read.
    for interest in [Interest::READABLE.add(Interest::ERROR), Interest::ERROR] {
        let polled = ready(interest).await;
        if polled.is_err() || has_hung_up(&socket) {
            return;
        }
    }
    std::future::pending().await
}

fn has_hung_up(socket: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&socket, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

impl<'s> From<&'s Socket> for SockRef<'s> {
    fn from(socket: &'s Socket) -> SockRef<'s> {
        match socket {
            Socket::Tcp(io) => SockRef::from(io),
            Socket::Unix(io) => SockRef::from(io),
        }
    }
}
