//! Backends that come and go at run time.
//!
//! ```text
//! commands:  a change -> another list is stored (Backends) -> its number of version is
//! workers:   a look at the number -> as before: their own list (View)
//!                                 -> another:   the list is loaded, and the own one made to match it
//! streams:   a Held of their worker's list, from the choice of the backend to their end
//! ```
//!
//! Invariants:
//! * A backend's number is given once. A reference that is only a number (`use_backend` with a name, a session that prefers
//!   its last server, an expression) finds that backend or none.
//! * No list is edited: a change stores another list, and holds the lock of changes meanwhile.
//! * A stream holds its backend by its worker's own count, which no other thread touches. The last [`Held`] of a worker drops
//!   the count that all threads share; the last worker that does so frees the backend.
//! * A backend that was removed is in no list: no lookup finds it. A stream that had chosen it a moment before goes on with
//!   it, and finds no server.
//! * A request pays a single comparison for this, when its backend is chosen. A worker without requests looks once a second.

use super::Backend;
use arc_swap::ArcSwap;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The backends of a process.
pub struct Backends {
    now: ArcSwap<Roll>,
    version: AtomicU64,
    changes: Mutex<Given>,
    /// Number of the configuration's backends.
    configured: usize,
    /// Bytes that pipes have brought to sockets of backends that are there no more.
    pub spliced_out: AtomicU64,
}

/// Numbers that were given to backends so far, and are not given again.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Given {
    /// Count of the numbers.
    pub(super) numbers: usize,
    /// The last number in statistics that was given at run time; 0: none.
    pub(super) id: u32,
}

/// The backends at a moment, in the order of their numbers: backends and the back halves of `listen` sections as the configuration has
/// them, then those that were added.
pub struct Roll {
    all: Box<[Arc<Backend>]>,
    /// Their places in the order of their names.
    by_name: Box<[u32]>,
}

impl Deref for Roll {
    type Target = [Arc<Backend>];

    fn deref(&self) -> &[Arc<Backend>] {
        &self.all
    }
}

impl Roll {
    fn new(all: Box<[Arc<Backend>]>) -> Roll {
        let mut by_name: Box<[u32]> = (0..all.len() as u32).collect();
        by_name.sort_by_key(|place| all[*place as usize].name.as_bytes());
        Roll { all, by_name }
    }

    /// The backend of that name.
    pub fn named(&self, name: &[u8]) -> Option<&Arc<Backend>> {
        self.place_named(name).and_then(|place| self.all.get(place))
    }

    /// The backend of that number.
    pub fn of_number(&self, number: usize) -> Option<&Arc<Backend>> {
        self.place_of(number).and_then(|place| self.all.get(place))
    }

    fn place_of(&self, number: usize) -> Option<usize> {
        // Where no backend was removed, numbers are places.
        match self.all.get(number) {
            Some(backend) if backend.number == number => Some(number),
            _ => self.all.binary_search_by_key(&number, |backend| backend.number).ok(),
        }
    }

    fn place_named(&self, name: &[u8]) -> Option<usize> {
        let found = self.by_name.binary_search_by_key(&name, |place| self.all[*place as usize].name.as_bytes());
        found.ok().map(|at| self.by_name[at] as usize)
    }
}

impl Backends {
    /// The backends of a configuration, which have the numbers from 0 on.
    pub(super) fn new(all: Vec<Arc<Backend>>) -> Backends {
        Backends {
            version: AtomicU64::new(0),
            changes: Mutex::new(Given { numbers: all.len(), id: 0 }),
            configured: all.len(),
            now: ArcSwap::from_pointee(Roll::new(all.into())),
            spliced_out: AtomicU64::new(0),
        }
    }

    /// The backends that there are now.
    pub fn now(&self) -> Arc<Roll> {
        self.now.load_full()
    }

