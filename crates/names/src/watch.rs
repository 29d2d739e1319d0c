//! Watching the names of servers: one task for each name, on the control thread. A server that gets another name goes to the task of
//! that one; the task of a name that no server has any more ends.

use crate::assignment::{self, Seat};
use crate::client::{Families, Resolvers, Status};
use crate::message::{Kind, Service, normal};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;
use terse_balance::{Farm, Port, Server, Wardens};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Watches the names of all servers that have `resolvers`, for ever, and those that operators give them; dropping the future ends it.
pub async fn run(wardens: Arc<Wardens>, sections: Vec<Arc<Resolvers>>, farms: Vec<Arc<Farm>>) {
    let (give, mut moved) = mpsc::unbounded_channel();
    let mut names: BTreeMap<Key, Vec<Watched>> = BTreeMap::new();
    wardens.tell_of_names(give);
    for farm in &farms {
        for server in farm.servers().iter() {
            let Some(key) = Key::of(server) else { continue };
            names.entry(key).or_default().push(Watched::new(farm, server));
        }
    }
    // A farm without servers may go.
    drop(farms);
    let sections = sections.into_iter().map(|section| (section.name.clone(), section)).collect();
    let mut watches = Watches { sections, tasks: JoinSet::new(), doors: HashMap::new() };
    for (key, servers) in names {
        watches.begin(key, servers);
    }
    loop {
        tokio::select! {
            Some(ended) = watches.tasks.join_next() => watches.forget(ended.ok()),
            Some((farm, server)) = moved.recv() => watches.admit(&farm, &server),
        }
    }
}

/// All names that are watched.
struct Watches {
    sections: HashMap<Arc<str>, Arc<Resolvers>>,
    tasks: JoinSet<Key>,
    /// The ways to the tasks.
    doors: HashMap<Key, mpsc::UnboundedSender<Watched>>,
}

impl Watches {
    /// Watches a name for these servers.
    fn begin(&mut self, key: Key, servers: Vec<Watched>) {
        let Some(resolvers) = self.sections.get(&key.section).cloned() else { return };
        let families = if key.prefer_v4 { Families::V4First } else { Families::V6First };
        let (door, newcomers) = mpsc::unbounded_channel();
        self.doors.insert(key.clone(), door);
        self.tasks.spawn(Watch { resolvers, key, families, servers, newcomers, seen: Vec::new(), last_good: None }.run());
    }

    /// Watches the name that a server has now. The task of its old one finds that it has gone.
    fn admit(&mut self, farm: &Arc<Farm>, server: &Arc<Server>) {
        let Some(key) = Key::of(server) else { return };
        let watched = Watched { moved: Some(Instant::now()), ..Watched::new(farm, server) };
        let refused = match self.doors.get(&key) {
            Some(door) => door.send(watched).err().map(|refused| refused.0),
            None => Some(watched),
        };
        if let Some(watched) = refused {
            self.begin(key, vec![watched]);
        }
    }

    fn forget(&mut self, ended: Option<Key>) {
        if let Some(key) = ended.filter(|key| self.doors.get(key).is_some_and(mpsc::UnboundedSender::is_closed)) {
            self.doors.remove(&key);
        }
    }
}

/// What is asked: servers of one key share their answers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    section: Arc<str>,
    name: String,
    prefer_v4: bool,
}

impl Key {
    fn of(server: &Server) -> Option<Key> {
        let resolution = &server.settings().resolution;
        let (section, _) = resolution.resolvers.as_ref()?;
        Some(Key { section: section.clone(), name: normal(&server.name_in_dns()?), prefer_v4: resolution.prefer_v4 })
    }
}

/// A server whose name is watched.
struct Watched {
    farm: Arc<Farm>,
    server: Arc<Server>,
    /// When it got this name, if it had another one before: it keeps its address as if the name had been found then.
    moved: Option<Instant>,
    /// The place of the service that it stands for.
    service: Option<Service>,
}

/// One name.
struct Watch {
    resolvers: Arc<Resolvers>,
    key: Key,
    families: Families,
    servers: Vec<Watched>,
    /// Servers that have got this name.
    newcomers: mpsc::UnboundedReceiver<Watched>,
    /// Addresses, and when an answer named them last.
    seen: Vec<(IpAddr, Instant)>,
    /// When an answer was good last.
    last_good: Option<Instant>,
}

impl Watch {
    /// Goes on as long as any server has the name.
    async fn run(mut self) -> Key {
        loop {
            while let Ok(newcomer) = self.newcomers.try_recv() {
                self.admit(newcomer);
            }
            self.let_go();
            // The tasks share a thread with who sends newcomers: none is lost between the look and the end.
            if self.servers.is_empty() {
                return self.key;
            }
            let outcome = match self.key.name.starts_with('_') {
                true => self.look_for_services().await,
                false => self.look_for_addresses().await,
            };
            self.let_go();
            let now = Instant::now();
            match outcome {
                Ok(()) => self.last_good = Some(now),
                Err(status) => {
                    let hold = self.resolvers.settings.hold.of(status);
                    let is_late = |good: Option<Instant>| good.is_none_or(|good| now.saturating_duration_since(good) >= hold);
                    let late = self.servers.iter().filter(|watched| is_late(self.last_good.max(watched.moved)));
                    late.for_each(|watched| watched.lose(why(status)));
                }
            }
            tokio::select! {
                () = sleep(self.resolvers.settings.interval) => {}
                Some(newcomer) = self.newcomers.recv() => self.admit(newcomer),
            }
        }
    }

