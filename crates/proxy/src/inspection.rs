//! Bytes that rules look at beside heads: those that have arrived and not yet gone on.
//!
//! ```text
//! Client, Receiver --lend--> stream.facts.inspection --restore--> Client, Receiver
//!                         rules, conditions and formats run
//! ```
//!
//! A phase lends the bytes that have come to the stream while rules run, and takes them back before it reads or sends. So
//! nothing is copied, and a stream whose proxies look at heads only ([`crate::plan::Frontend::looks`]) has no inspection at
//! all.
//!
//! Invariant: the inspection is open only while a phase stands ready to read more when rules ask for it; everywhere else the
//! bytes at hand are all that come, and nothing is in doubt.

use crate::exchange::{Body, Client, Lend, Peek};
use crate::stream::Stream;
use std::cell::OnceCell;
use std::ops::Range;
use std::time::Duration;
use terse_message::{BodyLength, Request};
use terse_sample::{Doubt, Needs};

/// Bytes that rules look at beside heads.
#[derive(Default)]
pub struct Inspection {
    /// Values that cannot be known yet.
    pub doubt: Doubt,
    request: Peek,
    response: Peek,
    /// The side whose bytes are lent.
    side: Side,
    open: bool,
    /// The numbers of bytes of both sides that are to go on already: a script's `forward`.
    gone: [usize; 2],
    /// The time for which a program waits for bytes, if it does.
    wanted: Option<Duration>,
    /// Bytes for the client, from a program.
    reply: Vec<u8>,
    /// A handshake message in several records, put together; only while bytes are lent.
    handshake: OnceCell<Vec<u8>>,
}

/// The side of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Side {
    /// The client's.
    #[default]
    Request,
    /// The server's.
    Response,
}

impl Inspection {
    /// Bytes that a side has sent and that have not yet gone on. Under HTTP they begin after the head.
    pub fn bytes(&self, side: Side) -> &[u8] {
        self.peek(side).bytes()
    }

    /// The side whose bytes are looked at.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Whether no more bytes of a side can be held, before some go on.
    pub fn is_full(&self, side: Side) -> bool {
        side == self.side && self.peek(side).is_full()
    }

    /// The number of bytes of a side that are to go on already.
    pub fn gone(&self, side: Side) -> usize {
        self.peek(side).gone()
    }

    /// Notes that a program waits for bytes, for no longer than this.
    pub fn want(&mut self, limit: Duration) {
        self.wanted = Some(limit);
    }

    /// The time for which a program waits for bytes; the note is taken.
    pub(crate) fn take_wanted(&mut self) -> Option<Duration> {
        self.wanted.take()
    }

    /// Lets bytes at the front of the lent side go on: rules do not see them any more.
    pub fn let_go(&mut self, bytes: usize) {
        self.lent(self.side).let_go(bytes);
    }

    /// Replaces bytes of the lent side. False where there is no room, or no such range.
    pub fn replace(&mut self, range: Range<usize>, by: &[u8]) -> bool {
        self.handshake.take();
        self.lent(self.side).replace(range, by)
    }

    /// Adds bytes for the client, which get to it before any of its server's. False where too many wait.
    pub fn answer(&mut self, bytes: &[u8]) -> bool {
        let fits = self.reply.len() + bytes.len() <= MOST_REPLY_BYTES;
        if fits {
            self.reply.extend_from_slice(bytes);
        }
        fits
    }

    /// Whether bytes for the client wait.
    pub(crate) fn has_reply(&self) -> bool {
        !self.reply.is_empty()
    }

    /// The bytes for the client.
    pub(crate) fn take_reply(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.reply)
    }

    /// The body of a side's message; `length`: that of its head. `None` when the other side is looked at.
    pub fn body(&self, side: Side, length: BodyLength) -> Option<Body<'_>> {
        match side {
            _ if side != self.side => None,
            Side::Request => Some(self.request.body(length)),
            Side::Response => Some(self.response.body(length)),
        }
    }

    /// Parses the head of a request that a client's bytes begin with, without taking them. Returns whether more of it must
    /// come, and whether it is the preface of HTTP/2.
    pub fn sniff(&self, request: &mut Request) -> (bool, bool) {
        self.request.sniff(request)
    }

    /// The handshake message that the lent bytes begin with, as it was put together first.
    pub fn keep(&self, message: Vec<u8>) -> &[u8] {
        self.handshake.get_or_init(|| message)
    }

    /// Whether more bytes may come before the rules must decide.
    pub fn is_open(&self) -> bool {
        self.open
    }

    fn peek(&self, side: Side) -> &Peek {
        match side {
            Side::Request => &self.request,
            Side::Response => &self.response,
        }
    }

    fn lent(&mut self, side: Side) -> &mut Peek {
        match side {
            Side::Request => &mut self.request,
            Side::Response => &mut self.response,
        }
    }
}

/// Limit of the bytes for a client that a program may leave to be sent at a time.
const MOST_REPLY_BYTES: usize = 64 * 1024;

/// Needs that are answered by an inspection.
pub const BYTES: Needs = Needs::BODY.or(Needs::BYTES).or(Needs::RESPONSE_BODY);

/// Runs `judge` while the received bytes of a side are lent to the stream. `open`: whether more may come; in a full buffer it
/// never may.
pub fn lend<T>(from: &mut impl Lend, stream: &mut Stream, side: Side, open: bool, judge: impl FnOnce(&mut Stream) -> T) -> T {
    let mut peek = from.lend();
    let inspection = stream.facts.inspection.get_or_insert_default();
    peek.let_go(inspection.gone[side as usize]);
    inspection.open = open && !peek.is_full();
    inspection.side = side;
    inspection.handshake.take();
    *inspection.lent(side) = peek;
    let judged = judge(stream);
    if let Some(inspection) = &mut stream.facts.inspection {
        inspection.open = false;
        inspection.handshake.take();
        let peek = std::mem::take(inspection.lent(side));
        inspection.gone[side as usize] = peek.gone();
        from.restore(peek);
    }
    judged
}

/// Runs a closure that takes the bytes at hand as all that come.
pub fn as_all<T>(stream: &mut Stream, run: impl FnOnce(&mut Stream) -> T) -> T {
    let open = stream.facts.inspection.as_deref_mut().map(|inspection| std::mem::take(&mut inspection.open));
    let result = run(stream);
    if let (Some(open), Some(inspection)) = (open, stream.facts.inspection.as_deref_mut()) {
        inspection.open = open;
    }
    result
}

/// Runs `judge` with the client's bytes at hand, if expressions that need this look at them.
pub fn lend_if<T>(client: &mut Client<'_>, stream: &mut Stream, needs: Needs, judge: impl FnOnce(&mut Stream) -> T) -> T {
    match needs.has_any(BYTES) {
        true => lend(client, stream, Side::Request, false, judge),
        false => judge(stream),
    }
}
