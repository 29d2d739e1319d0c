//! A body on its way in: the message's framing taken off.

use super::buffer::{Buffer, Pools};
use super::held::{Held, Listener};
use super::http2::Http2Stream;
use super::pipe::Pipe;
use super::replay::Again;
use super::timer::Timer;
use super::transport::Reader;
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use terse_http::h1::head::parse_trailers;
use terse_http::h1::{ChunkDecoder, Step};
use terse_message::{BodyLength, Fields, Malformed, Request, Response, Version};

/// How the end of a body is found.
#[derive(Debug, Default)]
pub enum Incoming {
    /// It has ended, or there was none.
    #[default]
    Done,
    /// So many bytes are left.
    Exact(u64),
    /// In chunks.
    Chunked(Box<Chunks>),
    /// In frames of HTTP/2, which say where it ends.
    Frames(Box<Frames>),
    /// All until the peer closes: a body without a length, or a tunnel.
    UntilClose,
    /// It is in memory: nothing is read.
    Held(Held),
    /// Some of it was sent before, and comes from memory first.
    Again(Box<Again>),
}

/// A body in chunks.
#[derive(Debug, Default)]
pub struct Chunks {
    decoder: ChunkDecoder,
    /// Bytes of data that were found at the front of the buffer.
    found: usize,
    /// The fields behind the last chunk, once that has come.
    trailers: Fields,
}

/// A body in frames.
#[derive(Debug, Default)]
pub struct Frames {
    /// How many bytes of data are left, where the head says so.
    left: Option<u64>,
    has_ended: bool,
    /// The fields behind it, once it has ended.
    trailers: Option<Box<Fields>>,
}

/// What is at the front of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// So many bytes of data, at [`Source::data`].
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

/// A body and where it comes from.
pub struct Source<'a> {
    /// The half that reads.
    pub reader: Reader<'a>,
    /// What has been read and not yet gone on.
    pub buffer: &'a mut Buffer,
    /// What is left of the body.
    pub body: &'a mut Incoming,
    /// Where buffers come from.
    pub pools: &'a Pools,
    /// Whether the last read filled its buffer: then the next one gets a larger one.
    pub full_reads: bool,
    /// Whether as little as may be is read at a time: nobody takes the body yet.
    pub is_frugal: bool,
    /// Whether a peer that closes without saying so in TLS has broken off: where its end is that of the body (RFC 9112 section 9.8).
    pub minds_truncation: bool,
    /// Whether the peer is the client: what is made of its bytes is for nobody once it has gone.
    pub is_client: bool,
    /// How the peer broke off when somebody looked ahead: what has come goes on first, then the next read says so.
    pub broken: Option<Broken>,
    /// The peer's timer.
    pub timer: &'a Timer,
    /// How long the peer may be silent; it may change while the source waits.
    pub timeout: &'a Cell<Option<Duration>>,
    /// Counts what has come.
    pub count: &'a Cell<u64>,
    /// Who else wants the body.
    pub listener: Option<Box<dyn Listener>>,
}

impl Incoming {
    /// How a body of this length ends, in HTTP/1.
    pub fn new(length: BodyLength) -> Incoming {
        match length {
            BodyLength::None | BodyLength::Exact(0) => Incoming::Done,
            BodyLength::Exact(n) => Incoming::Exact(n),
            BodyLength::Framed => Incoming::Chunked(Box::default()),
            BodyLength::UntilClose => Incoming::UntilClose,
        }
    }

    /// How a request's body ends.
    pub fn of(request: &Request) -> Incoming {
        match request.body {
            BodyLength::Framed if request.version == Version::Http2 => Incoming::Frames(Box::default()),
            length => Incoming::new(length),
        }
    }

    /// How a server's response ends.
    pub fn of_response(response: &Response) -> Incoming {
        let left = match response.body {
            BodyLength::Exact(n) => Some(n),
            _ => None,
        };
        match response.body {
            BodyLength::Exact(1..) | BodyLength::Framed if response.version == Version::Http2 => {
                Incoming::Frames(Box::new(Frames { left, ..Frames::default() }))
            }
            length => Incoming::new(length),
        }
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        matches!(self, Incoming::Done)
    }

