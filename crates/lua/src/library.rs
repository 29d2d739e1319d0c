//! Functions that the scripts of a configuration have registered, and the states that they live in.
//!
//! ```text
//!  lua-load FILE             -> one state for all workers, which take turns in it (mlua's lock)
//!  lua-load-per-thread FILE  -> a state for each worker; the first is made while the configuration is read, and has the names;
//!                               the others are made when their workers begin
//! ```

use crate::action::{self, ScriptAction};
use crate::cli::Desk;
use crate::core::{Registered, SETS};
use crate::events::Hub;
use crate::lent;
use crate::run::{Callable, Limits, Run};
use crate::samples::Names;
use crate::service::Service;
use crate::socket;
use crate::speak::say;
use crate::state::{Place, State};
use crate::tuning::Tuning;
use mlua::Function;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use terse_admin::Link;
use terse_balance::Wardens;
use terse_config::{Args, Fault};
use terse_proxy::log::Level;
use terse_proxy::rules::{Action, RuleSet};
use terse_proxy::script::{self, Applet};
use terse_proxy::worker::Worker;
use terse_sample::scripted::{Function as Scripted, Functions};
use terse_sample::{Language, Registry};

/// The scripts of a configuration. Expressions and rules hold it.
#[derive(Default)]
pub(crate) struct Library {
    inner: Mutex<Inner>,
    /// The states of workers other than the first, for scripts of their own; made when they begin.
    others: OnceLock<Box<[OnceLock<Arc<State>>]>>,
    desk: Desk,
    hub: Hub,
}

#[derive(Default)]
struct Inner {
    tuning: Tuning,
    names: Option<Arc<Names>>,
    link: Link,
    paths: Vec<(PathKind, String)>,
    shared: Option<Arc<State>>,
    /// The first worker's state.
    own: Option<Arc<State>>,
    /// Files that the other workers load.
    files: Vec<(PathBuf, Vec<String>)>,
}

/// List of paths of Lua's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathKind {
    /// `package.path`
    Path,
    /// `package.cpath`
    CPath,
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

/// A function of that name, in whichever state.
#[derive(Clone)]
pub(crate) struct Named {
    library: Arc<Library>,
    pub(crate) name: Arc<str>,
    kind: Kind,
    /// The function in the shared state; otherwise each worker has its own.
    shared: Option<Callable>,
}

impl Library {
    /// The settings now.
    pub(crate) fn tuning(&self) -> Tuning {
        self.lock().tuning
    }

    /// Changes settings.
    pub(crate) fn tune(&self, change: impl FnOnce(&mut Tuning)) {
        change(&mut self.lock().tuning);
    }

    /// The way to the process's commands and figures.
    pub(crate) fn link(&self) -> Link {
        self.lock().link.clone()
    }

    /// The way of commands of the stats socket to their functions.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// The subscriptions of its scripts.
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Sets the way to the process's commands and figures.
    pub(crate) fn lead(&self, link: Link) {
        self.lock().link = link;
    }

    /// Whether a script is loaded: settings that come later are too late for some of their effects.
    pub(crate) fn is_loaded(&self) -> bool {
        let inner = self.lock();
        inner.shared.is_some() || inner.own.is_some()
    }

    /// `lua-prepend-path`, for the states that exist and those that are made later.
    pub(crate) fn prepend(&self, kind: PathKind, path: String) -> Result<(), String> {
        let states = {
            let mut inner = self.lock();
            inner.paths.push((kind, path.clone()));
            [inner.shared.clone(), inner.own.clone()]
        };
        states.into_iter().flatten().try_for_each(|state| state.prepend(kind, &path))
    }

    /// Loads a file: into the state of all workers, or of the first worker's own.
    pub(crate) fn load(
        self: &Arc<Library>,
        registry: &Registry,
        file: PathBuf,
        args: Vec<String>,
        per_thread: bool,
    ) -> Result<(), String> {
        self.lock().names.get_or_insert_with(|| Arc::new(Names::of(registry)));
        let place = if per_thread { Place::Worker(0) } else { Place::Shared };
        let there = |inner: &Inner| if per_thread { inner.own.clone() } else { inner.shared.clone() };
        let known = there(&self.lock());
        let state = match known {
            Some(state) => state,
            None => {
                let state = self.state(place)?;
                let mut inner = self.lock();
                *(if per_thread { &mut inner.own } else { &mut inner.shared }) = Some(state.clone());
                state
            }
        };
        state.load(&file, &args, Some(Language::while_reading(registry)))?;
        if per_thread {
            self.lock().files.push((file, args));
        }
        Ok(())
    }

