//! Connections that wait for a request: kept, taken again, dropped.

use super::carrier::{Carrier, Key, Lease, Making};
use super::need::{Held, Need};
use super::{ServerConnection, Terms};
use crate::descriptors::Room;
use crate::io::clock;
use crate::session::Session;
use crate::settings::Reuse;
use crate::worker::Worker;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use terse_balance::Server;
use terse_balance::idle::IdleShare;
use terse_message::Protocol;

/// A worker's idle connections, by the slots of their servers: a connection holds its server, so it is never in the place of
/// another server's.
pub struct IdleConnections {
    shelves: RefCell<Vec<Shelf>>,
}

/// The idle connections of a server.
#[derive(Default)]
struct Shelf {
    /// Boxed, since a connection changes hands several times a request. The oldest comes first.
    #[expect(clippy::vec_box, reason = "moved singly, and often")]
    idle: Vec<Box<ServerConnection>>,
    /// Connections that stay with their sessions. They are no part of the worker's need.
    #[expect(clippy::vec_box, reason = "moved singly, and often")]
    own: Vec<Box<ServerConnection>>,
    need: Need,
    /// The shelf's server: the slot may go to another.
    server: Weak<Server>,
    /// The worker's part in the server's counts.
    told: IdleShare,
    /// Connections of HTTP/2, busy or idle, and those that are being made.
    carriers: Vec<Rc<Carrier>>,
    /// The index of the connection that served last: with room left, it is still the fullest, except for those that other
    /// requests have filled.
    last: usize,
    makings: Vec<Rc<Making>>,
    /// The version that the server spoke last, and until when that is believed.
    version: Option<(Protocol, Instant)>,
    /// Streams for which a connection of it had room last.
    streams: Option<usize>,
}

/// The sessions that an idle connection belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Belonging {
    /// All sessions, if it may be needed.
    Shared,
    /// All sessions, if there is room; else its own session. Hardly any other session will ask for such a connection.
    SharedIfRoom,
    /// Its session's alone.
    Own,
}

impl IdleConnections {
    /// Room for the connections of so many servers.
    pub fn new(servers: usize) -> IdleConnections {
        IdleConnections { shelves: RefCell::new((0..servers).map(|_| Shelf::default()).collect()) }
    }

