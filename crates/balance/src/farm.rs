//! All servers of a backend.

use crate::algorithm::{Choice, Chooser, Key, Roster};
use crate::check::Script;
use crate::counters::Counters;
use crate::durations::Durations;
use crate::membership::{Picked, Servers, Wardens, numbers};
use crate::persistence::DynamicCookies;
use crate::queue::{Backlog, Claim, Grant, Precedence, Want};
use crate::server::{Server, Standing};
use crate::settings::FarmSettings;
use arc_swap::ArcSwap;
use std::fmt;
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use terse_tls::HandshakeCounts;

/// Data of its backend that a farm needs.
pub struct FarmContext {
    /// The backend's number in statistics.
    pub id: u32,
    /// Whether the configuration sets that number.
    pub has_own_id: bool,
    /// The backend's name.
    pub name: Arc<str>,
    /// Kind of section in log lines: `backend`, or `proxy` for a `listen` section.
    pub kind: &'static str,
    /// `timeout connect`, which limits the connecting of checks too.
    pub connect_timeout: Option<Duration>,
    /// Sink of log lines.
    pub journal: Journal,
    /// Start of the process: times are counted from here.
    pub started: Instant,
    /// Receivers of news of servers.
    pub wardens: Arc<Wardens>,
    /// Ends the streams of its servers.
    pub ends: Ends,
}

/// Ends the streams that a server counts, and its idle connections. It is called under the lock of changes: it must not call back.
pub type Ends = Arc<dyn Fn(&Server, Ending) + Send + Sync>;

/// Reason for ending a server's streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It has gone down (`on-marked-down shutdown-sessions`).
    Down,
    /// It is a backup, and an active server has come up (`on-marked-up shutdown-backup-sessions`).
    Replaced,
}

/// Takes the lines that changes of servers write, without a line end: the backend's log, and standard error. It is called under the
/// lock of changes: it must not call back.
pub type Journal = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// Severity of a line, in syslog's numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// A backend has no server left.
    Emergency = 0,
    /// A server went down.
    Alert = 1,
    /// Something changed.
    Notice = 5,
}

/// The servers of one backend: shared by all workers.
pub struct Farm {
    pub(crate) context: FarmContext,
    pub(crate) settings: FarmSettings,
    /// Servers, and the order in which algorithms look at them.
    pub(crate) roster: ArcSwap<Roster>,
    /// Count of numbers that servers have been given.
    pub(crate) given: AtomicUsize,
    /// Number of requests at which servers get their whole `maxconn`.
    pub(crate) full: AtomicU32,
    pub(crate) backlog: Arc<Backlog>,
    /// Script of checks.
    pub(crate) script: Script,
    /// Held while a server's state changes and the roster is rebuilt. It guards the time at which the backend went
    /// down, and the duration of earlier outages.
    pub(crate) changes: Mutex<Outage>,
    /// Counters of the backend, with the per-server counts of servers that have gone.
    pub counters: Counters,
    /// Handshakes with servers that have gone.
    pub handshakes: HandshakeCounts,
    /// Durations of its streams.
    pub durations: Durations,
    cursor: Cursor,
    pub(crate) dynamic_cookies: DynamicCookies,
}

/// Counter of choices, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Cursor(AtomicUsize);

/// Times at which a backend had no server.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Outage {
    /// Time at which the last server went or the first came, from the start.
    pub(crate) changed: Duration,
    /// Duration of earlier outages.
    pub(crate) down: Duration,
}

impl fmt::Debug for Farm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Farm").field("name", &self.context.name).field("servers", &self.servers()).finish_non_exhaustive()
    }
}

