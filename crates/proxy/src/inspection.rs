//! What rules look at beside heads: bytes that have arrived and not yet gone on.
//!
//! ```text
//! client.buffer --lend--> stream.facts.inspection.request --take back--> client.buffer
//!                         rules, conditions and formats run
//! ```
//!
//! A phase lends its buffer to the stream while rules run, and takes it back before it reads or sends. So nothing is copied, and a
//! stream whose proxies look at heads only ([`crate::plan::Frontend::looks`]) has no inspection at all.
//!
//! Invariant: the inspection is open only while a phase stands ready to read more when rules ask for it; everywhere else what is
//! there is all that comes, and nothing is in doubt.

use crate::io::Buffer;
use crate::phase::Client;
use crate::stream::Stream;
use std::cell::OnceCell;
use terse_http::h1::{ChunkDecoder, Step};
use terse_message::{BodyLength, Version};
use terse_sample::{Doubt, Needs};

/// What rules look at beside heads.
#[derive(Default)]
pub struct Inspection {
    /// What cannot be told yet.
    pub doubt: Doubt,
    request: Buffer,
    response: Buffer,
    /// Whose buffer is lent.
    side: Side,
    open: bool,
    /// A body without a length has no frames among its bytes: HTTP/2 has taken them off.
    is_bare: bool,
    /// What a body in chunks is, put together, and whether that is all of it; only while a buffer is lent.
    joined: OnceCell<(Vec<u8>, bool)>,
    /// A handshake message in several records, put together; only while a buffer is lent.
    handshake: OnceCell<Vec<u8>>,
}

/// A body, as far as it is there.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// Its bytes, without frames.
    pub bytes: &'a [u8],
    /// Whether that is all of it.
    pub whole: bool,
}

/// Whose bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Side {
    /// The client's.
    #[default]
    Request,
    /// The server's.
    Response,
}

impl Inspection {
    /// What one side has sent and what has not yet gone on. In HTTP it begins behind the head.
    pub fn bytes(&self, side: Side) -> &[u8] {
        match side {
            Side::Request => self.request.filled(),
            Side::Response => self.response.filled(),
        }
    }

    /// Whose bytes are looked at.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The body of one side's message, whose head says that it has this length; nothing when the other side's is looked at.
    pub fn body(&self, side: Side, length: BodyLength) -> Option<Body<'_>> {
        if side != self.side {
            return None;
        }
        let bytes = self.bytes(side);
        Some(match length {
            BodyLength::None => Body { bytes: b"", whole: true },
            BodyLength::Exact(n) => match bytes.get(..usize::try_from(n).unwrap_or(usize::MAX)) {
                Some(bytes) => Body { bytes, whole: true },
                None => Body { bytes, whole: false },
            },
            BodyLength::Framed if self.is_bare => Body { bytes, whole: false },
            BodyLength::Framed => {
                let (bytes, whole) = self.joined.get_or_init(|| join(bytes));
                Body { bytes, whole: *whole }
            }
            BodyLength::UntilClose => Body { bytes, whole: false },
        })
    }

    /// The handshake message that the lent bytes begin with, as it was put together first.
    pub fn keep(&self, message: Vec<u8>) -> &[u8] {
        self.handshake.get_or_init(|| message)
    }

    /// Whether more bytes may come before the rules must decide.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Drops what was made of the bytes that were lent.
    fn forget(&mut self) {
        self.joined.take();
        self.handshake.take();
    }

    fn buffer(&mut self, side: Side) -> &mut Buffer {
        match side {
            Side::Request => &mut self.request,
            Side::Response => &mut self.response,
        }
    }
}

/// Needs that are answered by an inspection.
pub const BYTES: Needs = Needs::BODY.or(Needs::BYTES).or(Needs::RESPONSE_BODY);

/// Runs `judge` while one side's buffer is lent to the stream. `open`: whether more may come; in a full buffer it never may.
pub fn lend<T>(buffer: &mut Buffer, stream: &mut Stream, side: Side, open: bool, judge: impl FnOnce(&mut Stream) -> T) -> T {
    let full = buffer.is_full() && !buffer.is_released();
    let inspection = stream.facts.inspection.get_or_insert_default();
    std::mem::swap(inspection.buffer(side), buffer);
    inspection.forget();
    inspection.side = side;
    inspection.open = open && !full;
    let version = if side == Side::Request { stream.request.version } else { stream.response.version };
    inspection.is_bare = version == Version::Http2;
    let judged = judge(stream);
    if let Some(inspection) = &mut stream.facts.inspection {
        inspection.open = false;
        inspection.forget();
        std::mem::swap(inspection.buffer(side), buffer);
    }
    judged
}

/// Runs something that takes what is there as all that comes.
pub fn as_all<T>(stream: &mut Stream, run: impl FnOnce(&mut Stream) -> T) -> T {
    let open = stream.facts.inspection.as_deref_mut().map(|inspection| std::mem::take(&mut inspection.open));
    let result = run(stream);
    if let (Some(open), Some(inspection)) = (open, stream.facts.inspection.as_deref_mut()) {
        inspection.open = open;
    }
    result
}

/// Runs `judge` with the client's bytes at hand, if expressions that need this look at them.
pub fn lend_if<T>(client: &mut Client, stream: &mut Stream, needs: Needs, judge: impl FnOnce(&mut Stream) -> T) -> T {
    match needs.has_any(BYTES) {
        true => lend(&mut client.buffer, stream, Side::Request, false, judge),
        false => judge(stream),
    }
}

/// The data of chunks without their frames, and whether the last chunk is among them. What is malformed ends it; who moves the body
/// finds and tells it.
pub fn join(bytes: &[u8]) -> (Vec<u8>, bool) {
    let (mut decoder, mut at, mut body) = (ChunkDecoder::default(), 0, Vec::new());
    while let Ok((used, step)) = decoder.step(bytes.get(at..).unwrap_or_default()) {
        match step {
            Step::Data(range) => body.extend_from_slice(bytes.get(at..).and_then(|rest| rest.get(range)).unwrap_or_default()),
            Step::More => return (body, false),
            Step::End => return (body, true),
        }
        at += used;
    }
    (body, false)
}
