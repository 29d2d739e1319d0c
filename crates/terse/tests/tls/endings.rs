//! Ends that tell whether the bytes before them are whole (RFC 8446 section 6.1).

use crate::certificates::{Kind, Pair, authority, signed};
use crate::figures::command;
use crate::support::origin::{Origin, Request};
use crate::support::proxy::DEFAULTS;
use crate::support::{PATIENCE, Terse, until};
use crate::talk::Ask;
use openssl::asn1::Asn1Time;
use openssl::ssl::{ErrorCode, ShutdownState, Ssl, SslContext, SslMethod, SslStream, SslVerifyMode};
use openssl::x509::X509;
use openssl::x509::extension::SubjectAlternativeName;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

/// A process that speaks TLS in front of a server.
fn process(mode: &str, server: &str) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}} ssl crt a.pem\n mode {mode}\n timeout server 300ms\n server s {server}\n"
    );
    Terse::with(&text).file("a.pem", signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem()).listen("web").start()
}

/// Returns the bytes that came for a client that knows no chunks, and whether the sender has confirmed their end.
fn received(terse: &Terse) -> (String, bool) {
    let mut stream = Ask::default().connect(terse.address("web")).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").unwrap();
    let (mut text, mut room) = (Vec::new(), [0; 4096]);
    loop {
        match stream.ssl_read(&mut room) {
            Ok(n) => text.extend_from_slice(&room[..n]),
            Err(error) => {
                assert_ne!(error.code(), ErrorCode::WANT_READ, "it did not end");
                break;
            }
        }
    }
    (String::from_utf8(text).unwrap(), stream.get_shutdown().contains(ShutdownState::RECEIVED))
}

/// A server whose response has no known length before its end: it ends in order, or stops in the middle.
fn origin(stops: bool) -> Origin {
    Origin::start(move |_: &Request, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart").unwrap();
        if !stops {
            stream.shutdown(Shutdown::Write).unwrap();
        }
    })
}

#[test]
fn what_was_cut_off_does_not_look_whole() {
    for (mode, stops) in [("http", false), ("http", true), ("tcp", true)] {
        let origin = origin(stops);
        let terse = process(mode, &origin.address().to_string());
        let (text, is_whole) = received(&terse);
        assert!(text.ends_with("part") && is_whole != stops, "{mode} {stops}: {is_whole} {text}");
        terse.end();
    }
}

/// A server with TLS that answers one connection, and closes it with or without saying so.
fn secured(pair: &Pair, says_so: bool) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
    context.set_certificate(&pair.certificate).unwrap();
    context.set_private_key(&pair.key).unwrap();
    let context = context.build();
    let served = std::thread::spawn(move || {
        let mut stream = Ssl::new(&context).unwrap().accept(listener.accept().unwrap().0).unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\npart").unwrap();
        if says_so {
            stream.shutdown().unwrap();
        }
        stream.get_ref().shutdown(Shutdown::Write).unwrap();
        let _ = stream.get_mut().read(&mut [0]);
    });
    (address, served)
}

/// Also over bytes of which nothing is known: the end of one side is that of the other.
#[test]
fn an_end_goes_on_as_it_came() {
    let pair = signed(Kind::Ecdsa, &["s.test"], &authority("root"));
    for (mode, says_so) in [("http", true), ("http", false), ("tcp", true), ("tcp", false)] {
        let (address, served) = secured(&pair, says_so);
        let terse = process(mode, &format!("{address} ssl verify none"));
        let (text, is_whole) = received(&terse);
        assert!(text.ends_with("part") && is_whole == says_so, "{mode} {says_so}: {text}");
        terse.end();
        served.join().unwrap();
    }
}

/// A socket that takes all bytes sent and is never read.
struct Mute(TcpStream);

impl Read for Mute {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Mute {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A certificate with so many names that few of them fill the memory of a connection.
fn bulky(pair: &Pair) -> X509 {
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_subject_name(pair.certificate.subject_name()).unwrap();
    builder.set_issuer_name(pair.certificate.subject_name()).unwrap();
    builder.set_pubkey(&pair.key).unwrap();
    builder.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::days_from_now(1).unwrap()).unwrap();
    let mut names = SubjectAlternativeName::new();
    for number in 0..2000 {
        names.dns(&format!("{number}.{}.test", "x".repeat(200)));
    }
    let names = names.build(&builder.x509v3_context(None, None)).unwrap();
    builder.append_extension(names).unwrap();
    builder.sign(&pair.key, openssl::hash::MessageDigest::sha256()).unwrap();
    builder.build()
}

/// A client that asks for a chain of megabytes and takes nothing of it.
#[test]
fn who_takes_nothing_of_a_handshake_is_closed() {
    let root = authority("root");
    let site = signed(Kind::Ecdsa, &["a.test"], &root);
    let chain = bulky(&root).to_pem().unwrap().repeat(20);
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n \
         http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("a.pem", [site.pem(), chain].concat()).listen("web").start();
    let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
    context.set_verify(SslVerifyMode::NONE);
    let mut ssl = Ssl::new(&context.build()).unwrap();
    ssl.set_connect_state();
    let stream = TcpStream::connect(terse.address("web")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = SslStream::new(ssl, Mute(stream)).unwrap();
    assert_eq!(stream.do_handshake().unwrap_err().code(), ErrorCode::WANT_READ);
    until("it to be closed", || command(&terse, "show info").contains("\nTlsOverfull: 1\n").then_some(()));
    until("its room to be free", || command(&terse, "show info").contains("\nCurrSslConns: 0\n").then_some(()));
    terse.end();
}
