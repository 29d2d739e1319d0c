//! A request to the server and its response back, at the same time where the request has a body.

use crate::exchange::replay::Recording;
use crate::exchange::{
    Answered, Asked, Broken, Client, ConnectionOption, Ended, Ends, Part, Peer, Receiver, Sender, Then, Upstream, Watch,
};
use crate::facts::Facts;
use crate::figures::Figures;
use crate::filter::Direction;
use crate::meter::{self, Meter};
use crate::phase::body::{self, Broke};
use crate::phase::decoding::{self, DecodePlan};
use crate::phase::prepare::Exchange;
use crate::phase::retry::FailureKind;
use crate::phase::{coding, prepare, respond};
use crate::server::ServerConnection;
use crate::session::Session;
use crate::settings::ConnectionMode;
use crate::splice::Way;
use crate::stream::Stream;
use crate::tunnel::{self, Silence};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use terse_compress::{Compressor, Decision, EngineId, Plan, policy};
use terse_message::{Abort, BodyLength, Cause, Conformance, Known, Phase, Version, Who};

/// Why an exchange failed, and how far it had come.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// For the log and the client.
    pub abort: Abort,
    /// For the decision to try again.
    pub kind: FailureKind,
}

impl Failure {
    /// A failure after which no retry is possible.
    pub const fn late(who: Who, phase: Phase, cause: Cause) -> Failure {
        Failure { abort: Abort::new(who, phase, cause), kind: FailureKind::Late }
    }
}

/// Progress of a request to its server.
pub struct Sending {
    /// All of it has gone: before that, neither connection can carry another request.
    pub whole: Cell<bool>,
    /// Bytes of the request, and how many of them are its head's.
    figures: Rc<Figures>,
    begin: u64,
    /// The client waits for a 100 response (RFC 9110 section 10.1.1).
    pub held_back: Cell<bool>,
    /// The server takes no more of it.
    pub refused: Cell<Option<Failure>>,
    /// The bytes that the server did not take have been read to their end.
    dropped: Cell<bool>,
    /// The bytes of the body that were sent, where they may have to be sent again.
    recording: Option<Recording>,
    /// The client had sent some of the body for an attempt before.
    is_again: bool,
}

impl Sending {
    /// The state of a request whose head alone has been counted.
    pub fn new(stream: &Stream, whole: bool) -> Sending {
        let figures = stream.facts.figures.clone();
        let held_back = !whole && stream.request.fields.has(Known::Expect) && prepare::is_modern(stream.request.version);
        Sending {
            whole: Cell::new(whole),
            begin: figures.bytes_in.get(),
            figures,
            held_back: Cell::new(held_back),
            refused: Cell::new(None),
            dropped: Cell::new(false),
            recording: None,
            is_again: false,
        }
    }

    /// Whether all bytes that were sent can be sent again.
    pub fn is_repeatable(&self) -> bool {
        self.recording.as_ref().map_or(!self.has_begun(), Recording::is_whole)
    }

    /// Drops the kept part of the body: its answer is there.
    pub fn forget(&self) {
        if let Some(recording) = &self.recording {
            recording.forget();
        }
    }

    /// Whether some of its body has been sent.
    fn has_begun(&self) -> bool {
        self.is_again || self.figures.bytes_in.get() > self.begin
    }

    /// Whether the rest is on its way to the server.
    pub fn goes_on(&self) -> bool {
        self.refused.get().is_none() && !self.may_never_come()
    }

    /// Whether the client has an answer in the place of the 100 response that its body waits for.
    fn may_never_come(&self) -> bool {
        self.held_back.get() && !self.has_begun()
    }

    /// The end of a request that is not being sent any more.
    fn asked(&self) -> Asked {
        let told = self.refused.get().map(|failure| Abort { phase: Phase::Data, ..failure.abort });
        if self.whole.get() { Asked::Whole } else { Asked::Unread(told) }
    }
}

