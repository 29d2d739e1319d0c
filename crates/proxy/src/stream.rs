//! A request and its response.

use crate::facts::Facts;
use crate::figures::Figures;
use crate::session::Session;
use crate::spares::Bounds;
use std::rc::Rc;
use std::time::Instant;
use terse_message::{Request, Response};
use terse_sample::{Env, Store, Vars};

/// A request and its response, from the first byte to the log line.
pub struct Stream {
    /// The request's head.
    pub request: Request,
    /// The response's head; meaningful once [`Stream::has_response`].
    pub response: Response,
    /// Whether there is a response's head.
    pub has_response: bool,
    /// Variables of the scope `txn`.
    pub transaction: Store,
    /// Variables of the scope `req`.
    pub request_variables: Store,
    /// Variables of the scope `res`.
    pub response_variables: Store,
    /// All other data of it.
    pub facts: Facts,
}

/// The memory of a stream that has ended, kept for the next one: of its heads and its variables.
#[derive(Default)]
pub struct Remains {
    request: Request,
    response: Response,
    variables: [Store; 3],
}

impl Stream {
    /// A new stream of a session that no registry lists.
    pub fn new(session: &Rc<Session>, start: Instant) -> Stream {
        Stream::counted(session, start, Rc::default())
    }

    /// A new stream that these figures are of.
    pub fn counted(session: &Rc<Session>, start: Instant, figures: Rc<Figures>) -> Stream {
        let Remains { request, response, variables } = session.worker.remains.take().unwrap_or_default();
        let [transaction, request_variables, response_variables] = variables;
        Stream {
            request,
            response,
            has_response: false,
            transaction,
            request_variables,
            response_variables,
            facts: Facts::new(session.clone(), figures, start, session.requests.get()),
        }
    }

    /// Goes on where a stream of bytes turned out to be HTTP; false when there was no such stream.
    pub fn take_over(&mut self) -> bool {
        let carried = self.facts.session.carried.take();
        let is_same = carried.is_some();
        if let Some(carried) = carried {
            self.facts.tracks = carried.tracks;
            (self.transaction, self.request_variables) = (carried.transaction, carried.request);
        }
        is_same
    }

    /// The environment of expressions.
    pub fn env(&self) -> Env<'_> {
        let session = &*self.facts.session;
        // Where bytes are carried, a response may begin once there is a server.
        let responds = self.has_response || self.facts.version.is_none() && self.facts.times.connected.is_some();
        Env {
            request: Some(&self.request).filter(|request| !request.is_empty()),
            response: self.has_response.then_some(&self.response),
            client: self.facts.client.as_ref(),
            local: self.facts.local.as_ref(),
            vars: Vars {
                process: Some(&session.worker.plan.process_variables),
                session: Some(&session.variables),
                transaction: Some(&self.transaction),
                // Variables of the request end when there is a response, which is when those of the response begin.
                request: Some(&self.request_variables).filter(|_| !responds),
                response: Some(&self.response_variables).filter(|_| responds),
                check: None,
            },
            world: &*session.worker,
            doubt: self.facts.inspection.as_deref().filter(|inspection| inspection.is_open()).map(|inspection| &inspection.doubt),
            facts: &self.facts,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let session = &self.facts.session;
        let worker = &session.worker;
        if worker.plan.process_variables.is_limited() {
            worker.plan.process_variables.forget(&self.transaction, Some(&session.variables));
        }
        worker.remains.give(self.request.fields.capacity() + self.response.fields.capacity(), || {
            let (mut request, mut response) = (std::mem::take(&mut self.request), std::mem::take(&mut self.response));
            request.clear();
            response.clear();
            let variables = [&mut self.transaction, &mut self.request_variables, &mut self.response_variables].map(|store| {
                store.clear();
                std::mem::take(store)
            });
            Remains { request, response, variables }
        });
    }
}

/// The remains of streams that a worker keeps, by the size of their heads.
pub const REMAINS: Bounds = Bounds { usual: 64, most_bytes: 32 * 1024, small: 1024, small_bytes: 4 * 1024 };
