//! Facts of a stream beside its heads: inputs of fetches, aliases of log formats and counters.

use crate::cache::Caching;
use crate::captures::{Captured, Slots};
use crate::changes::Changes;
use crate::exchange::SharedConnection;
use crate::figures::Figures;
use crate::filter::Filters;
use crate::inspection::Inspection;
use crate::log::{Level, Origin};
use crate::plan::roll::Held;
use crate::plan::{Backend, Frontend, Plan};
use crate::reply::Answer;
use crate::script::Stage;
use crate::session::Session;
use crate::settings::{Mode, Timeouts};
use crate::stick::Learning;
use crate::traceparent::Traceparent;
use crate::track::Tracks;
use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use terse_balance::{CookieFound, CookieSent, Server};
use terse_compress::decode::counters::Outcome;
use terse_compress::dictionary::learning::Asked;
use terse_compress::dictionary::learning::Recording;
use terse_compress::dictionary::{Trial, Usage};
use terse_compress::{Coding, Layer, Link, Reason};
use terse_dictionary::Dictionary;
use terse_message::{Abort, Malformed, Persistence, Version};
use terse_sample::Env;
use terse_tls::Secured;

/// A stream's facts. [`terse_sample::Env::facts`] leads here.
pub struct Facts {
    /// The client's connection, and through it the worker and the plan.
    pub session: Rc<Session>,
    /// The client's address, over IP; rules may change it (`set-src`).
    pub client: Option<SocketAddr>,
    /// The address that the client connected to, over IP; rules may change it (`set-dst`).
    pub local: Option<SocketAddr>,
    /// The backend, once it is chosen.
    pub backend: Option<Held>,
    /// The server, once it is chosen.
    pub server: Option<Arc<Server>>,
    /// The bytes that rules look at beside heads, while some do.
    pub inspection: Option<Box<Inspection>>,
    /// When things happened.
    pub times: Times,
    /// The request's first line as the client sent it, `method target version`, once a rule has changed it.
    pub request_line: Vec<u8>,
    /// What the client asked for, before rules changed it, where dictionaries are learned.
    pub asked: Option<Box<Asked>>,
    /// Whether the client's method was HEAD, whatever rules made of it: such a client gets no body.
    pub asked_head: bool,
    /// `strict-mode off`: edits of heads that cannot be done are left out, until this set of rules ends.
    pub soft_rewrites: bool,
    /// The most bytes that rules may make of the head that they edit now; `usize::MAX` where the buffer's size alone is the
    /// limit.
    pub head_most: usize,
    /// The version that the client sent; `None` when the request could not be read.
    pub version: Option<Version>,
    /// The status that the client got; 0 when it got none.
    pub status: u16,
    /// The status of an answer whose texts are being written; 0 when none is being written.
    pub answering: Cell<u16>,
    /// The status that the server sent, before rules.
    pub server_status: u16,
    /// Its counters, and its phase.
    pub figures: Rc<Figures>,
    /// Whether the client of a stream of bytes sent some of which none went on.
    pub has_spoken: bool,
    /// Whether its connection failed before there could be a stream on it: it stands for that in the log.
    pub is_unborn: bool,
    /// What rules have changed of how it is served.
    changes: Option<Box<Changes>>,
    /// The cause of its early end; `None`: it did not end early.
    pub abort: Option<Abort>,
    /// Content of the request's persistence cookie.
    pub cookie_found: CookieFound,
    /// Handling of the response's persistence cookie.
    pub cookie_sent: CookieSent,
    /// Attempts after the first.
    pub retries: u32,
    /// It went to another server than the first chosen.
    pub redispatched: bool,
    /// Numbers of requests before it in the server's queue and the backend's.
    pub queue_positions: (u32, u32),
    /// Why the answer was not compressed.
    pub compression: Option<Reason>,
    /// Whether the response refers to a dictionary, or why not; nothing where there are none.
    pub dictionary: Option<Usage>,
    /// The dictionary that it refers to.
    pub used_dictionary: Option<Arc<Dictionary>>,
    /// What the answer is compared with, to know whether that was worth it.
    pub trial: Option<Trial>,
    /// What hears the response's body, until its coder is made.
    pub recording: Option<Box<Recording>>,
    /// How it was compressed.
    pub coding: Option<Coding>,
    /// The layer that compresses the response on its way from the server, and on its way to the client.
    pub hops: (Option<Layer>, Option<Layer>),
    /// Captured fields of the request, by the number of the capture.
    pub request_captures: Slots,
    /// Captured fields of the response.
    pub response_captures: Slots,
    /// The captured cookies of request and response.
    pub cookie_captures: (Captured, Captured),
    /// `unique-id-format`, once it was asked for.
    unique_id: OnceCell<Box<[u8]>>,
    /// Its `traceparent`, once it was asked for.
    traceparent: OnceCell<Option<Box<Traceparent>>>,
    /// Whether it is being written just now.
    writes_id: Cell<bool>,
    /// The address from which the server was connected to, over IP.
    pub server_local: Option<SocketAddr>,
    /// The socket of the connection to the server.
    pub server_socket: Option<RawFd>,
    /// The TLS of the connection to the server, if it has any; also of a connection that failed.
    pub server_tls: Option<Rc<Secured>>,
    /// Whether the connection to the server had carried another request.
    pub server_reused: bool,
    /// Whether that connection had been idle: its server may have closed it just then.
    pub server_was_idle: bool,
    /// The server's connection, if it is of HTTP/2.
    pub server_http2: Option<SharedConnection>,
    /// The number of that stream.
    pub server_frames_id: u32,
    /// The code by which the server has reset that.
    pub server_reset: Option<u32>,
    /// Whether the server knows the user by its connection from then on (NTLM).
    pub knows_user: bool,
    /// `http-request set-log-level`: the level, or silent.
    pub log_level: LogLevel,
    /// Whether a service of the proxy answered it, such as the statistics page.
    pub by_service: bool,
    /// State of its programs, where there are any.
    pub stage: OnceCell<Box<Stage>>,
    /// Why a line of it is being written.
    pub origin: Cell<Origin>,
    /// Number of requests before it on this connection.
    pub number: u64,
    /// Its number on the client's connection of HTTP/2; 0 in HTTP/1.
    pub frames_id: u32,
    /// A number that no other stream of the process has.
    pub id: u64,
    /// The client's wish for its connection.
    pub persistence: Persistence,
    /// The answer for the client in the place of the server's response, when a response rule demands it.
    pub instead: Option<Box<Answer>>,
    /// Filters of its bodies, where there are any.
    pub filters: Option<Box<Filters>>,
    /// State of its caches, once a rule has asked a cache.
    pub caching: Option<Box<Caching>>,
    /// Why the request was refused as malformed.
    pub refused: Option<Malformed>,
    /// The entries of stick tables that it tracks, beside those of its session.
    pub tracks: Option<Box<Tracks>>,
    /// The keys whose server stick tables will learn, once it has answered.
    pub learning: Option<Box<Learning>>,
    /// The rule that ended the evaluation: file and line.
    pub last_rule: Option<(Arc<str>, u32)>,
    /// The rule that makes it wait, and has done so when it was broken off: file and line.
    pub waiting_rule: Option<(Arc<str>, u32)>,
}

