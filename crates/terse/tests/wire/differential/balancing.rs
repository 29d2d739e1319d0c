//! The server of a request, by each algorithm; cookies; counters and logs when servers refuse.

use super::compare::{Allowed, Case, compare, compare_counters};
use Allowed::{Field, Order};

fn same(lines: String, requests: &'static [&'static str]) -> Case {
    Case { lines, requests, allowed: &[] }
}

/// Targets, fields and parameters that algorithms look at.
const MANY: &[&str] = &[
    "GET /a",
    "GET /a/b/c/d?x=1",
    "GET /a/b/x?x=2",
    "GET /b?user=joe",
    "GET /b?user=ann&x=3",
    "GET /c;p=1?user=joe",
    "GET /img/1.png | Host: www.example.org",
    "GET /img/2.png | Host: www.example.com:8080",
    "GET /img/3.png | Host: example.net",
    "GET http://example.org/a/b/c/d?x=1",
    "GET /x | User-Agent: curl/7.1",
    "GET /x | User-Agent: Mozilla/5.0 (X11)",
    "POST /a?user=zoe || user=joe",
    "GET /long/path/that/goes/on/and/on/for/a/while/to/be/done?q=1",
    "GET /",
    "GET /last",
];

/// Requests that all have the parameter and the field.
const USERS: &[&str] = &[
    "GET /a?user=joe | User-Agent: curl/7.1",
    "GET /b?x=1&user=ann | User-Agent: Mozilla/5.0 (X11)",
    "GET /b?user=ann&x=3 | User-Agent: wget",
    "GET /c;p=1?user=joe | User-Agent: svn/1.14",
    "GET /?user= | User-Agent: a",
    "GET /?user=%6Aoe | User-Agent: b",
    "GET /x?user=max | User-Agent: c",
    "POST /a?user=zoe | User-Agent: curl/7.1 || user=joe",
];

const THREE: &str = "server a {a}\n server b {b}\n server c {c}";
const WEIGHED: &str = "server a {a} weight 1\n server b {b} weight 5\n server c {c} weight 2";
const DOWN: &str = "server a {a}\n server b {b} disabled\n server c {c} weight 3";

#[test]
fn every_hash() {
    let mut cases = Vec::new();
    for kind in ["map-based", "consistent"] {
        for function in ["sdbm", "djb2", "wt6", "crc32"] {
            for avalanche in ["", " avalanche"] {
                for servers in [THREE, WEIGHED] {
                    cases.push(same(format!("balance uri whole\n hash-type {kind} {function}{avalanche}\n {servers}"), MANY));
                }
            }
        }
    }
    compare(&cases);
}

#[test]
fn every_key() {
    let mut cases = Vec::new();
    for key in [
        "uri",
        "uri whole",
        "uri len 6",
        "uri depth 2",
        "uri len 8 depth 1",
        "url_param user",
        "url_param user check_post",
        "hdr(host)",
        "hdr(host) use_domain_only",
        "hdr(user-agent)",
        "source",
    ] {
        for (kind, servers) in [("map-based", WEIGHED), ("consistent", WEIGHED), ("map-based", DOWN), ("consistent", DOWN)] {
            // Requests without a key get the next server in turn, and the first turn among equals is not defined.
            let requests = if key.starts_with("url_param") || key == "hdr(user-agent)" { USERS } else { MANY };
            cases.push(same(format!("balance {key}\n hash-type {kind}\n {servers}"), requests));
        }
    }
    compare(&cases);
}

/// Keys that are empty, missing, cut off or odd.
const ODD_FIELDS: &[&str] = &[
    "GET /",
    "GET / | X-Key: a",
    "GET / | X-Key:",
    "GET / | X-Key: ,",
    "GET / | X-Key: , a",
    "GET / | X-Key: a, b",
    "GET / | X-Key: | X-Key: b",
    "GET / | X-Key: b | X-Key:",
    "GET / | X-Key: \"a,b\"",
    "GET / | X-Key: a b",
    "GET / | X-Key: %61",
    "GET / | X-Key: caf\u{e9}",
    "GET /",
    "GET / | X-Key: .",
    "GET / | X-Key: ..",
    "GET / | X-Key: .a",
    "GET / | X-Key: a.",
    "GET / | X-Key: a..b",
    "GET / | X-Key: www.example.org.",
    "GET / | X-Key: www.example.org:8080",
    "GET / | X-Key: [2001:db8::1]:80",
    "GET / | X-Key:",
];

