//! Variables, and data that scripts keep of a stream.

use crate::home::Home;
use crate::lent;
use crate::values::{from_lua, to_lua};
use mlua::{Lua, Table, Value};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use terse_proxy::facts::Facts;
use terse_sample::Env;
use terse_sample::vars::{VarNames, VarScope, VarSlot};

/// Notes of scripts about a stream: their own data (`set_priv`), by state.
#[derive(Default)]
struct Notes {
    private: HashMap<usize, Value>,
    /// `act:wake_time`: the time after which an action that yields is called again.
    wake: Option<Duration>,
}

/// Names of variables that no line of the configuration holds, after those that it does. Their values lie with all others.
static LATER: Mutex<Vec<(VarScope, String)>> = Mutex::new(Vec::new());

/// Most names there.
const MOST_NAMES: usize = 4096;
const LONGEST_NAME: usize = 256;

/// Gives a class the methods.
pub(crate) fn install(lua: &Lua, home: &Home, class: &Table) -> mlua::Result<()> {
    let booleans = home.booleans;
    class.set(
        "get_var",
        lua.create_function(move |lua, (_, name): (Value, String)| {
            let value = lent::see_env(|env| find(env, &name).and_then(|slot| env.vars.get(slot))).flatten();
            value.map_or(Ok(Value::Nil), |value| to_lua(value, booleans, lua))
        })?,
    )?;
    class.set(
        "set_var",
        lua.create_function(|_, (_, name, value, exists): (Value, String, Value, Option<bool>)| {
            let Some(value) = from_lua(&value) else {
                return Err(mlua::Error::runtime("a variable holds a string, a number or a boolean"));
            };
            Ok(lent::see_env(|env| slot(env, &name, exists.unwrap_or(false)).is_some_and(|slot| env.vars.set(slot, value)))
                == Some(true))
        })?,
    )?;
    class.set(
        "unset_var",
        lua.create_function(|_, (_, name): (Value, String)| {
            Ok(lent::see_env(|env| find(env, &name).is_some_and(|slot| env.vars.unset(slot))) == Some(true))
        })?,
    )?;
    let state = home.id;
    class.set(
        "set_priv",
        lua.create_function(move |_, (_, data): (Value, Value)| {
            lent::see_facts(|facts| with_notes(facts, |notes| notes.private.insert(state, data)));
            Ok(())
        })?,
    )?;
    class.set(
        "get_priv",
        lua.create_function(move |_, _: Value| {
            let data = lent::see_facts(|facts| with_notes(facts, |notes| notes.private.get(&state).cloned()));
            Ok(data.flatten().unwrap_or(Value::Nil))
        })?,
    )
}

/// Gives `core` the functions that read variables of the process; those of streams are a transaction's.
pub(crate) fn of_process(lua: &Lua, home: &Home, core: &Table) -> mlua::Result<()> {
    let booleans = home.booleans;
    let get = move |lua: &Lua, name: String| {
        if !name.starts_with("proc.") {
            return Err(mlua::Error::runtime("core.get_var knows variables of the process alone: 'proc.name'"));
        }
        let value = lent::see_env(|env| find(env, &name).and_then(|slot| env.vars.get(slot))).flatten();
        value.map_or(Ok(Value::Nil), |value| to_lua(value, booleans, lua))
    };
    core.set("get_var", lua.create_function(get)?)
}

/// Notes the time after which the stream's action is called again, if it yields.
pub(crate) fn wake_in(time: Duration) {
    lent::see_facts(|facts| with_notes(facts, |notes| notes.wake = Some(time)));
}

/// That time; the note is taken.
pub(crate) fn take_wake(facts: &Facts) -> Option<Duration> {
    with_notes(facts, |notes| notes.wake.take())
}

fn with_notes<R>(facts: &Facts, run: impl FnOnce(&mut Notes) -> R) -> R {
    let mut notes = facts.stage.get_or_init(Box::default).notes.borrow_mut();
    let notes = notes.get_or_insert_with(|| Box::new(Notes::default()) as Box<dyn Any>);
    match notes.downcast_mut() {
        Some(notes) => run(notes),
        // No other code keeps notes.
        None => run(&mut Notes::default()),
    }
}

/// The variable of a name that the configuration or a script has used.
fn find(env: &Env<'_>, name: &str) -> Option<VarSlot> {
    let process = env.vars.process?;
    match process.names().find(name) {
        Some(slot) => Some(slot),
        None if name.starts_with("proc.") => process.later_names().find(name),
        None => later(process.names(), name, false),
    }
}

/// The same; a new name gets an index, unless it `must_exist`: then only variables of the process must.
fn slot(env: &Env<'_>, name: &str, must_exist: bool) -> Option<VarSlot> {
    if let Some(slot) = find(env, name) {
        return Some(slot);
    }
    let process = env.vars.process?;
    match name.split_once('.')?.0 {
        "proc" if must_exist => None,
        "proc" => process.later_names().slot(name).ok(),
        _ => later(process.names(), name, true),
    }
}

fn later(names: &VarNames, name: &str, make: bool) -> Option<VarSlot> {
    let (scope, rest) = name.split_once('.')?;
    let scope = match scope {
        "sess" => VarScope::Session,
        "txn" => VarScope::Transaction,
        "req" => VarScope::Request,
        "res" => VarScope::Response,
        _ => return None,
    };
    let is_name = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    let mut later = LATER.lock().unwrap_or_else(PoisonError::into_inner);
    let known = later.iter().position(|(of, known)| *of == scope && known == rest);
    let place = match known {
        Some(place) => place,
        None if make && is_name && later.len() < MOST_NAMES && rest.len() <= LONGEST_NAME => {
            later.push((scope, rest.to_owned()));
            later.len() - 1
        }
        None => return None,
    };
    Some(VarSlot { scope, index: (names.count(scope) + place) as u32 })
}
