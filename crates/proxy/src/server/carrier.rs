//! Connections of HTTP/2 to servers, which many requests share, and those that are being made.
//!
//! ```text
//! lease --none fits--> Making, a task --ALPN or 'proto'--> Carrier --> streams
//!   ^                     | HTTP/1: one request takes it          |
//!   \------ requests wait-/                                       \-- retired: ends with its last stream
//! ```
//! Invariants:
//! * A connection is made by a task of its own: a client that leaves does not end it.
//! * While it is unknown whether a server speaks HTTP/2, a single connection is made, and the requests that may share it wait
//!   for its version.
//! * A busy connection belongs to the session that made it, or took it when it was idle, unless `http-reuse` shares it.
//! * A connection by which a server knows a user (NTLM, Negotiate) gets streams of that user's session alone, and ends with it.

use super::idle::Wanted;
use super::need::Held;
use super::{ServerConnection, Terms};
use crate::connection::counters::SERVERS;
use crate::descriptors::Counted;
use crate::io::{Multiplexed, Transport, Wheel, clock};
use crate::settings::Reuse;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use terse_tls::Secured;

/// A connection of HTTP/2 to a server.
pub struct Carrier {
    /// Its streams.
    pub connection: Rc<Multiplexed>,
    terms: Terms,
    /// The session that it belongs to while it is busy.
    owner: Cell<u64>,
    /// Requests that it has carried.
    requests: Cell<u64>,
    /// End of its allowed idle time; `None` while streams are open.
    idle_until: Cell<Option<Instant>>,
    /// Its place in the count of those that its session keeps for itself.
    own: RefCell<Option<Held>>,
    /// Streams that this side has given up, and since when they are counted.
    given_up: Cell<(Option<Instant>, u32)>,
    is_retired: Cell<bool>,
    /// When bytes of the server came last.
    heard_at: Cell<Instant>,
    _held: Option<Held>,
    _counted: Option<Counted>,
}

/// The most streams given up in [`GIVEN_UP_PERIOD`]: a server that counts resets ends the connection of all (RFC 9113 section 10.5).
const MOST_GIVEN_UP: u32 = 20;
const GIVEN_UP_PERIOD: Duration = Duration::from_secs(10);

impl Carrier {
    /// A connection that speaks HTTP/2 from here on.
    pub fn new(made: ServerConnection, multiplexed: impl FnOnce(Transport) -> Rc<Multiplexed>) -> Rc<Carrier> {
        let ServerConnection { io, terms, held, counted, .. } = made;
        Rc::new(Carrier {
            connection: multiplexed(io),
            owner: Cell::new(terms.owner),
            terms,
            requests: Cell::new(0),
            idle_until: Cell::new(None),
            own: RefCell::new(None),
            given_up: Cell::new((None, 0)),
            is_retired: Cell::new(false),
            heard_at: Cell::new(clock::now()),
            _held: held,
            _counted: counted,
        })
    }

    /// Its destination and identity.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Its TLS, where it has some.
    pub fn tls(&self) -> Option<&Rc<Secured>> {
        self.connection.io().tls()
    }

    /// Whether no stream is open.
    pub fn is_idle(&self) -> bool {
        self.connection.streams() == 0
    }

    /// Whether it takes no more streams.
    pub fn is_over(&self) -> bool {
        self.is_retired.get() || self.connection.is_half_closed() || self.connection.peek().is_going()
    }

    /// Takes no more requests, and ends with the last stream.
    pub fn retire(&self) {
        if !self.is_retired.replace(true) {
            self.connection.stir();
        }
    }

    /// Whether it ends with its last stream, by the proxy's decision.
    pub fn is_retired(&self) -> bool {
        self.is_retired.get()
    }

