//! The response: its head read, judged, edited, decided upon, sent; then its body.

use crate::cache::is_unsafe;
use crate::evidence;
use crate::exchange::{Broken, Fate, NoHead, Part, Peer, Receiver, Sender};
use crate::facts::Facts;
use crate::figures::{CountedCoder, CountedDecoder};
use crate::filter::{self, Direction};
use crate::inspection::{self, Side, lend};
use crate::io::clock;
use crate::log::Origin;
use crate::phase::assign::went_early_unasked;
use crate::phase::body::{self, Broke};
use crate::phase::inspect::{self, Decision};
use crate::phase::retry::FailureKind;
use crate::phase::transfer::{Failure, Sending};
use crate::phase::{coding, decoding, dictionary, judge, observe, prepare, record};
use crate::rules::{self, BodyWait, Cursor, Flow, Rule, Wait, rewrite};
use crate::script;
use crate::session::Session;
use crate::settings::{ConnectionMode, Mode};
use crate::splice::Way;
use crate::stick;
use crate::stream::Stream;
use crate::types::{Listening, Sampling};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use terse_balance::Affinity;
use terse_compress::decode::{Ask, Decompressor};
use terse_compress::{self as compress, Effective, Offer, Reason, Verdict, policy};
use terse_message::hop::{is_asked_for, says_close};
use terse_message::{Abort, BodyLength, Cause, Conformance, Known, Malformed, Persistence, Phase, Response, Version, Who, list};
use terse_sample::Needs;

/// Inputs of the response beside the stream, and its decisions.
pub struct Reply<'a> {
    /// Whether the client's connection may go on.
    pub keep_client: bool,
    /// Whether the client has asked for another protocol.
    pub upgrade: bool,
    /// Continuation of the connections.
    pub mode: ConnectionMode,
    /// The codings that the client would take.
    pub offer: Option<&'a Offer>,
    /// The parts that may have to be decoded.
    pub ask: Option<&'a Ask>,
    /// Whether a part that comes may be joined with bytes that the client got coded here, or decoded.
    pub joins: bool,
    /// Content of the persistence cookie.
    pub affinity: &'a Affinity,
    /// Progress of the request by now.
    pub sending: &'a Sending,
    /// Whether the server's connection may carry another request.
    pub server_keeps: bool,
    /// Whether the connection is a tunnel from here on.
    pub switched: bool,
}

/// Reads the response and brings it to the client.
pub async fn run(
    down: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    stream: &mut Stream,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let session = stream.facts.session.clone();
    let persistence = head(down, sender, stream, reply).await?;
    let sending = reply.sending;
    // A request that is not whole is expected to be, unless the server closes.
    reply.keep_client &= sending.whole.get() || sending.goes_on() && persistence.keep_alive;
    invalidate(stream);
    let changes = stream.response.status == 101;
    // RFC 9110 section 7.8: only to the protocol that was asked for.
    if changes
        && !(reply.upgrade
            && persistence.upgrade
            && is_asked_for(&stream.request.fields, &stream.response.fields)
            && sender.accepts(&stream.response))
    {
        return Err(junk(Cause::Malformed));
    }
    let switches = changes || is_tunnel(stream);
    down.begin(&stream.response);
    reply.server_keeps = persistence.keep_alive && reply.mode == ConnectionMode::KeepAlive && !down.ends_with_connection();
    if stream.response.must_close {
        (reply.server_keeps, reply.keep_client) = (false, false);
    }
    if !stream.facts.server.as_ref().is_some_and(|s| s.is_up()) {
        reply.server_keeps = false;
    }
    if matches!(stream.response.status, 401 | 407) && knows_user_by_connection(&stream.response) {
        stream.facts.knows_user = true;
        session.is_known.set(true);
        stream.facts.server_http2.iter().for_each(|connection| connection.keep_to(session.number));
    }
    content(down, sender, stream, reply).await?;
    if let Some(backend) = stream.facts.backend.clone()
        && backend.sticking.is_some()
    {
        stick::learn(stream, &backend);
    }
    dictionary::learn::leave(stream, reply.offer);
    // Fields that rules remove from the head are still true of the body, and fields that they add count too; the proxy's own
    // cookie does not.
    let is_private = |stream: &Stream| reply.offer.is_some_and(|offer| offer.is_private(&stream.response));
    let mut private = is_private(stream);
    judge(down, sender, stream, &session).await?;
    private |= is_private(stream);
    if let (Some(backend), Some(server)) = (&stream.facts.backend, &stream.facts.server) {
        let farm = &backend.farm;
        let sets_cookie = backend.options.check_cache && stream.response.fields.has(Known::SetCookie);
        stream.facts.cookie_sent =
            farm.mark(&mut stream.response, server, reply.affinity, stream.request.method(), || session.worker.unix_s());
        if sets_cookie && farm.leaks_cookie(&stream.response, stream.request.method(), server) {
            let page = Box::new(crate::reply::page(stream, 502));
            return Err(answered(stream, page, Who::Proxy));
        }
    }
    if switches {
        return Box::pin(switch(sender, stream, reply, &session)).await;
    }
    stream.facts.hops.0 = Some(policy::hop(stream.facts.server_link(), coding::body(&stream.response.fields)).layer);
    deliver(down, sender, stream, reply, private).await
}

