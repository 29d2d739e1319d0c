//! A connection that speaks TLS.
//!
//! ```text
//!   made -- handshake --> open -- close_notify sent --> half closed --> dropped
//!     \                     \______ dropped: a close_notify is tried, and not waited for; none where it was broken off
//!      \__ failed: `failure` has the reason
//! ```
//!
//! Data that goes ahead of the handshake has states of its own: `early` has their picture. The end of a connection is
//! `ending`'s.
//!
//! A single task owns it, and polls both directions: each of them drives the bytes that wait to be sent. So none are
//! forgotten by a direction that has nothing more to do.

use crate::counters::{COUNTERS, HandshakeCounts, begin, bump};
use crate::early::{Early, Progress};
use crate::ending;
use crate::failure::{Cause, Failure};
use crate::raw;
use crate::records::{self, Hold, Manner};
use crate::settings::Global;
use crate::socket::Socket;
use crate::verification;
use crate::wire::{Pause, Wire};
use openssl::ssl::{Error, ErrorCode, Ssl, SslOptions, SslRef, SslStream};
use socket2::SockRef;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, ready};
use tokio::task::coop;

/// A connection.
pub struct Secured {
    pub(crate) socket: Arc<Socket>,
    pub(crate) stream: RefCell<SslStream<Wire>>,
    limits: Limits,
    pub(crate) side: Side,
    /// Counts of its line.
    counts: Arc<HandshakeCounts>,
    /// Bytes written since a pause.
    burst: Cell<u32>,
    pub(crate) state: Cell<State>,
    /// Data that goes ahead of the handshake, where that may be.
    pub(crate) early: RefCell<Option<Box<Early>>>,
    /// Whether its records are compressed.
    compresses: Cell<bool>,
    /// Whether the other end shall see that data is missing.
    pub(crate) breaks_off: Cell<bool>,
    /// Whether the other end has taken the early data.
    pub(crate) went_early: Cell<bool>,
    /// Whether the bytes that are written now are compressed already, so that they travel in stored records.
    stores: Cell<bool>,
    /// The right to the memory of its coders: from the beginning, and as long as they may exist.
    memory: Cell<Option<Hold>>,
}

/// Peer at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Bytes in a record; 0: as many as fit.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Limits {
    /// Bytes at the beginning of a burst.
    first: u16,
    /// Bytes at any time.
    any: u16,
}

impl Limits {
    pub(crate) fn of(global: &Global) -> Limits {
        let [first, any] = [global.max_record, global.hard_max_record].map(|bytes| u16::try_from(bytes).unwrap_or_default());
        Limits { first, any }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The handshake is to be made.
    Fresh,
    /// The same, and data may go ahead of it to the server.
    Held,
    /// The client's early data has come, the rest of its handshake has not.
    Early,
    Open,
    /// The handshake failed, with this reason.
    Failed(Failure),
}

/// Most bytes that a record carries (RFC 8446 section 5.1).
const RECORD: usize = 16_384;
/// Bytes after which a burst is long, and records need not be small any more.
const LONG_BURST: u32 = 40 * 1024;

impl fmt::Debug for Secured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secured").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Secured {
    pub(crate) fn new(
        mut ssl: Ssl,
        socket: Socket,
        early: &[u8],
        limits: Limits,
        (side, counts): (Side, &Arc<HandshakeCounts>),
        hold: Option<Hold>,
    ) -> io::Result<Secured> {
        // A client's connection prepares for memory and asks for it when its hello has come.
        if side == Side::Server {
            verification::prepare(&mut ssl);
            if hold.is_none() {
                records::forbid(&ssl);
            }
        }
        let socket = Arc::new(socket);
        let stream = RefCell::new(SslStream::new(ssl, Wire::new(socket.clone(), early))?);
        begin(side);
        Ok(Secured {
            socket,
            stream,
            limits,
            side,
            counts: counts.clone(),
            burst: Cell::new(0),
            state: Cell::new(State::Fresh),
            early: RefCell::default(),
            compresses: Cell::new(false),
            breaks_off: Cell::new(false),
            went_early: Cell::new(false),
            stores: Cell::new(false),
            memory: Cell::new(hold),
        })
    }

