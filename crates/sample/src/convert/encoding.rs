//! Bytes as digits and digits as bytes.

use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::cast;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};
use data_encoding::HEXUPPER;

const CHUNKED: &[Param] = &[need(ParamKind::Str), may(ParamKind::Int), may(ParamKind::Int)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new("hex", Type::Bin, Type::Str, "The bytes in hexadecimal digits.", |value, _, _| {
        let mut out = Buffer::new();
        push_hex(&value.into_bytes()?, &mut out);
        Some(Value::Str(Octets::from(out)))
    }),
    Converter::new("base2", Type::Bin, Type::Str, "The bytes in binary digits.", |value, _, _| {
        let mut out = Buffer::new();
        for b in value.into_bytes()?.iter() {
            out.extend((0..8).map(|i| b'0' + (b >> (7 - i) & 1)));
        }
        Some(Value::Str(Octets::from(out)))
    }),
    Converter::new("hex2i", Type::Str, Type::Int, "The number that is written in hexadecimal digits.", |value, _, _| {
        let digit = |&b: &u8| char::from(b).to_digit(16);
        let text = value.into_bytes()?;
        text.iter().try_fold(0i64, |n, b| Some(n.wrapping_shl(4).wrapping_add(i64::from(digit(b)?)))).map(Value::Int)
    }),
    Converter::new(
        "be2dec",
        Type::Bin,
        Type::Str,
        "The bytes as decimal numbers of so many bytes each, the highest first.",
        |v, a, _| decimals(v, a, true),
    )
    .params(CHUNKED)
    .check(check_decimals),
    Converter::new(
        "le2dec",
        Type::Bin,
        Type::Str,
        "The bytes as decimal numbers of so many bytes each, the lowest first.",
        |v, a, _| decimals(v, a, false),
    )
    .params(CHUNKED)
    .check(check_decimals),
    Converter::new("be2hex", Type::Bin, Type::Str, "The bytes in hexadecimal digits, in groups.", hexadecimals)
        .params(&[may(ParamKind::Str), may(ParamKind::Int), may(ParamKind::Int)])
        .check(check_hexadecimals),
    Converter::new(
        "htonl",
        Type::Int,
        Type::Bin,
        "The lowest 32 bits of the number as four bytes, the highest first.",
        |value, _, _| Some(Value::Bin(Octets::copy(&(value.into_int()? as u32).to_be_bytes()))),
    ),
    Converter::new(
        "has_ctl",
        Type::Bin,
        Type::Bool,
        "Whether a control character is in it: any but the tab, any, or those of HTTP.",
        |value, args, _| {
            let mask = args.int(0)?;
            let bit = |b: u8| if b == 0x7f { 1i64 << 32 } else { 1i64.checked_shl(b.into()).filter(|_| b < 0x20).unwrap_or(0) };
            Some(Value::Bool(value.into_bytes()?.iter().any(|&b| mask & bit(b) != 0)))
        },
    )
    .params(&[may(ParamKind::Str)])
    .check(check_mask),
];

/// The groups of so many bytes; a last one that is shorter is left out on request.
fn groups(bytes: &[u8], size: usize, whole_only: bool) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(size.max(1)).filter(move |group| !whole_only || group.len() == size)
}

fn decimals<'a>(value: Value<'a>, args: &'a ArgList, big_endian: bool) -> Option<Value<'a>> {
    let (separator, size) = (args.str(0)?, usize::try_from(args.int(1)?).ok()?);
    let mut out = Buffer::new();
    for (i, group) in groups(&value.into_bytes()?, size, args.int(2) == Some(1)).enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        let add = |n: u64, &b: &u8| n << 8 | u64::from(b);
        let n = if big_endian { group.iter().fold(0, add) } else { group.iter().rev().fold(0, add) };
        match i64::try_from(n) {
            Ok(n) => out.extend_from_slice(&cast::decimal(n)),
            Err(_) => out.extend_from_slice(n.to_string().as_bytes()),
        }
    }
    Some(Value::Str(Octets::from(out)))
}

fn hexadecimals<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let bytes = value.into_bytes()?;
    let (separator, whole_only) = (args.str(0).unwrap_or_default(), args.int(2) == Some(1));
    let size = match args.int(1).unwrap_or(0) {
        _ if separator.is_empty() && !whole_only => bytes.len(),
        size => usize::try_from(size).ok()?,
    };
    let mut out = Buffer::new();
    for (i, group) in groups(&bytes, size, whole_only).enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        push_hex(group, &mut out);
    }
    Some(Value::Str(Octets::from(out)))
}

/// Appends bytes in hexadecimal digits.
pub(super) fn push_hex(bytes: &[u8], out: &mut Buffer) {
    let from = out.len();
    out.resize(from + HEXUPPER.encode_len(bytes.len()), 0);
    HEXUPPER.encode_mut(bytes, &mut out[from..]);
}

fn check_decimals(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    match args.get(1) {
        Some(Arg::Int(1..=8)) => check_truncate(args),
        Some(Arg::Int(size)) => Err(format!("the size of a group must lie between 1 and 8, which {size} does not")),
        _ => Err("expects the size of a group, between 1 and 8".into()),
    }
}

fn check_hexadecimals(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let has_separator = matches!(args.first(), Some(Arg::Str(s)) if !s.is_empty());
    let truncates = matches!(args.get(2), Some(Arg::Int(n)) if *n != 0);
    match args.get(1) {
        Some(Arg::Int(1..)) => check_truncate(args),
        _ if has_separator || truncates => Err("the size of a group must be positive".into()),
        _ => Ok(()),
    }
}

fn check_truncate(args: &[Arg]) -> Result<(), String> {
    match args.get(2) {
        None | Some(Arg::None | Arg::Int(0 | 1)) => Ok(()),
        _ => Err("what to do with a short last group must be 0 (keep it) or 1 (leave it out)".into()),
    }
}

fn check_mask(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    const ALL: i64 = 0x1_ffff_ffff;
    const TAB: i64 = 1 << 9;
    let mask = match args.first() {
        None | Some(Arg::None) => ALL & !TAB,
        Some(Arg::Str(word)) => match &**word {
            b"" => ALL & !TAB,
            b"any" => ALL,
            b"http" => 1 | 1 << 10 | 1 << 13,
            number => {
                let text = std::str::from_utf8(number).unwrap_or_default();
                let parsed = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
                    Some(digits) => i64::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                parsed.map_err(|_| format!("'{}' is not 'any', 'http' or a number", number.escape_ascii()))?
            }
        },
        _ => return Err("expects 'any', 'http' or a number".into()),
    };
    if mask & !ALL != 0 {
        return Err(format!("bits beyond {ALL:#x} stand for no control character"));
    }
    *args = vec![Arg::Int(mask)];
    Ok(())
}
