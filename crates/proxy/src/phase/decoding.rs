//! Bodies that are decoded: the decision, and the way through decoders, and after them through a coder where both were asked
//! for.
//!
//! ```text
//! Receiver -> decoders -> filters (before the coder -> coder -> after it) -> Sender
//! ```
//!
//! Both directions go this way. Without decoding it costs a look at an `Option`.

use crate::exchange::{Part, Receiver, Sender};
use crate::figures::{CountedDecoder, Figures};
use crate::filter::{Passage, Reach, Side};
use crate::io::turn;
use crate::phase::body::{self, Broke, Patience};
use crate::phase::transfer::Failure;
use crate::phase::{coding, prepare};
use crate::session::Session;
use crate::stream::Stream;
use crate::worker::Worker;
use terse_compress::decode::body::PIECE_BYTES;
use terse_compress::decode::counters::Outcome;
use terse_compress::decode::settings::Responses;
use terse_compress::decode::{Ask, Decision, Decompressor, Fault, Limits, Plan, Reason, head, policy};
use terse_compress::{Compressor, Effective, Offer};
use terse_message::{BodyLength, Cause, Phase, Who};

/// Plan of the decoding of a request's body.
#[derive(Clone, Copy, Debug)]
pub struct DecodePlan {
    plan: Plan,
    limits: Limits,
}

/// Decides whether a response is decoded, and edits its head; the decoder, if there is a body. `offer` and `settings` are those of
/// compression.
pub fn response(
    stream: &mut Stream,
    ask: &Ask,
    offer: Option<&Offer>,
    settings: &Effective<'_>,
    session: &Session,
) -> Result<Option<Box<Decompressor>>, Failure> {
    let worker = &session.worker;
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let decoded = prepare::decompression(session.frontend(), backend);
    let mut decision = policy::decide(ask, &stream.response, worker.decoding.budget().is_full());
    if decision == Decision::Pass(Reason::Accepted)
        && decoded.responses() == Responses::Recode
        && let Some(offer) = offer
        && coding::allows_response(stream)
        && let Some(plan) = policy::recode(ask, offer, &stream.response, &worker.load(settings.process()), settings)
    {
        decision = Decision::Decode(plan);
    }
    let mut decoder = None;
    if let Decision::Decode(plan) = decision
        && stream.response.body != BodyLength::None
    {
        decoder = Decompressor::new(plan, decoded.response_limits(), &worker.decoding).map(Box::new);
        if decoder.is_none() {
            decision = Decision::Pass(Reason::BufferLimit);
        }
    }
    head::apply(&mut stream.response, ask, &decision, settings.etag());
    let outcome = match decision {
        Decision::Decode(_) => decoder.as_ref().map(|_| BEGUN),
        Decision::Pass(reason) => Some(Outcome::Passed(reason)),
        Decision::Refuse => Some(Outcome::Passed(Reason::Partial)),
    };
    if let Some(outcome) = outcome {
        stream.facts.figures.decoded(false, outcome);
    }
    match decision {
        Decision::Refuse => Err(Failure::late(Who::Proxy, Phase::Headers, Cause::Malformed)),
        Decision::Decode(_) | Decision::Pass(_) => Ok(decoder),
    }
}

/// Decides whether the request's body is decoded, once; edits the head if so.
pub fn request(stream: &mut Stream, chosen: &mut Option<Box<DecodePlan>>) {
    let session = stream.facts.session.clone();
    let worker = &session.worker;
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let settings = prepare::decompression(session.frontend(), backend);
    if chosen.is_some() || settings.request_codings().is_empty() {
        return;
    }
    let memory_full = worker.decoding.budget().is_full();
    let outcome = match policy::decide_request(&stream.request, memory_full, &settings) {
        None | Some(Decision::Refuse) => return,
        Some(Decision::Pass(reason)) => Outcome::Passed(reason),
        Some(Decision::Decode(plan)) => {
            head::apply_request(&mut stream.request, plan);
            *chosen = Some(Box::new(DecodePlan { plan, limits: settings.request_limits() }));
            BEGUN
        }
    };
    stream.facts.figures.decoded(true, outcome);
}

/// Sends a request's body, decoded.
pub async fn upload(
    up: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    DecodePlan { plan, limits }: DecodePlan,
    coder: Option<&mut Compressor>,
    worker: &Worker,
    passage: Option<Passage>,
    figures: &Figures,
) -> Result<(), Broke> {
    let Some(decoder) = Decompressor::new(plan, limits, &worker.decoding) else {
        figures.decoded(true, Outcome::Decoded { bytes_in: 0, bytes_out: 0, fault: Some(Fault::Memory) });
        return Err(Broke::Decoder(Fault::Memory));
    };
    let mut decoder = CountedDecoder::new(Box::new(decoder), figures, true);
    let result = pass(up, sender, &mut decoder.decoder, coder, passage).await;
    decoder.note(&result);
    result
}

