//! `tcp-request content`, `tcp-response content`: rules on the bytes that have come so far, and on more of them where they
//! ask for more.
//!
//! ```text
//!        +-------> rules run over the bytes that are there -----> they have decided: pass, drop, switch to HTTP
//!        |                        |
//!        |                        | a rule cannot decide yet
//!        |                        v
//!        +-- bytes have come -- wait -- the delay is over, the sender has closed, or the buffer is full:
//!        |                              the bytes at hand are all
//!        +----------------------------------+
//! ```
//!
//! A condition that cannot be decided yet sends the evaluation back to the first rule: values that rules before it have taken
//! of the bytes, a variable for example, may be there now. After an action that waits (`track-sc0`, `capture`) the evaluation
//! goes on at that action, and after the lookup of a name likewise.

use crate::exchange::{Client, Lend, Receiver};
use crate::inspection::{BYTES, Inspection, Side, lend};
use crate::io::clock;
use crate::rules::{self, Cursor, Flow, Wait};
use crate::script::{self, Applet, Play};
use crate::settings::{Mode, TcpRules};
use crate::stream::Stream;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use terse_message::Version;
use terse_sample::Needs;

/// Decision of rules on bytes.
pub enum Decision {
    /// It goes on.
    Pass,
    /// The connection is closed.
    Drop,
    /// The server's connection is closed; the bytes that it has sent so far are passed on.
    Close,
    /// The connection carries HTTP.
    Http,
    /// A service of a script serves the connection.
    Perform(Arc<dyn Applet>),
}

/// Runs a proxy's `tcp-request content` rules, whose expressions need `looks`.
pub async fn request(client: &mut Client<'_>, stream: &mut Stream, tcp: &TcpRules, looks: Needs) -> Decision {
    let session = stream.facts.session.clone();
    let sniffs = session.frontend().mode == Mode::Tcp && looks.has(Needs::REQUEST);
    let may_wait = looks.has_any(BYTES) || sniffs || tcp.inspect_delay.is_some();
    if stream.facts.version.is_none() && may_wait && client.bytes().is_empty() && client.has_ended() {
        // Clients that speak first have often spoken by now, and rules that count would count twice.
        client.more_patiently(&session.worker.pools).await;
    }
    let (mut at, mut delay) = (Cursor::default(), Delay::new(tcp.inspect_delay));
    loop {
        let flow = lend(client, stream, Side::Request, delay.is_running(), |stream| {
            if sniffs {
                sniff(stream);
            }
            rules::run_from(&tcp.content, &mut at, stream)
        });
        let flow = match flow {
            Flow::Play(play) => {
                let more = async |client: &mut Client<'_>, stream: &mut Stream, delay: &mut Delay, wants: Option<Duration>| {
                    reply(client, stream).await?;
                    if let Some(limit) = wants {
                        let wait = delay.wait(client.more_patiently(&session.worker.pools));
                        let _ = tokio::time::timeout(limit, wait).await;
                    }
                    Ok(())
                };
                Box::pin(performed(client, stream, Side::Request, play, &mut delay, more)).await
            }
            flow => waited(stream, flow, &mut delay).await,
        };
        if reply(client, stream).await.is_err() {
            return Decision::Drop;
        }
        match flow {
            Flow::Next if !at.is_behind(&tcp.content) => continue,
            Flow::More => delay.wait(client.more_patiently(&session.worker.pools)).await,
            flow => return decision(flow),
        }
    }
}

/// Runs a backend's `tcp-response content` rules.
pub async fn response(down: &mut Receiver<'_>, stream: &mut Stream, tcp: &TcpRules) -> Decision {
    let (mut at, mut delay) = (Cursor::default(), Delay::new(tcp.server_delay));
    loop {
        let flow =
            lend(down, stream, Side::Response, delay.is_running(), |stream| rules::run_from(&tcp.server_content, &mut at, stream));
        let flow = match flow {
            Flow::Play(play) => {
                let more = async |down: &mut Receiver<'_>, _: &mut Stream, delay: &mut Delay, wants: Option<Duration>| {
                    if let Some(limit) = wants {
                        let _ = tokio::time::timeout(limit, delay.wait(down.more_ahead())).await;
                    }
                    Ok(())
                };
                Box::pin(performed(down, stream, Side::Response, play, &mut delay, more)).await
            }
            flow => waited(stream, flow, &mut delay).await,
        };
        match flow {
            Flow::Next if !at.is_behind(&tcp.server_content) => continue,
            Flow::More => delay.wait(down.more_ahead()).await,
            flow => return decision(flow),
        }
    }
}

