//! `http-request`, `http-response`, `http-after-response`: rules, compiled once, run in order.
//!
//! An action is one entry of [`ACTIONS`] and one type that implements [`Action`]; families of actions have a file each. An action
//! that must wait (a tarpit, a body) does not wait itself: it says so by its [`Flow`], and the phase that runs the rules waits.

pub mod answer;
pub mod field;
pub mod keywords;
pub mod redirect;
pub mod target;
pub mod variable;
pub mod verdict;

use crate::reply::Answer;
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::{Args, Fault, Place, Scope};
use terse_sample::Condition;

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

/// One action: its name, where it may stand, and how it is read.
pub struct ActionWord {
    /// Its name: `set-header`.
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
    /// Reads the words up to the condition. The name may end in a parenthesis: `set-var(txn.a)`; the parser finds it as
    /// the word before the cursor.
    Done(fn(&mut Args<'_>, &mut Scope<'_>, RuleSet) -> Result<Box<dyn Action>, Fault>),
    /// Understood and not built, and why.
    Refused(&'static str),
}

/// All actions, family by family.
pub const ACTIONS: &[&[ActionWord]] = &[answer::ACTIONS, field::ACTIONS, redirect::ACTIONS, target::ACTIONS, variable::ACTIONS, verdict::ACTIONS];

/// Runs a set of rules: those whose condition holds, in order, until one says more than [`Flow::Next`].
pub fn run(rules: &[Arc<Rule>], stream: &mut Stream) -> Flow {
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