/// The same of parameters.
const ODD_PARAMETERS: &[&str] = &[
    "GET /",
    "GET /?user=a",
    "GET /?user=",
    "GET /?user",
    "GET /?user&user=b",
    "GET /?user=&user=b",
    "GET /??user=a",
    "GET /?x?user=a",
    "GET /?x&user=?-&y",
    "GET /?user=a;x",
    "GET /?x=1;user=b",
    "GET /?USER=a",
    "GET /?users=a&user=b",
    "GET /?&&user=c&",
    "GET /?user==",
    "GET /?user=%61",
    "GET /user=a",
    "GET /;user=a",
    "GET http://example.org/?user=c",
    "GET /",
];

/// The same of forms.
const ODD_FORMS: &[&str] = &[
    "POST / || user=a",
    "POST / || x=1&user=b",
    "POST / || x=1;user=b",
    "POST / || user=",
    "POST / || user",
    "POST / || ?user=b",
    "POST /?user=c || user=a",
    "POST /?user= || user=a",
    "POST /?x=1 | Content-Type: application/x-www-form-urlencoded || user=%61",
    "POST / | Transfer-Encoding: chunked || 6\r\nuser=c\r\n0\r\n\r\n",
    "POST / | Transfer-Encoding: chunked || 3\r\nuse\r\n3\r\nr=c\r\n0\r\n\r\n",
    "PUT / || user=a",
    "GET /",
];

/// A request without a key gets the next server in turn, and does not move where keys lead.
#[test]
fn odd_keys() {
    let mut cases = Vec::new();
    for (key, requests) in [
        ("hdr(x-key)", ODD_FIELDS),
        ("hdr(x-key) use_domain_only", ODD_FIELDS),
        ("hash req.hdr(x-key)", ODD_FIELDS),
        ("hash req.fhdr(x-key),lower", ODD_FIELDS),
        ("hash str()", ODD_FIELDS),
        ("url_param user", ODD_PARAMETERS),
        ("url_param user check_post", ODD_PARAMETERS),
        ("url_param user check_post", ODD_FORMS),
    ] {
        for hash in ["map-based", "map-based crc32 avalanche"] {
            cases.push(same(format!("balance {key}\n hash-type {hash}\n {THREE}"), requests));
        }
    }
    compare(&cases);
}

#[test]
fn turns() {
    const TIES: &[(Allowed, &str)] = &[(Order, "the order among servers whose turn it is equally is nobody's")];
    let case = |lines: &str, allowed| Case { allowed, ..same(lines.to_owned(), MANY) };
    compare_counters(&[
        case(&format!("balance roundrobin\n {THREE}"), &[]),
        case(&format!("balance roundrobin\n {WEIGHED}"), TIES),
        case(&format!("balance roundrobin\n {DOWN}"), TIES),
        case(&format!("balance static-rr\n {THREE}"), &[]),
        case(&format!("balance static-rr\n {WEIGHED}"), &[]),
        case(&format!("balance static-rr\n {DOWN}"), &[]),
        case(&format!("balance first\n {THREE}"), &[]),
        case("balance first\n server a {a} id 30\n server b {b} id 10\n server c {c} id 20", &[]),
    ]);
}

const ASKS: &[&str] = &[
    "GET /x",
    "GET /x | Cookie: SRV=b",
    "GET /x | Cookie: a=1; SRV=b; c=2",
    "GET /x | Cookie: SRV=zzz",
    "GET /x | Cookie: SRV=zzz; SRV=a",
    "GET /cookie",
    "GET /cookie | Cookie: SRV=a",
    "GET /cacheable",
    "GET /cacheable | Cookie: SRV=b",
    "GET /x | Cookie: SRV=b~inner",
    "POST /x | Cookie: SRV=a || body",
    "POST /cookie || body",
    "HEAD /cacheable",
    "GET /x | Cookie: SRV=",
    "GET /x | Cookie: SRV=c",
];

