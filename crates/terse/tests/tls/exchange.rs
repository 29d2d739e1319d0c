//! Certificates, authorities and lists exchanged on the stats socket.

use crate::certificates::{Kind, Pair, authority, expired, intermediate, revoked, signed, weak};
use crate::figures::command;
use crate::support::proxy::DEFAULTS;
use crate::support::{Terse, program};
use crate::talk::{Ask, Outcome};
use openssl::ssl::SslVersion;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A process whose `web` has these arguments after `ssl`.
fn configured(words: &str, files: &[(&str, Vec<u8>)]) -> Terse {
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl {words}\n \
         http-request return status 200\n"
    );
    files.iter().fold(Terse::with(&text), |terse, (name, content)| terse.file(name, content)).listen("web")
}

fn with_payload(terse: &Terse, line: &str, payload: &[u8]) -> String {
    command(terse, &format!("{line} <<\n{}\n", String::from_utf8_lossy(payload).trim_end()))
}

/// Common name of the certificate that a client gets for a name.
fn shown(terse: &Terse, name: &str) -> String {
    match (Ask { name: Some(name), ..Ask::default() }).outcome(terse.address("web")) {
        Outcome::Served { subject, .. } => subject,
        Outcome::Refused => "refused".into(),
    }
}

#[test]
fn a_certificate_is_exchanged_once_it_is_committed() {
    let root = authority("root");
    let (old, new) = (signed(Kind::Ecdsa, &["old", "a.test"], &root), signed(Kind::Rsa, &["new", "b.test"], &root));
    let terse = configured("crt a.pem", &[("a.pem", old.pem())]).start();
    assert_eq!(with_payload(&terse, "set ssl cert a.pem", &new.pem()), "Transaction created for certificate a.pem!\n\n");
    assert_eq!(command(&terse, "show ssl cert"), "# transaction\n*a.pem\n# filename\na.pem\n\n");
    assert_eq!(shown(&terse, "b.test"), "old");
    let (before, after) = (command(&terse, "show ssl cert a.pem"), command(&terse, "show ssl cert *a.pem"));
    assert!(before.contains("\nStatus: Used\n") && before.contains("\nSubject: /CN=old\n"), "{before}");
    assert!(after.starts_with("Filename: *a.pem\n") && after.contains("\nStatus: Uncommitted\n"), "{after}");
    assert!(after.contains("\nAlgorithm: RSA2048\n") && after.contains("\nIssuer: /CN=root\n"), "{after}");
    assert_eq!(command(&terse, "commit ssl cert a.pem"), "Committing a.pem.\nSuccess!\n\n");
    assert_eq!((shown(&terse, "b.test"), command(&terse, "show ssl cert")), ("new".into(), "# filename\na.pem\n\n".into()));
    let dumped = command(&terse, "dump ssl cert a.pem");
    assert_eq!(dumped.trim_end().as_bytes(), [new.key_pem(), new.certificate_pem()].concat().trim_ascii_end());
    terse.end();
}

