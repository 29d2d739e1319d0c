//! Sessions that are resumed: rules see the same facts as in the handshake that began them. No client gets in by a session of
//! another name.

use crate::certificates::{Kind, Pair, authority, expired, intermediate, signed};
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use crate::talk::Ask;
use openssl::ssl::{SslSession, SslVersion};
use std::io::{Read, Write};
use std::net::SocketAddr;

const VERSIONS: [SslVersion; 2] = [SslVersion::TLS1_2, SslVersion::TLS1_3];

/// A process that answers its facts about a connection, a line a fact.
fn told(words: &str, facts: &[&str], files: &[(&str, Vec<u8>)]) -> Terse {
    let facts: String = facts.iter().map(|fact| format!("{fact}=%[{fact}]\\n")).collect();
    let text = format!(
        "global\n nbthread 2\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl {words}\n \
         http-request set-var(txn.host) hdr(host),lower\n \
         http-request deny deny_status 421 if {{ ssl_fc_has_sni }} !{{ ssl_fc_sni,lower,strcmp(txn.host) eq 0 }}\n \
         http-request return status 200 content-type text/plain lf-string \"{facts}\"\n"
    );
    files.iter().fold(Terse::with(&text), |terse, (name, content)| terse.file(name, content)).listen("web")
}

/// Returns whether a session was resumed, the session, and the answer.
fn asked(ask: &Ask<'_>, host: &str, address: SocketAddr) -> (bool, SslSession, String) {
    let mut stream = ask.connect(address).unwrap();
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    // OpenSSL forgets sessions of connections that do not end in order.
    let _ = stream.shutdown();
    (stream.ssl().session_reused(), stream.ssl().session().unwrap().to_owned(), answer)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn naming<'a>(name: Option<&'a str>, version: SslVersion, session: Option<&'a SslSession>) -> Ask<'a> {
    Ask { name, version: Some(version), session, ..Ask::default() }
}

fn client<'a>(version: SslVersion, (shown, above): (&'a Pair, &'a Pair), session: Option<&'a SslSession>) -> Ask<'a> {
    let protocols = Some(&b"\x08http/1.1"[..]);
    Ask { shown: Some(shown), above: Some(above), protocols, ..naming(Some("a.test"), version, session) }
}

#[test]
fn rules_see_what_they_saw_before() {
    let facts = [
        "ssl_fc_sni",
        "ssl_fc_has_sni",
        "ssl_fc_alpn",
        "ssl_fc_cipher",
        "ssl_fc_protocol",
        "ssl_fc_use_keysize",
        "ssl_fc_alg_keysize",
        "ssl_fc_curve",
        "ssl_fc_crtname",
        "ssl_c_used",
        "ssl_c_verify",
        "ssl_c_err",
        "ssl_c_ca_err",
        "ssl_c_ca_err_depth",
        "ssl_c_s_dn",
        "ssl_c_s_dn(cn)",
        "ssl_c_i_dn(cn)",
        "ssl_c_r_dn",
        "ssl_c_r_dn(cn)",
        "ssl_c_r_dn(,0,rfc2253)",
        "ssl_c_san",
        "ssl_c_sha1,hex",
        "ssl_c_serial,hex",
        "ssl_c_der,sha1,hex",
        "ssl_c_chain_der,hex",
        "ssl_c_notafter",
        "ssl_c_key_alg",
        "ssl_c_sig_alg",
        "ssl_c_version",
        "ssl_f_s_dn",
        "ssl_f_sha1,hex",
        "ssl_f_key_alg",
    ];
    let root = authority("root");
    let inner = intermediate("inner", &root);
    let (good, late) = (signed(Kind::Ecdsa, &["client"], &inner), expired("late", &inner));
    let strange = intermediate("strange", &authority("nobody"));
    let stranger = signed(Kind::Ecdsa, &["stranger"], &strange);
    let files = [
        ("a.pem", signed(Kind::Ecdsa, &["a.test", "b.test"], &root).pem()),
        ("r.pem", signed(Kind::Rsa, &["a.test", "b.test"], &root).pem()),
        ("root.pem", root.certificate_pem()),
    ];
    let clients: [(&Pair, &Pair, [&str; 3]); 3] = [
        (&good, &inner, ["ssl_c_err=0", "ssl_c_ca_err=0", "ssl_c_r_dn=/CN=root"]),
        (&late, &inner, ["ssl_c_err=10", "ssl_c_ca_err=0", "ssl_c_r_dn=/CN=root"]),
        (&stranger, &strange, ["ssl_c_err=0", "ssl_c_ca_err=20", "ssl_c_r_dn=/CN=strange"]),
    ];
    for words in ["", "no-tls-tickets", "allow-0rtt"] {
        let words = format!("crt a.pem crt r.pem ca-file root.pem verify optional crt-ignore-err all ca-ignore-err all {words}");
        let terse = told(&words, &facts, &files).start();
        for version in VERSIONS {
            for (shown, above, seen) in clients {
                let (_, mut session, first) = asked(&client(version, (shown, above), None), "a.test", terse.address("web"));
                for seen in ["ssl_fc_sni=a.test", "ssl_fc_has_sni=1", "ssl_f_key_alg=id-ecPublicKey"].iter().chain(&seen) {
                    assert!(first.contains(&format!("\n{seen}\n")), "{words} {version:?} {seen}: {first}");
                }
                for _ in 0..3 {
                    let (resumed, next, again) =
                        asked(&client(version, (shown, above), Some(&session)), "a.test", terse.address("web"));
                    assert!(resumed, "{words} {version:?}");
                    assert_eq!(body(&again), body(&first), "{words} {version:?}");
                    session = next;
                }
            }
        }
        // Of two kinds of keys, the kind that this client knows.
        for version in VERSIONS {
            for (signatures, kind) in [("RSA-PSS+SHA256:RSA+SHA256", "rsaEncryption"), ("ECDSA+SHA256", "id-ecPublicKey")] {
                let ask = |session| Ask {
                    name: Some("a.test"),
                    version: Some(version),
                    signatures: Some(signatures),
                    session,
                    ..Ask::default()
                };
                let (_, session, first) = asked(&ask(None), "a.test", terse.address("web"));
                assert!(first.contains(&format!("\nssl_f_key_alg={kind}\n")), "{first}");
                let (resumed, _, again) = asked(&ask(Some(&session)), "a.test", terse.address("web"));
                assert_eq!((resumed, body(&again)), (true, body(&first)), "{words} {version:?} {kind}");
            }
        }
        terse.end();
    }
}

