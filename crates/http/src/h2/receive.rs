//! Bytes that come, cut into frames, and DATA (RFC 9113 section 4.1 and 6.1).

use super::connection::{Connection, Event};
use super::error::{Code, Failure};
use super::frame::{self, ACK, END_STREAM, HEADER_BYTES, Header, Kind, PADDED, PREFACE};
use super::limits::{Glitch, TINY_BYTES};
use super::settings::FRAME_BYTES;
use super::stream::{Past, Reset};
use std::time::Instant;

/// Progress of the input.
#[derive(Debug)]
pub(super) struct Progress {
    stage: Stage,
    /// The part of a frame's header or payload that has come, where it did not come whole.
    held: Vec<u8>,
    /// The header block whose end has not come.
    pub(super) block: Vec<u8>,
    pub(super) heading: Option<Heading>,
}

/// Stream and flags of the block in [`Progress::block`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading {
    pub(super) id: u32,
    pub(super) end: bool,
    pub(super) continuations: u32,
    /// Its priority names its own stream (RFC 7540 section 5.3.1).
    pub(super) depends_on_itself: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The preface, of which so many bytes have come.
    Preface(usize),
    Header,
    Payload(Header),
    /// DATA, which is handled before its payload is there.
    Padding(Header),
    Data(Part),
    /// The rest of a frame that is ignored.
    Skip(usize),
}

/// The rest of a DATA frame.
#[derive(Clone, Copy, Debug)]
struct Part {
    id: u32,
    data: usize,
    padding: usize,
    end: bool,
}

impl Progress {
    pub(super) fn new(is_server: bool) -> Progress {
        let stage = if is_server { Stage::Preface(0) } else { Stage::Header };
        Progress { stage, held: Vec::new(), block: Vec::new(), heading: None }
    }

    pub(super) fn is_amid(&self) -> bool {
        !matches!(self.stage, Stage::Header) || !self.held.is_empty() || self.heading.is_some()
    }

    pub(super) fn capacity(&self) -> usize {
        self.held.capacity() + self.block.capacity()
    }

    pub(super) fn shrink(&mut self) {
        self.held.shrink_to_fit();
        self.block.shrink_to_fit();
    }
}

/// State of the stream that a frame belongs to.
pub(super) enum Place {
    Open,
    /// This side has reset it: frames that were on their way are ignored.
    Ignored,
    Closed,
    Idle,
}

impl Connection {
    /// Takes received bytes. Returns how many were used, and the next event; without an event, all were.
    pub fn receive(&mut self, input: &[u8], now: Instant) -> (usize, Option<Event>) {
        let mut used = 0;
        self.now = Some(now);
        loop {
            if let Some(event) = self.events.pop_front() {
                return (used, Some(event));
            }
            if self.failure.is_some() || used == input.len() {
                return (input.len(), None);
            }
            match self.step(&input[used..], now) {
                Ok(bytes) => used += bytes,
                Err(failure) => self.fail(failure),
            }
        }
    }

    /// Takes some of the input, which is not empty.
    fn step(&mut self, input: &[u8], now: Instant) -> Result<usize, Failure> {
        match self.progress.stage {
            Stage::Preface(at) => {
                let expected = &PREFACE[at..];
                let length = expected.len().min(input.len());
                if input[..length] != expected[..length] {
                    return Err(Failure::protocol("no preface"));
                }
                self.progress.stage = if length == expected.len() { Stage::Header } else { Stage::Preface(at + length) };
                Ok(length)
            }
            Stage::Header => {
                let (used, whole) = self.gather(input, HEADER_BYTES);
                let header = match whole {
                    Whole::Partial => return Ok(used),
                    Whole::Held => self.progress.held.first_chunk(),
                    Whole::Input => input.first_chunk(),
                };
                let header = header.map(Header::parse);
                self.progress.held.clear();
                header.map_or(Ok(()), |header| self.begin_frame(header, now))?;
                Ok(used)
            }
            Stage::Payload(header) => {
                let (used, whole) = self.gather(input, header.length);
                if matches!(whole, Whole::Partial) {
                    return Ok(used);
                }
                self.progress.stage = Stage::Header;
                if matches!(whole, Whole::Input) {
                    self.frame(header, &input[..used], now)?;
                } else {
                    let mut held = std::mem::take(&mut self.progress.held);
                    let done = self.frame(header, &held, now);
                    held.clear();
                    if held.capacity() <= HELD_BYTES {
                        self.progress.held = held;
                    }
                    done?;
                }
                Ok(used)
            }
            Stage::Padding(header) => {
                let padding = usize::from(input[0]);
                if padding >= header.length {
                    return Err(Failure::protocol("padding longer than its frame"));
                }
                let data = header.length - 1 - padding;
                self.begin_data(Part { id: header.id, data, padding, end: header.has(END_STREAM) }, now)?;
                Ok(1)
            }
            Stage::Data(part) => {
                let data = part.data.min(input.len());
                let padding = part.padding.min(input.len() - data);
                if data > 0 {
                    self.take_part(part.id, &input[..data]);
                }
                let rest = Part { data: part.data - data, padding: part.padding - padding, ..part };
                self.progress.stage = Stage::Data(rest);
                if rest.data + rest.padding == 0 {
                    self.end_data(rest);
                } else if data > 0 {
                    self.tell_data(part.id, false);
                }
                Ok(data + padding)
            }
            Stage::Skip(left) => {
                let used = left.min(input.len());
                self.progress.stage = if used == left { Stage::Header } else { Stage::Skip(left - used) };
                Ok(used)
            }
        }
    }

