//! HEADERS and CONTINUATION (RFC 9113 section 6.2 and 6.10).

use super::connection::{Connection, Event};
use super::error::{Code, Failure, Malformed};
use super::frame::{self, END_HEADERS, END_STREAM, Header, ID_MOST, PRIORITY};
use super::head::Bad;
use super::hpack::Stop;
use super::limits::Glitch;
use super::receive::Heading;
use super::stream::{Asked, Past, Reset};
use std::time::Instant;
use terse_message::Fields;

impl Connection {
    pub(super) fn headers(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        let id = header.id;
        if id == 0 || id.is_multiple_of(2) {
            return Err(Failure::protocol("HEADERS of a stream that is no client's"));
        }
        let mut block = frame::unpad(header, payload).ok_or(Failure::protocol("padding longer than its frame"))?;
        let mut depends = 0;
        if header.has(PRIORITY) {
            let (of, rest) = block.split_first_chunk().ok_or(Failure::size("HEADERS"))?;
            depends = u32::from_be_bytes(*of) & ID_MOST;
            block = rest.get(1..).ok_or(Failure::size("HEADERS"))?;
        }
        let heading = Heading { id, end: header.has(END_STREAM), continuations: 0, depends_on_itself: depends == id };
        if header.has(END_HEADERS) && block.len() <= self.limits.block_bytes {
            return self.block(heading, block, now);
        }
        self.progress.heading = Some(heading);
        self.append_block(block)
    }

    pub(super) fn continuation(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        let Some(heading) = &mut self.progress.heading else { return Err(Failure::protocol("CONTINUATION of nothing")) };
        heading.continuations += 1;
        let heading = *heading;
        if heading.continuations > self.limits.continuations {
            return Err(self.breach(Glitch::Continuations));
        }
        self.append_block(payload)?;
        if !header.has(END_HEADERS) {
            return Ok(());
        }
        self.progress.heading = None;
        let block = std::mem::take(&mut self.progress.block);
        self.block(heading, &block, now)
    }

    fn append_block(&mut self, payload: &[u8]) -> Result<(), Failure> {
        if self.progress.block.len() + payload.len() > self.limits.block_bytes {
            return Err(self.breach(Glitch::HeaderBlock));
        }
        self.progress.block.extend_from_slice(payload);
        Ok(())
    }

    /// Takes a whole header block.
    fn block(&mut self, heading: Heading, block: &[u8], now: Instant) -> Result<(), Failure> {
        let Heading { id, end, .. } = heading;
        if let Some(stream) = self.streams.get(id) {
            if matches!(stream.reset, Some(Reset::ByUs(_))) {
                return self.ignore(block, now);
            }
            if stream.peer_ended || stream.reset.is_some() {
                self.discard(block)?;
                self.count(Glitch::ClosedStream, now)?;
                return self.stream_error(id, Code::STREAM_CLOSED);
            }
            return match (self.is_server, stream.is_answered) {
                (false, false) => self.answer(heading, block),
                _ if stream.is_tunnel => {
                    self.discard(block)?;
                    self.stream_error(id, Code::PROTOCOL_ERROR)
                }
                _ => self.trailers(id, end, block),
            };
        }
        if self.is_server && id > self.last_received {
            return self.open(heading, block, now);
        }
        match self.streams.past(id) {
            Past::Reset | Past::Forgotten => self.ignore(block, now),
            Past::Ended => Err(Failure::new(Code::STREAM_CLOSED, "HEADERS of a closed stream")),
            Past::Unused => Err(Failure::protocol("HEADERS of a stream that is not the next")),
        }
    }

    /// A block of a stream that is no more.
    fn ignore(&mut self, block: &[u8], now: Instant) -> Result<(), Failure> {
        self.discard(block)?;
        self.count(Glitch::ClosedStream, now)
    }

    /// Reads a block for the sake of the table. It may not become larger than a block of an open stream.
    fn discard(&mut self, block: &[u8]) -> Result<(), Failure> {
        match self.reader.discard(&mut self.decoder, block, &self.limits) {
            Ok(()) => Ok(()),
            Err(Stop::Enough) => Err(self.breach(Glitch::Head)),
            Err(Stop::Malformed) => Err(COMPRESSION),
        }
    }

