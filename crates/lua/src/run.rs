//! A call of Lua: a coroutine, resumed until it ends, and watched.
//!
//! ```text
//!  start -> resumed -> waits (a sleep, bytes, its next turn) -> resumed -> ...
//!              |-> ends: values, or an error with its place in the script
//!              `-> its time is over: it is never resumed again
//! ```

use crate::burst;
use mlua::{AsyncThread, Function, IntoLuaMulti, Lua, MultiValue};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use terse_proxy::reply::Answer;

/// A function of a script, with the state that it belongs to.
#[derive(Clone)]
pub(crate) struct Callable {
    /// The state: a function alone does not keep it.
    pub(crate) lua: Lua,
    /// The function.
    pub(crate) function: Function,
}

/// A call on its way.
pub(crate) struct Run {
    thread: AsyncThread<MultiValue>,
    /// The state's name for itself lives as long as its coroutine.
    _lua: Lua,
    limits: Limits,
    spent: Duration,
}

/// Time limits of a call, without the time in which it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Limit of the whole call.
    pub(crate) total: Option<Duration>,
    /// Limit of a stretch, without yielding to other tasks.
    pub(crate) burst: Option<Duration>,
}

/// Reason why a call has given no values.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The script has ended itself.
    Ended(Ended),
    /// The call has an error: place and reason.
    Wrong(String),
}

/// Way in which a script ends itself from any place (`core.done`, `txn:done`).
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// An action, with the number that it would have returned.
    With(i64),
    /// The transaction: the client gets this, or no more bytes.
    Transaction(Option<Box<Answer>>),
    /// The client that it could respond to has gone.
    Gone,
}

impl Error for Ended {}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ended::With(_) | Ended::Transaction(_) => "the script has ended",
            Ended::Gone => "the client has gone",
        })
    }
}

impl Run {
    /// Begins a call.
    pub(crate) fn start(callable: &Callable, args: impl IntoLuaMulti, limits: Limits) -> Result<Run, Failure> {
        let thread = callable.lua.create_thread(callable.function.clone()).and_then(|thread| thread.into_async(args));
        let thread = thread.map_err(|error| Failure::from(&error))?;
        Ok(Run { thread, _lua: callable.lua.clone(), limits, spent: Duration::ZERO })
    }

    /// Runs it until it ends or waits, or its time is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<MultiValue, Failure>> {
        let begin = Instant::now();
        let left = self.limits.total.map(|total| total.saturating_sub(self.spent));
        let limit = [left, self.limits.burst].into_iter().flatten().min();
        let (polled, expired) = burst::run(limit, || Pin::new(&mut self.thread).poll(cx));
        self.spent += begin.elapsed();
        match polled {
            Poll::Ready(result) => Poll::Ready(result.map_err(|error| Failure::from(&error))),
            Poll::Pending if expired => Poll::Ready(Err(Failure::Wrong("execution timeout".into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The time that it has computed.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Drives it to its end where the caller cannot wait.
    pub(crate) fn at_once(mut self) -> Result<MultiValue, Failure> {
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(Failure::Wrong("it waits where nothing can wait".into())),
        }
    }
}

/// Fails where a call cannot wait: while a script is loaded, when no worker runs.
pub(crate) fn may_wait() -> mlua::Result<()> {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => Ok(()),
        Err(_) => Err(mlua::Error::runtime("nothing can wait while the script is loaded")),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Ended(ended) => ended.fmt(f),
            Failure::Wrong(reason) => f.write_str(reason),
        }
    }
}

impl From<&mlua::Error> for Failure {
    fn from(error: &mlua::Error) -> Failure {
        match cause(error).downcast_ref::<Ended>() {
            Some(ended) => Failure::Ended(ended.clone()),
            None => Failure::Wrong(told(error)),
        }
    }
}

/// Whether the error is a script's own ending, and no mistake.
pub(crate) fn is_end(error: &mlua::Error) -> bool {
    cause(error).downcast_ref::<Ended>().is_some()
}

/// The error of a function of this crate, within all that Lua has put round it.
fn cause(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause: within, .. } | mlua::Error::WithContext { cause: within, .. } => cause(within),
        other => other,
    }
}

/// Text of an error in one line: file, line and reason, without the traceback.
pub(crate) fn told(error: &mlua::Error) -> String {
    lines(error).lines().next().unwrap_or_default().to_owned()
}

/// The same with all lines of the reason, such as where a module was looked for, in one: a problem of a file is a line.
pub(crate) fn told_whole(error: &mlua::Error) -> String {
    let mut whole = String::new();
    let all = lines(error);
    for line in all.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !whole.is_empty() {
            whole += if whole.ends_with(':') { " " } else { "; " };
        }
        whole += line;
    }
    whole
}

/// File, line, and all lines of the reason.
fn lines(error: &mlua::Error) -> String {
    let innermost = match error {
        mlua::Error::CallbackError { traceback, cause } => {
            let at = place(traceback);
            return format!("{at}{}", lines(cause));
        }
        mlua::Error::WithContext { cause, .. } => return lines(cause),
        other => other.to_string(),
    };
    let innermost = innermost.strip_prefix("runtime error: ").unwrap_or(&innermost);
    innermost.split(TRACEBACK).next().unwrap_or_default().trim_end().to_owned()
}

/// Line that Lua puts between a reason and the traceback.
const TRACEBACK: &str = "\nstack traceback:\n";

/// The first line of a script in the traceback of an error of a function of this crate. Text in brackets is no script, and
/// tail calls have no line.
fn place(traceback: &str) -> String {
    let mut lines = traceback.lines().map(str::trim).filter(|line| !line.starts_with('['));
    match lines.find_map(|line| line.split_once(": in ")) {
        Some((place, _)) => format!("{place}: "),
        None => String::new(),
    }
}
