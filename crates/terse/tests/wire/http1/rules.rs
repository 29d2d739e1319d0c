//! Rules and options that answer, edit and route, as a client and a server see them.

use super::support::Terse;
use super::support::client::Response;
use super::support::proxy::{DEFAULTS, listen, sections};
use super::support::server::{Request, Server};

/// Returns the response to a request from a proxy with these lines, and the request that its server has seen.
fn through(lines: &str, request: &str) -> (Response, Option<Request>) {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nX-Server: one\r\nServer: x\r\nContent-Length: 2\r\n\r\nok");
    let terse = listen(&format!("{lines}\n server one {}", server.address()));
    let mut client = terse.client();
    client.send(request);
    let response = client.response(request.split(' ').next().unwrap());
    terse.end();
    (response, server.requests().pop())
}

const GET: &str = "GET /a/b?c=d HTTP/1.1\r\nHost: example.org\r\nX-In: 1\r\nX-In: 2\r\nCookie: a=b\r\n\r\n";

#[test]
fn answers_that_are_made_here() {
    for (lines, status, field, value, body) in [
        ("http-request return status 200 content-type text/plain string hello", 200, "content-type", "text/plain", Some("hello")),
        ("http-request return status 429 hdr Retry-After 5", 429, "retry-after", "5", Some("")),
        (
            "http-request return status 200 content-type text/plain lf-string %[path]",
            200,
            "content-type",
            "text/plain",
            Some("/a/b"),
        ),
        ("http-request deny", 403, "content-type", "text/html", None),
        ("http-request deny deny_status 404 if { path_beg /a }", 404, "content-type", "text/html", None),
        ("http-request redirect location /x", 302, "location", "/x", Some("")),
        ("http-request redirect prefix http://b code 301", 301, "location", "http://b/a/b?c=d", Some("")),
        ("http-request redirect prefix http://b drop-query", 302, "location", "http://b/a/b", Some("")),
        ("http-request redirect scheme https code 308", 308, "location", "https://example.org/a/b?c=d", Some("")),
        ("redirect location /x code 303 set-cookie seen=1", 303, "set-cookie", "seen=1; path=/;", Some("")),
        ("http-request redirect location /%[path,field(2,/)]-%[hdr(host)]", 302, "location", "/a-example.org", Some("")),
        ("monitor-uri /a/b?c=d", 200, "content-type", "text/html", None),
    ] {
        let (response, seen) = through(lines, GET);
        assert_eq!((response.status, response.field(field)), (status, Some(value)), "{lines}: {response:?}");
        assert!(body.is_none_or(|body| response.text() == body), "{lines}: {}", response.text());
        assert!(seen.is_none(), "{lines}");
    }
}

/// As in HAProxy 3.5: the version of the request stays known, and the predefined condition on it holds.
#[test]
fn rules_on_answers_know_the_version_of_the_request() {
    for set in ["http-response", "http-after-response"] {
        let lines = format!("{set} set-header X-Version %[req.ver]\n {set} set-header X-Modern yes if HTTP_1.1");
        let (response, _) = through(&lines, GET);
        assert_eq!((response.field("x-version"), response.field("x-modern")), (Some("1.1"), Some("yes")), "{set}");
        let (response, _) = through(&lines, "GET / HTTP/1.0\r\n\r\n");
        assert_eq!((response.field("x-version"), response.field("x-modern")), (Some("1.0"), None), "{set}");
    }
}

/// What is told of a response has no value in rules on requests, which is told of.
#[test]
fn the_status_is_told_of_answers_alone() {
    let head = format!("{DEFAULTS}\nlisten web\n bind unix@${{dir}}/web\n");
    let refused = Terse::with(&format!("{head} http-request set-header X %[txn.status]\n")).arg(&["-c"]).run();
    assert!(refused.stderr.contains("txn.status"), "{}", refused.stderr);
    let warned = Terse::with(&format!("{head} http-request deny if {{ txn.status 200 }}\n")).arg(&["-c"]).run();
    assert!(warned.stderr.contains("[WARNING]"), "{}", warned.stderr);
    let (response, _) = through("http-response set-header X-Status %[txn.status]", GET);
    assert_eq!(response.field("x-status"), Some("200"));
}

