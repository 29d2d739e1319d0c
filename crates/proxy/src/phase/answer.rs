//! Answers that are made here, on their way to the client.

use crate::io::{Incoming, Sink, clock};
use crate::phase::judge::Verdict;
use crate::phase::waiting::{Watch, wait};
use crate::phase::{Client, Next, finish, perform, prepare, read, respond, stored};
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
pub async fn by_rule(client: &mut Client, stream: &mut Stream, out: &mut Vec<u8>, verdict: Verdict) -> Result<Next, Abort> {
    let denied = Abort::new(Who::Proxy, Phase::Request, Cause::Denied);
    if matches!(verdict, Verdict::Answer(_) | Verdict::Pieces(..) | Verdict::Serve(_) | Verdict::Stored(_)) {
        count_intercepted(stream);
    }
    match verdict {
        Verdict::Answer(answer) => {
            stream.facts.abort = Some(Abort::new(Who::Local, Phase::Request, Cause::Denied));
            send(client, stream, out, &answer).await
        }
        Verdict::Pieces(answer, mut pieces) => {
            stream.facts.abort = Some(Abort::new(Who::Local, Phase::Request, Cause::Denied));
            Box::pin(send_with(client, stream, out, &answer, Some(&mut *pieces))).await
        }
        Verdict::Deny(answer) => {
            count_denied(stream);
            stream.facts.abort = Some(denied);
            send(client, stream, out, &answer).await
        }
        Verdict::Tarpit(answer) => {
            count_denied(stream);
            stream.facts.abort = Some(Abort::new(Who::Proxy, Phase::Tarpit, Cause::Denied));
            stream.facts.figures.phase.set(Phase::Tarpit);
            let timeouts = stream.facts.timeouts();
            if let Some(held) = timeouts.tarpit.or(timeouts.connect) {
                client.timer.set(Some(held));
                let session = stream.facts.session.clone();
                let watches = stream.facts.aborts_on_close();
                let watches = watches.then_some(Watch { pools: &session.worker.pools, at_any_close: true });
                wait(client, watches, pin!(pending::<()>())).await;
            }
            // The time in the tar pit is shown as the time in a queue, and the request as one that never was complete.
            (stream.facts.times.request, stream.facts.times.queued) = (None, Some(clock::now()));
            send(client, stream, out, &answer).await
        }
        Verdict::Drop => {
            count_denied(stream);
            stream.facts.abort = Some(denied);
            stream.facts.times.request = None;
            client.io.stream().inspect(|stream| stream.kill());
            Ok(Next::Close)
        }
        Verdict::Stored(hit) => Box::pin(stored::answer(client, stream, out, *hit)).await,
        Verdict::Perform(service) => Box::pin(perform::run(client, stream, out, service)).await,
        Verdict::Serve(service) => {
            read::body(client, stream).await?;
            let body = read::buffered(client, stream);
            let verdict = service.answer(stream, &body);
            let now = Some(clock::now());
            let times = &mut stream.facts.times;
            (times.queued, times.connected, times.response) = (now, now, now);
            stream.facts.by_service = true;
            Box::pin(by_rule(client, stream, out, verdict)).await
        }
    }
}

