//! Changes of a farm's servers: the state, the roster, the queues, and the log line about it.
//!
//! The lines are HAProxy's, word for word, because people's alerts look for them.

use crate::algorithm::settings::RingKey;
use crate::check::{CheckStatus, LastCheck};
use crate::counters::Count;
use crate::destination::{Destination, Port};
use crate::farm::{Ending, Farm, Level, Outage};
use crate::news::{Change, Checked, News, Subject};
use crate::report;
use crate::server::Server;
use crate::settings::OnError;
use crate::state::{Admin, AdminOrder, Event, Operation, State};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

impl Farm {
    /// Carries out an operator's command.
    pub fn set_admin(&self, server: &Arc<Server>, order: AdminOrder, now: Instant) {
        self.change(server, Event::Admin(order), String::new(), now);
    }

    /// Sets a server's health; checks go on from there.
    pub fn set_health(&self, server: &Arc<Server>, operation: Operation, now: Instant) {
        self.change(server, Event::Health(operation), ", changed from CLI".into(), now);
    }

    /// Sets a server's weight, 0 to 256.
    pub fn set_weight(&self, server: &Arc<Server>, weight: u32, now: Instant) {
        let mut outage = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.up();
        server.set_weight(weight.min(256));
        self.rebuild();
        self.note_outage(&mut outage, before, now);
        self.backlog.admit(server);
    }

    /// Sets a server's limit of concurrent requests; 0: none.
    pub fn set_maxconn(&self, server: &Arc<Server>, maxconn: u32) {
        server.set_maxconn(maxconn);
        self.backlog.admit(server);
    }

