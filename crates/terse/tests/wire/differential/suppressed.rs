//! Every end of a stream against every answer that is suppressed, replaced or written otherwise: what the client gets, what is logged and
//! counted, and what a stick table keeps of the client.

use super::stories::{Story, compare, story};

/// All fields of a line that tell of an end and its status, and a table that counts requests, errors and failures.
const SAYS: &str = " log-format \"%b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %ac/%fc/%bc/%sc/%rc %sq/%bq %tsc %{+Q}r\"\n \
                    stick-table type ip size 10 expire 1h store http_req_cnt,http_err_cnt,http_fail_cnt\n \
                    tcp-request connection track-sc0 src\n";

/// Replacements of the built-in pages.
const PAGES: [&str; 3] =
    ["", "errorfile {status} /dev/null\n", "http-error status {status} content-type text/plain string replaced\n"];

/// An end with each page for its status.
fn against_pages(status: &str, lines: &str, acts: &'static [&'static str]) -> Vec<Story> {
    let page = |page: &&str| story(format!("{SAYS} {}{lines}", page.replace("{status}", status)), acts);
    PAGES.iter().map(page).collect()
}

/// An end with the built-in pages.
fn plainly(lines: &str, acts: &'static [&'static str]) -> Story {
    story(format!("{SAYS} {lines}"), acts)
}

/// Failures in bodies, which 3.5 counts twice.
const FAILS: &[(&str, &str)] = &[("http_fail_cnt=", "2.6 counts only those before the body")];

const BREAKS: &[(&str, &str)] = &[("D-- ", "a message that breaks the protocol is `P`, as in 3.5")];

/// Bodies of requests that break the protocol: 2.6 reads the bytes that have come before it looks at the head.
const JUDGED_LATER: &[(&str, &str)] = &[
    ("web/", "the head was whole: the line says whose request it was"),
    ("R-- ", "the head was whole: the line says whose request it was"),
];

/// A client that has closed its half within a body.
const HALF_CLOSED: &[(&str, &str)] = &[
    ("1: ", "it still reads, so it is told"),
    ("CR-- ", "it still reads, so it is told"),
    ("hrsp_", "it still reads, so it is told"),
    ("ereq", "half a request is one that failed"),
    ("cli_abrt", "half a request is one that failed"),
];

#[test]
fn ends_of_requests() {
    const LATE: &str = "timeout http-request 100ms\n server a {a}";
    const BUFFERED: &str = "timeout http-request 100ms\n option http-buffer-request\n server a {a}";
    const RULES: &str = "http-request deny if { path /deny }\n http-request deny deny_status 429 if { path /many }\n \
                         http-request tarpit if { path /tarpit }\n timeout tarpit 20ms\n http-request auth if { path /auth }\n \
                         http-request return status 404 default-errorfiles if { path /none }\n \
                         http-request reject if { path /reject }\n server a {a}";
    let mut cases = vec![
        plainly(LATE, &["1 connects", "1 reads", "table web"]),
        plainly(BUFFERED, &["1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 10\\r\\n\\r\\nabc", "1 reads", "table web"]),
        plainly(
            BUFFERED,
            &["1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nabc", "1 reads", "table web"],
        ),
        plainly("server a {a}", &["1 connects", "1 leaves", "stat web/FRONTEND req_tot 1", "table web"]),
        plainly("server a {a}", &["1 connects", "1 breaks", "stat web/FRONTEND req_tot 1", "table web"]),
        plainly("server a {a}", &["1 connects", "1 shuts", "1 reads", "table web"]),
        plainly("server a {a}", &["1 = GET / HT", "1 leaves", "stat web/FRONTEND req_tot 1", "table web"]),
        plainly("server a {a}", &["1 = GET / HT", "1 breaks", "stat web/FRONTEND req_tot 1", "table web"]),
        plainly("server a {a}", &["1 = GET / HT", "1 shuts", "1 reads", "table web"]),
        plainly("server a {a}", &["1 GET /x", "1 reads", "1 leaves", "stat web/FRONTEND scur 0", "table web"]),
        plainly("server a {a}", &["1 GET /x", "1 reads", "1 = GET / HT", "1 leaves", "stat web/FRONTEND scur 0", "table web"]),
        plainly(
            "option http-buffer-request\n server a {a}",
            &["1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 10\\r\\n\\r\\nabc", "1 shuts", "1 reads", "table web"],
        )
        .but(HALF_CLOSED),
        plainly(
            "option http-buffer-request\n server a {a}",
            &["1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n", "1 reads", "table web"],
        )
        .but(JUDGED_LATER),
        plainly(
            "server a {a}",
            &[
                "1 = POST /x HTTP/1.1\\r\\nHost: a\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\nzz\\r\\n",
                "1 reads",
                "table web",
            ],
        )
        .but(JUDGED_LATER),
        plainly(RULES, &["1 GET /many", "1 reads", "table web"]),
        plainly(RULES, &["1 GET /tarpit", "1 reads", "table web"]),
        plainly(RULES, &["1 GET /auth", "1 reads", "table web"]),
        plainly(RULES, &["1 GET /none", "1 reads", "table web"]),
    ];
    let paged = [
        against_pages("408", LATE, &["1 = GET / HTTP/1.1\\r\\nHost", "1 reads", "table web"]),
        against_pages("400", "server a {a}", &["1 = nonsense\\r\\n\\r\\n", "1 reads", "table web"]),
        against_pages("403", RULES, &["1 GET /deny", "1 reads", "table web"]),
    ];
    cases.extend(paged.into_iter().flatten());
    compare(&cases);
}

