//! Watching of the names of servers, on the control thread: each name is asked for once, whichever servers of whichever
//! backends have it.
//!
//! ```text
//! Watches -- a round for each name: a pause, then a question --> an answer or an error --> its servers
//! ```
//!
//! Places of a service whose addresses came with them need no further question. The others are names in their turn.

use crate::assignment::{self, Seat};
use crate::client::{Answered, Families, Resolvers, Status};
use crate::message::normal;
use crate::records::{Addresses, Services, Site, Wish};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_balance::{Farm, Port, Server, Wardens};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// Sends the questions of rules, and watches the names of all servers that have `resolvers`, and those that operators give
/// them. It runs for ever; dropping the future ends it.
pub async fn run(wardens: Arc<Wardens>, sections: Vec<Arc<Resolvers>>, farms: Vec<Arc<Farm>>) {
    let (give, mut moved) = mpsc::unbounded_channel();
    wardens.tell_of_names(give);
    let mut asking = JoinSet::new();
    for section in &sections {
        asking.spawn(section.clone().serve());
    }
    let sections = sections.into_iter().map(|section| (section.name.clone(), section)).collect();
    let mut watches = Watches { sections, rounds: JoinSet::new(), names: HashMap::new() };
    for farm in &farms {
        for server in farm.servers().iter() {
            watches.admit(farm, server);
        }
    }
    // A backend without servers may go.
    drop(farms);
    loop {
        tokio::select! {
            Some(round) = watches.rounds.join_next() => {
                if let Ok((key, outcome)) = round {
                    watches.take(&key, outcome);
                }
            }
            Some((farm, server)) = moved.recv() => watches.admit(&farm, &server),
        }
    }
}

/// All names that are watched.
struct Watches {
    sections: HashMap<Arc<str>, Arc<Resolvers>>,
    /// Each name's next answer.
    rounds: JoinSet<(Key, Result<Answered, Status>)>,
    names: HashMap<Key, Name>,
}

/// Question: servers of one key share their answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    section: Arc<str>,
    name: String,
    kind: Wanted,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Wanted {
    Services,
    Addresses { prefer_v4: bool },
}

/// A name.
struct Name {
    resolvers: Arc<Resolvers>,
    /// Time of the last good answer, or of the first question.
    last_good: Instant,
    bearers: Bearers,
    round: AbortHandle,
}

/// The servers of a name, and its records.
enum Bearers {
    Addresses(Addresses, Vec<Member>),
    Services(Services, Vec<Slot>),
}

/// A server of a name.
struct Member {
    farm: Arc<Farm>,
    server: Arc<Server>,
    /// The address that it has from an answer.
    has: Option<IpAddr>,
    /// Whether this is the name of a service's place, not of the server's line.
    stands_for_service: bool,
}

/// A server that stands for a place of a service.
struct Slot {
    farm: Arc<Farm>,
    server: Arc<Server>,
    place: Option<u64>,
    /// Target and port that it had before a reload, until an answer shows whether they are still there.
    had: Option<(Arc<str>, u16)>,
    /// Its turn among those without a place.
    turn: u64,
    /// The place's name, where it is asked for.
    asked: Option<Key>,
}

/// Effect of an answer on other names.
enum Errand {
    Join(Key, Member),
    Leave(Key, Arc<Server>),
}

impl Watches {
    /// Watches the name that a server has now. The round of its old name finds that it has gone.
    fn admit(&mut self, farm: &Arc<Farm>, server: &Arc<Server>) {
        let Some(key) = Key::of(server) else { return };
        let (farm, server) = (farm.clone(), server.clone());
        let Some(name) = self.name(&key) else { return };
        match &mut name.bearers {
            Bearers::Addresses(_, members) => {
                if !members.iter().any(|member| Arc::ptr_eq(&member.server, &server)) {
                    members.push(Member { farm, server, has: None, stands_for_service: false });
                }
            }
            Bearers::Services(_, slots) => {
                if !slots.iter().any(|slot| Arc::ptr_eq(&slot.server, &server)) {
                    let turn = next_turn(slots);
                    let port = server.address().destination().and_then(|there| there.fixed_port());
                    let had = server.place_in_dns().zip(port);
                    slots.push(Slot { farm, server, place: None, had, turn, asked: None });
                }
            }
        }
    }

