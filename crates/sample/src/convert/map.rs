//! Maps: the value that a file holds for the value, `map_beg_int(file,default)`. Methods of matching, numbers and addresses
//! of defaults are read at load. A look-up is one in an index ([`crate::pattern`]), and copies at most 30 bytes.

use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::cast::whole_addr;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::Octets;
use crate::pattern::{Columns, Matching, Output, Use, Way};
use crate::registry::{Check, Converter};
use crate::value::{Type, Value};
use std::sync::Arc;

const TEXT: &[Param] = &[need(ParamKind::Str), may(ParamKind::Str)];
const INT: &[Param] = &[need(ParamKind::Str), may(ParamKind::Int)];
const KEY: &[Param] = &[need(ParamKind::Str)];

/// The entry of a table. Only a function that is no closure can tell its way of matching.
macro_rules! map {
    ($name:literal, $matching:ident, $output:ident) => {
        map($name, Matching::$matching, Output::$output, |args, compiler| {
            load(args, compiler, Matching::$matching, Output::$output)
        })
    };
}

pub(crate) const CONVERTERS: &[Converter] = &[
    map!("map", Str, Text),
    map!("map_str", Str, Text),
    map!("map_str_int", Str, Int),
    map!("map_str_ip", Str, Addr),
    map!("map_str_key", Str, Nothing),
    map!("map_beg", Beg, Text),
    map!("map_beg_int", Beg, Int),
    map!("map_beg_ip", Beg, Addr),
    map!("map_beg_key", Beg, Nothing),
    map!("map_sub", Sub, Text),
    map!("map_sub_int", Sub, Int),
    map!("map_sub_ip", Sub, Addr),
    map!("map_sub_key", Sub, Nothing),
    map!("map_dir", Dir, Text),
    map!("map_dir_int", Dir, Int),
    map!("map_dir_ip", Dir, Addr),
    map!("map_dir_key", Dir, Nothing),
    map!("map_dom", Dom, Text),
    map!("map_dom_int", Dom, Int),
    map!("map_dom_ip", Dom, Addr),
    map!("map_dom_key", Dom, Nothing),
    map!("map_end", End, Text),
    map!("map_end_int", End, Int),
    map!("map_end_ip", End, Addr),
    map!("map_end_key", End, Nothing),
    map!("map_reg", Reg, Text),
    map!("map_reg_int", Reg, Int),
    map!("map_reg_ip", Reg, Addr),
    map!("map_reg_key", Reg, Nothing),
    map!("map_regm", Regm, Text),
    map!("map_int", Int, Text),
    map!("map_int_int", Int, Int),
    map!("map_int_ip", Int, Addr),
    map!("map_int_key", Int, Nothing),
    map!("map_ip", Ip, Text),
    map!("map_ip_int", Ip, Int),
    map!("map_ip_ip", Ip, Addr),
    map!("map_ip_key", Ip, Nothing),
];

const fn map(name: &'static str, matching: Matching, output: Output, check: Check) -> Converter {
    let (kind, params, summary) = match (output, matching) {
        (Output::Nothing, _) => (Type::Str, KEY, "The key of the entry of a map file that it matches."),
        (Output::Int, _) => (Type::Int, INT, "The number that a map file holds for it."),
        (Output::Addr, _) => (Type::Addr, TEXT, "The address that a map file holds for it."),
        (Output::Text, Matching::Regm) => {
            (Type::Str, TEXT, "The text that a map file holds for it, with what groups matched in the place of '\\1'.")
        }
        (Output::Text, _) => (Type::Str, TEXT, "The text that a map file holds for it."),
    };
    let run = if matches!(output, Output::Nothing) { key } else { value };
    Converter::new(name, matching.expects(), kind, summary, run).params(params).check(check)
}

/// Replaces the file's name by the way of matching.
fn load(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>, matching: Matching, output: Output) -> Result<(), String> {
    let usage = Use {
        matching,
        ignore_case: false,
        output,
        columns: Columns::Two,
        as_map: true,
        user: format!("by map at {}", compiler.place_text()),
        resolve: &|_| None,
    };
    if let (Output::Addr, Some(Arg::Str(text))) = (output, args.get(1)) {
        let address = whole_addr(text).ok_or_else(|| format!("the default '{}' is not an address", text.escape_ascii()))?;
        args[1] = Arg::Addr(address);
    }
    let Some(Arg::Str(name)) = args.first() else { return Err("expects the name of a file".into()) };
    let name = std::str::from_utf8(name).map_err(|_| "the name of a file must be UTF-8")?;
    args[0] = Arg::own(compiler.registry.pattern_file(name, &usage)?);
    Ok(())
}

fn value<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    way(args)?.value(value).or_else(|| match args.at(1) {
        Arg::Str(text) => Some(Value::Str(Octets::from(&**text))),
        Arg::Int(n) => Some(Value::Int(*n)),
        Arg::Addr(address) => Some(Value::Addr(*address)),
        _ => None,
    })
}

fn key<'a>(value: Value<'a>, args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    way(args)?.key(value).map(Value::Str)
}

#[inline]
fn way(args: &ArgList) -> Option<&Arc<Way>> {
    args.own(0)
}
