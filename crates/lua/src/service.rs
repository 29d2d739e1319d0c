//! `use-service lua.NAME`: a script that answers requests, or serves a connection.

use crate::applet::Http;
use crate::lent;
use crate::library::Named;
use crate::run::{Ended, Failure, Limits, Run};
use crate::stream;
use crate::wire::{Socket, Wire};
use mlua::{Lua, Table};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use terse_proxy::rules::Flow;
use terse_proxy::script::{Applet, Play};
use terse_proxy::stream::Stream;
use tokio::net::UnixStream;

/// A service.
pub(crate) struct Service {
    named: Named,
    shown: String,
    is_http: bool,
}

/// Interface through which a script sends and receives.
enum Conversation {
    Http(Arc<Http>),
    Bytes(Arc<Wire>),
}

impl Conversation {
    fn object(&self, lua: &Lua, stream: &Stream, most: usize) -> mlua::Result<Table> {
        match self {
            Conversation::Http(http) => {
                http.limit(most);
                Http::object(http, lua, stream)
            }
            Conversation::Bytes(wire) => stream::object(wire, lua, most),
        }
    }

    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Conversation::Http(http) => http.poll_flush(cx),
            Conversation::Bytes(wire) => wire.poll_flush(cx),
        }
    }

    /// Sends the script's output to its end.
    fn poll_finish(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            // The proxy knows the end of the response, and that its connection is no longer needed.
            Conversation::Http(http) => http.poll_flush(cx).map(drop),
            Conversation::Bytes(wire) => wire.poll_finish(cx),
        }
    }

    /// Notes that the script has ended. False when it owes a response.
    fn finish(&self) -> bool {
        match self {
            Conversation::Http(http) => http.finish(),
            Conversation::Bytes(_) => true,
        }
    }

    fn close(&self) {
        match self {
            Conversation::Http(http) => http.close(),
            Conversation::Bytes(wire) => wire.close(),
        }
    }
}

impl Service {
    /// The service that a function makes, of mode http or tcp.
    pub(crate) fn new(named: Named, is_http: bool) -> Service {
        let shown = format!("<lua.{}>", named.name);
        Service { named, shown, is_http }
    }
}

impl Applet for Service {
    fn name(&self) -> &str {
        &self.shown
    }

    fn start(&self, stream: &mut Stream, socket: UnixStream) -> Box<dyn Play> {
        let with = match self.is_http {
            true => Conversation::Http(Arc::new(Http::new(socket, stream))),
            false => Conversation::Bytes(Arc::new(Wire::new(Some(Socket::Unix(socket))))),
        };
        let run = self.begin(stream, &with);
        Box::new(Serving { run, with, named: self.named.clone() })
    }
}

impl Service {
    fn begin(&self, stream: &mut Stream, with: &Conversation) -> Result<Run, Failure> {
        let callable = self.named.callable(stream.facts.session.worker.index);
        let callable = callable.ok_or_else(|| Failure::Wrong("this worker's scripts have not registered it".into()))?;
        let tuning = self.named.library().tuning();
        let object = with.object(&callable.lua, stream, tuning.memory_bytes).map_err(|error| Failure::from(&error))?;
        Run::start(&callable, object, Limits { total: tuning.service, burst: tuning.burst })
    }
}

/// A script, until it has ended and all its output has gone.
struct Serving {
    run: Result<Run, Failure>,
    with: Conversation,
    named: Named,
}

/// Result in the place of a call that has ended.
const OVER: Failure = Failure::Ended(Ended::With(0));

impl Play for Serving {
    fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Flow> {
        let ended = match &mut self.run {
            Ok(run) => match lent::stream(stream, || run.poll(cx)) {
                Poll::Ready(result) => Some(result.map(drop)),
                Poll::Pending => None,
            },
            Err(failure) => Some(Err(std::mem::replace(failure, OVER))),
        };
        if let Some(result) = ended {
            self.run = Err(OVER);
            if let Some(flow) = self.conclude(stream, result) {
                self.with.close();
                return Poll::Ready(flow);
            }
        }
        // Output is sent also while the script waits for another event.
        let sent = match self.run {
            Ok(_) => {
                let _ = self.with.poll_flush(cx);
                Poll::Pending
            }
            Err(_) => self.with.poll_finish(cx),
        };
        sent.map(|()| {
            self.with.close();
            Flow::Next
        })
    }
}

impl Serving {
    /// Ends the script: output that still has to go, or the flow that follows at once.
    fn conclude(&self, stream: &mut Stream, result: Result<(), Failure>) -> Option<Flow> {
        match result {
            Err(Failure::Wrong(reason)) => {
                lent::stream(stream, || self.named.wrong(&reason));
                Some(Flow::Drop)
            }
            Err(Failure::Ended(Ended::Gone)) => Some(Flow::Next),
            Ok(()) | Err(Failure::Ended(_)) => match self.with.finish() {
                true => None,
                false => {
                    lent::stream(stream, || self.named.wrong("it has ended without an answer"));
                    Some(Flow::Drop)
                }
            },
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Lua may keep the object for as long as it likes; it does not keep the socket.
        self.with.close();
    }
}
