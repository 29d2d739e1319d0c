//! Encrypted JSON Web Tokens in the compact form (RFC 7516 section 7.1), decrypted: `jwt_decrypt_secret`, `jwt_decrypt_cert`,
//! `jwt_decrypt_jwk`.
//!
//! ```text
//! header . encrypted key . initialization vector . ciphertext . tag
//!   |           |
//!   |           +-- the content's key, wrapped by the secret; empty when the key is the secret, or agreed upon
//!   +-- "alg": wrapping of the key; "enc": encryption of the content (RFC 7518 sections 4 and 5)
//! ```
//!
//! A token that cannot be decrypted gives an empty value, whatever the reason: an outsider does not learn how far the
//! decryption came. With RSA1_5 that takes a key at random where there is none (RFC 7516 section 11.5). Still, times may
//! tell (RFC 8725 section 3.2), so it has to be allowed explicitly.

use crate::aes;
use crate::allowed::Allowed;
use crate::key::{Keyring, text};
use hmac::{Hmac, KeyInit, Mac};
use openssl::aes::{AesKey, unwrap_key};
use openssl::bn::BigNum;
use openssl::derive::Deriver;
use openssl::ec::{EcGroup, EcKey};
use openssl::encrypt::Decrypter;
use openssl::error::ErrorStack;
use openssl::hash::{Hasher, MessageDigest};
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private, Public};
use openssl::rand::rand_bytes;
use openssl::rsa::{Padding, RsaPrivateKeyBuilder};
use openssl::symm;
use std::sync::Arc;
use terse_sample::argument::{Arg, Param, ParamKind, need};
use terse_sample::convert::base64::{STANDARD, URL, decode, decode_exact};
use terse_sample::convert::json_query::{member, member_text};
use terse_sample::{Compiler, Converter, Octets, Type, Value};

const KEY: &[Param] = &[need(ParamKind::StrOrVar)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "jwt_decrypt_secret",
        Type::Bin,
        Type::Bin,
        "The content of an encrypted JSON Web Token, by a secret in base 64; empty when it cannot be decrypted.",
        |value, args, env| {
            let secret = text(args, 0, env).and_then(|text| decode(&text, &URL).or_else(|| decode(&text, &STANDARD)));
            content(value, secret.map(|secret| Key::Secret(secret.to_vec())), args.own(1)?)
        },
    )
    .params(KEY)
    .check(allow),
    Converter::new(
        "jwt_decrypt_cert",
        Type::Bin,
        Type::Bin,
        "The same, by the key of a certificate of a `crt-store` (`jwt on`), or by the private key in a PEM file.",
        |value, args, env| {
            let keyring = args.own::<Arc<Keyring>>(2)?;
            let key = text(args, 0, env).and_then(|name| keyring.private(&name));
            content(value, key.map(Key::Private), args.own(1)?)
        },
    )
    .params(KEY)
    .check(check_file),
    Converter::new(
        "jwt_decrypt_jwk",
        Type::Bin,
        Type::Bin,
        "The same, by a JSON Web Key of the type oct, RSA or EC.",
        |value, args, env| content(value, text(args, 0, env).and_then(|jwk| Key::of_jwk(&jwk)), args.own(1)?),
    )
    .params(KEY)
    .check(check_jwk),
];

/// Key that a token is decrypted by.
pub(crate) enum Key {
    Secret(Vec<u8>),
    Private(PKey<Private>),
}

/// Appends the allowed algorithms to the key.
fn allow(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    args.push(Arg::own(compiler.registry.own::<Allowed>()));
    Ok(())
}

fn check_file(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let keyring = Keyring::of(compiler);
    if let Some(Arg::Str(name)) = args.first() {
        keyring.load_private(name, compiler)?;
    }
    allow(args, compiler)?;
    args.push(Arg::own(keyring));
    Ok(())
}

fn check_jwk(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    match args.first() {
        Some(Arg::Str(jwk)) if Key::of_jwk(jwk).is_none() => Err("expects a JSON Web Key with all its parts, or a variable".into()),
        _ => allow(args, compiler),
    }
}

fn content<'a>(token: Value<'a>, key: Option<Key>, allowed: &Arc<Allowed>) -> Option<Value<'a>> {
    let token = token.into_bytes()?;
    let content = key.and_then(|key| decrypt(&token, &key, allowed)).unwrap_or_default();
    Some(Value::Bin(Octets::from(content)))
}

