//! Arguments of `server` lines: source addresses, observation of traffic, sessions of a server that goes, limits that grow, and
//! servers that track others.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Mutex, mpsc::Receiver};
use std::time::{Duration, Instant};
use support::client::Client;
use support::proxy::{DEFAULTS, listen, sections};
use support::server::{Server, ok};
use support::{Terse, readable, until};

/// A server that is well as long as its flag is set: `/health` is what checks ask for.
fn checked(name: &'static str) -> (Server, Arc<AtomicBool>) {
    let well = Arc::new(AtomicBool::new(true));
    let health = well.clone();
    let server = Server::answering(move |request| match (request.target.as_str(), health.load(SeqCst)) {
        ("/health", false) => "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok(name),
    });
    (server, well)
}

/// Number of responses, of `count`, that come from this server.
fn share(terse: &Terse, of: &str, count: usize) -> usize {
    let mut client = terse.client();
    (0..count).filter(|_| client.get("/", &[]).text() == of).count()
}

fn send(terse: &Terse, path: &str) -> Client {
    let mut client = terse.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client
}

/// A server whose responses to `/held` wait for a message.
fn holding(wait: Receiver<()>) -> (Server, Arc<AtomicUsize>) {
    let (wait, held) = (Mutex::new(wait), Arc::new(AtomicUsize::new(0)));
    let counter = held.clone();
    let server = Server::answering(move |request| {
        if request.target == "/held" {
            counter.fetch_add(1, SeqCst);
            let _ = wait.lock().unwrap().recv();
        }
        ok("held")
    });
    (server, held)
}

/// A server that answers with the address of its peer.
fn telling_peers() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let (peer, mut head) = (stream.peer_addr().unwrap().to_string(), [0; 1024]);
                while stream.read(&mut head).is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{peer}", peer.len()).as_bytes());
                }
            });
        }
    });
    address
}

/// `source`: connections to the server come from there, checks too.
#[test]
fn connections_come_from_where_they_shall() {
    let address = telling_peers();
    for (line, expected) in [
        (format!("server a {address} source 127.0.0.2"), "127.0.0.2"),
        (format!("source 127.0.0.3\n server a {address}"), "127.0.0.3"),
        (format!("source 127.0.0.3\n server a {address} source 127.0.0.4"), "127.0.0.4"),
        (format!("server a {address}"), "127.0.0.1"),
    ] {
        let terse = listen(&format!("http-reuse never\n {line}"));
        let peer: SocketAddr = terse.client().get("/", &[]).text().parse().unwrap();
        assert_eq!(peer.ip().to_string(), expected, "{line}");
        terse.end();
    }
}

