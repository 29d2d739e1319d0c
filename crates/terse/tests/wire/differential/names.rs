//! The same answers of a name server to HAProxy and to terse. The servers that get an address, their weights, and the time when
//! they lose it are compared.

use super::support::Terse;
use super::support::dns::{A, AAAA, NameServer, Record, SRV, Said, Zone};
use super::support::program::find;
use super::support::proxy::DEFAULTS;
use super::support::until;
use std::path::PathBuf;

/// A process and the name server that it alone asks; all name servers give the same answers.
struct Side {
    process: Terse,
    dns: NameServer,
}

/// HAProxy, and terse.
struct Sides {
    zone: Zone,
    sides: [Side; 2],
}

impl Sides {
    /// Starts both with these lines in the section `dns`, followed by these sections; `None` where HAProxy is not installed.
    fn start(zone: &Zone, hold: &str, sections: &str) -> Option<Sides> {
        let haproxy: PathBuf = std::env::var_os("HAPROXY").map(Into::into).or_else(|| find("haproxy"))?;
        let side = |program: Option<&PathBuf>| {
            let dns = NameServer::start(zone);
            let families = if program.is_none() { " dns-accept-family ipv4,ipv6\n" } else { "" };
            let text = format!(
                "global\n nbthread 1\n{families} stats socket fd@${{cli}} level admin\n{DEFAULTS}\nresolvers dns\n nameserver ns {}\n \
                 accepted_payload_size 8192\n resolve_retries 1\n timeout resolve 20ms\n timeout retry 20ms\n{hold}\nlisten web\n \
                 bind fd@${{web}}\n http-request return status 204\n{sections}",
                dns.address()
            );
            let process = Terse::with(&text).listen("web").listen("cli").arg(&["-db"]);
            let process = match program {
                Some(path) => process.program(path),
                None => process,
            };
            Side { process: process.start(), dns }
        };
        Some(Sides { zone: zone.clone(), sides: [side(Some(&haproxy)), side(None)] })
    }

    /// Changes an answer of the name servers.
    fn say(&self, name: &str, kind: u16, said: Said) {
        self.zone.lock().unwrap().insert((name.to_owned(), kind), said);
    }

    /// Waits until both have asked for a name four more times: earlier answers have been taken then.
    fn ask(&self, name: &str, kind: u16) {
        for side in &self.sides {
            let before = side.dns.count(name, kind);
            until(&format!("questions for {name}"), || (side.dns.count(name, kind) >= before + 4).then_some(()));
        }
    }

    /// Waits until the servers are there, with HAProxy and with terse: `name address port weight maintenance` each, in order.
    #[track_caller]
    fn expect(&self, what: &str, wanted: &[&str]) {
        for (who, side) in ["haproxy", "terse"].iter().zip(&self.sides) {
            let mut last = Vec::new();
            let deadline = std::time::Instant::now() + super::support::PATIENCE;
            while last != wanted {
                last = side.servers();
                assert!(std::time::Instant::now() < deadline, "{what}: {who} has\n{last:#?}\nnot\n{wanted:#?}");
                std::thread::yield_now();
            }
        }
    }
}

impl Side {
    fn servers(&self) -> Vec<String> {
        let table = self.process.command("show servers state");
        let rows = table.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).skip(1);
        let shown = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            // A port of a server without an address means nothing.
            let port = if words[4] == "-" { "-" } else { words[18] };
            let state = if words[6].parse::<u8>().unwrap_or(0) & RESOLUTION != 0 { "lost" } else { "up" };
            format!("{} {} {port} {} {state}", words[3], words[4], words[7])
        };
        rows.map(shown).collect()
    }
}

/// Columns of a file of states that concern names, in order: `srv_admin_state srv_fqdn srvrecord`.
fn names(side: &Side) -> Vec<String> {
    let table = side.process.command("show servers state app");
    let rows = table.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| words.get(1) == Some(&"app"));
    rows.map(|words| format!("{} {} {}", words[6], words[17], words[19])).collect()
}

/// The flag of `srv_admin_state` for a name that has no address.
const RESOLUTION: u8 = 0x20;

fn zone() -> Zone {
    Zone::default()
}

