//! HTTP/2 with a client (RFC 9113): the task that does all I/O of a connection, from its preface to its last byte.
//!
//! ```text
//! poll: read at most READ_BYTES -> codec -> events -> streams' tasks
//!       write what is owed -> room for streams that wait
//!       life: drain, timeouts, the end
//! ```
//!
//! Invariants:
//! * The task owns one timer. It is set for the current wait: output that the client does not take (`timeout client`), the
//!   first request or a head (`timeout http-request`), the next request (`timeout http-keep-alive`), the end after GOAWAY
//!   (`timeout client-fin`).
//! * While streams are open and the client takes its output, the streams' own timers count.
//! * Input is read while fewer than [`terse_http::h2::Limits::control_bytes`] of answers to control frames wait.
//! * `idle-ping` divides the wait for the next request: a client that does not answer a PING until the next one is gone.
//! * A drain sends GOAWAY with the highest id and a PING, takes streams until the PING comes back or a second has gone, then sends
//!   GOAWAY with the last stream.

use super::counters::{ALL_GLITCHES, COUNTERS, NO_PONG};
use super::downstream::ClientConnection;
use super::linger;
use super::tasks::{self, Head, Job};
use crate::exchange::Framing;
use crate::io::http2::Asks;
use crate::io::websocket;
use crate::io::{Multiplexed, Timer, clock};
use crate::phase::record;
use crate::session::Session;
use crate::spares::Bounds;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use terse_http::h2::{Code, Connection, Event, Failure, Glitch, Malformed};
use terse_message::{self as message, BodyLength, Known};
use terse_sample::World;

/// Time for which streams are still taken after the first GOAWAY, if the client does not answer the PING.
const DRAIN: Duration = Duration::from_secs(1);

/// Time for which an idle connection keeps its memory for the next request.
const MOMENT: Duration = Duration::from_millis(10);

/// Serves a client that speaks HTTP/2 to the end of its connection. The bytes in its buffer begin with the preface.
pub async fn serve(client: ClientConnection, session: &Rc<Session>) {
    let ClientConnection { io, mut buffer, timer } = client;
    let settings = &session.worker.plan.process.http2;
    let limits = settings.limits(&session.worker.plan.process, session.frontend().reading);
    let room = limits.output_bytes;
    let connection = Multiplexed::new(io, Connection::server(limits), room);
    session.multiply(&connection);
    // Streams do not count the bytes that came before them.
    session.carried.take();
    COUNTERS.connections.enter();
    let mut driver = Driver {
        connection: &connection,
        session,
        timer: &timer,
        waiting: Waiting::Nothing,
        idle_since: clock::now(),
        served: 0,
        glitches: 0,
        drain: Drain::No,
        is_reported: false,
        idle_until: None,
        awaits_pong: false,
    };
    driver.feed(buffer.filled());
    let early = buffer.filled().len();
    buffer.consume(early);
    buffer.release_if_empty();
    let end = poll_fn(|cx| driver.poll(cx)).await;
    connection.break_off();
    COUNTERS.connections.leave();
    if connection.is_killed() {
        return;
    }
    // Tasks of streams that were cancelled run before this task goes on.
    tokio::task::yield_now().await;
    if let (End::Done, Some(io)) = (end, connection.into_io()) {
        let mut client = ClientConnection::new(io, timer);
        Box::pin(linger::linger(&mut client, session, Framing::Done, false)).await;
    }
}

/// End of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// All output was sent: the client may still be sending.
    Done,
    /// It is of no use any more.
    Broken,
}

/// The wait that the connection's timer is set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    Nothing,
    /// Streams are open, and time themselves.
    Streams,
    /// The client takes nothing of the output.
    Output,
    /// The first request, or the rest of a head.
    Head,
    /// A moment, before the memory is given back.
    Moment,
    /// The next request.
    Idle,
    /// The client's part of the end.
    Farewell,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Drain {
    No,
    /// The first GOAWAY was sent, then.
    Announced(Instant),
    /// No stream is taken any more.
    Last,
}

