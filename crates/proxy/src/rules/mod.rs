//! `http-request`, `http-response`, `http-after-response`: rules, compiled once, run in order.
//!
//! An action is one entry of [`ACTIONS`] and one type that implements [`Action`]; families of actions have a file each. An action
//! that must wait (a tarpit, a body) does not wait itself: it says so by its [`Flow`], and the phase that runs the rules waits.

pub mod address;
pub mod answer;
pub mod capture;
pub mod field;
pub mod keywords;
pub mod later;
pub mod normalize;
pub mod redirect;
pub mod rewrite;
pub mod status;
pub mod target;
pub mod timeout;
pub mod variable;
pub mod verdict;

use crate::reply::Answer;
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::{Args, Fault, Place, Scope};
use terse_message::Fields;
use terse_sample::{Condition, Needs};

/// One rule.
pub struct Rule {
    /// What it does.
    pub action: Box<dyn Action>,
    /// When.
    pub condition: Option<Condition>,
    /// Where it stands.
    pub place: Place,
}

/// What a rule does.
pub trait Action: Send + Sync {
    /// Does it, and says how the evaluation goes on.
    fn run(&self, stream: &mut Stream) -> Flow;

    /// Whether it runs after all rules of its section that are not so, wherever it stands: the `redirect` line of old.
    fn is_last(&self) -> bool {
        false
    }
}

/// How the evaluation goes on after an action.
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
    /// The connection is closed without an answer (`reject`, `silent-drop`).
    Drop,
}

/// Which set a rule belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RuleSet {
    /// `http-request`
    Request = 1,
    /// `http-response`
    Response = 2,
    /// `http-after-response`
    AfterResponse = 4,
}

impl RuleSet {
    /// The keyword.
    pub const fn name(self) -> &'static str {
        match self {
            RuleSet::Request => "http-request",
            RuleSet::Response => "http-response",
            RuleSet::AfterResponse => "http-after-response",
        }
    }

    /// What is there when its rules run. Rules on responses still see the request, as it was sent to the server.
    pub const fn have(self) -> Needs {
        match self {
            RuleSet::Request => Needs::REQUEST.or(Needs::BODY),
            RuleSet::Response | RuleSet::AfterResponse => Needs::REQUEST.or(Needs::RESPONSE).or(Needs::SERVER),
        }
    }

    /// The fields of the message that its rules judge.
    pub(crate) fn fields(self, stream: &mut Stream) -> &mut Fields {
        match self {
            RuleSet::Request => &mut stream.request.fields,
            RuleSet::Response | RuleSet::AfterResponse => &mut stream.response.fields,
        }
    }
}

/// One action: its name, where it may stand, and how it is read.
pub struct ActionWord {
    /// Its name: `set-header`. One that ends in `(` or `.` stands for every word that begins so: `set-var(`.
    pub name: &'static str,
    /// The sets that have it, as a sum of [`RuleSet`]s.
    pub sets: u8,
    /// Its arguments, as the manual writes them.
    pub arguments: &'static str,
    /// What it does, one sentence.
    pub summary: &'static str,
    /// How it is read, or why it is refused.
    pub kind: ActionKind,
}

/// How an action is read.
pub enum ActionKind {
    /// Reads the words up to the condition.
    Done(ActionParser),
    /// Understood and not built, and why.
    Refused(&'static str),
}

/// Reads the words of an action up to the condition. It finds its own name, with what stands in its parentheses, as [`Args::taken`].
pub type ActionParser = fn(&mut Args<'_>, &mut Scope<'_>, RuleSet) -> Result<Box<dyn Action>, Fault>;

/// All actions, family by family.
pub const ACTIONS: &[&[ActionWord]] = &[
    verdict::ACTIONS,
    answer::ACTIONS,
    redirect::ACTIONS,
    field::ACTIONS,
    status::ACTIONS,
    target::ACTIONS,
    normalize::ACTIONS,
    address::ACTIONS,
    timeout::ACTIONS,
    variable::ACTIONS,
    capture::ACTIONS,
    later::ACTIONS,
];

/// The sets by which an action is known, for [`ActionWord::sets`].
const REQUEST: u8 = RuleSet::Request as u8;
const RESPONSE: u8 = RuleSet::Response as u8;
const AFTER: u8 = RuleSet::AfterResponse as u8;
const BOTH: u8 = REQUEST | RESPONSE;
const ANY: u8 = REQUEST | RESPONSE | AFTER;

/// An action that does what it says.
const fn done(name: &'static str, sets: u8, arguments: &'static str, summary: &'static str, parser: ActionParser) -> ActionWord {
    ActionWord { name, sets, arguments, summary, kind: ActionKind::Done(parser) }
}

/// Runs a set of rules: those whose condition holds, in order, until one says more than [`Flow::Next`].
pub fn run(rules: &[Arc<Rule>], stream: &mut Stream) -> Flow {
    stream.facts.soft_rewrites = false;
    for rule in rules {
        if rule.condition.as_ref().is_some_and(|condition| !condition.eval(&stream.env())) {
            continue;
        }
        match rule.action.run(stream) {
            Flow::Next => {}
            flow => {
                stream.facts.last_rule = Some((rule.place.file.clone(), rule.place.line));
                return flow;
            }
        }
    }
    Flow::Next
}

#[cfg(test)]
mod tests;
