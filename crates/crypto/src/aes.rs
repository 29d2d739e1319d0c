//! AES in Galois/counter mode (NIST SP 800-38D) and in cipher block chaining (NIST SP 800-38A, padded as by RFC 5652 section 6.3).

use crate::key::{check_secret, secret};
use openssl::symm::{self, Cipher};
use terse_sample::argument::{Arg, Param, ParamKind, may, need};
use terse_sample::convert::base64;
use terse_sample::{ArgList, Converter, Env, Octets, Type, Value};

const GCM_ENCRYPT: &[Param] =
    &[need(ParamKind::Int), need(ParamKind::StrOrVar), need(ParamKind::StrOrVar), need(ParamKind::Var), may(ParamKind::StrOrVar)];
const GCM_DECRYPT: &[Param] = &[
    need(ParamKind::Int),
    need(ParamKind::StrOrVar),
    need(ParamKind::StrOrVar),
    need(ParamKind::StrOrVar),
    may(ParamKind::StrOrVar),
];
const CBC: &[Param] = &[need(ParamKind::Int), need(ParamKind::StrOrVar), need(ParamKind::StrOrVar), may(ParamKind::StrOrVar)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "aes_gcm_enc",
        Type::Bin,
        Type::Bin,
        "The bytes, encrypted by AES-GCM with a nonce and a key in base 64; the tag goes to a variable.",
        gcm_encrypt,
    )
    .params(GCM_ENCRYPT)
    .check(|args, _| check(args, GCM_SECRETS)),
    Converter::new(
        "aes_gcm_dec",
        Type::Bin,
        Type::Bin,
        "The bytes, decrypted by AES-GCM with a nonce, a key and a tag in base 64; nothing when the tag is wrong.",
        gcm_decrypt,
    )
    .params(GCM_DECRYPT)
    .check(|args, _| check(args, GCM_SECRETS)),
    Converter::new(
        "aes_cbc_enc",
        Type::Bin,
        Type::Bin,
        "The bytes, encrypted by AES-CBC with a nonce and a key in base 64. Nothing guards them against changes.",
        |value, args, env| cbc(value, args, env, symm::encrypt),
    )
    .params(CBC)
    .check(|args, _| check(args, CBC_SECRETS)),
    Converter::new(
        "aes_cbc_dec",
        Type::Bin,
        Type::Bin,
        "The bytes, decrypted by AES-CBC with a nonce and a key in base 64.",
        |value, args, env| cbc(value, args, env, symm::decrypt),
    )
    .params(CBC)
    .check(|args, _| check(args, CBC_SECRETS)),
];

const TAG_BYTES: usize = 16;
const BLOCK_BYTES: usize = 16;
/// The longest nonce that OpenSSL takes.
const MAX_NONCE_BYTES: usize = 16;

/// AES-GCM with keys of so many bytes.
pub(crate) fn gcm(key_bytes: usize) -> Option<Cipher> {
    Some(match key_bytes {
        16 => Cipher::aes_128_gcm(),
        24 => Cipher::aes_192_gcm(),
        32 => Cipher::aes_256_gcm(),
        _ => return None,
    })
}

/// AES-CBC with keys of so many bytes.
pub(crate) fn cbc_cipher(key_bytes: usize) -> Option<Cipher> {
    Some(match key_bytes {
        16 => Cipher::aes_128_cbc(),
        24 => Cipher::aes_192_cbc(),
        32 => Cipher::aes_256_cbc(),
        _ => return None,
    })
}

/// Nonce, key and further data that is guarded but not encrypted.
struct Inputs<'a> {
    nonce: Octets<'a>,
    key: Octets<'a>,
    further: Octets<'a>,
}

impl<'a> Inputs<'a> {
    /// The inputs of a call; `None` when one is missing, or when the key does not have the length in the first argument.
    fn of(args: &'a ArgList, env: &Env<'a>, further: usize) -> Option<Inputs<'a>> {
        let (nonce, key) = (secret(args, 1, env)?, secret(args, 2, env)?);
        let further = if let Arg::None = args.at(further) { Octets::EMPTY } else { secret(args, further, env)? };
        let fits = usize::try_from(args.int(0)?).ok()? == key.len() * 8;
        fits.then_some(Inputs { nonce, key, further })
    }
}

fn gcm_encrypt<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let inputs = Inputs::of(args, env, 4)?;
    let nonce = nonce(&inputs.nonce)?;
    let mut tag = [0; TAG_BYTES];
    let bytes = value.into_bytes()?;
    let sealed = symm::encrypt_aead(gcm(inputs.key.len())?, &inputs.key, Some(nonce), &inputs.further, &bytes, &mut tag).ok()?;
    env.vars.set(args.var(3)?, Value::Str(base64::encode(&tag, &base64::STANDARD)));
    Some(Value::Bin(Octets::from(sealed)))
}