fn decrypt(token: &[u8], key: &Key, allowed: &Allowed) -> Option<Vec<u8>> {
    let mut parts = token.split(|b| *b == b'.');
    let protected = parts.next()?;
    let mut decoded = || decode_exact(parts.next()?);
    let (wrapped, nonce, ciphertext, tag) = (decoded()?, decoded()?, decoded()?, decoded()?);
    if parts.next().is_some() {
        return None;
    }
    let header = decode_exact(protected)?;
    let (algorithm, encryption) = (member(&header, "alg")?, member(&header, "enc")?);
    if !allowed.has(&algorithm, &encryption) {
        return None;
    }
    let enc = Encryption::named(&encryption)?;
    if member_text(&header, "zip").is_some() || member_text(&header, "crit").is_some() {
        return None;
    }
    let content_key = unwrap(&header, enc, &wrapped, key).filter(|found| found.len() == enc.key_bytes())?;
    enc.open(&content_key, &nonce, protected, &ciphertext, &tag)
}

/// Encryption of the content (RFC 7518 section 5).
#[derive(Clone, Copy)]
enum Encryption {
    /// AES-GCM with a key of so many bytes.
    Gcm(usize),
    /// AES-CBC and HMAC, each with a key of so many bytes.
    CbcHmac(usize),
}

impl Encryption {
    fn named(name: &[u8]) -> Option<Encryption> {
        Some(match name {
            b"A128GCM" => Encryption::Gcm(16),
            b"A192GCM" => Encryption::Gcm(24),
            b"A256GCM" => Encryption::Gcm(32),
            b"A128CBC-HS256" => Encryption::CbcHmac(16),
            b"A192CBC-HS384" => Encryption::CbcHmac(24),
            b"A256CBC-HS512" => Encryption::CbcHmac(32),
            _ => return None,
        })
    }

    fn key_bytes(self) -> usize {
        match self {
            Encryption::Gcm(bytes) => bytes,
            Encryption::CbcHmac(bytes) => 2 * bytes,
        }
    }

    fn open(self, key: &[u8], nonce: &[u8], protected: &[u8], ciphertext: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
        match self {
            Encryption::Gcm(_) => open_gcm(key, nonce, protected, ciphertext, tag),
            Encryption::CbcHmac(bytes) => {
                let (mac_key, key) = key.split_at_checked(bytes)?;
                let bits = (protected.len() as u64 * 8).to_be_bytes();
                let code = code(bytes, mac_key, &[protected, nonce, ciphertext, &bits])?;
                let is_right = tag.len() == bytes && openssl::memcmp::eq(tag, code.get(..bytes)?);
                let is_right = is_right && nonce.len() == 16;
                is_right.then(|| symm::decrypt(aes::cbc_cipher(bytes)?, key, Some(nonce), ciphertext).ok()).flatten()
            }
        }
    }
}

fn open_gcm(key: &[u8], nonce: &[u8], further: &[u8], ciphertext: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
    const NONCE_BYTES: usize = 12;
    const TAG_BYTES: usize = 16;
    if nonce.len() != NONCE_BYTES || tag.len() != TAG_BYTES {
        return None;
    }
    symm::decrypt_aead(aes::gcm(key.len())?, key, Some(nonce), further, ciphertext, tag).ok()
}

/// The HMAC by the hash whose output is twice as long as the key.
fn code(bytes: usize, key: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
    fn of<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
        let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
        parts.iter().for_each(|part| mac.update(part));
        Some(mac.finalize().into_bytes().to_vec())
    }
    match bytes {
        16 => of::<Hmac<sha2::Sha256>>(key, parts),
        24 => of::<Hmac<sha2::Sha384>>(key, parts),
        _ => of::<Hmac<sha2::Sha512>>(key, parts),
    }
}