impl Farm {
    /// Builds the servers of a backend, in the states that its configuration gives them.
    pub fn new(context: FarmContext, mut settings: FarmSettings) -> Arc<Farm> {
        let is_dynamic = settings.cookie.as_ref().is_some_and(|cookie| cookie.dynamic);
        let dynamic_cookies = DynamicCookies::new(is_dynamic, settings.cookie_key.as_deref());
        let lines = mem::take(&mut settings.servers);
        let ids = numbers(&lines);
        let farm = Arc::new(Farm {
            roster: ArcSwap::from_pointee(Roster::new(Arc::default(), &settings, None)),
            given: AtomicUsize::new(lines.len()),
            full: AtomicU32::new(settings.fullconn.unwrap_or(0)),
            backlog: Arc::new(Backlog::new()),
            script: Script::new(&settings.probe),
            changes: Mutex::default(),
            counters: Counters::default(),
            handshakes: HandshakeCounts::default(),
            durations: Durations::default(),
            cursor: Cursor::default(),
            dynamic_cookies,
            context,
            settings,
        });
        let server = |(index, (id, mut line))| {
            farm.complete(&mut line);
            Arc::new(Server::new(index, id, line, farm.backlog.clone(), Standing::Configured))
        };
        farm.rebuild_with(ids.into_iter().zip(lines).enumerate().map(server).collect());
        farm.join(&farm.servers());
        farm
    }

    /// `fullconn`, where it is set.
    pub fn said_full(&self) -> Option<u32> {
        self.settings.fullconn
    }

    /// Sets the number of requests at which servers get their whole `maxconn`, where no `fullconn` does.
    pub fn set_full(&self, full: u32) {
        if self.settings.fullconn.is_none() {
            self.full.store(full, Relaxed);
        }
    }

    /// Number of requests at which servers get their whole `maxconn`: `fullconn`, or its default.
    pub fn full(&self) -> u32 {
        self.full.load(Relaxed)
    }

    /// Name of the backend.
    pub fn name(&self) -> &str {
        &self.context.name
    }

