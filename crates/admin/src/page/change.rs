//! Servers changed by the page's forms: `s=<server>` for each, `b=#<number>` or `b=<backend>`, `action=<word>`.

use super::query::decode;
use std::sync::Arc;
use std::time::Instant;
use terse_balance::{AdminOrder, Operation, Server};
use terse_proxy::plan::{Backend, Plan};

/// Outcome of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// All servers.
    Done,
    /// Some of them; others do not exist.
    Part,
    /// No server was named.
    None,
    /// No such backend, no such action, or no such server.
    Wrong,
    /// Not allowed.
    Denied,
}

impl Outcome {
    /// HAProxy's code, which the page's address carries.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Outcome::Done => "DONE",
            Outcome::Part => "PART",
            Outcome::None => "NONE",
            Outcome::Wrong => "ERRP",
            Outcome::Denied => "DENY",
        }
    }

    /// Message for a code.
    pub(super) fn text(code: &str) -> &'static str {
        match code {
            "DONE" => "The servers were changed.",
            "PART" => "Some servers were changed; others do not exist.",
            "NONE" => "Nothing was changed: no server was chosen.",
            "DENY" => "Nothing was changed: this is not allowed here.",
            _ => "Nothing was changed: there is no such backend, server or action.",
        }
    }
}

/// Possible actions: their values in forms, and their labels.
pub(super) const ACTIONS: &[(&str, &str, Action)] = &[
    ("ready", "Set state to READY", Action::Admin(AdminOrder::Ready)),
    ("drain", "Set state to DRAIN", Action::Admin(AdminOrder::Drain)),
    ("maint", "Set state to MAINT", Action::Admin(AdminOrder::Maint)),
    ("hrunn", "Health: force UP", Action::Health(Operation::Running)),
    ("hnolb", "Health: force NOLB", Action::Health(Operation::Stopping)),
    ("hdown", "Health: force DOWN", Action::Health(Operation::Stopped)),
    ("disable", "", Action::Admin(AdminOrder::Maint)),
    ("enable", "", Action::Admin(AdminOrder::Enable)),
];

/// An action on a server.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Admin(AdminOrder),
    Health(Operation),
}

/// Carries out a form's action on servers of the proxies that `may` be changed.
pub(super) fn apply(plan: &Plan, form: &[u8], may: impl Fn(&str) -> bool) -> Outcome {
    let (mut servers, mut backend, mut action) = (Vec::new(), None, None);
    for pair in form.split(|byte| *byte == b'&') {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let (name, value) = (halves.next().unwrap_or_default(), decode(halves.next().unwrap_or_default()));
        match name {
            b"s" => servers.push(value),
            b"b" => backend = find(plan, &value),
            b"action" => action = ACTIONS.iter().find(|(word, ..)| *word == value).map(|(.., action)| *action),
            _ => {}
        }
    }
    let (Some(backend), Some(action)) = (backend, action) else { return Outcome::Wrong };
    if !may(&backend.name) {
        return Outcome::Denied;
    }
    let known = servers.iter().filter_map(|name| backend.farm.servers().pick(|server| **server.name() == **name));
    let changed = known.inspect(|server| action.apply(&backend, server)).count();
    match changed {
        _ if servers.is_empty() => Outcome::None,
        0 => Outcome::Wrong,
        n if n < servers.len() => Outcome::Part,
        _ => Outcome::Done,
    }
}

fn find(plan: &Plan, name: &str) -> Option<Arc<Backend>> {
    let id = name.strip_prefix('#').and_then(|id| id.parse().ok());
    plan.backends.now().iter().find(|backend| *backend.name == *name || Some(backend.id) == id).cloned()
}

impl Action {
    /// Carries the action out on a server of a backend.
    pub(super) fn apply(self, backend: &Backend, server: &Arc<Server>) {
        match self {
            Action::Admin(order) => backend.farm.set_admin(server, order, Instant::now()),
            Action::Health(operation) => backend.farm.set_health(server, operation, Instant::now()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::{WEB, context};
    use proptest::prelude::*;
    use terse_balance::report;

    #[test]
    fn forms_change_servers() {
        let context = context(WEB);
        let plan = &context.plan;
        let status = |index: usize| report::status(&plan.backends.now()[0].farm.servers()[index]);
        let apply = |form: &str| apply(plan, form.as_bytes(), |name| name != "raw");
        assert_eq!(apply("s=a&s=b&action=maint&b=%233"), Outcome::Done);
        assert_eq!((status(0), status(1)), ("MAINT".into(), "MAINT".into()));
        assert_eq!(apply("b=be&action=ready&s=b&s=x"), Outcome::Part);
        assert_eq!(status(1), "no check");
        assert_eq!(apply("b=be&action=hdown&s=b"), Outcome::Done);
        assert_eq!(status(1), "DOWN");
        assert_eq!(apply("b=be&action=ready"), Outcome::None);
        assert_eq!(apply("b=be&action=ready&s=x"), Outcome::Wrong);
        assert_eq!(apply("b=be&action=explode&s=b"), Outcome::Wrong);
        assert_eq!(apply("b=no&action=ready&s=b"), Outcome::Wrong);
        assert_eq!(apply("b=raw&action=ready&s=r"), Outcome::Denied);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_form(form in "([sb]|action|[a-z#%=&+0-9]){0,40}") {
            apply(&context("").plan, form.as_bytes(), |_| true);
        }
    }
}