    /// Locks the list: no other change is made while this is held.
    pub(super) fn change(&self) -> Change<'_> {
        Change { given: self.changes.lock().unwrap_or_else(PoisonError::into_inner), backends: self }
    }

    fn store(&self, all: Box<[Arc<Backend>]>) {
        self.now.store(Arc::new(Roll::new(all)));
        self.version.fetch_add(1, Release);
    }
}

/// The right to change the list.
pub(super) struct Change<'a> {
    /// The numbers given so far: a new number is recorded here.
    pub(super) given: MutexGuard<'a, Given>,
    backends: &'a Backends,
}

impl Change<'_> {
    /// Number of backends now that were added at run time.
    pub(super) fn added(&self) -> usize {
        let now = self.backends.now.load();
        now.len() - now.partition_point(|backend| backend.number < self.backends.configured)
    }

    /// Adds a backend, whose number is the highest.
    pub(super) fn add(self, backend: Arc<Backend>) {
        let all = self.backends.now.load().iter().cloned().chain([backend]).collect();
        self.backends.store(all);
    }

    /// Takes a backend out.
    pub(super) fn remove(self, backend: &Arc<Backend>) {
        self.backends.spliced_out.fetch_add(backend.tally.totals().spliced_out, Relaxed);
        let all = self.backends.now.load().iter().filter(|other| !Arc::ptr_eq(other, backend)).cloned().collect();
        self.backends.store(all);
    }
}

/// A backend, held by a task of a worker.
#[derive(Clone)]
#[allow(clippy::redundant_allocation, reason = "the outer count is the worker's own, which no other thread touches")]
pub struct Held(Rc<Arc<Backend>>);

impl Held {
    /// A backend held outside a worker: by a check.
    pub(crate) fn alone(backend: Arc<Backend>) -> Held {
        Held(Rc::new(backend))
    }
}

impl Deref for Held {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        &self.0
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.name).finish()
    }
}

/// A worker's view of the backends.
pub struct View {
    version: Cell<u64>,
    seen: RefCell<Seen>,
}

struct Seen {
    roll: Arc<Roll>,
    /// The same, in the same places.
    held: Vec<Held>,
}

impl View {
    /// The view of a worker that begins.
    pub fn new(backends: &Backends) -> View {
        let version = backends.version.load(Acquire);
        let roll = backends.now();
        let held = roll.iter().cloned().map(Held::alone).collect();
        View { version: Cell::new(version), seen: RefCell::new(Seen { roll, held }) }
    }

    /// The backend of that number, as long as it is there.
    pub fn of_number(&self, backends: &Backends, number: usize) -> Option<Held> {
        self.refresh(backends);
        let Seen { roll, held } = &*self.seen.borrow();
        held.get(roll.place_of(number)?).cloned()
    }

    /// The backend of that name.
    pub fn named(&self, backends: &Backends, name: &[u8]) -> Option<Held> {
        self.refresh(backends);
        let Seen { roll, held } = &*self.seen.borrow();
        held.get(roll.place_named(name)?).cloned()
    }

    /// Drops removed backends and loads added ones.
    pub fn refresh(&self, backends: &Backends) {
        let version = backends.version.load(Acquire);
        if version != self.version.get() {
            self.version.set(version);
            self.renew(backends.now());
        }
    }