    /// Whether a request may have a stream of it.
    pub(super) fn may_serve(&self, wanted: &Wanted<'_>) -> bool {
        let by_reuse = || match wanted.reuse {
            Reuse::Never => false,
            // It has been seen to be idle.
            Reuse::Safe => !wanted.first && self.idle_until.get().is_some(),
            Reuse::Aggressive | Reuse::Always => wanted.may_share(self.owner.get(), self.requests.get()),
        };
        let may = match self.connection.private_to() {
            Some(session) => session == wanted.session,
            None => self.owner.get() == wanted.session || by_reuse() && !self.is_own(),
        };
        may && wanted.fits(&self.terms)
    }

    /// A stream of it for a session, with the number of requests it had carried before, and whether it was idle.
    pub fn lend(&self, wanted: &Wanted<'_>, wheel: &Rc<Wheel>) -> Leased {
        let (was_idle, before) = (self.is_idle(), self.requests.get());
        if was_idle {
            self.owner.set(wanted.session);
            self.idle_until.set(None);
        }
        if wanted.reuse == Reuse::Never && self.own.borrow().is_none() {
            self.own.replace(Some(Held::count(wanted.own_connections)));
        }
        self.requests.set(before + 1);
        SERVERS.streams.add(1);
        let stream = self.connection.reserve();
        let Terms { server, moves, local, .. } = &self.terms;
        let terms = Terms { server: server.clone(), moves: *moves, local: *local, owner: self.owner.get(), ..Terms::default() };
        let mut connection = Box::new(ServerConnection::on(Transport::Stream(stream), wheel, terms));
        connection.requests = before;
        Leased { connection, was_idle: was_idle && before > 0, tls: self.tls().cloned() }
    }

    /// Takes note that no stream is open any more: the connection is kept for so long. False where that was known.
    pub fn rest(&self, delay: Duration) -> bool {
        let is_new = self.idle_until.get().is_none();
        if is_new {
            self.idle_until.set(Some(clock::now() + delay));
        }
        is_new
    }

    /// Takes note that bytes of the server have come.
    pub fn heard(&self) {
        self.heard_at.set(clock::now());
    }

    /// When bytes of the server came last.
    pub fn heard_at(&self) -> Instant {
        self.heard_at.get()
    }

    /// Whether its allowed idle time is over.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        self.is_idle() && self.idle_until.get().is_some_and(|until| now >= until)
    }

    /// Whether it is reserved to that session.
    pub(super) fn is_own_of(&self, session: u64) -> bool {
        self.own.borrow().is_some() && self.owner.get() == session || self.connection.private_to() == Some(session)
    }

    /// Whether it is reserved to a session.
    pub(super) fn is_own(&self) -> bool {
        self.own.borrow().is_some() || self.connection.private_to().is_some()
    }

    /// Requests that it has carried.
    pub(super) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Counts streams that this side has given up; too many of them retire the connection.
    pub fn give_up(&self, streams: u32) {
        let now = clock::now();
        let (since, count) = match self.given_up.get() {
            (Some(since), count) if now.saturating_duration_since(since) < GIVEN_UP_PERIOD => (since, count),
            _ => (now, 0),
        };
        self.given_up.set((Some(since), count + streams));
        if count + streams > MOST_GIVEN_UP {
            self.retire();
        }
    }
}

/// A stream to a server.
pub struct Leased {
    /// The stream, as a connection for a request.
    pub connection: Box<ServerConnection>,
    /// Whether it is the sole stream of a connection that had carried others: its server may have closed that just then.
    pub was_idle: bool,
    /// The connection's TLS.
    pub tls: Option<Rc<Secured>>,
}

/// Result of a lookup among the connections of a server.
pub enum Lease {
    /// A connection with room.
    Carrier(Rc<Carrier>),
    /// A connection that is being made.
    Making(Rc<Making>),
    /// None: a connection is to be made.
    None,
    /// The server speaks HTTP/1.
    Http1,
}

/// A connection that is being made.
pub struct Making {
    session: u64,
    key: Key,
    /// Requests that wait for it, and how many may.
    waiting: Rc<Cell<usize>>,
    most: usize,
    outcome: RefCell<Option<Outcome>>,
    /// The TLS that its handshake came to, also where that failed.
    tls: RefCell<Option<Rc<Secured>>>,
    wakers: RefCell<Vec<Waker>>,
    is_first: Cell<bool>,
}

