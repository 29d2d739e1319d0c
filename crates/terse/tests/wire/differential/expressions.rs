//! Expressions, converters, conditions and formats through both programs. Every line of the tables in `expressions/` is evaluated
//! on each request of [`REQUESTS`], or on each of the connections over TLS. It must come to the same value, in the same type. Every
//! fetch and converter of HAProxy is in one of them, except [`EXCEPTIONS`].
//!
//! A process of each program gets all of it in one file. A value goes into a variable where it is found, and leaves in a field of
//! the response: its text and its bytes, in hexadecimal digits, so that blanks, control characters and types count.
//!
//! `~` in a table gives the reason why terse differs in the case below it. Such a case must differ, so that no reason outlives its
//! cause.

use super::certificates::{self, Pair, authority, signed};
use super::secure::Ask;
use super::support::Terse;
use super::support::client::{Client, Response};
use super::support::program::find;
use super::support::server::Server;
use openssl::ssl::SslVersion;
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::path::{Path, PathBuf};

/// Kind of a table: expressions as they are, the others as arguments of the configuration.
#[derive(Clone, Copy)]
enum Kind {
    Expression,
    Condition,
    Format,
    /// A format in a field's value, which is taken from there.
    Field,
}

/// A table of cases, and the frontend and the rules that they are for.
struct Table {
    name: &'static str,
    text: &'static str,
    frontend: &'static str,
    rules: &'static str,
    kind: Kind,
}

/// The frontend in mode http.
const WEB: &str = "web";

/// The frontend in mode tcp, whose backend makes HTTP of the connection.
const RAW: &str = "raw";

/// The frontend that speaks TLS, to clients and to its server.
const SECURE: &str = "secure";

/// The rules of the frontend in mode tcp.
const BYTES: &str = "tcp-request content";

/// The text of a table, and its frontend and rules.
macro_rules! table {
    ($name:literal, $frontend:expr, $rules:expr, $kind:ident) => {
        Table {
            name: $name,
            text: include_str!(concat!("expressions/", $name, ".txt")),
            frontend: $frontend,
            rules: $rules,
            kind: Kind::$kind,
        }
    };
}

const TABLES: &[Table] = &[
    table!("request", WEB, "http-request", Expression),
    table!("converters", WEB, "http-request", Expression),
    table!("maps", WEB, "http-request", Expression),
    table!("response", WEB, "http-response", Expression),
    table!("conditions", WEB, "http-request", Condition),
    table!("bodies", WEB, "http-request", Expression),
    table!("tables", WEB, "http-request", Expression),
    table!("formats", WEB, "http-request", Format),
    table!("fields", WEB, "http-request", Field),
    table!("payload", RAW, BYTES, Expression),
    table!("tls", SECURE, "http-response", Expression),
];

/// A line of a table.
struct Case {
    /// The arguments.
    text: &'static str,
    /// Reason why terse differs.
    reason: Option<&'static str>,
    /// The table with the rules that it is in.
    table: &'static Table,
}

/// Cases of all tables, in order. Their values' fields have their names from the cases' positions.
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