/// Outcome of the decoding of a stream's bodies.
#[derive(Clone, Copy, Default, Debug)]
pub struct Decoding {
    /// The request's.
    pub request: Option<Outcome>,
    /// The response's.
    pub response: Option<Outcome>,
}

/// Level of the stream's line in the log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LogLevel {
    /// As the configuration has it.
    #[default]
    Usual,
    /// At this level.
    At(Level),
    /// Not at all.
    Silent,
}

/// Times of events. `None`: it did not happen.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The first byte of the request came, or the connection was accepted for it.
    pub start: Instant,
    /// The same on the clock of the wall: microseconds since 1970.
    pub start_unix_us: i64,
    /// Duration of the handshake of its connection, in milliseconds; for all but the first request of a connection 0.
    pub handshake_ms: i64,
    /// Time for which the connection had been idle before, in milliseconds.
    pub idle_ms: i64,
    /// The request's head was complete.
    pub request: Option<Instant>,
    /// A slot of a server was free.
    pub queued: Option<Instant>,
    /// The connection to the server was there.
    pub connected: Option<Instant>,
    /// The response's head was complete.
    pub response: Option<Instant>,
    /// The last byte was sent.
    pub end: Option<Instant>,
}

impl Facts {
    /// The facts of a new stream.
    pub fn new(session: Rc<Session>, figures: Rc<Figures>, start: Instant, number: u64) -> Facts {
        let start_unix_us = session.worker.clock.unix_us(start);
        let id = session.worker.number_stream();
        let (client, local) = session.ends();
        if let Some(effort) = &session.effort {
            effort.restart();
        }
        Facts {
            client,
            local,
            session,
            backend: None,
            server: None,
            inspection: None,
            times: Times {
                start,
                start_unix_us,
                handshake_ms: 0,
                idle_ms: 0,
                request: None,
                queued: None,
                connected: None,
                response: None,
                end: None,
            },
            request_line: Vec::new(),
            asked: None,
            asked_head: false,
            soft_rewrites: false,
            head_most: usize::MAX,
            version: None,
            status: 0,
            server_status: 0,
            figures,
            has_spoken: false,
            is_unborn: false,
            changes: None,
            abort: None,
            cookie_found: CookieFound::Off,
            cookie_sent: CookieSent::Off,
            retries: 0,
            redispatched: false,
            queue_positions: (0, 0),
            compression: None,
            dictionary: None,
            used_dictionary: None,
            trial: None,
            recording: None,
            coding: None,
            hops: (None, None),
            request_captures: Slots::default(),
            response_captures: Slots::default(),
            cookie_captures: (None, None),
            unique_id: OnceCell::new(),
            traceparent: OnceCell::new(),
            writes_id: Cell::new(false),
            server_local: None,
            server_socket: None,
            server_tls: None,
            server_reused: false,
            server_was_idle: false,
            server_http2: None,
            server_frames_id: 0,
            server_reset: None,
            knows_user: false,
            log_level: LogLevel::Usual,
            by_service: false,
            stage: OnceCell::new(),
            answering: Cell::default(),
            origin: Cell::default(),
            number,
            frames_id: 0,
            id,
            persistence: Persistence::default(),
            instead: None,
            filters: None,
            caching: None,
            refused: None,
            tracks: None,
            learning: None,
            last_rule: None,
            waiting_rule: None,
        }
    }