    /// Sets the address of a server over IP, and its port if there is one. Returns the change and its author, in
    /// HAProxy's words, and logs it. `None`: nothing changed. Requests on their way stay where they are; checks, other
    /// requests and their connections go to the new address.
    pub fn set_address(&self, server: &Arc<Server>, ip: IpAddr, port: Option<Port>, by: &str) -> Option<String> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = server.address().destination()?;
        let mut new = Destination { ip, port: port.unwrap_or(old.port) };
        let mut changes = Vec::new();
        if old.ip != ip {
            let before =
                if server.name_in_dns().is_some() && old.ip.is_unspecified() { "(none)".into() } else { old.ip.to_string() };
            changes.push(format!("IP changed from '{before}' to '{ip}'"));
        }
        let is_checked = server.settings().check.enabled;
        if let (Port::Fixed(_), Port::Offset(_), true, None) = (old.port, new.port, is_checked, server.aim().check_port) {
            new.port = old.port;
            changes.push(NO_PORT_TO_CHECK.into());
        }
        if old.port != new.port {
            changes.push(format!("port changed from '{}' to '{}'", old.port, new.port));
        }
        if old == new {
            return None;
        }
        server.set_address(new.into());
        if matches!(server.settings().ring_key, RingKey::Address | RingKey::AddressAndPort) {
            self.rebuild();
        }
        let text = format!("{} by '{by}'", changes.join(", "));
        self.say(Level::Notice, &format!("{}/{}: {text}.", self.name(), server.name()));
        Some(text)
    }

    /// Sets the address and the port of a server over IP without a log line: a change of its state reports it.
    pub fn set_address_quietly(&self, server: &Arc<Server>, ip: IpAddr, port: Port) {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Destination { ip, port };
        if server.address().destination().is_none_or(|old| old == new) {
            return;
        }
        server.set_address(new.into());
        if matches!(server.settings().ring_key, RingKey::Address | RingKey::AddressAndPort) {
            self.rebuild();
        }
    }

    /// Sets another DNS name of a server that has `resolvers`, which is resolved from now on; until it has an address
    /// the server stays where it is. Returns the change and its author, in HAProxy's words, and logs it. `None`:
    /// nothing changed.
    pub fn set_name_in_dns(self: &Arc<Farm>, server: &Arc<Server>, name: &str, by: &str) -> Option<String> {
        let old = server.name_in_dns();
        if old.as_deref() == Some(name) {
            return None;
        }
        server.set_name_in_dns(name);
        if let Some(watchers) = self.context.wardens.names.get() {
            // There is no receiver where the process is about to end.
            let _ = watchers.send((self.clone(), server.clone()));
        }
        let old = old.as_deref().unwrap_or("(null)");
        let text = format!("{}/{} changed its FQDN from {old} to {name} by '{by}'", self.name(), server.name());
        self.say(Level::Notice, &format!("{text}."));
        Some(text)
    }

    /// Sets the host that a server stands for, where its own name is that of a service, and logs a new one.
    pub fn set_place_in_dns(&self, server: &Server, target: Option<&str>) {
        if server.place_in_dns().as_deref() == target {
            return;
        }
        server.set_place_in_dns(target);
        if let Some(target) = target {
            let text = format!("{}/{} changed its FQDN from (null) to {target} by 'SRV record'.", self.name(), server.name());
            self.say(Level::Notice, &text);
        }
    }

    /// Records the outcome of a health check.
    pub fn record_check(&self, server: &Arc<Server>, check: LastCheck, now: Instant) {
        let rules = server.settings().rules();
        let before = server.state();
        let event = check.status.event(before.operation);
        let news = check.status != server.last_check().status || before.next(rules, event).health != before.health;
        if check.status.is_pass() {
            server.count_errors(false);
        }
        if event == Event::Failed && before.health > 0 {
            server.counters.bump(Count::FailedChecks);
            self.counters.bump(Count::FailedChecks);
        }
        let cause = if self.settings.log_health_checks { String::new() } else { check.to_string() };
        server.set_last_check(check.clone());
        if news && self.settings.log_health_checks && !before.admin.is_maint() {
            self.say(Level::Notice, &check_line(self, server, &check, before.next(rules, event)));
        }
        if news && !before.admin.is_maint() {
            let news = || News::Checked(checked(server, &check, before.next(rules, event).health));
            self.tell(server, news);
        }
        self.change(server, event, cause, now);
    }

    /// Records that a server's name has an address, or the reason why it has none.
    pub fn set_resolved(&self, server: &Arc<Server>, outcome: Result<(), &str>, now: Instant) {
        let cause = outcome.err().map(|why| format!(" ({why})")).unwrap_or_default();
        self.change(server, Event::Resolved(outcome.is_ok()), cause, now);
    }

    /// Records a request's outcome for a server's health (`observe`): `problem` is its fault, if any.
    pub fn observe(&self, server: &Arc<Server>, problem: Option<&str>, now: Instant) {
        let settings = server.settings();
        if !settings.check.enabled {
            return;
        }
        let errors = server.count_errors(problem.is_some());
        let Some(problem) = problem.filter(|_| errors >= settings.observe.error_limit) else { return };
        server.count_errors(false);
        server.counters.bump(Count::AnalysisFailures);
        let info = format!("Detected {errors} consecutive errors, last one was: {problem}");
        let found = LastCheck { status: CheckStatus::Observed, info, ..LastCheck::default() };
        let left = match settings.observe.on_error {
            OnError::FastInter | OnError::FailCheck => None,
            OnError::SuddenDeath => Some(1),
            OnError::MarkDown => Some(0),
        };
        if let Some(left) = left {
            self.change(server, Event::Weakened(left), String::new(), now);
        }
        if settings.observe.on_error != OnError::FastInter {
            self.record_check(server, found, now);
        }
        server.hurry();
    }

    /// Records the outcome of an agent check. Only an answer counts, not a failure to ask.
    pub(crate) fn record_agent(&self, server: &Arc<Server>, answer: LastCheck, now: Instant) {
        let is_news = answer.status != server.last_agent().status;
        server.set_last_agent(answer.clone());
        let logs = self.settings.log_health_checks;
        let cause = if logs { String::new() } else { answer.to_string() };
        let up = match answer.status {
            CheckStatus::L7Ok => Some(true),
            CheckStatus::L7Status => Some(false),
            _ => None,
        };
        if logs && is_news && answer.status.result() > NEUTRAL {
            let is_up = up.unwrap_or(!server.state().denied);
            self.say(Level::Notice, &agent_line(self, server, is_up, &answer));
        }
        if is_news && answer.status.result() > NEUTRAL {
            let news = || News::Checked(answered(&answer, up.unwrap_or(!server.state().denied)));
            self.tell(server, news);
        }
        if let Some(up) = up {
            self.set_agent(server, up, cause, now);
        }
    }

    /// Records the health that an agent reports, without a transition yet.
    pub(crate) fn set_agent_health(&self, server: &Arc<Server>, up: bool, now: Instant) {
        self.change(server, Event::AgentHealth(up), String::new(), now);
    }

    /// Sets an agent's report in its place, on an operator's command.
    pub fn set_agent(&self, server: &Arc<Server>, up: bool, cause: String, now: Instant) {
        self.change(server, Event::Agent(up), cause, now);
    }

    /// Lets the weight of a starting server grow; true while it does.
    pub(crate) fn grow(&self, server: &Arc<Server>, now: Instant) -> bool {
        if server.operation() != Operation::Starting {
            return false;
        }
        let since = report::since_change(self, server, now);
        let percent = (since.as_millis() * 100 / server.settings().slowstart.as_millis().max(1)) as u32;
        if percent >= 100 {
            self.change(server, Event::Grown, String::new(), now);
        } else {
            let _lock = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            server.set_grown_percent(percent);
            self.rebuild();
        }
        self.backlog.admit(server);
        percent < 100
    }

    /// Makes a server take its state from another, now and at each change. The caller ensures that no server follows
    /// itself. Of several followers, the last is updated first.
    pub fn follow(self: &Arc<Farm>, server: &Arc<Server>, leader: &Arc<Server>, leader_farm: &Farm, now: Instant) {
        leader.followers().insert(0, (Arc::downgrade(self), Arc::downgrade(server)));
        server.set_leader(leader, &leader_farm.context.name);
        let cause = format!(" via {}/{}", leader_farm.name(), leader.name());
        self.change(server, Event::Tracked(leader.state()), cause, now);
    }

    /// Applies an event, and passes the state on to the followers of this server.
    fn change(&self, server: &Arc<Server>, event: Event, cause: String, now: Instant) {
        self.change_one(server, event, cause, now);
        self.tell_followers(server, now);
    }

    /// Passes the state on to the followers of a server, and to theirs.
    pub(crate) fn tell_followers(&self, server: &Server, now: Instant) {
        let followers: Vec<_> = {
            let mut followers = server.followers();
            followers.retain(|(_, follower)| follower.upgrade().is_some_and(|follower| !follower.is_gone()));
            followers.clone()
        };
        for (farm, follower) in followers {
            let (Some(farm), Some(follower)) = (farm.upgrade(), follower.upgrade()) else { continue };
            let cause = format!(" via {}/{}", self.name(), server.name());
            farm.change(&follower, Event::Tracked(server.state()), cause, now);
        }
    }

    /// Applies an event. `cause` comes in the line after the event.
    fn change_one(&self, server: &Arc<Server>, event: Event, cause: String, now: Instant) {
        let mut outage = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, up_before) = (server.state(), self.up());
        let rules = server.settings().rules();
        let new = match (event, server.leader()) {
            // An operator's command does not bring up a follower of a server that is down.
            (Event::Admin(_), Some(leader)) => old.next(rules, event).next(rules, Event::Tracked(leader.state())),
            _ => old.next(rules, event),
        };
        if new == old || server.is_gone() {
            return;
        }
        server.set_state(new);
        if (old.operation, old.admin) == (new.operation, new.admin) {
            return;
        }
        if new.operation == Operation::Starting && old.operation != Operation::Starting {
            server.set_grown_percent(0);
        }
        self.rebuild();
        self.note_operation(server, old.operation, new.operation, now);
        self.end_streams(server, old.operation, new.operation);
        let leaves = !server.is_eligible();
        let moved = if leaves { self.backlog.turn_away(Some(server)) } else { self.backlog.admit(server) };
        if leaves && self.backlog.waiting() > 0 {
            // After the last active server has gone, backups serve the requests that wait for any.
            self.servers().iter().filter(|other| other.serves_any()).for_each(|other| {
                self.backlog.admit(other);
            });
        }
        if let Some((level, line)) = line(self, server, old, new, &cause, moved) {
            self.say(level, &line);
        }
        let news = || News::Changed(change(server, event, (old, new), &cause, moved));
        self.tell(server, news);
        if old.admin.is_maint() && !new.admin.is_maint() && new.admin.is_drain() {
            self.say(Level::Notice, &still_drains(self, server, new));
        }
        self.note_outage(&mut outage, up_before, now);
    }

    /// Ends the streams that must not outlive the change.
    fn end_streams(&self, server: &Server, old: Operation, new: Operation) {
        match (old, new) {
            (Operation::Stopped, Operation::Running | Operation::Starting) if server.settings().ends_backup_sessions => {
                let is_active = !server.settings().backup && server.is_eligible();
                for backup in self.servers().iter().filter(|other| is_active && other.settings().backup) {
                    (self.context.ends)(backup, Ending::Replaced);
                }
            }
            (old, Operation::Stopped) if old != Operation::Stopped && server.settings().ends_sessions => {
                (self.context.ends)(server, Ending::Down);
            }
            _ => {}
        }
    }

    fn note_operation(&self, server: &Server, old: Operation, new: Operation, now: Instant) {
        if old == new || (old, new) == (Operation::Starting, Operation::Running) {
            return;
        }
        let now_ms = self.since_start(now).as_millis() as u64;
        let (changed, mut down) = server.changed_ms();
        if old == Operation::Stopped {
            down += now_ms.saturating_sub(changed);
        } else if new == Operation::Stopped {
            server.counters.bump(Count::WentDown);
        }
        server.set_changed_ms(now_ms, down);
    }

    /// Records that the backend lost its last server, or got its first one back.
    fn note_outage(&self, outage: &mut Outage, before: (u32, u32), now: Instant) {
        let now = self.since_start(now);
        match (before != (0, 0), self.is_up()) {
            (true, false) => {
                outage.changed = now;
                self.counters.bump(Count::WentDown);
                self.backlog.turn_away(None);
                self.say(Level::Emergency, &format!("{} {} has no server available!", self.context.kind, self.name()));
            }
            (false, true) => {
                outage.down += now.saturating_sub(outage.changed);
                outage.changed = now;
            }
            _ => {}
        }
    }

    /// The time of an instant, from the start of the process.
    pub(crate) fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.context.started)
    }

    pub(crate) fn say(&self, level: Level, line: &str) {
        (self.context.journal)(level, line);
    }

    /// Passes on news of a server, which are made for a listener alone.
    pub(crate) fn tell(&self, server: &Server, news: impl FnOnce() -> News) {
        let Some(listen) = self.context.wardens.news.get() else { return };
        let subject =
            Subject { backend: self.name(), backend_id: self.id(), name: server.name(), id: server.id(), index: server.index() };
        listen(&subject, &news());
    }
}

