//! Rules that track and count, and expressions that read, in streams without sockets.

use crate::phase::finish;
use crate::stick::{self, Persistence};
use crate::stream::Stream;
use crate::track::{ERRORS, FAILURES, REQUESTS};
use crate::trial::{Trial, front, load};
use terse_balance::{Affinity, CookieFound};
use terse_message::{Abort, Cause, Phase, Who};

const GET: &str = "GET /a HTTP/1.1\nHost: h\nX-Key: one";
const STORE: &str = "stick-table type ip size 10 expire 1h store gpc0,gpc0_rate(1h),gpt0,conn_cur,conn_cnt,conn_rate(1h),\
    sess_cnt,http_req_cnt,http_req_rate(1h),http_err_cnt,http_fail_cnt,bytes_in_cnt,bytes_out_cnt";

/// The value of an expression for a stream, as text; no value as a dash.
fn read(lines: &str, format: &str, streams: &[fn(&mut Stream)]) -> String {
    let trial = Trial::front(&format!("{STORE}\n log 127.0.0.1 local0\n log-format \"{format}\"\n {lines}\n"));
    let (last, before) = streams.split_last().map_or((None, &[][..]), |(last, before)| (Some(last), before));
    for change in before {
        let mut stream = trial.stream(GET);
        trial.judge_request(&mut stream);
        change(&mut stream);
        stream.facts.count_tracked_bytes();
        stream.facts.end_tracks();
    }
    let mut stream = trial.stream(GET);
    trial.judge_request(&mut stream);
    if let Some(change) = last {
        change(&mut stream);
    }
    trial.line(&stream)
}

#[test]
fn a_tracked_request_is_counted() {
    let track = "http-request track-sc0 src";
    for (format, told) in [
        ("%[sc0_conn_cnt] %[sc0_conn_cur] %[sc_conn_rate(0)]", "2 1 2"),
        ("%[sc0_http_req_cnt] %[sc0_http_req_rate] %[sc_http_req_cnt(0)]", "2 2 2"),
        ("%[sc0_key] %[sc0_tracked] %[sc0_trackers] %[sc1_tracked]", "192.0.2.7 1 1 0"),
        ("%[src_conn_cnt] %[src_conn_cnt(fe)] %[src,table_conn_cnt]", "2 2 2"),
        ("%[str(192.0.2.7),in_table(fe)] %[str(192.0.2.8),in_table(fe)] %[str(x),in_table(fe)]", "1 0 0"),
        ("%[str(192.0.2.8),table_conn_cnt(fe)] %[str(192.0.2.7),table_trackers(fe)]", "0 1"),
        ("%[table_cnt] %[table_avl(fe)]", "1 9"),
        ("%[sc1_conn_cnt] %[sc0_sess_cnt] %[sc0_kbytes_in] %[sc0_kbytes_out]", "- 0 1 2"),
        ("%[str(192.0.2.8),table_expire(fe,7)] %[str(192.0.2.8),table_idle(fe)]", "7 -"),
    ] {
        let streams: [fn(&mut Stream); 2] = [
            |stream| {
                stream.facts.figures.bytes_in.set(1500);
                stream.facts.figures.bytes_out.set(2048);
            },
            |_| (),
        ];
        assert_eq!(read(track, format, &streams), told, "{format}");
    }
}

#[test]
fn errors_and_failures_are_counted() {
    let format = "%[sc0_http_err_cnt] %[sc0_http_fail_cnt] %[sc0_http_req_cnt]";
    let told = |change: fn(&mut Stream)| read("http-request track-sc0 src", format, &[change]);
    assert_eq!(told(|stream| stream.facts.count_status(404)), "1 0 1");
    assert_eq!(told(|stream| stream.facts.count_status(503)), "0 1 1");
    assert_eq!(told(|stream| stream.facts.count_status(501)), "0 0 1");
    assert_eq!(told(|stream| finish::blame(stream, Abort::new(Who::Server, Phase::Headers, Cause::Closed))), "0 1 1");
    assert_eq!(told(|stream| finish::blame(stream, Abort::new(Who::Client, Phase::Data, Cause::Closed))), "0 0 1");
    assert_eq!(told(|stream| [REQUESTS, ERRORS, FAILURES].iter().for_each(|what| stream.facts.count_tracked(*what, 2))), "2 2 3");
}

#[test]
fn counters_and_tags_are_an_administrators() {
    let rules = "http-request track-sc0 src\n http-request sc-inc-gpc0(0)\n http-request sc-set-gpt0(0) int(7),add(1)\n \
        http-request sc-inc-gpc0(1)\n";
    for (format, told) in [
        ("%[sc0_get_gpc0] %[sc0_gpc0_rate] %[sc0_get_gpt0]", "2 2 8"),
        ("%[sc0_inc_gpc0] %[src_inc_gpc0(fe)] %[src,table_inc_gpc0(fe)] %[sc0_clr_gpc0] %[sc0_get_gpc0]", "3 4 5 5 0"),
        ("%[sc_get_gpc0(1)] %[sc0_get_gpc1] %[sc_get_gpc(0,0)] %[sc0_inc_gpc1]", "- - - 0"),
        ("%[str(192.0.2.9),table_inc_gpc0] %[table_cnt] %[src_clr_gpc0] %[src_updt_conn_cnt]", "1 2 2 3"),
    ] {
        assert_eq!(read(rules, format, &[|_| (), |_| ()]), told, "{format}");
    }
}

