//! Load balancing: the choice of the next server (`balance`).
//!
//! The algorithms work on a [`Roster`]: rebuilt whenever a server's state or weight changes, and read without a lock. A
//! choice costs an atomic addition, and for `leastconn` a look at each server.

mod hash;
mod sequence;
pub mod settings;

use crate::server::Server;
use crate::settings::FarmSettings;
use crate::state::Operation;
use hash::Ring;
use settings::{Balance, HashAffinity, HashMethod};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use terse_message::Request;

/// Input of a choice.
#[derive(Clone, Copy, Default, Debug)]
pub struct Key<'a> {
    /// The client's address, for `balance source`.
    pub source: Option<IpAddr>,
    /// The request, for `balance uri`.
    pub request: Option<&'a Request>,
    /// Value of `balance log-hash` for a line, or of `balance hash` and its kin for a request.
    pub bytes: Option<&'a [u8]>,
}

/// Result of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The server at this place, which had a free slot a moment ago.
    Free(usize),
    /// The server at this place and no other, free or not: its key belongs there.
    Bound(usize),
    /// Any server would do, but all slots are in use.
    AllBusy,
    /// No server may be used.
    None,
}

/// The servers of a farm, and those that may be chosen now: the active ones, or without those the first backup, or all backups.
///
/// Servers are known here by their places in the list. A place means nothing in another roster.
#[derive(Debug)]
pub(crate) struct Roster {
    /// All servers, in the order of the configuration, then in that of their creation.
    pub(crate) servers: Arc<[Arc<Server>]>,
    /// Usable servers, each once, in the order of the configuration; for `balance first` in the order of their numbers.
    pub(crate) usable: Vec<u32>,
    /// Usable servers, each in proportion to its weight.
    sequence: Vec<u32>,
    /// Ring of `hash-type consistent`.
    ring: Option<Ring>,
    /// Servers with a weight that are up: active ones, and backups, used or not.
    pub(crate) up: (u32, u32),
    /// The sum of the shares of those that are usable.
    total: u32,
}

impl Roster {
    /// Builds a roster from the servers' states. `before`: the previous roster.
    pub(crate) fn new(servers: Arc<[Arc<Server>]>, settings: &FarmSettings, before: Option<&Roster>) -> Roster {
        let eligible =
            |backup: bool| (0u32..).zip(servers.iter()).filter(move |(_, s)| s.settings().backup == backup && s.is_eligible());
        let up = (eligible(false).count() as u32, eligible(true).count() as u32);
        let mut usable: Vec<(u32, &Arc<Server>)> = match up {
            (0, _) if settings.all_backups => eligible(true).collect(),
            (0, _) => eligible(true).take(1).collect(),
            _ => eligible(false).collect(),
        };
        if settings.balance == Balance::First {
            usable.sort_by_key(|(_, server)| server.id());
        }
        if settings.balance == Balance::Sticky {
            // Stable: newly usable servers keep their order after the others.
            let place = |server: &Arc<Server>| before?.usable().position(|other| other.index() == server.index());
            usable.sort_by_key(|(_, server)| place(server).unwrap_or(usize::MAX));
        }
        let hashes = matches!(settings.balance, Balance::Source | Balance::Uri(_) | Balance::LogHash | Balance::Key);
        let ring = (hashes && settings.hash.method == HashMethod::Consistent)
            .then(|| Ring::new(usable.iter().map(|(at, s)| (*at, hash::seed(s), s.share()))));
        let by_weight = || usable.iter().map(|(at, s)| (*at, s.effective_weight())).collect::<Vec<_>>();
        let sequence = match settings.balance {
            Balance::StaticRoundRobin => table(&servers, &by_weight()),
            _ if hashes && ring.is_none() => table(&servers, &by_weight()),
            _ if usable.iter().any(|(_, server)| server.operation() == Operation::Starting) => {
                // In whole weights again where sixteenths would make the order too long.
                let shares: Vec<_> = usable.iter().map(|(at, s)| (*at, s.share())).collect();
                let all: u64 = shares.iter().map(|(_, share)| u64::from(*share)).sum();
                sequence::spread(&if all <= MOST_TURNS { shares } else { by_weight() })
            }
            _ => sequence::spread(&by_weight()),
        };
        let total = usable.iter().map(|(_, server)| server.share()).sum();
        let usable = usable.iter().map(|(at, _)| *at).collect();
        Roster { servers, usable, sequence, ring, up, total }
    }

