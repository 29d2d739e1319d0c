//! Bytes both ways: `mode tcp`, and connections after a change of protocol.

use crate::exchange::{Broken, Client, Ends, Part, Receiver, Sender, Upstream, cancel};
use crate::filter::{Direction, Reach};
use crate::inspection::lend_if;
use crate::io::{Timer, clock};
use crate::log::Origin;
use crate::meter::{self, Meter};
use crate::phase::inspect::{self, Decision};
use crate::phase::transfer::Failure;
use crate::phase::{assign, body, finish, judge, perform, persist, prepare, record, respond, route};
use crate::registry::Registry;
use crate::script::{self, Applet};
use crate::server::ServerConnection;
use crate::session::{Carried, Session};
use crate::settings::{Mode, TcpRules};
use crate::splice::{self, Way};
use crate::stick;
use crate::stream::Stream;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use terse_message::{Abort, Cause, Phase, Who};
use terse_sample::Needs;

/// Serves a connection in `mode tcp` to its end. True: it turns out to carry HTTP, and no byte of it was taken: by a rule
/// (`switch-mode http`), or by the mode of the backend.
pub async fn serve(client: &mut Client<'_>, session: &Rc<Session>) -> bool {
    let mut place = Registry::enter(session);
    client.open();
    let mut stream = Stream::counted(session, session.accepted, place.figures());
    stream.facts.figures.open(stream.facts.id, stream.facts.times.start);
    stream.facts.times.request = Some(stream.facts.times.start);
    record::step(&stream, Origin::Accept);
    let carried = cancel::until!(&session.cancel, carry(client, &mut stream, session));
    let ended = match carried {
        Ok(Ok(Carriage::Http)) => return true,
        Ok(ended) => ended.err(),
        Err(who) => {
            if let Some(stage) = stream.facts.stage.get() {
                stage.clear();
            }
            Some(Abort::new(who, stream.facts.figures.phase.get(), Cause::Closed))
        }
    };
    if let Some(abort) = ended {
        stream.facts.abort = Some(abort);
        // Looked for where `option dontlognull` asks.
        stream.facts.has_spoken = session.frontend().log.settings.dont_log_null && client.has_spoken(&session.worker.pools);
        if session.requests.get() > 0 && abort.who != Who::Local {
            client.break_off();
            if matches!(abort.phase, Phase::Queue | Phase::Connect) {
                client.discard();
            }
        }
    }
    finish::stream(&mut stream);
    false
}

/// Outcome of a connection in `mode tcp`.
enum Carriage {
    /// Its bytes were carried to their end.
    Ended,
    /// It carries HTTP.
    Http,
}

/// Decides the kind of the connection, and carries its bytes if they are just that.
async fn carry(client: &mut Client<'_>, stream: &mut Stream, session: &Session) -> Result<Carriage, Abort> {
    match decide(client, stream, session).await? {
        Kind::AsHttp if session.bind().carries_bytes => {
            return Err(Abort::new(Who::Proxy, Phase::Request, Cause::Denied));
        }
        Kind::AsHttp => {
            // It is the same stream, so its rules on content have run.
            let carried = Carried {
                tracks: stream.facts.tracks.take(),
                transaction: std::mem::take(&mut stream.transaction),
                request: std::mem::take(&mut stream.request_variables),
            };
            session.carried.set(Some(Box::new(carried)));
            return Ok(Carriage::Http);
        }
        Kind::ByService(service) => {
            session.requests.set(1);
            Box::pin(perform::bytes(client, stream, service)).await?;
        }
        Kind::AsBytes => {
            session.requests.set(1);
            connect_and_relay(client, stream).await?;
        }
    }
    Ok(Carriage::Ended)
}

/// Kind of a connection in `mode tcp`.
enum Kind {
    AsBytes,
    /// By a rule, or by the backend's mode.
    AsHttp,
    /// A service of a script serves it.
    ByService(Arc<dyn Applet>),
}