#[test]
fn cookies_that_a_cache_could_give_to_others_are_blocked() {
    for (fields, status) in [
        ("Set-Cookie: a=b\r\nLast-Modified: x", 502),
        ("Set-Cookie: a=b\r\nCache-Control: public, max-age=9", 502),
        ("Set-Cookie: a=b\r\nCache-Control: no-cache=\"set-cookie\"\r\nETag: x", 200),
        ("Set-Cookie: a=b\r\nCache-Control: private\r\nETag: x", 200),
        ("Set-Cookie: a=b", 200),
        ("ETag: x", 200),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: 2\r\n\r\nok");
        let server = Server::answering(move |_| answer.clone());
        let terse = listen(&format!("option checkcache\n server one {}", server.address()));
        let mut client = terse.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let response = client.response("GET");
        assert_eq!(response.status, status, "{fields}");
        assert_eq!(response.field("set-cookie"), Some("a=b").filter(|_| status == 200 && fields.starts_with("Set")), "{fields}");
        terse.end();
    }
}

/// `cookie ... nocache` makes the response private before it is judged.
#[test]
fn a_cookie_of_ours_can_make_a_response_private() {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nLast-Modified: x\r\nContent-Length: 2\r\n\r\nok");
    for (cookie, status) in [("cookie S insert indirect nocache", 200), ("cookie S insert indirect", 502)] {
        let terse = listen(&format!("option checkcache\n {cookie}\n server one {} cookie one", server.address()));
        assert_eq!(terse.client().get("/", &[]).status, status, "{cookie}");
        terse.end();
    }
}