/// Whether a server that refuses wants a proof that then counts for its connection: NTLM, Negotiate.
fn knows_user_by_connection(response: &Response) -> bool {
    let asks: &[u8] = if response.status == 401 { b"www-authenticate" } else { b"proxy-authenticate" };
    let names = |ask: &[u8], scheme: &[u8]| ask.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    response.fields.values(asks).flat_map(list::elements).any(|ask| names(ask, b"ntlm") || names(ask, b"nego"))
}

/// Brings a stored response, whose head is the stream's, to the client.
pub async fn stored(
    down: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    stream: &mut Stream,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let session = stream.facts.session.clone();
    stream.has_response = true;
    stream.facts.figures.phase.set(Phase::Data);
    crate::captures::response(stream);
    rewrite::share(Side::Response, b"", stream);
    stream.facts.count_status(stream.response.status);
    let is_private = |stream: &Stream| reply.offer.is_some_and(|offer| offer.is_private(&stream.response));
    let mut private = is_private(stream);
    judge(down, sender, stream, &session).await?;
    private |= is_private(stream);
    deliver(down, sender, stream, reply, private).await
}

/// Sends a response that rules have judged to the client. `private`: it is for a single user.
async fn deliver(
    down: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    stream: &mut Stream,
    reply: &mut Reply<'_>,
    private: bool,
) -> Result<(), Failure> {
    let session = stream.facts.session.clone();
    let version = stream.request.version;
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let settings = prepare::compression(session.frontend(), backend, &session.worker.plan.process.compression);
    let decoder = match reply.ask {
        Some(ask) => decoding::response(stream, ask, reply.offer, &settings, &session)?,
        None => None,
    };
    let known_bytes = match stream.response.body {
        BodyLength::Exact(n) => Some(n),
        _ => None,
    };
    let (verdict, slot) = match reply.offer {
        Some(offer) => {
            let verdict = decide(down, stream, offer, &settings, decoder.is_some()).await?;
            let (verdict, slot) = coding::admit(verdict, known_bytes.filter(|_| decoder.is_none()), stream, &settings, &session);
            (Some(verdict), slot)
        }
        None => (None, None),
    };
    if let (Some(offer), Some(verdict)) = (reply.offer, &verdict)
        && let Some(offered) = offer.dictionary()
    {
        let load = session.worker.load(settings.process());
        stream.facts.dictionary = policy::usage(offer, &stream.response, verdict, &load, &settings);
        dictionary::note(stream, offered, offer, &settings, load.pace);
    }
    let reason = verdict.and_then(|verdict| verdict.reason());
    let compression = match verdict.map(|v| v.decision) {
        Some(compress::Decision::Compress(plan)) => {
            stream.facts.coding = Some(plan.coding);
            stream.facts.figures.level.set(plan.level);
            Some(plan)
        }
        _ => {
            stream.facts.compression = reason.or(stream.facts.compression);
            None
        }
    };
    let body = match compression {
        Some(plan) if !plan.coding.is_identity() => policy::Body::Coded,
        _ => coding::body(&stream.response.fields),
    };
    let hop = policy::hop(stream.facts.client_link(), body);
    stream.facts.hops.1 = Some(hop.layer);
    if !after_rules(stream, &session) {
        return Err(spoiled(stream));
    }
    end_hop(stream, reply);
    // A rule has made HEAD of the client's method.
    let bodiless = !stream.facts.asked_head && stream.request.method() == b"HEAD";
    if let (Some(offer), Some(verdict), false) = (reply.offer, &verdict, bodiless) {
        if let (Some(offered), Some(plan)) = (offer.dictionary(), compression)
            && !plan.coding.is_identity()
        {
            dictionary::learn::announce(stream, offered, private, known_bytes.filter(|_| decoder.is_none()));
        }
        terse_compress::head::apply(&mut stream.response, offer, verdict, &settings);
        if let Some(offered) = offer.dictionary() {
            dictionary::announce(stream, offered);
        }
    }
    let unwanted = stream.facts.asked_head && stream.request.method() != b"HEAD";
    if bodiless {
        without_body(&mut stream.response);
    }
    let keep = reply.keep_client && session.worker.is_running();
    reply.keep_client = sender.response(&mut stream.response, keep, &peer(&stream.facts, version));
    sender.store_behind(hop.stores);
    stream.facts.status = stream.response.status;
    stream.facts.figures.head_at.set(stream.facts.figures.bytes_out.get());
    record::step_or_soon(stream, Origin::Response, Mode::Http);
    let written = sender.written;
    if !matches!(stream.response.body, BodyLength::None | BodyLength::Exact(0))
        && !unwanted
        && takes_nothing(sender, compression.is_some())
    {
        // Nothing is read or coded for a client that takes nothing.
        let opened = script::beside(stream, Box::pin(sender.opened()).as_mut()).await;
        opened.map_err(|error| to_client(&error))?;
        down.is_frugal = false;
    }
    if let Some(recording) = stream.facts.caching.as_mut().and_then(|caching| caching.recording.take()) {
        down.tell(recording);
    }
    if stream.facts.compression == Some(Reason::TypeNotListed)
        && !private
        && decoder.is_none()
        && !down.is_heard()
        && stream.response.status == 200
        && !matches!(stream.response.body, BodyLength::None)
        && let Some(content_type) = stream.response.fields.get(b"content-type")
        && let Some(sampling) = Sampling::begin(&session.worker, content_type, known_bytes)
    {
        down.tell(Box::new(Listening::from(sampling)));
    }
    let sent = match compression {
        _ if unwanted => script::beside(stream, Box::pin(body::discard(down, sender)).as_mut()).await.map_err(broke),
        plan if let Some(decoder) = decoder => {
            let coder = plan.map(|plan| coding::coder(stream, (plan, slot), None, private, &settings, &session));
            Box::pin(decoded(down, sender, stream, decoder, coder)).await
        }
        Some(plan) => {
            let coder = coding::coder(stream, (plan, slot), known_bytes, private, &settings, &session);
            Box::pin(compressed(down, sender, stream, coder)).await
        }
        None => {
            let way = Way::of(stream, Direction::Out);
            script::beside(stream, pin!(body::pass(down, sender, way))).await.map_err(broke)
        }
    };
    if sent.is_ok() {
        down.ended();
        if stream.response.body == BodyLength::UntilClose && !reply.sending.whole.get() {
            // The request goes on, and the client must see the end of its answer. Whether the client is still there is seen
            // elsewhere.
            let _ = sender.shutdown().await;
        }
    }
    if let Err(failure) = &sent
        && sender.written == written
    {
        // The server broke off, or sent malformed bytes, before any of its answer had left: the client can still get an error
        // page.
        let Abort { who, phase, cause } = failure.abort;
        if matches!(who, Who::Server | Who::ServerTimeout) || phase == Phase::Headers {
            stream.facts.status = 0;
        } else if (who, cause) == (Who::Proxy, Cause::Malformed) {
            stream.facts.status = 0;
            return Err(no_answer(stream));
        }
    }
    stream.facts.times.end = Some(clock::now());
    sent
}