/// The change by an event; `cause`: that of the log line.
fn change(server: &Server, event: Event, (old, new): (State, State), cause: &str, moved: usize) -> Change {
    let check = match event {
        Event::Passed | Event::PassedStopping | Event::Failed => Some(checked(server, &server.last_check(), new.health)),
        Event::Agent(up) if !cause.contains("CLI") => Some(answered(&server.last_agent(), up)),
        _ => None,
    };
    // The words of a check are those of its result; a tracked server's news come with its own.
    let cause = if check.is_some() || matches!(event, Event::Tracked(_)) { "" } else { cause };
    let cause = cause.trim_start_matches([',', ' ', '(']).trim_end_matches(')').to_owned();
    let by_admin = old.admin != new.admin || matches!(event, Event::Admin(_) | Event::Resolved(_));
    Change { old, new, by_admin, cause, moved, check }
}

/// The outcome of a server's check, with the health that it leads to.
fn checked(server: &Server, check: &LastCheck, health: u32) -> Checked {
    let settings = &server.settings().check;
    Checked { agent: false, health, rise: settings.rise, fall: settings.fall, ..answered(check, true) }
}

/// An agent's answer: one is enough.
fn answered(check: &LastCheck, up: bool) -> Checked {
    let status = check.status;
    Checked {
        agent: true,
        result: status.result(),
        short: status.code(),
        text: status.text(),
        code: status.has_code().then_some(check.code),
        duration: check.duration,
        health: u32::from(up),
        rise: 1,
        fall: 1,
    }
}

