//! A stream: the source of an exchange's request body, and the sink of its answer.

use super::Multiplexed;
use crate::Cancel;
use socket2::SockRef;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use terse_http::h2::{Code, Connection};
use terse_message::hop::WEBSOCKET_ACCEPT;
use terse_message::{Fields, Response};

/// The part of a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    Nothing,
    Head,
    End,
}

/// The peer's expectation of its stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asks {
    /// An answer.
    Answer,
    /// Another protocol, by an extended CONNECT (RFC 8441): 200 in the place of 101.
    Protocol {
        /// The value of `Sec-WebSocket-Accept` that a server must answer with, or that its client gets.
        accept: Option<Box<str>>,
        /// Its name, where a server is asked.
        name: Box<[u8]>,
    },
}

/// Continuation after the data that a stream sends.
#[derive(Clone, Copy)]
pub enum Then<'a> {
    /// More data.
    More,
    /// The end, with these trailers.
    End(&'a Fields),
}

/// Result of a call of [`Http2Stream::poll_send`].
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes of data that were taken.
    pub data: usize,
    /// Bytes that count as sent: of data, and of heads as they are encoded.
    pub counted: usize,
    /// All of it was taken.
    pub is_done: bool,
}

/// A response's head that waits.
#[derive(Default)]
struct Held {
    response: Option<Box<Response>>,
    /// No body follows.
    ends: bool,
}

/// A stream of a connection: the transport of an exchange. Dropped before its end, it resets the stream.
pub struct Http2Stream {
    pub(super) connection: Rc<Multiplexed>,
    /// Its number; 0 of a stream to a server that is not open.
    pub(super) id: Cell<u32>,
    /// Cancels the exchange, where a client has opened the stream.
    cancel: Option<Rc<Cancel>>,
    /// Data that was taken out of the codec and not yet read, from its cursor on.
    received: RefCell<Received>,
    held: RefCell<Held>,
    pub(super) stage: Cell<Stage>,
    pub(super) asks: RefCell<Asks>,
    /// End of a request's head in the output of its connection, in bytes.
    pub(super) head_at: Cell<u64>,
    /// The code of the reset, where the stream has not ended.
    pub(super) code: Cell<Code>,
}

#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    at: usize,
}

impl Http2Stream {
    pub(super) fn new(connection: &Rc<Multiplexed>, id: u32, cancel: Option<Rc<Cancel>>) -> Http2Stream {
        Http2Stream {
            connection: connection.clone(),
            id: Cell::new(id),
            cancel,
            received: RefCell::default(),
            held: RefCell::default(),
            stage: Cell::new(Stage::Nothing),
            asks: RefCell::new(Asks::Answer),
            head_at: Cell::new(0),
            code: Cell::new(Code::INTERNAL_ERROR),
        }
    }

    /// The stream's number.
    pub fn id(&self) -> u32 {
        self.id.get()
    }

    /// Cancels its exchange, where a client has opened it.
    pub fn cancel(&self) -> Option<&Rc<Cancel>> {
        self.cancel.as_ref()
    }

    /// Whether it leads to a server.
    pub(super) fn is_to_server(&self) -> bool {
        self.cancel.is_none()
    }

    /// The connection that carries it.
    pub fn connection(&self) -> &Multiplexed {
        &self.connection
    }

    /// Sets the expectation of its peer.
    pub fn expect(&self, asks: Asks) {
        self.asks.replace(asks);
    }