/// Whether the client takes nothing of a body now. One that goes as it is waits for its own window only: it may be empty, and need none of
/// the connection's.
fn takes_nothing(sender: &Sender<'_>, is_coded: bool) -> bool {
    if is_coded { sender.is_stuck() } else { sender.is_shut() }
}

/// Meaning of a server's broken body of which nothing has left.
fn unsent(broken: Broken, stream: &mut Stream) -> Failure {
    match broken {
        Broken::Malformed(_) => no_answer(stream),
        broken => from_server(broken),
    }
}

/// An answer that breaks the protocol before any of it has left is none, however its head was.
fn no_answer(stream: &mut Stream) -> Failure {
    (stream.has_response, stream.facts.server_status, stream.facts.times.response) = (false, 0, None);
    Failure::late(Who::Proxy, Phase::Headers, Cause::Malformed)
}

/// Has caches forget resources that an unsafe method may have changed (RFC 9111 section 4.4).
fn invalidate(stream: &Stream) {
    let Some(caching) = &stream.facts.caching else { return };
    if is_unsafe(stream.request.method()) && matches!(stream.response.status, 200..=399) {
        caching.forget();
    }
}

/// Reads the head of the final response; interim ones go to the client as they come (RFC 9110 section 15.2).
async fn head(
    down: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    stream: &mut Stream,
    reply: &Reply<'_>,
) -> Result<Persistence, Failure> {
    down.is_frugal = sender.is_stuck() && {
        // Rules that look at bytes want as many as there are.
        let looks = |needs: Needs| needs.has_any(inspection::BYTES);
        !looks(stream.facts.frontend().looks) && !stream.facts.backend().is_some_and(|backend| looks(backend.looks))
    };
    loop {
        next(down, stream).await?;
        if !matches!(stream.response.status, 100 | 102..=199) {
            break;
        }
        if stream.response.status == 100 {
            reply.sending.held_back.set(false);
        }
        if prepare::is_modern(stream.request.version) {
            let persistence = Persistence::read(&mut stream.response.fields, stream.response.version);
            // No protocol is offered before the answer.
            Persistence { upgrade: false, ..persistence }.strip(&mut stream.response.fields);
            sender.bare(&mut stream.response, &peer(&stream.facts, stream.request.version));
            sender.flush().await.map_err(|e| to_client(&e))?;
        }
    }
    stream.has_response = true;
    stream.facts.figures.phase.set(Phase::Data);
    stream.facts.server_status = stream.response.status;
    stream.facts.times.response = Some(clock::now());
    let persistence = Persistence::read(&mut stream.response.fields, stream.response.version);
    crate::captures::response(stream);
    rewrite::share(Side::Response, down.bytes(), stream);
    let status = stream.response.status;
    observe::response(stream, status);
    if status == 425 && went_early_unasked(stream) {
        stream.has_response = false;
        let failure = Abort::new(Who::Server, Phase::Headers, Cause::Refused);
        return Err(Failure { abort: failure, kind: FailureKind::TooEarly });
    }
    if stream.facts.backend().is_some_and(|b| b.retry_on.statuses.contains(&status)) {
        let failure = Abort::new(Who::Server, Phase::Headers, Cause::Refused);
        // The client gets it when the request cannot be tried again: then, and of a request whose body is on its way.
        let sent_once = stream.facts.changed().is_some_and(|changes| changes.sent_once);
        let is_repeatable = reply.sending.is_repeatable() && !sent_once;
        if stream.facts.retries < stream.facts.retries_allowed() && is_repeatable && !stream.facts.by_service {
            stream.has_response = false;
            return Err(Failure { abort: failure, kind: FailureKind::Status(status) });
        }
    }
    if matches!(status, 206 | 416) && reply.joins && coding::is_part_of_ours(stream, reply) {
        stream.has_response = false;
        let failure = Abort::new(Who::Server, Phase::Headers, Cause::Refused);
        return Err(Failure { abort: failure, kind: FailureKind::Part });
    }
    reply.sending.forget();
    stream.facts.count_status(status);
    Ok(persistence)
}