    fn admit(&mut self, newcomer: Watched) {
        if !self.servers.iter().any(|watched| Arc::ptr_eq(&watched.server, &newcomer.server)) {
            self.servers.push(newcomer);
        }
    }

    /// Lets servers go that were removed, or have got another name.
    fn let_go(&mut self) {
        let key = &self.key;
        self.servers.retain(|watched| !watched.server.is_gone() && Key::of(&watched.server).as_ref() == Some(key));
    }

    async fn look_for_addresses(&mut self) -> Result<(), Status> {
        let answered = self.resolvers.addresses(&self.key.name, self.families).await?;
        self.let_go();
        let now = Instant::now();
        for ip in &answered.answer.addresses {
            match self.seen.iter_mut().find(|(seen, _)| seen == ip) {
                Some((_, at)) => *at = now,
                None => self.seen.push((*ip, now)),
            }
        }
        let obsolete = self.resolvers.settings.hold.obsolete;
        self.seen.retain(|(_, at)| *at == now || now.duration_since(*at) < obsolete);
        let offered: Vec<IpAddr> = self.seen.iter().map(|(ip, _)| *ip).collect();
        let seats: Vec<Seat> = self.servers.iter().map(Watched::seat).collect();
        for (watched, given) in self.servers.iter().zip(assignment::addresses(&seats, &offered)) {
            match given {
                Some(ip) => watched.gain(ip, None, &answered.by, &self.resolvers),
                None => watched.lose("No IP for server"),
            }
        }
        Ok(())
    }

    async fn look_for_services(&mut self) -> Result<(), Status> {
        let answered = self.resolvers.ask(&self.key.name, &[Kind::Service]).await?;
        let held: Vec<_> = self.servers.iter().map(|watched| watched.service.clone()).collect();
        let given = assignment::services(&held, &answered.answer.services);
        for (watched, service) in self.servers.iter_mut().zip(given) {
            watched.service = service;
            let Some(service) = &watched.service else {
                watched.lose("entry removed from SRV record");
                continue;
            };
            let others = answered.answer.others.iter();
            let told: Vec<IpAddr> = others.filter(|(name, _)| *name == service.target).map(|(_, ip)| *ip).collect();
            let wanted_first = |ip: &IpAddr| ip.is_ipv4() == (self.families == Families::V4First);
            let found = match told.iter().find(|ip| wanted_first(ip)).or(told.first()) {
                Some(ip) => Ok(*ip),
                None => {
                    let answered = self.resolvers.addresses(&service.target, self.families).await;
                    answered.and_then(|answered| answered.answer.addresses.first().copied().ok_or(Status::Other))
                }
            };
            match found {
                Ok(ip) => watched.gain(ip, Some(Port::Fixed(service.port)), &answered.by, &self.resolvers),
                Err(status) => watched.lose(why(status)),
            }
            let weight = assignment::weight(service);
            if !watched.server.settings().resolution.ignores_weights && watched.server.weight() != weight {
                watched.farm.set_weight(&watched.server, weight, Instant::now());
            }
        }
        Ok(())
    }
}

impl Watched {
    fn new(farm: &Arc<Farm>, server: &Arc<Server>) -> Watched {
        Watched { farm: farm.clone(), server: server.clone(), moved: None, service: None }
    }

    fn seat(&self) -> Seat {
        let resolution = &self.server.settings().resolution;
        let destination = self.server.address().destination();
        let address = destination.map(|found| found.ip).filter(|ip| *ip != IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Seat {
            address,
            group: Arc::as_ptr(&self.farm).addr(),
            shares: resolution.shares_addresses,
            networks: resolution.networks.clone(),
        }
    }

    /// Takes an address, and a port where the name has one; without one the server keeps its own.
    fn gain(&self, ip: IpAddr, port: Option<Port>, by: &str, resolvers: &Resolvers) {
        if self.farm.set_address(&self.server, ip, port, by).is_some() {
            resolvers.count_update(by);
        }
        if self.server.admin().is_unresolved() {
            self.farm.set_resolved(&self.server, Ok(()), Instant::now());
        }
    }

    fn lose(&self, why: &str) {
        if !self.server.admin().is_unresolved() {
            self.farm.set_resolved(&self.server, Err(why), Instant::now());
        }
    }
}

/// In the log's words.
const fn why(status: Status) -> &'static str {
    match status {
        Status::Absent => "DNS NX status",
        Status::Refused => "DNS refused status",
        Status::Timeout => "DNS timeout status",
        Status::Other => "unspecified DNS error",
    }
}
