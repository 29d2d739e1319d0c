//! Prometheus and the board for Grafana: the queries of `examples/grafana.json`, and rules in the manual, against real programs. What is
//! not there is left out, which is said.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use support::client::Client;
use support::program::find;
use support::proxy::DEFAULTS;
use support::server::{Request, Server};
use support::{Terse, free_address, until};

/// Prometheus, which ends with the test.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every query of the board gives something while traffic flows, and every name in it exists.
#[test]
fn the_board_shows_what_prometheus_knows() {
    let Some(prometheus) = find("prometheus") else { return eprintln!("prometheus was left out: it is not there.") };
    let board: Value = serde_json::from_str(include_str!("../../../examples/grafana.json")).unwrap();
    let page = "a page of words ".repeat(400);
    let server = Server::answering(move |_: &Request| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}", page.len())
    });
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n compression on\n default_backend app\n\
         backend app\n server s {} check inter 100ms\n server gone 127.0.0.1:1 check inter 100ms\n\
         frontend metrics\n bind fd@${{metrics}}\n http-request use-service prometheus-exporter\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("metrics").start();
    let (listen, config) = (free_address(), terse.path("prometheus.yml"));
    let scrape = format!(
        "global:\n  scrape_interval: 100ms\n  scrape_timeout: 100ms\nscrape_configs:\n- job_name: terse\n  static_configs:\n  - targets: ['{}']\n",
        terse.address("metrics")
    );
    std::fs::write(&config, scrape).unwrap();
    let mut command = Command::new(prometheus);
    command.arg(format!("--config.file={}", config.display())).arg(format!("--web.listen-address={listen}"));
    command.arg(format!("--storage.tsdb.path={}", terse.path("tsdb").display())).stdout(Stdio::null()).stderr(Stdio::null());
    let _prometheus = Prometheus(command.spawn().unwrap());
    until("Prometheus", || {
        std::net::TcpStream::connect(listen).ok()?;
        (Client::connect(listen).get("/-/ready", &[]).status == 200).then_some(())
    });
    let query = |text: &str| -> Value {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        serde_json::from_str(&Client::connect(listen).get(&format!("/api/v1/query?query={encoded}"), &[]).text()).unwrap()
    };
    let mut client = terse.client();
    let mut traffic = || {
        for coding in ["gzip", "br", "zstd", "identity"] {
            assert_eq!(client.get("/", &[("Accept-Encoding", coding)]).status, 200);
        }
    };
    let mut queries = 0;
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let said = target["expr"].as_str().unwrap();
            let text = said.replace("$__rate_interval", "2s").replace("$proxy", ".*");
            until(said, || {
                traffic();
                let answer = query(&text);
                assert_eq!(answer["status"], "success", "{said}: {answer}");
                (!answer["data"]["result"].as_array().unwrap().is_empty()).then_some(())
            });
            queries += 1;
        }
    }
    assert!(queries > 20, "{queries}");
    let saved = query(
        "sum(terse_compression_output_bytes_total{side=\"frontend\"}) < sum(terse_compression_input_bytes_total{side=\"frontend\"})",
    );
    assert_eq!(saved["data"]["result"].as_array().unwrap().len(), 1, "{saved}");
    terse.end();
}

/// The rules in the manual are Prometheus's, and the metrics are as its own tool wants them.
#[test]
fn promtool_takes_rules_and_metrics() {
    let Some(promtool) = find("promtool") else { return eprintln!("promtool was left out: it is not there.") };
    let manual = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring.md")).unwrap();
    let blocks = manual.split("\n```yaml\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let rules: Vec<&str> = blocks.filter(|block| block.starts_with("groups:")).collect();
    assert_eq!(rules.len(), 1, "a block of rules in docs/monitoring.md");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yml");
    std::fs::write(&path, rules[0]).unwrap();
    let checked = Command::new(&promtool).args(["check", "rules"]).arg(&path).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let text =
        format!("{DEFAULTS}\nlisten web\n bind fd@${{web}}\n compression on\n http-request use-service prometheus-exporter\n");
    let terse = Terse::with(&text).listen("web").start();
    let metrics = terse.client().get("/?scope=terse", &[]).text();
    terse.end();
    let mut check = Command::new(promtool).args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    check.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let checked = check.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