/// The content's key (RFC 7518 section 4).
fn unwrap(header: &[u8], enc: Encryption, wrapped: &[u8], key: &Key) -> Option<Vec<u8>> {
    let alg = member(header, "alg")?;
    match (&*alg, key) {
        (b"dir", Key::Secret(secret)) => wrapped.is_empty().then(|| secret.clone()),
        (b"A128KW" | b"A192KW" | b"A256KW", Key::Secret(secret)) => unwrap_aes(wrap_bytes(&alg)?, secret, wrapped),
        (b"A128GCMKW" | b"A192GCMKW" | b"A256GCMKW", Key::Secret(secret)) => {
            let part = |name| decode_exact(&member(header, name)?);
            let fits = secret.len() == wrap_bytes(&alg)?;
            fits.then(|| open_gcm(secret, &part("iv")?, b"", wrapped, &part("tag")?)).flatten()
        }
        (b"RSA1_5", Key::Private(key)) => {
            let mut random = vec![0; enc.key_bytes()];
            rand_bytes(&mut random).ok()?;
            let found = unwrap_rsa(key, wrapped, None).ok().filter(|found| found.len() == random.len());
            Some(found.unwrap_or(random))
        }
        (b"RSA-OAEP", Key::Private(key)) => unwrap_rsa(key, wrapped, Some(MessageDigest::sha1())).ok(),
        (b"RSA-OAEP-256", Key::Private(key)) => unwrap_rsa(key, wrapped, Some(MessageDigest::sha256())).ok(),
        (b"ECDH-ES", Key::Private(key)) => {
            wrapped.is_empty().then(|| agree(header, key, &member(header, "enc")?, enc.key_bytes())).flatten()
        }
        (b"ECDH-ES+A128KW" | b"ECDH-ES+A192KW" | b"ECDH-ES+A256KW", Key::Private(key)) => {
            let bytes = wrap_bytes(alg.get(8..)?)?;
            unwrap_aes(bytes, &agree(header, key, &alg, bytes)?, wrapped)
        }
        _ => None,
    }
}

/// The length of the key in the name of an algorithm.
fn wrap_bytes(alg: &[u8]) -> Option<usize> {
    match alg.get(..4)? {
        b"A128" => Some(16),
        b"A192" => Some(24),
        b"A256" => Some(32),
        _ => None,
    }
}

/// RFC 3394.
fn unwrap_aes(bytes: usize, secret: &[u8], wrapped: &[u8]) -> Option<Vec<u8>> {
    if secret.len() != bytes || wrapped.len() < 24 || !wrapped.len().is_multiple_of(8) {
        return None;
    }
    let mut key = vec![0; wrapped.len() - 8];
    unwrap_key(&AesKey::new_decrypt(secret).ok()?, None, &mut key, wrapped).ok()?;
    Some(key)
}

/// Unwraps by OAEP with a digest, else by PKCS #1 version 1.5.
fn unwrap_rsa(key: &PKey<Private>, wrapped: &[u8], digest: Option<MessageDigest>) -> Result<Vec<u8>, ErrorStack> {
    let mut decrypter = Decrypter::new(key)?;
    match digest {
        Some(digest) => {
            decrypter.set_rsa_padding(Padding::PKCS1_OAEP)?;
            decrypter.set_rsa_oaep_md(digest)?;
            decrypter.set_rsa_mgf1_md(digest)?;
        }
        None => decrypter.set_rsa_padding(Padding::PKCS1)?,
    }
    let mut out = vec![0; decrypter.decrypt_len(wrapped)?];
    let length = decrypter.decrypt(wrapped, &mut out)?;
    out.truncate(length);
    Ok(out)
}

/// A key agreed upon with the sender's ephemeral key, which the header holds (RFC 7518 section 4.6.2, NIST SP 800-56A
/// section 5.8.1).
fn agree(header: &[u8], key: &PKey<Private>, algorithm: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let theirs = PKey::from_ec_key(ec_public(member_text(header, "epk")?)?).ok()?;
    let mut deriver = Deriver::new(key).ok()?;
    deriver.set_peer(&theirs).ok()?;
    let shared = deriver.derive_to_vec().ok()?;
    let party = |name| member(header, name).and_then(|text| decode_exact(&text)).unwrap_or(Octets::EMPTY);
    let (sender, receiver) = (party("apu"), party("apv"));
    let mut out = Vec::new();
    for round in 1u32.. {
        let mut hasher = Hasher::new(MessageDigest::sha256()).ok()?;
        hasher.update(&round.to_be_bytes()).ok()?;
        hasher.update(&shared).ok()?;
        for part in [algorithm, &sender, &receiver] {
            hasher.update(&u32::try_from(part.len()).ok()?.to_be_bytes()).ok()?;
            hasher.update(part).ok()?;
        }
        hasher.update(&(bytes as u32 * 8).to_be_bytes()).ok()?;
        out.extend_from_slice(&hasher.finish().ok()?);
        if out.len() >= bytes {
            out.truncate(bytes);
            break;
        }
    }
    Some(out)
}

