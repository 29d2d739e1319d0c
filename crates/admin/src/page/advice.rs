//! What an operator should look at first: servers that are down, then what costs most bytes and can be changed by a line.

use super::format;
use crate::savings::Savings;
use serde::Serialize;
use std::time::Instant;
use terse_balance::{Operation, Server, report};
use terse_compress::reason::Group;
use terse_proxy::plan::{Backend, Plan};

/// Something to do.
#[derive(Serialize, PartialEq, Eq, Debug)]
pub(super) struct Advice {
    /// `backend/server`, where one is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    /// The reason that answers went as they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    /// Bytes that were sent for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    pub(super) text: String,
    /// The line of a configuration that changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<&'static str>,
}

/// Servers by their states.
#[derive(Clone, Copy, Default, Serialize, PartialEq, Eq, Debug)]
pub(super) struct Servers {
    pub(super) up: u64,
    pub(super) down: u64,
    pub(super) drain: u64,
    pub(super) maint: u64,
    pub(super) unchecked: u64,
}

impl Servers {
    fn count(&mut self, server: &Server) {
        let state = server.state();
        let is_checked = server.settings().check.enabled || server.settings().agent.enabled;
        let place = match state.operation {
            _ if state.admin.is_maint() => &mut self.maint,
            Operation::Stopped => &mut self.down,
            _ if state.admin.is_drain() || state.operation == Operation::Stopping => &mut self.drain,
            _ if is_checked => &mut self.up,
            _ => &mut self.unchecked,
        };
        *place += 1;
    }
}

/// The servers of the backends that are shown, by their states, and what to do.
pub(super) fn find(plan: &Plan, savings: Option<&Savings>, shows: &dyn Fn(&str) -> bool) -> (Servers, Vec<Advice>) {
    let (mut servers, mut advice, mut more) = (Servers::default(), Vec::new(), 0);
    for back in plan.backends.now().iter().filter(|back| shows(&back.name)) {
        for server in back.farm.servers().iter() {
            let before = servers.down;
            servers.count(server);
            match servers.down > before {
                true if advice.len() < MOST_DOWN => advice.push(down(back, server)),
                is_down => more += u64::from(is_down),
            }
        }
    }
    if more > 0 {
        advice.push(of_text(format!("{} more servers are down", format::count(more))));
    }
    let Some(savings) = savings else { return (servers, advice) };
    let can_be_changed = |group: &str| [Group::Configuration, Group::Limits].iter().any(|known| known.name() == group);
    let costly = savings.reasons.iter().filter(|reason| can_be_changed(reason.group) && reason.bytes > 0);
    for reason in costly.take(MOST.saturating_sub(advice.len())) {
        let known = reason.reason.advice();
        advice.push(Advice {
            reason: Some(reason.name),
            bytes: Some(reason.bytes),
            line: known.line,
            ..of_text(format!("{} went as they were: {}", format::bytes(reason.bytes), known.text))
        });
    }
    (servers, advice)
}

fn down(back: &Backend, server: &Server) -> Advice {
    let since = format::age(report::since_change(&back.farm, server, Instant::now()).as_secs());
    let last = server.last_check();
    let why = match (server.settings().check.enabled, last.info.is_empty()) {
        (true, false) => format!(": {}, {}", last.status.text(), last.info),
        (true, true) => format!(": {}", last.status.text()),
        (false, _) => String::new(),
    };
    let name = format!("{}/{}", back.name, server.name());
    Advice { server: Some(name.clone()), ..of_text(format!("{name} is down for {since}{why}")) }
}

fn of_text(text: String) -> Advice {
    Advice { server: None, reason: None, bytes: None, text, line: None }
}

/// Lines at most; down servers have most of them.
const MOST: usize = 5;
const MOST_DOWN: usize = 3;