/// Runs the rules on content, and chooses the backend between the frontend's and the backend's.
async fn decide(client: &mut Client<'_>, stream: &mut Stream, session: &Session) -> Result<Kind, Abort> {
    let frontend = session.frontend();
    match content(client, stream, &frontend.tcp, frontend.looks).await? {
        kind @ (Kind::AsHttp | Kind::ByService(_)) => return Ok(kind),
        Kind::AsBytes => {}
    }
    let chosen = lend_if(client, stream, frontend.looks, |stream| {
        match route::find(stream, session).is_some_and(|backend| backend.mode == Mode::Http) {
            true => Ok(Kind::AsHttp),
            false => route::choose(stream).map(|()| Kind::AsBytes),
        }
    })?;
    match stream.facts.backend().is_some_and(|backend| backend.twin != Some(session.frontend)) {
        true => {
            let Some(backend) = stream.facts.backend.clone() else { return Ok(chosen) };
            content(client, stream, &backend.tcp, backend.looks).await
        }
        false => Ok(chosen),
    }
}

async fn content(client: &mut Client<'_>, stream: &mut Stream, tcp: &TcpRules, looks: Needs) -> Result<Kind, Abort> {
    if tcp.content.is_empty() {
        return Ok(Kind::AsBytes);
    }
    let decision = Box::pin(inspect::request(client, stream, tcp, looks)).await;
    judge::mark(stream, &client.socket());
    match decision {
        Decision::Pass => Ok(Kind::AsBytes),
        Decision::Http => Ok(Kind::AsHttp),
        Decision::Perform(service) => Ok(Kind::ByService(service)),
        Decision::Drop | Decision::Close => {
            let worker = &stream.facts.session.worker;
            let tally = stream.facts.backend().map_or(&stream.facts.frontend().tally, |backend| &backend.tally);
            let counted = [Some(tally.of(worker.index)), stream.facts.session.address_counters()];
            counted.into_iter().flatten().for_each(|counters| counters.denied_requests.add(1));
            Err(Abort::new(Who::Proxy, Phase::Request, Cause::Denied))
        }
    }
}

async fn connect_and_relay(client: &mut Client<'_>, stream: &mut Stream) -> Result<(), Abort> {
    let bound = persist::before(client, stream);
    let mut exchange = prepare::bytes(bound);
    persist::behind(client, stream, &mut exchange);
    let mut server = assign::server(client, stream, &mut exchange).await?;
    record::step_or_soon(stream, Origin::Connect, Mode::Tcp);
    if let Some(backend) = stream.facts.backend.clone() {
        stick::learn(stream, &backend);
    }
    let ended = connected(client, stream, &mut server.connection).await;
    server.keep_if(false, stream);
    ended
}

/// Moves bytes between the client and a connection, until both have ended.
pub(crate) async fn connected(
    client: &mut Client<'_>,
    stream: &mut Stream,
    connection: &mut ServerConnection,
) -> Result<(), Abort> {
    let session = stream.facts.session.clone();
    let worker = &session.worker;
    let figures = stream.facts.figures.clone();
    figures.phase.set(Phase::Done);
    let front = session.frontend().timeouts;
    let back = stream.facts.backend().map_or(front, |b| b.timeouts);
    let (client_limit, server_limit) = (back.tunnel.or(front.client), back.tunnel.or(back.server));
    let mut upstream = Upstream::new(connection, Vec::new());
    client.open();
    upstream.open();
    let Ends { from: mut up, to: mut to_client, .. } = client.ends(&worker.pools, &figures, client_limit);
    let Ends { from: mut down, to: mut to_server, peer } = upstream.ends(&worker.pools, &figures, server_limit);
    peer.set_limit(server_limit);
    let meters = (Meter::of(&stream.facts, meter::Direction::In), Meter::of(&stream.facts, meter::Direction::Out));
    (to_server.meter, to_client.meter) = (meters.0.as_ref(), meters.1.as_ref());
    let ways = (Way::of(stream, Direction::In), Way::of(stream, Direction::Out));
    let held = stream.facts.backend.clone();
    let rules = held.as_ref().map(|backend| &backend.tcp).filter(|tcp| !tcp.server_content.is_empty());
    let silence = Silence { fins: (front.client_fin, back.server_fin), ..Silence::of(stream) };
    let sides = Sides { up: &mut up, to_server: &mut to_server, down: &mut down, to_client: &mut to_client };
    let ended = match stream.facts.by_service {
        true => script::beside(stream, pin!(Box::pin(relay_both(sides, silence, None, ways)))).await,
        false => {
            let first = rules.map(|tcp| First { stream: &mut *stream, tcp });
            relay_both(sides, silence, first, ways).await
        }
    };
    stream.facts.times.end = Some(clock::now());
    ended
}