/// Takes the next head.
#[inline]
async fn next(down: &mut Receiver<'_>, stream: &mut Stream) -> Result<(), Failure> {
    loop {
        match down.head(stream.request.method(), &mut stream.response) {
            Ok(true) => return Ok(()),
            Ok(false) => script::beside(stream, pin!(down.more_of_head())).await.map_err(no_head)?,
            Err(malformed) => return Err(refuse(down, stream, malformed)),
        }
    }
}

/// Meaning of a stream that brought no answer.
pub fn no_answer_of(fate: Fate) -> Failure {
    let (who, cause, kind) = match fate {
        Fate::Refused => (Who::Server, Cause::Refused, FailureKind::Refused),
        Fate::WantsHttp1 | Fate::NoProtocol => (Who::Server, Cause::Refused, FailureKind::Junk),
        Fate::Malformed => return junk(Cause::Malformed),
        Fate::Reset => (Who::Server, Cause::Reset, FailureKind::Reset),
        Fate::Ended(true) => (Who::Server, Cause::Closed, FailureKind::Empty),
        Fate::Ended(false) => (Who::Server, Cause::Closed, FailureKind::Beside),
    };
    Failure { abort: Abort::new(who, Phase::Headers, cause), kind }
}

/// Removes the fields that are for this hop alone, after the rules; the rules' connection options are for the client's
/// connection.
fn end_hop(stream: &mut Stream, reply: &mut Reply<'_>) {
    let fields = &mut stream.response.fields;
    reply.keep_client &= !says_close(fields);
    // RFC 9110 section 7.8: a client of HTTP/1.0 cannot change the protocol.
    let upgrade = prepare::is_modern(stream.request.version);
    Persistence { keep_alive: reply.keep_client, upgrade }.strip(fields);
}

