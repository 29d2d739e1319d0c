//! Stick tables: counting, reading, purging, and stickiness to servers.

use super::compare::{Allowed, Case, compare};
use Allowed::Order;

fn same(lines: &str, requests: &'static [&'static str]) -> Case {
    Case { lines: lines.to_owned(), requests, allowed: &[] }
}

/// A table of addresses, the client tracked in slot 0, and these expressions in a field of each answer.
fn tracked(store: &str, shown: &str, requests: &'static [&'static str]) -> Case {
    let lines = format!(
        "stick-table type ip size 100 expire 1h store {store}\n http-request track-sc0 src\n \
         http-after-response set-header x-t \"{shown}\"\n server a {{a}}"
    );
    same(&lines, requests)
}

/// The same for a table whose keys are the request's field X-Key.
fn keyed(table: &str, lines: &str, shown: &str, requests: &'static [&'static str]) -> Case {
    let lines = format!(
        "stick-table {table}\n http-request track-sc0 hdr(x-key)\n {lines}\n \
         http-after-response set-header x-t \"{shown}\"\n server a {{a}}"
    );
    same(&lines, requests)
}

const TWICE: &[&str] = &["GET /x", "GET /y", "~GET /z"];
const KEYS: &[&str] = &["GET /x | X-Key: a", "GET /x | X-Key: b", "GET /x", "GET /x | X-Key: a", "~GET /x | X-Key: a"];

#[test]
fn what_is_counted() {
    compare(&[
        tracked("conn_cnt,conn_cur,conn_rate(1h)", "%[sc0_conn_cnt] %[sc0_conn_cur] %[sc0_conn_rate]", TWICE),
        tracked("http_req_cnt,http_req_rate(1h)", "%[sc0_http_req_cnt] %[sc0_http_req_rate] %[sc_http_req_cnt(0)]", TWICE),
        tracked(
            "http_err_cnt,http_err_rate(1h),http_fail_cnt,http_fail_rate(1h)",
            "%[sc0_http_err_cnt] %[sc0_http_err_rate] %[sc0_http_fail_cnt] %[sc0_http_fail_rate]",
            &["GET /x", "GET /404", "GET /500", "GET /204", "GET /404", "~GET /500"],
        ),
        tracked("sess_cnt,sess_rate(1h)", "%[sc0_sess_cnt] %[sc0_sess_rate]", TWICE),
        tracked("gpc0", "%[sc0_tracked] %[sc1_tracked] %[sc0_trackers] %[sc1_conn_cnt] %[sc0_conn_cnt]", TWICE),
        // A deny counts as an error, a server that cannot be reached as nothing.
        same(
            "stick-table type ip size 9 store http_err_cnt,http_fail_cnt,http_req_cnt\n http-request track-sc0 src\n \
             http-request deny if { path /deny }\n http-request return status 200 if { path /return }\n \
             http-request redirect location / if { path /redirect }\n \
             http-after-response set-header x-t \"%[sc0_http_err_cnt] %[sc0_http_fail_cnt] %[sc0_http_req_cnt]\"\n \
             use_backend none if { path /none }\n server a {a}\nbackend none\n retries 0\n server b 127.0.0.1:1",
            &["GET /x", "GET /deny", "GET /return", "GET /redirect", "~GET /none", "~GET /x"],
        ),
        // Answers that cannot be read.
        same(
            "stick-table type ip size 9 store http_err_cnt,http_fail_cnt\n http-request track-sc0 src\n \
             http-after-response set-header x-t \"%[sc0_http_err_cnt] %[sc0_http_fail_cnt]\"\n server a {a}",
            &["GET /junk", "~GET /empty", "~GET /x"],
        ),
        // Rules on connections: the session tracks, its requests are counted.
        same(
            "stick-table type ip size 9 store conn_cnt,conn_cur,sess_cnt,http_req_cnt,http_err_cnt\n \
             tcp-request connection track-sc0 src\n http-request track-sc0 path\n \
             http-after-response set-header x-t \"%[sc0_conn_cnt] %[sc0_conn_cur] %[sc0_sess_cnt] %[sc0_http_req_cnt] \
             %[sc0_http_err_cnt]\"\n server a {a}",
            &["GET /x", "GET /404", "~GET /x", "GET /x"],
        ),
        same(
            "stick-table type ip size 9 store conn_cnt,sess_cnt,http_req_cnt\n tcp-request session track-sc1 src\n \
             http-after-response set-header x-t \"%[sc1_conn_cnt] %[sc1_sess_cnt] %[sc1_http_req_cnt] %[sc0_conn_cnt]\"\n server a {a}",
            TWICE,
        ),
        same(
            "stick-table type ip size 9 store conn_cnt,http_req_cnt,sess_cnt\n tcp-request inspect-delay 1s\n \
             tcp-request content track-sc2 src\n \
             http-after-response set-header x-t \"%[sc2_conn_cnt] %[sc2_http_req_cnt] %[sc2_sess_cnt]\"\n server a {a}",
            TWICE,
        ),
        // Tracked only once the response is there.
        same(
            "stick-table type ip size 9 store http_req_cnt,http_err_cnt,http_fail_cnt,conn_cnt\n http-response track-sc0 src\n \
             http-after-response set-header x-t \"%[sc0_http_req_cnt] %[sc0_http_err_cnt] %[sc0_http_fail_cnt] %[sc0_conn_cnt]\"\n \
             server a {a}",
            &["GET /x", "GET /404", "GET /500"],
        ),
        // Tracked by the backend, in a table of another section.
        same(
            "http-after-response set-header x-t \"%[sc0_http_req_cnt] %[sc0_conn_cnt] %[src_conn_cnt(t)]\"\n default_backend b\n\
             backend b\n http-request track-sc0 src table t\n server a {a}\nbackend t\n \
             stick-table type ip size 9 store http_req_cnt,conn_cnt",
            TWICE,
        ),
    ]);
}