/// Sends the stream's request and brings the response to the client.
pub async fn run(
    client: &mut Client<'_>,
    server: &mut ServerConnection,
    stream: &mut Stream,
    exchange: &mut Exchange,
) -> Result<Ended, Failure> {
    let session = stream.facts.session.clone();
    let worker = &*session.worker;
    let timeouts = stream.facts.timeouts();
    let connection = server_connection(stream, exchange);
    let watches = stream.facts.aborts_on_close();
    let has_upload = !client.is_done();
    let is_again = client.comes_again();
    let records = is_again || has_upload && records(stream, exchange);
    let figures = stream.facts.figures.clone();
    let pools = &worker.pools;
    if !has_upload {
        // The client is not expected to say anything: while the server thinks, the buffer can serve another.
        client.release();
    }
    let link = stream.facts.server_link();
    if link.may_code().is_err() {
        policy::hop::narrow(&mut stream.request.fields);
    }
    let mut upstream = Upstream::new(server, worker.take_scratch());
    let Ends { from: mut up, to: mut to_client, peer: client_peer } = client.ends(pools, &figures, timeouts.client);
    let Ends { from: mut down, to: mut to_server, peer: server_peer } = upstream.ends(pools, &figures, timeouts.server);
    if has_upload {
        decoding::request(stream, &mut exchange.decode);
        Box::pin(decide(&mut up, stream, &mut exchange.code, exchange.decode.is_some())).await;
    }
    if let Some(name) = stream.facts.backend().and_then(|backend| backend.name_header.as_ref())
        && let Some(server) = &stream.facts.server
    {
        stream.request.fields.set_named(name, server.name().as_bytes());
    }
    let meters = (Meter::of(&stream.facts, meter::Direction::In), Meter::of(&stream.facts, meter::Direction::Out));
    let backend = stream.facts.backend();
    let peer = Peer {
        version: Version::Http11,
        spellings: backend.and_then(|backend| backend.spellings.as_deref()),
        drops_trailers: backend.is_some_and(|backend| backend.options.drop_trailers.requests),
        keeps_version: keeps_version(&stream.facts),
        scheme: if session.tls().is_some() { b"https" } else { b"http" },
    };
    to_server.request(&mut stream.request, connection, &peer);
    stream.facts.server_frames_id = to_server.stream_id();
    // Nor is a body that the client has coded compressed again on the way to the server.
    to_server.store_behind(has_upload && policy::hop(link, coding::body(&stream.request.fields)).stores);
    to_server.meter = meters.0.as_ref();
    down.mind_truncation();
    to_client.meter = meters.1.as_ref();
    let mut sending = Sending::new(stream, !has_upload);
    sending.is_again = is_again;
    if records {
        let recording = Recording::new(&pools.small);
        up.tell(recording.listener());
        sending.recording = Some(recording);
    }
    let mut reply = respond::Reply {
        keep_client: exchange.keep_client,
        upgrade: exchange.upgrade,
        mode: exchange.mode,
        offer: exchange.offer.as_ref(),
        ask: exchange.ask.as_deref(),
        joins: exchange.joins,
        affinity: &exchange.affinity,
        sending: &sending,
        server_keeps: false,
        switched: false,
    };

    let result = if !has_upload {
        // The usual request: its head leaves in a single piece, and only then is there something to wait for.
        match to_server.flush().await {
            Ok(()) => {
                server_peer.set_limit(timeouts.server);
                let download = pin!(respond::run(&mut down, &mut to_client, stream, &mut reply));
                let answered = if watches { while_client_stays(download, &mut up).await } else { download.await };
                answered.map(|()| Asked::Whole)
            }
            Err(error) => Err(unsent(&error, &to_server)),
        }
    } else {
        let way = Way::of(stream, Direction::In);
        let joined = {
            let plans = (exchange.decode.as_deref().copied(), exchange.code);
            // Boxed, so that requests without a body do not carry the room for it. A service is not served while its answer
            // is not awaited.
            let alone = stream.facts.by_service;
            let upload = Box::pin(async {
                let sent = upload(&mut up, &mut to_server, plans, &session, way, &figures).await;
                sending.whole.set(sent.is_ok());
                server_peer.restart(timeouts.server);
                match sent {
                    Err(Upload::Server(failure)) => Err(rest(&mut up, &sending, failure).await),
                    sent => sent,
                }
            });
            let mut download = Box::pin(respond::run(&mut down, &mut to_client, stream, &mut reply));
            match both(upload, download.as_mut(), &sending, server_peer, (watches, alone)).await {
                Some(result) => result,
                None => while_client_stays(download.as_mut(), &mut up).await.map(|()| Asked::Whole),
            }
        };
        exchange.body_begun |= sending.has_begun();
        joined
    };
    let recording = sending.recording.clone();
    if let Err(failure) = &result {
        if failure.abort.who == Who::ServerTimeout {
            down.doubt();
        }
        stream.facts.server_reset = down.reset_code();
        // gRPC takes the code for a status.
        if let Some(code) = stream.facts.server_reset {
            to_client.pass_code(code);
        }
    }
    let (switched, kept) = (reply.switched, reply.keep_client);
    let result = match result.map_err(|failure| in_its_phase(failure, stream)) {
        Ok(Asked::Whole) if switched => {
            figures.phase.set(Phase::Done);
            let timeouts = stream.facts.timeouts();
            let limit = timeouts.tunnel;
            client_peer.set_limit(limit.or(up.limit().get()));
            server_peer.set_limit(limit.or(timeouts.server));
            up.open();
            down.open();
            to_server.tunnel(down.limit().get());
            to_client.tunnel(up.limit().get());
            let ways = (Way::of(stream, Direction::In), Way::of(stream, Direction::Out));
            let silence = Silence::of(stream);
            let sides = tunnel::Sides { up: &mut up, to_server: &mut to_server, down: &mut down, to_client: &mut to_client };
            let ended = Box::pin(tunnel::relay_both(sides, silence, None, ways)).await;
            stream.facts.abort = ended.err();
            Ok(Ended { request: Asked::Whole, response: Answered::Whole, connection: Then::Kill })
        }
        Ok(asked) => {
            stream.facts.abort = match asked {
                Asked::Whole => None,
                Asked::Unread(told) => told,
                Asked::Broken(abort) => Some(abort),
            };
            // Another request can follow only where this request ends.
            let request = if sending.dropped.get() && !matches!(asked, Asked::Broken(_)) { Asked::Whole } else { asked };
            match request {
                Asked::Whole => up.end(),
                Asked::Broken(_) => up.open(),
                Asked::Unread(_) => {}
            }
            let connection = if kept && !switched { Then::Keep } else { Then::Drain };
            Ok(Ended { request, response: Answered::Whole, connection })
        }
        Err(failure) => Err(failure),
    };
    exchange.server_keeps = reply.server_keeps && sending.whole.get() && result.is_ok() && !switched;
    exchange.recording = recording.filter(|_| result.is_err());
    worker.give_scratch(upstream.into_out());
    result
}

