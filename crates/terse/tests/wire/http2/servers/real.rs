//! Debian's nginx, HAProxy and Apache as servers of HTTP/2, over clear text and over TLS with ALPN; curl and h2load as clients.

use super::super::support::program::{curl, find, run};
use super::super::support::random::Random;
use super::super::support::server::{Request, Server};
use super::super::support::{Terse, until};
use super::{Program, Secret, TLS, figure, proxy};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A server of HTTP/1.1 that real servers lead to: `/echo` gives the body back.
fn application(big: &Arc<Vec<u8>>) -> Server {
    let big = Arc::clone(big);
    Server::answering(move |request: &Request| {
        let with = |status: &str, body: &[u8]| {
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nX-Method: {}\r\n\r\n", body.len(), request.method);
            [head.as_bytes(), if request.method == "HEAD" { b"" } else { body }].concat()
        };
        match request.target.as_str() {
            "/204" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            "/304" => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec(),
            "/echo" => with("200 OK", &request.body),
            "/big" => with("200 OK", &big),
            _ => with("200 OK", b"hello"),
        }
    })
}

fn nginx(listen: &str, origin: SocketAddr, secret: &Secret, big: &[u8]) -> Option<Program> {
    let configuration = format!(
        "daemon off; master_process off; pid {{folder}}/pid; error_log {{folder}}/error.log;\nevents {{ worker_connections 2048; }}\n\
         http {{\n log_format told '$connection $server_protocol $status';\n access_log {{folder}}/log told;\n\
         client_body_temp_path {{folder}}/t; proxy_temp_path {{folder}}/p;\n client_max_body_size 10m;\n\
         fastcgi_temp_path {{folder}}/f; uwsgi_temp_path {{folder}}/u; scgi_temp_path {{folder}}/s;\n\
         ssl_certificate {{folder}}/a.pem; ssl_certificate_key {{folder}}/a.pem;\n\
         server {{ listen {{address}} {listen}; root {{folder}}/files; location / {{ proxy_pass http://{origin}; }} location = /big {{ }} }}\n}}\n"
    );
    Program::start("nginx", &["-c"], &configuration, secret, big)
}

fn haproxy(bind: &str, origin: SocketAddr, secret: &Secret, big: &[u8]) -> Option<Program> {
    let configuration = format!(
        "defaults\n mode http\n timeout client 15s\n timeout server 15s\n timeout connect 15s\nlisten web\n bind {{address}} {bind}\n \
         server origin {origin}\n"
    );
    Program::start("haproxy", &["-db", "-f"], &configuration.replace("a.pem", "{folder}/a.pem"), secret, big)
}

fn apache(secure: bool, origin: SocketAddr, secret: &Secret, big: &[u8]) -> Option<Program> {
    let modules = "/usr/lib/apache2/modules";
    let has = |name: &str| std::fs::exists(format!("{modules}/mod_{name}.so")).unwrap_or(false);
    if !has("http2") {
        println!("left out: Apache has no mod_http2");
        return None;
    }
    let loaded: String = ["mpm_event", "authz_core", "mime", "http2", "ssl", "socache_shmcb", "proxy", "proxy_http"]
        .iter()
        .filter(|name| has(name))
        .map(|name| format!("LoadModule {name}_module {modules}/mod_{name}.so\n"))
        .collect();
    let tls = if secure { "SSLEngine on\nSSLCertificateFile {folder}/a.pem\n" } else { "" };
    let configuration = format!(
        "ServerRoot {{folder}}\nServerName localhost\nListen {{address}}\nPidFile {{folder}}/pid\nErrorLog {{folder}}/error.log\n\
         DefaultRuntimeDir {{folder}}\nMutex pthread default\n{loaded}\nUser www-data\nGroup www-data\nProtocols h2 h2c http/1.1\n\
         DocumentRoot {{folder}}/files\nTypesConfig /dev/null\n{tls}ProxyPass /big !\nProxyPass / http://{origin}/\n"
    );
    Program::start("apache2", &["-X", "-f"], &configuration, secret, big)
}

