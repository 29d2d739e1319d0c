//! Watching the names of servers: one task for each name, on the control thread.

use crate::assignment::{self, Seat};
use crate::client::{Families, Resolvers, Status};
use crate::message::{Kind, Service, normal};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;
use terse_balance::{Farm, Port, Server};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Watches the names of all servers that have `resolvers`, for ever; dropping the future ends it.
pub async fn run(sections: Vec<Arc<Resolvers>>, farms: Vec<Arc<Farm>>) {
    let sections: HashMap<Arc<str>, Arc<Resolvers>> = sections.into_iter().map(|section| (section.name.clone(), section)).collect();
    let mut names: BTreeMap<(Arc<str>, String, bool), Vec<Watched>> = BTreeMap::new();
    for (group, farm) in farms.iter().enumerate() {
        for server in farm.servers().iter() {
            let settings = server.settings();
            let (Some(name), Some((section, _))) = (&settings.name_in_dns, &settings.resolution.resolvers) else { continue };
            let watched = Watched { farm: farm.clone(), server: server.clone(), group, service: None };
            names.entry((section.clone(), normal(name), settings.resolution.prefer_v4)).or_default().push(watched);
        }
    }
    let mut tasks = JoinSet::new();
    for ((section, name, prefer_v4), servers) in names {
        let Some(resolvers) = sections.get(&section) else { continue };
        let families = if prefer_v4 { Families::V4First } else { Families::V6First };
        let watch = Watch { resolvers: resolvers.clone(), name, families, servers, seen: Vec::new(), last_good: None };
        tasks.spawn(watch.run());
    }
    while tasks.join_next().await.is_some() {}
    std::future::pending::<()>().await;
}

/// A server whose name is watched.
struct Watched {
    farm: Arc<Farm>,
    server: Arc<Server>,
    /// The number of its farm.
    group: usize,
    /// The place of the service that it stands for.
    service: Option<Service>,
}

/// One name.
struct Watch {
    resolvers: Arc<Resolvers>,
    name: String,
    families: Families,
    servers: Vec<Watched>,
    /// Addresses, and when an answer named them last.
    seen: Vec<(IpAddr, Instant)>,
    /// When an answer was good last.
    last_good: Option<Instant>,
}

impl Watch {
    async fn run(mut self) {
        loop {
            let outcome = match self.name.starts_with('_') {
                true => self.look_for_services().await,
                false => self.look_for_addresses().await,
            };
            let now = Instant::now();
            match outcome {
                Ok(()) => self.last_good = Some(now),
                Err(status) => {
                    let hold = self.resolvers.settings.hold.of(status);
                    if self.last_good.is_none_or(|good| now.duration_since(good) >= hold) {
                        self.servers.iter().for_each(|watched| watched.lose(why(status)));
                    }
                }
            }
            sleep(self.resolvers.settings.interval).await;
        }
    }

    async fn look_for_addresses(&mut self) -> Result<(), Status> {
        let answered = self.resolvers.addresses(&self.name, self.families).await?;
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
        let answered = self.resolvers.ask(&self.name, &[Kind::Service]).await?;
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
    fn seat(&self) -> Seat {
        let resolution = &self.server.settings().resolution;
        let destination = self.server.address().destination();
        let address = destination.map(|found| found.ip).filter(|ip| *ip != IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Seat { address, group: self.group, shares: resolution.shares_addresses, networks: resolution.networks.clone() }
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
