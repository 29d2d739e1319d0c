//! Schedule of checks.
//!
//! Each checked server has a task that sleeps, checks and sleeps again. The first checks are spread over the shortest
//! interval, so that a thousand servers are not checked at once. After that each keeps its own beat, whatever a check
//! takes.

use super::attempt::{Limits, attempt};
use super::{Surroundings, agent};
use crate::farm::Farm;
use crate::membership::Wardens;
use crate::server::Server;
use crate::state::Operation;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Channel of further servers to watch, or whose names to resolve.
pub type Watchers = mpsc::UnboundedSender<(Arc<Farm>, Arc<Server>)>;

/// Checks the servers of all farms, for ever, and those that come. There is a task for each checked server, spawned on
/// the runtime that polls this (the control thread's); it ends when the server is removed. Dropping the future ends
/// all.
pub async fn run(wardens: Arc<Wardens>, farms: Vec<Arc<Farm>>, surroundings: Arc<dyn Surroundings>) {
    let (watchers, mut newcomers) = mpsc::unbounded_channel();
    // There is a single task of checks.
    let _ = wardens.checks.set(watchers);
    let servers = |farm: &Arc<Farm>| farm.servers().to_vec();
    let all: Vec<(Arc<Farm>, Arc<Server>)> =
        farms.iter().flat_map(|farm| servers(farm).into_iter().map(move |server| (farm.clone(), server))).collect();
    let checked: Vec<_> = all.iter().filter(|(_, server)| server.settings().check.enabled).cloned().collect();
    let shortest = checked.iter().map(|(_, server)| interval(server)).min().unwrap_or_default();
    let (now, count) = (Instant::now(), checked.len() as u32);
    let mut tasks = JoinSet::new();
    for (farm, server) in all {
        look_after(&mut tasks, farm, server);
    }
    for (place, (farm, server)) in (0u32..).zip(checked) {
        let delay = shortest.max(interval(&server)) * place / count;
        tasks.spawn(while_there(server.clone(), watch(farm, server, surroundings.clone(), now + delay)));
    }
    // A farm without servers may go.
    drop(farms);
    loop {
        tokio::select! {
            Some(_) = tasks.join_next() => {}
            Some((farm, server)) = newcomers.recv() => {
                if server.settings().check.enabled {
                    let first = Instant::now() + interval(&server);
                    tasks.spawn(while_there(server.clone(), watch(farm.clone(), server.clone(), surroundings.clone(), first)));
                }
                look_after(&mut tasks, farm, server);
            }
        }
    }
}

/// Tasks of a server beside its checks.
fn look_after(tasks: &mut JoinSet<()>, farm: Arc<Farm>, server: Arc<Server>) {
    if server.settings().agent.enabled {
        tasks.spawn(while_there(server.clone(), agent::watch(farm.clone(), server.clone())));
    }
    if !server.settings().slowstart.is_zero() {
        tasks.spawn(while_there(server.clone(), grow(farm, server)));
    }
}

/// Runs a future for ever, or until a server is removed.
async fn while_there(server: Arc<Server>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = server.departed() => {}
        () = work => {}
    }
}

async fn watch(farm: Arc<Farm>, server: Arc<Server>, surroundings: Arc<dyn Surroundings>, first: Instant) {
    let mut due = first;
    loop {
        tokio::select! {
            () = sleep_until(due) => {}
            () = server.hurried() => {
                let settings = &server.settings().check;
                due = due.min(Instant::now() + settings.fastinter.unwrap_or(settings.inter));
                sleep_until(due).await;
            }
        }
        if server.is_checked() && !server.admin().is_maint() {
            let limits = Limits {
                whole: server.settings().check.inter,
                connect: farm.context.connect_timeout,
                answer: farm.settings().check_timeout,
            };
            let outcome = attempt(&farm, &server, limits, &*surroundings).await;
            // A check that began before checks were stopped counts no more. A check that could not start is made at the
            // next beat.
            if let Some(outcome) = outcome.filter(|_| server.is_checked()) {
                farm.record_check(&server, outcome, Instant::now().into_std());
            }
        }
        due = next(due, interval(&server), Instant::now());
    }
}

/// Lets the weight of a server grow whenever it comes up.
async fn grow(farm: Arc<Farm>, server: Arc<Server>) {
    let step = (server.settings().slowstart / STEPS_OF_GROWTH).max(SHORTEST_STEP);
    loop {
        sleep_until(Instant::now() + step).await;
        farm.grow(&server, Instant::now().into_std());
    }
}

/// Number of steps in which a weight grows to its full size: as many as HAProxy's.
const STEPS_OF_GROWTH: u32 = 20;
const SHORTEST_STEP: Duration = Duration::from_millis(10);

