//! The class `HTTP`: heads, to be read and edited (`txn.http`).

use crate::lent::{self, Seen};
use crate::regex;
use mlua::{Lua, Table, Value};
use terse_message::Fields;
use terse_proxy::inspection::Side;
use terse_proxy::rules::edit;
use terse_proxy::stream::Stream;

/// The object's name among a state's own values: all transactions share it, since its stream is lent.
const OBJECT: &str = "HTTP";

/// Puts the class into a state.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    let object = lua.create_table()?;
    for (side, prefix) in [(Side::Request, "req_"), (Side::Response, "res_")] {
        let set = |name: &str, function: mlua::Function| object.set(format!("{prefix}{name}"), function);
        set("get_headers", lua.create_function(move |lua, _: Value| headers(lua, side))?)?;
        set(
            "add_header",
            lua.create_function(move |_, (_, name, value): Named| {
                change(side, |stream| edit::add_field(stream, side, &name.as_bytes(), &value.as_bytes()))
            })?,
        )?;
        set(
            "set_header",
            lua.create_function(move |_, (_, name, value): Named| {
                change(side, |stream| edit::set_field(stream, side, &name.as_bytes(), &value.as_bytes()))
            })?,
        )?;
        set(
            "del_header",
            lua.create_function(move |_, (_, name): (Value, mlua::String)| {
                change(side, |stream| edit::remove_field(stream, side, &name.as_bytes()))
            })?,
        )?;
        for (name, elements) in [("rep_header", false), ("rep_value", true)] {
            set(
                name,
                lua.create_function(move |_, (_, name, pattern, template): Rewrite| {
                    let regex = regex::compiled(&pattern.as_bytes())?;
                    change(side, |stream| {
                        edit::replace_values(stream, side, (&name.as_bytes(), elements), &regex, &template.as_bytes())
                    })
                })?,
            )?;
        }
    }
    for (name, edit) in LINE {
        object.set(
            *name,
            lua.create_function(move |_, (_, text): (Value, mlua::String)| {
                change(Side::Request, |stream| edit(stream, &text.as_bytes()))
            })?,
        )?;
    }
    object.set(
        "res_set_status",
        lua.create_function(|_, (_, status, reason): (Value, i64, Option<mlua::String>)| {
            let reason = reason.map(|reason| reason.as_bytes().to_vec());
            let status = u16::try_from(status).unwrap_or_default();
            change(Side::Response, |stream| edit::set_status(stream, status, reason.as_deref()))
        })?,
    )?;
    lua.set_named_registry_value(OBJECT, object)
}

type Named = (Value, mlua::String, mlua::String);
type Rewrite = (Value, mlua::String, mlua::String, mlua::String);
type Edit = fn(&mut Stream, &[u8]) -> bool;

/// Edits of a request's first line.
const LINE: &[(&str, Edit)] = &[
    ("req_set_method", edit::set_method),
    ("req_set_path", edit::set_path),
    ("req_set_query", edit::set_query),
    ("req_set_uri", edit::set_uri),
];

/// The object.
pub(crate) fn object(lua: &Lua) -> mlua::Result<Table> {
    lua.named_registry_value(OBJECT)
}

/// Edits a head. An edit that is not possible is left out, and the script gets `false`.
fn change(side: Side, edit: impl FnOnce(&mut Stream) -> bool) -> mlua::Result<bool> {
    lent::see(|seen| match seen {
        Seen::Stream(stream) if side == Side::Response && !stream.has_response => {
            Err(mlua::Error::runtime("there is no response yet"))
        }
        Seen::Stream(stream) => Ok(edit(stream)),
        _ => Err(mlua::Error::runtime("heads can be edited by an action alone")),
    })
}

fn headers(lua: &Lua, side: Side) -> mlua::Result<Table> {
    let table = lent::see_env(|env| match side {
        Side::Request => env.request.map(|request| table(lua, &request.fields)),
        Side::Response => env.response.map(|response| table(lua, &response.fields)),
    });
    table.flatten().unwrap_or_else(|| lua.create_table())
}

/// Names in lower case, and for each its values, counted from 0.
pub(crate) fn table(lua: &Lua, fields: &Fields) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in fields.iter() {
        let name = lua.create_string(name.to_ascii_lowercase())?;
        match table.raw_get::<Option<Table>>(&name)? {
            Some(values) => values.raw_set(values.raw_len() + 1, lua.create_string(value)?)?,
            None => {
                let values = lua.create_table()?;
                values.raw_set(0, lua.create_string(value)?)?;
                table.raw_set(name, values)?;
            }
        }
    }
    Ok(table)
}
