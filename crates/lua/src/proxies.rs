//! The classes `Proxy`, `Server`, `Listener` and `StickTable`: the part of the process that a script sees and changes.
//!
//! Objects are Lua's own (`prelude/proxies.lua`) and hold names alone; functions here look things up in the plan when they
//! are called. Each change is a command of the stats socket, so that a script can do as much as an operator can, and no
//! more.

use crate::events;
use crate::home::Home;
use crate::lent;
use mlua::{Lua, Table, Value, Variadic};
use std::sync::Arc;
use std::time::Instant;
use terse_admin::Link;
use terse_admin::inside::{Of, Shown};
use terse_balance::table::{KeyKind, Shape};
use terse_balance::{Address, Server};
use terse_proxy::plan::{Backend, Frontend, Plan};
use terse_proxy::settings::Mode;
use terse_proxy::worker::Worker;

/// Puts the classes into a state, after `core`.
pub(crate) fn install(lua: &Lua, home: &Home, thread: usize) -> mlua::Result<()> {
    let here = home.clone();
    let ask = lua.create_function(move |lua, words: Variadic<mlua::String>| {
        let words: Vec<_> = words.iter().map(mlua::String::as_bytes).collect();
        let words: Vec<&[u8]> = words.iter().map(|word| &**word).collect();
        match link(&here)?.ask(&words) {
            Ok(answer) => Ok((Some(lua.create_string(answer)?), None)),
            Err(reason) => Ok((None, Some(reason))),
        }
    })?;
    let here = home.clone();
    let stats = lua.create_function(move |lua, (kind, proxy, name): (String, String, String)| {
        let worker = serving()?;
        let plan = &*worker.plan;
        let Some(thing) = Thing::find(plan, &kind, &proxy, &name) else { return Ok(Value::Nil) };
        let figures = link(&here)?.figures(plan, thing.of());
        let table = lua.create_table()?;
        // An address that is not counted on its own has none.
        for (name, figure) in figures.into_iter().flatten() {
            match figure {
                Shown::Number(number) => table.raw_set(name, number)?,
                Shown::Text(text) => table.raw_set(name, text)?,
            }
        }
        Ok(Value::Table(table))
    })?;
    let names = lua.create_function(|_, (kind, proxy): (String, Option<String>)| {
        Ok(names(&serving()?.plan, &kind, proxy.as_deref().unwrap_or_default()))
    })?;
    let fact = lua.create_function(|lua, (kind, proxy, name, what): (String, Value, Value, String)| {
        let worker = serving()?;
        // A value that is no text is no name.
        let (Value::String(proxy), Value::String(name)) = (proxy, name) else { return Ok(Value::Nil) };
        let (Ok(proxy), Ok(name)) = (proxy.to_str(), name.to_str()) else { return Ok(Value::Nil) };
        match Thing::find(&worker.plan, &kind, &proxy, &name) {
            Some(thing) => thing.fact(lua, &what),
            None => Ok(Value::Nil),
        }
    })?;
    let here = home.clone();
    let entries = lua.create_function(move |lua, (name, words): (mlua::String, Vec<mlua::String>)| {
        let words = [vec![lua.create_string("show")?, lua.create_string("table")?, name], words].concat();
        let words: Vec<_> = words.iter().map(mlua::String::as_bytes).collect();
        match link(&here)?.ask(&words.iter().map(|word| &**word).collect::<Vec<_>>()) {
            Ok(answer) => entries(lua, &answer).map(|entries| (Some(entries), None)),
            Err(reason) => Ok((None, Some(reason))),
        }
    })?;
    let info = lua.create_function(|lua, name: String| table_info(lua, &serving()?.plan, &name))?;
    // The function that subscribes to a server's events comes in its place once the classes are there.
    let subscribe = lua.create_table()?;
    let given = (ask, names, fact, stats, info, entries, subscribe.clone());
    lua.load(include_str!("prelude/proxies.lua")).set_name("=[core]").call::<()>(given)?;
    subscribe.raw_set(1, events::install(lua, home, thread)?)
}

/// All figures of `show info` that are not there yet.
pub(crate) fn add_info(home: &Home, info: &Table) -> mlua::Result<()> {
    let Ok(answer) = link(home)?.ask(&[b"show", b"info"]) else { return Ok(()) };
    for line in String::from_utf8_lossy(&answer).lines() {
        if let Some((name, value)) = line.split_once(": ")
            && !info.contains_key(name)?
        {
            match value.parse::<i64>() {
                Ok(number) => info.set(name, number)?,
                Err(_) => info.set(name, value)?,
            }
        }
    }
    Ok(())
}

