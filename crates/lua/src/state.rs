//! A state of Lua: its libraries, its limits, HAProxy's interface, and the functions that its scripts have registered.

use crate::absent;
use crate::burst;
use crate::core;
use crate::events::Listening;
use crate::guard;
use crate::home::{Home, House, Kind, Registered, Registry};
use crate::names::Names;
use crate::run::{Callable, told, told_whole};
use crate::task::Task;
use crate::tuning::Tuning;
use crate::{applet, certificates, client, http, patterns, proxies, queue, regex, samples, socket, stream, texts, txn};
use mlua::{ChunkMode, Function, Lua, LuaOptions, StdLib, Table, Variadic};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use terse_sample::Language;

/// List of paths of Lua's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathKind {
    /// `package.path`
    Path,
    /// `package.cpath`
    CPath,
}

/// A function to be called at the start.
pub(crate) type Init = Function;

/// Owner of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// All workers.
    Shared,
    /// A single worker.
    Worker(usize),
}

/// A state.
pub(crate) struct State {
    lua: Lua,
    registry: Arc<Mutex<Registry>>,
    reading: Arc<Mutex<Option<Language>>>,
    house: Weak<dyn House>,
}

/// Time limit of a script while it is loaded.
const LOADING: Duration = Duration::from_secs(60);

static STATES: AtomicUsize = AtomicUsize::new(0);

impl State {
    /// A new state, with nothing loaded.
    pub(crate) fn new(house: &Weak<dyn House>, place: Place, tuning: &Tuning, names: &Arc<Names>) -> Result<State, String> {
        let registry = Arc::<Mutex<Registry>>::default();
        let reading = Arc::<Mutex<Option<Language>>>::default();
        let make = || -> mlua::Result<Lua> {
            let lua = Lua::new_with(tuning.libraries | StdLib::COROUTINE, LuaOptions::default())?;
            if tuning.memory_bytes > 0 {
                lua.set_memory_limit(tuning.memory_bytes)?;
            }
            burst::watch(&lua, tuning.instructions(1))?;
            let home = Home {
                house: house.clone(),
                registry: registry.clone(),
                names: names.clone(),
                reading: reading.clone(),
                id: STATES.fetch_add(1, Relaxed),
                booleans: tuning.booleans,
            };
            let thread = match place {
                Place::Shared => 0,
                Place::Worker(index) => index + 1,
            };
            burst::install(&lua)?;
            guard::install(&lua)?;
            traces(&lua)?;
            core::install(&lua, &home, thread)?;
            samples::install(&lua, &home)?;
            http::install(&lua)?;
            txn::install(&lua, &home)?;
            applet::install(&lua, &home)?;
            stream::install(&lua, &home)?;
            socket::install(&lua, &home)?;
            client::install(&lua, &home)?;
            texts::install(&lua)?;
            regex::install(&lua)?;
            queue::install(&lua)?;
            certificates::install(&lua, &home)?;
            patterns::install(&lua, &home)?;
            proxies::install(&lua, &home, thread)?;
            Ok(lua)
        };
        let lua = make().map_err(|error| format!("no Lua state can be made: {}", told(&error)))?;
        Ok(State { lua, registry, reading, house: house.clone() })
    }

    /// Reads and runs a file.
    pub(crate) fn load(&self, file: &Path, args: &[String], reading: Option<Language>) -> Result<(), String> {
        let shown = file.display();
        let text = std::fs::read(file).map_err(|error| format!("cannot read '{shown}': {error}"))?;
        let missing = absent::find(&text);
        let chunk = self.lua.load(text).set_name(format!("@{shown}")).set_mode(ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| syntax(&error))?;
        if let Some((line, reason)) = missing {
            return Err(format!("{shown}:{line}: {reason}"));
        }
        let args: Variadic<String> = args.iter().cloned().collect();
        // Not in a coroutine: while a file is loaded no function can wait.
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = reading;
        let (result, _) = burst::run(Some(LOADING), || function.call::<()>(args));
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result.map_err(|error| told_whole(&error))
    }

    /// Puts a folder before those in which modules are looked for.
    pub(crate) fn prepend(&self, kind: PathKind, path: &str) -> Result<(), String> {
        let name = if kind == PathKind::Path { "path" } else { "cpath" };
        let put = || -> mlua::Result<()> {
            let Some(package) = self.lua.globals().get::<Option<Table>>("package")? else { return Ok(()) };
            let before: String = package.get(name)?;
            package.set(name, format!("{path};{before}"))
        };
        put().map_err(|error| told(&error))
    }

    /// The function that is registered by that name.
    pub(crate) fn registered(&self, kind: Kind, name: &str) -> Option<Registered> {
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.get(kind, name).cloned()
    }

    /// A function of this state.
    pub(crate) fn callable(&self, function: Function) -> Callable {
        Callable { lua: self.lua.clone(), function }
    }

    /// Sets the number of instructions after which the clock is read.
    pub(crate) fn watch(&self, instructions: u32) {
        // A state that cannot be watched anew is watched as before.
        let _ = burst::watch(&self.lua, instructions);
    }

    /// Notes that the process serves; returns the functions that wait for that. From here on tasks start when they are
    /// registered.
    pub(crate) fn begin(&self) -> (Vec<Init>, Vec<Task>, Vec<Listening>) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.serving = true;
        let inits = std::mem::take(&mut registry.inits);
        let tasks = std::mem::take(&mut registry.tasks);
        let subscriptions = std::mem::take(&mut registry.subscriptions);
        let Some(house) = self.house.upgrade() else { return (inits, Vec::new(), Vec::new()) };
        let task = |(function, args)| Task { callable: self.callable(function), args, house: house.clone() };
        let listening = |(subscription, function)| {
            let callable = self.callable(function);
            Listening { subscription, callable, house: house.clone() }
        };
        (inits, tasks.into_iter().map(task).collect(), subscriptions.into_iter().map(listening).collect())
    }
}

/// Fault of a file that is no program: its file and line, and the reason.
fn syntax(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.lines().next().unwrap_or_default().to_owned(),
        other => told_whole(other),
    }
}

/// Keeps the function of the library 'debug' that programs use to print a traceback. The others reach into the guards that
/// keep Lua safe.
fn traces(lua: &Lua) -> mlua::Result<()> {
    let debug = lua.create_table()?;
    let trace =
        |lua: &Lua, (message, level): (Option<String>, Option<usize>)| lua.traceback(message.as_deref(), level.unwrap_or(1));
    debug.set("traceback", lua.create_function(trace)?)?;
    lua.globals().set("debug", debug)
}