fn addresses(name: &str, list: &[&str]) -> Said {
    Said::Records(list.iter().map(|ip| Record::Address(name.into(), ip.parse().unwrap())).collect(), Vec::new())
}

/// Places of a service: target, weight, port, and the address that comes with it, if any.
fn places(list: &[(&str, u16, u16, &str)]) -> Said {
    let service = |(target, weight, port, _): &(&str, u16, u16, &str)| {
        // Priorities are as they come: they do not count.
        Record::Service(SERVICE.into(), *port % 7, *weight, *port, (*target).into())
    };
    let others = list.iter().filter(|place| !place.3.is_empty());
    Said::Records(
        list.iter().map(service).collect(),
        others.map(|(target, _, _, ip)| Record::Address((*target).into(), ip.parse().unwrap())).collect(),
    )
}

const SERVICE: &str = "_app._tcp.test";

/// The outcome of HAProxy is the one that terse has to have; `wanted` keeps the test honest about both.
#[test]
fn places_of_a_service_go_to_the_same_servers() {
    let zone = zone();
    let lines = format!("backend app\n server-template s 4 {SERVICE} resolvers dns init-addr none\n");
    let Some(sides) = Sides::start(&zone, " hold nx 0\n hold other 0", &lines) else { return };
    let all = [
        ("a.test", 0, 8001, "10.0.0.1"),
        ("b.test", 1, 8002, "10.0.0.2"),
        ("c.test", 300, 8003, "10.0.0.3"),
        ("d.test", 65_535, 8004, "10.0.0.4"),
    ];
    let lost = |name: &str| format!("{name} - - ");
    sides.say(SERVICE, SRV, places(&all[..3]));
    sides.ask(SERVICE, SRV);
    // Steps of a service's life; after each both have the same servers.
    let steps: [&[usize]; 9] = [&[0, 1, 2], &[0, 2], &[2, 0, 3], &[3, 2, 1, 0], &[1], &[1, 0], &[2, 1, 3], &[3, 0, 1, 2], &[2]];
    for step in steps {
        let list: Vec<_> = step.iter().map(|at| all[*at]).collect();
        sides.say(SERVICE, SRV, places(&list));
        sides.ask(SERVICE, SRV);
        let theirs = sides.sides[0].servers();
        assert_eq!(theirs.iter().filter(|line| line.ends_with(" up")).count(), step.len(), "{theirs:?}");
        let wanted: Vec<&str> = theirs.iter().map(String::as_str).collect();
        sides.expect(&format!("{step:?}"), &wanted);
        assert_eq!(names(&sides.sides[0]), names(&sides.sides[1]));
    }
    // Another address, another weight.
    sides.say(SERVICE, SRV, places(&[("c.test", 512, 8003, "10.0.9.3")]));
    sides.say("c.test", A, addresses("c.test", &["10.0.9.3"]));
    sides.say("c.test", AAAA, Said::Code(3));
    sides.ask(SERVICE, SRV);
    let is_there = |line: &String| line.contains(" 10.0.9.3 8003 2 up");
    for side in &sides.sides {
        until("the new address", || side.servers().iter().any(is_there).then_some(()));
    }
    sides.say(SERVICE, SRV, Said::Code(3));
    for side in &sides.sides {
        until("no places", || {
            let servers = side.servers();
            servers.iter().enumerate().all(|(at, line)| line.starts_with(&lost(&format!("s{}", at + 1)))).then_some(())
        });
    }
}

