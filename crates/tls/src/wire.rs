//! What OpenSSL reads from and writes to: a socket that does not block, and what waits before and behind it.

use crate::counters::{COUNTERS, bump};
use crate::secured::Socket;
use rustix::net::{RecvFlags, SendFlags};
use std::io::{self, Read, Write};
use std::sync::Arc;
use tokio::io::Interest;

/// A socket's bytes. A write takes all or fails: what the socket does not take, waits. Whoever writes sees to it that this is little; but
/// TLS also answers by itself, each renegotiation with an alert, and then reading waits until the other end takes the answers.
pub(crate) struct Wire {
    pub(crate) socket: Arc<Socket>,
    /// Bytes that were read before TLS began, and how many of them have been taken.
    early: (Vec<u8>, usize),
    /// Records on their way out, and how much of them has gone.
    unsent: (Vec<u8>, usize),
    /// Bytes that were read without a pause.
    turn: usize,
    /// Why the last read found nothing, where the socket was not asked.
    pause: Option<Pause>,
    /// More had to wait than may.
    is_overfull: bool,
    /// Asks the kernel even where the runtime knows of nothing.
    pub(crate) insists: bool,
    /// The other end has closed without saying so (RFC 8446 section 6.1).
    pub(crate) truncated: bool,
}

/// Why a read waits although there may be something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    /// Too much waits to be sent.
    Unsent,
    /// It has read for long, and others want to run, too.
    Turn,
}

/// Nothing is read while more than this waits to be sent.
const UNSENT_BYTES: usize = 64 * 1024;
/// The most that may wait. A handshake's answer with long chains is less.
const UNSENT_MOST_BYTES: usize = 4 * UNSENT_BYTES;
/// What is read without a pause: OpenSSL reads on behind records that carry nothing for the caller.
const TURN_BYTES: usize = 64 * 1024;

impl Wire {
    pub(crate) fn new(socket: Arc<Socket>, early: &[u8]) -> Wire {
        let (early, unsent) = ((early.to_vec(), 0), (Vec::new(), 0));
        Wire { socket, early, unsent, turn: 0, pause: None, is_overfull: false, insists: false, truncated: false }
    }

    /// Why the last read found nothing; `None`: the socket had nothing.
    pub(crate) fn pause(&self) -> Option<Pause> {
        self.pause
    }

    /// Whether a read has to wait; each turn that is over is said once.
    fn take_pause(&mut self) -> Option<Pause> {
        if self.unsent.0.len() > UNSENT_BYTES {
            return Some(Pause::Unsent);
        }
        (self.turn >= TURN_BYTES).then(|| {
            self.turn = 0;
            Pause::Turn
        })
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
        if self.is_overfull {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let before = self.pause.take();
        self.pause = self.take_pause();
        if let Some(pause) = self.pause {
            if pause == Pause::Unsent && before != self.pause {
                bump(&COUNTERS.reads_held);
            }
            return Err(io::ErrorKind::WouldBlock.into());
        }
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
        let received = match self.insists {
            true => self.socket.receive(room),
            false => self.socket.attempt(Interest::READABLE, |socket| socket.receive(room)),
        };
        self.turn = received.as_ref().map_or(0, |n| self.turn.saturating_add(*n));
        let n = received?;
        self.truncated |= n == 0;
        Ok(n)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unsent.0.len().saturating_add(bytes.len()) > UNSENT_MOST_BYTES {
            if !std::mem::replace(&mut self.is_overfull, true) {
                bump(&COUNTERS.overfull);
            }
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
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
