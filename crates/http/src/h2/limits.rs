//! Limits of a connection, each with a name: behaviour beyond a limit is counted as a [`Glitch`].

use crate::h1::Reading;
use std::time::{Duration, Instant};

/// Limits of a peer's behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Streams that a client may have open; a stream counts until it is released. On a client, the most streams that it
    /// opens itself.
    pub concurrent_streams: u32,
    /// The bytes a new stream may receive that its reader has not consumed.
    pub stream_window: u32,
    /// The same of a stream whose reader keeps up. All windows above [`Limits::stream_window`] share half of the budget.
    pub widest_window: u32,
    /// The bytes that a stream whose reader keeps up may receive in any case, if they are more: apart from that half.
    pub read_window: u32,
    /// The bytes beyond their first windows that large answers of a server may be allowed before their readers have read
    /// anything: of all streams together.
    pub announced_share: u32,
    /// The same of the connection, while its budget lasts.
    pub connection_window: u32,
    /// The bytes that all streams may hold unconsumed.
    pub receive_budget: u32,
    /// The bytes of a decoded head; above is [`super::Event::TooLarge`], above four times that the end of the connection.
    pub head_bytes: usize,
    /// The fields that a request's `cookie` may come in; they are joined afterwards. Browsers send each cookie by itself,
    /// and keep 180 of a site.
    pub cookie_crumbs: usize,
    /// The bytes of a header block before it is decoded.
    pub block_bytes: usize,
    /// CONTINUATION frames of a header block.
    pub continuations: u32,
    /// Interim responses before the final one.
    pub interim_answers: u32,
    /// The output above which no data is taken to be sent.
    pub output_bytes: usize,
    /// The answers to a peer's frames, unsent, above which no more input is read.
    pub control_bytes: usize,
    /// Streams ended before their time by the client or by an error of its own, in addition to a tenth of all.
    pub unfinished_streams: u64,
    /// CONNECT with `:protocol` is announced.
    pub extended_connect: bool,
    /// Reading of targets.
    pub reading: Reading,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            concurrent_streams: 100,
            stream_window: 65_535,
            widest_window: 65_535,
            read_window: 0,
            announced_share: 0,
            connection_window: 512 * 1024,
            receive_budget: 1024 * 1024,
            head_bytes: 16 * 1024,
            cookie_crumbs: 256,
            block_bytes: 16 * 1024,
            continuations: 8,
            interim_answers: 32,
            output_bytes: 64 * 1024,
            control_bytes: 32 * 1024,
            unfinished_streams: 100,
            extended_connect: true,
            reading: Reading::default(),
        }
    }
}

/// Behaviour that costs this side more than the peer, once it goes beyond its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glitch {
    /// Streams opened and ended unfinished, by RST_STREAM or by an error that makes this side send one; and heads above the limit.
    Unfinished,
    /// CONTINUATION frames.
    Continuations,
    /// A header block that is too large.
    HeaderBlock,
    /// A head that comes out more than four times too large.
    Head,
    /// PING beyond the sent DATA frames, by which round trips are measured; and acknowledgements of none.
    Ping,
    /// SETTINGS, and acknowledgements of none.
    Settings,
    /// DATA of no bytes that does not end the stream.
    EmptyData,
    /// DATA of a few bytes.
    TinyData,
    /// WINDOW_UPDATE beyond a multiple of the sent DATA frames.
    WindowUpdate,
    /// A closed window that opens by a few bytes, so that each such step costs a frame (CVE-2019-9511).
    TinyWindow,
    /// PRIORITY.
    Priority,
    /// Frames of streams that have ended or were reset, and heads that come after this side's GOAWAY.
    ClosedStream,
    /// GOAWAY.
    GoAway,
    /// Frames of unknown kinds.
    Unknown,
}

impl Glitch {
    /// A few words for logs and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Glitch::Unfinished => "unfinished streams",
            Glitch::Continuations => "continuations",
            Glitch::HeaderBlock => "header block",
            Glitch::Head => "head",
            Glitch::Ping => "pings",
            Glitch::Settings => "settings",
            Glitch::EmptyData => "empty data",
            Glitch::TinyData => "tiny data",
            Glitch::WindowUpdate => "window updates",
            Glitch::TinyWindow => "tiny windows",
            Glitch::Priority => "priorities",
            Glitch::ClosedStream => "frames of closed streams",
            Glitch::GoAway => "goaways",
            Glitch::Unknown => "unknown frames",
        }
    }

    /// Number that is allowed in a [`PERIOD`].
    const fn allowed(self) -> u32 {
        match self {
            Glitch::Ping | Glitch::EmptyData => 100,
            Glitch::Settings => 30,
            Glitch::TinyData => 20_000,
            Glitch::GoAway => 10,
            Glitch::WindowUpdate | Glitch::TinyWindow | Glitch::Priority | Glitch::ClosedStream | Glitch::Unknown => 1000,
            Glitch::Unfinished | Glitch::Continuations | Glitch::HeaderBlock | Glitch::Head => 0,
        }
    }
}

/// DATA of fewer bytes is tiny, but for the last of a stream.
pub(super) const TINY_BYTES: usize = 16;

/// A window of fewer bytes is tiny, where it was closed.
pub(super) const TINY_WINDOW_BYTES: i64 = 128;

/// The time after which frames of no use are forgotten.
const PERIOD: Duration = Duration::from_secs(10);

const KINDS: usize = Glitch::Unknown as usize + 1;

/// Counters of a peer's behaviour.
#[derive(Clone, Debug, Default)]
pub(super) struct Budgets {
    since: Option<Instant>,
    counts: [u32; KINDS],
    /// All of them, those forgotten included.
    pub(super) total: u64,
    /// Streams that the peer has opened, and those of them that ended unfinished.
    pub(super) opened: u64,
    unfinished: u64,
}

impl Budgets {
    /// Counts; true above the limit.
    pub(super) fn is_beyond(&mut self, glitch: Glitch, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) >= PERIOD {
            (self.since, self.counts) = (Some(now), [0; KINDS]);
        }
        let count = &mut self.counts[glitch as usize];
        *count = count.saturating_add(1);
        self.total += 1;
        *count > glitch.allowed()
    }

    /// Counts a stream that ended before its time; true above the limit.
    pub(super) fn is_one_too_many(&mut self, limits: &Limits) -> bool {
        self.unfinished += 1;
        self.total += 1;
        self.unfinished > limits.unfinished_streams + self.opened / 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_no_use_are_forgotten_after_a_while() {
        let (mut budgets, start) = (Budgets::default(), Instant::now());
        let late = start + PERIOD;
        assert!((0..100).all(|_| !budgets.is_beyond(Glitch::Ping, start)));
        assert!(budgets.is_beyond(Glitch::Ping, start));
        assert!(!budgets.is_beyond(Glitch::Settings, start));
        assert!(!budgets.is_beyond(Glitch::Ping, late));
    }

    #[test]
    fn a_hundred_and_a_tenth_of_all_streams_may_end_unfinished() {
        let (mut budgets, limits) = (Budgets { opened: 1000, ..Budgets::default() }, Limits::default());
        assert!((0..200).all(|_| !budgets.is_one_too_many(&limits)));
        assert!(budgets.is_one_too_many(&limits));
    }
}
