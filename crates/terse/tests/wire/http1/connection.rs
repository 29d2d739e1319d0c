//! Connections: kept, shared, pipelined, closed.

use super::support::client::Client;
use super::support::proxy::{DEFAULTS, listen};
use super::support::server::{Request, Server, ok};
use super::support::{PATIENCE, Terse, readable, until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, RwLock};
use std::time::Duration;

/// Connections to the server after two clients' two requests each.
fn connections_with(reuse: &str) -> usize {
    let server = Server::answering(|request| ok(&request.connection.to_string()));
    let terse = listen(&format!("http-reuse {reuse}\n server one {}", server.address()));
    let mut clients = [terse.client(), terse.client()];
    for client in &mut clients {
        for _ in 0..2 {
            let response = client.get("/", &[]);
            assert_eq!((response.status, response.field("connection")), (200, None));
        }
    }
    assert_eq!(server.requests().len(), 4);
    terse.end();
    server.accepted()
}

#[test]
fn kept_on_both_sides() {
    assert_eq!(connections_with("always"), 1);
    assert_eq!(connections_with("never"), 2);
    // A client's first request goes over a connection of its own: it could not be repeated if the server closed just then.
    assert_eq!(connections_with("safe"), 2);
}

/// A server's connection stays, however long the bodies and whichever way they take: a last read that just fills its room is no sign of
/// more to come.
#[test]
fn kept_after_large_bodies() {
    const REQUESTS: usize = 40;
    let ways = ["", "option splice-response", "compression algo gzip\n compression type text/plain"];
    for (way, chunked) in ways.iter().flat_map(|way| [(way, false), (way, true)]) {
        let server = Server::answering(move |request| {
            let bytes: usize = request.target.trim_start_matches('/').parse().unwrap();
            let body = "0123456789abcde\n".repeat(bytes / 16);
            match chunked {
                false => format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
                true => format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                    body.len()
                ),
            }
        });
        let terse = listen(&format!("{way}\n server one {}", server.address()));
        let mut client = terse.client();
        for request in 1..=REQUESTS {
            let bytes = 16 * 1024 * request;
            let response = client.get(&format!("/{bytes}"), &[("Accept-Encoding", "gzip")]);
            assert_eq!(response.status, 200, "{way} {bytes}");
            assert!(response.field("content-encoding").is_some() || response.body.len() == bytes, "{way} {bytes}");
        }
        assert_eq!((server.requests().len(), server.accepted()), (REQUESTS, 1), "{way}, chunked: {chunked}");
        terse.end();
    }
}

/// Two clients' first requests make two connections, though one would do for both: only so many stay as are needed.
#[test]
fn what_is_not_needed_is_closed() {
    for (words, kept) in [("", 1), ("pool-low-conn 1", 2), ("pool-purge-delay 0", 0), ("pool-max-conn 0 pool-low-conn 1", 0)] {
        let server = Server::body("kept");
        let terse = listen(&format!("server one {} {words}", server.address()));
        let mut clients = [terse.client(), terse.client()];
        for client in &mut clients {
            assert_eq!(client.get("/", &[]).text(), "kept");
        }
        assert_eq!(server.accepted(), 2, "{words}");
        until("the others to close", || (server.open() == kept).then_some(()));
        terse.end();
    }
}

/// Of 100 descriptors a fifth is in use before idle connections are few, and a quarter before there are none.
#[test]
fn idle_connections_leave_descriptors_to_clients() {
    const CLIENTS: usize = 12;
    for (words, fewest, most) in [
        ("", 1, 9),
        ("tune.pool-low-fd-ratio 100\n tune.pool-high-fd-ratio 100", CLIENTS, CLIENTS),
        ("tune.pool-low-fd-ratio 0\n tune.pool-high-fd-ratio 100", 1, 1),
        ("tune.pool-high-fd-ratio 0", 0, 0),
    ] {
        let together = Barrier::new(CLIENTS);
        let server = Server::answering(move |_| {
            together.wait();
            ok("idle")
        });
        let terse = with_descriptors(words, &server);
        let mut clients: Vec<Client> = (0..CLIENTS).map(|_| terse.client()).collect();
        clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
        clients.iter_mut().for_each(|client| assert_eq!(client.response("GET").text(), "idle"));
        until("the others to close", || (fewest..=most).contains(&server.open()).then_some(()));
        // Clients that only wait count as well.
        if words.is_empty() {
            clients.extend((CLIENTS..2 * CLIENTS).map(|_| terse.client()));
            until("clients to take the place of all", || (server.open() == 0).then_some(()));
        }
        drop(clients);
        terse.end();
    }
}

