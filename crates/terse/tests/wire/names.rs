//! Names that become addresses at run time: `resolvers`, `server-template`, SRV records and `do-resolve`, against dnsmasq.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use support::client::{Client, get};
use support::dns::{A, NameServer, Record, SRV, Said, Zone};
use support::program::find;
use support::proxy::DEFAULTS;
use support::server::Server;
use support::{Terse, until};

/// A name server.
struct Dns {
    child: Child,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl Dns {
    /// Starts dnsmasq with these options beside the names that [`Dns::say`] gives it; `None` where there is none.
    fn start(options: &[String], hosts: &str) -> Option<Dns> {
        let program = find("dnsmasq")?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        fs::write(&file, hosts).unwrap();
        // Others may take the port that was free: then another one is tried.
        let (child, address) = until("a name server", || {
            let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut command = Command::new(&program);
            command.args(["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces", "--user=root"]);
            command.args(["--pid-file=", "--listen-address=127.0.0.1", "--no-poll", "--local-ttl=0", "--local=/test/"]);
            command.arg(format!("--port={}", address.port())).arg(format!("--addn-hosts={}", file.display())).args(options);
            let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let answers = until("its socket", || match child.try_wait().unwrap() {
                Some(_) => Some(false),
                None => TcpStream::connect(address).is_ok().then_some(true),
            });
            answers.then_some((child, address))
        });
        Some(Dns { child, folder, address })
    }

    /// Gives it other names.
    fn say(&self, hosts: &str) {
        fs::write(self.folder.path().join("hosts"), hosts).unwrap();
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
    }

    /// A section that asks it.
    fn section(&self) -> String {
        let address = self.address;
        format!(
            "resolvers dns\n nameserver ns {address}\n timeout resolve 20ms\n timeout retry 300ms\n hold nx 0\n hold other 0\n hold valid 20ms\n"
        )
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers at all addresses of the machine, on one port, with the address that was asked.
fn echo_of_addresses() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut head, mut bytes) = (Vec::new(), [0; 1024]);
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut bytes) {
                    Ok(n) if n > 0 => head.extend_from_slice(&bytes[..n]),
                    _ => break,
                }
            }
            let body = stream.local_addr().unwrap().ip().to_string();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    port
}

fn process(dns: &Dns, lines: &str) -> Terse {
    Terse::with(&configuration(dns, lines)).listen("web").listen("cli").start()
}

fn configuration(dns: &Dns, lines: &str) -> String {
    format!(
        "global\n nbthread 2\n dns-accept-family ipv4,ipv6\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\n{}\nlisten web\n bind fd@${{web}}\n{lines}\n",
        dns.section()
    )
}

/// Waits until requests get that response.
fn until_answered(terse: &Terse, wanted: &str) {
    until(wanted, || {
        let response = get(terse.address("web"), "/");
        let text = if response.status == 200 { response.text() } else { response.status.to_string() };
        (text == wanted).then_some(())
    });
}

#[test]
fn a_server_goes_where_its_name_goes() {
    let Some(dns) = Dns::start(&[], "127.0.0.2 app.test\n") else { return };
    let port = echo_of_addresses();
    let terse = process(&dns, &format!(" server s app.test:{port} resolvers dns init-addr none resolve-prefer ipv4"));
    until_answered(&terse, "127.0.0.2");
    dns.say("127.0.0.3 app.test\n");
    until_answered(&terse, "127.0.0.3");
    dns.say("");
    until_answered(&terse, "503");
    assert!(terse.command("show stat").lines().any(|line| line.starts_with("web,s,") && line.contains(",MAINT (resolution),")));
    dns.say("127.0.0.4 app.test\n");
    until_answered(&terse, "127.0.0.4");
    let told = terse.stderr();
    assert!(told.contains("web/s: IP changed from '127.0.0.2' to '127.0.0.3' by 'dns/ns'."), "{told}");
    assert!(told.contains("Server web/s is going DOWN for maintenance (DNS NX status)."), "{told}");
    assert!(told.contains("Server web/s ('app.test') is UP/READY (resolves again)."), "{told}");
    let counted = terse.command("show resolvers dns");
    assert!(counted.starts_with("Resolvers section dns\n nameserver ns:\n  sent:        "), "{counted}");
    assert!(!counted.contains("  update:      0\n") && !counted.contains("  nx:          0\n"), "{counted}");
    assert!(terse.command("show resolvers none").contains("Can't find"));
    terse.end();
}

