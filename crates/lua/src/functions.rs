//! `lua.NAME` in expressions: fetches and converters that scripts have registered. They cannot wait.

use crate::lent;
use crate::library::Named;
use crate::run::{Callable, Ended, Failure, Limits, Run};
use crate::txn;
use crate::values::from_lua;
use mlua::{IntoLua, MultiValue, Value as LuaValue};
use terse_proxy::facts::Facts;
use terse_sample::scripted::Function;
use terse_sample::{Arg, ArgList, Env, Value};

/// A fetch.
pub(crate) struct Fetch {
    pub(crate) named: Named,
}

/// A converter.
pub(crate) struct Converter {
    pub(crate) named: Named,
}

impl Function for Fetch {
    fn call(&self, _: Option<Value<'_>>, args: &ArgList, env: &Env<'_>) -> Option<Value<'static>> {
        call(&self.named, env, args, |callable| Ok(LuaValue::Table(txn::object(&callable.lua, env.request.is_some())?)))
    }
}

impl Function for Converter {
    fn call(&self, input: Option<Value<'_>>, args: &ArgList, env: &Env<'_>) -> Option<Value<'static>> {
        let bytes = input?.into_bytes()?;
        call(&self.named, env, args, |callable| Ok(LuaValue::String(callable.lua.create_string(&*bytes)?)))
    }
}

/// Calls it with its first argument and those of the expression.
fn call(
    named: &Named,
    env: &Env<'_>,
    args: &ArgList,
    first: impl FnOnce(&Callable) -> mlua::Result<LuaValue>,
) -> Option<Value<'static>> {
    let worker = env.facts::<Facts>().map_or(0, |facts| facts.session.worker.index);
    let callable = named.callable(worker)?;
    let tuning = named.library().tuning();
    let values = || -> mlua::Result<MultiValue> {
        let mut values = vec![first(&callable)?];
        // The first of them is the function itself.
        for at in 1..args.len() {
            if let Arg::Str(text) = args.at(at) {
                values.push(callable.lua.create_string(text)?.into_lua(&callable.lua)?);
            }
        }
        Ok(values.into_iter().collect())
    };
    lent::env(env, || {
        let values = values().map_err(|error| Failure::from(&error));
        let run = values.and_then(|values| Run::start(&callable, values, Limits { total: tuning.session, burst: tuning.burst }));
        match run.and_then(Run::at_once) {
            Ok(values) => from_lua(values.front()?),
            Err(Failure::Ended(Ended::With(_) | Ended::Transaction(_) | Ended::Gone)) => None,
            Err(Failure::Wrong(reason)) => {
                named.wrong(&reason);
                None
            }
        }
    })
}