/// The last descriptors are idle connections to a server: some are closed for a client of the stats socket, which no worker serves.
#[test]
fn idle_connections_make_room_for_what_is_no_clients() {
    const LIMIT: usize = 60;
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.clone();
    let server = Server::answering(move |_| {
        drop(closed.read());
        ok("idle")
    });
    let global = format!("global\n nbthread 1\n maxconn {LIMIT}\n ulimit-n {LIMIT}\n stats socket \"${{dir}}/s.sock\"\n");
    let ratios = " tune.pool-low-fd-ratio 100\n tune.pool-high-fd-ratio 100\n";
    let server_line = format!("server one {} pool-purge-delay 1h pool-low-conn {LIMIT}", server.address());
    let web = format!("listen web\n bind fd@${{web}}\n http-reuse always\n {server_line}\n");
    let terse = Terse::with(&format!("{global}{ratios}{DEFAULTS}\n{web}")).listen("web").start();
    assert_eq!(terse.client().get("/", &[]).text(), "idle");
    let open = || open_below(LIMIT, &terse);
    until("the client to be gone", || (server.open() == 1).then_some(()));
    let commands = |words: &str| {
        let mut socket = UnixStream::connect(terse.path("s.sock")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(words.as_bytes()).unwrap();
        socket
    };
    // Each client and its connection; one more client is accepted, and waits for a place.
    let count = (LIMIT - open() - 1) / 2;
    let mut limited = commands(&format!("set maxconn global {count}\n"));
    limited.read_to_string(&mut String::new()).unwrap();
    let held = gate.write().unwrap();
    let mut clients: Vec<Client> = (0..count).map(|_| terse.client()).collect();
    clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
    until("all requests", || (server.requests().len() == count + 1).then_some(()));
    drop(held);
    clients.iter_mut().for_each(|client| assert_eq!(client.response("GET").text(), "idle"));
    let idle = server.open();
    assert!(idle >= count, "{idle} of {count}");
    clients.push(terse.client());
    // The first of these take the descriptors that are left.
    let commands: Vec<UnixStream> = (0..4).map(|_| commands("prompt\n")).collect();
    for mut socket in &commands {
        socket.read_exact(&mut [0; 1]).unwrap();
    }
    until("the server to see it", || (server.open() < idle).then_some(()));
    drop((commands, clients));
    terse.end();
}

/// Clients have all descriptors, which `ulimit-n` and `maxconn` let them: a request waits for some of them to go.
#[test]
fn requests_wait_for_descriptors() {
    const LIMIT: usize = 60;
    let server = Server::body("late");
    let global = format!("global\n nbthread 1\n maxconn {LIMIT}\n ulimit-n {LIMIT}\n");
    let web = format!("listen web\n bind fd@${{web}}\n server one {} pool-max-conn 0\n", server.address());
    let terse = Terse::with(&format!("{global}{DEFAULTS}\n{web}")).listen("web").start();
    assert_eq!(terse.client().get("/", &[]).text(), "late");
    let open = || open_below(LIMIT, &terse);
    until("the server's connection to be gone", || (server.open() == 0).then_some(()));
    let mut clients: Vec<Client> = Vec::new();
    until("all descriptors to be in use", || {
        let missing = LIMIT.saturating_sub(open());
        clients.extend((0..missing.min(1)).map(|_| terse.client()));
        (missing == 0).then_some(())
    });
    clients[0].send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(!readable(clients[0].stream(), Duration::from_millis(300)), "nothing can be answered yet");
    clients.truncate(1);
    assert_eq!(clients[0].response("GET").text(), "late");
    drop(clients);
    terse.end();
}

/// Descriptors of a process below its limit: those that it has inherited may be above.
fn open_below(limit: usize, terse: &Terse) -> usize {
    let entries = std::fs::read_dir(format!("/proc/{}/fd", terse.pid().as_raw_nonzero())).unwrap();
    let numbers = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().parse::<usize>().unwrap());
    numbers.filter(|number| *number < limit).count()
}

