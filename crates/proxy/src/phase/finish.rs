//! The end of a stream: counted and logged.

use crate::counters::Counters;
use crate::exchange::Client;
use crate::facts::{Decoding, Facts, Times};
use crate::io::clock;
use crate::phase::{answer, dictionary, record};
use crate::session::Session;
use crate::settings::Mode;
use crate::stream::Stream;
use crate::track;
use std::rc::Rc;

use terse_balance::{Count, Server};
use terse_compress::Reason;
use terse_message::{Abort, Cause, Phase, Who};

/// Counts and logs a stream that has ended.
pub fn stream(stream: &mut Stream) {
    stream.facts.times.end.get_or_insert_with(clock::now);
    let is_unread = stream.facts.version.is_none() && stream.facts.frontend().mode == Mode::Http;
    if is_unread {
        unread(&mut stream.facts);
    }
    count(stream);
    stream.facts.count_tracked_bytes();
    if is_unread {
        // As in HAProxy's logs, which show no bytes where there was no request.
        stream.facts.figures.bytes_out.set(0);
    }
    record::end(stream);
    stream.facts.end_tracks();
}

/// Ends a connection without a byte of a request: closed by its client, or too slow. Answered, counted and logged as half a
/// request is, unless `option http-ignore-probes` is set.
pub async fn silent(client: &mut Client<'_>, session: &Rc<Session>, who: Who) {
    if session.frontend().options.ignore_probes {
        return;
    }
    let cause = if who == Who::ClientTimeout { Cause::Timeout } else { Cause::Closed };
    let abort = Abort::new(who, Phase::Request, cause);
    let mut stream = Stream::new(session, session.accepted);
    answer::to_abort(client, &mut stream, abort).await;
    // A client that has closed altogether cannot be answered: that is no other end.
    stream.facts.abort = Some(abort);
    self::stream(&mut stream);
}

/// The status of a client that left before its request was there, as in HAProxy: that of the response it would have got.
fn unread(facts: &mut Facts) {
    facts.times.end.get_or_insert_with(clock::now);
    if facts.status == 0 && facts.abort.is_some_and(|abort| abort.who == Who::Client) {
        facts.status = 400;
    }
}

fn count(stream: &Stream) {
    let facts = &stream.facts;
    let worker = &facts.session.worker;
    let front = facts.frontend().tally.of(worker.index);
    let back = facts.backend().map(|backend| backend.tally.of(worker.index));
    let is_http = facts.frontend().mode == Mode::Http;
    front.requests.add(1);
    // A meter's count may be more than in the end belongs to the stream: sums wrap, and come out right.
    let figures = &*facts.figures;
    let bytes_in = figures.bytes_in.get().wrapping_sub(figures.metered.0.get());
    let bytes_out = figures.bytes_out.get().wrapping_sub(figures.metered.1.get());
    for counters in [Some(front), back, facts.session.address_counters()].into_iter().flatten() {
        counters.bytes_in.add(bytes_in);
        counters.bytes_out.add(bytes_out);
        counters.bytes_to_server.add(figures.bytes_to_server.get());
        counters.bytes_from_server.add(figures.bytes_from_server.get());
        // A stream that ended without a response counts among the others, as in HAProxy.
        if facts.status > 0 || is_http {
            counters.response(facts.status);
        }
        if let Some(abort) = facts.abort {
            count_abort(counters, facts, abort);
        }
        count_compression(&counters.compression, facts);
        if let Some(usage) = facts.dictionary {
            counters.compression.dictionaries().count(usage);
        }
        let decoding = figures.decoding.get();
        if decoding.request.is_some() || decoding.response.is_some() {
            count_decoding(&counters.decompression, &decoding);
        }
    }
    // Of frontends alone: what was sent is sent once.
    if let Some(used) = &facts.used_dictionary {
        dictionary::count(used, figures.compressed.get());
    }
    if let (None, Some(reason)) = (facts.coding, facts.compression) {
        let bytes = figures.bytes_out.get().saturating_sub(figures.head_at.get());
        front.compression.count_passed_bytes(reason, bytes);
        worker.plan.types.note(worker.index, stream.response.fields.get(b"content-type"), reason, bytes);
    }
    for (counters, layer) in [(back, facts.hops.0), (Some(front), facts.hops.1)] {
        if let (Some(counters), Some(layer)) = (counters, layer) {
            counters.compression.count_hop(layer);
        }
    }
    if let Some(back) = back {
        back.requests.add(1);
        back.current.sub(1);
    }
    if let Some(backend) = facts.backend() {
        let times = spans_ms(&facts.times);
        backend.farm.durations.add(times);
        facts.server.iter().for_each(|server| server.durations.add(times));
    }
    if let Some(server) = &facts.server {
        server.counters.add(Count::BytesIn, bytes_in);
        server.counters.add(Count::BytesOut, bytes_out);
        server.counters.add(Count::BytesToServer, figures.bytes_to_server.get());
        server.counters.add(Count::BytesFromServer, figures.bytes_from_server.get());
        if facts.times.connected.is_some() && facts.server_reused {
            server.counters.bump(Count::Reuses);
        }
        // A missing answer is an error, and no request, as in HAProxy.
        if facts.server_status > 0 {
            server.counters.bump(Count::Requests);
            server.counters.bump_status(facts.server_status);
        }
        if let Some(abort) = facts.abort {
            count_abort_of_server(server, facts, abort);
        }
    }
}

