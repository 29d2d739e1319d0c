//! A connection: its state, and the calls of its driver.

use super::error::{Code, Failure, Malformed};
use super::frame::{self, ID_MOST, PREFACE};
use super::head::Reader;
use super::hpack::{Decoder, Encoder};
use super::limits::{Budgets, Glitch, Limits};
use super::receive::Progress;
use super::settings::{self, Settings, WINDOW};
use super::stream::{Reset, Stream, Streams};
use std::collections::VecDeque;
use std::time::Instant;
use terse_message::{Fields, Request, Response};

/// Events, in order. Stream 0 is the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The peer's SETTINGS are known ([`Connection::peer`]), or have changed.
    Settings,
    /// A client has opened a stream: [`Connection::take_request`].
    Request {
        /// The stream.
        id: u32,
        /// No body follows.
        end: bool,
    },
    /// A client has opened a stream with a head above the limit; it waits for a response: 414 or 431.
    TooLarge {
        /// The stream.
        id: u32,
        /// The path alone is.
        is_target: bool,
    },
    /// A client has opened a stream with a head that is no request, and waits for a response: 400. In HAProxy's reading
    /// alone.
    Unusable {
        /// The stream.
        id: u32,
        /// The fault.
        malformed: Malformed,
    },
    /// A client has opened a stream with a head that is no request; the stream was reset and is not in the table.
    Malformed {
        /// The stream that the head would have opened.
        id: u32,
        /// The fault.
        malformed: Malformed,
    },
    /// A server's interim response: [`Connection::take_response`].
    Interim {
        /// The stream.
        id: u32,
    },
    /// A server's response: [`Connection::take_response`].
    Response {
        /// The stream.
        id: u32,
        /// No body follows.
        end: bool,
    },
    /// Data has come, or the body's end.
    Data {
        /// The stream.
        id: u32,
        /// No more data follows.
        end: bool,
    },
    /// Trailers after the body, which has ended: [`Connection::take_trailers`].
    Trailers {
        /// The stream.
        id: u32,
    },
    /// The stream has ended before its time.
    Reset {
        /// The stream.
        id: u32,
        /// The cause.
        code: Code,
        /// Whether the peer has reset it; else this side has, since the peer broke the protocol.
        by_peer: bool,
    },
    /// The stream's window has opened for a sender that found it closed; of stream 0, any stream's may have.
    WindowOpened {
        /// The stream.
        id: u32,
    },
    /// The peer takes no more streams. Those of this side above `last` were not processed; each is [`Event::Reset`] by
    /// REFUSED_STREAM.
    GoAway {
        /// The highest stream that it has processed.
        last: u32,
        /// The cause.
        code: Code,
    },
    /// The last PING of this side came back.
    Pong,
    /// The peer goes beyond a limit. [`Event::Failed`] follows.
    Glitch(Glitch),
    /// The connection has ended by this side; GOAWAY is in the output.
    Failed(Failure),
}

/// A side of an HTTP/2 connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) is_server: bool,
    pub(super) limits: Limits,
    pub(super) peer: Settings,
    /// The peer has confirmed the SETTINGS of this side.
    pub(super) is_confirmed: bool,
    pub(super) has_settings: bool,
    pub(super) streams: Streams,
    pub(super) events: VecDeque<Event>,

    pub(super) progress: Progress,
    pub(super) decoder: Decoder,
    pub(super) reader: Reader,
    pub(super) request: Request,
    pub(super) response: Response,
    pub(super) budgets: Budgets,
    /// DATA frames that were sent: by them, windows may be updated and round trips measured.
    pub(super) data_frames: u64,
    pub(super) window_updates: u64,
    pub(super) pings: u64,
    /// Payload of the PING that this side waits for.
    pub(super) awaited_ping: Option<[u8; 8]>,
    given_up: u64,
    /// Memory for received data.
    pub(super) spare: Vec<Vec<u8>>,

    pub(super) encoder: Encoder,
    pub(super) out: Vec<u8>,
    /// Bytes of `out` that were sent.
    pub(super) written: usize,
    /// Bytes in `out` that answer frames of the peer's, and the offset of the end of the last of them.
    pub(super) control: usize,
    pub(super) control_end: usize,

    pub(super) send_window: i64,
    pub(super) receive_window: i64,
    /// Data of all streams that is not consumed.
    pub(super) unconsumed: usize,
    /// Bytes that were consumed, of all streams that there were.
    pub(super) taken: i64,

    /// The highest stream of the peer's.
    pub(super) last_received: u32,
    /// The next stream of this side's.
    pub(super) next_id: u32,
    /// Last stream of this side's GOAWAY.
    pub(super) last_taken: Option<u32>,
    /// Last stream of the peer's GOAWAY.
    pub(super) peer_last: Option<u32>,
    pub(super) failure: Option<Failure>,
    pub(super) is_blocked: bool,
    /// Time of the last received bytes.
    pub(super) now: Option<Instant>,
}

