//! Variables and ACLs as values: `var`, `acl`.

use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::env::Env;
use crate::registry::Fetch;
use crate::value::{Type, Value};

/// HAProxy's limit of arguments.
const NAMES: &[Param] = &{
    let mut names = [may(ParamKind::Str); 12];
    names[0] = need(ParamKind::Str);
    names
};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("var", Type::Any, "The value of a variable; the text behind it when it is not set.", var)
        .params(&[need(ParamKind::Var), may(ParamKind::Str)]),
    Fetch::one("acl", Type::Bool, "Whether all of these ACLs hold; '!' before a name asks for the opposite.", acl)
        .params(NAMES)
        .check(check_acl),
];

#[inline]
fn var<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    match env.vars.get(args.var(0)?) {
        Some(value) => Some(value),
        None => args.str(1).map(Value::str),
    }
}

fn acl<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    match args.at(0) {
        Arg::Condition(condition) => Some(Value::Bool(condition.eval(env))),
        _ => None,
    }
}

fn check_acl(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let names = args.iter().map(|arg| match arg {
        Arg::Str(name) => std::str::from_utf8(name).map_err(|_| "not a name of an ACL".to_owned()),
        _ => Err("expects names of ACLs".to_owned()),
    });
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    let condition = compiler.all_of(&names)?;
    *args = vec![Arg::Condition(Box::new(condition))];
    Ok(())
}