    /// Kind of section in log lines: `backend`, or `proxy` for a `listen` section.
    pub fn kind(&self) -> &'static str {
        self.context.kind
    }

    /// Number of the backend in statistics.
    pub fn id(&self) -> u32 {
        self.context.id
    }

    /// Whether the configuration sets the backend's number.
    pub(crate) fn has_own_id(&self) -> bool {
        self.context.has_own_id
    }

    /// Settings of the backend's servers.
    pub fn settings(&self) -> &FarmSettings {
        &self.settings
    }

    /// Script of checks of a server.
    pub fn script_of<'f>(&'f self, server: &'f Server) -> &'f Script {
        server.script().unwrap_or(&self.script)
    }

    /// The servers that there are now, in order.
    pub fn servers(&self) -> Servers {
        Servers(self.roster.load())
    }

    /// The server of that index, as long as it is there.
    pub fn server(&self, index: usize) -> Option<Picked> {
        self.servers().of_index(index)
    }

    /// The server of that name, or of that number when it is written `#<id>`.
    pub fn find_server(&self, name: &str) -> Option<Picked> {
        let named = self.servers().pick(|server| **server.name() == *name);
        named.or_else(|| {
            let id: u32 = name.strip_prefix('#')?.parse().ok()?;
            self.servers().pick(|server| server.id() == id)
        })
    }

    /// Index of the server that the algorithm chooses now; moves its cursor on. Avoided servers are chosen only when
    /// there is no other. `None` when no server may be used, or all slots are in use.
    pub fn choose(&self, key: &Key<'_>, avoided: &[usize]) -> Option<usize> {
        let roster = self.roster.load();
        match self.look(&roster, key, avoided) {
            Choice::Free(at) | Choice::Bound(at) => Some(roster.servers[at].index()),
            Choice::AllBusy | Choice::None => None,
        }
    }

    /// Chooses a server and takes one of its slots, or a place in a queue.
    pub fn claim(&self, want: Want<'_>) -> Grant {
        self.claim_as(want, Precedence::default())
    }

    /// Chooses a server and takes a slot or a place in a queue, with the given precedence in queues.
    pub fn claim_as(&self, want: Want<'_>, precedence: Precedence) -> Grant {
        match want {
            Want::Server(index) => match self.roster.load().find(index) {
                Some(server) => self.claim_of(server, precedence),
                None => Grant::NoServer,
            },
            Want::Any { key, avoided } => self.claim_any(&key, avoided, precedence),
        }
    }

    fn claim_of(&self, server: &Arc<Server>, precedence: Precedence) -> Grant {
        Claim::try_new(server).map_or_else(|| self.backlog.wait_for(server, precedence), Grant::Now)
    }

    fn claim_any(&self, key: &Key<'_>, avoided: &[usize], precedence: Precedence) -> Grant {
        let roster = self.roster.load();
        // Another task can take a slot between the look and the grip. A request that loses that race so often enters
        // the queue.
        for _ in 0..MOST_LOST_RACES {
            match self.look(&roster, key, avoided) {
                Choice::Bound(at) => return self.claim_of(&roster.servers[at], precedence),
                Choice::None => return Grant::NoServer,
                Choice::AllBusy => break,
                Choice::Free(at) => {
                    let server = &roster.servers[at];
                    // No request overtakes those that wait for any server, unless there is room for all.
                    if server.maxconn() != 0 && self.backlog.in_backend().0 != 0 {
                        break;
                    }
                    if let Some(claim) = Claim::try_new(server) {
                        return Grant::Now(claim);
                    }
                }
            }
        }
        drop(roster);
        self.backlog.wait_for_any(|| self.roster.load(), precedence)
    }

    fn look(&self, roster: &Roster, key: &Key<'_>, avoided: &[usize]) -> Choice {
        Chooser { roster, settings: &self.settings, cursor: &self.cursor.0, avoided }.choose(key)
    }

    /// Notes the moment at which a stream goes to a server.
    pub fn touch(&self, server: &Server, now: Instant) {
        let at_s = now.saturating_duration_since(self.context.started).as_secs();
        self.durations.touch(at_s);
        server.durations.touch(at_s);
    }

    /// Seconds from the last stream to a moment; `None` when there was no stream.
    pub fn since_last_s(&self, durations: &Durations, now: Instant) -> Option<u64> {
        let at_s = now.saturating_duration_since(self.context.started).as_secs();
        durations.last_s().map(|last| at_s.saturating_sub(last))
    }

    /// Number of servers that are up with a weight: active ones, and backups.
    pub fn up(&self) -> (u32, u32) {
        self.roster.load().up
    }

    /// Whether any server can take a new client.
    pub fn is_up(&self) -> bool {
        self.up() != (0, 0)
    }

    /// Requests that wait for any server, and their highest number. Those that wait for one server are counted in that
    /// server.
    pub fn queued(&self) -> (u32, u32) {
        self.backlog.in_backend()
    }

    /// Resets the highest number of requests that waited for any server; each server has its own
    /// ([`Server::clear_peaks`]).
    pub fn clear_peak(&self) {
        self.backlog.clear_peak();
    }

    /// Requests that wait, for any server or for a certain one.
    pub fn waiting(&self) -> u32 {
        self.backlog.waiting()
    }

    /// Builds the roster anew from the servers' states. The caller holds the lock of changes, or is alone.
    pub(crate) fn rebuild(&self) {
        self.rebuild_with(self.roster.load().servers.clone());
    }

    /// Builds the roster anew from these servers' states.
    pub(crate) fn rebuild_with(&self, servers: Arc<[Arc<Server>]>) {
        let roster = Roster::new(servers, &self.settings, Some(&self.roster.load()));
        let mut usable = vec![false; roster.servers.len()];
        roster.usable.iter().for_each(|at| usable[*at as usize] = true);
        roster.servers.iter().zip(usable).for_each(|(server, usable)| server.set_serves_any(usable));
        self.roster.store(Arc::new(roster));
    }

    /// Requests that servers have, and those that wait.
    pub(crate) fn load(&self) -> u32 {
        self.servers().iter().map(|server| server.served()).sum::<u32>() + self.waiting()
    }
}