/// The entries that 'show table' shows, by their keys.
fn entries(lua: &Lua, answer: &[u8]) -> mlua::Result<Table> {
    let all = lua.create_table()?;
    for line in answer.split(|byte| *byte == b'\n') {
        let Some(at) = line.windows(5).position(|part| part == b" key=") else { continue };
        let (key, rest) = unescaped(&line[at + 5..]);
        let data = lua.create_table()?;
        for word in String::from_utf8_lossy(rest).split_ascii_whitespace() {
            let Some((name, value)) = word.split_once('=') else { continue };
            let name = match name.split('(').next().unwrap_or_default() {
                // It is no fact of the entry.
                "shard" => continue,
                "exp" => "expire",
                name => name,
            };
            match value.parse::<i64>() {
                Ok(number) => data.set(name, number)?,
                Err(_) => data.set(name, value)?,
            }
        }
        all.set(lua.create_string(key)?, data)?;
    }
    Ok(all)
}

/// A key without the escapes that 'show table' puts before bytes that would end a word, and the text after it.
fn unescaped(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut key, mut rest) = (Vec::new(), text);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b' ' => break,
            b'\\' => {
                let Some((&escaped, after)) = rest.split_first() else { break };
                rest = after;
                let byte = match escaped {
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b'e' => 0x1b,
                    b'x' => {
                        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else { break };
                        rest = &rest[2..];
                        byte
                    }
                    other => other,
                };
                key.push(byte);
            }
            byte => key.push(byte),
        }
    }
    (key, rest)
}

/// The way to the process's commands and figures.
fn link(home: &Home) -> mlua::Result<Link> {
    let library = home.house.upgrade().ok_or_else(|| mlua::Error::runtime("the process ends"))?;
    Ok(library.link())
}

/// The worker that serves; while a script is loaded there is none, and the configuration is not complete.
fn serving() -> mlua::Result<std::rc::Rc<Worker>> {
    let reason = "the configuration is still being read: proxies can be used once the process serves, as in core.register_init";
    lent::worker_here().ok_or_else(|| mlua::Error::runtime(reason))
}

/// Object that a name stands for.
enum Thing<'p> {
    Frontend(usize, &'p Frontend),
    Backend(Arc<Backend>),
    /// The halves of a `listen`.
    Both(Arc<Backend>),
    Server(Arc<Backend>, Arc<Server>),
    Listener(&'p Frontend, &'p terse_proxy::plan::Bind),
}

impl<'p> Thing<'p> {
    /// Finds an object. Of a proxy the name selects a half: `backend`, `frontend` or `any`.
    fn find(plan: &'p Plan, kind: &str, proxy: &str, name: &str) -> Option<Thing<'p>> {
        let front = || plan.frontends.iter().enumerate().find(|(_, front)| *front.name == *proxy);
        let back = || plan.backends.now().iter().find(|back| *back.name == *proxy).cloned();
        match (kind, name) {
            ("server", name) => {
                let back = back()?;
                let server = Arc::clone(&*back.farm.find_server(name)?);
                Some(Thing::Server(back, server))
            }
            ("listener", name) => {
                let (at, front) = front()?;
                let bind = plan.binds.iter().find(|bind| bind.frontend == at && bind.label() == name)?;
                Some(Thing::Listener(front, bind))
            }
            (_, half) => {
                let front = front();
                match back() {
                    Some(back) if front.is_some_and(|(_, front)| front.own_backend.is_some()) => Some(Thing::Both(back)),
                    Some(back) if half != "frontend" => Some(Thing::Backend(back)),
                    _ if half == "backend" => None,
                    _ => front.map(|(at, front)| Thing::Frontend(at, front)),
                }
            }
        }
    }

    fn of(&self) -> Of<'_> {
        match self {
            Thing::Frontend(at, front) => Of::Frontend(*at, front),
            Thing::Backend(back) | Thing::Both(back) => Of::Backend(back),
            Thing::Server(back, server) => Of::Server(back, server),
            Thing::Listener(front, bind) => Of::Address(front, bind),
        }
    }

    fn fact(&self, lua: &Lua, what: &str) -> mlua::Result<Value> {
        match self {
            Thing::Server(_, server) => of_server(lua, server, what),
            Thing::Frontend(_, front) => of_proxy(lua, "frontend", front.id, front.mode, (0, 0), what),
            Thing::Backend(back) => of_proxy(lua, "backend", back.id, back.mode, back.farm.up(), what),
            Thing::Both(back) => of_proxy(lua, "proxy", back.id, back.mode, back.farm.up(), what),
            Thing::Listener(..) => Ok(Value::Nil),
        }
    }
}

fn of_proxy(lua: &Lua, cap: &str, id: u32, mode: Mode, (active, backup): (u32, u32), what: &str) -> mlua::Result<Value> {
    let text = |text: &str| lua.create_string(text).map(Value::String);
    match what {
        "uuid" => text(&id.to_string()),
        "cap" => text(cap),
        "mode" => text(match mode {
            Mode::Tcp => "tcp",
            Mode::Http => "http",
            Mode::Log => "syslog",
        }),
        "active" => Ok(Value::Integer(active.into())),
        "backup" => Ok(Value::Integer(backup.into())),
        _ => Ok(Value::Nil),
    }
}

