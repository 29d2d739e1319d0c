//! The client's side of an exchange.

use super::framing::AtHand;
use super::replay::Recording;
use super::sender::Peer;
use super::{After, Broken, Ended, Ends, Framing, Held, Lend, Parts, Peek, Sender};
use crate::connection::downstream::ClientConnection;
use crate::connection::handshake;
use crate::figures::Figures;
use crate::io::{Buffer, Http2Stream, Pools, Timer};
use socket2::SockRef;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use terse_http::h1::{self, Parsed, Reading};
use terse_message::{BodyLength, Known, Malformed, Request, Response};

/// The client's side of an exchange, on a connection of HTTP/1, on a stream of HTTP/2, or in `mode tcp`.
pub struct Client<'c> {
    connection: &'c mut ClientConnection,
    /// The request's head, where it arrived before the exchange began.
    arrived: Option<&'c mut Request>,
    /// The rest of the request's body.
    framing: Framing,
    /// A stored body that is sent in the place of a server's, and a buffer that stays empty.
    stored: (Framing, Buffer),
    out: Vec<u8>,
    limit: Cell<Option<Duration>>,
    /// The break of the client's connection before its head was whole.
    broken: Option<Broken>,
}

/// Why there is no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRequest {
    /// Its head breaks the protocol.
    Malformed(Malformed),
    /// It did not come, or not all of it.
    Broken(Broken),
}

impl<'c> Client<'c> {
    /// A side of which nothing is known yet, which writes by way of `out`, an empty buffer.
    pub fn new(connection: &'c mut ClientConnection, out: Vec<u8>) -> Client<'c> {
        Client {
            connection,
            arrived: None,
            framing: Framing::Done,
            stored: Default::default(),
            out,
            limit: Cell::new(None),
            broken: None,
        }
    }

    /// The side of a request whose head has arrived.
    pub fn with_head(connection: &'c mut ClientConnection, head: &'c mut Request, out: Vec<u8>) -> Client<'c> {
        Client { arrived: Some(head), ..Client::new(connection, out) }
    }

