//! Environment of the evaluation of an expression.

use crate::condition::Doubt;
use crate::vars::Vars;
use std::any::Any;
use std::net::SocketAddr;
use terse_message::{Request, Response};

/// Data that an expression can see while it is evaluated: a few pointers, made anew for each evaluation.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The request's head, while it is there.
    pub request: Option<&'a Request>,
    /// The response's head, once it is there.
    pub response: Option<&'a Response>,
    /// The client's address (`src`), when the connection is over IP.
    pub client: Option<&'a SocketAddr>,
    /// The address that the client connected to (`dst`).
    pub local: Option<&'a SocketAddr>,
    /// The variables of the scopes that exist here.
    pub vars: Vars<'a>,
    /// Time and randomness.
    pub world: &'a dyn World,
    /// Receives the note that a value may yet change; `None` where no more bytes come.
    pub doubt: Option<&'a Doubt>,
    /// Facts of upper crates; their fetches downcast it to their own type.
    pub facts: &'a dyn Any,
}

/// Work that an expression puts off. Its result is stored where the expression looks when it is evaluated again.
pub type Work = Box<dyn FnOnce() + Send>;

/// Time and randomness, asked for only by the expressions that need them.
pub trait World {
    /// The time of day.
    fn now(&self) -> Now;
    /// 64 random bits.
    fn random(&self) -> u64;
    /// Takes work that is too long for the thread that evaluates, where the caller can wait. The value is `None` for now,
    /// and the expression is evaluated again once the work is done. Otherwise returns the work, to be done at once.
    fn defer(&self, work: Work) -> Option<Work> {
        Some(work)
    }
    /// Seconds that local time is ahead of UTC at that time: 3600 for Berlin's winter.
    fn utc_offset(&self, _seconds: i64) -> i32 {
        0
    }
}

/// A time of day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Now {
    /// Seconds since 1970-01-01 00:00:00 UTC.
    pub seconds: i64,
    /// Microseconds of the second, 0 to 999,999.
    pub micros: u32,
}

impl<'a> Env<'a> {
    /// An environment with only the world: that of `global`.
    pub fn bare(world: &'a dyn World) -> Env<'a> {
        Env { request: None, response: None, client: None, local: None, vars: Vars::default(), world, doubt: None, facts: &() }
    }

    /// Notes that the bytes of the value decide it, whatever follows them: no doubt is left.
    pub fn settle(&self) {
        if let Some(doubt) = self.doubt {
            doubt.take();
        }
    }

    /// The facts, if they are of that type.
    #[inline]
    pub fn facts<T: Any>(&self) -> Option<&'a T> {
        self.facts.downcast_ref()
    }
}