/// RFC 6066 section 3: under another name a handshake is made anew; and a Host that is not the name is refused all the same.
#[test]
fn a_session_belongs_to_its_name() {
    let root = authority("root");
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test", "b.test"], &root).pem())];
    for words in ["", "no-tls-tickets", "allow-0rtt"] {
        let terse = told(&format!("crt a.pem {words}"), &["ssl_fc_sni", "ssl_fc_has_sni"], &files).start();
        for version in VERSIONS {
            for began in [Some("a.test"), None] {
                for name in [Some("a.test"), Some("b.test"), Some("A.test"), None] {
                    // Those that take early data are good for once.
                    let (_, session, first) = asked(&naming(began, version, None), "a.test", terse.address("web"));
                    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
                    let (resumed, _, again) =
                        asked(&naming(name, version, Some(&session)), name.unwrap_or("a.test"), terse.address("web"));
                    let facts = format!("ssl_fc_sni={}\nssl_fc_has_sni={}\n", name.unwrap_or_default(), u8::from(name.is_some()));
                    let is_same = name == began;
                    assert_eq!((resumed, body(&again)), (is_same, &*facts), "{words} {version:?} {began:?} {name:?}");
                    let (_, _, other) = asked(&naming(name, version, Some(&session)), "other.test", terse.address("web"));
                    assert_eq!(other.starts_with("HTTP/1.1 421"), name.is_some(), "{words} {version:?} {began:?} {name:?}");
                }
            }
        }
        terse.end();
    }
}

/// A chain that does not fit into a ticket is not lost: its session is not resumed.
#[test]
fn long_chains_are_shown_again() {
    let root = authority("root");
    let long = "x".repeat(60);
    let inner = crate::certificates::wide("inner", &long, 200, &root);
    let client = signed(Kind::Ecdsa, &["client"], &inner);
    let files = [("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()), ("root.pem", root.certificate_pem())];
    for words in ["", "no-tls-tickets"] {
        let words = format!("crt a.pem ca-file root.pem verify required {words}");
        let terse = told(&words, &["ssl_c_chain_der,hex", "ssl_c_r_dn"], &files).start();
        for version in VERSIONS {
            let ask =
                |session| Ask { version: Some(version), shown: Some(&client), above: Some(&inner), session, ..Ask::default() };
            let (_, session, first) = asked(&ask(None), "a.test", terse.address("web"));
            let (resumed, _, again) = asked(&ask(Some(&session)), "a.test", terse.address("web"));
            assert_eq!((resumed, body(&again)), (false, body(&first)), "{words} {version:?}");
        }
        terse.end();
    }
}
