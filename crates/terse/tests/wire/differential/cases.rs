//! The cases, by subject.

use super::compare::{Allowed, Case, compare};
use Allowed::{Field, Order, Plain, Request, Seen};

fn same(lines: &str, requests: &'static [&'static str]) -> Case {
    Case { lines: lines.to_owned(), requests, allowed: &[] }
}

fn but(lines: &str, requests: &'static [&'static str], allowed: &'static [(Allowed, &'static str)]) -> Case {
    Case { lines: lines.to_owned(), requests, allowed }
}

const CHUNKS: &str = "a body without a length becomes chunks, so that the client's connection goes on and a loss can be told";
const HOPS: &str = "fields of one connection do not travel over the next (RFC 9110 section 7.6.1)";
const OLD: &str = "chunks and trailers are unknown to HTTP/1.0 (RFC 9112 section 7.1)";
const STRICT: &str = "malformed requests are refused, not repaired";
const READ: &str = "the connection goes on where the request's body has come with its head";

const VERSIONS: &str = "an intermediary's answer is of its own version, in which connections persist (RFC 9112 section 2.3)";

const TIES: &str = "the order among servers whose turn it is equally is nobody's";

const GET: &[&str] = &["GET /x"];

#[test]
fn messages() {
    compare(&[
        but(
            "server a {a}",
            &[
                "GET /x",
                "GET /204",
                "GET /304",
                "GET /404",
                "GET /500",
                "GET /chunked",
                "HEAD /x",
                "HEAD /chunked",
                "POST /x || hello",
                "PUT /x || ",
                "DELETE /x",
                "POST /x | Transfer-Encoding: chunked || 3\r\nabc\r\n0\r\nX-Sum: 3\r\n\r\n",
                "OPTIONS *",
                "GET http://example.org/y",
                "GET /hop | Connection: X-Hop | X-Hop: 1 | X-End: 1",
                "GET /hints",
                "POST /x | Expect: 100-continue || hello",
                "GET /location",
                "GET /x?a=b&c=%20d;e",
                "GET /x | X-Two: 1 | X-Two: 2 | x-two: 3",
                "GET /close",
                "~1.0 GET /x",
                "~1.0 GET /x | Connection: keep-alive",
                "~1.0 GET /chunked",
                "~GET /x | Connection: close",
            ],
            &[
                (Request("GET /hop | Connection: X-Hop | X-Hop: 1 | X-End: 1"), HOPS),
                (Seen("/hop"), HOPS),
                (Request("GET /close"), CHUNKS),
                (Request("1.0 GET /chunked"), OLD),
            ],
        ),
        same("option httpclose\n server a {a}", &["GET /x", "GET /x", "GET /chunked"]),
        same("option http-server-close\n server a {a}", &["GET /x", "GET /x", "GET /chunked", "POST /x || body"]),
        same("http-reuse always\n server a {a}", &["GET /x", "GET /x", "~GET /x", "~POST /x || body"]),
        but("server a {a}", &["GET /old", "GET /x"], &[(Field("connection"), VERSIONS)]),
        same("server a {a}", &["GET /empty", "~GET /junk", "~GET /x"]),
        same("server a {a} disabled", &["GET /x", "~POST /x || body"]),
        same("server a 127.0.0.1:1\n retries 0", GET),
        same(
            "timeout connect 100ms\n retries 1\n option redispatch\n server a 127.0.0.1:1\n server b {b}",
            &["GET /x", "GET /x", "GET /x"],
        ),
    ]);
}

#[test]
fn malformed_requests() {
    compare(&[but(
        "server a {a}",
        &[
            "RAW GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "RAW GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            "RAW GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
            "RAW GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
            "RAW POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "RAW POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\nhello",
            "RAW POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
            "RAW GET / HTTP/1.1\r\nHost: a\r\nX(: 1\r\n\r\n",
            "RAW GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
            "RAW GET / HTTP/11\r\nHost: a\r\n\r\n",
            "RAW nonsense\r\n\r\n",
        ],
        &[
            (Request("RAW GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"), STRICT),
            (Request("RAW GET /  HTTP/1.1\r\nHost: a\r\n\r\n"), STRICT),
            (Seen("a GET / HTTP/1.1"), STRICT),
        ],
    )]);
}

