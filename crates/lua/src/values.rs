//! Values of expressions as Lua sees them, and back.

use mlua::{Lua, Value as LuaValue};
use terse_sample::{Octets, Value};

/// A value for Lua. A boolean stays one, or becomes a number in HAProxy's old way.
pub(crate) fn to_lua(value: Value<'_>, booleans: bool, lua: &Lua) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Bool(truth) if booleans => LuaValue::Boolean(truth),
        Value::Bool(truth) => LuaValue::Integer(truth.into()),
        Value::Int(number) => LuaValue::Integer(number),
        other => LuaValue::String(text(other, lua)?),
    })
}

/// The same as a text; `None` is an empty one.
pub(crate) fn to_text(value: Option<Value<'_>>, lua: &Lua) -> mlua::Result<LuaValue> {
    Ok(LuaValue::String(match value {
        Some(value) => text(value, lua)?,
        None => lua.create_string("")?,
    }))
}

fn text(value: Value<'_>, lua: &Lua) -> mlua::Result<mlua::String> {
    match value.into_bytes() {
        Some(bytes) => lua.create_string(&*bytes),
        None => lua.create_string(""),
    }
}

/// The value that Lua gives; `None` for one that is no value of an expression.
pub(crate) fn from_lua(value: &LuaValue) -> Option<Value<'static>> {
    Some(match value {
        LuaValue::Boolean(truth) => Value::Bool(*truth),
        LuaValue::Integer(number) => Value::Int(*number),
        // As HAProxy has it, numbers are whole.
        LuaValue::Number(number) if number.is_finite() => Value::Int(*number as i64),
        LuaValue::String(text) => Value::Str(Octets::copy(&text.as_bytes())),
        _ => return None,
    })
}
