//! What hostile servers do to a request: floods of frames that cost the other side more than themselves, answers that break the protocol,
//! and answers that do not end.

use super::MOST_GROWTH_BYTES;
use super::frames::{self, FIRST_OF_TABLE, INITIAL_WINDOW_SIZE, flag, kind};
use super::patterns::{Hold, STREAMS, UNKNOWN, id};
use terse_http::h2::Code;

/// What a server does to a request.
#[derive(Clone, Debug)]
pub struct Misdeed {
    /// What the table calls it. Its path is the same behind a slash.
    pub name: &'static str,
    /// The cause that ends the connection, as the log has it; none where the connection may go on.
    pub cause: Option<&'static str>,
    /// The request has a body that is longer than any window.
    is_upload: bool,
    /// What comes once, for a stream.
    pub(super) begin: fn(u32, &mut Vec<u8>),
    /// Appends the frames of a round.
    pub(super) round: fn(u32, &mut Vec<u8>),
    /// Rounds after which the server has enough.
    pub(super) rounds: u32,
    /// As much data comes as the window lets through.
    pub(super) fills: bool,
    /// What comes in each [`super::DRIP_EVERY`] of an answer that does not end.
    pub(super) drip: Option<fn(u32, &mut Vec<u8>)>,
    /// The streams of a client that waits, and their first window.
    streams: u32,
    window: Option<u32>,
    /// The most memory that its connection may take, in bytes.
    pub(super) most_bytes: f64,
}

impl Misdeed {
    /// The path that asks for it.
    pub fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// The requests of a client of HTTP/2 that waits for what does not come; none where its answers end.
    pub fn hold(&self) -> Option<Hold> {
        self.drip?;
        let mut begin = Vec::new();
        let settings: Vec<_> = self.window.map(|bytes| (INITIAL_WINDOW_SIZE, bytes)).into_iter().collect();
        frames::preface(&settings, &mut begin);
        let method = if self.is_upload { "POST" } else { "GET" };
        for stream in 0..self.streams {
            frames::headers(id(stream), &frames::request(method, &self.path(), &[]), !self.is_upload, &mut begin);
        }
        // What a connection's first window takes.
        if self.is_upload {
            (0..4).for_each(|stream| frames::data(id(stream), &[0; 16_000], false, &mut begin));
        }
        Some(Hold { name: self.name, begin, drip: Vec::new() })
    }
}

/// All of them.
pub fn misdeeds() -> Vec<Misdeed> {
    let mut all = floods();
    all.extend(faults());
    all.extend(failures());
    all.extend(endless());
    all
}

type Append = fn(u32, &mut Vec<u8>);

fn misdeed(name: &'static str, cause: Option<&'static str>, begin: Append) -> Misdeed {
    Misdeed {
        name,
        cause,
        is_upload: false,
        begin,
        round: nothing,
        rounds: 0,
        fills: false,
        drip: None,
        streams: STREAMS,
        window: None,
        most_bytes: MOST_GROWTH_BYTES,
    }
}

/// Frames without an end, each kind of which has a limit.
fn floods() -> Vec<Misdeed> {
    let flood = |name, cause, begin, rounds, round| Misdeed { rounds, round, ..misdeed(name, Some(cause), begin) };
    vec![
        flood("server-continuations", "continuations", half_head, 50_000, |id, out| frames::continuation(id, &[], false, out)),
        flood("server-header-block", "header block", half_head, 5000, |id, out| frames::continuation(id, &[0; 16_000], false, out)),
        flood("server-header-bomb", "head", |id, out| bomb(id, frames::answer("200", &[]), out), 0, nothing),
        flood(
            "server-trailer-bomb",
            "head",
            |id, out| {
                head(id, out);
                bomb(id, Vec::new(), out);
            },
            0,
            nothing,
        ),
        flood("server-settings", "settings", nothing, 50_000, |_, out| frames::settings(&[(INITIAL_WINDOW_SIZE, 70_000)], out)),
        flood("server-pings", "pings", nothing, 50_000, |_, out| frames::ping([1; 8], out)),
        flood("server-empty-data", "empty data", head, 50_000, |id, out| frames::data(id, &[], false, out)),
        flood("server-tiny-data", "tiny data", head, 200_000, |id, out| frames::data(id, b"x", false, out)),
        flood("server-priorities", "priorities", nothing, 50_000, |id, out| frames::priority(id, 99, out)),
        flood("server-unknown-frames", "unknown frames", nothing, 50_000, |_, out| frames::frame(UNKNOWN, 0, 0, b"what", out)),
        flood("server-goaways", "goaways", nothing, 50_000, |id, out| frames::goaway(id, 0, out)),
        flood("server-window-updates", "window updates", nothing, 50_000, |_, out| frames::window_update(0, 1, out)),
        flood("server-closed-stream", "frames of closed streams", reset, 50_000, reset),
    ]
}