#[test]
fn a_script_renews_a_certificate() {
    let root = authority("root");
    let (old, new) = (signed(Kind::Ecdsa, &["old", "a.test"], &root), signed(Kind::Rsa, &["new", "b.test"], &root));
    let script = r#"
local folder = ...
local function content(name)
  local file = io.open(folder .. "/" .. name)
  local text = file:read("a")
  file:close()
  return text
end
core.register_cli({ "renew" }, "Renews a certificate.", function(applet, _, file, crt, key)
  local ok, reason = pcall(CertCache.set, { filename = file, crt = content(crt), key = key and content(key) })
  applet:send(tostring(ok) .. " " .. tostring(reason):gsub("\n.*", "") .. "\n")
end)
"#;
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n tune.lua.bool-sample-conversion normal\n \
         lua-load \"${{dir}}/s.lua\" \"${{dir}}\"\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n http-request return status 200\n"
    );
    let terse = Terse::with(&text)
        .file("s.lua", script)
        .file("a.pem", old.pem())
        .file("new.pem", new.pem())
        .file("new.crt", new.certificate_pem())
        .file("new.key", new.key_pem())
        .file("old.key", old.key_pem());
    let terse = terse.file("wrong.pem", "nonsense").listen("web").start();
    let refused = |line: &str, said: &str| {
        let answer = command(&terse, line);
        assert!(answer.starts_with("false ") && answer.contains(said), "{line}: {answer}");
        assert_eq!(
            (shown(&terse, "b.test"), command(&terse, "show ssl cert")),
            ("old".into(), "# filename\na.pem\n\n".into()),
            "{line}"
        );
    };
    refused("renew none.pem new.pem", "CertCache.set: Can't replace a certificate which is not referenced by the configuration!");
    refused("renew a.pem wrong.pem", "there is no certificate in it");
    refused("renew a.pem new.crt old.key", "CertCache.set: ");
    assert_eq!(command(&terse, "renew a.pem new.crt new.key"), "true nil\n\n");
    assert_eq!((shown(&terse, "b.test"), command(&terse, "show ssl cert")), ("new".into(), "# filename\na.pem\n\n".into()));
    terse.end();
}

#[test]
fn what_is_wrong_takes_no_place() {
    let root = authority("root");
    let (old, new) = (signed(Kind::Ecdsa, &["old"], &root), signed(Kind::Ecdsa, &["new"], &root));
    let locked = new.key.private_key_to_pem_pkcs8_passphrase(openssl::symm::Cipher::aes_128_cbc(), b"secret").unwrap();
    let terse = configured("crt a.pem ciphers aECDSA ssl-max-ver TLSv1.2", &[("a.pem", old.pem())]).start();
    for (payload, reason) in [
        (b"nonsense".to_vec(), "there is no certificate in it"),
        (new.key_pem(), "there is no certificate in it"),
        ([new.certificate_pem(), locked].concat(), "the private key is encrypted"),
    ] {
        let said = with_payload(&terse, "set ssl cert a.pem", &payload);
        assert!(said.contains(reason) && said.ends_with("\nCan't load the payload\nCan't update a.pem!\n\n"), "{said}");
        assert!(!said.contains("PRIVATE KEY"), "{said}");
    }
    // A part of the exchange; the key that is there does not fit.
    with_payload(&terse, "set ssl cert a.pem", &new.certificate_pem());
    let said = command(&terse, "commit ssl cert a.pem");
    assert_eq!(said, "'a.pem': the private key does not belong to the certificate\nCan't commit a.pem!\n\n");
    assert_eq!(shown(&terse, "x"), "old");
    // The other part.
    let said = with_payload(&terse, "set ssl cert a.pem.key", &new.key_pem());
    assert_eq!(said, "Transaction updated for certificate a.pem!\n\n");
    assert_eq!(command(&terse, "commit ssl cert a.pem"), "Committing a.pem.\nSuccess!\n\n");
    assert_eq!(shown(&terse, "x"), "new");
    with_payload(&terse, "set ssl cert a.pem", &old.pem());
    assert_eq!(command(&terse, "abort ssl cert a.pem"), "Transaction aborted for certificate 'a.pem'!\n\n");
    assert_eq!(command(&terse, "abort ssl cert a.pem"), "No ongoing transaction!\n\n");
    assert_eq!(command(&terse, "commit ssl cert a.pem"), "No ongoing transaction! !\nCan't commit a.pem!\n\n");
    assert_eq!(shown(&terse, "x"), "new");
    terse.end();
}

