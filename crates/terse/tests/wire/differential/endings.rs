//! Ends of streams: every state of HAProxy's log that can be brought about for certain.

use super::stories::{Story, compare, story};

/// All fields of a line that tell of an end, except the lengths of heads.
const SAYS: &str = " log-format \"%b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %ac/%fc/%bc/%sc/%rc %sq/%bq %tsc %CC %CS %{+Q}r\"\n";

/// The same for streams of bytes.
const SAYS_OF_BYTES: &str = " mode tcp\n log-format \"%b/%s %Tw/%Tc/%Tt %B %ac/%fc/%bc/%sc/%rc %sq/%bq %ts %ST\"\n";

fn http(lines: &str, acts: &'static [&'static str]) -> Story {
    story(format!("{SAYS} {lines}"), acts)
}

fn bytes(lines: &str, acts: &'static [&'static str]) -> Story {
    story(format!("{SAYS_OF_BYTES} {lines}"), acts)
}

const TWICE: &[(&str, &str)] = &[
    (" eresp=", "one error is counted once"),
    (" wretr=", "one attempt is counted once"),
    (" connect=", "a connection that is there is used"),
    (" reuse=", "a connection that is there is used"),
];

/// Requests that do not come whole, or that rules do not like.
#[test]
fn requests() {
    const LOCAL: &str = "http-request deny if { path /deny }\n http-request return status 200 if { path /return }\n \
                         http-request redirect location /y if { path /moved }\n http-request tarpit if { path /tarpit }\n \
                         http-request reject if { path /reject }\n stats uri /stats\n monitor-uri /alive\n timeout tarpit 20ms\n server a {a}";
    compare(&[
        http("server a {a}", &["1 = GET / HTTP/1.1\\r\\nHost", "1 leaves", "stat web/FRONTEND req_tot 1"]),
        http("server a {a}", &["1 = GET / HTTP/1.1\\r\\nHost", "1 breaks", "stat web/FRONTEND req_tot 1"]),
        http("server a {a}", &["1 = GET / HTTP/1.1\\r\\nHost", "1 shuts", "1 reads"]),
        http("server a {a}", &["1 connects", "1 leaves", "stat web/FRONTEND req_tot 1"]),
        http("server a {a}", &["1 connects", "1 shuts", "stat web/FRONTEND req_tot 1"]),
        http("server a {a}", &["1 GET /x", "1 reads", "1 = GET / HT", "1 leaves"]),
        http("timeout http-request 100ms\n server a {a}", &["1 = GET / HT", "1 reads"]),
        http("timeout http-request 100ms\n server a {a}", &["1 connects", "1 reads"]),
        http("timeout client 100ms\n server a {a}", &["1 = GET / HT", "1 reads"]),
        http("timeout client 100ms\n server a {a}", &["1 connects", "1 reads"]),
        http("timeout http-keep-alive 50ms\n server a {a}", &["1 GET /x", "1 reads", "1 reads"]),
        http(
            "timeout http-request 100ms\n timeout http-keep-alive 15s\n server a {a}",
            &["1 GET /x", "1 reads", "1 = GET", "1 reads"],
        ),
        http("server a {a}", &["1 = nonsense\\r\\n\\r\\n", "1 reads"]),
        http("server a {a}", &["1 = GET / HTTP/1.1\\r\\nbad header\\r\\n\\r\\n", "1 reads"]),
        http(LOCAL, &["1 GET /deny", "1 reads", "1 GET /return", "1 reads", "1 GET /moved", "1 reads", "1 GET /tarpit", "1 reads"]),
        http(LOCAL, &["1 GET /alive", "1 reads", "1 GET /stats;csv", "1 reads", "1 GET /reject", "1 reads"])
            .but(&[("web/BACKEND dreq", "no backend has refused it")]),
        http(
            "timeout tarpit 1h\n option abortonclose\n http-request tarpit\n server a {a}",
            &["1 GET /x", "stat web/FRONTEND dreq 1", "1 leaves", "stat web/FRONTEND scur 0"],
        ),
        http("server a {a}", &["1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 10\\r\\n\\r\\nabc", "seen a 1", "1 breaks"]),
        http(
            "timeout http-request 100ms\n option http-buffer-request\n server a {a}",
            &["1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 10\\r\\n\\r\\nabc", "1 reads"],
        ),
    ]);
}