#[test]
fn keys_of_every_type() {
    let shown = "%[sc0_conn_cnt] %[table_cnt] %[table_avl]";
    compare(&[
        keyed("type string size 100 store conn_cnt", "", shown, KEYS),
        keyed(
            "type string len 1 size 100 store conn_cnt",
            "",
            shown,
            &["GET /x | X-Key: ab", "GET /x | X-Key: ac", "GET /x | X-Key: b"],
        ),
        keyed(
            "type binary len 3 size 100 store conn_cnt",
            "",
            shown,
            &["GET /x | X-Key: a", "GET /x | X-Key: abcd", "GET /x | X-Key: abce"],
        ),
        keyed(
            "type integer size 100 store conn_cnt",
            "",
            shown,
            &["GET /x | X-Key: 7", "GET /x | X-Key: 07", "GET /x | X-Key: x", "GET /x | X-Key: 0"],
        ),
        keyed(
            "type ip size 100 store conn_cnt",
            "",
            shown,
            &["GET /x | X-Key: 10.0.0.1", "GET /x | X-Key: x", "GET /x | X-Key: 10.0.0.1"],
        ),
        keyed(
            "type ipv6 size 100 store conn_cnt",
            "",
            shown,
            &[
                "GET /x | X-Key: 2001:db8::1",
                "GET /x | X-Key: 2001:DB8:0::1",
                "GET /x | X-Key: 10.0.0.1",
                "GET /x | X-Key: ::ffff:10.0.0.1",
            ],
        ),
        keyed(
            "type string size 100 store conn_cnt",
            "http-request track-sc1 hdr(x-key),lower table web\n http-request track-sc1 path",
            shown,
            KEYS,
        ),
    ]);
}

#[test]
fn tables_asked_by_any_value() {
    compare(&[
        keyed(
            "type string size 100 store conn_cnt,http_req_rate(1h),gpc0,gpt0",
            "http-request set-header x-t \"%[req.hdr(x-key),in_table(web)]\"",
            "%[str(a),in_table(web)] %[str(a),table_conn_cnt(web)] %[str(zz),table_conn_cnt(web)] \
             %[str(a),table_http_req_rate(web)] %[str(a),table_sess_cnt(web)] %[str(zz),table_sess_cnt(web)] %[str(a),table_gpt0(web)] \
             %[str(a),table_server_id(web)]",
            KEYS,
        ),
        // The answer where there is no entry, in conditions.
        keyed(
            "type string size 100 store gpc0",
            "http-request set-header x-c one if { str(zz),table_gpc0(web) 0 }\n http-request set-header x-c two if { sc1_get_gpc0 0 }\n \
             http-request set-header x-d three if { sc0_get_gpc0 0 }",
            "%[table_cnt]",
            KEYS,
        ),
        // A key of another type.
        same(
            "stick-table type ip size 9 store conn_cnt\n http-request track-sc0 src\n \
             http-after-response set-header x-t \"%[str(127.0.0.1),table_conn_cnt(web)] %[int(2130706433),table_conn_cnt(web)] \
             %[src_conn_cnt(web)] %[src_conn_cur(other)] %[sc0_conn_cnt(other)] %[sc_conn_cnt(0,other)]\"\n server a {a}\nbackend other\n stick-table type ip size 9 store conn_cnt",
            TWICE,
        ),
        tracked("bytes_in_rate(1h),bytes_out_cnt", "%[sc0_kbytes_in] %[sc0_kbytes_out] %[src_kbytes_out(web)]", &["GET /x"]),
    ]);
}

