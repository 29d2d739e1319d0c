//! What OpenSSL reads from and writes to: a socket that does not block, and what waits before and behind it.

use crate::secured::Socket;
use rustix::net::{RecvFlags, SendFlags};
use std::io::{self, Read, Write};
use std::sync::Arc;
use tokio::io::Interest;

/// A socket's bytes. A write always takes all: what the socket does not, waits, and whoever writes sees to it that this is little.
pub(crate) struct Wire {
    pub(crate) socket: Arc<Socket>,
    /// Bytes that were read before TLS began, and how many of them have been taken.
    early: (Vec<u8>, usize),
    /// Records on their way out, and how much of them has gone.
    unsent: (Vec<u8>, usize),
    /// Asks the kernel even where the runtime knows of nothing.
    pub(crate) insists: bool,
    /// The other end has closed without saying so (RFC 8446 section 6.1).
    pub(crate) truncated: bool,
}

impl Wire {
    pub(crate) fn new(socket: Arc<Socket>, early: &[u8]) -> Wire {
        Wire { socket, early: (early.to_vec(), 0), unsent: (Vec::new(), 0), insists: false, truncated: false }
    }

    /// Whether everything has gone.
    pub(crate) fn is_sent(&self) -> bool {
        self.unsent.0.is_empty()
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn send_waiting(&mut self) -> io::Result<()> {
        while self.unsent.1 < self.unsent.0.len() {
            let n = send(&self.socket, &self.unsent.0[self.unsent.1..])?;
            self.unsent.1 += n;
        }
        self.unsent = (Vec::new(), 0);
        Ok(())
    }
}

impl Read for Wire {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let (early, taken) = &mut self.early;
        if *taken < early.len() {
            let n = room.len().min(early.len() - *taken);
            room[..n].copy_from_slice(&early[*taken..*taken + n]);
            *taken += n;
            if *taken == early.len() {
                self.early = (Vec::new(), 0);
            }
            return Ok(n);
        }
        let n = match self.insists {
            true => self.socket.receive(room)?,
            false => self.socket.attempt(Interest::READABLE, |socket| socket.receive(room))?,
        };
        self.truncated |= n == 0;
        Ok(n)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut gone = 0;
        if self.is_sent() {
            gone = match send(&self.socket, bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                sent => sent?,
            };
        }
        self.unsent.0.extend_from_slice(&bytes[gone..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn send(socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    socket.attempt(Interest::WRITABLE, |socket| socket.send(bytes))
}

impl Socket {
    /// Does something to the socket, unless the runtime knows that it would have to wait.
    fn attempt<R>(&self, interest: Interest, f: impl FnOnce(&Socket) -> io::Result<R>) -> io::Result<R> {
        match self {
            Socket::Tcp(io) => io.try_io(interest, || f(self)),
            Socket::Unix(io) => io.try_io(interest, || f(self)),
        }
    }

    fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        Ok(match self {
            Socket::Tcp(io) => rustix::net::recv(io, room, RecvFlags::empty())?.0,
            Socket::Unix(io) => rustix::net::recv(io, room, RecvFlags::empty())?.0,
        })
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(match self {
            Socket::Tcp(io) => rustix::net::send(io, bytes, SendFlags::NOSIGNAL)?,
            Socket::Unix(io) => rustix::net::send(io, bytes, SendFlags::NOSIGNAL)?,
        })
    }
}