    /// Counts a connection that was made to a server, for as long as the returned value lives.
    pub fn hold(&self, server: &Arc<Server>) -> Option<Held> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelf(&mut shelves, server)?;
        if shelf.server.as_ptr() != Arc::as_ptr(server) {
            (shelf.server, shelf.need, shelf.told) = (Arc::downgrade(server), Need::default(), IdleShare::default());
            (shelf.version, shelf.streams) = (None, None);
        }
        Some(shelf.need.hold(shelf.idle.len()))
    }

    /// A connection to a server that a request of this session may use; connections that the server has closed, or that lead
    /// to its former address, are dropped.
    ///
    /// A request that may be sent only `once` asks the kernel too: a close by its server in this moment is not announced yet.
    pub fn take(&self, server: &Server, wanted: Wanted<'_>) -> Option<Box<ServerConnection>> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.get_mut(server.slot())?;
        let found = shelf.take(server, wanted);
        shelf.tell(server);
        found
    }

    /// Keeps a connection whose last response to this session has been read to its end, if it may be needed.
    pub fn put(&self, mut connection: Box<ServerConnection>, session: &Session, belonging: Belonging) {
        connection.timer.clear();
        connection.buffer.release_if_empty();
        let Some(server) = connection.terms.server.clone() else { return };
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelf(&mut shelves, &server) else { return };
        shelf.put(connection, &server, session, belonging);
        shelf.tell(&server);
    }

    /// A connection of HTTP/2 for a request, or the reason why there is none.
    pub fn lease(&self, server: &Server, wanted: &Wanted<'_>, key: &Key) -> Lease {
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelf(&mut shelves, server) else { return Lease::None };
        shelf.lease(server, wanted, key)
    }

    /// A connection of HTTP/2 with room for a request.
    pub fn find(&self, server: &Server, wanted: &Wanted<'_>) -> Option<Rc<Carrier>> {
        self.shelves.borrow_mut().get_mut(server.slot())?.find(server, wanted)
    }

    /// Records that a connection is being made, of which others may have streams.
    pub fn begin(&self, server: &Server, session: u64, key: Key) -> Rc<Making> {
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelf(&mut shelves, server) else { return Making::new(session, key, 1) };
        // Of unknown version, it may carry many streams, or a single request.
        let by_reuse = server.settings().pool.max_reuse.map_or(usize::MAX, |most| most as usize + 1);
        let most = if shelf.version.is_some() { shelf.streams.unwrap_or(USUAL_STREAMS).min(by_reuse) } else { usize::MAX };
        let making = Making::new(session, key, most);
        shelf.makings.push(making.clone());
        making
    }

    /// Takes a connection that was made: the version that the server speaks, and the connection, if it is of HTTP/2.
    pub fn made(&self, server: &Server, making: &Rc<Making>, version: Option<Protocol>, carrier: Option<&Rc<Carrier>>) {
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelf(&mut shelves, server) else { return };
        shelf.makings.retain(|other| !Rc::ptr_eq(other, making));
        if let Some(version) = version {
            shelf.version = Some((version, clock::now() + BELIEVED));
        }
        shelf.carriers.extend(carrier.cloned());
        shelf.tell(server);
    }

    /// Takes note of how many streams a connection of the server has room for, by its SETTINGS and this side's.
    pub fn note_streams(&self, server: &Server, streams: u32) {
        if let Some(shelf) = self.shelves.borrow_mut().get_mut(server.slot()) {
            shelf.streams = Some(usize::try_from(streams).unwrap_or(usize::MAX).max(1));
        }
    }

    /// Forgets a connection of HTTP/2 that has ended.
    pub fn let_go(&self, server: &Server, carrier: &Rc<Carrier>) {
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelves.get_mut(server.slot()) else { return };
        shelf.carriers.retain(|other| !Rc::ptr_eq(other, carrier));
        shelf.tell(server);
    }

    /// Records that a connection of HTTP/2 is idle: it ends where none is to be kept.
    pub fn rests(&self, server: &Server, worker: &Worker) {
        let mut shelves = self.shelves.borrow_mut();
        let Some(shelf) = shelves.get_mut(server.slot()) else { return };
        let pool = &server.settings().pool;
        let most = pool.max_idle.map_or(MOST_IDLE, |most| most as usize);
        let keeps = match worker.room() {
            Room::Plenty if pool.purge_delay.is_zero() => 0,
            Room::Plenty => most,
            Room::Little => most.min(1),
            Room::None => 0,
        };
        // Connections that have carried nothing were made for requests that are about to come.
        let is_shared = |carrier: &Carrier| carrier.is_idle() && !carrier.is_over() && !carrier.is_own() && carrier.requests() > 0;
        let mut idle = shelf.carriers.iter().filter(|carrier| is_shared(carrier)).count();
        shelf.carriers.retain(|carrier| {
            let goes = idle > keeps && is_shared(carrier);
            if goes {
                idle -= 1;
                carrier.retire();
            }
            !goes
        });
        if idle > 0 {
            worker.offers_idle(true);
        }
        shelf.tell(server);
    }

    /// Drops the connections that are this session's own.
    pub fn forget(&self, session: u64) {
        let has_own = |shelf: &&mut Shelf| !shelf.own.is_empty() || shelf.carriers.iter().any(|carrier| carrier.is_own_of(session));
        for shelf in self.shelves.borrow_mut().iter_mut().filter(has_own) {
            shelf.own.retain(|c| c.terms.owner != session);
            shelf.retire(|carrier| carrier.is_own_of(session));
            if let Some(server) = shelf.server.upgrade() {
                shelf.tell(&server);
            }
        }
    }

    /// Closes a shared idle connection, the oldest of a server, or of any server that has some; false if there is none.
    pub fn close_shared(&self, server: Option<&Server>) -> bool {
        let mut shelves = self.shelves.borrow_mut();
        let of_server = server.map(Server::slot).filter(|slot| shelves.get(*slot).is_some_and(Shelf::has_shared));
        let slot = of_server.or_else(|| shelves.iter().position(Shelf::has_shared));
        let Some(shelf) = slot.and_then(|slot| shelves.get_mut(slot)) else { return false };
        if shelf.idle.is_empty() {
            let mut found = false;
            shelf.retire(|carrier| carrier.is_idle() && !carrier.is_own() && !std::mem::replace(&mut found, true));
        } else {
            drop(shelf.idle.remove(0));
        }
        if let Some(server) = shelf.server.upgrade() {
            shelf.tell(&server);
        }
        true
    }

    /// Closes an idle connection that stays with its session, but none by which a server knows a user; false if there is
    /// none.
    pub fn close_own(&self) -> bool {
        let mut shelves = self.shelves.borrow_mut();
        let place = |shelf: &Shelf| shelf.own.iter().position(|c| !c.terms.private);
        let Some((shelf, at)) = shelves.iter_mut().find_map(|shelf| place(shelf).map(|at| (shelf, at))) else { return false };
        drop(shelf.own.remove(at));
        if let Some(server) = shelf.server.upgrade() {
            shelf.tell(&server);
        }
        true
    }

    /// Drops the connections to the server in that slot: they end with its streams.
    pub fn leave(&self, slot: usize) {
        if let Some(shelf) = self.shelves.borrow_mut().get_mut(slot) {
            shelf.idle.clear();
            shelf.own.clear();
            shelf.retire(|_| true);
            if let Some(server) = shelf.server.upgrade() {
                shelf.tell(&server);
            }
        }
    }

    /// Drops connections that are too old, closed by their server, or of a removed server.
    pub fn purge(&self, now: Instant) {
        let is_good = |c: &ServerConnection| !c.terms.server.as_ref().is_some_and(|server| server.is_gone()) && !c.io.is_stale();
        for shelf in self.shelves.borrow_mut().iter_mut() {
            let server = shelf.server.upgrade();
            if let Some(server) = &server {
                shelf.need.look(now, shelf.idle.len(), server.settings().pool.purge_delay);
            }
            shelf.idle.retain(|c| now < c.idle_until && is_good(c));
            shelf.own.retain(|c| is_good(c));
            let is_gone = server.as_ref().is_some_and(|server| server.is_gone());
            shelf.retire(|carrier| carrier.is_old(now) || is_gone || carrier.is_over());
            shelf.carriers.iter().filter(|carrier| carrier.is_idle()).for_each(|carrier| carrier.connection.shrink());
            if let Some(server) = &server {
                shelf.tell_all(server);
            }
        }
    }

    /// Number of idle connections.
    pub fn count(&self) -> usize {
        self.shelves.borrow().iter().map(|shelf| shelf.idle.len() + shelf.own.len() + shelf.idle_carriers()).sum()
    }
}