    /// The server of that number ([`Server::index`]), as long as it is there. Numbers grow along the list; without
    /// removals they are the places.
    pub(crate) fn find(&self, number: usize) -> Option<&Arc<Server>> {
        self.place_of(number).map(|at| &self.servers[at])
    }

    /// Place of the server of that number.
    pub(crate) fn place_of(&self, number: usize) -> Option<usize> {
        match self.servers.get(number) {
            Some(server) if server.index() == number => Some(number),
            _ => self.servers.binary_search_by_key(&number, |server| server.index()).ok(),
        }
    }

    /// Servers that may be chosen.
    pub(crate) fn usable(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.usable.iter().map(|at| &self.servers[*at as usize])
    }
}

/// The table of a map-based hash.
fn table(all: &[Arc<Server>], usable: &[(u32, u32)]) -> Vec<u32> {
    sequence::table(usable, sequence::divisor(all.iter().map(|server| server.weight())))
}

/// Limit of the turns of a round robin that are worked out in advance while a server starts.
const MOST_TURNS: u64 = 1 << 16;

/// A choice: the roster, and what changes from choice to choice.
pub(crate) struct Chooser<'a> {
    pub(crate) roster: &'a Roster,
    pub(crate) settings: &'a FarmSettings,
    /// Counts choices.
    pub(crate) cursor: &'a AtomicUsize,
    /// The numbers of servers that are taken only when there is no other.
    pub(crate) avoided: &'a [usize],
}