/// Limits of silence.
#[derive(Clone, Copy)]
pub struct Silence {
    /// Limits of the client's and the server's silence once the other direction has ended.
    pub fins: (Option<Duration>, Option<Duration>),
    /// `option independent-streams`: bytes of the other side are no sign of life.
    pub apart: bool,
}

impl Silence {
    /// The limits of the stream's proxies.
    pub fn of(stream: &Stream) -> Silence {
        let timeouts = stream.facts.timeouts();
        let apart = stream.facts.frontend().options.independent || stream.facts.backend().is_some_and(|b| b.options.independent);
        Silence { fins: (timeouts.client_fin, timeouts.server_fin), apart }
    }
}

/// Both ends of both sides.
pub struct Sides<'s, 'a> {
    /// From the client,
    pub up: &'s mut Receiver<'a>,
    /// to the server.
    pub to_server: &'s mut Sender<'a>,
    /// From the server,
    pub down: &'s mut Receiver<'a>,
    /// to the client.
    pub to_client: &'s mut Sender<'a>,
}

/// Moves bytes both ways until both directions have ended. A direction that ends closes the other side's input; the other
/// direction goes on. So it does where the server takes no more.
///
/// `first`: the rules for the server's bytes before they go on.
pub async fn relay_both(sides: Sides<'_, '_>, silence: Silence, first: Option<First<'_>>, ways: (Way, Way)) -> Result<(), Abort> {
    let Sides { up, to_server, down, to_client } = sides;
    let (client, server) = ((up.timer(), up.limit()), (down.timer(), down.limit()));
    let shorten = |(timer, timeout): (&Timer, &Cell<Option<Duration>>), fin: Option<Duration>| {
        if fin.is_some() {
            timeout.set(fin);
            timer.set(fin);
        }
    };
    let (last, last_down, closes) = (Cell::new(clock::now()), Cell::new(clock::now()), Cell::new(false));
    let last_down = if silence.apart { &last_down } else { &last };
    let mut upward = pin!(async {
        match relay(up, to_server, &last, ways.0).await {
            // The server takes no more. Its earlier bytes may still be on their way to the client, whose bytes are dropped
            // until then.
            Err(End::Sender(failure)) if failure.abort.cause == Cause::Reset => {
                // The client may break off: the outcome of the tunnel is known by the server's bytes.
                let _ = body::drop_rest(up).await;
                Ok(())
            }
            ended => ended,
        }
    });
    let mut downward = pin!(async {
        let way = match first {
            Some(first) => Box::pin(first.judge(down, to_client, &closes)).await?,
            None => ways.1,
        };
        relay(down, to_client, last_down, way).await
    });
    let (mut up_done, mut down_done) = (false, false);
    poll_fn(|cx| {
        if !up_done && let Poll::Ready(result) = upward.as_mut().poll(cx) {
            up_done = true;
            shorten(server, silence.fins.1);
            if let Err(end) = result {
                return Poll::Ready(Err(end.into_abort(true)));
            }
        }
        if !down_done && let Poll::Ready(result) = downward.as_mut().poll(cx) {
            down_done = true;
            shorten(client, silence.fins.0);
            match result {
                // The server's connection is closed for both directions.
                Ok(()) if closes.get() => return Poll::Ready(Ok(())),
                Ok(()) => {}
                Err(end) => return Poll::Ready(Err(end.into_abort(false))),
            }
        }
        if up_done && down_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// `tcp-response content`: the rules for the server's bytes before they go on.
pub struct First<'a> {
    stream: &'a mut Stream,
    tcp: &'a TcpRules,
}

impl First<'_> {
    /// Runs the rules, and returns the way of the bytes after them, which the rules may have changed.
    async fn judge(self, down: &mut Receiver<'_>, client: &Sender<'_>, closes: &Cell<bool>) -> Result<Way, End> {
        let decision = inspect::response(down, self.stream, self.tcp).await;
        judge::mark(self.stream, &client.socket());
        match decision {
            Decision::Pass | Decision::Http => {}
            Decision::Close => {
                closes.set(true);
                down.close();
            }
            Decision::Drop | Decision::Perform(_) => return Err(End::Denied),
        }
        Ok(Way::of(self.stream, Direction::Out))
    }
}

/// The break of a direction.
enum End {
    Receiver(Broken),
    Sender(Failure),
    /// A rule has refused the bytes.
    Denied,
}

impl From<splice::Broke> for End {
    fn from(broke: splice::Broke) -> End {
        match broke {
            splice::Broke::Receiver(broken) => End::Receiver(broken),
            splice::Broke::Sender(error) => End::Sender(respond::to_client(&error)),
        }
    }
}

impl End {
    fn into_abort(self, upward: bool) -> Abort {
        match (self, upward) {
            (End::Denied, _) => Abort::new(Who::Proxy, Phase::Data, Cause::Denied),
            (End::Receiver(broken), false) => respond::from_server(broken).abort,
            (End::Receiver(Broken::Timeout), true) => Abort::new(Who::ClientTimeout, Phase::Data, Cause::Timeout),
            (End::Receiver(_), true) => Abort::new(Who::Client, Phase::Data, Cause::Reset),
            (End::Sender(failure), false) => failure.abort,
            (End::Sender(failure), true) => Abort::new(Who::Server, Phase::Data, failure.abort.cause),
        }
    }
}

/// Moves bytes one way. While `last`, the time of the last moved byte, is recent, silence here is no reason to end.
async fn relay(
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    last: &Cell<Instant>,
    Way { mut passage, splicing }: Way,
) -> Result<(), End> {
    loop {
        match receiver.part().map_err(End::Receiver)? {
            Some(Part::Data(n)) => {
                let n = match &mut passage {
                    None => n,
                    Some(passage) => {
                        let admitted = Box::pin(passage.admit(Reach::All, receiver.data(n), sender)).await;
                        admitted.map_err(|e| End::Sender(respond::to_client(&e)))?
                    }
                };
                last.set(clock::now());
                receiver.count(n);
                sender.send(receiver.data(n)).await.map_err(|e| End::Sender(respond::to_client(&e)))?;
                receiver.consume(n);
            }
            Some(Part::End) => {
                sender.flush().await.map_err(|e| End::Sender(respond::to_client(&e)))?;
                // The bytes may not be whole, and the receiver must be able to see that.
                if receiver.is_truncated() {
                    sender.break_off();
                }
                // A peer that has closed altogether gets no close any more; that is no error of this direction.
                let _ = sender.close().await;
                return Ok(());
            }
            None => {
                if let Some(splicing) = &splicing
                    && splicing.fits(receiver, sender)
                {
                    let timeout = receiver.limit();
                    let moved = splicing.run(receiver, sender, || last.set(clock::now()), || is_recent(last.get(), timeout.get()));
                    // Boxed, so that tunnels that are copied do not carry the room for it.
                    if Box::pin(moved).await? {
                        continue;
                    }
                }
                sender.flush().await.map_err(|e| End::Sender(respond::to_client(&e)))?;
                loop {
                    match receiver.more().await {
                        Err(Broken::Timeout) if is_recent(last.get(), receiver.limit().get()) => {}
                        result => break result.map_err(End::Receiver)?,
                    }
                }
            }
        }
    }
}

fn is_recent(at: Instant, limit: Option<Duration>) -> bool {
    limit.is_none_or(|limit| at.elapsed() < limit)
}
