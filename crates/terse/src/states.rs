//! States of proxies and servers on the terminal and in their logs: at `SIGHUP`, and when they stop.

use crate::service::Voice;
use terse_balance::Count;
use terse_proxy::log::Level;
use terse_proxy::plan::{Backend, Plan};

/// Reports the state of each server and backend.
pub fn servers(plan: &Plan, voice: &mut Voice) {
    for backend in plan.backends.now().iter() {
        let name = &backend.name;
        for server in backend.farm.servers().iter() {
            let text = format!(
                "SIGHUP: Server {name}/{} is {}. Conn: {} act, {} pend, {} tot.",
                server.name(),
                if server.is_up() { "UP" } else { "DOWN" },
                server.served(),
                server.queued(),
                server.counters.total(Count::Sessions),
            );
            voice.say(&backend.journal, Level::Notice, &text);
        }
        let text = format!("SIGHUP: Proxy {name} {}. {}", availability(backend), connections(backend, plan));
        voice.say(&backend.journal, Level::Notice, &text);
    }
}

/// Reports for each proxy that it has stopped, with the traffic that it has carried. A `listen` section is one proxy.
pub fn stopped(plan: &Plan, voice: &mut Voice) {
    for frontend in &plan.frontends {
        let carried = frontend.own_backend.as_ref().map_or(0, |backend| backend.tally.totals().sessions);
        let text = farewell(&frontend.name, frontend.tally.totals().connections, carried);
        voice.say(&frontend.log.journal, Level::Warning, &text);
    }
    for backend in plan.backends.now().iter().filter(|backend| backend.twin.is_none()) {
        voice.say(&backend.journal, Level::Warning, &farewell(&backend.name, 0, backend.tally.totals().sessions));
    }
}

fn farewell(name: &str, front: u64, back: u64) -> String {
    format!("Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back}).")
}

fn availability(backend: &Backend) -> String {
    match backend.farm.up() {
        _ if backend.farm.servers().is_empty() => "has no servers".into(),
        (0, 0) => "has no server available !".into(),
        (0, _) => "is running on backup servers !".into(),
        (active, backup) => format!("has {active} active servers and {backup} backup servers available"),
    }
}

fn connections(backend: &Backend, plan: &Plan) -> String {
    let front = backend.twin.and_then(|twin| plan.frontends.get(twin)).map(|frontend| frontend.tally.totals()).unwrap_or_default();
    let back = backend.tally.totals();
    let (waiting, unassigned) = backend.farm.queued();
    format!(
        "Conn: act(FE+BE): {}+{}, {waiting} pend ({unassigned} unass), tot(FE+BE): {}+{}.",
        front.current, back.current, front.connections, back.sessions
    )
}