/// Outcome of making a connection.
pub enum Outcome {
    /// A connection of HTTP/2.
    Carrier(Rc<Carrier>),
    /// A connection of HTTP/1, for the request that takes it.
    Http1(Option<Box<ServerConnection>>),
    /// No connection.
    Failed(io::ErrorKind, Option<i32>),
}

/// Properties that requests for the same connection have in common.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    announced: Option<Box<[u8]>>,
    name: Option<Box<str>>,
    pool_name: Option<Box<str>>,
    asked: Option<SocketAddr>,
    guise: Option<SocketAddr>,
}

impl Key {
    /// The key of a wanted connection; `follows`: the destination depends on the client's original destination.
    pub fn of(wanted: &Wanted<'_>, follows: bool) -> Key {
        Key {
            announced: wanted.announced.map(Into::into),
            name: wanted.name.filter(|_| wanted.pool_name.is_none()).map(Into::into),
            pool_name: wanted.pool_name.map(Into::into),
            asked: wanted.asked.filter(|_| follows),
            guise: wanted.guise,
        }
    }
}

impl Making {
    pub(super) fn new(session: u64, key: Key, most: usize) -> Rc<Making> {
        Rc::new(Making {
            session,
            key,
            waiting: Rc::default(),
            most,
            outcome: RefCell::default(),
            tls: RefCell::default(),
            wakers: RefCell::default(),
            is_first: Cell::new(true),
        })
    }

    /// Whether a request may wait for it.
    pub(super) fn may_serve(&self, wanted: &Wanted<'_>, key: &Key) -> bool {
        let shares = wanted.reuse == Reuse::Always || wanted.reuse == Reuse::Aggressive && !wanted.first;
        self.waiting.get() < self.most && (shares || self.session == wanted.session) && self.key == *key
    }

    /// Passes the outcome to the tasks that wait.
    pub fn done(&self, outcome: Outcome, tls: Option<Rc<Secured>>) {
        self.outcome.replace(Some(outcome));
        self.tls.replace(tls);
        self.wakers.take().into_iter().for_each(Waker::wake);
    }

    /// Whether it is over.
    pub fn is_done(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    /// Waits for the outcome. The first task that gets it takes the single share: a connection of HTTP/1, the right to a
    /// stream, the blame.
    pub async fn wait(&self) -> Told {
        let _waiting = Held::count(&self.waiting);
        let mut place = usize::MAX;
        poll_fn(|cx| {
            let mut outcome = self.outcome.borrow_mut();
            let Some(outcome) = &mut *outcome else {
                let mut wakers = self.wakers.borrow_mut();
                match wakers.get_mut(place) {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => {
                        place = wakers.len();
                        wakers.push(cx.waker().clone());
                    }
                }
                return Poll::Pending;
            };
            let is_first = self.is_first.replace(false);
            let tls = self.tls.borrow().clone();
            Poll::Ready(match outcome {
                Outcome::Carrier(carrier) => Told::Carrier(carrier.clone(), is_first),
                Outcome::Http1(connection) => Told::Http1(connection.take(), tls),
                Outcome::Failed(kind, code) => {
                    let error = code.map_or_else(|| io::Error::from(*kind), io::Error::from_raw_os_error);
                    Told::Failed(error, tls, is_first)
                }
            })
        })
        .await
    }
}

/// Outcome of making a connection, for a request that has waited for it.
pub enum Told {
    /// It is there; `true`: a stream of it is this request's.
    Carrier(Rc<Carrier>, bool),
    /// It speaks HTTP/1: the first request takes it.
    Http1(Option<Box<ServerConnection>>, Option<Rc<Secured>>),
    /// It could not be made; `true`: this is the request by which that counts.
    Failed(io::Error, Option<Rc<Secured>>, bool),
}
