//! Compression of a response's body, beside the decisions of the policy: its conditions, the coder, and the memory of
//! results.

use crate::figures::CountedCoder;
use crate::phase::prepare;
use crate::phase::respond::Reply;
use crate::plan::Backend;
use crate::session::Session;
use crate::settings::CompressionConditions;
use crate::stream::Stream;
use std::sync::Arc;
use terse_compress::memory::Remembrance;
use terse_compress::offload::TURN_BYTES;
use terse_compress::policy::{Body, Decision, Verdict};
use terse_compress::settings::MemoryPlace;
use terse_compress::slots::Slot;
use terse_compress::{Compressor, Effective, Load, Plan, Reason, Recall, decode, policy};
use terse_dictionary::Dictionary;
use terse_message::{Fields, Known};
use terse_sample::{Condition, Needs};

/// Whether a message's body is coded.
pub fn body(fields: &Fields) -> Body {
    if policy::is_coded(fields) { Body::Coded } else { Body::Plain }
}

/// Whether the stream's 206 may be a part of a representation that is coded here for some clients, or decoded for this
/// client. A 416 may be about a coded length, which the client's decoded bytes are beyond.
pub fn is_part_of_ours(stream: &Stream, reply: &Reply<'_>) -> bool {
    if stream.response.status == 416 {
        return reply.ask.is_some_and(|ask| ask.joins());
    }
    let session = &stream.facts.session;
    let backend = stream.facts.backend();
    let is_decoded = reply.ask.is_some_and(|ask| decode::policy::decide(ask, &stream.response, false) == decode::Decision::Refuse);
    is_decoded
        || reply.offer.is_some_and(|offer| {
            let settings = prepare::compression(session.frontend(), backend, &session.worker.plan.process.compression);
            let allowed = || allows_response(stream);
            let response = &stream.response;
            policy::decide(offer, response, &Load::IDLE, &settings, allowed).varies
                || reply.ask.is_some_and(|ask| decode::policy::is_part_of_recoded(ask, offer, response, &settings, allowed))
        })
}

/// Whether the conditions on responses hold, all of them (`compression if`). A part stands for the 200 of its resource, whose
/// head may differ: for a 206, a condition on the response is in doubt, and holds.
pub fn allows_response(stream: &Stream) -> bool {
    let is_part = stream.response.status == 206;
    let holds = |condition: &Condition| match is_part {
        true => condition.may_hold(&stream.env(), Needs::RESPONSE.or(Needs::RESPONSE_BODY)),
        false => condition.eval(&stream.env()),
    };
    conditions(stream, |conditions| &conditions.response).all(holds)
}

/// Whether the conditions on requests' bodies hold, all of them (`compression if-req`).
pub fn allows_request(stream: &Stream) -> bool {
    conditions(stream, |conditions| &conditions.request).all(|condition| condition.eval(&stream.env()))
}

/// The conditions of frontend and backend.
fn conditions(stream: &Stream, side: fn(&CompressionConditions) -> &Vec<Condition>) -> impl Iterator<Item = &Condition> {
    let frontend = stream.facts.frontend();
    // Both halves of a `listen` have the same.
    let own = stream.facts.backend().filter(|backend| backend.twin != Some(stream.facts.session.frontend));
    let all = [Some(&frontend.compression_conditions), own.map(|backend| &backend.compression_conditions)];
    all.into_iter().flatten().flat_map(side)
}

/// Takes a slot for the coder of a body that lasts; where the client's connection has none left the body stays as it is. Other bodies are
/// collected until they are whole, and take one where their server pauses.
pub fn admit(
    verdict: Verdict,
    known_bytes: Option<u64>,
    stream: &Stream,
    settings: &Effective<'_>,
    session: &Session,
) -> (Verdict, Option<Slot>) {
    let Decision::Compress(plan) = verdict.decision else { return (verdict, None) };
    // With a dictionary a longer body keeps a large state between its turns, also where it is collected.
    let most = if plan.coding.has_dictionary() { TURN_BYTES } else { usize::MAX };
    let collect_bytes = settings.collect_bytes(plan.coding).min(most);
    if plan.coding.is_identity() || !lasts(known_bytes, collect_bytes, &stream.response.fields) {
        return (verdict, None);
    }
    match session.coders().take() {
        None => (Verdict { decision: Decision::Pass(Reason::CoderLimit), ..verdict }, None),
        slot => (verdict, slot),
    }
}

/// Whether a body is known to need a coder that lasts: it is longer than what is collected, or it is a stream of events, which pauses. Most
/// bodies of unknown length are whole soon.
pub fn lasts(known_bytes: Option<u64>, collect_bytes: usize, fields: &Fields) -> bool {
    match known_bytes {
        Some(bytes) => bytes > collect_bytes as u64,
        None => collect_bytes == 0 || fields.first(Known::ContentType).is_some_and(is_events),
    }
}

/// Whether a Content-Type is that of server-sent events.
fn is_events(content_type: &[u8]) -> bool {
    policy::media_type(content_type).eq_ignore_ascii_case(b"text/event-stream")
}

/// The coder of a response's body. `private`: the response is one user's own.
pub fn coder(
    stream: &mut Stream,
    (plan, slot): (Plan, Option<Slot>),
    known_bytes: Option<u64>,
    private: bool,
    settings: &Effective<'_>,
    session: &Session,
) -> CountedCoder {
    let dictionary = stream.facts.used_dictionary.clone();
    let collect_bytes = settings.collect_bytes(plan.coding);
    let mut coder = Compressor::with_dictionary(plan, dictionary.clone(), known_bytes, collect_bytes, &session.worker.workplace);
    coder.prefer(settings.engine().filter(|_| dictionary.is_none()));
    coder.compare(stream.facts.trial);
    coder.within(session.coders().clone(), slot);
    if let Some(recording) = stream.facts.recording.take() {
        coder.record(recording);
    }
    let backend = stream.facts.backend();
    match remembrance(plan, private, backend, settings, session, dictionary) {
        Ok(remembrance) => coder.remember(remembrance),
        Err(recall) => stream.facts.figures.recall.set(Some(recall)),
    }
    CountedCoder::new(coder, &stream.facts.figures)
}

/// The handle of the memory for the body, or the reason why there is none.
fn remembrance(
    plan: Plan,
    private: bool,
    backend: Option<&Backend>,
    settings: &Effective<'_>,
    session: &Session,
    dictionary: Option<Arc<Dictionary>>,
) -> Result<Remembrance, Recall> {
    let line = settings.memory();
    let memory = match line.map(|line| &line.place) {
        None | Some(MemoryPlace::Common) => session.worker.plan.bodies.as_ref(),
        Some(MemoryPlace::Own(memory)) => Some(memory),
        Some(MemoryPlace::Off) => None,
    };
    let (Some(memory), Some(backend)) = (memory, backend) else { return Err(Recall::Off) };
    if private && !line.is_some_and(|line| line.shared) {
        return Err(Recall::Private);
    }
    let remembrance = Remembrance::new(memory.clone(), &backend.owner, settings.least_level(plan, session.worker.pace()));
    let remembrance = match dictionary {
        Some(dictionary) => remembrance.with_dictionary(&backend.owner, dictionary),
        None => remembrance,
    };
    Ok(match session.worker.raiser() {
        Some(raiser) => remembrance.with_raiser(raiser.clone(), settings.most_level()),
        None => remembrance,
    })
}