/// A process with 100 descriptors.
fn with_descriptors(words: &str, server: &Server) -> Terse {
    let global = format!("global\n nbthread 1\n ulimit-n 100\n {words}\n");
    let address = server.address();
    let text = format!("{global}{DEFAULTS}\nlisten web\n bind fd@${{web}}\n http-reuse always\n server one {address}\n");
    Terse::with(&text).listen("web").start()
}

/// A connection by which the server may know a user is that client's alone, and the client's requests keep to it.
#[test]
fn connections_that_authenticate_are_private() {
    for (status, field, is_private) in [
        ("401", "WWW-Authenticate: NTLM", true),
        ("401", "WWW-Authenticate: Basic realm=r\r\nWWW-Authenticate: negotiate oRs=", true),
        ("407", "Proxy-Authenticate: ntlm TlRM", true),
        ("401", "WWW-Authenticate: Basic realm=r", false),
        ("401", "Proxy-Authenticate: NTLM", false),
        ("403", "WWW-Authenticate: NTLM", false),
    ] {
        let answer = move |request: &Request, name: &str| match request.target.as_str() {
            "/login" => format!("HTTP/1.1 {status} No\r\n{field}\r\nX-Over: {name}\r\nContent-Length: 0\r\n\r\n"),
            _ => format!("HTTP/1.1 200 OK\r\nX-Over: {name}\r\nContent-Length: 2\r\n\r\nok"),
        };
        let over = |name: char| Server::answering(move |request| answer(request, &format!("{name}{}", request.connection)));
        let (a, b) = (over('a'), over('b'));
        // Rules that hide the server's wishes change nothing.
        let lines = "http-reuse always\n http-response del-header WWW-Authenticate\n balance roundrobin";
        let terse = listen(&format!("{lines}\n server a {}\n server b {} weight 256", a.address(), b.address()));
        let over = |client: &mut Client, path: &str| client.get(path, &[]).field("x-over").map(String::from);
        let (mut user, mut other) = (terse.client(), terse.client());
        let own = over(&mut user, "/login");
        for _ in 0..4 {
            if is_private {
                assert_eq!(over(&mut user, "/"), own, "{field}");
                assert_ne!(over(&mut other, "/"), own, "{field}");
            }
        }
        if !is_private {
            until("the other to use it", || (over(&mut user, "/login") == over(&mut other, "/")).then_some(()));
        }
        let open = a.open() + b.open();
        drop(user);
        until("the user's connection to end", || (!is_private || a.open() + b.open() < open).then_some(()));
        terse.end();
    }
}

/// A client's own connections stay as long as it does, so many at most.
#[test]
fn own_connections_stay() {
    let servers: Vec<Server> = (0..6).map(|_| Server::body("own")).collect();
    let lines: String =
        servers.iter().enumerate().map(|(i, server)| format!(" server s{i} {} pool-purge-delay 1ms\n", server.address())).collect();
    let terse = listen(&format!("max-session-srv-conns 4\n http-reuse never\n balance roundrobin\n{lines}"));
    let mut client = terse.client();
    let open = || servers.iter().map(Server::open).sum::<usize>();
    for _ in 0..6 {
        assert_eq!(client.get("/", &[]).text(), "own");
    }
    until("two to be too much", || (open() == 4).then_some(()));
    // Another one's idle connection shows that those too old were looked for.
    let shared = Server::body("shared");
    let other = listen(&format!("server s {} pool-purge-delay 1ms", shared.address()));
    assert_eq!(other.client().get("/", &[]).text(), "shared");
    until("the purge", || (shared.open() == 0).then_some(()));
    for _ in 0..5 {
        assert_eq!(client.get("/", &[]).text(), "own");
    }
    assert!(servers.iter().map(Server::accepted).sum::<usize>() <= 8);
    drop(client);
    until("them to end with their client", || (open() == 0).then_some(()));
    other.end();
    terse.end();
}