#[test]
fn a_server_that_clients_go_to_themselves() {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (prefix, request, location) in [
        ("http://img.example.org", "GET /a/b?c=d HTTP/1.1", Some("http://img.example.org/a/b?c=d")),
        ("http://img.example.org/x", "HEAD / HTTP/1.1", Some("http://img.example.org/x/")),
        ("/", "GET /a HTTP/1.1", Some("/a")),
        ("http://img.example.org", "POST /a HTTP/1.1", None),
    ] {
        let terse = listen(&format!("server one {} redir {prefix}", server.address()));
        let mut client = terse.client();
        for _ in 0..2 {
            let length = if request.starts_with("POST") { "Content-Length: 0\r\n" } else { "" };
            client.send(format!("{request}\r\nHost: a\r\n{length}\r\n"));
            let response = client.response(request.split(' ').next().unwrap());
            assert_eq!(response.status, if location.is_some() { 302 } else { 200 }, "{request}");
            assert_eq!(response.field("location"), location, "{request}");
        }
        terse.end();
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn converters_that_know_the_stream_and_leave_something_behind() {
    let lines = "declare capture request len 3\n http-request set-var(txn.kept) path,capture-req(0),capture-req(7)\n \
                 http-request set-header X-Before %[str(yes),when(forwarded)]%[str(no),when(!processed)]%[str(calm),when(normal)]\n \
                 http-response set-header X-After %[str(yes),when(forwarded)]%[str(no),when(error)]%[str(run),when(!stopping)]\n \
                 http-response set-header X-Kept %[capture.req.hdr(0)]=%[var(txn.kept)]";
    let (response, seen) = through(lines, GET);
    assert_eq!(seen.unwrap().field("x-before"), Some("nocalm"));
    assert_eq!((response.field("x-after"), response.field("x-kept")), (Some("yesrun"), Some("/a/=/a/b")));
}

/// Groups by the lines of both, passwords in both forms; ada's and ben's is `insecure`.
const USERS: &str = "\
userlist ops
 group admins users ada
 group readers
 user ada password SHA256 groups readers
 user ben insecure-password insecure groups readers
 user off
";

#[test]
fn users_and_their_groups() {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    // The list is defined after its uses.
    let others = format!("backend b\n server one {}\n{}", server.address(), USERS.replace("SHA256", SHA256));
    let terse = sections(
        " acl admin http_auth_group(ops) admins\n http-request auth realm Ops unless { http_auth(ops) }\n \
         http-request deny if { path_beg /admin } !admin\n http-request set-header X-Who %[http_auth_group(ops)]\n \
         default_backend b",
        &others,
    );
    let mut client = terse.client();
    for (path, credentials, status) in [
        ("/", None, 401),
        ("/", Some("YWRhOmluc2VjdXJl"), 200),
        ("/", Some("YmVuOmluc2VjdXJl"), 200),
        ("/", Some("YmVuOkluc2VjdXJl"), 401),
        ("/", Some("b2ZmOg=="), 401),
        ("/", Some("nonsense"), 401),
        ("/admin", Some("YWRhOmluc2VjdXJl"), 200),
        ("/admin", Some("YmVuOmluc2VjdXJl"), 403),
    ] {
        let value = credentials.map(|credentials| format!("Basic {credentials}"));
        let fields: Vec<_> = value.iter().map(|value| ("Authorization", value.as_str())).collect();
        let response = client.get(path, &fields);
        assert_eq!(response.status, status, "{path} {credentials:?}");
        if status == 401 {
            assert_eq!(response.field("www-authenticate"), Some("Basic realm=\"Ops\""));
        }
    }
    assert_eq!(server.requests().last().and_then(|seen| seen.field("x-who").map(str::to_owned)).as_deref(), Some("ada"));
    terse.end();
}

/// `insecure`, as crypt(3) hashes it by SHA-256.
const SHA256: &str = "$5$saltsalt$fvnPyduj9u24A81pscfSrUoNJtF7mS66xsI13gOHYG6";

#[test]
fn requests_that_are_edited() {
    for (lines, line, name, values) in [
        ("http-request set-header X-In 3", "GET /a/b?c=d HTTP/1.1", "x-in", &["3"][..]),
        ("http-request add-header X-In 3", "GET /a/b?c=d HTTP/1.1", "x-in", &["1", "2", "3"]),
        ("http-request del-header X-In", "GET /a/b?c=d HTTP/1.1", "x-in", &[]),
        ("http-request replace-header X-In (.*) <\\1>", "GET /a/b?c=d HTTP/1.1", "x-in", &["<1>", "<2>"]),
        ("http-request set-header X-In %[src]:%[method]:%[path]", "GET /a/b?c=d HTTP/1.1", "x-in", &["127.0.0.1:GET:/a/b"]),
        ("http-request set-path /x", "GET /x?c=d HTTP/1.1", "host", &["example.org"]),
        ("http-request set-query e=f", "GET /a/b?e=f HTTP/1.1", "host", &["example.org"]),
        ("http-request set-uri /x?y", "GET /x?y HTTP/1.1", "host", &["example.org"]),
        ("http-request set-method PUT", "PUT /a/b?c=d HTTP/1.1", "host", &["example.org"]),
        ("http-request replace-path /a/(.*) /\\1/z", "GET /b/z?c=d HTTP/1.1", "host", &["example.org"]),
        (
            "http-request set-var(txn.x) str(v)\n http-request set-header X-In %[var(txn.x)]",
            "GET /a/b?c=d HTTP/1.1",
            "x-in",
            &["v"],
        ),
        (
            "acl is_a path_beg /a\n http-request set-header X-In yes if is_a !{ method POST }",
            "GET /a/b?c=d HTTP/1.1",
            "x-in",
            &["yes"],
        ),
        (
            "http-request set-header X-In no if { path_beg /z } or { hdr(host) -i other }",
            "GET /a/b?c=d HTTP/1.1",
            "x-in",
            &["1", "2"],
        ),
    ] {
        let (response, seen) = through(lines, GET);
        let seen = seen.unwrap();
        assert_eq!((response.status, seen.line.as_str()), (200, line), "{lines}");
        assert_eq!(seen.every(name).collect::<Vec<_>>(), values, "{lines}");
    }
}

/// `option http-restrict-req-hdr-names`: its argument, the names that a request has, and those that its server sees of them; none
/// where the request is refused.
#[test]
fn names_that_servers_could_take_for_others() {
    const ALL: &[&str] = &["X-User", "X_User", "X-my_hdr", "X-end_", "_", "X.y", "X9"];
    for (option, sent, seen) in [
        ("", ALL, Some(ALL)),
        ("option http-restrict-req-hdr-names preserve", ALL, Some(ALL)),
        ("option http-restrict-req-hdr-names delete", ALL, Some(&["X-User", "X9"][..])),
        (
            "option http-restrict-req-hdr-names delete\n http-request deny if { req.fhdr(x_user) -m found }",
            ALL,
            Some(&["X-User", "X9"]),
        ),
        ("option http-restrict-req-hdr-names reject", ALL, None),
        ("option http-restrict-req-hdr-names reject", &["X-User", "X-end_"], None),
        ("option http-restrict-req-hdr-names reject", &["X-User", "X9"], Some(&["X-User", "X9"])),
    ] {
        let lines: String = sent.iter().map(|name| format!("{name}: on\r\n")).collect();
        let (response, request) = through(option, &format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n"));
        assert_eq!(response.status, if seen.is_some() { 200 } else { 403 }, "{option} {sent:?}");
        assert_eq!(request.is_some(), seen.is_some(), "{option} {sent:?}");
        for name in request.iter().flat_map(|_| ALL) {
            let there = request.as_ref().and_then(|request| request.field(name)).is_some();
            assert_eq!(there, seen.is_some_and(|seen| seen.contains(name)), "{option} {sent:?}: {name}");
        }
    }
}

/// The backend's setting holds for the requests that it serves, beside the frontend's.
#[test]
fn names_are_judged_by_backends_too() {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let at = server.address();
    let others = format!(
        "backend clean\n option http-restrict-req-hdr-names delete\n server one {at}\n\
         backend wary\n option http-restrict-req-hdr-names reject\n server one {at}\n\
         backend any\n server one {at}\n"
    );
    let rules = " use_backend clean if { path /clean }\n use_backend wary if { path /wary }\n default_backend any";
    let terse = sections(rules, &others);
    let mut client = terse.client();
    for (path, status, kept) in [("/clean", 200, false), ("/any", 200, true), ("/wary", 403, false)] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\nX-my_hdr: on\r\n\r\n"));
        assert_eq!(client.response("GET").status, status, "{path}");
        let seen = server.requests().pop().filter(|request| request.target == path);
        assert_eq!(seen.is_some(), status == 200, "{path}");
        assert_eq!(seen.and_then(|request| request.field("x-my_hdr").map(String::from)).is_some(), kept, "{path}");
    }
    terse.end();
}

/// With `option http-use-proxy-header` fields of a request with an absolute target that are meant for proxies are meant for terse.
#[test]
fn requests_for_a_proxy() {
    let lines = "http-request auth realm R unless { http_auth(people) }\n http-request return status 200";
    for (option, [origin, absolute]) in [("", [401, 401]), ("option http-use-proxy-header\n ", [401, 407])] {
        let text = format!(
            "userlist people\n user joe insecure-password x\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n {option}{lines}\n"
        );
        let terse = Terse::with(&text).listen("web").start();
        let ask = |target: &str, field: &str| {
            let mut client = terse.client();
            client.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n{field}\r\n"));
            client.response("GET")
        };
        let (old, new) = ("Authorization: Basic am9lOng=\r\n", "Proxy-Authorization: Basic am9lOng=\r\n");
        let is_on = absolute == 407;
        assert_eq!([ask("/", "").status, ask("http://h/", "").status], [origin, absolute], "{option}");
        assert_eq!(ask("http://h/", "").field("proxy-authenticate").is_some(), is_on);
        assert_eq!([ask("/", old).status, ask("/", new).status], [200, origin], "{option}");
        assert_eq!([ask("http://h/", new).status == 200, ask("http://h/", old).status == 200], [is_on, !is_on], "{option}");
        let closes = |target| ask(target, &format!("{old}{new}Proxy-Connection: close\r\n")).field("connection") == Some("close");
        assert_eq!([closes("/"), closes("http://h/")], [false, is_on], "{option}");
        terse.end();
    }
}

/// Targets that the option lets in, and their values in rules.
#[test]
fn targets_with_fragments() {
    const LOOSE: &str = "option accept-unsafe-violations-in-http-request\n ";
    for (option, rule, target, seen) in [
        ("", "http-request normalize-uri fragment-strip", "/a#b", None),
        (LOOSE, "", "/a#b", Some("/a#b")),
        (LOOSE, "http-request normalize-uri fragment-strip", "/a#b", Some("/a")),
        (LOOSE, "http-request normalize-uri fragment-encode", "/a#b/#c", Some("/a%23b/%23c")),
        (LOOSE, "", "/ä", Some("/ä")),
        (LOOSE, "", "/a\tb", None),
        (LOOSE, "", "/a\0b", None),
        (LOOSE, "", "http://g#@h/", None),
        ("", "", "http://h#a", None),
    ] {
        let (response, request) = through(&format!("{option}{rule}"), &format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(response.status, if seen.is_some() { 200 } else { 400 }, "{option}{rule} {target:?}");
        assert_eq!(request.as_ref().map(|request| request.target.as_str()), seen, "{option}{rule}");
    }
}

/// `tune.bufsize 2048` and these lines of `global`, a request with so much of a body, and edits of 71 bytes each: the status.
fn edited(global: &str, body: usize, edits: usize, strict: bool) -> (u16, usize) {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let value = "x".repeat(60);
    let edits: String = (0..edits).map(|i| format!(" http-request set-header X-Edit{i} {value}\n")).collect();
    let mode = if strict { "" } else { " http-request strict-mode off\n" };
    let text = format!(
        "global\n nbthread 1\n tune.bufsize 2048\n{global}\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n \
         option http-buffer-request\n{mode}{edits} server one {}\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = terse.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {body}\r\n\r\n{}", "b".repeat(body)));
    let status = client.response("POST").status;
    terse.end();
    let done =
        server.requests().pop().map_or(0, |request| request.fields.iter().filter(|(name, _)| name.starts_with("X-Edit")).count());
    (status, done)
}

/// With `tune.maxrewrite`, bodies that wait take from the room that rules have.
#[test]
fn room_for_edits() {
    const SHARED: &str = " tune.maxrewrite 160\n";
    for (global, body, edits, strict, expected) in [
        (SHARED, 2000, 2, true, (200, 2)),
        (SHARED, 2000, 3, true, (500, 0)),
        (SHARED, 2000, 3, false, (200, 2)),
        (SHARED, 2000, 9, false, (200, 2)),
        (SHARED, 100, 9, true, (200, 9)),
        (SHARED, 0, 9, true, (200, 9)),
        (SHARED, 0, 40, true, (500, 0)),
        ("", 2000, 9, true, (200, 9)),
        ("", 2000, 40, true, (500, 0)),
        // Never more than half.
        (" tune.maxrewrite 100000\n", 2000, 9, true, (200, 9)),
        (" tune.maxrewrite 100000\n", 2000, 20, true, (500, 0)),
    ] {
        assert_eq!(edited(global, body, edits, strict), expected, "{global} {body} {edits} {strict}");
    }
}

/// Also those that `strict-mode off` leaves out.
#[test]
fn edits_that_cannot_be_done_are_counted() {
    let server = Server::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}}\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n \
         http-request strict-mode off if {{ path /soft }}\n http-request set-method \"G ET\"\n \
         http-response strict-mode off\n http-response set-header X {}\n server one {}\n",
        "x".repeat(20_000),
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let mut client = terse.client();
    for (path, status) in [("/soft", 200), ("/strict", 500)] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(client.response("GET").status, status);
    }
    let table = terse.command("show stat");
    let column = table.lines().next().unwrap().split(',').position(|name| name == "wrew").unwrap();
    let figure = |row: &str| table.lines().find(|line| line.starts_with(row)).unwrap().split(',').nth(column).unwrap();
    // Rules on requests run before there is a backend and a server to count for.
    assert_eq!((figure("web,FRONTEND"), figure("web,BACKEND"), figure("web,one")), ("3", "1", "1"), "{table}");
    terse.end();
}

