//! JSON (RFC 8259): `json` makes the inside of a JSON string.

use crate::argument::{Arg, ArgList, ParamKind, may};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};

pub(crate) const CONVERTERS: &[Converter] = &[Converter::new(
    "json",
    Type::Str,
    Type::Str,
    "The text as the inside of a JSON string; it is ascii, utf8, utf8s, utf8p or utf8ps.",
    json,
)
.params(&[may(ParamKind::Str)])
.check(check)];

/// Encoding of the input, and the treatment of sequences that it must not hold.
#[derive(Clone, Copy, Debug)]
enum Input {
    Ascii,
    /// A wrong sequence makes the whole value undefined.
    Strict,
    /// A wrong sequence is left out.
    Skipping,
}

fn check(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let input = match args.first() {
        None | Some(Arg::None) => Input::Ascii,
        Some(Arg::Str(word)) => match &**word {
            b"" | b"ascii" => Input::Ascii,
            b"utf8" | b"utf8p" => Input::Strict,
            b"utf8s" | b"utf8ps" => Input::Skipping,
            other => return Err(format!("'{}' is not one of ascii, utf8, utf8s, utf8p, utf8ps", other.escape_ascii())),
        },
        _ => return Err("expects ascii, utf8, utf8s, utf8p or utf8ps".into()),
    };
    *args = vec![Arg::own(input)];
    Ok(())
}

fn json<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let text = value.into_octets()?;
    let mut out = Buffer::new();
    match *args.own(0)? {
        Input::Ascii => text.iter().for_each(|&b| push(b.into(), &mut out)),
        input => {
            for chunk in text.utf8_chunks() {
                for c in chunk.valid().chars() {
                    match u16::try_from(u32::from(c)) {
                        Ok(c) => push(c, &mut out),
                        // An escape has four digits: characters beyond have none of their own.
                        Err(_) if matches!(input, Input::Skipping) => {}
                        Err(_) => return None,
                    }
                }
                if !chunk.invalid().is_empty() && !matches!(input, Input::Skipping) {
                    return None;
                }
            }
        }
    }
    Some(Value::Str(Octets::from(out)))
}

fn push(c: u16, out: &mut Buffer) {
    let short = match c {
        0x22 => b'"',
        0x5c => b'\\',
        0x2f => b'/',
        0x08 => b'b',
        0x0c => b'f',
        0x0d => b'r',
        0x0a => b'n',
        0x09 => b't',
        0x20..=0x7e => return out.push(c as u8),
        _ => {
            out.extend_from_slice(b"\\u");
            return out.extend([12, 8, 4, 0].map(|shift| b"0123456789abcdef"[usize::from(c >> shift & 15)]));
        }
    };
    out.extend([b'\\', short]);
}
