//! Faults of files are reported while the configuration is read, with the file and the reason.

use crate::certificates::{Kind, Pair, authority, early, expired, intermediate, signed};
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use crate::talk::{Ask, Outcome, common_name};
use openssl::symm::Cipher;

/// Returns the messages about a line.
fn said(words: &str, files: &[(&str, Vec<u8>)]) -> (Option<i32>, String) {
    let text = format!("defaults\n mode http\n timeout client 1s\nfrontend web\n bind 127.0.0.1:0 ssl {words}\n");
    let terse = files.iter().fold(Terse::with(&text), |terse, (name, content)| terse.file(name, content));
    let finished = terse.arg(&["-c"]).run();
    (finished.code(), finished.stderr)
}

/// PEM in which something else replaces the beginning of its content, after its first line.
fn damaged(pem: &[u8], begin: &str, other: &str) -> Vec<u8> {
    let pem = String::from_utf8(pem.to_vec()).unwrap();
    assert!(pem.contains(&format!("\n{begin}")));
    pem.replacen(&format!("\n{begin}"), &format!("\n{other}"), 1).into_bytes()
}

#[test]
fn what_is_wrong_is_named() {
    let root = authority("root");
    let (one, other) = (signed(Kind::Ecdsa, &["a.test"], &root), signed(Kind::Ecdsa, &["a.test"], &root));
    let encrypted = one.key.private_key_to_pem_pkcs8_passphrase(Cipher::aes_128_cbc(), b"secret").unwrap();
    let files = [
        ("good.pem", one.pem()),
        ("late.pem", expired("a.test", &root).pem()),
        ("soon.pem", early("a.test", &root).pem()),
        ("list", b"bare.pem [key one.key] a.test\n".to_vec()),
        ("twice", b"bare.pem [key one.key]\nbare.pem [key other.key] b.test\n".to_vec()),
        ("wrong", b"bare.pem [key other.key]\n".to_vec()),
        // Root may read all files: a folder is none for root either.
        ("unread", b"bare.pem [key /]\n".to_vec()),
        ("shown", b"good.pem [alpn h2-14,h3,hquery]\n".to_vec()),
        ("one.key", one.key_pem()),
        ("other.key", other.key_pem()),
        ("mixed.pem", [one.certificate_pem(), other.key_pem()].concat()),
        ("locked.pem", [one.certificate_pem(), encrypted].concat()),
        ("broken.pem", [one.certificate_pem(), damaged(&one.key_pem(), "MIG", "MIH")].concat()),
        ("torn.pem", [damaged(&one.certificate_pem(), "MII", "!!!"), one.key_pem()].concat()),
        ("bare.pem", one.certificate_pem()),
        ("empty.pem", Vec::new()),
        ("root.pem", root.certificate_pem()),
        ("few.keys", b"AAAA\n".to_vec()),
        ("garbage.keys", b"no key\n".to_vec()),
    ];
    for (words, reason) in [
        ("crt missing.pem", "missing.pem': No such file or directory"),
        ("crt mixed.pem", "mixed.pem': the private key does not belong to the certificate"),
        ("crt locked.pem", "locked.pem': the private key is encrypted"),
        ("crt bare.pem", "bare.pem': there is no private key in it"),
        ("crt late.pem", "late.pem': the certificate of '/CN=a.test' has expired: its time was over on "),
        ("crt late.pem", "'ssl-expired-certificates accept' in 'global' takes it"),
        ("crt soon.pem", "soon.pem': the certificate of '/CN=a.test' is not valid yet: its time begins on "),
        ("crt-list wrong", "other.key': the private key does not belong to the certificate of 'bare.pem'"),
        ("crt-list unread", "'/': Is a directory"),
        ("crt-list twice", "'bare.pem': another line has read it, with other parts"),
        ("crt broken.pem", "broken.pem': the private key cannot be read: it is damaged"),
        ("crt torn.pem", "torn.pem': it cannot be read as PEM"),
        ("crt-list one.key", "one.key': it holds PEM and is no list of certificates"),
        ("crt good.pem ca-file one.key", "one.key': there is no certificate in it"),
        ("crt good.pem tls-ticket-keys one.key", "one.key': unable to decode base64 key on line 1"),
        ("crt empty.pem", "empty.pem': there is no certificate in it"),
        ("", "there is no certificate to show"),
        ("crt good.pem verify required", "'verify' of clients needs 'ca-file <file>'"),
        ("crt good.pem verify required ca-file missing.pem", "missing.pem': No such file or directory"),
        ("crt good.pem verify required ca-file empty.pem", "empty.pem': there is no certificate in it"),
        ("crt good.pem verify required ca-file root.pem crl-file root.pem", "root.pem': there is no list"),
        ("crt good.pem ciphers NONSENSE", "'ciphers': OpenSSL takes nothing of 'NONSENSE'"),
        ("crt good.pem ciphersuites NONSENSE", "'ciphersuites': OpenSSL takes nothing of 'NONSENSE'"),
        ("crt good.pem curves NONSENSE", "'curves': OpenSSL takes nothing of 'NONSENSE'"),
        ("crt good.pem sigalgs NONSENSE", "'sigalgs': OpenSSL takes nothing of 'NONSENSE'"),
        ("crt good.pem client-sigalgs NONSENSE", "'client-sigalgs': OpenSSL takes nothing of 'NONSENSE'"),
        ("crt good.pem ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.2", "all versions of TLS are switched off"),
        ("crt good.pem ssl-min-ver TLSv2", "'TLSv2' is not a version"),
        ("crt good.pem tls-ticket-keys missing.keys", "missing.keys': No such file or directory"),
        ("crt good.pem tls-ticket-keys few.keys", "few.keys': wrong sized key on line 1"),
        ("crt good.pem tls-ticket-keys garbage.keys", "garbage.keys': unable to decode base64 key on line 1"),
        ("crt good.pem ech folder", "'ech' is not supported"),
        ("crt good.pem verify maybe", "'maybe' is neither"),
    ] {
        let (code, stderr) = said(words, &files);
        assert!(code == Some(1) && stderr.contains(reason), "{words}: {code:?} {stderr}");
        let keys = [&one, &other, &root].map(|pair| String::from_utf8(pair.key_pem()).unwrap()).concat();
        assert!(!stderr.contains("PRIVATE KEY"), "{stderr}");
        assert!(keys.lines().all(|line| line.starts_with('-') || !stderr.contains(line)), "{stderr}");
    }
    let (code, stderr) = said("crt-list shown alpn h2,http/1.1", &files);
    let left_out: Vec<_> = stderr.lines().filter_map(|line| Some(line.split_once("'alpn ")?.1.split_once('\'')?.0)).collect();
    assert_eq!((code, left_out), (Some(0), vec!["h2-14", "h3"]), "{stderr}");
    for words in ["crt good.pem", "crt-list list", "crt good.pem npn h2 allow-0rtt", "strict-sni"] {
        let (code, stderr) = said(words, &files);
        assert!(code == Some(0) && stderr.is_empty(), "{words}: {stderr}");
        let (code, stderr) = said(&format!("{words} alpn http/1.1"), &files);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words}");
    }
}