/// Requests share the connections that have their name.
#[test]
fn named_connections() {
    let server = Server::answering(|request| ok(&request.connection.to_string()));
    let words = "pool-conn-name req.hdr(x-name) pool-low-conn 2";
    let terse = listen(&format!("http-reuse always\n server one {} {words}", server.address()));
    let mut client = terse.client();
    let mut over = |name: &str| client.get("/", &[("X-Name", name)]).text();
    let (a, b) = (over("a"), over("b"));
    assert_ne!(a, b);
    assert_eq!([over("a"), over("b"), over("b"), over("a")], [&*a, &*b, &*b, &*a]);
    assert!(![a, b].contains(&over("")));
    assert_eq!(server.accepted(), 3);
    terse.end();
    // One of each kind stays without need, except for names without end.
    let terse =
        listen(&format!("http-reuse always\n server one {} pool-conn-name req.hdr(x-name) pool-purge-delay 1h", server.address()));
    let mut client = terse.client();
    until("those before to end", || (server.open() == 0).then_some(()));
    for name in 0..20 {
        client.get("/", &[("X-Name", &name.to_string())]);
    }
    until("most to be closed", || (server.open() == 8).then_some(()));
    terse.end();
}

#[test]
fn closed_with_httpclose() {
    let server = Server::body("once");
    let terse = listen(&format!("option httpclose\n server one {}", server.address()));
    for _ in 0..2 {
        let mut client = terse.client();
        assert_eq!(client.get("/", &[]).field("connection"), Some("close"));
        assert!(client.is_closed());
    }
    assert!(server.requests().iter().all(|request| request.field("connection") == Some("close")));
    assert_eq!(server.accepted(), 2);
    until("the server's connections to close", || (server.open() == 0).then_some(()));
    terse.end();
}

#[test]
fn closed_to_servers_only() {
    let server = Server::body("once");
    let terse = listen(&format!("option http-server-close\n server one {}", server.address()));
    let mut client = terse.client();
    for _ in 0..3 {
        assert_eq!(client.get("/", &[]).field("connection"), None);
    }
    assert!(server.requests().iter().all(|request| request.field("connection") == Some("close")));
    assert_eq!(server.accepted(), 3);
    terse.end();
}

/// Several requests in one segment are answered in their order, bodies and missing bodies in their places.
#[test]
fn pipelined() {
    let server = Server::answering(|request| match request.method.as_str() {
        "HEAD" => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_owned(),
        _ => ok(&format!("{} {}", request.target, String::from_utf8_lossy(&request.body))),
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send(concat!(
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /",
        "HEAD /3 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /4 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
        "\r\nGET /5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /6 HTTP/1.1\r\nHost: a\r\n\r\n",
    ));
    let said: Vec<String> =
        ["GET", "POST", "HEAD", "POST", "GET"].into_iter().map(|method| client.response(method).text()).collect();
    assert_eq!(said, ["/1 ", "/2 GET /", "", "/4 abcde", "/5 "]);
    assert!(client.is_closed(), "nothing follows Connection: close");
    assert_eq!(server.requests().len(), 5);
    terse.end();
}

/// More requests at once than any buffer holds.
#[test]
fn pipelined_by_the_thousand() {
    let server = Server::answering(|request| ok(&request.target));
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    let mut sender = client.stream().try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let requests: String = (0..2_000).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
        std::io::Write::write_all(&mut sender, requests.as_bytes()).unwrap();
    });
    for number in 0..2_000 {
        assert_eq!(client.response("GET").text(), format!("/{number}"));
    }
    sending.join().unwrap();
    terse.end();
}