impl Chooser<'_> {
    /// The server that the algorithm wants.
    pub(crate) fn choose(&self, key: &Key<'_>) -> Choice {
        let choice = match self.settings.balance {
            Balance::RoundRobin | Balance::StaticRoundRobin => self.round_robin(),
            Balance::LeastConn => self.least_loaded(self.rotated()),
            Balance::Key | Balance::LogHash => self.bound(key.bytes.map(|bytes| hash::of_bytes(bytes, self.settings.hash))),
            Balance::First | Balance::Sticky => self.first_free(self.roster.usable.iter().copied()),
            Balance::Random(draws) => self.random(draws),
            Balance::Source => self.bound(key.source.map(|source| hash::of_source(source, self.settings.hash))),
            Balance::Uri(part) => self.bound(key.request.map(|request| hash::of_target(request, part, self.settings.hash))),
        };
        match choice {
            Choice::None if self.roster.usable.is_empty() => Choice::None,
            Choice::None | Choice::AllBusy if !self.avoided.is_empty() => Chooser { avoided: &[], ..*self }.choose(key),
            Choice::None => Choice::AllBusy,
            choice => choice,
        }
    }

    fn round_robin(&self) -> Choice {
        let sequence = &self.roster.sequence;
        // Two rounds over equal weights; beyond that, a look at each server is cheaper than waiting for the turn of a light one.
        for _ in 0..sequence.len().min(2 * self.roster.usable.len()) {
            let index = sequence[self.cursor.fetch_add(1, Relaxed) % sequence.len()];
            if self.is_free(index) {
                return Choice::Free(index as usize);
            }
        }
        self.first_free(self.rotated())
    }

    fn first_free(&self, mut candidates: impl Iterator<Item = u32>) -> Choice {
        candidates.find(|index| self.is_free(*index)).map_or(Choice::None, |index| Choice::Free(index as usize))
    }

    /// The free server with the fewest requests for its weight; the first of equals.
    fn least_loaded(&self, candidates: impl Iterator<Item = u32>) -> Choice {
        let least = candidates.filter(|index| self.is_free(*index)).min_by_key(|index| {
            let server = self.server(*index);
            match u64::from(server.served()) + u64::from(server.queued()) {
                0 => 0,
                // Compared as fractions of a common numerator; the weight may drop to 0 while this looks at it.
                load => ((load + 1) << 24) / u64::from(server.share().max(1)),
            }
        });
        least.map_or(Choice::None, |index| Choice::Free(index as usize))
    }

    fn random(&self, draws: u8) -> Choice {
        let sequence = &self.roster.sequence;
        if sequence.is_empty() {
            return Choice::None;
        }
        let drawn = (0..draws).map(|_| sequence[scramble(self.cursor.fetch_add(1, Relaxed)) % sequence.len()]);
        match self.least_loaded(drawn) {
            Choice::None => self.least_loaded(self.rotated()),
            choice => choice,
        }
    }

    /// The server that a hash belongs to. Without a key, or when that server is avoided, the next one.
    fn bound(&self, hash: Option<u32>) -> Choice {
        let Some(hash) = hash else { return self.round_robin() };
        let wanted = |index: &u32| !self.is_avoided(*index);
        let found = match &self.roster.ring {
            Some(ring) => {
                let full = |index: &u32| self.is_passed_over(*index);
                ring.from(hash).find(|i| wanted(i) && !full(i)).or_else(|| ring.from(hash).find(wanted))
            }
            None => {
                let sequence = &self.roster.sequence;
                let start = hash as usize % sequence.len().max(1);
                sequence[start..].iter().chain(&sequence[..start]).copied().find(wanted)
            }
        };
        found.map_or(Choice::None, |index| Choice::Bound(index as usize))
    }

    /// All usable servers, starting from another each time.
    fn rotated(&self) -> impl Iterator<Item = u32> {
        let usable = &self.roster.usable;
        let start = self.cursor.fetch_add(1, Relaxed) % usable.len().max(1);
        usable[start..].iter().chain(&usable[..start]).copied()
    }

    fn server(&self, index: u32) -> &Server {
        &self.roster.servers[index as usize]
    }

    fn is_avoided(&self, index: u32) -> bool {
        !self.avoided.is_empty() && self.avoided.contains(&self.server(index).index())
    }

    fn is_free(&self, index: u32) -> bool {
        !self.is_avoided(index) && self.server(index).has_room()
    }

    /// Limit of a server's requests with `hash-balance-factor`: its share of all, this request included, with the
    /// factor above the mean (Mirrokni, Thorup, Zadimoghaddam 2016). The shares of all servers add up to exactly the
    /// total limit.
    fn bound_of(&self, index: u32) -> u32 {
        let all: u64 = self.roster.usable().map(|server| u64::from(server.served())).sum::<u64>() + 1;
        let slots = (all * u64::from(self.settings.hash_balance_percent)).div_ceil(100);
        let total = u64::from(self.roster.total.max(1));
        let before = self.roster.usable.iter().take_while(|at| **at != index);
        let before: u64 = before.map(|at| u64::from(self.server(*at).share())).sum();
        let behind = before + u64::from(self.server(index).share());
        ((slots * behind / total - slots * before / total) as u32).max(1)
    }

    fn is_passed_over(&self, index: u32) -> bool {
        let server = self.server(index);
        if self.settings.hash_balance_percent != 0 && server.served() >= self.bound_of(index) {
            return true;
        }
        let (limit, queue_limit) = (server.maxconn(), server.settings().maxqueue);
        match self.settings.hash.affinity {
            HashAffinity::Always => false,
            HashAffinity::MaxConn => limit != 0 && server.served() >= limit,
            HashAffinity::MaxQueue => {
                limit != 0 && queue_limit != 0 && server.served() + server.queued() >= limit.saturating_add(queue_limit)
            }
        }
    }
}

/// A number that looks random for each count (the finish of SplitMix64): draws need no state but the cursor.
fn scramble(count: usize) -> usize {
    let z = (count as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as usize
}
