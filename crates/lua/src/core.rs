//! The table `core`: registration of functions, logs, time, and waiting.

use crate::cli;
use crate::guard;
use crate::home::{Home, Kind, Registered};
use crate::lent;
use crate::proxies;
use crate::run::{Ended, may_wait};
use crate::vars;
use mlua::{FromLua, Function, Lua, MultiValue, Table, Value, Variadic};
use std::sync::PoisonError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use terse_proxy::log::Level;

/// The sets of rules that an action can be registered for.
pub(crate) const SETS: [&str; 5] = ["tcp-req", "tcp-res", "http-req", "http-res", "http-after-res"];
const MODES: [&str; 2] = ["http", "tcp"];

/// Puts the table into a state.
pub(crate) fn install(lua: &Lua, home: &Home, thread: usize) -> mlua::Result<()> {
    let core = lua.create_table()?;
    core.set("thread", thread)?;
    core.set("silent", -1)?;
    for (number, name) in (0..).zip(Level::NAMES) {
        core.set(name, number)?;
    }
    registration(lua, home, &core)?;
    cli::install(lua, home, &core)?;
    logging(lua, home, &core)?;
    waiting(lua, &core)?;
    core.set("now", lua.create_function(now)?)?;
    let here = home.clone();
    core.set("get_info", lua.create_function(move |lua, ()| info(lua, &here))?)?;
    vars::of_process(lua, home, &core)?;
    // A worker serves its tasks in turn: there is nothing to change.
    core.set("set_nice", lua.create_function(|_, _: i64| Ok(()))?)?;
    for (name, reason) in ABSENT {
        core.set(*name, absent(lua, format!("core.{name}"), reason)?)?;
    }
    for (name, reason) in ABSENT_CLASSES {
        let (class, meta) = (lua.create_table()?, guard::hidden(lua)?);
        let look = move |_: &Lua, (_, key): (Value, String)| -> mlua::Result<()> {
            Err(mlua::Error::runtime(format!("{name}.{key} is not available in terse: {reason}")))
        };
        meta.set("__index", lua.create_function(look)?)?;
        class.set_metatable(Some(meta))?;
        lua.globals().set(*name, class)?;
    }
    lua.globals().set("core", core)?;
    lua.load(PRELUDE).set_name("=[core]").exec()?;
    // `act.wake_time(1)`, or `act:wake_time(1)`.
    let wake = |lua: &Lua, (first, second): (Value, Option<i64>)| {
        let milliseconds = match (first, second) {
            (Value::Table(_), Some(milliseconds)) => milliseconds,
            (first, _) => i64::from_lua(first, lua)?,
        };
        vars::wake_in(Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)));
        Ok(())
    };
    lua.globals().get::<Table>("act")?.set("wake_time", lua.create_function(wake)?)
}

/// Functions of HAProxy's that terse does not have, with the reasons.
const ABSENT: &[(&str, &str)] =
    &[("register_filter", "filters cannot be written in Lua"), ("use_native_mailers_config", "there are no 'mailers' sections")];

/// Classes of HAProxy's that are globals and that terse does not have.
const ABSENT_CLASSES: &[(&str, &str)] =
    &[("filter", "filters cannot be written in Lua"), ("ACME", "certificates are not ordered by scripts")];

/// A function that fails with the reason why it is not there.
pub(crate) fn absent(lua: &Lua, name: String, reason: &'static str) -> mlua::Result<Function> {
    lua.create_function(move |_, _: MultiValue| -> mlua::Result<()> {
        Err(mlua::Error::runtime(format!("{name} is not available in terse: {reason}")))
    })
}

/// Parts that are easiest written in Lua.
const PRELUDE: &str = r#"
act = { CONTINUE = 0, STOP = 1, YIELD = 2, ERROR = 3, DONE = 4, DENY = 5, ABORT = 6, INVALID = 7 }

local Concat = {}
Concat.__index = Concat
function Concat:add(text)
  local n = self.n + 1
  self.n = n
  self[n] = text
end
function Concat:dump()
  local whole = ""
  if table then return table.concat(self, "", 1, self.n) end
  for i = 1, self.n do whole = whole .. self[i] end
  return whole
end
function core.concat()
  return setmetatable({ n = 0 }, Concat)
end
"#;

