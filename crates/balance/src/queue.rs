//! Slots and waiting: `maxconn`, `maxqueue` and the two kinds of queue, each server's own and the backend's.
//!
//! ```text
//!               a slot is free
//!   Want ---------------------------------------> Claim --- drop ---> the slot is free
//!     |                                             ^                      |
//!     | all in use                                  | the oldest of the    |
//!     +-----------> Waiter (in a queue) ------------+ server's queue and <-+
//!                      |                              the backend's
//!                      +-- its server went down --> Retry (also where a slot had been granted and not taken yet)
//! ```
//!
//! A slot is counted in `Load::served` of its server. It is freed with one subtraction; only if a request waits is the
//! lock of the queues taken. In the other direction, a new waiter looks for a free slot once more after it can be seen
//! waiting. Both sides write, then read what the other wrote, all sequentially consistent. So at least one of them sees
//! the other, and no slot stays unused while a request waits for it.

use crate::algorithm::{Key, Roster};
use crate::server::Server;
use arc_swap::Guard;
use std::collections::BTreeMap;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Wanted server.
#[derive(Clone, Copy, Debug)]
pub enum Want<'a> {
    /// The server of this index, as long as it is there: persistence, or a retry. The caller has checked its state.
    Server(usize),
    /// The server that the algorithm chooses.
    Any {
        /// Input of the choice.
        key: Key<'a>,
        /// Indices of servers that have failed this request: taken only when there is no other.
        avoided: &'a [usize],
    },
}

/// Precedence of a request among those that wait. The lower class goes first; within a class the first to come, as if
/// each had come later by its offset.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Precedence {
    /// The class.
    pub class: i16,
    /// Milliseconds; negative ones go forward.
    pub offset_ms: i32,
}

/// Position in the order of all queues.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ticket {
    class: i16,
    due_ms: i64,
    /// Number in the order of arrival.
    number: u64,
}

/// Answer to a [`Want`].
#[derive(Debug)]
pub enum Grant {
    /// A slot: connect.
    Now(Claim),
    /// All slots are in use: await this, under `timeout queue`.
    Wait(Waiter),
    /// The server's queue is full (`maxqueue`).
    Full,
    /// No server may be used.
    NoServer,
}

/// The right to send one request to a server. Dropping it lets the next one in.
#[derive(Debug)]
pub struct Claim {
    server: Arc<Server>,
}

impl Claim {
    /// Takes a slot, unless all are in use or others wait for this server.
    pub(crate) fn try_new(server: &Arc<Server>) -> Option<Claim> {
        (server.queued() == 0 && server.try_enter()).then(|| Claim { server: server.clone() })
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.server.leave();
        let backlog = &self.server.backlog;
        if backlog.waiting.load(SeqCst) != 0 {
            backlog.admit(&self.server);
        }
    }
}

/// Answer to a waiter whose server, or the last server of its backend, goes down: it must find another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry;

/// A request in a queue. It may be dropped at any time: it leaves the queue, and a slot already granted to it goes to
/// the next.
#[derive(Debug)]
pub struct Waiter {
    backlog: Arc<Backlog>,
    /// Server of the queue; `None` for the backend's.
    server: Option<Arc<Server>>,
    ticket: Ticket,
    seat: Arc<Seat>,
    /// Number of requests that the queue had let in when this one came.
    admitted: u32,
    /// Whether it takes a slot of a server that is down: the wanted server was down when it came (`option persist`).
    accepts_down: bool,
}

impl Waiter {
    /// Position in the server's queue (the log's `%sq`): requests let in while it waited, and itself. `None` when it
    /// waits for any server.
    pub fn server_queue(&self) -> Option<u32> {
        self.server.is_some().then(|| self.place())
    }

    /// Position in the backend's queue (the log's `%bq`); `None` when it waits for one server.
    pub fn backend_queue(&self) -> Option<u32> {
        self.server.is_none().then(|| self.place())
    }

    fn place(&self) -> u32 {
        // The queues are locked before a seat, never after.
        let mut lines = lock(&self.backlog.lines);
        let until = match *lock(&self.seat.0) {
            Outcome::Done { admitted, .. } => admitted,
            Outcome::Waiting(_) => lines.of(self.server.as_deref()).admitted,
        };
        until.wrapping_sub(self.admitted).wrapping_add(1)
    }

    fn into_grant(self) -> Grant {
        match self.seat.take() {
            Some(Ok(claim)) => Grant::Now(claim),
            _ => Grant::Wait(self),
        }
    }
}