    /// A name, which is asked for from now on if it was not.
    fn name(&mut self, key: &Key) -> Option<&mut Name> {
        let resolvers = self.sections.get(&key.section)?;
        if !self.names.contains_key(key) {
            let bearers = match key.kind {
                Wanted::Services => Bearers::Services(Services::default(), Vec::new()),
                Wanted::Addresses { .. } => Bearers::Addresses(Addresses::default(), Vec::new()),
            };
            let round = self.rounds.spawn(ask(resolvers.clone(), key.clone(), Duration::ZERO));
            let name = Name { resolvers: resolvers.clone(), last_good: Instant::now(), bearers, round };
            self.names.insert(key.clone(), name);
        }
        self.names.get_mut(key)
    }

    /// Takes the outcome of a question, and asks again after a while.
    fn take(&mut self, key: &Key, outcome: Result<Answered, Status>) {
        let Some(name) = self.names.get_mut(key) else { return };
        name.let_go(key);
        if name.is_done() {
            self.names.remove(key);
            return;
        }
        let errands = match outcome {
            Ok(answered) => name.take(key, &answered),
            Err(status) => name.fail(status),
        };
        name.round = self.rounds.spawn(ask(name.resolvers.clone(), key.clone(), name.resolvers.settings.interval));
        for errand in errands {
            match errand {
                Errand::Join(key, member) => self.join(&key, member),
                Errand::Leave(key, server) => self.leave(&key, &server),
            }
        }
    }

    fn join(&mut self, key: &Key, member: Member) {
        if let Some(Name { bearers: Bearers::Addresses(_, members), .. }) = self.name(key) {
            members.push(member);
        }
    }

    fn leave(&mut self, key: &Key, server: &Arc<Server>) {
        let Some(name) = self.names.get_mut(key) else { return };
        if let Bearers::Addresses(_, members) = &mut name.bearers {
            members.retain(|member| !Arc::ptr_eq(&member.server, server));
        }
        if name.is_done() {
            name.round.abort();
            self.names.remove(key);
        }
    }
}

/// A round: a pause, a question, and its outcome.
async fn ask(resolvers: Arc<Resolvers>, key: Key, pause: Duration) -> (Key, Result<Answered, Status>) {
    sleep(pause).await;
    let outcome = match key.kind {
        Wanted::Services => resolvers.services(&key.name).await,
        Wanted::Addresses { prefer_v4: true } => resolvers.addresses(&key.name, Families::V4First).await,
        Wanted::Addresses { prefer_v4: false } => resolvers.addresses(&key.name, Families::V6First).await,
    };
    (key, outcome)
}

impl Key {
    fn of(server: &Server) -> Option<Key> {
        let resolution = &server.settings().resolution;
        let (section, _) = resolution.resolvers.as_ref()?;
        let name = normal(&server.name_in_dns()?);
        let kind = match name.starts_with('_') {
            true => Wanted::Services,
            false => Wanted::Addresses { prefer_v4: resolution.prefer_v4 },
        };
        Some(Key { section: section.clone(), name, kind })
    }
}

impl Name {
    /// Removes servers from a name that were removed, or have got another name.
    fn let_go(&mut self, key: &Key) {
        match &mut self.bearers {
            Bearers::Addresses(_, members) => members.retain(|member| {
                !member.server.is_gone() && (member.stands_for_service || Key::of(&member.server).as_ref() == Some(key))
            }),
            Bearers::Services(_, slots) => slots.retain(|slot| !slot.server.is_gone()),
        }
    }

    /// Whether no server has the name any more.
    fn is_done(&self) -> bool {
        match &self.bearers {
            Bearers::Addresses(_, members) => members.is_empty(),
            Bearers::Services(_, slots) => slots.is_empty(),
        }
    }

