//! The request's credentials (RFC 9110 section 11.6.2): `http_auth_user` and its like.

use crate::argument::{ArgList, ParamKind, may};
use crate::convert::base64;
use crate::env::Env;
use crate::octets::Octets;
use crate::registry::{Fetch, Needs};
use crate::value::{Type, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("http_auth_type", Type::Str, "The scheme of the request's credentials: Basic or Bearer.", |_, env| {
        let (scheme, _) = credentials(env.request?.credentials()?)?;
        let known = [&b"Basic"[..], b"Bearer"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
        // Basic credentials that cannot be read are none.
        (known != b"Basic" || basic(env).is_some()).then(|| Value::str(known))
    })
    .needs(Needs::REQUEST),
    Fetch::one("http_auth_user", Type::Str, "The user's name in the request's Basic credentials.", |_, env| Some(basic(env)?.0))
        .needs(Needs::REQUEST),
    Fetch::one("http_auth_pass", Type::Str, "The password in the request's Basic credentials.", |_, env| Some(basic(env)?.1))
        .needs(Needs::REQUEST),
    Fetch::one(
        "http_auth_bearer",
        Type::Str,
        "The request's Bearer token, from the field of that name or from Authorization.",
        bearer,
    )
    .params(&[may(ParamKind::Header)])
    .needs(Needs::REQUEST),
];

fn credentials(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b' ', field).filter(|&at| at > 0)?;
    Some((&field[..at], field[at..].trim_ascii_start()))
}

fn basic<'a>(env: &Env<'a>) -> Option<(Value<'a>, Value<'a>)> {
    let (scheme, rest) = credentials(env.request?.credentials()?)?;
    let text = base64::decode(rest, &base64::STANDARD).filter(|_| scheme.eq_ignore_ascii_case(b"basic"))?;
    let colon = memchr::memchr(b':', &text)?;
    Some((Value::Str(Octets::copy(&text[..colon])), Value::Str(Octets::copy(&text[colon + 1..]))))
}

fn bearer<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let request = env.request?;
    let token = |field| {
        let (scheme, token) = credentials(field)?;
        scheme.eq_ignore_ascii_case(b"bearer").then_some(token)
    };
    match args.header(0) {
        // As in HAProxy, a named field without a token has an empty one.
        Some(name) => Some(Value::str(name.values(&request.fields).next().and_then(token).unwrap_or_default())),
        None => token(request.credentials()?).map(Value::str),
    }
}
