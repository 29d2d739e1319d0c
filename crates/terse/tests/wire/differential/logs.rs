//! Log lines of both programs, without the parts that no two runs share. Those are times, ports, process numbers, and the number of
//! connections while the one before is being closed.

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

/// Aliases whose values two runs share.
const ALIASES: &[&str] = &[
    "ci", "fi", "si", "f", "ft", "b", "s", "ST", "ts", "tsc", "rc", "sq", "bq", "CC", "CS", "hr", "hrl", "hs", "hsl", "r", "HM",
    "HU", "HP", "HPO", "HQ", "HV", "ID", "sslv",
];

#[test]
fn flags_of_aliases_and_captures() {
    let case = |flags: &&str| Case {
        lines: format!(
            " log stdout format raw local0\n cookie SRV insert indirect\n capture request header User-Agent len 40\n \
             capture request header X-None len 5\n capture response header X-Server len 5\n capture cookie SRV= len 40\n \
             http-request set-var(txn.agent) req.hdr(user-agent)\n log-format \"{}|%{{{flags}}}[var(txn.agent)]\"\n server a {{a}} cookie a",
            ALIASES.iter().map(|name| format!("%{{{flags}}}{name}")).collect::<Vec<_>>().join("|")
        ),
        requests: &[
            "GET /x?a=b | User-Agent: a\"b\\c]d{e|f}",
            "GET /a]b\\c?d=]\\e | Cookie: SRV=a\\]",
            "GET http://a/]?\\ | Host: a",
            "GET /404",
            "GET /x | User-Agent:",
        ],
        allowed: &[],
    };
    let flags = ["", "+Q", "+X", "+E", "+M", "-M", "+Q,+E", "+Q,+X", "+X,+E", "+Q,-M", "Q", "+QE", "+E,-E"];
    compare(&flags.iter().map(case).collect::<Vec<_>>());
}

#[test]
fn flags_in_fields_and_urls() {
    let lines = r#" http-request set-var(txn.v) req.hdr(x-odd)
 http-request redirect location /y?%{+Q}[path]&%{+Q}ci if { path /moved }
 http-request redirect prefix /p%{+Q}[path] if { path_beg /prefix }
 http-request return status 200 hdr X-R "%{+Q}[path] %{+E}[var(txn.v)] %ST" if { path /return }
 http-request return status 404 content-type text/plain lf-string %{+Q}ci:%ST if { path /text }
 http-request set-path /p%{+Q}[path] if { path_beg /set }
 http-request set-query %{+Q}[query] if { path_beg /query }
 http-request set-uri /u%{+Q}[path] if { path_beg /uri }
 http-request set-pathq /u%{+Q}[pathq] if { path_beg /both }
 http-request replace-path (.*) \1%{+Q}[method] if { path_beg /replace }
 http-request replace-header x-odd (.*) \1%{+Q}[method]%{+Q}HM
 http-request replace-value x-list (.*) \1%{+Q}[method]%{+Q}HM
 http-request set-method %{+Q}[str(PUT)] if { path_beg /put }
 http-request set-var-fmt(txn.f) %{+Q}[path]
 http-request add-header x-f "%[var(txn.f)] %{+Q}[var(txn.f)] %{+E}[var(txn.f)]"
 http-response set-header x-res "%{+Q}[var(txn.v)] %{+Q}[var(txn.none)]"
 http-after-response set-header x-after "%{+E}[var(txn.v)] %{+Q}[res.hdr(x-server)]"
 unique-id-format %{+Q}[path]:%{+X}ci:%{+E}[req.hdr(x-odd)]
 unique-id-header x-id
 server a {a}"#;
    let requests = &[
        "GET /x | X-Odd: a\"b\\c] | X-List: a",
        "GET /moved",
        "GET /prefix/x?y",
        "GET /return | X-Odd: a\"b\\c]",
        "GET /text",
        "GET /set",
        "GET /query?a=b",
        "GET /uri",
        "GET /both?a",
        "GET /replace",
        "GET /put",
    ];
    compare(&[Case { lines: lines.into(), requests, allowed: &[] }]);
}

/// Log lines of responses that the proxy makes itself, and whether the connection goes on after them.
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

/// Clients that are bound to a server which refuses, and pages that replace an error.
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