/// The old name is asked for no more, and a state that was written knows the new one.
#[test]
fn a_server_gets_another_name() {
    let Some(dns) = Dns::start(&[], "127.0.0.2 app.test\n127.0.0.3 other.test\n") else { return };
    let port = echo_of_addresses();
    let lines = format!(" server s 127.0.0.9:{port} resolvers dns resolve-prefer ipv4\n server t unix@/x backup");
    let terse = process(&dns, &lines);
    until_answered(&terse, "127.0.0.9");
    let (by, name) = ("by 'stats socket command'", |name: &str| format!("set server web/s fqdn {name}"));
    assert_eq!(terse.command(&name("app.test")), format!("web/s changed its FQDN from (null) to app.test {by}\n\n"));
    until_answered(&terse, "127.0.0.2");
    assert_eq!(terse.command(&name("other.test")), format!("web/s changed its FQDN from app.test to other.test {by}\n\n"));
    until_answered(&terse, "127.0.0.3");
    dns.say("127.0.0.4 app.test\n127.0.0.5 other.test\n");
    until_answered(&terse, "127.0.0.5");
    assert!(!terse.stderr().contains("127.0.0.4"), "{}", terse.stderr());
    let states = terse.command("show servers state");
    assert!(states.contains(" s 127.0.0.5 2 64 ") && states.contains(&format!(" other.test {port} - ")), "{states}");
    // There and back again, faster than the old name is looked at.
    for next in ["app.test", "other.test", "app.test"] {
        terse.command(&name(next));
    }
    until_answered(&terse, "127.0.0.4");
    assert!(terse.command(&name("app.test")).contains("no need to change"));
    assert!(terse.command(&name("a/b")).contains("invalid fqdn 'a/b'"));
    assert!(terse.command(&name("")).contains("requires a FQDN"));
    assert!(terse.command("set server web/t fqdn x").contains("no resolution is configured"));
    terse.end();
}

#[test]
fn a_template_has_a_server_for_each_address() {
    let Some(dns) = Dns::start(&[], "127.0.0.2 app.test\n127.0.0.3 app.test\n") else { return };
    let port = echo_of_addresses();
    let lines = format!(
        " balance roundrobin\n default-server resolvers dns init-addr none resolve-prefer ipv4\n server-template web 3 app.test:{port}"
    );
    let terse = process(&dns, &lines);
    let everywhere = |wanted: &[&str]| {
        until(&format!("{wanted:?}"), || {
            let mut seen: Vec<String> = (0..6).map(|_| get(terse.address("web"), "/").text()).collect();
            seen.sort();
            seen.dedup();
            (seen == wanted).then_some(())
        });
    };
    everywhere(&["127.0.0.2", "127.0.0.3"]);
    dns.say("127.0.0.3 app.test\n127.0.0.4 app.test\n127.0.0.5 app.test\n127.0.0.6 app.test\n");
    until("all servers", || (!terse.command("show stat").contains(",MAINT")).then_some(()));
    dns.say("127.0.0.6 app.test\n");
    everywhere(&["127.0.0.6"]);
    terse.end();
}

#[test]
fn services_are_found_with_their_ports_and_weights() {
    let port = echo_of_addresses();
    let record = |host: &str, weight: u16| format!("--srv-host=_app._tcp.test,{host}.test,{port},0,{weight}");
    let Some(dns) = Dns::start(&[record("a", 0), record("b", 65535)], "127.0.0.2 a.test\n127.0.0.3 b.test\n") else { return };
    let lines = " server-template s 3 _app._tcp.test resolvers dns resolve-prefer ipv4".to_owned();
    let terse = process(&dns, &lines);
    let of = |column: usize| {
        let table = terse.command("show servers state");
        let mut values: Vec<String> =
            table.lines().skip(2).filter_map(|line| line.split(' ').nth(column).map(String::from)).collect();
        values.sort();
        values
    };
    until("weights", || (of(7) == ["0", "1", "256"]).then_some(()));
    assert_eq!(of(4), ["-", "127.0.0.2", "127.0.0.3"]);
    assert_eq!(of(18).iter().filter(|shown| **shown == port.to_string()).count(), 2);
    assert_eq!(get(terse.address("web"), "/").status, 200);
    terse.end();
}

