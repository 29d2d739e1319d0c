//! An exchange: heads, bodies, interim responses, trailers, errors, logs.

use super::client::{Client, request};
use super::support::proxy::{DEFAULTS, listen};
use super::support::server::{Server, ok};
use super::support::{Terse, until};
use terse_http::h2::Code;
use terse_message::Fields;

#[test]
fn heads_and_bodies() {
    let server = Server::answering(|request| {
        let fields: Vec<_> = ["host", "cookie", "x-small", "content-length", "te", "transfer-encoding"]
            .into_iter()
            .map(|name| format!("{name}={}", request.every(name).collect::<Vec<_>>().join("|")))
            .collect();
        ok(&format!("{} {} {} {}", request.method, request.target, fields.join(" "), request.body.len()))
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let answer = client.ask(&request("GET", "/a?b", &[("Cookie", "a=1"), ("Cookie", "b=2"), ("X-Small", "x"), ("TE", "trailers")]));
    let told = "GET /a?b host=a.test cookie=a=1; b=2 x-small=x content-length= te=trailers transfer-encoding= 0";
    assert_eq!((answer.status(), answer.text().as_str()), (200, told));
    assert_eq!(answer.field("content-length"), Some(told.len().to_string()));
    assert_eq!(answer.field("connection"), None);

    let head = client.ask(&request("HEAD", "/", &[]));
    assert_eq!((head.status(), head.body.len(), head.field("content-length").is_some()), (200, 0, true));

    // A body that is whole before its server is asked has a length; any other goes in chunks.
    let id = client.open(&request("POST", "/", &[]), true);
    assert!(client.answer(id).text().ends_with("content-length=0 te= transfer-encoding= 0"));
    let id = client.open(&request("POST", "/", &[("Content-Length", "5")]), false);
    client.send(id, b"hello", true);
    assert!(client.answer(id).text().ends_with("content-length=5 te= transfer-encoding= 5"));
    let id = client.open(&request("PUT", "/", &[]), false);
    until("the server has the head", || (server.requests().len() + server.accepted() > 4).then_some(()));
    client.send(id, b"hel", false);
    client.send(id, b"lo", true);
    let answer = client.answer(id).text();
    assert!(answer.ends_with(" 5") && (answer.contains("chunked") || answer.contains("content-length=5")), "{answer}");
    terse.end();
}

#[test]
fn trailers_and_interim_answers_pass() {
    let server = Server::start(|connection| {
        let Some(mut request) = connection.head() else { return };
        connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        connection.body(&mut request);
        connection.send(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n4\r\n{:4}\r\n0\r\nSum: 7\r\n\r\n",
            request.trailers.len()
        ));
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request("POST", "/", &[("Trailer", "X")]), false);
    client.send(id, b"abc", false);
    let mut trailers = Fields::default();
    trailers.push(b"x", b"1");
    client.codec.send_trailers(id, &trailers);
    client.flush();
    let answer = client.answer(id);
    assert_eq!(answer.interim.iter().map(|head| head.status).collect::<Vec<_>>(), [103]);
    assert_eq!((answer.status(), answer.text().trim(), answer.trailers), (200, "1", vec![("sum".into(), "7".into())]));
    terse.end();
}

#[test]
fn a_client_that_expects_is_told_to_go_on() {
    let server = Server::start(|connection| {
        let Some(mut request) = connection.head() else { return };
        connection.send("HTTP/1.1 100 Continue\r\n\r\n");
        connection.body(&mut request);
        connection.send(ok(&String::from_utf8(request.body).unwrap()));
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request("POST", "/", &[("Expect", "100-continue"), ("Content-Length", "3")]), false);
    client.wait("100", |client| !client.streams[&id].interim.is_empty());
    assert_eq!(client.streams[&id].interim[0].status, 100);
    client.send(id, b"abc", true);
    assert_eq!(client.answer(id).text(), "abc");
    terse.end();
}

#[test]
fn an_early_answer_ends_the_stream_without_an_error() {
    let terse = listen("http-request return status 413 content-type text/plain string large");
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request("POST", "/", &[("Content-Length", "1000000")]), false);
    client.wait("the answer", |client| client.streams[&id].has_ended && client.streams[&id].reset.is_some());
    let answer = &client.streams[&id];
    assert_eq!((answer.status(), answer.text().as_str(), answer.reset), (413, "large", Some(Code::NO_ERROR)));
    assert_eq!(client.get("/").status(), 413, "the connection goes on");
    terse.end();
}

#[test]
fn a_body_that_breaks_off_is_a_reset() {
    let server = Server::start(|connection| {
        if connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        }
    });
    let terse = listen(&format!("server one {}\n retries 0", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let answer = client.get("/");
    assert_eq!((answer.status(), answer.text().as_str(), answer.has_ended), (200, "abc", false));
    assert!(answer.reset.is_some_and(|code| code != Code::NO_ERROR));
    assert_eq!(client.get("/").status(), 200, "the connection goes on");
    terse.end();
}

#[test]
fn a_client_that_resets_has_its_server_left() {
    let server = Server::start(|connection| {
        if connection.request().is_some() {
            connection.is_closed();
        }
    });
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request("GET", "/", &[]), true);
    until("the server is asked", || (server.open() == 1 && server.requests().len() == 1).then_some(()));
    client.reset(id);
    until("the server is left", || (server.open() == 0).then_some(()));
    terse.end();
}

#[test]
fn a_stream_that_is_reset_at_once_asks_no_server() {
    let server = Server::answering(|_| ok("hello"));
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/first").text(), "hello");
    for _ in 0..50 {
        let id = client.codec.send_request(&request("GET", "/reset", &[]), b"http", None, true).unwrap();
        client.codec.release(id, Code::CANCEL);
    }
    client.flush();
    assert_eq!(client.get("/last").text(), "hello");
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(asked, ["/first", "/last"]);
    terse.end();
}

#[test]
fn a_hundred_streams_at_once() {
    let server = Server::answering(|request| ok(&request.target));
    let terse = listen(&format!("server one {}", server.address()));
    let mut client = Client::connect(terse.address("web"));
    client.get("/");
    let ids: Vec<_> = (0..100).map(|n| (client.open(&request("GET", &format!("/{n}"), &[]), true), n)).collect();
    for (id, n) in ids {
        let answer = client.answer(id);
        assert_eq!((answer.status(), answer.text()), (200, format!("/{n}")));
    }
    terse.end();
}

#[test]
fn what_rules_and_logs_see() {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS} log stderr format raw local0\nlisten web\n bind fd@${{web}}\n log-format \"%HM %HP %HV %ST %ts\"\n \
         http-request wait-for-body time 5s at-least 4 if METH_POST\n \
         http-request return status 200 content-type text/plain lf-string \
         \"%[fc_http_major] %[req.ver] %[path] %[hdr(host)] %[req.body] %[req.body_len]\"\n"
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    assert_eq!(client.get("/a").text(), "2 2.0 /a a.test  0");
    let id = client.open(&request("POST", "/b", &[]), false);
    client.send(id, b"ab", false);
    client.send(id, b"cd", false);
    assert_eq!(client.answer(id).text(), "2 2.0 /b a.test abcd 4");
    until("the lines", || terse.stderr().contains("POST /b HTTP/2.0 200 LR").then_some(()));
    assert!(terse.stderr().contains("GET /a HTTP/2.0 200 LR"), "{}", terse.stderr());
    terse.end();
}

#[test]
fn heads_that_are_none_or_too_large_are_told_and_logged() {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS} log stderr format raw local0\nlisten web\n bind fd@${{web}}\n log-format \"<%ST %ts>\"\n \
         error-log-format \"<%ST %ts>\"\n http-request return status 200\n"
    );
    let terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    let large = "x".repeat(17 * 1024);
    let answer = client.ask(&request("GET", "/", &[("X-Large", &large)]));
    assert_eq!(answer.status(), 431);
    let answer = client.ask(&request("GET", &format!("/{large}"), &[]));
    assert_eq!(answer.status(), 414);
    let answer = client.ask(&request("GET", "/", &[("Content-Length", "5")]));
    assert_eq!(answer.reset, Some(Code::PROTOCOL_ERROR), "{answer:?}");
    assert_eq!(client.get("/").status(), 200, "the connection goes on");
    until("the lines", || terse.stderr().contains("<431 PR>").then_some(()));
    until("the lines", || terse.stderr().contains("<414 PR>").then_some(()));
    until("the lines", || terse.stderr().contains("<400 PR>").then_some(()));
    terse.end();
}