#[test]
fn of_old_clients() {
    let server = Server::body("old");
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = terse.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let response = client.response("GET");
    assert_eq!((response.status, response.text().as_str()), (200, "old"));
    assert!(client.is_closed());

    let mut client = terse.client();
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n");
        let response = client.response("GET");
        assert_eq!((response.text().as_str(), response.field("connection")), ("old", Some("keep-alive")));
    }
    terse.end();
}

/// A message goes on in the version that terse speaks (RFC 9112 section 2.3), but for requests that no server of 1.1 would take.
#[test]
fn of_any_version_on_either_side() {
    let server = Server::answering(|request| {
        let line = &request.line;
        format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len())
    });
    let ask = |lines: &str, request: &str| {
        let text =
            format!("global\n nbthread 1\n{lines}\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n server one {}\n", server.address());
        let terse = Terse::with(&text).listen("web").start();
        let mut client = terse.client();
        client.send(request);
        let response = client.response("GET");
        terse.end();
        (response.text(), response.line)
    };
    for (lines, request, asked, answered) in [
        ("", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "HTTP/1.1", "HTTP/1.1"),
        ("", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1", "HTTP/1.1"),
        ("", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.0", "HTTP/1.1"),
        ("http-conformance haproxy", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "HTTP/1.0", "HTTP/1.0"),
        ("http-conformance haproxy", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1", "HTTP/1.0"),
    ] {
        let expected = (format!("GET / {asked}"), format!("{answered} 200 OK"));
        assert_eq!(ask(lines, request), expected, "{lines} {request:?}");
    }
}

/// A server of HTTP/1.0 closes after each response unless it announces otherwise.
#[test]
fn of_old_servers() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.request() {
            match request.target.as_str() {
                "/kept" => connection.send("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"),
                "/length" => connection.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
                _ => {
                    connection.send("HTTP/1.0 200 OK\r\n\r\nok");
                    return;
                }
            };
        }
    });
    let terse = listen(&format!("http-reuse always\n server one {}", server.address()));
    let mut client = terse.client();
    for path in ["/kept", "/kept", "/length", "/closed", "/kept"] {
        let response = client.get(path, &[]);
        if path == "/closed" {
            client = terse.client();
        }
        assert_eq!((response.status, response.text().as_str()), (200, "ok"), "{path}");
    }
    let connections: Vec<usize> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 0, 1, 2]);
    terse.end();
}

