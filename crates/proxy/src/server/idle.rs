//! Connections that wait for a request: kept, taken again, dropped.

use super::ServerConnection;
use crate::io::clock;
use crate::settings::Reuse;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Instant;
use terse_balance::Server;

/// A worker's idle connections, by the slots of their servers: a connection holds its server, so none is ever in the place of another's.
pub struct IdleConnections {
    /// Boxed, since a connection changes hands several times a request.
    #[expect(clippy::vec_box, reason = "moved singly, and often")]
    lists: RefCell<Vec<Vec<Box<ServerConnection>>>>,
}

impl IdleConnections {
    /// Room for the connections of so many servers.
    pub fn new(servers: usize) -> IdleConnections {
        IdleConnections { lists: RefCell::new((0..servers).map(|_| Vec::new()).collect()) }
    }

    /// A connection to a server that a request of this session may use; connections that the server has closed, or
    /// that lead to where it was before, are dropped.
    ///
    /// A request that may be sent only `once` asks the kernel too: what its server has closed in this moment is not announced yet.
    pub fn take(
        &self,
        server: &Server,
        Wanted { reuse, session, first, once, announced, name, asked, guise }: Wanted<'_>,
    ) -> Option<Box<ServerConnection>> {
        let mut lists = self.lists.borrow_mut();
        let list = lists.get_mut(server.slot())?;
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
                let told_so = c.announced.as_deref() == announced && c.name.as_deref() == name;
                (c.owner == session || by_reuse) && told_so && leads_there && looks_so
            };
            // The one used last is the warmest, and leaves the others to grow old and go.
            let at = list.iter().rposition(|c| may(c))?;
            let connection = list.remove(at);
            let worn = server.settings().pool.max_reuse.is_some_and(|most| connection.requests > u64::from(most));
            let ended = connection.io.is_stale() || (once && connection.io.has_ended());
            if !worn && !ended && connection.moves == server.moves() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose last response has been read to its end.
    pub fn put(&self, mut connection: Box<ServerConnection>) {
        connection.timer.clear();
        connection.buffer.release_if_empty();
        let Some(server) = &connection.server else { return };
        let pool = &server.settings().pool;
        let mut lists = self.lists.borrow_mut();
        if lists.len() <= server.slot() {
            lists.resize_with(server.slot() + 1, Vec::new);
        }
        if let Some(list) = lists.get_mut(server.slot())
            && list.len() < pool.max_idle.map_or(MOST_IDLE, |most| most as usize)
            && connection.buffer.is_released()
            && connection.moves == server.moves()
        {
            connection.idle_until = clock::now() + pool.purge_delay;
            list.push(connection);
        }
    }

    /// Drops the connections that only this session could have used.
    pub fn forget(&self, session: u64) {
        for list in self.lists.borrow_mut().iter_mut() {
            list.retain(|c| c.owner != session);
        }
    }

    /// Drops what is too old, closed by its server, or leads to one that was removed.
    pub fn purge(&self, now: Instant) {
        for list in self.lists.borrow_mut().iter_mut() {
            list.retain(|c| now < c.idle_until && !c.server.as_ref().is_some_and(|server| server.is_gone()) && !c.io.is_stale());
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lists.borrow().iter().map(Vec::len).sum()
    }
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
    /// Where the client wanted to go.
    pub asked: Option<SocketAddr>,
    /// Whose address the server is to see.
    pub guise: Option<SocketAddr>,
}

/// The most idle connections of one server in one worker.
const MOST_IDLE: usize = 1024;
