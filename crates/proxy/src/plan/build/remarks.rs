//! Warnings about a proxy as a whole: keywords that have no effect in its mode, missing timeouts. HAProxy warns of the same.
//!
//! HAProxy warns of some lines that only HTTP gives a meaning. Here a warning is given for each of them at its place, unless
//! it comes from a `defaults` section, which proxies of several modes share.

use super::drafts::Draft;
use crate::log::LogSettings;
use crate::rules::{Rule, RuleSet, Sight};
use crate::settings::{Mode, ProxySettings, SwitchTarget};
use std::sync::Arc;
use terse_balance::algorithm::settings::Balance;
use terse_compress::decode::settings::Responses;
use terse_config::{Diagnostic, Diagnostics, Severity};
use terse_sample::Needs;

/// Reports the warnings, and removes settings that have no effect.
///
/// With `turns`, bytes that a frontend in mode tcp accepts may become HTTP after it.
pub(super) fn of(draft: &mut Draft, turns: bool, global_log: &LogSettings, diagnostics: &mut Diagnostics) {
    let mut said = Vec::new();
    if !draft.is_http() {
        without_http(draft, &mut said);
        own_lines_without_http(draft, turns, diagnostics);
    }
    if draft.front.is_some() {
        front(draft, global_log, &mut said);
    }
    for rule in draft.proxy.tcp.content.iter().filter(|rule| draft.is_http() && rule.action.is_service()) {
        let reason = format!("services cannot take over the connections of {}, which are of mode http", draft.label());
        let hint = String::from("services of mode http answer by 'http-request use-service'");
        diagnostics.push(Diagnostic::new(Severity::Alert, &rule.place, reason).hint(Some(hint)));
    }
    if draft.front.is_some() {
        captures(draft, diagnostics);
        first_bytes(draft, diagnostics);
    }
    if draft.is_http() {
        bytes_of_http(draft, diagnostics);
    }
    for reason in said {
        diagnostics.warn(&draft.place, reason);
    }
    for limit in draft.proxy.filters.limits.iter().filter(|limit| limit.declared.get().is_none()) {
        let reason =
            format!("no line of {} declares the filter '{}', which 'set-bandwidth-limit' names", draft.label(), limit.name);
        let hint = String::from("write 'filter bwlim-in' or 'filter bwlim-out' in the same section");
        diagnostics.push(Diagnostic::new(Severity::Alert, &limit.place, reason).hint(Some(hint)));
    }
    if let missing @ [_, ..] = &missing_timeouts(draft)[..] {
        let reason = format!("missing timeouts for {}", draft.label());
        let hint = format!("give {} a value: without them, connections that died unseen stay for ever", missing.join(", "));
        diagnostics.push(Diagnostic::new(Severity::Warning, &draft.place, reason).hint(Some(hint)));
    }
}

fn front(draft: &Draft, global_log: &LogSettings, said: &mut Vec<String>) {
    let label = draft.label();
    if draft.proxy.binds.is_empty() {
        said.push(format!("{label} has no 'bind' directive. Please declare it as a backend if this was intended"));
    }
    let formats = draft.log.format.is_some() || draft.log.structured_data.is_some();
    if let Some(decompression) = draft.decompression.as_deref().filter(|_| draft.back.is_some())
        && decompression.accept.as_ref().is_some_and(|codings| !codings.is_empty())
        && decompression.response.unwrap_or_default() == Responses::Off
    {
        said.push(format!("'decompression accept' ignored for {label} without 'decompression response on'"));
    }
    if formats && draft.log.targets(global_log).is_empty() {
        said.push(format!("log format ignored for {label} since it has no log address"));
    }
    if draft.proxy.default_backend.is_some() && !draft.farm.servers.is_empty() {
        said.push(format!(
            "in {label}, the 'default_backend' rule always has precedence over the servers, which will never be used"
        ));
    }
}

/// Warns of rules that fill slots of the log without a declaration.
fn captures(draft: &Draft, diagnostics: &mut Diagnostics) {
    let (proxy, log) = (&draft.proxy, &draft.log);
    for (rules, slots, side) in [
        (&proxy.request_rules, log.request_captures.len(), "request"),
        (&proxy.response_rules, log.response_captures.len(), "response"),
    ] {
        let slot = |rule: &Arc<Rule>| rule.action.slot().filter(|slot| *slot >= slots).map(|slot| (slot, rule.place.clone()));
        for (slot, place) in rules.iter().filter_map(slot) {
            let reason = format!("{}: unable to find capture id '{slot}' referenced by http-{side} capture rule", draft.label());
            let hint = format!("'declare capture {side} len <length>' makes one");
            diagnostics.push(Diagnostic::new(Severity::Alert, &place, reason).hint(Some(hint)));
        }
    }
}