/// Every mode with every argument, and both cookies in logs.
#[test]
fn cookies_of_every_mode() {
    let log = "log stdout format raw local0\n log-format \"%HM %HU %s %ST %tsc\"";
    let servers = "server a {a} cookie a\n server b {b} cookie b\n server c {c}";
    let mut cases = Vec::new();
    for words in [
        "insert",
        "insert indirect",
        "insert nocache",
        "insert indirect nocache httponly secure",
        "insert postonly",
        "insert indirect postonly nocache",
        "insert preserve",
        "insert indirect preserve",
        "insert domain .example.org domain other.example attr Priority=High attr SameSite=None",
        "insert indirect dynamic",
        "rewrite",
        "rewrite nocache",
        "prefix",
        "prefix indirect",
        "prefix nocache",
        "indirect",
        "indirect preserve",
        "",
    ] {
        let dynamic = words.contains("dynamic");
        let key = if dynamic { "dynamic-cookie-key secret\n " } else { "" };
        let case = same(format!("cookie SRV {words}\n {key}{log}\n {servers}"), ASKS);
        let allowed: &[_] = if dynamic { &[(Field("set-cookie"), "servers have other ports in each run")] } else { &[] };
        cases.push(Case { allowed, ..case });
    }
    compare(&cases);
}

/// Dates that have not come for long, that are over, and that mean nothing.
#[test]
fn cookies_with_dates() {
    const DATED: &[&str] = &[
        "GET /x | Cookie: SRV=b",
        "GET /x | Cookie: SRV=b|",
        "GET /x | Cookie: SRV=b|AAAAB",
        "GET /x | Cookie: SRV=b|AAAAB|AAAAB",
        "GET /x | Cookie: SRV=b|f////",
        "GET /x | Cookie: SRV=b|f////|f////",
        "GET /x | Cookie: SRV=b|junk!",
        "GET /x | Cookie: SRV=b|AAAAB; SRV=a",
        "GET /x | Cookie: SRV=zzz|AAAAB",
        "GET /x | Cookie: SRV=zzz",
        "GET /x",
        "GET /cookie | Cookie: SRV=b|AAAAB",
    ];
    let log = "log stdout format raw local0\n log-format \"%HU %ST %tsc\"";
    let case = |words: &str| Case {
        lines: format!("cookie SRV {words}\n {log}\n server a {{a}} cookie a\n server b {{b}} cookie b"),
        requests: DATED,
        allowed: &[(Field("set-cookie"), "it says when it was sent")],
    };
    compare(&[
        case("insert maxidle 1h"),
        case("insert indirect maxlife 1h"),
        case("insert indirect maxidle 30m maxlife 8h"),
        case("insert indirect preserve maxidle 30m"),
        case("insert"),
        case("insert indirect maxidle 30m maxlife 8h postonly"),
    ]);
}

/// Outcomes of servers that refuse, are down, or send something that is no response.
#[test]
fn failures_are_counted_and_logged_alike() {
    let log = "log stdout format raw local0\n log-format \"%HM %HU %b/%s %ST %tsc %rc\"";
    let case = |lines: &str| Case {
        lines: format!("{log}\n timeout connect 100ms\n {lines}"),
        requests: &[
            "GET /x",
            "~POST /x || body",
            "~GET /404",
            "~GET /500",
            "~GET /junk",
            "~GET /empty",
            "~GET /x | Cookie: SRV=dead",
        ],
        allowed: &[],
    };
    compare_counters(&[
        case("retries 0\n server a {a}"),
        case("retries 0\n server dead 127.0.0.1:1"),
        case("server a {a} disabled"),
        case(
            "retries 1\n option redispatch\n cookie SRV insert indirect\n server dead 127.0.0.1:1 cookie dead\n server a {a} cookie a",
        ),
        case(
            "retries 1\n no option redispatch\n cookie SRV insert indirect\n balance first\n server a {a} cookie a\n server dead 127.0.0.1:1 cookie dead",
        ),
        case(
            "retries 2\n option redispatch 1\n cookie SRV insert\n balance first\n server a {a} cookie a\n server dead 127.0.0.1:1 cookie dead",
        ),
        case("retries 0\n errorloc302 503 http://sorry/\n server dead 127.0.0.1:1"),
        case(
            "retries 0\n retry-on none\n http-request deny if { path /404 }\n http-response deny if { status 500 }\n server a {a}",
        ),
        case("retries 0\n server a {a} disabled\n server b {b} backup"),
    ]);
}
