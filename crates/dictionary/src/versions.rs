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
//! * Bytes are kept once two clients have had them; of anything else there is a hash.
//! * Each number has a bound of [`Bounds`]; what was offered least recently goes first.
//! * Time is an argument: seconds from any beginning.

use crate::field::UseAs;
use crate::{Dictionary, Hash, Origin, Pattern};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// What is held at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of all dictionaries, each with [`OVERHEAD`].
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

/// What a dictionary costs beside its bytes: its places in tables.
pub const OVERHEAD: usize = 1024;

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

/// A body that a client has had as a whole.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Which requests it is for.
    pub pattern: Pattern,
    /// What its head says of it: with the same mark it is the same body. None where the head says nothing.
    pub mark: Option<u64>,
    /// The client that had it.
    pub client: u128,
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
    /// Hashes of bodies that one client has had, and that client.
    candidates: VecDeque<(Hash, u128)>,
    /// The turn of the last offer or body.
    used: u64,
}

impl Versions {
    /// None yet.
    pub fn new(bounds: Bounds) -> Versions {
        Versions { bounds, hosts: HashMap::new(), order: BTreeMap::new(), turn: 0, bytes: 0 }
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
        let family = host.families.get(pattern.as_str());
        let is_it = |hash: &Hash| host.versions.get(hash).is_some_and(|version| version.mark == mark);
        match mark.is_some() && family.is_some_and(|family| family.versions.iter().any(is_it)) {
            true => Announcement::Known,
            false => Announcement::Wanted,
        }
    }

    /// Takes a body that a client has had as a whole.
    pub fn learn(&mut self, origin: &Origin, sample: Sample, now: u64) -> Learned {
        let Sample { pattern, mark, client, hash, bytes } = sample;
        let size = bytes.len() + OVERHEAD;
        let turn = self.next_turn();
        let (most_patterns, most_bytes) = (self.bounds.patterns, self.bounds.bytes);
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
            let oldest = host.families.iter().min_by_key(|(_, family)| family.used).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest.filter(|_| host.families.len() >= most_patterns) {
                self.drop_family(origin, &oldest);
            }
        }
        let Some(host) = self.hosts.get_mut(origin) else { return Learned::Declined };
        let family = host.families.entry(pattern.as_str().into()).or_default();
        family.used = turn;
        match family.candidates.iter().position(|(known, _)| *known == hash) {
            Some(at) if family.candidates[at].1 != client => _ = family.candidates.remove(at),
            Some(_) => return Learned::Candidate,
            None => {
                if family.candidates.len() >= MOST_CANDIDATES {
                    family.candidates.pop_front();
                }
                family.candidates.push_back((hash, client));
                return Learned::Candidate;
            }
        }
        self.keep(origin, pattern, (mark, hash, bytes), now);
        Learned::Kept
    }

    /// The dictionary of that origin with that hash, which a client has.
    pub fn find(&mut self, origin: &Origin, hash: &Hash) -> Option<Arc<Dictionary>> {
        let turn = self.next_turn();
        let host = self.hosts.get_mut(origin)?;
        (host.announced, host.used) = (0, turn);
        if matches!(host.silence, Silence::Paused(_)) {
            host.silence = Silence::None;
        }
        let version = host.versions.get_mut(hash)?;
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
        let hashes: Vec<Hash> = self.host(origin).versions.keys().copied().collect();
        hashes.iter().for_each(|hash| self.drop_version(origin, hash));
        let host = self.host(origin);
        host.families.clear();
        host.silence = Silence::Left(until);
    }

    /// All of them, by origin and pattern.
    pub fn list(&self) -> Vec<Listed> {
        let of_host = |(origin, host): (&Origin, &Host)| {
            let listed =
                |version: &Version| Listed { origin: origin.clone(), dictionary: version.dictionary.clone(), since: version.since };
            host.versions.values().map(listed).collect::<Vec<_>>()
        };
        let mut list: Vec<Listed> = self.hosts.iter().flat_map(of_host).collect();
        let place = |listed: &Listed| {
            let dictionary = &listed.dictionary;
            (listed.origin.to_string(), dictionary.use_as.pattern.as_str().to_owned(), listed.since, dictionary.hash().0)
        };
        list.sort_by_cached_key(place);
        list
    }

    /// Drops all of them, and all that is known of hosts.
    pub fn clear(&mut self) {
        self.hosts.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// Bytes that they count for.
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
            let place = |(_, host): &(&Origin, &Host)| (!host.versions.is_empty(), host.used);
            if let Some(oldest) = self.hosts.iter().min_by_key(place).map(|(origin, _)| origin.clone()) {
                self.drop_host(&oldest);
            }
        }
        let host = self.hosts.entry(origin.clone()).or_default();
        host.used = turn;
        host
    }

    fn keep(&mut self, origin: &Origin, pattern: Pattern, (mark, hash, bytes): (Option<u64>, Hash, Arc<[u8]>), now: u64) {
        let size = bytes.len() + OVERHEAD;
        if let Some(oldest) = self.oldest_of_full(origin, pattern.as_str()) {
            self.drop_version(origin, &oldest);
        }
        while self.bytes + size > self.bounds.bytes
            && let Some((_, (origin, hash))) = self.order.pop_first()
        {
            self.drop_version(&origin, &hash);
        }
        let turn = self.next_turn();
        let Some(host) = self.hosts.get_mut(origin) else { return };
        host.families.entry(pattern.as_str().into()).or_default().versions.push(hash);
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
    }

    fn drop_family(&mut self, origin: &Origin, pattern: &str) {
        let Some(family) = self.hosts.get_mut(origin).and_then(|host| host.families.remove(pattern)) else { return };
        family.versions.iter().for_each(|hash| self.drop_version(origin, hash));
    }

    fn drop_host(&mut self, origin: &Origin) {
        let Some(host) = self.hosts.get(origin) else { return };
        let hashes: Vec<Hash> = host.versions.keys().copied().collect();
        hashes.iter().for_each(|hash| self.drop_version(origin, hash));
        self.hosts.remove(origin);
    }
}

#[cfg(test)]
mod tests;
