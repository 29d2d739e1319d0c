//! States of servers from a file: the output of `show servers state` before a reload (format version 1).
//!
//! As with HAProxy the configuration decides where it has changed since: on maintenance where `disabled` came or went,
//! on weights where the line has another one. A server that is no longer checked starts in the state of its line, since
//! nothing would ever bring it back.

use crate::check::{CheckStatus, LastCheck};
use crate::destination::Port;
use crate::farm::Farm;
use crate::report::{CONFIGURED, ENABLED, MOVED_IN_DNS};
use crate::server::{Server, is_name};
use crate::state::{Admin, Event, Operation, State};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::Instant;

/// The lines of a file, by backend and server.
#[derive(Debug)]
pub struct States {
    lines: HashMap<Box<str>, HashMap<Box<str>, Line>>,
}

/// Fields of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Line {
    address: Option<IpAddr>,
    operation: Operation,
    admin: Admin,
    weight: u32,
    initial_weight: u32,
    check_status: CheckStatus,
    check_health: u32,
    check_state: u8,
    agent_state: u8,
    /// DNS name that an operator gave.
    name_in_dns: Option<Box<str>>,
    /// A service, and its host.
    place_in_dns: Option<(Box<str>, Box<str>)>,
    port: u16,
    secure: bool,
    check_port: Option<u16>,
    check_address: Option<IpAddr>,
    agent_address: Option<IpAddr>,
    agent_port: Option<u16>,
}

impl States {
    /// Parses a file.
    ///
    /// # Errors
    /// It is not of this version, or a line is not complete: the whole file is rejected.
    pub fn read(text: &str) -> Result<States, String> {
        let mut lines = text.lines().zip(1..);
        match lines.next() {
            Some(("1", _)) => {}
            Some((version, _)) => return Err(format!("'{}' is no version of a file of states: '1' is", version.escape_debug())),
            None => return Err("it is empty".into()),
        }
        // A number that is cut in its middle would read as another one.
        if !text.ends_with('\n') {
            return Err("its last line has no end: it was cut".into());
        }
        let mut states: HashMap<Box<str>, HashMap<Box<str>, Line>> = HashMap::new();
        for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (Some(backend), Some(server), Some(said)) = (words.get(1), words.get(3), Line::read(&words)) else {
                return Err(format!("line {number} is no state of a server"));
            };
            let servers = match states.get_mut(*backend) {
                Some(servers) => servers,
                None => states.entry((*backend).into()).or_default(),
            };
            servers.insert((*server).into(), said);
        }
        Ok(States { lines: states })
    }
}

impl Line {
    fn read(words: &[&str]) -> Option<Line> {
        if words.len() < LEAST_WORDS {
            return None;
        }
        let word = |at: usize| words.get(at).copied();
        let number = |at: usize| word(at)?.parse::<u32>().ok();
        // Columns that older versions of HAProxy do not have.
        let ip = |at: usize| word(at).and_then(|word| word.parse().ok());
        let port = |at: usize| word(at).and_then(|word| word.parse::<u16>().ok()).filter(|port| *port != 0);
        let admin = u8::try_from(number(6)?).ok()?;
        let service = word(19).filter(|record| record.starts_with('_'));
        let name = word(17).filter(|name| is_name(name));
        Some(Line {
            address: ip(4),
            operation: Operation::of_number(number(5)?)?,
            admin: Admin(admin & !MOVED_IN_DNS),
            weight: number(7).filter(|weight| *weight <= 256)?,
            initial_weight: number(8).filter(|weight| *weight <= 256)?,
            check_status: CheckStatus::of_number(number(10)?),
            check_health: number(12)?,
            check_state: u8::try_from(number(13)?).ok()?,
            agent_state: u8::try_from(number(14)?).ok()?,
            name_in_dns: name.filter(|_| admin & MOVED_IN_DNS != 0 && service.is_none()).map(Into::into),
            place_in_dns: service.zip(name.filter(|name| *name != "-")).map(|(service, name)| (service.into(), name.into())),
            port: word(18)?.parse().ok()?,
            secure: word(20) == Some("1"),
            check_port: port(21),
            check_address: ip(22),
            agent_address: ip(23),
            agent_port: port(24),
        })
    }