fn registration(lua: &Lua, home: &Home, core: &Table) -> mlua::Result<()> {
    let register = |kind: Kind| {
        let home = home.clone();
        move |_: &Lua, (name, function): (String, Function)| {
            home.register(kind, name, Registered { function, is_http: false, arguments: 0 });
            Ok(())
        }
    };
    core.set("register_fetches", lua.create_function(register(Kind::Fetch))?)?;
    core.set("register_converters", lua.create_function(register(Kind::Converter))?)?;
    let here = home.clone();
    let service = move |_: &Lua, (name, mode, function): (String, String, Function)| {
        let mode = MODES.iter().find(|known| **known == mode);
        let mode = mode.ok_or_else(|| mlua::Error::runtime("register_service expects the mode 'http' or 'tcp'"))?;
        here.register(Kind::Service, name, Registered { function, is_http: *mode == "http", arguments: 0 });
        Ok(())
    };
    core.set("register_service", lua.create_function(service)?)?;
    let here = home.clone();
    let action = move |_: &Lua, (name, sets, function, arguments): (String, Table, Function, Option<usize>)| {
        let mut known = Vec::new();
        for set in sets.sequence_values::<String>() {
            let set = set?;
            let found = SETS.iter().find(|known| **known == set);
            let wrong = || mlua::Error::runtime(format!("register_action expects {}, not '{set}'", SETS.join(", ")));
            known.push(*found.ok_or_else(wrong)?);
        }
        // A name may stand for a function of its own in each set.
        let registered = Registered { function, is_http: false, arguments: arguments.unwrap_or(0) };
        known.into_iter().for_each(|set| here.register(Kind::Action(set), name.clone(), registered.clone()));
        Ok(())
    };
    core.set("register_action", lua.create_function(action)?)?;
    let here = home.clone();
    let init = move |_: &Lua, function: Function| {
        here.registry.lock().unwrap_or_else(PoisonError::into_inner).inits.push(function);
        Ok(())
    };
    core.set("register_init", lua.create_function(init)?)?;
    let here = home.clone();
    let task = move |lua: &Lua, (function, args): (Function, Variadic<Value>)| {
        here.task(lua, function, args.into_iter().collect());
        Ok(())
    };
    core.set("register_task", lua.create_function(task)?)
}

/// The functions that write a line at a level of their own.
pub(crate) const SPEAKERS: [(&str, Level); 4] =
    [("Debug", Level::Debug), ("Info", Level::Info), ("Warning", Level::Warning), ("Alert", Level::Alert)];

/// The level of syslog's number.
pub(crate) fn level(number: i64) -> mlua::Result<Level> {
    let level = usize::try_from(number).ok().and_then(|number| Level::ALL.get(number).copied());
    level.ok_or_else(|| mlua::Error::runtime("a level of logs is a number from 0 to 7"))
}

fn logging(lua: &Lua, home: &Home, core: &Table) -> mlua::Result<()> {
    for (name, level) in SPEAKERS {
        let here = home.clone();
        core.set(
            name,
            lua.create_function(move |_, line: mlua::String| {
                here.say(level, &line);
                Ok(())
            })?,
        )?;
    }
    let here = home.clone();
    let log = move |_: &Lua, (number, line): (i64, mlua::String)| {
        here.say(level(number)?, &line);
        Ok(())
    };
    core.set("log", lua.create_function(log)?)
}

fn waiting(lua: &Lua, core: &Table) -> mlua::Result<()> {
    let sleep = |unit: fn(u64) -> Duration| {
        move |_: Lua, count: f64| async move {
            may_wait()?;
            // A value that is no time is 0, and one that is too long is cut.
            tokio::time::sleep(unit(count.clamp(0.0, 1e9) as u64)).await;
            Ok(())
        }
    };
    core.set("sleep", lua.create_async_function(sleep(Duration::from_secs))?)?;
    core.set("msleep", lua.create_async_function(sleep(Duration::from_millis))?)?;
    core.set(
        "yield",
        lua.create_async_function(|_, ()| async {
            tokio::task::yield_now().await;
            Ok(())
        })?,
    )?;
    let done = |_: &Lua, value: Option<i64>| -> mlua::Result<()> { Err(mlua::Error::external(Ended::With(value.unwrap_or(0)))) };
    core.set("done", lua.create_function(done)?)
}

fn now(lua: &Lua, (): ()) -> mlua::Result<Table> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    lua.create_table_from([("sec", since.as_secs()), ("usec", since.subsec_micros().into())])
}

/// The figures of the process; while a script is loaded only those that do not change.
fn info(lua: &Lua, home: &Home) -> mlua::Result<Table> {
    let info = lua.create_table()?;
    info.set("Name", "terse")?;
    info.set("Version", env!("CARGO_PKG_VERSION"))?;
    info.set("Pid", std::process::id())?;
    if let Some(worker) = lent::worker_here() {
        info.set("Nbthread", worker.plan.process.workers)?;
        info.set("Maxconn", worker.plan.limits.connections.load(std::sync::atomic::Ordering::Relaxed))?;
        info.set("CurrConns", worker.connections())?;
        info.set("Uptime_sec", worker.plan.started.elapsed().as_secs())?;
    }
    proxies::add_info(home, &info)?;
    Ok(info)
}