/// Without additional records the places' names are asked for, and those have holds of their own.
#[test]
fn places_without_addresses_are_names() {
    let zone = zone();
    let lines = format!("backend app\n server-template s 3 {SERVICE} resolvers dns init-addr none resolve-prefer ipv4\n");
    let Some(sides) = Sides::start(&zone, " hold nx 0\n hold other 0", &lines) else { return };
    sides.say(SERVICE, SRV, places(&[("a.test", 256, 8001, ""), ("b.test", 512, 8002, "")]));
    sides.say("a.test", A, addresses("a.test", &["10.0.0.1"]));
    sides.ask("b.test", A);
    let first = first_up(&sides, "10.0.0.1");
    sides.say("b.test", A, addresses("b.test", &["10.0.0.2"]));
    let second = first_up(&sides, "10.0.0.2");
    let mut wanted = ["s1 - - 1 lost".to_owned(), "s2 - - 1 lost".into(), "s3 - - 1 lost".into()];
    for line in [first, second] {
        let at: usize = line[1..2].parse().unwrap();
        wanted[at - 1] = line;
    }
    let words: Vec<&str> = wanted.iter().map(String::as_str).collect();
    sides.expect("two places", &words);
    // A name goes: its server is lost, and keeps its place.
    sides.say("a.test", A, Said::Code(3));
    let at = wanted.iter().position(|line| line.contains("10.0.0.1")).unwrap();
    let there = std::mem::replace(&mut wanted[at], format!("s{} - - 1 lost", at + 1));
    sides.expect("a name went", &wanted.iter().map(String::as_str).collect::<Vec<_>>());
    sides.say("a.test", A, addresses("a.test", &["10.0.0.1"]));
    wanted[at] = there;
    sides.expect("a name came back", &wanted.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The line of the server that both have at an address.
#[track_caller]
fn first_up(sides: &Sides, ip: &str) -> String {
    let of = |side: &Side| {
        until(ip, || side.servers().into_iter().find(|line| line.contains(&format!(" {ip} ")) && line.ends_with("up")))
    };
    let [theirs, ours] = [of(&sides.sides[0]), of(&sides.sides[1])];
    assert_eq!(theirs, ours);
    theirs
}

/// Names that go bad in each way: with holds that are over, and with one that is not.
#[test]
fn bad_answers_are_held_against_servers_as_long_as_they_say() {
    let bad = [
        ("nx", Said::Code(3)),
        ("refused", Said::Code(5)),
        ("timeout", Said::Silence),
        ("other", Said::Code(2)),
        ("other", Said::Records(Vec::new(), Vec::new())),
    ];
    for (held, said) in &bad {
        let zone = zone();
        let hold: String = ["nx", "refused", "timeout", "other"]
            .iter()
            .map(|status| format!(" hold {status} {}\n", if status == held { "1h" } else { "0" }))
            .collect();
        let lines: String = (0..bad.len()).map(|at| format!(" server s{at} n{at}.test:80\n")).collect();
        let lines = format!("backend app\n default-server resolvers dns init-addr none resolve-prefer ipv4\n{lines}");
        let Some(sides) = Sides::start(&zone, &hold, &lines) else { return };
        let all = |line: &dyn Fn(usize) -> String| -> Vec<String> { (0..bad.len()).map(line).collect() };
        for at in 0..bad.len() {
            let name = format!("n{at}.test");
            sides.say(&name, A, addresses(&name, &[&format!("10.0.0.{}", at + 1)]));
        }
        let good = all(&|at| format!("s{at} 10.0.0.{} 80 1 up", at + 1));
        sides.expect("all are there", &good.iter().map(String::as_str).collect::<Vec<_>>());
        for (at, (_, said)) in bad.iter().enumerate() {
            sides.say(&format!("n{at}.test"), A, said.clone());
            sides.say(&format!("n{at}.test"), AAAA, said.clone());
        }
        let is_held = |at: usize| bad[at].0 == *held;
        let after = all(&|at| if is_held(at) { good[at].clone() } else { format!("s{at} - - 1 lost") });
        sides.expect(&format!("{said:?} is held"), &after.iter().map(String::as_str).collect::<Vec<_>>());
        // Time does not change that.
        for at in 0..bad.len() {
            sides.ask(&format!("n{at}.test"), A);
        }
        sides.expect(&format!("{said:?} is still held"), &after.iter().map(String::as_str).collect::<Vec<_>>());
        for at in 0..bad.len() {
            let name = format!("n{at}.test");
            sides.say(&name, A, addresses(&name, &[&format!("10.0.0.{}", at + 1)]));
        }
        sides.expect("all are back", &good.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Records that answers do not name any more stay for `hold obsolete`.
#[test]
fn obsolete_records_are_held() {
    for hold in ["1h", "0"] {
        let zone = zone();
        let lines = format!(
            "backend app\n server-template s 2 {SERVICE} resolvers dns init-addr none\nbackend names\n \
             server-template n 2 n.test:80 resolvers dns init-addr none resolve-prefer ipv4\n"
        );
        let Some(sides) = Sides::start(&zone, &format!(" hold nx 0\n hold obsolete {hold}"), &lines) else { return };
        let both = [("a.test", 0, 8001, "10.0.0.1"), ("b.test", 0, 8002, "10.0.0.2")];
        sides.say(SERVICE, SRV, places(&both));
        sides.say("n.test", A, addresses("n.test", &["10.0.1.1", "10.0.1.2"]));
        sides.ask(SERVICE, SRV);
        sides.ask("n.test", A);
        let before = sides.sides[0].servers();
        assert!(before.iter().all(|line| line.ends_with("up")), "{before:?}");
        sides.expect("all", &before.iter().map(String::as_str).collect::<Vec<_>>());
        sides.say(SERVICE, SRV, places(&both[1..]));
        sides.say("n.test", A, addresses("n.test", &["10.0.1.2"]));
        sides.ask(SERVICE, SRV);
        sides.ask("n.test", A);
        let after = sides.sides[0].servers();
        assert_eq!(after.iter().filter(|line| line.ends_with("up")).count(), if hold == "0" { 2 } else { 4 }, "{after:?}");
        sides.expect(hold, &after.iter().map(String::as_str).collect::<Vec<_>>());
        sides.say(SERVICE, SRV, places(&both));
        sides.say("n.test", A, addresses("n.test", &["10.0.1.2", "10.0.1.1"]));
        sides.expect("all are back", &before.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Preferences of families and networks, addresses that are shared, aliases.
#[test]
fn servers_choose_the_same_addresses() {
    let zone = zone();
    let lines = "backend six\n server s six.test:80 resolvers dns init-addr none\n\
                 backend four\n server s six.test:80 resolvers dns init-addr none resolve-prefer ipv4\n\
                 backend net\n server s many.test:80 resolvers dns init-addr none resolve-prefer ipv4 resolve-net 10.3.0.0/16\n\
                 backend none\n server s many.test:80 resolvers dns init-addr none resolve-prefer ipv4 resolve-net 2001:db8::/32,10.2.0.0/16\n\
                 backend own\n server-template s 3 two.test:80 resolvers dns init-addr none resolve-prefer ipv4\n\
                 backend dup\n server-template s 3 two.test:80 resolvers dns init-addr none resolve-prefer ipv4 resolve-opts allow-dup-ip\n\
                 backend alias\n server s alias.test:80 resolvers dns init-addr none resolve-prefer ipv4\n\
                 backend fall\n server s alias.test:80 resolvers dns init-addr none\n";
    let Some(sides) = Sides::start(&zone, " hold nx 0\n hold other 0", lines) else { return };
    sides.say("six.test", A, addresses("six.test", &["10.0.0.6"]));
    sides.say("six.test", AAAA, addresses("six.test", &["2001:db8::6"]));
    sides.say("many.test", A, addresses("many.test", &["10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1"]));
    sides.say("two.test", A, addresses("two.test", &["10.5.0.1", "10.5.0.2"]));
    let alias = |from: &str, to: &str| Record::Alias(from.into(), to.into());
    let chain = vec![
        alias("alias.test", "b.test"),
        alias("b.test", "c.test"),
        Record::Address("c.test".into(), "10.6.0.1".parse().unwrap()),
    ];
    sides.say("alias.test", A, Said::Records(chain, Vec::new()));
    sides.say("alias.test", AAAA, Said::Records(vec![alias("alias.test", "b.test"), alias("b.test", "c.test")], Vec::new()));
    for name in ["six.test", "many.test", "two.test", "alias.test"] {
        sides.ask(name, A);
    }
    let theirs = sides.sides[0].servers();
    sides.expect("choices", &theirs.iter().map(String::as_str).collect::<Vec<_>>());
    let has = |wanted: &str| theirs.iter().filter(|line| line.contains(wanted)).count();
    assert_eq!((has(" 2001:db8::6 "), has(" 10.0.0.6 "), has(" 10.3.0.1 "), has(" 10.6.0.1 ")), (1, 1, 1, 2), "{theirs:?}");
}