    /// Whether nothing is left to be read from the peer.
    pub fn is_read(&self) -> bool {
        match self {
            Incoming::Again(again) => again.rest().is_read(),
            body => body.is_done(),
        }
    }
}

impl<'a> Source<'a> {
    /// A body of which nothing has been looked at yet.
    pub fn new(
        reader: Reader<'a>,
        buffer: &'a mut Buffer,
        body: &'a mut Incoming,
        pools: &'a Pools,
        timer: &'a Timer,
        timeout: &'a Cell<Option<Duration>>,
        count: &'a Cell<u64>,
    ) -> Source<'a> {
        let (full_reads, is_frugal, minds_truncation, is_client, broken, listener) = (false, false, false, false, None, None);
        Source {
            reader,
            buffer,
            body,
            pools,
            full_reads,
            is_frugal,
            minds_truncation,
            is_client,
            broken,
            timer,
            timeout,
            count,
            listener,
        }
    }
}

impl Source<'_> {
    /// What is at the front, as far as it has been read; `None` when more must be read.
    pub fn part(&mut self) -> Result<Option<Part>, Broken> {
        let waiting = self.buffer.filled().len();
        Ok(match self.body {
            Incoming::Done => Some(Part::End),
            Incoming::Held(held) => Some(match held.data().len() {
                0 => Part::End,
                n => Part::Data(n),
            }),
            Incoming::Again(again) => Some(Part::Data(again.data().len())),
            Incoming::Frames(frames) if waiting == 0 => frames.has_ended.then_some(Part::End),
            Incoming::Exact(_) | Incoming::UntilClose if waiting == 0 => None,
            Incoming::Frames(_) => Some(Part::Data(waiting)),
            Incoming::Exact(left) => Some(Part::Data((*left).min(waiting as u64) as usize)),
            Incoming::UntilClose => Some(Part::Data(waiting)),
            Incoming::Chunked(chunks) if chunks.found > 0 => Some(Part::Data(chunks.found)),
            Incoming::Chunked(chunks) => {
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
                            parse_trailers(chunks.decoder.trailers(), &mut chunks.trailers).map_err(Broken::Malformed)?;
                        }
                        Some(Part::End)
                    }
                }
            }
        })
    }

    /// Whether the buffer cannot hold more, and none that is larger takes its place.
    pub fn is_full(&self) -> bool {
        self.buffer.is_full() && !self.buffer.is_released() && !self.is_tiny()
    }

    fn is_tiny(&self) -> bool {
        !self.buffer.is_released() && self.buffer.size() < self.pools.small.size()
    }

    /// The body's length, when it is known.
    pub fn known_bytes(&self) -> Option<u64> {
        match &*self.body {
            Incoming::Exact(left) => Some(*left),
            Incoming::Held(held) => Some(held.left()),
            Incoming::Frames(frames) => frames.left,
            Incoming::Again(again) => match again.rest() {
                Incoming::Exact(left) => Some(again.data().len() as u64 + *left),
                Incoming::Done => Some(again.data().len() as u64),
                _ => None,
            },
            _ => None,
        }
    }

    /// How many bytes of data have been read and have not gone on, counted up to about `enough`, and whether the body ends with them. To be
    /// called after [`Source::part`].
    pub fn at_hand(&self, enough: u64) -> (u64, bool) {
        let filled = self.buffer.filled();
        match &*self.body {
            Incoming::Done => (0, true),
            Incoming::Held(held) => (held.left(), true),
            Incoming::Again(again) => (again.data().len() as u64, again.rest().is_done()),
            Incoming::Exact(left) => (filled.len() as u64, filled.len() as u64 >= *left),
            Incoming::UntilClose => (filled.len() as u64, false),
            Incoming::Frames(frames) => {
                let left = if frames.has_ended { Some(0) } else { self.reader.stream().and_then(Http2Stream::left) };
                (filled.len() as u64 + left.unwrap_or(0) as u64, left.is_some())
            }
            Incoming::Chunked(chunks) => {
                let (mut ahead, mut at, mut bytes) = (chunks.decoder.clone(), chunks.found, chunks.found as u64);
                while bytes < enough
                    && let Some(rest) = filled.get(at..)
                    && let Ok((used, step)) = ahead.step(rest)
                {
                    match step {
                        Step::Data(data) => bytes += data.len() as u64,
                        Step::End => return (bytes, true),
                        Step::More => break,
                    }
                    at += used;
                }
                (bytes, false)
            }
        }
    }

    /// The first `n` bytes that [`Source::part`] has announced.
    pub fn data(&self, n: usize) -> &[u8] {
        let at_hand = match &*self.body {
            Incoming::Held(held) => held.data(),
            Incoming::Again(again) => again.data(),
            _ => self.buffer.filled(),
        };
        &at_hand[..n.min(at_hand.len())]
    }

    /// Counts bytes of data that are about to go on: before they are sent, or a receiver that takes nothing leaves them uncounted.
    pub fn count(&self, n: usize) {
        if matches!(self.body, Incoming::Again(_)) {
            return;
        }
        self.count.set(self.count.get() + n as u64);
    }

    /// Says that `n` bytes of data have gone on.
    pub fn consume(&mut self, n: usize) {
        if let Some(mut listener) = self.listener.take() {
            self.listener = listener.hear(self.data(n)).then_some(listener);
        }
        if let Incoming::Held(held) = self.body {
            return held.consume(n);
        }
        if let Incoming::Again(again) = self.body {
            if let Some(rest) = again.consume(n) {
                *self.body = rest;
            }
            return;
        }
        self.buffer.consume(n);
        match self.body {
            Incoming::Exact(left) => {
                *left -= (n as u64).min(*left);
                if *left == 0 {
                    *self.body = Incoming::Done;
                }
            }
            Incoming::Chunked(chunks) => chunks.found -= n.min(chunks.found),
            Incoming::Frames(frames) => frames.left = frames.left.map(|left| left.saturating_sub(n as u64)),
            Incoming::Done | Incoming::UntilClose | Incoming::Held(_) | Incoming::Again(_) => {}
        }
    }

    /// Says that the body has gone on whole.
    pub fn ended(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.end();
        }
    }

    /// The fields behind the body, once it has ended.
    pub fn trailers(&self) -> &Fields {
        match &*self.body {
            Incoming::Chunked(chunks) => &chunks.trailers,
            Incoming::Frames(frames) => frames.trailers.as_deref().unwrap_or(Fields::none()),
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
            match self.patiently(Source::poll_more).await {
                Ok(Some(0)) if self.minds_truncation && self.reader.is_truncated() => return Err(Broken::Closed),
                Ok(Some(0)) => return self.found_end(),
                Ok(Some(_)) => return Ok(()),
                Ok(None) => *self.buffer = if self.is_frugal { self.pools.tiny.get().await } else { self.pools.small.get().await },
                Err(error) => return Err(Broken::of(&error)),
            }
        }
    }

    /// Whether the next bytes are data for certain, and many: then they can be [received](Source::receive) to where they are to lie.
    pub fn can_receive(&self) -> bool {
        self.certain() >= RECEIVED_LEAST && self.buffer.is_empty()
    }

    /// How many bytes of data come next for certain: those left of the body, or of its chunk.
    fn certain(&self) -> usize {
        let left = match &*self.body {
            Incoming::Exact(left) => *left,
            Incoming::Chunked(chunks) if chunks.found == 0 => chunks.decoder.left(),
            _ => 0,
        };
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Receives data of the body into `room`, past the buffer: how many bytes. To be called where [`Source::can_receive`] says so.
    pub async fn receive(&mut self, room: &mut [u8]) -> Result<usize, Broken> {
        let most = room.len().min(self.certain());
        let room = &mut room[..most];
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let received = self
            .patiently(|source, cx| {
                let poll = source.reader.poll_receive(cx, room);
                if poll.is_pending() {
                    source.buffer.release_if_empty();
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

    /// Whether the next bytes are data for certain, and many, and may go to the receiver without being looked at.
    ///
    /// How much is left of what ends with the connection nobody knows: that the last read was full speaks for much.
    pub fn can_splice(&self) -> bool {
        let is_long = match &*self.body {
            Incoming::UntilClose => self.full_reads && self.buffer.is_empty(),
            _ => self.can_receive(),
        };
        is_long && self.listener.is_none() && self.broken.is_none() && matches!(self.reader, Reader::Tcp(_))
    }

    /// Receives data of the body into an empty pipe: how many bytes; 0 where the peer has closed, `None` where it must be read instead.
    /// To be called where [`Source::can_splice`] says so. It does not wait.
    pub fn splice(&mut self, pipe: &mut Pipe<'_>) -> io::Result<Option<usize>> {
        let most = match &*self.body {
            Incoming::UntilClose => usize::MAX,
            _ => self.certain(),
        };
        let spliced = self.reader.try_splice(pipe, most)?;
        self.received(spliced.unwrap_or(0) as u64);
        Ok(spliced)
    }

    /// Says that the peer has closed: that ends a body that has no other end, and breaks any other.
    pub fn found_end(&mut self) -> Result<(), Broken> {
        match self.body {
            Incoming::UntilClose => {
                *self.body = Incoming::Done;
                Ok(())
            }
            Incoming::Frames(frames) => {
                frames.has_ended = true;
                frames.trailers = self.reader.stream().and_then(Http2Stream::take_trailers);
                Ok(())
            }
            _ => Err(Broken::Closed),
        }
    }

    /// Takes the next head of a server's stream of HTTP/2; its bytes, as HTTP/1 has them.
    pub async fn head(&mut self, response: &mut Response) -> Result<usize, Broken> {
        let came = self.patiently(|source, cx| match source.reader.stream() {
            Some(stream) => stream.poll_head(cx, response),
            None => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        });
        came.await.map_err(|error| Broken::of(&error))?;
        let fields = response.fields.iter().map(|(name, value)| name.len() + value.len() + b": \r\n".len());
        Ok(fields.sum::<usize>() + b"HTTP/2.0 200 \r\n\r\n".len())
    }

    /// Waits until there is something to receive, or the peer has closed. It holds no buffer.
    pub async fn readable(&mut self) -> Result<(), Broken> {
        self.buffer.release_if_empty();
        self.patiently(|source, cx| source.reader.poll_readable(cx)).await.map_err(|error| Broken::of(&error))
    }

    /// Says that so many bytes of data have come another way than through the buffer.
    fn received(&mut self, n: u64) {
        match self.body {
            Incoming::Exact(left) if *left == n => *self.body = Incoming::Done,
            Incoming::Exact(left) => *left -= n.min(*left),
            Incoming::Chunked(chunks) => chunks.decoder.skip(n),
            Incoming::Done | Incoming::Frames(_) | Incoming::UntilClose | Incoming::Held(_) | Incoming::Again(_) => {}
        }
    }

    /// Polls until something comes or the peer's time is over.
    #[inline]
    async fn patiently<T>(&mut self, mut poll: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<io::Result<T>>) -> io::Result<T> {
        let mut waits = false;
        poll_fn(|cx| match poll(self, cx) {
            Poll::Pending if self.timer.is_late(cx, self.timeout.get(), &mut waits) => {
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
                self.buffer.release_if_empty();
                return Poll::Pending;
            }
            let bulk = (self.full_reads && !self.pools.bulk.is_tight()).then(|| self.pools.bulk.take()).flatten();
            let usual = if self.is_frugal { &self.pools.tiny } else { &self.pools.small };
            match bulk.or_else(|| self.buffer.is_released().then(|| usual.take()).flatten()) {
                Some(buffer) => *self.buffer = buffer,
                None if self.buffer.is_released() => return Poll::Ready(Ok(None)),
                None => {}
            }
        }
        let room = self.buffer.room().len();
        let poll = self.reader.poll_read(cx, self.buffer);
        match &poll {
            Poll::Pending => self.buffer.release_if_empty(),
            Poll::Ready(read) => self.full_reads = read.as_ref().is_ok_and(|&n| n == room),
        }
        poll.map(|read| read.map(Some))
    }
}

impl Broken {
    /// What a failed read means.
    pub fn of(error: &io::Error) -> Broken {
        if error.kind() == io::ErrorKind::TimedOut { Broken::Timeout } else { Broken::Reset }
    }
}

/// Fewer bytes of data come through the buffer: what follows them comes with them then.
const RECEIVED_LEAST: usize = 16 * 1024;
