//! Signatures of JSON Web Tokens in the compact form (RFC 7515 section 7.1): `jwt_verify`, `jwt_verify_cert`.
//!
//! The algorithm is the configuration's, not the token's. A rule that passes the token's own (`jwt_header_query('$.alg')`)
//! must restrict it by a condition, as HAProxy's manual does.

use crate::key::{Forbidden, Holds, Keyring, text};
use hmac::{Hmac, KeyInit, Mac};
use openssl::bn::BigNum;
use openssl::ecdsa::EcdsaSig;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Public};
use openssl::rsa::Padding;
use openssl::sign::Verifier;
use std::sync::Arc;
use terse_sample::argument::{Arg, Param, ParamKind, need};
use terse_sample::convert::base64;
use terse_sample::{ArgList, Compiler, Converter, Env, Type, Value};

const ALGORITHM_AND_KEY: &[Param] = &[need(ParamKind::StrOrVar), need(ParamKind::StrOrVar)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "jwt_verify",
        Type::Bin,
        Type::Int,
        "1 when a JSON Web Token's signature is right by an algorithm and a secret or a file with a public key, 0 when it is wrong, less when it cannot be told.",
        |value, args, env| Some(Value::Int(verify(&value.into_bytes()?, args, env, Holds::Key)? as i64)),
    )
    .params(ALGORITHM_AND_KEY)
    .check(|args, compiler| check(args, compiler, Holds::Key)),
    Converter::new(
        "jwt_verify_cert",
        Type::Bin,
        Type::Int,
        "The same, with a certificate: of a `crt-store` (`jwt on`), or a file.",
        |value, args, env| Some(Value::Int(verify(&value.into_bytes()?, args, env, Holds::Certificate)? as i64)),
    )
    .params(ALGORITHM_AND_KEY)
    .check(|args, compiler| check(args, compiler, Holds::Certificate)),
];

/// Outcome of a verification, in HAProxy's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Right = 1,
    Wrong = 0,
    UnknownAlgorithm = -1,
    UnmanagedAlgorithm = -2,
    InvalidToken = -3,
    UnknownKey = -5,
    UnavailableCertificate = -7,
}

/// The algorithms of RFC 7518 section 3.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Algorithm {
    None,
    Hmac(Hash),
    Rsa(Hash),
    RsaPss(Hash),
    Ecdsa(Hash),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    fn named(name: &[u8]) -> Option<Algorithm> {
        let hash = match name.get(2..) {
            Some(b"256") => Hash::Sha256,
            Some(b"384") => Hash::Sha384,
            Some(b"512") => Hash::Sha512,
            _ => return (name == b"none").then_some(Algorithm::None),
        };
        Some(match &name[..2] {
            b"HS" => Algorithm::Hmac(hash),
            b"RS" => Algorithm::Rsa(hash),
            b"PS" => Algorithm::RsaPss(hash),
            b"ES" => Algorithm::Ecdsa(hash),
            _ => return None,
        })
    }
}

impl Hash {
    fn digest(self) -> MessageDigest {
        match self {
            Hash::Sha256 => MessageDigest::sha256(),
            Hash::Sha384 => MessageDigest::sha384(),
            Hash::Sha512 => MessageDigest::sha512(),
        }
    }

    /// Its curve in ECDSA, and the bytes of its numbers (RFC 7518 section 3.4).
    fn curve(self) -> (Nid, usize) {
        match self {
            Hash::Sha256 => (Nid::X9_62_PRIME256V1, 32),
            Hash::Sha384 => (Nid::SECP384R1, 48),
            Hash::Sha512 => (Nid::SECP521R1, 66),
        }
    }

    fn hmac(self, key: &[u8], bytes: &[u8], code: &[u8]) -> bool {
        fn is_right<M: Mac + KeyInit>(key: &[u8], bytes: &[u8], code: &[u8]) -> bool {
            <M as KeyInit>::new_from_slice(key).is_ok_and(|mut mac| {
                mac.update(bytes);
                mac.verify_slice(code).is_ok()
            })
        }
        match self {
            Hash::Sha256 => is_right::<Hmac<sha2::Sha256>>(key, bytes, code),
            Hash::Sha384 => is_right::<Hmac<sha2::Sha384>>(key, bytes, code),
            Hash::Sha512 => is_right::<Hmac<sha2::Sha512>>(key, bytes, code),
        }
    }
}

/// Source of the key, once the arguments are read.
enum Source {
    /// The key of a file that was read.
    File(PKey<Public>),
    /// A text or a variable: a secret, the name of a certificate, or that of a file that another expression names too.
    Named(Arc<Keyring>),
    /// A file that does not exist: no token is valid by it.
    Missing,
}

