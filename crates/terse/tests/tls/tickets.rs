//! Tickets with keys that processes share.

use crate::certificates::{Kind, Pair, authority, signed};
use crate::figures::{command, session};
use crate::support::proxy::DEFAULTS;
use crate::support::{Terse, until};
use crate::talk::{Ask, Outcome};
use openssl::ssl::{SslSession, SslVersion};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;

/// A key in base64.
fn key(byte: u8, len: usize) -> String {
    openssl::base64::encode_block(&vec![byte; len]).replace('\n', "")
}

fn keys(bytes: impl IntoIterator<Item = u8>, len: usize) -> String {
    bytes.into_iter().map(|byte| key(byte, len) + "\n").collect()
}

fn process(words: &str, keys: &str, pem: &[u8]) -> Terse {
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem tls-ticket-keys keys {words}\n http-request return status 200\n"
    );
    Terse::with(&text).file("a.pem", pem).file("keys", keys).listen("web").start()
}

/// True if a session is resumed.
fn goes_on(version: SslVersion, session: &SslSession, address: SocketAddr) -> bool {
    let mut stream = Ask { session: Some(session), ..asking(version) }.connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    // OpenSSL does not offer a session again whose connection has not ended in order.
    let _ = stream.shutdown();
    stream.ssl().session_reused()
}

fn asking(version: SslVersion) -> Ask<'static> {
    Ask { version: Some(version), ..Ask::default() }
}

#[test]
fn a_ticket_of_one_process_is_taken_by_the_next() {
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    for len in [48, 80] {
        let one = process("", &keys(1..=3, len), &pem);
        let next = process("", &keys(1..=4, len), &pem);
        let strange = process("", &keys(11..=13, len), &pem);
        for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
            let first = session(&asking(version), one.address("web"));
            assert!(goes_on(version, &first, one.address("web")), "{version:?}");
            assert!(goes_on(version, &first, next.address("web")), "{version:?}: the key of the one is the oldest of the next");
            assert!(!goes_on(version, &first, strange.address("web")), "{version:?}");
            let newer = session(&asking(version), next.address("web"));
            assert!(goes_on(version, &newer, one.address("web")), "{version:?}: what is current there is the next here");
        }
        [one, next, strange].into_iter().for_each(Terse::end);
    }
}

#[test]
fn keys_turn_on_the_stats_socket() {
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    let terse = process("", &keys(1..=3, 48), &pem);
    let file = command(&terse, "show tls-keys");
    let file = file.strip_prefix("# id (file)\n0 (").and_then(|rest| rest.split_once(')')).unwrap().0.to_owned();
    assert!(file.ends_with("keys"), "{file}");
    let shown = |which: &str| command(&terse, &format!("show tls-keys {which}"));
    let lines = |bytes: [u8; 3]| {
        let lines: String = (0..).zip(bytes).map(|(at, byte)| format!("0.{at} {}\n", key(byte, 48))).collect();
        format!("# id secret\n# 0 ({file})\n{lines}\n")
    };
    assert_eq!(shown("#0"), lines([1, 2, 3]));
    let made = session(&asking(SslVersion::TLS1_2), terse.address("web"));
    for (byte, is_known) in [(4, true), (5, false)] {
        let said = command(&terse, &format!("set ssl tls-key {file} {}", key(byte, 48)));
        assert_eq!(said, "TLS ticket key updated!\n\n");
        assert_eq!(goes_on(SslVersion::TLS1_2, &made, terse.address("web")), is_known, "{byte}");
    }
    for which in [&*file, "*"] {
        assert_eq!(shown(which), lines([3, 4, 5]));
    }
    for (words, said) in [
        (format!("#0 {}", key(6, 80)), "'set ssl tls-key' received a key of wrong size."),
        ("#0 ???".into(), "'set ssl tls-key' received invalid base64 encoded TLS key."),
        ("#1 AAAA".into(), "'set ssl tls-key' unable to locate referenced filename"),
        ("#0".into(), "'set ssl tls-key' expects a filename and the new TLS key in base64 encoding."),
    ] {
        assert_eq!(command(&terse, &format!("set ssl tls-key {words}")).trim_end(), said);
    }
    assert_eq!(shown("other").trim_end(), "'show tls-keys' unable to locate referenced filename");
    assert_eq!(shown("#0"), lines([3, 4, 5]), "nothing of that was taken");
    terse.end();
}

