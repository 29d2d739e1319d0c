//! Received data, and the windows it occupies (RFC 9113 section 5.2).

use super::connection::Connection;
use super::frame;
use super::settings::WINDOW;
use super::stream::Stream;
use std::time::Duration;

impl Connection {
    /// Bytes of all streams that were received and are not consumed.
    pub fn unconsumed(&self) -> usize {
        self.unconsumed
    }

    /// Data of a stream that was received and not taken.
    pub fn data(&self, id: u32) -> &[u8] {
        self.streams.find(id).map_or(&[], |stream| &stream.received)
    }

    /// Exchanges the received data of a stream for an empty buffer; a buffer that is not empty is appended to. Taken data
    /// occupies the windows until [`Connection::consume`].
    pub fn take_data(&mut self, id: u32, into: &mut Vec<u8>) {
        let Some(stream) = self.streams.get(id) else { return };
        if into.is_empty() {
            std::mem::swap(into, &mut stream.received);
        } else {
            into.append(&mut stream.received);
        }
    }

    /// Takes back the memory of taken data, for streams to come.
    pub fn recycle(&mut self, mut room: Vec<u8>) {
        let most = match room.capacity() {
            0 => 0,
            1..SMALL_BYTES => SMALL,
            SMALL_BYTES..=SPARE_BYTES => SPARE,
            _ => 0,
        };
        if self.spare.len() < most {
            room.clear();
            self.spare.push(room);
        }
    }

    /// Consumes so many received bytes of a stream: the peer may send as many again.
    pub fn consume(&mut self, id: u32, bytes: usize) {
        let Some(stream) = self.streams.get(id) else { return };
        let bytes = bytes.min(stream.unconsumed);
        stream.unconsumed -= bytes;
        self.unconsumed -= bytes;
        self.taken = self.taken.saturating_add(bytes as i64);
        stream.ahead = (stream.ahead - bytes as i64).max(0);
        if stream.room() >= stream.window / 2 && stream.may_need_window() {
            let before = std::mem::replace(&mut stream.opened_at, self.now);
            let is_fast = self.now.zip(before).is_some_and(|(now, before)| now.saturating_duration_since(before) < FAST);
            if bytes > 0 && stream.unconsumed == 0 && is_fast {
                // The reader waits for the peer, and the peer may have waited for the window.
                let is_small = !self.is_server && stream.window == i64::from(self.limits.stream_window);
                let wider = match is_small {
                    true => (FIRST_STEP * stream.window).min(i64::from(self.limits.read_window)).max(STEP * stream.window),
                    false => STEP * stream.window,
                };
                self.widen(id, wider);
            }
            let room = self.streams.find(id).map_or(0, Stream::room);
            self.open_window(id, room);
        }
        self.credit_connection();
    }