    /// The hop to the client, as its connection and the frontend have it.
    pub fn client_link(&self) -> Link {
        let tls = self.session.tls();
        Link { compresses: tls.is_some_and(Secured::compresses_records), mode: self.frontend().hop, is_secure: tls.is_some() }
    }

    /// The hop to the server.
    pub fn server_link(&self) -> Link {
        let tls = self.server_tls.as_deref();
        let mode = self.backend().map_or_else(Default::default, |backend| backend.hop);
        Link { compresses: tls.is_some_and(Secured::compresses_records), mode, is_secure: tls.is_some() }
    }

    /// The stream's identifier (`unique-id-format`), written when it is first asked for and the same from then on.
    pub fn unique_id(&self, env: &Env<'_>) -> Option<&[u8]> {
        if let Some(id) = self.unique_id.get() {
            return Some(id);
        }
        let format = self.frontend().log.unique_id.as_ref()?;
        // A format that refers to itself finds no value there.
        if self.writes_id.replace(true) {
            return None;
        }
        let mut text = Vec::new();
        format.write(env, &mut text);
        self.writes_id.set(false);
        Some(self.unique_id.get_or_init(|| text.into()))
    }

    /// The `traceparent` of the stream: the client's where it is sound, otherwise made under `option traceparent`. The first question decides,
    /// while the request is there.
    pub fn traceparent(&self, env: &Env<'_>) -> Option<&Traceparent> {
        if self.traceparent.get().is_none() {
            let own = Traceparent::of(&env.request?.fields);
            let made = || self.frontend().options.traces.then(|| Traceparent::made(|| env.world.random()));
            let _ = self.traceparent.set(own.or_else(made).map(Box::new));
        }
        self.traceparent.get()?.as_deref()
    }