    /// The side of a client that has its answer, and whose request has not ended.
    pub fn with_rest(connection: &'c mut ClientConnection, rest: Framing) -> Client<'c> {
        Client { framing: rest, ..Client::new(connection, Vec::new()) }
    }

    /// Takes the buffer that it writes by way of.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes the rest of the request's body, once the exchange has ended.
    pub fn take_rest(&mut self) -> Framing {
        std::mem::take(&mut self.framing)
    }

    /// Takes the head of the request; waits for it, `limit` at most, where it has not arrived. Returns the number of its
    /// bytes on the wire; `None` where they are a connection's, not this exchange's.
    pub async fn head(
        &mut self,
        request: &mut Request,
        reading: Reading,
        limit: Option<Duration>,
    ) -> Result<Option<usize>, NoRequest> {
        if let Some(head) = self.arrived.take() {
            std::mem::swap(request, head);
            return Ok(None);
        }
        let mut waits = false;
        loop {
            let buffer = &mut self.connection.buffer;
            match h1::parse_request_with(buffer.filled(), request, reading).map_err(NoRequest::Malformed)? {
                Parsed::Complete(n) => {
                    buffer.consume(n);
                    return Ok(Some(n));
                }
                Parsed::Partial if buffer.is_full() => return Err(NoRequest::Malformed(h1::too_large(buffer.filled()))),
                Parsed::Partial => {}
            }
            if let Some(broken) = self.broken.take() {
                return Err(NoRequest::Broken(broken));
            }
            if !std::mem::replace(&mut waits, true) {
                self.connection.timer.set(limit);
            }
            self.connection.more().await.map_err(NoRequest::Broken)?;
        }
    }

    /// Records that the client broke off while its head was waited for.
    pub fn broke_off(&mut self, broken: Broken) {
        self.broken = Some(broken);
    }

    /// Reads more, under the deadline that the timer has; takes a buffer where it has none.
    pub async fn more(&mut self, pools: &Pools) -> Result<(), Broken> {
        if self.connection.buffer.is_released() {
            self.connection.buffer = pools.small.get().await;
        }
        self.connection.more().await
    }

    /// Reads more, without a limit; false when nothing more comes. While it waits with nothing in hand, it holds no buffer.
    pub async fn more_patiently(&mut self, pools: &Pools) -> bool {
        self.connection.more_patiently(pools).await
    }

    /// The body that follows this head.
    #[inline]
    pub fn begin(&mut self, request: &Request) {
        if !(matches!(self.framing, Framing::Chunked(_) | Framing::Frames(_)) && request.body == BodyLength::Framed) {
            self.framing = Framing::of(request);
        }
    }

    /// Gives the request's body the length that is known once its frames of HTTP/2 have all come: rules see that it is whole,
    /// and its server gets its length. Trailers need a body in chunks.
    pub fn settle_length(&mut self, request: &mut Request) {
        if request.body == BodyLength::Framed
            && let Some(frames) = self.stream()
            && let Some(left) = frames.left()
            && !frames.has_trailers()
        {
            let bytes = self.connection.buffer.filled().len() + left;
            request.body = BodyLength::Exact(bytes as u64);
            request.fields.set(Known::ContentLength.name().as_bytes(), bytes.to_string().as_bytes());
            self.framing = Framing::of(request);
        }
    }

    /// Bytes of the body that have come, counted up to about `enough`, and whether the body ends with them.
    ///
    /// # Errors
    /// The fault in its chunks.
    pub fn at_hand(&self, enough: u64) -> Result<(u64, bool), Malformed> {
        let AtHand { bytes, whole, malformed } = self.framing.at_hand(self.connection.buffer.filled(), enough);
        let has_ended = || self.stream().is_some_and(|stream| stream.has_ended());
        match malformed {
            Some(malformed) => Err(malformed),
            None => Ok((bytes, whole || has_ended())),
        }
    }

    /// The part of the body that is here, without frames. It stays here.
    pub fn data(&mut self) -> Vec<u8> {
        let length = match self.framing {
            Framing::Exact(left) => BodyLength::Exact(left),
            Framing::Done => BodyLength::None,
            _ => BodyLength::Framed,
        };
        let peek = self.lend();
        let data = peek.body(length).bytes.to_vec();
        self.restore(peek);
        data
    }

    /// Drops the rest of the request from the bytes that have come, if all of it is there; returns whether nothing is left to
    /// come. Frames of HTTP/2 belong to their stream, and end with it.
    pub fn skip_body(&mut self) -> bool {
        self.stream().is_some() || self.framing.skip(&mut self.connection.buffer)
    }

    /// Whether the buffer of the client's bytes is full.
    pub fn is_full(&self) -> bool {
        !self.connection.buffer.is_released() && self.connection.buffer.is_full()
    }

    /// Whether nothing is left of the request's body.
    pub fn is_done(&self) -> bool {
        self.framing.is_done()
    }

    /// Whether some of the body comes a second time.
    pub fn comes_again(&self) -> bool {
        matches!(self.framing, Framing::Again(_))
    }

    /// Puts the bytes of the body that were sent in front of the rest, for another attempt.
    pub fn rewind(&mut self, recording: Option<Recording>) {
        self.out.clear();
        if let Some(recording) = recording {
            self.framing = recording.rewind(std::mem::take(&mut self.framing)).0;
        }
        self.stream().inspect(|stream| stream.begin_again());
    }

    /// Treats all further bytes as opaque until the connection closes, both ways: a tunnel, or bytes that can no longer be
    /// read as a message.
    pub fn open(&mut self) {
        self.framing = Framing::UntilClose;
    }

    /// Bytes that have come and have not gone on, frames included.
    pub fn bytes(&self) -> &[u8] {
        self.connection.buffer.filled()
    }

    /// Whether the client has closed its half; asked of the kernel.
    pub fn has_ended(&self) -> bool {
        self.connection.io.has_ended()
    }

    /// Whether the client has sent bytes, read or not.
    pub fn has_spoken(&mut self, pools: &Pools) -> bool {
        let ClientConnection { io, buffer, .. } = &mut *self.connection;
        if buffer.is_released() {
            match pools.small.take() {
                Some(taken) => *buffer = taken,
                None => return false,
            }
        }
        let mut now = Context::from_waker(Waker::noop());
        !buffer.is_empty() || matches!(io.split().0.poll_read(&mut now, buffer), Poll::Ready(Ok(1..)))
    }

    /// Gives an empty buffer back: nothing is expected of the client now.
    pub fn release(&mut self) {
        self.connection.buffer.release_if_empty();
    }

    /// The client's timer.
    pub fn timer(&self) -> &Timer {
        &self.connection.timer
    }

    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        self.connection.io.socket()
    }

    fn stream(&self) -> Option<&Rc<Http2Stream>> {
        self.connection.io.stream()
    }

    /// The identifier of the stream of HTTP/2; 0 for other connections.
    pub fn stream_id(&self) -> u32 {
        self.stream().map_or(0, |stream| stream.id())
    }