    /// Opens the window for the body that the peer has announced: a new stream's window is for small ones.
    pub(super) fn expect_body(&mut self, id: u32) {
        let Some(stream) = self.streams.find(id) else { return };
        let body = stream.expected.map_or(i64::MAX, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        self.widen(id, body.min(i64::from(WINDOW)));
        let Some(stream) = self.streams.get(id) else { return };
        let room = stream.room();
        if room > 0 {
            stream.receive_window += room;
            self.append_control(|out| frame::window_update(id, room as u32, out));
        }
    }

    /// Opens the window for an answer that is larger than a new stream's: announced so by its head, or by as much data as a small one
    /// has. All such windows that were not read yet keep within [`Limits::announced_share`]: it saves round trips, and costs little
    /// where there is no reader.
    ///
    /// [`Limits::announced_share`]: super::Limits::announced_share
    pub(super) fn expect_answer(&mut self, id: u32) {
        let first = i64::from(self.limits.stream_window);
        let Some(stream) = self.streams.find(id) else { return };
        let left = stream.expected.map_or(i64::MAX, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let window = left.saturating_add(stream.unconsumed as i64).min(i64::from(self.limits.read_window));
        let others: i64 = self.streams.iter().filter(|stream| !stream.peer_ended).map(|stream| stream.ahead).sum();
        let more = (window - first).min(i64::from(self.limits.announced_share) - others);
        if more < (window - first).min(first) {
            return;
        }
        let Some(stream) = self.streams.get(id) else { return };
        (stream.window, stream.ahead) = (first + more, more);
        let room = stream.room();
        self.open_window(id, room);
    }

    /// Widens a stream's window to so many bytes at most, where half of the budget is enough for all open streams. What is promised
    /// to each that is read is apart from that half. A server's windows grow together by half of what was read of it, no more: as
    /// much as a client's own windows let through says little of what it will read.
    fn widen(&mut self, id: u32, bytes: i64) {
        let promised = i64::from(self.limits.read_window);
        let bytes = bytes.min(i64::from(self.limits.widest_window).max(promised));
        let Some(stream) = self.streams.find(id).filter(|stream| stream.window < bytes) else { return };
        let (before, first) = (stream.window, i64::from(self.limits.stream_window));
        let open = self.streams.iter().filter(|stream| !stream.peer_ended && stream.id != id);
        let grown = |stream: &Stream| (stream.window - first - stream.ahead).max(0);
        let (others, grown) = open.fold((0, 0), |(all, sum), stream| (all + stream.window, sum + grown(stream)));
        let budget = i64::from(self.limits.receive_budget) - promised * i64::from(self.limits.concurrent_streams);
        let mut most = (budget / 2 - others).max(promised);
        if !self.is_server {
            most = most.min(first + self.taken / 2 - grown);
        }
        if let Some(stream) = self.streams.get(id) {
            stream.window = bytes.min(most).max(before);
        }
    }

    /// Opens the window for so many bytes more of a stream, consumed or not. While the peer may send half of that already,
    /// no frame is sent: a request after each frame would cost a frame each time.
    pub fn want(&mut self, id: u32, bytes: usize) {
        let Some(stream) = self.streams.find(id) else { return };
        let bytes = bytes.min(frame::ID_MOST as usize) as i64;
        if stream.receive_window <= bytes / 2 {
            self.open_window(id, bytes - stream.receive_window);
        }
    }

    fn open_window(&mut self, id: u32, by: i64) {
        let Some(stream) = self.streams.get(id) else { return };
        if by > 0 && !stream.peer_ended && stream.reset.is_none() {
            stream.receive_window += by;
            frame::window_update(id, by as u32, &mut self.out);
        }
    }

    /// The connection's window is filled up on receipt while the budget lasts, then on consumption.
    pub(super) fn credit_connection(&mut self) {
        let (budget, window) = (i64::from(self.limits.receive_budget), i64::from(self.limits.connection_window));
        let target = window.min(budget - self.unconsumed as i64);
        let room = target - self.receive_window;
        if room > 0 && room >= window.min(budget) / 4 && self.failure.is_none() {
            self.receive_window += room;
            self.append_control(|out| frame::window_update(0, room as u32, out));
        }
    }

    /// Drops the received data of a stream.
    pub(super) fn drop_data(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id) {
            self.unconsumed -= stream.unconsumed;
            stream.unconsumed = 0;
            stream.received = Vec::new();
        }
    }

    pub(super) fn append_control(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        let before = self.out.len();
        append(&mut self.out);
        self.control += self.out.len() - before;
        self.control_end = self.out.len();
    }
}

/// A peer that sends half a window in this time may have waited for it, on the longest lines that exist.
const FAST: Duration = Duration::from_millis(500);

/// The steps by which a window grows: at once from a small first one to what is promised, then slower.
const FIRST_STEP: i64 = 32;
const STEP: i64 = 4;

/// The memory for received data that a connection keeps for its next streams: so many pieces of at most so many bytes.
const SPARE: usize = 64;
const SPARE_BYTES: usize = 4 * 1024;
const SMALL: usize = 256;
const SMALL_BYTES: usize = 512;