/// Places of a service, each with its address.
fn places(list: &[(&str, &str)]) -> Said {
    let service = |(target, _): &(&str, &str)| Record::Service("_app._tcp.test".into(), 1, 256, 8000, (*target).into());
    let address = |(target, ip): &(&str, &str)| Record::Address((*target).into(), ip.parse().unwrap());
    Said::Records(list.iter().map(service).collect(), list.iter().map(address).collect())
}

/// Lines of a section that asks a name server every 20 ms.
fn asking(dns: &NameServer) -> String {
    format!("resolvers dns\n nameserver ns {}\n timeout resolve 20ms\n timeout retry 20ms\n hold nx 0\n", dns.address())
}

/// A file of states has the place of each server. After a reload each has its place again, and a server whose place has gone has
/// none.
#[test]
fn servers_of_a_service_are_where_they_were() {
    let (zone, key) = (Zone::default(), ("_app._tcp.test".to_owned(), SRV));
    let say = |list: &[(&str, &str)]| drop(zone.lock().unwrap().insert(key.clone(), places(list)));
    let all = [("a.test", "10.0.0.1"), ("b.test", "10.0.0.2"), ("c.test", "10.0.0.3"), ("d.test", "10.0.0.4")];
    let dns = NameServer::start(&zone);
    let start = |states: &str| {
        let text = format!(
            "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n server-state-file \"${{dir}}/states\"\n{DEFAULTS}\n \
             load-server-state-from-file global\n{}listen web\n bind fd@${{web}}\n server-template s 4 _app._tcp.test resolvers dns\n",
            asking(&dns)
        );
        Terse::with(&text).file("states", states).listen("web").listen("cli").start()
    };
    let places_of = |terse: &Terse| -> Vec<String> {
        let table = terse.command("show servers state");
        let rows = table.lines().skip(2).map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| words.len() > 19);
        rows.map(|words| format!("{} {} {}", words[4], words[17], words[18])).collect()
    };
    let are_there = |terse: &Terse, count: usize| {
        until("places", || Some(places_of(terse)).filter(|rows| rows.iter().filter(|row| !row.starts_with('-')).count() == count))
    };
    let first = start("1\n");
    // One at a time, so that the servers' order is that of the places' coming, not their own.
    for count in 1..=3 {
        say(&all[3 - count..3]);
        are_there(&first, count);
    }
    let before = are_there(&first, 3);
    let was = ["10.0.0.3 c.test 8000", "10.0.0.2 b.test 8000", "10.0.0.1 a.test 8000", "- - 0"];
    assert_eq!(before, was);
    let states = first.command("show servers state");
    first.end();
    say(&[all[0], all[2], all[3]]);
    let second = start(&format!("{}\n", states.trim_end()));
    until("the places of before", || {
        let now = places_of(&second);
        (now[0] == was[0] && now[2] == was[2] && now.iter().filter(|row| row.starts_with("10.0.0.4 d.test")).count() == 1)
            .then_some(())
    });
    assert!(!places_of(&second).iter().any(|row| row.contains("b.test")));
    second.end();
}

/// However many names there are, a name server costs one socket, and each name one question for all backends that have it.
#[test]
fn a_name_server_costs_one_socket() {
    const NAMES: usize = 40;
    let zone = Zone::default();
    for at in 0..NAMES {
        let name = format!("n{at}.test");
        let record = Record::Address(name.clone(), [10, 0, 0, at as u8].into());
        zone.lock().unwrap().insert((name, A), Said::Records(vec![record], Vec::new()));
    }
    let dns = NameServer::start(&zone);
    let servers: String = (0..NAMES).map(|at| format!(" server s{at} n{at}.test:80\n")).collect();
    let backends: String = ["one", "two", "three"]
        .map(|name| format!("backend {name}\n default-server resolvers dns init-addr none resolve-prefer ipv4\n{servers}"))
        .concat();
    let section =
        asking(&dns).replace("timeout resolve 20ms", "timeout resolve 1h").replace("timeout retry 20ms", "timeout retry 15s");
    let text =
        format!("global\n nbthread 2\n stats socket fd@${{cli}}\n{DEFAULTS}\n{section}frontend web\n bind fd@${{web}}\n{backends}");
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    until("all names", || (!terse.command("show stat").contains(",MAINT")).then_some(()));
    let seen = dns.seen();
    assert_eq!((seen.from.len(), seen.numbers.len()), (1, NAMES), "{seen:?}");
    let counted = terse.command("show resolvers dns");
    let number = |name: &str| {
        let line = counted.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap_or_default();
        line.trim().parse::<usize>().unwrap_or(usize::MAX)
    };
    // The first server of each name has asked, the others have the known answer.
    let rows = ["sent:", "valid:", "update:", "nx:", "timeout:", "outdated:", "invalid:"].map(number);
    assert_eq!(rows, [NAMES, NAMES, NAMES, 0, 0, 0, 0], "{counted}");
    assert!(terse.stderr().contains("by 'dns/ns'") && terse.stderr().contains("by 'DNS cache'"), "{}", terse.stderr());
    terse.end();
}