#[test]
fn counters_and_tags() {
    compare(&[
        tracked("gpc0,gpc0_rate(1h)", "%[sc0_inc_gpc0] %[sc0_get_gpc0] %[sc0_gpc0_rate] %[sc0_clr_gpc0] %[sc0_get_gpc0]", TWICE),
        tracked("gpc1,gpc1_rate(1h)", "%[sc0_inc_gpc1] %[src_inc_gpc1(web)] %[sc0_gpc1_rate] %[src_clr_gpc1(web)]", TWICE),
        tracked("gpc0_rate(1h)", "%[sc0_inc_gpc0] %[sc0_get_gpc0] %[sc0_gpc0_rate] %[sc0_inc_gpc1]", TWICE),
        tracked(
            "gpc(3),gpc_rate(3,1h),gpt(2)",
            "%[sc_inc_gpc(2,0)] %[sc_get_gpc(2,0)] %[sc_gpc_rate(2,0)] %[sc0_inc_gpc0] %[sc0_get_gpc1] %[sc_get_gpc(3,0)] \
             %[sc_get_gpt(1,0)] %[sc0_get_gpt0] %[sc_clr_gpc(2,0)]",
            TWICE,
        ),
        tracked("conn_cnt", "%[src_updt_conn_cnt(web)] %[src_conn_cnt(web)]", TWICE),
        keyed(
            "type string size 9 store gpc0,gpc0_rate(1h),gpt0,gpc1",
            "http-request sc-inc-gpc0(0) if { path /inc }\n http-request sc-inc-gpc1(0)\n http-request sc-set-gpt0(0) 5 if { path /set }\n \
             http-request sc-set-gpt0(0) req.hdr(x-tag) if { path /tag }\n http-request sc-inc-gpc0(1)",
            "%[sc0_get_gpc0] %[sc0_gpc0_rate] %[sc0_get_gpc1] %[sc0_get_gpt0]",
            &[
                "GET /inc | X-Key: a",
                "GET /set | X-Key: a",
                "GET /tag | X-Key: a | X-Tag: 77",
                "GET /tag | X-Key: a | X-Tag: -1",
                "GET /tag | X-Key: a",
                "GET /inc | X-Key: b",
                "GET /inc",
            ],
        ),
        keyed(
            "type string size 9 store gpc(2),gpt(2)",
            "http-request sc-inc-gpc(1,0)\n http-request sc-inc-gpc(5,0)\n http-request sc-set-gpt(1,0) 9\n http-response sc-inc-gpc0(0)",
            "%[sc_get_gpc(1,0)] %[sc0_get_gpc0] %[sc_get_gpt(1,0)] %[sc0_get_gpt0]",
            KEYS,
        ),
        // An address without an entry gets one by being counted.
        same(
            "http-after-response set-header x-t \"%[src_get_gpc0(t)] %[src_inc_gpc0(t)] %[table_cnt(t)] %[src_clr_gpc0(t)]\"\n server a {a}\n\
             backend t\n stick-table type ip size 9 store gpc0",
            TWICE,
        ),
    ]);
}

#[test]
fn full_tables() {
    const MANY: &[&str] = &[
        "GET /x | X-Key: a",
        "GET /x | X-Key: b",
        "GET /x | X-Key: a",
        "GET /x | X-Key: c",
        "GET /x | X-Key: b",
        "GET /x | X-Key: a",
    ];
    let shown = "%[sc0_conn_cnt] %[table_cnt] %[table_avl] %[str(a),in_table(web)]";
    compare(&[
        keyed("type string size 1 store conn_cnt", "", shown, &["GET /x | X-Key: a", "GET /x | X-Key: b", "GET /x | X-Key: a"]),
        keyed("type string size 2 nopurge store conn_cnt", "", shown, MANY),
        keyed("type string size 1 nopurge store conn_cnt", "http-request deny if !{ sc0_tracked }", shown, MANY),
    ]);
}