/// Every client would refuse it.
#[test]
fn what_has_expired_takes_no_place() {
    let root = authority("root");
    let (old, late) = (signed(Kind::Ecdsa, &["old"], &root), expired("late", &root));
    for (global, is_taken) in [("", false), ("ssl-expired-certificates accept", true)] {
        let text = format!(
            "global\n nbthread 1\n {global}\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
             bind fd@${{web}} ssl crt-list list\n http-request return status 200\n"
        );
        let terse = Terse::with(&text).file("list", "a.pem\n").file("a.pem", old.pem()).listen("web").start();
        let said = with_payload(&terse, "set ssl cert a.pem", &late.pem());
        let reason = "'a.pem': the certificate of '/CN=late' has expired: its time was over on ";
        assert_eq!(
            said.starts_with(reason) && said.ends_with("\nCan't load the payload\nCan't update a.pem!\n\n"),
            !is_taken,
            "{said}"
        );
        assert_eq!(command(&terse, "commit ssl cert a.pem").contains("Success!"), is_taken);
        assert_eq!(shown(&terse, "x"), if is_taken { "late" } else { "old" });
        // Nor does it come in anew.
        command(&terse, "new ssl cert b.pem");
        with_payload(&terse, "set ssl cert b.pem", &late.pem());
        command(&terse, "commit ssl cert b.pem");
        let said = command(&terse, "add ssl crt-list list b.pem");
        assert_eq!((said.contains("'b.pem' is empty!"), said.contains("Success!")), (!is_taken, is_taken), "{said}");
        terse.end();
    }
}

/// The parts belong together, but no context takes them: clients that could use them do not get them either.
#[test]
fn contexts_that_cannot_be_made_change_nothing() {
    let root = authority("root");
    let (old, new) = (signed(Kind::Ecdsa, &["old"], &root), signed(Kind::Rsa, &["new"], &root));
    let text = format!(
        "global\n nbthread 1\n ssl-security-level 3\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt a.pem\n http-request return status 200\n"
    );
    // Level 3 wants RSA keys of 3072 bits.
    let terse = Terse::with(&text).file("a.pem", old.pem()).listen("web").start();
    with_payload(&terse, "set ssl cert a.pem", &new.pem());
    let said = command(&terse, "commit ssl cert a.pem");
    assert!(said.starts_with("Committing a.pem\n'a.pem': OpenSSL does not take it: "), "{said}");
    assert!(said.ends_with("\nFailed!\n\n"), "{said}");
    assert_eq!(shown(&terse, "x"), "old");
    let said = command(&terse, "commit ssl cert a.pem");
    assert_eq!(said, "No ongoing transaction! !\nCan't commit a.pem!\n\n", "the next change begins anew");
    assert!(command(&terse, "show ssl cert a.pem").contains("\nSubject: /CN=old\n"));
    let said = with_payload(&terse, "set ssl cert a.pem", &signed(Kind::Ecdsa, &["mended"], &root).pem());
    assert_eq!(said, "Transaction created for certificate a.pem!\n\n");
    assert!(command(&terse, "commit ssl cert a.pem").ends_with("Success!\n\n"));
    assert_eq!(shown(&terse, "x"), "mended");
    terse.end();
}

