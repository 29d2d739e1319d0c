//! Handshakes that fail: counted, logged, bounded in time.

use crate::certificates::{Kind, authority, signed};
use crate::figures::{command, session};
use crate::floods::{hello, mac_key, record};
use crate::support::proxy::DEFAULTS;
use crate::support::{PATIENCE, Terse, until};
use crate::talk::Ask;
use openssl::ssl::SslVersion;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// A process whose `web` has these arguments after `ssl`, and a `clear` whose server is `web`.
fn process(words: &str) -> Terse {
    let terse = Terse::with("").listen("web").listen("clear");
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem {words}\n \
         log stderr format raw local0\n option httplog\n http-request return status 200 content-type text/plain string ok\n\
         listen clear\n bind fd@${{clear}}\n retries 0\n server s {} ssl verify none ssl-max-ver TLSv1.2\n",
        terse.address("web")
    );
    let pem = signed(Kind::Rsa, &["a.test"], &authority("root")).pem();
    terse.file("terse.cfg", text).file("a.pem", pem).start()
}

/// The figures of a row of `show stat`.
fn row(terse: &Terse, proxy: &str, service: &str) -> HashMap<String, String> {
    let said = command(terse, "show stat");
    let mut lines = said.lines();
    let names = lines.next().unwrap().trim_start_matches("# ").split(',');
    let row = lines.find(|line| line.starts_with(&format!("{proxy},{service},"))).unwrap();
    names.map(str::to_owned).zip(row.split(',').map(str::to_owned)).collect()
}