#[test]
fn addresses_of_clients() {
    let with =
        &["GET /x", "GET /x | X-Forwarded-For: 192.0.2.1", "GET /x | X-Forwarded-For: 192.0.2.1 | X-Forwarded-For: 192.0.2.2"];
    compare(&[
        same("option forwardfor\n server a {a}", with),
        same("option forwardfor if-none\n server a {a}", with),
        same("option forwardfor except 127.0.0.1\n server a {a}", with),
        same("option forwardfor except 10.0.0.0/8 header X-Client\n server a {a}", with),
        same("option originalto\n server a {a}", with),
        same("http-request set-header X-Src %[src]:%[dst]\n server a {a}", GET),
        // As gateways write them, with ports.
        same(
            "stick-table type ip size 9 expire 1h store http_req_cnt\n \
             http-request deny if { req.hdr(x-forwarded-for) -m ip 10.66.0.0/16 }\n \
             http-request track-sc0 req.hdr(x-forwarded-for)\n http-request set-src req.hdr(x-forwarded-for)\n \
             http-request set-dst req.hdr(x-to)\n \
             http-request set-header X-Seen \"%[src] %[dst] %[sc0_http_req_cnt] %[req.hdr(x-forwarded-for),ipmask(24)]\"\n \
             http-response set-header X-Count \"%[sc0_http_req_cnt] %[src,table_http_req_cnt()]\"\n server a {a}",
            &[
                "GET /x | X-Forwarded-For: 10.66.1.1",
                "GET /x | X-Forwarded-For: 10.66.1.1:51008",
                "~GET /x | X-Forwarded-For: 10.1.2.3 | X-To: 10.9.9.9:81",
                "~GET /x | X-Forwarded-For: 10.1.2.3:51008",
                "~GET /x | X-Forwarded-For: 10.1.2.3:51009 | X-To: 10.9.9.9, 10.8.8.8",
                "~GET /x | X-Forwarded-For: 10.1.2.3, 10.1.2.4:1",
                "~GET /x | X-Forwarded-For: 10.1.2.3.4",
                "~GET /x | X-Forwarded-For: unknown",
            ],
        ),
    ]);
}

#[test]
fn answers_made_by_rules() {
    let asks = &["GET /a/b?c=d", "GET /x", "POST /a || body", "HEAD /a"];
    compare(&[
        but("http-request redirect location /y if { path_beg /a }\n server a {a}", asks, &[(Request("POST /a || body"), READ)]),
        but("http-request redirect location /y code 301\n server a {a}", asks, &[(Request("POST /a || body"), READ)]),
        but("http-request redirect prefix http://other code 307\n server a {a}", asks, &[(Request("POST /a || body"), READ)]),
        same("http-request redirect prefix /p drop-query append-slash\n server a {a}", &["GET /a", "GET /a?b", "GET /a/"]),
        but("http-request redirect scheme https\n server a {a}", asks, &[(Request("POST /a || body"), READ)]),
        same(
            "http-request redirect scheme https code 308 if !{ hdr(x-proto) https }\n server a {a}",
            &["GET /x", "GET /x | X-Proto: https"],
        ),
        but("redirect location /y set-cookie A=b\n server a {a}", asks, &[(Request("POST /a || body"), READ)]),
        but("redirect location /y clear-cookie A=\n server a {a}", asks, &[(Request("POST /a || body"), READ)]),
        but(
            "http-request redirect location http://%[hdr(host)]%[path]?%[query]\n server a {a}",
            asks,
            &[(Request("POST /a || body"), READ)],
        ),
        same("http-request deny if { path_beg /a }\n server a {a}", asks),
        same("http-request deny deny_status 429 if { method POST }\n server a {a}", asks),
        same("http-request deny status 404 content-type text/plain string nothing\n server a {a}", asks),
        same("http-request return status 200 content-type text/plain string hello\n server a {a}", asks),
        same("http-request return status 200 content-type text/plain lf-string \"%[path] %[method] %HM\"\n server a {a}", asks),
        but(
            "http-request return status 204 hdr X-A b\n server a {a}",
            asks,
            &[(Field("content-length"), "there is none in a 204 (RFC 9110 section 8.6); HAProxy 3 sends it")],
        ),
        same("http-request return status 503\n server a {a}", asks),
        same("http-request return\n server a {a}", asks),
        same("http-request tarpit\n timeout tarpit 10ms\n server a {a}", GET),
        same("http-request allow if { path /x }\n http-request deny\n server a {a}", asks),
        same("http-request auth realm here\n server a {a}", asks),
        same("monitor-uri /x\n server a {a}", &["GET /x", "GET /y", "HEAD /x"]),
        same("monitor-uri /x\n monitor fail if { always_true }\n server a {a}", &["GET /x", "GET /y"]),
        same("errorloc 403 http://other/\n http-request deny\n server a {a}", asks),
        same("http-response deny if { status 404 }\n server a {a}", &["GET /404", "GET /x"]),
        same(
            "http-error status 403 content-type text/plain hdr X-Path %[path] lf-string \"no %[path] %ci\"\n http-request deny\n server a {a}",
            asks,
        ),
        same("http-error status 502 hdr X-A 1\n http-response deny if { status 404 }\n server a {a}", &["GET /404", "GET /x"]),
        same(
            "errorloc 403 http://other/\n http-error status 403 default-errorfiles\n http-request deny\n server a {a}",
            &["GET /x"],
        ),
        same(
            "http-response return status 299 content-type text/plain string other if { status 404 }\n server a {a}",
            &["GET /404", "GET /x"],
        ),
        same("http-response redirect location /z if { status 404 }\n server a {a}", &["GET /404", "GET /x"]),
        same(
            "http-after-response set-header X-After %[status]\n http-request deny if { path /y }\n server a {a}",
            &["GET /y", "GET /x"],
        ),
    ]);
}

