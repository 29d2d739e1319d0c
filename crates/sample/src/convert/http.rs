//! Converters that know fields of HTTP: `language`, `host_only`, `port_only`.

use crate::argument::{ArgList, ParamKind, may, need};
use crate::env::Env;
use crate::octets::Octets;
use crate::registry::Converter;
use crate::value::{Type, Value};

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "language",
        Type::Str,
        Type::Str,
        "The language of a list (`fr;en`) that an Accept-Language field likes best; else the second argument.",
        language,
    )
    .params(&[need(ParamKind::Str), may(ParamKind::Str)]),
    Converter::new(
        "host_only",
        Type::Str,
        Type::Str,
        "The name or address of a Host field, without its port, in small letters.",
        |v, _, _| {
            let text = v.into_octets()?;
            let end = colon(&text).unwrap_or(text.len());
            let mut host = text.slice(0..end);
            if host.iter().any(u8::is_ascii_uppercase) {
                host.to_mut().make_ascii_lowercase();
            }
            Some(Value::Str(host))
        },
    ),
    Converter::new("port_only", Type::Str, Type::Int, "The port of a Host field; 0 when there is none.", |v, _, _| {
        let text = v.into_octets()?;
        let digits = colon(&text).map(|at| &text[at + 1..]).unwrap_or_default();
        Some(Value::Int(crate::cast::leading_int(digits).filter(|port| (0..=u16::MAX.into()).contains(port)).unwrap_or(0)))
    }),
];

/// The colon before a port: the last one, unless a bracket closes after it.
fn colon(host: &[u8]) -> Option<usize> {
    host.iter().rposition(|b| matches!(b, b':' | b']')).filter(|&at| host[at] == b':')
}

fn language<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    let known = args.str(0)?;
    let field = value.into_octets()?;
    let mut best: Option<(u16, &[u8])> = None;
    for element in field.split(|&b| b == b',') {
        let mut parts = element.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let wanted = parts.next().unwrap_or_default();
        let Some(found) = known.split(|&b| b == b';').find(|name| serves(wanted, name)) else { continue };
        let weight = parts.next().and_then(weight).unwrap_or(1000);
        if weight > best.map_or(0, |(weight, _)| weight) {
            best = Some((weight, found));
        }
    }
    best.map(|(_, name)| name).or(args.str(1)).filter(|name| !name.is_empty()).map(|name| Value::Str(Octets::from(name)))
}

/// Whether a client that asks for a language is served by another: `fr-CH` by `fr`, as HAProxy has it.
fn serves(wanted: &[u8], known: &[u8]) -> bool {
    !known.is_empty() && wanted.strip_prefix(known).is_some_and(|rest| matches!(rest.first(), None | Some(b'-')))
}

/// `q=0.8` in thousandths.
fn weight(parameter: &[u8]) -> Option<u16> {
    let (name, value) = parameter.split_at(memchr::memchr(b'=', parameter)?);
    if !name.trim_ascii().eq_ignore_ascii_case(b"q") {
        return None;
    }
    let digits = value[1..].trim_ascii();
    let (whole, fraction) = digits.split_first()?;
    let thousandths = fraction.strip_prefix(b".").unwrap_or_default().iter().take(3).take_while(|b| b.is_ascii_digit());
    let (n, places) = thousandths.fold((0, 0), |(n, places), &b| (n * 10 + u16::from(b - b'0'), places + 1));
    Some(if *whole == b'0' { n * 10u16.pow(3 - places) } else { 1000 })
}
