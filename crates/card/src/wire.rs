//! Messages between terse and the card's process, over a socket that keeps messages apart. The first job whose body is
//! in a segment brings the segment's descriptor.
//!
//! Numbers are the machine's own: both sides are the same program.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use terse_compress::Level;
use terse_compress::device::Wrapper;

/// A job: `bytes` at the beginning of a segment, whose coded form goes to a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    pub(crate) ticket: u64,
    pub(crate) segment: u64,
    pub(crate) slot: u32,
    pub(crate) bytes: u64,
    pub(crate) wrapper: Wrapper,
    pub(crate) level: Level,
}

/// Message from terse.
#[derive(Debug)]
pub(crate) enum Told {
    /// A job, and its segment's descriptor if the process has not had it yet.
    Do(Job, Option<OwnedFd>),
    /// The segment of this number is gone.
    Forget(u64),
}

/// Message from the card's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// The library is loaded: its version.
    Ready(String),
    /// The library cannot be used: the reason.
    Unfit(String),
    /// A job is done: length of its coded form in the slot, or zlib's error number.
    Done { ticket: u64, slot: u32, result: Result<u64, i32>, took_us: u64 },
}

/// Bytes of the longest message.
pub(crate) const MAX_BYTES: usize = 512;

const JOB_BYTES: usize = 32;
const FORGET_BYTES: usize = 8;
const DONE_BYTES: usize = 33;
const READY: u8 = 1;
const UNFIT: u8 = 2;
const DONE: u8 = 3;

impl Job {
    /// Sends the message, with its segment's descriptor if need be, without blocking.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn send(&self, socket: &OwnedFd, segment: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = segment.as_slice();
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (message, flags) = (self.write(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&message)], &mut control, flags))?;
        Ok(())
    }

    pub(crate) fn write(&self) -> [u8; JOB_BYTES] {
        let mut out = [0; JOB_BYTES];
        out[..8].copy_from_slice(&self.ticket.to_ne_bytes());
        out[8..16].copy_from_slice(&self.bytes.to_ne_bytes());
        out[16..20].copy_from_slice(&self.slot.to_ne_bytes());
        out[20] = u8::from(self.wrapper == Wrapper::Zlib);
        out[21] = self.level.0;
        out[24..].copy_from_slice(&self.segment.to_ne_bytes());
        out
    }

    pub(crate) fn read(message: &[u8]) -> Option<Job> {
        let mut fields = Fields(message);
        let (ticket, bytes, slot) = (u64::from_ne_bytes(fields.take()?), u64::from_ne_bytes(fields.take()?), fields.take()?);
        let [wrapper, level, _, _] = fields.take()?;
        let wrapper = if wrapper == 0 { Wrapper::Gzip } else { Wrapper::Zlib };
        let (slot, segment) = (u32::from_ne_bytes(slot), u64::from_ne_bytes(fields.take()?));
        fields.0.is_empty().then_some(Job { ticket, segment, slot, bytes, wrapper, level: Level(level) })
    }
}

impl Told {
    /// Waits for a message, and leaves it unread; false at the end. The kernel wakes one of the waiting threads for
    /// each.
    pub(crate) fn comes(socket: &OwnedFd) -> bool {
        let mut first = [0];
        let received = rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut first[..], RecvFlags::PEEK));
        matches!(received, Ok((_, 1..)))
    }

    /// Length of the next message's body, which is left unread: 0 where it is no job. `None`: there is no message.
    pub(crate) fn next_body(socket: &OwnedFd) -> Option<u64> {
        let mut message = [0; MAX_BYTES];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (_, length) = rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut message[..], flags)).ok()?;
        Some(message.get(..length).and_then(Job::read).map_or(0, |job| job.bytes))
    }

    /// Receives the next message; `None` at the end, or where it is malformed.
    pub(crate) fn receive(socket: &OwnedFd, flags: RecvFlags) -> Option<Told> {
        let mut message = [0; MAX_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let received =
            rustix::io::retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(&mut message)], &mut control, flags)).ok()?;
        let message = message.get(..received.bytes)?;
        if let Ok(number) = <[u8; FORGET_BYTES]>::try_from(message) {
            return Some(Told::Forget(u64::from_ne_bytes(number)));
        }
        let mut descriptors = control.drain().filter_map(|part| match part {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let segment = descriptors.next().and_then(|mut descriptors| descriptors.next());
        Some(Told::Do(Job::read(message)?, segment))
    }

    /// Sends that a segment is gone; false if that cannot be sent now: the process has gone, or its socket is full.
    pub(crate) fn forget(socket: &OwnedFd, segment: u64) -> bool {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::io::retry_on_intr(|| rustix::net::send(socket, &segment.to_ne_bytes(), flags)).is_ok()
    }
}