#[test]
fn requests_edited_by_rules() {
    let asks = &["GET /a/b?c=d&e=f | X-In: 1 | X-In: 2 | Cookie: k=v; l=w", "POST /x || body"];
    compare(&[
        same("http-request set-header X-In 3\n server a {a}", asks),
        same("http-request add-header X-In 3\n server a {a}", asks),
        same("http-request del-header X-In\n server a {a}", asks),
        same("http-request del-header X- -m beg\n server a {a}", asks),
        same("http-request replace-header X-In (.) <\\1>\n server a {a}", asks),
        same("http-request replace-value X-In (.) <\\1>\n server a {a}", asks),
        same("http-request set-path /p%[path]\n server a {a}", asks),
        same("http-request set-pathq /q?r=s\n server a {a}", asks),
        same("http-request set-query %[query,regsub(c=,z=)]\n server a {a}", asks),
        same("http-request set-uri /u?v\n server a {a}", asks),
        same("http-request replace-path (.*)/b \\1/c\n server a {a}", asks),
        same("http-request replace-pathq /a/(.*) /z/\\1\n server a {a}", asks),
        same("http-request replace-uri ^/(.*) /r/\\1\n server a {a}", asks),
        same("http-request set-method PATCH\n server a {a}", asks),
        same("http-request set-var(txn.a) path\n http-request set-header X-Var %[var(txn.a)]\n server a {a}", asks),
        same("http-request set-var(req.a) int(3),add(4)\n http-request set-header X-Var %[var(req.a)]\n server a {a}", asks),
        same(
            "http-request set-var-fmt(txn.a) \"%[path]-%[method]\"\n http-request set-header X-Var %[var(txn.a)]\n server a {a}",
            asks,
        ),
        same("http-response set-header X-A %[res.hdr(x-server)]\n server a {a}", asks),
        same("http-response add-header X-Server more\n server a {a}", asks),
        same("http-response del-header Server\n server a {a}", asks),
        same("http-response replace-header Server (.)est B\\1\n server a {a}", asks),
        same("http-response set-status 201 reason Made\n server a {a}", asks),
        same(
            "http-response replace-header Location http://backend.local:8080(.*) http://front\\1\n server a {a}",
            &["GET /location"],
        ),
    ]);
}