fn check(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>, holds: Holds) -> Result<(), String> {
    let algorithm = match args.first() {
        Some(Arg::Str(name)) => Some(Algorithm::named(name).ok_or_else(|| {
            format!(
                "unknown algorithm '{}', expects HS256, RS256, PS256, ES256, the same with 384 or 512, or none",
                name.escape_ascii()
            )
        })?),
        _ => None,
    };
    let keyring = Keyring::of(compiler);
    let has_no_file = matches!(algorithm, Some(Algorithm::Hmac(_) | Algorithm::None));
    if has_no_file && holds == Holds::Certificate {
        return Err("this algorithm has no certificates".into());
    }
    let source = match args.get(1) {
        Some(Arg::Str(name)) if !has_no_file && holds == Holds::Certificate => {
            keyring.load_certificate(name, compiler)?;
            Source::Named(keyring)
        }
        Some(Arg::Str(name)) if !has_no_file => match keyring.load_public(name, compiler) {
            Ok(key) => Source::File(key),
            // The algorithm may turn out to be one of those that have a secret, which the name of a file is not.
            Err(_) if algorithm.is_none() && !Keyring::is_file(name, compiler) => Source::Named(keyring),
            Err(_) if algorithm.is_none() && Keyring::is_missing(name, compiler) => Source::Missing,
            Err(reason) => return Err(reason),
        },
        _ => Source::Named(keyring),
    };
    args.push(Arg::own(source));
    Ok(())
}

fn verify(token: &[u8], args: &ArgList, env: &Env<'_>, holds: Holds) -> Option<Verdict> {
    let Some(algorithm) = Algorithm::named(&text(args, 0, env)?) else { return Some(Verdict::UnknownAlgorithm) };
    let source = args.own::<Source>(2)?;
    let named = text(args, 1, env)?;
    let Some((signed, signature)) = split(token) else { return Some(Verdict::InvalidToken) };
    if algorithm == Algorithm::None {
        return Some(Verdict::of(signature.is_empty()));
    }
    let Some(signature) = base64::decode_exact(signature).filter(|bytes| !bytes.is_empty()) else {
        return Some(Verdict::InvalidToken);
    };
    if let Algorithm::Hmac(hash) = algorithm {
        return Some(match source {
            Source::Named(keyring) if holds == Holds::Key && !keyring.is_known(&named) => {
                Verdict::of(hash.hmac(&named, signed, &signature))
            }
            // A public key is no secret, nor is the name of its file or certificate.
            Source::File(_) | Source::Named(_) | Source::Missing => Verdict::UnmanagedAlgorithm,
        });
    }
    let key = match source {
        Source::File(key) => key.clone(),
        Source::Missing => return Some(Verdict::UnknownKey),
        Source::Named(keyring) => match keyring.public(holds, &named) {
            Ok(Some(key)) => key,
            Ok(None) => return Some(Verdict::UnknownKey),
            Err(Forbidden) => return Some(Verdict::UnavailableCertificate),
        },
    };
    Some(Verdict::of(is_right(algorithm, &key, signed, &signature)))
}

/// The signed part, and the signature: the last of three parts.
fn split(token: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut dots = token.iter().enumerate().filter(|(_, b)| **b == b'.').map(|(at, _)| at);
    let (_, second, None) = (dots.next()?, dots.next()?, dots.next()) else { return None };
    Some((&token[..second], &token[second + 1..]))
}

fn is_right(algorithm: Algorithm, key: &PKey<Public>, signed: &[u8], signature: &[u8]) -> bool {
    let right = match (algorithm, key.id()) {
        (Algorithm::Rsa(hash), Id::RSA) => with_rsa(hash, Padding::PKCS1, key, signed, signature),
        (Algorithm::RsaPss(hash), Id::RSA | Id::RSA_PSS) => with_rsa(hash, Padding::PKCS1_PSS, key, signed, signature),
        (Algorithm::Ecdsa(hash), Id::EC) => with_ecdsa(hash, key, signed, signature),
        _ => Ok(false),
    };
    right.unwrap_or(false)
}

fn with_rsa(hash: Hash, padding: Padding, key: &PKey<Public>, signed: &[u8], signature: &[u8]) -> Result<bool, ErrorStack> {
    let mut verifier = Verifier::new(hash.digest(), key)?;
    verifier.set_rsa_padding(padding)?;
    verifier.verify_oneshot(signature, signed)
}

