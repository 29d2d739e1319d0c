//! Samples of the PROXY protocol's header on the client's connection.

use super::facts;
use terse_http::proxy_protocol::{Announced, kind};
use terse_sample::argument::need;
use terse_sample::{Arg, ArgList, Compiler, Env, Fetch, ParamKind, Type, Value};

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("fc_rcvd_proxy", Type::Bool, "Whether the client's connection began with a PROXY header.", |_, env| {
        Some(Value::Bool(facts(env)?.session.announced().is_some()))
    }),
    Fetch::each(
        "fc_pp_tlv",
        Type::Str,
        "The value of a field of the PROXY header, by its type: a number or a name.",
        |args, env| field(env, wanted(args)?),
        |args, env, visit| {
            let announced = facts(env).and_then(|facts| facts.session.announced());
            let fields = announced.into_iter().flat_map(Announced::fields).filter(|(kind, _)| Some(*kind) == wanted(args));
            fields.into_iter().any(|(_, value)| visit(Value::str(value)))
        },
    )
    .params(&[need(ParamKind::Str)])
    .check(check_kind),
    Fetch::one("fc_pp_authority", Type::Str, "The host name in the PROXY header.", |_, env| field(env, kind::AUTHORITY)),
    Fetch::one("fc_pp_unique_id", Type::Str, "The identifier in the PROXY header.", |_, env| field(env, kind::UNIQUE_ID)),
];

fn wanted(args: &ArgList) -> Option<u8> {
    u8::try_from(args.int(0)?).ok()
}

fn field<'a>(env: &Env<'a>, kind: u8) -> Option<Value<'a>> {
    facts(env)?.session.announced()?.field(kind).map(Value::str)
}

fn check_kind(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(word)) = args.first() else { return Err("expects the type of a field".into()) };
    let word = std::str::from_utf8(word).unwrap_or_default();
    let kind = match NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        Some((_, kind)) => Some(*kind),
        None => match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        },
    };
    let kind = kind.ok_or_else(|| {
        let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        format!("'{word}' is not a type of fields: expects a number from 0 to 255, or one of {}", names.join(", "))
    })?;
    *args = vec![Arg::Int(kind.into())];
    Ok(())
}

const NAMES: &[(&str, u8)] = &[
    ("ALPN", kind::ALPN),
    ("AUTHORITY", kind::AUTHORITY),
    ("CRC32C", kind::CRC32C),
    ("UNIQUE_ID", kind::UNIQUE_ID),
    ("NOOP", kind::NOOP),
    ("SSL", kind::SSL),
    ("SSL_VERSION", kind::SSL_VERSION),
    ("SSL_CN", kind::SSL_CN),
    ("SSL_CIPHER", kind::SSL_CIPHER),
    ("SSL_SIG_ALG", kind::SSL_SIG_ALG),
    ("SSL_KEY_ALG", kind::SSL_KEY_ALG),
    ("NETNS", kind::NETNS),
];