/// Conditions, each of which sets a field of its own when it holds.
#[test]
fn conditions() {
    const ASKS: &[&str] = &[
        "GET /a/b.html?id=7&name=joe",
        "GET /A/B.HTML",
        "POST /x | X-Num: 42 || body",
        "GET /x | Host: www.Example.ORG:8080",
        "GET /x | X-List: one, two,three | X-List: four",
        "GET /x | Cookie: user=joe; theme=dark | User-Agent: Mozilla/5.0 (X11) curl",
        "HEAD /x",
    ];
    const CONDITIONS: &[&str] = &[
        "if { path /x }",
        "if { path -i /a/b.html }",
        "if { path_beg /a }",
        "if { path_end .html .js }",
        "if { path_reg ^/[a-z]/ }",
        "if { path_sub b.h }",
        "if { path_dir a }",
        "if { hdr(host) -i www.example.org:8080 }",
        "if { hdr_dom(host) -i example }",
        "if { hdr_cnt(x-list) 4 }",
        "if { hdr_cnt(x-list) gt 2 }",
        "if { hdr(x-list) two }",
        "if { req.fhdr(x-list) -m sub two }",
        "if { hdr_val(x-num) ge 40 }",
        "if { hdr_sub(user-agent) -i CURL }",
        "if { req.hdr(x-num) -m found }",
        "if { cook(user) joe }",
        "if { url_param(id) 7 }",
        "if { query -m sub name= }",
        "if { method GET HEAD }",
        "if METH_POST or HTTP_1.0",
        "unless { src 127.0.0.0/8 } || { path /x }",
        "if { path,lower -m beg /a/b }",
        "if { path -m len 2 }",
        "if { always_false }\n http-request set-header X-Miss 1 if TRUE",
        "if one !two or two !one",
        "if three",
        "if one two !three",
    ];
    let rule = |(number, condition): (usize, &&str)| format!(" http-request set-header X-{number} hit {condition}\n");
    let acls = " acl one path_beg /a\n acl two method GET\n acl three path_beg /a\n acl three hdr(x-num) 42\n";
    let rules: String = CONDITIONS.iter().enumerate().map(rule).collect();
    compare(&[
        same(
            "http-request return status 200 hdr X-C \"<%[req.fhdr(connection)]>\" hdr X-N %[req.hdr_cnt(connection)] \
             hdr X-U \"<%[req.fhdr(upgrade)]>\" hdr X-K \"<%[req.fhdr(keep-alive)]>\"\n server a {a}",
            &[
                "GET /x | Connection: keep-alive",
                "GET /x | Connection: Keep-Alive | Keep-Alive: timeout=5",
                "GET /x | Connection: X-A,keep-alive , X-B",
                "GET /x | Connection: Upgrade, Keep-Alive | Upgrade: tcp",
                "GET /x | Connection: keep-alive, Upgrade | Upgrade: tcp",
                "GET /x | Connection: keep-alive | Connection: Upgrade | Upgrade: tcp",
                "~GET /x | Connection: close",
                "~GET /x | Connection: Upgrade, close | Upgrade: tcp",
            ],
        ),
        same(&format!("{acls}{rules} server a {{a}}"), ASKS),
    ]);
}