/// Highest result of a check that brings no news.
const NEUTRAL: u8 = 1;

/// HAProxy's words.
const NO_PORT_TO_CHECK: &str = "can't change <port> to port map because it is incompatible with current health check port configuration \
    (use 'port' statement from the 'server' directive).";

/// Log line of a check whose result is news (`option log-health-checks`).
fn check_line(farm: &Farm, server: &Server, check: &LastCheck, state: State) -> String {
    let backup = if server.settings().backup { "backup " } else { "" };
    let conditionally = if check.status.event(Operation::Running) == Event::PassedStopping { "conditionally " } else { "" };
    let outcome = if check.status.is_pass() { "succeeded" } else { "failed" };
    let settings = &server.settings().check;
    let (health, of, word) = match state.health >= settings.rise {
        true => (state.health - settings.rise + 1, settings.fall, if server.weight() == 0 { "DRAIN" } else { "UP" }),
        false => (state.health, settings.rise, "DOWN"),
    };
    let (farm, name) = (farm.name(), server.name());
    format!("Health check for {backup}server {farm}/{name} {conditionally}{outcome}{check}, status: {health}/{of} {word}.")
}

/// Log line of an agent whose answer is news (`option log-health-checks`). A single word is enough for it.
fn agent_line(farm: &Farm, server: &Server, is_up: bool, answer: &LastCheck) -> String {
    let backup = if server.settings().backup { "backup " } else { "" };
    let outcome = if answer.status.is_pass() { "succeeded" } else { "failed" };
    let status = match is_up {
        true if server.weight() == 0 => "1/1 DRAIN",
        true => "1/1 UP",
        false => "0/1 DOWN",
    };
    format!("Agent check for {backup}server {}/{} {outcome}{answer}, status: {status}.", farm.name(), server.name())
}