/// The client's understanding of heads.
#[inline]
pub fn peer(facts: &Facts, version: Version) -> Peer<'_> {
    let frontend = facts.frontend();
    Peer {
        version,
        spellings: frontend.spellings.as_deref(),
        drops_trailers: frontend.options.drop_trailers.responses,
        keeps_version: frontend.reading.conformance == Conformance::HAProxy,
        scheme: b"",
    }
}

fn is_tunnel(stream: &Stream) -> bool {
    stream.request.method() == b"CONNECT" && stream.response.status / 100 == 2
}

/// Makes a tunnel of the connection: the head goes as it is, and further bytes are not parsed.
async fn switch(sender: &mut Sender<'_>, stream: &mut Stream, reply: &mut Reply<'_>, session: &Session) -> Result<(), Failure> {
    if !after_rules(stream, session) {
        return Err(spoiled(stream));
    }
    end_hop(stream, reply);
    sender.bare(&mut stream.response, &peer(&stream.facts, stream.request.version));
    stream.facts.status = stream.response.status;
    reply.switched = true;
    sender.flush().await.map_err(|e| to_client(&e))
}

/// Runs the backend's `tcp-response content`.
async fn content(down: &mut Receiver<'_>, sender: &Sender<'_>, stream: &mut Stream, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(backend) = stream.facts.backend.clone() else { return Ok(()) };
    if backend.tcp.server_content.is_empty() {
        return Ok(());
    }
    let decision = Box::pin(inspect::response(down, stream, &backend.tcp)).await;
    judge::mark(stream, &sender.socket());
    match decision {
        Decision::Pass | Decision::Http => {}
        Decision::Close => reply.server_keeps = false,
        // The set has no rule that asks for a service.
        Decision::Drop | Decision::Perform(_) => return Err(Failure::late(Who::Proxy, Phase::Data, Cause::Denied)),
    }
    Ok(())
}

/// Runs `http-response`: the backend's rules, then the frontend's.
async fn judge(down: &mut Receiver<'_>, sender: &Sender<'_>, stream: &mut Stream, session: &Session) -> Result<(), Failure> {
    let frontend = session.frontend();
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let twin = backend.is_some_and(|b| b.twin == Some(session.frontend));
    let front = Some((&frontend.response_rules, frontend.looks)).filter(|_| !twin);
    for (rules, looks) in [backend.map(|b| (&b.response_rules, b.looks)), front].into_iter().flatten() {
        if !rules.is_empty() {
            run_rules(down, sender, stream, rules, looks).await?;
        }
    }
    Ok(())
}

