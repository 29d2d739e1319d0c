//! Converters that set variables on the way, and those that stop a value.

use crate::argument::{Arg, Param, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::registry::Converter;
use crate::value::Type;
use crate::vars::Target;

const NAME_AND_CONDITIONS: &[Param] =
    &[need(ParamKind::Var), may(ParamKind::Str), may(ParamKind::Str), may(ParamKind::Str), may(ParamKind::Str)];

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "set-var",
        Type::Any,
        Type::Any,
        "The value, which is also put into a variable, under conditions; nothing when that does not go.",
        |value, args, env| args.own::<Target>(0)?.set(&env.vars, value.clone()).then_some(value),
    )
    .params(NAME_AND_CONDITIONS)
    .check(check_target),
    Converter::new("unset-var", Type::Any, Type::Any, "The value; the variable is unset.", |value, args, env| {
        env.vars.unset(args.var(0)?).then_some(value)
    })
    .params(&[need(ParamKind::Var)]),
];

fn check_target(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Var(slot)) = args.first() else { return Err("expects the name of a variable".into()) };
    let mut target = Target::always(*slot);
    for arg in &args[1..] {
        if let Arg::Str(word) = arg
            && !word.is_empty()
        {
            target = target.when(std::str::from_utf8(word).unwrap_or_default())?;
        }
    }
    *args = vec![Arg::own(target)];
    Ok(())
}
