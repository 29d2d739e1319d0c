//! Counters, as other programs read them: the service for Prometheus, and the file by which counters outlive a process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use support::client::Client;
use support::gzip::gunzip;
use support::proxy::{DEFAULTS, sections};
use support::server::{Request, Server};
use support::{Terse, until};

/// Finds faults in a text of metrics: samples that are apart from their metric's head, or twice.
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
    // The same connection goes on, and the scope is chosen by the target.
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

/// Savings of compression are the same in each of their forms, and agree with the bytes that clients got.
#[test]
fn savings_agree() {
    let page = "a page of words ".repeat(400);
    let answer = move |request: &Request| {
        let kind = if request.target == "/other" { "application/octet-stream" } else { "text/html" };
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{page}", page.len())
    };
    let server = Server::answering(answer);
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n compression on\n \
         compression level gzip 1\n server s {}\nlisten metrics\n bind fd@${{metrics}}\n http-request use-service prometheus-exporter\n\
         listen page\n bind fd@${{page}}\n stats enable\n stats uri /\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("metrics").listen("page").listen("cli").start();
    let mut client = terse.client();
    let mut coded_bytes = 0;
    for _ in 0..3 {
        let coded = client.get("/", &[("Accept-Encoding", "gzip")]);
        assert_eq!(coded.field("content-encoding"), Some("gzip"));
        coded_bytes += coded.body.len();
    }
    for path in ["/", "/other", "/other"] {
        let fields: &[_] = if path == "/other" { &[("Accept-Encoding", "br")] } else { &[] };
        assert_eq!(client.get(path, fields).body.len(), 6400);
    }
    let ask = |path: &str| Client::connect(terse.address("page")).get(path, &[]).text();
    // The second answer of a type that is not listed is its sample. Its time in a coder counts, so it comes first.
    let types = until("a sample", || {
        let types: serde_json::Value = serde_json::from_str(&ask("/;api=types")).unwrap();
        types["types"][0]["sample_permille"].is_number().then_some(types)
    });
    // An answer is counted when it has been sent, so its client may be quicker.
    let json = until("all answers to be counted", || {
        let json = terse.told("show compression json");
        json.contains("\"name\":\"type-not-listed\",\"group\":\"configuration\",\"answers\":2,").then_some(json)
    });
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["v"], 1);
    let gzip = json["codings"].as_array().unwrap().iter().find(|coding| coding["name"] == "gzip").unwrap();
    assert_eq!((&gzip["answers"], &gzip["in"], &gzip["out"]), (&3.into(), &19_200.into(), &coded_bytes.into()));
    assert_eq!((&json["compression"]["in"], &json["compression"]["out"]), (&gzip["in"], &gzip["out"]));
    assert!(gzip["coder_us"].as_u64().unwrap() > 0 && json["codings"].as_array().unwrap().len() == 3, "{json}");
    let reasons = json["reasons"].as_array().unwrap();
    assert_eq!(
        reasons.iter().map(|reason| reason["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["type-not-listed", "no-accept-encoding"]
    );
    let passed = reasons.iter().map(|reason| reason["bytes"].as_u64().unwrap()).sum::<u64>();
    assert!((19_200..20_000).contains(&passed), "bodies and heads: {json}");
    let (sent, before) = (json["sent"]["bytes"].as_u64().unwrap(), json["sent"]["before"].as_u64().unwrap());
    assert_eq!(before - sent, 19_200 - coded_bytes as u64);
    assert_eq!((json["memory"][0]["hits"].as_u64(), json["memory"][0]["misses"].as_u64()), (Some(1), Some(2)));
    let of_type = &types["types"][0];
    assert_eq!((&of_type["type"], &of_type["reason"]), (&"application/octet-stream".into(), &"type-not-listed".into()));
    assert!(of_type["sample_permille"].as_u64().unwrap() < 100 && types["types"].as_array().unwrap().len() == 1, "{types}");
    let summary: serde_json::Value = serde_json::from_str(&ask("/;api=summary")).unwrap();
    for name in ["sent", "compression", "codings", "reasons", "memory"] {
        assert_eq!(summary[name], json[name], "{name}");
    }
    let advice = &summary["advice"][0];
    assert_eq!((&advice["type"], &advice["bytes"]), (&of_type["type"], &reasons[0]["bytes"]));
    assert_eq!(
        (&advice["sample_permille"], &advice["line"]),
        (&of_type["sample_permille"], &"compression type application/octet-stream".into())
    );
    let csv = ask("/;csv");
    let heads: Vec<&str> = csv.lines().next().unwrap().trim_start_matches("# ").split(',').collect();
    let cell = |kind: &str, column: &str| {
        let line = csv.lines().find(|line| line.starts_with(&format!("web,{kind},"))).unwrap();
        let at = heads.iter().position(|head| *head == column).unwrap();
        line.split(',').nth(at).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!((cell("FRONTEND", "comp_in"), cell("BACKEND", "comp_in")), (19_200, 19_200));
    assert_eq!((cell("FRONTEND", "comp_out"), cell("BACKEND", "comp_out")), (coded_bytes as u64, coded_bytes as u64));
    assert_eq!(cell("FRONTEND", "bout"), sent);
    let page = ask("/");
    let reasons_bytes = reasons.iter().map(|reason| reason["bytes"].as_u64().unwrap());
    for bytes in [sent, before, 19_200, coded_bytes as u64].into_iter().chain(reasons_bytes) {
        let digits = bytes.to_string();
        let (thousands, rest) = digits.split_at(digits.len().saturating_sub(3));
        let grouped = if thousands.is_empty() { rest.to_owned() } else { format!("{thousands}\u{2009}{rest}") };
        assert!(page.contains(&format!("\"{grouped} bytes\"")), "{grouped} is not on\n{page}");
    }
    let samples = Client::connect(terse.address("metrics")).get("/?scope=frontend", &[]).text();
    assert!(samples.contains(&format!("haproxy_frontend_bytes_out_total{{proxy=\"web\"}} {sent}\n")), "{samples}");
    let metrics = Client::connect(terse.address("metrics")).get("/?scope=terse", &[]).text();
    check_metrics(&metrics);
    for sample in [
        "terse_compression_answers_total{proxy=\"web\",side=\"frontend\",coding=\"gzip\"} 3\n",
        "terse_compression_answers_total{proxy=\"web\",side=\"frontend\",coding=\"br\"} 0\n",
        "terse_compression_input_bytes_total{proxy=\"web\",side=\"backend\",coding=\"gzip\"} 19200\n",
        &format!("terse_compression_output_bytes_total{{proxy=\"web\",side=\"frontend\",coding=\"gzip\"}} {coded_bytes}\n"),
        "terse_uncompressed_answers_total{proxy=\"web\",side=\"frontend\",reason=\"type-not-listed\"} 2\n",
        &format!("terse_uncompressed_bytes_total{{proxy=\"web\",reason=\"type-not-listed\"}} {}\n", reasons[0]["bytes"]),
        "terse_memory_lookups_total{memory=\"common\",result=\"hit\"} 1\n",
        "terse_memory_bodies{memory=\"common\"} 1\n",
        "terse_compression_seconds_total{coding=\"gzip\",where=\"worker\"} 0.0",
        "terse_build_info{version=\"0.1.0\",language=\"3.5-dev5\"} 1\n",
    ] {
        assert!(metrics.contains(sample), "{sample} is not in\n{metrics}");
    }
    assert!(!metrics.contains("haproxy_"), "{metrics}");
    let lines = terse.told("show compression");
    let line = lines.lines().find(|line| line.starts_with("coding gzip ")).unwrap();
    assert!(line.starts_with(&format!("coding gzip 3 19200 {coded_bytes} ")), "{line}");
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

/// A process that goes on from another one's counters.
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