/// Every kind of exchange, by clients of both versions.
fn exchanges(name: &str, program: &Program, words: &str, secret: &Secret, big: &[u8]) {
    let Some(curl) = curl() else { return };
    let terse = proxy(&format!(" http-reuse always\n server one {} {words}", program.address), secret);
    let url = |path: &str| format!("http://{}{path}", terse.address("web"));
    let body = Random::new(7).bytes(300_000);
    std::fs::write(terse.path("body"), &body).unwrap();
    let (sent, got) = (format!("@{}", terse.path("body").display()), terse.path("got").display().to_string());
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let ask = |words: &[&str], path: &str| {
            let told = "%{http_code} %{size_download} %header{x-back}";
            let usual = ["-s", version, "-H", "Host: localhost", "-o", &got, "-w", told];
            let said = curl(&[&usual[..], words, &[&url(path)]].concat());
            assert_eq!(said.code, Some(0), "{name} {version} {path}: {said:?}");
            said.stdout
        };
        let what = format!("{name} {words} {version}");
        assert_eq!(ask(&[], "/"), "200 5 2", "{what}");
        assert_eq!(ask(&["-I"], "/"), "200 0 2", "{what}: HEAD");
        assert_eq!(ask(&[], "/204"), "204 0 2", "{what}");
        assert_eq!(ask(&[], "/304"), "304 0 2", "{what}");
        for fields in
            [&["-H", "Expect:"][..], &["-H", "Transfer-Encoding: chunked", "-H", "Expect:"], &["-H", "Expect: 100-continue"]]
        {
            // Over HTTP/2 curl sends no length where a chunked body is asked for, either.
            let said = ask(&[&["--data-binary", &sent], fields].concat(), "/echo");
            assert_eq!(said, "200 300000 2", "{what} {fields:?}");
            assert!(std::fs::read(&got).unwrap() == body, "{what} {fields:?}: another body");
        }
        assert_eq!(ask(&[], "/big"), format!("200 {} 2", big.len()), "{what}");
        assert!(std::fs::read(&got).unwrap() == big, "{what}: another download");
        let five = ["-H", "Range: bytes=10-14"];
        if !name.starts_with("haproxy") {
            assert_eq!(ask(&five, "/big"), "206 5 2", "{what}");
            assert!(std::fs::read(&got).unwrap() == big[10..15], "{what}: another part");
        }
    }
    let connections = figure(&terse, "connect");
    assert!(connections <= 2, "{name} {words}: {connections} connections");
    terse.end();
}

fn big() -> Arc<Vec<u8>> {
    Arc::new(Random::new(11).bytes(3 << 20))
}

#[test]
fn nginx_serves() {
    let (big, secret) = (big(), Secret::new());
    let origin = application(&big);
    for (listen, words) in [("http2", "proto h2"), ("ssl http2", TLS)] {
        let Some(nginx) = nginx(listen, origin.address(), &secret, &big) else { return };
        exchanges("nginx", &nginx, words, &secret, &big);
        let log = nginx.file("log");
        assert!(log.lines().count() > 10 && log.lines().all(|line| line.contains(" HTTP/2.0 ")), "{log}");
    }
}

#[test]
fn haproxy_serves() {
    let (big, secret) = (big(), Secret::new());
    let origin = application(&big);
    for (bind, words) in [("proto h2", "proto h2"), ("ssl crt a.pem alpn h2,http/1.1", TLS)] {
        let Some(haproxy) = haproxy(bind, origin.address(), &secret, &big) else { return };
        exchanges("haproxy", &haproxy, words, &secret, &big);
    }
}

#[test]
fn apache_serves() {
    let (big, secret) = (big(), Secret::new());
    let origin = application(&big);
    for (secure, words) in [(false, "proto h2"), (true, TLS)] {
        let Some(apache) = apache(secure, origin.address(), &secret, &big) else { return };
        exchanges("apache", &apache, words, &secret, &big);
    }
}

/// Connections in a log of nginx's.
fn connections(log: &str) -> BTreeSet<&str> {
    log.lines().filter_map(|line| line.split(' ').next()).collect()
}

/// 200 requests that are all open at once share one connection or two: nginx takes 128 streams on each.
#[test]
fn nginx_gets_200_at_once_over_two_connections() {
    let secret = Secret::new();
    let arrived = Arc::new(AtomicUsize::new(0));
    let origin = Server::answering({
        let arrived = Arc::clone(&arrived);
        move |request| {
            if request.target == "/held" {
                arrived.fetch_add(1, SeqCst);
                until("all to be there", || (arrived.load(SeqCst) >= 200).then_some(()));
            }
            super::super::support::server::ok("hello")
        }
    });
    for (listen, words) in [("http2", "proto h2"), ("ssl http2", TLS)] {
        let Some(nginx) = nginx(listen, origin.address(), &secret, b"") else { return };
        let Some(h2load) = find("h2load") else { return };
        let terse: Terse = proxy(&format!(" http-reuse always\n server one {} {words}", nginx.address), &secret);
        arrived.store(0, SeqCst);
        let url = format!("http://{}/held", terse.address("web"));
        let said = run(&h2load, &["-n", "200", "-c", "4", "-m", "50", &url]);
        assert!(said.stdout.contains("200 succeeded, 0 failed, 0 errored, 0 timeout"), "{}", said.stdout);
        let url = format!("http://{}/", terse.address("web"));
        let said = run(&h2load, &["-n", "500", "-c", "10", "-m", "10", &url]);
        assert!(said.stdout.contains("500 succeeded, 0 failed, 0 errored, 0 timeout"), "{}", said.stdout);
        terse.end();
        let log = nginx.file("log");
        assert_eq!(log.lines().count(), 700);
        let told = connections(&log);
        assert!((1..=2).contains(&told.len()), "{words}: {} connections: {told:?}", told.len());
    }
}
