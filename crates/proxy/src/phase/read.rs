//! Reading a request's head.

use crate::evidence;
use crate::inspection::{Side, join};
use crate::io::{Broken, Sink, clock};
use crate::phase::{Client, prepare, respond};
use crate::rules::{BodyWait, rewrite};
use crate::stream::Stream;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::Poll;
use terse_http::h1::{self, ChunkDecoder, Parsed, Step};
use terse_message::hop::lacks_websocket_key;
use terse_message::{Abort, BodyLength, Cause, Known, Malformed, Persistence, Phase, Request, Response, Version, Who, list};

/// Reads the head of the stream's request; its first bytes are in the client's buffer.
pub async fn head(client: &mut Client, stream: &mut Stream) -> Result<(), Abort> {
    let timeouts = stream.facts.frontend().timeouts;
    let reading = stream.facts.frontend().reading;
    let mut waits = false;
    loop {
        match h1::parse_request_with(client.buffer.filled(), &mut stream.request, reading) {
            Ok(Parsed::Complete(n)) => {
                client.buffer.consume(n);
                stream.facts.figures.bytes_in.set(n as u64);
                break;
            }
            Ok(Parsed::Partial) if client.buffer.is_full() => {
                return Err(refuse(client, stream, Malformed::HeadTooLarge));
            }
            Ok(Parsed::Partial) => {}
            Err(malformed) => return Err(refuse(client, stream, malformed)),
        }
        if !waits {
            waits = true;
            client.timer.set(timeouts.request.or(timeouts.client));
        }
        more(client).await?;
    }
    arrived(client, stream);
    if stream.facts.persistence.upgrade && lacks_websocket_key(&stream.request.fields) {
        return Err(refuse(client, stream, Malformed::WebSocketKey));
    }
    Ok(())
}

/// Takes note of a request's head that has arrived.
pub fn arrived(client: &Client, stream: &mut Stream) {
    let facts = &mut stream.facts;
    facts.times.request = Some(clock::now());
    facts.version = Some(stream.request.version);
    stream.request.to_proxy = stream.facts.frontend().options.proxy_header && !matches!(stream.request.target(), [b'/' | b'*', ..]);
    stream.facts.persistence = Persistence::read(&mut stream.request.fields, stream.request.version);
    crate::captures::request(stream);
    rewrite::share(Side::Request, client.buffer.filled(), stream);
    stream.facts.persistence.keep_alive &= !stream.request.must_close;
    if stream.request.to_proxy && stream.request.fields.every(Known::ProxyConnection).any(|v| list::has_token(v, b"close")) {
        stream.facts.persistence.keep_alive = false;
    }
}

/// Gives the request's body the length that is known once its frames of HTTP/2 have all come: rules see that it is whole, and its
/// server is told how long it is. Fields behind it need a body in chunks.
pub fn settle_length(client: &Client, stream: &mut Stream) {
    if stream.request.body == BodyLength::Framed
        && let Some(frames) = client.io.stream()
        && let Some(left) = frames.left()
        && !frames.has_trailers()
    {
        let bytes = client.buffer.filled().len() + left;
        stream.request.body = BodyLength::Exact(bytes as u64);
        stream.request.fields.set(Known::ContentLength.name().as_bytes(), bytes.to_string().as_bytes());
    }
}

/// `option http-buffer-request`: reads the body as far as a buffer holds it, before rules run.
pub async fn body(client: &mut Client, stream: &mut Stream) -> Result<(), Abort> {
    let timeouts = stream.facts.frontend().timeouts;
    let read = some_of_body(client, stream, BodyWait { time: timeouts.request.or(timeouts.client), at_least: 0 }).await;
    if read.is_err_and(|abort| abort.who == Who::ClientTimeout) {
        // Logs show it as a request that never was complete.
        stream.facts.times.request = None;
    }
    read
}

/// Reads the body, or as much of it as is waited for, as far as a buffer holds it. It stays in the buffer.
pub async fn some_of_body(client: &mut Client, stream: &mut Stream, wait: BodyWait) -> Result<(), Abort> {
    let is_there = |client: &Client, stream: &mut Stream| {
        settle_length(client, stream);
        let (request, bytes) = (&stream.request, client.buffer.filled());
        let enough = wait.at_least > 0 && data_bytes(request, bytes) >= wait.at_least;
        let has_ended = client.io.stream().is_some_and(|stream| stream.has_ended());
        Ok::<_, Abort>(enough || has_ended || is_whole(request, bytes)?)
    };
    client.timer.set(wait.time);
    if stream.request.fields.has(Known::Expect) && !is_there(client, stream)? {
        go_on(client, stream).await?;
        client.timer.set(wait.time);
    }
    while (client.buffer.is_released() || !client.buffer.is_full()) && !is_there(client, stream)? {
        if client.buffer.is_released() {
            // Rules on content have waited before, and held no buffer meanwhile.
            client.buffer = stream.facts.session.worker.pools.small.get().await;
        }
        more(client).await?;
    }
    rewrite::share(Side::Request, client.buffer.filled(), stream);
    Ok(())
}

