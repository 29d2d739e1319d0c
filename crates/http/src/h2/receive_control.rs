//! Frames that carry neither heads nor data (RFC 9113 section 6).

use super::connection::{Connection, Event};
use super::error::{Code, Failure};
use super::frame::{self, ACK, Header, ID_MOST, Kind};
use super::limits::{Glitch, TINY_WINDOW_BYTES};
use super::receive::Place;
use super::settings::WINDOW;
use super::stream::Reset;
use std::time::Instant;

/// PING and WINDOW_UPDATE frames that are tolerated before any DATA was sent.
const FREE_FRAMES: u64 = 8;

impl Connection {
    pub(super) fn priority(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        if header.id == 0 {
            return Err(Failure::protocol("PRIORITY of stream 0"));
        }
        self.count(Glitch::Priority, now)?;
        let Some((depends, _)) = payload.split_first_chunk().filter(|_| payload.len() == 5) else {
            return self.stream_or_connection(header.id, Failure::size("PRIORITY"));
        };
        if u32::from_be_bytes(*depends) & ID_MOST == header.id {
            return self.stream_or_connection(header.id, Failure::protocol("PRIORITY on itself"));
        }
        Ok(())
    }

    /// An error of a stream, which takes the connection along where there is no such stream.
    fn stream_or_connection(&mut self, id: u32, failure: Failure) -> Result<(), Failure> {
        if self.streams.find(id).is_none() { Err(failure) } else { self.stream_error(id, failure.code) }
    }

    pub(super) fn peer_resets(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        let code = payload.first_chunk().filter(|_| payload.len() == 4).ok_or(Failure::size("RST_STREAM"))?;
        let code = Code(u32::from_be_bytes(*code));
        match self.place_of(header.id) {
            _ if header.id == 0 => Err(Failure::protocol("RST_STREAM of stream 0")),
            Place::Idle => Err(Failure::protocol("RST_STREAM of an idle stream")),
            Place::Ignored | Place::Closed => self.count(Glitch::ClosedStream, now),
            Place::Open => {
                let Some(stream) = self.streams.get(header.id) else { return Ok(()) };
                let has_ended = stream.peer_ended && stream.we_ended;
                let is_early = !stream.we_ended;
                stream.reset = Some(Reset::ByPeer(code));
                if has_ended {
                    return Ok(());
                }
                // RFC 9113 section 8.1: after a whole response, a server may signal that it needs no more of the request.
                // The code concerns the request: HAProxy sends CANCEL.
                if stream.peer_ended && !self.is_server {
                    self.events.push_back(Event::Reset { id: header.id, code, by_peer: true });
                    return Ok(());
                }
                self.drop_data(header.id);
                self.events.push_back(Event::Reset { id: header.id, code, by_peer: true });
                self.credit_connection();
                if is_early { self.count_unfinished() } else { Ok(()) }
            }
        }
    }