impl Reply {
    pub(crate) fn write(&self) -> Vec<u8> {
        let text = |kind: u8, text: &str| {
            let bytes = text.as_bytes();
            [&[kind], &bytes[..bytes.len().min(MAX_BYTES - 1)]].concat()
        };
        match self {
            Reply::Ready(version) => text(READY, version),
            Reply::Unfit(reason) => text(UNFIT, reason),
            Reply::Done { ticket, slot, result, took_us } => {
                let (code, bytes) = result.map_or_else(|code| (code, 0), |bytes| (0, bytes));
                let mut out = Vec::with_capacity(DONE_BYTES);
                out.push(DONE);
                out.extend_from_slice(&ticket.to_ne_bytes());
                out.extend_from_slice(&bytes.to_ne_bytes());
                out.extend_from_slice(&took_us.to_ne_bytes());
                out.extend_from_slice(&slot.to_ne_bytes());
                out.extend_from_slice(&code.to_ne_bytes());
                out
            }
        }
    }

    /// Parses a message. `None`: it is malformed, so that the other side cannot be trusted.
    pub(crate) fn read(message: &[u8]) -> Option<Reply> {
        let (kind, rest) = message.split_first()?;
        match *kind {
            READY => Some(Reply::Ready(printable(rest))),
            UNFIT => Some(Reply::Unfit(printable(rest))),
            DONE => {
                let mut fields = Fields(rest);
                let [ticket, bytes, took_us] = [fields.take()?, fields.take()?, fields.take()?].map(u64::from_ne_bytes);
                let (slot, code) = (u32::from_ne_bytes(fields.take()?), i32::from_ne_bytes(fields.take()?));
                let result = if code == 0 { Ok(bytes) } else { Err(code) };
                fields.0.is_empty().then_some(Reply::Done { ticket, slot, result, took_us })
            }
            _ => None,
        }
    }
}

/// Rest of a message.
struct Fields<'m>(&'m [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }
}

/// Text without control characters: it comes from a foreign library, and goes to logs and terminals.
fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let job = Job { ticket: u64::MAX - 1, segment: 3, slot: 7, bytes: 1 << 40, wrapper: Wrapper::Zlib, level: Level(9) };
        assert_eq!(Job::read(&job.write()), Some(job));
        assert!(job.write().len() <= MAX_BYTES);
        for reply in [
            Reply::Ready("1.3".into()),
            Reply::Unfit("no".into()),
            Reply::Done { ticket: 5, slot: 1, result: Ok(99), took_us: 3 },
            Reply::Done { ticket: 5, slot: 1, result: Err(-5), took_us: 3 },
        ] {
            assert_eq!(Reply::read(&reply.write()), Some(reply));
        }
        assert!(Reply::Unfit("x".repeat(9000)).write().len() == MAX_BYTES);
    }

    #[test]
    fn other_messages_are_none() {
        let done = Reply::Done { ticket: 5, slot: 1, result: Ok(99), took_us: 3 }.write();
        for wrong in [&[][..], &[9, 9], &done[..done.len() - 1], &[&done[..], &[0]].concat()] {
            assert_eq!(Reply::read(wrong), None, "{wrong:?}");
        }
        assert_eq!(Job::read(&[0; JOB_BYTES - 1]), None);
        assert_eq!(Reply::read(b"\x01a\x1b[2Jb"), Some(Reply::Ready("a[2Jb".into())));
    }
}
