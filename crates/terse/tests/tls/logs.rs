//! Lines of logs that leave a ring over TLS, and come in over it.

use crate::certificates::{Kind, authority, signed};
use crate::support::proxy::DEFAULTS;
use crate::support::{PATIENCE, Terse, client, until};
use std::io::{Read, Write};
use std::net::TcpListener;

/// From a ring to a `log-forward` section, which passes them on.
#[test]
fn lines_go_over_tls() {
    let root = authority("root");
    let terse = Terse::with("").listen("web").listen("in");
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n log ring@r local0\n log-format \"%HU\"\n \
         http-request return status 200\n\
         ring r\n format raw\n server s {} ssl ca-file root.pem verifyhost logs.test\n\
         log-forward f\n bind fd@${{in}} ssl crt a.pem\n timeout client 10s\n option assume-rfc6587-ntf\n log stderr format raw local0\n",
        terse.address("in")
    );
    let site = signed(Kind::Ecdsa, &["logs.test"], &root).pem();
    let terse = terse.file("terse.cfg", text).file("a.pem", site).file("root.pem", root.certificate_pem()).start();
    client::get(terse.address("web"), "/told");
    until("the line", || terse.stderr().contains("/told\n").then_some(()));
    terse.end();
}

/// A receiver that does not speak TLS gets no line.
#[test]
fn lines_do_not_go_in_the_clear() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n log ring@r local0\n log-format \"%HU\"\n \
         http-request return status 200\nring r\n format raw\n server s {} ssl verify none\n",
        listener.local_addr().unwrap()
    );
    let terse = Terse::with(&text).listen("web").start();
    client::get(terse.address("web"), "/told");
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut begin = [0; 6];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!((begin[0], begin[5]), (22, 1), "a hello");
    stream.write_all(b"220 not TLS\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!rest.windows(5).any(|part| part == b"/told"));
    terse.end();
}
