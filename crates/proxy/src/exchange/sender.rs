//! A message on its way out: head, framed body, end.
//!
//! Small data is copied after the bytes that already wait, so that a head, a short body and the last chunk leave in a single
//! system call; large data is written from where it lies.

mod head;

pub use head::{ConnectionOption, Peer};

use crate::io::http2::{Fate, Http2Stream, Then};
use crate::io::{Pipe, Timer, Writer};
use crate::meter::Meter;
use socket2::SockRef;
use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;
use terse_http::h1::encode;
use terse_message::{Fields, Response};

/// Framing of the body for the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outgoing {
    /// There is no body, or the head gave its length, or the connection closes after it: the bytes as they are.
    Plain,
    /// In chunks; with trailers, unless the proxy drops them (`option http-drop-request-trailers` and its like).
    Chunked {
        /// Whether trailers are passed on.
        trailers: bool,
    },
    /// In frames of HTTP/2, the last of which has the end flag; with trailers, or without.
    Frames {
        /// Whether trailers are passed on.
        trailers: bool,
    },
}

impl Outgoing {
    /// Appends the end of a body.
    fn end(self, trailers: &Fields, out: &mut Vec<u8>) {
        match self {
            Outgoing::Plain | Outgoing::Frames { .. } => {}
            Outgoing::Chunked { trailers: true } => encode::last_chunk(trailers, out),
            Outgoing::Chunked { trailers: false } => encode::last_chunk(Fields::none(), out),
        }
    }
}

/// A message and where it goes.
pub struct Sender<'a> {
    /// The half that writes.
    pub(super) writer: Writer<'a>,
    /// Bytes that wait to be written.
    out: &'a mut Vec<u8>,
    /// If the body travels in stored records: number of waiting bytes that do not, because they are a head.
    unstored: Option<usize>,
    /// The body's framing, which its head decides.
    framing: Outgoing,
    /// Bytes that were written.
    pub written: u64,
    /// Counts them, but for so many at the front.
    count: &'a Cell<u64>,
    /// Bytes at the front that are no part of the message.
    pub uncounted: u64,
    /// Counts them as they go (`option contstats`).
    pub meter: Option<&'a Meter>,
    /// The peer's timer.
    timer: &'a Timer,
    /// Time limit of the peer's taking nothing.
    limit: Option<Duration>,
}

/// Data up to this size is copied rather than written on its own: a copy of 8 KB costs less than a system call.
const COPIED: usize = 8 * 1024;
/// When so much waits, it is written.
const ENOUGH: usize = 32 * 1024;

impl Sender<'_> {
    /// Closes the sending side; waits for the bytes that TLS holds as long as for any write.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.timer.set(self.limit);
        let timer = self.timer;
        let mut closing = pin!(self.writer.shutdown());
        poll_fn(|cx| match closing.as_mut().poll(cx) {
            Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            poll => poll,
        })
        .await
    }
}

impl<'a> Sender<'a> {
    /// A sender of bytes as they are, until a head sets another framing.
    pub(super) fn new(
        writer: Writer<'a>,
        out: &'a mut Vec<u8>,
        timer: &'a Timer,
        limit: Option<Duration>,
        count: &'a Cell<u64>,
    ) -> Sender<'a> {
        Sender { writer, out, unstored: None, framing: Outgoing::Plain, written: 0, count, uncounted: 0, meter: None, timer, limit }
    }
}

