//! Cookies: `req.cook`, `res.cook` and their like (RFC 6265, read as leniently as HAProxy does).

use super::header::{end, split};
use super::side::{Current, Req, Res, Side, direction};
use crate::argument::{ArgList, Param, ParamKind, may};
use crate::cast;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::{Fetch, Needs};
use crate::value::{Type, Value};

const NAME: &[Param] = &[may(ParamKind::Str)];

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::each("req.cook", Type::Str, "The value of a cookie of the request.", cook::<Req>, each_cook::<Req>)
        .also(&["cook"])
        .params(NAME)
        .needs(Needs::REQUEST),
    Fetch::each("res.cook", Type::Str, "The value of a cookie that the response sets.", cook::<Res>, each_cook::<Res>)
        .also(&["scook"])
        .params(NAME)
        .needs(Needs::RESPONSE),
    Fetch::each(
        "cookie",
        Type::Str,
        "The value of a cookie of the message that is processed.",
        cook::<Current>,
        each_cook::<Current>,
    )
    .params(NAME)
    .check(direction),
    Fetch::one("req.cook_cnt", Type::Int, "How many cookies of that name the request has.", count::<Req>)
        .also(&["cook_cnt"])
        .params(NAME)
        .needs(Needs::REQUEST),
    Fetch::one("res.cook_cnt", Type::Int, "How many cookies of that name the response sets.", count::<Res>)
        .also(&["scook_cnt"])
        .params(NAME)
        .needs(Needs::RESPONSE),
    Fetch::one("req.cook_val", Type::Int, "The value of a cookie of the request as a number.", number::<Req>)
        .also(&["cook_val"])
        .params(NAME)
        .needs(Needs::REQUEST),
    Fetch::one("res.cook_val", Type::Int, "The value of a cookie that the response sets as a number.", number::<Res>)
        .also(&["scook_val"])
        .params(NAME)
        .needs(Needs::RESPONSE),
    Fetch::one("req.cook_names", Type::Str, "The names of the request's cookies.", names::<Req>).params(NAME).needs(Needs::REQUEST),
    Fetch::one("res.cook_names", Type::Str, "The names of the cookies that the response sets.", names::<Res>)
        .params(NAME)
        .needs(Needs::RESPONSE),
];

/// The last cookie of the name; without a name the first of all.
fn cook<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let mut found = None;
    each::<S>(args, env, &mut |_, value| {
        found = Some(value);
        wanted(args).is_empty()
    });
    found.map(Value::str)
}

fn each_cook<'a, S: Side>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    each::<S>(args, env, &mut |_, value| visit(Value::str(value)))
}

fn count<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    S::fields(args, env)?;
    let mut count = 0;
    each::<S>(args, env, &mut |_, _| {
        count += 1;
        false
    });
    Some(Value::Int(count))
}

fn number<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let value = cook::<S>(args, env)?.into_octets()?;
    Some(Value::Int(cast::leading_int(&value).unwrap_or(0)))
}

/// Here the argument is the delimiter.
fn names<'a, S: Side>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let delimiter = args.str(0).and_then(<[u8]>::first).copied().unwrap_or(b',');
    let mut out = Buffer::new();
    for field in S::fields(args, env)?.every(S::cookie_field(args)) {
        for (name, _) in Cookies::of(field, S::is_response(args)) {
            if !out.is_empty() {
                out.push(delimiter);
            }
            out.extend_from_slice(name);
        }
    }
    Some(Value::Str(Octets::from(out)))
}

fn wanted(args: &ArgList) -> &[u8] {
    args.str(0).unwrap_or_default()
}

/// Visits the cookies of the name in the arguments, or all, until the visitor returns `true`.
fn each<'a, S: Side>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(&'a [u8], &'a [u8]) -> bool) -> bool {
    let (name, is_response) = (wanted(args), S::is_response(args));
    let Some(fields) = S::fields(args, env) else { return false };
    fields
        .every(S::cookie_field(args))
        .flat_map(split)
        .flat_map(|value| Cookies::of(value, is_response))
        .any(|(found, value)| (name.is_empty() || found == name) && visit(found, value))
}

/// The `name=value` pairs of a field. A `Set-Cookie` field has a single pair, and attributes after it.
struct Cookies<'a> {
    rest: &'a [u8],
    only_first: bool,
}

impl<'a> Cookies<'a> {
    fn of(field: &'a [u8], only_first: bool) -> Cookies<'a> {
        Cookies { rest: field, only_first }
    }
}

impl<'a> Iterator for Cookies<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = end(self.rest, b";,");
            let pair = &self.rest[..end];
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if self.only_first {
                self.rest = b"";
            }
            if let Some(at) = memchr::memchr(b'=', pair) {
                let (name, value) = (pair[..at].trim_ascii(), pair[at + 1..].trim_ascii());
                // Names that begin with a dollar are attributes of RFC 2965.
                if !name.starts_with(b"$") {
                    return Some((name, value));
                }
            }
        }
        None
    }
}
