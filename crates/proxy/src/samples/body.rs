//! Bodies, as far as they have come, and whole heads in binary: `req.body` and its like.
//!
//! A body is there as far as it came with the head, or was waited for (`option http-buffer-request`, `wait-for-body`). A body
//! of a known length is seen where it lies in the buffer; a body in chunks is put together when it is first asked for.

use super::facts;
use crate::exchange::Body;
use crate::inspection::Side;
use terse_message::{BodyLength, Fields};
use terse_sample::argument::{Param, ParamKind, may};
use terse_sample::{ArgList, Env, Fetch, Needs, Octets, Parameters, Type, Value};

const PARAMETER: &[Param] = &[may(ParamKind::Str), may(ParamKind::Str)];
const RESPONSE: Needs = Needs::RESPONSE.or(Needs::RESPONSE_BODY);
const REQUEST: Needs = Needs::REQUEST.or(Needs::BODY);

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("req.body", Type::Bin, "The request's body, as far as it is there.", |_, env| bytes(env, Side::Request))
        .needs(REQUEST),
    Fetch::one("req.body_len", Type::Int, "How many bytes of the request's body are there.", |_, env| length(env, Side::Request))
        .needs(REQUEST),
    Fetch::one("req.body_size", Type::Int, "How many bytes the request's body has, as far as it is known.", |_, env| {
        size(env, Side::Request)
    })
    .needs(REQUEST),
    Fetch::each("req.body_param", Type::Bin, "The value of a parameter of a form in the request's body.", parameter, parameters)
        .params(PARAMETER)
        .needs(REQUEST),
    Fetch::one("res.body", Type::Bin, "The response's body, as far as it is there.", |_, env| bytes(env, Side::Response))
        .needs(RESPONSE),
    Fetch::one("res.body_len", Type::Int, "How many bytes of the response's body are there.", |_, env| length(env, Side::Response))
        .needs(RESPONSE),
    Fetch::one("res.body_size", Type::Int, "How many bytes the response's body has, as far as it is known.", |_, env| {
        size(env, Side::Response)
    })
    .needs(RESPONSE),
    Fetch::one("req.hdrs_bin", Type::Bin, "The request's fields in binary: each name and value behind its length.", |_, env| {
        Some(binary(&env.request?.fields))
    })
    .needs(Needs::REQUEST),
    Fetch::one("res.hdrs_bin", Type::Bin, "The response's fields in binary: each name and value behind its length.", |_, env| {
        Some(binary(&env.response?.fields))
    })
    .needs(Needs::RESPONSE),
];

/// The body of a message, where it is lent to the rules.
fn body<'a>(env: &Env<'a>, side: Side) -> Option<Body<'a>> {
    let facts = facts(env).filter(|facts| facts.version.is_some())?;
    facts.inspection.as_deref()?.body(side, announced(env, side)?)
}

fn bytes<'a>(env: &Env<'a>, side: Side) -> Option<Value<'a>> {
    let body = body(env, side)?;
    if !body.whole
        && let Some(inspection) = facts(env)?.inspection.as_deref()
    {
        inspection.doubt.raise();
    }
    Some(Value::Bin(Octets::from(body.bytes)))
}

fn length<'a>(env: &Env<'a>, side: Side) -> Option<Value<'a>> {
    body(env, side).map(|body| Value::Int(body.bytes.len() as i64))
}

fn size<'a>(env: &Env<'a>, side: Side) -> Option<Value<'a>> {
    match announced(env, side)? {
        BodyLength::None => Some(Value::Int(0)),
        BodyLength::Exact(n) => Some(Value::Int(i64::try_from(n).unwrap_or(i64::MAX))),
        BodyLength::Framed | BodyLength::UntilClose => length(env, side),
    }
}

/// Length of a body as its message's head announces it.
fn announced(env: &Env<'_>, side: Side) -> Option<BodyLength> {
    match side {
        Side::Request => env.request.map(|request| request.body),
        Side::Response => env.response.map(|response| response.body),
    }
}

fn parameter<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    form(args, env)?.next().map(value)
}

fn parameters<'a>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    form(args, env).is_some_and(|mut all| all.any(|bytes| visit(value(bytes))))
}

fn value(bytes: &[u8]) -> Value<'_> {
    Value::Bin(Octets::from(bytes))
}

fn form<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Parameters<'a>> {
    let ignore_case = args.str(1).is_some_and(|word| word.starts_with(b"i"));
    Some(Parameters::of(body(env, Side::Request)?.bytes, args.str(0).unwrap_or_default(), b'&', ignore_case))
}

/// Encodes names and values, each after its length; two empty texts end the list. Names are in lower case.
fn binary<'a>(fields: &Fields) -> Value<'a> {
    let mut out = Vec::with_capacity(fields.capacity());
    for (name, value) in fields.iter() {
        number(name.len() as u64, &mut out);
        out.extend(name.iter().map(u8::to_ascii_lowercase));
        number(value.len() as u64, &mut out);
        out.extend_from_slice(value);
    }
    out.extend_from_slice(&[0, 0]);
    Value::Bin(Octets::from(out))
}

/// A number of the protocol of agents: a single byte below 240, above it the four low bits, then seven at a time.
fn number(mut number: u64, out: &mut Vec<u8>) {
    if number < 240 {
        return out.push(number as u8);
    }
    out.push(number as u8 | 240);
    number = (number - 240) >> 4;
    while number >= 128 {
        out.push(number as u8 | 128);
        number = (number - 128) >> 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_agents() {
        let written = |n| {
            let mut out = Vec::new();
            number(n, &mut out);
            out
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(239), [239]);
        assert_eq!(written(240), [240, 0]);
        assert_eq!(written(2287), [255, 127]);
        assert_eq!(written(2288), [240, 128, 0]);
    }
}
