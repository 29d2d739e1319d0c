//! A client that sends messages which TLS answers by itself, and takes no answer.

use crate::certificates::{Kind, authority, signed};
use crate::figures::command;
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use crate::talk::{Ask, Outcome};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;
use openssl::ssl::{SslRef, SslVersion};
use std::io::Write;
use std::time::Duration;

/// So many bytes of hellos fit nowhere: neither in sockets nor in what may wait.
const FLOOD: usize = 64 << 20;
const STALL: Duration = Duration::from_secs(1);

#[test]
fn who_renegotiates_for_ever_is_not_read_any_more_and_others_are_served() {
    let pem = signed(Kind::Rsa, &["a.test"], &authority("root")).pem();
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem ciphers ALL:eNULL:@SECLEVEL=0\n \
         http-request return status 200 content-type text/plain string ok\n"
    );
    let terse = Terse::with(&text).file("a.pem", pem).listen("web").start();
    let served = || {
        let outcome = Ask::default().outcome(terse.address("web"));
        assert!(matches!(&outcome, Outcome::Served { status, .. } if status.ends_with("200 OK")), "{outcome:?}");
    };
    // Records that are not encrypted: then the test can make them itself, which OpenSSL does not without an answer to the first.
    let ask = Ask { version: Some(SslVersion::TLS1_2), ciphers: Some("NULL-SHA256"), ..Ask::default() };
    let stream = ask.connect(terse.address("web")).unwrap();
    let key = mac_key(stream.ssl());
    let mut socket = stream.get_ref();
    socket.set_write_timeout(Some(STALL)).unwrap();
    let (mut sent, mut number) = (0, 1);
    while sent < FLOOD {
        let hellos: Vec<u8> = (number..number + 500).flat_map(|number| hello(&key, number)).collect();
        // It may be closed instead.
        if socket.write_all(&hellos).is_err() {
            break;
        }
        (sent, number) = (sent + hellos.len(), number + 500);
        if number % 5000 == 1 {
            served();
        }
    }
    assert!(sent < FLOOD, "everything was taken");
    served();
    let held = command(&terse, "show info").lines().find_map(|line| line.strip_prefix("TlsReadsHeld: ").map(str::to_owned));
    assert!(held.as_deref().is_some_and(|held| held != "0"), "{held:?}");
    drop(stream);
    terse.end();
}

/// A record with a client's hello in it.
pub fn hello(key: &[u8], number: u64) -> Vec<u8> {
    let mut message = vec![1, 0, 0, 40];
    message.resize(44, 0);
    record(key, number, 22, &message)
}

/// A record that is not encrypted (RFC 5246 section 6.2.3.1).
pub fn record(key: &[u8], number: u64, kind: u8, content: &[u8]) -> Vec<u8> {
    let head = [kind, 3, 3];
    let len = u16::try_from(content.len()).unwrap();
    let mac = hmac(key, &[&number.to_be_bytes()[..], &head, &len.to_be_bytes(), content]);
    [&head[..], &(len + 32).to_be_bytes(), content, &mac].concat()
}

/// The key of the client's checksums (RFC 5246 section 6.3): the first of what its secret is expanded to.
pub fn mac_key(ssl: &SslRef) -> Vec<u8> {
    let session = ssl.session().unwrap();
    let (mut secret, mut client, mut server) = ([0; 48], [0; 32], [0; 32]);
    session.master_key(&mut secret);
    ssl.client_random(&mut client);
    ssl.server_random(&mut server);
    let seed = [&b"key expansion"[..], &server, &client].concat();
    hmac(&secret, &[&hmac(&secret, &[&seed]), &seed])
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let key = PKey::hmac(key).unwrap();
    let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
    parts.iter().for_each(|part| signer.update(part).unwrap());
    signer.sign_to_vec().unwrap()
}
