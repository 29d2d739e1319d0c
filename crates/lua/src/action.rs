//! `http-request lua.NAME` and its like: a rule whose action is a function of a script.

use crate::channel::LONGEST;
use crate::lent;
use crate::library::Named;
use crate::run::{Ended, Failure, Limits, Run};
use crate::txn;
use crate::vars;
use mlua::{IntoLua, MultiValue, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use terse_config::{Args, Fault};
use terse_proxy::inspection::Side;
use terse_proxy::reply;
use terse_proxy::rules::{Action, Flow, RuleSet};
use terse_proxy::script::Play;
use terse_proxy::stream::Stream;
use tokio::time::Sleep;

/// The action of a rule.
pub(crate) struct ScriptAction {
    named: Named,
    words: Arc<[String]>,
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
        let mut words: Vec<String> = Vec::new();
        for number in 1..=count {
            words.push(args.need(&format!("argument {number} of {count} of 'lua.{}'", named.name))?.to_owned());
        }
        Ok(Box::new(ScriptAction { named, words: words.into(), set }))
    }

    fn start(&self, stream: &mut Stream) -> Option<Playing> {
        let call = Call { named: self.named.clone(), words: self.words.clone(), set: self.set };
        let run = call.start(stream, Duration::ZERO)?;
        Some(Playing { step: Step::Runs(run), call, spent: Duration::ZERO })
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

    fn waits(&self) -> bool {
        // The bytes of a channel, and `act.YIELD`.
        true
    }
}

/// A call of the function, and the means to call it again.
struct Call {
    named: Named,
    words: Arc<[String]>,
    set: RuleSet,
}

impl Call {
    /// Begins a call; `spent`: the time that calls of the same action have computed.
    fn start(&self, stream: &mut Stream, spent: Duration) -> Option<Run> {
        let Some(callable) = self.named.callable(stream.facts.session.worker.index) else {
            lent::stream(stream, || self.named.wrong("this worker's scripts have not registered it"));
            return None;
        };
        let tuning = self.named.library().tuning();
        let args = || -> mlua::Result<MultiValue> {
            let mut args = vec![Value::Table(txn::object(&callable.lua, self.set.is_http())?)];
            for word in &*self.words {
                args.push(word.as_str().into_lua(&callable.lua)?);
            }
            Ok(args.into_iter().collect())
        };
        let args = args().map_err(|error| Failure::from(&error));
        let total = tuning.session.map(|total| total.saturating_sub(spent));
        let run = args.and_then(|args| Run::start(&callable, args, Limits { total, burst: tuning.burst }));
        match run {
            Ok(run) => Some(run),
            Err(failure) => {
                lent::stream(stream, || self.named.wrong(&failure.to_string()));
                None
            }
        }
    }
}

/// The action, while it is not done.
struct Playing {
    step: Step,
    call: Call,
    /// The time that calls before the present one have computed.
    spent: Duration,
}

/// State of an action.
enum Step {
    Runs(Run),
    /// It has yielded: it is called again then, or once bytes have come.
    Yielded {
        until: Pin<Box<Sleep>>,
        bytes: Option<usize>,
    },
}

impl Play for Playing {
    fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Flow> {
        loop {
            match &mut self.step {
                Step::Runs(run) => {
                    let result = ready!(lent::stream(stream, || run.poll(cx)));
                    // A call costs something, whatever the clock says.
                    self.spent += run.spent().max(Duration::from_micros(1));
                    match self.yielded(stream, &result) {
                        Some(step) => self.step = step,
                        None => return Poll::Ready(flow(&self.call.named, self.call.set, stream, result)),
                    }
                }
                Step::Yielded { until, bytes } => {
                    let more = bytes.is_some_and(|before| at_hand(stream, self.call.set).is_none_or(|now| now > before));
                    if !more && until.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    let Some(run) = self.call.start(stream, self.spent) else { return Poll::Ready(Flow::Next) };
                    self.step = Step::Runs(run);
                }
            }
        }
    }
}

impl Playing {
    /// Runs the call to its end, where rules cannot wait.
    fn at_once(self, stream: &mut Stream) -> Flow {
        let Step::Runs(run) = self.step else { return Flow::Next };
        let result = lent::stream(stream, || run.at_once());
        flow(&self.call.named, self.call.set, stream, result)
    }

    /// The wait of an action that has returned `act.YIELD`: for bytes where its rules judge bytes and more of them may come, and
    /// for the time that it has set. `None` where there is nothing to wait for.
    fn yielded(&self, stream: &mut Stream, result: &Result<MultiValue, Failure>) -> Option<Step> {
        let code = match result {
            Ok(values) => values.front().and_then(|value| value.as_integer()),
            Err(Failure::Ended(Ended::With(code))) => Some(*code),
            Err(_) => None,
        };
        if code != Some(YIELD) {
            return None;
        }
        let wake = vars::take_wake(&stream.facts);
        let judges_bytes = matches!(self.call.set, RuleSet::Content | RuleSet::ServerContent);
        let bytes = at_hand(stream, self.call.set).filter(|_| judges_bytes);
        if judges_bytes && bytes.is_none() && wake.is_none() {
            return None;
        }
        let time = wake.unwrap_or(if judges_bytes { LONGEST } else { AGAIN });
        if bytes.is_some() {
            stream.facts.inspection.as_deref_mut()?.want(time);
        }
        Some(Step::Yielded { until: Box::pin(tokio::time::sleep(time)), bytes })
    }
}

/// The number of bytes that rules on content look at; `None` where no more may come.
fn at_hand(stream: &Stream, set: RuleSet) -> Option<usize> {
    let side = if set.is_response() { Side::Response } else { Side::Request };
    let inspection = stream.facts.inspection.as_deref().filter(|inspection| inspection.is_open())?;
    Some(inspection.bytes(side).len())
}

/// `act.YIELD`
const YIELD: i64 = 2;

/// The pause after which an action on messages that has yielded is called again, without a time of its own.
const AGAIN: Duration = Duration::from_millis(10);
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
        YIELD => {
            lent::stream(stream, || named.wrong("act.YIELD is returned where nothing can be waited for"));
            Flow::Next
        }
        3 => denied(stream, 500),
        5 => denied(stream, 403),
        6 => Flow::Drop,
        7 => denied(stream, 400),
        _ => Flow::Next,
    }
}
