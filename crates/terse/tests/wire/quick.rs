//! `terse --to`: compression in front of a server without a file, and the console that comes with it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::net::{SocketAddr, TcpListener};
use support::client::Client;
use support::gzip::gunzip;
use support::program::{find, run};
use support::server::Server;
use support::{Terse, until};

/// A server of HTTP/1.0, as the simplest ones are.
fn simple(body: &'static str) -> Server {
    Server::start(move |connection| {
        if connection.request().is_some() {
            connection.send(format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"));
        }
        connection.finish();
    })
}

const PAGE: &str = "a line of a page that comes again and again\n\
                    a line of a page that comes again and again\n\
                    a line of a page that comes again and again\n\
                    a line of a page that comes again and again\n\
                    a line of a page that comes again and again\n\
                    a line of a page that comes again and again\n\
                    a line of a page that comes again and again\n";

#[test]
fn a_server_is_compressed_for_at_once() {
    let server = simple(PAGE);
    let words = ["--to", &server.address().to_string(), "--listen", "fd@${web}", "--console", "fd@${console}"];
    let terse = Terse::bare().arg(&words).listen("web").listen("console").start();
    let mut client = terse.client();
    let coded = client.get("/", &[("Accept-Encoding", "gzip")]);
    assert_eq!((coded.status, coded.field("content-encoding")), (200, Some("gzip")));
    assert_eq!(gunzip(&coded.body), PAGE.as_bytes());
    for coding in ["br", "zstd"] {
        let coded = client.get("/", &[("Accept-Encoding", coding)]);
        assert_eq!((coded.status, coded.field("content-encoding")), (200, Some(coding)));
    }
    let requests = server.requests();
    assert_eq!(requests[0].field("x-forwarded-for"), Some("127.0.0.1"));
    let console = |target: &str, host: &str| {
        let mut client = Client::connect(terse.address("console"));
        client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.response("GET")
    };
    let summary = until("three answers to be counted", || {
        let summary: serde_json::Value = serde_json::from_str(&console("/;api=summary", "localhost").text()).unwrap();
        (summary["compression"]["answers"] == 3).then_some(summary)
    });
    assert_eq!((&summary["rights"], &summary["version"]), (&"look".into(), &"0.1.0".into()));
    let health = |path: &str| Terse::bare().arg(&["health", &format!("http://{}{path}", terse.address("console"))]).run();
    assert_eq!([health("/;api=summary").code(), health("/;api=nothing").code()], [Some(0), Some(1)]);
    assert_eq!(Terse::bare().arg(&["health", "a"]).run().code(), Some(2));
    assert!(console("/", "127.0.0.1:8404").text().contains("</html>"));
    assert_eq!([console("/", "[::1]:8404"), console("/", "evil.example:8404")].map(|answer| answer.status), [200, 403]);
    terse.end();
}

/// Another program's address is not shared, even if the program would let it.
#[test]
fn a_port_that_is_taken_is_refused_with_one_that_is_free() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(1).unwrap();
    let taken = socket.local_addr().unwrap().as_socket().unwrap();
    let refused =
        Terse::bare().arg(&["--to", "3000", "--listen", &taken.to_string(), "--console", &taken.to_string()]).run().expect(1);
    for option in ["--listen", "--console"] {
        let line = refused.stderr.lines().find(|line| line.contains(option)).unwrap();
        assert!(line.contains(&format!("another program listens on {taken}; this is free: {option} 127.0.0.1:")), "{line}");
    }
}

/// An address is not for two lines.
#[test]
fn a_port_of_its_own_is_not_shared() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let refused = Terse::bare().arg(&["--to", "3000", "--listen", &free, "--console", &free]).run().expect(1);
    assert!(refused.stderr.contains(&format!("another line listens on {free}; this is free: --")), "{}", refused.stderr);
}

