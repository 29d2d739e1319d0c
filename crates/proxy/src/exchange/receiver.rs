//! A body on its way in: the message's framing taken off.

use super::framing::{AtHand, Framing};
use super::peek::{Lend, Peek};
use crate::io::http2::Fate;
use crate::io::{Buffer, Http2Stream, Pipe, Pools, Reader, Timer};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use terse_http::h1::head::parse_trailers;
use terse_http::h1::{self, Parsed, Step};
use terse_message::body::Listener;
use terse_message::{BodyLength, Fields, Malformed, Response};

/// The next part of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The number of bytes of data, at [`Receiver::data`].
    Data(usize),
    /// The end of the body.
    End,
}

/// Why a body broke off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The peer closed before the end.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// The peer was silent too long.
    Timeout,
    /// The framing is wrong.
    Malformed(Malformed),
}

/// Why no head comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoHead {
    /// The connection broke off.
    Broken {
        /// The kind of the break.
        broken: Broken,
        /// Whether nothing of the head had come.
        is_empty: bool,
    },
    /// The stream of HTTP/2 broke off.
    Stream(Fate),
}

/// A body and where it comes from.
pub struct Receiver<'a> {
    /// The half that reads.
    pub(super) reader: Reader<'a>,
    /// Bytes that were read and have not yet gone on.
    pub(super) buffer: &'a mut Buffer,
    /// The rest of the body.
    pub(super) framing: &'a mut Framing,
    /// The pools of buffers.
    pools: &'a Pools,
    /// Whether the last read filled its buffer: then the next one gets a larger one.
    full_reads: bool,
    /// Whether the next buffer is a larger one because the last one was, and was given back before the peer paused.
    stays_large: bool,
    /// Whether as little as may be is read at a time: the body is not taken yet.
    pub is_frugal: bool,
    /// The most that is read at once of a peer whose connection carries other bodies, too: what is left there need not be held here.
    most: usize,
    /// Whether a peer that closes without a TLS close alert has broken off: where its end is that of the body (RFC 9112
    /// section 9.8).
    pub(super) minds_truncation: bool,
    /// Whether the peer is the client: output made of its bytes is of no use once it has gone.
    pub(super) is_client: bool,
    /// The break of the peer's connection, if that was seen ahead: bytes that have come go on first, then the next read
    /// returns it.
    broken: Option<Broken>,
    /// The peer's timer.
    timer: &'a Timer,
    /// Time limit of the peer's silence; it may change meanwhile.
    limit: &'a Cell<Option<Duration>>,
    /// Counts the bytes that have come.
    count: &'a Cell<u64>,
    /// A further listener to the body.
    listener: Option<Box<dyn Listener>>,
}

impl<'a> Receiver<'a> {
    /// A body of which nothing has been looked at yet.
    pub(super) fn new(
        reader: Reader<'a>,
        buffer: &'a mut Buffer,
        framing: &'a mut Framing,
        pools: &'a Pools,
        timer: &'a Timer,
        limit: &'a Cell<Option<Duration>>,
        count: &'a Cell<u64>,
    ) -> Receiver<'a> {
        let (full_reads, stays_large, broken, listener) = (false, false, None, None);
        let (is_frugal, most, minds_truncation, is_client) = (false, usize::MAX, false, false);
        Receiver {
            reader,
            buffer,
            framing,
            pools,
            full_reads,
            stays_large,
            is_frugal,
            most,
            minds_truncation,
            is_client,
            broken,
            timer,
            limit,
            count,
            listener,
        }
    }

    /// The peer's timer.
    pub fn timer(&self) -> &'a Timer {
        self.timer
    }

    /// Time limit of the peer's silence.
    pub fn limit(&self) -> &'a Cell<Option<Duration>> {
        self.limit
    }

    /// The pools of buffers.
    pub fn pools(&self) -> &'a Pools {
        self.pools
    }
}