impl Shelf {
    /// Finds, among the connections of HTTP/2 with room, the session's private one, else the fullest, or the last one if it
    /// serves. Connections that take no more requests are dropped on the way.
    fn find(&mut self, server: &Server, wanted: &Wanted<'_>) -> Option<Rc<Carrier>> {
        let most = server.settings().pool.max_reuse.map_or(u64::MAX, u64::from);
        let is_done = |carrier: &Carrier| carrier.is_over() || carrier.terms().moves != server.moves() || carrier.requests() > most;
        // An idle connection may have been closed by its server just then: a request that may be sent only once asks the
        // kernel.
        let is_doubtful = |carrier: &Carrier| wanted.once && carrier.is_idle() && carrier.connection.io().has_ended();
        if let Some(last) = self.carriers.get(self.last)
            && !wanted.is_known
            && last.may_serve(wanted)
            && !is_done(last)
            && !last.is_idle()
            && last.connection.free() > 0
        {
            return Some(last.clone());
        }
        loop {
            // Most of many connections differ by their owners alone.
            let may_serve = self.carriers.iter().filter(|carrier| carrier.may_serve(wanted));
            let has_room = may_serve.filter(|carrier| carrier.connection.free() > 0 || is_done(carrier));
            let rank = |carrier: &Carrier| (carrier.connection.private_to().is_some(), carrier.connection.streams());
            let found = has_room.filter(|carrier| !is_doubtful(carrier)).max_by_key(|carrier| rank(carrier))?.clone();
            if !is_done(&found) {
                self.last = self.carriers.iter().position(|carrier| Rc::ptr_eq(carrier, &found)).unwrap_or_default();
                return Some(found);
            }
            self.retire(|carrier| std::ptr::eq(carrier, &*found));
        }
    }

