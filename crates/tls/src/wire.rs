//! Transport below OpenSSL: a socket that does not block, with the bytes that wait before and after it.

use crate::counters::{COUNTERS, bump};
use crate::socket::Socket;
use std::io::{self, Read, Write};
use std::sync::Arc;
use tokio::io::Interest;

/// A socket's bytes. A write takes all or fails: bytes that the socket does not take wait. Writers keep these few. But TLS
/// also answers by itself, each renegotiation with an alert, and then reading waits until the other end takes the answers.
pub(crate) struct Wire {
    pub(crate) socket: Arc<Socket>,
    /// Bytes that were read before TLS began.
    early: Queue,
    /// Records on their way out.
    unsent: Queue,
    /// Bytes that were read without a pause.
    turn: u32,
    /// Reason why the last read found nothing, where the socket was not asked.
    pause: Option<Pause>,
    /// Whether more bytes had to wait than may.
    is_overfull: bool,
    /// Asks the kernel even where the runtime has no readiness.
    pub(crate) insists: bool,
    /// The other end has closed without close_notify (RFC 8446 section 6.1).
    pub(crate) truncated: bool,
}

/// Bytes that are taken from its front. An idle connection has none, and holds no room for them.
#[derive(Default)]
struct Queue(Option<Box<Held>>);

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    taken: usize,
}

impl Queue {
    fn push(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.0.get_or_insert_default().bytes.extend_from_slice(bytes);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes that it holds, with those that were taken.
    fn held(&self) -> usize {
        self.0.as_ref().map_or(0, |held| held.bytes.len())
    }

    fn front(&self) -> &[u8] {
        self.0.as_ref().and_then(|held| held.bytes.get(held.taken..)).unwrap_or_default()
    }

    fn take(&mut self, n: usize) {
        if let Some(held) = &mut self.0 {
            held.taken += n;
            if held.taken >= held.bytes.len() {
                self.0 = None;
            }
        }
    }
}

/// Reason why a read waits although there may be data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    /// Too much waits to be sent.
    Unsent,
    /// The read has gone on for long, and other tasks want to run, too.
    Turn,
}

/// Bytes that wait to be sent, above which no more is read.
const UNSENT_BYTES: usize = 64 * 1024;
/// The most that may wait. A handshake's answer with long chains is less.
const UNSENT_MOST_BYTES: usize = 4 * UNSENT_BYTES;
/// Bytes that are read without a pause: OpenSSL continues after records that carry no data for the caller.
const TURN_BYTES: u32 = 64 * 1024;

impl Wire {
    pub(crate) fn new(socket: Arc<Socket>, early: &[u8]) -> Wire {
        let (mut before, unsent) = (Queue::default(), Queue::default());
        before.push(early);
        Wire { socket, early: before, unsent, turn: 0, pause: None, is_overfull: false, insists: false, truncated: false }
    }

    /// Reason why the last read found nothing; `None`: the socket had nothing.
    pub(crate) fn pause(&self) -> Option<Pause> {
        self.pause
    }

    /// Returns whether a read has to wait; the end of a turn is reported once.
    fn take_pause(&mut self) -> Option<Pause> {
        if self.unsent.held() > UNSENT_BYTES {
            return Some(Pause::Unsent);
        }
        (self.turn >= TURN_BYTES).then(|| {
            self.turn = 0;
            Pause::Turn
        })
    }

    /// Whether all bytes have gone.
    pub(crate) fn is_sent(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Sends the waiting bytes, as far as the socket takes them.
    pub(crate) fn send_waiting(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let n = send(&self.socket, self.unsent.front())?;
            self.unsent.take(n);
        }
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
        if !self.early.is_empty() {
            let n = room.len().min(self.early.front().len());
            room[..n].copy_from_slice(&self.early.front()[..n]);
            self.early.take(n);
            return Ok(n);
        }
        let received = match self.insists {
            true => self.socket.receive(room),
            false => self.socket.attempt(Interest::READABLE, |socket| socket.receive(room)),
        };
        self.turn = received.as_ref().map_or(0, |n| self.turn.saturating_add(u32::try_from(*n).unwrap_or(u32::MAX)));
        let n = received?;
        self.truncated |= n == 0;
        Ok(n)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unsent.held().saturating_add(bytes.len()) > UNSENT_MOST_BYTES {
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
        self.unsent.push(&bytes[gone..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn send(socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    socket.attempt(Interest::WRITABLE, |socket| socket.send(bytes))
}
