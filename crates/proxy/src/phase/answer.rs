//! Answers that are made here, on their way to the client.

use crate::exchange::{Asked, Client, Ended, Then};
use crate::io::clock;
use crate::phase::judge::Verdict;
use crate::phase::waiting::{Watch, wait};
use crate::phase::{finish, perform, prepare, read, respond, stored};
use crate::reply::{self, Answer, Pieces};
use crate::settings::ConnectionMode;
use crate::stream::Stream;
use crate::track;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use terse_compress::Reason;
use terse_message::{Abort, BodyLength, Cause, Fields, Phase, Version, Who};

/// Answers as a rule has decided.
pub async fn by_rule(client: &mut Client<'_>, stream: &mut Stream, verdict: Verdict) -> Result<Ended, Abort> {
    let denied = Abort::new(Who::Proxy, Phase::Request, Cause::Denied);
    if matches!(verdict, Verdict::Answer(_) | Verdict::Pieces(..) | Verdict::Serve(_) | Verdict::Stored(_)) {
        count_intercepted(stream);
    }
    match verdict {
        Verdict::Answer(answer) => {
            stream.facts.abort = Some(Abort::new(Who::Local, Phase::Request, Cause::Denied));
            send(client, stream, &answer).await
        }
        Verdict::Pieces(answer, mut pieces) => {
            stream.facts.abort = Some(Abort::new(Who::Local, Phase::Request, Cause::Denied));
            Box::pin(send_with(client, stream, &answer, Some(&mut *pieces))).await
        }
        Verdict::Deny(answer) => {
            count_denied(stream);
            stream.facts.abort = Some(denied);
            send(client, stream, &answer).await
        }
        Verdict::Tarpit(answer) => {
            count_denied(stream);
            stream.facts.abort = Some(Abort::new(Who::Proxy, Phase::Tarpit, Cause::Denied));
            stream.facts.figures.phase.set(Phase::Tarpit);
            let timeouts = stream.facts.timeouts();
            if let Some(held) = timeouts.tarpit.or(timeouts.connect) {
                client.timer().set(Some(held));
                let session = stream.facts.session.clone();
                let watches = stream.facts.aborts_on_close();
                let watches = watches.then_some(Watch { pools: &session.worker.pools, at_any_close: true });
                wait(client, watches, pin!(pending::<()>())).await;
            }
            // The time in the tar pit is shown as the time in a queue, and the request as never complete.
            (stream.facts.times.request, stream.facts.times.queued) = (None, Some(clock::now()));
            send(client, stream, &answer).await
        }
        Verdict::Drop => {
            count_denied(stream);
            stream.facts.abort = Some(denied);
            stream.facts.times.request = None;
            client.kill();
            Ok(Ended::cut())
        }
        Verdict::Stored(hit) => Box::pin(stored::answer(client, stream, *hit)).await,
        Verdict::Perform(service) => Box::pin(perform::run(client, stream, service)).await,
        Verdict::Serve(service) => {
            read::body(client, stream).await?;
            let body = client.data();
            let verdict = service.answer(stream, &body);
            let now = Some(clock::now());
            let times = &mut stream.facts.times;
            (times.queued, times.connected, times.response) = (now, now, now);
            stream.facts.by_service = true;
            Box::pin(by_rule(client, stream, verdict)).await
        }
    }
}

/// Counts a request that is answered before it has another backend than its frontend's own half.
pub fn count_intercepted(stream: &Stream) {
    let facts = &stream.facts;
    // A service's response comes here twice.
    if !facts.by_service && facts.backend().is_none_or(|backend| backend.twin == Some(facts.session.frontend)) {
        facts.frontend().tally.of(facts.session.worker.index).intercepted.add(1);
    }
}

/// Counts a request that a rule has denied.
fn count_denied(stream: &Stream) {
    let session = &stream.facts.session;
    let tally = stream.facts.backend().map_or(&stream.facts.frontend().tally, |backend| &backend.tally);
    let counted = [Some(tally.of(session.worker.index)), session.address_counters()];
    counted.into_iter().flatten().for_each(|counters| counters.denied_requests.add(1));
    stream.facts.count_tracked(track::ERRORS, 1);
}

/// Ends a stream that was aborted: an error page, where the client can still get it.
pub async fn to_abort(client: &mut Client<'_>, stream: &mut Stream, abort: Abort) -> Ended {
    stream.facts.abort = Some(abort);
    finish::blame(stream, abort);
    // Output that was being written when the exchange broke off is no part of the answer.
    client.take_back();
    let begun = stream.facts.status != 0;
    if let Some(answer) = stream.facts.instead.take() {
        return send(client, stream, &answer).await.unwrap_or(Ended::cut());
    }
    if begun {
        client.break_off();
        return Ended::broken();
    }
    let Some(status) = status(stream, abort) else { return Ended::cut() };
    let mut answer = reply::page(stream, status);
    // Where the request was not read whole, or breaks the protocol, it is unknown where the next request would begin.
    let is_broken =
        matches!(abort.phase, Phase::Request | Phase::Data) && matches!(abort.cause, Cause::Malformed | Cause::TooLarge);
    answer.close |= stream.facts.version.is_none() || is_broken || matches!(abort.who, Who::Client | Who::ClientTimeout);
    let ended = send(client, stream, &answer).await.unwrap_or(Ended::cut());
    match ended.connection {
        Then::Drain if matches!(abort.phase, Phase::Request | Phase::Data) => Ended { request: Asked::Unread(None), ..ended },
        _ => ended,
    }
}