/// A console whose address is not set goes to the next port: the service of the package has its own.
#[test]
fn a_console_makes_way() {
    // Held by this test, or by another program: it is taken either way.
    let _usual = TcpListener::bind("127.0.0.1:8404");
    let server = simple(PAGE);
    let terse = Terse::bare().arg(&["--to", &server.address().to_string(), "--listen", "fd@${web}"]).listen("web").start();
    assert_eq!(terse.client().get("/", &[]).status, 200);
    let said = until("the console's address", || {
        let said = terse.stderr();
        said.lines().find_map(|line| line.split("console listens on http://").nth(1).map(str::to_owned))
    });
    assert!(said.starts_with("127.0.0.1:") && said != "127.0.0.1:8404", "{said}");
    let mut client = Client::connect(said.parse().unwrap());
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response("GET").status, 200);
    terse.end();
}

#[test]
fn what_is_printed_is_a_file() {
    let words = ["--to", "3000", "--to", "https://192.0.2.1", "--listen", "127.0.0.1:9080"];
    let file = Terse::bare().arg(&words).arg(&["--print"]).run().expect(0).stdout;
    let checked = Terse::with(&file).arg(&["-c", "-V"]).run().expect(0);
    assert!(checked.stderr.is_empty() && checked.stdout.contains("valid"), "{} {}", checked.stdout, checked.stderr);
    assert!(file.contains("    server s1 127.0.0.1:3000 check\n") && file.contains("    console 127.0.0.1:8404\n"), "{file}");
    let refused = Terse::bare().arg(&["--to", "3000", "--console", "0.0.0.0:8404"]).run().expect(1);
    assert!(refused.stderr.contains("loopback addresses alone"), "{}", refused.stderr);
}

/// A console with a user may change servers, whatever name it is asked by.
#[test]
fn a_console_with_a_user_changes_servers() {
    let text = "global\n console fd@${console} user admin:secret\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
                listen web\n bind fd@${web}\n server s 127.0.0.1:1\n";
    let terse = Terse::with(text).listen("web").listen("console").start();
    let ask = |fields: &str| {
        let order = r#"{"backend":"web","servers":["s"],"action":"drain"}"#;
        let mut client = Client::connect(terse.address("console"));
        client.send(format!(
            "POST /;api=server HTTP/1.1\r\nHost: edge.example\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{fields}\r\n{order}",
            order.len()
        ));
        client.response("POST")
    };
    assert_eq!(ask("").status, 401);
    let changed = ask("Authorization: Basic YWRtaW46c2VjcmV0\r\n");
    assert_eq!((changed.status, changed.text()), (200, "{\"v\":1,\"changed\":1}\n".into()));
    terse.end();
}

/// The page's own script runs under its policy, and asks for parts of the page again.
#[test]
fn chromium_keeps_the_console_new() {
    let Some(chromium) = find("chromium") else { return };
    let server = simple(PAGE);
    let words = ["--to", &server.address().to_string(), "--listen", "fd@${web}", "--console", "fd@${console}", "--log", "off"];
    let terse = Terse::bare().arg(&words).listen("web").listen("console").start();
    let mut client = terse.client();
    assert_eq!(client.get("/", &[("Accept-Encoding", "br")]).status, 200);
    let port = terse.address("console").port();
    let requests = || {
        let mut client = Client::connect(terse.address("console"));
        client.send(format!("GET /;api=proxies;scope=console HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"));
        let proxies: serde_json::Value = serde_json::from_str(&client.response("GET").text()).unwrap();
        proxies["proxies"][0]["requests"].as_u64().unwrap()
    };
    let before = requests();
    let profile = format!("--user-data-dir={}", terse.path("profile").display());
    let words = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=9000", &profile];
    let said = run(&chromium, &[&words[..], &["--dump-dom", &format!("http://localhost:{port}/")]].concat());
    let live = said.stdout.split("id=\"live\"").nth(1).unwrap_or_else(|| panic!("{} {}", said.stdout, said.stderr));
    assert!(live.split_once('>').is_some_and(|(tag, rest)| !tag.contains("hidden") && rest.starts_with("live<")), "{live}");
    assert!(said.stdout.contains(" saved</b>: ") && !said.stdout.contains("class=\"stale\""), "{}", said.stdout);
    assert!(!said.stderr.contains("Refused to") && !said.stderr.contains("Content Security Policy"), "{}", said.stderr);
    // The page, its parts, and the question itself.
    assert!(requests() >= before + 4, "{} after {before}", requests());
    terse.end();
}