/// Expressions, each of which writes a field of its own.
#[test]
fn expressions() {
    const ASKS: &[&str] = &[
        "GET /a/B%20c/d.html?id=7&name=J%C3%B6&x=1 | X-In: Hello, World | X-In: two | Cookie: k=v; l=\"w w\" | X-Num: 12",
        "POST /x | Content-Type: text/x || a=1&b=2",
    ];
    const VALUES: &[&str] = &[
        "<%[path]>",
        "<%[pathq]>",
        "<%[url]>",
        "<%[query]>",
        "<%[base]>",
        "<%[method]-%[req.ver]>",
        "<%[req.hdr(x-in)]>",
        "<%[req.fhdr(x-in,1)]>",
        "<%[hdr(x-in,2)]-%[hdr(x-in,-1)]>",
        "<%[req.hdr_names]>",
        "<%[req.cook(k)]-%[req.cook(l)]>",
        "<%[url_param(name)]-%[urlp(name),url_dec]>",
        "<%[path,upper]-%[path,lower]>",
        "<%[path,url_dec]>",
        "<%[path,field(2,/)]-%[path,field(-1,/)]>",
        "<%[path,word(2,/.)]>",
        "<%[path,regsub([aeiou],_,g)]>",
        "<%[path,base64]-%[path,base64,b64dec]>",
        "<%[path,hex]-%[path,length]>",
        "<%[path,bytes(1,3)]>",
        "<%[path,crc32]-%[path,sdbm]-%[path,djb2]-%[path,crc32(1)]>",
        "<%[path,xxh32]-%[path,xxh64]>",
        "<%[path,sha1,hex]>",
        "<%[path,digest(md5),hex]>",
        "<%[path,json]>",
        "<%[path,url_enc]>",
        "<%[hdr(x-num),add(3),mul(2),sub(1),div(4),mod(5)]>",
        "<%[hdr(x-num),neg]-%[hdr(x-num),even]-%[hdr(x-num),bool]-%[hdr(x-num),not]>",
        "<%[int(5),and(4)]-%[int(5),or(2)]-%[int(5),xor(1)]-%[int(5),cpl]>",
        "<%[str(ab),concat(-,txn.x)]>",
        "<%[src,ipmask(8)]>",
        "<%[hdr(x-in),rtrim(d),ltrim(H)]>",
        "<%[str(),iif(a,b)]-%[bool(true),iif(a,b)]>",
        "<%[ipv4(10.1.2.3),ipmask(16)]-%[ipv6(::1)]>",
        "<%[str(12-34),word(2,-),mul(2)]>",
        "<%[path,strcmp(txn.x),bool]>",
        "<%[nbsrv(web)]-%[be_name]-%[fe_name]-%[srv_is_up(web/a)]>",
        "\"%ci|%fi|%HM|%HP|%HQ|%HV|%HU\"",
        "<%[rand(1)]-%[always_true]-%[dst_port,bool]-%[req.ver,length]>",
    ];
    let rule = |(number, value): (usize, &&str)| format!(" http-request set-header X-Out-{number} {value}\n");
    let rules: String = VALUES.iter().enumerate().map(rule).collect();
    let before = " http-request set-var(txn.x) str(/x)\n";
    let after = " http-response set-header X-Out <%[status]-%[res.hdr(x-server)]-%[srv_name]>\n";
    compare(&[same(&format!("{before}{rules}{after} server a {{a}}\n server b {{b}}"), ASKS)]);
}

#[test]
fn servers() {
    const MANY: &[&str] = &[
        "GET /1", "GET /2", "GET /3", "GET /4", "GET /5", "GET /6", "GET /7", "GET /8", "GET /9", "GET /10", "GET /11", "GET /12",
    ];
    let three = |lines: &str| same(lines, MANY);
    compare(&[
        three("balance roundrobin\n server a {a}\n server b {b}\n server c {c}"),
        but("balance roundrobin\n server a {a} weight 1\n server b {b} weight 2\n server c {c} weight 3", MANY, &[(Order, TIES)]),
        three("balance roundrobin\n server a {a} weight 10\n server b {b} weight 0\n server c {c} weight 5"),
        but("balance static-rr\n server a {a} weight 1\n server b {b} weight 3", MANY, &[(Order, TIES)]),
        but("balance leastconn\n server a {a}\n server b {b}\n server c {c}", MANY, &[(Order, TIES)]),
        three("balance first\n server a {a} maxconn 10\n server b {b}"),
        three("balance source\n server a {a}\n server b {b}\n server c {c}"),
        three("balance uri\n server a {a}\n server b {b}\n server c {c}"),
        three("balance uri\n hash-type map-based crc32\n server a {a}\n server b {b}\n server c {c}"),
        three("balance uri\n hash-type consistent\n server a {a}\n server b {b}\n server c {c}"),
        three("balance uri\n hash-type consistent djb2 avalanche\n server a {a}\n server b {b} weight 3\n server c {c}"),
        three("balance uri depth 1\n server a {a}\n server b {b}"),
        three("server a {a} backup\n server b {b}"),
        three("server a {a} disabled\n server b {b} backup\n server c {c} backup"),
        three("option allbackups\n server a {a} disabled\n server b {b} backup\n server c {c} backup"),
    ]);
}