struct Driver<'a> {
    connection: &'a Rc<Multiplexed>,
    session: &'a Rc<Session>,
    timer: &'a Timer,
    waiting: Waiting,
    idle_since: Instant,
    /// Requests so far.
    served: u64,
    /// Odd things that the client has done, as they were last counted.
    glitches: u64,
    drain: Drain,
    /// The line of a limit or an error was logged.
    is_reported: bool,
    /// When the wait for the next request is over, whatever PINGs are answered.
    idle_until: Option<Instant>,
    /// The last PING of `idle-ping` is not answered yet.
    awaits_pong: bool,
}

impl Driver<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.connection.register(cx);
        if self.connection.is_killed() {
            return Poll::Ready(End::Broken);
        }
        if !self.session.worker.is_running() {
            self.drain();
        }
        self.read(cx);
        let wrote = match self.connection.poll_output(cx) {
            Ok(wrote) => wrote,
            Err(_) => return Poll::Ready(End::Broken),
        };
        let codec = self.connection.peek();
        let (has_output, has_failed) = (!self.connection.is_sent(), codec.failure().is_some());
        let (is_finished, open) = (codec.is_finished(), codec.open_streams());
        drop(codec);
        let is_over = is_finished || self.connection.is_half_closed() && open == 0;
        if is_over && !has_output {
            return Poll::Ready(if self.connection.is_half_closed() { End::Broken } else { End::Done });
        }
        if has_failed {
            // The streams' further output is of no use to the client.
            self.connection.cancel_all();
        }
        self.wait(has_output || is_over, wrote, open);
        self.poll_timer(cx)
    }

    fn read(&mut self, cx: &mut Context<'_>) {
        let connection = self.connection;
        let mut room = self.session.worker.take_room();
        connection.read(cx, &mut room, |bytes| self.feed(bytes));
        self.session.worker.give_room(room);
    }

    /// Passes bytes to the codec, and handles its events.
    fn feed(&mut self, bytes: &[u8]) {
        let (mut at, now) = (0, clock::now());
        loop {
            let (used, event) = self.connection.codec().receive(bytes.get(at..).unwrap_or_default(), now);
            at += used;
            match event {
                None => break,
                Some(event) => self.take(event),
            }
        }
        let glitches = self.connection.peek().glitches();
        if glitches > self.glitches {
            self.session.count_glitches(glitches - self.glitches);
            self.glitches = glitches;
        }
        let most = self.session.worker.plan.process.http2.most_glitches;
        if most > 0 && glitches >= most && self.connection.peek().failure().is_none() {
            self.connection.codec().abort(Code::ENHANCE_YOUR_CALM, ALL_GLITCHES);
            COUNTERS.limit(ALL_GLITCHES);
            COUNTERS.failures.add(1);
            self.report(ALL_GLITCHES);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Request { id, end: _ } => self.request(id),
            Event::TooLarge { id, is_target: false } => self.open(id, Head::None(message::Malformed::HeadTooLarge), Asks::Answer),
            Event::TooLarge { id, is_target: true } => self.open(id, Head::None(message::Malformed::TargetTooLong), Asks::Answer),
            Event::Unusable { id, malformed } => self.open(id, Head::None(in_http1(malformed)), Asks::Answer),
            Event::Malformed { malformed, .. } => self.malformed(malformed),
            Event::Data { id, .. } | Event::Trailers { id } => self.connection.wake(id),
            Event::WindowOpened { id: 0 } => {}
            Event::WindowOpened { id } => self.connection.wake(id),
            Event::Reset { id, by_peer, .. } => {
                if by_peer { &COUNTERS.resets_received } else { &COUNTERS.resets_sent }.add(1);
                self.connection.cancel(id);
            }
            Event::Pong if self.drain != Drain::No => self.last(),
            Event::Pong => self.pong(),
            Event::Glitch(glitch) => self.glitch(glitch),
            Event::Failed(failure) => self.failed(failure),
            Event::Settings | Event::GoAway { .. } | Event::Interim { .. } | Event::Response { .. } => {}
        }
    }

    fn request(&mut self, id: u32) {
        let mut request = self.session.worker.requests.take().unwrap_or_default();
        let mut codec = self.connection.codec();
        codec.take_request(&mut request);
        let asks = if codec.protocol().is_empty() {
            Asks::Answer
        } else {
            let accept = websocket::to_http1(&mut request, codec.protocol(), || World::random(&*self.session.worker));
            Asks::Protocol { accept, name: Box::default() }
        };
        drop(codec);
        // RFC 9110 section 8.6: a request without content, where its method expects some, has a length of 0.
        if request.body == BodyLength::None && matches!(request.method(), b"POST" | b"PUT" | b"PATCH") {
            request.body = BodyLength::Exact(0);
            request.fields.set(Known::ContentLength.name().as_bytes(), b"0");
        }
        self.open(id, Head::Request(request), asks);
    }

    fn open(&mut self, id: u32, head: Head, asks: Asks) {
        if self.served > 0 {
            record::accepted(self.session);
        }
        self.served += 1;
        COUNTERS.streams.add(1);
        let stream = self.connection.open(id);
        stream.expect(asks);
        let job = Job { session: self.session.clone(), stream, head, idle_since: self.idle_since };
        self.session.worker.tasks.serve(job);
        let most = self.session.worker.plan.process.http2.most_streams;
        if most > 0 && self.served >= most {
            self.last();
        }
    }

    /// Logs and counts a malformed request: its stream was reset.
    fn malformed(&mut self, malformed: Malformed) {
        COUNTERS.malformed.add(1);
        self.served += 1;
        if self.session.worker.plan.process.http2.logs_stream_errors {
            tasks::malformed(self.session, in_http1(malformed));
        }
    }

    fn glitch(&mut self, glitch: Glitch) {
        COUNTERS.limit(glitch.name());
    }

    fn failed(&mut self, failure: Failure) {
        COUNTERS.failures.add(1);
        self.report(failure.cause);
    }

    /// Logs why the connection ends, once.
    fn report(&mut self, cause: &str) {
        let logs = self.session.worker.plan.process.http2.logs_connection_errors;
        if logs && !std::mem::replace(&mut self.is_reported, true) {
            record::unborn(self.session, &format!("HTTP/2 connection closed: {cause}"));
        }
    }

    /// Announces the end where the worker drains.
    fn drain(&mut self) {
        match self.drain {
            Drain::No => {
                let mut codec = self.connection.codec();
                codec.drain();
                codec.ping(*b"draining");
                self.drain = Drain::Announced(clock::now());
                // The timer is set anew: a client may not answer.
                self.waiting = Waiting::Nothing;
            }
            Drain::Announced(since) if clock::now().saturating_duration_since(since) >= DRAIN => self.last(),
            Drain::Announced(_) | Drain::Last => {}
        }
    }

    /// Takes no more streams.
    fn last(&mut self) {
        if self.drain != Drain::Last {
            self.drain = Drain::Last;
            self.connection.codec().goaway(Code::NO_ERROR);
        }
    }

    /// Time limit of the wait for the next request.
    fn idle_limit(&self) -> Option<Duration> {
        let timeouts = &self.session.frontend().timeouts;
        timeouts.keep_alive.or(timeouts.request).or(timeouts.client)
    }

    /// Sets the timer for the next PING, or for the end of the wait, whichever comes first.
    fn set_idle_timer(&mut self) {
        let now = clock::now();
        if let (None, Some(limit)) = (self.idle_until, self.idle_limit()) {
            self.idle_until = Some(now + limit);
        }
        let left = self.idle_until.map(|until| until.saturating_duration_since(now));
        self.timer.set([left, self.session.bind().idle_ping].into_iter().flatten().min());
    }

    /// Whether the timer was set for a PING, and not for the end of the wait.
    fn is_ping_due(&self) -> bool {
        self.session.bind().idle_ping.is_some() && self.idle_until.is_none_or(|until| until > clock::now())
    }

    /// Takes an answer: a client that is there has `timeout client` anew, where no other time limits its rest.
    fn pong(&mut self) {
        self.awaits_pong = false;
        let timeouts = &self.session.frontend().timeouts;
        if timeouts.keep_alive.or(timeouts.request).is_none() {
            self.idle_until = None;
        }
    }

    /// Sets the timer for the current wait.
    fn wait(&mut self, has_output: bool, wrote: bool, open: usize) {
        let is_amid = self.connection.peek().is_amid_frame();
        let waiting = match self.waiting {
            _ if has_output => Waiting::Output,
            _ if open > 0 => Waiting::Streams,
            _ if self.drain == Drain::Last => Waiting::Farewell,
            _ if is_amid || self.served == 0 => Waiting::Head,
            Waiting::Idle => Waiting::Idle,
            _ => Waiting::Moment,
        };
        if waiting == self.waiting && !(waiting == Waiting::Output && wrote) {
            return;
        }
        let timeouts = &self.session.frontend().timeouts;
        match waiting {
            Waiting::Moment => self.idle_since = clock::now(),
            Waiting::Streams => (self.idle_until, self.awaits_pong) = (None, false),
            _ => {}
        }
        let limit = match waiting {
            Waiting::Nothing | Waiting::Streams => None,
            Waiting::Output => timeouts.client,
            Waiting::Head => timeouts.request.or(timeouts.client),
            Waiting::Moment => Some(MOMENT),
            Waiting::Idle => self.idle_limit(),
            Waiting::Farewell => timeouts.client_fin.or(timeouts.client),
        };
        self.waiting = waiting;
        match self.drain {
            Drain::Announced(_) if waiting != Waiting::Output => self.timer.set(Some(DRAIN)),
            _ => self.timer.set(limit),
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        while self.timer.is_due(cx) {
            match (self.drain, self.waiting) {
                (_, Waiting::Output) => return Poll::Ready(End::Broken),
                (Drain::Announced(_), _) => {
                    self.last();
                    cx.waker().wake_by_ref();
                    self.waiting = Waiting::Nothing;
                    self.timer.clear();
                }
                (_, Waiting::Moment) => {
                    self.connection.shrink();
                    self.waiting = Waiting::Idle;
                    self.set_idle_timer();
                }
                (_, Waiting::Farewell) => return Poll::Ready(End::Broken),
                (_, Waiting::Nothing | Waiting::Streams) => self.timer.clear(),
                (Drain::No, Waiting::Idle) if self.is_ping_due() && self.awaits_pong => {
                    COUNTERS.limit(NO_PONG);
                    return Poll::Ready(End::Broken);
                }
                (Drain::No, Waiting::Idle) if self.is_ping_due() => {
                    self.connection.codec().ping(*b"idleping");
                    self.awaits_pong = true;
                    // It goes out in the next poll.
                    cx.waker().wake_by_ref();
                    self.set_idle_timer();
                }
                (_, Waiting::Head | Waiting::Idle) => {
                    self.last();
                    cx.waker().wake_by_ref();
                    self.timer.clear();
                }
            }
        }
        Poll::Pending
    }
}

/// The heads of requests that a worker keeps for the next streams.
pub const HEADS: Bounds = Bounds { usual: 64, most_bytes: 16 * 1024, small: 1024, small_bytes: 2 * 1024 };

/// The corresponding fault of HTTP/1, for logs and the status.
fn in_http1(malformed: Malformed) -> message::Malformed {
    match malformed {
        Malformed::PseudoHeader | Malformed::Status => message::Malformed::FirstLine,
        Malformed::Method => message::Malformed::Method,
        Malformed::Target => message::Malformed::Target,
        Malformed::Host => message::Malformed::Host,
        Malformed::FieldName | Malformed::ConnectionField => message::Malformed::FieldName,
        Malformed::FieldValue => message::Malformed::FieldValue,
        Malformed::ContentLength => message::Malformed::ContentLength,
        Malformed::Trailers => message::Malformed::Trailer,
    }
}