impl Future for Waiter {
    type Output = Result<Claim, Retry>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut outcome = lock(&self.seat.0);
        let result = match &mut *outcome {
            Outcome::Waiting(waker) => {
                *waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            Outcome::Done { result, .. } => mem::replace(result, Err(Retry)),
        };
        // A claim's drop locks the queues, which are locked before a seat.
        drop(outcome);
        // The server may have gone down between the grant and now: its queue was turned away without this request.
        Poll::Ready(result.and_then(|claim| if self.accepts_down || claim.server.is_up() { Ok(claim) } else { Err(Retry) }))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut lines = lock(&self.backlog.lines);
        let line = lines.known(self.server.as_deref());
        if line.is_some_and(|line| line.waiting.remove(&self.ticket).is_some()) {
            self.backlog.count_out(self.server.as_deref(), 1);
        }
        // A claim that was granted and not taken is in the seat, which is dropped after the lock: a claim's drop takes
        // the lock again.
    }
}

/// All requests that wait for the servers of a farm.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Number of waiting requests in all queues: each request that ends reads it.
    waiting: AtomicU32,
    in_backend: AtomicU32,
    in_backend_max: AtomicU32,
    lines: Mutex<Lines>,
    /// Base of the due times of tickets.
    since: Instant,
}

/// Waiting requests, by order of arrival and precedence.
#[derive(Debug)]
struct Lines {
    /// Queues of servers that any request has waited for, by index.
    servers: BTreeMap<usize, Line>,
    backend: Line,
    next_ticket: u64,
}

#[derive(Default, Debug)]
struct Line {
    waiting: BTreeMap<Ticket, Arc<Seat>>,
    /// Number of requests that it has let in, modulo 2^32.
    admitted: u32,
}

impl Lines {
    /// Queue of a server, or of the backend.
    fn of(&mut self, server: Option<&Server>) -> &mut Line {
        match server {
            Some(server) => self.servers.entry(server.index()).or_default(),
            None => &mut self.backend,
        }
    }

    /// Queue of a server, or of the backend, where it exists.
    fn known(&mut self, server: Option<&Server>) -> Option<&mut Line> {
        match server {
            Some(server) => self.servers.get_mut(&server.index()),
            None => Some(&mut self.backend),
        }
    }

    /// Queue whose first request is next for a slot of the server, and whether it is the backend's.
    fn next_for(&mut self, server: &Server) -> Option<(bool, &mut Line)> {
        let first = |line: &Line| line.waiting.first_key_value().map(|(ticket, _)| *ticket);
        let own = self.servers.get_mut(&server.index());
        let any = if server.serves_any() { first(&self.backend) } else { None };
        match (own.as_deref().and_then(first), any) {
            (None, None) => None,
            (Some(own), Some(any)) if any < own => Some((true, &mut self.backend)),
            (Some(_), _) => own.map(|own| (false, own)),
            (None, Some(_)) => Some((true, &mut self.backend)),
        }
    }
}

/// Outcome of a waiter's want, shared with it.
#[derive(Debug)]
struct Seat(Mutex<Outcome>);

#[derive(Debug)]
enum Outcome {
    Waiting(Option<Waker>),
    Done {
        result: Result<Claim, Retry>,
        /// Number of requests that its queue had let in before.
        admitted: u32,
    },
}

impl Seat {
    /// Decides, and returns the waker of the waiter. `admitted`: number of requests that its queue has let in before.
    fn decide(&self, result: Result<Claim, Retry>, admitted: u32) -> Option<Waker> {
        match mem::replace(&mut *lock(&self.0), Outcome::Done { result, admitted }) {
            Outcome::Waiting(waker) => waker,
            Outcome::Done { .. } => None,
        }
    }

    /// Takes the decision, once.
    fn take(&self) -> Option<Result<Claim, Retry>> {
        match &mut *lock(&self.0) {
            Outcome::Waiting(_) => None,
            Outcome::Done { result, .. } => Some(mem::replace(result, Err(Retry))),
        }
    }
}

impl Backlog {
    pub(crate) fn new() -> Backlog {
        Backlog {
            waiting: AtomicU32::new(0),
            in_backend: AtomicU32::new(0),
            in_backend_max: AtomicU32::new(0),
            lines: Mutex::new(Lines { servers: BTreeMap::new(), backend: Line::default(), next_ticket: 0 }),
            since: Instant::now(),
        }
    }

    /// Number of requests that wait for any server, and its peak.
    pub(crate) fn in_backend(&self) -> (u32, u32) {
        (self.in_backend.load(Relaxed), self.in_backend_max.load(Relaxed))
    }

    /// Resets the peak.
    pub(crate) fn clear_peak(&self) {
        self.in_backend_max.store(self.in_backend.load(Relaxed), Relaxed);
    }

    /// Number of waiting requests in all queues.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }

