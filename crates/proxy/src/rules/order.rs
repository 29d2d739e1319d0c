//! The order in which rules run, whatever the order of their lines; a line after another that runs later gets a warning.

use super::RuleSet;
use terse_config::{Scope, Setting};

/// Rules of a request, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Turn {
    /// `tcp-request connection`
    Connection,
    /// `tcp-request session`
    Session,
    /// `tcp-request content`
    Content,
    /// `monitor fail`
    Monitor,
    /// `http-request`
    Request,
    /// `redirect`
    Redirect,
    /// `use_backend`
    Backend,
    /// `use-server`
    Server,
}

/// The lines that a section has had so far. Lines of its `defaults` run before, wherever they stand.
#[derive(Clone, Copy, Default, Debug)]
struct Lines {
    turns: [bool; TURNS.len()],
    /// There was an `http-response` line.
    response: bool,
}

impl Setting for Lines {
    fn inherit(&self) -> Lines {
        Lines::default()
    }
}

const TURNS: [(Turn, &str); 8] = [
    (Turn::Connection, "tcp-request connection"),
    (Turn::Session, "tcp-request session"),
    (Turn::Content, "tcp-request content"),
    (Turn::Monitor, "monitor fail"),
    (Turn::Request, "http-request"),
    (Turn::Redirect, "redirect"),
    (Turn::Backend, "use_backend"),
    (Turn::Server, "use-server"),
];

/// Notes a line, and warns when it stands after a line that runs later. `use_backend` and `use-server` may stand in any
/// order: the former is for the frontend, the latter for the backend.
pub fn note(turn: Turn, scope: &mut Scope<'_>) {
    let lines: &mut Lines = scope.section.settings.entry();
    let later = TURNS.iter().zip(lines.turns).find(|((other, _), there)| *there && *other > turn).map(|((_, name), _)| *name);
    let own = TURNS.iter().zip(&mut lines.turns).find(|((other, _), _)| *other == turn);
    let Some(((_, own), there)) = own else { return };
    *there = true;
    if let Some(later) = later.filter(|_| turn < Turn::Backend) {
        tell(own, later, scope);
    }
}

/// The same for a rule of a set.
pub(super) fn note_rule(set: RuleSet, scope: &mut Scope<'_>) {
    let turn = match set {
        RuleSet::Connection => Turn::Connection,
        RuleSet::Session => Turn::Session,
        RuleSet::Content => Turn::Content,
        RuleSet::Request => Turn::Request,
        RuleSet::Response => return scope.section.settings.entry::<Lines>().response = true,
        RuleSet::ServerContent => {
            if scope.section.settings.entry::<Lines>().response {
                tell("tcp-response content", "http-response", scope);
            }
            return;
        }
        RuleSet::AfterResponse => return,
    };
    note(turn, scope);
}

fn tell(own: &str, later: &str, scope: &mut Scope<'_>) {
    scope.warn(0, format!("a '{own}' rule after a '{later}' rule will still be processed before it"));
}
