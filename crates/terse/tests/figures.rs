//! What is counted, as others read it: the service for Prometheus, and the file by which counters outlive a process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use support::gzip::gunzip;
use support::proxy::{DEFAULTS, sections};
use support::server::Server;
use support::{Terse, until};

/// What is wrong with a text of metrics: samples that stand apart from their metric's head, or twice.
fn check_metrics(text: &str) {
    let (mut metric, mut metrics, mut series) = (String::new(), HashSet::new(), HashSet::new());
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# HELP ") {
            metric = head.split(' ').next().unwrap().to_owned();
            assert!(metrics.insert(metric.clone()), "{line}: a second time");
        } else if let Some(head) = line.strip_prefix("# TYPE ") {
            assert!(head.starts_with(&format!("{metric} ")), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(name.split('{').next().unwrap(), metric, "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(series.insert(name.to_owned()), "{line}: a second time");
        }
    }
}

const EXPORTER: &str =
    "http-request use-service prometheus-exporter if { path /metrics }\n default_backend be\n description its \"text\"";

#[test]
fn prometheus_finds_what_it_knows() {
    let server = Server::body("four");
    let back = format!(
        "backend be\n stick-table type ip size 1k\n server s1 {}\n server s2 127.0.0.1:9 disabled maxqueue 7\n",
        server.address()
    );
    let terse = sections(EXPORTER, &back);
    let mut client = terse.client();
    assert_eq!(client.get("/", &[]).status, 200);
    let all = client.get("/metrics", &[]);
    assert_eq!((all.status, all.field("content-type")), (200, Some("text/plain; version=0.0.4")));
    let text = all.text();
    check_metrics(&text);
    for line in [
        "haproxy_process_build_info{version=\"",
        "haproxy_frontend_status{proxy=\"web\",state=\"UP\"} 1\n",
        "haproxy_frontend_http_requests_total{proxy=\"web\"} 1\n",
        "haproxy_backend_http_responses_total{proxy=\"be\",code=\"2xx\"} 1\n",
        "haproxy_backend_agg_server_status{proxy=\"be\",state=\"MAINT\"} 1\n",
        "haproxy_server_sessions_total{proxy=\"be\",server=\"s1\"} 1\n",
        "haproxy_process_current_tasks ",
        "haproxy_process_current_run_queue 0\n",
        "haproxy_process_current_zlib_memory 0\n",
        "haproxy_backend_limit_sessions{proxy=\"be\"} ",
        "haproxy_frontend_internal_errors_total{proxy=\"web\"} 0\n",
        "haproxy_server_idle_connections_current{proxy=\"be\",server=\"s1\"} 1\n",
        "haproxy_server_used_connections_current{proxy=\"be\",server=\"s1\"} 0\n",
        "haproxy_server_status{proxy=\"be\",server=\"s2\",state=\"MAINT\"} 1\n",
        "haproxy_server_queue_limit{proxy=\"be\",server=\"s1\"} NaN\n",
        "haproxy_server_queue_limit{proxy=\"be\",server=\"s2\"} 7\n",
        "# TYPE haproxy_server_bytes_in_total counter\n",
        "haproxy_sticktable_size{name=\"be\",type=\"ip\"} 1024\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // The same connection goes on, and what is asked for is chosen by its target.
    let some = client.get("/metrics?scope=server&no-maint", &[]).text();
    check_metrics(&some);
    assert!(some.contains("server=\"s1\"") && !some.contains("server=\"s2\"") && !some.contains("_backend_"), "{some}");
    let one = client.get("/metrics?metrics=haproxy_frontend_sessions_total&desc-labels", &[]).text();
    assert!(one.ends_with("{proxy=\"web\",desc=\"its text\"} 1\n") && one.lines().count() == 3, "{one}");
    assert_eq!(client.get("/metrics?scope=", &[]).text(), "");
    let wrong = client.get("/metrics?scope=none", &[]);
    assert_eq!((wrong.status, wrong.text().as_str()), (400, "scope 'none' is not known\n"));
    client.send("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("HEAD").status, 200);
    assert_eq!(client.get("/", &[]).text(), "four");
    terse.end();
}

/// The last malformed head of each direction, where the parser gave it up.
#[test]
fn malformed_messages_are_shown() {
    let server = Server::start(|connection| {
        if connection.request().is_some() {
            connection.send("HTTP/1.1 2OO OK\r\n\r\n");
        }
    });
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n server s1 {}\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("cli").start();
    let mut client = terse.client();
    client.send("GET /caf\u{e9} HTTP/1.1\r\nHost: x\r\n\r\n");
    client.rest();
    assert_eq!(terse.client().get("/", &[]).status, 502);
    let all = terse.command("show errors");
    for part in [
        " : 2\n \n[",
        "] frontend web (#2): invalid request\n  backend <NONE> (#-1), server <NONE> (#-1), event #0, src 127.0.0.1:",
        ", error at position 8: target\n  \n  00000  GET /caf\\xC3\\xA9 HTTP/1.1\\r\\n\n  00021  Host: x\\r\\n\n  00030  \\r\\n\n",
        "] backend web (#2): invalid response\n  frontend web (#2), server s1 (#1), event #1, src 127.0.0.1:",
        "  00000  HTTP/1.1 2OO OK\\r\\n\n",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let request = terse.command("show errors web request");
    assert!(request.contains("invalid request") && !request.contains("invalid response"), "{request}");
    terse.end();
}

/// Thousands of samples come in many pieces, and compressed as any answer is.
#[test]
fn prometheus_asks_of_many_servers() {
    let text = format!(
        "{DEFAULTS}\nlisten web\n bind fd@${{web}}\n http-request use-service prometheus-exporter\n compression algo gzip\n \
         compression type text/plain\n server-template s 400 127.0.0.1:9\n"
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = terse.client();
    let plain = client.get("/?scope=server", &[]).text();
    check_metrics(&plain);
    let of_servers = |text: &str| text.matches("haproxy_server_weight{").count();
    assert_eq!(of_servers(&plain), 400);
    let coded = client.get("/?scope=server", &[("Accept-Encoding", "gzip")]);
    assert_eq!(coded.field("content-encoding"), Some("gzip"));
    assert!(coded.body.len() * 4 < plain.len(), "{} of {}", coded.body.len(), plain.len());
    assert_eq!(of_servers(&String::from_utf8(gunzip(&coded.body)).unwrap()), 400);
    terse.end();
}

/// A process that goes on from where another one's counters stood.
#[test]
fn counters_outlive_a_process() {
    let server = Server::body("four");
    let text = |loads: &str| {
        format!(
            "global\n nbthread 1\n stats socket \"${{dir}}/s.sock\"\n {loads}\n{DEFAULTS}\nlisten web\n guid web\n bind fd@${{web}} guid-prefix l\n \
             option socket-stats\n http-request use-service prometheus-exporter if {{ path /metrics }}\n server s {} guid web-s\n",
            server.address()
        )
    };
    let first = Terse::with(&text("")).listen("web").start();
    let mut client = first.client();
    (0..3).for_each(|_| assert_eq!(client.get("/", &[]).text(), "four"));
    // An answer is counted when it has been sent, so its client may be quicker.
    let file = until("three answers counted everywhere", || {
        let mut socket = UnixStream::connect(first.path("s.sock")).unwrap();
        socket.write_all(b"dump stats-file\n").unwrap();
        let mut file = String::new();
        socket.read_to_string(&mut file).unwrap();
        let answers = |(head, line): (&str, &str)| {
            let column = head.split(',').position(|name| name == "hrsp_2xx").unwrap();
            line.split(',').nth(column).unwrap().to_owned()
        };
        let lines: Vec<_> = file.lines().collect();
        let heads = lines.iter().scan("", |head, line| {
            if line.starts_with('#') {
                *head = line;
            }
            Some((*head, *line))
        });
        let counted = heads.filter(|(_, line)| line.contains(',') && !line.starts_with('#')).map(answers).collect::<Vec<_>>();
        (counted == ["3"; 4]).then_some(file)
    });
    first.end();
    let second = Terse::with(&text("stats-file \"${dir}/counters\"")).file("counters", &file).listen("web").start();
    let mut client = second.client();
    assert_eq!(client.get("/", &[]).text(), "four");
    let figures = client.get("/metrics", &[]).text();
    for line in [
        "haproxy_frontend_http_requests_total{proxy=\"web\"} 4\n",
        "haproxy_server_sessions_total{proxy=\"web\",server=\"s\"} 4\n",
        "haproxy_server_http_responses_total{proxy=\"web\",server=\"s\",code=\"2xx\"} 4\n",
        "haproxy_listener_sessions_total{proxy=\"web\",listener=\"sock-1\"} 2\n",
    ] {
        assert!(figures.contains(line), "{line}: {file}\n{figures}");
    }
    second.end();
    // A file that is not there is no reason not to serve.
    let third = Terse::with(&text("stats-file \"${dir}/none\"")).listen("web").arg(&["-c"]).run().expect(0);
    assert!(third.stderr.contains("counters begin at 0"), "{}", third.stderr);
}

#[test]
fn names_of_statistics_are_unique() {
    let text = format!(
        "{DEFAULTS}\nlisten web\n guid web\n bind 127.0.0.1:1 guid-prefix x\n server s 127.0.0.1:9 guid x-0\n server t 127.0.0.1:9 guid web\n \
         server u 127.0.0.1:9 guid a/b\n"
    );
    let said = Terse::with(&text).arg(&["-c"]).run().expect(1).stderr;
    for line in ["the guid 'x-0' is taken already", "the guid 'web' is taken already", "'a/b' cannot be a name of statistics"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
