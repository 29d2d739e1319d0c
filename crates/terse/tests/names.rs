//! Names that become addresses at run time: `resolvers`, `server-template`, SRV records and `do-resolve`, against dnsmasq.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use support::client::{Client, get};
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

/// What requests get, once they get that.
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

/// Wherever an address may stand for checks and agents, a name may.
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