impl Sender<'_> {
    /// Sends a part of the body; it may wait in `out` until [`Sender::flush`].
    pub async fn send(&mut self, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = self.begin(data.len());
        if data.len() > COPIED {
            return match self.writer {
                Writer::Stream(stream) => self.write_frames(stream, data, Then::More).await,
                _ => self.write_behind(data, end).await,
            };
        }
        self.out.extend_from_slice(data);
        self.out.extend_from_slice(end);
        if self.out.len() >= ENOUGH { self.flush().await } else { Ok(()) }
    }

    /// Ends the body: the last chunk, and the bytes that still wait.
    pub async fn finish(&mut self, trailers: &Fields) -> io::Result<()> {
        self.finish_with(b"", trailers).await
    }

    /// Sends the last part of the body and ends it, at once.
    pub async fn finish_with(&mut self, data: &[u8], trailers: &Fields) -> io::Result<()> {
        if let Writer::Stream(stream) = self.writer {
            let passes = matches!(self.framing, Outgoing::Frames { trailers: true });
            return self.write_frames(stream, data, Then::End(if passes { trailers } else { Fields::none() })).await;
        }
        let end = self.begin(data.len());
        if data.len() > COPIED {
            let mut end = end.to_vec();
            self.framing.end(trailers, &mut end);
            return self.write_behind(data, &end).await;
        }
        self.out.extend_from_slice(data);
        self.out.extend_from_slice(end);
        self.framing.end(trailers, self.out);
        self.flush().await
    }

    /// Begins a part of so many bytes, after the bytes that wait; returns the bytes that must follow it.
    fn begin(&mut self, bytes: usize) -> &'static [u8] {
        match self.framing {
            Outgoing::Chunked { .. } if bytes > 0 => {
                encode::chunk_start(bytes, self.out);
                encode::CHUNK_END
            }
            _ => b"",
        }
    }

    /// Writes the bytes that wait.
    pub async fn flush(&mut self) -> io::Result<()> {
        match self.writer {
            Writer::Stream(stream) => self.write_frames(stream, b"", Then::More).await,
            _ if self.out.is_empty() => Ok(()),
            _ => self.write_behind(b"", b"").await,
        }
    }

    /// Whether the peer has asked for this change of protocol, as far as HTTP/1 cannot tell.
    pub fn accepts(&self, response: &Response) -> bool {
        !matches!(self.writer, Writer::Stream(stream) if !stream.is_accepted(response))
    }

    /// Whether the peer takes nothing of this body now: the window of its stream is closed.
    pub fn is_shut(&self) -> bool {
        matches!(self.writer, Writer::Stream(stream) if !stream.is_open())
    }

    /// Whether the window of its stream, or of its connection, is closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.writer, Writer::Stream(stream) if !stream.is_open() || !stream.connection().is_open())
    }

    /// Whether nothing could be sent now, for want of a window or of room in the output of the peer's connection.
    pub fn is_stuck(&self) -> bool {
        self.takes() == 0
    }

    /// The bytes of this body that the peer takes now, as far as windows say; none while the output of its connection is full.
    pub fn takes(&self) -> usize {
        let Writer::Stream(stream) = self.writer else { return usize::MAX };
        stream.takes()
    }

    /// Sends the head that waits, and waits until something can be sent behind it.
    pub async fn opened(&mut self) -> io::Result<()> {
        self.flush().await?;
        let Writer::Stream(stream) = self.writer else { return Ok(()) };
        let mut waits = false;
        poll_fn(|cx| match stream.poll_room(cx) {
            Poll::Pending if self.timer.is_late(cx, self.limit, &mut waits) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            poll => poll,
        })
        .await
    }

    /// Writes the bytes that wait, and `data`, in frames.
    async fn write_frames(&mut self, stream: &Http2Stream, data: &[u8], then: Then<'_>) -> io::Result<()> {
        let out = std::mem::take(self.out);
        let (mut done, mut ended) = (0, Ok(()));
        loop {
            let (mut waits, mut is_done) = (false, false);
            let sent = poll_fn(|cx| {
                let poll = stream.poll_send(cx, [&out, data, b""], done, then).map_ok(|progress| {
                    is_done = progress.is_done;
                    done += progress.data;
                    progress.counted
                });
                match poll {
                    // Bytes that are left after an end count for nothing.
                    Poll::Ready(Ok(0)) => Poll::Ready(Ok(0)),
                    poll => self.outcome(poll, cx, &mut waits),
                }
            });
            match sent.await {
                Ok(_) if is_done => break,
                Ok(_) => {}
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        *self.out = out;
        self.out.clear();
        ended
    }

    /// Writes the bytes that wait, `data` and `end`.
    async fn write_behind(&mut self, data: &[u8], end: &[u8]) -> io::Result<()> {
        let out = std::mem::take(self.out);
        let result = self.write([&out, data, end]).await;
        *self.out = out;
        self.out.clear();
        result
    }

    async fn write(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        let (mut done, total) = (0, parts.iter().map(|p| p.len()).sum::<usize>());
        while done < total {
            let mut waits = false;
            done += poll_fn(|cx| {
                let mut slices = [IoSlice::new(b""); 3];
                let (mut skip, mut used) = (done, 0);
                for part in parts {
                    let rest = &part[skip.min(part.len())..];
                    skip -= part.len() - rest.len();
                    if !rest.is_empty() {
                        slices[used] = IoSlice::new(rest);
                        used += 1;
                    }
                }
                if let Some(unstored) = self.unstored {
                    let left = unstored.saturating_sub(done);
                    self.writer.store(left == 0);
                    if left > 0 {
                        slices[0] = IoSlice::new(&parts[0][done..unstored.min(parts[0].len())]);
                        used = 1;
                    }
                }
                let poll = self.writer.poll_write(cx, &slices[..used]);
                self.outcome(poll, cx, &mut waits)
            })
            .await?;
        }
        if self.unstored.is_some() {
            self.unstored = Some(0);
            self.writer.store(false);
        }
        Ok(())
    }

    /// Marks the bytes after the waiting heads as compressed already, where `stores`: records of TLS store them.
    pub fn store_behind(&mut self, stores: bool) {
        self.unstored = stores.then_some(self.out.len());
    }

    /// Whether bytes wait to be written.
    pub fn has_waiting(&self) -> bool {
        !self.out.is_empty()
    }

    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        self.writer.socket()
    }

    /// The identifier of the stream of HTTP/2; 0 where there is none, or it is not open.
    pub fn stream_id(&self) -> u32 {
        self.writer.stream().map_or(0, Http2Stream::id)
    }

    /// Has a stream that breaks off end with the code that another stream ended with.
    pub fn pass_code(&self, code: u32) {
        self.writer.stream().inspect(|stream| stream.pass_code(code));
    }

    /// The reason why the stream of HTTP/2 has broken off; `None` without a stream.
    pub fn fate(&self) -> Option<Fate> {
        self.writer.stream().map(Http2Stream::fate)
    }

    /// Makes the end look like a broken connection, where there is TLS to tell the difference.
    pub fn break_off(&self) {
        self.writer.break_off();
    }

    /// Closes the sending side, without a time limit.
    pub async fn close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }

    /// Waits until the peer is [gone](terse_tls::gone).
    pub async fn gone(&self) {
        self.writer.gone().await;
    }

    /// Whether bytes can go from a pipe to the peer.
    pub fn can_splice(&self) -> bool {
        matches!(self.writer, Writer::Tcp(_))
    }

    /// Sends all that a pipe holds as a part of the body, after the bytes that wait. To be called where
    /// [`Sender::can_splice`] is true.
    pub async fn send_piped(&mut self, pipe: &mut Pipe<'_>) -> io::Result<()> {
        let end = self.begin(pipe.held());
        let (out, mut done) = (std::mem::take(self.out), 0);
        while done < out.len() || pipe.held() > 0 {
            let mut waits = false;
            let ahead = &out[done..];
            let n = poll_fn(|cx| {
                let poll = match ahead {
                    [] => self.writer.poll_splice(cx, pipe),
                    _ => self.writer.poll_send_ahead(cx, ahead),
                };
                self.outcome(poll, cx, &mut waits)
            })
            .await?;
            // Bytes that waited go first.
            done += n.min(ahead.len());
        }
        self.unstored = self.unstored.map(|_| 0);
        *self.out = out;
        self.out.clear();
        self.out.extend_from_slice(end);
        Ok(())
    }

    /// The result of a write: its bytes are counted, and a peer that takes none, or not in its time, is an error.
    #[inline]
    fn outcome(&mut self, poll: Poll<io::Result<usize>>, cx: &Context<'_>, waits: &mut bool) -> Poll<io::Result<usize>> {
        match poll {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(n)) => {
                self.written += n as u64;
                let uncounted = self.uncounted.min(n as u64);
                self.uncounted -= uncounted;
                self.count.set(self.count.get() + n as u64 - uncounted);
                if let Some(meter) = self.meter {
                    meter.count(n as u64);
                }
                poll
            }
            Poll::Pending if self.timer.is_late(cx, self.limit, waits) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            poll => poll,
        }
    }
}

#[cfg(test)]
mod tests;