/// Counts a request that is answered before it has another backend than its frontend's own half.
pub fn count_intercepted(stream: &Stream) {
    let facts = &stream.facts;
    // What a service answers comes here twice.
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

/// Ends a stream that was aborted: an error page, where the client can still be told.
pub async fn to_abort(client: &mut Client, stream: &mut Stream, out: &mut Vec<u8>, abort: Abort) -> Next {
    stream.facts.abort = Some(abort);
    finish::blame(stream, abort);
    // What was being written when the exchange broke off is no part of the answer.
    out.clear();
    client.io.stream().inspect(|stream| stream.take_back());
    let begun = stream.facts.status != 0;
    if let Some(answer) = stream.facts.instead.take() {
        return send(client, stream, out, &answer).await.unwrap_or(Next::Close);
    }
    if begun {
        client.io.break_off();
        // A close would make it look whole.
        return if stream.response.body == BodyLength::UntilClose { Next::Reset } else { Next::Close };
    }
    let Some(status) = status(stream, abort) else { return Next::Close };
    let mut answer = reply::page(stream, status);
    // Where the request was not read whole, nobody knows where the next one would begin.
    answer.close |= stream.facts.version.is_none() || matches!(abort.who, Who::Client | Who::ClientTimeout);
    let next = send(client, stream, out, &answer).await.unwrap_or(Next::Close);
    if next == Next::Close && matches!(abort.phase, Phase::Request | Phase::Data) { Next::Linger } else { next }
}

/// Ends a stream that was cancelled. Nobody waits for its client: what cannot be told at once is not told.
pub async fn to_cancelled(client: &mut Client, stream: &mut Stream, out: &mut Vec<u8>, who: Who) -> Next {
    let facts = &mut stream.facts;
    // Of a body that was on its way, nothing says how much is left.
    facts.persistence.keep_alive = false;
    facts.instead = None;
    if let Some(stage) = facts.stage.get() {
        stage.clear();
    }
    let phase = facts.figures.phase.get();
    if matches!(phase, Phase::Headers | Phase::Data) && stream.request.body != BodyLength::None {
        (stream.request.body, stream.left) = (BodyLength::Exact(u64::MAX), Some(Incoming::UntilClose));
    }
    if stream.facts.figures.has_sent_nothing() {
        // The head of an answer of which nothing has left.
        stream.facts.status = 0;
    }
    let abort = Abort::new(who, phase, Cause::Closed);
    let mut telling = pin!(to_abort(client, stream, out, abort));
    let told = poll_fn(|cx| Poll::Ready(telling.as_mut().poll(cx))).await;
    match told {
        Poll::Ready(Next::Request) | Poll::Pending => Next::Close,
        Poll::Ready(next) => next,
    }
}

/// The status that a client is told; nothing when it has gone, or shall not be told.
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
pub async fn send(client: &mut Client, stream: &mut Stream, out: &mut Vec<u8>, answer: &Answer) -> Result<Next, Abort> {
    send_with(client, stream, out, answer, None).await
}

/// Sends an answer, with the body that these pieces make where there are any.
async fn send_with(
    client: &mut Client,
    stream: &mut Stream,
    out: &mut Vec<u8>,
    answer: &Answer,
    pieces: Option<&mut dyn Pieces>,
) -> Result<Next, Abort> {
    if answer.is_nothing() {
        // Logs and counters show what the client is not told.
        stream.facts.status = answer.stands_for.unwrap_or_default();
        return Ok(Next::Close);
    }
    let session = stream.facts.session.clone();
    let is_head = stream.facts.asked_head;
    let read_whole = skip_body(client, stream);
    if read_whole {
        stream.left = Some(Incoming::Done);
    }
    answer.write_head(&mut stream.response);
    if pieces.is_some() {
        stream.response.fields.remove(b"content-length");
        stream.response.body = BodyLength::Framed;
    }
    stream.has_response = true;
    stream.facts.compression.get_or_insert(Reason::OwnAnswer);
    // What could not be read is no request that rules could speak of.
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
    // What rules have said of the status is shown, or else what a page stands for.
    let shown = answer.stands_for.filter(|_| stream.response.status == answer.status);
    stream.facts.status = shown.unwrap_or(stream.response.status);
    let timeout = stream.facts.timeouts().client;
    let (_, writer) = client.io.split();
    let figures = stream.facts.figures.clone();
    let mut sink = Sink::new(writer, out, &client.timer, timeout, &figures.bytes_out);
    let keep = sink.response(&mut stream.response, keep, &respond::peer(&stream.facts, version));
    let sent = async {
        if is_head {
            sink.end_with_head();
            return sink.flush().await;
        }
        if let Some(pieces) = pieces.filter(|_| page.is_none()) {
            let mut piece = Vec::new();
            loop {
                piece.clear();
                pieces.next(&mut piece);
                if piece.is_empty() {
                    return sink.finish(Fields::none()).await;
                }
                sink.send(&piece).await?;
                sink.flush().await?;
                // Others have a turn.
                tokio::task::yield_now().await;
            }
        }
        let body = if stream.response.body == BodyLength::None { b"" } else { &*answer.body };
        sink.finish_with(body, Fields::none()).await
    };
    let sent: io::Result<()> = sent.await;
    stream.facts.times.end = Some(clock::now());
    match sent {
        Ok(()) if keep => Ok(Next::Request),
        Ok(()) if read_whole && !stream.request.must_close => Ok(Next::Close),
        Ok(()) => Ok(Next::Linger),
        Err(error) => {
            stream.facts.abort = Some(respond::to_client(&error).abort);
            Ok(Next::Close)
        }
    }
}

/// Takes the request's body out of the buffer, if all of it is there; says whether nothing of the request is left to come.
fn skip_body(client: &mut Client, stream: &Stream) -> bool {
    if client.io.stream().is_some() {
        // Frames of HTTP/2 belong to their stream, and end with it.
        return true;
    }
    match stream.request.body {
        BodyLength::None => true,
        BodyLength::Exact(n) if n <= client.buffer.filled().len() as u64 => {
            client.buffer.consume(n as usize);
            true
        }
        BodyLength::Framed => match read::chunked_len(client.buffer.filled()) {
            Some(len) => {
                client.buffer.consume(len);
                true
            }
            None => false,
        },
        BodyLength::Exact(_) | BodyLength::UntilClose => false,
    }
}