#[test]
fn counters_by_number_go_by_their_names_too() {
    let trial = Trial::front(
        "stick-table type string size 9 store gpc(3),gpc_rate(3,1h),gpt(2)\n log 127.0.0.1 local0\n \
         http-request track-sc1 hdr(x-key)\n http-request sc-inc-gpc(2,1)\n http-request sc-inc-gpc1(1)\n \
         http-request sc-add-gpc(0,1) 5\n http-request sc-set-gpt(1,1) 9\n http-request sc-set-gpt0(1) 4\n \
         log-format \"%[sc1_get_gpc0] %[sc_get_gpc(1,1)] %[sc_get_gpc(2,1)] %[sc_get_gpc(3,1)] %[sc1_gpc1_rate] %[sc_get_gpt(1,1)] \
         %[sc1_get_gpt0] %[str(one),table_gpc(2,fe)] %[sc1_key]\"",
    );
    let mut stream = trial.stream(GET);
    trial.judge_request(&mut stream);
    assert_eq!(trial.line(&stream), "5 1 1 - 1 9 4 1 one");
}

#[test]
fn a_slot_is_filled_once_and_the_sessions_comes_first() {
    let trial = Trial::front(
        "stick-table type string size 9 store conn_cnt\n log 127.0.0.1 local0\n \
         http-request track-sc0 hdr(x-key)\n http-request track-sc0 path\n http-request track-sc1 path\n \
         log-format \"%[sc0_key] %[sc1_key] %[table_cnt]\"",
    );
    let mut stream = trial.stream(GET);
    trial.judge_request(&mut stream);
    assert_eq!(trial.line(&stream), "one /a 2");
    stream.facts.end_tracks();
    let table = trial.session.worker.plan.tables[0].clone();
    trial.session.track(0, &table, b"session");
    let mut stream = trial.stream(GET);
    trial.judge_request(&mut stream);
    assert_eq!(trial.line(&stream), "session /a 3");
}

#[test]
fn what_cannot_be_tracked_is_not() {
    let trial = Trial::front(
        "stick-table type ip size 9 store conn_cnt\n log 127.0.0.1 local0\n http-request track-sc0 hdr(x-key)\n \
         http-request track-sc0 hdr(none)\n log-format \"%[sc0_tracked] %[table_cnt]\"",
    );
    let mut stream = trial.stream(GET);
    trial.judge_request(&mut stream);
    assert_eq!(trial.line(&stream), "0 0");
}

#[test]
fn names_and_types_are_checked_once_all_is_read() {
    let later =
        "backend addresses\n stick-table type ip size 1\nbackend texts\n stick-table type binary size 1 write-to addresses\n";
    for (line, said) in [
        ("http-request track-sc0 src table adresses", "unable to find table 'adresses'"),
        ("http-request track-sc0 bool(1) table addresses", "incompatible with the 'track-sc0' rule"),
        ("http-request deny if { src_conn_rate(none) gt 1 }", "unable to find table 'none'"),
        ("http-request set-header x %[table_cnt]", "unable to find table 'fe'"),
    ] {
        let (plan, problems) = load(&format!("{}{later}", front(line)));
        assert!(plan.is_none() && problems.iter().any(|problem| problem.contains(said)), "{line}: {problems:?}");
        assert!(problems.iter().any(|problem| problem.contains("write-to: the keys of")), "{problems:?}");
    }
    let (_, problems) = load(&format!(
        "{}backend addresses\n stick-table type ip size 1\n use-server x if TRUE\n server y 127.0.0.1:1\n",
        front("")
    ));
    assert!(problems.iter().any(|problem| problem.contains("unable to find server 'x'")), "{problems:?}");
}

#[test]
fn servers_are_learnt_and_found_again() {
    let text = format!(
        "{} stick-table type string size 9\n stick on hdr(x-key)\n stick store-response res.hdr(x-next)\n \
         use-server two if {{ path /two }}\n use-server %[path,field(2,/)] if {{ path_beg /o }}\n",
        front("")
    );
    let trial = Trial::new(&text);
    let backend = trial.session.worker.backend(0).unwrap();
    let sticking = backend.sticking.as_deref().unwrap();
    let chosen = |head: &str| {
        let mut stream = trial.stream(head);
        stream.facts.backend = Some(backend.clone());
        let server = stick::named(&stream, &backend, sticking, Persistence::Usual);
        let mut affinity = Affinity { server, ..Affinity::none(CookieFound::Off) };
        stick::choose(&mut stream, &backend, sticking, &mut affinity, Persistence::Usual);
        (stream, affinity.server)
    };
    let (mut first, server) = chosen(GET);
    assert_eq!(server, None);
    trial.respond(&mut first, "HTTP/1.1 200 OK\nX-Next: two");
    stick::learn(&mut first, &backend);
    assert_eq!(
        (chosen(GET).1, chosen("GET / HTTP/1.1\nHost: h\nX-Key: two").1, chosen("GET / HTTP/1.1\nHost: h\nX-Key: three").1),
        (Some(0), Some(0), None)
    );
    assert_eq!(
        (
            chosen("GET /two HTTP/1.1\nHost: h\nX-Key: one").1,
            chosen("GET /one HTTP/1.1\nHost: h").1,
            chosen("GET /other HTTP/1.1\nHost: h").1
        ),
        (Some(1), Some(0), None)
    );
    let table = &trial.session.worker.plan.tables[0];
    assert_eq!(table.used(1), 2);
}
