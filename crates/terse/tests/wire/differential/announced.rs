//! Connections that were to begin with a head of the PROXY protocol, and begin with none.

use super::stories::{Story, compare, story};

/// Every way in which a head may be missing: each ends its connection before the next one comes.
const WRONG: &[&str] = &[
    "1 connects",
    "1 leaves",
    "stat web/FRONTEND conn_tot 1",
    "stat web/FRONTEND scur 0",
    "2 connects",
    "2 breaks",
    "stat web/FRONTEND conn_tot 2",
    "stat web/FRONTEND scur 0",
    "3 = PROXY TCP4 192.0",
    "3 shuts",
    "3 reads rest",
    "4 = abc",
    "4 shuts",
    "4 reads rest",
    "5 = GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n",
    "5 reads rest",
    "6 = PROXY TCP9 192.0.2.7 203.0.113.9 4000 80\\r\\n",
    "6 reads rest",
    "7 = PROXY TCP4 192.0.2.x 203.0.113.9 4000 80\\r\\n",
    "7 reads rest",
    // Commands, versions, families and lengths that are none.
    "8 = \\r\\n\\r\\n\0\\r\\nQUIT\\n\"\u{11}\0\u{c}abcdefghijkl",
    "8 reads rest",
    "9 = \\r\\n\\r\\n\0\\r\\nQUIT\\n\u{11}\u{11}\0\u{c}abcdefghijkl",
    "9 reads rest",
    "10 = \\r\\n\\r\\n\0\\r\\nQUIT\\n!A\0\u{c}abcdefghijkl",
    "10 reads rest",
    "11 = \\r\\n\\r\\n\0\\r\\nQUIT\\n!\u{11}\0\u{8}abcdefgh",
    "11 reads rest",
    "12 = \\r\\n\\r\\n\0\\r\\nQUIT\\n!\u{11}\0\u{c}abc",
    "12 shuts",
    "12 reads rest",
    "13 = PROXY TCP4 192.0.2.7 203.0.113.9 4000 80\\r\\nGET /x HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n",
    "13 reads",
    "13 leaves",
    "stat web/FRONTEND scur 0",
];

/// Nothing comes.
const LATE: &[&str] = &["1 connects", "1 reads rest"];

fn expecting(lines: &str, acts: &'static [&'static str]) -> Story {
    story(format!("tcp-request connection expect-proxy layer4\n {lines}\n server a {{a}}"), acts)
}

#[test]
fn heads_that_are_none_are_logged() {
    const SAYS: &str = "error-log-format \"%ci %f %b %ST %B %ts %[fc_err] %[fc_err_str]\"\n log-format \"%ci %ST\"";
    let graded = "no log\n log stdout format short local0\n option log-separate-errors\n option httplog";
    let tcp = "mode tcp\n option tcplog\n tcp-request content reject";
    let lines = ["option httplog", "option httplog\n option dontlognull", SAYS, graded, tcp];
    let late = lines.map(|lines| expecting(&format!("timeout client 100ms\n {lines}"), LATE));
    compare(&lines.map(|lines| expecting(lines, WRONG)).into_iter().chain(late).collect::<Vec<_>>());
}