#[cold]
fn count_abort(counters: &Counters, facts: &Facts, abort: Abort) {
    match failure(facts, abort) {
        Some(Failure::Request) => counters.request_errors.add(1),
        Some(Failure::Client) => counters.client_aborts.add(1),
        Some(Failure::Server) => counters.server_aborts.add(1),
        Some(Failure::Denied) => counters.denied_responses.add(1),
        Some(Failure::Response) => counters.response_errors.add(1),
        None => {}
    }
    if abort.who == Who::Internal {
        counters.internal_errors.add(1);
    }
    if is_error_of_server(abort) {
        counters.response_errors.add(1);
    }
}

#[cold]
fn count_abort_of_server(server: &Server, facts: &Facts, abort: Abort) {
    match failure(facts, abort) {
        Some(Failure::Request) | None => {}
        Some(Failure::Client) => server.counters.bump(Count::ClientAborts),
        Some(Failure::Server) => server.counters.bump(Count::ServerAborts),
        Some(Failure::Denied) => server.counters.bump(Count::DeniedResponses),
        Some(Failure::Response) => server.counters.bump(Count::ResponseErrors),
    }
    if abort.who == Who::Internal {
        server.counters.bump(Count::InternalErrors);
    }
    if is_error_of_server(abort) {
        server.counters.bump(Count::ResponseErrors);
    }
}

/// A stream's time in queues, until the server was connected, until its response, and in all, in milliseconds.
fn spans_ms(times: &Times) -> [u64; 4] {
    let span = |from, to| u64::try_from(Times::between(from, to)).unwrap_or(0);
    let began = Some(times.start);
    [
        span(times.request.or(began), times.queued),
        span(times.queued, times.connected),
        span(times.connected, times.response),
        span(began, times.end),
    ]
}

/// The counter for a stream that ended early.
enum Failure {
    /// The request was malformed, too large, too slow, or broke off.
    Request,
    /// The client broke off later.
    Client,
    /// The server broke off while it sent a body.
    Server,
    /// A rule denied the response.
    Denied,
    /// The response was malformed, too slow, or broke off before its body.
    Response,
}

/// Counts a stream that ends early in its tracked entries: a head that could not be read as a request, and as an error unless
/// its client was only slow or the status is 501; a failure of its server as a failure.
pub fn blame(stream: &Stream, abort: Abort) {
    match failure(&stream.facts, abort) {
        Some(Failure::Request) if stream.facts.version.is_none() => {
            stream.facts.count_tracked(track::REQUESTS, 1);
            if abort.who != Who::ClientTimeout && answer::status(stream, abort) != Some(501) {
                stream.facts.count_tracked(track::ERRORS, 1);
            }
        }
        Some(Failure::Request) if abort.who == Who::Proxy => stream.facts.count_tracked(track::ERRORS, 1),
        // A body that does not come is no error.
        Some(Failure::Request) => {}
        Some(Failure::Server | Failure::Response) => stream.facts.count_tracked(track::FAILURES, 1),
        Some(Failure::Client | Failure::Denied) | None => {}
    }
}

/// Whether a server's connection broke in the middle of a body: that is an error of the response, too.
fn is_error_of_server(abort: Abort) -> bool {
    matches!(abort, Abort { who: Who::Server, phase: Phase::Data, cause: Cause::Closed | Cause::Reset })
}

fn failure(facts: &Facts, abort: Abort) -> Option<Failure> {
    match abort {
        Abort { who: Who::Client | Who::ClientTimeout, phase: Phase::Request, .. } => Some(Failure::Request),
        Abort { who: Who::Proxy, phase: Phase::Request, cause: Cause::Malformed | Cause::TooLarge } => Some(Failure::Request),
        // A client that leaves before there is a server breaks nothing off.
        Abort { who: Who::Client | Who::ClientTimeout, phase: Phase::Queue | Phase::Connect, .. } => None,
        Abort { who: Who::Client | Who::ClientTimeout, .. } => Some(Failure::Client),
        Abort { who: Who::Local, .. } => None,
        // A body that breaks the protocol: the client's, as long as there is no answer.
        Abort { who: Who::Proxy, phase: Phase::Data, cause: Cause::Malformed } if facts.server_status == 0 => {
            Some(Failure::Request)
        }
        Abort { who: Who::Proxy, phase: Phase::Data, cause: Cause::Malformed } => Some(Failure::Response),
        Abort { who: Who::Server | Who::ServerTimeout | Who::Down | Who::Replaced, phase: Phase::Data, .. } => {
            Some(Failure::Server)
        }
        Abort { phase: Phase::Headers | Phase::Data, cause: Cause::Denied, .. } => Some(Failure::Denied),
        Abort { phase: Phase::Headers, .. } => Some(Failure::Response),
        _ => None,
    }
}

fn count_decoding(counters: &terse_compress::decode::Counters, decoding: &Decoding) {
    for (side, outcome) in [(&counters.request, decoding.request), (&counters.response, decoding.response)] {
        outcome.iter().for_each(|outcome| side.count(outcome));
    }
}

fn count_compression(counters: &terse_compress::Counters, facts: &Facts) {
    match (facts.coding, facts.compression) {
        (Some(coding), _) => {
            let (bytes_in, bytes_out) = facts.figures.compressed.get();
            counters.count_compressed(coding, bytes_in, bytes_out);
            if let Some(recall) = facts.figures.recall.get() {
                counters.count_recall(recall);
            }
        }
        (None, Some(reason)) => {
            counters.count_passed(reason);
            // HAProxy's "bypassed" are the bytes that would have been compressed if there had been more time or memory.
            if matches!(reason, Reason::RateBrake | Reason::CpuBrake | Reason::BufferLimit | Reason::CoderLimit) {
                counters.count_bypassed(facts.figures.bytes_from_server.get());
            }
        }
        (None, None) => {}
    }
}