#[test]
fn ends_of_responses() {
    const LATE: &str = "timeout server 100ms\n server a {a}";
    let mut cases = vec![
        plainly(LATE, &["1 GET /slowhead", "1 reads", "table web"]),
        plainly(LATE, &["1 GET /slowchunk", "1 reads rest", "table web"]).but(FAILS),
        plainly("server a {a}", &["1 GET /gone", "1 reads", "table web"]),
        plainly("server a {a}", &["1 GET /torn", "1 reads", "table web"]),
        plainly("server a {a}", &["1 GET /junk", "1 reads", "table web"]),
        plainly("server a {a}", &["1 GET /badchunk", "1 reads rest", "table web"]),
        plainly("server a {a}", &["1 GET /badsecond", "1 heads", "go a", "1 reads rest", "table web"]).but(BREAKS),
        plainly("server a {a}", &["1 GET /badtrailer", "1 reads rest", "table web"]),
        plainly("server a {a}", &["1 GET /broken", "1 reads rest", "table web"]).but(FAILS),
        plainly("server a {a}", &["1 GET /half", "1 reads rest", "table web"]).but(FAILS),
        plainly("http-response deny\n server a {a}", &["1 GET /x", "1 reads", "table web"]),
        plainly("http-response deny deny_status 403\n server a {a}", &["1 GET /x", "1 reads", "table web"]),
        plainly("server s {a} disabled", &["1 GET /x", "1 reads", "table web"]),
        plainly("retries 0\n timeout connect 50ms\n server s {deaf}", &["1 GET /x", "1 reads", "table web"]),
        plainly(
            "timeout queue 100ms\n server a {a} maxconn 1",
            &["1 GET /hold", "seen a 1", "2 GET /x", "2 reads", "go a", "1 reads", "table web"],
        ),
    ];
    let paged = [
        against_pages("504", LATE, &["1 GET /silent", "1 reads", "table web"]),
        against_pages("502", "server a {a}", &["1 GET /nochunk", "1 reads", "table web"]),
        against_pages("503", "retries 0\n server s {dead}", &["1 GET /x", "1 reads", "table web"]),
    ];
    cases.extend(paged.into_iter().flatten());
    compare(&cases);
}

/// Clients of which nothing is logged, in both modes.
#[test]
fn silent_clients() {
    const BYTES: &str = " mode tcp\n option dontlognull\n log-format \"%b/%s %Tw/%Tc/%Tt %B %ac/%fc/%bc/%sc/%rc %sq/%bq %ts\"\n";
    let http = |lines: &str, acts| story(format!("{SAYS} {lines}\n server a {{a}}"), acts);
    let bytes = |lines: &str, acts| story(format!("{BYTES} {lines}"), acts);
    const CLOSED: &[&str] = &["1 connects", "1 leaves", "stat web/FRONTEND scur 0", "stat web/FRONTEND stot 1", "table web"];
    const LATE: &[&str] = &["1 connects", "1 reads rest", "table web"];
    compare(&[
        http("option dontlognull", CLOSED),
        http("option dontlognull\n timeout http-request 100ms", LATE),
        http("option http-ignore-probes", CLOSED),
        http("option http-ignore-probes\n timeout http-request 100ms", LATE),
        http("option dontlognull", &["1 = GET", "1 leaves", "stat web/FRONTEND req_tot 1", "table web"]),
        http("option http-ignore-probes", &["1 = GET", "1 leaves", "stat web/FRONTEND req_tot 1", "table web"]),
        http("option http-ignore-probes\n timeout http-request 100ms", &["1 = GET", "1 reads", "table web"]),
        bytes("server a {a}", &["1 connects", "stat web/a stot 1", "1 leaves", "stat web/FRONTEND scur 0"]),
        bytes("server s {a} disabled", &["1 connects", "1 reads rest"]),
        bytes("server s {a} disabled", &["1 GET /x", "1 reads rest"]),
        bytes("retries 0\n server s {dead}", &["1 GET /x", "1 reads rest"]),
        bytes("retries 0\n server s {dead}", &["1 connects", "1 reads rest"]),
        bytes("server a {a}", &["1 GET /x", "1 heads", "1 leaves"]),
        bytes("server a {a}", &["1 GET /gone", "1 reads rest"]),
        bytes("tcp-request content reject\n server a {a}", &["1 GET /x", "1 reads rest"]),
        bytes(
            "tcp-request inspect-delay 50ms\n tcp-request content reject if { req.len 0 }\n server a {a}",
            &["1 connects", "1 reads rest"],
        ),
        bytes("timeout client 100ms\n server a {a}", &["1 connects", "1 reads rest"]),
    ]);
}
