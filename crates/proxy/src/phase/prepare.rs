//! Preparing a request for the server: fields of this hop go, fields of the configuration come.

use crate::exchange::Client;
use crate::exchange::replay::Recording;
use crate::phase::decoding::DecodePlan;
use crate::phase::persist::Bound;
use crate::phase::transfer::CodePlan;
use crate::plan::{Backend, Frontend};
use crate::settings::{ConnectionMode, ForwardedFor};
use crate::stick::Persistence;
use crate::stream::Stream;
use crate::traceparent::{self, Traceparent};
use smallvec::SmallVec;
use std::net::IpAddr;
use terse_balance::{Affinity, CookieFound};
use terse_compress::decode::{self, Ask};
use terse_compress::dictionary::{self, Offered};
use terse_compress::{Effective, Offer, policy, range};
use terse_message::hop::{says_close, unframe};
use terse_message::{BodyLength, Fields, Version};
use terse_tls::Secured;

/// A request on its way to a server, over all attempts.
pub struct Exchange {
    /// Whether bytes of the body have been taken from the client's connection.
    pub body_begun: bool,
    /// The bytes of the body that were sent in the attempt that failed.
    pub recording: Option<Recording>,
    /// Whether the client's connection may go on after the response.
    pub keep_client: bool,
    /// Whether the client asks for another protocol.
    pub upgrade: bool,
    /// Continuation of the connections.
    pub mode: ConnectionMode,
    /// The codings that the client would take, when compression is configured.
    pub offer: Option<Offer>,
    /// The parts of its response that may have to be decoded, when that is asked for.
    pub ask: Option<Box<Ask>>,
    /// Whether a part that comes may be joined with bytes that its client got coded here, or decoded: then the whole is asked
    /// for.
    pub joins: bool,
    /// Plan of the decoding of the request's body, once that is decided.
    pub decode: Option<Box<DecodePlan>>,
    /// Content of the persistence cookie, and other lines on the server of a request.
    pub affinity: Affinity,
    /// The effect of persistence.
    pub persistence: Persistence,
    /// Plan of the compression of the request's body, once that is decided.
    pub code: Option<CodePlan>,
    /// Key of the balancing algorithm's hash, where that is an expression.
    pub hash_key: Option<Box<[u8]>>,
    /// Attempts that failed.
    pub failures: u32,
    /// Number of refusals by a server over HTTP/2.
    pub refusals: u8,
    /// Whether the attempt goes to the server of the attempt before: false for the first attempt, and after a redispatch.
    pub holds_on: bool,
    /// It has failed after the connecting, and is tried again.
    pub retries: bool,
    /// Whether it goes after the handshake with its server, and not as early data.
    pub waits: bool,
    /// Servers that they failed on.
    pub failed: SmallVec<[usize; 4]>,
    /// Whether the server's connection may carry another request.
    pub server_keeps: bool,
}

impl Exchange {
    /// Whether the body, as far as it was sent, can be sent again.
    pub fn is_repeatable(&self) -> bool {
        !self.body_begun || self.recording.as_ref().is_some_and(Recording::is_whole)
    }
}

/// Edits the stream's request for the server.
pub fn request(client: &mut Client<'_>, stream: &mut Stream, bound: Bound) -> Exchange {
    let session = stream.facts.session.clone();
    let frontend = session.frontend();
    let plan = &session.worker.plan;
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let mode = connection_mode(frontend, backend);
    let request = &mut stream.request;
    let mut persistence = stream.facts.persistence.after_rules(&mut request.fields);
    // A rule's change of the connection is a change of the server's.
    let server_mode =
        if mode == ConnectionMode::KeepAlive && says_close(&request.fields) { ConnectionMode::ServerClose } else { mode };
    persistence.strip(&mut request.fields);
    if request.method() == b"CONNECT" {
        // Rules may have changed a request with a body to this method: the body stays with the client's connection.
        unframe(&mut request.fields);
        request.must_close |= request.body != BodyLength::None;
        request.body = BodyLength::None;
        stream.facts.persistence.keep_alive &= !request.must_close;
        persistence.keep_alive &= !request.must_close;
    }

    let decoded = decompression(frontend, backend);
    let ask = decode::policy::ask(request, &decoded);
    let settings = compression(frontend, backend, &plan.process.compression);
    let link = stream.facts.client_link();
    let (request, asked) = (&mut stream.request, stream.facts.asked.as_deref());
    let offer = settings.is_configured().then(|| policy::offer(request, asked, link, &settings));
    let mut joins = range::guard(request, offer.as_ref(), ask.as_deref(), settings.etag());
    if joins && stream.facts.by_service {
        // It is not asked twice.
        range::whole(request);
        joins = false;
    }
    if let Some(offer) = &offer {
        if offer.dictionary().is_some_and(Offered::is_ours) {
            dictionary::hide(&mut request.fields);
        }
        terse_compress::head::offload(request, offer, &settings);
    }
    if link.may_code().is_err() {
        policy::hop::narrow(&mut request.fields);
    }
    if let Some(ask) = &ask {
        decode::head::widen(request, ask, &decoded);
    }

    let affinity = match backend {
        Some(backend) => {
            let affinity = affinity(stream, backend, bound);
            backend.farm.strip(&mut stream.request);
            affinity
        }
        None => Affinity::none(CookieFound::Off),
    };
    stream.facts.cookie_found = affinity.found;
    for (address, rules) in [
        (stream.facts.client, [backend.and_then(|b| b.forwarded_for.as_ref()), frontend.forwarded_for.as_ref()]),
        (stream.facts.local, [backend.and_then(|b| b.original_to.as_ref()), frontend.original_to.as_ref()]),
    ] {
        if let Some(address) = address {
            forwarded_for(rules, address.ip(), &mut stream.request.fields);
        }
    }
    if let Some(forwarded) = backend.and_then(|b| b.forwarded.as_deref()) {
        forwarded.tell(stream);
    }
    if session.tls().is_some_and(Secured::is_early) && stream.request.fields.get(b"early-data").is_none() {
        // RFC 8470 section 5.1: a server that takes the request knows that it may be a replay.
        stream.request.fields.push(b"Early-Data", b"1");
    }
    if frontend.options.traces {
        trace(stream);
    }
    if let Some(name) = &frontend.log.unique_id_header
        && let Some(id) = stream.facts.unique_id(&stream.env())
    {
        stream.request.fields.push(name, id);
    }
    client.begin(&stream.request);
    Exchange {
        body_begun: false,
        recording: None,
        keep_client: persistence.keep_alive && mode != ConnectionMode::Close,
        upgrade: persistence.upgrade,
        mode: server_mode,
        offer,
        ask,
        joins,
        decode: None,
        affinity,
        persistence: bound.persistence,
        code: None,
        hash_key: None,
        failures: 0,
        refusals: 0,
        waits: false,
        holds_on: false,
        retries: false,
        failed: SmallVec::new(),
        server_keeps: false,
    }
}

