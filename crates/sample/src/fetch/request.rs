//! The request's first line: `method`, `path`, `url`, `req.ver` and values made of them.

use crate::argument::{Arg, ArgList, ParamKind, may};
use crate::convert::hash;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::{Fetch, Needs};
use crate::value::{Type, Value};
use terse_message::{Known, Request};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("method", Type::Method, "The request's method.", |_, env| {
        env.request.map(|r| Value::Method(Octets::from(r.method())))
    })
    .needs(Needs::REQUEST.or(Needs::KEPT)),
    Fetch::one("path", Type::Str, "The path of the request's target, without its query.", |_, env| {
        env.request.map(Request::path).filter(is_path).map(Value::str)
    })
    .needs(Needs::REQUEST),
    Fetch::one("pathq", Type::Str, "The path of the request's target, with its query.", |_, env| {
        env.request.map(Request::path_and_query).filter(is_path).map(Value::str)
    })
    .needs(Needs::REQUEST),
    Fetch::one("query", Type::Str, "The query of the request's target, behind its question mark.", query)
        .params(&[may(ParamKind::Str)])
        .needs(Needs::REQUEST)
        .check(|args, _| match args.first() {
            Some(Arg::Str(word)) if !word.is_empty() && &**word != b"with_qm" => {
                Err(format!("expects 'with_qm', not '{}'", word.escape_ascii()))
            }
            _ => Ok(()),
        }),
    Fetch::one("url", Type::Str, "The request's target as it was sent.", |_, env| env.request.map(|r| Value::str(r.target())))
        .needs(Needs::REQUEST),
    Fetch::one("req.ver", Type::Str, "The request's version, such as 1.1.", |_, env| {
        env.request.map(|r| Value::str(&r.version.name().as_bytes()[5..]))
    })
    .also(&["req_ver"])
    .needs(Needs::REQUEST.or(Needs::KEPT)),
    Fetch::one("req.proto_http", Type::Bool, "Whether the request is one of HTTP.", |_, env| {
        env.request.map(|_| Value::Bool(true))
    })
    .also(&["req_proto_http"])
    .needs(Needs::REQUEST.or(Needs::KEPT)),
    Fetch::one("base", Type::Str, "The Host field and the path.", |_, env| base(env.request?, Request::path)).needs(Needs::REQUEST),
    Fetch::one("baseq", Type::Str, "The Host field and the path with its query.", |_, env| {
        base(env.request?, Request::path_and_query)
    })
    .needs(Needs::REQUEST),
    Fetch::one("base32", Type::Int, "A hash of the Host field and the path.", |_, env| {
        Some(Value::Int(base32(env.request?).into()))
    })
    .needs(Needs::REQUEST),
    Fetch::one("base32+src", Type::Bin, "`base32` and the client's address.", |_, env| with_source(base32(env.request?), env))
        .needs(Needs::REQUEST),
    Fetch::one("url32", Type::Int, "A hash of the Host field and the path with its query.", |_, env| {
        Some(Value::Int(url32(env.request?).into()))
    })
    .needs(Needs::REQUEST),
    Fetch::one("url32+src", Type::Bin, "`url32` and the client's address.", |_, env| with_source(url32(env.request?), env))
        .needs(Needs::REQUEST),
];

/// `*` and the authority that CONNECT asks for are no paths.
fn is_path(target: &&[u8]) -> bool {
    target.starts_with(b"/")
}

fn query<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let whole = env.request?.path_and_query();
    let mark = memchr::memchr(b'?', whole)?;
    // A mark at the end is not shown, as in HAProxy.
    let with_mark = args.str(0).is_some_and(|word| !word.is_empty()) && mark + 1 < whole.len();
    Some(Value::str(&whole[mark + usize::from(!with_mark)..]))
}

fn host(request: &Request) -> &[u8] {
    let value = request.fields.first(Known::Host).unwrap_or_default();
    value[..memchr::memchr(b',', value).unwrap_or(value.len())].trim_ascii()
}

fn base<'a>(request: &'a Request, path: fn(&Request) -> &[u8]) -> Option<Value<'a>> {
    let (host, path) = (host(request), path(request));
    if host.is_empty() {
        return Some(path).filter(is_path).map(Value::str);
    }
    let mut out = Buffer::from_slice(host);
    if path.starts_with(b"/") {
        out.extend_from_slice(path);
    }
    Some(Value::Str(Octets::from(out)))
}

fn base32(request: &Request) -> u32 {
    let path = Some(request.path()).filter(is_path).unwrap_or_default();
    hash::avalanche(hash::sdbm_on(hash::sdbm(host(request)), path))
}

fn url32(request: &Request) -> u32 {
    let path = Some(request.path_and_query()).filter(is_path).unwrap_or_default();
    hash::avalanche(hash::sdbm_on(hash::sdbm(host(request)), path))
}

fn with_source<'a>(hash: u32, env: &Env<'a>) -> Option<Value<'a>> {
    let mut out = Buffer::from_slice(&hash.to_be_bytes());
    match env.client?.ip() {
        std::net::IpAddr::V4(a) => out.extend_from_slice(&a.octets()),
        std::net::IpAddr::V6(a) => out.extend_from_slice(&a.octets()),
    }
    Some(Value::Bin(Octets::from(out)))
}