    /// Waits for `wanted` bytes; they are copied only where they come in parts.
    fn gather(&mut self, input: &[u8], wanted: usize) -> (usize, Whole) {
        let held = &mut self.progress.held;
        if held.is_empty() && input.len() >= wanted {
            return (wanted, Whole::Input);
        }
        let used = (wanted - held.len()).min(input.len());
        held.extend_from_slice(&input[..used]);
        (used, if held.len() == wanted { Whole::Held } else { Whole::Partial })
    }

    fn begin_frame(&mut self, header: Header, now: Instant) -> Result<(), Failure> {
        if header.length > FRAME_BYTES {
            return Err(Failure::size("a frame above MAX_FRAME_SIZE"));
        }
        if !self.has_settings && (header.kind != Kind::Settings || header.has(ACK)) {
            return Err(Failure::protocol("no SETTINGS"));
        }
        if let Some(heading) = self.progress.heading
            && (header.kind != Kind::Continuation || header.id != heading.id)
        {
            return Err(Failure::protocol("another frame within a header block"));
        }
        match header.kind {
            Kind::Data => {
                self.occupy(header)?;
                if header.has(PADDED) {
                    if header.length == 0 {
                        return Err(Failure::size("no padding length"));
                    }
                    self.progress.stage = Stage::Padding(header);
                    return Ok(());
                }
                self.begin_data(Part { id: header.id, data: header.length, padding: 0, end: header.has(END_STREAM) }, now)
            }
            Kind::Unknown => {
                self.count(Glitch::Unknown, now)?;
                self.progress.stage = if header.length == 0 { Stage::Header } else { Stage::Skip(header.length) };
                Ok(())
            }
            _ if header.length == 0 => self.frame(header, &[], now),
            _ => {
                self.progress.stage = Stage::Payload(header);
                Ok(())
            }
        }
    }

    fn frame(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        match header.kind {
            Kind::Headers => self.headers(header, payload, now),
            Kind::Continuation => self.continuation(header, payload, now),
            Kind::Priority => self.priority(header, payload, now),
            Kind::Reset => self.peer_resets(header, payload, now),
            Kind::Settings => self.settings(header, payload, now),
            Kind::Ping => self.pinged(header, payload, now),
            Kind::GoAway => self.peer_goes(header, payload, now),
            Kind::WindowUpdate => self.window_update(header, payload, now),
            Kind::PushPromise => Err(Failure::protocol("PUSH_PROMISE")),
            Kind::Data | Kind::Unknown => Ok(()),
        }
    }

    pub(super) fn place_of(&mut self, id: u32) -> Place {
        if let Some(stream) = self.streams.get(id) {
            return match stream.reset {
                None => Place::Open,
                Some(Reset::ByUs(_)) => Place::Ignored,
                Some(Reset::ByPeer(_)) => Place::Closed,
            };
        }
        if self.is_idle(id) {
            // After GOAWAY, ids are not remembered.
            return if self.last_taken.is_some_and(|last| id > last) && self.is_peers(id) { Place::Ignored } else { Place::Idle };
        }
        if self.streams.past(id) == Past::Reset { Place::Ignored } else { Place::Closed }
    }

    pub(super) fn is_peers(&self, id: u32) -> bool {
        (id % 2 == 1) == self.is_server
    }

