//! A server: its fixed settings, and the atomics of its state.

use crate::address::Address;
use crate::aim::Aim;
use crate::announcement::Manner;
use crate::check::LastCheck;
use crate::check::{Probe, Script};
use crate::counters::Counters;
use crate::durations::Durations;
use crate::farm::Farm;
use crate::idle::IdleCounts;
use crate::queue::Backlog;
use crate::settings::ServerSettings;
use crate::slot::Slot;
use crate::state::{Admin, Operation, State};
use arc_swap::ArcSwap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use terse_tls::Connector;
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

/// Origin of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// The configuration.
    Configured,
    /// The stats socket: the server begins in maintenance, without checks.
    Added,
}

/// Whether connections use TLS.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Security {
    Off = 0,
    On = 1,
    /// The server's line has `no-ssl`.
    Declined = 2,
}

/// A server of a farm. Readers on the request path load its atomics separately; writers go through the [`crate::Farm`].
#[derive(Debug)]
pub struct Server {
    index: usize,
    slot: Slot,
    id: u32,
    standing: Standing,
    settings: ServerSettings,
    address: ArcSwap<Address>,
    /// TLS connector; set once the plan is built.
    connector: OnceLock<Arc<Connector>>,
    /// Opening of each connection (PROXY protocol, SNI); set once the plan is built.
    manner: OnceLock<Box<Manner>>,
    /// Counters of the server.
    pub counters: Counters,
    /// Durations of its streams.
    pub durations: Durations,
    /// Counts of its idle connections.
    pub idle: IdleCounts,
    pub(crate) load: Load,
    changing: Changing,
    pub(crate) backlog: Arc<Backlog>,
    last_check: Mutex<LastCheck>,
    aim: Mutex<Aim>,
    /// State that few servers use.
    extras: Extras,
}

/// Host of a service that a server stands for: the target of an SRV record.
#[derive(Default, Debug)]
struct PlaceInDns {
    target: Option<Arc<str>>,
    /// Whether the server has had any target.
    is_known: bool,
}

/// State that few servers use: no request to another server touches it.
#[derive(Default, Debug)]
struct Extras {
    /// Percentage of the weight that is in effect while the server starts.
    grown_percent: AtomicU32,
    /// Consecutive errors of requests.
    errors: AtomicU32,
    /// The next check is wanted soon.
    hurry: Notify,
    /// Notification of the server's removal.
    departure: Notify,
    /// The farm, where the server's limit or weight depends on the load of the others.
    farm: OnceLock<Weak<Farm>>,
    /// Servers that take their state from this one.
    followers: Mutex<Vec<Follower>>,
    /// Server whose state this one takes, and the name of that server's farm.
    leader: OnceLock<(Weak<Server>, Arc<str>)>,
    /// Whether the configuration refers to the server.
    referenced: AtomicBool,
    /// Outcome of the last agent check.
    last_agent: Mutex<LastCheck>,
    /// Script of checks, where a section sets it for this server.
    script: OnceLock<Script>,
    /// Turn of the check program: one permit.
    program: OnceLock<Arc<Semaphore>>,
    /// DNS name that an operator gave the server.
    name_in_dns: Mutex<Option<Arc<str>>>,
    /// Host found for the service that the server is an instance of.
    place_in_dns: Mutex<PlaceInDns>,
    /// Names that operators gave it, in the order of their first use.
    names: OnceLock<Box<[OnceLock<Arc<str>>; MOST_NAMES]>>,
}

/// A server that tracks another one.
pub(crate) type Follower = (Weak<Farm>, Weak<Server>);

/// Counters that each request touches: on cache lines of their own, apart from fields that are only read.
#[derive(Default, Debug)]
#[repr(align(128))]
pub(crate) struct Load {
    /// Requests that hold a slot.
    served: AtomicU32,
    served_max: AtomicU32,
    /// Requests that wait for this very server.
    pub(crate) queued: AtomicU32,
    pub(crate) queued_max: AtomicU32,
}