/// A wait for a name, which the delay ends; any other flow is itself.
async fn waited(stream: &mut Stream, flow: Flow, delay: &mut Delay) -> Flow {
    match flow {
        Flow::Wait(Wait::Name(wait)) => {
            delay.limit(Box::pin(wait.run(stream))).await;
            Flow::Next
        }
        flow => flow,
    }
}

/// Drives a program that a rule has called to its end: it sees the bytes that have come, and waits for `more` of them as
/// rules do. Returns the flow that it ends with.
async fn performed<F: Lend>(
    from: &mut F,
    stream: &mut Stream,
    side: Side,
    mut play: Box<dyn Play>,
    delay: &mut Delay,
    mut more: impl AsyncFnMut(&mut F, &mut Stream, &mut Delay, Option<Duration>) -> io::Result<()>,
) -> Flow {
    loop {
        let open = delay.is_running();
        let polled = poll_fn(|cx| {
            let polled = lend(from, stream, side, open, |stream| play.poll(stream, cx));
            let inspection = stream.facts.inspection.as_deref_mut();
            let (wants, has_reply) = inspection.map_or((None, false), |all| (all.take_wanted(), all.has_reply()));
            match polled {
                Poll::Ready(flow) => Poll::Ready(Ok(flow)),
                Poll::Pending if wants.is_some() || has_reply => Poll::Ready(Err(wants)),
                Poll::Pending => Poll::Pending,
            }
        });
        match polled.await {
            Ok(flow) => return script::ended(stream, flow),
            Err(wants) if more(from, stream, delay, wants).await.is_err() => return Flow::Drop,
            Err(_) => {}
        }
    }
}

/// Sends the client what a program has for it.
async fn reply(client: &mut Client<'_>, stream: &mut Stream) -> io::Result<()> {
    let bytes = stream.facts.inspection.as_deref_mut().map(Inspection::take_reply).unwrap_or_default();
    if bytes.is_empty() {
        return Ok(());
    }
    let figures = stream.facts.figures.clone();
    let mut sender = client.sender(&figures, stream.facts.timeouts().client);
    sender.send(&bytes).await?;
    sender.flush().await
}

/// The decision that a flow means.
fn decision(flow: Flow) -> Decision {
    match flow {
        Flow::Next | Flow::Stop | Flow::More | Flow::Stored(_) | Flow::Wait(_) | Flow::Work(_) | Flow::Play(_) => Decision::Pass,
        Flow::Close => Decision::Close,
        Flow::Http => Decision::Http,
        Flow::Drop | Flow::Answer(_) | Flow::Deny(_) | Flow::Tarpit(_) => Decision::Drop,
        Flow::Perform(service) => Decision::Perform(service),
    }
}

/// `inspect-delay`: it begins when rules first wait.
struct Delay {
    length: Option<Duration>,
    end: Option<Instant>,
    /// Nothing more is waited for: it is over, or no more comes.
    over: bool,
}

impl Delay {
    fn new(length: Option<Duration>) -> Delay {
        Delay { length, end: None, over: false }
    }

    fn is_running(&self) -> bool {
        self.length.is_some() && !self.over
    }

    /// Waits for bytes; ends when they do not come in time, or never will.
    async fn wait(&mut self, bytes: impl Future<Output = bool>) {
        if !self.limit(bytes).await.unwrap_or(false) {
            self.over = true;
        }
    }

    /// Waits for a future, but no longer than the delay, if there is one.
    async fn limit<T>(&mut self, awaited: impl Future<Output = T>) -> Option<T> {
        let Some(length) = self.length else { return Some(awaited.await) };
        let end = *self.end.get_or_insert_with(|| clock::now() + length);
        let came = tokio::time::timeout_at(end.into(), awaited).await.ok();
        self.over |= came.is_none();
        came
    }
}

/// Parses the request in mode tcp for rules that refer to it: it is read where it lies, and not changed.
fn sniff(stream: &mut Stream) {
    let Some(inspection) = stream.facts.inspection.as_deref() else { return };
    if !stream.request.is_empty() {
        return;
    }
    let (is_partial, preface) = inspection.sniff(&mut stream.request);
    inspection.doubt.head.set(is_partial && inspection.is_open());
    if preface {
        // It has the form of a request (RFC 9113 section 3.4).
        stream.request.set_method(b"PRI");
        stream.request.set_target(b"*");
        stream.request.version = Version::Http2;
    }
}