/// Gives a request that has no sound `traceparent` the stream's.
fn trace(stream: &mut Stream) {
    let Some(traceparent) = stream.facts.traceparent(&stream.env()).copied() else { return };
    let fields = &mut stream.request.fields;
    if Traceparent::of(fields).is_none() {
        fields.remove(traceparent::NAME);
        fields.remove(traceparent::STATE);
        fields.push(traceparent::NAME, traceparent.value());
    }
}

/// The server that a `use-server` line names, or else the persistence cookie.
fn affinity(stream: &Stream, backend: &Backend, bound: Bound) -> Affinity {
    if bound.persistence == Persistence::Ignore {
        return Affinity { server: bound.server, ..Affinity::none(CookieFound::Off) };
    }
    let worker = &stream.facts.session.worker;
    let affinity = backend.farm.find(&stream.request, bound.persistence == Persistence::Force, || worker.unix_s());
    match (bound.server, affinity.found) {
        (None, _) => affinity,
        (server, found @ (CookieFound::Off | CookieFound::None)) => Affinity { server, found, ..affinity },
        (server, _) => Affinity { server, found: CookieFound::Unused, ..affinity },
    }
}

/// The same for a connection of bytes.
pub fn bytes(bound: Bound) -> Exchange {
    Exchange {
        body_begun: false,
        recording: None,
        keep_client: false,
        upgrade: false,
        mode: ConnectionMode::Close,
        offer: None,
        ask: None,
        joins: false,
        decode: None,
        affinity: Affinity { server: bound.server, ..Affinity::none(CookieFound::Off) },
        persistence: bound.persistence,
        code: None,
        hash_key: None,
        failures: 0,
        refusals: 0,
        waits: false,
        holds_on: false,
        retries: false,
        failed: SmallVec::new(),
        server_keeps: false,
    }
}

/// The compression settings of frontend and backend together.
pub fn compression<'a>(
    frontend: &'a Frontend,
    backend: Option<&'a Backend>,
    process: &'a terse_compress::settings::Process,
) -> Effective<'a> {
    Effective::new(frontend.compression.as_deref(), backend.and_then(|b| b.compression.as_deref()), process)
}

/// The decompression settings of frontend and backend together.
pub fn decompression<'a>(frontend: &'a Frontend, backend: Option<&'a Backend>) -> decode::Effective<'a> {
    decode::Effective::new(frontend.decompression.as_deref(), backend.and_then(|b| b.decompression.as_deref()))
}

/// The stricter mode of both; a backend's mode counts where the frontend has none.
pub fn connection_mode(frontend: &Frontend, backend: Option<&Backend>) -> ConnectionMode {
    let back = backend.and_then(|b| b.options.connection);
    let rank = |mode| match mode {
        ConnectionMode::KeepAlive => 0,
        ConnectionMode::ServerClose => 1,
        ConnectionMode::Close => 2,
    };
    [frontend.options.connection, back].into_iter().flatten().max_by_key(|m| rank(*m)).unwrap_or_default()
}

/// Adds an address for the server. The backend's field counts before the frontend's. An address that either excepts is not
/// added, and a field that is there stops only if all rules have `if-none`.
fn forwarded_for(rules: [Option<&ForwardedFor>; 2], address: IpAddr, fields: &mut Fields) {
    let Some(first) = rules.into_iter().flatten().next() else { return };
    let mut all = rules.into_iter().flatten();
    let excepted = all.clone().any(|rule| rule.except.is_some_and(|(network, bits)| in_network(address, network, bits)));
    if excepted || (all.all(|rule| rule.if_none) && fields.get(&first.header).is_some()) {
        return;
    }
    fields.push(&first.header, address.to_string().as_bytes());
}

/// Whether an address lies in a network of so many leading bits.
pub fn in_network(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => (u32::from(a) ^ u32::from(n)).leading_zeros() >= u32::from(bits.min(32)),
        (IpAddr::V6(a), IpAddr::V6(n)) => (u128::from(a) ^ u128::from(n)).leading_zeros() >= u32::from(bits.min(128)),
        _ => false,
    }
}

/// Whether a client of this version understands chunks and interim responses.
pub fn is_modern(version: Version) -> bool {
    version != Version::Http10
}
