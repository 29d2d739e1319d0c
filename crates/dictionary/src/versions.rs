//! Learned dictionaries: releases of static files, of each host its own.
//!
//! ```text
//!   announce   an answer with that pattern goes out: is it to be announced, and are its bytes wanted?
//!   learn      its body was whole, this is its hash   -> the first client's is a candidate, without bytes
//!                                                     -> another client's is kept
//!   find       a client has that hash                 -> the dictionary, which is the last to be dropped now
//!   leave      the server has dictionaries of its own -> the host's are dropped, and none are learned for a day
//! ```
//!
//! Invariants:
//! * A dictionary is found by the origin whose clients had it, and by no other.
//! * Bytes are kept once two clients have had them; of anything else there is a hash. Two addresses of different families may be one
//!   client's.
//! * Each number has a bound of [`Bounds`]; what was offered least recently goes first. What is not a number counts as bytes.
//! * Dictionaries that go are handed out ([`Versions::gone`]): their memory is given back where no lock is held.
//! * Time is an argument: seconds from any beginning.

use crate::field::UseAs;
use crate::stored::Kept;
use crate::{Dictionary, Hash, Origin, Pattern};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What is held at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of all dictionaries, each with [`OVERHEAD`], and of all patterns, each [`OF_PATTERN`].
    pub bytes: usize,
    /// Hosts.
    pub hosts: usize,
    /// Patterns of a host.
    pub patterns: usize,
    /// Dictionaries of a pattern.
    pub versions: usize,
    /// Announcements without a single offer, after which a host pauses.
    pub announcements: u32,
    /// For how many seconds a host pauses, or is left alone.
    pub pause_s: u64,
}

impl Bounds {
    /// The usual ones, with so many bytes.
    pub fn of(bytes: usize) -> Bounds {
        Bounds { bytes, hosts: 1024, patterns: 256, versions: 4, announcements: 10_000, pause_s: 86_400 }
    }
}

/// What a dictionary costs beside its bytes: its places in tables, and its notes.
pub const OVERHEAD: usize = 5 << 10;

/// What a pattern costs: its text twice, and its candidates.
pub const OF_PATTERN: usize = 3 << 10;

/// Patterns have no more than this part of the bytes.
const PATTERNS_SHARE: usize = 4;

/// Candidates of a pattern: the next one drops the oldest.
const MOST_CANDIDATES: usize = 8;

/// What becomes of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announcement {
    /// It is not announced.
    Silent,
    /// It is announced, and its bytes are held already.
    Known,
    /// It is announced, and its bytes are wanted.
    Wanted,
}

/// What becomes of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learned {
    /// It is a dictionary from now on.
    Kept,
    /// It is one already.
    Known,
    /// One client has had it: its hash is noted.
    Candidate,
    /// Its host is left alone, or gone.
    Declined,
    /// It is larger than all that may be held.
    TooLarge,
}

/// A client, as far as its address tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    /// An address of IPv4.
    V4(u32),
    /// The network of a site of IPv6, `/64`.
    V6(u64),
}

