//! Lines of configurations, and their effect on messages.

use super::{Cursor, Flow, run_from};
use crate::inspection::{Side, lend};
use crate::io::Pool;
use crate::reply::Answer;
use crate::stream::Stream;
use crate::trial::{Trial, front, load};
use std::sync::Arc;
use terse_compress::Limit;

const GET: &str = "GET /a/b?c=d HTTP/1.1\nHost: h.example\nX-One: 1\nX-Two: a, b\nCookie: k=v";

/// The first line and the fields of a request after these rules.
fn request_after(rules: &[&str], head: &str) -> (String, Flow) {
    let trial = Trial::front(&lines("http-request", rules));
    let mut stream = trial.stream(head);
    let flow = trial.judge_request(&mut stream);
    (shown(&stream), flow)
}

fn lines(keyword: &str, rules: &[&str]) -> String {
    rules.iter().map(|rule| format!("{keyword} {rule}\n ")).collect()
}

fn shown(stream: &Stream) -> String {
    let request = &stream.request;
    let mut out = [request.method(), b" ", request.target(), b"\n"].concat();
    request.fields.write_to(&mut out);
    String::from_utf8(out).unwrap().replace("\r\n", "\n")
}

/// As in HAProxy 2.6: there is nothing to replace in `*` and in an authority.
#[test]
fn targets_without_a_path_stay() {
    for line in ["OPTIONS *", "CONNECT h.example:80"] {
        let head = format!("{line} HTTP/1.1\nHost: h.example:80");
        for rule in ["replace-path (.*) /foo\\1", "replace-pathq (.*) /foo\\1", "replace-path .* /"] {
            let after = request_after(&[rule], &head).0;
            assert_eq!(after.lines().next(), Some(line), "{rule}");
        }
    }
}

#[test]
fn requests_are_edited() {
    let before = request_after(&[], GET).0;
    for (rules, from, to) in [
        (
            &["set-header X-One %[path] if { path_beg /a }"][..],
            "X-One: 1\nX-Two: a, b\nCookie: k=v",
            "X-Two: a, b\nCookie: k=v\nX-One: /a/b",
        ),
        (&["set-header X-One no unless { path_beg /a }"], "", ""),
        (&["add-header X-One 2"], "Cookie: k=v", "Cookie: k=v\nX-One: 2"),
        (&["add-header X-New \"%[src]:%cp %HM %HU\""], "Cookie: k=v", "Cookie: k=v\nX-New: 192.0.2.7:1234 GET /a/b?c=d"),
        (&["add-header X-New %[req.hdr(cookie)],%%"], "Cookie: k=v", "Cookie: k=v\nX-New: k=v,%"),
        (&["del-header x-one"], "X-One: 1\n", ""),
        (&["del-header x- -m beg"], "X-One: 1\nX-Two: a, b\n", ""),
        (&["replace-header X-Two ^(.).*(.)$ \\2%[method]\\1"], "a, b", "bGETa"),
        (&["replace-value X-Two ^b$ c"], "a, b", "a, c"),
        (&["replace-value X-Two ^x$ c", "replace-header X-None . c"], "", ""),
        (&["set-method POST"], "GET /", "POST /"),
        (&["set-path /fe%[path]"], "/a/b?", "/fe/a/b?"),
        (&["set-path \"/x y\""], "/a/b?", "/x%20y?"),
        (&["set-pathq /x"], "/a/b?c=d", "/x"),
        (&["set-query %[query,regsub(=,:)]&e"], "c=d", "c:d&e"),
        (
            &["set-uri http://o.example%[pathq]"],
            "/a/b?c=d\nHost: h.example\nX-One: 1\nX-Two: a, b\nCookie: k=v",
            "http://o.example/a/b?c=d\nX-One: 1\nX-Two: a, b\nCookie: k=v\nHost: o.example",
        ),
        (&["replace-path (.*) /foo\\1", "replace-path (.*) \\1/bar"], "/a/b?", "/foo/a/b/bar?"),
        (&["replace-pathq /([^?]*)\\?(.*) /\\2/\\1"], "/a/b?c=d", "/c=d/a/b"),
        (&["replace-uri ^/x /y"], "", ""),
        (
            &[
                "set-var(txn.p) path,field(2,/)",
                "set-header X-One <%[var(txn.p)]>",
                "unset-var(txn.p)",
                "add-header X-Two <%[var(txn.p)]>",
            ],
            "X-One: 1\nX-Two: a, b\nCookie: k=v",
            "X-Two: a, b\nCookie: k=v\nX-One: <a>\nX-Two: <>",
        ),
        (
            &["set-var-fmt(req.p) %[path]+%[src]", "set-var(req.p,ifnotset) str(no)", "set-header X-One %[var(req.p)]"],
            "X-One: 1\nX-Two: a, b\nCookie: k=v",
            "X-Two: a, b\nCookie: k=v\nX-One: /a/b+192.0.2.7",
        ),
        (&["normalize-uri query-sort-by-name", "normalize-uri path-strip-dotdot"], "", ""),
        (
            &[
                "set-path /x//./y/../%%7e",
                "normalize-uri path-merge-slashes",
                "normalize-uri path-strip-dot",
                "normalize-uri path-strip-dotdot full",
                "normalize-uri percent-to-uppercase strict",
            ],
            "/a/b?",
            "/x/%7E?",
        ),
        (
            &[
                "set-src req.hdr(x-one),add(167772159)",
                "set-src-port int(5)",
                "set-dst str(::1)",
                "set-dst-port int(70000)",
                "set-header Cookie %[src]:%[src_port]>%[dst]:%[dst_port]>%ci>%[fc_src]",
            ],
            "Cookie: k=v",
            "Cookie: 10.0.0.0:5>::1:80>10.0.0.0>192.0.2.7",
        ),
        (&["allow if { src 192.0.2.0/24 }", "del-header x-one"], "", ""),
        (&["set-log-level silent", "strict-mode on", "capture path len 3"], "", ""),
    ] {
        let (after, _) = request_after(rules, GET);
        let expected = if from.is_empty() { before.clone() } else { before.replacen(from, to, 1) };
        assert_eq!(after, expected, "{rules:?}");
    }
}

