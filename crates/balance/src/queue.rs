//! Slots and waiting: `maxconn`, `maxqueue` and the two queues, the server's own and the backend's.

use crate::algorithm::Key;
use crate::server::Server;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Which server is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Want<'a> {
    /// This one, by its index: persistence, or a retry. Its state is not looked at: the caller has.
    Server(usize),
    /// Whichever the algorithm chooses, but none of these.
    Any {
        /// What the choice may depend on.
        key: Key<'a>,
        /// Indices of servers that have failed this request.
        excluded: &'a [usize],
    },
}

/// The answer to a want.
#[derive(Debug)]
pub enum Grant {
    /// A slot: connect.
    Now(Claim),
    /// All slots are in use: await this, under `timeout queue`.
    Wait(Waiter),
    /// The server's queue is full (`maxqueue`).
    Full,
    /// No server may be used.
    NoServer,
}

/// The right to send one request to a server. Dropping it lets the next one in.
#[derive(Debug)]
pub struct Claim {
    server: Arc<Server>,
}

impl Claim {
    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }
}

/// What a waiter is told when the server it waits for, or the last server of the backend, goes down: find another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry;

/// A request in a queue. It may be dropped at any time: it leaves the queue, and a slot that was on its way to it goes to the next.
#[derive(Debug)]
pub struct Waiter {}

impl Waiter {
    /// How many waited for the same server when this one came (the log's `%sq`); `None` when it waits for any server.
    pub fn server_queue(&self) -> Option<u32> {
        unreachable!("not built yet")
    }

    /// How many waited for any server when this one came (the log's `%bq`); `None` when it waits for one server.
    pub fn backend_queue(&self) -> Option<u32> {
        unreachable!("not built yet")
    }
}

impl Future for Waiter {
    type Output = Result<Claim, Retry>;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        unreachable!("not built yet")
    }
}