/// Servers that send nothing, too little, or nonsense; clients that do not wait.
#[test]
fn responses() {
    compare(&[
        http("timeout server 100ms\n server a {a}", &["1 GET /silent", "1 reads"]),
        http("timeout server 100ms\n server a {a}", &["1 GET /slowhead", "1 reads"]),
        http("timeout server 100ms\n server a {a}", &["1 POST /silent abc", "1 reads"]),
        http("server a {a}", &["1 GET /gone", "1 reads"]),
        http("server a {a}", &["1 GET /reset", "1 reads"]).but(TWICE),
        http("server a {a}", &["1 GET /torn", "1 reads"]),
        http("server a {a}", &["1 GET /junk", "1 reads"]),
        http("server a {a}", &["1 POST /gone abc", "1 reads"]),
        http("http-response deny\n server a {a}", &["1 GET /x", "1 reads"]),
        http("http-response return status 404\n server a {a}", &["1 GET /x", "1 reads"]),
        http("option checkcache\n server a {a}", &["1 GET /cookie", "1 reads"]),
        http("server a {a}", &["1 GET /half", "1 reads rest"]),
        http("server a {a}", &["1 GET /broken", "1 reads rest"]),
        http("timeout server 100ms\n server a {a}", &["1 GET /stall", "1 reads rest"]),
        http("timeout server 2s\n server a {a}", &["1 GET /stall", "1 heads", "1 leaves"]),
        http("timeout server 2s\n server a {a}", &["1 GET /stall", "1 heads", "1 breaks"]),
        http("timeout client 200ms\n server a {a}", &["1 GET /big", "stat web/a stot 1", "stat web/FRONTEND scur 0", "1 leaves"]),
        http("server a {a}", &["1 GET /big", "1 heads", "1 leaves"]),
        http("option abortonclose\n server a {a}", &["1 GET /silent", "seen a 1", "1 leaves"]),
        http("option abortonclose\n server a {a}", &["1 POST /silent abc", "seen a 1", "1 leaves"]),
        http("option abortonclose\n server a {a}", &["1 GET /silent", "seen a 1", "1 shuts", "1 reads"]),
        http("option abortonclose\n server a {a}", &["1 GET /stall", "1 heads", "1 leaves"]),
        http("server a {a}", &["1 GET /hold", "seen a 1", "1 shuts", "go a", "1 reads"]),
        http("timeout server 100ms\n server a {a}", &["1 GET /silent", "1 shuts", "1 reads"]),
        http("retries 3\n retry-on empty-response\n server a {a}", &["1 GET /gone", "1 reads"]).but(TWICE),
        http("retries 1\n retry-on 500\n server a {a}", &["1 GET /500", "1 reads"]).but(TWICE),
        http("retries 2\n retry-on response-timeout\n timeout server 50ms\n server a {a}", &["1 GET /silent", "1 reads"])
            .but(TWICE),
        http("retries 2\n retry-on junk-response\n server a {a}", &["1 GET /junk", "1 reads"]).but(TWICE),
        http(
            "retries 2\n retry-on all-retryable-errors\n option redispatch\n balance first\n server a {a} id 1\n server b {b} id 2",
            &["1 GET /500", "1 reads"],
        )
        .but(TWICE),
    ]);
}

