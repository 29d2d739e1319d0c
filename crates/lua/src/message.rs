//! The classes `Channel` (`txn.req`, `txn.res`) and `HTTPMessage` (`txn.http_req`, `txn.http_res`).
//!
//! The second is Lua's own (`prelude/message.lua`): its data comes from fetches and from the class `HTTP`. Bodies are read and
//! not changed: only filters could, and those are not written in Lua.

use crate::channel;
use crate::http;
use crate::lent;
use mlua::{Lua, Table};
use terse_message::Version;
use terse_proxy::inspection::Side;

/// Gives the objects to the class `TXN`.
pub(crate) fn install(lua: &Lua, txn: &Table) -> mlua::Result<()> {
    let class = lua.create_table()?;
    channel::install(lua, &class)?;
    let line = lua.create_function(|lua, is_response: bool| start_line(lua, is_response))?;
    let part = lua.create_function(part)?;
    let side = |is_response: bool| if is_response { Side::Response } else { Side::Request };
    let body = lua.create_function(move |_, is_response: bool| Ok(channel::body_at_hand(side(is_response))))?;
    let exact = lua.create_function(move |_, is_response: bool| Ok(channel::exact_length(side(is_response))))?;
    let fetches: Table = lua.named_registry_value("f")?;
    let given = (txn, http::object(lua)?, fetches, class, line, part, body, exact);
    lua.load(include_str!("prelude/message.lua")).set_name("=[message]").call(given)
}

type Part = (Option<mlua::String>, Option<i64>, Option<i64>);

/// The part of a text that an offset and a length give: an offset below 0 counts from the end, and a length below 0 means
/// all.
fn part(lua: &Lua, (text, offset, length): Part) -> mlua::Result<Option<mlua::String>> {
    let Some(text) = text else { return Ok(None) };
    let bytes = text.as_bytes();
    let offset = offset.unwrap_or(0);
    let from = match usize::try_from(offset) {
        Ok(from) => Some(from),
        Err(_) => usize::try_from(offset.unsigned_abs()).ok().and_then(|back| bytes.len().checked_sub(back)),
    };
    let rest = from.and_then(|from| bytes.get(from..)).ok_or_else(|| mlua::Error::runtime("the offset is out of range"))?;
    let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(rest.len());
    lua.create_string(&rest[..length.min(rest.len())]).map(Some)
}

/// The parts of a first line; `None` before there is one.
fn start_line(lua: &Lua, is_response: bool) -> mlua::Result<Option<Table>> {
    let version = |version: Version| if version == Version::Http10 { "HTTP/1.0" } else { "HTTP/1.1" };
    let line = lent::see_env(|env| -> mlua::Result<Option<Table>> {
        let table = lua.create_table()?;
        match (is_response, env.request, env.response) {
            (false, Some(request), _) => {
                table.set("method", lua.create_string(request.method())?)?;
                table.set("uri", lua.create_string(request.target())?)?;
                table.set("version", version(request.version))?;
            }
            (true, _, Some(response)) => {
                table.set("version", version(response.version))?;
                table.set("code", response.status.to_string())?;
                table.set("reason", lua.create_string(response.reason())?)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(table))
    });
    line.unwrap_or(Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_within_the_text() {
        let lua = Lua::new();
        let cut = |offset, length| {
            let text = lua.create_string("abcdef").unwrap();
            part(&lua, (Some(text), offset, length)).map(|part| part.unwrap().to_str().unwrap().to_owned()).ok()
        };
        assert_eq!(cut(None, None).as_deref(), Some("abcdef"));
        assert_eq!(cut(Some(2), Some(3)).as_deref(), Some("cde"));
        assert_eq!(cut(Some(-2), Some(-1)).as_deref(), Some("ef"));
        assert_eq!(cut(Some(6), Some(9)).as_deref(), Some(""));
        assert_eq!((cut(Some(7), None), cut(Some(-7), None), cut(Some(i64::MIN), None)), (None, None, None));
    }
}
