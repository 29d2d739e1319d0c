//! Tokens that other programs made, one or more for each algorithm: known answers, and what must not be taken for them.

use crate::allowed::Allowed;
use crate::jwe::Key;
use crate::testing::Bench;
use openssl::symm;
use std::collections::{BTreeMap, BTreeSet};
use terse_sample::convert::base64::{URL, decode, encode};

const TEXT: &str = include_str!("vectors.txt");

/// The lines of that kind, in words.
fn lines(kind: &str) -> Vec<Vec<&'static str>> {
    let words = TEXT.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    words.filter(|words| words[0] == kind).map(|words| words[1..].to_vec()).collect()
}

fn keys() -> BTreeMap<&'static str, &'static str> {
    lines("key").into_iter().map(|words| (words[0], words[1])).collect()
}

fn key(name: &str) -> Key {
    Key::of_jwk(keys()[name].as_bytes()).unwrap_or_else(|| panic!("key {name}"))
}

/// A bench with the files of public keys, each by its name.
fn bench() -> Bench {
    let mut bench = Bench::new();
    for name in keys().keys() {
        if let Key::Private(pair) = key(name) {
            bench.file(name, pair.public_key_to_pem().unwrap());
        }
    }
    bench
}

fn url(bytes: &[u8]) -> String {
    String::from_utf8(encode(bytes, &URL).to_vec()).unwrap()
}

/// A token with another first byte in that part.
fn altered(token: &str, part: usize) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let mut bytes = decode(parts[part].as_bytes(), &URL).unwrap().to_vec();
    bytes[0] ^= 1;
    parts[part] = url(&bytes);
    parts.join(".")
}

const SIGNATURES: [&str; 12] =
    ["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"];

#[test]
fn signatures_of_every_algorithm() {
    let mut bench = bench();
    let mut seen = BTreeSet::new();
    for words in lines("signed") {
        let [maker, algorithm, name, token] = words[..] else { panic!("{words:?}") };
        let mut verdict = |algorithm: &str, token: &str| {
            bench.set("txn.token", token);
            let argument = match key(name) {
                Key::Secret(secret) => {
                    bench.set("txn.secret", secret);
                    "txn.secret"
                }
                Key::Private(_) => name,
            };
            bench.eval(&format!("var(txn.token),jwt_verify({algorithm},{argument})")).unwrap()
        };
        assert_eq!(verdict(algorithm, token), "1", "{maker} {algorithm}");
        for part in 0..3 {
            assert_eq!(verdict(algorithm, &altered(token, part)), "0", "{maker} {algorithm}, part {part} is another");
        }
        // The same key with each other algorithm of its family.
        for other in
            SIGNATURES.iter().filter(|other| **other != algorithm && (other.starts_with('H') == algorithm.starts_with('H')))
        {
            assert_eq!(verdict(other, token), "0", "{maker} {algorithm} as {other}");
        }
        seen.insert(algorithm);
    }
    assert_eq!(seen, BTreeSet::from(SIGNATURES));
}

/// A signer who knows the public key makes an HMAC with it, and has its token name that algorithm (RFC 8725 section 2.1).
#[test]
fn a_public_key_is_no_secret() {
    use hmac::{Hmac, KeyInit, Mac};
    let mut bench = bench();
    let Key::Private(pair) = key("rsa") else { panic!("a pair of keys") };
    let pem = pair.public_key_to_pem().unwrap();
    bench.set("txn.alg", "HS256");
    bench.set("txn.file", "rsa");
    for secret in [&pem[..], pem.trim_ascii_end(), &pair.public_key_to_der().unwrap(), b"rsa"] {
        let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(secret).unwrap();
        mac.update(b"eyJhbGciOiJIUzI1NiJ9.e30");
        bench.set("txn.token", format!("eyJhbGciOiJIUzI1NiJ9.e30.{}", url(&mac.finalize().into_bytes())));
        for arguments in ["txn.alg,rsa", "txn.alg,txn.file", "HS256,txn.file", "HS256,rsa"] {
            let verdict = bench.eval(&format!("var(txn.token),jwt_verify({arguments})"));
            assert_eq!(verdict.as_deref(), Some("-2"), "{arguments}");
        }
        // A certificate is no secret, either, whatever its name.
        bench.set("txn.text", secret);
        for arguments in ["txn.alg,txn.file", "txn.alg,txn.text"] {
            let verdict = bench.eval(&format!("var(txn.token),jwt_verify_cert({arguments})"));
            assert_eq!(verdict.as_deref(), Some("-2"), "{arguments}");
        }
        if secret.starts_with(b"-----") {
            assert_eq!(bench.eval("var(txn.token),jwt_verify(HS256,txn.text)").as_deref(), Some("-2"));
        }
    }
}

const CONTENT: &str = "You can trust us to stick with you through thick and thin";

/// What is decrypted of a token, with its key, by each converter that takes that.
fn decrypted(bench: &mut Bench, token: &str, name: &str) -> Vec<String> {
    bench.set("txn.token", token);
    bench.set("txn.jwk", keys()[name]);
    let mut found = vec![bench.eval("var(txn.token),jwt_decrypt_jwk(txn.jwk)").unwrap()];
    match key(name) {
        Key::Secret(secret) => {
            bench.set("txn.secret", url(&secret));
            found.push(bench.eval("var(txn.token),jwt_decrypt_secret(txn.secret)").unwrap());
        }
        Key::Private(pair) => {
            let file = format!("{name}.private");
            bench.file(&file, pair.private_key_to_pem_pkcs8().unwrap());
            found.push(bench.eval(&format!("var(txn.token),jwt_decrypt_cert({file})")).unwrap());
        }
    }
    found
}

