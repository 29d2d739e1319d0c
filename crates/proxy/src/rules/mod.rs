//! Rules: `tcp-request`, `tcp-response`, `http-request`, `http-response`, `http-after-response`; compiled once, run in order.
//!
//! An action is an entry of [`ACTIONS`] and a type that implements [`Action`]; families of actions have a file each. An
//! action that must wait (a tarpit, a body) does not wait itself: it returns a [`Flow`], and the phase that runs the rules
//! waits. So does a condition that the bytes to come may still decide ([`crate::inspection`]).

pub mod address;
pub mod announcement;
pub mod answer;
pub mod attempts;
pub mod bandwidth;
pub mod cache;
pub mod capture;
pub mod edit;
pub mod field;
pub mod hint;
pub mod keywords;
pub mod later;
pub mod log;
pub mod map;
pub mod normalize;
pub mod order;
pub mod packed;
pub mod packets;
pub mod redirect;
pub mod restrict;
pub mod rewrite;
pub mod script;
pub mod status;
pub mod target;
pub mod timeout;
pub mod track;
pub mod variable;
pub mod verdict;
pub mod wait;

pub use wait::{BodyWait, Wait};

use crate::cache::Hit;
use crate::inspection;
use crate::reply::Answer;
use crate::script::{Applet, Play};
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::{Args, Fault, Place, Scope};
use terse_message::Fields;
use terse_sample::{Condition, Env, Expr, Needs, Value, Work};

/// A rule.
pub struct Rule {
    /// Its action.
    pub action: Box<dyn Action>,
    /// When.
    pub condition: Option<Condition>,
    /// Its place in the configuration.
    pub place: Place,
}

/// The action of a rule.
pub trait Action: Send + Sync {
    /// Runs the action, and returns how the evaluation goes on.
    fn run(&self, stream: &mut Stream) -> Flow;

    /// Whether no rule after it in its set runs once it has run, whatever the message.
    fn is_final(&self) -> bool {
        false
    }

    /// Whether a service of a script takes over (`use-service`).
    fn is_service(&self) -> bool {
        false
    }

    /// Whether it waits for the bytes that decide its value (`track-sc0`, `capture`). Any other action takes the bytes at
    /// hand as all that come.
    fn waits(&self) -> bool {
        false
    }

    /// Whether a connection may carry HTTP after it (`switch-mode http`).
    fn switches_mode(&self) -> bool {
        false
    }

    /// The slot of the log, by number, that it fills without having made it (`capture ... id`).
    fn slot(&self) -> Option<usize> {
        None
    }

    /// Needs of its expression, where it waits for the first bytes of a client: `track-sc0`, `capture`.
    fn waits_for(&self) -> Option<(Sight, Needs)> {
        None
    }

    /// Whether it runs after all other rules of its section, wherever it stands: the old `redirect` line.
    fn is_last(&self) -> bool {
        false
    }
}

/// Use of a value of a client's first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// It is the key of a table.
    Tracked,
    /// It is kept for the log.
    Captured,
}

/// Continuation of the evaluation after an action.
pub enum Flow {
    /// With the next rule.
    Next,
    /// No further rule of this set (`allow`).
    Stop,
    /// The client gets this answer (`return`, `redirect`).
    Answer(Box<Answer>),
    /// The same, counted as denied (`deny`).
    Deny(Box<Answer>),
    /// The same, after `timeout tarpit` (`tarpit`).
    Tarpit(Box<Answer>),
    /// The client gets this stored response (`cache-use`).
    Stored(Box<Hit>),
    /// The connection is closed without an answer (`reject`, `silent-drop`).
    Drop,
    /// The server's connection is closed; the bytes that it has sent so far are passed on (`tcp-response content close`).
    Close,
    /// The connection carries HTTP from here on (`switch-mode http`).
    Http,
    /// Bytes that may still come decide: the rules again from the first one, or the same action again, once they have.
    More,
    /// With the next rule, after a wait (`pause`, `wait-for-body`).
    Wait(Wait),
    /// As the called program determines, once it has ended.
    Play(Box<dyn Play>),
    /// The client gets the response of this service (`use-service`).
    Perform(Arc<dyn Applet>),
    /// With the same rule, once this is done: only where the phase that runs the rules lets expressions put work off.
    Work(Work),
}

/// Which set a rule belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum RuleSet {
    /// `http-request`
    Request = 1,
    /// `http-response`
    Response = 2,
    /// `http-after-response`
    AfterResponse = 4,
    /// `tcp-request connection`
    Connection = 8,
    /// `tcp-request session`
    Session = 16,
    /// `tcp-request content`
    Content = 32,
    /// `tcp-response content`
    ServerContent = 64,
}

