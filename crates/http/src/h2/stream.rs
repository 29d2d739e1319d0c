//! Streams, and the memory of those that have ended (RFC 9113 section 5.1).
//!
//! ```text
//!          head            `peer_ended`, `we_ended`              `release`
//!  idle ---------> open ----------------------------> ended ---------------> Past::Ended
//!                    \--RST_STREAM of either side----> reset ---------------> Past::Ended, or Past::Reset by this side
//! ```
//! A stream of ours that is reset stays in the table, too: it counts against the limit until its user has let go of it.

use super::error::Code;
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Instant;
use terse_message::Fields;

/// A stream, from its head until it is released.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// Bytes that this side may still send.
    pub(super) send_window: i64,
    /// Bytes that the peer may still send.
    pub(super) receive_window: i64,
    /// Bytes that the peer may send ahead of the reader.
    pub(super) window: i64,
    /// Bytes that its window was opened by ahead of its reader, and that were not read since.
    pub(super) ahead: i64,
    /// Time when the window was last opened by its half.
    pub(super) opened_at: Option<Instant>,
    /// Received, and not consumed yet.
    pub(super) unconsumed: usize,
    /// Received, and not taken yet.
    pub(super) received: Vec<u8>,
    pub(super) trailers: Option<Box<Fields>>,
    /// Bytes that must still come by the head's `Content-Length`.
    pub(super) expected: Option<u64>,
    pub(super) reset: Option<Reset>,
    pub(super) peer_ended: bool,
    pub(super) we_ended: bool,
    /// The final head was received (by a client) or sent (by a server).
    pub(super) is_answered: bool,
    /// The request is a HEAD; or a CONNECT, which has no length.
    pub(super) asked: Asked,
    /// Data is no body, but a tunnel's (RFC 9113 section 8.5).
    pub(super) is_tunnel: bool,
    pub(super) interim_answers: u32,
    /// Whether a sender waits for the window: it gets an event when the window opens.
    pub(super) is_blocked: bool,
}

/// Kind of a request, as far as the response's length depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Head,
    Connect,
    Other,
}

impl Asked {
    pub(super) fn of(method: &[u8]) -> Asked {
        match method {
            b"HEAD" => Asked::Head,
            b"CONNECT" => Asked::Connect,
            _ => Asked::Other,
        }
    }

    pub(super) fn method(self) -> &'static [u8] {
        match self {
            Asked::Head => b"HEAD",
            Asked::Connect => b"CONNECT",
            Asked::Other => b"GET",
        }
    }
}

/// A stream's early end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reset {
    ByPeer(Code),
    ByUs(Code),
}

impl Stream {
    pub(super) fn new(id: u32, send_window: u32, receive_window: i64, window: u32) -> Stream {
        Stream {
            id,
            send_window: i64::from(send_window),
            receive_window,
            window: i64::from(window),
            ahead: 0,
            opened_at: None,
            unconsumed: 0,
            received: Vec::new(),
            trailers: None,
            expected: None,
            reset: None,
            peer_ended: false,
            we_ended: false,
            is_answered: false,
            asked: Asked::Other,
            is_tunnel: false,
            interim_answers: 0,
            is_blocked: false,
        }
    }

    /// Bytes that the peer may be allowed to send more.
    pub(super) fn room(&self) -> i64 {
        self.window - self.unconsumed as i64 - self.receive_window
    }

    /// Whether the peer may have more to send than its window lets through.
    pub(super) fn may_need_window(&self) -> bool {
        self.expected.is_none_or(|left| i64::try_from(left).is_ok_and(|left| left > self.receive_window))
    }

    pub(super) fn can_send(&self) -> bool {
        self.reset.is_none() && !self.we_ended
    }

    /// Whether its head was sent: a client's opens the stream.
    pub(super) fn can_send_data(&self, is_server: bool) -> bool {
        self.can_send() && (self.is_answered || !is_server)
    }
}

/// The open streams, whose ids ascend, and the last that were released.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: VecDeque<Stream>,
    /// The index of the stream that was last looked for: it is often the next one, too.
    last: Cell<usize>,
    /// Streams that have ended, and streams that this side has reset: many of the former must not push out the latter.
    ended: VecDeque<u32>,
    reset: VecDeque<u32>,
    /// The highest stream that is not remembered any more.
    forgotten: u32,
}

/// Past of a stream that is not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Past {
    Ended,
    /// This side has reset it: frames may be on their way.
    Reset,
    /// The stream may have been either, too long ago.
    Forgotten,
    /// The stream was never opened.
    Unused,
}

/// The most streams that are remembered of each sort.
const REMEMBERED: usize = 128;

impl Streams {
    #[inline]
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.open.get_mut(place)
    }

    pub(super) fn find(&self, id: u32) -> Option<&Stream> {
        self.open.get(self.place(id)?)
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        let last = self.last.get();
        match self.open.get(last) {
            Some(stream) if stream.id == id => Some(last),
            _ => self.search(id),
        }
    }

    /// Ids come in steps of two: without streams that have ended between them, the index is known.
    fn search(&self, id: u32) -> Option<usize> {
        let first = self.open.front()?.id;
        let guess = (id.checked_sub(first)? / 2) as usize;
        let place = match self.open.get(guess) {
            Some(stream) if stream.id == id => guess,
            _ => self.open.binary_search_by_key(&id, |stream| stream.id).ok()?,
        };
        self.last.set(place);
        Some(place)
    }

    pub(super) fn add(&mut self, stream: Stream) {
        debug_assert!(self.open.back().is_none_or(|last| last.id < stream.id));
        self.open.push_back(stream);
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        self.open.remove(self.place(id)?)
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.open.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// Bytes of memory for open streams, used or reserved, but for their received data.
    pub(super) fn capacity(&self) -> usize {
        self.open.capacity() * size_of::<Stream>()
    }

    pub(super) fn shrink(&mut self) {
        self.open.shrink_to_fit();
    }

    /// Remembers a stream that is not open any more.
    pub(super) fn remember(&mut self, id: u32, is_reset: bool) {
        let past = if is_reset { &mut self.reset } else { &mut self.ended };
        if past.len() == REMEMBERED {
            self.forgotten = past.pop_front().unwrap_or_default().max(self.forgotten);
        }
        past.push_back(id);
    }

    /// The past of a stream that is neither open nor idle.
    pub(super) fn past(&self, id: u32) -> Past {
        if self.reset.contains(&id) {
            Past::Reset
        } else if self.ended.contains(&id) {
            Past::Ended
        } else if id <= self.forgotten {
            Past::Forgotten
        } else {
            Past::Unused
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_end_push_out_none_that_were_reset() {
        let mut streams = Streams::default();
        streams.remember(1, true);
        (5..1001).step_by(2).for_each(|id| streams.remember(id, false));
        assert_eq!(
            [1, 3, 5, 999, 1001].map(|id| streams.past(id)),
            [Past::Reset, Past::Forgotten, Past::Forgotten, Past::Ended, Past::Unused]
        );
    }
}
