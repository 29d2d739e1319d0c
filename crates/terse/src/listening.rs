//! From the plan's `bind` lines to the listeners of each worker.

use crate::args::{Action, Arguments};
use crate::process::settings::{Account, Who};
use crate::process::{ProcessSettings, identity, sys};
use crate::sockets::unix::FileOptions;
use crate::sockets::{Endpoint, Listening, Options, Wanted};
use crate::{circles, intakes};
use socket2::{Domain, SockRef};
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use terse_admin::{AdminSettings, StatsSocket};
use terse_config::{Diagnostic, Diagnostics, Severity};
use terse_proxy::access::{Access, Listener, Turn};
use terse_proxy::plan::{Bind, Plan};
use terse_proxy::settings::{BindSettings, Mode};

/// Listeners of a worker, each with the index of its `bind` line.
pub type Listeners = Vec<(usize, Access)>;

/// Returns the sockets to open for all `bind` lines, followed by those for all `stats socket` lines, `log-forward` sections and
/// `peers` sections. Addresses that cannot be parsed and users that do not exist are alerts.
pub fn wanted(
    plan: &Plan,
    admin: &AdminSettings,
    process: &ProcessSettings,
    arguments: &Arguments,
    diagnostics: &mut Diagnostics,
) -> Vec<Wanted> {
    let mut all = Vec::new();
    let mut add = |line: usize, settings: &BindSettings, owner: &str, count: usize| {
        let place = &settings.place;
        let owner = format!("[{}:{}] for frontend {owner}", place.file, place.line);
        all.extend(of_line(Line { line, settings, owner, count }, process, arguments, diagnostics));
    };
    for bind in plan.binds() {
        let name = plan.frontends.get(bind.frontend).map_or("", |frontend| &frontend.name);
        add(bind.index, &bind.settings, name, chosen(bind, plan.process.workers).len());
    }
    for (index, socket) in admin.sockets.iter().enumerate() {
        add(plan.binds().len() + index, &with_backlog(&socket.bind, None, admin.maxconn()), "GLOBAL", 1);
    }
    for (index, (_, forwarder, bind)) in intakes::binds(plan).enumerate() {
        let bind = with_backlog(bind, forwarder.settings.backlog, forwarder.settings.maxconn);
        add(plan.binds().len() + admin.sockets.len() + index, &bind, &forwarder.name, 1);
    }
    let first = circles::first_line(plan, admin.sockets.len());
    for (index, (circle, _, name, bind)) in circles::binds(plan).enumerate() {
        let most = plan.peers.get(circle).map_or(0, |circle| PEER_CONNECTIONS * (circle.group.peers.len() + 1));
        add(first + index, &with_backlog(bind, None, most), name, 1);
    }
    tell_shared(plan, &all, diagnostics);
    all
}

/// Warns of an address that two frontends name: the kernel takes both, and gives each a part of the connections.
fn tell_shared(plan: &Plan, wanted: &[Wanted], diagnostics: &mut Diagnostics) {
    let mut first: HashMap<_, &Bind> = HashMap::new();
    for Wanted { line, endpoint, options, .. } in wanted {
        let Endpoint::Ip(address) = endpoint else { continue };
        let Some(bind) = plan.binds().get(*line).filter(|_| address.port() != 0) else { continue };
        let other = *first.entry((address, &options.interface)).or_insert(bind);
        if other.frontend != bind.frontend {
            let name = plan.frontends.get(other.frontend).map_or("", |frontend| &frontend.name);
            let reason = format!("'bind' : frontend '{name}' listens on {address} too, so each gets a part of the connections");
            let hint = format!("the other is at {}:{}", other.settings.place.file, other.settings.place.line);
            diagnostics.push(Diagnostic::new(Severity::Warning, &bind.settings.place, reason).hint(Some(hint)));
        }
    }
}

