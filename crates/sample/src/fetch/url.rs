//! Parameters and addresses in the request's target: `url_param`, `url_ip`, `url_port`.

use crate::argument::{ArgList, Param, ParamKind, may};
use crate::cast;
use crate::env::Env;
use crate::parameters::Parameters;
use crate::registry::{Fetch, Needs};
use crate::value::{Type, Value};
use std::net::{IpAddr, SocketAddr};
use terse_message::Request;

const PARAMS: &[Param] = &[may(ParamKind::Str), may(ParamKind::Str), may(ParamKind::Str)];

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::each("url_param", Type::Str, "The value of a parameter of the query.", param, each_param)
        .also(&["urlp"])
        .params(PARAMS)
        .needs(Needs::REQUEST),
    Fetch::one("urlp_val", Type::Int, "The value of a parameter of the query as a number.", |args, env| {
        let value = param(args, env)?.into_octets()?;
        Some(Value::Int(cast::leading_int(&value).unwrap_or(0)))
    })
    .params(PARAMS)
    .needs(Needs::REQUEST),
    Fetch::one("url_ip", Type::Ipv4, "The IPv4 address in an absolute target.", |_, env| {
        authority(env.request?).map(|a| Value::Addr(a.ip()))
    })
    .needs(Needs::REQUEST),
    Fetch::one("url_port", Type::Int, "The port behind the IPv4 address in an absolute target.", |_, env| {
        authority(env.request?).map(|a| Value::Int(a.port().into()))
    })
    .needs(Needs::REQUEST),
];

fn query<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Parameters<'a>> {
    let target = env.request?.target();
    let delimiter = args.str(1).and_then(<[u8]>::first).copied().unwrap_or(b'?');
    let start = memchr::memchr(delimiter, target)? + 1;
    let ignore_case = args.str(2).is_some_and(|word| word.starts_with(b"i"));
    Some(Parameters::of(&target[start..], args.str(0).unwrap_or_default(), delimiter, ignore_case))
}

fn param<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    query(args, env)?.next().map(Value::str)
}

fn each_param<'a>(args: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    query(args, env).is_some_and(|mut all| all.any(|value| visit(Value::str(value))))
}

fn authority(request: &Request) -> Option<SocketAddr> {
    let target = request.target();
    let at = memchr::memmem::find(target, b"://").filter(|_| !target.starts_with(b"/"))?;
    let default = if target[..at].eq_ignore_ascii_case(b"https") { 443 } else { 80 };
    let text = std::str::from_utf8(request.authority()?).ok()?;
    let address = text.parse().or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, default))).ok()?;
    address.is_ipv4().then_some(address)
}