/// State that changes rarely.
#[derive(Debug)]
#[repr(align(128))]
struct Changing {
    operation: AtomicU8,
    admin: AtomicU8,
    /// Index of the current name: 0 is that of the server's line.
    name: AtomicU8,
    /// Whether it may take requests that wait for any server.
    serves_any: AtomicBool,
    denied: AtomicBool,
    /// Whether the server was removed from its farm.
    gone: AtomicBool,
    /// Whether its health is checked now.
    checked: AtomicBool,
    /// Whether its agent is asked now.
    asked: AtomicBool,
    /// Whether connections to it are secure: a [`Security`].
    security: AtomicU8,
    health: AtomicU32,
    weight: AtomicU32,
    maxconn: AtomicU32,
    moves: AtomicU32,
    /// Milliseconds from the farm's start to the last change of the operation.
    changed_ms: AtomicU64,
    /// Milliseconds in the state down before that change.
    down_ms: AtomicU64,
}

impl Server {
    pub(crate) fn new(index: usize, id: u32, settings: ServerSettings, backlog: Arc<Backlog>, standing: Standing) -> Server {
        let unresolved = settings.is_unresolved();
        let (state, begins) = match standing {
            Standing::Configured => (State::initial(settings.rules(), settings.disabled, unresolved), true),
            Standing::Added => (State::added(settings.rules(), unresolved), false),
        };
        let changing = Changing {
            operation: AtomicU8::new(state.operation as u8),
            admin: AtomicU8::new(state.admin.0),
            name: AtomicU8::new(0),
            serves_any: AtomicBool::new(false),
            denied: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            checked: AtomicBool::new(begins && settings.check.enabled),
            asked: AtomicBool::new(begins && settings.agent.enabled),
            security: AtomicU8::new(match (settings.tls.enabled, settings.tls.declined) {
                (true, _) => Security::On,
                (false, Some(_)) => Security::Declined,
                (false, None) => Security::Off,
            } as u8),
            health: AtomicU32::new(state.health),
            weight: AtomicU32::new(settings.weight),
            maxconn: AtomicU32::new(settings.maxconn),
            moves: AtomicU32::new(0),
            changed_ms: AtomicU64::new(0),
            down_ms: AtomicU64::new(0),
        };
        let aim = Aim::of(&settings.check, &settings.agent);
        Server {
            index,
            slot: Slot::new(),
            id,
            standing,
            address: ArcSwap::from_pointee(settings.address.clone()),
            settings,
            connector: OnceLock::new(),
            manner: OnceLock::new(),
            counters: Counters::default(),
            durations: Durations::default(),
            idle: IdleCounts::default(),
            load: Load::default(),
            changing,
            backlog,
            last_check: Mutex::default(),
            aim: Mutex::new(aim),
            extras: Extras::default(),
        }
    }

    /// Number in the farm, in the order of creation, from 0. It is never given to another server of the farm.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Index that no other server of the process has while this one is held: workers keep their per-server data under
    /// it.
    pub fn slot(&self) -> usize {
        self.slot.number()
    }

    /// Whether the stats socket has added it.
    pub fn is_added(&self) -> bool {
        self.standing == Standing::Added
    }

    /// Whether the server was removed. Holders of a reference may finish with it.
    pub fn is_gone(&self) -> bool {
        self.changing.gone.load(Relaxed)
    }

    /// Marks the server as removed: its connections are kept no more.
    pub(crate) fn set_gone(&self) {
        self.changing.gone.store(true, Release);
        self.changing.moves.fetch_add(1, Release);
        self.extras.departure.notify_waiters();
    }

    /// Waits until the server is removed.
    pub(crate) async fn departed(&self) {
        let departure = self.extras.departure.notified();
        if !self.changing.gone.load(Acquire) {
            departure.await;
        }
    }

    /// Waits until no program that checks the server runs: the next may run as long as the permit is held.
    ///
    /// # Errors
    /// None: the semaphore is never closed.
    pub(crate) async fn program_turn(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.extras.program.get_or_init(|| Arc::new(Semaphore::new(1))).clone().acquire_owned().await
    }