#[test]
fn servers_found_again() {
    const WHO: &[&str] = &["GET /x?who=1", "GET /x?who=2", "GET /x?who=1", "~GET /x?who=2", "GET /x", "GET /x?who=1"];
    let three = "server a {a}\n server b {b}\n server c {c} backup";
    compare(&[
        same(&format!("stick-table type string size 9\n stick on url_param(who)\n {three}"), WHO),
        same(
            &format!("stick-table type string size 9\n stick store-request url_param(who)\n stick match url_param(who)\n {three}"),
            WHO,
        ),
        same(&format!("stick-table type string size 9\n stick match url_param(who)\n {three}"), WHO),
        same(
            &format!(
                "stick-table type string size 9\n stick on url_param(who) if {{ path /y }}\n stick on src,xxh32 unless {{ path /y }}\n {three}"
            ),
            &["GET /x?who=1", "GET /y?who=1", "GET /x", "GET /y?who=2", "GET /y?who=1"],
        ),
        same(&format!("stick on url_param(who) table t\n {three}\nbackend t\n stick-table type string size 9"), WHO),
        same(&format!("stick-table type integer size 9 srvkey addr\n stick on url_param(who)\n {three}"), WHO),
        same("stick-table type string size 9\n stick on url_param(who)\n server a {a} non-stick\n server b {b}", WHO),
        same(
            "stick-table type string size 9\n stick store-response res.hdr(x-server)\n stick match url_param(who)\n server a {a}\n server b {b}",
            &["GET /x", "GET /x", "GET /x?who=a", "GET /x?who=a", "GET /x?who=b", "GET /x?who=b"],
        ),
        same(
            &format!(
                "use-server b if {{ path_beg /b }}\n use-server %[path,field(3,/)] if {{ path_beg /name }}\n use-server c if {{ path_beg /c }}\n {three}"
            ),
            &["GET /b", "GET /b", "GET /c", "GET /name/a", "GET /name/zz", "GET /x", "GET /b"],
        ),
        same(
            "use-server b if { path_beg /b }\n use-server a unless { path_beg /x }\n server a {a}\n server b {b} disabled\n server c {c}",
            &["GET /b", "GET /b", "GET /y", "GET /x", "GET /x"],
        ),
        same(
            "cookie S insert indirect\n use-server b if { path_beg /b }\n ignore-persist if { path_beg /i }\n \
             server a {a} cookie a\n server b {b} cookie b",
            &["GET /b | Cookie: S=a", "GET /b", "GET /i | Cookie: S=a", "GET /i | Cookie: S=a", "GET /x | Cookie: S=b"],
        ),
        same(
            "cookie S insert\n force-persist if { path_beg /f }\n retries 0\n server a {a} cookie a\n server b {b} cookie b disabled",
            &["GET /f | Cookie: S=b", "GET /x | Cookie: S=b", "GET /f"],
        ),
        same(
            "mode tcp\n stick-table type ip size 9\n stick on src\n server a {a}\n server b {b}",
            &["GET /x", "~GET /x", "~GET /x"],
        ),
        same("mode tcp\n use-server b if { src 127.0.0.0/8 }\n server a {a}\n server b {b}", &["GET /x", "~GET /x"]),
        Case {
            allowed: &[(Order, "the order among servers whose turn it is equally is nobody's")],
            ..same(
                "balance leastconn\n stick-table type ip size 9\n stick on src\n server a {a}\n server b {b}",
                &["GET /x", "GET /x", "~GET /x"],
            )
        },
    ]);
}

#[test]
fn which_statuses_count() {
    // HAProxy 2.6 does not know 'http-err-codes': the usual ones are compared.
    compare(&[tracked(
        "http_err_cnt,http_fail_cnt",
        "%[sc0_http_err_cnt] %[sc0_http_fail_cnt]",
        &["GET /404", "~GET /500", "~GET /304", "~GET /x"],
    )]);
}