/// Returns a line with the backlog that it does not set: its section's, or as many connections as it may have, or its section.
fn with_backlog(bind: &BindSettings, said: Option<u32>, most: usize) -> BindSettings {
    let limits = [bind.maxconn.unwrap_or(0), most];
    let computed = limits.into_iter().find(|limit| *limit > 0).and_then(|limit| u32::try_from(limit).ok());
    BindSettings { backlog: bind.backlog.or(said).or(computed), ..bind.clone() }
}

/// Connections of a `peers` section for each peer, this process included, as HAProxy counts them.
const PEER_CONNECTIONS: usize = 3;

/// Gives each address the backlog that its line does not set: as many connections as it may have, or its frontend, or the process.
pub fn settle(wanted: &mut [Wanted], plan: &Plan) {
    let of_process = plan.limits.connections.load(Relaxed);
    for wanted in wanted.iter_mut().filter(|wanted| wanted.options.backlog.is_none()) {
        let Some(bind) = plan.binds().get(wanted.line) else { continue };
        let of_frontend = plan.frontends.get(bind.frontend).map_or(0, |frontend| frontend.tally.limit());
        let limits = [bind.settings.maxconn.unwrap_or(0), of_frontend, of_process];
        wanted.options.backlog = limits.into_iter().find(|limit| *limit > 0).and_then(|limit| u32::try_from(limit).ok());
    }
}

/// Returns the sockets to open for the master's command line. Lines are numbered in the order of `sockets`.
pub fn for_master(
    sockets: &[StatsSocket],
    process: &ProcessSettings,
    arguments: &Arguments,
    diagnostics: &mut Diagnostics,
) -> Vec<Wanted> {
    let line = |(line, socket)| {
        let StatsSocket { bind, .. }: &StatsSocket = socket;
        Line { line, settings: bind, owner: "-S for the master".into(), count: 1 }
    };
    sockets.iter().enumerate().map(line).flat_map(|line| of_line(line, process, arguments, diagnostics)).collect()
}

struct Line<'a> {
    line: usize,
    settings: &'a BindSettings,
    owner: String,
    count: usize,
}

fn of_line(line: Line<'_>, process: &ProcessSettings, arguments: &Arguments, diagnostics: &mut Diagnostics) -> Vec<Wanted> {
    let Line { line, settings, owner, count } = line;
    let prefix = process.unix.prefix.as_deref().unwrap_or_default();
    let endpoints = Endpoint::parse(&settings.address, prefix).unwrap_or_else(|reason| {
        diagnostics.alert(&settings.place, reason);
        Vec::new()
    });
    // A serving process may have received it from the process before, and reports it itself otherwise.
    for number in endpoints.iter().filter_map(Endpoint::descriptor).filter(|_| arguments.action == Action::Check) {
        if let Err(error) = sys::duplicate(number) {
            let reason = format!("cannot use file descriptor '{number}' : {error}");
            let hint = String::from("whoever starts the process opens it");
            diagnostics.push(Diagnostic::new(Severity::Alert, &settings.place, reason).hint(Some(hint)));
        }
    }
    let options = options(settings, process, arguments, diagnostics);
    let wanted = |endpoint| Wanted { line, owner: owner.clone(), endpoint, options: options.clone(), count };
    endpoints.into_iter().map(wanted).collect()
}

/// Describes the listening addresses of the plan's proxies and the stats sockets, a line of text an address:
/// `web listens on https://192.0.2.1:443`.
pub fn told(sockets: &[Listening], plan: &Plan) -> Vec<String> {
    let (mut lines, mut seen) = (Vec::new(), HashSet::new());
    for listening in sockets {
        let address = SockRef::from(&listening.socket).local_addr().ok().and_then(|address| address.as_socket());
        let is_ip = address.is_some();
        let address = address.map_or_else(|| listening.endpoint.to_string(), |address| address.to_string());
        let line = match plan.binds().get(listening.line) {
            Some(bind) => {
                let frontend = plan.frontends.get(bind.frontend);
                let scheme = match (frontend.is_some_and(|frontend| frontend.mode == Mode::Http), bind.tls.is_some()) {
                    _ if !is_ip => "",
                    (true, true) => "https://",
                    (true, false) => "http://",
                    (false, true) => "tls://",
                    (false, false) => "tcp://",
                };
                format!("{} listens on {scheme}{address}", frontend.map_or("", |frontend| &frontend.name))
            }
            None => format!("Commands are taken on {address}"),
        };
        if seen.insert(line.clone()) {
            lines.push(line);
        }
    }
    if lines.len() > MOST_TOLD {
        let more = lines.split_off(MOST_TOLD - 1).len();
        lines.push(format!("... and on {more} more addresses"));
    }
    lines
}