#[test]
fn responses_that_are_edited() {
    for (lines, name, value) in [
        ("http-response set-header X-Server two", "x-server", Some("two")),
        ("http-response del-header Server", "server", None),
        ("http-response add-header X-More %[status]", "x-more", Some("200")),
        ("http-response replace-header X-Server o(.*) u\\1", "x-server", Some("une")),
        ("http-after-response set-header X-After %[res.hdr(x-server)]", "x-after", Some("one")),
        ("http-request set-var(txn.p) path\n http-response set-header X-Path %[var(txn.p)]", "x-path", Some("/a/b")),
    ] {
        let (response, _) = through(lines, GET);
        assert_eq!((response.status, response.field(name)), (200, value), "{lines}");
    }
    let (denied, _) = through("http-response deny if { status 200 }", GET);
    assert_eq!(denied.status, 502);
    let (returned, seen) = through("http-response return status 299 content-type text/plain string instead", GET);
    assert_eq!((returned.status, returned.text().as_str()), (299, "instead"));
    assert!(seen.is_some());
    let (after, _) = through("http-request deny\n http-after-response set-header X-After yes", GET);
    assert_eq!((after.status, after.field("x-after")), (403, Some("yes")), "it also sees answers that are made here");
}

#[test]
fn the_clients_address() {
    let with = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
    let without = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (lines, request, name, values) in [
        ("option forwardfor", without, "x-forwarded-for", &["127.0.0.1"][..]),
        ("option forwardfor", with, "x-forwarded-for", &["192.0.2.1", "127.0.0.1"]),
        ("option forwardfor if-none", with, "x-forwarded-for", &["192.0.2.1"]),
        ("option forwardfor if-none", without, "x-forwarded-for", &["127.0.0.1"]),
        ("option forwardfor except 127.0.0.0/8", without, "x-forwarded-for", &[]),
        ("option forwardfor except 10.0.0.0/8", without, "x-forwarded-for", &["127.0.0.1"]),
        ("option forwardfor header X-Client", without, "x-client", &["127.0.0.1"]),
        ("option originalto", without, "x-original-to", &["127.0.0.1"]),
    ] {
        let (_, seen) = through(lines, request);
        assert_eq!(seen.unwrap().every(name).collect::<Vec<_>>(), values, "{lines}");
    }
}