/// A name may be used wherever an address may be for checks and agents.
#[test]
fn checks_and_agents_may_have_names() {
    let server = Server::body("found");
    let port = server.address().port();
    let lines = format!(
        " option tcp-check\n tcp-check connect addr localhost port {port}\n \
         server s 127.0.0.1:{port} addr localhost:{port} agent-addr localhost"
    );
    let text = format!("global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n{lines}\n");
    let terse = Terse::with(&text).listen("web").start();
    until_answered(&terse, "found");
    terse.end();
}

#[test]
fn rules_look_names_up() {
    let Some(dns) = Dns::start(&[], "127.0.0.9 app.test\n::7 six.test\n") else { return };
    let lines = " http-request do-resolve(txn.ip,dns,ipv4) path,field(2,/)\n \
                 http-request return status 200 content-type text/plain lf-string %[var(txn.ip)]";
    let terse = process(&dns, lines);
    for (name, address) in [("app.test", "127.0.0.9"), ("six.test", "::7"), ("none.test", ""), ("10.0.0.1", "10.0.0.1")] {
        assert_eq!(get(terse.address("web"), &format!("/{name}")).text(), address, "{name}");
    }
    terse.end();
}

/// In `mode tcp` a connection waits for the name, and goes where it leads.
#[test]
fn rules_on_bytes_look_names_up() {
    let Some(dns) = Dns::start(&[], "127.0.0.1 app.test\n") else { return };
    let server = Server::body("found");
    for (name, found) in [("app.test", true), ("none.test", false)] {
        let lines = format!(
            " mode tcp\n tcp-request content do-resolve(txn.ip,dns,ipv4) str({name})\n tcp-request content reject unless {{ var(txn.ip) -m found }}\n \
             tcp-request content set-dst var(txn.ip)\n tcp-request content set-dst-port int({})\n server s 0.0.0.0:0",
            server.address().port()
        );
        let terse = process(&dns, &lines);
        let mut client = Client::connect(terse.address("web"));
        match found {
            true => assert_eq!(client.get("/", &[]).text(), "found"),
            false => assert!(client.is_closed()),
        }
        terse.end();
    }
}

#[test]
fn the_command_line_asks_for_one_family() {
    let Some(dns) = Dns::start(&[], "127.0.0.9 app.test\n::7 six.test\n") else { return };
    let lines = " http-request do-resolve(txn.ip,dns) path,field(2,/)\n \
                 http-request return status 200 content-type text/plain lf-string %[var(txn.ip)]";
    for (options, six) in [(&[][..], "::7"), (&["-4"], "")] {
        let terse = Terse::with(&configuration(&dns, lines)).listen("web").listen("cli").arg(options).start();
        assert_eq!(get(terse.address("web"), "/app.test").text(), "127.0.0.9");
        assert_eq!(get(terse.address("web"), "/six.test").text(), six, "{options:?}");
        terse.end();
    }
}

#[test]
fn a_section_that_is_not_there_is_named() {
    let text = format!(
        "{DEFAULTS}\nresolvers main\n nameserver a 127.0.0.1:1\nlisten web\n bind 127.0.0.1:0\n server s a.test:80 resolvers mian init-addr none\n"
    );
    let said = Terse::with(&text).arg(&["-c"]).run().expect(1).stderr;
    assert!(said.contains("unable to find required resolvers 'mian'") && said.contains("did you mean 'main'?"), "{said}");
}
