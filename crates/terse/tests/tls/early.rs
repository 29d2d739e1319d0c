//! Early data: requests that go ahead of the handshake.

use crate::certificates::{Kind, authority, signed};
use crate::support::origin::Origin;
use crate::support::proxy::DEFAULTS;
use crate::support::{PATIENCE, Terse, client, until};
use crate::talk::resume;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslSession, SslSessionCacheMode, SslStream, SslVerifyMode};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

/// A client that keeps the last session that it was given.
struct Visitor {
    context: SslContext,
    kept: Arc<Mutex<Option<SslSession>>>,
}

impl Visitor {
    fn new() -> Visitor {
        let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
        context.set_verify(SslVerifyMode::NONE);
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let kept: Arc<Mutex<Option<SslSession>>> = Arc::default();
        let keep = kept.clone();
        context.set_new_session_callback(move |_, session| *keep.lock().unwrap() = Some(session));
        Visitor { context: context.build(), kept }
    }

    /// A copy of it: OpenSSL's clients use one of TLS 1.3 once.
    fn kept(&self) -> SslSession {
        copy(self.kept.lock().unwrap().as_ref().unwrap())
    }

    fn stream(&self, session: Option<&SslSession>, address: SocketAddr) -> SslStream<TcpStream> {
        let mut ssl = Ssl::new(&self.context).unwrap();
        if let Some(session) = session {
            resume(&mut ssl, session);
        }
        ssl.set_connect_state();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        SslStream::new(ssl, stream).unwrap()
    }

    /// The answer to a request after the handshake.
    fn asks(&self, address: SocketAddr) -> String {
        let mut stream = self.stream(None, address);
        stream.do_handshake().unwrap();
        stream.write_all(REQUEST).unwrap();
        answer(stream)
    }

    /// The same ahead of it, under a session of before.
    fn asks_early(&self, session: &SslSession, address: SocketAddr) -> SslStream<TcpStream> {
        let mut stream = self.stream(Some(session), address);
        assert_eq!(stream.write_early_data(REQUEST).unwrap(), REQUEST.len());
        stream.do_handshake().unwrap();
        stream
    }
}

fn copy(session: &SslSession) -> SslSession {
    SslSession::from_der(&session.to_der().unwrap()).unwrap()
}

fn answer(mut stream: SslStream<TcpStream>) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let _ = stream.shutdown();
    answer
}

/// Facts seen by rules: whether the handshake was still to be made, whether early data had come, and whether the session was
/// resumed.
fn seen(answer: &str) -> &str {
    answer.lines().find_map(|line| line.strip_prefix("seen: ")).unwrap_or_else(|| panic!("{answer:?}"))
}

fn site(words: &str, rules: &str) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem {words}\n{rules} \
         http-request return status 200 hdr seen %[ssl_fc_has_early],%[ssl_fc_early_rcvd],%[ssl_fc_is_resumed]\n"
    );
    Terse::with(&text).file("a.pem", signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem())
}

#[test]
fn requests_are_taken_ahead_of_the_handshake_where_that_is_allowed() {
    for (words, rules, expected) in [
        ("allow-0rtt", "", "1,1,1"),
        ("allow-0rtt no-tls-tickets", "", "1,1,1"),
        ("allow-0rtt", " http-request wait-for-handshake\n", "0,1,1"),
    ] {
        let terse = site(words, rules).listen("web").start();
        let visitor = Visitor::new();
        assert_eq!(seen(&visitor.asks(terse.address("web"))), "0,0,0");
        let session = visitor.kept();
        assert_eq!(seen(&answer(visitor.asks_early(&session, terse.address("web")))), expected, "{words}{rules}");
        terse.end();
    }
    let terse = site("", "").listen("web").start();
    let visitor = Visitor::new();
    visitor.asks(terse.address("web"));
    assert_eq!(visitor.kept().max_early_data(), 0, "nothing is offered");
    terse.end();
}

/// Early data that an attacker has recorded and sends again is not taken: only after a handshake, which the attacker cannot make.
#[test]
fn a_session_brings_early_data_once() {
    let terse = site("allow-0rtt", "").listen("web").start();
    let visitor = Visitor::new();
    visitor.asks(terse.address("web"));
    let session = visitor.kept();
    let recorded = copy(&session);
    assert_eq!(seen(&answer(visitor.asks_early(&session, terse.address("web")))), "1,1,1");
    let mut again = visitor.asks_early(&recorded, terse.address("web"));
    again.write_all(REQUEST).unwrap();
    assert_eq!(seen(&answer(again)), "0,0,0");
    terse.end();
}