    /// Enters the queue of a server; [`Grant::Full`] at its limit.
    pub(crate) fn wait_for(self: &Arc<Backlog>, server: &Arc<Server>, precedence: Precedence) -> Grant {
        let limit = server.settings().maxqueue;
        let mut lines = lock(&self.lines);
        if server.is_gone() {
            return Grant::NoServer;
        }
        if limit != 0 && lines.of(Some(server)).waiting.len() >= limit as usize {
            return Grant::Full;
        }
        let waiter = self.join(&mut lines, Some(server), precedence);
        let woken = self.fill(&mut lines, server);
        drop(lines);
        woken.into_iter().for_each(Waker::wake);
        waiter.into_grant()
    }

    /// Enters the backend's queue. The roster is loaded after that: a later change of it finds the request in the
    /// queue.
    pub(crate) fn wait_for_any(self: &Arc<Backlog>, roster: impl FnOnce() -> Guard<Arc<Roster>>, precedence: Precedence) -> Grant {
        let mut lines = lock(&self.lines);
        let waiter = self.join(&mut lines, None, precedence);
        let roster = roster();
        let woken: Vec<Waker> = roster.usable().flat_map(|server| self.fill(&mut lines, server)).collect();
        drop(lines);
        woken.into_iter().for_each(Waker::wake);
        match roster.usable().next() {
            Some(_) => waiter.into_grant(),
            None => Grant::NoServer,
        }
    }

    /// Gives a server's free slots to waiting requests; returns how many got one.
    pub(crate) fn admit(&self, server: &Arc<Server>) -> usize {
        let mut lines = lock(&self.lines);
        let before = self.waiting.load(Relaxed);
        let woken = self.fill(&mut lines, server);
        let admitted = before - self.waiting.load(Relaxed);
        drop(lines);
        woken.into_iter().for_each(Waker::wake);
        admitted as usize
    }

    /// Sends all requests of a queue to look for another server; returns their number.
    pub(crate) fn turn_away(&self, server: Option<&Server>) -> usize {
        let mut lines = lock(&self.lines);
        let Some(line) = lines.known(server) else { return 0 };
        let (all, admitted) = (mem::take(&mut line.waiting), line.admitted);
        self.count_out(server, all.len() as u32);
        drop(lines);
        all.values().filter_map(|seat| seat.decide(Err(Retry), admitted)).for_each(Waker::wake);
        all.len()
    }

    /// Ends the queue of a server that has gone: no request enters it any more.
    pub(crate) fn close_line(&self, server: &Server) {
        self.turn_away(Some(server));
        lock(&self.lines).servers.remove(&server.index());
    }

    fn join(self: &Arc<Backlog>, lines: &mut Lines, server: Option<&Arc<Server>>, precedence: Precedence) -> Waiter {
        let Precedence { class, offset_ms } = precedence;
        let due_ms = self.since.elapsed().as_millis() as i64 + i64::from(offset_ms);
        let ticket = Ticket { class, due_ms, number: lines.next_ticket };
        lines.next_ticket += 1;
        let line = lines.of(server.map(Arc::as_ref));
        let seat = Arc::new(Seat(Mutex::new(Outcome::Waiting(None))));
        line.waiting.insert(ticket, seat.clone());
        let admitted = line.admitted;
        let (count, most) = self.counts(server.map(Arc::as_ref));
        most.fetch_max(count.fetch_add(1, Relaxed) + 1, Relaxed);
        self.waiting.fetch_add(1, SeqCst);
        let accepts_down = server.is_some_and(|server| !server.is_up());
        Waiter { backlog: self.clone(), server: server.cloned(), ticket, seat, admitted, accepts_down }
    }

    /// Gives the server's free slots to the oldest of its queue and the backend's. No claim is dropped in here.
    fn fill(&self, lines: &mut Lines, server: &Arc<Server>) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some((in_backend, line)) = lines.next_for(server)
            && server.try_enter()
            && let Some((_, seat)) = line.waiting.pop_first()
        {
            self.count_out((!in_backend).then_some(server), 1);
            woken.extend(seat.decide(Ok(Claim { server: server.clone() }), line.admitted));
            line.admitted = line.admitted.wrapping_add(1);
        }
        woken
    }

    fn count_out(&self, server: Option<&Server>, n: u32) {
        self.counts(server).0.fetch_sub(n, Relaxed);
        self.waiting.fetch_sub(n, SeqCst);
    }

    /// Length of a queue, readable without the lock, and its peak.
    fn counts<'a>(&'a self, server: Option<&'a Server>) -> (&'a AtomicU32, &'a AtomicU32) {
        match server {
            Some(server) => (&server.load.queued, &server.load.queued_max),
            None => (&self.in_backend, &self.in_backend_max),
        }
    }
}

/// A lock whose holder panicked is as good as any other: nothing here is left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
