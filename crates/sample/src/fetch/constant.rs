//! Values that stand in the configuration.

use crate::argument::{ArgList, ParamKind, need};
use crate::env::Env;
use crate::registry::Fetch;
use crate::value::{Type, Value};

pub(crate) const FETCHES: &[Fetch] = &[Fetch::one("str", Type::Str, "This text.", text).params(&[need(ParamKind::Str)])];

fn text<'a>(args: &'a ArgList, _: &Env<'a>) -> Option<Value<'a>> {
    args.str(0).map(Value::str)
}