/// Lines about addresses at the start: a file of a thousand binds does not fill the terminal.
const MOST_TOLD: usize = 20;

/// Distributes the sockets among the workers. Of sockets that come once for each worker, each worker that may accept on the line
/// gets its own. Inherited sockets, whose number the starter of this process chose, go each to one worker after the other. The
/// rest, shared by all workers, go round among them.
pub fn deal(sockets: Vec<Listening>, plan: &Plan) -> Vec<Listeners> {
    let workers = plan.process.workers;
    let mut listeners: Vec<Listeners> = (0..workers).map(|_| Vec::new()).collect();
    let (mut turns, mut inherited) = (vec![0; plan.binds().len()], 0);
    for listening in sockets {
        let Some(bind) = plan.binds().get(listening.line) else { continue };
        let (line, chosen) = (listening.line, chosen(bind, workers));
        let turn = match listening.endpoint {
            Endpoint::Inherited(_) => &mut inherited,
            _ if listening.own || chosen.len() == 1 => &mut turns[line],
            _ => {
                let round = Turn::round(listener(listening), chosen.len());
                chosen.iter().zip(round).for_each(|(worker, turn)| listeners[*worker].push((line, Access::Shared(turn))));
                continue;
            }
        };
        listeners[chosen[*turn % chosen.len()]].push((line, Access::Own(listener(listening))));
        *turn += 1;
    }
    listeners
}

/// Returns the workers that may accept on a line; all if it sets nothing, or names only workers that do not exist.
fn chosen(bind: &Bind, workers: usize) -> Vec<usize> {
    let mask = bind.settings.workers;
    let named: Vec<usize> = (0..workers.min(64)).filter(|worker| mask >> worker & 1 == 1).collect();
    if named.is_empty() { (0..workers).collect() } else { named }
}

fn options(line: &BindSettings, process: &ProcessSettings, arguments: &Arguments, diagnostics: &mut Diagnostics) -> Options {
    let mut find = |name: &Option<String>, default: &Option<Account>, kind| {
        let own = name.as_deref().map(|name| Account { who: Who::from(name), place: line.place.clone() });
        own.as_ref().or(default.as_ref()).and_then(|account| identity::look_up(account, kind, diagnostics))
    };
    Options {
        backlog: line.backlog,
        interface: line.interface.clone(),
        v6only: line.v6only,
        transparent: line.transparent,
        defer_accept: line.defer_accept,
        save_syn: line.save_syn,
        fast_open: line.fast_open,
        mss: line.mss,
        user_timeout: line.user_timeout,
        signature: line.signature.clone(),
        congestion: line.congestion.clone(),
        shared: process.shared_sockets || arguments.no_reuseport,
        file: FileOptions {
            mode: line.mode.or(process.unix.mode),
            user: find(&line.user, &process.unix.user, identity::Kind::User),
            group: find(&line.group, &process.unix.group, identity::Kind::Group),
        },
    }
}

/// Returns the listener on a socket.
pub fn listener(listening: Listening) -> Listener {
    serving(listening.socket)
}

/// The same of the socket alone.
pub fn serving(socket: OwnedFd) -> Listener {
    match SockRef::from(&socket).domain() {
        Ok(Domain::UNIX) => Listener::Unix(socket.into()),
        _ => Listener::Tcp(socket.into()),
    }
}
