//! Text: letters, joining, replacing, comparing.

use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::regexp;
use crate::registry::Converter;
use crate::value::{Type, Value};

const JOIN: &[Param] = &[need(ParamKind::Str), may(ParamKind::Var), may(ParamKind::Str)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new("lower", Type::Str, Type::Str, "The text in small letters.", |value, _, _| {
        let mut text = value.into_octets()?;
        if text.iter().any(u8::is_ascii_uppercase) {
            text.to_mut().make_ascii_lowercase();
        }
        Some(Value::Str(text))
    }),
    Converter::new("upper", Type::Str, Type::Str, "The text in capital letters.", |value, _, _| {
        let mut text = value.into_octets()?;
        if text.iter().any(u8::is_ascii_lowercase) {
            text.to_mut().make_ascii_uppercase();
        }
        Some(Value::Str(text))
    }),
    Converter::new("reverse", Type::Str, Type::Str, "The text from its end to its start.", |value, _, _| {
        let mut text = value.into_octets()?;
        text.to_mut().reverse();
        Some(Value::Str(text))
    }),
    Converter::new("reverse_dom", Type::Str, Type::Str, "A domain's labels from the last to the first.", reverse_dom),
    Converter::new("concat", Type::Str, Type::Str, "The text, a text, a variable and a text.", concat).params(JOIN),
    Converter::new(
        "add_item",
        Type::Str,
        Type::Str,
        "The text with one more item of a list: a variable and a text behind a delimiter.",
        add_item,
    )
    .params(&[need(ParamKind::Str), may(ParamKind::Var), may(ParamKind::Str)])
    .check(check_add_item),
    Converter::new("iif", Type::Bool, Type::Str, "The first text when it is true, else the second.", |value, args, _| {
        args.str(usize::from(!value.into_bool()?)).map(Value::str)
    })
    .params(&[need(ParamKind::Str), need(ParamKind::Str)]),
    Converter::new(
        "strcmp",
        Type::Str,
        Type::Int,
        "Less than, equal to or more than 0, as the text stands before, at or behind a variable's.",
        strcmp,
    )
    .params(&[need(ParamKind::Var)]),
    Converter::new(
        "regsub",
        Type::Str,
        Type::Str,
        "The text with what a regular expression matches replaced; 'g' all, 'i' in any case.",
        regsub,
    )
    .params(&[need(ParamKind::Str), need(ParamKind::Str), may(ParamKind::Str)])
    .check(check_regsub),
];

fn reverse_dom<'a>(value: Value<'a>, _: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let text = value.into_octets()?;
    let domain = text.strip_suffix(b".").unwrap_or(&text);
    let mut out = Buffer::new();
    for label in domain.rsplit(|&b| b == b'.') {
        if label.is_empty() {
            return None;
        }
        if !out.is_empty() {
            out.push(b'.');
        }
        out.extend_from_slice(label);
    }
    Some(Value::Str(Octets::from(out)))
}

/// A variable's text; empty when it is not set or has none.
fn variable(args: &ArgList, i: usize, env: &Env<'_>) -> Octets<'static> {
    args.var(i).and_then(|slot| env.vars.get(slot)).and_then(Value::into_octets).unwrap_or(Octets::EMPTY)
}

fn concat<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let mut out = Buffer::from_slice(&value.into_octets()?);
    out.extend_from_slice(args.str(0).unwrap_or_default());
    out.extend_from_slice(&variable(args, 1, env));
    out.extend_from_slice(args.str(2).unwrap_or_default());
    Some(Value::Str(Octets::from(out)))
}

fn add_item<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let (item, suffix) = (variable(args, 1, env), args.str(2).unwrap_or_default());
    let mut out = Buffer::from_slice(&value.into_octets()?);
    let adds = !item.is_empty() || !suffix.is_empty();
    if !out.is_empty() && adds {
        out.extend_from_slice(args.str(0).unwrap_or_default());
    }
    out.extend_from_slice(&item);
    out.extend_from_slice(suffix);
    Some(Value::Str(Octets::from(out)))
}

fn check_add_item(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let suffix = matches!(args.get(2), Some(Arg::Str(s)) if !s.is_empty());
    match args.get(1) {
        Some(Arg::Var(_)) => Ok(()),
        _ if suffix => Ok(()),
        _ => Err("a variable or a text must be given to add".into()),
    }
}

/// Compares as HAProxy does: the first bytes that differ are subtracted, or else the longer text is greater by 1.
fn strcmp<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let other = env.vars.get(args.var(0)?)?.into_octets()?;
    let text = value.into_octets()?;
    let difference = text.iter().zip(other.iter()).map(|(a, b)| i64::from(*a) - i64::from(*b)).find(|difference| *difference != 0);
    Some(Value::Int(difference.unwrap_or(text.len().cmp(&other.len()) as i64)))
}

fn regsub<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let (Arg::Regex(regex), Some(template)) = (args.at(0), args.str(1)) else { return None };
    let text = value.into_octets()?;
    let limit = if args.int(2) == Some(1) { usize::MAX } else { 1 };
    let (mut out, mut at) = (Buffer::new(), 0);
    let mut left = limit;
    regex.each(&text, |groups| {
        if let Some(whole) = groups.place(0) {
            out.extend_from_slice(&text[at..whole.start]);
            regexp::expand(template, &groups, &mut out);
            at = whole.end;
        }
        left -= 1;
        left == 0
    });
    if at == 0 && out.is_empty() {
        return Some(Value::Str(text));
    }
    out.extend_from_slice(&text[at..]);
    Some(Value::Str(Octets::from(out)))
}

fn check_regsub(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let flags = match args.get(2) {
        Some(Arg::Str(flags)) => flags.clone(),
        _ => Box::default(),
    };
    if let Some(wrong) = flags.iter().find(|b| !matches!(b, b'i' | b'g')) {
        return Err(format!("invalid flag '{}', only 'i' and 'g' are known", wrong.escape_ascii()));
    }
    let Some(Arg::Str(pattern)) = args.first() else { return Err("expects a regular expression".into()) };
    args[0] = Arg::Regex(Box::new(regexp::compile(pattern, flags.contains(&b'i'))?));
    args.truncate(2);
    args.push(Arg::Int(i64::from(flags.contains(&b'g'))));
    Ok(())
}