impl Key {
    /// The key in a JSON Web Key (RFC 7517, RFC 7518 section 6).
    pub(crate) fn of_jwk(jwk: &[u8]) -> Option<Key> {
        let number = |name| jwk_number(jwk, name);
        Some(match &*member(jwk, "kty")? {
            b"oct" => Key::Secret(decode(&member(jwk, "k")?, &URL)?.to_vec()),
            b"RSA" => {
                let mut builder = RsaPrivateKeyBuilder::new(number("n")?, number("e")?, number("d")?).ok()?;
                // All or none (RFC 7518 section 6.3.2); none makes it slower. A text that breaks off has some.
                if ["p", "q", "dp", "dq", "qi"].iter().any(|name| member(jwk, name).is_some()) {
                    builder = builder.set_factors(number("p")?, number("q")?).ok()?;
                    builder = builder.set_crt_params(number("dp")?, number("dq")?, number("qi")?).ok()?;
                }
                Key::Private(PKey::from_rsa(builder.build()).ok()?)
            }
            b"EC" => {
                let public = ec_public(jwk)?;
                let key = EcKey::from_private_components(public.group(), number("d")?.as_ref(), public.public_key()).ok()?;
                key.check_key().ok()?;
                Key::Private(PKey::from_ec_key(key).ok()?)
            }
            _ => return None,
        })
    }
}

/// The public part of a key on a curve; `None` for a point that is not on it.
fn ec_public(jwk: &[u8]) -> Option<EcKey<Public>> {
    let curve = match &*member(jwk, "crv")? {
        b"P-256" => Nid::X9_62_PRIME256V1,
        b"P-384" => Nid::SECP384R1,
        b"P-521" => Nid::SECP521R1,
        _ => return None,
    };
    let group = EcGroup::from_curve_name(curve).ok()?;
    EcKey::from_public_key_affine_coordinates(&group, jwk_number(jwk, "x")?.as_ref(), jwk_number(jwk, "y")?.as_ref()).ok()
}