/// Connections to servers that are not made, or not soon enough.
#[test]
fn connections() {
    const LEFT: &[&str] = &["1 GET /x", "stat web/s scur 1", "1 leaves", "stat web/s scur 0"];
    compare(&[
        http("retries 0\n server s {dead}", &["1 GET /x", "1 reads"]),
        http("retries 0\n timeout connect 100ms\n server s {deaf}", &["1 GET /x", "1 reads"]),
        http("retries 1\n timeout connect 50ms\n server s {deaf}", &["1 GET /x", "1 reads"]),
        http("option abortonclose\n server s {deaf}", LEFT),
        http("server s {a} disabled", &["1 GET /x", "1 reads", "2 POST /x abc", "2 reads"]),
        http("server s {dead} disabled\n server b {b} backup", &["1 GET /x", "1 reads"]),
        http(
            "retries 1\n timeout connect 50ms\n option redispatch\n cookie S\n server s {deaf} cookie s\n server a {a} cookie a",
            &["1 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=s\\r\\n\\r\\n", "1 reads"],
        ),
        http(
            "retries 3\n timeout connect 50ms\n option redispatch 1\n cookie S\n server s {deaf} cookie s\n server a {a} cookie a",
            &["1 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=s\\r\\n\\r\\n", "1 reads"],
        ),
        http(
            "retries 3\n timeout connect 50ms\n option redispatch -1\n cookie S\n server s {deaf} cookie s\n server a {a} cookie a",
            &["1 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=s\\r\\n\\r\\n", "1 reads"],
        ),
        http(
            "cookie S\n option persist\n retries 0\n server s {dead} cookie s disabled\n server a {a} cookie a",
            &["1 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=s\\r\\n\\r\\n", "1 reads"],
        ),
        http(
            "cookie S\n force-persist if { path /x }\n server s {b} cookie s disabled\n server a {a} cookie a",
            &[
                "1 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=s\\r\\n\\r\\n",
                "1 reads",
                "1 = GET /y HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=s\\r\\n\\r\\n",
                "1 reads",
            ],
        ),
        http(
            "cookie S\n ignore-persist if { path /x }\n server s {b} cookie s\n server a {a} cookie a weight 200",
            &["1 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=s\\r\\n\\r\\n", "1 reads"],
        ),
    ]);
}

/// Requests that wait for a server that is full.
#[test]
fn queues() {
    compare(&[
        http(
            "timeout queue 100ms\n server a {a} maxconn 1",
            &["1 GET /hold", "seen a 1", "2 GET /x", "2 reads", "go a", "1 reads"],
        ),
        http(
            "server a {a} maxconn 1",
            &["1 GET /hold", "seen a 1", "2 GET /x", "stat web/BACKEND qcur 1", "go a", "1 reads", "2 reads"],
        ),
        http(
            "server a {a} maxconn 1",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 GET /x",
                "stat web/BACKEND qcur 1",
                "3 GET /y",
                "stat web/BACKEND qcur 2",
                "go a",
                "1 reads",
                "2 reads",
                "3 reads",
            ],
        ),
        http(
            "option abortonclose\n server a {a} maxconn 1",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 GET /x",
                "stat web/BACKEND qcur 1",
                "2 leaves",
                "stat web/BACKEND qcur 0",
                "go a",
                "1 reads",
            ],
        ),
        http(
            "cookie S\n server a {a} cookie a maxconn 1\n server b {b} cookie b weight 0",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=a\\r\\n\\r\\n",
                "stat web/a qcur 1",
                "go a",
                "1 reads",
                "2 reads",
            ],
        ),
        http(
            "cookie S\n timeout queue 100ms\n server a {a} cookie a maxconn 1\n server b {b} cookie b weight 0",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=a\\r\\n\\r\\n",
                "2 reads",
                "go a",
                "1 reads",
            ],
        ),
        http(
            "cookie S\n option redispatch\n balance first\n server a {a} id 1 cookie a maxconn 1 maxqueue 1\n server b {b} id 2 cookie b",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=a\\r\\n\\r\\n",
                "stat web/a qcur 1",
                "3 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=a\\r\\n\\r\\n",
                "3 reads",
                "go a",
                "1 reads",
                "2 reads",
            ],
        ),
        http(
            "fullconn 100\n server a {a} minconn 1 maxconn 10",
            &["1 GET /hold", "seen a 1", "2 GET /x", "stat web/BACKEND qcur 1", "go a", "1 reads", "2 reads"],
        ),
        // The next in line gets the slot that an operator makes.
        http(
            "server a {a} maxconn 1",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 GET /x",
                "stat web/BACKEND qcur 1",
                "cli set maxconn server web/a 2",
                "2 reads",
                "go a",
                "1 reads",
            ],
        ),
        http(
            "cookie S\n option redispatch\n balance first\n server a {a} id 1 cookie a maxconn 1\n server b {b} id 2 cookie b",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 = GET /x HTTP/1.1\\r\\nHost: a\\r\\nCookie: S=a\\r\\n\\r\\n",
                "stat web/a qcur 1",
                "cli set server web/a state maint",
                "2 reads",
                "go a",
                "1 reads",
            ],
        ),
    ]);
}

