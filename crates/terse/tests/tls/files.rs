//! What is wrong with files is said while the configuration is read, with the file and the reason.

use crate::certificates::{Kind, authority, expired, signed};
use crate::support::Terse;
use openssl::symm::Cipher;

/// What is said about a line.
fn said(words: &str, files: &[(&str, Vec<u8>)]) -> (Option<i32>, String) {
    let text = format!("defaults\n mode http\n timeout client 1s\nfrontend web\n bind 127.0.0.1:0 ssl {words}\n");
    let terse = files.iter().fold(Terse::with(&text), |terse, (name, content)| terse.file(name, content));
    let finished = terse.arg(&["-c"]).run();
    (finished.code(), finished.stderr)
}

#[test]
fn what_is_wrong_is_named() {
    let root = authority("root");
    let (one, other) = (signed(Kind::Ecdsa, &["a.test"], &root), signed(Kind::Ecdsa, &["a.test"], &root));
    let encrypted = one.key.private_key_to_pem_pkcs8_passphrase(Cipher::aes_128_cbc(), b"secret").unwrap();
    let files = [
        ("good.pem", one.pem()),
        ("late.pem", expired("a.test", &root).pem()),
        ("mixed.pem", [one.certificate_pem(), other.key_pem()].concat()),
        ("locked.pem", [one.certificate_pem(), encrypted].concat()),
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
        ("crt good.pem generate-certificates", "'generate-certificates' is not supported"),
        ("crt good.pem verify maybe", "'maybe' is neither"),
    ] {
        let (code, stderr) = said(words, &files);
        assert!(code == Some(1) && stderr.contains(reason), "{words}: {code:?} {stderr}");
        assert!(!stderr.contains("PRIVATE KEY"), "{stderr}");
    }
    for words in ["crt good.pem", "crt late.pem", "crt good.pem npn h2 allow-0rtt", "strict-sni"] {
        let (code, stderr) = said(words, &files);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words}");
    }
}
