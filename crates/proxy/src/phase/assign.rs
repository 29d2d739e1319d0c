//! A server for a request: chosen, waited for, connected.

use crate::connection::announce;
use crate::counters::{Counter, Counters};
use crate::exchange::Client;
use crate::figures::Attached;
use crate::io::clock;
use crate::phase::lease::{self, Ask, Got};
use crate::phase::prepare::Exchange;
use crate::phase::retry::{next_attempt, redispatch};
use crate::phase::waiting::{Waited, Watch, wait};
use crate::phase::{guise, observe};
use crate::plan::Backend;
use crate::reply::Answer;
use crate::server::{self, Belonging, Errand, ServerConnection, Wanted};
use crate::settings::{Mode, Reuse};
use crate::stream::Stream;
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem};
use terse_balance::settings::Guise;
use terse_balance::{Claim, Count, Grant, Key, Precedence, Server, Want};
use terse_message::{Abort, Cause, Phase, Who};
use terse_sample::LogFormat;
use terse_tls::{Request, Secured};

/// A connection to a server, and the right to use it.
pub struct Assigned {
    /// The connection.
    pub connection: Box<ServerConnection>,
    claim: Attached,
}

/// Time for which a server that refused is left alone before it is tried again by the same request: HAProxy's turn-around.
const TURN_AROUND: Duration = Duration::from_secs(1);