    /// State in which a server begins.
    fn state(&self, server: &Server) -> State {
        let rules = server.settings().rules();
        let has_address = server.address().destination().is_some_and(|found| !found.ip.is_unspecified());
        let old = match server.state() {
            lost if lost.admin.is_unresolved() && has_address => lost.next(rules, Event::Resolved(true)),
            state => state,
        };
        let is_asked = rules.checked || server.settings().agent.enabled;
        let was_asked = self.check_state != 0 || self.agent_state != 0;
        let (operation, health) = match self.operation {
            // A server that was only in maintenance begins as its line sets where it is not in maintenance now.
            Operation::Stopped if self.admin.is_maint() => (old.operation, old.health),
            Operation::Stopped | Operation::Stopping if was_asked && !is_asked => (old.operation, old.health),
            Operation::Stopped if !rules.checked && is_asked => (Operation::Stopped, rules.rise),
            Operation::Stopped => (Operation::Stopped, 0),
            Operation::Starting if rules.slow => (Operation::Starting, rules.best()),
            Operation::Starting | Operation::Running if rules.checked => (Operation::Running, rules.best()),
            Operation::Starting | Operation::Running => (Operation::Running, self.check_health.clamp(rules.rise, rules.best())),
            Operation::Stopping => (Operation::Stopping, self.check_health.clamp(rules.rise, rules.best())),
        };
        let (configured, was_configured) = (old.admin.is_configured_maint(), self.admin.is_configured_maint());
        let mut admin = old.admin;
        if configured == was_configured {
            admin = admin.forced(self.admin.is_forced_maint());
        }
        let own_weight = server.settings().weight;
        let drains = self.admin.is_forced_drain() && (self.initial_weight > 0 || own_weight == 0);
        let admin = admin.drained(drains && !admin.is_forced_maint());
        match admin.is_maint() {
            true => {
                State { operation: Operation::Stopped, admin, health: if rules.checked { 0 } else { rules.rise }, denied: false }
            }
            false => {
                // Only its agent can bring it up again.
                let denied = operation == Operation::Stopped && !rules.checked && server.settings().agent.enabled;
                State { operation, admin, health, denied }
            }
        }
    }
}

/// Number of columns of each line of version 1, up to the server's SRV record; later versions have more.
const LEAST_WORDS: usize = 20;

impl Farm {
    /// Starts its servers in the states of a file. Returns messages about unknown servers. After the last farm, servers
    /// that track others follow them again ([`Farm::lead`]).
    pub fn restore(&self, states: &States) -> Vec<String> {
        let Some(lines) = states.lines.get(self.name()) else { return Vec::new() };
        let servers = self.servers();
        let mut unknown: BTreeSet<&str> = lines.keys().map(|name| &**name).collect();
        for server in servers.iter() {
            let Some(line) = lines.get(&**server.name()) else { continue };
            unknown.remove(&**server.name());
            self.move_back(server, line);
            let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            server.set_state(line.state(server));
            if line.initial_weight == server.settings().weight {
                server.set_weight(line.weight);
            }
            if line.check_status != CheckStatus::Initial && server.settings().check.enabled {
                server.set_last_check(LastCheck { status: line.check_status, ..LastCheck::default() });
            }
            let stopped = |state: u8| state & CONFIGURED != 0 && state & ENABLED == 0;
            server.set_checked(server.is_checked() && !stopped(line.check_state));
            server.set_asked(server.is_asked() && !stopped(line.agent_state));
        }
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.rebuild();
        unknown.into_iter().map(|name| format!("can't find server '{name}' in backend '{}'", self.name())).collect()
    }

    /// Lets servers that track its servers take their states again, and those that track these in turn.
    pub fn lead(&self, now: Instant) {
        for server in self.servers().iter().filter(|server| server.leader().is_none()) {
            self.tell_followers(server, now);
        }
    }

