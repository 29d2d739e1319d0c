//! Data of traffic that Lua sees while it runs: a stream, an expression's environment, or a worker, lent for as long as one
//! call takes.
//!
//! Functions that scripts call live as long as the state, and a stream does not: so they hold none, and ask here. A script
//! that keeps a transaction's object beyond its time finds none, or another stream, whose number differs.
//!
//! Invariants: a borrow ends when the call that lent it ends; and a reader has the lent object alone, because it is taken
//! out meanwhile.
#![allow(unsafe_code, reason = "a borrow crosses Lua, which knows no lifetimes")]

use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;
use terse_proxy::facts::Facts;
use terse_proxy::stream::Stream;
use terse_proxy::worker::Worker;
use terse_sample::Env;

/// Object that a reader finds.
pub(crate) enum Seen<'a> {
    /// None: the configuration is being read, or the lent object is in use already.
    Nothing,
    /// A stream, to be changed.
    Stream(&'a mut Stream),
    /// The environment of an expression.
    Env(&'a Env<'a>),
    /// The worker alone: a task.
    Worker(&'a Rc<Worker>),
}

#[derive(Clone, Copy)]
enum Lent {
    Nothing,
    Stream(NonNull<Stream>),
    Env(NonNull<Env<'static>>),
    Worker(NonNull<Rc<Worker>>),
}

thread_local! {
    static LENT: Cell<Lent> = const { Cell::new(Lent::Nothing) };
}

/// Puts back the object that was there before, also where a call panics.
struct Restore(Lent);

impl Drop for Restore {
    fn drop(&mut self) {
        LENT.set(self.0);
    }
}

/// Lends a stream to the code that is called.
pub(crate) fn stream<R>(stream: &mut Stream, call: impl FnOnce() -> R) -> R {
    lend(Lent::Stream(NonNull::from(stream)), call)
}

/// Lends an expression's environment.
pub(crate) fn env<R>(env: &Env<'_>, call: impl FnOnce() -> R) -> R {
    lend(Lent::Env(NonNull::from(env).cast()), call)
}

/// Lends a worker.
pub(crate) fn worker<R>(worker: &Rc<Worker>, call: impl FnOnce() -> R) -> R {
    lend(Lent::Worker(NonNull::from(worker)), call)
}

fn lend<R>(lent: Lent, call: impl FnOnce() -> R) -> R {
    let _restore = Restore(LENT.replace(lent));
    call()
}

/// Calls `look` with the lent object.
pub(crate) fn see<R>(look: impl FnOnce(Seen<'_>) -> R) -> R {
    let lent = LENT.replace(Lent::Nothing);
    let _restore = Restore(lent);
    match lent {
        Lent::Nothing => look(Seen::Nothing),
        // SAFETY: `lend` holds the exclusive borrow that the pointer was made of until its call has returned, of which this
        // call is a part. It is on this thread, and no other reader finds the pointer until this call has returned.
        Lent::Stream(mut stream) => look(Seen::Stream(unsafe { stream.as_mut() })),
        // SAFETY: as above, with a shared borrow. The closure takes any lifetime, so that no part of it can be kept.
        Lent::Env(env) => look(Seen::Env(unsafe { env.as_ref() })),
        // SAFETY: as above, with a shared borrow.
        Lent::Worker(worker) => look(Seen::Worker(unsafe { worker.as_ref() })),
    }
}

/// Calls `look` with the environment of expressions of whatever is lent; `None` where there is none.
pub(crate) fn see_env<R>(look: impl FnOnce(&Env<'_>) -> R) -> Option<R> {
    see(|seen| match seen {
        Seen::Stream(stream) => Some(look(&stream.env())),
        Seen::Env(env) => Some(look(env)),
        Seen::Worker(worker) => {
            let mut env = Env::bare(&**worker);
            env.vars.process = Some(&worker.plan.process_variables);
            Some(look(&env))
        }
        Seen::Nothing => None,
    })
}

/// Looks at a stream's facts.
pub(crate) fn see_facts<R>(look: impl FnOnce(&Facts) -> R) -> Option<R> {
    see_env(|env| env.facts::<Facts>().map(look)).flatten()
}

/// The worker that Lua runs on, once there is one.
pub(crate) fn worker_here() -> Option<Rc<Worker>> {
    see(|seen| match seen {
        Seen::Worker(worker) => Some(worker.clone()),
        Seen::Stream(stream) => Some(stream.facts.session.worker.clone()),
        Seen::Env(env) => env.facts::<Facts>().map(|facts| facts.session.worker.clone()),
        Seen::Nothing => None,
    })
}
