//! The class `AppletTCP`: a connection that a script serves, over a socket whose other end the proxy treats as a server's.

use crate::burst;
use crate::guard;
use crate::home::Home;
use crate::run::Ended;
use crate::wire::{PIECE, Wire};
use crate::{samples, vars};
use mlua::{Lua, Table, UserData, UserDataRef, Value};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

/// The class's name among a state's own values.
const CLASS: &str = "AppletTCP";

/// Data of an object of the class.
struct Handle {
    wire: Arc<Wire>,
    /// The most bytes that may wait to be received; 0: any.
    most: usize,
}

impl UserData for Handle {}

/// The object for the script.
pub(crate) fn object(wire: &Arc<Wire>, lua: &Lua, most: usize) -> mlua::Result<Table> {
    let object = lua.create_table()?;
    object.raw_set(0, lua.create_userdata(Handle { wire: wire.clone(), most })?)?;
    samples::give(lua, &object)?;
    object.set_metatable(Some(lua.named_registry_value(CLASS)?))?;
    Ok(object)
}

/// Puts the class into a state.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    let class = lua.create_table()?;
    vars::install(lua, home, &class)?;
    let send = |_: Lua, (this, data): (Table, mlua::String)| async move {
        let (wire, _) = of(&this)?;
        if burst::is_long() {
            tokio::task::yield_now().await;
        }
        let (mut at, length) = (0, data.as_bytes().len());
        while at < length {
            let full = {
                let bytes = data.as_bytes();
                let piece = &bytes[at..length.min(at + PIECE)];
                at += piece.len();
                wire.put(piece)
            };
            if full {
                wire.flush().await.map_err(|_| gone())?;
            }
        }
        Ok(length)
    };
    class.set("send", lua.create_async_function(send)?)?;
    let receive = |lua: Lua, (this, size, limit): (Table, Option<i64>, Option<i64>)| async move {
        let (wire, most) = of(&this)?;
        let size = size.and_then(|size| usize::try_from(size).ok());
        let receiving = wire.receive(most, |ready| size.filter(|size| ready.len() >= *size));
        let Some(limit) = limit.and_then(|limit| u64::try_from(limit).ok()) else {
            let bytes = receiving.await.map_err(|_| gone())?;
            return Ok(Value::String(lua.create_string(bytes)?));
        };
        match tokio::time::timeout(Duration::from_millis(limit), receiving).await {
            Ok(bytes) => Ok(Value::String(lua.create_string(bytes.map_err(|_| gone())?)?)),
            Err(_) => some(&lua, &wire, size),
        }
    };
    class.set("receive", lua.create_async_function(receive)?)?;
    let try_receive = |lua: &Lua, this: Table| {
        let (wire, _) = of(&this)?;
        let _ = wire.poll_more(&mut Context::from_waker(Waker::noop()));
        some(lua, &wire, None)
    };
    class.set("try_receive", lua.create_function(try_receive)?)?;
    let line = |lua: Lua, this: Table| async move {
        let (wire, most) = of(&this)?;
        let bytes = wire.receive(most, |ready| ready.iter().position(|b| *b == b'\n').map(|at| at + 1)).await;
        lua.create_string(bytes.map_err(|_| gone())?)
    };
    class.set("getline", lua.create_async_function(line)?)?;
    let meta = guard::hidden(lua)?;
    meta.set("__index", class)?;
    lua.set_named_registry_value(CLASS, meta)
}

/// The bytes that are there; `None` where more may come and none are there yet.
fn some(lua: &Lua, wire: &Wire, size: Option<usize>) -> mlua::Result<Value> {
    let (there, all) = wire.waiting();
    if there == 0 && !all {
        return Ok(Value::Nil);
    }
    Ok(Value::String(lua.create_string(wire.take(size.map_or(there, |size| size.min(there))))?))
}

fn gone() -> mlua::Error {
    mlua::Error::external(Ended::Gone)
}

fn of(object: &Table) -> mlua::Result<(Arc<Wire>, usize)> {
    match object.raw_get::<Value>(0)? {
        Value::UserData(data) => {
            let handle: UserDataRef<Handle> = data.borrow()?;
            Ok((handle.wire.clone(), handle.most))
        }
        _ => Err(mlua::Error::runtime("expects the applet's object")),
    }
}