/// Warns of rules on the first bytes that do not wait for them, or that run too late to count requests that cannot be read.
fn first_bytes(draft: &Draft, diagnostics: &mut Diagnostics) {
    let tcp = &draft.proxy.tcp;
    for rule in &tcp.content {
        let Some((sight, needs)) = rule.action.waits_for() else { continue };
        let by_session = needs.missing(RuleSet::Session.have()).is_none();
        if tcp.inspect_delay.is_none() && !by_session {
            let action = if sight == Sight::Tracked { "track-sc" } else { "capture" };
            let reason = format!(
                "{}: a 'tcp-request content {action}' rule that depends on what a client sends finds it by chance alone, without \
                 'tcp-request inspect-delay'",
                draft.label()
            );
            let hint = Some("write 'tcp-request inspect-delay <time>' in the same section");
            diagnostics.push(Diagnostic::new(Severity::Warning, &rule.place, reason).hint(hint));
        }
        let of_request = Needs::REQUEST.or(Needs::BODY).or(Needs::BYTES);
        let judges = needs.has_any(of_request) || rule.condition.as_ref().is_some_and(|c| c.needs().has_any(of_request));
        if draft.is_http() && sight == Sight::Tracked && !judges {
            let reason = format!(
                "{}: a 'tcp-request content track-sc' rule that does not depend on what a client sends should be one on the \
                 session: it does not see requests that cannot be read",
                draft.label()
            );
            let hint = Some("write 'tcp-request session track-sc'");
            diagnostics.push(Diagnostic::new(Severity::Warning, &rule.place, reason).hint(hint));
        }
    }
}

/// Warns of conditions on a connection's bytes in mode http.
fn bytes_of_http(draft: &Draft, diagnostics: &mut Diagnostics) {
    let proxy = &draft.proxy;
    let sets = [&proxy.tcp.content, &proxy.tcp.server_content, &proxy.request_rules, &proxy.response_rules, &proxy.after_rules];
    let rules = sets.into_iter().flatten().map(|rule| (&rule.condition, &rule.place));
    let switches = proxy.switches.iter().map(|switch| (&switch.condition, &switch.place));
    let servers = draft.stick.servers.iter().map(|rule| (&rule.condition, &rule.place));
    for (_, place) in rules
        .chain(switches)
        .chain(servers)
        .filter(|(condition, _)| condition.as_ref().is_some_and(|c| c.needs().has(Needs::BYTES)))
    {
        let reason = format!("{}: this condition looks at the bytes of a connection, which is one of HTTP", draft.label());
        let hint = Some("what HAProxy ignores here, terse finds in the bytes after the head");
        diagnostics.push(Diagnostic::new(Severity::Warning, place, reason).hint(hint));
    }
}

/// Removes settings of requests and responses from a proxy in mode tcp.
fn without_http(draft: &mut Draft, said: &mut Vec<String>) {
    let label = draft.label();
    if draft.farm.cookie.take().is_some() && draft.back.is_some() {
        said.push(format!("cookie will be ignored for {label} (needs 'mode http')"));
    }
    if matches!(draft.farm.balance, Balance::Uri(_)) {
        draft.farm.balance = Balance::default();
        if draft.back.is_some() {
            said.push(format!("Layer 7 hash not possible for {label} (needs 'mode http'). Falling back to round robin"));
        }
    }
    for server in draft.farm.servers.iter_mut().filter(|server| server.cookie.is_some()) {
        server.cookie = None;
        said.push(format!("{label} : ignoring cookie for server '{}' as HTTP mode is disabled", server.name));
    }
    let (front, back) = (draft.front.is_some(), draft.back.is_some());
    let proxy = &mut draft.proxy;
    let mut ignored = |what: &str, there: bool| {
        if there {
            said.push(format!("{what} ignored for {label} as it requires HTTP mode"));
        }
    };
    ignored("'capture' statement", draft.log.cookie_capture.take().is_some());
    ignored("'monitor-uri' statement", proxy.monitor_uri.take().is_some() && front);
    ignored("'stats' statement", proxy.service.take().is_some());
    // Connections that rules switch to HTTP have those of their frontend.
    let keeps = front && switches(proxy);
    for (name, rules) in [
        ("'http-request' rules", &mut proxy.request_rules),
        ("'http-response' rules", &mut proxy.response_rules),
        ("'http-after-response' rules", &mut proxy.after_rules),
    ] {
        ignored(name, !keeps && !std::mem::take(rules).is_empty());
    }
    let options = &mut proxy.options;
    for (name, option, half) in [
        ("'option http-ignore-probes'", &mut options.ignore_probes, front),
        ("'option prefer-last-server'", &mut options.prefer_last_server, back),
        ("'option http-pretend-keepalive'", &mut options.pretend_keep_alive, back),
        ("'option http-buffer-request'", &mut options.buffer_request, front || back),
        ("'option http-use-proxy-header'", &mut options.proxy_header, front),
        ("'option accept-unsafe-violations-in-http-request'", &mut options.loose_targets, front),
    ] {
        ignored(name, std::mem::take(option) && half);
    }
    // These are reported line by line.
    (options.connection, proxy.forwarded_for, proxy.original_to) = (None, None, None);
    proxy.forwarded = None;
}