/// A client at this address of the machine.
fn client_at(ip: &str, terse: &Terse) -> (Client, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    // The same port is to be used towards the server.
    socket.set_reuse_address(true).unwrap();
    socket.bind(&format!("{ip}:0").parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.connect(&terse.address("web").into()).unwrap();
    let stream = std::net::TcpStream::from(socket);
    let address = stream.local_addr().unwrap();
    (Client::over(stream), address)
}

/// `usesrc`: the server sees the client's address, or one that the request names, and no connection serves two of them.
#[test]
fn servers_see_whose_address_they_shall() {
    let probe = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    if let Err(error) = probe.set_ip_transparent_v4(true) {
        eprintln!("Left out: this user may not use addresses that are not the machine's: {error}.");
        return;
    }
    let server = telling_peers();
    let seen = |client: &mut Client, fields: &[(&str, &str)]| client.get("/", fields).text().parse::<SocketAddr>().unwrap();

    let terse = listen(&format!("http-reuse always\n source 0.0.0.0 usesrc clientip\n server a {server}"));
    for ip in ["127.0.0.7", "127.0.0.8", "127.0.0.7"] {
        let (mut client, address) = client_at(ip, &terse);
        let first = seen(&mut client, &[]);
        assert_eq!(first.ip(), address.ip());
        assert_eq!(seen(&mut client, &[]), first, "the connection serves its client again");
    }
    terse.end();

    let terse = listen(&format!("server a {server} source 0.0.0.0 usesrc client"));
    let (mut client, address) = client_at("127.0.0.7", &terse);
    assert_eq!(seen(&mut client, &[]), address);
    terse.end();

    for (whose, fields, expected) in [
        ("127.0.0.5", "", "127.0.0.5"),
        ("hdr_ip(x-for)", "127.0.0.9, 127.0.0.10", "127.0.0.10"),
        ("hdr_ip(x-for,1)", "127.0.0.9, 127.0.0.10", "127.0.0.9"),
        ("hdr_ip(x-for,-2)", "127.0.0.9, 127.0.0.10", "127.0.0.9"),
        ("hdr_ip(x-for,3)", "127.0.0.9, 127.0.0.10", "127.0.0.2"),
        ("hdr_ip(x-for)", "unknown", "127.0.0.2"),
    ] {
        let terse = listen(&format!("server a {server} source 127.0.0.2 usesrc {whose}"));
        let peer = seen(&mut terse.client(), &[("X-For", fields)]);
        assert_eq!(peer.ip().to_string(), expected, "{whose}: {fields}");
        terse.end();
    }
}

/// A process that becomes another user keeps the right that `usesrc` needs, or does not start.
#[test]
fn rights_of_root_are_kept_where_they_are_named() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("Left out: only root can become another user.");
        return;
    }
    let server = telling_peers();
    let text = |global: &str| {
        format!(
            "global\n user nobody\n {global}\n{}\nlisten web\n bind fd@${{web}}\n server a {server} source 0.0.0.0 usesrc clientip\n",
            support::proxy::DEFAULTS
        )
    };
    let terse = Terse::with(&text("setcap cap_net_raw")).listen("web").start();
    let (mut client, address) = client_at("127.0.0.7", &terse);
    assert_eq!(client.get("/", &[]).text().parse::<SocketAddr>().unwrap().ip(), address.ip());
    terse.end();
    for (global, said) in [("", "write 'setcap cap_net_raw'"), ("setcap cap_net_rwa", "is not a capability")] {
        let refused = Terse::with(&text(global)).listen("web").run().expect(1).stderr;
        assert!(refused.contains(said), "{refused}");
    }
}

/// `observe`: responses to clients change a server's state, long before the next check.
#[test]
fn answers_and_connections_are_observed() {
    let bad = Server::answering(|request| match request.target.as_str() {
        "/health" => ok("well"),
        _ => "HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad".to_owned(),
    });
    let good = Server::body("good");
    let terse = listen(&format!(
        "option httpchk GET /health\n server bad {} check inter 10m observe layer7 error-limit 3 on-error mark-down\n server good {}",
        bad.address(),
        good.address()
    ));
    until("the bad one to be left", || (share(&terse, "good", 6) == 6).then_some(()));
    let seen = bad.requests().iter().filter(|request| request.target != "/health").count();
    assert!((3..=6).contains(&seen), "{seen}");
    terse.end();

    // Connections are enough for layer 4.
    let (mut gone, good) = (Server::body("gone"), Server::body("good"));
    gone.kill();
    let terse = listen(&format!(
        "retries 0\n server gone {} check inter 10m observe layer4 error-limit 2 on-error mark-down\n server good {}",
        gone.address(),
        good.address()
    ));
    until("the dead one to be left", || (share(&terse, "good", 4) == 4).then_some(()));
    terse.end();
}

