//! Lines of logs, and values of expressions on a stream.

use crate::log;
use crate::stream::Stream;
use crate::trial::{Trial, front, load};
use std::sync::Arc;
use std::time::Duration;
use terse_compress::{Coding, Level, Reason, Recall};
use terse_message::{Abort, Cause, Phase, Who};

const GET: &str = "GET /a?b=c HTTP/1.1\nHost: h\nCookie: SRV=s1; k=v\nX-Foo: one\nX-Foo: two|three";
const OK: &str = "HTTP/1.1 200 OK\nContent-Length: 3\nSet-Cookie: SRV=s2; path=/\nX-Bar: bar";

/// The text of a format for a stream that was served by the first server.
fn served(lines: &str, format: &str, change: impl FnOnce(&mut Stream)) -> String {
    let trial = Trial::front(&format!("log 127.0.0.1 local0\n log-format \"{}\"\n {lines}", format.replace('"', "\\\"")));
    let mut stream = trial.stream(GET);
    trial.respond(&mut stream, OK);
    stream.facts.status = 200;
    let figures = &stream.facts.figures;
    figures.bytes_in.set(90);
    figures.bytes_out.set(250);
    figures.bytes_from_server.set(240);
    let times = &mut stream.facts.times;
    times.start_unix_us = 1_233_922_454_655_000;
    let at = |ms| Some(times.start + Duration::from_millis(ms));
    (times.queued, times.connected, times.response, times.end) = (at(15), at(45), at(114), at(120));
    times.idle_ms = 3;
    change(&mut stream);
    trial.line(&stream)
}

#[test]
fn the_built_in_formats() {
    let captures = "capture request header X-Foo len 6\n capture response header X-Bar len 9\n capture cookie SRV= len 20";
    let mut line = served(captures, log::HTTP_FORMAT, |_| {});
    let date = line.drain(line.find('[').unwrap() + 1..line.find(']').unwrap()).collect::<String>();
    assert!(date.len() == 24 && date.ends_with(".655"), "{date}");
    assert_eq!(
        line,
        "192.0.2.7:1234 [] fe be/one 5/10/30/69/120 200 250 SRV=s1 SRV=s2 ---- 0/0/0/0/0 0/0 {two#7Cth} {bar} \"GET /a?b=c HTTP/1.1\""
    );
    let line = served("", log::HTTP_FORMAT, |_| {});
    assert!(line.ends_with(" 200 250 - - ---- 0/0/0/0/0 0/0 \"GET /a?b=c HTTP/1.1\""), "{line}");
    let line = served(captures, log::HTTP_CLF_FORMAT, |stream| stream.facts.cookie_captures.1 = None);
    assert!(
        line.starts_with("192.0.2.7 - - [06/Feb/2009:12:14:14 +0000] \"GET /a?b=c HTTP/1.1\" 200 250 \"\" \"\" 1234 "),
        "{line}"
    );
    assert!(
        line.ends_with(" \"fe\" \"be\" \"one\" 5 10 30 69 120 ---- 0 0 0 0 0 0 0 \"SRV=s1\" \"\" \"two#7Cth\" \"bar\""),
        "{line}"
    );
    let line = served("", log::HTTPS_FORMAT, |_| {});
    assert!(line.ends_with(" \"GET /a?b=c HTTP/1.1\" 0/-/-/-/0 -/-/-"), "{line}");
    let line = served("", log::TCP_FORMAT, |_| {});
    assert!(line.ends_with(" fe be/one 10/30/123 250 -- 0/0/0/0/0 0/0"), "{line}");
}

