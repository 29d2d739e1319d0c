//! When the client's connection was accepted, and when the request began.

use super::facts;
use crate::log::LocalTime;
use crate::log::Zone;
use std::io::Write;
use terse_sample::argument::{Arg, Param, ParamKind, may};
use terse_sample::{Alias, ArgList, Compiler, Env, Fetch, Octets, Type, Value};

const UNIT: &[Param] = &[may(ParamKind::Str)];

/// The table of fetches.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one(
        "accept_date",
        Type::Int,
        "When the connection was accepted, in seconds, milliseconds or microseconds since 1970.",
        |args, env| Some(Value::Int(in_unit(args, accepted_us(env)?))),
    )
    .params(UNIT)
    .check(check_unit),
    Fetch::one(
        "request_date",
        Type::Int,
        "When the request began, in seconds, milliseconds or microseconds since 1970.",
        |args, env| Some(Value::Int(in_unit(args, facts(env)?.times.start_unix_us))),
    )
    .params(UNIT)
    .check(check_unit),
];

/// The table of aliases.
pub(super) const ALIASES: &[Alias] = &[
    Alias::plain("t", "When the connection was accepted, with milliseconds.", |env| {
        Some(with_millis(accepted_us(env)?, zone(env)?))
    }),
    Alias::plain("T", "When the connection was accepted, in UTC.", |env| Some(with_offset(accepted_us(env)?, &Zone::utc()))),
    Alias::plain("Tl", "When the connection was accepted, with the zone.", |env| Some(with_offset(accepted_us(env)?, zone(env)?))),
    Alias::number("Ts", "When the connection was accepted, in seconds since 1970.", |env| {
        Some(Value::Int(accepted_us(env)?.div_euclid(1_000_000)))
    })
    .digits(4),
    Alias::number("ms", "The milliseconds of the second in which the connection was accepted.", |env| {
        let millis = accepted_us(env)?.rem_euclid(1_000_000) / 1000;
        Some(Value::Str(Octets::from(format!("{millis:03}").into_bytes())))
    })
    .digits(2),
    Alias::plain("tr", "When the request began, with milliseconds.", |env| {
        Some(with_millis(facts(env)?.times.start_unix_us, zone(env)?))
    }),
    Alias::plain("trg", "When the request began, in UTC.", |env| Some(with_offset(facts(env)?.times.start_unix_us, &Zone::utc()))),
    Alias::plain("trl", "When the request began, with the zone.", |env| {
        Some(with_offset(facts(env)?.times.start_unix_us, zone(env)?))
    }),
];

/// When the client's connection was accepted: microseconds since 1970.
fn accepted_us(env: &Env<'_>) -> Option<i64> {
    let session = &facts(env)?.session;
    Some(session.worker.clock.unix_us(session.accepted))
}

fn zone<'a>(env: &Env<'a>) -> Option<&'a Zone> {
    Some(facts(env)?.plan().sinks.zone())
}

/// `06/Feb/2009:12:14:14.655`
fn with_millis(unix_us: i64, zone: &Zone) -> Value<'static> {
    let mut out = Vec::with_capacity(24);
    write_time(&mut out, &zone.at(unix_us.div_euclid(1_000_000)));
    // Writing into a vector cannot fail.
    let _ = write!(out, ".{:03}", unix_us.rem_euclid(1_000_000) / 1000);
    Value::Str(Octets::from(out))
}

/// `06/Feb/2009:12:14:14 +0100`
fn with_offset(unix_us: i64, zone: &Zone) -> Value<'static> {
    let mut out = Vec::with_capacity(26);
    let time = zone.at(unix_us.div_euclid(1_000_000));
    write_time(&mut out, &time);
    let (sign, minutes) = (if time.offset_s < 0 { '-' } else { '+' }, time.offset_s.unsigned_abs() / 60);
    let _ = write!(out, " {sign}{:02}{:02}", minutes / 60, minutes % 60);
    Value::Str(Octets::from(out))
}

fn write_time(out: &mut Vec<u8>, t: &LocalTime) {
    let _ = write!(out, "{:02}/{}/{:04}:{:02}:{:02}:{:02}", t.day, t.month_name(), t.year, t.hour, t.minute, t.second);
}

/// Replaces the unit `s`, `ms` or `us` by its number in a second.
fn check_unit(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(word)) = args.first() else { return Ok(()) };
    let per_second = match &**word {
        b"s" | b"" => 1,
        b"ms" => 1000,
        b"us" => 1_000_000,
        _ => return Err(format!("unknown unit '{}', expects 's', 'ms' or 'us'", word.escape_ascii())),
    };
    *args = vec![Arg::Int(per_second)];
    Ok(())
}

fn in_unit(args: &ArgList, unix_us: i64) -> i64 {
    unix_us.div_euclid(1_000_000 / args.int(0).unwrap_or(1).clamp(1, 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_logs_write_them() {
        let text = |value: Value<'_>| String::from_utf8(value.into_octets().unwrap().to_vec()).unwrap();
        assert_eq!(text(with_millis(1_233_922_454_655_123, &Zone::utc())), "06/Feb/2009:12:14:14.655");
        assert_eq!(text(with_offset(1_233_922_454_655_123, &Zone::utc())), "06/Feb/2009:12:14:14 +0000");
        assert_eq!(text(with_millis(-1, &Zone::utc())), "31/Dec/1969:23:59:59.999");
    }

    #[test]
    fn units() {
        for (unit, expected) in [(None, 1_233_922_454), (Some(1000), 1_233_922_454_655), (Some(1_000_000), 1_233_922_454_655_123)] {
            let args = ArgList::new(unit.map(Arg::Int).into_iter().collect());
            assert_eq!(in_unit(&args, 1_233_922_454_655_123), expected);
        }
    }
}