async fn run_rules(
    down: &mut Receiver<'_>,
    sender: &Sender<'_>,
    stream: &mut Stream,
    rules: &[Arc<Rule>],
    looks: Needs,
) -> Result<(), Failure> {
    let mut at = Cursor::default();
    loop {
        let flow = match looks.has_any(inspection::BYTES) {
            true => lend(down, stream, Side::Response, false, |stream| rules::run_from(rules, &mut at, stream)),
            false => rules::run_from(rules, &mut at, stream),
        };
        judge::mark(stream, &sender.socket());
        let flow = match flow {
            Flow::Play(play) => Box::pin(script::to_its_end(stream, play)).await,
            flow => flow,
        };
        match flow {
            Flow::Next if !at.is_behind(rules) => {}
            Flow::Play(_) | Flow::Perform(_) => return Ok(()),
            Flow::Next | Flow::Stop | Flow::Close | Flow::Http | Flow::More | Flow::Stored(_) | Flow::Work(_) => return Ok(()),
            Flow::Wait(Wait::Pause(time)) => Box::pin(tokio::time::sleep(time)).await,
            // The set has no such rule.
            Flow::Wait(Wait::Handshake) => {}
            Flow::Wait(Wait::Name(wait)) => Box::pin(wait.run(stream)).await,
            Flow::Wait(Wait::Body(wait)) => Box::pin(wait_for_body(down, stream, wait)).await?,
            Flow::Answer(answer) => return Err(answered(stream, answer, Who::Local)),
            Flow::Deny(answer) | Flow::Tarpit(answer) => return Err(answered(stream, answer, Who::Proxy)),
            Flow::Drop => return Err(Failure::late(Who::Proxy, Phase::Headers, Cause::Denied)),
        }
    }
}

/// `http-response wait-for-body`: reads the body, or as much of it as is waited for, as far as a buffer holds it. An early
/// end is found again when it is moved.
async fn wait_for_body(down: &mut Receiver<'_>, stream: &mut Stream, wait: BodyWait) -> Result<(), Failure> {
    if down.is_held() {
        return Ok(());
    }
    let enough = if wait.at_least > 0 { wait.at_least } else { u64::MAX };
    let waiting = async {
        loop {
            let (bytes, whole) = down.in_buffer(enough);
            if whole || down.is_full() || bytes >= enough || !down.more_ahead().await {
                return;
            }
        }
    };
    let waiting = pin!(waiting);
    let waiting = script::beside(stream, waiting);
    match wait.time {
        None => waiting.await,
        Some(time) => tokio::time::timeout(time, waiting).await.map_err(|_| from_server(Broken::Timeout))?,
    }
    Ok(())
}

fn answered(stream: &mut Stream, answer: Box<crate::reply::Answer>, who: Who) -> Failure {
    stream.has_response = false;
    // There is no response whose time could be measured.
    stream.facts.times.response = None;
    stream.facts.instead = Some(answer);
    Failure::late(who, Phase::Headers, Cause::Denied)
}

/// The last rules could not do a required edit: the client gets an error, without rules.
fn spoiled(stream: &mut Stream) -> Failure {
    stream.has_response = false;
    stream.facts.instead = Some(Box::new(crate::reply::page(stream, 500)));
    Failure::late(Who::Internal, Phase::Headers, Cause::Fault)
}

/// Runs `http-after-response` on any response: the backend's rules, then the frontend's. False when a required edit could not
/// be done.
pub fn after_rules(stream: &mut Stream, session: &Session) -> bool {
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let twin = backend.is_some_and(|b| b.twin == Some(session.frontend));
    for rules in [backend.map(|b| &b.after_rules), Some(&session.frontend().after_rules).filter(|_| !twin)].into_iter().flatten() {
        if !rules.is_empty() && matches!(rules::run(rules, stream), Flow::Deny(_)) {
            return false;
        }
    }
    true
}

/// Decides about compression; looks at the body's first bytes where the head does not settle it.
///
/// A `decoded` body is not looked at: its server found it worth coding.
async fn decide(
    down: &mut Receiver<'_>,
    stream: &mut Stream,
    offer: &Offer,
    settings: &Effective<'_>,
    decoded: bool,
) -> Result<Verdict, Failure> {
    let load = stream.facts.session.worker.load(settings.process());
    let allowed = || coding::allows_response(stream);
    let verdict = policy::decide(offer, &stream.response, &load, settings, allowed);
    if !matches!(verdict.decision, compress::Decision::Look(_)) {
        return Ok(verdict);
    }
    if decoded {
        return Ok(policy::look(&verdict, b"", None, settings));
    }
    let least =
        if matches!(stream.response.body, BodyLength::Framed | BodyLength::UntilClose) { settings.response_min_bytes() } else { 0 };
    let whole = script::beside(stream, pin!(body::whole(down, least))).await;
    loop {
        match down.part().map_err(|broken| unsent(broken, stream))? {
            Some(Part::Data(n)) => return Ok(policy::look(&verdict, down.data(n), whole, settings)),
            Some(Part::End) => return Ok(policy::look(&verdict, b"", Some(0), settings)),
            None => match script::beside(stream, pin!(down.more_briefly())).await {
                Some(more) => more.map_err(from_server)?,
                // The server has sent its head and is silent: the head must go, so the type is believed.
                None => return Ok(policy::look(&verdict, b"", None, settings)),
            },
        }
    }
}