/// Effect of a response made here on the connection: none, when the request was read to its end.
#[test]
fn the_connection_behind_an_answer() {
    let terse = listen("http-request deny if { path /deny }\n http-request return status 200 content-type text/plain string ok");
    let mut client = terse.client();
    for _ in 0..3 {
        assert_eq!(client.get("/deny", &[]).status, 403);
        assert_eq!(client.get("/", &[]).text(), "ok");
    }
    client.send("POST /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 27\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("POST").status, 403);
    client.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"", "a body is no request");
    let mut client = terse.client();
    client.send("POST /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("POST").status, 403);
    client.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"", "nor a part of one");
    terse.end();
}

#[test]
fn backends_by_rule() {
    let (first, second) = (Server::body("first"), Server::body("second"));
    let terse = sections(
        "acl is_api path_beg /api\n use_backend api if is_api\n use_backend %[path,field(2,/)] if { path_beg /by }\n default_backend app",
        &format!(
            "backend app\n server one {}\nbackend api\n server one {}\nbackend by\n server one {1}",
            first.address(),
            second.address()
        ),
    );
    let mut client = terse.client();
    for (path, body) in [("/", "first"), ("/api/x", "second"), ("/a", "first"), ("/by/x", "second"), ("/byx/y", "first")] {
        assert_eq!(client.get(path, &[]).text(), body, "{path}");
    }
    terse.end();
    let terse = sections("use_backend none if { path /none }", "backend none\n");
    assert_eq!(terse.client().get("/none", &[]).status, 503, "a backend without servers");
    assert_eq!(terse.client().get("/", &[]).status, 503, "no backend");
    terse.end();
}