    /// As [`IdleConnections::lease`].
    fn lease(&mut self, server: &Server, wanted: &Wanted<'_>, key: &Key) -> Lease {
        if let Some(carrier) = self.find(server, wanted) {
            return Lease::Carrier(carrier);
        }
        if let Some(making) = self.makings.iter().find(|making| !making.is_done() && making.may_serve(wanted, key)) {
            return Lease::Making(making.clone());
        }
        match self.version {
            Some((Protocol::Http1, until)) if clock::now() < until => Lease::Http1,
            _ => Lease::None,
        }
    }

    /// Lets connections of HTTP/2 go: they end with their last streams.
    fn retire(&mut self, mut goes: impl FnMut(&Carrier) -> bool) {
        self.carriers.retain(|carrier| {
            let goes = goes(carrier);
            if goes {
                carrier.retire();
            }
            !goes
        });
    }

    fn idle_carriers(&self) -> usize {
        self.carriers.iter().filter(|carrier| carrier.is_idle()).count()
    }

    fn has_shared(&self) -> bool {
        !self.idle.is_empty() || self.carriers.iter().any(|carrier| carrier.is_idle() && !carrier.is_own())
    }

    /// As [`IdleConnections::take`].
    fn take(&mut self, server: &Server, wanted: Wanted<'_>) -> Option<Box<ServerConnection>> {
        let Shelf { idle, own, need, .. } = self;
        loop {
            // Of the shared ones the one used last is the warmest, and leaves the others to grow old and go. A session's own
            // comes first: its server may know the user by it.
            let (mut connection, shared) = match own.iter().rposition(|c| c.terms.owner == wanted.session && wanted.fits(&c.terms))
            {
                Some(at) => (own.remove(at), false),
                None => (
                    idle.remove(idle.iter().rposition(|c| wanted.may_share(c.terms.owner, c.requests) && wanted.fits(&c.terms))?),
                    true,
                ),
            };
            let worn = server.settings().pool.max_reuse.is_some_and(|most| connection.requests > u64::from(most));
            let ended = connection.io.is_stale() || (wanted.once && connection.io.has_ended());
            if worn || ended || connection.terms.moves != server.moves() {
                continue;
            }
            match shared {
                true => need.note(idle.len()),
                false => connection.held = None,
            }
            return Some(connection);
        }
    }

    /// As [`IdleConnections::put`].
    fn put(&mut self, mut connection: Box<ServerConnection>, server: &Server, session: &Session, belonging: Belonging) {
        let pool = &server.settings().pool;
        let Shelf { idle, own, need, .. } = self;
        if !connection.buffer.is_released() || connection.terms.moves != server.moves() {
            return;
        }
        let most = pool.max_idle.map_or(MOST_IDLE, |most| most as usize);
        let keeps = most > 0 && !pool.purge_delay.is_zero();
        let room = || session.worker.room();
        let is_shared = match belonging {
            Belonging::Own => false,
            Belonging::SharedIfRoom => keeps && need.has_room(pool.low) && room() == Room::Plenty,
            Belonging::Shared => {
                let is_kept = keeps
                    && match room() {
                        Room::Plenty => need.may_use(pool.low, idle, &connection),
                        Room::Little => idle.is_empty(),
                        Room::None => false,
                    };
                if !is_kept {
                    return;
                }
                true
            }
        };
        if is_shared {
            if idle.len() >= most {
                idle.remove(0);
            }
            connection.held = connection.held.or_else(|| Some(need.hold(idle.len())));
            connection.idle_until = clock::now() + pool.purge_delay;
            idle.push(connection);
            session.worker.offers_idle(true);
        } else if session.own_connections.get() < session.frontend().own_connections {
            connection.held = Some(Held::count(&session.own_connections));
            connection.terms.owner = session.number;
            own.push(connection);
        }
    }

    /// Updates the server's counts of the connections here, where they have changed.
    fn tell(&mut self, server: &Server) {
        let now = IdleShare { shared: self.idle.len() + self.idle_carriers(), own: self.own.len(), ..self.told };
        if now != self.told {
            server.idle.change(self.told, now);
            self.told = now;
        }
    }

    /// The same, and how many are needed.
    fn tell_all(&mut self, server: &Server) {
        let now = IdleShare { shared: self.idle.len() + self.idle_carriers(), own: self.own.len(), needed: self.need.estimate() };
        server.idle.change(self.told, now);
        self.told = now;
    }
}