#[test]
fn what_formats_and_expressions_say() {
    for (format, expected) in [
        ("%f %ft %b %s %si:%sp %[fe_id] %[be_id] %[srv_id] %[so_name] %[so_id]", "fe fe be one 127.0.0.1:81 2 3 1 door 1"),
        ("%HM %HU %HP %HPO %HQ %HV", "GET /a?b=c /a /a ?b=c HTTP/1.1"),
        ("%ci %cp %fi %fp", "192.0.2.7 1234 192.0.2.1 80"),
        ("%Ti %TR %Tq %Tw %Tc %Tr %Td %Ta %Tu %Tt %Th", "3 5 8 10 30 69 6 120 120 123 0"),
        ("%[req.timer.idle] %[req.timer.hdr] %[req.timer.tq] %[req.timer.queue] %[bc.timer.connect]", "3 5 8 10 30"),
        ("%[res.timer.hdr] %[res.timer.data] %[txn.timer.total] %[fc.timer.total] %[fc.timer.handshake]", "69 6 120 123 0"),
        ("%B %U %[bytes_in] %[bytes_out] %[res.bytes_in] %[req.bytes_in]", "250 90 90 250 240 90"),
        ("%ST %[txn.status] %[server_status] %[status]", "200 200 200 200"),
        ("%ts %tsc %[txn.sess_term_state] %rc %[txn.conn_retries] %[txn.redispatched]", "-- ---- -- 0 0 0"),
        ("%sslc %sslv %bi %bp %CC %CS %hr %hs %hrl|%[capture.req.hdr(0)]", "- - - - - - |-"),
        ("%[capture.req.method] %[capture.req.uri] %[capture.req.ver] %[capture.res.ver]", "GET /a?b=c HTTP/1.1 HTTP/1.1"),
        ("%[srv_name] %[bc_dst]:%[bc_dst_port] %[bc_reused] %[bc_http_major] %[fc_http_major]", "one 127.0.0.1:81 0 1 1"),
        ("%[nbsrv] %[nbsrv(be)] %[srv_is_up(be/one)] %[srv_is_up(be/two)]", "2 2 1 1"),
        (
            "%[queue] %[avg_queue(be)] %[be_conn_free] %[connslots] %[srv_conn_free(be/two)] %[srv_conn_free(be/one)]",
            "0 0 -1 -1 4 -1",
        ),
        (
            "%[srv_conn(be/one)] %[srv_queue(be/one)] %[srv_weight(be/one)] %[srv_iweight(be/one)] %[srv_uweight(be/one)]",
            "0 0 5 5 5",
        ),
        ("%[act_conn] %[fe_conn] %[dst_conn] %[be_conn] %[fe_conn(fe)]", "0 0 0 0 0"),
        (
            "%[be_name] %[fe_name] %[fe_defbe] %[be_tunnel_timeout] %[be_connect_timeout] %[fe_client_timeout]",
            "be fe be 9000 1000 5000",
        ),
        (
            "%[be_server_timeout] %[be_queue_timeout] %[be_max_retries] %[be_tarpit_timeout] %[fe_tarpit_timeout]",
            "6000 1000 3 1000 1000",
        ),
        ("%[http_first_req] %[fc_rcvd_proxy] %[wait_end] %[stopping] %[thread]", "1 0 1 0 0"),
        ("%[res.comp] %[res.comp_algo] <%[res.comp_reason]> %[res.comp_in]", "0 - <-> 0"),
        ("%[last_rule_file]:%[last_rule_line]", "-:-"),
        ("%[ssl_fc] %[ssl_c_s_dn(cn)] %[fc_src]:%[fc_src_port] %[fc_dst]:%[fc_dst_port]", "0 - 192.0.2.7:1234 192.0.2.1:80"),
        ("%[bc_srv_queue] %[bc_be_queue]", "0 0"),
        ("%trg %[request_date] %[request_date(ms)]", "06/Feb/2009:12:14:14 +0000 1233922454 1233922454655"),
    ] {
        assert_eq!(served("", format, |_| {}), expected, "{format}");
    }
}

#[test]
fn what_went_otherwise() {
    for (format, expected, change) in [
        (
            "%tsc %ST %s %b",
            "PR-- 403 <NOSRV> fe",
            (|stream| {
                (stream.facts.server, stream.facts.backend, stream.facts.status) = (None, None, 403);
                stream.facts.abort = Some(Abort::new(Who::Proxy, Phase::Request, Cause::Denied));
            }) as fn(&mut Stream),
        ),
        ("%r|%HM|%HU|%{+Q}r|%[capture.req.uri]", "<BADREQ>|<BADREQ>|<BADREQ>|\"<BADREQ>\"|-", |stream| stream.request.clear()),
        ("%ST %[txn.status]", "-1 -1", |stream| (stream.facts.status, stream.has_response) = (0, false)),
        ("%rc %[txn.redispatched]", "+2 1", |stream| (stream.facts.retries, stream.facts.redispatched) = (2, true)),
        ("%sq/%bq", "3/7", |stream| stream.facts.queue_positions = (3, 7)),
        ("%[res.comp] %[res.comp_algo] <%[res.comp_reason]> %[res.comp_in]/%[res.comp_out]", "1 gzip <-> 90/30", |stream| {
            stream.facts.coding = Some(Coding::Gzip);
            stream.facts.figures.compressed.set((90, 30));
        }),
        ("%[res.comp_level] %[res.comp_memory]", "6 hit", |stream| {
            stream.facts.coding = Some(Coding::Gzip);
            stream.facts.figures.level.set(Level(6));
            stream.facts.figures.recall.set(Some(Recall::Hit));
        }),
        ("%[res.comp_level] %[res.comp_memory]", "- -", |_| {}),
        ("%[res.comp_reason]", "too-small", |stream| stream.facts.compression = Some(Reason::TooSmall)),
        ("%[last_rule_file]:%[last_rule_line] %[last_entity]", "f:3 f:3", |stream| {
            stream.facts.last_rule = Some((Arc::from("f"), 3));
        }),
        ("%bi:%bp", "10.0.0.1:99", |stream| stream.facts.server_local = "10.0.0.1:99".parse().ok()),
    ] {
        assert_eq!(served("", format, change), expected, "{format}");
    }
}

