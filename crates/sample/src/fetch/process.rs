//! The process and its world: time, randomness, names.

use crate::argument::{Arg, ArgList, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::convert::time;
use crate::env::Env;
use crate::octets::{Buffer, Octets};
use crate::registry::Fetch;
use crate::value::{Type, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one(
        "date",
        Type::Int,
        "The time of day in seconds, milliseconds or microseconds since 1970, and an offset in the same.",
        date,
    )
    .params(&[may(ParamKind::Int), may(ParamKind::Str)])
    .check(time::check_unit),
    Fetch::one("date_us", Type::Int, "The microseconds of the second.", |_, env| Some(Value::Int(env.world.now().micros.into()))),
    Fetch::one("rand", Type::Int, "A random number below a limit, of 32 bits without one.", rand).params(&[may(ParamKind::Int)]),
    Fetch::one("uuid", Type::Str, "A random UUID of version 4 or 7 (RFC 9562).", uuid)
        .params(&[may(ParamKind::Int)])
        .check(check_uuid),
    Fetch::one("hostname", Type::Str, "The machine's name.", constant).check(|args, compiler| {
        args.push(Arg::Str(compiler.registry.constants.hostname.as_bytes().into()));
        Ok(())
    }),
    Fetch::one("env", Type::Str, "A variable of the environment, as it was at start.", constant)
        .params(&[need(ParamKind::Str)])
        .check(check_env),
    Fetch::one("pid", Type::Int, "The process's id.", |args, _| args.int(0).map(Value::Int)).check(|args, compiler| {
        args.push(Arg::Int(compiler.registry.constants.pid.into()));
        Ok(())
    }),
    Fetch::one("nbproc", Type::Int, "The number of processes: 1.", |_, _| Some(Value::Int(1))),
    Fetch::one("proc", Type::Int, "The process's number: 1.", |_, _| Some(Value::Int(1))),
];

fn date<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let now = env.world.now();
    let per_second = args.int(1).unwrap_or(1);
    let part = i64::from(now.micros).saturating_mul(per_second) / 1_000_000;
    let time = now.seconds.saturating_mul(per_second).saturating_add(part);
    Some(Value::Int(time.saturating_add(args.int(0).unwrap_or(0))))
}

fn rand<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let random = env.world.random() >> 32;
    Some(Value::Int(match args.int(0) {
        // The high bits of the product: every number below the limit is as likely, as far as 32 bits allow.
        Some(limit) => ((i128::from(random) * i128::from(limit)) >> 32) as i64,
        None => random as i64,
    }))
}

fn check_uuid(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    match args.first() {
        Some(Arg::Int(version)) if !matches!(version, 4 | 7) => Err(format!("UUIDs of version {version} are not supported")),
        _ => Ok(()),
    }
}

fn uuid<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let version = args.int(0).unwrap_or(4) as u128;
    let mut bits = u128::from(env.world.random()) << 64 | u128::from(env.world.random());
    if version == 7 {
        let now = env.world.now();
        let millis = (now.seconds.max(0) as u128 * 1000 + u128::from(now.micros / 1000)) & 0xffff_ffff_ffff;
        bits = bits & (u128::MAX >> 48) | millis << 80;
    }
    bits = bits & !(0xf << 76) | version << 76;
    bits = bits & !(0x3 << 62) | 0x2 << 62;
    let mut out = Buffer::new();
    for (i, nibble) in (0..32).map(|i| (i, (bits >> (124 - 4 * i)) as usize & 0xf)) {
        if matches!(i, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(b"0123456789abcdef"[nibble]);
    }
    Some(Value::Str(Octets::from(out)))
}

fn constant<'a>(args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    args.str(0).map(Value::str)
}

fn check_env(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    if let Some(Arg::Str(name)) = args.first() {
        let name = std::str::from_utf8(name).unwrap_or_default();
        let value = compiler.registry.constants.environment.get(name);
        args[0] = value.map_or(Arg::None, |v| Arg::Str(v.as_bytes().into()));
    }
    Ok(())
}
