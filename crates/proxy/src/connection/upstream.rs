//! HTTP/2 with a server (RFC 9113): the task that does all I/O of a connection, from its preface to its last byte.
//!
//! ```text
//! poll: read at most READ_BYTES -> codec -> heads and data -> streams' tasks
//!       write what is owed -> room for streams that wait
//!       life: PING, the end
//! ```
//! Invariants:
//! * While streams are open, their own timers limit what the server may take. Without any, output that it does not take ends the connection
//!   after [`STUCK`].
//! * A PING is sent only where nothing has come for `idle-ping`; without an answer until the next one is due, the connection ends.
//! * A connection that takes no more streams ends with its last one; so does one on which a stream ran into `timeout server` in silence.

use super::counters::{ALL_GLITCHES, NO_PONG, SERVERS};
use crate::io::{Multiplexed, Timer, Transport, clock};
use crate::log::Level;
use crate::server::{Carrier, ServerConnection};
use crate::worker::Worker;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use terse_balance::Server;
use terse_http::h2::{Code, Connection, Event, Limits};

/// A server that has been silent for so long when a stream is not answered in time may be gone: its connection takes no more requests.
const SILENCE: Duration = Duration::from_secs(1);

/// Limit of the size of header blocks, in multiples of the size of heads: later blocks depend on their table.
const BLOCKS: usize = 4;

/// Time for which output that no stream waits for may stay unsent.
const STUCK: Duration = Duration::from_secs(10);

/// The bytes of an answer that a server may send before its client has read any: a hundred answers that are not read hold that much of a
/// connection each.
const FIRST_WINDOW: u32 = 2 * 1024;

/// The bytes that any answer may have ahead of a client which takes it, however much others have.
const READ_WINDOW: u32 = 65_535;

/// The bytes beyond first windows of answers that are known to be larger, on all streams of a connection together.
const ANNOUNCED: u32 = 48 * 1024;

/// Makes a connection speak HTTP/2, and serves it in a task of its own.
pub fn start(worker: &Rc<Worker>, server: &Arc<Server>, label: String, made: ServerConnection) -> Rc<Carrier> {
    let settings = &worker.plan.process.http2_servers;
    let usual = settings.limits(&worker.plan.process, terse_http::h1::Reading::default());
    let room = usual.output_bytes;
    let window = settings.window_bytes.unwrap_or(FIRST_WINDOW);
    let read = window.max(READ_WINDOW);
    let each = usual.concurrent_streams;
    // All windows together never add up to the budget: so the connection's window is always given back, and a client that does not
    // read holds its own streams' windows, and stalls no other's.
    let first = window.saturating_mul(each);
    let shared = settings.budget_bytes.max(first.saturating_mul(2).saturating_add(4 * ANNOUNCED));
    let limits = Limits {
        stream_window: window,
        read_window: read,
        announced_share: ANNOUNCED,
        receive_budget: shared.saturating_add(read.saturating_mul(each)),
        // A head that is too large costs its stream, not the connection of all.
        block_bytes: BLOCKS * usual.block_bytes,
        ..usual
    };
    let most_unread = settings.budget_bytes as usize / 2;
    let multiplexed = |io: Transport| Multiplexed::to_server(io, Connection::client(limits), room, most_unread);
    let carrier = Carrier::new(made, multiplexed);
    let driver = Driver {
        worker: worker.clone(),
        server: server.clone(),
        label,
        carrier: carrier.clone(),
        timer: worker.wheel.timer(),
        waiting: Waiting::Nothing,
        awaits_pong: false,
        glitches: 0,
        given_up: 0,
        is_reported: false,
    };
    SERVERS.connections.enter();
    tokio::task::spawn_local(driver.run());
    carrier
}

/// The wait that the connection's timer is set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    Nothing,
    /// The server takes nothing of the output, and no stream waits for that.
    Output,
    /// A sign of life from the server.
    Sign,
}

struct Driver {
    worker: Rc<Worker>,
    server: Arc<Server>,
    /// Its name, after that of its backend.
    label: String,
    carrier: Rc<Carrier>,
    timer: Timer,
    waiting: Waiting,
    /// The last PING is not answered yet.
    awaits_pong: bool,
    /// Odd things that the server has done, as they were last counted.
    glitches: u64,
    /// Streams given up, as they were last counted.
    given_up: u64,
    /// The line of a limit or an error was logged.
    is_reported: bool,
}

/// However the task ends, no stream waits for it.
impl Drop for Driver {
    fn drop(&mut self) {
        self.carrier.connection.break_off();
        self.worker.idle.let_go(&self.server, &self.carrier);
        SERVERS.connections.leave();
    }
}

