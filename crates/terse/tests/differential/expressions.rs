//! Expressions, converters, conditions and formats through both programs: every line of the tables in `expressions/` is evaluated on
//! each request of [`REQUESTS`], and must come to the same value, in the same type.
//!
//! One process of each program gets all of it in one file. A value goes into a variable where it is found, and leaves in a field of
//! the response: its text and its bytes, in hexadecimal digits, so that blanks, control characters and types count.
//!
//! `~` in a table says why terse differs in the case below it; such a case must differ, so that no reason outlives its cause.

use super::support::Terse;
use super::support::client::{Client, Response};
use super::support::program::find;
use super::support::server::Server;
use rustix::process::Signal;
use std::fmt::Write as _;
use std::path::Path;

/// What stands in a table: expressions as they are, the others as words of the configuration.
#[derive(Clone, Copy)]
enum Kind {
    Expression,
    Condition,
    Format,
}

/// A table of cases, and the rules in which they stand.
struct Table {
    name: &'static str,
    text: &'static str,
    rules: &'static str,
    kind: Kind,
}

/// The rules of a frontend in mode tcp, whose backend makes HTTP of the connection.
const BYTES: &str = "tcp-request content";

const TABLES: &[Table] = &[
    Table { name: "request", text: include_str!("expressions/request.txt"), rules: "http-request", kind: Kind::Expression },
    Table { name: "converters", text: include_str!("expressions/converters.txt"), rules: "http-request", kind: Kind::Expression },
    Table { name: "response", text: include_str!("expressions/response.txt"), rules: "http-response", kind: Kind::Expression },
    Table { name: "conditions", text: include_str!("expressions/conditions.txt"), rules: "http-request", kind: Kind::Condition },
    Table { name: "bodies", text: include_str!("expressions/bodies.txt"), rules: "http-request", kind: Kind::Expression },
    Table { name: "tables", text: include_str!("expressions/tables.txt"), rules: "http-request", kind: Kind::Expression },
    Table { name: "payload", text: include_str!("expressions/payload.txt"), rules: BYTES, kind: Kind::Expression },
    Table { name: "formats", text: include_str!("expressions/formats.txt"), rules: "http-request", kind: Kind::Format },
];

/// One line of a table.
struct Case {
    /// The words.
    text: &'static str,
    /// Why terse differs.
    reason: Option<&'static str>,
    /// The rules it stands in.
    table: &'static Table,
}

/// Its own number of words in the file, from which the fields of its values have their names.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for table in TABLES {
        let mut reason = None;
        for line in table.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix("~ ") {
                Some(text) => reason = Some(text),
                None => cases.push(Case { text: line, reason: reason.take(), table }),
            }
        }
    }
    cases
}

/// What both programs read: the variables that cases use, the cases, and what shows their values.
fn configuration(cases: &[Case], server: &Server) -> String {
    let mut text = format!(
        "global\n nbthread 1\n tune.bufsize 524288\n tune.maxrewrite 262144\n\n{}\
         defaults\n mode http\n timeout client 15s\n timeout server 15s\n timeout connect 15s\n timeout tunnel 1h\n\
         frontend web\n bind fd@${{web}} name main id 7\n id 3000\n capture request header host len 64\n\
         capture request header x-list len 12\n capture response header x-list len 8\n unique-id-format %[str(id)]-%ci\n\
         acl named path_beg /a\n acl named path_end .png\n default_backend app\n{VARIABLES}",
        " set-var proc.text str(process)\n"
    );
    let shown = |text: &mut String, scope: &str| {
        for first in (0..cases.len()).step_by(IN_ONE_FIELD) {
            let show = |i| format!("%[var({scope}.v{i}),concat(.),hex]:%[var({scope}.v{i}),hex];");
            let shown: String = (first..cases.len()).take(IN_ONE_FIELD).map(show).collect();
            let _ = writeln!(text, " http-response set-header values-{first} {shown}");
        }
    };
    for rules in ["http-request", "http-response"] {
        for (i, case) in cases.iter().enumerate().filter(|(_, case)| case.table.rules == rules) {
            let _ = match case.table.kind {
                Kind::Expression => writeln!(text, " {rules} set-var(txn.v{i}) {}", word(case.text)),
                Kind::Condition => writeln!(text, " {rules} set-var(txn.v{i}) bool(true) if {}", case.text),
                Kind::Format => writeln!(text, " {rules} set-var-fmt(txn.v{i}) {}", case.text),
            };
        }
    }
    shown(&mut text, "txn");
    let _ = writeln!(
        text,
        "frontend raw\n mode tcp\n bind fd@${{raw}} name bytes id 8\n id 3001\n tcp-request inspect-delay 15s\n default_backend bytes\n \
         {BYTES} accept if !HTTP"
    );
    for (i, case) in cases.iter().enumerate().filter(|(_, case)| case.table.rules == BYTES) {
        let _ = writeln!(text, " {BYTES} set-var(sess.v{i}) {}", word(case.text));
    }
    let _ = writeln!(text, "backend bytes\n server one {}", server.address());
    shown(&mut text, "sess");
    let _ = writeln!(
        text,
        "backend app\n id 4000\n server one {0} id 11 weight 10 maxconn 50\n server two {0} id 12 weight 20 backup\nbackend none\n{TABLE_LINES}",
        server.address()
    );
    text
}