    /// A client opens a stream.
    fn open(&mut self, heading: Heading, block: &[u8], now: Instant) -> Result<(), Failure> {
        let Heading { id, end, .. } = heading;
        // A head after this side's GOAWAY is not answered: the client knows.
        if self.last_taken.is_some_and(|last| id > last) {
            return self.ignore(block, now);
        }
        self.last_received = id;
        self.budgets.opened += 1;
        if self.streams.len() >= usize::try_from(self.limits.concurrent_streams).unwrap_or(usize::MAX) {
            self.discard(block)?;
            return self.refuse(id, Code::REFUSED_STREAM);
        }
        let read = self.reader.request(&mut self.decoder, block, end, &self.limits, &mut self.request);
        let (expected, event) = match read {
            _ if heading.depends_on_itself && read != Err(Bad::Compression) => return self.refuse(id, Code::PROTOCOL_ERROR),
            Ok(expected) => (expected, Event::Request { id, end }),
            Err(Bad::TooLarge { is_target }) => (None, Event::TooLarge { id, is_target }),
            Err(Bad::Unusable(malformed)) => (None, Event::Unusable { id, malformed }),
            Err(Bad::Malformed(malformed)) => {
                self.events.push_back(Event::Malformed { id, malformed });
                return self.refuse(id, Code::PROTOCOL_ERROR);
            }
            Err(Bad::FarTooLarge) => return Err(self.breach(Glitch::Head)),
            Err(Bad::Compression) => return Err(COMPRESSION),
        };
        let mut stream = self.new_stream(id);
        (stream.peer_ended, stream.expected) = (end, expected.filter(|_| !end));
        stream.is_tunnel = matches!(event, Event::Request { .. }) && self.request.method() == b"CONNECT";
        self.streams.add(stream);
        if !end {
            self.expect_body(id);
        }
        self.events.push_back(event);
        // A response costs more than such a head, however short its block is.
        if matches!(event, Event::TooLarge { .. }) { self.count_unfinished() } else { Ok(()) }
    }

    /// A server responds.
    fn answer(&mut self, heading: Heading, block: &[u8]) -> Result<(), Failure> {
        let Heading { id, end, .. } = heading;
        let method = self.streams.find(id).map_or(&b"GET"[..], |stream| stream.asked.method());
        let read = self.reader.response(&mut self.decoder, block, (end, method), &self.limits, &mut self.response);
        let expected = match read {
            Ok(expected) => expected,
            Err(bad) => return self.bad_head(id, bad),
        };
        let most = self.limits.interim_answers;
        let Some(stream) = self.streams.get(id) else { return Ok(()) };
        if self.response.status < 200 {
            stream.interim_answers += 1;
            if stream.interim_answers > most {
                return self.stream_error(id, Code::ENHANCE_YOUR_CALM);
            }
            self.events.push_back(Event::Interim { id });
            return Ok(());
        }
        (stream.is_answered, stream.peer_ended, stream.expected) = (true, end, expected.filter(|_| !end));
        stream.opened_at = self.now;
        stream.is_tunnel = stream.asked == Asked::Connect && self.response.status / 100 == 2;
        let is_large = stream.expected.is_some_and(|bytes| bytes > u64::from(self.limits.stream_window));
        if is_large && self.limits.announced_share > 0 {
            self.expect_answer(id);
        }
        self.events.push_back(Event::Response { id, end });
        Ok(())
    }

    fn trailers(&mut self, id: u32, end: bool, block: &[u8]) -> Result<(), Failure> {
        let mut fields = Fields::default();
        if let Err(bad) = self.reader.trailers(&mut self.decoder, block, &self.limits, &mut fields) {
            return self.bad_head(id, bad);
        }
        let Some(stream) = self.streams.get(id) else { return Ok(()) };
        if !end || stream.expected.is_some_and(|left| left > 0) {
            return self.bad_head(id, Bad::Malformed(Malformed::Trailers));
        }
        stream.peer_ended = true;
        stream.trailers = Some(Box::new(fields));
        self.events.push_back(Event::Trailers { id });
        Ok(())
    }

    fn bad_head(&mut self, id: u32, bad: Bad) -> Result<(), Failure> {
        match bad {
            Bad::Malformed(_) | Bad::Unusable(_) | Bad::TooLarge { .. } => self.stream_error(id, Code::PROTOCOL_ERROR),
            Bad::FarTooLarge => Err(self.breach(Glitch::Head)),
            Bad::Compression => Err(COMPRESSION),
        }
    }
}

const COMPRESSION: Failure = Failure::new(Code::COMPRESSION_ERROR, "a header block that cannot be read");
