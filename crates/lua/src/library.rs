//! Functions that the scripts of a configuration have registered, and the states that they live in.
//!
//! ```text
//!  lua-load FILE             -> one state for all workers, which take turns in it (mlua's lock)
//!  lua-load-per-thread FILE  -> a state for each worker; the first is made while the configuration is read, and has the names;
//!                               the others are made when their workers begin
//! ```

use crate::action::{self, ScriptAction};
use crate::core::SETS;
use crate::desk::{self, Desk};
use crate::home::{House, Kind, Registered, complain};
use crate::hub::Hub;
use crate::lent;
use crate::names::Names;
use crate::run::{Callable, Failure, Limits, Run};
use crate::service::Service;
use crate::socket;
use crate::state::{PathKind, Place, State};
use crate::tuning::Tuning;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use terse_admin::{Guest, Link};
use terse_balance::Wardens;
use terse_config::{Args, Fault};
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

    /// The way of commands of the stats socket to their functions.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
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
        let house: Arc<dyn House> = self.clone();
        let state = State::new(&Arc::downgrade(&house), place, &tuning, &names)?;
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

    fn limits(&self, tuning: &Tuning) -> Limits {
        Limits { total: tuning.session, burst: tuning.burst }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl House for Library {
    fn tuning(&self) -> Tuning {
        Library::tuning(self)
    }

    fn link(&self) -> Link {
        self.lock().link.clone()
    }

    fn hub(&self) -> &Hub {
        &self.hub
    }

    fn command(self: Arc<Self>, name: &str) -> Arc<dyn Guest> {
        desk::command(&self, name)
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
        complain(&*self.library, &format!("Lua {what} '{}': runtime error: {reason}", self.name));
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
        wardens.tell_news(Arc::new(move |subject, news| {
            if let Some(library) = library.upgrade() {
                library.hub.hear(subject, news);
            }
        }));
    }

    fn begin(self: Arc<Self>, worker: &Rc<Worker>) {
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
    fn another(self: &Arc<Library>, worker: &Rc<Worker>, at: usize, workers: usize) -> Option<Arc<State>> {
        let files = self.lock().files.clone();
        if files.is_empty() {
            return None;
        }
        let state = self.state(Place::Worker(worker.index)).and_then(|state| {
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
                lent::worker(worker, || complain(&**self, &format!("Lua of worker {}: {reason}", worker.index + 1)));
                None
            }
        }
    }

    /// Runs the functions that were registered for the start, and starts the tasks.
    fn start(self: &Arc<Library>, worker: &Rc<Worker>, state: &Arc<State>, instructions: u32) {
        let tuning = self.tuning();
        state.watch(instructions);
        let (inits, tasks, subscriptions) = state.begin();
        for function in inits {
            let run = Run::start(&state.callable(function), (), self.limits(&tuning));
            let result = lent::worker(worker, || run.and_then(Run::at_once));
            if let Err(Failure::Wrong(reason)) = result {
                lent::worker(worker, || complain(&**self, &format!("Lua init: runtime error: {reason}")));
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