/// Verifies a signature that is two numbers of one length side by side (RFC 7518 section 3.4); OpenSSL takes it in ASN.1.
fn with_ecdsa(hash: Hash, key: &PKey<Public>, signed: &[u8], signature: &[u8]) -> Result<bool, ErrorStack> {
    let (curve, length) = hash.curve();
    let is_of_curve = key.ec_key()?.group().curve_name() == Some(curve);
    let Some((r, s)) = signature.split_at_checked(length).filter(|(_, s)| is_of_curve && s.len() == length) else {
        return Ok(false);
    };
    let numbers = EcdsaSig::from_private_components(BigNum::from_slice(r)?, BigNum::from_slice(s)?)?;
    Verifier::new(hash.digest(), key)?.verify_oneshot(&numbers.to_der()?, signed)
}

impl Verdict {
    fn of(is_right: bool) -> Verdict {
        if is_right { Verdict::Right } else { Verdict::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use openssl::ec::{EcGroup, EcKey};
    use openssl::pkey::Private;
    use openssl::rsa::Rsa;
    use openssl::sign::Signer;

    const SIGNED: &str = "eyJhbGciOiJIUzI1NiJ9.e30";

    fn sign(key: &PKey<Private>, hash: Hash, padding: Option<Padding>) -> String {
        let mut signer = Signer::new(hash.digest(), key).unwrap();
        if let Some(padding) = padding {
            signer.set_rsa_padding(padding).unwrap();
        }
        let mut signature = signer.sign_oneshot_to_vec(SIGNED.as_bytes()).unwrap();
        if key.id() == Id::EC {
            let numbers = EcdsaSig::from_der(&signature).unwrap();
            signature = [numbers.r().to_vec_padded(32).unwrap(), numbers.s().to_vec_padded(32).unwrap()].concat();
        }
        format!("{SIGNED}.{}", String::from_utf8_lossy(&base64::encode(&signature, &base64::URL)))
    }

    #[test]
    fn signatures_by_every_algorithm() {
        let rsa = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        let ec = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
        let mut bench = Bench::new();
        bench.file("rsa.pem", rsa.public_key_to_pem().unwrap());
        bench.file("rsa1.pem", rsa.rsa().unwrap().public_key_to_pem_pkcs1().unwrap());
        bench.file("ec.pem", ec.public_key_to_pem().unwrap());
        bench.set("txn.alg", "HS256");
        for (token, arguments, expected) in [
            (sign(&rsa, Hash::Sha256, Some(Padding::PKCS1)), "RS256,rsa.pem", 1),
            (sign(&rsa, Hash::Sha384, Some(Padding::PKCS1)), "RS384,rsa1.pem", 1),
            (sign(&rsa, Hash::Sha512, Some(Padding::PKCS1_PSS)), "PS512,rsa.pem", 1),
            (sign(&rsa, Hash::Sha256, Some(Padding::PKCS1)), "RS512,rsa.pem", 0),
            (sign(&rsa, Hash::Sha256, Some(Padding::PKCS1)), "PS256,rsa.pem", 0),
            (sign(&ec, Hash::Sha256, None), "ES256,ec.pem", 1),
            (sign(&ec, Hash::Sha256, None), "ES256,rsa.pem", 0),
            (sign(&ec, Hash::Sha256, None), "RS256,ec.pem", 0),
            // By `openssl dgst -sha256 -mac HMAC -macopt key:secret`.
            (format!("{SIGNED}.uYOqiNAmmP_WmKdGYbGuj-RoP9jROLaNX3KPCzqvqpM"), "HS256,other", 0),
            (format!("{SIGNED}."), "none,x", 1),
            (format!("{SIGNED}.AAAA"), "none,x", 0),
            (format!("{SIGNED}."), "HS256,x", -3),
            (format!("{SIGNED}.*"), "HS256,x", -3),
            (SIGNED.into(), "HS256,x", -3),
            (format!("{SIGNED}.AAAA"), "txn.alg,rsa.pem", -2),
            (format!("{SIGNED}.AAAA"), "RS256,txn.file", -5),
        ] {
            bench.set("txn.file", "unknown.pem");
            bench.set("txn.token", &token);
            let found = bench.eval(&format!("var(txn.token),jwt_verify({arguments})"));
            assert_eq!(found.as_deref(), Some(&*expected.to_string()), "{arguments}");
        }
        // A signature has one text, and one length.
        let signed = sign(&ec, Hash::Sha256, None);
        let bytes = base64::decode_exact(signed.rsplit('.').next().unwrap().as_bytes()).unwrap();
        let long = [&[0][..], &bytes[..32], &[0], &bytes[32..]].concat();
        let long = format!("{SIGNED}.{}", String::from_utf8_lossy(&base64::encode(&long, &base64::URL)));
        for (token, arguments, expected) in [
            (format!("{signed}=="), "ES256,ec.pem", "-3"),
            (format!("{signed}="), "ES256,ec.pem", "-3"),
            (format!("{SIGNED}.AB"), "HS256,x", "-3"),
            (format!("{SIGNED}.AAA="), "HS256,x", "-3"),
            (format!("{SIGNED}.AAAA.AAAA"), "HS256,x", "-3"),
            (long, "ES256,ec.pem", "0"),
            (sign(&ec, Hash::Sha384, None), "ES384,ec.pem", "0"),
            (signed, "ES512,ec.pem", "0"),
        ] {
            bench.set("txn.token", &token);
            let found = bench.eval(&format!("var(txn.token),jwt_verify({arguments})"));
            assert_eq!(found.as_deref(), Some(expected), "{arguments} {token}");
        }
        // A file that one expression names may be named by a variable of another.
        bench.set("txn.file", "rsa.pem");
        bench.set("txn.token", sign(&rsa, Hash::Sha256, Some(Padding::PKCS1)));
        assert_eq!(bench.eval("var(txn.token),jwt_verify(RS256,txn.file)").as_deref(), Some("1"));
        for (wrong, said) in [
            ("jwt_verify(RS257,rsa.pem)", "'RS257'"),
            ("jwt_verify(RS256,none.pem)", "'none.pem'"),
            ("jwt_verify_cert(RS256,rsa.pem)", "no certificate"),
            ("jwt_verify_cert(HS256,rsa.pem)", "no certificates"),
        ] {
            let reason = bench.refuses(&format!("str(x),{wrong}"));
            assert!(reason.contains(said), "{wrong}: {reason}");
        }
    }

    fn coded(secret: &str) -> String {
        let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(SIGNED.as_bytes());
        format!("{SIGNED}.{}", String::from_utf8_lossy(&base64::encode(&mac.finalize().into_bytes(), &base64::URL)))
    }

    /// The sender of a token, who chooses its algorithm, knows names of files and public data.
    #[test]
    fn names_of_files_are_no_secrets() {
        let rsa = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let mut bench = Bench::new();
        let public = String::from_utf8(rsa.public_key_to_pem().unwrap()).unwrap();
        bench.file("rsa.pem", public.clone().into_bytes());
        bench.file("private", rsa.private_key_to_pem_pkcs8().unwrap());
        bench.file("certificate", b"-----BEGIN CERTIFICATE-----".to_vec());
        bench.set("txn.alg", "HS256");
        for (argument, said) in
            [("certificate", "'certificate' holds no public key in PEM"), ("private", "'private' holds no public key in PEM")]
        {
            let reason = bench.refuses(&format!("str(x),jwt_verify(txn.alg,{argument})"));
            assert!(reason.contains(said), "{argument}: {reason}");
        }
        bench.set("txn.token", coded("none.crt"));
        assert_eq!(bench.eval("var(txn.token),jwt_verify(txn.alg,none.crt)").as_deref(), Some("-2"));
        bench.set("txn.token", "x");
        bench.eval("var(txn.token),jwt_verify(RS256,rsa.pem)");
        bench.eval("var(txn.token),jwt_decrypt_cert(private)");
        for (named, expected) in [("secret", "1"), ("rsa.pem", "-2"), ("private", "-2"), (&*public, "-2")] {
            bench.set("txn.token", coded(named));
            bench.set("txn.key", named);
            for arguments in ["txn.alg,txn.key", "HS256,txn.key"] {
                let found = bench.eval(&format!("var(txn.token),jwt_verify({arguments})"));
                assert_eq!(found.as_deref(), Some(expected), "{arguments} {named}");
            }
        }
    }

    #[test]
    fn codes_by_a_secret() {
        let mut bench = Bench::new();
        let mut mac = <Hmac<sha2::Sha512> as KeyInit>::new_from_slice(b"the secret").unwrap();
        mac.update(SIGNED.as_bytes());
        let code = base64::encode(&mac.finalize().into_bytes(), &base64::URL);
        bench.set("txn.token", format!("{SIGNED}.{}", String::from_utf8_lossy(&code)));
        bench.set("txn.alg", "HS512");
        for (arguments, expected) in
            [("HS512,'the secret'", "1"), ("txn.alg,'the secret'", "1"), ("HS512,x", "0"), ("HS256,'the secret'", "0")]
        {
            let found = bench.eval(&format!("var(txn.token),jwt_verify({arguments})"));
            assert_eq!(found.as_deref(), Some(expected), "{arguments}");
        }
    }
}
