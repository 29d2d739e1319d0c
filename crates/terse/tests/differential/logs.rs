//! What both write to their logs, without what no two runs share: times, ports, process numbers, and how many connections there are
//! while the one before is being closed.

use super::compare::{Case, compare};

const ASKS: &[&str] = &[
    "GET /x?a=b | User-Agent: curl | Referer: \"quoted\"",
    "POST /x || hello",
    "HEAD /x",
    "GET /404",
    "GET /500",
    "GET /204",
    "GET /chunked",
    "GET /denied",
    "GET /returned",
    "GET /moved",
    "~GET /x | Connection: close",
    "~1.0 GET /x",
    "~GET /empty",
    "~GET /x | Cookie: SRV=a; app=1",
    "~GET /cookie",
];

/// A case with this format of its lines.
macro_rules! logged {
    ($format:literal) => {
        Case {
            lines: String::from(concat!(
                " http-request set-var(txn.path) path\n",
                " http-request deny if { path /denied }\n",
                " http-request return status 200 if { path /returned }\n",
                " http-request redirect location /y if { path /moved }\n",
                " log stdout format raw local0\n cookie SRV insert indirect\n capture request header User-Agent len 20\n",
                " capture response header X-Server len 5\n capture cookie SRV= len 8\n",
                " log-format \"",
                $format,
                "\"\n server a {a} cookie a"
            )),
            requests: ASKS,
            allowed: &[],
        }
    };
}

#[test]
fn lines_of_transactions() {
    compare(&[
        logged!("%HM|%HP|%HQ|%HU|%HV|%ST"),
        logged!("%ST|%ts"),
        logged!("%b|%s|%f|%ft"),
        logged!("%rc|%sq|%bq"),
        logged!("%CC|%CS"),
        logged!("%hr|%hs"),
        logged!("%hrl|%hsl"),
        logged!("%ci|%fi|%si"),
        logged!("%[capture.req.uri]|%[capture.req.method]|%[var(txn.path)]"),
        logged!("%{+Q}r|%{+Q}[var(txn.path)]|%{+E}hr"),
        logged!("%[capture.req.hdr(0)]|%[capture.res.hdr(0)]|%[var(txn.none)]"),
        logged!("%[capture.req.method,lower]|%[var(txn.path),length]|%o %{-Q}b|100%%"),
    ]);
}

/// What answers of our own look like in logs, and whether the connection goes on behind them.
#[test]
fn answers_of_our_own() {
    let rules = " http-request return status 200 if { path /return }
 http-request return status 404 content-type text/plain string gone if { path /gone }
 http-request deny if { path /deny }
 http-request deny deny_status 400 if { path /deny400 }
 http-request deny deny_status 429 if { path /deny429 }
 http-request deny deny_status 500 if { path /deny500 }
 http-request redirect location /y if { path /moved }
 http-request tarpit deny_status 503 if { path /tarpit }
 http-request reject if { path /reject }
 http-request auth realm r if { path /auth }
 redirect location /z if { path /old }
 timeout tarpit 30ms
 use_backend none if { path_beg /none }
 use_backend shut if { path_beg /shut }
 use_backend own if { path_beg /own }
 server a {a}
backend none
 mode http
backend shut
 mode http
 retries 0
 server s 127.0.0.1:1
backend own
 mode http
 http-request deny if { path /own/deny }
 http-request return status 200 if { path /own/return }
 server a {a}";
    let lines = |format: &str| format!(" log stdout format raw local0\n log-format \"{format}\"\n{rules}");
    let requests = &[
        "GET /x",
        "GET /return",
        "GET /gone",
        "GET /deny",
        "~GET /deny400",
        "GET /deny429",
        "GET /deny500",
        "GET /moved",
        "GET /tarpit",
        "~GET /auth",
        "GET /old",
        "GET /none",
        "GET /none/again",
        "POST /none || body",
        "GET /shut",
        "GET /own/deny",
        "GET /own/return",
        "GET /own/x",
        "HEAD /return",
        "POST /deny || body",
        "~GET /reject",
        "~1.0 GET /none",
    ];
    let case = |format: &str| Case { lines: lines(format), requests, allowed: &[] };
    compare(&[
        case("%HM %HU %ST %tsc"),
        case("%HU %b/%s %[capture.req.method] %[capture.req.uri] %[capture.req.ver]"),
        case("%HU %[last_rule_line] %rc"),
    ]);
}

/// What becomes of clients that are bound to a server which refuses, and of pages that stand for an error.
#[test]
fn persistence_and_pages() {
    let refusing = "server dead 127.0.0.1:1 cookie dead";
    let rules = " cookie SRV insert indirect
 retries 1
 timeout connect 20ms
 errorloc302 403 http://e/x
 http-request deny if { path /deny }
 http-request return status 404 content-type text/plain string gone if { path /gone }
 http-request redirect location /y if { path /moved }
 http-after-response set-status 418 if { status 404 }";
    let requests = &["GET /x | Cookie: SRV=dead", "GET /x | Cookie: SRV=a", "GET /x", "GET /deny", "GET /gone", "GET /moved"];
    let case = |option: &str, server: &str| Case {
        lines: format!(
            " log stdout format raw local0\n log-format \"%HU %b/%s %ST %tsc %rc %sq/%bq\"\n{rules}\n {option}\n {refusing}\n {server}"
        ),
        requests,
        allowed: &[],
    };
    compare(&[case("option redispatch", "server a {a} cookie a"), case("no option redispatch", "")]);
}