    /// A new state, with nothing loaded.
    fn state(self: &Arc<Library>, place: Place) -> Result<Arc<State>, String> {
        let (tuning, names, paths) = {
            let inner = self.lock();
            (inner.tuning, inner.names.clone().unwrap_or_default(), inner.paths.clone())
        };
        let state = State::new(self, place, &tuning, &names)?;
        paths.iter().try_for_each(|(kind, path)| state.prepend(*kind, path))?;
        Ok(Arc::new(state))
    }

    /// The function of that name, and the details of its registration.
    pub(crate) fn find(self: &Arc<Library>, kind: Kind, name: &str) -> Option<(Named, Registered)> {
        let (shared, own) = {
            let inner = self.lock();
            (inner.shared.clone(), inner.own.clone())
        };
        let found = |state: Option<Arc<State>>| {
            let state = state?;
            Some((state.registered(kind, name)?, state))
        };
        let named = |shared| Named { library: self.clone(), name: name.into(), kind, shared };
        if let Some((registered, state)) = found(shared) {
            return Some((named(Some(state.callable(registered.function.clone()))), registered));
        }
        found(own).map(|(registered, _)| (named(None), registered))
    }

    /// The state of a worker's own scripts.
    fn own_state(&self, worker: usize) -> Option<Arc<State>> {
        match worker.checked_sub(1) {
            None => self.lock().own.clone(),
            Some(at) => self.others.get()?.get(at)?.get().cloned(),
        }
    }

    /// Reports a fault.
    pub(crate) fn complain(&self, line: &str) {
        say(&self.tuning(), Level::Alert, line.as_bytes());
    }