/// The text as one word of a line.
fn word(text: &str) -> String {
    let escape = |c: char| if " \"'\\#".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}

const TABLE_LINES: &str = "\
backend words\n stick-table type string len 64 size 100 store \
gpt0,gpc0,gpc0_rate(1h),gpc1,gpc1_rate(1h),conn_cnt,conn_rate(1h),sess_cnt,sess_rate(1h),http_req_cnt,http_req_rate(1h),http_err_cnt,\
http_fail_cnt,server_id\n\
backend addresses\n stick-table type ip size 100 store gpt0,gpc0,conn_cnt,sess_cnt,http_req_cnt\n\
backend other\n stick-table type string len 64 size 10 store gpc0\n";

const VARIABLES: &str = r#"
 option http-buffer-request
 http-request track-sc0 path table words
 http-request track-sc1 str(all) table words
 http-request sc-set-gpt0(0) 7 if { path_beg /a }
 http-response wait-for-body time 15s
 http-request set-var(txn.text) str(text)
 http-request set-var(req.text) str(request)
 http-request set-var(sess.text) str(session)
 http-request set-var(txn.num) int(42)
 http-request set-var(txn.addr) ipv4(192.0.2.7)
 http-request set-var(txn.bin) bin(00ff41)
 http-request set-var(txn.key64) str(a2V5)
 http-request set-var(txn.json) str(\'{\"s\":\"text\",\"n\":42,\"d\":4.25,\"e\":1e3,\"t\":true,\"f\":false,\"z\":null,\"o\":{\"k\":\"v\"},\"a\":[1,\"two\",[3]]}\')
 http-request set-var(txn.jwt) str(eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJtZSIsIm4iOjN9.c2ln)
"#;

/// What is asked.
const REQUESTS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: Example.COM:8080\r\n\r\n",
    "GET /a/b/c.html?a=1&b=two%20x&a=3&C=4;n=-12 HTTP/1.1\r\nHost: www.example.com\r\n\
     X-List: one, two ,,three\r\nX-List: four\r\nX-Empty:\r\nX-Num: 12, 34abc\r\nX-Addr: bogus, 192.0.2.1, 2001:db8::1\r\n\
     X-Quoted: \"a,b\", c\\\"d, \"e\r\nX-Blank: \t padded \t\r\nX-Path: /a/b/c\r\nX-Token: Bearer other\r\n\
     Cookie: c1=v1; c2=\"v;2\"; n=7; $c3=x; c1 = v3\r\nAuthorization: Basic bWU6cGE6c3M=\r\n\
     Accept-Language: de;q=0.5, fr-CH, en;q=0.8\r\n\r\n",
    "POST /b/x.png?b= HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\nAuthorization: Bearer tok.en\r\nCookie: c1=x\r\nCookie: c9=\r\n\r\nhello",
    "HEAD /b HTTP/1.1\r\nHost: [::1]:80\r\nCookie: c1=a; c1=b\r\nCookie: c2=c\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "GET http://1.2.3.4:81/b/c?a=b HTTP/1.1\r\nHost: 1.2.3.4:81\r\n\r\n",
    "GET http://example.com/c HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "GET /?a HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "GET /?=x&a==y&&a HTTP/1.1\r\nHost: example.com\r\nX-Num: -5\r\nX-Addr: 10.1.2.3\r\n\r\n",
    "GET //a//b/../c%2f%00?x=%41+%zz HTTP/1.1\r\nHost: example.com\r\nX-List: ,\r\nX-Num: abc\r\n\r\n",
    "PURGE /a/ HTTP/1.1\r\nHost: example.com\r\nX-List: \r\nX-List: ,a\r\nX-Quoted: a \"b\r\n\r\n",
    "GET /a;p=1/b?c=d%23e HTTP/1.1\r\nHost: example.com.\r\nCookie: =x; ;;c1;c1=;c2\r\nX-Num: 2147483647\r\n\r\n",
    "DELETE /a.b.c HTTP/1.1\r\nHost: a.b.c\r\nAuthorization: basic ::::\r\nX-Addr: ::ffff:1.2.3.4\r\n\r\n",
    "POST /form?a=0 HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 23\r\n\r\n\
     a=1&b=two%20x&A=3&n=-12",
    "POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\x02ab\r\n8\r\n{\"n\": 5}\r\n0\r\n\r\n",
    "GET /ok HTTP/1.0\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: example.com\r\nX-Long: LONG\r\nAccept-Language: *\r\n\r\n",
    "GET /%e4%f6 HTTP/1.1\r\nHost: example.com\r\nX-Quoted: \u{e4}, \u{20ac}\r\nCookie: c2=\u{e4}\r\n\r\n",
];