    /// Makes the handshake. It is as good as made where early data has come before it, or may go ahead of it.
    pub fn poll_handshake(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        match self.state.get() {
            State::Held => Poll::Ready(Ok(())),
            _ => self.poll_made(cx),
        }
    }

    pub(crate) fn poll_made(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if self.side == Side::Client {
            ready!(self.poll_early(cx))?;
            if self.is_early() {
                return Poll::Ready(Ok(()));
            }
        }
        loop {
            let mut stream = self.stream.borrow_mut();
            let done = stream.do_handshake();
            // An alert is worth sending, too.
            let sent = stream.get_mut().send_waiting();
            match done {
                Ok(()) if sent.is_ok() || is_wait(&sent) => {
                    self.open(&stream);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.code() == ErrorCode::WANT_READ => {
                    drop(stream);
                    if ready!(self.poll_more(cx)).is_err() {
                        return Poll::Ready(Err(self.fail(Failure { cause: Cause::Abort, library: 0 })));
                    }
                }
                Ok(()) => {
                    drop(stream);
                    return Poll::Ready(Err(self.fail(Failure { cause: Cause::Abort, library: 0 })));
                }
                Err(error) => {
                    let failure = why(&stream, &error);
                    drop(stream);
                    return Poll::Ready(Err(self.fail(failure)));
                }
            }
        }
    }

    /// The handshake is made.
    pub(crate) fn open(&self, stream: &SslStream<Wire>) {
        self.state.set(State::Open);
        bump(counter(self.side, &COUNTERS.client_handshakes, &COUNTERS.server_handshakes));
        bump(&self.counts.made);
        if stream.ssl().session_reused() {
            bump(&self.counts.resumed);
            bump(counter(self.side, &COUNTERS.client_resumed, &COUNTERS.server_resumed));
            if self.side == Side::Client && raw::options(stream.ssl()).contains(SslOptions::NO_TICKET) {
                bump(&COUNTERS.cache_hits);
            }
        }
        self.settle_records(stream.ssl());
        if self.side == Side::Client {
            raw::forget_exchange(stream.ssl());
        }
    }

    /// Checks whether both ends compress records; if not, the memory for it is given back.
    fn settle_records(&self, ssl: &SslRef) {
        self.compresses.set(records::current(ssl));
        match self.compresses.get() {
            true => bump(counter(self.side, &COUNTERS.records_clients, &COUNTERS.records_servers)),
            false => {
                self.memory.set(None);
                records::release(ssl);
            }
        }
    }

    /// Whether its records are compressed.
    pub fn compresses_records(&self) -> bool {
        self.compresses.get()
    }

    /// Sets whether the bytes that are written from here on are compressed already: they then travel in stored records,
    /// which cost no work.
    pub fn store_records(&self, stores: bool) {
        self.stores.set(stores);
    }

    /// Fails the handshake because it took too long.
    pub fn give_up(&self) -> Failure {
        self.fail(Failure { cause: Cause::Timeout, library: 0 })
    }

    /// The reason why the handshake failed, if it did.
    pub fn failure(&self) -> Option<Failure> {
        match self.state.get() {
            State::Failed(failure) => Some(failure),
            State::Fresh | State::Held | State::Early | State::Open => None,
        }
    }

    pub(crate) fn fail(&self, failure: Failure) -> Failure {
        bump(counter(self.side, &COUNTERS.client_failures, &COUNTERS.server_failures));
        bump(&self.counts.failed);
        self.state.set(State::Failed(failure));
        failure
    }

    /// Reads into the room, which is not empty; 0 when the other end has closed.
    pub fn poll_read(&self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let turn = ready!(coop::poll_proceed(cx));
        self.push(cx)?;
        self.burst.set(0);
        if self.state.get() == State::Held {
            ready!(self.poll_made(cx)).map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        }
        loop {
            let early = self.give_early(room);
            if early > 0 {
                turn.made_progress();
                return Poll::Ready(Ok(early));
            }
            if self.is_early() {
                ready!(self.poll_early(cx)).map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
                continue;
            }
            let mut stream = self.stream.borrow_mut();
            let mut filled = 0;
            // Records that are there already come with the first one.
            let error = loop {
                match stream.ssl_read(&mut room[filled..]) {
                    Ok(n) => {
                        filled += n;
                        if filled == room.len() {
                            break None;
                        }
                    }
                    Err(error) => break Some(error),
                }
            };
            if filled > 0 {
                turn.made_progress();
                return Poll::Ready(Ok(filled));
            }
            match error.map(|error| ending::of_read(&stream, error)) {
                Some(Some(end)) => {
                    turn.made_progress();
                    return Poll::Ready(end);
                }
                _ => {
                    drop(stream);
                    ready!(self.poll_more(cx))?;
                }
            }
        }
    }

    /// Waits until there is something to read, or the other end has closed.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.push(cx)?;
        loop {
            if self.peek() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_more(cx))?;
        }
    }

    /// Waits for the event that a read needs that found nothing; waiting bytes are sent meanwhile.
    pub(crate) fn poll_more(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let pause = self.stream.borrow().get_ref().pause();
        match pause {
            Some(Pause::Unsent) => self.poll_sent(cx),
            Some(Pause::Turn) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                // Whichever comes first; both wake this task.
                self.push(cx)?;
                self.socket.poll_read_ready(cx)
            }
        }
    }

    /// Whether the other end has sent anything or has closed, as far as the runtime knows.
    pub fn is_stale(&self) -> bool {
        self.peek()
    }

    /// The same, asked of the kernel.
    pub fn has_ended(&self) -> bool {
        self.stream.borrow_mut().get_mut().insists = true;
        let found = self.peek();
        self.stream.borrow_mut().get_mut().insists = false;
        found
    }

    /// Looks for data or an end after tickets and other messages of TLS itself.
    fn peek(&self) -> bool {
        let is_known = match self.state.get() {
            State::Early => self.has_early() || self.read_early().is_err() || self.has_early(),
            State::Failed(_) => true,
            State::Fresh | State::Held => false,
            State::Open => self.has_early(),
        };
        if is_known || self.state.get() != State::Open {
            return is_known;
        }
        let mut byte = [0];
        let mut stream = self.stream.borrow_mut();
        match stream.ssl_peek(&mut byte) {
            Ok(_) => true,
            Err(error) => error.code() != ErrorCode::WANT_READ,
        }
    }

    /// Writes some of the slices; returns the number of bytes. They are in records of their own before anything that is
    /// written later, but may still be on their way when this returns.
    pub fn poll_write(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(cx))?;
        let most = match (usize::from(self.limits.first), usize::from(self.limits.any)) {
            (first, any) if first > 0 && self.burst.get() < LONG_BURST => {
                if any > 0 {
                    first.min(any)
                } else {
                    first
                }
            }
            (_, 0) => RECORD,
            (_, any) => any,
        };
        // The handshake may have been made meanwhile: then a session for the next time goes ahead of the answer.
        while self.is_early() && self.read_early().map_err(|_| io::ErrorKind::ConnectionAborted)? == Progress::Came {}
        if matches!(self.state.get(), State::Early | State::Held) {
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).take(most).collect();
            return match self.state.get() {
                _ if bytes.is_empty() => Poll::Ready(Ok(0)),
                State::Early => Poll::Ready(self.write_early(&bytes)),
                _ => self.poll_write_held(cx, &bytes),
            };
        }
        let mut stream = self.stream.borrow_mut();
        let manner = if self.stores.get() { Manner::Stored } else { Manner::Deflate };
        let n = match slices {
            [] => return Poll::Ready(Ok(0)),
            [one] => write(&mut stream, &one[..one.len().min(most)], manner)?,
            [first, ..] if first.len() >= most => write(&mut stream, &first[..most], manner)?,
            _ => {
                // A head and the bytes after it are one record: the receiver can do nothing with a part of it.
                let mut record = Vec::with_capacity(slices.iter().map(|slice| slice.len()).sum::<usize>().min(most));
                for slice in slices {
                    record.extend_from_slice(&slice[..slice.len().min(most - record.len())]);
                }
                write(&mut stream, &record, manner)?
            }
        };
        self.burst.set(self.burst.get().saturating_add(u32::try_from(n).unwrap_or(u32::MAX)));
        Poll::Ready(Ok(n))
    }

    /// Whether all written bytes have gone, and the handshake is made.
    pub fn is_sent(&self) -> bool {
        self.stream.borrow().get_ref().is_sent() && !self.is_early()
    }

    /// Sends waiting bytes, and makes the handshake if that is still to be done.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_sent(cx))?;
        ready!(self.poll_settled(cx)).map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        self.poll_sent(cx)
    }

    fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let sent = {
                let mut stream = self.stream.borrow_mut();
                if stream.get_ref().is_sent() {
                    return Poll::Ready(Ok(()));
                }
                stream.get_mut().send_waiting()
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.socket.poll_write_ready(cx))?,
                done => return Poll::Ready(done),
            }
        }
    }

    /// Sends waiting bytes where the caller waits otherwise.
    fn push(&self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.poll_sent(cx) {
            Poll::Ready(done) => done,
            Poll::Pending => Ok(()),
        }
    }

    /// Calls a function with the state of the connection.
    pub fn with<R>(&self, f: impl FnOnce(&SslRef) -> R) -> R {
        f(self.stream.borrow().ssl())
    }

    /// Waits until the peer is [gone](crate::gone).
    pub async fn gone(&self) {
        self.socket.gone().await;
    }

    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        SockRef::from(&*self.socket)
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> RawFd {
        match &*self.socket {
            Socket::Tcp(io) => io.as_raw_fd(),
            Socket::Unix(io) => io.as_raw_fd(),
        }
    }

    /// This end's address, over IP.
    pub fn local(&self) -> Option<SocketAddr> {
        match &*self.socket {
            Socket::Tcp(io) => io.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }
}