/// How many bytes of a body's data are in these.
fn data_bytes(request: &Request, bytes: &[u8]) -> u64 {
    match request.body {
        BodyLength::Framed if request.version != Version::Http2 => join(bytes).0.len() as u64,
        _ => bytes.len() as u64,
    }
}

/// Reads more of a request into the client's buffer, under the deadline that its timer has.
pub async fn more(client: &mut Client) -> Result<(), Abort> {
    let Client { io, buffer, timer } = client;
    let read = poll_fn(|cx| match io.split().0.poll_read(cx, buffer) {
        Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
        poll => poll,
    });
    match read.await {
        Ok(0) => Err(broken(Broken::Closed)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(broken(Broken::Timeout)),
        Err(_) => Err(broken(Broken::Reset)),
    }
}

/// Tells a client that waits for it to send its body; the server is not asked any more (RFC 9110 section 10.1.1).
async fn go_on(client: &mut Client, stream: &mut Stream) -> Result<(), Abort> {
    stream.request.fields.remove_known(Known::Expect);
    let mut go_on = Response::default();
    go_on.status = 100;
    interim(client, stream, &mut go_on).await
}

/// Sends an interim response, which HTTP/1.0 does not know (RFC 9110 section 15.2).
pub async fn interim(client: &mut Client, stream: &mut Stream, response: &mut Response) -> Result<(), Abort> {
    if !prepare::is_modern(stream.request.version) {
        return Ok(());
    }
    let timeout = stream.facts.timeouts().client;
    let (_, writer) = client.io.split();
    let mut out = Vec::new();
    let mut sink = Sink::new(writer, &mut out, &client.timer, timeout, &stream.facts.figures.bytes_out);
    sink.bare(response, &respond::peer(&stream.facts, stream.request.version));
    sink.flush().await.map_err(|_| broken(Broken::Reset))
}

/// The part of the body that [`body`] has left in the buffer, without its chunks' frames. It stays there.
pub fn buffered(client: &Client, stream: &Stream) -> Vec<u8> {
    let bytes = client.buffer.filled();
    match stream.request.body {
        BodyLength::None => Vec::new(),
        BodyLength::Exact(n) => bytes.get(..usize::try_from(n).unwrap_or(usize::MAX)).unwrap_or(bytes).to_vec(),
        BodyLength::Framed if stream.request.version != Version::Http2 => join(bytes).0,
        BodyLength::Framed | BodyLength::UntilClose => bytes.to_vec(),
    }
}

/// Whether all of a body is in these bytes.
fn is_whole(request: &Request, bytes: &[u8]) -> Result<bool, Abort> {
    match request.body {
        BodyLength::None => Ok(true),
        BodyLength::Exact(n) => Ok(bytes.len() as u64 >= n),
        BodyLength::UntilClose => Ok(false),
        // Its frames have not all come, or fields have come behind it.
        BodyLength::Framed if request.version == Version::Http2 => Ok(false),
        BodyLength::Framed => Ok(chunks(bytes).map_err(|m| broken(Broken::Malformed(m)))?.is_some()),
    }
}

/// How long the chunked body is that these bytes begin with, its frames and trailer included, if all of it is there.
pub fn chunked_len(bytes: &[u8]) -> Option<usize> {
    chunks(bytes).ok().flatten()
}

/// The length of all chunks, the last one included; none when that has not come.
fn chunks(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let (mut decoder, mut at) = (ChunkDecoder::default(), 0);
    loop {
        let (used, step) = decoder.step(bytes.get(at..).unwrap_or_default())?;
        at += used;
        match step {
            Step::Data(_) => {}
            Step::More => return Ok(None),
            Step::End => return Ok(Some(at)),
        }
    }
}

fn refuse(client: &Client, stream: &mut Stream, malformed: Malformed) -> Abort {
    evidence::request(&stream.facts, malformed, client.buffer.filled());
    stream.request.clear();
    let cause = if malformed == Malformed::HeadTooLarge { Cause::TooLarge } else { Cause::Malformed };
    stream.facts.refused = Some(malformed);
    Abort::new(Who::Proxy, Phase::Request, cause)
}

/// What a client's broken request means.
pub fn broken(broken: Broken) -> Abort {
    match broken {
        Broken::Closed => Abort::new(Who::Client, Phase::Request, Cause::Closed),
        Broken::Reset => Abort::new(Who::Client, Phase::Request, Cause::Reset),
        Broken::Timeout => Abort::new(Who::ClientTimeout, Phase::Request, Cause::Timeout),
        Broken::Malformed(_) => Abort::new(Who::Proxy, Phase::Request, Cause::Malformed),
    }
}
