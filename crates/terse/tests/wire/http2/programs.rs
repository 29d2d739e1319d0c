//! Real programs: h2spec, curl, h2load, nghttp. Those that are not installed are left out, with a message.

use super::certificates::{Kind, authority, signed};
use super::support::program::{find, run};
use super::support::proxy::DEFAULTS;
use super::support::server::{Server, ok};
use super::support::{Terse, program};
use std::path::Path;

fn proxy(server: &Server) -> Terse {
    let root = authority("root");
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}} proto h2\n bind fd@${{secure}} ssl crt a.pem\n \
         filter compression\n compression algo br zstd gzip\n compression type text/plain\n server one {}\n",
        server.address()
    );
    let pem = signed(Kind::Ecdsa, &["localhost"], &root).pem();
    Terse::with(&text).file("a.pem", pem).listen("web").listen("secure").start()
}

/// H2SPEC names the program, as `scripts/h2spec` builds it.
#[test]
fn all_of_h2spec_holds() {
    let Some(h2spec) = std::env::var_os("H2SPEC").filter(|program| Path::new(program).is_file()) else {
        return eprintln!("h2spec was left out: H2SPEC does not name it.");
    };
    let server = Server::answering(|_| ok("hello"));
    let terse = proxy(&server);
    for (name, words) in
        [("web", &[][..]), ("web", &["--strict"]), ("secure", &["-t", "-k"]), ("secure", &["-t", "-k", "--strict"])]
    {
        let port = terse.address(name).port().to_string();
        let said = run(&h2spec.clone().into(), &[&["-h", "127.0.0.1", "-p", &port, "-o", "5"], words].concat());
        let last = said.stdout.lines().last().unwrap_or_default();
        assert!(last.contains(" 0 skipped, 0 failed"), "{words:?}: {}", said.stdout);
        let tests = last.split(' ').next().and_then(|tests| tests.parse::<u32>().ok());
        assert!(tests.is_some_and(|tests| tests >= 145), "{last}");
    }
    terse.end();
}

#[test]
fn curl_gets_what_it_asks_for() {
    let Some(curl) = program::curl() else { return };
    let text = "a line of text\n".repeat(1000);
    let server = Server::answering({
        let text = text.clone();
        move |request| match request.method.as_str() {
            "POST" => ok(&request.body.len().to_string()),
            _ => format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}", text.len()),
        }
    });
    let terse = proxy(&server);
    let url = format!("https://localhost:{}/", terse.address("secure").port());
    for coding in ["br", "zstd", "gzip"] {
        let coded = ["-sk", "--http2", "-H", &format!("Accept-Encoding: {coding}"), "-o", "/dev/null", "-w"];
        let shown = curl(&[&coded[..], &["%{http_version} %header{content-encoding} %{size_download}", &url]].concat());
        let words: Vec<_> = shown.stdout.split(' ').collect();
        assert_eq!(words[..2], ["2", coding], "{}", shown.stdout);
        assert!(words[2].parse::<usize>().is_ok_and(|bytes| bytes < 500), "{}", shown.stdout);
    }
    assert_eq!(curl(&["-sk", "--http2", "--compressed", &url]).stdout, text);
    let clear = format!("http://127.0.0.1:{}/", terse.address("web").port());
    assert_eq!(curl(&["-s", "--http2-prior-knowledge", "-d", "hello", &clear]).stdout, "5");
    assert_eq!(curl(&["-sk", "--http1.1", "-o", "/dev/null", "-w", "%{http_version}", &url]).stdout, "1.1");
    terse.end();
}

#[test]
fn h2load_has_all_its_requests_answered() {
    let Some(h2load) = find("h2load") else { return eprintln!("h2load was left out: it is not there.") };
    let server = Server::answering(|_| ok("hello"));
    let terse = proxy(&server);
    for (name, scheme) in [("web", "http"), ("secure", "https")] {
        let url = format!("{scheme}://127.0.0.1:{}/", terse.address(name).port());
        let said = run(&h2load, &["-n", "2000", "-c", "4", "-m", "50", &url]);
        assert!(said.stdout.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"), "{}", said.stdout);
    }
    terse.end();
}

#[test]
fn nghttp_sees_frames_that_it_takes() {
    let Some(nghttp) = find("nghttp") else { return eprintln!("nghttp was left out: it is not there.") };
    let server = Server::answering(|request| ok(&request.body.len().to_string()));
    let terse = proxy(&server).file("body", vec![b'x'; 200_000]);
    let url = format!("http://127.0.0.1:{}/", terse.address("web").port());
    let body = terse.path("body");
    let said = run(&nghttp, &["-v", "-d", body.to_str().unwrap(), &url]);
    assert!(said.stdout.contains(":status: 200") && said.stdout.contains("200000"), "{}", said.stdout);
    terse.end();
}

/// A page for GET, and the length of the body for other methods.
fn echo() -> Server {
    let text = "a line of text\n".repeat(1000);
    Server::answering(move |request| match request.method.as_str() {
        "POST" => ok(&request.body.len().to_string()),
        _ => format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}", text.len()),
    })
}

#[test]
fn go_gets_what_it_asks_for() {
    let Some(go) = find("go") else { return eprintln!("Go's client was left out: go is not there.") };
    let server = echo();
    let terse = proxy(&server);
    let url = format!("https://127.0.0.1:{}/", terse.address("secure").port());
    let said = run(&go, &["run", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/http2/client.go"), &url]);
    let wanted = "HTTP/2.0 200 true 15000 <nil>\nHTTP/2.0 200 false 7 <nil>\nHTTP/2.0 200 false 6 <nil>\ntogether 200\n";
    assert_eq!(said.stdout, wanted, "{}", said.stderr);
    terse.end();
}

#[test]
fn hyper_gets_what_it_asks_for() {
    use http_body_util::{BodyExt, Full};
    use hyper::body::Bytes;
    let server = echo();
    let terse = proxy(&server);
    let address = terse.address("web");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(hyper_util::rt::TokioExecutor::new(), io).await.unwrap();
        let connection = tokio::task::spawn_local(connection);
        for (method, body, wanted) in [("GET", 0, 15_000), ("POST", 3 << 20, 7), ("GET", 0, 15_000)] {
            let request = hyper::Request::builder().method(method).uri(format!("http://{address}/"));
            let answer = sender.send_request(request.body(Full::new(Bytes::from(vec![b'x'; body]))).unwrap()).await.unwrap();
            assert_eq!((answer.status().as_u16(), answer.version()), (200, hyper::Version::HTTP_2));
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), wanted);
        }
        drop(sender);
        connection.await.unwrap().unwrap();
    });
    terse.end();
}
