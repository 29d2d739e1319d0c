//! The class `TXN`: the view of an action, a fetch or a converter of a request and its response.

use crate::core::{SPEAKERS, level};
use crate::guard;
use crate::home::Home;
use crate::lent::{self, Seen};
use crate::run::Ended;
use crate::{http, message, samples, vars};
use mlua::{Lua, Table, Value};
use std::sync::Arc;
use terse_message::status;
use terse_proxy::facts::LogLevel;
use terse_proxy::log::Level;
use terse_proxy::reply::Answer;
use terse_proxy::rules::edit::{self, is_field};
use terse_proxy::stream::Stream;

/// The class's name among a state's own values.
const CLASS: &str = "TXN";

/// Puts the class into a state.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    let class = lua.create_table()?;
    vars::install(lua, home, &class)?;
    for (name, level) in SPEAKERS {
        let here = home.clone();
        class.set(
            name,
            lua.create_function(move |_, (_, line): (Value, mlua::String)| {
                here.say(level, &line);
                Ok(())
            })?,
        )?;
    }
    let here = home.clone();
    let log = move |_: &Lua, (_, number, line): (Value, i64, mlua::String)| {
        here.say(level(number)?, &line);
        Ok(())
    };
    class.set("log", lua.create_function(log)?)?;
    let here = home.clone();
    let deflog = move |_: &Lua, (_, line): (Value, mlua::String)| {
        here.say(Level::Info, &line);
        Ok(())
    };
    class.set("deflog", lua.create_function(deflog)?)?;
    class.set("set_loglevel", lua.create_function(set_log_level)?)?;
    let done = |_: &Lua, (_, reply): (Value, Option<Table>)| -> mlua::Result<()> {
        let answer = reply.as_ref().map(answer).transpose()?;
        Err(mlua::Error::external(Ended::Transaction(answer.map(Box::new))))
    };
    class.set("done", lua.create_function(done)?)?;
    for (name, change) in CHANGES {
        let set = lua.create_function(move |_, (_, number): (Value, i64)| {
            lent::see(|seen| match seen {
                Seen::Stream(stream) => {
                    change(stream, number);
                    Ok(())
                }
                _ => Err(mlua::Error::runtime(format!("txn:{name} can be called by an action alone"))),
            })
        })?;
        class.set(*name, set)?;
    }
    let reason = lua.create_function(|_, code: i64| Ok(status::reason(u16::try_from(code).unwrap_or(0))))?;
    class.set("reply", lua.load(REPLY).set_name("=[reply]").call::<Value>(reason)?)?;
    message::install(lua, &class)?;
    let meta = guard::hidden(lua)?;
    meta.set("__index", class)?;
    lua.set_named_registry_value(CLASS, meta)
}

/// Change of a stream by a number.
type Change = fn(&mut Stream, i64);

const CHANGES: &[(&str, Change)] = &[
    ("set_fc_mark", |stream, mark| edit::set_mark(stream, mark as u32)),
    ("set_fc_tos", |stream, tos| edit::set_tos(stream, tos as u8)),
    ("set_mark", |stream, mark| edit::set_mark(stream, mark as u32)),
    ("set_priority_class", edit::set_priority_class),
    ("set_priority_offset", edit::set_priority_offset),
    ("set_tos", |stream, tos| edit::set_tos(stream, tos as u8)),
];

/// The class `Reply`.
const REPLY: &str = r#"
local reason_of = ...
local pairs, setmetatable, type = pairs, setmetatable, type
local Reply = {}
Reply.__index = Reply
function Reply:set_status(status, reason)
  self.status = status
  self.reason = reason or reason_of(status)
end
function Reply:add_header(name, value)
  local values = self.headers[name]
  if values == nil then
    values = {}
    self.headers[name] = values
  end
  values[#values + 1] = value
end
function Reply:del_header(name)
  self.headers[name] = nil
end
function Reply:set_body(body)
  self.body = body
end
return function(txn, given)
  local reply = setmetatable({ headers = {} }, Reply)
  if type(given) ~= "table" then given = {} end
  reply:set_status(type(given.status) == "number" and given.status or 200, type(given.reason) == "string" and given.reason or nil)
  if type(given.body) == "string" then reply.body = given.body end
  for name, values in pairs(type(given.headers) == "table" and given.headers or {}) do
    if type(values) == "table" then
      for _, value in pairs(values) do reply:add_header(name, value) end
    elseif type(values) == "string" or type(values) == "number" then
      reply:add_header(name, values)
    end
  end
  return reply
end
"#;

/// An object for the stream or environment that is lent now.
pub(crate) fn object(lua: &Lua, with_heads: bool) -> mlua::Result<Table> {
    let object = lua.create_table()?;
    samples::give(lua, &object)?;
    if with_heads {
        object.raw_set("http", http::object(lua)?)?;
    }
    object.set_metatable(Some(lua.named_registry_value(CLASS)?))?;
    Ok(object)
}

fn set_log_level(_: &Lua, (_, number): (Value, i64)) -> mlua::Result<()> {
    let level = if number < 0 { LogLevel::Silent } else { LogLevel::At(level(number)?) };
    lent::see(|seen| match seen {
        Seen::Stream(stream) => {
            stream.facts.log_level = level;
            Ok(())
        }
        _ => Err(mlua::Error::runtime("the level of logs can be set by an action alone")),
    })
}

/// The response that a table describes.
fn answer(reply: &Table) -> mlua::Result<Answer> {
    let status = reply.get::<Option<i64>>("status")?.unwrap_or(200);
    let status = u16::try_from(status).ok().filter(|status| (200..=599).contains(status));
    let status = status.ok_or_else(|| mlua::Error::runtime("the status of a reply is a number from 200 to 599"))?;
    let reason = reply.get::<Option<String>>("reason")?.unwrap_or_default();
    if reason.bytes().any(|b| b.is_ascii_control()) {
        return Err(mlua::Error::runtime("the reason of a reply is one line"));
    }
    let mut fields = Vec::new();
    if let Some(headers) = reply.get::<Option<Table>>("headers")? {
        for pair in headers.pairs::<mlua::String, Value>() {
            let (name, values) = pair?;
            let name: Arc<[u8]> = Arc::from(&*name.as_bytes());
            // The length is that of the body.
            if name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding") {
                continue;
            }
            let mut put = |value: mlua::String| match is_field(&name, &value.as_bytes()) {
                true => {
                    fields.push((name.clone(), value.as_bytes().to_vec()));
                    Ok(())
                }
                false => Err(mlua::Error::runtime("a header of the reply is none")),
            };
            match values {
                Value::Table(values) => values.sequence_values().try_for_each(|value| put(value?))?,
                Value::String(value) => put(value)?,
                _ => return Err(mlua::Error::runtime("headers of a reply are lists of strings")),
            }
        }
    }
    let body = reply.get::<Option<mlua::String>>("body")?;
    let body = body.map_or_else(|| Arc::from(&b""[..]), |body| Arc::from(&*body.as_bytes()));
    Ok(Answer { status, stands_for: None, reason: reason.into(), fields, body, close: false })
}