    /// Whether the server's health is checked now: its line enables checks, and no operator has stopped them.
    pub fn is_checked(&self) -> bool {
        self.changing.checked.load(Relaxed)
    }

    /// Lets the server's checks go on where its line enables them, or stops them: its state stays what it is.
    pub fn set_checked(&self, checked: bool) {
        self.changing.checked.store(checked, Relaxed);
    }

    /// Whether its agent is asked now.
    pub fn is_asked(&self) -> bool {
        self.changing.asked.load(Relaxed)
    }

    /// Lets the agent checks go on, or stops them.
    pub fn set_asked(&self, asked: bool) {
        self.changing.asked.store(asked, Relaxed);
    }

    /// Marks the server as referred to by the configuration: it cannot be removed.
    pub fn refer(&self) {
        self.extras.referenced.store(true, Relaxed);
    }

    /// Whether the configuration refers to the server, or another server takes its state.
    pub(crate) fn is_referenced(&self) -> bool {
        self.extras.referenced.load(Relaxed)
            || self.followers().iter().any(|(_, follower)| follower.upgrade().is_some_and(|follower| !follower.is_gone()))
    }

    /// Number in statistics.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Current name: that of the server's line, or the last that an operator gave it. Former names stay in memory, so
    /// that readers neither count references nor lock.
    pub fn name(&self) -> &Arc<str> {
        let given = usize::from(self.changing.name.load(Acquire));
        let given = given.checked_sub(1).and_then(|at| self.extras.names.get()?.get(at)?.get());
        given.unwrap_or(&self.settings.name)
    }

    /// Whether the server has this name, or had it.
    pub fn had_name(&self, name: &str) -> bool {
        let given = self.extras.names.get().into_iter().flat_map(|names| names.iter()).filter_map(OnceLock::get);
        [&self.settings.name].into_iter().chain(given).any(|given| **given == *name)
    }

    /// Gives the server another name. The caller holds the farm's lock of changes. False: it has had `MOST_NAMES`
    /// names.
    pub(crate) fn set_name(&self, name: &str) -> bool {
        let names = self.extras.names.get_or_init(|| Box::new([const { OnceLock::new() }; MOST_NAMES]));
        let place = match *self.settings.name == *name {
            true => Some(0),
            false => {
                (1..).zip(names.iter()).find(|(_, given)| **given.get_or_init(|| name.into()) == *name).map(|(place, _)| place)
            }
        };
        let Some(place) = place else { return false };
        self.changing.name.store(place, Release);
        true
    }

    /// Current DNS name: that of the server's line, or the last that an operator gave it.
    pub fn name_in_dns(&self) -> Option<Arc<str>> {
        self.given_name_in_dns().clone().or_else(|| self.settings.name_in_dns.clone())
    }

    /// Whether the DNS name may be changed: `resolvers` are set, and the name is not that of a service, whose records
    /// name many servers.
    pub fn takes_names(&self) -> bool {
        self.settings.resolution.resolvers.is_some() && self.name_in_dns().is_none_or(|name| !name.starts_with('_'))
    }

    /// Whether an operator has changed the DNS name, or a service has given a target.
    pub(crate) fn is_moved_in_dns(&self) -> bool {
        self.given_name_in_dns().is_some() || self.place().is_known
    }

    /// DNS name of the host, where the server's own name is that of a service.
    pub fn place_in_dns(&self) -> Option<Arc<str>> {
        self.place().target.clone()
    }

    /// Sets the host of a service that the server stands for.
    pub(crate) fn set_place_in_dns(&self, target: Option<&str>) {
        let mut place = self.place();
        place.target = target.map(Into::into);
        place.is_known |= target.is_some();
    }

    fn place(&self) -> MutexGuard<'_, PlaceInDns> {
        self.extras.place_in_dns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_name_in_dns(&self, name: &str) {
        let is_new = self.settings.name_in_dns.as_deref() != Some(name);
        *self.given_name_in_dns() = is_new.then(|| name.into());
    }

