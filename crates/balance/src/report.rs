//! Rows and columns about servers that the stats socket prints.

use crate::farm::Farm;
use crate::server::Server;
use crate::state::Operation;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The first lines of `show servers state`: the format's version, and the names of the columns.
pub const STATE_HEADER: &str = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight \
    srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id \
    srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port";

/// The line of `show servers state` (format version 1), without its line end.
pub fn state_line(farm: &Farm, server: &Server, now: Instant) -> String {
    let (settings, state, check) = (server.settings(), server.state(), server.last_check());
    let (address, port) = shown_address(server);
    let aim = server.aim();
    let paused = if state.admin.is_maint() { PAUSED } else { 0 };
    let (name, place) = (server.name_in_dns(), server.place_in_dns());
    let (fqdn, record) = match name.as_deref() {
        Some(record) if record.starts_with('_') => (place.as_deref().unwrap_or("-"), record),
        name => (name.unwrap_or("-"), "-"),
    };
    format!(
        "{} {} {} {} {address} {} {} {} {} {} {} {} {} {} {} {} {} {fqdn} {port} {record} {} {} {} {} {}",
        farm.id(),
        farm.name(),
        server.id(),
        server.name(),
        state.operation as u8,
        state.admin.0 | if server.is_moved_in_dns() { MOVED_IN_DNS } else { 0 },
        server.weight(),
        settings.weight,
        since_change(farm, server, now).as_secs(),
        check.status as u8,
        check.status.result(),
        state.health,
        if settings.check.enabled { CONFIGURED | enabled(server.is_checked()) | paused } else { 0 },
        if settings.agent.enabled { AGENT | CONFIGURED | enabled(server.is_asked()) } else { 0 },
        u8::from(farm.has_own_id()),
        u8::from(settings.id.is_some()),
        server.security_number(),
        aim.check_port.unwrap_or(0),
        shown_ip(aim.check_address),
        shown_ip(aim.agent_address),
        aim.agent_port.unwrap_or(0),
    )
}

/// The first line of `show servers conn`: the names of the columns.
pub const CONNECTIONS_HEADER: &str = "# bkname/svname bkid/svid addr port - purge_delay served used_cur used_max need_est idle_sess \
    unsafe_nb safe_nb idle_lim idle_cur idle_per_thr[0]";

/// The line of `show servers conn`, without its line end. A request that holds a slot has one connection.
pub fn connections_line(farm: &Farm, server: &Server) -> String {
    let (address, port) = shown_address(server);
    let pool = &server.settings().pool;
    let (farm_id, purge_ms) = (farm.id(), pool.purge_delay.as_millis());
    let (used, most) = (server.served(), server.served_max());
    let limit = pool.max_idle.map_or("-1".into(), |most| most.to_string());
    let (farm, name, id) = (farm.name(), server.name(), server.id());
    let (needed, shared, own) = (server.idle.needed(), server.idle.shared(), server.idle.own());
    format!(
        "{farm}/{name} {farm_id}/{id} {address} {port} - {purge_ms} {used} {used} {most} {needed} {own} 0 {shared} {limit} {shared}"
    )
}

/// Flag of the column `srv_admin_state`: an operator has changed the name in the DNS.
pub(crate) const MOVED_IN_DNS: u8 = 0x40;

/// Flags of the columns `srv_check_state` and `srv_agent_state`.
pub(crate) const CONFIGURED: u8 = 0x02;
pub(crate) const ENABLED: u8 = 0x04;
const PAUSED: u8 = 0x08;
const AGENT: u8 = 0x10;

const fn enabled(is: bool) -> u8 {
    if is { ENABLED } else { 0 }
}

/// Address and port of a server in tables: `-` without an address.
fn shown_address(server: &Server) -> (String, i32) {
    let destination = server.address().destination();
    let known = |ip: IpAddr| Some(ip).filter(|ip| server.name_in_dns().is_none() || !ip.is_unspecified());
    destination.map_or(("-".into(), 0), |found| (shown_ip(known(found.ip)), found.port.number().into()))
}

fn shown_ip(ip: Option<IpAddr>) -> String {
    ip.map_or("-".into(), |ip| ip.to_string())
}

/// Text of `show stat`'s column `status`: `UP`, `DOWN 1/2`, `no check`, `MAINT`, `DRAIN`, ... A server that tracks
/// another shows the health of that one.
pub fn status(server: &Server) -> String {
    let state = server.state();
    if state.admin.is_unresolved() {
        return "MAINT (resolution)".into();
    }
    if state.admin.is_maint() {
        let via = server.leader_name().filter(|_| state.admin.is_inherited_maint());
        return via.map_or("MAINT".into(), |name| format!("MAINT (via {name})"));
    }
    let followed = followed(server);
    let checked = followed.as_deref().unwrap_or(server);
    let (settings, health) = (checked.settings(), checked.state());
    let well = health.health >= settings.rules().best();
    let going_down = || format!("{}/{}", (health.health + 1).saturating_sub(settings.check.rise), settings.check.fall);
    let falls = settings.check.enabled && !well;
    match state.operation {
        Operation::Stopped if settings.agent.enabled && health.denied => "DOWN (agent)".into(),
        Operation::Stopped if settings.check.enabled && health.health == 0 => "DOWN".into(),
        Operation::Stopped if settings.check.enabled || settings.agent.enabled => {
            format!("DOWN {}/{}", health.health, settings.check.rise)
        }
        Operation::Stopped => "DOWN".into(),
        Operation::Stopping if falls => format!("NOLB {}", going_down()),
        Operation::Stopping => "NOLB".into(),
        _ if state.admin.is_drain() && settings.agent.enabled => "DRAIN (agent)".into(),
        _ if state.admin.is_drain() && falls => format!("DRAIN {}", going_down()),
        _ if state.admin.is_drain() => "DRAIN".into(),
        _ if !settings.check.enabled => "no check".into(),
        _ if falls => format!("UP {}", going_down()),
        _ => "UP".into(),
    }
}