/// They are refused everywhere, unless the operator wants them: as a server's client, in a folder, in a list, in a store.
#[test]
fn expired_certificates_are_taken_where_that_is_wanted() {
    let root = authority("root");
    for (global, is_taken) in [("", false), ("ssl-expired-certificates refuse", false), ("ssl-expired-certificates accept", true)] {
        for lines in [
            "frontend web\n bind 127.0.0.1:0 ssl crt late/\n",
            "frontend web\n bind 127.0.0.1:0 ssl crt-list list\n",
            "crt-store\n load crt late/a.pem alias a\nfrontend web\n bind 127.0.0.1:0 ssl crt @/a\n",
            "listen b\n bind 127.0.0.1:0\n server s 127.0.0.1:1 ssl verify none crt late/a.pem\n",
        ] {
            let text = format!(
                "global\n {global}\ndefaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n{lines}"
            );
            let terse = Terse::with(&text);
            std::fs::create_dir(terse.path("late")).unwrap();
            let terse = terse.file("late/a.pem", expired("a.test", &root).pem()).file("list", "late/a.pem\n");
            let finished = terse.arg(&["-c", "-dW"]).run();
            assert_eq!(finished.code(), Some(i32::from(!is_taken)), "{global} {lines}: {}", finished.stderr);
            assert_eq!(finished.stderr.contains("late/a.pem': the certificate of '/CN=a.test' has expired"), !is_taken);
        }
    }
}

