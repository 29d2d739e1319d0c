//! Fetches and converters that scripts register: their names are known once the scripts are loaded, and no table holds them.
//!
//! The program that runs the scripts is asked for a name while an expression is compiled. The function that it returns
//! becomes the expression's first argument, and is called when the expression is evaluated.

use crate::argument::{ArgList, Param, ParamKind, may};
use crate::env::Env;
use crate::registry::{Converter, Fetch};
use crate::value::{Type, Value};
use std::sync::Arc;

/// A function of a script.
pub trait Function: Send + Sync {
    /// Returns the result for a converter's input, or for none as a fetch. The first of the arguments is the function
    /// itself.
    fn call(&self, input: Option<Value<'_>>, args: &ArgList, env: &Env<'_>) -> Option<Value<'static>>;
}

/// The registered functions by their names, which are without `lua.` here.
pub trait Functions: Send + Sync {
    /// The fetch of that name.
    fn fetch(self: Arc<Self>, name: &str) -> Option<Arc<dyn Function>>;

    /// The converter of that name.
    fn converter(self: Arc<Self>, name: &str) -> Option<Arc<dyn Function>>;
}

/// Argument that holds the function.
pub(crate) struct Callee(pub(crate) Arc<dyn Function>);

/// Prefix of the names.
pub(crate) const PREFIX: &str = "lua.";

/// HAProxy's limit of arguments.
const TEXTS: &[Param] = &[may(ParamKind::Str); 12];

/// Stands for any fetch of a script. As in HAProxy, its values are texts where the types have to fit.
pub(crate) static FETCH: Fetch =
    Fetch::one("lua.", Type::Str, "What a function gives that a Lua script has registered.", fetch).params(TEXTS);

/// Stands for any converter of a script.
pub(crate) static CONVERTER: Converter =
    Converter::new("lua.", Type::Str, Type::Str, "What a function makes of it that a Lua script has registered.", convert)
        .params(TEXTS);

fn fetch<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    args.own::<Callee>(0)?.0.call(None, args, env)
}

fn convert<'a>(value: Value<'a>, args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    args.own::<Callee>(0)?.0.call(Some(value), args, env)
}