impl Terms {
    /// Whether it serves the same requests at its destination. Requests can name destinations without end: none of them has a
    /// right to a connection.
    fn is_like(&self, other: &Terms) -> bool {
        let named_so = self.pool_name == other.pool_name && (self.pool_name.is_some() || self.name == other.name);
        named_so && self.announced == other.announced && self.guise == other.guise
    }
}

impl ServerConnection {
    /// Whether none of these is of its kind, and they are of few kinds.
    fn is_another_kind(&self, idle: &[Box<ServerConnection>]) -> bool {
        let mut kinds: SmallVec<[&ServerConnection; MOST_KINDS]> = SmallVec::new();
        for other in idle {
            if other.terms.is_like(&self.terms) {
                return false;
            }
            if !kinds.iter().any(|kind| kind.terms.is_like(&other.terms)) {
                kinds.push(other);
            }
            if kinds.len() == MOST_KINDS {
                return false;
            }
        }
        true
    }
}

impl Need {
    /// Whether a connection is not surplus beside idle ones. Connections that the server has closed do not count, and are
    /// dropped.
    #[expect(clippy::vec_box, reason = "moved singly, and often")]
    fn may_use(&self, low: u32, idle: &mut Vec<Box<ServerConnection>>, connection: &ServerConnection) -> bool {
        let has_place = |idle: &[Box<ServerConnection>]| self.has_room(low) || connection.is_another_kind(idle);
        has_place(idle) || {
            idle.retain(|other| !other.io.is_stale());
            has_place(idle)
        }
    }
}

/// The server's place; servers come while the process runs.
fn shelf<'a>(shelves: &'a mut Vec<Shelf>, server: &Server) -> Option<&'a mut Shelf> {
    if shelves.len() <= server.slot() {
        shelves.resize_with(server.slot() + 1, Shelf::default);
    }
    shelves.get_mut(server.slot())
}

impl Wanted<'_> {
    /// Whether a connection has the wanted destination and identity.
    pub(super) fn fits(&self, c: &Terms) -> bool {
        let leads_there = c.asked.as_deref().is_none_or(|(destination, to)| destination.of(self.asked) == Some(*to));
        let looks_so = c.guise.as_deref() == self.guise.as_ref();
        let named_so = c.pool_name.as_deref() == self.pool_name && (self.pool_name.is_some() || c.name.as_deref() == self.name);
        let told_so = c.announced.as_deref() == self.announced;
        named_so && told_so && leads_there && looks_so
    }

    /// Whether a shared connection of that owner, which has carried so many requests, is for it.
    pub(super) fn may_share(&self, owner: u64, requests: u64) -> bool {
        let by_reuse = match self.reuse {
            Reuse::Never => false,
            Reuse::Safe => !self.first,
            Reuse::Aggressive => !self.first || requests > 1,
            Reuse::Always => true,
        };
        by_reuse || owner == self.session
    }
}

/// Requirements on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// `http-reuse`
    pub reuse: Reuse,
    /// The session that wants it.
    pub session: u64,
    /// Whether it is for the session's first request.
    pub first: bool,
    /// Whether it is for a request that may be sent only once.
    pub once: bool,
    /// Whether a server knows the session's user by a connection.
    pub is_known: bool,
    /// The PROXY header that the server is to get.
    pub announced: Option<&'a [u8]>,
    /// The name that it is asked for by TLS.
    pub name: Option<&'a str>,
    /// The name of its connections, where that counts in the place of the TLS name (`pool-conn-name`).
    pub pool_name: Option<&'a str>,
    /// The client's original destination.
    pub asked: Option<SocketAddr>,
    /// The source address that the server is to see.
    pub guise: Option<SocketAddr>,
    /// Counts the connections that the session keeps for itself.
    pub own_connections: &'a Rc<Cell<usize>>,
}

/// Streams for which a connection is assumed to have room.
const USUAL_STREAMS: usize = 100;

/// Time for which a server is assumed to speak its last version: it may have been replaced.
const BELIEVED: Duration = Duration::from_secs(60);

/// The most idle connections of a server in a worker.
const MOST_IDLE: usize = 1024;

/// Number of kinds (by PROXY header, TLS name) of which one connection each stays, whether it is needed or not: clients can
/// make up any number of kinds.
const MOST_KINDS: usize = 8;