/// Fields that belong to one connection do not travel over the next (RFC 9110 section 7.6.1).
#[test]
fn hop_by_hop_fields() {
    let server = Server::answering(
        |_| "HTTP/1.1 200 OK\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-End: 1\r\nContent-Length: 0\r\n\r\n",
    );
    let terse = listen(&format!("server one {}", server.address()));
    let response = terse.client().get(
        "/",
        &[
            ("Connection", "X-Hop, Host, Content-Length"),
            ("X-Hop", "1"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"),
            ("TE", "gzip, trailers"),
            ("Upgrade", "h2c"),
            ("X-End", "1"),
        ],
    );
    let names = |fields: &[(String, String)]| fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect::<Vec<_>>();
    assert_eq!(names(&response.fields), ["x-end", "content-length"]);
    let seen = server.requests().remove(0);
    assert_eq!(names(&seen.fields), ["host", "x-end", "te"]);
    assert_eq!(seen.field("te"), Some("trailers"));
    terse.end();
}

/// Fields of one hop that rules and captures see, and those that they may set.
#[test]
fn rules_see_what_is_theirs() {
    let server = Server::answering(
        |_| "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop, Upgrade\r\nX-Hop: 1\r\nUpgrade: h2, h2c\r\nContent-Length: 0\r\n\r\n",
    );
    let rules = "log stdout format raw local0\n log-format \"seen %hr %hs\"\n capture request header Connection len 60
 capture response header Connection len 60
 http-request set-header X-Seen \"<%[req.fhdr(connection)]>\"
 http-response set-header X-Seen \"<%[res.fhdr(connection)]><%[res.fhdr(upgrade)]><%[res.fhdr(x-hop)]>\"
 http-request set-var(txn.path) path
 http-request set-header Connection close if { path /server }
 http-response set-header Connection close if { var(txn.path) -m str /client }";
    let terse = listen(&format!("{rules}\n server one {}", server.address()));
    let mut client = terse.client();
    let response = client.get("/", &[("Connection", "X-Mine, Keep-Alive"), ("X-Mine", "1")]);
    assert_eq!((response.field("x-seen"), response.field("upgrade")), (Some("<X-Hop><><>"), None), "{:?}", response.fields);
    assert_eq!(response.field("connection"), None);
    until("the log", || terse.stdout().contains("seen {X-Mine} {X-Hop}").then_some(()));
    assert_eq!(client.get("/server", &[]).field("connection"), None);
    assert_eq!(client.get("/client", &[]).field("connection"), Some("close"));
    assert!(client.is_closed());
    let seen = server.requests();
    assert_eq!((seen[0].field("x-seen"), seen[0].field("connection")), (Some("<X-Mine>"), None));
    let said: Vec<_> = seen.iter().map(|request| request.field("connection")).collect();
    assert_eq!(said, [None, Some("close"), None]);
    terse.end();
}

/// `Connection: close` from either side ends that side's connection, not the other's.
#[test]
fn closed_by_either_side() {
    let server = Server::answering(|request| match request.target.as_str() {
        "/close" => "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok(""),
    });
    let terse = listen(&format!("http-reuse always\n server one {}", server.address()));
    let mut client = terse.client();
    for path in ["/", "/close", "/"] {
        let response = client.get(path, &[]);
        assert_eq!((response.status, response.field("connection")), (200, None), "{path}");
    }
    assert_eq!(server.accepted(), 2);
    let response = client.get("/", &[("Connection", "close")]);
    assert_eq!(response.field("connection"), Some("close"));
    assert!(client.is_closed());
    assert_eq!(Client::connect(terse.address("web")).get("/", &[]).status, 200);
    assert_eq!(server.accepted(), 2, "the server's connection outlives the client's");
    terse.end();
}

/// Names of fields are spelled for clients and servers that look for them with regard to case, and only for them.
#[test]
fn names_are_spelled_as_they_are_wanted() {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-id: x-id\r\nX-Other: 1\r\n\r\nok");
    let words = "h1-case-adjust x-id X-ID\n h1-case-adjust-file \"${dir}/names\"";
    for (option, asks, answers) in [
        ("", ("x-id", "host"), ("x-id", "content-length")),
        ("option h1-case-adjust-bogus-server", ("X-ID", "HOST"), ("x-id", "content-length")),
        ("option h1-case-adjust-bogus-client", ("x-id", "host"), ("X-ID", "Content-Length")),
    ] {
        let text = format!(
            "global\n nbthread 1\n {words}\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n {option}\n \
             http-request return status 200 hdr x-id 1 if {{ path /own }}\n server one {}\n",
            server.address()
        );
        let terse = Terse::with(&text).file("names", "# names\nhost HOST\ncontent-length Content-Length\n").listen("web").start();
        let mut client = terse.client();
        for path in ["/", "/own"] {
            client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-id: 1\r\n\r\n"));
            let answer = client.response("GET");
            let has = |wanted: &str| answer.fields.iter().any(|(name, _)| name == wanted);
            assert!(has(answers.0), "{option} {path}: {:?}", answer.fields);
            assert!(path == "/own" || has(answers.1) && has("X-Other"), "{option}: {:?}", answer.fields);
        }
        let request = server.requests().pop().unwrap();
        for wanted in [asks.0, asks.1] {
            assert!(request.fields.iter().any(|(name, _)| name == wanted), "{option}: {:?}", request.fields);
        }
        terse.end();
    }
}