impl Connection {
    /// The accepting side; the first bytes it is given are the client's preface.
    pub fn server(limits: Limits) -> Connection {
        let mut connection = Connection::new(limits, true);
        connection.begin();
        connection
    }

    /// The opening side.
    pub fn client(limits: Limits) -> Connection {
        let mut connection = Connection::new(limits, false);
        connection.out.extend_from_slice(PREFACE);
        connection.begin();
        connection
    }

    fn new(mut limits: Limits, is_server: bool) -> Connection {
        for window in [&mut limits.stream_window, &mut limits.connection_window] {
            *window = ID_MOST.min(*window);
        }
        Connection {
            is_server,
            limits,
            peer: Settings::default(),
            is_confirmed: false,
            has_settings: false,
            streams: Streams::default(),
            events: VecDeque::new(),
            progress: Progress::new(is_server),
            decoder: Decoder::default(),
            reader: Reader::default(),
            request: Request::default(),
            response: Response::default(),
            budgets: Budgets::default(),
            data_frames: 0,
            window_updates: 0,
            pings: 0,
            awaited_ping: None,
            given_up: 0,
            spare: Vec::new(),
            encoder: Encoder::default(),
            out: Vec::new(),
            written: 0,
            control: 0,
            control_end: 0,
            send_window: i64::from(WINDOW),
            receive_window: i64::from(WINDOW),
            unconsumed: 0,
            taken: 0,
            last_received: 0,
            next_id: 1,
            last_taken: None,
            peer_last: None,
            failure: None,
            is_blocked: false,
            now: None,
        }
    }

    fn begin(&mut self) {
        settings::announce(&self.limits, self.is_server, &mut self.out);
        // A client's SETTINGS are answered before its window is opened: simple peers expect them in this order.
        if !self.is_server {
            self.credit_connection();
        }
        self.control = 0;
    }

