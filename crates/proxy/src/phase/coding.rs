//! How a response's body is compressed, beside what policy decides: under which conditions, by whom, and remembered where.

use crate::figures::CountedCoder;
use crate::phase::prepare;
use crate::phase::respond::Reply;
use crate::plan::Backend;
use crate::session::Session;
use crate::settings::CompressionConditions;
use crate::stream::Stream;
use terse_compress::memory::Remembrance;
use terse_compress::policy::Body;
use terse_compress::settings::MemoryPlace;
use terse_compress::{Compressor, Effective, Load, Plan, Recall, decode, policy};
use terse_message::Fields;
use terse_sample::Condition;

/// Whether a message's body is coded.
pub fn body(fields: &Fields) -> Body {
    if policy::is_coded(fields) { Body::Coded } else { Body::Plain }
}

/// Whether the stream's 206 may be a part of what is coded here for some clients, or of what is decoded for this one.
pub fn is_part_of_ours(stream: &Stream, reply: &Reply<'_>) -> bool {
    let session = &stream.facts.session;
    let backend = stream.facts.backend();
    let is_decoded = reply.ask.is_some_and(|ask| decode::policy::decide(ask, &stream.response, false) == decode::Decision::Refuse);
    is_decoded
        || reply.offer.is_some_and(|offer| {
            let settings = prepare::compression(session.frontend(), backend, &session.worker.plan.process.compression);
            let allowed = || allows(stream, |conditions| &conditions.response);
            policy::decide(offer, &stream.response, &Load::IDLE, &settings, allowed).varies
        })
}

/// Whether the conditions of frontend and backend hold, all of them (`compression if`).
pub fn allows(stream: &Stream, side: fn(&CompressionConditions) -> &Vec<Condition>) -> bool {
    let frontend = stream.facts.frontend();
    // Both halves of a `listen` have the same.
    let own = stream.facts.backend().filter(|backend| backend.twin != Some(stream.facts.session.frontend));
    let all = [Some(&frontend.compression_conditions), own.map(|backend| &backend.compression_conditions)];
    all.into_iter().flatten().flat_map(side).all(|condition| condition.eval(&stream.env()))
}

/// The coder of a response's body. `private`: the response is one user's own.
pub fn coder(
    stream: &mut Stream,
    plan: Plan,
    known_bytes: Option<u64>,
    private: bool,
    settings: &Effective<'_>,
    session: &Session,
) -> CountedCoder {
    let mut coder = Compressor::new(plan, known_bytes, settings.collect_bytes(plan.coding), &session.worker.workplace);
    coder.prefer(settings.engine());
    let backend = stream.facts.backend();
    match remembrance(plan, private, backend, settings, session) {
        Ok(remembrance) => coder.remember(remembrance),
        Err(recall) => stream.facts.figures.recall.set(Some(recall)),
    }
    CountedCoder::new(coder, &stream.facts.figures)
}

/// How the body is remembered, or why it is not.
fn remembrance(
    plan: Plan,
    private: bool,
    backend: Option<&Backend>,
    settings: &Effective<'_>,
    session: &Session,
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
    Ok(match session.worker.raiser() {
        Some(raiser) => remembrance.with_raiser(raiser.clone(), settings.most_level(plan.coding)),
        None => remembrance,
    })
}