/// Ends a stream that was cancelled. Its client is not waited for: output that cannot be sent at once is not sent.
pub async fn to_cancelled(client: &mut Client<'_>, stream: &mut Stream, who: Who) -> Ended {
    let facts = &mut stream.facts;
    facts.persistence.keep_alive = false;
    facts.instead = None;
    if let Some(stage) = facts.stage.get() {
        stage.clear();
    }
    let phase = facts.figures.phase.get();
    if !client.is_done() {
        // The rest of its request is not waited for.
        client.open();
    }
    if facts.figures.has_sent_nothing() {
        // The head of an answer of which nothing has left.
        facts.status = 0;
    }
    let abort = Abort::new(who, phase, Cause::Closed);
    let mut telling = pin!(to_abort(client, stream, abort));
    let told = poll_fn(|cx| Poll::Ready(telling.as_mut().poll(cx))).await;
    match told {
        Poll::Ready(ended) if ended.connection != Then::Keep => ended,
        Poll::Ready(_) | Poll::Pending => Ended::cut(),
    }
}

/// The status of the client's response; `None` when the client has gone, or gets no response.
pub fn status(stream: &Stream, abort: Abort) -> Option<u16> {
    Some(match (abort.who, abort.phase, abort.cause) {
        (Who::Client, _, Cause::Reset) | (Who::Client, Phase::Queue | Phase::Connect, _) => return None,
        (Who::Client, ..) => 400,
        (Who::ClientTimeout, ..) => 408,
        (Who::Proxy, Phase::Request | Phase::Data, Cause::Malformed | Cause::TooLarge) => {
            stream.facts.refused.map_or(400, |m| m.status(stream.facts.frontend().reading.conformance))
        }
        (Who::Proxy, Phase::Data, Cause::Inflated) => 413,
        (Who::Proxy, Phase::Headers, Cause::Denied) | (Who::Proxy, Phase::Data, Cause::Denied) => return None,
        (Who::Proxy, Phase::Headers, _) => 502,
        (Who::Killed, Phase::Request | Phase::Tarpit | Phase::Done, _) => return None,
        (Who::Server | Who::Down | Who::Replaced | Who::Killed, Phase::Headers | Phase::Data, _) => 502,
        (Who::ServerTimeout, Phase::Headers | Phase::Data, _) => 504,
        (Who::Server | Who::ServerTimeout | Who::Resource | Who::Down | Who::Replaced | Who::Killed, ..) => 503,
        (Who::Internal, ..) => 500,
        (Who::Proxy, ..) => 403,
        (Who::Local, ..) => return None,
    })
}

/// Sends an answer.
pub async fn send(client: &mut Client<'_>, stream: &mut Stream, answer: &Answer) -> Result<Ended, Abort> {
    send_with(client, stream, answer, None).await
}

/// Sends an answer, with the body that these pieces make where there are any.
async fn send_with(
    client: &mut Client<'_>,
    stream: &mut Stream,
    answer: &Answer,
    pieces: Option<&mut dyn Pieces>,
) -> Result<Ended, Abort> {
    if answer.is_nothing() {
        // Logs and counters show the status that the client does not get.
        stream.facts.status = answer.stands_for.unwrap_or_default();
        return Ok(Ended::cut());
    }
    let session = stream.facts.session.clone();
    let is_head = stream.facts.asked_head;
    let read_whole = client.skip_body();
    answer.write_head(&mut stream.response);
    if pieces.is_some() {
        stream.response.fields.remove(b"content-length");
        stream.response.body = BodyLength::Framed;
    }
    stream.has_response = true;
    stream.facts.compression.get_or_insert(Reason::OwnAnswer);
    // Bytes that could not be parsed are no request that rules could refer to.
    let is_last = stream.facts.abort.is_some_and(|abort| abort.who == Who::Internal);
    let spoiled = stream.facts.version.is_some() && !is_last && !respond::after_rules(stream, &session);
    let page = spoiled.then(|| reply::page(stream, 500));
    if let Some(page) = &page {
        stream.facts.abort = Some(Abort::new(Who::Internal, Phase::Headers, Cause::Fault));
        page.write_head(&mut stream.response);
    }
    let answer = page.as_ref().unwrap_or(answer);
    let version = stream.facts.version.unwrap_or(Version::Http11);
    let mode = prepare::connection_mode(session.frontend(), stream.facts.backend());
    let wants = stream.facts.persistence.keep_alive && mode != ConnectionMode::Close;
    let keep = wants && read_whole && !answer.close && session.worker.is_running();
    // The status that rules have set is shown, or else the status that a page stands for.
    let shown = answer.stands_for.filter(|_| stream.response.status == answer.status);
    stream.facts.status = shown.unwrap_or(stream.response.status);
    let timeout = stream.facts.timeouts().client;
    let figures = stream.facts.figures.clone();
    let mut sender = client.sender(&figures, timeout);
    let keep = sender.response(&mut stream.response, keep, &respond::peer(&stream.facts, version));
    let sent = async {
        if is_head {
            sender.end_with_head();
            return sender.flush().await;
        }
        if let Some(pieces) = pieces.filter(|_| page.is_none()) {
            let mut piece = Vec::new();
            loop {
                piece.clear();
                pieces.next(&mut piece);
                if piece.is_empty() {
                    return sender.finish(Fields::none()).await;
                }
                sender.send(&piece).await?;
                sender.flush().await?;
                // Others have a turn.
                tokio::task::yield_now().await;
            }
        }
        let body = if stream.response.body == BodyLength::None { b"" } else { &*answer.body };
        sender.finish_with(body, Fields::none()).await
    };
    let sent: io::Result<()> = sent.await;
    stream.facts.times.end = Some(clock::now());
    match sent {
        Ok(()) => Ok(Ended::whole(read_whole, keep)),
        Err(error) => {
            stream.facts.abort = Some(respond::to_client(&error).abort);
            Ok(Ended::cut())
        }
    }
}
