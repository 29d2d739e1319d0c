//! Header fields: `req.hdr`, `res.hdr` and their like.
//!
//! The `hdr` kind takes a value at each comma outside quotes, empty ones too; the `fhdr` kind takes whole field values. Without an
//! occurrence a single value is the last one, and an ACL tries all of them.

use super::side::{Current, Req, Res, Side, direction};
use crate::argument::{Arg, ArgList, HeaderName, ParamKind, may};
use crate::cast;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::{Fetch, Needs};
use crate::value::{Type, Value};
use terse_message::Fields;

const NAME_AND_OCCURRENCE: &[crate::Param] = &[may(ParamKind::Header), may(ParamKind::Int)];
const NAME: &[crate::Param] = &[may(ParamKind::Header)];

/// The four tables of one side would be one, if constants could loop.
macro_rules! fetches {
    ($side:ty, $needs:expr, $whose:literal, $check:expr, $hdr:literal, $cnt:literal, $val:literal, $ip:literal, $($also:literal),*) => {
        [
            Fetch::each($hdr, Type::Str, concat!("A value of a header field of the ", $whose, "."), hdr::<$side>, each_hdr::<$side>)
                .params(NAME_AND_OCCURRENCE).needs($needs).check($check).also(&[$($also),*]),
            Fetch::one($cnt, Type::Int, concat!("How many values a header field of the ", $whose, " has."), hdr_cnt::<$side>)
                .params(NAME).needs($needs),
            Fetch::each($val, Type::Int, concat!("A value of a header field of the ", $whose, " as a number."), hdr_val::<$side>, each_val::<$side>)
                .params(NAME_AND_OCCURRENCE).needs($needs).check($check),
            Fetch::each($ip, Type::Addr, concat!("A value of a header field of the ", $whose, " as an address."), hdr_ip::<$side>, each_ip::<$side>)
                .params(NAME_AND_OCCURRENCE).needs($needs).check($check),
        ]
    };
}

const REQ: [Fetch; 4] =
    fetches!(Req, Needs::REQUEST, "request", occurrence, "req.hdr", "req.hdr_cnt", "req.hdr_val", "req.hdr_ip",);
const RES: [Fetch; 4] =
    fetches!(Res, Needs::RESPONSE, "response", occurrence, "res.hdr", "res.hdr_cnt", "res.hdr_val", "res.hdr_ip", "shdr");

pub(crate) const FETCHES: &[Fetch] = &[
    REQ[0],
    REQ[1].also(&["hdr_cnt"]),
    REQ[2].also(&["hdr_val"]),
    REQ[3].also(&["hdr_ip"]),
    RES[0],
    RES[1].also(&["shdr_cnt"]),
    RES[2].also(&["shdr_val"]),
    RES[3].also(&["shdr_ip"]),
    Fetch::each(
        "hdr",
        Type::Str,
        "A value of a header field of the message that is processed; in an ACL, of the request.",
        hdr::<Current>,
        each_hdr::<Current>,
    )
    .params(NAME_AND_OCCURRENCE)
    .check(|args, compiler| occurrence(args, compiler).and_then(|()| direction(args, compiler))),
    Fetch::each("req.fhdr", Type::Str, "A whole header field of the request.", fhdr::<Req>, each_fhdr::<Req>)
        .params(NAME_AND_OCCURRENCE)
        .needs(Needs::REQUEST)
        .check(occurrence),
    Fetch::each("res.fhdr", Type::Str, "A whole header field of the response.", fhdr::<Res>, each_fhdr::<Res>)
        .params(NAME_AND_OCCURRENCE)
        .needs(Needs::RESPONSE)
        .check(occurrence),
    Fetch::one("req.fhdr_cnt", Type::Int, "How many header fields of that name the request has.", fhdr_cnt::<Req>)
        .params(NAME)
        .needs(Needs::REQUEST),
    Fetch::one("res.fhdr_cnt", Type::Int, "How many header fields of that name the response has.", fhdr_cnt::<Res>)
        .params(NAME)
        .needs(Needs::RESPONSE),
    Fetch::one("req.hdr_names", Type::Str, "The names of the request's header fields, in order.", names::<Req>)
        .params(&[may(ParamKind::Str)])
        .needs(Needs::REQUEST),
    Fetch::one("res.hdr_names", Type::Str, "The names of the response's header fields, in order.", names::<Res>)
        .params(&[may(ParamKind::Str)])
        .needs(Needs::RESPONSE),
    Fetch::one("req.hdrs", Type::Str, "The request's header fields as lines, and an empty line.", lines::<Req>)
        .needs(Needs::REQUEST),
    Fetch::one("res.hdrs", Type::Str, "The response's header fields as lines, and an empty line.", lines::<Res>)
        .needs(Needs::RESPONSE),
];

/// The oldest occurrence that can be counted from the end.
const OLDEST: i64 = -10;

fn occurrence(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    match args.get(1) {
        Some(Arg::Int(n)) if *n < OLDEST => Err(format!("header occurrence {n} is too low, expects {OLDEST} or more")),
        _ => Ok(()),
    }
}