fn jwk_number(jwk: &[u8], name: &str) -> Option<BigNum> {
    BigNum::from_slice(&decode(&member(jwk, name)?, &URL)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use terse_sample::convert::base64;

    /// RFC 7516 appendix A.3: A128KW and A128CBC-HS256.
    const WRAPPED: &str = "eyJhbGciOiJBMTI4S1ciLCJlbmMiOiJBMTI4Q0JDLUhTMjU2In0.\
        6KB707dM9YTIgHtLvtgWQ8mKwboJW3of9locizkDTHzBC2IlrT1oOQ.AxY8DCtDaGlsbGljb3RoZQ.\
        KDlTtXchhZTGufMYmOYGS4HffxPSUrfmqCHXaI9wOGY.U0m_YmjN04DJvceFICbCVQ";
    const SECRET: &str = "GawgguFyGrWKav7AX4VKUg";

    #[test]
    fn the_rfc_s_examples() {
        let mut bench = Bench::new();
        bench.set("txn.t", WRAPPED);
        bench.set("txn.secret", SECRET);
        bench.set("txn.jwk", format!(r#"{{"kty":"oct","k":"{SECRET}"}}"#));
        bench.set("txn.other", r#"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA"}"#);
        for (expression, expected) in [
            (format!("jwt_decrypt_secret({SECRET})"), "Live long and prosper."),
            ("jwt_decrypt_secret(txn.secret)".into(), "Live long and prosper."),
            ("jwt_decrypt_jwk(txn.jwk)".into(), "Live long and prosper."),
            ("jwt_decrypt_jwk(txn.other)".into(), ""),
            ("jwt_decrypt_secret(txn.none)".into(), ""),
            ("jwt_decrypt_cert(txn.none)".into(), ""),
        ] {
            assert_eq!(bench.eval(&format!("var(txn.t),{expression}")).as_deref(), Some(expected), "{expression}");
        }
        for (at, _) in WRAPPED.match_indices('.') {
            let broken = [&WRAPPED[..at], &WRAPPED[at + 1..]].concat();
            bench.set("txn.t", &broken);
            assert_eq!(bench.eval("var(txn.t),jwt_decrypt_jwk(txn.jwk)").as_deref(), Some(""), "{broken}");
        }
        assert!(bench.refuses("str(x),jwt_decrypt_jwk('{}')").contains("JSON Web Key"));
        assert!(bench.refuses("str(x),jwt_decrypt_cert(/none)").contains("/none"));
    }

    /// A token of RSA1_5 is decrypted where it is allowed; its key is wrapped for the text that stands first.
    #[test]
    fn what_is_allowed() {
        let key = PKey::from_rsa(openssl::rsa::Rsa::generate(2048).unwrap()).unwrap();
        let token = |content_key: &[u8]| {
            let url = |bytes: &[u8]| String::from_utf8(base64::encode(bytes, &base64::URL).to_vec()).unwrap();
            let header = url(br#"{"alg":"RSA1_5","enc":"A128GCM"}"#);
            let mut encrypter = openssl::encrypt::Encrypter::new(&key).unwrap();
            encrypter.set_rsa_padding(Padding::PKCS1).unwrap();
            let mut wrapped = vec![0; encrypter.encrypt_len(content_key).unwrap()];
            let length = encrypter.encrypt(content_key, &mut wrapped).unwrap();
            let (nonce, mut tag) = ([7; 12], [0; 16]);
            let cipher = symm::Cipher::aes_128_gcm();
            let content = symm::encrypt_aead(cipher, &[1; 16], Some(&nonce), header.as_bytes(), b"told", &mut tag).unwrap();
            [header, url(&wrapped[..length]), url(&nonce), url(&content), url(&tag)].join(".")
        };
        let mut bench = Bench::new();
        bench.file("k.pem", key.private_key_to_pem_pkcs8().unwrap());
        let content = |bench: &mut Bench, content_key: &[u8]| {
            bench.set("txn.t", token(content_key));
            bench.eval("var(txn.t),jwt_decrypt_cert(k.pem)")
        };
        assert_eq!(content(&mut bench, &[1; 16]).as_deref(), Some(""));
        for (algorithms, encryptions, expected) in [
            ("ALL", "A128GCM", "told"),
            ("RSA1_5", "ALL", "told"),
            ("ALL:!RSA1_5", "ALL", ""),
            ("dir:RSA-OAEP", "ALL", ""),
            ("ALL", "ALL:!A128GCM", ""),
            ("ALL", "A256GCM", ""),
        ] {
            bench.own::<Allowed>().parse(algorithms, encryptions);
            assert_eq!(content(&mut bench, &[1; 16]).as_deref(), Some(expected), "{algorithms} {encryptions}");
        }
        bench.own::<Allowed>().parse("ALL", "ALL");
        // Another key, and one that is too short.
        assert_eq!(content(&mut bench, &[2; 16]).as_deref(), Some(""));
        assert_eq!(content(&mut bench, &[1; 15]).as_deref(), Some(""));
        // As a JSON Web Key: whole, without the numbers that make it fast, and broken off.
        let rsa = key.rsa().unwrap();
        let number = |name: &str, number: &openssl::bn::BigNumRef| {
            let text = base64::encode(&number.to_vec(), &base64::URL);
            format!(r#","{name}":"{}""#, String::from_utf8_lossy(&text))
        };
        let least = format!(r#"{{"kty":"RSA"{}{}{}"#, number("n", rsa.n()), number("e", rsa.e()), number("d", rsa.d()));
        let factors = number("p", rsa.p().unwrap()) + &number("q", rsa.q().unwrap());
        let rest = number("dp", rsa.dmp1().unwrap()) + &number("dq", rsa.dmq1().unwrap()) + &number("qi", rsa.iqmp().unwrap());
        let whole = format!("{least}{factors}{rest}}}");
        for (jwk, expected) in [
            (&whole[..], "told"),
            (&format!("{least}}}"), "told"),
            (&format!("{least}{factors}}}"), ""),
            (&whole[..whole.len() - 20], ""),
        ] {
            bench.set("txn.t", token(&[1; 16]));
            bench.set("txn.jwk", jwk);
            assert_eq!(bench.eval("var(txn.t),jwt_decrypt_jwk(txn.jwk)").as_deref(), Some(expected), "{jwk}");
        }
        bench.set("txn.t", token(&[1; 16]).replacen(".", ".AA", 1));
        assert_eq!(bench.eval("var(txn.t),jwt_decrypt_cert(k.pem)").as_deref(), Some(""));
    }

    /// The key that both sides of RFC 7518 appendix C agree upon.
    #[test]
    fn the_agreement_of_rfc_7518() {
        let bob = r#"{"kty":"EC","crv":"P-256","x":"weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ",
            "y":"e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck","d":"VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw"}"#;
        let header = br#"{"alg":"ECDH-ES","enc":"A128GCM","apu":"QWxpY2U","apv":"Qm9i","epk":{"kty":"EC","crv":"P-256",
            "x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0","y":"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps"}}"#;
        let Some(Key::Private(key)) = Key::of_jwk(bob.as_bytes()) else { panic!("Bob's key") };
        let agreed = agree(header, &key, b"A128GCM", 16).unwrap();
        assert_eq!(agreed, *decode(b"VqqN6vgjbSBcIijNcacQGg", &URL).unwrap());
    }
}