impl RuleSet {
    /// All of them, in the order of their evaluation.
    pub const ALL: [RuleSet; 7] = [
        RuleSet::Connection,
        RuleSet::Session,
        RuleSet::Content,
        RuleSet::Request,
        RuleSet::ServerContent,
        RuleSet::Response,
        RuleSet::AfterResponse,
    ];

    /// The keyword.
    pub const fn name(self) -> &'static str {
        match self {
            RuleSet::Connection => "tcp-request connection",
            RuleSet::Session => "tcp-request session",
            RuleSet::Content => "tcp-request content",
            RuleSet::Request => "http-request",
            RuleSet::ServerContent => "tcp-response content",
            RuleSet::Response => "http-response",
            RuleSet::AfterResponse => "http-after-response",
        }
    }

    /// The data that are there when its rules run. The request has gone when rules on responses run, as HAProxy has it.
    pub const fn have(self) -> Needs {
        let request = Needs::REQUEST.or(Needs::BODY).or(Needs::BYTES);
        let response = Needs::RESPONSE.or(Needs::SERVER);
        match self {
            RuleSet::Connection | RuleSet::Session => Needs::NONE,
            RuleSet::Content | RuleSet::Request => request,
            RuleSet::ServerContent | RuleSet::Response => response.or(Needs::BYTES).or(Needs::RESPONSE_BODY),
            RuleSet::AfterResponse => response,
        }
    }

    /// Whether its rules see messages of HTTP.
    pub const fn is_http(self) -> bool {
        matches!(self, RuleSet::Request | RuleSet::Response | RuleSet::AfterResponse)
    }

    /// Whether its rules judge the bytes or messages of a server.
    pub const fn is_response(self) -> bool {
        matches!(self, RuleSet::Response | RuleSet::AfterResponse | RuleSet::ServerContent)
    }

    /// The fields of the message that its rules judge.
    pub(crate) fn fields(self, stream: &mut Stream) -> &mut Fields {
        if self.is_response() { &mut stream.response.fields } else { &mut stream.request.fields }
    }
}

/// An action: its name, its sets, and its parser.
pub struct ActionWord {
    /// Its name: `set-header`. A name that ends in `(` or `.` stands for every keyword that begins so, `set-var(`; a name
    /// that ends in `<n>` for every keyword that ends in a number there.
    pub name: &'static str,
    /// The sets that have it, as a sum of [`RuleSet`]s.
    pub sets: u16,
    /// Its arguments, as the manual writes them.
    pub arguments: &'static str,
    /// Its effect, in a single sentence.
    pub summary: &'static str,
    /// Its parser, or the reason why it is refused.
    pub kind: ActionKind,
}

/// Parser of an action, or its refusal.
pub enum ActionKind {
    /// Parses the arguments up to the condition.
    Done(ActionParser),
    /// Understood and not built, and why.
    Refused(&'static str),
}

/// Parses the arguments of an action up to the condition. The action's own name, with its parentheses, is [`Args::taken`].
pub type ActionParser = fn(&mut Args<'_>, &mut Scope<'_>, RuleSet) -> Result<Box<dyn Action>, Fault>;

/// All actions, family by family.
pub const ACTIONS: &[&[ActionWord]] = &[
    verdict::ACTIONS,
    answer::ACTIONS,
    redirect::ACTIONS,
    field::ACTIONS,
    packed::ACTIONS,
    status::ACTIONS,
    target::ACTIONS,
    normalize::ACTIONS,
    address::ACTIONS,
    announcement::ACTIONS,
    timeout::ACTIONS,
    bandwidth::ACTIONS,
    variable::ACTIONS,
    capture::ACTIONS,
    map::ACTIONS,
    log::ACTIONS,
    attempts::ACTIONS,
    hint::ACTIONS,
    packets::ACTIONS,
    wait::ACTIONS,
    track::ACTIONS,
    cache::ACTIONS,
    script::ACTIONS,
    later::ACTIONS,
];

/// The sets by which an action is known, for [`ActionWord::sets`].
const REQUEST: u16 = RuleSet::Request as u16;
const RESPONSE: u16 = RuleSet::Response as u16;
const AFTER: u16 = RuleSet::AfterResponse as u16;
const BOTH: u16 = REQUEST | RESPONSE;
const ANY: u16 = REQUEST | RESPONSE | AFTER;
const CONNECTION: u16 = RuleSet::Connection as u16;
const SESSION: u16 = RuleSet::Session as u16;
const CONTENT: u16 = RuleSet::Content as u16;
const SERVER_CONTENT: u16 = RuleSet::ServerContent as u16;
/// The rules of `tcp-request`.
const TCP_REQUEST: u16 = CONNECTION | SESSION | CONTENT;
/// The rules of `tcp-request` and `tcp-response`.
const TCP: u16 = TCP_REQUEST | SERVER_CONTENT;

/// An action that is built.
const fn done(name: &'static str, sets: u16, arguments: &'static str, summary: &'static str, parser: ActionParser) -> ActionWord {
    ActionWord { name, sets, arguments, summary, kind: ActionKind::Done(parser) }
}

/// More bytes may change a value.
struct InDoubt;

/// Evaluates an expression, unless bytes that may still come decide whether it has a value.
fn found<'a>(expr: &'a Expr, env: &Env<'a>) -> Result<Option<Value<'a>>, InDoubt> {
    match tried(expr, env) {
        (None, true) => Err(InDoubt),
        (value, _) => Ok(value),
    }
}

/// Evaluates an expression, unless bytes that may still come change its value.
fn settled<'a>(expr: &'a Expr, env: &Env<'a>) -> Result<Option<Value<'a>>, InDoubt> {
    match tried(expr, env) {
        (_, true) => Err(InDoubt),
        (value, false) => Ok(value),
    }
}

/// Evaluates an expression, and returns whether the value is in doubt.
fn tried<'a>(expr: &'a Expr, env: &Env<'a>) -> (Option<Value<'a>>, bool) {
    let Some(doubt) = env.doubt else { return (expr.eval(env), false) };
    // Doubts that conditions have left do not concern this expression.
    doubt.take();
    let value = expr.eval(env);
    let headless = doubt.head.get() && env.request.is_none() && expr.needs().has(Needs::REQUEST);
    (value, doubt.take() || headless)
}

