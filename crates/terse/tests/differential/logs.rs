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