fn of_server(lua: &Lua, server: &Server, what: &str) -> mlua::Result<Value> {
    let text = |text: &str| lua.create_string(text).map(Value::String);
    let number = |number: u32| Ok(Value::Integer(number.into()));
    match what {
        "name" => text(server.name()),
        "puid" => text(&server.id().to_string()),
        // No two servers of a backend have the same.
        "rid" => Ok(Value::Integer(i64::try_from(server.index()).unwrap_or(i64::MAX))),
        "is_draining" => Ok(Value::Boolean(server.admin().is_drain() || server.weight() == 0)),
        "is_backup" => Ok(Value::Boolean(server.settings().backup)),
        "is_dynamic" => Ok(Value::Boolean(server.is_added())),
        "sessions" => number(server.served()),
        "pending" => number(server.queued()),
        "maxconn" => number(server.maxconn()),
        "weight" => number(server.weight()),
        // HAProxy shows the path of a unix socket alone. IPv6 stands in brackets, as in an URL (RFC 3986 section 3.2.2).
        "address" => match &*server.address() {
            Address::Unix(path) => lua.create_string(path.as_os_str().as_encoded_bytes()).map(Value::String),
            other => text(&other.to_string()),
        },
        "tracked_backend" | "tracked_server" => match server.leader_name().as_deref().and_then(|name| name.split_once('/')) {
            Some((backend, name)) => text(if what == "tracked_backend" { backend } else { name }),
            None => Ok(Value::Nil),
        },
        _ => Ok(Value::Nil),
    }
}

/// The names of a kind, in the order of the configuration.
fn names(plan: &Plan, kind: &str, proxy: &str) -> Vec<String> {
    let frontends = || plan.frontends.iter().map(|front| (front.order, front.name.to_string()));
    let backends = plan.backends.now();
    let backends = || backends.iter().map(|back| (back.order, back.name.to_string()));
    let mut named: Vec<(usize, String)> = match kind {
        "frontend" => frontends().collect(),
        "backend" => backends().collect(),
        "server" => {
            let back = plan.backends.now().iter().find(|back| *back.name == *proxy).cloned();
            return back.map_or_else(Vec::new, |back| back.farm.servers().iter().map(|server| server.name().to_string()).collect());
        }
        "listener" => {
            let front = plan.frontends.iter().position(|front| *front.name == *proxy);
            let binds = plan.binds.iter().filter(|bind| Some(bind.frontend) == front);
            return binds.map(|bind| bind.label().into_owned()).collect();
        }
        _ => frontends().chain(backends()).collect(),
    };
    named.sort();
    // The halves of a `listen` have one name.
    let mut known = std::collections::HashSet::new();
    named.into_iter().map(|(_, name)| name).filter(|name| known.insert(name.clone())).collect()
}

/// Facts of a stick table, as HAProxy's scripts know it.
fn table_info(lua: &Lua, plan: &Plan, name: &str) -> mlua::Result<Option<Table>> {
    let Some(table) = plan.tables.iter().find(|table| **table.name() == *name) else { return Ok(None) };
    let settings = table.settings();
    let info = lua.create_table()?;
    info.set("type", settings.key.name())?;
    info.set(
        "length",
        match settings.key {
            KeyKind::Ip | KeyKind::Integer => 4,
            KeyKind::Ipv6 => 16,
            KeyKind::Text(length) | KeyKind::Binary(length) => length,
        },
    )?;
    info.set("size", table.size())?;
    info.set("used", table.used(plan.table_ms(Instant::now())))?;
    info.set("nopurge", settings.no_purge)?;
    info.set("expire", settings.expire_ms.unwrap_or(0))?;
    let data = lua.create_table()?;
    for stored in table.layout().stored() {
        let period = if stored.data.shape() == Shape::Rate { i64::from(stored.period_ms) } else { -1 };
        data.set(stored.data.name(), period)?;
    }
    info.set("data", data)?;
    Ok(Some(info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_they_were() {
        assert_eq!(unescaped(b"a\\ b\\=\\\\c use=0 exp=1"), (b"a b=\\c".to_vec(), &b"use=0 exp=1"[..]));
        assert_eq!(unescaped(b"\\t\\n\\x80f"), (b"\t\n\x80f".to_vec(), &b""[..]));
        assert_eq!(unescaped(b"\\x8"), (Vec::new(), &b"8"[..]));
        assert_eq!(unescaped(b"\\"), (Vec::new(), &b""[..]));
        let lua = Lua::new();
        let text = b"# table: t, type: string, size:10, used:1\n0x1: key=k use=0 exp=9 shard=0 gpc0=3 http_req_rate(1000)=2\n";
        let data: Table = entries(&lua, text).unwrap().get("k").unwrap();
        let numbers = ["use", "expire", "gpc0", "http_req_rate"].map(|name| data.get::<i64>(name).unwrap());
        assert_eq!((numbers, data.contains_key("shard").unwrap()), ([0, 9, 3, 2], false));
    }
}