/// In a folder it does not hinder the others.
#[test]
fn a_folder_goes_on_without_what_has_expired() {
    let root = authority("root");
    for (name, is_left_out) in [("good.pem", true), ("late.pem.key", false)] {
        let terse = Terse::with("defaults\n mode http\n timeout client 1s\nfrontend web\n bind 127.0.0.1:0 ssl crt certs/\n");
        std::fs::create_dir(terse.path("certs")).unwrap();
        let terse = terse.file("certs/late.pem", expired("late", &root).pem()).file("certs/soon.pem", early("soon", &root).pem());
        let finished = terse.file(&format!("certs/{name}"), signed(Kind::Ecdsa, &["good"], &root).pem()).arg(&["-c"]).run();
        assert_eq!(finished.code(), Some(i32::from(!is_left_out)), "{}", finished.stderr);
        for reason in
            ["late.pem': the certificate of '/CN=late' has expired", "soon.pem': the certificate of '/CN=soon' is not valid yet"]
        {
            assert!(finished.stderr.contains(reason), "{}", finished.stderr);
        }
        assert_eq!(finished.stderr.matches("is left out: ").count(), if is_left_out { 2 } else { 0 }, "{}", finished.stderr);
    }
}

/// A certificate in the form that tells what it is trusted for, as systems keep their authorities.
fn trusted(pair: &Pair, extra: &[u8]) -> Vec<u8> {
    let der = [&pair.certificate.to_der().unwrap()[..], extra].concat();
    let text = openssl::base64::encode_block(&der);
    let lines: String =
        text.replace('\n', "").as_bytes().chunks(64).map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
    format!("-----BEGIN TRUSTED CERTIFICATE-----\n{lines}-----END TRUSTED CERTIFICATE-----\n").into_bytes()
}

/// `--tls-dir` takes NAME.crt with NAME.key, and NAME.pem.
#[test]
fn a_folder_for_a_start_without_a_file() {
    let root = authority("root");
    let (one, other) = (signed(Kind::Ecdsa, &["a.test"], &root), signed(Kind::Ecdsa, &["b.test"], &root));
    let terse = Terse::bare();
    std::fs::create_dir(terse.path("certs")).unwrap();
    let terse =
        terse.file("certs/a.crt", one.certificate_pem()).file("certs/a.key", one.key_pem()).file("certs/b.pem", other.pem());
    let words = ["--to", "1", "--listen", "fd@${web}", "--console", "off", "--tls-dir", "certs"];
    let terse = terse.arg(&words).listen("web").start();
    for name in ["a.test", "b.test"] {
        let stream = (Ask { name: Some(name), ..Ask::default() }).connect(terse.address("web")).unwrap();
        assert_eq!(common_name(&stream.ssl().peer_certificate().unwrap()), name);
    }
    terse.end();
}