/// Moves a body through a decoder, and a coder if there is one. All bytes before a pause that can be decoded reach the
/// receiver.
pub async fn pass(
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    decoder: &mut Decompressor,
    mut coder: Option<&mut Compressor>,
    mut passage: Option<Passage>,
) -> Result<(), Broke> {
    // Output that may be a bomb is held until it is known not to be one, and its head with it: as long as the sender does not
    // pause.
    let mut holds = true;
    // Whether the taken bytes have more output.
    let mut drains = false;
    let mut patience = Patience::default();
    loop {
        let waiting = match drains {
            true => 0,
            false => match receiver.part().map_err(Broke::Receiver)? {
                Some(Part::Data(n)) => n,
                Some(Part::End) => {
                    decoder.finish().map_err(Broke::Decoder)?;
                    deliver(decoder, coder.as_deref_mut(), receiver, sender, &mut passage).await?;
                    return match coder {
                        Some(coder) => body::finish(coder, receiver, sender, &mut passage).await,
                        None => sender.finish(&body::trailers(receiver.trailers())).await.map_err(Broke::Sender),
                    };
                }
                None => {
                    let pending = coder.as_ref().is_some_and(|coder| coder.has_pending());
                    let waits = pending || sender.has_waiting() || !decoder.output().is_empty();
                    if !body::more_soon(receiver, coder.as_deref(), waits, &mut patience).await? {
                        holds = false;
                        deliver(decoder, coder.as_deref_mut(), receiver, sender, &mut passage).await?;
                        decoder.relax();
                        if let Some(coder) = coder.as_deref_mut() {
                            let step = coder.pause().map_err(|_| Broke::Coder)?;
                            body::settle(coder, step, receiver, sender, &mut passage).await?;
                        }
                        sender.flush().await.map_err(Broke::Sender)?;
                        patience = Patience::default();
                        receiver.more().await.map_err(Broke::Receiver)?;
                    }
                    continue;
                }
            },
        };
        let expected = if drains { PIECE_BYTES } else { waiting.saturating_mul(USUAL_RATIO) };
        turn::stream(expected).await;
        let before = decoder.bytes_out();
        let pushed = decoder.push(receiver.data(waiting)).map_err(Broke::Decoder)?;
        // Little that comes in can make much work.
        turn::took((decoder.bytes_out() - before).saturating_sub(expected as u64) as usize);
        receiver.count(pushed.taken);
        receiver.consume(pushed.taken);
        drains = pushed.more && pushed.taken == waiting;
        holds &= decoder.is_suspect();
        if !holds {
            deliver(decoder, coder.as_deref_mut(), receiver, sender, &mut passage).await?;
        }
    }
}

/// Hands on the output.
async fn deliver(
    decoder: &mut Decompressor,
    mut coder: Option<&mut Compressor>,
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    passage: &mut Option<Passage>,
) -> Result<(), Broke> {
    let reach = if coder.is_some() { Reach::Only(Side::Before) } else { Reach::All };
    let mut output = decoder.output();
    while !output.is_empty() {
        let n = body::admitted(passage, reach, output, sender).await?;
        let (piece, rest) = output.split_at(n.min(output.len()));
        match coder.as_deref_mut() {
            None => {
                // A slow peer may take long for it.
                receiver.release_if_empty();
                sender.send(piece).await.map_err(Broke::Sender)?;
            }
            Some(coder) => {
                let step = coder.feed(piece).map_err(|_| Broke::Coder)?;
                body::settle(coder, step, receiver, sender, passage).await?;
            }
        }
        output = rest;
    }
    decoder.clear_output();
    Ok(())
}

/// Meaning of a body that could not be decoded: a bomb, an error of its sender, or no memory.
pub fn undecodable(fault: Fault, phase: Phase) -> Failure {
    let (who, cause) = match fault {
        Fault::Ratio | Fault::Size => (Who::Proxy, Cause::Inflated),
        Fault::Flaw(_) => (Who::Proxy, Cause::Malformed),
        Fault::Memory => (Who::Resource, Cause::Exhausted),
    };
    Failure::late(who, phase, cause)
}

/// Usual number of a decoder's output bytes for each input byte.
const USUAL_RATIO: usize = 4;

/// The outcome of a body that is on its way.
const BEGUN: Outcome = Outcome::Decoded { bytes_in: 0, bytes_out: 0, fault: None };