#[test]
fn what_cannot_be_done_is_an_error_or_is_left_out() {
    for (rule, soft) in [("set-method \"G ET\"", true), ("set-uri %[var(txn.none)]", true), ("set-method %[var(txn.none)]", false)]
    {
        let rules = ["strict-mode off", rule, "add-header Done yes"];
        let (after, flow) = request_after(if soft { &rules } else { &rules[1..] }, GET);
        match flow {
            Flow::Next => assert!(soft && after.contains("GET /a/b?c=d\n") && after.contains("Done: yes\n"), "{rule}"),
            Flow::Deny(answer) => assert!(!soft && answer.status == 500, "{rule}"),
            _ => panic!("{rule}"),
        }
    }
    let large = format!("set-header X-Large {}", "x".repeat(17_000));
    let (after, flow) = request_after(&["strict-mode off", &large], GET);
    assert!(matches!(flow, Flow::Next) && !after.contains("X-Large"));
}

#[test]
fn framing_is_not_a_rules() {
    for rule in [
        "set-header Content-Length 5",
        "del-header Transfer-Encoding",
        "add-header content-length 1",
        "replace-value Transfer-Encoding . x",
    ] {
        let (plan, said) = load(&front(&lines("http-request", &[rule])));
        assert!(plan.is_some() && said.len() == 1 && said[0].contains("? ") && said[0].contains("does nothing"), "{said:?}");
    }
    let (after, _) = request_after(&["del-header . -m reg"], "POST / HTTP/1.1\nHost: h\nContent-Length: 3");
    assert_eq!(after, "POST /\nContent-Length: 3\n");
}