    fn take(&mut self, key: &Key, answered: &Answered) -> Vec<Errand> {
        let (now, obsolete) = (Instant::now(), self.resolvers.settings.hold.obsolete);
        self.last_good = now;
        match &mut self.bearers {
            Bearers::Addresses(records, members) => {
                records.take(&answered.answer.addresses, now, obsolete);
                give_addresses(records, members, &self.resolvers, answered);
                Vec::new()
            }
            Bearers::Services(records, slots) => {
                let (v4, v6) = (self.resolvers.accepts(true), self.resolvers.accepts(false));
                let others: Vec<_> =
                    answered.answer.others.iter().filter(|(_, ip)| if ip.is_ipv4() { v4 } else { v6 }).cloned().collect();
                let mut errands = free(slots, &records.take(&answered.answer.services, &others, now, obsolete));
                errands.extend(give_places(records, slots, &key.section));
                errands
            }
        }
    }

    /// Takes the answer away from servers for which it has been too long since the last good one.
    fn fail(&mut self, status: Status) -> Vec<Errand> {
        if self.last_good.elapsed() < self.resolvers.settings.hold.of(status) {
            return Vec::new();
        }
        match &mut self.bearers {
            Bearers::Addresses(records, members) => {
                members.iter_mut().for_each(|member| member.lose(why(status)));
                records.clear();
                Vec::new()
            }
            Bearers::Services(records, slots) => {
                slots.iter_mut().filter_map(|slot| slot.had.take().map(|_| slot)).for_each(Slot::lose);
                free(slots, &records.clear())
            }
        }
    }
}

/// Servers keep the address that they have from an answer for as long as it counts.
fn give_addresses(records: &mut Addresses, members: &mut [Member], resolvers: &Resolvers, answered: &Answered) {
    for member in members.iter_mut() {
        member.has = member.has.filter(|ip| records.has(*ip));
    }
    let mut taken: HashSet<_> = members.iter().filter_map(|member| Some((member.group(), member.has?))).collect();
    let mut by = format!("{}/{}", resolvers.name, answered.line.server.name);
    let mut asker = Some(answered);
    for member in members {
        if member.has.is_none() {
            member.has = records.choose(&member.wish(), &taken);
            match member.has {
                Some(ip) => {
                    taken.insert((member.group(), ip));
                    if gain(&member.farm, &member.server, ip, None, &by)
                        && let Some(answered) = asker
                    {
                        answered.count_update();
                    }
                }
                None => member.lose("No IP for server"),
            }
        }
        // As in HAProxy's log, the first server has the name server's answer, the others have the cached one.
        if asker.take().is_some() {
            by = "DNS cache".into();
        }
    }
}

fn give_places(records: &Services, slots: &mut [Slot], section: &Arc<str>) -> Vec<Errand> {
    let offered: Vec<u64> = records.places().iter().map(|site| site.id).collect();
    let sites: HashMap<u64, &Site> = records.places().iter().map(|site| (site.id, site)).collect();
    let mut errands = Vec::new();
    let at: HashMap<(&str, u16), u64> =
        records.places().iter().map(|site| ((site.service.target.as_str(), site.service.port), site.id)).collect();
    for slot in slots.iter_mut() {
        if let Some((target, port)) = slot.had.take() {
            slot.place = at.get(&(&*target, port)).copied();
            if slot.place.is_none() {
                slot.lose();
            }
        }
    }
    let seats: Vec<Seat> =
        slots.iter().map(|slot| Seat { group: Arc::as_ptr(&slot.farm).addr(), place: slot.place, turn: slot.turn }).collect();
    for (slot, place) in slots.iter_mut().zip(assignment::places(&seats, &offered)) {
        slot.place = place;
        if let Some(site) = place.and_then(|place| sites.get(&place)) {
            errands.extend(slot.stand_for(site, section));
        }
    }
    errands
}