    /// Restores the destinations of requests, health checks and agent checks.
    fn move_back(&self, server: &Server, line: &Line) {
        let settings = server.settings();
        if let Some(name) = &line.name_in_dns
            && server.takes_names()
        {
            server.set_name_in_dns(name);
        }
        if let Some((_, target)) =
            line.place_in_dns.as_ref().filter(|(service, _)| settings.name_in_dns.as_deref() == Some(service))
        {
            server.set_place_in_dns(Some(target));
        }
        if let Some(mut there) = server.address().destination() {
            let wants_last = server.name_in_dns().is_some() && settings.prefers_last();
            there.ip = line.address.filter(|_| wants_last).unwrap_or(there.ip);
            if let (Port::Fixed(_), 1..) = (there.port, line.port) {
                there.port = Port::Fixed(line.port);
            }
            if Some(there) != server.address().destination() {
                server.set_address(there.into());
            }
        }
        if server.may_switch_security() {
            server.set_secure(line.secure);
        }
        server.change_aim(|aim| {
            if settings.check.enabled {
                aim.check_address = line.check_address.or(aim.check_address);
                aim.check_port = line.check_port.or(aim.check_port);
            }
            if settings.agent.enabled {
                aim.agent_address = line.agent_address.or(aim.agent_address);
                aim.agent_port = line.agent_port.or(aim.agent_port);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::farm;
    use crate::report::{STATE_HEADER, state_line};
    use crate::state::AdminOrder;
    use proptest::prelude::*;

    fn saved(farm: &Farm) -> String {
        let now = Instant::now();
        let lines: Vec<String> = farm.servers().iter().map(|server| state_line(farm, server, now)).collect();
        format!("{STATE_HEADER}\n{}\n", lines.join("\n"))
    }

    /// Fields of its lines except for the seconds since the last change.
    fn timeless(text: &str) -> Vec<Vec<&str>> {
        let words = text.lines().map(|line| line.split(' ').enumerate().filter(|(at, _)| *at != 9));
        words.map(|words| words.map(|(_, word)| word).collect()).collect()
    }

    const LINES: &str =
        "server a 10.0.0.1:80 check\nserver b 10.0.0.2:80 weight 9\nserver c 10.0.0.3:80 disabled\nserver d 10.0.0.4:80";

    #[test]
    fn states_survive() {
        let old = farm(LINES);
        let (server, now) = (|name: &str| old.find_server(name).unwrap().clone(), Instant::now());
        old.set_health(&server("a"), Operation::Stopped, now);
        old.set_weight(&server("b"), 4, now);
        old.set_admin(&server("c"), AdminOrder::Ready, now);
        old.set_admin(&server("d"), AdminOrder::Drain, now);
        server("a").set_checked(false);
        server("a").change_aim(|aim| aim.check_port = Some(81));
        let text = saved(&old);
        let new = farm(LINES);
        assert_eq!(new.restore(&States::read(&text).unwrap()), [""; 0]);
        assert_eq!(timeless(&saved(&new)), timeless(&text));
        assert_eq!(new.up(), (2, 0), "b and c");
    }

    #[test]
    fn names_that_operators_gave_survive() {
        let lines = "server a 10.0.0.1:80 resolvers r\nserver b 10.0.0.2:80\nserver c one.test:80 init-addr none resolvers r";
        let (old, new) = (farm(lines), farm(lines));
        for (server, name) in old.servers().iter().zip(["x.test", "y.test", "z.test"]) {
            server.set_name_in_dns(name);
        }
        assert_eq!(old.set_name_in_dns(&old.servers()[0], "x.test", "test"), None);
        let text = old.set_name_in_dns(&old.servers()[2], "one.test", "test");
        assert_eq!(text.as_deref(), Some("be/c changed its FQDN from z.test to one.test by 'test'"));
        let text = saved(&old);
        assert!(text.contains("3 be 1 a 10.0.0.1 2 64 ") && text.contains(" x.test 80 -"), "{text}");
        new.restore(&States::read(&text).unwrap());
        let names: Vec<_> = new.servers().iter().map(|server| server.name_in_dns()).collect();
        assert_eq!(names, [Some("x.test".into()), None, Some("one.test".into())]);
        assert_eq!(new.servers()[0].admin().0, 0);
    }

    #[test]
    fn what_the_configuration_has_changed_counts() {
        let old =
            farm("server a 10.0.0.1:80 disabled\nserver b 10.0.0.2:80\nserver c 10.0.0.3:80 weight 5\nserver d 10.0.0.4:80 check");
        let now = Instant::now();
        old.set_weight(&old.servers()[2], 7, now);
        old.set_health(&old.servers()[3], Operation::Stopped, now);
        let text = saved(&old);
        let new = farm("server a 10.0.0.1:80\nserver b 10.0.0.2:80 disabled\nserver c 10.0.0.3:80 weight 6\nserver d 10.0.0.4:80");
        new.restore(&States::read(&text).unwrap());
        let servers = new.servers();
        assert_eq!((servers[0].admin().0, servers[1].admin().0, servers[2].weight()), (0, 5, 6));
        assert!(servers[3].is_up(), "nothing would bring it back");
        let none = farm("server x 10.0.0.1:80");
        assert_eq!(none.restore(&States::read(&text).unwrap())[0], "can't find server 'a' in backend 'be'");
    }

    #[test]
    fn what_is_no_such_file_counts_for_nothing() {
        for (text, why) in
            [("", "empty"), ("2\n", "'2' is no version"), ("1\n3 be 1 a 10.0.0.1 9 0 1 1\n", "line 2"), ("1\nx\n", "line 2")]
        {
            assert!(States::read(text).unwrap_err().contains(why), "{text:?}");
        }
    }

    #[test]
    fn what_was_cut_counts_for_nothing() {
        let text = saved(&farm("server a 10.0.0.1:8080"));
        assert!(States::read(&text).is_ok());
        for end in 2..text.len() {
            assert!(States::read(&text[..end]).is_err() || !text[..end].contains(" a "), "{:?}", &text[..end]);
        }
        let words: Vec<&str> = text.lines().last().unwrap().split(' ').take(LEAST_WORDS - 1).collect();
        assert!(States::read(&format!("1\n{}\n", words.join(" "))).unwrap_err().contains("line 2"));
    }

    #[test]
    fn agents_bring_back_what_they_took() {
        let (lines, now) = ("server a 10.0.0.1:80 agent-check agent-port 1", Instant::now());
        let old = farm(lines);
        old.set_agent(&old.servers()[0], false, String::new(), now);
        let new = farm(lines);
        new.restore(&States::read(&saved(&old)).unwrap());
        let server = new.servers()[0].clone();
        assert!(!server.is_up());
        new.set_agent(&server, true, String::new(), now);
        assert!(server.is_up());
    }

    #[test]
    fn addresses_come_back_where_last_is_asked_first() {
        let text =
            |admin: u8| format!("1\n3 be 1 a 10.0.0.7 {} {admin} 1 1 0 1 0 1 0 0 0 0 app.test 80 - 0 0 - - 0\n", 2 - admin / 16);
        for (methods, address, is_up) in [
            ("last,none", "10.0.0.7", true),
            ("libc,last", "10.0.0.7", true),
            ("none,last", "0.0.0.0", false),
            ("10.0.0.9,last", "10.0.0.9", true),
            ("last,10.0.0.9", "10.0.0.7", true),
        ] {
            for admin in [0, Admin::UNRESOLVED.0] {
                let farm = farm(&format!("server a app.test:80 init-addr {methods}"));
                farm.restore(&States::read(&text(admin)).unwrap());
                let server = &farm.servers()[0];
                let ip = server.address().destination().unwrap().ip.to_string();
                assert_eq!((&*ip, server.is_up()), (address, is_up), "{methods} {admin}");
            }
        }
    }

    #[test]
    fn those_that_track_follow_leaders_of_all_farms() {
        let (first, later) = (farm("server f 10.0.0.1:80\nserver g 10.0.0.2:80"), farm("server l 10.0.0.3:80 check"));
        let (now, leader) = (Instant::now(), later.servers()[0].clone());
        let [follower, its_follower] = [0, 1].map(|at| first.servers()[at].clone());
        first.follow(&its_follower, &follower, &first, now);
        first.follow(&follower, &leader, &later, now);
        let up = saved(&first);
        later.set_admin(&leader, AdminOrder::Maint, now);
        let down = saved(&later);
        later.set_admin(&leader, AdminOrder::Ready, now);
        let farms = [&first, &later];
        farms.iter().zip([&up, &down]).for_each(|(farm, text)| assert_eq!(farm.restore(&States::read(text).unwrap()), [""; 0]));
        farms.iter().for_each(|farm| farm.lead(now));
        assert_eq!([&leader, &follower, &its_follower].map(|server| server.is_up()), [false; 3]);
        assert_eq!((follower.admin(), its_follower.admin()), (Admin::INHERITED_MAINT, Admin::INHERITED_MAINT));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "1\n([0-9a-z.: -]{0,60}\n){0,3}|.*") {
            if let Ok(states) = States::read(&text) {
                farm("server a 10.0.0.1:80 check").restore(&states);
            }
        }
    }
}
