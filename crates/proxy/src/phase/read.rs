//! Reading a request's head.

use crate::evidence;
use crate::exchange::{Broken, Client, NoRequest};
use crate::inspection::Side;
use crate::io::clock;
use crate::phase::dictionary::learn;
use crate::phase::{prepare, respond};
use crate::rules::{BodyWait, rewrite};
use crate::stream::Stream;
use terse_message::hop::lacks_websocket_key;
use terse_message::{Abort, Cause, Known, Malformed, Persistence, Phase, Response, Who, list};

/// Takes the head of the stream's request, and waits for it where it has not arrived.
pub async fn head(client: &mut Client<'_>, stream: &mut Stream) -> Result<(), Abort> {
    let frontend = stream.facts.frontend();
    let (timeouts, reading) = (frontend.timeouts, frontend.reading);
    match client.head(&mut stream.request, reading, timeouts.request.or(timeouts.client)).await {
        Ok(None) => stream.facts.frames_id = client.stream_id(),
        Ok(Some(n)) => stream.facts.figures.bytes_in.set(n as u64),
        Err(NoRequest::Malformed(malformed)) => return Err(refuse(client, stream, malformed)),
        Err(NoRequest::Broken(at)) => return Err(broken(at)),
    }
    arrived(client, stream);
    if stream.facts.persistence.upgrade && stream.facts.frames_id == 0 && lacks_websocket_key(&stream.request.fields) {
        return Err(refuse(client, stream, Malformed::WebSocketKey));
    }
    Ok(())
}

/// Takes note of a request's head that has arrived.
fn arrived(client: &mut Client<'_>, stream: &mut Stream) {
    let facts = &mut stream.facts;
    facts.times.request = Some(clock::now());
    facts.version = Some(stream.request.version);
    stream.request.to_proxy = stream.facts.frontend().options.proxy_header && !matches!(stream.request.target(), [b'/' | b'*', ..]);
    stream.facts.persistence = Persistence::read(&mut stream.request.fields, stream.request.version);
    crate::captures::request(stream);
    learn::ask(stream);
    client.begin(&stream.request);
    rewrite::share(Side::Request, client.bytes(), stream);
    stream.facts.persistence.keep_alive &= !stream.request.must_close;
    if stream.request.to_proxy && stream.request.fields.every(Known::ProxyConnection).any(|v| list::has_token(v, b"close")) {
        stream.facts.persistence.keep_alive = false;
    }
}

/// `option http-buffer-request`: reads the body as far as a buffer holds it, before rules run.
pub async fn body(client: &mut Client<'_>, stream: &mut Stream) -> Result<(), Abort> {
    let timeouts = stream.facts.frontend().timeouts;
    let read = some_of_body(client, stream, BodyWait { time: timeouts.request.or(timeouts.client), at_least: 0 }).await;
    if read.is_err_and(|abort| abort.who == Who::ClientTimeout) {
        // Logs show it as a request that never was complete.
        stream.facts.times.request = None;
    }
    read
}

/// Reads the body, or as much of it as is waited for, as far as a buffer holds it. It stays in the buffer.
pub async fn some_of_body(client: &mut Client<'_>, stream: &mut Stream, wait: BodyWait) -> Result<(), Abort> {
    let is_there = |client: &mut Client<'_>, stream: &mut Stream| {
        client.settle_length(&mut stream.request);
        let enough = if wait.at_least > 0 { wait.at_least } else { u64::MAX };
        let (bytes, whole) = client.at_hand(enough).map_err(|malformed| broken(Broken::Malformed(malformed)))?;
        Ok::<_, Abort>(whole || bytes >= enough)
    };
    client.timer().set(wait.time);
    if stream.request.fields.has(Known::Expect) && !is_there(client, stream)? {
        go_on(client, stream).await?;
        client.timer().set(wait.time);
    }
    let session = stream.facts.session.clone();
    while !client.is_full() && !is_there(client, stream)? {
        // Rules on content have waited before, and held no buffer meanwhile.
        client.more(&session.worker.pools).await.map_err(broken)?;
    }
    rewrite::share(Side::Request, client.bytes(), stream);
    Ok(())
}

/// Sends a client that waits for it a 100 response; the server is not asked any more (RFC 9110 section 10.1.1).
async fn go_on(client: &mut Client<'_>, stream: &mut Stream) -> Result<(), Abort> {
    stream.request.fields.remove_known(Known::Expect);
    let mut go_on = Response::default();
    go_on.status = 100;
    interim(client, stream, &mut go_on).await
}

/// Sends an interim response, which HTTP/1.0 does not know (RFC 9110 section 15.2).
pub async fn interim(client: &mut Client<'_>, stream: &mut Stream, response: &mut Response) -> Result<(), Abort> {
    if !prepare::is_modern(stream.request.version) {
        return Ok(());
    }
    let (figures, timeout) = (stream.facts.figures.clone(), stream.facts.timeouts().client);
    let to = respond::peer(&stream.facts, stream.request.version);
    client.interim(response, &to, &figures, timeout).await.map_err(|_| broken(Broken::Reset))
}

fn refuse(client: &Client<'_>, stream: &mut Stream, malformed: Malformed) -> Abort {
    evidence::request(&stream.facts, malformed, client.bytes());
    stream.request.clear();
    let is_large = matches!(malformed, Malformed::HeadTooLarge | Malformed::TargetTooLong);
    let cause = if is_large { Cause::TooLarge } else { Cause::Malformed };
    stream.facts.refused = Some(malformed);
    Abort::new(Who::Proxy, Phase::Request, cause)
}

/// Meaning of a client's broken request.
pub fn broken(broken: Broken) -> Abort {
    match broken {
        Broken::Closed => Abort::new(Who::Client, Phase::Request, Cause::Closed),
        Broken::Reset => Abort::new(Who::Client, Phase::Request, Cause::Reset),
        Broken::Timeout => Abort::new(Who::ClientTimeout, Phase::Request, Cause::Timeout),
        Broken::Malformed(_) => Abort::new(Who::Proxy, Phase::Request, Cause::Malformed),
    }
}