/// Takes places that count no more away from their servers, in order, so that the servers have their turns in it.
fn free(slots: &mut [Slot], gone: &[u64]) -> Vec<Errand> {
    let order: HashMap<u64, usize> = gone.iter().copied().zip(0..).collect();
    let mut errands = Vec::new();
    let turns = next_turn(slots)..;
    let mut freed: Vec<_> = slots.iter_mut().filter_map(|slot| Some((*order.get(&slot.place?)?, slot))).collect();
    freed.sort_by_key(|(at, _)| *at);
    for ((_, slot), turn) in freed.into_iter().zip(turns) {
        (slot.place, slot.turn) = (None, turn);
        errands.extend(slot.asked.take().map(|key| Errand::Leave(key, slot.server.clone())));
        slot.lose();
    }
    errands
}

fn next_turn(slots: &[Slot]) -> u64 {
    slots.iter().map(|slot| slot.turn + 1).max().unwrap_or(0)
}

impl Slot {
    /// Takes away the data of its place.
    fn lose(&mut self) {
        let configured = self.server.settings().address.destination().map(|there| there.port);
        lose(&self.farm, &self.server, "entry removed from SRV record", configured);
        self.farm.set_place_in_dns(&self.server, None);
    }

    /// Takes the data of its place.
    fn stand_for(&mut self, site: &Site, section: &Arc<str>) -> Option<Errand> {
        let port = Port::Fixed(site.service.port);
        self.farm.set_place_in_dns(&self.server, Some(&site.service.target));
        let resolution = &self.server.settings().resolution;
        let weight = assignment::weight(&site.service);
        if !resolution.ignores_weights && self.server.weight() != weight {
            self.farm.set_weight(&self.server, weight, Instant::now());
        }
        if let Some(ip) = site.address() {
            gain(&self.farm, &self.server, ip, Some(port), "DNS additional record");
            return self.asked.take().map(|key| Errand::Leave(key, self.server.clone()));
        }
        if let Some(there) = self.server.address().destination() {
            self.farm.set_address_quietly(&self.server, there.ip, port);
        }
        if self.asked.is_some() {
            return None;
        }
        let kind = Wanted::Addresses { prefer_v4: resolution.prefer_v4 };
        let key = Key { section: section.clone(), name: site.service.target.clone(), kind };
        self.asked = Some(key.clone());
        let (farm, server) = (self.farm.clone(), self.server.clone());
        Some(Errand::Join(key, Member { farm, server, has: None, stands_for_service: true }))
    }
}

impl Member {
    fn group(&self) -> usize {
        Arc::as_ptr(&self.farm).addr()
    }

    /// The wishes of a server. Servers of places of a service may share an address, since their ports differ.
    fn wish(&self) -> Wish {
        let resolution = &self.server.settings().resolution;
        let destination = self.server.address().destination();
        Wish {
            address: destination.map(|found| found.ip).filter(|ip| !ip.is_unspecified()),
            group: self.group(),
            prefers_v4: resolution.prefer_v4,
            shares: resolution.shares_addresses || self.stands_for_service,
            networks: resolution.networks.clone(),
        }
    }

    /// Takes its address away; its port stays.
    fn lose(&mut self, why: &str) {
        self.has = None;
        lose(&self.farm, &self.server, why, None);
    }
}

/// Gives a server an address, and a port where the name has one; true if it is another one.
fn gain(farm: &Farm, server: &Arc<Server>, ip: IpAddr, port: Option<Port>, by: &str) -> bool {
    let changed = farm.set_address(server, ip, port, by).is_some();
    if server.admin().is_unresolved() {
        farm.set_resolved(server, Ok(()), Instant::now());
    }
    changed
}

/// Takes a server's address away, which sends it into maintenance.
fn lose(farm: &Farm, server: &Arc<Server>, why: &str, port: Option<Port>) {
    if !server.admin().is_unresolved() {
        farm.set_resolved(server, Err(why), Instant::now());
    }
    if let Some(there) = server.address().destination() {
        farm.set_address_quietly(server, IpAddr::V4(Ipv4Addr::UNSPECIFIED), port.unwrap_or(there.port));
    }
}

/// The reason in the log's words.
const fn why(status: Status) -> &'static str {
    match status {
        Status::Absent => "DNS NX status",
        Status::Refused => "DNS refused status",
        Status::Timeout => "DNS timeout status",
        Status::Other => "unspecified DNS error",
    }
}