/// In front of a server that speaks no TLS, and learns the risk from `Early-Data`.
#[test]
fn servers_are_told() {
    let origin = Origin::body("ok");
    let root = authority("root");
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}} ssl crt a.pem allow-0rtt\n \
         server s {}\n",
        origin.address()
    );
    let terse = Terse::with(&text).file("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()).listen("web").start();
    let visitor = Visitor::new();
    visitor.asks(terse.address("web"));
    assert!(answer(visitor.asks_early(&visitor.kept(), terse.address("web"))).starts_with("HTTP/1.1 200"));
    let told: Vec<_> = origin.requests().iter().map(|request| request.field("early-data").map(str::to_owned)).collect();
    assert_eq!(told, [None, Some("1".into())]);
    terse.end();
}

/// The server `s` of `clear` is this site.
fn before(site: SocketAddr, words: &str) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten clear\n bind fd@${{clear}}\n option httpclose\n {words}\n \
         server s {site} ssl verify none allow-0rtt\n"
    );
    Terse::with(&text).listen("clear").start()
}

/// Sends requests until the session of the request before has been taken in, which comes after its answer.
fn told(terse: &Terse, method: &str) -> String {
    let mut client = client::Client::connect(terse.address("clear"));
    client.send(format!("{method} / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"));
    let response = client.response(method);
    assert_eq!(response.status, 200);
    response.field("seen").unwrap_or_default().to_owned()
}

#[test]
fn servers_are_asked_early_what_does_no_harm_twice() {
    let site = site("allow-0rtt", "").listen("web").start();
    let terse = before(site.address("web"), "retry-on conn-failure 0rtt-rejected");
    until("an early request", || (told(&terse, "GET") == "1,1,1").then_some(()));
    assert!(told(&terse, "POST").starts_with("0,0,"));
    terse.end();
    // The operator has decided it, or the client bears the risk.
    let terse = before(site.address("web"), "");
    until("a session of before", || (told(&terse, "GET") == "0,0,1").then_some(()));
    terse.end();
    site.end();
}

/// The session is of a process that has gone: early data is sent again after the handshake, and the client does not notice.
#[test]
fn what_a_server_does_not_take_early_is_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let old = site("allow-0rtt", "").listener("web", listener.try_clone().unwrap()).start();
    let terse = before(address, "retry-on conn-failure 0rtt-rejected");
    until("an early request", || (told(&terse, "GET") == "1,1,1").then_some(()));
    old.end();
    let new = site("allow-0rtt", "").listener("web", listener).start();
    assert_eq!(told(&terse, "GET"), "0,0,0");
    until("an early request again", || (told(&terse, "GET") == "1,1,1").then_some(()));
    terse.end();
    new.end();
}

/// A server that answers 425 to early data: a client that knows nothing of that gets the response after the handshake.
#[test]
fn too_early_is_for_those_who_went_early() {
    let refusing = " log stderr format raw local0\n log-format \"%ST early:%[ssl_fc_early_rcvd]\"\n \
                    http-request return status 425 if { ssl_fc_early_rcvd }\n";
    let site = site("allow-0rtt", refusing).listen("web").start();
    let terse = before(site.address("web"), "retries 0\n retry-on 0rtt-rejected");
    until("an early request that is sent again", || {
        assert!(told(&terse, "GET").starts_with("0,0,"));
        site.stderr().contains("425 early:1").then_some(())
    });
    terse.end();
    site.end();
    let origin = Origin::start(|request, stream| {
        let status = if request.field("early-data") == Some("1") { "425 Too Early" } else { "200 OK" };
        let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    });
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}} ssl crt a.pem allow-0rtt\n server s {}\n",
        origin.address()
    );
    let terse = Terse::with(&text).file("a.pem", signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem()).listen("web").start();
    let visitor = Visitor::new();
    assert!(visitor.asks(terse.address("web")).starts_with("HTTP/1.1 200"));
    assert!(answer(visitor.asks_early(&visitor.kept(), terse.address("web"))).starts_with("HTTP/1.1 425"));
    terse.end();
}
