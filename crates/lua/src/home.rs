//! What functions of a state know of it and of the scripts of the configuration, and what they register.

use crate::hub::{Hub, Subscription};
use crate::lent;
use crate::names::Names;
use crate::run::Callable;
use crate::speak::say;
use crate::task::Task;
use crate::tuning::Tuning;
use mlua::{Function, Lua, MultiValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use terse_admin::{Guest, Link};
use terse_proxy::log::Level;
use terse_sample::Language;

/// The scripts of a configuration, as their states see them.
pub(crate) trait House: Send + Sync {
    /// The settings now.
    fn tuning(&self) -> Tuning;

    /// The way to the process's commands and figures.
    fn link(&self) -> Link;

    /// The subscriptions of its scripts.
    fn hub(&self) -> &Hub;

    /// The command of the stats socket that the function of that name answers.
    fn command(self: Arc<Self>, name: &str) -> Arc<dyn Guest>;
}

/// Facts that functions of a state know of it.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) house: Weak<dyn House>,
    pub(crate) registry: Arc<Mutex<Registry>>,
    pub(crate) names: Arc<Names>,
    /// The language of the configuration while a script is loaded with it.
    pub(crate) reading: Arc<Mutex<Option<Language>>>,
    /// A number that no other state has.
    pub(crate) id: usize,
    pub(crate) booleans: bool,
}

/// Kind of a registered function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// `core.register_action`, for a set of rules, as scripts write it.
    Action(&'static str),
    /// `core.register_service`
    Service,
    /// `core.register_fetches`
    Fetch,
    /// `core.register_converters`
    Converter,
    /// `core.register_cli`
    Cli,
}

/// Functions that a state's scripts have registered.
#[derive(Default)]
pub(crate) struct Registry {
    functions: HashMap<(Kind, String), Registered>,
    /// Functions that are called when the process begins to serve.
    pub(crate) inits: Vec<Function>,
    /// Tasks that run from then on.
    pub(crate) tasks: Vec<(Function, MultiValue)>,
    /// Subscriptions whose functions are called from then on.
    pub(crate) subscriptions: Vec<(Arc<Subscription>, Function)>,
    /// Whether the process serves.
    pub(crate) serving: bool,
}

/// A function that a script has given a name.
#[derive(Clone)]
pub(crate) struct Registered {
    /// The function.
    pub(crate) function: Function,
    /// Whether a service is of mode http.
    pub(crate) is_http: bool,
    /// Number of words that an action takes.
    pub(crate) arguments: usize,
}

impl Registry {
    /// The function that is registered by that name.
    pub(crate) fn get(&self, kind: Kind, name: &str) -> Option<&Registered> {
        self.functions.get(&(kind, name.to_owned()))
    }
}

impl Home {
    /// Whether the process serves: what is for the start comes too late.
    pub(crate) fn is_serving(&self) -> bool {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).serving
    }

    /// Gives a function its name.
    pub(crate) fn register(&self, kind: Kind, name: String, registered: Registered) {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).functions.insert((kind, name), registered);
    }

    /// Adds a task, which starts when the process begins to serve, or at once when it does.
    pub(crate) fn task(&self, lua: &Lua, function: Function, args: MultiValue) {
        let worker = lent::worker_here();
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        match (worker, self.house.upgrade()) {
            (Some(worker), Some(house)) if registry.serving => {
                drop(registry);
                let tuning = house.tuning();
                Task { callable: Callable { lua: lua.clone(), function }, args, house }.spawn(&worker, tuning);
            }
            _ => registry.tasks.push((function, args)),
        }
    }

    /// Writes a line in the script's name.
    pub(crate) fn say(&self, level: Level, line: &mlua::String) {
        let tuning = self.house.upgrade().map(|house| house.tuning()).unwrap_or_default();
        let line = line.as_bytes().to_vec();
        say(&tuning, level, &line);
    }
}

/// Reports a fault.
pub(crate) fn complain(house: &dyn House, line: &str) {
    say(&house.tuning(), Level::Alert, line.as_bytes());
}
