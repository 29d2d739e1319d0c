//! A stream of a server's connection of HTTP/2 for a request: of an existing connection, or of a new one.

use crate::connection::upstream;
use crate::exchange::Client;
use crate::phase::waiting::{Waited, Watch, wait};
use crate::plan::roll::Held;
use crate::server::{self, Errand, Key, Lease, Leased, Making, Outcome, ServerConnection, Told, Wanted};
use crate::stream::Stream;
use crate::worker::Worker;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use terse_balance::Server;
use terse_balance::settings::WebSocket;
use terse_message::Protocol;
use terse_tls::{Request, Secured};

/// Result of a request's wish for a stream of a server that may speak HTTP/2.
pub enum Got {
    /// A stream.
    Stream(Leased),
    /// Nothing: the server speaks HTTP/1, and a connection is made as to any other.
    NotShared,
    /// Outcome of the wait for a connection, other than a stream.
    Made {
        /// A connection of HTTP/1, or the reason why there is none.
        connected: Waited<io::Result<Box<ServerConnection>>>,
        /// Whether a failure counts against the server by this request.
        counts: bool,
    },
}

impl Got {
    /// The time to connect is over.
    const LATE: Got = Got::Made { connected: Waited::Late, counts: true };
    /// The client has left.
    const CLOSED: Got = Got::Made { connected: Waited::Closed, counts: false };
}

/// Whether requests such as this go to the server over HTTP/2, if it speaks that. A request for another protocol goes over
/// HTTP/1, where `ws` or ALPN allows it.
pub fn may_share(server: &Server, upgrades: bool) -> bool {
    let settings = server.settings();
    (settings.protocol.is_some() || server.is_secure())
        && settings.may_speak_http2()
        && match settings.websocket {
            _ if !upgrades => true,
            WebSocket::Http1 => false,
            WebSocket::Http2 => true,
            WebSocket::Auto => settings.protocol.is_some() || !settings.tls.alpn.iter().flatten().any(|name| &**name != "h2"),
        }
}

/// A request's wish for a connection to a server.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The backend.
    pub backend: &'a Held,
    /// Its server.
    pub server: &'a Arc<Server>,
    /// The connection.
    pub wanted: Wanted<'a>,
    /// Whether the request asks for another protocol.
    pub upgrades: bool,
}

/// A stream of an existing connection; `None` where a connection has to be made, or waited for.
pub fn at_once(stream: &Stream, ask: &Ask<'_>) -> Option<Leased> {
    let worker = &stream.facts.session.worker;
    let carrier =
        worker.idle.find(ask.server, &ask.wanted).filter(|carrier| !ask.upgrades || carrier.connection.peek().is_known())?;
    Some(carrier.lend(&ask.wanted, &worker.wheel))
}

/// Finds a stream, or waits for a connection that is made.
pub async fn stream(client: &mut Client<'_>, watches: Option<Watch<'_>>, stream: &mut Stream, ask: Ask<'_>) -> Got {
    let Ask { backend, server, wanted, upgrades } = ask;
    let worker = stream.facts.session.worker.clone();
    let key = Key::of(&wanted, server.settings().follows_clients());
    let mut waits = false;
    loop {
        let making = match worker.idle.lease(server, &wanted, &key) {
            Lease::Carrier(carrier) => {
                let leased = carrier.lend(&wanted, &worker.wheel);
                return known(client, watches, leased, upgrades, stream.facts.timeouts().connect).await;
            }
            Lease::Http1 => return Got::NotShared,
            Lease::Making(making) => making,
            Lease::None => make(&worker, stream, backend, server, &wanted, key.clone()),
        };
        if !std::mem::replace(&mut waits, true) {
            client.timer().set(stream.facts.timeouts().connect);
        }
        let told = match wait(client, watches, pin!(making.wait())).await {
            Waited::Done(told) => told,
            Waited::Late => return Got::LATE,
            Waited::Closed => return Got::CLOSED,
        };
        match told {
            Told::Carrier(carrier, true) => {
                let leased = carrier.lend(&wanted, &worker.wheel);
                return known(client, watches, leased, upgrades, stream.facts.timeouts().connect).await;
            }
            // There may be room for others.
            Told::Carrier(_, false) | Told::Http1(None, _) => {}
            Told::Http1(Some(connection), tls) => {
                stream.facts.server_tls = tls;
                return Got::Made { connected: Waited::Done(Ok(connection)), counts: false };
            }
            Told::Failed(error, tls, counts) => {
                stream.facts.server_tls = tls;
                return Got::Made { connected: Waited::Done(Err(error)), counts };
            }
        }
    }
}