fn gcm_decrypt<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let inputs = Inputs::of(args, env, 4)?;
    let nonce = nonce(&inputs.nonce)?;
    // A tag that is cut short would be guessed sooner.
    let tag = secret(args, 3, env).filter(|tag| tag.len() == TAG_BYTES)?;
    let bytes = value.into_bytes()?;
    let opened = symm::decrypt_aead(gcm(inputs.key.len())?, &inputs.key, Some(nonce), &inputs.further, &bytes, &tag).ok()?;
    Some(Value::Bin(Octets::from(opened)))
}

fn nonce(nonce: &[u8]) -> Option<&[u8]> {
    (1..=MAX_NONCE_BYTES).contains(&nonce.len()).then_some(nonce)
}

type Crypt = fn(Cipher, &[u8], Option<&[u8]>, &[u8]) -> Result<Vec<u8>, openssl::error::ErrorStack>;

/// As in HAProxy, further data has no effect, a short nonce is filled with zeros, and a long one is cut.
fn cbc<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>, crypt: Crypt) -> Option<Value<'a>> {
    let inputs = Inputs::of(args, env, 3)?;
    let mut nonce = [0; BLOCK_BYTES];
    nonce.iter_mut().zip(inputs.nonce.iter()).for_each(|(place, b)| *place = *b);
    let done = crypt(cbc_cipher(inputs.key.len())?, &inputs.key, Some(&nonce), &value.into_bytes()?).ok()?;
    Some(Value::Bin(Octets::from(done)))
}

/// Names of the arguments after the first, for messages.
const GCM_SECRETS: &[&str] = &["nonce", "key", "tag", "further data"];
const CBC_SECRETS: &[&str] = &["nonce", "key", "further data"];

fn check(args: &mut [Arg], names: &[&str]) -> Result<(), String> {
    let bits = match args.first() {
        Some(Arg::Int(bits @ (128 | 192 | 256))) => *bits,
        Some(Arg::Int(bits)) => return Err(format!("the key must have 128, 192 or 256 bits, not {bits}")),
        _ => return Err("the key must have 128, 192 or 256 bits".into()),
    };
    for (arg, name) in args.iter_mut().skip(1).zip(names) {
        check_secret(arg, name)?;
    }
    match args.get(2) {
        Some(Arg::Str(key)) if key.len() as i64 * 8 != bits => Err(format!("the key has {} bits, not {bits}", key.len() * 8)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    const KEY: &str = "Zm9vb2Zvb29mb29vb29vbw==";
    const NONCE: &str = "MTIzNDU2Nzg5MDEyMzQ1Ng==";

    #[test]
    fn what_is_encrypted_is_decrypted() {
        let mut bench = Bench::new();
        for (expression, expected) in [
            // As by `openssl enc -aes-128-cbc`.
            (
                format!("str('Hello from HAProxy AES-CBC'),aes_cbc_enc(128,{NONCE},{KEY}),base64"),
                Some("XJxppHFb7/atHE5XLwst52Ok8eWRd+NV/xYR09OWugs="),
            ),
            (format!("str(x),aes_cbc_enc(128,{NONCE},{KEY}),aes_cbc_dec(128,{NONCE},{KEY})"), Some("x")),
            (format!("str(x),aes_cbc_dec(128,{NONCE},{KEY})"), None),
            (
                format!("str('Hello from HAProxy AES-CBC'),aes_gcm_enc(128,{NONCE},{KEY},txn.tag),base64"),
                Some("kNF1HtksNxtdH3QY+dfRFV2ZqH18U21vjLY="),
            ),
            ("var(txn.tag)".into(), Some("SXSViecDjpoTWzcmPjJO3w==")),
            (format!("str(x),aes_gcm_enc(128,{NONCE},{KEY},txn.tag,YWFk),aes_gcm_dec(128,{NONCE},{KEY},txn.tag,YWFk)"), Some("x")),
            (format!("str(x),aes_gcm_enc(128,{NONCE},{KEY},txn.tag,YWFk),aes_gcm_dec(128,{NONCE},{KEY},txn.tag)"), None),
            (format!("str(x),aes_gcm_enc(128,{NONCE},{KEY},txn.tag),aes_gcm_dec(128,{NONCE},{KEY},AAAA)"), None),
            (format!("str(x),aes_gcm_enc(128,{NONCE},txn.none,txn.tag)"), None),
        ] {
            assert_eq!(bench.eval(&expression).as_deref(), expected, "{expression}");
        }
        for (wrong, said) in [
            (format!("aes_cbc_enc(64,{NONCE},{KEY})"), "128, 192 or 256"),
            (format!("aes_cbc_enc(256,{NONCE},{KEY})"), "128 bits, not 256"),
            ("aes_cbc_enc(128,$,x)".into(), "base 64"),
            (format!("aes_gcm_enc(128,{NONCE},{KEY},tag)"), "tag"),
        ] {
            let reason = bench.refuses(&format!("str(x),{wrong}"));
            assert!(reason.contains(said), "{wrong}: {reason}");
        }
        let reason = bench.refuses(&format!("str(x),aes_cbc_enc(128,{NONCE},$ecret)"));
        assert!(reason.contains("the key") && !reason.contains("ecret"), "{reason}");
    }
}