/// Last server of the chain of tracking, if the server tracks another.
fn followed(server: &Server) -> Option<Arc<Server>> {
    let mut last = server.leader()?;
    while let Some(next) = last.leader() {
        last = next;
    }
    Some(last)
}

/// Time that the server has been in its state (`lastchg`).
pub fn since_change(farm: &Farm, server: &Server, now: Instant) -> Duration {
    let (changed, _) = server.changed_ms();
    farm.since_start(now).saturating_sub(Duration::from_millis(changed))
}

/// Total time that it was down (`downtime`).
pub fn downtime(farm: &Farm, server: &Server, now: Instant) -> Duration {
    let (_, down) = server.changed_ms();
    let current = if server.operation() == Operation::Stopped { since_change(farm, server, now) } else { Duration::ZERO };
    Duration::from_millis(down) + current
}

/// Time since the backend got a server or lost its last, and its total time without any.
pub fn backend_times(farm: &Farm, now: Instant) -> (Duration, Duration) {
    let outage = *farm.changes.lock().unwrap_or_else(PoisonError::into_inner);
    let since = farm.since_start(now).saturating_sub(outage.changed);
    (since, if farm.is_up() { outage.down } else { outage.down + since })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckStatus, LastCheck};
    use crate::fixture::farm;
    use crate::state::AdminOrder;

    #[test]
    fn state_lines_have_all_columns() {
        let farm = farm(
            "default-server rise 1 fall 1\nserver a 10.0.0.1:80\nserver b [::1]:81 check id 9 weight 3 port 82 addr 10.0.0.9\n\
             server c /run/c\nserver d 10.0.0.1:-1000\nserver e :",
        );
        let [a, b, c, d, e] = &farm.servers()[..] else { panic!() };
        let now = farm.context.started;
        let columns = STATE_HEADER.lines().nth(1).unwrap().split(' ').count() - 1;
        assert!(farm.servers().iter().all(|server| state_line(&farm, server, now).split(' ').count() == columns));
        assert_eq!(state_line(&farm, a, now), "3 be 1 a 10.0.0.1 2 0 1 1 0 1 0 1 0 0 0 0 - 80 - 0 0 - - 0");
        farm.record_check(b, LastCheck { status: CheckStatus::L4Ok, ..LastCheck::default() }, now);
        assert_eq!(state_line(&farm, b, now), "3 be 9 b ::1 2 0 3 3 0 6 3 1 6 0 0 1 - 81 - 0 82 10.0.0.9 - 82");
        farm.set_admin(b, AdminOrder::Maint, now);
        farm.set_weight(b, 5, now);
        let later = now + Duration::from_secs(4);
        assert_eq!(state_line(&farm, b, later), "3 be 9 b ::1 0 1 5 3 4 6 3 0 14 0 0 1 - 81 - 0 82 10.0.0.9 - 82");
        assert_eq!(state_line(&farm, c, now), "3 be 3 c - 2 0 1 1 0 1 0 1 0 0 0 0 - 0 - 0 0 - - 0");
        assert_eq!(state_line(&farm, d, now), "3 be 4 d 10.0.0.1 2 0 1 1 0 1 0 1 0 0 0 0 - 64536 - 0 0 - - 0");
        assert_eq!(state_line(&farm, e, now), "3 be 5 e 0.0.0.0 2 0 1 1 0 1 0 1 0 0 0 0 - 0 - 0 0 - - 0");
    }

    #[test]
    fn words_for_every_state() {
        let farm = farm("server a 10.0.0.1:80\nserver b 10.0.0.2:80 check rise 2 fall 3");
        let ([a, b], now) = (&farm.servers()[..], Instant::now()) else { panic!() };
        let record = |status| farm.record_check(b, LastCheck { status, ..LastCheck::default() }, now);
        assert_eq!((status(a), status(b)), ("no check".into(), "UP 1/3".into()));
        record(CheckStatus::L4Ok);
        assert_eq!(status(b), "UP");
        record(CheckStatus::L4Timeout);
        assert_eq!(status(b), "UP 2/3");
        record(CheckStatus::L4Timeout);
        record(CheckStatus::L4Timeout);
        assert_eq!(status(b), "DOWN");
        record(CheckStatus::L4Ok);
        assert_eq!(status(b), "DOWN 1/2");
        record(CheckStatus::L4Ok);
        record(CheckStatus::L7OkStopping);
        assert_eq!(status(b), "NOLB");
        farm.set_admin(a, AdminOrder::Drain, now);
        assert_eq!(status(a), "DRAIN");
        farm.set_admin(a, AdminOrder::Maint, now);
        assert_eq!(status(a), "MAINT");
    }
}