/// Waits for the server's SETTINGS, where a request depends on them (RFC 8441 section 3).
async fn known(
    client: &mut Client<'_>,
    watches: Option<Watch<'_>>,
    leased: Leased,
    upgrades: bool,
    limit: Option<Duration>,
) -> Got {
    if upgrades {
        client.timer().set(limit);
        match wait(client, watches, pin!(leased.connection.known())).await {
            Waited::Done(()) => {}
            Waited::Late => return Got::LATE,
            Waited::Closed => return Got::CLOSED,
        }
    }
    Got::Stream(leased)
}

/// Has a connection made, in a task of its own.
fn make(worker: &Rc<Worker>, stream: &Stream, backend: &Held, server: &Arc<Server>, wanted: &Wanted<'_>, key: Key) -> Rc<Making> {
    let making = worker.idle.begin(server, wanted.session, key);
    let order = Order {
        worker: worker.clone(),
        backend: backend.clone(),
        server: server.clone(),
        owner: wanted.session,
        announced: wanted.announced.map(Into::into),
        name: wanted.name.map(Into::into),
        pool_name: wanted.pool_name.map(Into::into),
        asked: wanted.asked,
        guise: wanted.guise,
    };
    let (limit, made) = (stream.facts.timeouts().connect.unwrap_or(LONGEST), making.clone());
    server.counters.bump(terse_balance::Count::Connects);
    tokio::task::spawn_local(async move { order.carry_out(&made, limit).await });
    making
}

/// A connection that is to be made.
struct Order {
    worker: Rc<Worker>,
    backend: Held,
    server: Arc<Server>,
    owner: u64,
    announced: Option<Box<[u8]>>,
    name: Option<Box<str>>,
    pool_name: Option<Box<str>>,
    asked: Option<SocketAddr>,
    guise: Option<SocketAddr>,
}

impl Order {
    async fn carry_out(self, making: &Rc<Making>, limit: Duration) {
        let (worker, server) = (self.worker.clone(), self.server.clone());
        let guard = Guard { worker: &worker, server: &server, making };
        let mut tls = None;
        let label = format!("{}/{}", self.backend.name, server.name());
        let connected = tokio::time::timeout(limit, self.connect(&mut tls)).await;
        let connected = connected.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        let outcome = match connected {
            Ok(connection) if speaks_http2(&server, tls.as_deref()) => {
                let carrier = upstream::start(&worker, &server, label, *connection);
                worker.idle.made(&server, making, Some(Protocol::Http2), Some(&carrier));
                Outcome::Carrier(carrier)
            }
            Ok(connection) => {
                worker.idle.made(&server, making, Some(Protocol::Http1), None);
                Outcome::Http1(Some(connection))
            }
            Err(error) => {
                worker.idle.made(&server, making, None, None);
                Outcome::Failed(error.kind(), error.raw_os_error())
            }
        };
        making.done(outcome, tls);
        drop(guard);
    }

    async fn connect(self, tls: &mut Option<Rc<Secured>>) -> io::Result<Box<ServerConnection>> {
        let Order { worker, backend, server, owner, announced, name, pool_name, asked, guise } = self;
        let errand = Errand { server: &server, options: &backend.options, owner, asked, guise };
        let mut connection = server::connect(&worker, errand).await?;
        connection.held = worker.idle.hold(&server);
        connection.introduce(announced, name, pool_name);
        match server.connector().filter(|_| server.is_secure()) {
            Some(connector) => connection.secure(connector, Request::Traffic, tls, &worker.plan.records_memory).await,
            None => {
                if server.settings().protocol == Some(Protocol::Http2) {
                    connection.say_first().await?;
                }
                Ok(connection)
            }
        }
    }
}

/// The connect timeout where none is set: connections are made in turn, and must not be waited for without an end.
const LONGEST: Duration = Duration::from_secs(60);

/// However the making ends, no request waits for it.
struct Guard<'a> {
    worker: &'a Rc<Worker>,
    server: &'a Arc<Server>,
    making: &'a Rc<Making>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.making.is_done() {
            self.worker.idle.made(self.server, self.making, None, None);
            self.making.done(Outcome::Failed(io::ErrorKind::ConnectionAborted, None), None);
        }
    }
}

/// Whether a connection speaks HTTP/2: by `proto`, or by the result of ALPN.
fn speaks_http2(server: &Server, tls: Option<&Secured>) -> bool {
    match server.settings().protocol {
        Some(protocol) => protocol == Protocol::Http2,
        None => tls.is_some_and(|tls| tls.handshake().protocol().as_deref() == Some(b"h2")),
    }
}