/// Streams of bytes.
#[test]
fn tunnels() {
    compare(&[
        bytes("server a {a}", &["1 GET /x", "1 heads", "1 leaves"]),
        bytes("server a {a}", &["1 GET /close", "1 reads rest"]),
        bytes("server a {a}", &["1 GET /half", "1 reads rest"]),
        bytes("server a {a}", &["1 GET /gone", "1 reads rest"]),
        bytes("server a {a}", &["1 GET /reset", "1 reads rest"]),
        bytes("server a {a}", &["1 GET /stall", "1 heads", "1 leaves"]),
        bytes("server a {a}", &["1 GET /stall", "1 heads", "1 breaks"]),
        bytes("server a {a}", &["1 GET /silent", "seen a 1", "1 shuts", "1 reads rest"]),
        bytes("timeout server 100ms\n server a {a}", &["1 GET /stall", "1 reads rest"]),
        bytes("timeout client 100ms\n server a {a}", &["1 GET /stall", "1 reads rest"]),
        bytes("timeout client 100ms\n server a {a}", &["1 connects", "1 reads rest"]),
        bytes("retries 0\n server s {dead}", &["1 GET /x", "1 reads rest"]),
        bytes("retries 0\n timeout connect 100ms\n server s {deaf}", &["1 GET /x", "1 reads rest"]),
        bytes("option abortonclose\n server s {deaf}", &["1 GET /x", "stat web/s scur 1", "1 leaves", "stat web/s scur 0"]),
        bytes("server s {a} disabled", &["1 GET /x", "1 reads rest"]),
        bytes(
            "timeout queue 100ms\n server a {a} maxconn 1",
            &["1 GET /hold", "seen a 1", "2 GET /x", "2 reads rest", "go a", "1 heads", "1 leaves"],
        ),
        bytes(
            "option abortonclose\n server a {a} maxconn 1",
            &[
                "1 GET /hold",
                "seen a 1",
                "2 GET /x",
                "stat web/BACKEND qcur 1",
                "2 leaves",
                "stat web/BACKEND qcur 0",
                "go a",
                "1 heads",
                "1 leaves",
            ],
        ),
        bytes("tcp-request connection reject\n server a {a}", &["1 connects", "1 reads rest"]),
        bytes("tcp-request content reject\n server a {a}", &["1 GET /x", "1 reads rest"]),
        bytes("tcp-request session reject\n server a {a}", &["1 connects", "1 reads rest"]),
        bytes(
            "tcp-request inspect-delay 50ms\n tcp-request content reject if { req.len 0 }\n server a {a}",
            &["1 connects", "1 reads rest"],
        ),
        bytes("tcp-response content reject\n server a {a}", &["1 GET /x", "1 reads rest"]),
    ]);
}