#[test]
fn all_who_use_a_file_get_it_and_nobody_waits() {
    let root = authority("root");
    let pair = |name: &str| signed(Kind::Ecdsa, &[name, "a.test"], &root);
    let pairs = [pair("one"), pair("two")];
    let text = format!(
        "global\n nbthread 2\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend end\n \
         bind unix@${{dir}}/end ssl crt site.pem ca-file root.pem verify required\n \
         http-request return status 200 hdr Client %[ssl_c_s_dn(CN)]\n\
         listen web\n http-reuse always\n bind fd@${{web}} ssl crt a.pem\n bind fd@${{other}} ssl strict-sni crt a.pem\n \
         server s unix@${{dir}}/end ssl verify none crt a.pem\n"
    );
    let terse = Terse::with(&text).file("a.pem", pairs[0].pem()).file("site.pem", pair("site").pem());
    let terse = terse.file("root.pem", root.certificate_pem()).listen("web").listen("other").start();
    let told = |name: &str| {
        let mut stream = Ask { name: Some("a.test"), ..Ask::default() }.connect(terse.address(name)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let client = answer.lines().find_map(|line| line.strip_prefix("Client: ")).unwrap_or_else(|| panic!("{answer}"));
        (crate::talk::common_name(&stream.ssl().peer_certificate().unwrap()), client.to_owned())
    };
    assert_eq!((told("web").0, told("other").1), ("one".into(), "one".into()));
    let (done, addresses) = (Arc::new(AtomicBool::new(false)), [terse.address("web"), terse.address("other")]);
    let clients = addresses.map(|address| {
        let done = done.clone();
        std::thread::spawn(move || {
            let ask = Ask { name: Some("a.test"), ..Ask::default() };
            std::iter::repeat_with(|| ask.outcome(address)).take_while(|_| !done.load(Relaxed)).collect::<Vec<_>>()
        })
    });
    for number in 1..=20 {
        with_payload(&terse, "set ssl cert a.pem", &pairs[number % 2].pem());
        assert_eq!(command(&terse, "commit ssl cert a.pem"), "Committing a.pem...\nSuccess!\n\n");
        let name = ["one", "two"][number % 2];
        assert_eq!([told("web"), told("other")], [(name.to_owned(), name.to_owned()), (name.to_owned(), name.to_owned())]);
    }
    done.store(true, Relaxed);
    for outcome in clients.into_iter().flat_map(|client| client.join().unwrap()) {
        let Outcome::Served { subject, status, .. } = outcome else { panic!("a client was refused") };
        assert!((subject == "one" || subject == "two") && status.contains("200"), "{subject} {status}");
    }
    terse.end();
}

#[test]
fn authorities_and_what_they_revoke_are_exchanged() {
    let (root, other) = (authority("root"), authority("other"));
    let client = signed(Kind::Ecdsa, &["client"], &other);
    let site = signed(Kind::Ecdsa, &["a.test"], &root);
    let files = [
        ("a.pem", site.pem()),
        ("ca.pem", root.certificate_pem()),
        ("crl.pem", [revoked(&[], &root), revoked(&[], &other)].concat()),
    ];
    let terse = configured("crt a.pem verify required ca-file ca.pem crl-file crl.pem", &files).start();
    let address = terse.address("web");
    let ask = || Ask { shown: Some(&client), version: Some(SslVersion::TLS1_2), ..Ask::default() };
    let served = |session| matches!((Ask { session, ..ask() }).outcome(address), Outcome::Served { .. });
    assert!(!served(None));
    let said = with_payload(&terse, "add ssl ca-file ca.pem", &other.certificate_pem());
    assert_eq!(said, "transaction created for CA ca.pem!\n\n");
    let said = command(&terse, "show ssl ca-file");
    assert_eq!(said, "# transaction\n*ca.pem - 2 certificate(s)\n# filename\nca.pem - 1 certificate(s)\n\n");
    assert!(!served(None));
    assert_eq!(command(&terse, "commit ssl ca-file ca.pem"), "Committing ca.pem.\nSuccess!\n\n");
    let said = command(&terse, "show ssl ca-file ca.pem:2");
    assert!(said.starts_with("Filename: ca.pem\nStatus: Used\n \nCertificate #2:\nSerial: "), "{said}");
    assert!(said.contains("\nSubject: /CN=other\n") && !said.contains("CN=root"), "{said}");
    let session = {
        let mut stream = ask().connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        let _ = stream.shutdown();
        stream.ssl().session().unwrap().to_owned()
    };
    let resumed = (Ask { session: Some(&session), ..ask() }).outcome(address);
    assert!(matches!(resumed, Outcome::Served { resumed: true, .. }), "{resumed:?}");

    let lists = [revoked(&[], &root), revoked(&[&client], &other)].concat();
    assert_eq!(with_payload(&terse, "set ssl crl-file crl.pem", &lists), "transaction created for CRL crl.pem!\n\n");
    let said = command(&terse, "show ssl crl-file *crl.pem:2");
    assert!(said.starts_with("Filename: *crl.pem\nStatus: Uncommitted\n \nCertificate Revocation List #2:\nVersion "), "{said}");
    assert!(said.contains("\nIssuer: /CN=other\n") && said.contains("\nRevoked Certificates:\n    Serial Number: "), "{said}");
    assert!(served(None));
    assert_eq!(command(&terse, "commit ssl crl-file crl.pem"), "Committing crl.pem.\nSuccess!\n\n");
    // A client that was let in before is not let in by the session that it kept.
    assert!(!served(None) && !served(Some(&session)));
    let said = with_payload(&terse, "set ssl ca-file ca.pem", b"nonsense");
    assert!(said.contains("there is no certificate in it\nInvalid payload\nCan't update ca.pem!"), "{said}");
    terse.end();
}

#[test]
fn lists_change() {
    let root = authority("root");
    let pem = |name: &str| signed(Kind::Ecdsa, &[name], &root).pem();
    let files = [
        ("list", b"one.pem one.test # first\n\none.pem [ssl-min-ver TLSv1.3] *.one.test !x.one.test\n".to_vec()),
        ("one.pem", pem("one")),
        ("root.pem", root.certificate_pem()),
    ];
    let terse = configured("crt-list list", &files).start();
    for (line, expected) in [
        ("new ssl cert two.pem", "New empty certificate store 'two.pem'!"),
        ("new ssl cert two.pem", "Certificate 'two.pem' already exists!"),
        ("add ssl crt-list list two.pem", "Can't edit the crt-list: certificate 'two.pem' is empty!"),
        ("add ssl crt-list list none.pem", "Can't edit the crt-list: certificate 'none.pem' does not exist!"),
        (
            "add ssl crt-list list <<\none.pem [key one.key]\n",
            "Can't edit the crt-list: files are not read while the process runs: 'set ssl cert' takes a certificate's parts",
        ),
        ("add ssl crt-list none two.pem", "Can't edit the crt-list: crt-list 'none' does not exist!"),
    ] {
        assert_eq!(command(&terse, line), format!("{expected}\n\n"), "{line}");
    }
    with_payload(&terse, "set ssl cert two.pem", &pem("two"));
    assert_eq!(command(&terse, "commit ssl cert two.pem"), "Committing two.pem\nSuccess!\n\n");
    assert!(command(&terse, "show ssl cert two.pem").contains("\nStatus: Unused\n"));
    let said = with_payload(&terse, "add ssl crt-list list", b"two.pem [ca-file root.pem verify required] two.test");
    assert!(said.contains("unable to load root.pem: ") && said.ends_with("\nFailed!\n\n"), "{said}");
    assert_eq!(shown(&terse, "two.test"), "one");
    let said = with_payload(&terse, "add ssl crt-list list", b"two.pem [ssl-max-ver TLSv1.2] two.test");
    assert_eq!(said, "Inserting certificate 'two.pem' in crt-list 'list'.\nSuccess!\n\n");
    assert_eq!((shown(&terse, "two.test"), shown(&terse, "y.one.test")), ("two".into(), "one".into()));
    assert_eq!(command(&terse, "show ssl crt-list"), "list\n\n");
    let lines = "# list\none.pem:1 one.test\none.pem:3 [ssl-min-ver TLSv1.3] *.one.test !x.one.test\n\
                 two.pem:4 [ssl-max-ver TLSv1.2] two.test\n\n";
    assert_eq!(command(&terse, "show ssl crt-list -n list/"), lines);
    let names = command(&terse, "show ssl sni -f web");
    let columns: Vec<Vec<&str>> = names.lines().skip(1).map(|line| line.split('\t').skip(1).take(4).collect()).collect();
    let expected = [
        ["one.test", "-", "ecdsa", "one.pem"],
        ["two.test", "-", "ecdsa", "two.pem"],
        ["*", "-", "ecdsa", "one.pem"],
        ["*.one.test", "!x.one.test ", "ecdsa", "one.pem"],
    ];
    assert_eq!(columns[..4], expected, "{names}");
    let over = |offset: &str| command(&terse, &format!("show ssl sni -A {offset}")).contains("one.test");
    assert_eq!((over(""), over("-t 60d")), (false, true));
    for (line, expected) in [
        ("del ssl cert two.pem", "Can't remove the certificate: certificate 'two.pem' in use, can't be deleted!"),
        ("del ssl crt-list list two.pem", "Entry 'two.pem' deleted in crtlist 'list'!"),
        ("del ssl crt-list list two.pem", "Can't delete the entry: certificate 'two.pem' can't be found in crt-list 'list'!"),
        ("del ssl cert two.pem", "Certificate 'two.pem' deleted!"),
        (
            "del ssl crt-list list one.pem",
            "Can't delete the entry: found the certificate 'one.pem' in several entries, please specify a line number preceded by colons (1, 3)!",
        ),
        ("del ssl crt-list list one.pem:3", "Entry 'one.pem' deleted in crtlist 'list'!"),
    ] {
        assert_eq!(command(&terse, line), format!("{expected}\n\n"), "{line}");
    }
    // An entry for any name can be removed again, but not the first entry of the list.
    command(&terse, "new ssl cert two.pem");
    with_payload(&terse, "set ssl cert two.pem", &pem("two"));
    command(&terse, "commit ssl cert two.pem");
    assert!(with_payload(&terse, "add ssl crt-list list", b"two.pem *").contains("Success!"));
    assert_eq!(shown(&terse, "two.test"), "two");
    assert_eq!(command(&terse, "del ssl crt-list list two.pem"), "Entry 'two.pem' deleted in crtlist 'list'!\n\n");
    let said = command(&terse, "del ssl crt-list list one.pem:1");
    assert!(said.contains("it is used as default certificate by the following frontends:\n\t- "), "{said}");
    assert_eq!(shown(&terse, "two.test"), "one");
    terse.end();
}

/// Commands whose answers are the same in Debian's haproxy.
#[test]
fn haproxys_words() {
    let Some(haproxy) = program::find("haproxy") else { return };
    let root = authority("root");
    let (one, two) = (signed(Kind::Ecdsa, &["one"], &root), signed(Kind::Ecdsa, &["two"], &root));
    let files = [
        ("one.pem", one.pem()),
        ("ca.pem", root.certificate_pem()),
        ("crl.pem", revoked(&[&two], &root)),
        ("list", b"one.pem one.test\n".to_vec()),
    ];
    let ask: &[(&str, Option<Vec<u8>>)] = &[
        ("set ssl cert none.pem", Some(two.pem())),
        ("set ssl cert one.pem", Some(two.pem())),
        ("show ssl cert", None),
        ("commit ssl cert other.pem", None),
        ("abort ssl cert other.pem", None),
        ("del ssl cert one.pem", None),
        ("commit ssl cert one.pem", None),
        ("commit ssl cert one.pem", None),
        ("show ssl cert none.pem", None),
        ("new ssl cert new.pem", None),
        ("del ssl cert new.pem", None),
        ("del ssl cert new.pem", None),
        ("show ssl ca-file", None),
        ("new ssl ca-file new.pem", None),
        ("new ssl ca-file new.pem", None),
        ("set ssl ca-file new.pem", Some(root.certificate_pem())),
        ("show ssl ca-file", None),
        ("abort ssl ca-file other.pem", None),
        ("commit ssl ca-file new.pem", None),
        ("del ssl ca-file new.pem", None),
        ("del ssl ca-file ca.pem", None),
        ("show ssl crl-file", None),
        ("show ssl crl-file crl.pem", None),
        ("set ssl crl-file none.pem", Some(root.certificate_pem())),
        ("del ssl crl-file crl.pem", None),
        ("add ssl crt-list list one.pem", None),
        ("show ssl crt-list", None),
        ("show ssl crt-list -n list", None),
        ("del ssl crt-list list one.pem:9", None),
        ("del ssl crt-list list one.pem:2", None),
        ("show ssl crt-list list", None),
    ];
    let answers = |terse: &Terse| -> Vec<String> {
        let answer = |(line, payload): &(&str, Option<Vec<u8>>)| match payload {
            Some(payload) => with_payload(terse, line, payload),
            None => command(terse, line),
        };
        ask.iter().map(answer).collect()
    };
    let words = "crt-list list verify optional ca-file ca.pem crl-file crl.pem";
    let ours = configured(words, &files).start();
    let theirs = configured(words, &files).program(&haproxy).start();
    // The number of contexts made is a number of dots, and some answers end in more than one empty line there.
    // HAProxy's own client makes it read the system's trusted certificates.
    let plain = |answer: String| {
        let lines = answer.lines().filter(|line| !line.starts_with("@system-ca "));
        lines.map(|line| line.trim_end_matches('.')).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    };
    let pairs =
        ask.iter().map(|(line, _)| line).zip(answers(&ours).into_iter().map(plain)).zip(answers(&theirs).into_iter().map(plain));
    let different: Vec<_> = pairs.filter(|((_, ours), theirs)| ours != theirs).collect();
    assert!(different.is_empty(), "{different:#?}");
    ours.end();
}

/// A file with carriage returns and a blank line inside is taken whole.
#[test]
fn payloads_may_have_carriage_returns() {
    let root = authority("root");
    let inner = intermediate("inner", &root);
    let new = signed(Kind::Ecdsa, &["new"], &inner);
    let site = ("a.pem", signed(Kind::Ecdsa, &["old"], &root).pem());
    let text = [new.key_pem(), new.certificate_pem(), b"\n".to_vec(), inner.certificate_pem()].concat();
    let text = String::from_utf8(text).unwrap().replace('\n', "\r\n");
    for (before, after) in [("<<\n", "\n"), ("<<END\n", "END\n"), ("<<END\r\n", "END\r\n")] {
        let terse = configured("crt a.pem", std::slice::from_ref(&site)).start();
        let said = command(&terse, &format!("set ssl cert a.pem {before}{text}{after}"));
        assert_eq!(said, "Transaction created for certificate a.pem!\n\n", "{before:?}");
        assert_eq!(command(&terse, "commit ssl cert a.pem"), "Committing a.pem.\nSuccess!\n\n");
        let stream = Ask::default().connect(terse.address("web")).unwrap();
        let chain: Vec<_> = stream.ssl().peer_cert_chain().unwrap().iter().map(|shown| shown.to_owned()).collect();
        assert_eq!(chain.iter().map(crate::talk::common_name).collect::<Vec<_>>(), ["new", "inner"], "{before:?}");
        terse.end();
    }
}

/// After a commit that failed the next change begins anew, of this file or of another.
#[test]
fn what_failed_stands_in_nobodys_way() {
    let root = authority("root");
    let (one, two, short) = (signed(Kind::Ecdsa, &["one"], &root), signed(Kind::Ecdsa, &["two"], &root), weak("one", &root));
    let files = [("a.pem", one.pem()), ("b.pem", two.pem()), ("ca.pem", root.certificate_pem()), ("crl.pem", revoked(&[], &root))];
    let terse = configured("crt a.pem crt b.pem verify optional ca-file ca.pem crl-file crl.pem", &files).start();
    for payload in [short.pem(), [one.certificate_pem(), two.key_pem()].concat()] {
        for next in ["a.pem", "b.pem"] {
            assert_eq!(with_payload(&terse, "set ssl cert a.pem", &payload), "Transaction created for certificate a.pem!\n\n");
            let said = command(&terse, "commit ssl cert a.pem");
            assert!(said.contains("Failed!\n") || said.contains("Can't commit a.pem!\n"), "{said}");
            assert!(!command(&terse, "show ssl cert").contains('*'), "{said}");
            let good = if next == "a.pem" { &one } else { &two };
            let said = with_payload(&terse, &format!("set ssl cert {next}"), &good.pem());
            assert_eq!(said, format!("Transaction created for certificate {next}!\n\n"));
            assert!(command(&terse, &format!("commit ssl cert {next}")).ends_with("Success!\n\n"));
        }
    }
    assert_eq!([shown(&terse, "one"), shown(&terse, "two")], ["one", "two"]);
    terse.end();
}

/// Commands of deploy hooks: each renewal is one process of a shell that looks for certain words in the answers.
#[test]
fn deploy_hooks_renew_again_and_again() {
    let root = authority("root");
    let inner = intermediate("inner", &root);
    let full = |pair: &Pair| [pair.key_pem(), pair.certificate_pem(), inner.certificate_pem()].concat();
    for (line, folder) in [("crt certs", true), ("crt certs/", true), ("crt-list certs.list", false)] {
        let text = format!(
            "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl {line}\n \
             http-request return status 200\n"
        );
        let terse = Terse::with(&text).listen("web");
        std::fs::create_dir(terse.path("certs")).unwrap();
        let terse =
            terse.file("certs/one.pem", signed(Kind::Ecdsa, &["one"], &root).pem()).file("certs.list", "certs/one.pem\n").start();
        let list = if folder { "certs" } else { "certs.list" };
        let has = |said: &str, line: &str| said.lines().any(|found| found == line);
        // The words that a hook looks for, as far as it comes.
        let renew = |file: &str, pem: &[u8]| -> Result<(), &'static str> {
            let is_new = !has(&command(&terse, "show ssl cert"), file);
            if is_new {
                has(&command(&terse, "show ssl crt-list"), list).then_some(()).ok_or("list")?;
                command(&terse, &format!("new ssl cert {file}")).contains("New empty").then_some(()).ok_or("new")?;
            }
            let set = with_payload(&terse, &format!("set ssl cert {file}"), pem);
            set.contains("Transaction created").then_some(()).ok_or("set")?;
            has(&command(&terse, &format!("commit ssl cert {file}")), "Success!").then_some(()).ok_or("commit")?;
            if is_new {
                let said = command(&terse, &format!("add ssl crt-list {list} {file}"));
                said.contains("Success!").then_some(()).ok_or("add")?;
            }
            Ok(())
        };
        let (one, two) = (|name| signed(Kind::Ecdsa, &[name, "one"], &inner), |name| signed(Kind::Ecdsa, &[name, "two"], &inner));
        assert_eq!(renew("certs/one.pem", &full(&one("one-1"))), Ok(()), "{line}");
        assert_eq!(renew("certs/one.pem", &full(&one("one-2"))), Ok(()), "{line}");
        assert_eq!(shown(&terse, "one"), "one-2", "{line}");
        assert_eq!(renew("certs/two.pem", &full(&two("two-1"))), Ok(()), "{line}");
        assert_eq!((shown(&terse, "two"), shown(&terse, "one")), ("two-1".into(), "one-2".into()), "{line}");
        // A file that cannot be used hinders neither this certificate nor another.
        assert_eq!(renew("certs/two.pem", &weak("two", &root).pem()), Err("commit"), "{line}");
        assert_eq!(renew("certs/one.pem", b"nonsense"), Err("set"), "{line}");
        assert_eq!(renew("certs/one.pem", &expired("one", &root).pem()), Err("set"), "{line}");
        assert_eq!((shown(&terse, "two"), shown(&terse, "one")), ("two-1".into(), "one-2".into()), "{line}");
        assert_eq!(renew("certs/one.pem", &full(&one("one-3"))), Ok(()), "{line}");
        assert_eq!(renew("certs/two.pem", &full(&two("two-2"))), Ok(()), "{line}");
        assert_eq!((shown(&terse, "two"), shown(&terse, "one")), ("two-2".into(), "one-3".into()), "{line}");
        terse.end();
    }
}
