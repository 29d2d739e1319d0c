//! Answers from a cache: the stored response, or 304 for a client that holds it. It then passes through the phases of a
//! server's response: rules, the compression decision, framing.

use crate::cache::{self, Hit};
use crate::exchange::{Client, Ended, Ends, Held};
use crate::io::clock;
use crate::meter::{self, Meter};
use crate::phase::transfer::Sending;
use crate::phase::{coding, prepare, respond};
use crate::settings::ConnectionMode;
use crate::stream::Stream;
use terse_balance::{Affinity, CookieFound};
use terse_compress::decode;
use terse_compress::{Effective, Load, Offer, policy, range};
use terse_message::{Abort, BodyLength, Cause, Known, Phase, Who};

/// Answers a request that has no body.
pub async fn answer(client: &mut Client<'_>, stream: &mut Stream, hit: Hit) -> Result<Ended, Abort> {
    let session = stream.facts.session.clone();
    let (worker, frontend) = (&session.worker, session.frontend());
    let held = stream.facts.backend.clone();
    let backend = held.as_deref();
    let now = Some(clock::now());
    let times = &mut stream.facts.times;
    (times.queued, times.connected, times.response) = (now, now, now);
    stream.facts.by_service = true;
    stream.facts.abort = Some(Abort::new(Who::Local, Phase::Request, Cause::Denied));

    let decoded = prepare::decompression(frontend, backend);
    let mut ask = decode::policy::ask(&stream.request, &decoded);
    let settings = prepare::compression(frontend, backend, &worker.plan.process.compression);
    let link = stream.facts.client_link();
    let mut offer =
        settings.is_configured().then(|| policy::offer(&stream.request, stream.facts.asked.as_deref(), link, &settings));
    // A tag of ours that the client holds is the server's for the stored response, which is whole.
    range::guard(&mut stream.request, offer.as_ref(), ask.as_deref(), settings.etag());
    let body = load(stream, &hit, (offer.as_mut(), ask.as_deref_mut()), &settings)?;
    let mode = prepare::connection_mode(frontend, backend);
    let affinity = Affinity::none(CookieFound::Off);
    let sending = Sending::new(stream, true);
    let mut reply = respond::Reply {
        keep_client: stream.facts.persistence.keep_alive && mode != ConnectionMode::Close,
        upgrade: false,
        mode,
        offer: offer.as_ref(),
        ask: ask.as_deref(),
        joins: false,
        affinity: &affinity,
        sending: &sending,
        server_keeps: false,
        switched: false,
    };
    let (timeout, figures) = (stream.facts.timeouts().client, stream.facts.figures.clone());
    let meter = Meter::of(&stream.facts, meter::Direction::Out);
    let Ends { from: mut down, to: mut sender, .. } = client.stored(body, &worker.pools, &figures, timeout);
    sender.meter = meter.as_ref();
    let sent = respond::stored(&mut down, &mut sender, stream, &mut reply).await;
    match sent {
        Ok(()) => Ok(Ended::whole(true, reply.keep_client)),
        Err(failure) => Err(failure.abort),
    }
}

/// Makes the stored head the stream's response; gives the body that is to be sent. `offer` and `settings` are those of compression.
fn load(
    stream: &mut Stream,
    hit: &Hit,
    (offer, ask): (Option<&mut Offer>, Option<&mut decode::Ask>),
    settings: &Effective<'_>,
) -> Result<Option<Held>, Abort> {
    let entry = &hit.entry;
    let response = &mut stream.response;
    // It was written by us.
    let fault = |_| Abort::new(Who::Internal, Phase::Headers, Cause::Fault);
    entry.read_head(response).map_err(fault)?;
    let is_held = cache::is_held(&stream.request.fields, &response.fields, entry.came_ms / 1000);
    response.fields.push(b"Age", hit.age.to_string().as_bytes());
    if is_held {
        response.body = BodyLength::Exact(entry.body_bytes());
        if let Some(offer) = offer {
            let allowed = || coding::allows_response(stream);
            let verdict = policy::decide(offer, &stream.response, &Load::IDLE, settings, allowed);
            offer.know(&verdict);
        }
        if let Some(ask) = ask {
            ask.know(&stream.response);
        }
        let response = &mut stream.response;
        cache::not_modified(response);
        response.body = BodyLength::None;
        return Ok(None);
    }
    response.fields.push(Known::ContentLength.name().as_bytes(), entry.body_bytes().to_string().as_bytes());
    response.body = BodyLength::Exact(entry.body_bytes());
    if stream.request.method() == b"HEAD" {
        response.body = BodyLength::None;
        return Ok(None);
    }
    Ok(Some(Held::new(entry.clone(), entry.body_bytes())))
}