/// Rules on bytes that come piece by piece, and the values that they keep of them.
#[test]
fn inspected() {
    const HALVES: &[&str] = &["1 = GET /x HT", "1 = TP/1.1\\r\\nHost: test\\r\\n\\r\\n", "1 reads", "1 leaves"];
    const BODY: &[&str] =
        &["1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 6\\r\\n\\r\\nabc", "1 = def", "1 reads", "1 leaves"];
    let of = |mode: &str, rules: &str, acts| {
        story(
            format!(
                "mode {mode}\n log-format \"%b %s %ts %[var(txn.a)] %[var(txn.b)] %[capture.req.hdr(0)] %[sc0_tracked]\"\n \
                 stick-table type string len 20 size 10 store conn_cnt\n tcp-request inspect-delay 15s\n \
                 tcp-response inspect-delay 15s\n {rules}\n server a {{a}}\n server b {{b}}"
            ),
            acts,
        )
    };
    let bytes = |rules: &str| of("tcp", rules, HALVES);
    let body = |rules: &str| of("http", rules, BODY);
    const WHOLE: &str = "tcp-request content accept if { req.len gt 30 }";
    compare(&[
        bytes(&format!("tcp-request content set-var(txn.a) req.payload(0,12)\n {WHOLE}")),
        bytes(&format!("tcp-request content set-var-fmt(txn.a) %[req.payload(0,12)]\n {WHOLE}")),
        bytes(&format!("tcp-request content set-var(txn.a) req.len\n {WHOLE}")),
        bytes(&format!("tcp-request content set-var(txn.a) wait_end\n {WHOLE}")),
        bytes(&format!("tcp-request content set-var(txn.a) req.rdp_cookie_cnt\n {WHOLE}")),
        bytes(&format!("tcp-request content set-var(txn.a) path\n tcp-request content set-var(txn.b) req.hdr(host)\n {WHOLE}")),
        bytes(&format!("tcp-request content capture req.payload(0,12) len 20\n {WHOLE}")),
        bytes(&format!("tcp-request content capture req.payload(0,2000) len 20 unless {{ req.len gt 30 }}\n {WHOLE}")),
        bytes(&format!("tcp-request content track-sc0 req.payload(0,12)\n {WHOLE}")),
        bytes(&format!(
            "tcp-request content set-var(txn.a) req.payload(0,12)\n tcp-request content track-sc0 var(txn.a)\n {WHOLE}"
        )),
        bytes(&format!("tcp-request content set-src req.len,add(167772160)\n tcp-request content set-var(txn.a) src\n {WHOLE}")),
        bytes(&format!("tcp-request content set-dst-port req.len\n tcp-request content set-var(txn.a) dst_port\n {WHOLE}")),
        bytes(&format!(
            "tcp-request content set-var(txn.a) int(1)\n tcp-request content unset-var(txn.a) if {{ req.len gt 30 }}\n {WHOLE}"
        )),
        bytes(&format!("tcp-request content set-log-level silent if {{ req.payload(0,12) -m found }}\n {WHOLE}")),
        bytes("tcp-request content set-var(txn.a) req.payload(0,12)\n tcp-request content reject if { req.len gt 30 }"),
        bytes("tcp-request content reject if { req.len gt 30 } { src 192.0.2.1 }\n tcp-request content set-var(txn.a) req.len"),
        bytes("tcp-request content accept if { req.len gt 30 } or { src 127.0.0.1 }\n tcp-request content set-var(txn.a) req.len"),
        bytes(&format!(
            "tcp-request content set-var(txn.a) req.payload(0,12)\n {WHOLE}\n use-server b if {{ var(txn.a) -m found }}"
        )),
        bytes("tcp-response content set-var(txn.a) res.payload(0,8)\n tcp-response content accept if { res.len gt 40 }"),
        bytes("tcp-response content set-var-fmt(txn.a) %[res.len]\n tcp-response content accept if { res.payload(0,17) -m found }"),
        bytes(
            "tcp-response content reject if { res.payload(0,17) -m sub 200 } { src 192.0.2.1 }\n tcp-response content set-var(txn.a) res.payload(0,8)",
        ),
        body("tcp-request content set-var(txn.a) req.body\n tcp-request content accept if { req.body -m end f }"),
        body("tcp-request content set-var-fmt(txn.a) %[req.body]\n tcp-request content accept if { req.body -m end f }"),
        body("tcp-request content capture req.body len 20\n tcp-request content set-var(txn.a) req.body_len"),
        body("tcp-request content track-sc0 req.body\n tcp-request content set-var(txn.a) sc0_conn_cnt"),
        body("tcp-request content reject if { req.body -m end f } { src 192.0.2.1 }\n tcp-request content set-var(txn.a) req.body"),
        body(
            "tcp-response content set-var(txn.a) res.body\n tcp-response content set-var(txn.b) status\n tcp-response content accept if { res.body -m len 10 }",
        ),
    ]);
}

