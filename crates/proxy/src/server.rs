//! Connections to servers: made, kept while idle, taken again.

use crate::io::{Buffer, Timer, Transport, Wheel, clock};
use crate::settings::{Options, Reuse};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use terse_balance::{Address, Server};
use tokio::net::{TcpStream, UnixStream};

/// A connection to a server.
pub struct ServerConnection {
    /// The socket.
    pub io: Transport,
    /// What has been read from it and not yet gone on.
    pub buffer: Buffer,
    /// Its time-outs.
    pub timer: Timer,
    /// The index of the server among all servers of the process.
    pub server: usize,
    /// How often the server had moved when it was made ([`Server::moves`]).
    pub moves: u32,
    /// This end's address, over IP.
    pub local: Option<SocketAddr>,
    /// The session that made it.
    pub owner: u64,
    /// Requests that it has carried.
    pub requests: u64,
    /// When it has been idle long enough.
    pub idle_until: Instant,
    /// What the server was told by the PROXY protocol: the connection serves no request of which something else is to be told.
    pub announced: Option<Box<[u8]>>,
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
}

impl ServerConnection {
    /// Writes what the server is to be told in front of the connection's first byte; says how much that is.
    pub fn announce(&self, out: &mut Vec<u8>) -> usize {
        let head = self.announced.as_deref().filter(|_| self.requests == 0).unwrap_or_default();
        out.extend_from_slice(head);
        head.len()
    }
}

/// A worker's idle connections, by server.
pub struct IdleConnections {
    /// Boxed, since a connection changes hands several times a request.
    #[expect(clippy::vec_box, reason = "moved singly, and often")]
    lists: RefCell<Vec<Vec<Box<ServerConnection>>>>,
}

/// The most idle connections of one server in one worker.
const MOST_IDLE: usize = 1024;

impl IdleConnections {
    /// Room for the connections of so many servers.
    pub fn new(servers: usize) -> IdleConnections {
        IdleConnections { lists: RefCell::new((0..servers).map(|_| Vec::new()).collect()) }
    }

    /// A connection to the server of that index that a request of this session may use; connections that the server has closed, or
    /// that lead to where it was before, are dropped.
    ///
    /// A request that may be sent only `once` asks the kernel too: what its server has closed in this moment is not announced yet.
    pub fn take(
        &self,
        index: usize,
        server: &Server,
        Wanted { reuse, session, first, once, announced }: Wanted<'_>,
    ) -> Option<Box<ServerConnection>> {
        let mut lists = self.lists.borrow_mut();
        let list = lists.get_mut(index)?;
        loop {
            let may = |c: &ServerConnection| {
                let by_reuse = match reuse {
                    Reuse::Never => false,
                    Reuse::Safe => !first,
                    Reuse::Aggressive => !first || c.requests > 1,
                    Reuse::Always => true,
                };
                (c.owner == session || by_reuse) && c.announced.as_deref() == announced
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
    pub fn put(&self, mut connection: Box<ServerConnection>, server: &Server) {
        let pool = &server.settings().pool;
        connection.timer.clear();
        connection.buffer.release_if_empty();
        let mut lists = self.lists.borrow_mut();
        if let Some(list) = lists.get_mut(connection.server)
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

    /// Drops what is too old, or closed by its server.
    pub fn purge(&self, now: Instant) {
        for list in self.lists.borrow_mut().iter_mut() {
            list.retain(|c| now < c.idle_until && !c.io.is_stale());
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lists.borrow().iter().map(Vec::len).sum()
    }
}

/// Makes a connection to a server, which is the one of `index` among all servers of the process. The caller limits how long it may
/// take.
pub async fn connect(
    server: &Server,
    index: usize,
    options: &Options,
    wheel: &Rc<Wheel>,
    owner: u64,
) -> io::Result<Box<ServerConnection>> {
    // In this order: a connection to the new address that is thought to lead to the old one is given up too early, not too late.
    let (moves, address) = (server.moves(), server.address());
    let io = match &*address {
        Address::Ip(ip) => Transport::from_tcp(TcpStream::connect(ip).await?),
        Address::Unix(path) => Transport::Unix(UnixStream::connect(path).await?),
        Address::Abstract(name) => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            let io = std::os::unix::net::UnixStream::connect_addr(&address)?;
            io.set_nonblocking(true)?;
            Transport::Unix(UnixStream::from_std(io)?)
        }
    };
    io.apply(options.server_keep_alive, options.no_linger);
    Ok(Box::new(ServerConnection {
        local: io.local(),
        io,
        buffer: Buffer::default(),
        timer: wheel.timer(),
        server: index,
        moves,
        owner,
        requests: 0,
        idle_until: clock::now(),
        announced: None,
    }))
}