impl Receiver<'_> {
    /// The next part, as far as it has been read; `None` when more must be read.
    pub fn part(&mut self) -> Result<Option<Part>, Broken> {
        let waiting = self.buffer.filled().len();
        Ok(match self.framing {
            Framing::Done => Some(Part::End),
            Framing::Held(held) => Some(match held.data().len() {
                0 => Part::End,
                n => Part::Data(n),
            }),
            Framing::Again(again) => Some(Part::Data(again.data().len())),
            Framing::Frames(frames) if waiting == 0 => frames.has_ended.then_some(Part::End),
            Framing::Exact(_) | Framing::UntilClose if waiting == 0 => None,
            Framing::Frames(_) => Some(Part::Data(waiting)),
            Framing::Exact(left) => Some(Part::Data((*left).min(waiting as u64) as usize)),
            Framing::UntilClose => Some(Part::Data(waiting)),
            Framing::Chunked(chunks) if chunks.found > 0 => Some(Part::Data(chunks.found)),
            Framing::Chunked(chunks) => {
                let (used, step) = chunks.decoder.step(self.buffer.filled()).map_err(Broken::Malformed)?;
                match step {
                    Step::Data(range) => {
                        self.buffer.consume(range.start);
                        chunks.found = range.len();
                        Some(Part::Data(chunks.found))
                    }
                    Step::More => {
                        self.buffer.consume(used);
                        None
                    }
                    Step::End => {
                        self.buffer.consume(used);
                        if !chunks.decoder.trailers().is_empty() {
                            let parsed = parse_trailers(chunks.decoder.trailers(), &mut chunks.trailers);
                            parsed.inspect_err(|malformed| chunks.decoder.fail(*malformed)).map_err(Broken::Malformed)?;
                        }
                        Some(Part::End)
                    }
                }
            }
        })
    }

    /// Whether the buffer cannot hold more, and no larger buffer takes its place.
    pub fn is_full(&self) -> bool {
        self.buffer.is_full() && !self.buffer.is_released() && !self.is_tiny()
    }

    fn is_tiny(&self) -> bool {
        !self.buffer.is_released() && self.buffer.size() < self.pools.small.size()
    }

    /// The body's length, when it is known.
    pub fn known_bytes(&self) -> Option<u64> {
        match &*self.framing {
            Framing::Exact(left) => Some(*left),
            Framing::Held(held) => Some(held.left()),
            Framing::Frames(frames) => frames.left,
            Framing::Again(again) => match again.rest() {
                Framing::Exact(left) => Some(again.data().len() as u64 + *left),
                Framing::Done => Some(again.data().len() as u64),
                _ => None,
            },
            _ => None,
        }
    }

    /// Bytes of data that have been read and have not gone on, counted up to about `enough`, and whether the body ends with
    /// them. To be called after [`Receiver::part`].
    pub fn at_hand(&self, enough: u64) -> (u64, bool) {
        let AtHand { bytes, whole, .. } = self.framing.at_hand(self.buffer.filled(), enough);
        match &*self.framing {
            Framing::Frames(frames) if !frames.has_ended => {
                let left = self.reader.stream().and_then(Http2Stream::left);
                (bytes + left.unwrap_or(0) as u64, left.is_some())
            }
            _ => (bytes, whole),
        }
    }

    /// Bytes of data in the buffer, where rules see them, counted up to about `enough`, and whether the body ends with them.
    pub fn in_buffer(&self, enough: u64) -> (u64, bool) {
        let AtHand { bytes, whole, .. } = self.framing.at_hand(self.buffer.filled(), enough);
        let is_all = match &*self.framing {
            Framing::Frames(frames) => {
                let left = self.reader.stream().and_then(Http2Stream::left);
                left == Some(0) || frames.left.is_some_and(|left| bytes >= left)
            }
            _ => false,
        };
        (bytes, whole || is_all)
    }

    /// The first `n` bytes that [`Receiver::part`] has announced.
    pub fn data(&self, n: usize) -> &[u8] {
        let at_hand = match &*self.framing {
            Framing::Held(held) => held.data(),
            Framing::Again(again) => again.data(),
            _ => self.buffer.filled(),
        };
        &at_hand[..n.min(at_hand.len())]
    }

    /// Counts bytes of data that are about to go on: before they are sent, or a peer that takes nothing leaves them uncounted.
    pub fn count(&self, n: usize) {
        if matches!(self.framing, Framing::Again(_)) {
            return;
        }
        self.count.set(self.count.get() + n as u64);
    }

    /// Records that `n` bytes of data have gone on.
    pub fn consume(&mut self, n: usize) {
        if let Some(mut listener) = self.listener.take() {
            self.listener = listener.hear(self.data(n)).then_some(listener);
        }
        if let Framing::Held(held) = self.framing {
            return held.consume(n);
        }
        if let Framing::Again(again) = self.framing {
            if let Some(rest) = again.consume(n) {
                *self.framing = rest;
            }
            return;
        }
        self.buffer.consume(n);
        match self.framing {
            Framing::Exact(left) => {
                *left -= (n as u64).min(*left);
                if *left == 0 {
                    *self.framing = Framing::Done;
                }
            }
            Framing::Chunked(chunks) => chunks.found -= n.min(chunks.found),
            Framing::Frames(frames) => frames.left = frames.left.map(|left| left.saturating_sub(n as u64)),
            Framing::Done | Framing::UntilClose | Framing::Held(_) | Framing::Again(_) => {}
        }
    }

    /// Records that the body has gone on whole.
    pub fn ended(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.end();
        }
    }

    /// The trailers, once the body has ended.
    pub fn trailers(&self) -> &Fields {
        match &*self.framing {
            Framing::Chunked(chunks) => &chunks.trailers,
            Framing::Frames(frames) => frames.trailers.as_deref().unwrap_or(Fields::none()),
            _ => Fields::none(),
        }
    }

    /// Reads more. While it waits with nothing in hand, it holds no buffer.
    ///
    /// A peer's close ends a body that has no other end, and breaks any other.
    pub async fn more(&mut self) -> Result<(), Broken> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        if self.is_tiny() && self.buffer.is_full() {
            let mut larger = self.pools.small.get().await;
            larger.take_over(self.buffer);
            *self.buffer = larger;
        }
        loop {
            match self.patiently(Receiver::poll_more).await {
                Ok(Some(0)) if self.minds_truncation && self.reader.is_truncated() => return Err(Broken::Closed),
                Ok(Some(0)) => return self.found_end(),
                Ok(Some(_)) => return Ok(()),
                Ok(None) => *self.buffer = if self.is_frugal { self.pools.tiny.get().await } else { self.pools.small.get().await },
                Err(error) => return Err(Broken::of(&error)),
            }
        }
    }

    /// Whether the next bytes are data for certain, and many: then they can be [received](Receiver::receive) to where they are to lie.
    pub fn can_receive(&self) -> bool {
        self.certain() >= RECEIVED_LEAST && self.buffer.is_empty()
    }

    /// Bytes of data that come next for certain: the rest of the body, or of its chunk.
    fn certain(&self) -> usize {
        let left = match &*self.framing {
            Framing::Exact(left) => *left,
            Framing::Chunked(chunks) if chunks.found == 0 => chunks.decoder.left(),
            _ => 0,
        };
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Receives data of the body into `room`, past the buffer; returns the number of bytes. To be called where
    /// [`Receiver::can_receive`] is true.
    pub async fn receive(&mut self, room: &mut [u8]) -> Result<usize, Broken> {
        let most = room.len().min(self.certain());
        let room = &mut room[..most];
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let received = self
            .patiently(|receiver, cx| {
                let poll = receiver.reader.poll_receive(cx, room);
                if poll.is_pending() {
                    receiver.buffer.release_if_empty();
                }
                poll
            })
            .await;
        let n = match received {
            Ok(0) => return Err(Broken::Closed),
            Ok(n) => n,
            Err(error) => return Err(Broken::of(&error)),
        };
        self.listener.take_if(|listener| !listener.hear(&room[..n]));
        self.received(n as u64);
        Ok(n)
    }

    /// Whether the next bytes are data for certain, and many, and may go on without being looked at.
    ///
    /// The rest of a body that ends with the connection is not known: a last read that filled its buffer is taken as a sign
    /// of many.
    pub fn can_splice(&self) -> bool {
        let is_long = match &*self.framing {
            Framing::UntilClose => self.full_reads && self.buffer.is_empty(),
            _ => self.can_receive(),
        };
        is_long && self.listener.is_none() && self.broken.is_none() && matches!(self.reader, Reader::Tcp(_))
    }

    /// Receives data of the body into an empty pipe; returns the number of bytes; 0 where the peer has closed, `None` where
    /// it must be read instead. To be called where [`Receiver::can_splice`] is true. It does not wait.
    pub fn splice(&mut self, pipe: &mut Pipe<'_>) -> io::Result<Option<usize>> {
        let most = match &*self.framing {
            Framing::UntilClose => usize::MAX,
            _ => self.certain(),
        };
        let spliced = self.reader.try_splice(pipe, most)?;
        self.received(spliced.unwrap_or(0) as u64);
        Ok(spliced)
    }

    /// Handles the close of the peer: that ends a body that has no other end, and breaks any other.
    pub fn found_end(&mut self) -> Result<(), Broken> {
        match self.framing {
            Framing::UntilClose => {
                *self.framing = Framing::Done;
                Ok(())
            }
            Framing::Frames(frames) => {
                frames.has_ended = true;
                frames.trailers = self.reader.stream().and_then(Http2Stream::take_trailers);
                Ok(())
            }
            _ => Err(Broken::Closed),
        }
    }

    /// Takes the server's next head, interim or final, if it is there: its answer to a request of this method. False where
    /// [more of it](Receiver::more_of_head) must come.
    ///
    /// # Errors
    /// The fault in a head of HTTP/1. A fault in a head of HTTP/2 ends its stream.
    #[inline]
    pub fn head(&mut self, method: &[u8], response: &mut Response) -> Result<bool, Malformed> {
        if let Some(stream) = self.reader.stream() {
            let came = stream.next_head(response);
            if came {
                let fields = response.fields.iter().map(|(name, value)| name.len() + value.len() + b": \r\n".len());
                self.count(fields.sum::<usize>() + b"HTTP/2.0 200 \r\n\r\n".len());
            }
            return Ok(came);
        }
        match h1::parse_response(self.buffer.filled(), method, response)? {
            Parsed::Complete(n) => {
                self.buffer.consume(n);
                self.count(n);
                Ok(true)
            }
            Parsed::Partial if self.is_full() => Err(Malformed::HeadTooLarge),
            Parsed::Partial => Ok(false),
        }
    }

    /// Waits for more of the server's next head.
    pub async fn more_of_head(&mut self) -> Result<(), NoHead> {
        let is_empty = self.buffer.is_empty();
        if self.reader.stream().is_none() {
            return self.more().await.map_err(|broken| NoHead::Broken { broken, is_empty });
        }
        let came = self.patiently(|receiver, cx| match receiver.reader.stream() {
            Some(stream) => stream.poll_head(cx),
            None => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        });
        match came.await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(NoHead::Broken { broken: Broken::Timeout, is_empty: true })
            }
            Err(_) => Err(NoHead::Stream(self.fate())),
        }
    }

    /// Why the server's stream of HTTP/2 has broken off.
    fn fate(&self) -> Fate {
        self.reader.stream().map_or(Fate::Reset, Http2Stream::fate)
    }

    /// The body that follows this head of the server's.
    pub fn begin(&mut self, response: &Response) {
        *self.framing = Framing::of_response(response);
    }

    /// A tunnel: all that comes until the peer closes.
    pub fn open(&mut self) {
        *self.framing = Framing::UntilClose;
        self.minds_truncation = false;
    }

    /// A peer that closes without saying so in TLS has broken off, where its end is that of the body (RFC 9112 section 9.8).
    pub fn mind_truncation(&mut self) {
        self.minds_truncation = true;
    }

    /// Ends the body with the bytes that are here.
    pub fn close(&mut self) {
        *self.framing = Framing::new(BodyLength::Exact(self.buffer.filled().len() as u64));
    }

    /// Nothing of the body is left.
    pub fn end(&mut self) {
        *self.framing = Framing::Done;
    }

    /// Whether nothing of the body is left.
    pub fn is_done(&self) -> bool {
        self.framing.is_done()
    }

    /// Whether the body is in memory.
    pub fn is_held(&self) -> bool {
        matches!(self.framing, Framing::Held(_))
    }

    /// Whether the body ends with its sender's connection.
    pub fn ends_with_connection(&self) -> bool {
        matches!(self.framing, Framing::UntilClose)
    }

    /// Bytes that have been read and have not gone on, frames included.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.filled()
    }

    /// Whether the peer speaks TLS and has closed without a close alert.
    pub fn is_truncated(&self) -> bool {
        self.reader.is_truncated()
    }

    /// The break of the peer's connection, if it was seen while more was looked for.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Whether the last read filled its buffer.
    pub fn comes_quickly(&self) -> bool {
        self.full_reads
    }

    /// Whether the peer is the client: output made of its bytes is of no use once it has gone.
    pub fn is_client(&self) -> bool {
        self.is_client
    }

    /// Number of bytes that have come.
    pub fn counted(&self) -> u64 {
        self.count.get()
    }

    /// Has a listener hear the body, too.
    pub fn tell(&mut self, listener: Box<dyn Listener>) {
        self.listener = Some(listener);
    }

    /// Whether a listener hears the body.
    pub fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Reports that the server has not answered in time.
    pub fn doubt(&self) {
        self.reader.stream().inspect(|stream| stream.doubt());
    }

    /// The code by which the peer has reset its stream of HTTP/2.
    pub fn reset_code(&self) -> Option<u32> {
        self.reader.stream().and_then(Http2Stream::reset_by_peer)
    }

    /// Waits until the peer is [gone](terse_tls::gone).
    pub async fn gone(&self) {
        self.reader.gone().await;
    }

    /// Reads more, but not beyond an end: bytes that have come before that go on first, and the end is found again after
    /// them. False where nothing more comes.
    pub async fn more_ahead(&mut self) -> bool {
        let open = self.ends_with_connection();
        let came = match self.more().await {
            Ok(()) => true,
            Err(broken) => {
                // The kernel reports a reset once.
                self.broken = Some(broken);
                false
            }
        };
        if open && self.is_done() {
            *self.framing = Framing::UntilClose;
            return false;
        }
        came
    }

    /// Ready once the peer has left. Bytes that it sends in advance are read: only so can its close be seen, and not where
    /// the buffer is full.
    pub fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.buffer.is_released() || !self.buffer.is_full() {
            match ready!(self.poll_ahead(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {}
            }
        }
        Poll::Pending
    }

    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Some(stream) = self.reader.stream() {
            return stream.poll_left(cx).map(|()| Ok(0));
        }
        if self.buffer.is_released() {
            ready!(self.reader.poll_readable(cx))?;
            match self.pools.small.take() {
                Some(buffer) => *self.buffer = buffer,
                None => return Poll::Pending,
            }
        }
        let poll = self.reader.poll_read(cx, self.buffer);
        if poll.is_pending() {
            self.buffer.release_if_empty();
        }
        poll
    }

    /// Reads more, unless nothing comes for a moment.
    pub async fn more_briefly(&mut self) -> Option<Result<(), Broken>> {
        let timer = self.timer;
        timer.briefly(self.more()).await
    }

    /// Waits until there are bytes to receive, or the peer has closed. It holds no buffer.
    pub async fn readable(&mut self) -> Result<(), Broken> {
        self.buffer.release_if_empty();
        self.patiently(|receiver, cx| receiver.reader.poll_readable(cx)).await.map_err(|error| Broken::of(&error))
    }

    /// The same, with the buffer at hand for bytes that are there already.
    pub async fn arrived(&mut self) -> Result<(), Broken> {
        if self.broken.is_some() {
            return Ok(());
        }
        let poll = |receiver: &mut Self, cx: &mut Context<'_>| {
            let poll = receiver.reader.poll_readable(cx);
            if poll.is_pending() {
                receiver.stays_large = false;
                receiver.buffer.release_if_empty();
            }
            poll
        };
        self.patiently(poll).await.map_err(|error| Broken::of(&error))
    }

    /// Gives the buffer back, if no bytes wait in it, until there are bytes to read.
    pub fn release_if_empty(&mut self) {
        if self.buffer.is_empty() && !self.buffer.is_released() {
            self.stays_large = self.buffer.size() >= self.pools.bulk.size();
            self.buffer.release_if_empty();
        }
    }

    /// Gives back all memory that holds no bytes.
    pub fn release(&mut self) {
        self.release_if_empty();
        if let Some(stream) = self.reader.stream() {
            stream.release_if_empty();
        }
    }

    /// Holds no more than the waiting bytes need, and reads less at a time next: the output made of them is not taken.
    pub fn make_small(&mut self) {
        (self.full_reads, self.stays_large) = (false, false);
        self.buffer.release_if_empty();
        // The next request's head may have begun in a client's buffer, and needs its usual room.
        let pools = [&self.pools.tiny, &self.pools.small];
        for pool in pools.into_iter().skip(usize::from(self.is_client)) {
            let fits = pool.size() < self.buffer.size() && self.buffer.filled().len() <= pool.size();
            if fits && let Some(mut smaller) = pool.take() {
                smaller.take_over(self.buffer);
                *self.buffer = smaller;
                return;
            }
        }
    }

    /// Reads no more at once than so many bytes, which the other side takes now, where the rest can stay in the peer's connection. For few
    /// bytes, a small buffer does.
    pub fn pace(&mut self, most: usize) {
        // A read of nothing would be the body's end.
        self.most = most.max(1);
        // The next request's head may begin in a client's buffer, and needs its usual room.
        self.is_frugal = most < self.pools.tiny.size() && !self.is_client;
    }

    /// Whether data of a stream has come that lies in its connection still: the end of the body is behind it.
    pub fn has_data_behind(&self) -> bool {
        self.reader.stream().is_some_and(Http2Stream::has_data)
    }

    /// Whether the peer's connection carries other bodies, too.
    pub fn is_shared(&self) -> bool {
        self.reader.stream().is_some()
    }

    /// Records that so many bytes of data have come another way than through the buffer.
    fn received(&mut self, n: u64) {
        match self.framing {
            Framing::Exact(left) if *left == n => *self.framing = Framing::Done,
            Framing::Exact(left) => *left -= n.min(*left),
            Framing::Chunked(chunks) => chunks.decoder.skip(n),
            Framing::Done | Framing::Frames(_) | Framing::UntilClose | Framing::Held(_) | Framing::Again(_) => {}
        }
    }

    /// Polls until the result is ready or the peer's time is over.
    #[inline]
    async fn patiently<T>(&mut self, mut poll: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<io::Result<T>>) -> io::Result<T> {
        let mut waits = false;
        poll_fn(|cx| match poll(self, cx) {
            Poll::Pending if self.timer.is_late(cx, self.limit.get(), &mut waits) => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            poll => poll,
        })
        .await
    }

    /// `None`: a buffer is needed, and there is none.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        if self.buffer.is_released() || (self.full_reads && self.buffer.is_empty() && self.buffer.size() < self.pools.bulk.size()) {
            if self.reader.poll_readable(cx)?.is_pending() {
                self.stays_large = false;
                self.buffer.release_if_empty();
                return Poll::Pending;
            }
            let is_large = self.full_reads || std::mem::take(&mut self.stays_large);
            let bulk = (is_large && !self.is_frugal && !self.pools.bulk.is_tight()).then(|| self.pools.bulk.take()).flatten();
            let usual = if self.is_frugal { &self.pools.tiny } else { &self.pools.small };
            match bulk.or_else(|| self.buffer.is_released().then(|| usual.take()).flatten()) {
                Some(buffer) => *self.buffer = buffer,
                None if self.buffer.is_released() => return Poll::Ready(Ok(None)),
                None => {}
            }
        }
        let room = self.buffer.room();
        let room = if self.reader.stream().is_some() { room.len().min(self.most) } else { room.len() };
        let poll = self.reader.poll_read_most(cx, self.buffer, room);
        match &poll {
            Poll::Pending => self.buffer.release_if_empty(),
            Poll::Ready(read) => self.full_reads = read.as_ref().is_ok_and(|&n| n == room),
        }
        poll.map(|read| read.map(Some))
    }
}

impl Lend for Receiver<'_> {
    fn lend(&mut self) -> Peek {
        Peek::of(self.buffer, self.framing)
    }

    fn restore(&mut self, peek: Peek) {
        *self.buffer = peek.into_buffer();
    }
}

impl Broken {
    /// The break that a failed read means.
    pub fn of(error: &io::Error) -> Broken {
        if error.kind() == io::ErrorKind::TimedOut { Broken::Timeout } else { Broken::Reset }
    }
}

/// Less data comes through the buffer: the bytes after it come with it then.
const RECEIVED_LEAST: usize = 16 * 1024;