/// Finds a server and a connection to it.
pub async fn server(client: &mut Client<'_>, stream: &mut Stream, exchange: &mut Exchange) -> Result<Assigned, Abort> {
    let session = stream.facts.session.clone();
    let worker = &session.worker;
    let Some(held) = stream.facts.backend.clone() else {
        return Err(Abort::new(Who::Server, Phase::Connect, Cause::NoServer));
    };
    let backend: &Backend = &held;
    let at_any_close = stream.facts.aborts_on_close();
    let is_bytes = stream.facts.version.is_none();
    let mut refused = None;
    // An exchange that failed is tried again as a connection is.
    let mut before: Option<Arc<Server>> = exchange.retries.then(|| stream.facts.server.clone()).flatten();
    let mut at_once = mem::take(&mut exchange.retries);
    let count = |server: Option<&Server>, count: Count, of: fn(&Counters) -> &Counter| {
        of(backend.tally.of(worker.index)).add(1);
        server.inspect(|server| server.counters.bump(count));
    };
    loop {
        // Bytes are tried once, whatever the client does: it may have closed only to listen. They are not tried again for a client that
        // has closed and left nothing to send.
        let watched = at_any_close || is_bytes && exchange.failures > 0;
        let watches = watched.then_some(Watch { pools: &worker.pools, at_any_close });
        let (claim, waited) = match claim(client, watches, stream, exchange, backend).await {
            Ok(claim) => claim,
            Err(abort) => {
                if abort.who != Who::Client {
                    let bound = exchange.affinity.server.and_then(|index| backend.farm.server(index));
                    count(bound.as_deref().map(|server| &**server), Count::ConnectErrors, |counters| &counters.connect_errors);
                }
                return Err(abort);
            }
        };
        let claim = Attached::new(claim, &stream.facts.figures);
        stream.facts.figures.phase.set(Phase::Connect);
        let chosen = claim.server();
        let has_failed = refused == Some(chosen.index()) || exchange.failed.contains(&chosen.index());
        if has_failed && mem::take(&mut at_once) {
            // It has taken the request, and is asked again at once.
            exchange.failed.clear();
        } else if has_failed {
            // No other server is left that has not refused: they get a moment to come back, and then all are candidates as
            // before.
            drop(claim);
            refused = None;
            exchange.failed.clear();
            client.timer().set(Some(stream.facts.timeouts().connect.map_or(TURN_AROUND, |limit| limit.min(TURN_AROUND))));
            if let Waited::Closed = wait(client, watches, pin!(pending::<()>())).await {
                return Err(Abort::new(Who::Client, Phase::Connect, Cause::Closed));
            }
            continue;
        }
        let again = before.as_ref().is_some_and(|before| before.index() == chosen.index());
        match before.take() {
            None => {}
            Some(before) if before.index() == chosen.index() => {
                count(Some(&before), Count::Retries, |counters| &counters.retries);
            }
            Some(before) => count(Some(&before), Count::Redispatches, |counters| &counters.redispatches),
        }
        // A request whose turn in a queue comes takes the server that has room: no algorithm is asked, nor where the same
        // server is tried again.
        if exchange.affinity.server.is_none() && !waited && !again {
            chosen.counters.bump(Count::Balanced);
        }
        chosen.counters.bump(Count::Sessions);
        let now = clock::now();
        // The time during which the same server is tried again counts as connect time.
        if !mem::replace(&mut exchange.holds_on, true) {
            stream.facts.times.queued = Some(now);
        }
        backend.farm.touch(chosen, now);
        stream.facts.redispatched |= stream.facts.server.as_ref().is_some_and(|before| before.index() != chosen.index());
        stream.facts.server = Some(chosen.clone());
        session.last_server.set(Some((backend.number, chosen.index())));
        if let Some(prefix) = &chosen.settings().redirect
            && matches!(stream.request.method(), b"GET" | b"HEAD")
        {
            let location = [prefix, stream.request.path_and_query()].concat();
            stream.facts.instead = Some(Box::new(Answer::elsewhere(302, location)));
            return Err(Abort::new(Who::Local, Phase::Connect, Cause::Denied));
        }
        let first = stream.facts.number == 0;
        // A request that failed on a connection that had been idle gets a fresh connection.
        let once = !stream.request.is_idempotent();
        let manner = chosen.manner();
        let announcer = manner.and_then(|manner| manner.announcer.as_ref());
        let announced = announcer.map(|announcer| announce::head(announcer, stream).into_boxed_slice());
        let name = manner.and_then(|manner| manner.name.as_ref()).and_then(|name| written(name, stream));
        let pool_name = manner.and_then(|manner| manner.pool_name.as_ref()).and_then(|name| written(name, stream));
        let asked = stream.facts.local;
        let guise = chosen.settings().source.guise.as_ref().and_then(|guise| guise::of(guise, stream));
        let wanted = Wanted {
            reuse: backend.reuse,
            session: session.number,
            first,
            once,
            is_known: session.is_known.get(),
            announced: announced.as_deref(),
            name: name.as_deref(),
            pool_name: pool_name.as_deref(),
            asked,
            guise,
            own_connections: &session.own_connections,
        };
        let may_multiplex = chosen.settings().may_speak_http2();
        let shares = may_multiplex && !is_bytes && backend.mode == Mode::Http && lease::may_share(chosen, exchange.upgrade);
        let got = match shares {
            true => {
                let ask = Ask { backend: &held, server: chosen, wanted, upgrades: exchange.upgrade };
                match lease::at_once(stream, &ask) {
                    Some(leased) => Got::Stream(leased),
                    // Boxed, so that requests that find a connection do not carry the room for it.
                    None => Box::pin(lease::stream(client, watches, stream, ask)).await,
                }
            }
            false => Got::NotShared,
        };
        let (got, counts) = match got {
            Got::NotShared => (None, true),
            Got::Stream(leased) => {
                client.timer().clear();
                stream.facts.server_reused = leased.connection.requests > 0;
                stream.facts.server_was_idle = leased.was_idle;
                stream.facts.server_tls = leased.tls;
                if !stream.facts.server_reused {
                    observe::connection(backend, chosen, None);
                }
                return Ok(Assigned::new(leased.connection, claim, stream, clock::now()));
            }
            Got::Made { connected, counts } => (Some(connected), counts),
        };
        let idle = (exchange.failures == 0 && got.is_none()).then(|| worker.idle.take(chosen, wanted));
        if let Some(connection) = idle.flatten() {
            (stream.facts.server_reused, stream.facts.server_was_idle) = (true, true);
            stream.facts.server_tls = connection.tls().cloned();
            return Ok(Assigned::new(connection, claim, stream, now));
        }
        (stream.facts.server_reused, stream.facts.server_was_idle) = (false, false);
        let connected = if let Some(got) = got {
            got
        } else {
            let request = match may_go_early(client, stream, exchange, backend) {
                _ if may_multiplex && !is_bytes => Request::Http1,
                true => Request::Safe,
                false => Request::Traffic,
            };
            let errand = Errand { server: chosen, options: &backend.options, owner: session.number, asked, guise };
            let introduce = |connection: &mut ServerConnection| connection.introduce(announced, name, pool_name);
            connect(client, watches, stream, errand, introduce, request).await
        };
        let failure = match connected {
            Waited::Done(Ok(connection)) => {
                client.timer().clear();
                observe::connection(backend, chosen, None);
                return Ok(Assigned::new(connection, claim, stream, clock::now()));
            }
            Waited::Done(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Abort::new(Who::ServerTimeout, Phase::Connect, Cause::Timeout)
            }
            Waited::Done(Err(error)) => connect_failure(&error),
            Waited::Late => Abort::new(Who::ServerTimeout, Phase::Connect, Cause::Timeout),
            Waited::Closed => return Err(Abort::new(Who::Client, Phase::Connect, Cause::Closed)),
        };
        // A source address that a request has named may have no route: no fault of the server.
        if counts && !matches!(chosen.settings().source.guise, Some(Guise::Field(..))) {
            observe::connection(backend, chosen, Some("L4 unsuccessful connection"));
        }
        let chosen = chosen.clone();
        drop(claim);
        if !backend.retry_on.connect || !next_attempt(stream, exchange, backend, true) {
            // An error is counted only if no further attempt follows.
            count(Some(&chosen), Count::ConnectErrors, |counters| &counters.connect_errors);
            return Err(failure);
        }
        refused = Some(chosen.index());
        before = Some(chosen);
    }
}