    /// Bytes that wait to be sent.
    pub fn output(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// Removes so many bytes of the output, which have been sent.
    pub fn wrote(&mut self, bytes: usize) {
        self.written = (self.written + bytes).min(self.out.len());
        if self.written == self.out.len() {
            self.out.clear();
            (self.written, self.control) = (0, 0);
            return;
        }
        if self.written >= self.control_end {
            self.control = 0;
        }
        if self.written > self.out.len() / 2 {
            self.out.drain(..self.written);
            self.control_end = self.control_end.saturating_sub(self.written);
            self.written = 0;
        }
    }

    /// Whether more may be read: false while the peer causes more answers than it takes.
    pub fn wants_input(&self) -> bool {
        self.failure.is_none() && self.control <= self.limits.control_bytes
    }

    /// Whether the driver has only to write the output and to close: the connection has failed, or GOAWAY was sent or
    /// received and no stream is open.
    pub fn is_finished(&self) -> bool {
        let goes = self.last_taken.is_some_and(|last| last != ID_MOST) || self.peer_last.is_some();
        self.failure.is_some() || goes && self.streams.len() == 0
    }

    /// The reason why this side has ended the connection, if it has.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Number of all glitches of the peer ([`Glitch`]), also below their limits.
    pub fn glitches(&self) -> u64 {
        self.budgets.total
    }

    /// Number of streams, those not released included.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether a header block, or another frame, has come in part: the peer owes the rest.
    pub fn is_amid_frame(&self) -> bool {
        self.progress.is_amid()
    }

    /// The peer's settings; the defaults, until [`Event::Settings`].
    pub fn peer(&self) -> &Settings {
        &self.peer
    }

    /// Bytes of memory that buffers hold, used or reserved.
    pub fn capacity(&self) -> usize {
        self.out.capacity() + self.progress.capacity() + self.streams.capacity()
    }

    /// Gives back the memory of empty buffers, for a connection that waits.
    pub fn shrink(&mut self) {
        if self.out.is_empty() {
            self.out = Vec::new();
        }
        self.spare = Vec::new();
        self.progress.shrink();
        self.streams.shrink();
        self.reader = Reader::default();
        (self.request, self.response) = (Request::default(), Response::default());
    }

    /// Gives back the memory of an output that is empty: the peer takes no data for now.
    pub fn release_output(&mut self) {
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }

    /// Exchanges the head of the last [`Event::Request`] for one whose memory serves the next.
    pub fn take_request(&mut self, request: &mut Request) {
        std::mem::swap(&mut self.request, request);
    }

    /// `:scheme` of the last [`Event::Request`].
    pub fn scheme(&self) -> &[u8] {
        self.reader.scheme()
    }

    /// `:protocol` of the last [`Event::Request`], an extended CONNECT (RFC 8441); else empty.
    pub fn protocol(&self) -> &[u8] {
        self.reader.protocol()
    }

    /// Exchanges the head of the last [`Event::Response`] or [`Event::Interim`] for one whose memory serves the next.
    pub fn take_response(&mut self, response: &mut Response) {
        std::mem::swap(&mut self.response, response);
    }

    /// The trailers after a stream's body.
    pub fn take_trailers(&mut self, id: u32) -> Option<Box<Fields>> {
        self.streams.get(id)?.trailers.take()
    }

    /// Whether trailers have come after a stream's body.
    pub fn has_trailers(&self, id: u32) -> bool {
        self.streams.find(id).is_some_and(|stream| stream.trailers.as_ref().is_some_and(|fields| !fields.is_empty()))
    }

    /// The code by which the peer has reset a stream.
    pub fn reset_by_peer(&self, id: u32) -> Option<Code> {
        match self.streams.find(id)?.reset? {
            Reset::ByPeer(code) => Some(code),
            Reset::ByUs(_) => None,
        }
    }

    /// Whether a stream was reset by either side, or is not in the table.
    pub fn is_reset(&self, id: u32) -> bool {
        self.streams.find(id).is_none_or(|stream| stream.reset.is_some())
    }

    /// Whether the peer's side of a stream has ended, well or not.
    pub fn has_peer_ended(&self, id: u32) -> bool {
        self.streams.find(id).is_none_or(|stream| stream.peer_ended || stream.reset.is_some())
    }

    /// Whether the peer has sent all of its message. A reset by it may have followed (RFC 9113 section 8.1): with NO_ERROR
    /// as it should be, or with CANCEL, which is HAProxy's.
    pub fn is_complete(&self, id: u32) -> bool {
        self.streams.find(id).is_some_and(|stream| stream.peer_ended && !matches!(stream.reset, Some(Reset::ByUs(_))))
    }

    /// Whether only the frame that ends a server's stream is missing: its request has ended, and its response has all of
    /// its bytes.
    pub fn is_all_but_ended(&self, id: u32) -> bool {
        self.streams.find(id).is_some_and(|stream| stream.we_ended && stream.is_answered && stream.expected == Some(0))
    }

    /// The code by which either side has reset a stream.
    pub fn reset_code(&self, id: u32) -> Option<Code> {
        match self.streams.find(id)?.reset? {
            Reset::ByPeer(code) | Reset::ByUs(code) => Some(code),
        }
    }

    /// Whether this side's GOAWAY or the peer's has ended the opening of streams, or the connection has failed.
    pub fn is_going(&self) -> bool {
        self.peer_last.is_some() || self.last_taken.is_some() || self.failure.is_some() || self.next_id > ID_MOST
    }

    /// Whether the peer's SETTINGS have come.
    pub fn is_known(&self) -> bool {
        self.has_settings
    }

    /// Resets a stream that has not ended. It stays until it is released.
    pub fn reset(&mut self, id: u32, code: Code) {
        let Some(stream) = self.streams.get(id) else { return };
        if stream.reset.is_some() || stream.peer_ended && stream.we_ended {
            return;
        }
        stream.reset = Some(Reset::ByUs(code));
        self.given_up += u64::from(code == Code::CANCEL);
        frame::reset(id, code, &mut self.out);
        self.drop_data(id);
    }

    /// Number of streams that this side has reset with CANCEL.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Forgets a stream; one that has not ended is reset.
    pub fn release(&mut self, id: u32, code: Code) {
        self.reset(id, code);
        self.drop_data(id);
        if let Some(stream) = self.streams.remove(id) {
            self.streams.remember(id, matches!(stream.reset, Some(Reset::ByUs(_))));
        }
        self.credit_connection();
    }

    /// Sends a PING, which comes back as [`Event::Pong`]. An earlier one is not waited for any more.
    pub fn ping(&mut self, payload: [u8; 8]) {
        self.awaited_ping = Some(payload);
        frame::ping(&payload, 0, &mut self.out);
    }

    /// Announces the end: the peer shall open no streams, those that are on their way are taken. [`Connection::goaway`]
    /// follows, at the [`Event::Pong`] of a PING or after a while.
    pub fn drain(&mut self) {
        if self.last_taken.is_none() {
            self.last_taken = Some(ID_MOST);
            frame::goaway(ID_MOST, Code::NO_ERROR, &mut self.out);
        }
    }

    /// Takes no more streams; open streams continue.
    pub fn goaway(&mut self, code: Code) {
        if self.last_taken.is_none_or(|last| last == ID_MOST) {
            self.last_taken = Some(self.last_received);
            frame::goaway(self.last_received, code, &mut self.out);
        }
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(failure);
            frame::goaway(self.last_received, failure.code, &mut self.out);
            self.events.push_back(Event::Failed(failure));
        }
    }

    /// The window that a new stream's peer may count on. A client may open streams before it has read this side's SETTINGS;
    /// a server has read a client's before the head of any stream.
    pub(super) fn first_window(&self) -> i64 {
        let ours = i64::from(self.limits.stream_window);
        if self.is_confirmed || !self.is_server { ours } else { ours.max(i64::from(WINDOW)) }
    }

    pub(super) fn new_stream(&self, id: u32) -> Stream {
        let stream = Stream::new(id, self.peer.initial_window, self.first_window(), self.limits.stream_window);
        Stream { opened_at: self.now, ..stream }
    }
}