    fn limits(&self, tuning: &Tuning) -> Limits {
        Limits { total: tuning.session, burst: tuning.burst }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Named {
    /// The function on this worker; `None` where the worker's own scripts have not registered it.
    pub(crate) fn callable(&self, worker: usize) -> Option<Callable> {
        if let Some(shared) = &self.shared {
            return Some(shared.clone());
        }
        let state = self.library.own_state(worker)?;
        let registered = state.registered(self.kind, &self.name)?;
        Some(state.callable(registered.function))
    }

    /// The library, for settings and complaints.
    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Reports an error.
    pub(crate) fn wrong(&self, reason: &str) {
        let what = match self.kind {
            Kind::Action(_) => "function",
            Kind::Service => "applet",
            Kind::Fetch => "sample-fetch",
            Kind::Converter => "converter",
            Kind::Cli => "command",
        };
        self.library.complain(&format!("Lua {what} '{}': runtime error: {reason}", self.name));
    }
}

impl script::Library for Library {
    fn action(self: Arc<Self>, name: &str, args: &mut Args<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
        let Some((named, registered)) = self.find(Kind::Action(action::word(set)), name) else {
            let others: Vec<&str> = SETS.into_iter().filter(|set| self.find(Kind::Action(set), name).is_some()).collect();
            if others.is_empty() {
                return Err(unknown(args, "action", name));
            }
            let reason = format!("action 'lua.{name}' is not registered for '{}'", set.name());
            return Err(args.fault(reason).hint(format!("it is registered for {}", others.join(", "))));
        };
        ScriptAction::read(named, registered.arguments, args, set)
    }

    fn service(self: Arc<Self>, name: &str, args: &mut Args<'_>, set: RuleSet) -> Result<Arc<dyn Applet>, Fault> {
        let (named, registered) = self.find(Kind::Service, name).ok_or_else(|| unknown(args, "service", name))?;
        let is_http = registered.is_http;
        if is_http != set.is_http() {
            let (mode, set) = (if is_http { "http" } else { "tcp" }, set.name());
            return Err(args.fault(format!("service 'lua.{name}' is of mode {mode}: '{set}' cannot use it")));
        }
        Ok(Arc::new(Service::new(named, is_http)))
    }

    fn hear(self: Arc<Self>, wardens: &Wardens) {
        let library = Arc::downgrade(&self);
        wardens.tell_news(Arc::new(move |farm, server, news| {
            if let Some(library) = library.upgrade() {
                library.hub.hear(farm, server, news);
            }
        }));
    }

    fn begin(&self, worker: &Rc<Worker>) {
        let sharing = worker.plan.process.workers;
        socket::prepare(&worker.plan);
        let tuning = self.tuning();
        let state = match worker.index.checked_sub(1) {
            None => {
                let (shared, own) = {
                    let inner = self.lock();
                    (inner.shared.clone(), inner.own.clone())
                };
                self.desk.open(worker);
                if let Some(state) = shared {
                    self.start(worker, &state, tuning.instructions(sharing));
                }
                own
            }
            Some(at) => self.another(worker, at, sharing),
        };
        if let Some(state) = state {
            self.start(worker, &state, tuning.instructions(1));
        }
    }
}

impl Library {
    /// The state of a worker that is not the first.
    fn another(&self, worker: &Rc<Worker>, at: usize, workers: usize) -> Option<Arc<State>> {
        let files = self.lock().files.clone();
        if files.is_empty() {
            return None;
        }
        let library = self.lock().own.as_ref().and_then(|state| state.library())?;
        let state = library.state(Place::Worker(worker.index)).and_then(|state| {
            lent::worker(worker, || files.iter().try_for_each(|(file, args)| state.load(file, args, None)))?;
            Ok(state)
        });
        match state {
            Ok(state) => {
                let others = self.others.get_or_init(|| (1..workers.max(1)).map(|_| OnceLock::new()).collect());
                others.get(at)?.get_or_init(|| state.clone());
                Some(state)
            }
            Err(reason) => {
                lent::worker(worker, || self.complain(&format!("Lua of worker {}: {reason}", worker.index + 1)));
                None
            }
        }
    }

    /// Runs the functions that were registered for the start, and starts the tasks.
    fn start(&self, worker: &Rc<Worker>, state: &Arc<State>, instructions: u32) {
        let tuning = self.tuning();
        state.watch(instructions);
        let (inits, tasks, subscriptions) = state.begin();
        for function in inits {
            let run = Run::start(&state.callable(function), (), self.limits(&tuning));
            let result = lent::worker(worker, || run.and_then(Run::at_once));
            if let Err(crate::run::Failure::Wrong(reason)) = result {
                lent::worker(worker, || self.complain(&format!("Lua init: runtime error: {reason}")));
            }
        }
        subscriptions.into_iter().for_each(|listening| listening.spawn(worker, tuning));
        tasks.into_iter().for_each(|task| task.spawn(worker, tuning));
    }
}

impl Functions for Library {
    fn fetch(self: Arc<Self>, name: &str) -> Option<Arc<dyn Scripted>> {
        let (named, _) = self.find(Kind::Fetch, name)?;
        Some(Arc::new(crate::functions::Fetch { named }))
    }

    fn converter(self: Arc<Self>, name: &str) -> Option<Arc<dyn Scripted>> {
        let (named, _) = self.find(Kind::Converter, name)?;
        Some(Arc::new(crate::functions::Converter { named }))
    }
}

fn unknown(args: &Args<'_>, what: &str, name: &str) -> Fault {
    args.fault(format!("unknown {what} 'lua.{name}'"))
        .hint(format!("no script that is loaded has registered it by 'core.register_{what}'"))
}

/// A function that runs independently of traffic.
pub(crate) struct Task {
    pub(crate) callable: Callable,
    pub(crate) args: mlua::MultiValue,
    pub(crate) library: Arc<Library>,
}

impl Task {
    /// Starts it on a worker.
    pub(crate) fn spawn(self, worker: &Rc<Worker>, tuning: Tuning) {
        let limits = Limits { total: tuning.task, burst: tuning.burst };
        let worker = worker.clone();
        tokio::task::spawn_local(async move {
            let mut run = match Run::start(&self.callable, self.args, limits) {
                Ok(run) => run,
                Err(_) => return,
            };
            let result = std::future::poll_fn(|cx| lent::worker(&worker, || run.poll(cx))).await;
            if let Err(crate::run::Failure::Wrong(reason)) = result {
                lent::worker(&worker, || self.library.complain(&format!("Lua task: runtime error: {reason}")));
            }
        });
    }
}

/// A function to be called at the start.
pub(crate) type Init = Function;
