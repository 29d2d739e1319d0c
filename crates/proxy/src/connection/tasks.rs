//! The tasks in which exchanges of HTTP/2 run. A task that is done waits for the next stream: a new task costs more than many
//! an exchange.

use super::downstream::ClientConnection;
use crate::exchange::Client;
use crate::io::{Http2Stream, Transport, clock};
use crate::phase::serve::{self, Before};
use crate::phase::{answer, finish};
use crate::registry::Registry;
use crate::reply;
use crate::session::Session;
use crate::stream::Stream;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Instant;
use terse_message::{Abort, Cause, Malformed, Phase, Request, Who};

/// A worker's tasks: as many are kept as served streams at a time lately.
#[derive(Default)]
pub struct Tasks {
    waiting: RefCell<Vec<Rc<Seat>>>,
    /// Tasks that serve a stream.
    busy: Cell<usize>,
    /// The most that did at a time since the last [`Tasks::trim`].
    most: Cell<usize>,
}

/// The tasks that are kept in any case.
const KEPT: usize = 64;

/// A stream to be served.
pub struct Job {
    /// Its connection's session.
    pub session: Rc<Session>,
    /// Its transport.
    pub stream: Rc<Http2Stream>,
    /// Its head.
    pub head: Head,
    /// The time from which on its connection was idle, where it was.
    pub idle_since: Instant,
}

/// A request's head, or its fault.
pub enum Head {
    /// All of it.
    Request(Box<Request>),
    /// No request: too large, or malformed.
    None(Malformed),
}

#[derive(Default)]
struct Seat {
    job: Cell<Option<Job>>,
    waker: Cell<Option<Waker>>,
    is_over: Cell<bool>,
}

impl Seat {
    /// The next stream; `None` where the task is to end.
    async fn job(&self) -> Option<Job> {
        poll_fn(|cx| match self.job.take() {
            Some(job) => Poll::Ready(Some(job)),
            None if self.is_over.get() => Poll::Ready(None),
            None => {
                let kept = self.waker.take().filter(|waker| waker.will_wake(cx.waker()));
                self.waker.set(Some(kept.unwrap_or_else(|| cx.waker().clone())));
                Poll::Pending
            }
        })
        .await
    }
}

impl Tasks {
    /// Serves a stream, in a task that waits or a new one.
    pub fn serve(self: &Rc<Tasks>, job: Job) {
        self.busy.set(self.busy.get() + 1);
        self.most.set(self.most.get().max(self.busy.get()));
        if let Some(seat) = self.waiting.borrow_mut().pop() {
            seat.job.set(Some(job));
            seat.waker.take().into_iter().for_each(Waker::wake);
            return;
        }
        let (tasks, seat) = (self.clone(), Rc::new(Seat { job: Cell::new(Some(job)), ..Seat::default() }));
        tokio::task::spawn_local(async move {
            while let Some(job) = seat.job().await {
                run(job).await;
                tasks.busy.set(tasks.busy.get().saturating_sub(1));
                tasks.waiting.borrow_mut().push(seat.clone());
            }
        });
    }

    /// Ends the tasks that were not needed since the last time.
    pub fn trim(&self) {
        let needed = self.most.replace(self.busy.get()).max(KEPT).saturating_sub(self.busy.get());
        let mut waiting = self.waiting.borrow_mut();
        while waiting.len() > needed
            && let Some(seat) = waiting.pop()
        {
            seat.is_over.set(true);
            seat.waker.take().into_iter().for_each(Waker::wake);
        }
    }
}

async fn run(job: Job) {
    let Job { session, stream, head, idle_since } = job;
    let cancel = stream.cancel().cloned().unwrap_or_default();
    let mut connection = ClientConnection::new(Transport::Stream(stream), session.worker.wheel.timer());
    match head {
        Head::Request(mut request) => {
            let mut client = Client::with_head(&mut connection, &mut request, session.worker.take_scratch());
            let mut place = Registry::enter_stream(&session, cancel.clone());
            // The continuation of its connection does not concern the exchange.
            serve::run(&mut client, &session, &mut place, Before { cancel: &cancel, idle_since, began: clock::now(), cut: None })
                .await;
            session.worker.give_scratch(client.take_out());
            session.worker.requests.give(request.fields.capacity(), || {
                request.clear();
                request
            });
        }
        Head::None(malformed) => Box::pin(refused(&mut connection, &session, malformed)).await,
    }
}

/// Answers a stream whose head is too large or malformed.
async fn refused(connection: &mut ClientConnection, session: &Rc<Session>, malformed: Malformed) {
    let mut client = Client::new(connection, session.worker.take_scratch());
    let mut stream = Stream::new(session, clock::now());
    stream.facts.refused = Some(malformed);
    stream.facts.times.idle_ms = 0;
    let (status, cause) = match malformed {
        Malformed::HeadTooLarge => (431, Cause::TooLarge),
        Malformed::TargetTooLong => (414, Cause::TooLarge),
        _ => (400, Cause::Malformed),
    };
    stream.facts.instead = Some(Box::new(reply::page(&stream, status)));
    answer::to_abort(&mut client, &mut stream, Abort::new(Who::Proxy, Phase::Request, cause)).await;
    session.worker.give_scratch(client.take_out());
    stream.facts.figures.bytes_in.set(1);
    finish::stream(&mut stream);
}

/// Logs and counts a malformed head; its stream was reset.
pub fn malformed(session: &Rc<Session>, malformed: Malformed) {
    let mut stream = Stream::new(session, clock::now());
    let abort = Abort::new(Who::Proxy, Phase::Request, Cause::Malformed);
    (stream.facts.abort, stream.facts.refused, stream.facts.status) = (Some(abort), Some(malformed), 400);
    finish::blame(&stream, abort);
    stream.facts.figures.bytes_in.set(1);
    finish::stream(&mut stream);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection may have a hundred of them.
    #[test]
    fn a_stream_is_not_large() {
        fn future_bytes<F: Future>(_: impl Fn(Job) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = future_bytes(run);
        assert!(bytes <= 5 * 1024, "{bytes} bytes");
    }
}
