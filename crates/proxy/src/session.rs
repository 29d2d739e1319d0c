//! A client's connection.

use crate::connection::announce::Unannounced;
use crate::counters::Counters;
use crate::effort::Effort;
use crate::exchange::Cancel;
use crate::io::{Multiplexed, Transport, clock};
use crate::plan::Frontend;
use crate::settings::BindSettings;
use crate::track::Tracks;
use crate::worker::Worker;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::{Rc, Weak};
use std::time::Instant;
use terse_compress::slots::Slots;
use terse_http::proxy_protocol::Announced;
use terse_message::Protocol;
use terse_sample::Store;
use terse_tls::Secured;

/// State of a client's connection for as long as it lives.
pub struct Session {
    /// The worker that it belongs to.
    pub worker: Rc<Worker>,
    /// The index of its frontend.
    pub frontend: usize,
    /// The index of the address that it came in by.
    pub bind: usize,
    /// The client's address, over IP (`fc_src`). Only events before the first stream change it.
    pub client: Cell<Option<SocketAddr>>,
    /// The address that it connected to, over IP (`fc_dst`).
    pub local: Cell<Option<SocketAddr>>,
    /// Both addresses as streams see them, where `tcp-request session` rules have changed them.
    seen: OnceCell<Box<Cell<Ends>>>,
    /// Content of the PROXY header.
    announced: OnceCell<Box<Announced>>,
    /// Why that is nothing, where a head was to come.
    pub unannounced: Cell<Option<Unannounced>>,
    /// Whether a head of the PROXY protocol comes first: `accept-proxy`, `expect-proxy layer4`.
    pub expects_proxy: Cell<bool>,
    /// Its socket, for queries of the kernel (`fc_rtt`); `None` where there is no connection.
    pub socket: Cell<Option<RawFd>>,
    /// Its TLS, where it has some.
    tls: OnceCell<Rc<Secured>>,
    /// Its streams, if it is a connection of HTTP/2.
    multiplexed: OnceCell<Weak<Multiplexed>>,
    /// When it was accepted.
    pub accepted: Instant,
    /// The entries of stick tables that it tracks (`tcp-request connection track-sc0`).
    pub tracks: OnceCell<Box<RefCell<Tracks>>>,
    /// Variables of the scope `sess`.
    pub variables: Store,
    /// Time until the first request could come, in milliseconds: a PROXY header, TLS. The first request takes it.
    pub handshake_ms: Cell<i64>,
    /// Requests read so far.
    pub requests: Cell<u64>,
    /// The server of the request before: the backend's number, and its index (`option prefer-last-server`).
    pub last_server: Cell<Option<(usize, usize)>>,
    /// Whether a server knows its user by a connection: its requests go to the server of the request before.
    pub is_known: Cell<bool>,
    /// The version of HTTP that a rule has set.
    pub protocol: Cell<Option<Protocol>>,
    /// Number of idle connections that it keeps for itself (`http-reuse never`).
    pub own_connections: Rc<Cell<usize>>,
    /// State that a stream of bytes has left to the stream of HTTP that it turned into.
    pub carried: Cell<Option<Box<Carried>>>,
    /// Cost of its task, where an expression asks for it.
    pub effort: Option<Rc<Effort>>,
    /// Cancels the future that its task serves.
    pub cancel: Rc<Cancel>,
    /// Its slots for coders, once it has compressed a body.
    coders: OnceCell<Rc<Slots>>,
    /// A number that no other session of this worker has.
    pub number: u64,
}

/// State that stays of a stream of bytes that turns out to be HTTP.
pub struct Carried {
    /// The entries of stick tables that it tracks.
    pub tracks: Option<Box<Tracks>>,
    /// Its variables of the scope `txn`.
    pub transaction: Store,
    /// Its variables of the scope `req`.
    pub request: Store,
}

/// The two ends of a connection, over IP: the client's, and ours.
pub type Ends = (Option<SocketAddr>, Option<SocketAddr>);

impl Drop for Session {
    fn drop(&mut self) {
        self.end_tracks();
        if self.own_connections.get() > 0 || self.is_known.get() {
            self.worker.idle.forget(self.number);
        }
        let variables = &self.worker.plan.process_variables;
        if variables.is_limited() {
            variables.forget(&self.variables, None);
        }
    }
}