#[test]
fn cookies() {
    const ASKS: &[&str] = &[
        "GET /x",
        "GET /x | Cookie: SRV=b",
        "GET /x | Cookie: a=1; SRV=b; c=2",
        "GET /x | Cookie: SRV=zzz",
        "GET /cookie",
        "GET /cookie | Cookie: SRV=a",
        "GET /cacheable",
        "GET /x | Cookie: SRV=b~inner",
        "POST /x | Cookie: SRV=a || body",
        "GET /x | Cookie: other=1 | Cookie: SRV=b",
    ];
    let with = |lines: &str| same(lines, ASKS);
    compare(&[
        with("cookie SRV insert\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV insert indirect\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV insert indirect nocache\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV insert postonly\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV insert preserve\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV insert httponly secure domain .example.org\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV insert attr \"SameSite=Lax\"\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV rewrite\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV prefix\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV prefix nocache\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV\n server a {a} cookie a\n server b {b} cookie b"),
        with("cookie SRV insert indirect\n server a {a} cookie a\n server b {b}"),
        with(
            "cookie SRV insert indirect\n option redispatch\n timeout connect 50ms\n retries 1\n server a {a} cookie a\n server b 127.0.0.1:1 cookie b",
        ),
        with("cookie SRV insert indirect\n server a {a} cookie a\n server b {b} cookie b disabled"),
        with("cookie SRV insert indirect\n option persist\n server a {a} cookie a\n server b {b} cookie b weight 0"),
    ]);
}

#[test]
fn compression() {
    const ASKS: &[&str] = &[
        "GET /html",
        "GET /html | Accept-Encoding: gzip",
        "GET /html | Accept-Encoding: gzip;q=0",
        "GET /html | Accept-Encoding: identity, gzip;q=0.5",
        "GET /html | Accept-Encoding: br",
        "GET /html | Accept-Encoding: *",
        "GET /plain | Accept-Encoding: gzip",
        "GET /image | Accept-Encoding: gzip",
        "GET /coded | Accept-Encoding: gzip",
        "GET /part | Accept-Encoding: gzip",
        "GET /stream | Accept-Encoding: gzip",
        "GET /no-transform | Accept-Encoding: gzip",
        "GET /404 | Accept-Encoding: gzip",
        "GET /204 | Accept-Encoding: gzip",
        "HEAD /html | Accept-Encoding: gzip",
        "GET /html | Accept-Encoding: gzip | User-Agent: Mozilla/4.0 (compatible; MSIE 6.0)",
        "1.0 GET /html | Accept-Encoding: gzip",
    ];
    fn with(lines: &str) -> Case {
        let allowed = &[
            (Plain("vary"), "what was chosen by Accept-Encoding says so, compressed or not (RFC 9110 section 12.5.5)"),
            (Field("etag"), "each representation has a tag of its own (RFC 9110 section 8.8.3)"),
            (Request("HEAD /html | Accept-Encoding: gzip"), "its head is GET's (RFC 9110 section 9.3.2)"),
            (Field("accept-ranges"), "ranges of a compressed body are not to be had"),
            (Request("GET /html | Accept-Encoding: identity, gzip;q=0.5"), "who prefers identity gets it"),
            (Request("GET /404 | Accept-Encoding: gzip"), "an error's page is compressed like any other"),
        ];
        but(lines, ASKS, allowed)
    }
    compare(&[
        with("compression algo gzip\n compression type text/html\n server a {a}"),
        with("compression algo gzip\n server a {a}"),
        Case {
            requests: &[
                "GET /html | Accept-Encoding: gzip",
                "GET /html | Accept-Encoding: br",
                "GET /plain",
                "GET /image | Accept-Encoding: gzip",
            ],
            ..with("compression algo gzip\n compression type text/html text/plain\n compression offload\n server a {a}")
        },
        with("filter compression\n compression algo gzip\n compression type text/plain\n server a {a}"),
        with("compression type text/html\n server a {a}"),
    ]);
}

#[test]
fn backends() {
    compare(&[
        same(
            "acl api path_beg /api\n use_backend other if api\n use_backend %[path,field(2,/)] if { path_beg /by }\n server a {a}\nbackend other\n server b {b}\nbackend by\n server c {c}",
            &["GET /x", "GET /api/x", "GET /by/x", "GET /byx/y", "GET /x"],
        ),
        same("use_backend none if { path /none }\n server a {a}\nbackend none\n", &["GET /none", "~GET /x"]),
        same(
            "http-request set-header X-F 1\n http-response set-header X-F 1\n option forwardfor\n use_backend other\nbackend other\n http-request add-header X-F 2\n http-response add-header X-F 2\n option forwardfor header X-B\n server b {b}",
            &["GET /x"],
        ),
    ]);
}