    fn given_name_in_dns(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.extras.name_in_dns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Current address: that of the server's line, or the last that an operator gave it.
    pub fn address(&self) -> Arc<Address> {
        self.address.load_full()
    }

    /// Number of changes of the address or of the TLS material. Connections made before the last change lead elsewhere,
    /// or have shown another certificate: a pool reads this number before it connects.
    pub fn moves(&self) -> u32 {
        self.changing.moves.load(Acquire).wrapping_add(self.connector().map_or(0, Connector::changes))
    }

    pub(crate) fn set_address(&self, address: Address) {
        self.address.store(Arc::new(address));
        self.changing.moves.fetch_add(1, Release);
    }

    /// Settings of the server's line.
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Sets the checks of this server, where they differ from those of its backend.
    pub fn check_by(&self, probe: &Probe) {
        let _ = self.extras.script.set(Script::new(probe));
    }

    /// Script of checks of this server, where it has its own.
    pub(crate) fn script(&self) -> Option<&Script> {
        self.extras.script.get()
    }

    /// Sets the TLS connector.
    pub fn secure(&self, connector: Arc<Connector>) {
        let _ = self.connector.set(connector);
    }

    /// Sets the opening of each connection to the server.
    pub fn introduce(&self, manner: Manner) {
        let _ = self.manner.set(Box::new(manner));
    }

    /// Opening of each connection to the server, where there is any.
    pub fn manner(&self) -> Option<&Manner> {
        self.manner.get().map(|manner| &**manner)
    }

    /// Whether requests go to it over TLS.
    pub fn is_secure(&self) -> bool {
        self.changing.security.load(Relaxed) == Security::On as u8
    }

    /// Number of the TLS state in `show servers state`: -1 with `no-ssl`.
    pub(crate) fn security_number(&self) -> i8 {
        match self.changing.security.load(Relaxed) {
            security if security == Security::Declined as u8 => -1,
            security => security as i8,
        }
    }

    /// Whether [`Server::set_secure`] may be used: the server's line has `no-ssl` after an inherited `ssl`.
    pub fn may_switch_security(&self) -> bool {
        self.settings.tls.declined == Some(true) && self.connector().is_some()
    }

    /// Lets requests go over TLS, or not. Idle connections are given up.
    pub fn set_secure(&self, secure: bool) {
        let security = if secure { Security::On } else { Security::Off };
        if self.changing.security.swap(security as u8, Relaxed) != security as u8 {
            self.changing.moves.fetch_add(1, Release);
        }
    }

    /// Destination of the server's checks and of its agent checks.
    pub fn aim(&self) -> Aim {
        self.lock_aim().clone()
    }

    /// Changes the destination of checks and of agent checks.
    pub fn change_aim(&self, change: impl FnOnce(&mut Aim)) {
        change(&mut self.lock_aim());
    }

    fn lock_aim(&self) -> MutexGuard<'_, Aim> {
        self.aim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// TLS connector, where any connections use TLS.
    pub fn connector(&self) -> Option<&Connector> {
        self.connector.get().map(|connector| &**connector)
    }

    /// Whether the server answers, as far as checks have shown.
    pub fn operation(&self) -> Operation {
        // No other number is stored there.
        Operation::of_number(self.changing.operation.load(Relaxed).into()).unwrap_or(Operation::Stopping)
    }

    /// Administrative state.
    pub fn admin(&self) -> Admin {
        Admin(self.changing.admin.load(Relaxed))
    }

    /// The whole state. The parts are read separately: only the holder of the farm's lock sees them fit together.
    pub fn state(&self) -> State {
        State {
            operation: self.operation(),
            admin: self.admin(),
            health: self.changing.health.load(Relaxed),
            denied: self.changing.denied.load(Relaxed),
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.changing.operation.store(state.operation as u8, Relaxed);
        self.changing.admin.store(state.admin.0, Relaxed);
        self.changing.health.store(state.health, Relaxed);
        self.changing.denied.store(state.denied, Relaxed);
    }

    /// Whether a request may be sent there at all, if persistence wants it.
    pub fn is_up(&self) -> bool {
        self.operation() != Operation::Stopped
    }

    /// Whether the algorithms may choose it: up, neither draining nor stopping, with a weight.
    pub fn is_eligible(&self) -> bool {
        self.effective_weight() > 0
    }

    /// Configured or set weight, 0 to 256.
    pub fn weight(&self) -> u32 {
        self.changing.weight.load(Relaxed)
    }

    pub(crate) fn set_weight(&self, weight: u32) {
        self.changing.weight.store(weight, Relaxed);
    }

    /// Weight in effect: 0 when the algorithms must not choose the server.
    pub fn effective_weight(&self) -> u32 {
        let works = matches!(self.operation(), Operation::Running | Operation::Starting);
        if works && !self.admin().is_drain() { self.weight() } else { 0 }
    }

    /// Share of the work, in sixteenths of a weight: less than the weight while the server starts. It begins with a
    /// sixteenth.
    pub(crate) fn share(&self) -> u32 {
        let starts = self.operation() == Operation::Starting;
        self.effective_weight() * if starts { self.grown_shares() } else { SHARES_OF_A_WEIGHT }
    }

    fn grown_shares(&self) -> u32 {
        (SHARES_OF_A_WEIGHT * self.extras.grown_percent.load(Relaxed) / 100 + 1).min(SHARES_OF_A_WEIGHT)
    }

    /// Percentage of the weight that is in effect while the server starts slowly; `None` when it does not.
    pub fn throttle_percent(&self) -> Option<u32> {
        (self.operation() == Operation::Starting).then(|| (100 * self.grown_shares()).div_ceil(SHARES_OF_A_WEIGHT))
    }

    pub(crate) fn set_grown_percent(&self, percent: u32) {
        self.extras.grown_percent.store(percent, Relaxed);
    }

    /// The limit of requests at a time; 0: none.
    pub fn maxconn(&self) -> u32 {
        self.changing.maxconn.load(Relaxed)
    }

    pub(crate) fn set_maxconn(&self, maxconn: u32) {
        self.changing.maxconn.store(maxconn, Relaxed);
    }

    /// Whether a request may come at once.
    pub fn has_room(&self) -> bool {
        match self.maxconn() {
            0 => true,
            limit => self.served() < self.limit(limit) && self.queued() == 0,
        }
    }

    /// `maxconn` in effect: less while the backend has little to do (`minconn`), and while the server starts
    /// (`slowstart`).
    fn limit(&self, maxconn: u32) -> u32 {
        let Some(farm) = self.extras.farm.get() else { return maxconn };
        let minconn = self.settings.minconn;
        let mut limit = maxconn;
        if minconn != 0
            && minconn < maxconn
            && let Some(farm) = farm.upgrade()
        {
            let (load, full) = (farm.load(), farm.full.load(Relaxed));
            if load < full {
                limit = minconn.max((u64::from(load) * u64::from(maxconn) / u64::from(full)) as u32);
            }
        }
        match self.operation() {
            Operation::Starting => (limit * self.extras.grown_percent.load(Relaxed) / 100).max(1),
            _ => limit,
        }
    }

    /// Makes the limit depend on the load of the backend.
    pub(crate) fn set_farm(&self, farm: Weak<Farm>) {
        let _ = self.extras.farm.set(farm);
    }

    /// Requests an early check.
    pub(crate) fn hurry(&self) {
        self.extras.hurry.notify_one();
    }

    /// Waits for a request of an early check.
    pub(crate) async fn hurried(&self) {
        self.extras.hurry.notified().await;
    }

    /// Counts an error of a request, or resets the count; returns the consecutive errors.
    pub(crate) fn count_errors(&self, failed: bool) -> u32 {
        match failed {
            true => self.extras.errors.fetch_add(1, Relaxed) + 1,
            false => {
                if self.extras.errors.load(Relaxed) != 0 {
                    self.extras.errors.store(0, Relaxed);
                }
                0
            }
        }
    }

    /// Servers that take their state from this one.
    pub(crate) fn followers(&self) -> MutexGuard<'_, Vec<Follower>> {
        self.extras.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Server whose state this one takes.
    pub(crate) fn leader(&self) -> Option<Arc<Server>> {
        self.extras.leader.get()?.0.upgrade()
    }

    /// Name of that server: `backend/server`.
    pub fn leader_name(&self) -> Option<String> {
        let (leader, farm) = self.extras.leader.get()?;
        Some(format!("{farm}/{}", leader.upgrade()?.name()))
    }

    pub(crate) fn set_leader(&self, leader: &Arc<Server>, farm: &Arc<str>) {
        let _ = self.extras.leader.set((Arc::downgrade(leader), farm.clone()));
    }

    /// Outcome of the last agent check.
    pub fn last_agent(&self) -> LastCheck {
        self.extras.last_agent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_last_agent(&self, answer: LastCheck) {
        *self.extras.last_agent.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Takes a slot, if one is free.
    pub(crate) fn try_enter(&self) -> bool {
        let served = match self.maxconn() {
            0 => Ok(self.load.served.fetch_add(1, SeqCst)),
            limit => {
                let limit = self.limit(limit);
                self.load.served.fetch_update(SeqCst, SeqCst, |served| (served < limit).then_some(served + 1))
            }
        };
        if let Ok(served) = served
            && served >= self.load.served_max.load(Relaxed)
        {
            self.load.served_max.fetch_max(served + 1, Relaxed);
        }
        served.is_ok()
    }

    /// Gives a slot back.
    pub(crate) fn leave(&self) {
        self.load.served.fetch_sub(1, SeqCst);
    }

    pub(crate) fn serves_any(&self) -> bool {
        self.changing.serves_any.load(Relaxed)
    }

    pub(crate) fn set_serves_any(&self, serves: bool) {
        self.changing.serves_any.store(serves, Relaxed);
    }

    /// Requests that hold one of its slots (`scur`).
    pub fn served(&self) -> u32 {
        self.load.served.load(SeqCst)
    }

    /// Highest number of them (`smax`).
    pub fn served_max(&self) -> u32 {
        self.load.served_max.load(Relaxed)
    }

    /// Requests that wait for this very server (`qcur`).
    pub fn queued(&self) -> u32 {
        self.load.queued.load(Relaxed)
    }

    /// Highest number of them (`qmax`).
    pub fn queued_max(&self) -> u32 {
        self.load.queued_max.load(Relaxed)
    }

    /// Resets the highest numbers (`clear counters`).
    pub fn clear_peaks(&self) {
        self.load.served_max.store(self.served(), Relaxed);
        self.load.queued_max.store(self.queued(), Relaxed);
    }

    /// Time of the last change of the operation, and the duration of the state down before it. Both are in
    /// milliseconds, the first from the farm's start.
    pub(crate) fn changed_ms(&self) -> (u64, u64) {
        (self.changing.changed_ms.load(Relaxed), self.changing.down_ms.load(Relaxed))
    }

    pub(crate) fn set_changed_ms(&self, changed: u64, down: u64) {
        self.changing.changed_ms.store(changed, Relaxed);
        self.changing.down_ms.store(down, Relaxed);
    }

    /// Outcome of the last check.
    pub fn last_check(&self) -> LastCheck {
        self.last_check.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_last_check(&self, last: LastCheck) {
        *self.last_check.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}

/// Steps in which a weight of 1 grows, as in HAProxy.
pub(crate) const SHARES_OF_A_WEIGHT: u32 = 16;

/// Limit of names that an operator may give a server; a former name may come again.
pub(crate) const MOST_NAMES: usize = 64;

/// Whether a text may be a host's name in the DNS.
pub fn is_name(word: &str) -> bool {
    let fits = (1..=MOST_NAME_BYTES).contains(&word.len()) && !word.starts_with('_');
    fits && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// RFC 1035 section 2.3.4
const MOST_NAME_BYTES: usize = 255;