impl Session {
    /// The session of a connection that was just accepted.
    ///
    /// `client`: its address as it was accepted, for a socket that was reset has none any more.
    pub fn new(worker: &Rc<Worker>, bind: usize, io: &Transport, client: Option<SocketAddr>) -> Rc<Session> {
        let session = Session::between(worker, bind, client, io.local());
        session.socket.set(Some(io.descriptor()));
        session
    }

    /// The session of a connection between two addresses.
    pub(crate) fn between(worker: &Rc<Worker>, bind: usize, client: Option<SocketAddr>, local: Option<SocketAddr>) -> Rc<Session> {
        let number = worker.next_session.get();
        worker.next_session.set(number + 1);
        Rc::new(Session {
            worker: worker.clone(),
            frontend: worker.plan.binds[bind].frontend,
            bind,
            client: Cell::new(client),
            local: Cell::new(local),
            seen: OnceCell::new(),
            announced: OnceCell::new(),
            unannounced: Cell::new(None),
            expects_proxy: Cell::new(worker.plan.binds[bind].settings.accept_proxy),
            socket: Cell::new(None),
            tls: OnceCell::new(),
            multiplexed: OnceCell::new(),
            tracks: OnceCell::new(),
            accepted: clock::now(),
            variables: Store::default(),
            handshake_ms: Cell::new(0),
            requests: Cell::new(0),
            last_server: Cell::new(None),
            is_known: Cell::new(false),
            protocol: Cell::new(None),
            own_connections: Rc::default(),
            carried: Cell::new(None),
            effort: worker.plan.process.measures_tasks.then(Effort::new),
            cancel: Rc::default(),
            coders: OnceCell::new(),
            number,
        })
    }

    /// The slots for its streams' coders.
    pub fn coders(&self) -> &Rc<Slots> {
        self.coders.get_or_init(|| Slots::new(self.worker.plan.process.compression.coders))
    }

    /// Both ends, as a new stream sees them.
    pub fn ends(&self) -> Ends {
        self.seen.get().map_or_else(|| (self.client.get(), self.local.get()), |seen| seen.get())
    }

    /// The connection's ends are taken to be these from here on (`tcp-request connection set-src`).
    pub fn moved(&self, client: Option<SocketAddr>, local: Option<SocketAddr>) {
        self.client.set(client);
        self.local.set(local);
    }

    /// Streams see these ends from here on (`tcp-request session set-src`).
    pub fn seen_as(&self, client: Option<SocketAddr>, local: Option<SocketAddr>) {
        self.seen.get_or_init(Box::default).set((client, local));
    }

    /// Takes the content of the PROXY header: streams see its addresses.
    pub fn announce(&self, announced: Announced) {
        if let Some((client, local)) = announced.addresses {
            self.seen_as(Some(client), Some(local));
        }
        self.announced.get_or_init(|| Box::new(announced));
    }

    /// The content of the PROXY header.
    pub fn announced(&self) -> Option<&Announced> {
        self.announced.get().map(|announced| &**announced)
    }

    /// Its bytes are in TLS from here on.
    pub fn secure(&self, tls: &Rc<Secured>) {
        self.tls.get_or_init(|| tls.clone());
    }

    /// Its TLS, where it has some.
    pub fn tls(&self) -> Option<&Secured> {
        self.tls.get().map(|tls| &**tls)
    }

    /// It carries many streams from here on.
    pub fn multiply(&self, connection: &Rc<Multiplexed>) {
        self.multiplexed.get_or_init(|| Rc::downgrade(connection));
    }

    /// Its connection of HTTP/2, if it is one.
    pub fn multiplexed(&self) -> Option<Rc<Multiplexed>> {
        self.multiplexed.get()?.upgrade()
    }

    /// This worker's counters of its address alone, where they are configured.
    pub fn address_counters(&self) -> Option<&Counters> {
        Some(self.worker.plan.binds[self.bind].tally.as_deref()?.of(self.worker.index))
    }

    /// The line that it came by.
    pub fn bind(&self) -> &BindSettings {
        &self.worker.plan.binds[self.bind].settings
    }

    /// Its frontend.
    pub fn frontend(&self) -> &Frontend {
        &self.worker.plan.frontends[self.frontend]
    }
}