    /// Ends the connection that carries the stream of HTTP/2.
    pub fn kill(&self) {
        self.stream().inspect(|stream| stream.kill());
    }

    /// Takes back bytes that were written and have not left: they are no part of the answer.
    pub fn take_back(&mut self) {
        self.out.clear();
        self.stream().inspect(|stream| stream.take_back());
    }

    /// Makes the end look like a broken connection, where there is TLS to tell the difference.
    pub fn break_off(&self) {
        self.connection.io.break_off();
    }

    /// Takes bytes that have come and are not read any more.
    pub fn discard(&self) {
        self.connection.io.discard();
    }

    /// Waits for the handshake of a client whose request came as early data, `limit` at most.
    pub async fn settled(&mut self, limit: Option<Duration>) -> Result<(), terse_tls::Failure> {
        handshake::settled(self.connection, limit).await
    }

    /// Whether the client has closed; bytes that it sends in advance are kept. `at_any_close`: whatever it has sent before.
    pub fn poll_left(&mut self, cx: &mut Context<'_>, pools: &Pools, at_any_close: bool) -> bool {
        let ClientConnection { io, buffer, .. } = &mut *self.connection;
        if let Some(stream) = io.stream() {
            return stream.poll_left(cx).is_ready();
        }
        // Without room for the bytes that it sends in advance, its close cannot be seen.
        if !buffer.is_released() && buffer.is_full() || io.poll_readable(cx).is_pending() {
            return false;
        }
        if buffer.is_released() {
            match pools.small.take() {
                Some(taken) => *buffer = taken,
                None => return false,
            }
        }
        loop {
            match io.split().0.poll_read(cx, buffer) {
                Poll::Pending => return false,
                Poll::Ready(Ok(n)) if n > 0 && !buffer.is_full() => {}
                Poll::Ready(Ok(n)) => return n == 0 && (at_any_close || buffer.is_empty()),
                Poll::Ready(Err(_)) => return true,
            }
        }
    }

    fn parts(&mut self) -> Parts<'_> {
        let Client { connection, framing, out, limit, .. } = self;
        let ClientConnection { io, buffer, timer } = &mut **connection;
        Parts { io, buffer, timer, framing, out, limit }
    }

    /// Both directions, which count into a stream's figures. `limit`: time limit of the client's silence, and of its taking
    /// nothing.
    pub fn ends<'a>(&'a mut self, pools: &'a Pools, figures: &'a Figures, limit: Option<Duration>) -> Ends<'a> {
        self.limit.set(limit);
        let mut ends = self.parts().ends(pools, &figures.bytes_in, &figures.bytes_out, limit);
        ends.from.is_client = true;
        ends
    }

    /// The way to the client alone.
    pub fn sender<'a>(&'a mut self, figures: &'a Figures, limit: Option<Duration>) -> Sender<'a> {
        let Parts { io, timer, out, .. } = self.parts();
        Sender::new(io.split().1, out, timer, limit, &figures.bytes_out)
    }

    /// The way to the client, and a stored body in the place of a server's.
    pub fn stored<'a>(
        &'a mut self,
        body: Option<Held>,
        pools: &'a Pools,
        figures: &'a Figures,
        limit: Option<Duration>,
    ) -> Ends<'a> {
        self.stored.0 = body.map_or(Framing::Done, Framing::Held);
        self.limit.set(None);
        let Client { connection, stored: (framing, buffer), out, limit: cell, .. } = self;
        let ClientConnection { io, timer, .. } = &mut **connection;
        let parts = Parts { io, buffer, timer, framing, out, limit: cell };
        parts.ends(pools, &figures.bytes_from_server, &figures.bytes_out, limit)
    }

    /// Sends an interim response.
    pub async fn interim(
        &mut self,
        response: &mut Response,
        to: &Peer<'_>,
        figures: &Figures,
        limit: Option<Duration>,
    ) -> io::Result<()> {
        let Parts { io, timer, .. } = self.parts();
        let mut out = Vec::new();
        let mut sender = Sender::new(io.split().1, &mut out, timer, limit, &figures.bytes_out);
        sender.bare(response, to);
        sender.flush().await
    }

    /// The continuation of the connection; `length` is the framing of the response's body.
    pub fn after(&self, ended: Ended, length: BodyLength, must_close: bool) -> After {
        ended.after(length, must_close, !self.connection.buffer.is_empty())
    }
}

impl Lend for Client<'_> {
    fn lend(&mut self) -> Peek {
        Peek::of(&mut self.connection.buffer, &self.framing)
    }

    fn restore(&mut self, peek: Peek) {
        self.connection.buffer = peek.into_buffer();
    }
}
