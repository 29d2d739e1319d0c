//! Advice for an operator: servers that are down first, then the reasons that cost most bytes and can be changed by a
//! line.

use crate::numbers;
use crate::savings::{OfReason, Savings};
use serde::Serialize;
use std::borrow::Cow;
use std::time::Instant;
use terse_balance::{Operation, Server, report};
use terse_compress::Reason;
use terse_compress::reason::Group;
use terse_proxy::plan::{Backend, Plan};
use terse_proxy::types::{OfType, Ratio};

/// A piece of advice.
#[derive(Serialize, PartialEq, Eq, Debug)]
pub(super) struct Advice {
    /// `backend/server`, where a server is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    /// The reason that answers were not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    /// Bytes that were sent for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// The type of most of these bytes, where the reason is the type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Box<str>>,
    /// Size of a sample of that type after gzip, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sample_permille: Option<u64>,
    pub(super) text: String,
    /// The line of a configuration that changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<Cow<'static, str>>,
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

/// Servers of the shown backends by their states, and advice.
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
        advice.push(of_text(format!("{} more servers are down", numbers::count(more))));
    }
    let Some(savings) = savings else { return (servers, advice) };
    let types = if savings.is_whole { plan.types.all() } else { Vec::new() };
    let can_be_changed = |group: &str| [Group::Configuration, Group::Limits].iter().any(|known| known.name() == group);
    let costly = savings.reasons.iter().filter(|reason| can_be_changed(reason.group) && reason.bytes > 0);
    let costly = costly.filter_map(|reason| match reason.reason {
        Reason::TypeNotListed if types.iter().any(|of| of.reason == Reason::TypeNotListed) => of_types(reason, &types),
        _ => Some(of_reason(reason)),
    });
    let room = MOST.saturating_sub(advice.len());
    advice.extend(costly.take(room));
    (servers, advice)
}

fn of_reason(reason: &OfReason) -> Advice {
    let known = reason.reason.advice();
    Advice {
        reason: Some(reason.name),
        bytes: Some(reason.bytes),
        line: known.line.map(Cow::Borrowed),
        ..of_text(format!("{} went as they were: {}", numbers::bytes(reason.bytes), known.text))
    }
}

/// The heaviest type that is not listed, unless a sample shows no gain.
fn of_types(reason: &OfReason, types: &[OfType]) -> Option<Advice> {
    let is_worth_it = |of: &&OfType| of.ratio.is_none_or(|ratio| ratio.permille() <= MOST_PERMILLE);
    let of = types.iter().filter(|of| of.reason == Reason::TypeNotListed).find(is_worth_it)?;
    let sample = of.ratio.map(|ratio| format!(", of which a sample becomes {}", numbers::percent(ratio.permille())));
    let text = format!("{} of {} went as they were: {}", numbers::bytes(of.bytes), of.name, reason.reason.advice().text);
    Some(Advice {
        reason: Some(reason.name),
        bytes: Some(of.bytes),
        name: Some(of.name.clone()),
        sample_permille: of.ratio.map(Ratio::permille),
        line: is_type(&of.name).then(|| Cow::Owned(format!("compression type {}", of.name))),
        ..of_text(text + &sample.unwrap_or_default())
    })
}

/// Whether a name is a type and a subtype (RFC 9110 section 8.3.1). A server may use any text as a type, and a part of
/// a name would list others.
fn is_type(name: &str) -> bool {
    let is_token =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte));
    name.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Limit of a sample's size after gzip: above it, the type is not worth listing.
const MOST_PERMILLE: u64 = 900;

fn down(back: &Backend, server: &Server) -> Advice {
    let since = numbers::age(report::since_change(&back.farm, server, Instant::now()).as_secs());
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
    Advice { server: None, reason: None, bytes: None, name: None, sample_permille: None, text, line: None }
}

/// Limit of lines; most of them may be down servers.
const MOST: usize = 5;
const MOST_DOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_whole_types() {
        assert!(["application/wasm", "a/b+c", "x-a/v1.0"].into_iter().all(is_type));
        assert!(!["", "a", "+json", "a/", "/b", "a/b c", "a/b\"", "a/b/c", "a?b/c"].into_iter().any(is_type));
    }
}
