//! Cryptographic digests: SHA-1 and SHA-2 (FIPS 180-4), MD5 (RFC 1321), HMAC (RFC 2104), comparison in constant time.

use super::base64;
use crate::argument::{Arg, ArgList, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::Octets;
use crate::registry::Converter;
use crate::value::{Type, Value};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Digest;

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new("sha1", Type::Bin, Type::Bin, "The SHA-1 digest.", |value, _, _| digest(Algorithm::Sha1, value)),
    Converter::new(
        "sha2",
        Type::Bin,
        Type::Bin,
        "The SHA-2 digest of 224, 256, 384 or 512 bits; 256 without an argument.",
        by_argument,
    )
    .params(&[may(ParamKind::Int)])
    .check(check_bits),
    Converter::new(
        "digest",
        Type::Bin,
        Type::Bin,
        "The digest of that name: md5, sha1, sha224, sha256, sha384, sha512.",
        by_argument,
    )
    .params(&[need(ParamKind::Str)])
    .check(check_name),
    Converter::new("hmac", Type::Bin, Type::Bin, "The HMAC under a digest and a key, in base 64 or in a variable.", keyed)
        .params(&[need(ParamKind::Str), need(ParamKind::StrOrVar)])
        .check(check_key),
    Converter::new(
        "secure_memcmp",
        Type::Bin,
        Type::Bool,
        "Whether the bytes are those of a variable; the time it takes does not tell where they differ.",
        secure_memcmp,
    )
    .params(&[need(ParamKind::Var)]),
];

#[derive(Clone, Copy, Debug)]
enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    fn named(name: &[u8]) -> Option<Algorithm> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"md5" => Algorithm::Md5,
            b"sha1" => Algorithm::Sha1,
            b"sha224" => Algorithm::Sha224,
            b"sha256" => Algorithm::Sha256,
            b"sha384" => Algorithm::Sha384,
            b"sha512" => Algorithm::Sha512,
            _ => return None,
        })
    }
}

fn digest(algorithm: Algorithm, value: Value<'_>) -> Option<Value<'_>> {
    let bytes = value.into_bytes()?;
    Some(Value::Bin(match algorithm {
        Algorithm::Md5 => Octets::copy(&md5::Md5::digest(&*bytes)),
        Algorithm::Sha1 => Octets::copy(&sha1::Sha1::digest(&*bytes)),
        Algorithm::Sha224 => Octets::copy(&sha2::Sha224::digest(&*bytes)),
        Algorithm::Sha256 => Octets::copy(&sha2::Sha256::digest(&*bytes)),
        Algorithm::Sha384 => Octets::copy(&sha2::Sha384::digest(&*bytes)),
        Algorithm::Sha512 => Octets::copy(&sha2::Sha512::digest(&*bytes)),
    }))
}

fn by_argument<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    digest(*args.own(0)?, value)
}

fn keyed<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let key = match args.var(1) {
        Some(slot) => base64::decode(&env.vars.get(slot)?.into_bytes()?, &base64::STANDARD)?,
        // An empty key is no argument, and a key all the same.
        None => Octets::from(args.str(1).unwrap_or_default()),
    };
    let bytes = value.into_bytes()?;
    fn mac<M: Mac + KeyInit>(key: &[u8], bytes: &[u8]) -> Option<Octets<'static>> {
        let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
        mac.update(bytes);
        Some(Octets::copy(&mac.finalize().into_bytes()))
    }
    let code = match *args.own(0)? {
        Algorithm::Md5 => mac::<Hmac<md5::Md5>>(&key, &bytes),
        Algorithm::Sha1 => mac::<Hmac<sha1::Sha1>>(&key, &bytes),
        Algorithm::Sha224 => mac::<Hmac<sha2::Sha224>>(&key, &bytes),
        Algorithm::Sha256 => mac::<Hmac<sha2::Sha256>>(&key, &bytes),
        Algorithm::Sha384 => mac::<Hmac<sha2::Sha384>>(&key, &bytes),
        Algorithm::Sha512 => mac::<Hmac<sha2::Sha512>>(&key, &bytes),
    };
    code.map(Value::Bin)
}

fn secure_memcmp<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let other = env.vars.get(args.var(0)?)?.cast(Type::Bin)?.into_bytes()?;
    let bytes = value.into_bytes()?;
    // `black_box` keeps the loop from ending at the first difference.
    let differences = bytes.iter().zip(other.iter()).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    Some(Value::Bool(bytes.len() == other.len() && differences == 0))
}

fn check_bits(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let algorithm = match args.first() {
        Some(Arg::Int(224)) => Algorithm::Sha224,
        Some(Arg::Int(256) | Arg::None) | None => Algorithm::Sha256,
        Some(Arg::Int(384)) => Algorithm::Sha384,
        Some(Arg::Int(512)) => Algorithm::Sha512,
        Some(Arg::Int(bits)) => return Err(format!("expects 224, 256, 384 or 512 bits, not {bits}")),
        _ => return Err("expects 224, 256, 384 or 512 bits".into()),
    };
    *args = vec![Arg::own(algorithm)];
    Ok(())
}

fn check_name(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(name)) = args.first() else { return Err("expects the name of a digest".into()) };
    let algorithm = Algorithm::named(name).ok_or_else(|| {
        format!("unknown digest '{}', expects one of md5, sha1, sha224, sha256, sha384, sha512", name.escape_ascii())
    })?;
    args[0] = Arg::own(algorithm);
    Ok(())
}

fn check_key(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    check_name(args, compiler)?;
    if let Some(Arg::Str(key)) = args.get(1) {
        let key = base64::decode(key, &base64::STANDARD).ok_or("the key is neither in base 64 nor a variable")?;
        args[1] = Arg::Str((*key).into());
    }
    Ok(())
}