/// Whether a body is kept for another attempt: where the server may not have taken it, or the operator has it sent again.
fn records(stream: &Stream, exchange: &Exchange) -> bool {
    let facts = &stream.facts;
    let again = facts.backend().is_some_and(|backend| backend.retry_on.after_sending());
    let may_be_lost = facts.server_http2.is_some() || facts.server_was_idle;
    (again || may_be_lost) && exchange.failures < facts.retries_allowed() && !facts.by_service && !exchange.upgrade
}

/// The connection option for the server.
fn server_connection(stream: &Stream, exchange: &Exchange) -> ConnectionOption {
    match exchange.mode {
        _ if exchange.upgrade => ConnectionOption::Upgrade,
        ConnectionMode::KeepAlive => ConnectionOption::KeepAlive,
        ConnectionMode::ServerClose if stream.facts.backend().is_some_and(|b| b.options.pretend_keep_alive) => {
            ConnectionOption::KeepAlive
        }
        ConnectionMode::ServerClose | ConnectionMode::Close => ConnectionOption::Close,
    }
}

/// Whether messages of HTTP/1.0 keep their version on their way, as in HAProxy.
fn keeps_version(facts: &Facts) -> bool {
    facts.frontend().reading.conformance == Conformance::HAProxy
}

/// Decides whether the request's body is compressed, once; edits the head if so. A `decoded` body is not looked at.
async fn decide(up: &mut Receiver<'_>, stream: &mut Stream, exchange_plan: &mut Option<CodePlan>, decoded: bool) {
    let session = stream.facts.session.clone();
    let plan = &session.worker.plan;
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let settings = prepare::compression(session.frontend(), backend, &plan.process.compression);
    if exchange_plan.is_some() || !settings.directions().request {
        return;
    }
    let load = session.worker.load(settings.process());
    let allowed = || coding::allows_request(stream);
    let mut verdict = policy::decide_request(&stream.request, stream.facts.server_link(), &load, &settings, allowed);
    if decoded {
        verdict = policy::look_request(&verdict, b"", None, &settings);
    }
    if let Decision::Look(_) = verdict.decision {
        let least = if stream.request.body == BodyLength::Framed { settings.request_min_bytes() } else { 0 };
        let whole = body::whole(up, least).await;
        if let Ok(None) = up.part() {
            // A client that is silent after its head is not waited for. A failure here is found again, and reported, by the
            // upload.
            let _ = up.more_briefly().await;
        }
        verdict = match up.part() {
            Ok(Some(Part::Data(n))) => policy::look_request(&verdict, up.data(n), whole, &settings),
            Ok(Some(Part::End)) => policy::look_request(&verdict, b"", Some(0), &settings),
            _ => policy::look_request(&verdict, b"", None, &settings),
        };
    }
    if let Decision::Compress(chosen) = verdict.decision {
        let known_bytes = up.known_bytes().filter(|_| !decoded);
        let (collect_bytes, engine) = (settings.collect_bytes(chosen.coding), settings.engine());
        let lasts = coding::lasts(known_bytes, collect_bytes, &stream.request.fields);
        if !lasts || session.coders().has_room() {
            terse_compress::head::apply_request(&mut stream.request, chosen);
            *exchange_plan = Some(CodePlan { chosen, known_bytes, collect_bytes, engine, lasts });
        }
    }
}