/// Limit of choices for a request whose chosen server was full by then.
const MOST_LOST_RACES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Port;
    use crate::fixture::farm;
    use crate::state::AdminOrder;
    use terse_message::Request;

    const ANYONE: Key<'_> = Key { source: None, request: None, bytes: None };

    fn chosen(farm: &Farm, times: usize) -> Vec<usize> {
        (0..times).map(|_| farm.choose(&ANYONE, &[]).unwrap()).collect()
    }

    fn order(farm: &Farm, server: usize, order: AdminOrder) {
        farm.set_admin(&farm.servers()[server], order, Instant::now());
    }

    fn four(balance: &str) -> Arc<Farm> {
        let servers: String = (1..5).map(|n| format!("server srv{n} 10.0.0.{n}:80\n")).collect();
        farm(&format!("{balance}\n{servers}"))
    }

    fn server_of(farm: &Farm, target: &str) -> usize {
        let mut request = Request::default();
        request.set_method(b"GET");
        request.set_target(target.as_bytes());
        farm.choose(&Key { request: Some(&request), ..Key::default() }, &[]).unwrap()
    }

    #[test]
    fn round_robin_is_in_strict_order() {
        let farm = four("balance roundrobin");
        assert_eq!(chosen(&farm, 9), [0, 1, 2, 3, 0, 1, 2, 3, 0]);
        order(&farm, 1, AdminOrder::Drain);
        assert!(!chosen(&farm, 6).contains(&1));
        order(&farm, 1, AdminOrder::Ready);
        assert!(chosen(&farm, 4).contains(&1));
    }

    /// As HAProxy 3.5 brought them to the same servers.
    #[test]
    fn keys_go_where_haproxy_sends_them() {
        for (key, expected) in [
            ("id", [3, 1, 3, 3, 2, 0, 1, 0]),
            ("id32", [0, 1, 3, 1, 2, 0, 0, 1]),
            ("addr", [3, 3, 3, 0, 2, 0, 2, 3]),
            ("addr-port", [2, 2, 0, 3, 1, 3, 1, 0]),
            ("guid", [0, 2, 2, 1, 1, 0, 1, 3]),
        ] {
            let addresses = ["127.0.0.11:21000", "127.0.0.12:21001", "[::1]:21002", "127.0.0.13:21003"];
            let servers = addresses.iter().enumerate().map(|(n, to)| format!("server s{n} {to} hash-key {key} guid g{n}\n"));
            let farm = farm(&format!("balance uri\nhash-type consistent\n{}", servers.collect::<String>()));
            let seen: Vec<_> = (0..8).map(|n| server_of(&farm, &format!("/u{n}"))).collect();
            assert_eq!(seen, expected, "{key}");
            // A server that gets another's address gets its keys, too.
            let (first, last) = (farm.servers()[0].clone(), farm.servers()[3].clone());
            farm.set_address(&first, "127.0.0.13".parse().unwrap(), Some(Port::Fixed(21003)), "test").unwrap();
            farm.set_address(&last, "127.0.0.11".parse().unwrap(), Some(Port::Fixed(21000)), "test").unwrap();
            if key.starts_with("addr") {
                let swapped = |n: usize| match n {
                    0 => 3,
                    3 => 0,
                    n => n,
                };
                let now: Vec<_> = (0..8).map(|n| server_of(&farm, &format!("/u{n}"))).collect();
                assert_eq!(now, expected.map(swapped), "{key}");
            }
        }
    }

    #[test]
    fn round_robin_is_in_strict_order_across_threads() {
        let farm = four("balance roundrobin");
        let counts: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for server in chosen(&farm, 1000) {
                        counts[server].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(counts.into_iter().all(|count| count.into_inner() == 1000));
    }

    #[test]
    fn weights_are_shares_and_weight_0_is_none() {
        let farm = farm("server a 10.0.0.1:80 weight 30\nserver b 10.0.0.2:80 weight 10\nserver c 10.0.0.3:80 weight 0");
        assert_eq!(chosen(&farm, 8), [0, 0, 0, 1, 0, 0, 0, 1]);
        farm.set_weight(&farm.servers()[2], 40, Instant::now());
        assert_eq!(chosen(&farm, 8).iter().filter(|server| **server == 2).count(), 4);
        assert_eq!(farm.up(), (3, 0));
    }

    #[test]
    fn backups_work_only_when_nobody_else_does() {
        let lines = "server a 10.0.0.1:80\nserver b 10.0.0.2:80 backup\nserver c 10.0.0.3:80 backup";
        for (option, wanted) in [("", &[1, 1, 1][..]), ("option allbackups\n", &[1, 2, 1])] {
            let farm = farm(&format!("{option}{lines}"));
            assert_eq!((chosen(&farm, 2), farm.up()), (vec![0, 0], (1, 2)));
            order(&farm, 0, AdminOrder::Maint);
            let backups: Vec<usize> = chosen(&farm, 4).into_iter().skip_while(|server| *server != 1).take(3).collect();
            assert_eq!(backups, wanted);
            order(&farm, 1, AdminOrder::Maint);
            assert_eq!(chosen(&farm, 2), [2, 2]);
            order(&farm, 2, AdminOrder::Maint);
            assert_eq!(farm.choose(&ANYONE, &[]), None);
            assert!(!farm.is_up());
        }
    }

    #[test]
    fn those_that_failed_a_request_come_last() {
        let farm = four("balance roundrobin");
        assert!((0..8).all(|_| farm.choose(&ANYONE, &[0, 2, 3]) == Some(1)));
        assert!(farm.choose(&ANYONE, &[0, 1, 2, 3]).is_some());
    }

    #[test]
    fn least_conn_looks_at_requests_and_weights() {
        let farm = farm("balance leastconn\nserver a 10.0.0.1:80 weight 1\nserver b 10.0.0.2:80 weight 3");
        let take = || match farm.claim(Want::Any { key: ANYONE, avoided: &[] }) {
            Grant::Now(claim) => claim,
            other => panic!("{other:?}"),
        };
        let claims: Vec<Claim> = (0..40).map(|_| take()).collect();
        let on_a = claims.iter().filter(|claim| claim.server().index() == 0).count();
        assert!((9..=11).contains(&on_a), "{on_a}");
        drop(claims);
        let idle: Vec<usize> = chosen(&farm, 4);
        assert!(idle.contains(&0) && idle.contains(&1));
    }

    #[test]
    fn first_fills_one_after_the_other() {
        let farm = farm("balance first\nserver a 10.0.0.1:80 id 9 maxconn 1\nserver b 10.0.0.2:80 id 4 maxconn 2");
        let claims: Vec<usize> = (0..3)
            .map(|_| match farm.claim(Want::Any { key: ANYONE, avoided: &[] }) {
                Grant::Now(claim) => {
                    let index = claim.server().index();
                    std::mem::forget(claim);
                    index
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(claims, [1, 1, 0]);
        assert!(matches!(farm.claim(Want::Any { key: ANYONE, avoided: &[] }), Grant::Wait(_)));
    }

    #[test]
    fn targets_go_where_haproxy_sends_them() {
        let farm = four("balance uri");
        let servers = ["/url1", "/url1?ignore=this-arg", "/url2", "/url3", "/url4"].map(|target| server_of(&farm, target));
        assert_eq!(servers, [1, 1, 2, 3, 0]);
    }

    #[test]
    fn sticky_stays_and_those_who_come_back_queue_up() {
        let farm =
            farm("balance sticky\nserver a 10.0.0.1:80\nserver b 10.0.0.2:80\nserver c 10.0.0.3:80\nserver z 10.0.0.9:80 backup");
        let tell = |name: &str, order| farm.set_admin(&farm.find_server(name).unwrap(), order, Instant::now());
        let chosen = || farm.choose(&ANYONE, &[]).map(|index| farm.servers()[index].name().to_string()).unwrap();
        assert_eq!((chosen(), chosen()), ("a".into(), "a".into()));
        tell("a", AdminOrder::Maint);
        assert_eq!(chosen(), "b");
        tell("b", AdminOrder::Maint);
        tell("a", AdminOrder::Ready);
        assert_eq!(chosen(), "c");
        tell("a", AdminOrder::Maint);
        tell("c", AdminOrder::Maint);
        assert_eq!(chosen(), "z");
        tell("c", AdminOrder::Ready);
        tell("b", AdminOrder::Ready);
        assert_eq!(chosen(), "c");
    }

    #[test]
    fn equal_lines_go_to_equal_servers() {
        let farm = farm("balance log-hash field(1)\nhash-type map-based none\nserver a 10.0.0.1:80\nserver b 10.0.0.2:80");
        let of = |bytes: &[u8]| farm.choose(&Key { bytes: Some(bytes), ..ANYONE }, &[]);
        assert_eq!([of(b"0"), of(b"1"), of(b"2"), of(b"0")], [Some(0), Some(1), Some(0), Some(0)]);
    }

    #[test]
    fn a_key_without_affinity_to_a_full_server_moves_on() {
        let lines = "balance uri\nhash-type consistent\nserver a 10.0.0.1:80 maxconn 1\nserver b 10.0.0.2:80 maxconn 1";
        for (affinity, moves) in [("", false), ("hash-preserve-affinity maxconn\n", true)] {
            let farm = farm(&format!("{affinity}{lines}"));
            let own = server_of(&farm, "/test-url");
            assert_eq!(own, 0);
            let Grant::Now(_held) = farm.claim(Want::Server(own)) else { panic!() };
            assert_eq!(server_of(&farm, "/test-url") != own, moves);
        }
    }

    /// Each server of a consistent hash has at most so much of the mean; what a key's own has no room for goes to the next one.
    #[test]
    fn a_key_moves_on_from_a_server_that_has_its_share() {
        let equal: String = (1..5).map(|n| format!("server srv{n} 10.0.0.{n}:80\n")).collect();
        let unequal = "server a 10.0.0.1:80 weight 10\nserver b 10.0.0.2:80 weight 30\n";
        let mut owners = std::collections::HashSet::new();
        for target in ["/a", "/b", "/c", "/d", "/e", "/f"] {
            for (factor, most) in
                [("", 40), ("hash-balance-factor 101", 11), ("hash-balance-factor 150", 15), ("hash-balance-factor 200", 20)]
            {
                let farm = farm(&format!("balance uri\nhash-type consistent\n{factor}\n{equal}"));
                let own = server_of(&farm, target);
                let claims = claims_of(&farm, target, 40);
                let on = |server: usize| claims.iter().filter(|claim| claim.server().index() == server).count();
                assert!((0..4).all(|server| on(server) <= most), "{factor}: {:?}", [0, 1, 2, 3].map(on));
                assert!(on(own) + 1 >= most, "{factor}: {:?}, {own} is the key's own", [0, 1, 2, 3].map(on));
                drop(claims);
                assert_eq!(server_of(&farm, target), own, "{factor}: its own again");
            }
            let farm = farm(&format!("balance uri\nhash-type consistent\nhash-balance-factor 150\n{unequal}"));
            let own = server_of(&farm, target);
            let claims = claims_of(&farm, target, 80);
            let on_a = claims.iter().filter(|claim| claim.server().index() == 0).count();
            owners.insert(own);
            // A quarter of all, and half as much again; all would fit on the other one.
            let expected = if own == 0 { 29..=30 } else { 0..=0 };
            assert!(expected.contains(&on_a), "{target}: {on_a} of 80 where {own} is the key's own");
        }
        assert_eq!(owners.len(), 2, "keys of both servers");
    }

    /// So many requests with one target.
    fn claims_of(farm: &Farm, target: &str, count: usize) -> Vec<Claim> {
        let mut request = Request::default();
        request.set_method(b"GET");
        request.set_target(target.as_bytes());
        let key = Key { request: Some(&request), ..Key::default() };
        let claim = || match farm.claim(Want::Any { key, avoided: &[] }) {
            Grant::Now(claim) => claim,
            other => panic!("{other:?}"),
        };
        (0..count).map(|_| claim()).collect()
    }

    #[test]
    fn random_draws_spread() {
        let farm = four("balance random");
        let drawn = chosen(&farm, 400);
        assert!((0..4).all(|server| drawn.iter().filter(|drawn| **drawn == server).count() > 50));
    }

    #[test]
    fn numbers_are_free_ones() {
        let farm = farm("server a 10.0.0.1:80\nserver b 10.0.0.1:80 id 1\nserver c 10.0.0.1:80\nserver d 10.0.0.1:80 id 4");
        assert_eq!(farm.servers().iter().map(|server| server.id()).collect::<Vec<_>>(), [2, 1, 5, 4]);
        assert_eq!(farm.find_server("#5").map(|server| server.index()), Some(2));
        assert_eq!(farm.find_server("b").map(|server| server.index()), Some(1));
        assert!(farm.find_server("#x").is_none());
    }
}