/// Servers that go, and streams that they take with them.
#[test]
fn marked() {
    compare(&[
        http(
            "option httpchk GET /x\n server a {a} check inter 1h on-marked-down shutdown-sessions\n server b {b} backup",
            &[
                "stat web/a check_status L7OK",
                "1 GET /stall",
                "1 heads",
                "cli set server web/a health down",
                "1 reads rest",
                "2 GET /x",
                "2 reads",
            ],
        ),
        http(
            "option httpchk GET /x\n server a {a} check inter 1h on-marked-down shutdown-sessions\n server b {b} backup",
            &["stat web/a check_status L7OK", "1 GET /silent", "seen a 2", "cli set server web/a state maint", "1 reads"],
        ),
        http(
            "server a {a} disabled on-marked-up shutdown-backup-sessions\n server b {b} backup",
            &["1 GET /stall", "1 heads", "cli set server web/a state ready", "1 reads rest", "2 GET /x", "2 reads"],
        ),
        bytes(
            "server a {a} on-marked-down shutdown-sessions\n server b {b} backup",
            &["1 GET /stall", "1 heads", "cli set server web/a state maint", "1 reads rest"],
        ),
    ]);
}

/// The lines of the formats that have names, the conditions under which lines are written, and their severity.
#[test]
fn lines() {
    const ASKS: &[&str] = &[
        "1 GET /x",
        "1 reads",
        "1 GET /404",
        "1 reads",
        "1 GET /500",
        "1 reads",
        "1 GET /deny",
        "1 reads",
        "2 GET /gone",
        "2 reads",
    ];
    const SILENT: &[&str] = &["1 connects", "1 leaves", "stat web/FRONTEND conn_tot 1", "2 = nonsense\\r\\n\\r\\n", "2 reads"];
    // The severity of a line is at its beginning.
    let graded = |lines: &str, acts| story(format!("no log\n log stdout format short local0\n {lines}\n server a {{a}}"), acts);
    let rules = "http-request deny if { path /deny }\n http-request set-log-level silent if { path /x }\n \
                 http-request set-log-level err if { path /404 }\n capture request header Host len 20\n capture response header X-Server len 3";
    compare(&[
        story(format!("option httplog\n {rules}\n server a {{a}}"), ASKS),
        story(format!("option httpslog\n {rules}\n server a {{a}}"), ASKS),
        story(format!("option httplog\n option logasap\n {rules}\n server a {{a}}"), ASKS),
        story(format!("option httplog\n option dontlog-normal\n {rules}\n server a {{a}}"), ASKS),
        story("option httplog\n option dontlognull\n server a {a}", SILENT),
        story("option httplog\n option http-ignore-probes\n server a {a}", SILENT),
        story("option httplog\n error-log-format \"odd %ci\"\n server a {a}", SILENT),
        story("server a {a}", ASKS),
        graded("option httplog\n option log-separate-errors", ASKS),
        graded(&format!("option httplog\n {rules}"), ASKS),
        graded("option httplog", ASKS),
        story("mode tcp\n option tcplog\n server a {a}", &["1 GET /close", "1 reads rest"]),
        story("mode tcp\n option tcplog\n option logasap\n server a {a}", &["1 GET /close", "1 reads rest"]),
        story(
            "mode tcp\n option tcplog\n option dontlog-normal\n server a {a}",
            &["1 GET /close", "1 reads rest", "stat web/FRONTEND scur 0", "2 GET /reset", "2 reads rest"],
        ),
        story("mode tcp\n option tcplog\n option dontlognull\n server a {a}", &["1 GET /silent", "seen a 1", "1 leaves"]),
        story("mode tcp\n server a {a}", &["1 GET /close", "1 reads rest"]),
    ]);
}