    /// Whether no frame of the stream was ever sent or received. No server opens streams.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        match self.is_peers(id) {
            true => !self.is_server || id > self.last_received,
            false => self.is_server || id >= self.next_id,
        }
    }

    /// A DATA frame's payload takes of both windows, its padding included.
    fn occupy(&mut self, header: Header) -> Result<(), Failure> {
        if header.id == 0 {
            return Err(Failure::protocol("DATA of stream 0"));
        }
        self.receive_window -= header.length as i64;
        if self.receive_window < 0 {
            return Err(Failure::new(Code::FLOW_CONTROL_ERROR, "more DATA than the connection's window"));
        }
        Ok(())
    }

    fn begin_data(&mut self, part: Part, now: Instant) -> Result<(), Failure> {
        match part.data {
            0 if !part.end => self.count(Glitch::EmptyData, now)?,
            1..TINY_BYTES if !part.end => self.count(Glitch::TinyData, now)?,
            _ => {}
        }
        match self.place_of(part.id) {
            Place::Open => self.admit_data(part)?,
            Place::Ignored => {}
            Place::Closed => {
                self.count(Glitch::ClosedStream, now)?;
                if self.streams.find(part.id).is_some() {
                    // The peer has reset it (RFC 9113 section 5.1).
                    self.append_control(|out| frame::reset(part.id, Code::STREAM_CLOSED, out));
                } else if self.streams.past(part.id) != Past::Forgotten {
                    return Err(Failure::new(Code::STREAM_CLOSED, "DATA of a closed stream"));
                }
            }
            Place::Idle => return Err(Failure::protocol("DATA of an idle stream")),
        }
        self.progress.stage = Stage::Data(part);
        if part.data + part.padding == 0 {
            self.end_data(part);
        }
        Ok(())
    }

    fn admit_data(&mut self, part: Part) -> Result<(), Failure> {
        let is_server = self.is_server;
        let Some(stream) = self.streams.get(part.id) else { return Ok(()) };
        if stream.peer_ended {
            return self.stream_error(part.id, Code::STREAM_CLOSED);
        }
        if !is_server && !stream.is_answered {
            return self.stream_error(part.id, Code::PROTOCOL_ERROR);
        }
        stream.receive_window -= (part.data + part.padding) as i64;
        if stream.receive_window < 0 {
            return self.stream_error(part.id, Code::FLOW_CONTROL_ERROR);
        }
        if let Some(expected) = &mut stream.expected {
            match expected.checked_sub(part.data as u64) {
                Some(left) if left == 0 || !part.end => *expected = left,
                _ => return self.stream_error(part.id, Code::PROTOCOL_ERROR),
            }
        }
        Ok(())
    }

    fn take_part(&mut self, id: u32, data: &[u8]) {
        let Some(stream) = self.streams.get(id).filter(|stream| stream.reset.is_none() && !stream.peer_ended) else { return };
        if stream.received.capacity() == 0 {
            stream.received = self.spare.pop().unwrap_or_default();
        }
        stream.received.extend_from_slice(data);
        stream.unconsumed += data.len();
        self.unconsumed += data.len();
    }

    fn tell_data(&mut self, id: u32, end: bool) {
        if self.streams.get(id).is_some_and(|stream| stream.reset.is_none() && !stream.peer_ended) {
            self.events.push_back(Event::Data { id, end });
        }
    }

    fn end_data(&mut self, part: Part) {
        self.progress.stage = Stage::Header;
        self.tell_data(part.id, part.end);
        let first = i64::from(self.limits.stream_window);
        if let Some(stream) = self.streams.get(part.id).filter(|stream| stream.reset.is_none()) {
            stream.peer_ended |= part.end;
            let is_large = stream.window == first && stream.unconsumed as i64 * 2 >= first && stream.may_need_window();
            if is_large && !part.end && self.limits.announced_share > 0 {
                self.expect_answer(part.id);
            }
        }
        // Padding is consumed at once.
        self.consume(part.id, 0);
        self.credit_connection();
    }

    /// Resets a stream for an error of the peer's.
    pub(super) fn stream_error(&mut self, id: u32, code: Code) -> Result<(), Failure> {
        let Some(stream) = self.streams.get(id) else { return self.refuse(id, code) };
        if matches!(stream.reset, Some(Reset::ByUs(_))) {
            return Ok(());
        }
        stream.reset = Some(Reset::ByUs(code));
        self.append_control(|out| frame::reset(id, code, out));
        self.drop_data(id);
        self.events.push_back(Event::Reset { id, code, by_peer: false });
        self.count_unfinished()
    }

    /// Resets a stream that was not opened.
    pub(super) fn refuse(&mut self, id: u32, code: Code) -> Result<(), Failure> {
        self.append_control(|out| frame::reset(id, code, out));
        self.streams.remember(id, true);
        self.count_unfinished()
    }

    pub(super) fn count_unfinished(&mut self) -> Result<(), Failure> {
        if self.is_server && self.budgets.is_one_too_many(&self.limits) { Err(self.breach(Glitch::Unfinished)) } else { Ok(()) }
    }

    pub(super) fn count(&mut self, glitch: Glitch, now: Instant) -> Result<(), Failure> {
        if self.budgets.is_beyond(glitch, now) { Err(self.breach(glitch)) } else { Ok(()) }
    }

    pub(super) fn breach(&mut self, glitch: Glitch) -> Failure {
        self.events.push_back(Event::Glitch(glitch));
        Failure::new(Code::ENHANCE_YOUR_CALM, glitch.name())
    }
}

/// Bytes that were waited for: whether they are all there, and their place.
enum Whole {
    Partial,
    Held,
    Input,
}

/// The memory for parts of frames that a connection keeps.
const HELD_BYTES: usize = 1024;