/// Configuration of both programs: the variables that cases use, the cases, and the rules that show their values.
fn configuration(cases: &[Case], server: &Server) -> String {
    let mut text = format!(
        "global\n nbthread 1\n tune.bufsize 524288\n tune.maxrewrite 262144\n tune.ssl.capture-buffer-size 400\n tune.ssl.keylog on\n{}\
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
    let evaluated = |text: &mut String, frontend: &str, scope: &str| {
        for (i, case) in cases.iter().enumerate().filter(|(_, case)| case.table.frontend == frontend) {
            let rules = case.table.rules;
            let _ = match case.table.kind {
                Kind::Expression => writeln!(text, " {rules} set-var({scope}.v{i}) {}", word(case.text)),
                Kind::Condition => writeln!(text, " {rules} set-var({scope}.v{i}) bool(true) if {}", case.text),
                Kind::Format => writeln!(text, " {rules} set-var-fmt({scope}.v{i}) {}", case.text),
                Kind::Field => writeln!(
                    text,
                    " {rules} set-header x-v {}\n {rules} set-var({scope}.v{i}) req.fhdr(x-v)\n {rules} del-header x-v",
                    case.text
                ),
            };
        }
    };
    evaluated(&mut text, WEB, "txn");
    shown(&mut text, "txn");
    let _ = writeln!(
        text,
        "frontend raw\n mode tcp\n bind fd@${{raw}} name bytes id 8\n id 3001\n tcp-request inspect-delay 15s\n default_backend bytes\n \
         {BYTES} accept if !HTTP"
    );
    evaluated(&mut text, RAW, "sess");
    let _ = writeln!(text, "backend bytes\n server one {}", server.address());
    shown(&mut text, "sess");
    let _ = writeln!(
        text,
        "frontend secure\n bind fd@${{secure}} ssl crt site.pem ca-file root.pem verify optional alpn http/1.1\n default_backend secure"
    );
    evaluated(&mut text, SECURE, "txn");
    shown(&mut text, "txn");
    let _ = writeln!(
        text,
        "backend secure\n server one unix@${{dir}}/end ssl verify required ca-file root.pem sni str(end.test) no-ssl-reuse alpn http/1.1 crt client.pem\n\
         listen end\n bind unix@${{dir}}/end ssl crt end.pem ca-file root.pem verify required alpn http/1.1\n server one {}",
        server.address()
    );
    let _ = writeln!(
        text,
        "backend app\n id 4000\n server one {0} id 11 weight 10 maxconn 50\n server two {0} id 12 weight 20 backup\nbackend none\n{TABLE_LINES}",
        server.address()
    );
    text
}

/// The text as one argument of a line.
pub(crate) fn word(text: &str) -> String {
    let escape = |c: char| if " \"'\\#".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}

const TABLE_LINES: &str = "\
backend words\n stick-table type string len 64 size 100 store \
gpt0,gpc0,gpc0_rate(1h),gpc1,gpc1_rate(1h),conn_cnt,conn_rate(1h),sess_cnt,sess_rate(1h),http_req_cnt,http_req_rate(1h),http_err_cnt,\
http_err_rate(1h),http_fail_cnt,http_fail_rate(1h),conn_cur,bytes_in_cnt,bytes_in_rate(1h),bytes_out_cnt,bytes_out_rate(1h),server_id\n\
backend addresses\n stick-table type ip size 100 store gpt0,gpc0,conn_cnt,sess_cnt,http_req_cnt\n\
backend many\n stick-table type ip size 100 expire 1h store \
gpt(3),gpc(4),gpc_rate(4,1h),conn_cnt,conn_cur,conn_rate(1h),sess_cnt,sess_rate(1h),http_req_cnt,http_req_rate(1h),http_err_cnt,\
http_err_rate(1h),http_fail_cnt,http_fail_rate(1h),bytes_in_cnt,bytes_in_rate(1h),bytes_out_cnt,bytes_out_rate(1h),server_id\n\
backend other\n stick-table type string len 64 size 10 store gpc0\n\
userlist people\n group some users me,you\n user me insecure-password pa:ss\n user you insecure-password word\n";

const VARIABLES: &str = r#"
 option http-buffer-request
 http-request track-sc0 path table words
 http-request track-sc1 str(all) table words
 http-request track-sc2 src table many
 http-request sc-set-gpt(2,2) 9 if { path_beg /a }
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

/// The maps.
const FILES: &[(&str, &str)] = &[
    (
        "texts",
        "/a one\n/b two words\n/a/b/c.html whole\nexample.com host\n.png picture\none first\nwww.example.com site\nb inner\n",
    ),
    ("parts", "/a/b one\n/b two words\nexample host\nng picture\nw wide\n"),
    ("parts-numbers", "/a/b 1\n/b -2\nexample 4\nng 5\n"),
    ("parts-addresses", "/a/b 192.0.2.1\n/b 192.0.2.2\nexample 2001:db8::4\n"),
    ("texts-numbers", "/a 1\n/b -2\nexample.com 4\n.png 5\n"),
    ("texts-addresses", "/a 192.0.2.1\n/b 192.0.2.2\nexample.com 2001:db8::4\n.png 192.0.2.5\n"),
    ("patterns", "^/a/(b)/(.*)$ two-\\2-one-\\1\n^/(.)$ letter-\\1-\\0\nwww|fo.. word\n"),
    ("patterns-numbers", "^/a 1\n^/b$ 2\n"),
    ("patterns-addresses", "^/a 192.0.2.1\n^/b$ 2001:db8::2\n"),
    ("numbers", "0:10 few\n12 dozen\n100: many\n"),
    ("numbers-numbers", "1 10\n2:4 20\n12 30\n"),
    ("numbers-addresses", "1 192.0.2.1\n2:4 2001:db8::2\n"),
    ("networks", "127.0.0.0/8 here\n192.0.2.0/24 documents\n192.0.2.1 one\n2001:db8::/32 six\n10.0.0.0/8 ten\n"),
    ("networks-numbers", "127.0.0.0/8 1\n192.0.2.0/24 2\n2001:db8::/32 3\n"),
    ("networks-addresses", "127.0.0.0/8 192.0.2.1\n192.0.2.0/24 2001:db8::2\n"),
];

/// Requests that every case is evaluated on.
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

/// Number of values that share a field: lines of a configuration have 2048 bytes at most.
const IN_ONE_FIELD: usize = 25;

/// The text and the bytes of a value; `None` when there is none.
fn value(response: &Response, i: usize) -> Option<(String, String)> {
    let first = i / IN_ONE_FIELD * IN_ONE_FIELD;
    let field = response.field(&format!("values-{first}")).unwrap();
    let (text, bytes) = field.split(';').nth(i - first).unwrap().split_once(':').unwrap();
    // The dot after the text tells an empty one from none.
    text.strip_suffix("2E").map(|text| (shown(text), shown(bytes)))
}

/// Bytes of hexadecimal digits, for people.
fn shown(digits: &str) -> String {
    let bytes: Vec<u8> =
        digits.as_bytes().chunks(2).filter_map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect();
    bytes.escape_ascii().to_string()
}

/// Keys and certificates, the same for both programs.
struct Keys {
    client: Pair,
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Keys {
    fn new() -> Keys {
        let root = authority("root");
        let client = signed(certificates::Kind::Ecdsa, &["client.test"], &root);
        let pem = |name: &str| signed(certificates::Kind::Ecdsa, &[name], &root).pem();
        let files = vec![
            ("root.pem", root.certificate_pem()),
            ("client.pem", client.pem()),
            ("site.pem", pem("site.test")),
            ("end.pem", pem("end.test")),
        ];
        Keys { client, files }
    }
}

/// Response.
struct Answer {
    frontend: &'static str,
    asked: String,
    response: Response,
}

/// The responses of all frontends.
fn run(cases: &[Case], keys: &Keys, program: Option<&Path>) -> Vec<Answer> {
    let server = Server::answering(|request| match &*request.method {
        "HEAD" => ANSWER.to_owned(),
        _ => ANSWER.replace("Length: 0", &format!("Length: {}", ANSWER_BODY.len())) + ANSWER_BODY,
    });
    let text = configuration(cases, &server);
    let prepare = |word: &str| {
        let process = Terse::with(&text).arg(&[word]).env("DIFFERENTIAL", "from outside");
        let process = [WEB, RAW, SECURE].iter().fold(process, |process, frontend| process.listen(frontend));
        let process = FILES.iter().fold(process, |process, (name, lines)| process.file(name, lines));
        let process = keys.files.iter().fold(process, |process, (name, pem)| process.file(name, pem));
        match program {
            Some(path) => process.program(path),
            None => process,
        }
    };
    let checked = prepare("-c").run();
    assert!(checked.code() == Some(0), "{:?}: {}", program, refusals(&checked.stderr, &text));
    let mut process = prepare("-db").start();
    let mut answers = Vec::new();
    let mut add = |frontend, asked: &str, response: Response, process: &mut Terse| {
        assert_eq!(response.status, 203, "{program:?} {frontend}: {asked:?}");
        assert!(process.is_running(), "{}", process.stderr());
        answers.push(Answer { frontend, asked: asked.to_owned(), response });
    };
    for request in REQUESTS {
        let bytes = request.replace("LONG", &"0123456789abcdefXYZ".repeat(300));
        for frontend in [WEB, RAW] {
            let mut client = Client::connect(process.address(frontend));
            client.send(bytes.as_bytes());
            let response = client.response(request.split(' ').next().unwrap());
            // Counters of connections must not find this one beside the next.
            let _ = client.stream().shutdown(Shutdown::Write);
            client.rest();
            add(frontend, request, response, &mut process);
        }
    }
    for (version, name, shown) in [
        (SslVersion::TLS1_2, Some("site.test"), Some(&keys.client)),
        (SslVersion::TLS1_3, Some("site.test"), Some(&keys.client)),
        (SslVersion::TLS1_3, None, None),
    ] {
        let ask = Ask { version: Some(version), name, shown, protocols: name.map(|_| &b"\x08http/1.1"[..]), ..Ask::default() };
        let response = over_tls(&ask, process.address(SECURE));
        add(SECURE, &format!("{version:?} {name:?}"), response, &mut process);
    }
    process.signal(Signal::USR1);
    process.wait();
    answers
}

/// The head of the response to one request over TLS.
fn over_tls(ask: &Ask<'_>, address: SocketAddr) -> Response {
    let mut stream = ask.connect(address).unwrap();
    stream.write_all(b"GET /a HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let fields = answer.lines().filter_map(|line| line.split_once(": "));
    Response { status, fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), ..Response::default() }
}

/// Messages, with the lines that they are about.
fn refusals(stderr: &str, text: &str) -> String {
    let of_line = |line: &str| {
        let number: usize = line.split(['[', ']', ':']).find_map(|part| part.trim().parse().ok().filter(|n| *n > 0))?;
        text.lines().nth(number - 1)
    };
    stderr.lines().map(|line| format!("{line}\n        {}\n", of_line(line).unwrap_or_default())).collect()
}

/// The program to compare with.
fn haproxy() -> Option<PathBuf> {
    std::env::var_os("HAPROXY").map(Into::into).or_else(|| find("haproxy"))
}

/// Number of differences of a case that are printed.
const SHOWN: usize = 3;

#[test]
fn expressions_come_to_the_same_values() {
    let Some(haproxy) = haproxy() else { return };
    let (cases, keys) = (cases(), Keys::new());
    let (theirs, ours) = (run(&cases, &keys, Some(&haproxy)), run(&cases, &keys, None));
    let mut wrong = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        let mut differences = Vec::new();
        for (theirs, ours) in theirs.iter().zip(&ours).filter(|(theirs, _)| theirs.frontend == case.table.frontend) {
            let asked = theirs.asked.escape_debug().to_string();
            let (theirs, ours) = (value(&theirs.response, i), value(&ours.response, i));
            if theirs != ours {
                differences.push(format!("    {asked:.60}: haproxy {theirs:.40?}, terse {ours:.40?}"));
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

/// Fetches and converters of HAProxy that no case shows, and the reasons.
const EXCEPTIONS: &[(&[&str], &str)] = &[
    (&["fcgi.docroot", "fcgi.index"], "FastCGI is not spoken"),
    (&["ssl_bc_npn", "ssl_fc_npn"], "NPN is not spoken: ALPN took its place"),
    (
        &[
            "internal.htx.data",
            "internal.htx.free",
            "internal.htx.free_data",
            "internal.htx.has_eom",
            "internal.htx.nbblks",
            "internal.htx.size",
            "internal.htx.used",
            "internal.htx_blk.data",
            "internal.htx_blk.hdrname",
            "internal.htx_blk.hdrval",
            "internal.htx_blk.size",
            "internal.htx_blk.start_line",
            "internal.htx_blk.type",
        ],
        "they are of the form in which HAProxy keeps messages",
    ),
];

/// The names that HAProxy lists with this option: one a line, before its arguments and types.
fn listed(haproxy: &PathBuf, option: &str) -> BTreeSet<String> {
    let said = super::support::program::run(haproxy, &[option, "-q", "-c", "-f", "/dev/null"]).stdout;
    let lines = said.lines().filter(|line| !line.starts_with('#'));
    // Before the names of fetches, the places where they may be used are in brackets.
    let described = lines.map(|line| line.strip_prefix('[').and_then(|line| line.split_once(']')).map_or(line, |(_, name)| name));
    described.filter_map(|line| line.split(['(', ':']).next()).map(|name| name.trim().to_owned()).collect()
}

/// The names in an expression: the fetch, and its converters.
fn names(expression: &str) -> Vec<&str> {
    let (mut names, mut start, mut depth, mut quote, mut is_escaped) = (Vec::new(), 0, 0, None, false);
    for (i, c) in expression.char_indices() {
        match (c, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some('"')) => is_escaped = true,
            (_, Some(end)) => quote = quote.filter(|_| c != end),
            ('"' | '\'', None) if depth > 0 => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => depth -= 1,
            (',', None) if depth == 0 => {
                names.push(&expression[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    names.push(&expression[start..]);
    names.iter().map(|name| name.split('(').next().unwrap_or_default()).collect()
}

/// A fetch, for each name that HAProxy has and a case shows: with arguments that it takes.
pub(crate) fn examples(haproxy: &PathBuf) -> BTreeMap<String, String> {
    let known = listed(haproxy, "-dKsmp");
    let mut examples = BTreeMap::new();
    for case in cases().iter().filter(|case| matches!(case.table.kind, Kind::Expression)) {
        let fetched = names(case.text)[0];
        // The parentheses after the name, and no converter.
        let behind = &case.text[fetched.len()..];
        let (mut depth, mut quote) = (0, None);
        let end = behind.find(|c| {
            match (c, quote) {
                (_, Some(end)) => quote = quote.filter(|_| c != end),
                ('"' | '\'', None) if depth > 0 => quote = Some(c),
                ('(', None) => depth += 1,
                (')', None) => depth -= 1,
                (',', None) if depth == 0 => return true,
                _ => {}
            }
            false
        });
        if known.contains(fetched) {
            examples.entry(fetched.to_owned()).or_insert_with(|| format!("{fetched}{}", &behind[..end.unwrap_or(behind.len())]));
        }
    }
    examples
}

#[test]
fn every_expression_of_haproxy_has_a_case() {
    let Some(haproxy) = haproxy() else { return };
    let cases = cases();
    let expressions: Vec<_> =
        cases.iter().filter(|case| matches!(case.table.kind, Kind::Expression)).map(|case| names(case.text)).collect();
    let fetched: BTreeSet<_> = expressions.iter().map(|names| names[0]).collect();
    let converters: BTreeSet<_> = expressions.iter().flat_map(|names| &names[1..]).copied().collect();
    let mut excepted: BTreeSet<_> = EXCEPTIONS.iter().flat_map(|(names, _)| *names).copied().collect();
    let mut wrong = Vec::new();
    for (option, have_cases) in [("-dKsmp", fetched), ("-dKcnv", converters)] {
        let listed = listed(&haproxy, option);
        assert!(listed.len() > 100, "{option} lists {listed:?}");
        for name in &listed {
            match (have_cases.contains(name.as_str()), excepted.remove(name.as_str())) {
                (false, false) => wrong.push(format!("{name} has no case")),
                (true, true) => wrong.push(format!("{name} is excepted and has a case")),
                _ => {}
            }
        }
    }
    wrong.extend(excepted.iter().map(|name| format!("{name} is excepted and HAProxy does not have it")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