/// What breaks the protocol.
fn faults() -> Vec<Misdeed> {
    let fault = |name, cause, begin| misdeed(name, Some(cause), begin);
    vec![
        fault("server-window-overflow", "WINDOW_UPDATE", |_, out| {
            (0..3).for_each(|_| frames::window_update(0, i32::MAX as u32, out));
        }),
        fault("server-setting-overflow", "INITIAL_WINDOW_SIZE", |_, out| frames::settings(&[(INITIAL_WINDOW_SIZE, u32::MAX)], out)),
        fault("server-zero-increment", "WINDOW_UPDATE by 0", |_, out| frames::window_update(0, 0, out)),
        fault("server-push", "PUSH_PROMISE", |id, out| {
            frames::frame(kind::PUSH_PROMISE, flag::END_HEADERS, id, &[0, 0, 0, 2, 0x82], out);
        }),
        fault("server-idle-stream", "DATA of an idle stream", |_, out| frames::data(0xffff, b"x", false, out)),
        fault("server-large-frame", "a frame above MAX_FRAME_SIZE", |id, out| frames::data(id, &[0; 20_000], false, out)),
        fault("server-unreadable", "a header block that cannot be read", |id, out| frames::headers(id, &[0xff; 12], true, out)),
    ]
}

/// Answers that fail by themselves: each costs its own stream.
fn failures() -> Vec<Misdeed> {
    let failure = |name, begin| misdeed(name, None, begin);
    vec![
        failure("server-resets", reset),
        failure("server-refuses", |id, out| frames::rst(id, Code::REFUSED_STREAM.0, out)),
        failure("server-resets-later", |id, out| {
            head(id, out);
            frames::data(id, b"abc", false, out);
            reset(id, out);
        }),
        failure("server-interims", |id, out| {
            (0..100).for_each(|_| frames::headers(id, &frames::answer("103", &[]), false, out));
        }),
        failure("server-short", |id, out| {
            frames::headers(id, &frames::answer("200", &[("content-length", "9")]), false, out);
            frames::data(id, b"abc", true, out);
        }),
        failure("server-long", |id, out| {
            frames::headers(id, &frames::answer("200", &[("content-length", "1")]), false, out);
            frames::data(id, b"abc", true, out);
        }),
        failure("server-large-head", |id, out| {
            let long = "v".repeat(3000);
            let block =
                frames::answer("200", &[("a", &long), ("b", &long), ("c", &long), ("d", &long), ("e", &long), ("f", &long)]);
            let (first, rest) = block.split_at(16_000);
            frames::frame(kind::HEADERS, flag::END_STREAM, id, first, out);
            frames::continuation(id, rest, true, out);
        }),
    ]
}

/// Answers that do not end.
fn endless() -> Vec<Misdeed> {
    let hold = |name, begin, drip| Misdeed { drip: Some(drip), ..misdeed(name, None, begin) };
    vec![
        hold("server-silent", nothing, nothing),
        Misdeed { streams: 1, ..hold("server-half-a-block", half_head, nothing) },
        hold("server-without-end", head, |id, out| frames::data(id, b"x", false, out)),
        // With its client's help: each of its streams has a window of data that is not taken.
        Misdeed { fills: true, most_bytes: MOST_GROWTH_BYTES + READ_BEFORE_BYTES, ..hold("server-unread", nothing, nothing) },
        Misdeed { fills: true, window: Some(0), ..hold("server-unread-by-all", nothing, nothing) },
        Misdeed { fills: true, window: Some(1), ..hold("server-unread-but-a-byte", nothing, nothing) },
        // The client's connection costs as much.
        Misdeed { is_upload: true, most_bytes: 2.0 * MOST_GROWTH_BYTES, ..hold("server-takes-nothing", nothing, nothing) },
    ]
}

/// Windows of streams that were read until the window of their client's connection was used up, and what those bytes took on their way.
const READ_BEFORE_BYTES: f64 = 4.0 * 65_535.0;

fn nothing(_: u32, _: &mut Vec<u8>) {}

fn head(id: u32, out: &mut Vec<u8>) {
    frames::headers(id, &frames::answer("200", &[]), false, out);
}

fn half_head(id: u32, out: &mut Vec<u8>) {
    frames::frame(kind::HEADERS, 0, id, &frames::answer("200", &[]), out);
}

fn reset(id: u32, out: &mut Vec<u8>) {
    frames::rst(id, Code::CANCEL.0, out);
}

/// A block of one long field, many times (RFC 7541 section 7.3), which ends its stream.
fn bomb(id: u32, mut block: Vec<u8>, out: &mut Vec<u8>) {
    frames::indexed_literal("x-bomb", &"b".repeat(3900), &mut block);
    block.resize(block.len() + 4000, FIRST_OF_TABLE);
    frames::headers(id, &block, true, out);
}