fn hdr<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    value::<S>(args, env).map(Value::str)
}

fn each_hdr<'a, S: Side>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    each_value::<S>(args, env, |value| Some(Value::str(value)), visit)
}

fn hdr_cnt<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let count = fields(args, S::fields(args, env)?).map(|value| split(value).count()).sum::<usize>();
    Some(Value::Int(count as i64))
}

fn hdr_val<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    value::<S>(args, env).map(number)
}

fn each_val<'a, S: Side>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    each_value::<S>(args, env, |value| Some(number(value)), visit)
}

fn hdr_ip<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    address(value::<S>(args, env)?)
}

fn each_ip<'a, S: Side>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    each_value::<S>(args, env, address, visit)
}

fn fhdr<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let mut all = fields(args, S::fields(args, env)?);
    let found = match args.int(1).unwrap_or(0) {
        n if n > 0 => all.nth(n as usize - 1),
        n => all.nth_back(n.max(OLDEST).unsigned_abs().saturating_sub(1) as usize),
    };
    found.map(Value::str)
}

fn each_fhdr<'a, S: Side>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    match args.int(1) {
        None | Some(0) => S::fields(args, env).is_some_and(|f| fields(args, f).any(|value| visit(Value::str(value)))),
        Some(_) => fhdr::<S>(args, env).is_some_and(visit),
    }
}

fn fhdr_cnt<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    Some(Value::Int(fields(args, S::fields(args, env)?).count() as i64))
}

fn names<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let delimiter = args.str(0).and_then(<[u8]>::first).copied().unwrap_or(b',');
    let mut out = Buffer::new();
    for (name, _) in S::fields(args, env)?.iter() {
        if !out.is_empty() {
            out.push(delimiter);
        }
        out.extend(name.iter().map(u8::to_ascii_lowercase));
    }
    Some(Value::Str(Octets::from(out)))
}

fn lines<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let mut out = Vec::new();
    for (name, value) in S::fields(args, env)?.iter() {
        out.extend(name.iter().map(u8::to_ascii_lowercase));
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Some(Value::Str(Octets::from(out)))
}

/// The values of the fields of the name that the arguments hold; of all fields when they hold none.
fn fields<'a>(args: &'a ArgList, fields: &'a Fields) -> impl DoubleEndedIterator<Item = &'a [u8]> {
    let name = args.header(0);
    let all = if name.is_none() { Some(fields.iter().map(|(_, value)| value)) } else { None };
    let values = name.map(|n| HeaderName::values(n, fields)).into_iter().flatten().chain(all.into_iter().flatten());
    // Blanks around a value are no part of it (RFC 9110 section 5.5), but rules can write some.
    values.map(<[u8]>::trim_ascii)
}

/// The value of the occurrence that the arguments name: from 1 from the start, from -1 from the end, 0 for the last.
fn value<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<&'a [u8]> {
    let message = S::fields(args, env)?;
    match args.int(1).unwrap_or(0) {
        0 | -1 => fields(args, message).next_back().map(last),
        n if n > 0 => fields(args, message).flat_map(split).nth(n as usize - 1),
        n => {
            let count = fields(args, message).map(|value| split(value).count()).sum::<usize>();
            let at = count.checked_sub(n.unsigned_abs() as usize)?;
            fields(args, message).flat_map(split).nth(at)
        }
    }
}

fn each_value<'a, S: Side>(
    args: &'a ArgList,
    env: &Env<'a>,
    make: impl Fn(&'a [u8]) -> Option<Value<'a>>,
    visit: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    if !matches!(args.int(1), None | Some(0)) {
        return value::<S>(args, env).and_then(make).is_some_and(visit);
    }
    let Some(message) = S::fields(args, env) else { return false };
    fields(args, message).flat_map(split).filter_map(make).any(visit)
}

/// The values between commas outside quotes (RFC 9110 section 5.6.1), blanks trimmed, empty ones kept.
pub(super) fn split(value: &[u8]) -> Split<'_> {
    Split { rest: Some(value) }
}

fn last(value: &[u8]) -> &[u8] {
    match memchr::memchr2(b',', b'"', value) {
        None => value.trim_ascii(),
        Some(_) => split(value).last().unwrap_or(value),
    }
}

pub(super) struct Split<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let end = end(rest, b",");
        self.rest = rest.get(end + 1..);
        Some(rest[..end].trim_ascii())
    }
}

/// The offset of the first of these bytes outside quotes, or the end.
pub(super) fn end(text: &[u8], stops: &[u8]) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    text.iter()
        .position(|&b| {
            match b {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => return !quoted && stops.contains(&b),
            }
            false
        })
        .unwrap_or(text.len())
}

fn number(text: &[u8]) -> Value<'_> {
    Value::Int(cast::leading_int(text).unwrap_or(0))
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`. It is stricter than where a single
/// text is read, because a text that is no address leads on to the next value.
fn address(text: &[u8]) -> Option<Value<'_>> {
    cast::whole_addr(text).map(Value::Addr)
}