/// A client that has shown no certificate does not get in by a session of another line, nor by one made under other authorities.
#[test]
fn shared_keys_do_not_take_what_was_not_shown() {
    let (root, other) = (authority("root"), authority("other"));
    let site = signed(Kind::Ecdsa, &["a.test"], &root).pem();
    let client = signed(Kind::Ecdsa, &["client"], &root);
    let asks = |ca: &Pair| {
        let text = format!(
            "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem tls-ticket-keys keys\n \
             bind fd@${{asks}} ssl crt a.pem tls-ticket-keys keys verify required ca-file ca.pem\n http-request return status 200\n"
        );
        let terse = Terse::with(&text).file("a.pem", &site).file("keys", keys(1..=3, 80)).file("ca.pem", ca.certificate_pem());
        terse.listen("web").listen("asks").start()
    };
    let (one, next, changed) = (asks(&root), asks(&root), asks(&other));
    for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
        let open = session(&asking(version), one.address("web"));
        assert!(goes_on(version, &open, next.address("web")), "{version:?}");
        let refused = Ask { session: Some(&open), ..asking(version) }.outcome(next.address("asks"));
        assert_eq!(refused, Outcome::Refused, "{version:?}: nothing was shown");
        let known = session(&Ask { shown: Some(&client), ..asking(version) }, one.address("asks"));
        assert!(goes_on(version, &known, next.address("asks")), "{version:?}");
        let refused = Ask { session: Some(&known), ..asking(version) }.outcome(changed.address("asks"));
        assert_eq!(refused, Outcome::Refused, "{version:?}: others are trusted there");
    }
    [one, next, changed].into_iter().for_each(Terse::end);
}

/// Bytes that were sent and shown are nowhere in the process's memory any more, nor is the text of the file. The keys are, as
/// bytes.
#[test]
fn keys_leave_no_text_behind() {
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    let made = || {
        let mut bytes = [0; 80];
        openssl::rand::rand_bytes(&mut bytes).unwrap();
        openssl::base64::encode_block(&bytes).replace('\n', "")
    };
    let (read, sent) = ([made(), made(), made()], made());
    let terse = process("", &read.iter().map(|key| format!("{key}\n")).collect::<String>(), &pem);
    let Ok(memory) = memory(&terse) else {
        eprintln!("skipped: this system does not let a test read the memory of what it has started (ptrace_scope)");
        return terse.end();
    };
    assert!(command(&terse, &format!("echo x; set ssl tls-key keys {sent}; show tls-keys *")).contains(&sent));
    assert!(command(&terse, &format!("set ssl tls-key keys {sent} <<\n{sent}\n")).contains("updated"));
    for text in read.iter().chain([&sent]) {
        // A part of it, as a block whose beginning was overwritten with something else would have it.
        until("the text to go", || (!remembers(&terse, &memory, &text.as_bytes()[20..90])).then_some(()));
    }
    assert!(remembers(&terse, &memory, &openssl::base64::decode_block(&sent).unwrap()[..40]), "the key itself is there");
    terse.end();
}

/// A process's memory.
fn memory(terse: &Terse) -> io::Result<File> {
    File::open(format!("/proc/{}/mem", terse.pid().as_raw_nonzero()))
}

/// True if bytes are in the writable memory of a process.
fn remembers(terse: &Terse, memory: &File, bytes: &[u8]) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", terse.pid().as_raw_nonzero())).unwrap();
    let spans = maps.lines().filter_map(|line| {
        let (span, rest) = line.split_once(' ')?;
        let (from, to) = span.split_once('-').filter(|_| rest.starts_with("rw"))?;
        Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
    });
    spans.into_iter().any(|(from, to)| {
        let mut all = vec![0; usize::try_from(to - from).unwrap()];
        // Memory that was given back meanwhile holds nothing.
        memory.read_exact_at(&mut all, from).is_ok() && memchr::memmem::find(&all, bytes).is_some()
    })
}