/// Position in the evaluation of a set of rules.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cursor {
    /// The next rule, by its index.
    rule: usize,
    /// Whether that rule's condition holds already: its action waits for bytes.
    held: bool,
}

impl Cursor {
    /// After the last rule of a set.
    pub fn behind(rules: &[Arc<Rule>]) -> Cursor {
        Cursor { rule: rules.len(), held: false }
    }

    /// Whether no rule is left.
    pub fn is_behind(&self, rules: &[Arc<Rule>]) -> bool {
        self.rule >= rules.len()
    }

    fn advance(&mut self) {
        *self = Cursor { rule: self.rule + 1, held: false };
    }
}

/// Runs a set of rules: those whose condition holds, in order, until an action returns more than [`Flow::Next`].
pub fn run(rules: &[Arc<Rule>], stream: &mut Stream) -> Flow {
    run_from(rules, &mut Cursor::default(), stream)
}

/// The same, from the rule at the cursor, which moves along. After [`Flow::More`] of a condition it stands at the first rule again:
/// rules before it may see more, too. After that of an action it stands at this action.
pub fn run_from(rules: &[Arc<Rule>], at: &mut Cursor, stream: &mut Stream) -> Flow {
    if at.rule == 0 {
        stream.facts.soft_rewrites = false;
    } else {
        // The wait of the rule before is over.
        stream.facts.waiting_rule = None;
    }
    let deferral = stream.facts.session.worker.deferral.is_open().then(|| stream.facts.session.worker.clone());
    while let Some(rule) = rules.get(at.rule) {
        let open = stream.facts.inspection.as_deref().filter(|inspection| inspection.is_open());
        let holds = match (&rule.condition, open) {
            _ if at.held => Some(true),
            (None, _) => Some(true),
            (Some(condition), None) => Some(condition.eval(&stream.env())),
            (Some(condition), Some(inspection)) => condition.judge(&stream.env(), &inspection.doubt),
        };
        let waits = open.is_some();
        if let Some(worker) = &deferral {
            if let Some(work) = worker.deferral.take() {
                return Flow::Work(work);
            }
            // Work of an action is not done twice.
            worker.deferral.open(false);
        }
        let flow = match holds {
            None => Flow::More,
            Some(false) => Flow::Next,
            Some(true) if waits && !rule.action.waits() => inspection::as_all(stream, |stream| rule.action.run(stream)),
            Some(true) => rule.action.run(stream),
        };
        if let Some(worker) = &deferral {
            worker.deferral.open(true);
        }
        match flow {
            Flow::More if waits => {
                *at = if holds.is_some() { Cursor { held: true, ..*at } } else { Cursor::default() };
                return Flow::More;
            }
            Flow::Next | Flow::More => at.advance(),
            wait @ (Flow::Wait(_) | Flow::Play(_)) => {
                at.advance();
                stream.facts.waiting_rule = Some((rule.place.file.clone(), rule.place.line));
                return wait;
            }
            flow => {
                at.advance();
                // The `redirect` line of old is no rule that logs know.
                if !rule.action.is_last() {
                    stream.facts.last_rule = Some((rule.place.file.clone(), rule.place.line));
                }
                return flow;
            }
        }
    }
    Flow::Next
}

#[cfg(test)]
mod tests;