/// Makes a connection for this request alone; `request`: the early data that its handshake may carry.
async fn connect(
    client: &mut Client<'_>,
    watches: Option<Watch<'_>>,
    stream: &mut Stream,
    errand: Errand<'_>,
    introduce: impl FnOnce(&mut ServerConnection),
    request: Request<'_>,
) -> Waited<io::Result<Box<ServerConnection>>> {
    let worker = stream.facts.session.worker.clone();
    let server = errand.server;
    // State of the attempt before does not concern this connection.
    stream.facts.server_tls = None;
    client.timer().set(stream.facts.timeouts().connect);
    server.counters.bump(Count::Connects);
    let connected = {
        let connecting = pin!(server::connect(&worker, errand));
        wait(client, watches, connecting).await
    };
    let mut connection = match connected {
        Waited::Done(Ok(connection)) => connection,
        failed => return failed,
    };
    connection.held = worker.idle.hold(server);
    introduce(&mut connection);
    let Some(connector) = server.connector().filter(|_| server.is_secure()) else { return Waited::Done(Ok(connection)) };
    let tls = &mut stream.facts.server_tls;
    let mut securing = Box::pin(connection.secure(connector, request, tls, &worker.plan.records_memory));
    wait(client, watches, securing.as_mut()).await
}

/// Whether a request may be sent as early data: it does no harm twice, and its client takes that risk itself, or the operator
/// does.
fn may_go_early(client: &Client<'_>, stream: &Stream, exchange: &Exchange, backend: &Backend) -> bool {
    let is_safe = client.is_done() && !exchange.upgrade && stream.request.is_safe();
    // Of a client's requests only the first may have come early.
    let came_early = stream.facts.number == 0 && stream.facts.session.tls().is_some_and(Secured::had_early);
    is_safe && !exchange.waits && (backend.retry_on.early || came_early)
}

/// Whether a request was sent as early data whose client does not know of that: it cannot get a 425 (RFC 8470 section 5.2).
pub fn went_early_unasked(stream: &Stream) -> bool {
    let went = !stream.facts.server_reused && stream.facts.server_tls.as_ref().is_some_and(|tls| tls.went_early());
    went && stream.request.fields.get(b"early-data").is_none()
}

/// A name that an expression makes; `None` where it has no value.
fn written(name: &LogFormat, stream: &Stream) -> Option<Box<str>> {
    let mut text = Vec::new();
    name.write(&stream.env(), &mut text);
    String::from_utf8(text).ok().filter(|name| !name.is_empty()).map(String::into_boxed_str)
}

/// Counts a request that its server has no place for, and that goes elsewhere.
fn turn_away(stream: &mut Stream, exchange: &Exchange, backend: &Backend) {
    let Some(server) = exchange.affinity.server.and_then(|index| backend.farm.server(index)) else { return };
    server.counters.bump(Count::Redispatches);
    backend.tally.of(stream.facts.session.worker.index).redispatches.add(1);
    stream.facts.redispatched = true;
}

