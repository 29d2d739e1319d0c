//! Parts of a value: `field`, `word`, `bytes`, `param`, `ltrim`, `rtrim`, `cut_crlf`, `length`.

use super::arithmetic::operand;
use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::Octets;
use crate::registry::Converter;
use crate::value::{Type, Value};
use std::ops::Range;

const FIELD: &[Param] = &[need(ParamKind::Int), need(ParamKind::Str), may(ParamKind::Int)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "field",
        Type::Str,
        Type::Str,
        "The part between delimiters of that number, from 1 or from -1 at the end.",
        |v, a, _| part(v, a, field),
    )
    .params(FIELD)
    .check(check_field),
    Converter::new("word", Type::Str, Type::Str, "The same, runs of delimiters counting as one.", |v, a, _| part(v, a, word))
        .params(FIELD)
        .check(check_field),
    Converter::new("bytes", Type::Bin, Type::Bin, "The bytes from an offset on, or so many of them.", bytes)
        .params(&[need(ParamKind::IntOrVar), may(ParamKind::IntOrVar)])
        .check(check_bytes),
    Converter::new(
        "param",
        Type::Str,
        Type::Str,
        "The value of a parameter of a query, or of another list with a delimiter.",
        param,
    )
    .params(&[need(ParamKind::Str), may(ParamKind::Str)])
    .check(check_param),
    Converter::new("ltrim", Type::Str, Type::Str, "The text without these characters at its start.", |value, args, _| {
        let text = value.into_octets()?;
        let start = text.iter().take_while(|b| args.str(0).is_some_and(|set| set.contains(b))).count();
        let end = text.len();
        Some(Value::Str(text.slice(start..end)))
    })
    .params(&[need(ParamKind::Str)]),
    Converter::new("rtrim", Type::Str, Type::Str, "The text without these characters at its end.", |value, args, _| {
        let text = value.into_octets()?;
        let cut = text.iter().rev().take_while(|b| args.str(0).is_some_and(|set| set.contains(b))).count();
        let end = text.len() - cut;
        Some(Value::Str(text.slice(0..end)))
    })
    .params(&[need(ParamKind::Str)]),
    Converter::new("cut_crlf", Type::Str, Type::Str, "The first line.", |value, _, _| {
        let text = value.into_octets()?;
        let end = memchr::memchr2(b'\r', b'\n', &text).unwrap_or(text.len());
        Some(Value::Str(text.slice(0..end)))
    }),
    Converter::new("length", Type::Str, Type::Int, "The number of bytes.", |value, _, _| {
        Some(Value::Int(value.into_octets()?.len() as i64))
    }),
];

/// A text read from its start or from its end.
#[derive(Clone, Copy)]
struct Reading<'a> {
    text: &'a [u8],
    backwards: bool,
    delimiters: &'a [u8],
}

impl Reading<'_> {
    fn is_delimiter(self, i: usize) -> bool {
        let i = if self.backwards { self.text.len() - 1 - i } else { i };
        self.text.get(i).is_some_and(|b| self.delimiters.contains(b))
    }

    /// The first offset from `at` on that is a delimiter, or that is not; the end when there is no such offset.
    fn find(self, at: usize, delimiter: bool) -> usize {
        (at..self.text.len()).find(|&i| self.is_delimiter(i) == delimiter).unwrap_or(self.text.len())
    }
}

fn part<'a>(value: Value<'a>, args: &'a ArgList, find: fn(Reading<'_>, u64, u64) -> Option<Range<usize>>) -> Option<Value<'a>> {
    let text = value.into_octets()?;
    let number = args.int(0)?;
    let count = u64::try_from(args.int(2).unwrap_or(1)).unwrap_or(0);
    let reading = Reading { text: &text, backwards: number < 0, delimiters: args.str(1)? };
    let Range { start, end } = find(reading, number.unsigned_abs(), count)?;
    let (start, end) = if number < 0 { (text.len() - end, text.len() - start) } else { (start, end) };
    Some(Value::Str(text.slice(start..end)))
}

/// `count` fields from the `number`th on; all remaining fields with a count of 0.
fn field(reading: Reading<'_>, number: u64, count: u64) -> Option<Range<usize>> {
    let len = reading.text.len();
    let mut start = 0;
    for _ in 1..number {
        start = reading.find(start, true) + 1;
        if start > len {
            return None;
        }
    }
    let mut end = start;
    for i in 1.. {
        end = reading.find(end, true);
        if end == len || i == count {
            break;
        }
        end += 1;
    }
    Some(start..end)
}

/// The same with runs of delimiters between the parts. As in HAProxy, a result that reaches the end of the text keeps the
/// delimiters there.
fn word(reading: Reading<'_>, number: u64, count: u64) -> Option<Range<usize>> {
    let len = reading.text.len();
    let mut start = reading.find(0, false);
    for _ in 1..number {
        start = reading.find(reading.find(start, true), false);
        if start == len {
            return None;
        }
    }
    let mut at = start;
    for i in 1.. {
        let end = reading.find(at, true);
        if end < len && i == count {
            return Some(start..end);
        }
        at = reading.find(end, false);
        if at == len {
            break;
        }
    }
    (start < len).then_some(start..len)
}

fn check_field(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    match (args.first(), args.get(1)) {
        (Some(Arg::Int(0)), _) => Err("the number must not be 0: parts are counted from 1, or from -1 at the end".into()),
        (_, Some(Arg::Str(delimiters))) if delimiters.is_empty() => Err("the delimiters must not be empty".into()),
        _ => Ok(()),
    }
}

fn bytes<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let bytes = value.into_bytes()?;
    let start = usize::try_from(operand(args, 0, env)?).ok()?;
    let length = match args.at(1) {
        Arg::None => bytes.len(),
        _ => usize::try_from(operand(args, 1, env)?).ok()?,
    };
    Some(Value::Bin(bytes.slice(start..start.saturating_add(length))))
}

fn check_bytes(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    match (args.first(), args.get(1)) {
        (Some(Arg::Int(..0)), _) => Err("the offset must not be negative".into()),
        (_, Some(Arg::Int(..1))) => Err("the length must be positive".into()),
        _ => Ok(()),
    }
}

fn param<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let text = value.into_octets()?;
    let name = args.str(0)?;
    let delimiter = args.str(1).and_then(<[u8]>::first).copied().unwrap_or(b'&');
    let mut at = 0;
    while at < text.len() {
        let end = memchr::memchr(delimiter, &text[at..]).map_or(text.len(), |i| at + i);
        match text[at..end].strip_prefix(name) {
            Some(b"") => return Some(Value::Str(Octets::EMPTY)),
            Some([b'=', ..]) => return Some(Value::Str(text.slice(at + name.len() + 1..end))),
            _ => at = end + 1,
        }
    }
    None
}

fn check_param(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(word)) = args.get(1) else { return Ok(()) };
    let delimiter = match &**word {
        [one] => Some(vec![*one]),
        [b'0', b'x', digits @ ..] if digits.len() == 2 => crate::pattern::hex(digits),
        _ => None,
    };
    let delimiter = delimiter.ok_or_else(|| format!("'{}' is neither one character nor 0xHH", word.escape_ascii()))?;
    args[1] = Arg::Str(delimiter.into());
    Ok(())
}