/// Log line of a server that leaves maintenance, and still drains.
fn still_drains(farm: &Farm, server: &Server, state: State) -> String {
    let backup = if server.settings().backup { "Backup " } else { "" };
    let how = if state.admin.is_forced_drain() { "forced drain mode".into() } else { format!("drain mode{}", via(server)) };
    format!("{backup}Server {}/{} remains in {how}.", farm.name(), server.name())
}

/// The tracked server, in the words of log lines.
fn via(server: &Server) -> String {
    server.leader_name().map_or_else(String::new, |name| format!(" via {name}"))
}

/// Log line of a change, and its severity.
fn line(farm: &Farm, server: &Server, old: State, new: State, cause: &str, moved: usize) -> Option<(Level, String)> {
    let was_leaving = old.operation == Operation::Stopping || old.admin.is_drain();
    let up = if new.operation == Operation::Stopped { "DOWN" } else { "UP" };
    let drains = if new.admin.is_drain() { "DRAIN" } else { "READY" };
    let down_level = if was_leaving { Level::Notice } else { Level::Alert };
    let (level, happened, counts) = match (old.admin.is_maint(), new.admin.is_maint()) {
        (false, true) if old.operation == Operation::Stopped => {
            (Level::Notice, format!("was DOWN and now enters maintenance{cause}"), false)
        }
        (false, true) => (down_level, format!("is going DOWN for maintenance{cause}"), true),
        (true, false) if old.admin.is_inherited_maint() => {
            (Level::Notice, format!("is {up}/{drains} (leaving maintenance)"), false)
        }
        (true, false) if old.admin.is_unresolved() => {
            let name = server.place_in_dns().or_else(|| server.name_in_dns()).unwrap_or_default();
            (Level::Notice, format!("('{name}') is {up}/{drains} (resolves again)"), false)
        }
        (true, false) => (Level::Notice, format!("is {up}/{drains} (leaving forced maintenance)"), false),
        (true, true) => {
            let gone = |is: fn(Admin) -> bool| is(old.admin) && !is(new.admin);
            if gone(Admin::is_unresolved) {
                let name = server.place_in_dns().or_else(|| server.name_in_dns()).unwrap_or_default();
                (Level::Notice, format!("('{name}') resolves again but remains in maintenance{}", via(server)), false)
            } else if gone(Admin::is_inherited_maint) {
                (Level::Notice, "remains in forced maintenance".into(), false)
            } else if gone(Admin::is_forced_maint) {
                (Level::Notice, format!("is leaving forced maintenance but remains in maintenance{}", via(server)), false)
            } else {
                return None;
            }
        }
        (false, false) => match (old.admin.is_drain(), new.admin.is_drain()) {
            (false, true) => (Level::Notice, format!("enters drain state{cause}"), true),
            (true, false) if old.admin.is_forced_drain() => (Level::Notice, format!("is {up} (leaving forced drain)"), false),
            (true, false) => (Level::Notice, format!("is {up} (leaving drain){}", via(server)), false),
            (true, true) if old.admin != new.admin => match new.admin.is_forced_drain() {
                true => (Level::Notice, "remains in forced drain mode".into(), false),
                false => (Level::Notice, format!("remains in drain mode{}", via(server)), false),
            },
            _ => match (old.operation, new.operation) {
                (from, to) if from == to => return None,
                (Operation::Starting, Operation::Running) => return None,
                (_, Operation::Stopped) => (down_level, format!("is DOWN{cause}"), true),
                (_, Operation::Stopping) => (Level::Notice, format!("is stopping{cause}"), true),
                _ => (Level::Notice, format!("is UP{cause}"), true),
            },
        },
    };
    let backup = if server.settings().backup { "Backup " } else { "" };
    let mut line = format!("{backup}Server {}/{} {happened}", farm.name(), server.name());
    if counts {
        let (active, backups) = farm.up();
        let on_backup = if active == 0 && backups != 0 { " Running on backup." } else { "" };
        let (served, queued) = (server.served(), server.queued());
        line.push_str(&match new.operation {
            Operation::Stopped => format!(
                ". {active} active and {backups} backup servers left.{on_backup} {served} sessions active, {moved} requeued, \
                 {queued} remaining in queue"
            ),
            _ => format!(
                ". {active} active and {backups} backup servers online.{on_backup} {moved} sessions requeued, {queued} total in queue"
            ),
        });
    }
    line.push('.');
    Some((level, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckStatus;
    use crate::fixture::logged;
    use crate::report;

    fn check(status: CheckStatus, code: u16, info: &str) -> LastCheck {
        LastCheck { status, code, info: info.into(), duration: Duration::from_millis(2) }
    }

    fn refused() -> LastCheck {
        check(CheckStatus::L4Connection, 0, "Connection refused")
    }

    #[test]
    fn lines_of_a_server_that_goes_and_comes() {
        let (farm, log) = logged("server s1 10.0.0.1:80 check rise 1 fall 2\nserver s2 10.0.0.2:80 backup");
        let (server, now) = (&farm.servers()[0], Instant::now());
        farm.record_check(server, check(CheckStatus::L4Ok, 0, ""), now);
        assert_eq!(log.texts(), [""; 0]);
        farm.record_check(server, refused(), now);
        assert_eq!((log.texts(), report::status(server)), (vec![], "UP 1/2".into()));
        farm.record_check(server, refused(), now);
        let line = "Server be/s1 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", check duration: 2ms. \
                    0 active and 1 backup servers left. Running on backup. 0 sessions active, 0 requeued, 0 remaining in queue.";
        assert_eq!(log.take(), [(Level::Alert, line.into())]);
        farm.record_check(server, refused(), now);
        farm.record_check(server, check(CheckStatus::L7Ok, 200, ""), now);
        let line = "Server be/s1 is UP, reason: Layer7 check passed, code: 200, check duration: 2ms. \
                    1 active and 1 backup servers online. 0 sessions requeued, 0 total in queue.";
        assert_eq!(log.take(), [(Level::Notice, line.into())]);
        assert_eq!((server.counters.total(Count::FailedChecks), server.counters.total(Count::WentDown)), (2, 1));
    }

    #[test]
    fn lines_of_checks_that_are_logged() {
        let (farm, log) =
            logged("option log-health-checks\nserver s1 10.0.0.1:80 check rise 1 fall 1\nserver s2 10.0.0.2:80 check");
        let now = Instant::now();
        farm.record_check(&farm.servers()[0], check(CheckStatus::L4Ok, 0, ""), now);
        farm.record_check(&farm.servers()[0], check(CheckStatus::L4Ok, 0, ""), now);
        farm.record_check(&farm.servers()[1], check(CheckStatus::L7OkStopping, 404, ""), now);
        farm.record_check(&farm.servers()[0], refused(), now);
        assert_eq!(
            log.texts(),
            [
                "Health check for server be/s1 succeeded, reason: Layer4 check passed, check duration: 2ms, status: 1/1 UP.",
                "Health check for server be/s2 conditionally succeeded, reason: Layer7 check conditionally passed, code: 404, check \
                 duration: 2ms, status: 3/3 UP.",
                "Server be/s2 is stopping. 1 active and 0 backup servers online. 0 sessions requeued, 0 total in queue.",
                "Health check for server be/s1 failed, reason: Layer4 connection problem, info: \"Connection refused\", check \
                 duration: 2ms, status: 0/1 DOWN.",
                "Server be/s1 is DOWN. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.",
                "backend be has no server available!",
            ]
        );
    }

    #[test]
    fn lines_of_an_operators_words() {
        let (farm, log) = logged("server s1 10.0.0.1:80 check\nserver s2 10.0.0.2:80 disabled");
        let now = Instant::now();
        let said = |server: usize, order| {
            farm.set_admin(&farm.servers()[server], order, now);
            log.take()
        };
        let down = "Server be/s1 is going DOWN for maintenance. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 \
                    remaining in queue.";
        let lost = "backend be has no server available!";
        assert_eq!(said(0, AdminOrder::Maint), [(Level::Alert, down.into()), (Level::Emergency, lost.into())]);
        assert_eq!(said(0, AdminOrder::Maint), []);
        let back = |server, state| (Level::Notice, format!("Server be/{server} is UP/{state} (leaving forced maintenance)."));
        assert_eq!(said(0, AdminOrder::Ready), [back("s1", "READY")]);
        let still = (Level::Notice, "Server be/s2 remains in forced drain mode.".into());
        assert_eq!(said(1, AdminOrder::Drain), [back("s2", "DRAIN"), still]);
        assert_eq!(said(1, AdminOrder::Ready), [(Level::Notice, "Server be/s2 is UP (leaving forced drain).".into())]);
        assert!(said(1, AdminOrder::Drain)[0].1.starts_with("Server be/s2 enters drain state. 1 active"));
        farm.set_health(&farm.servers()[0], Operation::Stopped, now);
        assert!(log.texts()[0].starts_with("Server be/s1 is DOWN, changed from CLI. 0 active"));
        assert_eq!(said(0, AdminOrder::Maint)[0].1, "Server be/s1 was DOWN and now enters maintenance.");
    }

    #[test]
    fn times_are_counted() {
        let (farm, _) = logged("server s1 10.0.0.1:80");
        let (server, start) = (&farm.servers()[0], farm.context.started);
        let at = |seconds| start + Duration::from_secs(seconds);
        farm.set_admin(server, AdminOrder::Maint, at(10));
        assert_eq!(report::since_change(&farm, server, at(13)), Duration::from_secs(3));
        assert_eq!(report::downtime(&farm, server, at(13)), Duration::from_secs(3));
        farm.set_admin(server, AdminOrder::Ready, at(15));
        assert_eq!(report::downtime(&farm, server, at(23)), Duration::from_secs(5));
        assert_eq!(report::backend_times(&farm, at(23)), (Duration::from_secs(8), Duration::from_secs(5)));
    }
}