impl Client {
    /// The client with that address.
    pub fn of(address: IpAddr) -> Client {
        match address.to_canonical() {
            IpAddr::V4(address) => Client::V4(address.to_bits()),
            IpAddr::V6(address) => Client::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// A body that a client has had as a whole.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Which requests it is for.
    pub pattern: Pattern,
    /// What its head says of it: with the same mark it is the same body. None where the head says nothing.
    pub mark: Option<u64>,
    /// The client that had it.
    pub client: Client,
    /// The hash of the bytes.
    pub hash: Hash,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// A learned dictionary, as it is listed.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Whose it is.
    pub origin: Origin,
    /// The dictionary.
    pub dictionary: Arc<Dictionary>,
    /// When it was learned.
    pub since: u64,
}

/// The learned dictionaries of all hosts.
#[derive(Debug)]
pub struct Versions {
    bounds: Bounds,
    hosts: HashMap<Origin, Host>,
    /// By their turns: the least recently offered first.
    order: BTreeMap<u64, (Origin, Hash)>,
    /// The last turn that was given.
    turn: u64,
    bytes: usize,
    /// Number of patterns.
    patterns: usize,
    /// Dictionaries that have gone, until they are handed out.
    gone: Vec<Arc<Dictionary>>,
}

#[derive(Default, Debug)]
struct Host {
    versions: HashMap<Hash, Version>,
    families: HashMap<Box<str>, Family>,
    /// Announcements since the last offer.
    announced: u32,
    silence: Silence,
    /// The turn of its last offer, announcement or body.
    used: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Silence {
    #[default]
    None,
    /// No client offers anything.
    Paused(u64),
    /// The server has dictionaries of its own.
    Left(u64),
}

impl Silence {
    fn holds(self, now: u64) -> bool {
        matches!(self, Silence::Paused(until) | Silence::Left(until) if now < until)
    }
}

#[derive(Debug)]
struct Version {
    dictionary: Arc<Dictionary>,
    mark: Option<u64>,
    turn: u64,
    since: u64,
}

/// The releases of one pattern.
#[derive(Default, Debug)]
struct Family {
    versions: Vec<Hash>,
    candidates: VecDeque<Candidate>,
    /// The turn of the last offer or body.
    used: u64,
}

/// A body that one client has had: of each family of addresses the first.
#[derive(Debug)]
struct Candidate {
    hash: Hash,
    v4: Option<u32>,
    v6: Option<u64>,
}

impl Candidate {
    fn of(hash: Hash) -> Candidate {
        Candidate { hash, v4: None, v6: None }
    }

    /// Takes note of a client; whether it is surely another than one before.
    fn is_anothers(&mut self, client: Client) -> bool {
        match client {
            Client::V4(address) => *self.v4.get_or_insert(address) != address,
            Client::V6(network) => *self.v6.get_or_insert(network) != network,
        }
    }
}

impl Family {
    /// Takes note of a client of that body; whether two have had it now.
    fn confirm(&mut self, hash: Hash, client: Client) -> bool {
        let known = self.candidates.iter().position(|candidate| candidate.hash == hash);
        let at = known.unwrap_or_else(|| {
            if self.candidates.len() >= MOST_CANDIDATES {
                self.candidates.pop_front();
            }
            self.candidates.push_back(Candidate::of(hash));
            self.candidates.len() - 1
        });
        let is_confirmed = self.candidates.get_mut(at).is_some_and(|candidate| candidate.is_anothers(client));
        if is_confirmed {
            self.candidates.remove(at);
        }
        is_confirmed
    }
}

impl Versions {
    /// None yet.
    pub fn new(bounds: Bounds) -> Versions {
        Versions { bounds, hosts: HashMap::new(), order: BTreeMap::new(), turn: 0, bytes: 0, patterns: 0, gone: Vec::new() }
    }

    /// Decides about an answer with that pattern.
    pub fn announce(&mut self, origin: &Origin, pattern: &Pattern, mark: Option<u64>, now: u64) -> Announcement {
        let (most, pause_s) = (self.bounds.announcements, self.bounds.pause_s);
        let host = self.host(origin);
        if host.silence.holds(now) {
            return Announcement::Silent;
        }
        host.announced += 1;
        if host.announced > most {
            (host.announced, host.silence) = (0, Silence::Paused(now.saturating_add(pause_s)));
            return Announcement::Silent;
        }
        let mut versions = host.families.get(pattern.as_str()).into_iter().flat_map(|family| &family.versions);
        let known = versions.find_map(|hash| host.versions.get(hash).filter(|version| mark.is_some() && version.mark == mark));
        match known {
            Some(version) => {
                version.dictionary.counters.announced.fetch_add(1, Relaxed);
                Announcement::Known
            }
            None => Announcement::Wanted,
        }
    }

    /// Takes a body that a client has had as a whole.
    pub fn learn(&mut self, origin: &Origin, sample: Sample, now: u64) -> Learned {
        let Sample { pattern, mark, client, hash, bytes } = sample;
        let size = bytes.len() + OVERHEAD;
        let turn = self.next_turn();
        let most_bytes = self.bounds.bytes - self.bounds.bytes / PATTERNS_SHARE;
        let Some(host) = self.hosts.get_mut(origin).filter(|host| !host.silence.holds(now)) else { return Learned::Declined };
        host.used = turn;
        if let Some(version) = host.versions.get_mut(&hash) {
            version.mark = mark.or(version.mark);
            return Learned::Known;
        }
        if size > most_bytes {
            return Learned::TooLarge;
        }
        if !host.families.contains_key(pattern.as_str()) {
            self.make_family(origin, &pattern);
        }
        let Some(family) = self.family(origin, &pattern) else { return Learned::Declined };
        family.used = turn;
        if !family.confirm(hash, client) {
            return Learned::Candidate;
        }
        self.keep(origin, pattern, (mark, hash, bytes), now);
        Learned::Kept
    }

    /// Takes a dictionary that was kept elsewhere, if there is room for it: it drops none.
    pub fn restore(&mut self, Kept { origin, pattern, hash, bytes }: Kept, now: u64) -> bool {
        let origin = &origin;
        let size = bytes.len() + OVERHEAD;
        let has_patterns = self.patterns < self.bounds.bytes / PATTERNS_SHARE / OF_PATTERN;
        let is_new = match self.hosts.get(origin) {
            None => self.hosts.len() < self.bounds.hosts && has_patterns,
            Some(host) if host.silence.holds(now) || host.versions.contains_key(&hash) => false,
            Some(host) => match host.families.get(pattern.as_str()) {
                None => host.families.len() < self.bounds.patterns && has_patterns,
                Some(family) => family.versions.len() < self.bounds.versions,
            },
        };
        if !is_new || self.bytes + size + OF_PATTERN > self.bounds.bytes {
            return false;
        }
        self.host(origin);
        if self.family(origin, &pattern).is_none() {
            self.make_family(origin, &pattern);
        }
        self.keep(origin, pattern, (None, hash, bytes), now);
        true
    }

    /// The dictionary of that origin with that hash, which a client has.
    pub fn find(&mut self, origin: &Origin, hash: &Hash) -> Option<Arc<Dictionary>> {
        let turn = self.next_turn();
        let host = self.hosts.get_mut(origin)?;
        let version = host.versions.get_mut(hash)?;
        (host.announced, host.used) = (0, turn);
        if matches!(host.silence, Silence::Paused(_)) {
            host.silence = Silence::None;
        }
        if let Some(family) = host.families.get_mut(version.dictionary.use_as.pattern.as_str()) {
            family.used = turn;
        }
        let entry = self.order.remove(&version.turn)?;
        version.turn = turn;
        self.order.insert(turn, entry);
        Some(version.dictionary.clone())
    }

    /// Leaves a host alone, whose server has dictionaries of its own.
    pub fn leave(&mut self, origin: &Origin, now: u64) {
        let until = now.saturating_add(self.bounds.pause_s);
        self.drop_host(origin);
        self.host(origin).silence = Silence::Left(until);
    }

    /// All of them, in no order.
    pub fn list(&self) -> Vec<Listed> {
        let of_host = |(origin, host): (&Origin, &Host)| {
            let listed =
                |version: &Version| Listed { origin: origin.clone(), dictionary: version.dictionary.clone(), since: version.since };
            host.versions.values().map(listed).collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(of_host).collect()
    }

    /// Dictionaries that have gone since the last call.
    pub fn gone(&mut self) -> Vec<Arc<Dictionary>> {
        std::mem::take(&mut self.gone)
    }

    /// None, with the same bounds.
    pub fn emptied(&self) -> Versions {
        Versions::new(self.bounds)
    }

    /// Bytes that they, and what is known of hosts, count for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// The host. Where there is no room for another, one without dictionaries makes some, else that whose clients have been silent longest.
    fn host(&mut self, origin: &Origin) -> &mut Host {
        let turn = self.next_turn();
        if !self.hosts.contains_key(origin) && self.hosts.len() >= self.bounds.hosts {
            // A host that is left alone stays so, whichever hosts clients ask for, and one of which nothing is known goes first.
            let is_lasting = |host: &Host| !host.versions.is_empty() || matches!(host.silence, Silence::Left(_));
            let place = |(_, host): &(&Origin, &Host)| (is_lasting(host), !host.families.is_empty(), host.used);
            if let Some(oldest) = self.hosts.iter().min_by_key(place).map(|(origin, _)| origin.clone()) {
                self.drop_host(&oldest);
            }
        }
        let host = self.hosts.entry(origin.clone()).or_default();
        host.used = turn;
        host
    }

    fn family(&mut self, origin: &Origin, pattern: &Pattern) -> Option<&mut Family> {
        self.hosts.get_mut(origin)?.families.get_mut(pattern.as_str())
    }

    /// Makes the family of a pattern that has none. Where the host has no room for another, its least recently used one goes; where no host
    /// has, those of the host whose clients have been silent longest.
    fn make_family(&mut self, origin: &Origin, pattern: &Pattern) {
        let most = self.bounds.bytes / PATTERNS_SHARE / OF_PATTERN;
        let oldest = |host: &Host| host.families.iter().min_by_key(|(_, family)| family.used).map(|(name, _)| name.clone());
        let is_full = |host: &&Host| host.families.len() >= self.bounds.patterns.min(most);
        if let Some(oldest) = self.hosts.get(origin).filter(is_full).and_then(oldest) {
            self.drop_family(origin, &oldest);
        } else if self.patterns >= most {
            let others = self.hosts.iter().filter(|(other, host)| *other != origin && !host.families.is_empty());
            match others.min_by_key(|(_, host)| host.used).map(|(other, _)| other.clone()) {
                Some(other) => self.drop_host(&other),
                None => return,
            }
        }
        self.make_room(OF_PATTERN);
        let Some(host) = self.hosts.get_mut(origin) else { return };
        host.families.insert(pattern.as_str().into(), Family::default());
        self.patterns += 1;
        self.bytes += OF_PATTERN;
    }

    /// Drops dictionaries until so many bytes more are within the bound.
    fn make_room(&mut self, size: usize) {
        while self.bytes + size > self.bounds.bytes
            && let Some((_, (origin, hash))) = self.order.pop_first()
        {
            self.drop_version(&origin, &hash);
        }
    }

    fn keep(&mut self, origin: &Origin, pattern: Pattern, (mark, hash, bytes): (Option<u64>, Hash, Arc<[u8]>), now: u64) {
        let size = bytes.len() + OVERHEAD;
        if let Some(oldest) = self.oldest_of_full(origin, pattern.as_str()) {
            self.drop_version(origin, &oldest);
        }
        self.make_room(size);
        let turn = self.next_turn();
        let Some(host) = self.hosts.get_mut(origin) else { return };
        let Some(family) = host.families.get_mut(pattern.as_str()) else { return };
        family.versions.push(hash);
        let dictionary = Arc::new(Dictionary::learned(UseAs::of(pattern), hash, bytes));
        host.versions.insert(hash, Version { dictionary, mark, turn, since: now });
        self.order.insert(turn, (origin.clone(), hash));
        self.bytes += size;
    }

    /// The least recently offered dictionary of a pattern that has as many as it may.
    fn oldest_of_full(&self, origin: &Origin, pattern: &str) -> Option<Hash> {
        let host = self.hosts.get(origin)?;
        let family = host.families.get(pattern).filter(|family| family.versions.len() >= self.bounds.versions)?;
        family.versions.iter().min_by_key(|hash| host.versions.get(hash).map(|version| version.turn)).copied()
    }

    fn drop_version(&mut self, origin: &Origin, hash: &Hash) {
        let Some(host) = self.hosts.get_mut(origin) else { return };
        let Some(version) = host.versions.remove(hash) else { return };
        self.order.remove(&version.turn);
        self.bytes -= version.dictionary.bytes().len() + OVERHEAD;
        if let Some(family) = host.families.get_mut(version.dictionary.use_as.pattern.as_str()) {
            family.versions.retain(|known| known != hash);
        }
        self.gone.push(version.dictionary);
    }

    fn drop_family(&mut self, origin: &Origin, pattern: &str) {
        let Some(family) = self.hosts.get_mut(origin).and_then(|host| host.families.remove(pattern)) else { return };
        self.forget_patterns(1);
        family.versions.iter().for_each(|hash| self.drop_version(origin, hash));
    }

    fn drop_host(&mut self, origin: &Origin) {
        let Some(host) = self.hosts.get(origin) else { return };
        let hashes: Vec<Hash> = host.versions.keys().copied().collect();
        hashes.iter().for_each(|hash| self.drop_version(origin, hash));
        let host = self.hosts.remove(origin);
        self.forget_patterns(host.map_or(0, |host| host.families.len()));
    }

    fn forget_patterns(&mut self, count: usize) {
        self.patterns -= count;
        self.bytes -= count * OF_PATTERN;
    }
}

#[cfg(test)]
mod tests;
