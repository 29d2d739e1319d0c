//! Results of handshakes, as rules and the stats socket see them.

use crate::certificates::{Kind, Pair, authority, signed};
use crate::support::proxy::DEFAULTS;
use crate::support::{Terse, client, until};
use crate::talk::Ask;
use openssl::ssl::{SslSession, SslVersion};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

/// Returns the answer of the stats socket.
pub fn command(terse: &Terse, command: &str) -> String {
    let mut stream = until("the stats socket", || UnixStream::connect(terse.path("stats")).ok());
    stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    stream.write_all(format!("{command}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A figure of `show info`.
fn figure(terse: &Terse, name: &str) -> u64 {
    let info = command(terse, "show info");
    let line =
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_else(|| panic!("{name}: {info}"));
    line.parse().unwrap()
}

/// The session of one request.
pub fn session(ask: &Ask<'_>, address: SocketAddr) -> SslSession {
    let mut stream = ask.connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    // OpenSSL forgets sessions of connections that do not end in order.
    let _ = stream.shutdown();
    stream.ssl().session().unwrap().to_owned()
}

#[test]
fn sessions_that_are_gone_on_with_are_counted() {
    let root = authority("root");
    let pem = signed(Kind::Ecdsa, &["a.test"], &root).pem();
    for words in ["", "no-tls-tickets"] {
        let text = format!(
            "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
             bind fd@${{web}} ssl crt a.pem {words}\n http-request return status 200\n"
        );
        let terse = Terse::with(&text).file("a.pem", &pem).listen("web").start();
        let address = terse.address("web");
        let ask = Ask { version: Some(SslVersion::TLS1_2), ..Ask::default() };
        let first = session(&ask, address);
        for _ in 0..3 {
            session(&Ask { session: Some(&first), ..Ask { version: ask.version, ..Ask::default() } }, address);
        }
        assert_eq!(figure(&terse, "CumSslConns"), 4, "{words}");
        assert_eq!(figure(&terse, "SslCacheLookups"), if words.is_empty() { 0 } else { 3 }, "{words}");
        assert_eq!(figure(&terse, "SslCacheMisses"), 0, "{words}");
        until("the connections to end", || (figure(&terse, "CurrSslConns") == 0).then_some(()));
        terse.end();
    }
}

/// A session of another process is asked for, and is not there.
#[test]
fn unknown_sessions_are_misses() {
    let root = authority("root");
    let pem = signed(Kind::Ecdsa, &["a.test"], &root).pem();
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem no-tls-tickets\n bind fd@${{other}} ssl crt a.pem no-tls-tickets\n \
         http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("a.pem", &pem).listen("web").listen("other").start();
    let ask = Ask { version: Some(SslVersion::TLS1_2), ..Ask::default() };
    let strange = session(&ask, terse.address("other"));
    session(&Ask { session: Some(&strange), ..ask }, terse.address("web"));
    assert_eq!((figure(&terse, "SslCacheLookups"), figure(&terse, "SslCacheMisses")), (1, 1));
    terse.end();
}

/// A process with TLS on both sides of it, whose `web` has these settings of the connection between them.
fn both_sides(said: &str, bind: &str, shown: &Pair, root: &Pair) -> Terse {
    let terse = Terse::with("").listen("clear").listen("web");
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nlisten clear\n bind fd@${{clear}}\n \
         http-response set-header Bc-Curve %[ssl_bc_curve]\n server s {} ssl verify none crt client.pem\n\
         frontend web\n bind fd@${{web}} ssl crt a.pem ca-file root.pem verify optional {bind}\n http-request return status 200 {said}\n",
        terse.address("web")
    );
    let (site, root_pem) = (signed(Kind::Ecdsa, &["a.test"], root).pem(), root.certificate_pem());
    terse.file("terse.cfg", text).file("a.pem", site).file("client.pem", shown.pem()).file("root.pem", root_pem).start()
}

#[test]
fn groups_and_roots_are_known() {
    let root = authority("the root");
    let shown = signed(Kind::Ecdsa, &["client"], &root);
    let said =
        "hdr Fc-Curve %[ssl_fc_curve] hdr Root %[ssl_c_r_dn] hdr Root-Name %[ssl_c_r_dn(CN)] hdr Policies _%[ssl_c_policies]";
    let terse = both_sides(said, "curves P-256", &shown, &root);
    let answer = client::get(terse.address("clear"), "/");
    assert_eq!(answer.field("Fc-Curve"), Some("SECP256R1"));
    assert_eq!(answer.field("Bc-Curve"), Some("SECP256R1"));
    assert_eq!(answer.field("Root"), Some("/CN=the root"));
    assert_eq!(answer.field("Root-Name"), Some("the root"));
    assert_eq!(answer.field("Policies"), Some("_"));
    terse.end();
}

/// As in HAProxy, settings of `global` for all lines are for those after them, and can be set again.
#[test]
fn defaults_are_for_the_lines_behind_them() {
    let root = authority("root");
    let pem = signed(Kind::Rsa, &["a.test"], &root).pem();
    let front = |name: &str, words: &str| {
        format!("frontend {name}\n bind fd@${{{name}}} ssl crt a.pem {words}\n http-request return status 200\n")
    };
    let text = [
        "global\n nbthread 1\n".into(),
        DEFAULTS.into(),
        front("before", ""),
        "global\n ssl-default-bind-options ssl-max-ver TLSv1.2\n".into(),
        front("old", ""),
        front("own", "ssl-max-ver TLSv1.3"),
        "global\n ssl-default-bind-options ssl-max-ver TLSv1.3 ssl-min-ver TLSv1.3\n".into(),
        front("new", ""),
    ];
    let names = ["before", "old", "own", "new"];
    let terse = names.iter().fold(Terse::with(&text.join("\n")).file("a.pem", pem), |terse, name| terse.listen(name)).start();
    let speaks = |name: &str, version| Ask { version: Some(version), ..Ask::default() }.connect(terse.address(name)).is_some();
    let spoken = names.map(|name| (speaks(name, SslVersion::TLS1_2), speaks(name, SslVersion::TLS1_3)));
    assert_eq!(spoken, [(true, true), (true, false), (true, true), (false, true)]);
    terse.end();
}

/// Diffie-Hellman needs parameters: from a file, or of a length that `global` allows.
#[test]
fn diffie_hellman_needs_parameters() {
    let root = authority("root");
    let pem = signed(Kind::Rsa, &["a.test"], &root).pem();
    for (global, bits) in
        [("", None), ("tune.ssl.default-dh-param 1024", Some(1024)), ("tune.ssl.default-dh-param 4096", Some(2048))]
    {
        let text = format!(
            "global\n nbthread 1\n {global}\n{DEFAULTS}\nfrontend web\n \
             bind fd@${{web}} ssl crt a.pem ssl-max-ver TLSv1.2 ciphers DHE-RSA-AES256-GCM-SHA384:@SECLEVEL=0\n http-request return status 200\n"
        );
        let terse = Terse::with(&text).file("a.pem", &pem).listen("web").start();
        let ask = Ask { ciphers: Some("DHE-RSA-AES256-GCM-SHA384:@SECLEVEL=0"), ..Ask::default() };
        let got = ask.connect(terse.address("web")).map(|stream| stream.ssl().peer_tmp_key().unwrap().bits());
        assert_eq!(got, bits, "{global}");
        terse.end();
    }
}

/// `maxsslconn`: a client of an address with TLS waits until another one has gone; a client without TLS does not.
#[test]
fn tls_connections_of_the_process_are_limited() {
    let root = authority("root");
    let pem = signed(Kind::Ecdsa, &["a.test"], &root).pem();
    let text = format!(
        "global\n nbthread 1\n maxsslconn 1\n maxsslrate 1000\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem\n bind fd@${{plain}}\n http-request return status 200\n"
    );
    let terse = Terse::with(&text).file("a.pem", &pem).listen("web").listen("plain").start();
    let (web, plain) = (terse.address("web"), terse.address("plain"));
    let first = Ask::default().connect(web).unwrap();
    let second = std::thread::spawn(move || session(&Ask::default(), web));
    for _ in 0..20 {
        assert_eq!(client::Client::connect(plain).get("/", &[]).status, 200);
    }
    assert_eq!((figure(&terse, "CumSslConns"), figure(&terse, "MaxSslConns"), figure(&terse, "SslRateLimit")), (1, 1, 1000));
    drop(first);
    second.join().unwrap();
    assert_eq!(figure(&terse, "CumSslConns"), 2);
    terse.end();
}