/// Plan of the compression of a request's body.
#[derive(Clone, Copy, Debug)]
pub struct CodePlan {
    chosen: Plan,
    known_bytes: Option<u64>,
    collect_bytes: usize,
    engine: Option<EngineId>,
    /// Whether its coder may last, and so takes a slot.
    lasts: bool,
}

/// Sends the request's body as it comes.
async fn upload(
    up: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    (decode, code): (Option<DecodePlan>, Option<CodePlan>),
    session: &Session,
    way: Way,
    figures: &Figures,
) -> Result<(), Upload> {
    let worker = &session.worker;
    let mut coder = code.map(|CodePlan { chosen, known_bytes, collect_bytes, engine, lasts }| {
        let mut coder = Compressor::new(chosen, known_bytes, collect_bytes, &worker.workplace);
        coder.prefer(engine);
        let slots = session.coders();
        coder.within(slots.clone(), lasts.then(|| slots.take()).flatten());
        coder
    });
    let moved = match (decode, &mut coder) {
        (Some(plan), coder) => decoding::upload(up, sender, plan, coder.as_mut(), worker, way.passage, figures).await,
        (None, Some(coder)) => body::compress(up, sender, coder, way.passage).await,
        (None, None) => body::pass(up, sender, way).await,
    };
    moved.map_err(|at| match at {
        Broke::Receiver(broken) => Upload::Client(broken),
        Broke::Sender(error) => Upload::Server(unsent(&error, sender)),
        Broke::Coder => Upload::Server(Failure::late(Who::Internal, Phase::Data, Cause::Fault)),
        Broke::Decoder(fault) => Upload::Refused(decoding::undecodable(fault, Phase::Data)),
    })
}

/// Reads and drops the bytes that the server does not take, so that the client comes to read its answer; returns the end of
/// the upload.
async fn rest(up: &mut Receiver<'_>, sending: &Sending, failure: Failure) -> Upload {
    sending.refused.set(Some(failure));
    if !sending.has_begun() {
        // It may be sent again.
        return Upload::Server(failure);
    }
    match body::drop_rest(up).await {
        Ok(()) => sending.dropped.set(true),
        Err(Broken::Malformed(_)) => {}
        Err(broken) => return Upload::Client(broken),
    }
    Upload::Server(failure)
}

/// The side that failed when the request's body did not arrive.
enum Upload {
    Client(Broken),
    Server(Failure),
    /// The client's bytes cannot be decoded: no answer of the server's is worth waiting for.
    Refused(Failure),
}