/// A slot of a server, and whether it was waited for.
async fn claim(
    client: &mut Client<'_>,
    watches: Option<Watch<'_>>,
    stream: &mut Stream,
    exchange: &mut Exchange,
    backend: &Backend,
) -> Result<(Claim, bool), Abort> {
    let precedence = stream.facts.changed().map_or_else(Precedence::default, |changes| changes.priority);
    loop {
        let source = stream.facts.client.map(|c| c.ip());
        let want = match exchange.affinity.server.or_else(|| preferred(stream, exchange, backend)) {
            Some(index) => Want::Server(index),
            None => {
                let key = Key { source, request: Some(&stream.request), bytes: exchange.hash_key.as_deref() };
                Want::Any { key, avoided: &exchange.failed }
            }
        };
        let wants_one = matches!(want, Want::Server(_));
        let mut waiter = match backend.farm.claim_as(want, precedence) {
            Grant::Now(claim) => return Ok((claim, false)),
            Grant::Wait(waiter) => waiter,
            // A server that is only preferred may be full while others are not.
            Grant::Full if exchange.affinity.server.is_none() && stream.facts.session.last_server.take().is_some() => continue,
            Grant::Full if exchange.affinity.server.is_some() && backend.redispatch != 0 => {
                turn_away(stream, exchange, backend);
                redispatch(&mut stream.facts.cookie_found, exchange);
                continue;
            }
            Grant::Full => return Err(Abort::new(Who::Server, Phase::Queue, Cause::QueueFull)),
            // The server has gone meanwhile: any other is better than none.
            Grant::NoServer if wants_one => {
                stream.facts.session.last_server.take();
                redispatch(&mut stream.facts.cookie_found, exchange);
                continue;
            }
            Grant::NoServer => return Err(Abort::new(Who::Server, Phase::Connect, Cause::NoServer)),
        };
        stream.facts.figures.phase.set(Phase::Queue);
        let timeouts = stream.facts.timeouts();
        client.timer().set(timeouts.queue.or(timeouts.connect));
        // A request that waits in a queue holds no buffer, unless the client has sent more already.
        client.release();
        let granted = wait(client, watches, Pin::new(&mut waiter)).await;
        client.timer().clear();
        let facts = &mut stream.facts;
        facts.queue_positions.0 += waiter.server_queue().unwrap_or(0);
        facts.queue_positions.1 += waiter.backend_queue().unwrap_or(0);
        // A request that gave up had waited all the same, and that is shown in logs.
        if !exchange.holds_on {
            facts.times.queued = Some(clock::now());
        }
        match granted {
            Waited::Done(Ok(claim)) => return Ok((claim, true)),
            // The server that its cookie names has gone: any other is better than none.
            Waited::Done(Err(terse_balance::Retry)) => {
                turn_away(stream, exchange, backend);
                redispatch(&mut stream.facts.cookie_found, exchange);
            }
            Waited::Late => {
                // A request that waited for a certain server is logged with it.
                let awaited = exchange.affinity.server.and_then(|index| backend.farm.server(index));
                stream.facts.server = stream.facts.server.take().or(awaited.map(|server| (*server).clone()));
                return Err(Abort::new(Who::ServerTimeout, Phase::Queue, Cause::Timeout));
            }
            Waited::Closed => return Err(Abort::new(Who::Client, Phase::Queue, Cause::Closed)),
        }
    }
}

/// The server of the request before, while nothing speaks against it: with `option prefer-last-server`, or where a server knows the user
/// by a connection.
fn preferred(stream: &Stream, exchange: &Exchange, backend: &Backend) -> Option<usize> {
    let session = &stream.facts.session;
    let (of, index) = session.last_server.get().filter(|_| backend.options.prefer_last_server || session.is_known.get())?;
    let server = backend.farm.server(index)?;
    let is_free = |most: u32| server.has_room() || server.queued() < most;
    let fits = of == backend.number && exchange.failures == 0 && server.is_eligible();
    (fits && backend.options.most_queued.is_none_or(is_free)).then_some(index)
}

fn connect_failure(error: &io::Error) -> Abort {
    let cause = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EADDRNOTAVAIL | libc::EAGAIN) => Cause::Exhausted,
        _ => Cause::Refused,
    };
    let who = if cause == Cause::Exhausted { Who::Resource } else { Who::Server };
    Abort::new(who, Phase::Connect, cause)
}

impl Assigned {
    /// The stream's connection from now on.
    fn new(connection: Box<ServerConnection>, claim: Attached, stream: &mut Stream, now: Instant) -> Assigned {
        let facts = &mut stream.facts;
        facts.server_http2 = connection.shared();
        (facts.server_frames_id, facts.server_reset) = (0, None);
        facts.server_local = connection.terms.local;
        facts.knows_user = false;
        facts.server_socket = Some(connection.descriptor());
        facts.figures.server_socket.set(facts.server_socket);
        facts.figures.phase.set(Phase::Headers);
        facts.times.connected = Some(now);
        // The rules' changes of the packets to the server.
        if let Some(changes) = facts.changed() {
            changes.server_packets.apply(&connection.socket(), connection.terms.local);
        }
        Assigned { connection, claim }
    }

    /// Keeps the connection for another request if it can carry one, and lets the next request have the slot.
    pub fn keep_if(mut self, keep: bool, stream: &Stream) {
        if self.connection.is_stream() {
            // Its stream ends here; the connection is its pool's.
            return;
        }
        self.connection.requests += 1;
        self.connection.terms.private |= stream.facts.knows_user;
        if keep {
            let session = &stream.facts.session;
            let tells_port = self.connection.terms.announced.is_some()
                || self.connection.terms.guise.as_deref().is_some_and(|guise| guise.port() != 0);
            let belonging = match stream.facts.backend().map(|backend| backend.reuse) {
                _ if self.connection.terms.private => Belonging::Own,
                Some(Reuse::Never) => Belonging::Own,
                // After a balancer that announces its clients, a client may come again from the same port.
                Some(Reuse::Always) if tells_port && session.announced().is_some() => Belonging::SharedIfRoom,
                _ if tells_port => Belonging::Own,
                _ => Belonging::Shared,
            };
            session.worker.idle.put(self.connection, session, belonging);
        }
        drop(self.claim);
    }
}