/// Interval to the next check, by the server's state after the last.
fn interval(server: &Server) -> Duration {
    let (settings, state) = (&server.settings().check, server.state());
    let chosen = match state.health {
        health if health == server.settings().rules().best() => None,
        0 if state.operation == Operation::Stopped => settings.downinter,
        _ => settings.fastinter,
    };
    chosen.unwrap_or(settings.inter).max(SHORTEST_INTERVAL)
}

/// The next beat that is not over. Beats that a slow check has missed are left out.
fn next(due: Instant, interval: Duration, now: Instant) -> Instant {
    let late = now.saturating_duration_since(due).as_nanos();
    let missed = u32::try_from(late / interval.as_nanos().max(1)).unwrap_or(u32::MAX - 1);
    due + interval.saturating_mul(missed + 1)
}

/// Smallest unit of time, as in HAProxy.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckStatus, LastCheck};
    use crate::exhaustion::EXHAUSTION;
    use crate::fixture::{Nowhere, farm, logged};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use tokio::net::TcpListener;

    #[test]
    fn beats_are_kept_and_missed_ones_left_out() {
        let (start, beat) = (Instant::now(), Duration::from_secs(2));
        let after = |millis| next(start, beat, start + Duration::from_millis(millis)) - start;
        assert_eq!(after(10), beat);
        assert_eq!(after(1999), beat);
        assert_eq!(after(2001), beat * 2);
        assert_eq!(after(9000), beat * 5);
    }

    #[test]
    fn intervals_follow_the_state() {
        let farm = farm("server s 10.0.0.1:80 check inter 4s fastinter 1s downinter 9s rise 2 fall 2");
        let server = &farm.servers()[0];
        let after = |status| {
            farm.record_check(server, LastCheck { status, ..LastCheck::default() }, std::time::Instant::now());
            interval(server).as_secs()
        };
        assert_eq!(interval(server).as_secs(), 1);
        assert_eq!(after(CheckStatus::L4Ok), 4);
        assert_eq!(after(CheckStatus::L4Timeout), 1);
        assert_eq!(after(CheckStatus::L4Timeout), 9);
        assert_eq!(after(CheckStatus::L4Ok), 1);
        assert_eq!(after(CheckStatus::L4Ok), 4);
    }

    #[tokio::test]
    async fn a_server_is_watched_as_it_goes_and_comes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (farm, log) = logged(&format!(
            "option log-health-checks\ndefault-server check inter 10ms rise 2 fall 2\nserver s {address}\nserver t {address} no-check"
        ));
        let checks = tokio::spawn(run(farm.context.wardens.clone(), vec![farm.clone()], Arc::new(Nowhere)));
        let story = async {
            log.written("Health check for server be/s succeeded, reason: Layer4 check passed, check duration: ").await;
            drop(listener);
            log.written("Server be/s is DOWN. 1 active and 0 backup servers left.").await;
            assert!(!farm.servers()[0].is_up());
            let _listener = TcpListener::bind(address).await.unwrap();
            log.written("Server be/s is UP. 2 active and 0 backup servers online.").await;
        };
        tokio::time::timeout(Duration::from_secs(20), story).await.unwrap();
        assert_eq!(farm.servers()[1].last_check(), LastCheck::default());
        checks.abort();
    }

    /// The limit of descriptors is per process, so this runs in a process of its own.
    #[test]
    fn descriptors_that_run_out_say_nothing_of_a_server() {
        const NAME: &str = "check::schedule::tests::descriptors_that_run_out_say_nothing_of_a_server";
        const ALONE: &str = "TERSE_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let program = std::env::current_exe().unwrap();
            let output = std::process::Command::new(program).args(["--exact", NAME]).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), without_descriptors()).await.unwrap() });
    }

    async fn without_descriptors() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let (farm, log) = logged(&format!(
            "option log-health-checks\nserver s {address} check inter 10ms fall 2 agent-check agent-port {} agent-inter 10ms",
            nobody.port()
        ));
        let checks = tokio::spawn(run(farm.context.wardens.clone(), vec![farm.clone()], Arc::new(Nowhere)));
        log.written("Health check for server be/s succeeded, reason: Layer4 check passed, check duration: ").await;
        let server = &farm.servers()[0];
        while server.last_agent().status != CheckStatus::L4Connection {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let whole = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..whole }).unwrap();
        log.take();
        let mut refused = 0;
        while refused < 5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            refused += usize::from(EXHAUSTION.take().is_some_and(|line| line.contains(" checks ")));
        }
        setrlimit(Resource::Nofile, whole).unwrap();
        assert!(server.is_up());
        assert_eq!((log.take(), server.last_check().status), (vec![], CheckStatus::L4Ok));
        assert!(server.last_agent().info.contains("ECONNREFUSED"), "{}", server.last_agent());
        drop(listener);
        log.written("Server be/s is DOWN.").await;
        checks.abort();
    }
}
