//! Engines for whole bodies in batches: the interface for compression cards, graphics processors and libraries in processes
//! of their own.
//!
//! The other interface is [`crate::coder`]: software, which is always there, and streams. A device is handed [`Order`]s, as
//! many at a time as there are, each a body in pieces, and ends each of them once, in any order, on a thread of its own.
//!
//! A device that works in another process may lend memory for a body before it is whole ([`Device::lend`]): bytes that are
//! received into that memory need not be copied for the device. It goes back when the last reader of the body lets go of it.
//!
//! Invariants:
//! * An order is ended exactly once: an order that is dropped has ended with [`Failure::Refused`].
//! * [`Device::submit`] copies at most; it does not wait for the engine. It is called on a thread that may copy, never on a worker.
//! * A device's result is a claim. The giver of the order judges it, and has kept the body.
//! * After [`Device::overdue`] the order does not matter any more. Memory that it held is the device's to get back.
//! * Bytes in lent memory are never changed, not by the device's process either: software can still do the job.

use crate::coding::{Coding, Level};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An engine for whole bodies.
pub trait Device: Send + Sync {
    /// Takes a batch.
    fn submit(&self, batch: Vec<Order>);

    /// Reports that this order's time is over: its worker hangs. A device that can be ended is ended, and started again.
    fn overdue(&self, ticket: u64);

    /// State of the device.
    fn status(&self) -> Status;

    /// Memory for a body that will probably be its; `None` when it has none to lend, or reads bodies where they are.
    fn lend(&self) -> Option<Box<dyn Lent>> {
        None
    }

    /// Reports that there has been nothing to do for a while: memory that is kept for the next body may go.
    fn rest(&self) {}
}

/// Memory that a device has lent for a body. Dropped, it goes back.
pub trait Lent: Send {
    /// The filled bytes.
    fn filled(&self) -> &[u8];

    /// Room after them.
    fn room(&mut self) -> &mut [u8];

    /// Records that so many bytes of the room are filled.
    fn advance(&mut self, bytes: usize);

    /// The memory that it takes with so many bytes in it: the borrower counts them as held.
    fn memory(&self, bytes: usize) -> usize;

    /// The filled bytes, which are changed no more.
    fn into_piece(self: Box<Self>) -> Arc<dyn Piece>;
}

/// Bytes for many readers, which are never changed.
pub trait Piece: Any + Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl Piece for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// State of a device.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its version in its own words, once it has reported it.
    pub version: Option<String>,
    /// The process that it runs in, if it has its own and that lives.
    pub process: Option<u32>,
    /// Number of its starts.
    pub starts: u64,
    /// Why it last ended or could not be started.
    pub trouble: Option<String>,
}

/// The wrapper that a device is to put round its deflate stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrapper {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Zlib,
}

impl Wrapper {
    /// The wrapper for a coding; `None` for codings that devices do not know. A raw stream is asked for in zlib's wrapper,
    /// whose checksum shows whether the body arrived.
    pub const fn of(coding: Coding) -> Option<Wrapper> {
        match coding {
            Coding::Gzip => Some(Wrapper::Gzip),
            Coding::Deflate | Coding::RawDeflate => Some(Wrapper::Zlib),
            Coding::Zstd | Coding::Brotli | Coding::Identity | Coding::Dcz => None,
        }
    }
}

/// A body in pieces, for many readers, which is never changed.
#[derive(Clone, Default)]
pub struct Pieces(Vec<Arc<dyn Piece>>);

impl Pieces {
    /// The pieces, in order.
    pub fn new(pieces: Vec<Arc<dyn Piece>>) -> Pieces {
        Pieces(pieces)
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|piece| piece.bytes())
    }

    /// The only piece, if there is no other.
    pub fn only(&self) -> Option<&Arc<dyn Piece>> {
        self.0.first().filter(|_| self.0.len() == 1)
    }

    /// All pieces as one, to keep: copied only if there are several.
    pub fn into_one(self) -> Arc<dyn Piece> {
        match self.only() {
            Some(one) => one.clone(),
            None => Arc::new(self.joined().into_owned()),
        }
    }

    /// All pieces as one: copied only if there are several.
    pub fn joined(&self) -> std::borrow::Cow<'_, [u8]> {
        match self.only() {
            Some(one) => one.bytes().into(),
            None => self.iter().flatten().copied().collect::<Vec<u8>>().into(),
        }
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(body: Vec<u8>) -> Pieces {
        Pieces(vec![Arc::new(body)])
    }
}

impl From<Arc<dyn Piece>> for Pieces {
    fn from(body: Arc<dyn Piece>) -> Pieces {
        Pieces(vec![body])
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(<[u8]>::len)).finish()
    }
}

/// A job for a device.
pub struct Order {
    /// Its number: no two orders of the same giver have the same.
    pub ticket: u64,
    /// The body.
    pub input: Pieces,
    /// The wrapper to put round it.
    pub wrapper: Wrapper,
    /// The level, as zlib counts them.
    pub level: Level,
    ending: Option<Ending>,
}

/// Callback with the result: the coded body, and the engine's own time, as far as the device knows.
pub type Ending = Box<dyn FnOnce(Result<Coded, Failure>) + Send>;

/// A device's output for a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coded {
    /// The bytes, wrapper and all.
    pub bytes: Vec<u8>,
    /// Time that it took.
    pub took: Duration,
}

/// Why a device has not done a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// It reported an error: zlib's number.
    Error(i32),
    /// It died over it.
    Died,
    /// It worked in the same process as a job that hung or died.
    Swept,
    /// It is not there now, or has no room.
    Refused,
}

impl Order {
    /// A job, and the callback for its end, on a thread of the device's.
    pub fn new(ticket: u64, input: Pieces, wrapper: Wrapper, level: Level, ending: Ending) -> Order {
        Order { ticket, input, wrapper, level, ending: Some(ending) }
    }

    /// Ends it.
    pub fn end(mut self, result: Result<Coded, Failure>) {
        // The receiver of the end has the body back.
        self.input = Pieces::default();
        if let Some(ending) = self.ending.take() {
            ending(result);
        }
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        if let Some(ending) = self.ending.take() {
            ending(Err(Failure::Refused));
        }
    }
}

/// Bytes that a deflate stream of so many may take with its wrapper: more than any sound coder needs, stored blocks of 4 KB included.
pub const fn room_for(bytes: usize) -> usize {
    bytes + bytes / 512 + 512
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn an_order_ends_once_even_if_it_is_dropped() {
        let (tell, told) = channel();
        let order = |ticket| {
            let tell = tell.clone();
            let ending: Ending = Box::new(move |result| tell.send((ticket, result.err())).unwrap());
            Order::new(ticket, Pieces::default(), Wrapper::Gzip, Level(6), ending)
        };
        order(1).end(Err(Failure::Died));
        drop(order(2));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [(1, Some(Failure::Died)), (2, Some(Failure::Refused))]);
    }

    #[test]
    fn pieces_are_joined_in_order() {
        let pieces = Pieces::new(vec![Arc::new(b"ab".to_vec()), Arc::new(Vec::new()), Arc::new(b"c".to_vec())]);
        assert_eq!((pieces.bytes(), &*pieces.joined()), (3, &b"abc"[..]));
        assert_eq!(&*Pieces::from(vec![7]).joined(), [7]);
        assert_eq!(&*Pieces::default().joined(), b"");
        assert_eq!((pieces.into_one().bytes(), Pieces::default().into_one().bytes()), (&b"abc"[..], &b""[..]));
    }
}