/// All forms that OpenSSL reads are read, wherever they are; their statements of trust count.
#[test]
fn certificates_have_several_forms() {
    let (root, other) = (authority("root"), authority("other"));
    let inner = intermediate("inner", &root);
    let site = signed(Kind::Ecdsa, &["a.test"], &inner);
    let client = signed(Kind::Ecdsa, &["client"], &root);
    let old = |pem: Vec<u8>| String::from_utf8(pem).unwrap().replace("CERTIFICATE", "X509 CERTIFICATE").into_bytes();
    // id-kp-clientAuth, trusted and not.
    let of_clients = b"\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x02";
    let (yes, no) = ([b"\x30\x0c\x30\x0a", &of_clients[..]].concat(), [b"\x30\x0c\xa0\x0a", &of_clients[..]].concat());
    // Explicit parameters before the key, as 'openssl ecparam -genkey' writes them: prime256v1.
    let curve = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let key = [&curve[..], &site.key.ec_key().unwrap().private_key_to_pem().unwrap()].concat();
    let returns = |pem: Vec<u8>| String::from_utf8(pem).unwrap().replace('\n', "\r\n").into_bytes();
    for (ca, is_served) in [
        (root.certificate_pem(), true),
        (trusted(&root, b""), true),
        (trusted(&root, &yes), true),
        (trusted(&root, &no), false),
        (returns(trusted(&root, &yes)), true),
        (old(root.certificate_pem()), true),
        ([other.certificate_pem(), trusted(&root, &yes)].concat(), true),
        ([trusted(&other, &yes), old(root.certificate_pem())].concat(), true),
        ([b"\xef\xbb\xbf".to_vec(), root.certificate_pem(), other.certificate_pem()].concat(), true),
        (other.certificate_pem(), false),
    ] {
        for (leaf, above) in [
            (site.certificate_pem(), inner.certificate_pem()),
            (trusted(&site, &yes), old(inner.certificate_pem())),
            (old(site.certificate_pem()), trusted(&inner, b"")),
        ] {
            let text = format!(
                "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem ca-file ca.pem verify required\n \
                 http-request return status 200\n"
            );
            let terse =
                Terse::with(&text).file("a.pem", [&key[..], &leaf, &above].concat()).file("ca.pem", &ca).listen("web").start();
            let outcome = (Ask { shown: Some(&client), ..Ask::default() }).outcome(terse.address("web"));
            let ca = String::from_utf8_lossy(&ca);
            assert_eq!(outcome != Outcome::Refused, is_served, "{ca}");
            if is_served {
                let stream = (Ask { shown: Some(&client), ..Ask::default() }).connect(terse.address("web")).unwrap();
                assert_eq!(stream.ssl().peer_cert_chain().unwrap().len(), 2, "{ca}");
            }
            terse.end();
        }
    }
    // Text in a form unknown to OpenSSL may hold certificates all the same.
    let strange = |label: &str| String::from_utf8(other.certificate_pem()).unwrap().replace("CERTIFICATE", label).into_bytes();
    for label in ["PKCS7", "CERTIFCATE"] {
        let (bundle, file) = ([root.certificate_pem(), strange(label)].concat(), [site.pem(), strange(label)].concat());
        let files = [("good.pem", site.pem()), ("ca.pem", bundle), ("a.pem", file)];
        for words in ["crt good.pem verify required ca-file ca.pem", "crt a.pem"] {
            let (code, stderr) = said(words, &files);
            assert!(code == Some(1) && stderr.contains(&format!("'{label}' in it is not read")), "{words}: {stderr}");
        }
    }
    let group = b"-----BEGIN DH PARAMETERS-----\nMAYC\n-----END DH PARAMETERS-----\n";
    let (code, stderr) = said("crt a.pem", &[("a.pem", [&site.pem()[..], group].concat())]);
    assert!(code == Some(1) && stderr.contains("'DH PARAMETERS' in it cannot be read"), "{stderr}");
}

/// The verifying side decides whether authorities are still believed: bundles of systems hold some that have expired.
#[test]
fn authorities_may_be_of_any_age() {
    let root = authority("root");
    let files = [("good.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()), ("all.pem", expired("old", &root).certificate_pem())];
    assert_eq!(said("crt good.pem verify optional ca-file all.pem alpn http/1.1", &files), (Some(0), String::new()));
}

#[test]
fn what_is_gone_is_refused_by_name() {
    let text = "frontend web\n mode http\n timeout client 1s\n bind 127.0.0.1:0\n http-request set-header X %[ssl_fc_npn]\n";
    let finished = Terse::with(text).arg(&["-c"]).run();
    assert!(finished.code() == Some(1) && finished.stderr.contains("NPN is not spoken"), "{}", finished.stderr);
}

/// Parameters that the security level does not take are left out, and the file is taken: old files ask for them.
#[test]
fn short_parameters_stop_nobody() {
    let text = "global\n tune.ssl.default-dh-param 1024\ndefaults\n mode http\n timeout client 1s\nfrontend web\n \
                bind 127.0.0.1:0 ssl crt good.pem\n";
    let certificate = signed(Kind::Rsa, &["a.test"], &authority("root"));
    let finished = Terse::with(text).file("good.pem", certificate.pem()).arg(&["-c"]).run();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
}
