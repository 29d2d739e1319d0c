//! Constants of the configuration.

use crate::argument::{Arg, ArgList, ParamKind, need};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::Octets;
use crate::pattern::hex;
use crate::registry::Fetch;
use crate::value::{Type, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("always_true", Type::Bool, "True.", |_, _| Some(Value::Bool(true))),
    Fetch::one("always_false", Type::Bool, "False.", |_, _| Some(Value::Bool(false))),
    Fetch::one("str", Type::Str, "This text.", text).params(&[need(ParamKind::Str)]),
    Fetch::one("int", Type::Int, "This number.", |args, _| args.int(0).map(Value::Int)).params(&[need(ParamKind::Int)]),
    Fetch::one("bool", Type::Bool, "True or false.", |args, _| args.int(0).map(|n| Value::Bool(n != 0)))
        .params(&[need(ParamKind::Str)])
        .check(check_bool),
    Fetch::one("bin", Type::Bin, "The bytes that are written here in hexadecimal digits.", |args, _| {
        args.str(0).map(|bytes| Value::Bin(Octets::from(bytes)))
    })
    .params(&[need(ParamKind::Str)])
    .check(check_bin),
    Fetch::one("ipv4", Type::Ipv4, "This IPv4 address.", |args, _| args.addr(0).map(Value::Addr)).params(&[need(ParamKind::Ipv4)]),
    Fetch::one("ipv6", Type::Ipv6, "This IPv6 address.", |args, _| args.addr(0).map(Value::Addr)).params(&[need(ParamKind::Ipv6)]),
    Fetch::one("meth", Type::Method, "This method of HTTP.", |args, _| args.str(0).map(|m| Value::Method(Octets::from(m))))
        .params(&[need(ParamKind::Str)]),
];

fn text<'a>(args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    args.str(0).map(Value::str)
}

fn check_bool(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(word)) = args.first() else { return Ok(()) };
    let value = match word.to_ascii_lowercase().as_slice() {
        b"true" | b"1" => 1,
        b"false" | b"0" => 0,
        _ => return Err(format!("'{}' is not 'true', 'false', '0' or '1'", word.escape_ascii())),
    };
    args[0] = Arg::Int(value);
    Ok(())
}

fn check_bin(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(word)) = args.first() else { return Ok(()) };
    let bytes = hex(word).ok_or_else(|| format!("'{}' is not an even number of hexadecimal digits", word.escape_ascii()))?;
    args[0] = Arg::Str(bytes.into());
    Ok(())
}