/// Sends it, and waits until the connection is closed.
fn send(terse: &Terse, bytes: &[u8]) {
    let mut stream = TcpStream::connect(terse.address("web")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    // It may be broken off where not everything was read.
    if let Err(error) = stream.read_to_end(&mut Vec::new()) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

fn logged(terse: &Terse, what: &str) {
    until(what, || terse.stderr().contains(what).then_some(()));
}

/// First bytes of a client, once they are complete: a record of a handshake that announces a hello of 512 bytes.
const BEGINNING: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

#[test]
fn failures_are_counted_where_haproxy_has_columns() {
    let terse = process("ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.2\n timeout client-hs 10s");
    let asks = || Ask { version: Some(SslVersion::TLS1_2), ..Ask::default() };
    let first = session(&asks(), terse.address("web"));
    session(&Ask { session: Some(&first), ..asks() }, terse.address("web"));
    send(&terse, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(Ask { version: Some(SslVersion::TLS1_3), ..Ask::default() }.connect(terse.address("web")).is_none());
    drop(terse.client());
    drop(TcpStream::connect(terse.address("web")).unwrap().write_all(BEGINNING));
    until("four failures", || (row(&terse, "web", "FRONTEND")["ssl_failed_handshake"] == "4").then_some(()));
    let counted = row(&terse, "web", "FRONTEND");
    let of = |name: &str| counted[name].as_str();
    assert_eq!([of("ssl_sess"), of("ssl_reused_sess"), of("ereq"), of("conn_tot")], ["2", "1", "0", "6"]);
    assert!(command(&terse, "show info").contains("\nTlsFailedHandshakes: 4\n"));
    command(&terse, "clear counters all");
    assert_eq!(row(&terse, "web", "FRONTEND")["ssl_sess"], "0");
    terse.end();
}

#[test]
fn failures_with_servers_are_counted_too() {
    let terse = process("ssl-min-ver TLSv1.3");
    let answer = crate::support::client::get(terse.address("clear"), "/");
    assert_eq!(answer.status, 503);
    for service in ["s", "BACKEND"] {
        let counted = row(&terse, "clear", service);
        assert_eq!([&*counted["ssl_sess"], &counted["ssl_failed_handshake"], &counted["econ"]], ["0", "1", "1"], "{service}");
    }
    terse.end();
}

#[test]
fn lines_say_what_happened() {
    let terse = process("ssl-min-ver TLSv1.3");
    send(&terse, b"GET / HTTP/1.1\r\n\r\n");
    logged(&terse, "web/1: SSL handshake failure (error:0A00009C:SSL routines::http request)\n");
    send(&terse, &[0xff; 600]);
    logged(&terse, "web/1: SSL handshake failure (error:0A00010B:SSL routines::wrong version number)\n");
    let _ = Ask { version: Some(SslVersion::TLS1_2), ..Ask::default() }.connect(terse.address("web"));
    logged(&terse, "web/1: SSL handshake failure (error:0A000102:SSL routines::unsupported protocol)\n");
    // A hello that is cut off by its client, a record that is longer than any may be, and a hello that is.
    drop(TcpStream::connect(terse.address("web")).unwrap().write_all(BEGINNING));
    logged(&terse, "web/1: Connection closed during SSL handshake\n");
    send(&terse, &[22, 3, 1, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 3, 3]);
    send(&terse, &[&[22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff][..], &[3; 0x4000 - 4]].concat());
    until("two more", || (terse.stderr().matches("web/1: SSL handshake failure (").count() == 5).then_some(()));
    terse.end();
}

#[test]
fn who_only_looks_is_not_logged() {
    let terse = process(
        "\n timeout client-hs 100ms\n option dontlognull\n error-log-format \"%[fc_err]: %[fc_err_str] / %[ssl_fc_err_str]\"",
    );
    drop(terse.client());
    drop(TcpStream::connect(terse.address("web")).unwrap().write_all(BEGINNING));
    // Silent ones are looking, too.
    let silent = terse.client();
    until("all to be gone", || (row(&terse, "web", "FRONTEND")["ssl_failed_handshake"] == "3").then_some(()));
    drop(silent);
    send(&terse, b"GET / HTTP/1.1\r\n\r\n");
    logged(&terse, "http request\n");
    let said: String = terse.stderr().split_inclusive('\n').filter(|line| !line.starts_with("[NOTICE]")).collect();
    assert_eq!(said, "34: SSL handshake failure / error:0A00009C:SSL routines::http request\n");
    terse.end();
}

/// A byte now and then does not make the time longer, wherever its limit is set.
#[test]
fn slow_hellos_end() {
    for words in ["\n timeout client 100ms", "\n timeout client 10m\n timeout client-hs 100ms"] {
        let terse = process(words);
        let mut slow = TcpStream::connect(terse.address("web")).unwrap();
        slow.write_all(BEGINNING).unwrap();
        slow.set_read_timeout(Some(std::time::Duration::from_millis(5))).unwrap();
        until("it to be closed", || {
            let is_waiting = slow.write_all(b"\0").is_ok()
                && slow.read(&mut [0]).is_err_and(|error| [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()));
            (!is_waiting).then_some(())
        });
        logged(&terse, "web/1: Timeout during SSL handshake\n");
        assert_eq!(row(&terse, "web", "FRONTEND")["ssl_failed_handshake"], "1");
        terse.end();
    }
}

#[test]
fn another_handshake_is_refused_and_the_first_one_goes_on() {
    let terse = process("ciphers ALL:eNULL:@SECLEVEL=0");
    // Records that are not encrypted: then the test can make and read them itself.
    let ask = Ask { version: Some(SslVersion::TLS1_2), ciphers: Some("NULL-SHA256"), ..Ask::default() };
    let stream = ask.connect(terse.address("web")).unwrap();
    let key = mac_key(stream.ssl());
    let mut socket = stream.get_ref();
    socket.write_all(&hello(&key, 1)).unwrap();
    let mut head = [0; 5];
    socket.read_exact(&mut head).unwrap();
    let mut alert = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    socket.read_exact(&mut alert).unwrap();
    assert_eq!((head[0], &alert[..2]), (21, &[1, 100][..]), "a warning: no renegotiation");
    socket.write_all(&record(&key, 2, 23, b"GET / HTTP/1.0\r\n\r\n")).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    assert!(answer.windows(15).any(|part| part == b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
    assert!(command(&terse, "show info").contains("\nTlsRenegotiationsRefused: 1\n"));
    terse.end();
}