    pub(super) fn settings(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        if header.id != 0 {
            return Err(Failure::protocol("SETTINGS of a stream"));
        }
        if header.has(ACK) {
            if !payload.is_empty() {
                return Err(Failure::size("SETTINGS"));
            }
            if self.is_confirmed {
                return self.count(Glitch::Settings, now);
            }
            self.confirmed();
            return Ok(());
        }
        if !payload.len().is_multiple_of(6) {
            return Err(Failure::size("SETTINGS"));
        }
        if self.has_settings {
            self.count(Glitch::Settings, now)?;
        }
        let (before, is_first) = (self.peer, !self.has_settings);
        self.peer.read(payload, !self.is_server, |size| self.encoder.resize(size))?;
        self.has_settings = true;
        let change = i64::from(self.peer.initial_window) - i64::from(before.initial_window);
        if change != 0 {
            for stream in self.streams.iter_mut() {
                stream.send_window += change;
                if stream.send_window > i64::from(ID_MOST) {
                    return Err(Failure::new(Code::FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE"));
                }
            }
        }
        self.append_control(|out| out.extend_from_slice(&frame::header(0, Kind::Settings, ACK, 0)));
        if is_first {
            self.credit_connection();
        }
        self.events.push_back(Event::Settings);
        if change > 0 {
            // Those that wait for their own windows, which no WINDOW_UPDATE need open now.
            for stream in self.streams.iter_mut().filter(|stream| stream.send_window > 0) {
                if std::mem::take(&mut stream.is_blocked) {
                    self.events.push_back(Event::WindowOpened { id: stream.id });
                }
            }
            self.events.push_back(Event::WindowOpened { id: 0 });
        }
        Ok(())
    }

    /// The peer counts on the windows of this side's SETTINGS from here.
    fn confirmed(&mut self) {
        let less = (i64::from(WINDOW) - i64::from(self.limits.stream_window)).max(0);
        self.is_confirmed = true;
        if less > 0 && self.is_server {
            self.streams.iter_mut().for_each(|stream| stream.receive_window -= less);
            // Bytes that were consumed under the larger window are credited now: no later event may ask for it.
            let ids: Vec<u32> = self.streams.iter_mut().map(|stream| stream.id).collect();
            ids.into_iter().for_each(|id| self.consume(id, 0));
        }
    }

    pub(super) fn pinged(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        let payload: &[u8; 8] = payload.try_into().map_err(|_| Failure::size("PING"))?;
        if header.id != 0 {
            return Err(Failure::protocol("PING of a stream"));
        }
        if header.has(ACK) {
            if self.awaited_ping.as_ref() != Some(payload) {
                return self.count(Glitch::Ping, now);
            }
            self.awaited_ping = None;
            self.events.push_back(Event::Pong);
            return Ok(());
        }
        self.pings += 1;
        if self.pings > FREE_FRAMES + self.data_frames {
            self.count(Glitch::Ping, now)?;
        }
        self.append_control(|out| frame::ping(payload, ACK, out));
        Ok(())
    }

    pub(super) fn peer_goes(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        if header.id != 0 {
            return Err(Failure::protocol("GOAWAY of a stream"));
        }
        self.count(Glitch::GoAway, now)?;
        let Some((last, rest)) = payload.split_first_chunk::<4>() else { return Err(Failure::size("GOAWAY")) };
        let code = rest.first_chunk::<4>().ok_or(Failure::size("GOAWAY"))?;
        let (last, code) = (u32::from_be_bytes(*last) & ID_MOST, Code(u32::from_be_bytes(*code)));
        if self.peer_last.is_some_and(|before| last > before) {
            return Err(Failure::protocol("GOAWAY takes more than before"));
        }
        self.peer_last = Some(last);
        self.events.push_back(Event::GoAway { last, code });
        if self.is_server {
            return Ok(());
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.id > last && stream.reset.is_none()) {
            stream.reset = Some(Reset::ByPeer(Code::REFUSED_STREAM));
            self.events.push_back(Event::Reset { id: stream.id, code: Code::REFUSED_STREAM, by_peer: true });
        }
        Ok(())
    }

    pub(super) fn window_update(&mut self, header: Header, payload: &[u8], now: Instant) -> Result<(), Failure> {
        let by = payload.first_chunk().filter(|_| payload.len() == 4).ok_or(Failure::size("WINDOW_UPDATE"))?;
        let by = i64::from(u32::from_be_bytes(*by) & ID_MOST);
        self.window_updates += 1;
        if self.window_updates > FREE_FRAMES + 4 * self.data_frames {
            self.count(Glitch::WindowUpdate, now)?;
        }
        if header.id == 0 {
            if by == 0 {
                return Err(Failure::protocol("WINDOW_UPDATE by 0"));
            }
            self.send_window += by;
            if self.send_window > i64::from(ID_MOST) {
                return Err(Failure::new(Code::FLOW_CONTROL_ERROR, "WINDOW_UPDATE"));
            }
            let window = self.send_window;
            return if window > 0 && std::mem::take(&mut self.is_blocked) { self.window_opened(0, window, now) } else { Ok(()) };
        }
        match self.place_of(header.id) {
            Place::Idle => return Err(Failure::protocol("WINDOW_UPDATE of an idle stream")),
            Place::Closed | Place::Ignored => return Ok(()),
            Place::Open => {}
        }
        if by == 0 {
            return self.stream_error(header.id, Code::PROTOCOL_ERROR);
        }
        let Some(stream) = self.streams.get(header.id) else { return Ok(()) };
        stream.send_window += by;
        if stream.send_window > i64::from(ID_MOST) {
            return self.stream_error(header.id, Code::FLOW_CONTROL_ERROR);
        }
        let window = stream.send_window;
        if window > 0 && std::mem::take(&mut stream.is_blocked) { self.window_opened(header.id, window, now) } else { Ok(()) }
    }

    fn window_opened(&mut self, id: u32, window: i64, now: Instant) -> Result<(), Failure> {
        if window < TINY_WINDOW_BYTES {
            self.count(Glitch::TinyWindow, now)?;
        }
        self.events.push_back(Event::WindowOpened { id });
        Ok(())
    }
}