impl Driver {
    async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let connection = self.carrier.connection.clone();
        connection.register(cx);
        if connection.is_killed() {
            return Poll::Ready(());
        }
        self.read(cx);
        let Ok(wrote) = connection.poll_output(cx) else { return Poll::Ready(()) };
        let has_output = !connection.is_sent();
        let codec = connection.peek();
        let (is_finished, has_failed, open) = (codec.is_finished(), codec.failure().is_some(), codec.open_streams());
        let given_up = codec.given_up();
        drop(codec);
        if given_up > self.given_up {
            SERVERS.resets_sent.add(given_up - self.given_up);
            self.carrier.give_up(u32::try_from(given_up - self.given_up).unwrap_or(u32::MAX));
            self.given_up = given_up;
        }
        if connection.take_doubt() && clock::now().saturating_duration_since(self.carrier.heard_at()) >= SILENCE {
            self.carrier.retire();
        }
        if has_failed {
            connection.cancel_all();
        }
        if connection.is_half_closed() || is_finished && !has_output {
            return Poll::Ready(());
        }
        if self.carrier.is_idle() {
            if self.carrier.rest(self.server.settings().pool.purge_delay) {
                self.worker.idle.rests(&self.server, &self.worker);
            }
            if self.carrier.is_retired() && !is_finished {
                connection.farewell();
                // It goes out in the next poll.
                cx.waker().wake_by_ref();
            }
        }
        self.wait(has_output, wrote, open);
        self.poll_timer(cx)
    }

    fn read(&mut self, cx: &mut Context<'_>) {
        let connection = self.carrier.connection.clone();
        let mut room = self.worker.take_room();
        let taken = connection.read(cx, &mut room, |bytes| self.feed(bytes));
        self.worker.give_room(room);
        if taken > 0 {
            self.carrier.heard();
        }
    }

    /// Passes bytes to the codec, and handles its events.
    fn feed(&mut self, bytes: &[u8]) {
        let connection = self.carrier.connection.clone();
        let (mut at, now) = (0, clock::now());
        loop {
            let (used, event) = connection.codec().receive(bytes.get(at..).unwrap_or_default(), now);
            at += used;
            match event {
                None => break,
                Some(event) => self.take(&connection, event),
            }
        }
        let glitches = connection.peek().glitches();
        let most = self.worker.plan.process.http2_servers.most_glitches;
        if glitches > self.glitches && most > 0 && glitches >= most && connection.peek().failure().is_none() {
            connection.codec().abort(Code::ENHANCE_YOUR_CALM, ALL_GLITCHES);
            self.limit(ALL_GLITCHES);
        }
        self.glitches = glitches;
    }

    fn take(&mut self, connection: &Multiplexed, event: Event) {
        match event {
            Event::Response { .. } | Event::Interim { .. } => connection.take_head(event),
            Event::Data { id, .. } | Event::Trailers { id } => connection.wake(id),
            Event::WindowOpened { id: 0 } => {}
            Event::WindowOpened { id } => connection.wake(id),
            Event::Reset { id, by_peer, .. } => {
                if by_peer { &SERVERS.resets_received } else { &SERVERS.resets_sent }.add(1);
                connection.wake(id);
            }
            Event::Settings => {
                connection.tell_known();
                self.worker.idle.note_streams(&self.server, connection.peek().most_streams());
            }
            Event::Pong => self.awaits_pong = false,
            Event::GoAway { .. } => {}
            Event::Glitch(glitch) => SERVERS.limit(glitch.name()),
            Event::Failed(failure) => {
                SERVERS.failures.add(1);
                self.report(failure.cause);
            }
            Event::Request { .. } | Event::TooLarge { .. } | Event::Unusable { .. } | Event::Malformed { .. } => {}
        }
    }

    fn limit(&mut self, name: &'static str) {
        SERVERS.limit(name);
        SERVERS.failures.add(1);
        self.report(name);
    }

    /// Logs why the connection ends, once.
    fn report(&mut self, cause: &str) {
        if !self.worker.plan.process.http2.logs_connection_errors || std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        self.worker.log(Level::Warning, &format!("Server {}: HTTP/2 connection closed: {cause}.", self.label));
    }

    /// Sets the timer for the current wait.
    fn wait(&mut self, has_output: bool, wrote: bool, open: usize) {
        let ping = self.server.settings().idle_ping;
        let waiting = match () {
            () if has_output && open == 0 => Waiting::Output,
            () if !ping.is_zero() => Waiting::Sign,
            () => Waiting::Nothing,
        };
        if waiting == self.waiting && !(waiting == Waiting::Output && wrote) {
            return;
        }
        self.waiting = waiting;
        self.timer.set(match waiting {
            Waiting::Nothing => None,
            Waiting::Output => Some(STUCK),
            Waiting::Sign => Some(ping),
        });
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.is_due(cx) {
            match self.waiting {
                Waiting::Nothing => self.timer.clear(),
                Waiting::Output => return Poll::Ready(()),
                Waiting::Sign => {
                    let ping = self.server.settings().idle_ping;
                    let silent = clock::now().saturating_duration_since(self.carrier.heard_at());
                    if silent < ping {
                        self.timer.set(Some(ping - silent));
                    } else if self.awaits_pong {
                        self.limit(NO_PONG);
                        return Poll::Ready(());
                    } else {
                        self.carrier.connection.codec().ping(*b"idleping");
                        self.awaits_pong = true;
                        self.timer.set(Some(ping));
                        // It goes out in the next poll.
                        cx.waker().wake_by_ref();
                    }
                }
            }
        }
        Poll::Pending
    }
}