#[test]
fn error_pages() {
    let page = "HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain\r\nX-Page: mine\r\n\r\nnot here";
    let lines = format!(
        "{DEFAULTS}\nlisten web\n bind fd@${{web}}\n errorfile 403 \"${{dir}}/403.http\"\n http-request deny if {{ path /deny }}\n \
         compression algo gzip\n http-after-response set-header Why %[res.comp_reason]\n"
    );
    let terse = Terse::with(&lines).file("403.http", page).listen("web").start();
    let own = terse.client().get("/deny", &[]);
    assert_eq!((own.status, own.text().as_str(), own.field("x-page")), (403, "not here", Some("mine")));
    let built_in = terse.client().get("/other", &[]);
    assert_eq!((built_in.status, built_in.field("content-type")), (503, Some("text/html")));
    assert!(built_in.text().contains("503 Service Unavailable"), "{}", built_in.text());
    assert_eq!((own.field("why"), built_in.field("why")), (Some("own-answer"), Some("own-answer")));
    terse.end();
}

/// `http-error`: the arguments of `return`, for terse's own responses, and for bytes that were no request too.
#[test]
fn error_pages_written_in_the_configuration() {
    let terse = sections(
        "http-error status 403 content-type text/plain lf-string \"no %[path] for %[src]\" hdr X-Path %[path]\n \
         http-error status 400 content-type text/plain lf-string \"bad: %[path]\"\n http-error status 503\n \
         http-request deny if { path_beg /deny }",
        "",
    );
    let denied = terse.client().get("/deny/x", &[]);
    assert_eq!((denied.status, denied.text().as_str()), (403, "no /deny/x for 127.0.0.1"));
    assert_eq!((denied.field("x-path"), denied.field("content-type")), (Some("/deny/x"), Some("text/plain")));
    let empty = terse.client().get("/", &[]);
    assert_eq!((empty.status, empty.field("content-length"), empty.text().as_str()), (503, Some("0"), ""));
    let mut client = terse.client();
    client.send("GET /deny HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    let bad = client.response("GET");
    assert_eq!((bad.status, bad.text().as_str()), (400, "bad: "));
    terse.end();
}

#[test]
fn the_last_edit_that_fails_is_an_error() {
    let long = "x".repeat(9000);
    let get = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\n\r\n");
    let edits = "http-after-response set-header A %[var(txn.long)]\n http-after-response set-header B %[var(txn.long)]";
    for (before, status) in [("", 500), ("http-request return status 200\n ", 500), ("http-after-response strict-mode off\n ", 200)]
    {
        let (response, _) = through(&format!("http-request set-var(txn.long) req.hdr(x-long)\n {before}{edits}"), &get);
        assert_eq!((response.status, response.field("a").is_some()), (status, status == 200), "{before}");
        assert_eq!(response.field("b"), None, "{before}");
    }
}

/// While the hash of a password is made, others are served.
#[test]
fn passwords_hold_nobody_up() {
    let hash = format!("$6$rounds=1500000$saltsalt${}", "a".repeat(86));
    let terse = sections(
        "http-request auth if { path /in } !{ http_auth(ops) }\n http-request return status 204",
        &format!("userlist ops\n user joe password {hash}"),
    );
    let mut slow = terse.client();
    slow.send("GET /in HTTP/1.1\r\nHost: a\r\nAuthorization: Basic am9lOng=\r\n\r\n");
    let mut others = terse.client();
    for _ in 0..20 {
        assert_eq!(others.get("/", &[]).status, 204);
    }
    assert!(!super::support::readable(slow.stream(), std::time::Duration::ZERO), "the hash takes much longer");
    assert_eq!(slow.response("GET").status, 401);
    // It is known from now on.
    slow.send("GET /in HTTP/1.1\r\nHost: a\r\nAuthorization: Basic am9lOng=\r\n\r\n");
    assert_eq!(slow.response("GET").status, 401);
    terse.end();
}