#[test]
fn contents_by_every_algorithm() {
    let mut bench = Bench::new();
    bench.own::<Allowed>().parse("ALL", "ALL");
    let (mut algorithms, mut encryptions) = (BTreeSet::new(), BTreeSet::new());
    for words in lines("sealed") {
        let [maker, algorithm, encryption, name, token] = words[..] else { panic!("{words:?}") };
        for found in decrypted(&mut bench, token, name) {
            assert!(found.starts_with(CONTENT) && found.ends_with("We are your friends, Frodo."), "{maker} {algorithm}: {found}");
        }
        for (part, text) in token.split('.').enumerate().filter(|(_, text)| !text.is_empty()) {
            assert_eq!(decrypted(&mut bench, &altered(token, part), name), ["", ""], "{maker} {algorithm}, part {part}: {text}");
        }
        // Another key of the same kind.
        let others = keys().into_keys().filter(|other| *other != name && keys()[other].len() == keys()[name].len());
        for other in others {
            assert_eq!(decrypted(&mut bench, token, other), ["", ""], "{maker} {algorithm} with {other}");
        }
        algorithms.insert(algorithm);
        encryptions.insert(encryption);
    }
    assert_eq!((algorithms.len(), encryptions.len()), (14, 6), "{algorithms:?} {encryptions:?}");
}

/// Algorithms whose key is part of the token take none that the token leaves out or has twice.
#[test]
fn parts_that_an_algorithm_does_not_have() {
    let mut bench = Bench::new();
    for words in lines("sealed") {
        let [_, algorithm, _, name, token] = words[..] else { panic!("{words:?}") };
        let mut parts: Vec<&str> = token.split('.').collect();
        parts[1] = if matches!(algorithm, "dir" | "ECDH-ES") { "AAAA" } else { "" };
        assert_eq!(decrypted(&mut bench, &parts.join("."), name), ["", ""], "{algorithm}");
        assert_eq!(decrypted(&mut bench, &format!("{token}."), name), ["", ""], "{algorithm}, with six parts");
    }
}

/// Compression is not built, and what a token marks as critical is unknown (RFC 7516 sections 4.1.3 and 4.1.13).
#[test]
fn compressed_and_critical_ones_are_refused() {
    let mut bench = Bench::new();
    for words in lines("refused") {
        let [maker, _, _, name, token] = words[..] else { panic!("{words:?}") };
        assert_eq!(decrypted(&mut bench, token, name), ["", ""], "{maker}");
    }
    let Key::Secret(secret) = key("direct") else { panic!("a secret") };
    for (more, expected) in [
        ("", "told"),
        (r#","kid":"x""#, "told"),
        (r#","zip":"DEF""#, ""),
        (r#","zip":"none""#, ""),
        (r#","crit":["exp"],"exp":1"#, ""),
        (r#","crit":[]"#, ""),
    ] {
        let header = url(format!(r#"{{"alg":"dir","enc":"A128GCM"{more}}}"#).as_bytes());
        let mut tag = [0; 16];
        let cipher = symm::Cipher::aes_128_gcm();
        let content = symm::encrypt_aead(cipher, &secret, Some(&[7; 12]), header.as_bytes(), b"told", &mut tag).unwrap();
        let token = [header, String::new(), url(&[7; 12]), url(&content), url(&tag)].join(".");
        assert_eq!(decrypted(&mut bench, &token, "direct"), [expected, expected], "{more}");
    }
}

/// The name of an algorithm says how long its secret is (RFC 7518 section 4.7).
#[test]
fn secrets_of_another_length_are_refused() {
    let mut bench = Bench::new();
    for (algorithm, bytes, expected) in
        [("A128GCMKW", 16, "told"), ("A128GCMKW", 32, ""), ("A192GCMKW", 32, ""), ("A256GCMKW", 32, "told"), ("A256GCMKW", 16, "")]
    {
        let (secret, content_key, nonce) = (vec![5; bytes], [6; 16], [7; 12]);
        let sealed = |cipher, key: &[u8], further: &[u8], text: &[u8]| {
            let mut tag = [0; 16];
            let sealed = symm::encrypt_aead(cipher, key, Some(&nonce), further, text, &mut tag).unwrap();
            (url(&sealed), url(&tag))
        };
        let cipher = if bytes == 16 { symm::Cipher::aes_128_gcm() } else { symm::Cipher::aes_256_gcm() };
        let (wrapped, tag) = sealed(cipher, &secret, b"", &content_key);
        let iv = url(&nonce);
        let header = url(format!(r#"{{"alg":"{algorithm}","enc":"A128GCM","iv":"{iv}","tag":"{tag}"}}"#).as_bytes());
        let (content, tag) = sealed(symm::Cipher::aes_128_gcm(), &content_key, header.as_bytes(), b"told");
        bench.set("txn.token", [header, wrapped, iv, content, tag].join("."));
        bench.set("txn.secret", url(&secret));
        let found = bench.eval("var(txn.token),jwt_decrypt_secret(txn.secret)");
        assert_eq!(found.as_deref(), Some(expected), "{algorithm} with {bytes} bytes");
    }
}