/// Drives both directions until both have ended, or until the request has left where the client is to be watched then
/// (`watches`): `None`. A client that breaks off before its answer is complete ends the exchange; a server that takes no more
/// may still send an answer, such as 413. The direction that is complete first waits for the other, unless the request stands
/// `alone` then.
async fn both(
    mut upload: Pin<Box<impl Future<Output = Result<(), Upload>>>>,
    mut download: Pin<&mut impl Future<Output = Result<(), Failure>>>,
    sending: &Sending,
    server: Watch<'_>,
    (watches, alone): (bool, bool),
) -> Option<Result<Asked, Failure>> {
    let (mut uploading, mut answered) = (true, false);
    poll_fn(|cx| {
        if uploading && let Poll::Ready(result) = upload.as_mut().poll(cx) {
            uploading = false;
            match result {
                Ok(()) | Err(Upload::Server(_)) if answered => return Poll::Ready(Some(Ok(sending.asked()))),
                Ok(()) if watches => return Poll::Ready(None),
                Ok(()) | Err(Upload::Server(_)) => {}
                Err(Upload::Client(broken)) if answered => return Poll::Ready(Some(Ok(Asked::Broken(from_client(broken).abort)))),
                Err(Upload::Refused(failure)) if answered => return Poll::Ready(Some(Ok(Asked::Broken(failure.abort)))),
                Err(Upload::Client(broken)) => return Poll::Ready(Some(Err(from_client(broken)))),
                Err(Upload::Refused(failure)) => return Poll::Ready(Some(Err(failure))),
            }
        }
        if answered {
            // A server that takes no more is not held for further bytes of its client.
            let takes_no_more = sending.refused.get().is_some() || server.poll_reset(cx).is_ready();
            return if takes_no_more { Poll::Ready(Some(Ok(sending.asked()))) } else { Poll::Pending };
        }
        match download.as_mut().poll(cx) {
            Poll::Ready(Ok(())) if uploading && !alone && sending.goes_on() => {
                answered = true;
                Poll::Pending
            }
            Poll::Ready(Ok(())) => Poll::Ready(Some(Ok(sending.asked()))),
            // The server's refusal of the request is closer to the cause than the end of its silence.
            Poll::Ready(Err(failure)) if failure.kind != FailureKind::Late => {
                Poll::Ready(Some(Err(sending.refused.take().unwrap_or(failure))))
            }
            Poll::Ready(Err(failure)) => Poll::Ready(Some(Err(failure))),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Drives the download, and gives it up when the client closes (`option abortonclose`).
async fn while_client_stays(
    mut download: Pin<&mut impl Future<Output = Result<(), Failure>>>,
    up: &mut Receiver<'_>,
) -> Result<(), Failure> {
    poll_fn(|cx| {
        if let Poll::Ready(result) = download.as_mut().poll(cx) {
            return Poll::Ready(result);
        }
        up.poll_left(cx).map(|()| Err(Failure::late(Who::Client, Phase::Headers, Cause::Closed)))
    })
    .await
}

/// A client that left while the response was on its way did so in another phase than a client that left before.
fn in_its_phase(failure: Failure, stream: &Stream) -> Failure {
    match failure.abort {
        Abort { who: Who::Client, phase: Phase::Headers, cause } if stream.has_response => {
            Failure { abort: Abort::new(Who::Client, Phase::Data, cause), ..failure }
        }
        _ => failure,
    }
}

/// Meaning of a client's broken body.
fn from_client(broken: Broken) -> Failure {
    match broken {
        Broken::Closed => Failure::late(Who::Client, Phase::Data, Cause::Closed),
        Broken::Reset => Failure::late(Who::Client, Phase::Data, Cause::Reset),
        Broken::Timeout => Failure::late(Who::ClientTimeout, Phase::Data, Cause::Timeout),
        Broken::Malformed(_) => Failure::late(Who::Proxy, Phase::Data, Cause::Malformed),
    }
}

/// Meaning of a failed write to the server.
fn unsent(error: &io::Error, sender: &Sender<'_>) -> Failure {
    if error.kind() != io::ErrorKind::TimedOut
        && let Some(fate) = sender.fate()
    {
        return respond::no_answer_of(fate);
    }
    let (who, cause) = match error.kind() {
        io::ErrorKind::TimedOut => (Who::ServerTimeout, Cause::Timeout),
        _ => (Who::Server, Cause::Reset),
    };
    let kind = if sender.written == 0 { FailureKind::Unsent } else { FailureKind::Empty };
    Failure { abort: Abort::new(who, Phase::Headers, cause), kind }
}