pub(crate) fn counter(side: Side, client: &'static AtomicU64, server: &'static AtomicU64) -> &'static AtomicU64 {
    match side {
        Side::Client => client,
        Side::Server => server,
    }
}

fn write(stream: &mut SslStream<Wire>, bytes: &[u8], manner: Manner) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    records::while_in(manner, || stream.ssl_write(bytes))
        .map_err(|error| error.into_io_error().unwrap_or_else(|_| io::ErrorKind::BrokenPipe.into()))
}

fn is_wait(sent: &io::Result<()>) -> bool {
    matches!(sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Reason why a handshake failed.
pub(crate) fn why(stream: &SslStream<Wire>, error: &Error) -> Failure {
    let library = error.ssl_error().and_then(|stack| stack.errors().first()).map_or(0, |first| first.code());
    // HAProxy has numbers only for faults of clients' certificates.
    let fatal = verification::of(stream.ssl()).and_then(verification::Verification::fatal);
    let fatal = fatal.filter(|cause| stream.ssl().is_server() || *cause == Cause::Mismatch);
    let cause = match fatal {
        Some(cause) => cause,
        // The end of a server's bytes is a breach of the protocol to OpenSSL 3, and so to HAProxy's log.
        None if stream.get_ref().truncated && !stream.ssl().is_server() => Cause::Handshake,
        None if stream.get_ref().truncated && is_untouched(stream.ssl()) => Cause::Empty,
        None if stream.get_ref().truncated || error.code() == ErrorCode::SYSCALL => Cause::Abort,
        None => Cause::Handshake,
    };
    Failure { cause, library }
}

/// Whether no part of a handshake has been seen.
fn is_untouched(ssl: &SslRef) -> bool {
    ssl.state_string_long().contains("before")
}
