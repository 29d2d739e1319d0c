//! `http-request lua.NAME` and its like: a rule whose action is a function of a script.

use crate::lent;
use crate::library::Named;
use crate::run::{Ended, Failure, Limits, Run};
use crate::txn;
use mlua::{IntoLua, MultiValue, Value};
use std::task::{Context, Poll, Waker};
use terse_config::{Args, Fault};
use terse_proxy::reply;
use terse_proxy::rules::{Action, Flow, RuleSet};
use terse_proxy::script::Play;
use terse_proxy::stream::Stream;

/// The action of a rule.
pub(crate) struct ScriptAction {
    named: Named,
    words: Vec<String>,
    set: RuleSet,
}

/// Name of a set of rules in scripts.
pub(crate) const fn word(set: RuleSet) -> &'static str {
    match set {
        RuleSet::Request => "http-req",
        RuleSet::Response => "http-res",
        RuleSet::AfterResponse => "http-after-res",
        RuleSet::Content => "tcp-req",
        RuleSet::ServerContent => "tcp-res",
        RuleSet::Connection | RuleSet::Session => "",
    }
}

impl ScriptAction {
    /// Reads the arguments that the script has asked for.
    pub(crate) fn read(named: Named, count: usize, args: &mut Args<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
        let mut words = Vec::new();
        for number in 1..=count {
            words.push(args.need(&format!("argument {number} of {count} of 'lua.{}'", named.name))?.to_owned());
        }
        Ok(Box::new(ScriptAction { named, words, set }))
    }

    fn start(&self, stream: &mut Stream) -> Option<Playing> {
        let Some(callable) = self.named.callable(stream.facts.session.worker.index) else {
            lent::stream(stream, || self.named.wrong("this worker's scripts have not registered it"));
            return None;
        };
        let tuning = self.named.library().tuning();
        let args = || -> mlua::Result<MultiValue> {
            let mut args = vec![Value::Table(txn::object(&callable.lua, self.set.is_http())?)];
            for word in &self.words {
                args.push(word.as_str().into_lua(&callable.lua)?);
            }
            Ok(args.into_iter().collect())
        };
        let args = args().map_err(|error| Failure::from(&error));
        let run = args.and_then(|args| Run::start(&callable, args, Limits { total: tuning.session, burst: tuning.burst }));
        match run {
            Ok(run) => Some(Playing { run, named: self.named.clone(), set: self.set }),
            Err(failure) => {
                lent::stream(stream, || self.named.wrong(&failure.to_string()));
                None
            }
        }
    }
}

impl Action for ScriptAction {
    fn run(&self, stream: &mut Stream) -> Flow {
        let Some(mut playing) = self.start(stream) else { return Flow::Next };
        if self.set == RuleSet::AfterResponse {
            return playing.at_once(stream);
        }
        // Most actions never wait.
        match playing.poll(stream, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(flow) => flow,
            Poll::Pending => Flow::Play(Box::new(playing)),
        }
    }
}

/// The call, while it is not done.
struct Playing {
    run: Run,
    named: Named,
    set: RuleSet,
}

impl Play for Playing {
    fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Flow> {
        lent::stream(stream, || self.run.poll(cx)).map(|result| self.flow(stream, result))
    }
}

impl Playing {
    /// Runs the call to its end, where rules cannot wait.
    fn at_once(self, stream: &mut Stream) -> Flow {
        let Playing { run, named, set } = self;
        let result = lent::stream(stream, || run.at_once());
        flow(&named, set, stream, result)
    }

    fn flow(&self, stream: &mut Stream, result: Result<MultiValue, Failure>) -> Flow {
        flow(&self.named, self.set, stream, result)
    }
}

/// The flow after a call. As in HAProxy, an error of the call is reported, and the rules go on.
fn flow(named: &Named, set: RuleSet, stream: &mut Stream, result: Result<MultiValue, Failure>) -> Flow {
    let code = match result {
        Ok(values) => values.front().and_then(|value| value.as_integer()).unwrap_or(0),
        Err(Failure::Ended(Ended::With(code))) => code,
        Err(Failure::Ended(Ended::Transaction(Some(answer)))) => return Flow::Answer(answer),
        Err(Failure::Ended(Ended::Transaction(None) | Ended::Gone)) => return Flow::Drop,
        Err(Failure::Wrong(reason)) => {
            lent::stream(stream, || named.wrong(&reason));
            return Flow::Next;
        }
    };
    let denied = |stream: &Stream, status: u16| {
        let status = if set.is_response() && status != 500 { 502 } else { status };
        Flow::Deny(Box::new(reply::page(stream, status)))
    };
    match code {
        1 | 4 => Flow::Stop,
        2 => {
            lent::stream(stream, || named.wrong("act.YIELD is not available in terse: core.sleep, core.wait and core.yield wait"));
            Flow::Next
        }
        3 => denied(stream, 500),
        5 => denied(stream, 403),
        6 => Flow::Drop,
        7 => denied(stream, 400),
        _ => Flow::Next,
    }
}