/// `on-marked-down shutdown-sessions`: a client of a server that goes is not left waiting.
#[test]
fn sessions_of_a_server_that_goes_down_end() {
    let (_never, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let well = Arc::new(AtomicBool::new(true));
    let (health, held) = (well.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = held.clone();
    let server = Server::answering(move |request| match request.target.as_str() {
        "/health" if !health.load(SeqCst) => "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/held" => {
            counter.fetch_add(1, SeqCst);
            let _ = wait.lock().unwrap().recv();
            ok("late")
        }
        _ => ok("a"),
    });
    let terse = listen(&format!(
        "option httpchk GET /health\n server a {} check inter 20ms fall 2 on-marked-down shutdown-sessions",
        server.address()
    ));
    let mut client = send(&terse, "/held");
    until("the request", || (held.load(SeqCst) == 1).then_some(()));
    well.store(false, SeqCst);
    let rest = String::from_utf8_lossy(&client.rest()).into_owned();
    assert!(!rest.contains("200 OK"), "{rest}");
    terse.end();
}

/// `minconn`, `fullconn`: a server's limit grows with its backend's load.
#[test]
fn a_limit_grows_with_the_load() {
    let (go, wait) = channel();
    let (server, held) = holding(wait);
    let terse = listen(&format!("fullconn 10\n server a {} minconn 1 maxconn 5", server.address()));
    let mut clients: Vec<Client> = Vec::new();
    for number in 1..=10 {
        clients.push(send(&terse, "/held"));
        let slots = (number / 2).max(1);
        until("its slot", || (held.load(SeqCst) >= slots).then_some(()));
        // No request comes beyond the limit.
        readable(clients[number - 1].stream(), Duration::from_millis(30));
        assert_eq!(held.load(SeqCst), slots, "with {number} requests");
    }
    (0..10).for_each(|_| go.send(()).unwrap());
    clients.iter_mut().for_each(|client| assert_eq!(client.response("GET").text(), "held"));
    terse.end();
}

/// `slowstart`: a server that has come up gets little at first: a sixteenth of its weight, and half a minute later not much more.
#[test]
fn a_server_that_comes_up_starts_slowly() {
    let ((slow, well), fast) = (checked("slow"), Server::body("fast"));
    let terse = listen(&format!(
        "option httpchk GET /health\n default-server weight 100\n server slow {} check inter 20ms fall 1 rise 1 slowstart 10m\n server fast {}",
        slow.address(),
        fast.address()
    ));
    assert_eq!(share(&terse, "slow", 20), 10, "it was up from the start");
    well.store(false, SeqCst);
    until("it to go down", || (share(&terse, "slow", 20) == 0).then_some(()));
    well.store(true, SeqCst);
    until("it to come up", || (share(&terse, "slow", 20) > 0).then_some(()));
    let share = share(&terse, "slow", 63);
    assert!((1..=9).contains(&share), "{share} of 63, and 4 are a sixteenth");
    terse.end();
}

/// `track`: a server is as another one is, of another backend too, and over more than one step.
#[test]
fn servers_follow_others() {
    let ((leader, well), follower) = (checked("leader"), Server::body("follower"));
    let others = format!(
        "backend lead\n option httpchk GET /health\n server one {} check inter 20ms fall 1 rise 1\n\
         backend follow\n server two {} track lead/one\n\
         backend last\n server three {} track follow/two\n",
        leader.address(),
        follower.address(),
        follower.address()
    );
    let terse = sections(" use_backend last if { path /last }\n default_backend follow", &others);
    let statuses = |expected: u16| {
        let both = || ["/", "/last"].map(|path| terse.client().get(path, &[]).status);
        until("both to follow", || (both() == [expected; 2]).then_some(()));
    };
    statuses(200);
    well.store(false, SeqCst);
    statuses(503);
    well.store(true, SeqCst);
    statuses(200);
    terse.end();
}

/// `http-send-name-header`: each server is told its own name, and the client's field is not believed.
#[test]
fn servers_are_told_their_names() {
    let echo = || Server::answering(|request| ok(&request.every("x-name").collect::<Vec<_>>().join(",")));
    let (mut dead, one, two) = (Server::body("dead"), echo(), echo());
    dead.kill();
    let terse = listen(&format!(
        "http-send-name-header X-Name\n balance first\n option redispatch 1\n timeout connect 200ms\n \
         server dead {} weight 1\n server one {} maxconn 1\n server two {}",
        dead.address(),
        one.address(),
        two.address()
    ));
    let mut client = terse.client();
    for fields in [&[][..], &[("X-Name", "two"), ("x-name", "three")]] {
        assert_eq!(client.get("/", fields).text(), "one", "{fields:?}");
    }
    terse.end();
}

/// `rate-limit sessions`: a connection that comes too soon waits, and is served.
#[test]
fn new_connections_have_a_rate() {
    let server = Server::body("a");
    let terse = listen(&format!("rate-limit sessions 10\n server a {}", server.address()));
    let begun = Instant::now();
    for _ in 0..25 {
        assert_eq!(terse.client().get("/", &[]).text(), "a");
    }
    // Ten at once, and fifteen at ten a second.
    assert!(begun.elapsed() > Duration::from_secs(1), "{:?}", begun.elapsed());
    terse.end();
}

/// Rates of the whole process: a connection that comes too soon waits, at whichever address, and is served.
#[test]
fn new_connections_of_the_process_have_rates() {
    let server = Server::body("a");
    for line in ["maxconnrate 10", "maxsessrate 10"] {
        let text = format!("global\n {line}\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n server a {}\n", server.address());
        let terse = Terse::with(&text).listen("web").start();
        let begun = Instant::now();
        for _ in 0..25 {
            assert_eq!(terse.client().get("/", &[]).text(), "a");
        }
        assert!(begun.elapsed() > Duration::from_secs(1), "{line}: {:?}", begun.elapsed());
        terse.end();
    }
}

/// A shell is given the listener's address as its first argument, and so reads the file of that name; for a backend it is
/// `NOT_USED`.
#[test]
fn programs_say_how_servers_are() {
    let script = "echo $0 $* $HAPROXY_PROXY_NAME $HAPROXY_PROXY_ID $HAPROXY_PROXY_ADDR $HAPROXY_PROXY_PORT $HAPROXY_SERVER_NAME \
                  $HAPROXY_SERVER_ID $HAPROXY_SERVER_ADDR $HAPROXY_SERVER_PORT $HAPROXY_SERVER_MAXCONN $HAPROXY_SERVER_SSL \
                  $HAPROXY_SERVER_PROTO ${SECRET-none} `ls /proc/self/fd | wc -l` > $HAPROXY_PROXY_NAME.new\n\
                  mv $HAPROXY_PROXY_NAME.new $HAPROXY_PROXY_NAME.told\n[ ! -e down ]\n";
    let text = format!(
        "global\n nbthread 1\n external-check\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\n \
         option external-check\n external-check command /bin/sh\n external-check path /usr/bin:/bin\n \
         default-server check inter 20ms rise 1 fall 1\nfrontend web\n bind fd@${{web}}\n default_backend back\n\
         backend back\n id 7\n server one 192.0.2.1:81 maxconn 5\nlisten list\n id 8\n bind 127.0.0.1:0\n mode tcp\n server two 192.0.2.2:82 id 9\n"
    );
    let terse = Terse::with(&text).file("NOT_USED", script).file("127.0.0.1", script).env("SECRET", "told").listen("web").start();
    let told = |name: &str| until("a check", || std::fs::read_to_string(terse.path(name)).ok().filter(|text| !text.is_empty()));
    // The script's own three, its pipe's end, and the folder that `ls` reads: nothing of the process.
    assert_eq!(told("back.told"), "NOT_USED NOT_USED 192.0.2.1 81 back 7 one 1 192.0.2.1 81 5 0 h1 none 4\n");
    assert_eq!(told("list.told"), "127.0.0.1 0 192.0.2.2 82 list 8 127.0.0.1 0 two 9 192.0.2.2 82 0 0 tcp none 4\n");
    let state = || {
        let mut stream = std::os::unix::net::UnixStream::connect(terse.path("stats")).unwrap();
        stream.write_all(b"show stat back 4 -1 typed\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    until("a server that is up", || state().contains(":PROCOK").then_some(()));
    std::fs::write(terse.path("down"), "").unwrap();
    until("a server that is down", || state().contains(":PROCERR").then_some(()));
    std::fs::remove_file(terse.path("down")).unwrap();
    until("a server that is up again", || state().contains(":PROCOK").then_some(()));
    terse.end();
}

#[test]
fn programs_have_to_be_allowed_and_named() {
    for (global, lines, reason) in [
        ("", "external-check command /bin/true", "nobody has allowed that: add 'external-check' to 'global'"),
        ("external-check", "", "names no program: add 'external-check command <file>'"),
    ] {
        let text = format!(
            "global\n nbthread 1\n {global}\n{DEFAULTS}\nlisten web\n bind 127.0.0.1:0\n option external-check\n {lines}\n server s 127.0.0.1:1 check\n"
        );
        let finished = Terse::with(&text).arg(&["-c"]).run();
        assert!(finished.code() == Some(1) && finished.stderr.contains(reason), "{lines}: {}", finished.stderr);
    }
}
