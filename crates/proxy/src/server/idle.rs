//! Connections that wait for a request: kept, taken again, dropped.

use super::ServerConnection;
use super::need::{Held, Need};
use crate::io::clock;
use crate::settings::Reuse;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Instant;
use terse_balance::Server;

/// A worker's idle connections, by the slots of their servers: a connection holds its server, so none is ever in the place of another's.
pub struct IdleConnections {
    shelves: RefCell<Vec<Shelf>>,
}

/// One server's.
#[derive(Default)]
struct Shelf {
    /// Boxed, since a connection changes hands several times a request.
    #[expect(clippy::vec_box, reason = "moved singly, and often")]
    idle: Vec<Box<ServerConnection>>,
    need: Need,
}

impl IdleConnections {
    /// Room for the connections of so many servers.
    pub fn new(servers: usize) -> IdleConnections {
        IdleConnections { shelves: RefCell::new((0..servers).map(|_| Shelf::default()).collect()) }
    }

    /// Counts a connection that was made to a server, for as long as what this returns is there.
    pub fn hold(&self, server: &Server) -> Option<Held> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelf(&mut shelves, server)?;
        Some(shelf.need.hold(shelf.idle.len()))
    }

    /// A connection to a server that a request of this session may use; connections that the server has closed, or
    /// that lead to where it was before, are dropped.
    ///
    /// A request that may be sent only `once` asks the kernel too: what its server has closed in this moment is not announced yet.
    pub fn take(
        &self,
        server: &Server,
        Wanted { reuse, session, first, once, announced, name, pool_name, asked, guise }: Wanted<'_>,
    ) -> Option<Box<ServerConnection>> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.get_mut(server.slot())?;
        loop {
            let may = |c: &ServerConnection| {
                let by_reuse = match reuse {
                    Reuse::Never => false,
                    Reuse::Safe => !first,
                    Reuse::Aggressive => !first || c.requests > 1,
                    Reuse::Always => true,
                };
                let leads_there = c.asked.as_deref().is_none_or(|(server, to)| server.of(asked) == Some(*to));
                let looks_so = c.guise.as_deref() == guise.as_ref();
                let named_so = c.pool_name.as_deref() == pool_name && (pool_name.is_some() || c.name.as_deref() == name);
                let told_so = c.announced.as_deref() == announced;
                (c.owner == session || by_reuse) && named_so && told_so && leads_there && looks_so
            };
            // The one used last is the warmest, and leaves the others to grow old and go.
            let at = shelf.idle.iter().rposition(|c| may(c))?;
            let connection = shelf.idle.remove(at);
            let worn = server.settings().pool.max_reuse.is_some_and(|most| connection.requests > u64::from(most));
            let ended = connection.io.is_stale() || (once && connection.io.has_ended());
            if !worn && !ended && connection.moves == server.moves() {
                shelf.need.note(shelf.idle.len());
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose last response has been read to its end, if it may be needed. One that is its session's `own` is.
    pub fn put(&self, mut connection: Box<ServerConnection>, own: bool) {
        connection.timer.clear();
        connection.buffer.release_if_empty();
        let Some(server) = &connection.server else { return };
        let pool = &server.settings().pool;
        let mut shelves = self.shelves.borrow_mut();
        if let Some(Shelf { idle, need }) = shelf(&mut shelves, server)
            && idle.len() < pool.max_idle.map_or(MOST_IDLE, |most| most as usize)
            && (own || !pool.purge_delay.is_zero() && need.may_use(pool.low, idle, &connection))
            && connection.buffer.is_released()
            && connection.moves == server.moves()
        {
            connection.idle_until = clock::now() + pool.purge_delay;
            idle.push(connection);
        }
    }

    /// Drops the connections that only this session could have used.
    pub fn forget(&self, session: u64) {
        for shelf in self.shelves.borrow_mut().iter_mut() {
            shelf.idle.retain(|c| c.owner != session);
        }
    }

    /// Drops what is too old, closed by its server, or leads to one that was removed.
    pub fn purge(&self, now: Instant) {
        for Shelf { idle, need } in self.shelves.borrow_mut().iter_mut() {
            if let Some(server) = idle.last().and_then(|connection| connection.server.as_ref()) {
                need.look(now, idle.len(), server.settings().pool.purge_delay);
            }
            idle.retain(|c| now < c.idle_until && !c.server.as_ref().is_some_and(|server| server.is_gone()) && !c.io.is_stale());
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shelves.borrow().iter().map(|shelf| shelf.idle.len()).sum()
    }
}

impl ServerConnection {
    /// Whether it serves the same requests to where it leads. Requests can name destinations without end: none of them has a right to a
    /// connection.
    fn is_like(&self, other: &ServerConnection) -> bool {
        let named_so = self.pool_name == other.pool_name && (self.pool_name.is_some() || self.name == other.name);
        named_so && self.announced == other.announced && self.guise == other.guise
    }
}

impl Need {
    /// Whether a connection is not surplus beside idle ones. Those that the server has closed do not count, and are dropped.
    #[expect(clippy::vec_box, reason = "moved singly, and often")]
    fn may_use(&self, low: u32, idle: &mut Vec<Box<ServerConnection>>, connection: &ServerConnection) -> bool {
        let has_place = |idle: &[Box<ServerConnection>]| self.has_room(low) || !idle.iter().any(|other| other.is_like(connection));
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

/// What a connection is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// `http-reuse`
    pub reuse: Reuse,
    /// The session that wants it.
    pub session: u64,
    /// Whether for its first request.
    pub first: bool,
    /// Whether for a request that may be sent only once.
    pub once: bool,
    /// What the server is to be told by the PROXY protocol.
    pub announced: Option<&'a [u8]>,
    /// The name that it is asked for by TLS.
    pub name: Option<&'a str>,
    /// What its connections are called, where that counts in the place of the name (`pool-conn-name`).
    pub pool_name: Option<&'a str>,
    /// Where the client wanted to go.
    pub asked: Option<SocketAddr>,
    /// Whose address the server is to see.
    pub guise: Option<SocketAddr>,
}

/// The most idle connections of one server in one worker.
const MOST_IDLE: usize = 1024;