#[test]
fn the_first_line_is_the_clients() {
    let trial = Trial::front(
        "log 127.0.0.1 local0\n log-format \"%r %HM %HU %HQ %[capture.req.uri] %[path]\"\n \
         http-request set-method PUT\n http-request set-uri /x?y\n http-request set-path /z",
    );
    let mut stream = trial.stream("GET http://o/a?b HTTP/1.0\nHost: o");
    trial.judge_request(&mut stream);
    assert_eq!(trial.line(&stream), "GET http://o/a?b HTTP/1.0 GET http://o/a?b ?b /a?b /z");
}

#[test]
fn identifiers_stay_and_differ() {
    let trial =
        Trial::front("log 127.0.0.1 local0\n unique-id-format \"%{+X}o %rt-%[uuid()]%ID\"\n log-format \"%ID %[unique-id]\"");
    let (one, two) = (trial.stream(GET), trial.stream(GET));
    let (first, second) = (trial.line(&one), trial.line(&two));
    assert!(first.starts_with("0000-") && second.starts_with("0001-"), "{first} {second}");
    assert_eq!(first, trial.line(&one));
    let (alias, fetch) = first.split_once(' ').unwrap();
    assert_eq!(alias, fetch);
    assert_eq!(Trial::front("log 127.0.0.1 local0\n log-format \"%ID\"").line(&one), first.split(' ').next().unwrap());
}

#[test]
fn captures_of_rules_fill_their_slots() {
    let trial = Trial::front(
        "log 127.0.0.1 local0\n log-format \"%hr %hs %[capture.req.hdr(1)]\"\n capture request header X-Foo len 3\n \
         http-request capture path len 10\n declare capture response len 2\n http-response capture str(long) id 0",
    );
    let mut stream = trial.stream(GET);
    trial.judge_request(&mut stream);
    trial.respond(&mut stream, OK);
    trial.judge_response(&mut stream);
    assert_eq!(trial.line(&stream), "{two|/a} {lo} /a");
}

#[test]
fn the_rule_that_waits_is_named() {
    let trial = Trial::front("log 127.0.0.1 local0\n log-format \"%[waiting_entity]\"\n http-request wait-for-body time 1s");
    let mut stream = trial.stream(GET);
    assert!(matches!(trial.judge_request(&mut stream), crate::rules::Flow::Wait(_)));
    let named = trial.line(&stream);
    let (_, line) = named.rsplit_once(':').unwrap();
    assert!(line.parse::<u32>().is_ok_and(|line| line > 1), "{named}");
    let rules = &trial.session.frontend().request_rules;
    crate::rules::run_from(rules, &mut crate::rules::Cursor::behind(rules), &mut stream);
    assert_eq!(trial.line(&stream), "-", "it has not waited for ever");
}

#[test]
fn what_is_not_built_is_said() {
    for (format, fault) in [
        ("%[internal.htx.data]", "not as blocks"),
        ("%[sc0_http_req_rate(t)]", "unable to find table 't'"),
        ("%[accept_date(h)]", "unknown unit 'h'"),
        ("%[capture.req.hdr]", "expected type 'integer'"),
    ] {
        let (_, said) = load(&front(&format!("log 127.0.0.1 local0\n log-format \"{format}\"")));
        assert!(said.len() == 1 && said[0].contains("! ") && said[0].contains(fault), "{format}: {said:?}");
    }
}

#[test]
fn no_name_stands_twice() {
    let mut seen = std::collections::HashSet::new();
    for fetch in super::FETCHES.iter().copied().flatten() {
        for name in fetch.also.iter().chain([&fetch.name]) {
            assert!(seen.insert(*name), "{name}");
        }
        assert!(fetch.summary.ends_with('.'), "{}", fetch.name);
    }
    seen.clear();
    assert!(super::ALIASES.iter().copied().flatten().all(|alias| seen.insert(alias.name) && alias.summary.ends_with('.')));
}
