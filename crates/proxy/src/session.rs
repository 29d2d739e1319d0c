//! A client's connection.

use crate::io::{Transport, clock};
use crate::plan::Frontend;
use crate::worker::Worker;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use terse_sample::Store;

/// What is known of a client's connection for as long as it lives.
pub struct Session {
    /// The worker that it belongs to.
    pub worker: Rc<Worker>,
    /// The index of its frontend.
    pub frontend: usize,
    /// The index of the address that it came in by.
    pub bind: usize,
    /// The client's address, over IP.
    pub client: Option<SocketAddr>,
    /// The address that it connected to, over IP.
    pub local: Option<SocketAddr>,
    /// When it was accepted.
    pub accepted: Instant,
    /// Variables of the scope `sess`.
    pub variables: Store,
    /// Requests read so far.
    pub requests: Cell<u64>,
    /// The server of the request before: backend and index (`option prefer-last-server`).
    pub last_server: Cell<Option<(usize, usize)>>,
    /// Whether it keeps connections to servers that no other session may use (`http-reuse never`).
    pub has_own_connections: Cell<bool>,
    /// A number that no other session of this worker has.
    pub number: u64,
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.has_own_connections.get() {
            self.worker.idle.forget(self.number);
        }
    }
}

impl Session {
    /// The session of a connection that was just accepted.
    pub fn new(worker: &Rc<Worker>, bind: usize, io: &Transport) -> Rc<Session> {
        Session::between(worker, bind, io.peer(), io.local())
    }

    /// The session of a connection between two addresses.
    pub(crate) fn between(worker: &Rc<Worker>, bind: usize, client: Option<SocketAddr>, local: Option<SocketAddr>) -> Rc<Session> {
        let number = worker.next_session.get();
        worker.next_session.set(number + 1);
        Rc::new(Session {
            worker: worker.clone(),
            frontend: worker.plan.binds[bind].frontend,
            bind,
            client,
            local,
            accepted: clock::now(),
            variables: Store::default(),
            requests: Cell::new(0),
            last_server: Cell::new(None),
            has_own_connections: Cell::new(false),
            number,
        })
    }

    /// Its frontend.
    pub fn frontend(&self) -> &Frontend {
        &self.worker.plan.frontends[self.frontend]
    }
}