/// The answer of a rule: its kind, its status, its fields as lines, its body.
fn answer(keyword: &str, rule: &str) -> (char, u16, String, String) {
    let trial = Trial::front(&lines(keyword, &[rule]));
    let mut stream = trial.stream(GET);
    let flow = match keyword {
        "http-request" => trial.judge_request(&mut stream),
        _ => {
            trial.respond(&mut stream, "HTTP/1.1 200 OK\nContent-Length: 0");
            trial.judge_response(&mut stream)
        }
    };
    let (kind, answer): (char, Box<Answer>) = match flow {
        Flow::Answer(answer) => ('a', answer),
        Flow::Deny(answer) => ('d', answer),
        Flow::Tarpit(answer) => ('t', answer),
        _ => panic!("{rule}"),
    };
    assert_eq!(stream.facts.last_rule.as_ref().map(|(_, line)| *line), Some(11), "{rule}");
    let fields = answer
        .fields
        .iter()
        .map(|(name, value)| format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
    (kind, answer.status, fields.collect(), String::from_utf8(answer.body.to_vec()).unwrap())
}

#[test]
fn answers() {
    for (rule, kind, status, fields, body) in [
        ("return", 'a', 200, "", ""),
        ("return status 403", 'a', 403, "", ""),
        ("return hdr x-a %[url] hdr x-none %[var(txn.none)] hdr x-b b", 'a', 200, "x-a: /a/b?c=d\nx-b: b\n", ""),
        ("return content-type text/plain string hello%[path]", 'a', 200, "Content-Type: text/plain\n", "hello%[path]"),
        ("return content-type text/plain lf-string <%[path]>", 'a', 200, "Content-Type: text/plain\n", "</a/b>"),
        ("return content-type text/plain lf-file text hdr X y", 'a', 200, "Content-Type: text/plain\nX: y\n", "path is /a/b\n"),
        ("return file empty hdr X y", 'a', 200, "X: y\n", ""),
        ("return status 404 errorfile page", 'a', 404, "X-Page: yes\n", "No.\n"),
        ("return status 404 errorfiles set", 'a', 404, "X-Page: yes\n", "No.\n"),
        ("deny status 429", 'd', 429, "", ""),
        ("deny status 500 content-type text/plain string no", 'd', 500, "Content-Type: text/plain\n", "no"),
        ("deny deny_status 404 errorfile page if { path_beg /a }", 'd', 404, "X-Page: yes\n", "No.\n"),
        ("deny errorfile empty", 'd', 0, "", ""),
        ("tarpit status 503", 't', 503, "", ""),
        ("redirect location /x", 'a', 302, "Location: /x\nCache-Control: no-cache\n", ""),
        (
            "redirect code 301 location http://%[req.hdr(host)]%[path] keep-query",
            'a',
            301,
            "Location: http://h.example/a/b?c=d\n",
            "",
        ),
        ("redirect prefix https://o drop-query append-slash code 308", 'a', 308, "Location: https://o/a/b/\n", ""),
        (
            "redirect prefix / code 303 set-cookie SEEN=1 if !{ req.cook(SEEN) -m found }",
            'a',
            303,
            "Location: /a/b?c=d\nCache-Control: no-cache\nSet-Cookie: SEEN=1; path=/;\n",
            "",
        ),
        (
            "redirect scheme https clear-cookie K= code 307",
            'a',
            307,
            "Location: https://h.example/a/b?c=d\nCache-Control: no-cache\nSet-Cookie: K=; path=/; Max-Age=0;\n",
            "",
        ),
        (
            "redirect location / set-cookie-fmt P=%[path]",
            'a',
            302,
            "Location: /\nCache-Control: no-cache\nSet-Cookie: P=/a/b; path=/;\n",
            "",
        ),
    ] {
        let expected = (kind, status, fields.to_owned(), body.to_owned());
        assert_eq!(answer("http-request", rule), expected, "{rule}");
    }
    assert_eq!(answer("http-response", "return status 204"), ('a', 204, String::new(), String::new()));
    assert_eq!(answer("http-response", "redirect location /%[status]").2, "Location: /200\nCache-Control: no-cache\n");
}

#[test]
fn pages_of_the_proxy() {
    for (keyword, rule, kind, status) in [
        ("http-request", "deny", 'd', 403),
        ("http-request", "deny deny_status 429", 'd', 429),
        ("http-request", "tarpit", 't', 500),
        ("http-response", "deny", 'd', 502),
        ("http-request", "return status 400 default-errorfiles", 'a', 400),
        ("http-request", "auth realm \"my \\\"own\\\"\"", 'a', 401),
    ] {
        let (said_kind, said_status, fields, body) = answer(keyword, rule);
        assert_eq!((said_kind, said_status), (kind, status), "{rule}");
        assert!(fields.starts_with("Cache-Control: no-cache\nContent-Type: text/html\n"), "{rule}: {fields}");
        assert!(body.starts_with(&format!("<html><body><h1>{status} ")), "{rule}: {body}");
    }
    assert!(
        answer("http-request", "auth realm \"my \\\"own\\\"\"").2.ends_with("WWW-Authenticate: Basic realm=\"my \\\"own\\\"\"\n")
    );
    assert!(answer("http-request", "auth").2.ends_with("realm=\"fe\"\n"));
}

#[test]
fn the_line_of_old_runs_last() {
    let text = front("redirect location /%[path]\n http-request deny if { path /x }");
    let (plan, said) = load(&text);
    assert!(said.len() == 1 && said[0].contains("processed before it"), "{said:?}");
    let rules = &plan.unwrap().frontends[0].request_rules;
    assert_eq!(rules.iter().map(|rule| rule.action.is_last()).collect::<Vec<_>>(), [false, true]);
    let trial = Trial::front("redirect location /%[path] code 301");
    let Flow::Answer(answer) = trial.judge_request(&mut trial.stream(GET)) else { panic!() };
    assert_eq!((answer.status, &*answer.fields[0].1), (301, &b"/%[path]"[..]));
}

#[test]
fn nowhere_to_redirect() {
    let (_, flow) = request_after(&["redirect location %[var(txn.none)] ignore-empty", "deny status 418"], GET);
    assert!(matches!(flow, Flow::Deny(answer) if answer.status == 418));
}

#[test]
fn responses_are_edited() {
    let rules =
        ["set-header X %[status]-%[srv_name]", "set-status 503 reason \"Slow Down\"", "add-header Y %[method]", "del-header Etag"];
    let trial = Trial::front(&lines("http-response", &rules));
    let mut stream = trial.stream(GET);
    trial.respond(&mut stream, "HTTP/1.1 200 OK\nETag: \"e\"\nContent-Length: 3");
    assert!(matches!(trial.judge_response(&mut stream), Flow::Next));
    let mut out = Vec::new();
    stream.response.fields.write_to(&mut out);
    assert_eq!((stream.response.status, stream.response.reason()), (503, &b"Slow Down"[..]));
    assert_eq!(String::from_utf8(out).unwrap(), "Content-Length: 3\r\nX: 200-one\r\nY: GET\r\n");
}

#[test]
fn timeouts_of_streams() {
    let text = |lines: &str| {
        format!(
            "defaults d\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n timeout tarpit 5s\n\
             listen one\n bind :80\n {lines}\n server s 127.0.0.1:1\nbackend two\n server s 127.0.0.1:1\n"
        )
    };
    let rules = "http-request set-timeout client 1s\n http-request set-timeout server int(2),mul(1000)\n \
                 http-request set-timeout tarpit 3s\n http-request set-timeout connect req.hdr(none)";
    let ms = |stream: &Stream| {
        let all = stream.facts.timeouts();
        [all.client, all.server, all.tarpit, all.connect].map(|limit| limit.unwrap().as_millis())
    };
    for (lines, backend, expected) in [
        ("", None, [5000, 5000, 5000, 5000]),
        (rules, None, [1000, 2000, 3000, 5000]),
        (rules, Some(0), [1000, 2000, 3000, 5000]),
        (rules, Some(1), [1000, 5000, 3000, 5000]),
    ] {
        let trial = Trial::new(&text(lines));
        let mut stream = trial.stream(GET);
        trial.judge_request(&mut stream);
        stream.facts.backend = backend.and_then(|number| trial.session.worker.backend(number));
        assert_eq!(ms(&stream), expected, "{backend:?}");
    }
}

#[test]
fn connections_are_dropped() {
    for rule in ["reject", "silent-drop"] {
        assert!(matches!(request_after(&[rule], GET).1, Flow::Drop), "{rule}");
    }
    assert!(matches!(request_after(&["allow if TRUE", "reject"], GET).1, Flow::Stop));
}

#[test]
fn faults_stand_at_their_word() {
    for (line, fault) in [
        ("http-request", "expects <action>"),
        ("http-request set-heder X y", "unknown action 'set-heder'"),
        ("http-request set-map x y", "action 'set-map' expects something in parentheses"),
        ("http-request ot-group x", "traces are not sent"),
        ("http-request set-status 200", "is one of 'http-response' and 'http-after-response' only"),
        ("http-response set-path /", "is one of 'http-request' only"),
        ("http-request set-header X", "expects <format>"),
        ("http-request set-header X:y z", "forbidden character ':'"),
        ("http-request set-header X y z", "takes no argument 'z'"),
        ("http-request set-header X %[status]", "which is not available here"),
        ("http-request set-header X %[nofetch]", "unknown fetch method"),
        ("http-request del-header X -m found", "unsupported matching method 'found'"),
        ("http-request del-header ( -m reg", "regular expression"),
        ("http-request set-var(a) path", "invalid variable name"),
        ("http-request set-var(txn.a path", "no closing parenthesis"),
        ("http-request set-var(txn.a,ifx) path", "unknown condition 'ifx'"),
        ("http-request deny if { path /x", "missing closing '}'"),
        ("http-request deny if none", "no such ACL"),
        ("http-request deny if", "expects a condition"),
        ("http-request deny deny_status 299", "has no error page"),
        ("http-request deny status 42", "is not between"),
        ("http-request return string x", "expects 'content-type'"),
        ("http-request return status 204 content-type a/b string x", "has no body"),
        ("http-request return string x file y content-type a/b", "'string' already defined"),
        ("http-request return file none", "error opening file"),
        ("http-request return errorfile text", "'text': there is no empty line"),
        ("http-request return errorfiles none status 404", "none"),
        ("http-request redirect code 302", "expects 'location', 'prefix' or 'scheme'"),
        ("http-request redirect location / code 304", "unsupported HTTP code"),
        ("http-response redirect prefix /x", "'location' only"),
        ("http-request set-log-level loud", "no level"),
        ("http-request strict-mode maybe", "'on' or 'off'"),
        ("http-response capture status len 3", "for requests only"),
        ("http-request capture path", "expects 'len' or 'id'"),
        ("http-request track-sc0 src", "unable to find table 'fe'"),
        ("http-request track-sc3 src table t", "there are 3 counters"),
        ("http-request track-sc0 src table", "expects <table>"),
        ("http-request sc-inc-gpc0(0,1)", "takes 1 number"),
        ("http-request sc-inc-gpc(0)", "takes 2 numbers"),
        ("http-request sc-set-gpt0(x) 1", "'x' is not a number"),
        ("http-request sc-set-gpt0(0)", "expects <expression>"),
        ("http-request sc-inc-gpc0(0", "no closing parenthesis"),
        ("http-request lua.f", "no Lua script is loaded"),
        ("http-request normalize-uri spell", "unknown normalizer"),
        ("http-request set-timeout server 3s", "time-out of the backend"),
        ("http-request set-timeout client 0", "time-out of nothing"),
        ("http-request set-timeout check 1s", "no time-out"),
        ("http-request set-timeout client 1q", "'1q' is neither a time nor an expression"),
        ("http-request deny iff { path /x }", "expects 'if' or 'unless' and a condition, not 'iff'"),
        ("http-request redirect location / unles { path /x }", "expects 'if' or 'unless' and a condition, not 'unles'"),
        ("http-request set-header X y iff { path /x }", "expects 'if' or 'unless' and a condition, not 'iff'"),
        ("http-request set-src always_true", "cannot become"),
    ] {
        let (_, said) = load(&front(line));
        assert!(said.len() == 1 && said[0].contains("! ") && said[0].contains(fault), "{line}: {said:?}");
    }
    let (_, said) = load("defaults\n mode http\n http-request deny\n");
    assert!(said.iter().any(|said| said.contains("without a name")), "{said:?}");
}

#[test]
fn what_stands_behind_an_end_without_condition_is_told_of_once() {
    for (end, set) in [
        ("http-request deny", "http-request"),
        ("http-request return status 200", "http-request"),
        ("http-request redirect location /", "http-request"),
        ("http-request tarpit", "http-request"),
        ("http-request auth", "http-request"),
        ("http-response allow", "http-response"),
        ("http-after-response allow", "http-after-response"),
        ("tcp-request connection reject", "tcp-request connection"),
        ("tcp-request session accept", "tcp-request session"),
        ("tcp-request content silent-drop", "tcp-request content"),
    ] {
        let said = |end: &str| load(&front(&format!("{end}\n {set} set-var(txn.x) int(1)\n {set} set-var(txn.x) int(2)"))).1;
        let all = said(end);
        let action: Vec<_> = end.strip_prefix(set).unwrap().split_whitespace().take(1).collect();
        let words = format!("'{set}' is never reached: '{set} {}' at test:", action[0]);
        assert!(all.len() == 1 && all[0].contains("? ") && all[0].contains(&words), "{end}: {all:?}");
        assert_eq!(said(&format!("{end} if TRUE")), [""; 0], "{end}");
    }
    let other_set = "tcp-request content accept\n http-request deny\n http-response set-header X y";
    assert_eq!(load(&front(other_set)).1, [""; 0]);
    let perhaps = "http-request redirect location %[path] ignore-empty\n http-request deny";
    assert_eq!(load(&front(perhaps)).1, [""; 0]);
    let inherited = "defaults d\n mode http\n http-request allow\nfrontend f from d\n bind :80\n http-request deny\n";
    assert!(!load(inherited).1.iter().any(|said| said.contains("never reached")));
    let old = load(&front("http-request deny\n redirect location /")).1;
    assert!(old.len() == 1 && old[0].contains("'redirect' is never reached"), "{old:?}");
}

/// Result of content rules on a connection's bytes, which come piece by piece: how often they ask for more, and the log's
/// line.
fn inspected(rules: &[&str], log: &str, pieces: &[&[u8]]) -> (usize, String) {
    let trial = Trial::new(&front(&format!(
        "mode tcp\n tcp-request inspect-delay 1s\n log 127.0.0.1 local0\n log-format \"{log}\"\n {}",
        lines("tcp-request content", rules)
    )));
    let mut stream = Stream::new(&trial.session, trial.session.accepted);
    let mut buffer = Pool::new(64, Arc::new(Limit::new(4096))).take().unwrap();
    let rules = &trial.session.frontend().tcp.content;
    let (mut at, mut asked) = (Cursor::default(), 0);
    for piece in pieces {
        buffer.room()[..piece.len()].copy_from_slice(piece);
        buffer.advance(piece.len());
        match lend(&mut buffer, &mut stream, Side::Request, true, |stream| run_from(rules, &mut at, stream)) {
            Flow::More => asked += 1,
            _ => break,
        }
    }
    (asked, trial.line(&stream))
}

#[test]
fn rules_on_bytes_begin_again_when_more_have_come() {
    const FIRST: &str = "set-var(txn.a) req.payload(0,3)";
    const COUNT: &str = "set-var(txn.n) var(txn.n),add(1)";
    const START: &str = "set-var(txn.n,ifnotexists) int(0)";
    let pieces: &[&[u8]] = &[b"", b"ab", b"cd", b"ef"];
    for (rules, log, asked, line) in [
        (&[FIRST, "accept if { req.payload(0,4) -m found }"][..], "%[var(txn.a)]", 2, "abc"),
        (&["set-var-fmt(txn.a) %[req.payload(0,3)]", "accept if { req.payload(0,4) -m found }"], "%[var(txn.a)]", 2, "abc"),
        (&["set-var(txn.a) wait_end", "accept if { req.len ge 1 }"], "%[var(txn.a)]", 1, "1"),
        (&[START, COUNT, "accept if { req.len ge 6 }"], "%[var(txn.n)]", 3, "4"),
        // An action that waits goes on where it stands; a condition after it begins again.
        (&[START, COUNT, "capture req.payload(0,4) len 9"], "%[var(txn.n)] %hr", 2, "1 {abcd}"),
        (&[START, COUNT, "capture req.payload(0,4) len 9", "accept if { req.len ge 6 }"], "%[var(txn.n)] %hr", 3, "2 {abcd}"),
        (&["capture req.payload(0,4) len 9 if { req.len 2 }"], "%hr", 2, "{abcd}"),
        // A value that may still grow is kept as it is, and no key.
        (&["capture req.len len 9"], "%hr", 0, "{0}"),
        // A term in doubt is waited for, whatever stands after it.
        (&["reject if { req.payload(0,4) -m found } FALSE", FIRST], "%[var(txn.a)]", 2, "abc"),
        (&["reject if FALSE { req.payload(0,4) -m found }", FIRST], "%[var(txn.a)]", 0, "-"),
    ] {
        assert_eq!(inspected(rules, log, pieces), (asked, line.to_owned()), "{rules:?}");
    }
}

#[test]
fn the_table_is_sound() {
    let mut seen = std::collections::HashSet::new();
    let all = super::RuleSet::ALL.iter().fold(0, |all, set| all | *set as u16);
    for word in super::ACTIONS.iter().copied().flatten() {
        assert!(seen.insert(word.name), "'{}' stands twice", word.name);
        assert!(word.sets != 0 && word.sets & !all == 0 && word.summary.ends_with('.'), "{}", word.name);
        if let super::ActionKind::Refused(reason) = word.kind {
            assert!(!reason.is_empty() && !reason.ends_with('.'), "{}", word.name);
        }
    }
}

#[test]
fn rules_on_bytes_name_what_is_wrong() {
    let mut wrong = Vec::new();
    for (section, line, fault) in [
        ("frontend", "tcp-request conection reject", "unknown keyword"),
        ("frontend", "tcp-request content", "expects <action> as argument"),
        ("frontend", "tcp-request content rejekt", "unknown action 'rejekt'"),
        ("frontend", "tcp-request connection capture src len 9", "is one of 'tcp-request content' and 'http-request'"),
        ("frontend", "tcp-request content deny", "is one of 'http-request'"),
        ("frontend", "tcp-request content use-service lua.x", "no Lua script is loaded"),
        ("frontend", "tcp-request connection set-var(sess.x) req.len", "needs the bytes of a connection"),
        ("frontend", "tcp-request session set-src path", "needs the request's head"),
        ("frontend", "tcp-request inspect-delay", "expects <time> as argument"),
        ("frontend", "tcp-request inspect-delay 5s x", "'x'"),
        ("frontend", "tcp-request content set-nice 9999", "between"),
        ("frontend", "tcp-request content switch-mode tcp", "expects 'http', not 'tcp'"),
        ("frontend", "tcp-request content set-retries 3", "belongs to a backend"),
        ("frontend", "tcp-response content close", "is not allowed in 'frontend' section"),
        ("frontend", "http-request pause 0", "pause of nothing"),
        ("frontend", "http-request wait-for-body at-least 3", "expects 'time <time>'"),
        ("frontend", "http-request early-hint a:b x", "forbidden character"),
        ("frontend", "http-request set-fc-tos str(x)", ""),
        ("backend", "tcp-request connection reject", "not allowed in 'backend' section"),
        ("backend", "tcp-request content switch-mode http", "cannot change what its frontend has read"),
        ("backend", "tcp-request content accept if { req.payload(0) x }", "req.payload"),
        ("backend", "tcp-request content accept if { payload_lv(0,9) x }", "1 to 8 bytes"),
        ("backend", "tcp-request content accept if { payload_lv(0,2,-3) x }", "before the first byte"),
        ("backend", "tcp-request content accept if { payload_lv(0,2,+9223372036854775807) x }", "beyond all bytes"),
        ("backend", "tcp-request content accept if { distcc_param(ABC) 1 }", "four letters"),
    ] {
        let (_, said) = load(&format!("{section} x\n mode http\n {line}\n"));
        let said: Vec<_> = said.into_iter().filter(|said| said.starts_with("3")).collect();
        let as_expected = if fault.is_empty() { said.is_empty() } else { said.len() == 1 && said[0].contains(fault) };
        if !as_expected {
            wrong.push(format!("{line}: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