/// Warns of the proxy's own lines that have no effect without HTTP.
fn own_lines_without_http(draft: &Draft, turns: bool, diagnostics: &mut Diagnostics) {
    let has_effect = |name: &str| match OF_HTTP_FROM_THE_START.contains(&name) {
        true => false,
        false => {
            turns || !OF_HTTP.iter().any(|word| name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || word.ends_with(' ')))
        }
    };
    for (keyword, place) in draft.lines.iter().filter(|(keyword, _)| !has_effect(keyword.name)) {
        let reason = format!("'{}' ignored for {} as it requires HTTP mode", keyword.name, draft.label());
        let hint = Some("write 'mode http', or take the line out");
        diagnostics.push(Diagnostic::new(Severity::Warning, place, reason).hint(hint));
    }
}

/// Whether a rule may switch connections to HTTP.
fn switches(proxy: &ProxySettings) -> bool {
    proxy.tcp.content.iter().any(|rule| rule.action.switches_mode())
}

/// Whether bytes that a frontend in mode tcp accepts may become HTTP: by a rule, or in a backend in mode http, or in a
/// backend that only the connection's bytes name.
pub(super) fn turns(draft: &Draft, drafts: &[Draft]) -> bool {
    if switches(&draft.proxy) {
        return true;
    }
    let is_http = |name: &str| drafts.iter().any(|back| back.kind.is_back() && back.is_http() && &*back.name == name);
    let default = draft.proxy.default_backend.as_ref().is_some_and(|(name, _)| is_http(name));
    default
        || draft.proxy.switches.iter().any(|switch| match &switch.target {
            SwitchTarget::Name(name) => is_http(name),
            SwitchTarget::Format(_) => true,
        })
}

/// Lines that only a proxy in mode http obeys.
const OF_HTTP_FROM_THE_START: &[&str] = &[
    "option httpclose",
    "option http-server-close",
    "option http-keep-alive",
    "option forwardfor",
    "option originalto",
    "option forwarded",
];

/// Lines that have an effect on HTTP wherever it begins. A keyword that ends in a blank stands for all that begin so.
const OF_HTTP: &[&str] = &[
    "compression ",
    "decompression ",
    "capture request header",
    "capture response header",
    "declare capture ",
    "errorfile",
    "errorfiles",
    "errorloc",
    "errorloc302",
    "errorloc303",
    "http-error",
    "http-reuse",
    "timeout http-keep-alive",
    "timeout http-request",
    "unique-id-header",
];

/// The timeouts without which a proxy keeps dead connections.
fn missing_timeouts(draft: &Draft) -> Vec<&'static str> {
    let timeouts = &draft.proxy.timeouts;
    if draft.proxy.mode == Mode::Log {
        return Vec::new();
    }
    let (front, back) = (draft.front.is_some(), draft.back.is_some() && !draft.farm.servers.is_empty());
    let silent_server = timeouts.server.is_none() && (draft.is_http() || timeouts.tunnel.is_none());
    [
        ("'timeout client'", front && timeouts.client.is_none()),
        ("'timeout connect'", back && timeouts.connect.is_none()),
        ("'timeout server'", back && silent_server),
    ]
    .into_iter()
    .filter_map(|(name, missing)| missing.then_some(name))
    .collect()
}