    /// The connection's socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        self.connection.io.socket()
    }

    /// The connection's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.connection.io.descriptor()
    }

    /// The connection's own address, over IP.
    pub fn local(&self) -> Option<SocketAddr> {
        self.connection.io.local()
    }

    /// Has the whole connection closed at once.
    pub fn kill(&self) {
        self.connection.is_killed.set(true);
        self.connection.wake_task();
    }

    /// Bytes of data that are still to be read, if the client has ended its side.
    pub fn left(&self) -> Option<usize> {
        let codec = self.connection.codec.borrow();
        let received = self.received.borrow();
        codec.has_peer_ended(self.id()).then(|| codec.data(self.id()).len() + received.bytes.len() - received.at)
    }

    /// Whether all data has been read and no more comes.
    pub fn has_ended(&self) -> bool {
        self.left() == Some(0)
    }

    /// Takes the trailers, once the body has ended.
    pub fn take_trailers(&self) -> Option<Box<Fields>> {
        self.connection.codec.borrow_mut().take_trailers(self.id())
    }

    /// Whether trailers have come.
    pub fn has_trailers(&self) -> bool {
        self.connection.codec.borrow().has_trailers(self.id())
    }

    /// Reads data; 0 at the end of the body.
    pub fn poll_receive(&self, cx: &Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut codec = self.connection.codec.borrow_mut();
        let mut received = self.received.borrow_mut();
        let Received { bytes, at } = &mut *received;
        if *at == bytes.len() {
            bytes.clear();
            *at = 0;
            codec.take_data(self.id(), bytes);
        }
        let n = room.len().min(bytes.len() - *at);
        if n == 0 {
            return self.nothing_left(&codec, cx);
        }
        room[..n].copy_from_slice(&bytes[*at..*at + n]);
        *at += n;
        if *at == bytes.len() && bytes.capacity() > KEPT_BYTES {
            (*bytes, *at) = (Vec::new(), 0);
        }
        codec.consume(self.id(), n);
        let owes = !codec.output().is_empty();
        drop((codec, received));
        if owes {
            self.connection.wake_task();
        }
        Poll::Ready(Ok(n))
    }

    /// Whether there is data to read, or the end of the body.
    pub fn poll_readable(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let codec = self.connection.codec.borrow();
        let received = self.received.borrow();
        if received.at < received.bytes.len() || !codec.data(self.id()).is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.nothing_left(&codec, cx).map_ok(drop)
    }

    fn nothing_left(&self, codec: &Connection, cx: &Context<'_>) -> Poll<io::Result<usize>> {
        if self.is_to_server() && codec.is_complete(self.id()) {
            return Poll::Ready(Ok(0));
        }
        if codec.is_reset(self.id()) || self.connection.is_broken() || self.is_to_server() && codec.failure().is_some() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if codec.has_peer_ended(self.id()) {
            return Poll::Ready(Ok(0));
        }
        if self.connection.is_half_closed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        self.wait(cx);
        Poll::Pending
    }

    /// Whether the client has left: its stream was reset, or its connection has ended.
    pub fn poll_left(&self, cx: &Context<'_>) -> Poll<()> {
        if self.connection.is_half_closed() || self.connection.codec.borrow().is_reset(self.id()) {
            return Poll::Ready(());
        }
        self.wait(cx);
        Poll::Pending
    }

    pub(super) fn wait(&self, cx: &Context<'_>) {
        if let Some(slot) = self.connection.streams.borrow_mut().get(self.id())
            && !slot.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            slot.waker = Some(cx.waker().clone());
        }
    }

    /// Keeps a response's head until further bytes are sent; `ends` where no body follows.
    pub fn hold(&self, response: &Response, ends: bool) {
        let mut held = self.held.borrow_mut();
        let mut head = held.response.take().unwrap_or_else(|| self.connection.empty_head());
        head.copy_from(response);
        if matches!(*self.asks.borrow(), Asks::Protocol { .. }) {
            head.fields.remove(WEBSOCKET_ACCEPT);
            head.status = match response.status {
                101 => 200,
                // It would open the tunnel that the server has not opened.
                200..300 => 502,
                status => status,
            };
        }
        *held = Held { response: Some(head), ends };
    }

    /// Whether a server's 101 answers the protocol that the client has asked for.
    pub fn is_accepted(&self, response: &Response) -> bool {
        match &*self.asks.borrow() {
            Asks::Protocol { accept: Some(accept), .. } => {
                response.fields.get(WEBSOCKET_ACCEPT).is_some_and(|value| value == accept.as_bytes())
            }
            Asks::Protocol { accept: None, .. } | Asks::Answer => true,
        }
    }

    /// Ends the message with the waiting head, whatever length it gives.
    pub fn end_with_head(&self) {
        self.held.borrow_mut().ends = true;
    }

    /// Forgets a head that waits.
    pub fn take_back(&self) {
        self.held.borrow_mut().response = None;
    }

    /// Sends the head that waits, then the parts from `done` on, and `then`. Ready with some progress, or with the end of the
    /// stream.
    pub fn poll_send(&self, cx: &Context<'_>, parts: [&[u8]; 3], mut done: usize, then: Then<'_>) -> Poll<io::Result<Progress>> {
        let connection = &*self.connection;
        let mut codec = connection.codec.borrow_mut();
        let had_output = !codec.output().is_empty();
        if connection.is_broken() || codec.is_reset(self.id()) || self.is_to_server() && codec.failure().is_some() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let mut progress = Progress { data: 0, counted: 0, is_done: false };
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let is_bare_end = matches!(then, Then::End(trailers) if trailers.is_empty());
        let mut held = self.held.borrow_mut();
        if held.response.is_some() && codec.output().len() >= 2 * connection.room {
            self.wait_in_turn(cx);
            return Poll::Pending;
        }
        if let Some(response) = held.response.take() {
            let before = codec.output().len();
            let is_final = response.status >= 200;
            let ends = is_final && (held.ends || is_bare_end && done == total);
            codec.send_response(self.id(), &response, ends);
            connection.give_head(response);
            progress.counted += codec.output().len() - before;
            if is_final {
                self.stage.set(if ends { Stage::End } else { Stage::Head });
            }
        }
        drop(held);
        if self.stage.get() == Stage::End || total == done && matches!(then, Then::More) {
            // Bytes after an end are dropped.
            (progress.data, progress.is_done) = (total - done, true);
            drop(codec);
            connection.wake_task();
            return Poll::Ready(Ok(progress));
        }
        let mut share = self.share();
        let mut skip = done;
        for (index, part) in parts.iter().enumerate() {
            let rest = part.get(skip.min(part.len())..).unwrap_or_default();
            skip -= part.len() - rest.len();
            if rest.is_empty() || share == 0 {
                continue;
            }
            let piece = rest.get(..share).unwrap_or(rest);
            let is_last = piece.len() == rest.len() && parts.iter().skip(index + 1).all(|part| part.is_empty());
            let n = codec.send_data(self.id(), piece, is_last && is_bare_end);
            done += n;
            share -= n;
            progress.data += n;
            if n < rest.len() {
                break;
            }
        }
        progress.counted += progress.data;
        if done == total
            && let Then::End(trailers) = then
        {
            match () {
                () if !trailers.is_empty() => drop(codec.send_trailers(self.id(), trailers)),
                () if progress.data == 0 => drop(codec.send_data(self.id(), b"", true)),
                () => {}
            }
            self.stage.set(Stage::End);
        }
        progress.is_done = done == total;
        self.spent(progress.data);
        // A client that sends nothing more opens no window.
        let is_stuck = connection.is_half_closed() && (codec.window(self.id()) == 0 || codec.window(0) == 0);
        if progress.data == 0 && !progress.is_done {
            // The share may have ended with the window: then nothing was tried, and the codec must be asked to report when it
            // opens.
            codec.capacity_of(self.id());
        }
        let waits_for_room = progress.data == 0 && !progress.is_done && codec.window(self.id()) > 0;
        let appended = !had_output && !codec.output().is_empty();
        drop(codec);
        if appended {
            connection.wake_task();
        }
        if progress.is_done || progress.counted > 0 {
            return Poll::Ready(Ok(progress));
        }
        if is_stuck {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if waits_for_room {
            self.wait_in_turn(cx)
        } else {
            self.wait(cx)
        }
        Poll::Pending
    }

    /// Whether the peer takes data of this stream, as far as its window says.
    pub fn is_open(&self) -> bool {
        self.connection.codec.borrow().window(self.id()) > 0
    }

    /// The bytes of this stream that the peer takes now, as far as its window and its connection's say; none while the output is full.
    pub fn takes(&self) -> usize {
        let mut codec = self.connection.codec.borrow_mut();
        if codec.room() == 0 { 0 } else { codec.window(self.id()).min(codec.window(0)) }
    }

    /// Whether data has come that was not read.
    pub fn has_data(&self) -> bool {
        let received = self.received.borrow();
        received.at < received.bytes.len() || !self.connection.codec.borrow().data(self.id()).is_empty()
    }

    /// Gives back the memory of data that was read.
    pub fn release_if_empty(&self) {
        let mut received = self.received.borrow_mut();
        if received.at == received.bytes.len() {
            *received = Received::default();
        }
    }

    /// Waits until data of this stream can be sent.
    pub fn poll_room(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if self.poll_open(cx)?.is_pending() {
            return Poll::Pending;
        }
        let mut codec = self.connection.codec.borrow_mut();
        if codec.room() > 0 {
            return Poll::Ready(Ok(()));
        }
        if self.connection.is_half_closed() && codec.window(0) == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        drop(codec);
        self.wait_in_turn(cx);
        Poll::Pending
    }

    /// Waits until the client takes data of this stream.
    pub fn poll_open(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let mut codec = self.connection.codec.borrow_mut();
        if self.connection.is_broken() || codec.is_reset(self.id()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if codec.window(self.id()) > 0 {
            return Poll::Ready(Ok(()));
        }
        if self.connection.is_half_closed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        // Asked for, the codec reports when it opens.
        codec.capacity_of(self.id());
        self.wait(cx);
        Poll::Pending
    }

    /// Ends the stream's answer.
    pub fn poll_end(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        // An interim answer that waits has no end.
        let holds_answer = {
            let held = self.held.borrow();
            held.response.as_ref().is_some_and(|response| response.status >= 200)
        };
        if self.stage.get() != Stage::Head && !holds_answer {
            return Poll::Ready(Ok(()));
        }
        self.poll_send(cx, [b""; 3], 0, Then::End(Fields::none())).map_ok(drop)
    }

    /// The number of bytes that the stream may still append in this turn.
    fn share(&self) -> usize {
        let mut streams = self.connection.streams.borrow_mut();
        let (turn, share) = (streams.turn, streams.share);
        streams.get(self.id()).map_or(0, |slot| if slot.turn == turn { share.saturating_sub(slot.sent) } else { share })
    }

    fn spent(&self, bytes: usize) {
        let mut streams = self.connection.streams.borrow_mut();
        let turn = streams.turn;
        if let Some(slot) = streams.get(self.id()) {
            slot.sent = if slot.turn == turn { slot.sent + bytes } else { bytes };
            slot.turn = turn;
        }
    }

    /// Waits for room after the streams that wait already.
    fn wait_in_turn(&self, cx: &Context<'_>) {
        self.wait(cx);
        let mut streams = self.connection.streams.borrow_mut();
        let id = self.id();
        if streams.get(id).is_some_and(|slot| !std::mem::replace(&mut slot.is_waiting, true)) {
            streams.waiting.push_back(id);
        }
        drop(streams);
        // Whatever holds the room is on its way out, or has just gone.
        self.connection.wake_task();
    }

    /// Whether some of an answer was sent.
    pub fn has_begun(&self) -> bool {
        self.stage.get() > Stage::Nothing
    }

    /// Clears the state of an attempt that failed: another one begins.
    pub fn begin_again(&self) {
        self.take_back();
        self.code.set(Code::INTERNAL_ERROR);
    }

    /// Sets the code of the reset that ends the stream, if it has to be reset, to that of a server's reset. Codes for a
    /// request that was not processed are not passed on: some of the answer may have been.
    pub fn pass_code(&self, code: u32) {
        if ![Code::NO_ERROR, Code::REFUSED_STREAM, Code::HTTP_1_1_REQUIRED].contains(&Code(code)) {
            self.code.set(Code(code));
        }
    }
}

impl fmt::Debug for Http2Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Http2Stream").field("id", &self.id()).field("stage", &self.stage.get()).finish_non_exhaustive()
    }
}

/// The memory for received data that a stream keeps.
const KEPT_BYTES: usize = 16 * 1024;

impl Drop for Http2Stream {
    fn drop(&mut self) {
        if self.is_to_server() {
            self.give_up();
        }
        let room = std::mem::take(&mut self.received.get_mut().bytes);
        // An answer that is whole ends the exchange well, even if its request is not (RFC 9113 section 8.1).
        let code = if self.stage.get() == Stage::End { Code::NO_ERROR } else { self.code.get() };
        let mut codec = self.connection.codec.borrow_mut();
        codec.release(self.id(), code);
        codec.recycle(room);
        drop(codec);
        let mut streams = self.connection.streams.borrow_mut();
        if let Some(place) = streams.place(self.id())
            && let Some(slot) = streams.open.remove(place)
            && slot.is_waiting
        {
            streams.waiting.retain(|id| *id != self.id());
        }
        drop(streams);
        self.connection.wake_task();
    }
}