    /// Keeps the backends that are still there, so that a backend has a single count for all streams of the worker.
    #[cold]
    fn renew(&self, roll: Arc<Roll>) {
        let mut before = mem::take(&mut self.seen.borrow_mut().held).into_iter().peekable();
        let mut gone = Vec::new();
        let mut held = Vec::with_capacity(roll.len());
        for backend in roll.iter() {
            gone.extend(std::iter::from_fn(|| before.next_if(|held| held.number < backend.number)));
            held.push(before.next_if(|held| held.number == backend.number).unwrap_or_else(|| Held::alone(backend.clone())));
        }
        gone.extend(before);
        let old = mem::replace(&mut *self.seen.borrow_mut(), Seen { roll, held });
        // Whatever is freed is freed while nothing is borrowed.
        drop((gone, old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::build::Wanted;
    use crate::settings::Mode;
    use crate::trial::{Trial, front};
    use std::sync::atomic::Ordering::SeqCst;

    const MORE: &str = "backend a\nbackend b\nbackend c\n";

    fn remove(trial: &Trial, name: &str) {
        let plan = &trial.session.worker.plan;
        let backend = plan.backends.now().named(name.as_bytes()).unwrap().clone();
        backend.is_published.store(false, SeqCst);
        plan.remove_backend(&backend).unwrap();
    }

    #[test]
    fn who_remembers_a_number_finds_that_backend_or_none() {
        let trial = Trial::new(&(front("") + MORE));
        let worker = &trial.session.worker;
        let name = |number| worker.backend(number).map(|backend| backend.name.to_string());
        let number = |name: &str| worker.backend_named(name.as_bytes()).map(|backend| backend.number);
        assert_eq!((name(1), name(3), name(4)), (Some("a".into()), Some("c".into()), None));
        assert_eq!((number("a"), number("c"), number("")), (Some(1), Some(3), None));
        remove(&trial, "a");
        assert_eq!((name(0), name(1), name(2), name(3)), (Some("be".into()), None, Some("b".into()), Some("c".into())));
        assert_eq!((number("a"), number("b"), number("c")), (None, Some(2), Some(3)));
    }

    #[test]
    fn a_removed_backend_is_freed_by_its_last_stream() {
        let trial = Trial::new(&(front("") + MORE));
        let worker = &trial.session.worker;
        let mut stream = trial.stream("GET / HTTP/1.0");
        stream.facts.backend = worker.backend_named(b"b");
        let kept = worker.backend_named(b"c").unwrap();
        let gone = Arc::downgrade(&worker.plan.backends.now().named(b"b").unwrap().clone());
        remove(&trial, "b");
        assert!(worker.backend_named(b"b").is_none());
        assert_eq!((gone.strong_count(), &*stream.facts.backend().unwrap().name), (1, "b"));
        drop(stream);
        assert_eq!(gone.strong_count(), 0);
        assert!(Rc::ptr_eq(&kept.0, &worker.backend_named(b"c").unwrap().0), "what stays has one count");
    }

    #[test]
    fn a_backend_goes_once() {
        let trial = Trial::new(&(front("") + MORE + "defaults late\n"));
        let plan = &trial.session.worker.plan;
        let b = plan.backends.now().named(b"b").unwrap().clone();
        b.tally.of(0).spliced_out.add(5);
        remove(&trial, "b");
        assert_eq!(plan.remove_backend(&b), Err(crate::plan::NotRemoved::Gone));
        assert_eq!(plan.backends.spliced_out.load(Relaxed), 5, "what it counted counts once");
        let added = || plan.backends.change().added();
        let add = |name| plan.add_backend(Wanted { name, from: "late", mode: Some(Mode::Tcp), guid: None }).unwrap();
        assert_eq!(added(), 0);
        for name in ["b", "new"] {
            add(name);
        }
        assert_eq!(added(), 2);
        remove(&trial, "c");
        remove(&trial, "b");
        assert_eq!(added(), 1);
    }

    #[test]
    fn what_expressions_name_stays() {
        use crate::plan::NotRemoved;
        let trial = Trial::new(&(front("http-request deny if { nbsrv(a) gt 1 }\n use_backend b if { path /b }") + MORE));
        let plan = &trial.session.worker.plan;
        for (name, expected) in [
            ("a", Err(NotRemoved::Referenced)),
            ("b", Err(NotRemoved::Referenced)),
            ("be", Err(NotRemoved::Referenced)),
            ("c", Ok(())),
        ] {
            let backend = plan.backends.now().named(name.as_bytes()).unwrap().clone();
            backend.is_published.store(false, SeqCst);
            assert_eq!(plan.remove_backend(&backend), expected, "{name}");
        }
    }
}
