//! `http-request use-service lua.NAME`: a script that answers.

use crate::applet::Http;
use crate::lent;
use crate::library::Named;
use crate::run::{Ended, Failure, Limits, Run};
use std::sync::Arc;
use std::task::{Context, Poll};
use terse_proxy::rules::Flow;
use terse_proxy::script::{Applet, Play};
use terse_proxy::stream::Stream;
use tokio::net::UnixStream;

/// A service of mode http.
pub(crate) struct Service {
    named: Named,
    shown: String,
}

impl Service {
    /// The service that a function makes.
    pub(crate) fn new(named: Named) -> Service {
        let shown = format!("<lua.{}>", named.name);
        Service { named, shown }
    }
}

impl Applet for Service {
    fn name(&self) -> &str {
        &self.shown
    }

    fn start(&self, stream: &mut Stream, socket: UnixStream) -> Box<dyn Play> {
        let http = Arc::new(Http::new(socket, stream));
        let run = self.begin(stream, &http);
        Box::new(Serving { run, http, named: self.named.clone() })
    }
}

impl Service {
    fn begin(&self, stream: &mut Stream, http: &Arc<Http>) -> Result<Run, Failure> {
        let callable = self.named.callable(stream.facts.session.worker.index);
        let callable = callable.ok_or_else(|| Failure::Wrong("this worker's scripts have not registered it".into()))?;
        let tuning = self.named.library().tuning();
        http.limit(tuning.memory_bytes);
        let object = Http::object(http, &callable.lua, stream).map_err(|error| Failure::from(&error))?;
        Run::start(&callable, object, Limits { total: tuning.service, burst: tuning.burst })
    }
}

/// The script, until it has ended and all that it has sent has gone.
struct Serving {
    run: Result<Run, Failure>,
    http: Arc<Http>,
    named: Named,
}

/// What takes the place of a call that has ended.
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
                self.http.close();
                return Poll::Ready(flow);
            }
        }
        // What it has sent goes, also while it waits for something else.
        match self.http.poll_flush(cx) {
            Poll::Ready(Ok(())) if self.run.is_err() => {
                self.http.close();
                Poll::Ready(Flow::Next)
            }
            Poll::Ready(Err(_)) if self.run.is_err() => {
                self.http.close();
                Poll::Ready(Flow::Next)
            }
            _ => Poll::Pending,
        }
    }
}

impl Serving {
    /// The script has ended: what of its answer still has to go, or what follows at once.
    fn conclude(&self, stream: &mut Stream, result: Result<(), Failure>) -> Option<Flow> {
        match result {
            Err(Failure::Wrong(reason)) => {
                lent::stream(stream, || self.named.wrong(&reason));
                Some(Flow::Drop)
            }
            Err(Failure::Ended(Ended::Gone)) => Some(Flow::Next),
            Ok(()) | Err(Failure::Ended(_)) => match self.http.finish() {
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
        // Lua may keep the object for as long as it likes; the socket it keeps no longer.
        self.http.close();
    }
}
