//! Programs that watch HAProxy, on terse as they are: Prometheus with the queries of `examples/grafana.json` and the rules of the
//! manual, haproxy_exporter and hatop. Programs that are not installed are left out, with a message.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use support::client::Client;
use support::program::find;
use support::proxy::DEFAULTS;
use support::server::{Request, Server};
use support::{PATIENCE, Terse, free_address, until};

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every query of the board gives something while traffic flows, and every name in it exists.
#[test]
fn the_board_shows_what_prometheus_knows() {
    let Some(prometheus) = find("prometheus") else { return eprintln!("prometheus was left out: it is not there.") };
    let board: Value = serde_json::from_str(include_str!("../../../../examples/grafana.json")).unwrap();
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
    let _prometheus = Running(command.spawn().unwrap());
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

/// haproxy_exporter reads the CSV of the page, and of the stats socket.
#[test]
fn the_exporter_reads_the_csv() {
    let names = ["prometheus-haproxy-exporter", "haproxy_exporter"];
    let Some(exporter) = names.into_iter().find_map(find) else {
        return eprintln!("haproxy_exporter was left out: it is not there.");
    };
    let server = Server::body("a page");
    let text = format!(
        "global\n stats socket \"${{dir}}/s.sock\" level admin\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n server s {}\n\
         listen page\n bind fd@${{page}}\n stats enable\n stats uri /\n",
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("page").start();
    let answer = terse.client().get("/", &[]);
    assert_eq!(answer.status, 200);
    for source in [format!("http://{}/;csv", terse.address("page")), format!("unix:{}", terse.path("s.sock").display())] {
        let listen = free_address();
        let mut command = Command::new(&exporter);
        command.arg(format!("--haproxy.scrape-uri={source}")).arg(format!("--web.listen-address={listen}"));
        let _exporter = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        until("the exporter", || std::net::TcpStream::connect(listen).ok());
        let metrics = until("the answer to be counted", || {
            let metrics = Client::connect(listen).get("/metrics", &[]).text();
            metrics
                .contains("haproxy_server_http_responses_total{backend=\"web\",code=\"2xx\",server=\"s\"} 1\n")
                .then_some(metrics)
        });
        for line in [
            "haproxy_up 1\n",
            "haproxy_exporter_csv_parse_failures_total 0\n",
            "haproxy_frontend_http_requests_total{frontend=\"web\"} 1\n",
        ] {
            assert!(metrics.contains(line), "{source}: {line} is not in\n{metrics}");
        }
    }
    terse.end();
}

/// A program in a terminal of 40 rows and 140 columns.
struct Screen {
    running: Running,
    pieces: Receiver<Vec<u8>>,
    terminal: vt100::Parser,
}

impl Screen {
    fn start(script: &Path, shell: &str) -> Screen {
        let mut command = Command::new(script);
        command.args(["-qec", &format!("stty rows 40 cols 140; exec {shell}"), "/dev/null"]).env("TERM", "xterm");
        let mut running = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let mut out = running.0.stdout.take().unwrap();
        let (give, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n) = out.read(&mut piece)
                && n > 0
                && give.send(piece[..n].to_vec()).is_ok()
            {}
        });
        Screen { running, pieces, terminal: vt100::Parser::new(40, 140, 0) }
    }

    /// Waits until these words are on the screen.
    fn shows(&mut self, words: &[&str]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.terminal.screen().contents();
            if words.iter().all(|word| shown.contains(word)) {
                return;
            }
            let piece = self.pieces.recv_timeout(until.saturating_duration_since(Instant::now()));
            self.terminal.process(&piece.unwrap_or_else(|_| panic!("{words:?} are not all in\n{shown}")));
        }
    }

    fn press(&mut self, keys: &str) {
        self.running.0.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    fn ends(mut self) {
        drop(self.running.0.stdin.take());
        let ended = until("the program's end", || self.running.0.try_wait().unwrap());
        assert!(ended.success());
    }
}

/// hatop draws its table from the stats socket.
#[test]
fn hatop_draws_its_table() {
    let (Some(hatop), Some(script)) = (find("hatop"), find("script")) else {
        return eprintln!("hatop was left out: it, or script, is not there.");
    };
    let text = format!(
        "global\n stats socket \"${{dir}}/s.sock\" level admin\n{DEFAULTS}\nlisten watched\n bind fd@${{web}}\n server one 127.0.0.1:1\n"
    );
    let terse = Terse::with(&text).listen("web").start();
    until("the stats socket", || std::os::unix::net::UnixStream::connect(terse.path("s.sock")).ok());
    let mut screen = Screen::start(&script, &format!("{} -s {}", hatop.display(), terse.path("s.sock").display()));
    screen.shows(&["HATop version", ">>> watched", "FRONTEND", "one", "BACKEND"]);
    screen.press("q");
    screen.ends();
    terse.end();
}

/// `terse top` draws the console's figures, and drains a server by keys.
#[test]
fn top_drains_a_server() {
    let Some(script) = find("script") else { return eprintln!("terse top was left out: script is not there.") };
    let server = Server::body("a page");
    let text = format!(
        "global\n console fd@${{console}} user admin:secret\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n server one {}\n server two {}\n",
        server.address(),
        server.address()
    );
    let terse = Terse::with(&text).listen("web").listen("console").start();
    assert_eq!(terse.client().get("/", &[]).status, 200);
    let address = terse.address("console");
    let once = |url: &str| Terse::bare().arg(&["top", "--once", url]).run();
    let said = once(&format!("http://admin:secret@{address}/")).expect(0).stdout;
    assert!(said.contains(" saved: ") && said.contains("web/one ") && !said.contains('\x1b'), "{said}");
    assert!(once(&format!("http://{address}/")).expect(1).stderr.contains("wants a user"));
    let mut screen = Screen::start(&script, &format!("{} top http://admin:secret@{address}/", env!("CARGO_BIN_EXE_terse")));
    screen.shows(&[concat!("terse ", env!("CARGO_PKG_VERSION")), "web/one", "web/two"]);
    screen.press("/two\r");
    screen.press("xd");
    screen.shows(&["drain 1 servers? y, or any other key: web/two"]);
    screen.press("y");
    screen.shows(&["1 servers were changed.", "DRAIN"]);
    screen.press("q");
    screen.ends();
    let said = once(&format!("http://admin:secret@{address}/")).expect(0).stdout;
    let state = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(state("web/two ").contains("DRAIN") && !state("web/one ").contains("DRAIN"), "{said}");
    terse.end();
}