const ANSWER: &str = "HTTP/1.1 203 Fine\r\nServer: test\r\nX-List: a, b ,,c\r\nX-List: d\r\nX-Num: 7, 8\r\nX-Addr: 192.0.2.9\r\n\
    Set-Cookie: s=1; Path=/\r\nSet-Cookie: t=\"two\"; Secure\r\nSet-Cookie: n=5\r\nContent-Length: 0\r\n\r\n";

/// The same with a body, which a request for the head alone does not get.
const ANSWER_BODY: &str = "\x02fine";

/// How many values share a field: lines of a configuration have 2048 bytes at most.
const IN_ONE_FIELD: usize = 25;

/// The text and the bytes of a value; `None` when there is none.
fn value(response: &Response, i: usize) -> Option<(String, String)> {
    let first = i / IN_ONE_FIELD * IN_ONE_FIELD;
    let field = response.field(&format!("values-{first}")).unwrap();
    let (text, bytes) = field.split(';').nth(i - first).unwrap().split_once(':').unwrap();
    // The dot behind the text tells an empty one from none.
    text.strip_suffix("2E").map(|text| (shown(text), shown(bytes)))
}

/// Bytes behind hexadecimal digits, for people.
fn shown(digits: &str) -> String {
    let bytes: Vec<u8> =
        digits.as_bytes().chunks(2).filter_map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect();
    bytes.escape_ascii().to_string()
}

/// The responses to all requests: of the frontend in mode http, and of the one in mode tcp.
fn run(cases: &[Case], program: Option<&Path>) -> Vec<[Response; 2]> {
    let server = Server::answering(|request| match &*request.method {
        "HEAD" => ANSWER.to_owned(),
        _ => ANSWER.replace("Length: 0", &format!("Length: {}", ANSWER_BODY.len())) + ANSWER_BODY,
    });
    let text = configuration(cases, &server);
    let prepare = |word: &str| {
        let process = Terse::with(&text).listen("web").listen("raw").arg(&[word]).env("DIFFERENTIAL", "from outside");
        match program {
            Some(path) => process.program(path),
            None => process,
        }
    };
    let checked = prepare("-c").run();
    assert!(checked.code() == Some(0), "{:?}: {}", program, refusals(&checked.stderr, &text));
    let mut process = prepare("-db").start();
    let responses = REQUESTS
        .iter()
        .map(|request| {
            let bytes = request.replace("LONG", &"0123456789abcdefXYZ".repeat(300));
            ["web", "raw"].map(|frontend| {
                let mut client = Client::connect(process.address(frontend));
                client.send(bytes.as_bytes());
                let response = client.response(request.split(' ').next().unwrap());
                assert_eq!(response.status, 203, "{program:?} {frontend}: {request:?}");
                assert!(process.is_running(), "{}", process.stderr());
                response
            })
        })
        .collect();
    process.signal(Signal::USR1);
    process.wait();
    responses
}

/// What is wrong, with the lines it is said of.
fn refusals(stderr: &str, text: &str) -> String {
    let of_line = |line: &str| {
        let number: usize = line.split(['[', ']', ':']).find_map(|part| part.trim().parse().ok().filter(|n| *n > 0))?;
        text.lines().nth(number - 1)
    };
    stderr.lines().map(|line| format!("{line}\n        {}\n", of_line(line).unwrap_or_default())).collect()
}

/// How many differences of a case are told.
const SHOWN: usize = 3;

#[test]
fn expressions_come_to_the_same_values() {
    let named = std::env::var_os("HAPROXY").map(Into::into);
    let Some(haproxy) = named.or_else(|| find("haproxy")) else { return };
    let cases = cases();
    let (theirs, ours) = (run(&cases, Some(&haproxy)), run(&cases, None));
    let mut wrong = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        let mut differences = Vec::new();
        for ((request, theirs), ours) in REQUESTS.iter().zip(&theirs).zip(&ours) {
            let of = usize::from(case.table.rules == BYTES);
            let (theirs, ours) = (value(&theirs[of], i), value(&ours[of], i));
            if theirs != ours {
                differences
                    .push(format!("    {:.60}: haproxy {theirs:.40?}, terse {ours:.40?}", request.escape_debug().to_string()));
            }
        }
        match case.reason {
            None if !differences.is_empty() => {
                differences.truncate(SHOWN);
                wrong.push(format!("{}: {}\n{}", case.table.name, case.text, differences.join("\n")));
            }
            Some(reason) if differences.is_empty() => wrong.push(format!("{} does not differ: {reason}", case.text)),
            _ => {}
        }
    }
    let meant = cases.iter().filter(|case| case.reason.is_some()).count();
    assert!(wrong.is_empty(), "{} of {} cases differ\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() > 300 && meant * 20 < cases.len(), "{meant} of {} cases differ on purpose", cases.len());
}
