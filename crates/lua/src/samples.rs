//! Fetches and converters for scripts: `txn.f:req_hdr("host")`, `txn.c:lower(text)`; `sf` and `sc` always give text.
//!
//! Names that hold `.`, `-` or `+` are written with `_`. A call is compiled like an expression of the configuration, and
//! compiled calls are kept, so that a script pays for a call once.

use crate::guard;
use crate::home::Home;
use crate::lent;
use crate::values::{from_lua, to_lua, to_text};
use mlua::{Lua, Table, Value, Variadic};
use terse_sample::{Env, Expr};

/// Puts the classes into a state: `_classes.f`, `sf`, `c`, `sc`, objects that all transactions share, since their stream is
/// lent.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    for (name, fetches, as_text) in [("f", true, false), ("sf", true, true), ("c", false, false), ("sc", false, true)] {
        let object = lua.create_table()?;
        let meta = guard::hidden(lua)?;
        let home = home.clone();
        // A name is looked up once; the function that it stands for is kept in the object.
        let index = move |lua: &Lua, (object, key): (Table, String)| -> mlua::Result<Value> {
            let table = if fetches { &home.names.fetches } else { &home.names.converters };
            let Some(real) = table.get(&key).copied() else { return Ok(Value::Nil) };
            let here = home.clone();
            let function = match fetches {
                true => {
                    lua.create_function(move |lua, (_, args): (Value, Variadic<Value>)| fetch(lua, &here, real, &args, as_text))?
                }
                false => lua.create_function(move |lua, (_, input, args): (Value, Value, Variadic<Value>)| {
                    convert(lua, &here, real, &input, &args, as_text)
                })?,
            };
            object.raw_set(key, &function)?;
            Ok(Value::Function(function))
        };
        meta.set("__index", lua.create_function(index)?)?;
        object.set_metatable(Some(meta))?;
        lua.set_named_registry_value(name, object)?;
    }
    Ok(())
}

/// Gives an object of a transaction the four classes.
pub(crate) fn give(lua: &Lua, object: &Table) -> mlua::Result<()> {
    for name in ["f", "sf", "c", "sc"] {
        object.raw_set(name, lua.named_registry_value::<Table>(name)?)?;
    }
    Ok(())
}

fn fetch(lua: &Lua, home: &Home, name: &'static str, args: &[Value], as_text: bool) -> mlua::Result<Value> {
    let text = call(name, args)?;
    evaluate(lua, home, text, as_text, |expr, env| Ok(expr.eval(env)))
}

fn convert(lua: &Lua, home: &Home, name: &'static str, input: &Value, args: &[Value], as_text: bool) -> mlua::Result<Value> {
    let value = from_lua(input).ok_or_else(|| mlua::Error::runtime("a converter expects a string, a number or a boolean"))?;
    // The expression's own value is not used.
    let text = [b"str(),".to_vec(), call(name, args)?].concat();
    evaluate(lua, home, text, as_text, |expr, env| Ok(expr.convert(value, env)))
}

fn evaluate(
    lua: &Lua,
    home: &Home,
    text: Vec<u8>,
    as_text: bool,
    run: impl for<'a> FnOnce(&'a Expr, &Env<'a>) -> mlua::Result<Option<terse_sample::Value<'a>>>,
) -> mlua::Result<Value> {
    let result = lent::see_env(|env| {
        let expr = home.names.compile(env, text).map_err(mlua::Error::runtime)?;
        let value = run(&expr, env)?;
        match value {
            value if as_text => to_text(value, lua),
            Some(value) => to_lua(value, home.booleans, lua),
            None => Ok(Value::Nil),
        }
    });
    result.unwrap_or_else(|| Err(mlua::Error::runtime("there is no transaction here")))
}

/// A call as the configuration would write it. Arguments stand in quotes, so that none of their bytes ends one.
fn call(name: &str, args: &[Value]) -> mlua::Result<Vec<u8>> {
    let mut text = name.as_bytes().to_vec();
    for (at, arg) in args.iter().enumerate() {
        text.push(if at == 0 { b'(' } else { b',' });
        let bytes = match arg {
            Value::String(bytes) => bytes.as_bytes().to_vec(),
            Value::Integer(number) => number.to_string().into_bytes(),
            Value::Number(number) => number.to_string().into_bytes(),
            Value::Boolean(truth) => i32::from(*truth).to_string().into_bytes(),
            other => return Err(mlua::Error::runtime(format!("argument {} is a {}", at + 1, other.type_name()))),
        };
        text.push(b'"');
        for byte in bytes {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.push(b'"');
    }
    if !args.is_empty() {
        text.push(b')');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_end_where_they_end() {
        let lua = Lua::new();
        let text = |text: &str| Value::String(lua.create_string(text).unwrap());
        let args = [text("a,b)"), Value::Integer(24), text("\"\\n"), Value::Boolean(true)];
        assert_eq!(call("f", &args).unwrap(), br#"f("a,b)","24","\"\\n","1")"#);
        assert_eq!(call("f", &[]).unwrap(), b"f");
        assert!(call("f", &[Value::Nil]).is_err());
    }
}