/// The client waits for a body all the same: the head gives its length as 0.
fn without_body(response: &mut Response) {
    if !matches!(response.status, 204 | 304) {
        response.fields.remove_known(Known::TransferEncoding);
        response.fields.set(Known::ContentLength.name().as_bytes(), b"0");
    }
}

/// Moves a body that is decoded, and coded again if that was decided.
async fn decoded(
    down: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    stream: &mut Stream,
    decoder: Box<Decompressor>,
    mut coder: Option<CountedCoder>,
) -> Result<(), Failure> {
    let passage = filter::passage(stream, Direction::Out);
    let written = sender.written;
    let figures = stream.facts.figures.clone();
    let mut decoder = CountedDecoder::new(decoder, &figures, false);
    let result = {
        let pass = pin!(decoding::pass(down, sender, &mut decoder.decoder, coder.as_deref_mut(), passage));
        script::beside(stream, pass).await
    };
    decoder.note(&result);
    result.map_err(|at| match at {
        // The client can still get an error page.
        Broke::Decoder(fault) if sender.written == written => decoding::undecodable(fault, Phase::Headers),
        at => broke(at),
    })
}

async fn compressed(
    down: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    stream: &mut Stream,
    mut coder: CountedCoder,
) -> Result<(), Failure> {
    let passage = filter::passage(stream, Direction::Out);
    let compress = pin!(body::compress(down, sender, &mut coder, passage));
    script::beside(stream, compress).await.map_err(broke)
}

/// Meaning of a body that broke off on its way to the client.
fn broke(at: Broke) -> Failure {
    match at {
        Broke::Receiver(broken) => from_server(broken),
        Broke::Sender(error) => to_client(&error),
        Broke::Coder => Failure::late(Who::Internal, Phase::Data, Cause::Fault),
        Broke::Decoder(fault) => decoding::undecodable(fault, Phase::Data),
    }
}

/// Meaning of a failed write to the client.
pub fn to_client(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Failure::late(Who::ClientTimeout, Phase::Data, Cause::Timeout),
        _ => Failure::late(Who::Client, Phase::Data, Cause::Reset),
    }
}

/// Meaning of a server's broken body.
pub fn from_server(broken: Broken) -> Failure {
    match broken {
        Broken::Closed => Failure::late(Who::Server, Phase::Data, Cause::Closed),
        Broken::Reset => Failure::late(Who::Server, Phase::Data, Cause::Reset),
        Broken::Timeout => Failure::late(Who::ServerTimeout, Phase::Data, Cause::Timeout),
        Broken::Malformed(_) => Failure::late(Who::Proxy, Phase::Data, Cause::Malformed),
    }
}

fn no_head(no_head: NoHead) -> Failure {
    let (broken, empty) = match no_head {
        NoHead::Broken { broken, is_empty } => (broken, is_empty),
        NoHead::Stream(fate) => return no_answer_of(fate),
    };
    let (who, cause, kind) = match broken {
        Broken::Timeout => (Who::ServerTimeout, Cause::Timeout, FailureKind::Timeout),
        Broken::Reset => (Who::Server, Cause::Reset, FailureKind::Empty),
        _ => (Who::Server, Cause::Closed, FailureKind::Empty),
    };
    let kind = if empty || kind == FailureKind::Timeout { kind } else { FailureKind::Junk };
    Failure { abort: Abort::new(who, Phase::Headers, cause), kind }
}

/// Keeps a malformed head for `show errors`.
fn refuse(down: &Receiver<'_>, stream: &Stream, malformed: Malformed) -> Failure {
    evidence::response(&stream.facts, malformed, down.bytes(), stream.request.method());
    junk(if malformed == Malformed::HeadTooLarge { Cause::TooLarge } else { Cause::Malformed })
}

fn junk(cause: Cause) -> Failure {
    Failure { abort: Abort::new(Who::Proxy, Phase::Headers, cause), kind: FailureKind::Junk }
}