    /// The timeouts that hold now: the frontend's for the client, the backend's for all else once it is chosen, and with
    /// precedence the changes by rules. A change by a frontend's rules for a server holds in its own back half, not in
    /// another backend.
    pub fn timeouts(&self) -> Timeouts {
        let front = self.frontend().timeouts;
        let mut all = self.backend().map_or(front, |backend| backend.timeouts);
        (all.client, all.client_fin) = (front.client, front.client_fin);
        if let Some(Changes { owner, timeouts: changed, .. }) = self.changes.as_deref() {
            all.client = changed.client.or(all.client);
            all.tarpit = changed.tarpit.or(all.tarpit);
            if self.backend.is_none() || self.number() == *owner {
                all.connect = changed.connect.or(all.connect);
                all.queue = changed.queue.or(all.queue);
                all.server = changed.server.or(all.server);
                all.tunnel = changed.tunnel.or(all.tunnel);
            }
        }
        all
    }

    /// Limit of the request's retries: of its backend, or of a rule.
    pub fn retries_allowed(&self) -> u32 {
        let changed = self.changed().filter(|changes| changes.owner == self.number()).and_then(|changes| changes.retries);
        changed.or(self.backend().map(|backend| backend.retries)).unwrap_or_default()
    }

    /// The changes by rules, if there are any.
    pub fn changed(&self) -> Option<&Changes> {
        self.changes.as_deref()
    }

    /// The same, to take from it.
    pub fn changed_mut(&mut self) -> Option<&mut Changes> {
        self.changes.as_deref_mut()
    }

    /// The changes, for a rule that makes one; empty timeouts keep their former values.
    pub fn changes(&mut self) -> &mut Changes {
        let owner = self.own_backend().map(|backend| backend.number);
        let changes = &mut **self.changes.get_or_insert_default();
        changes.own(owner);
        changes
    }

    /// The number of the backend, once it is chosen.
    fn number(&self) -> Option<usize> {
        self.backend().map(|backend| backend.number)
    }

    /// The two letters of the termination state for the persistence cookie: dashes only where none is configured.
    pub fn cookie_letters(&self) -> [u8; 2] {
        let is_http = self.version.is_some() || self.frontend().mode == Mode::Http;
        let cookie = self.own_backend().and_then(|backend| backend.farm.settings().cookie.as_ref());
        if cookie.is_some_and(|cookie| !cookie.is_logged()) {
            return *b"--";
        }
        let persists = is_http && cookie.is_some();
        let found = if persists && self.cookie_found == CookieFound::Off { CookieFound::None } else { self.cookie_found };
        let sent = if persists && self.cookie_sent == CookieSent::Off { CookieSent::None } else { self.cookie_sent };
        [found as u8, sent as u8]
    }

    /// The configuration.
    pub fn plan(&self) -> &Plan {
        &self.session.worker.plan
    }

    /// The frontend.
    pub fn frontend(&self) -> &Frontend {
        self.session.frontend()
    }

    /// The backend, once it is chosen; before that the backend that its frontend is the other half of (`listen`).
    pub fn own_backend(&self) -> Option<&Backend> {
        self.backend().or_else(|| self.frontend().own_backend.as_deref())
    }

    /// The backend, once it is chosen.
    pub fn backend(&self) -> Option<&Backend> {
        self.backend.as_deref()
    }

    /// Whether the close of the client's half ends the request: `option abortonclose` of the backend, or before a backend is
    /// chosen of the frontend.
    pub fn aborts_on_close(&self) -> bool {
        match self.backend() {
            Some(backend) => backend.options.aborts_on_close(backend.mode),
            None => self.frontend().options.aborts_on_close(self.frontend().mode),
        }
    }
}

impl Times {
    /// Milliseconds from a moment to a later one; -1 when either never came, as in HAProxy's logs.
    pub fn between(from: Option<Instant>, to: Option<Instant>) -> i64 {
        match (from, to) {
            // Most events of a stream fall into a single turn of its worker, at the same time.
            (Some(from), Some(to)) if from == to => 0,
            (Some(from), Some(to)) => to.saturating_duration_since(from).as_millis() as i64,
            _ => -1,
        }
    }
}
