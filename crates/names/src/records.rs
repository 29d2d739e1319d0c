//! Records of a name, for as long as they count: a record that answers do not name any more stays for `hold obsolete`.
//!
//! Records stand in HAProxy's order, which is that of their hashes and not of the answer. So servers of a template get the
//! same records as with HAProxy, and name servers that shuffle their answers change nothing.

use crate::message::Service;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::{Duration, Instant};
use xxhash_rust::xxh32::xxh32;

/// Addresses of a name.
#[derive(Default, Debug)]
pub(crate) struct Addresses {
    /// Time of the last answer that named each.
    seen: BTreeMap<Place, Instant>,
    /// The address after which the next look begins.
    last: Option<Place>,
}

/// A place in the order of addresses.
type Place = (u32, IpAddr);

/// Wishes of a server for its address.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Its address now.
    pub(crate) address: Option<IpAddr>,
    /// Its group: two servers of one group shall not have the same address.
    pub(crate) group: usize,
    /// `resolve-prefer ipv4`
    pub(crate) prefers_v4: bool,
    /// `resolve-opts allow-dup-ip`
    pub(crate) shares: bool,
    /// `resolve-net`
    pub(crate) networks: std::sync::Arc<[(IpAddr, u8)]>,
}

impl Addresses {
    /// Takes the addresses of an answer.
    pub(crate) fn take(&mut self, answer: &[IpAddr], now: Instant, obsolete: Duration) {
        self.seen.extend(answer.iter().map(|ip| (place(*ip), now)));
        self.seen.retain(|_, seen| counts(*seen, now, obsolete));
    }

    /// Whether an address counts.
    pub(crate) fn has(&self, ip: IpAddr) -> bool {
        self.seen.contains_key(&place(ip))
    }

    /// Drops all addresses.
    pub(crate) fn clear(&mut self) {
        *self = Addresses::default();
    }

    /// The best address for a server; of equal ones the first after the one that was chosen last. `taken`: groups, and the
    /// addresses that their servers have.
    pub(crate) fn choose(&mut self, wish: &Wish, taken: &HashSet<(usize, IpAddr)>) -> Option<IpAddr> {
        let mut best: Option<(u8, Place)> = None;
        let from = self.last.map_or(Unbounded, Excluded);
        let behind = self.seen.range((from, Unbounded)).map(|(place, _)| *place);
        let highest = wish.highest(wish.address.is_some_and(|own| self.has(own)));
        let up_to = self.last.into_iter().flat_map(|last| self.seen.range(..=last)).map(|(place, _)| *place);
        for place in behind.chain(up_to) {
            let Some(score) = wish.score(place.1, taken) else { continue };
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, place));
            }
            if score >= highest {
                break;
            }
        }
        let (_, chosen) = best?;
        self.last = Some(chosen);
        Some(chosen.1)
    }
}

impl Wish {
    /// Highest score of any address; without its own among them that is less.
    fn highest(&self, has_own: bool) -> u8 {
        OF_FAMILY + FREE + if self.networks.is_empty() { 0 } else { OF_NETWORK } + if has_own { OWN } else { 0 }
    }

    /// HAProxy's order of preferences; `None`: this address is not for this server.
    fn score(&self, ip: IpAddr, taken: &HashSet<(usize, IpAddr)>) -> Option<u8> {
        let mut score = if ip.is_ipv4() == self.prefers_v4 { OF_FAMILY } else { 0 };
        if self.networks.iter().any(|network| contains(*network, ip)) {
            score += OF_NETWORK;
        }
        match taken.contains(&(self.group, ip)) {
            true if !self.shares => return None,
            true => {}
            false => score += FREE,
        }
        if self.address == Some(ip) {
            score += OWN;
        }
        Some(score)
    }
}

/// Scores, each higher than all that follow together.
const OF_FAMILY: u8 = 8;
const OF_NETWORK: u8 = 4;
const FREE: u8 = 2;
const OWN: u8 = 1;

/// Addresses in the order in which they are given out.
pub(crate) fn in_order(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let mut places: Vec<Place> = addresses.iter().copied().map(place).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|(_, ip)| ip).collect()
}

fn place(ip: IpAddr) -> Place {
    let hash = match ip {
        IpAddr::V4(v4) => xxh32(&v4.octets(), TYPE_A),
        IpAddr::V6(v6) => xxh32(&v6.octets(), TYPE_AAAA),
    };
    (hash, ip)
}

/// Whether a network has an address.
fn contains((network, bits): (IpAddr, u8), ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => same_prefix(u128::from(network.to_bits()), u128::from(ip.to_bits()), 32, bits),
        (IpAddr::V6(network), IpAddr::V6(ip)) => same_prefix(network.to_bits(), ip.to_bits(), 128, bits),
        _ => false,
    }
}

fn same_prefix(a: u128, b: u128, width: u32, bits: u8) -> bool {
    let rest = width.saturating_sub(u32::from(bits));
    rest >= 128 || a >> rest == b >> rest
}

/// Places of a service.
#[derive(Default, Debug)]
pub(crate) struct Services {
    /// The places, in order.
    places: Vec<Site>,
    /// Number of places that there have been.
    count: u64,
}

/// A place of a service, and its state.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    hash: u32,
    /// Its number, which no other one ever has.
    pub(crate) id: u64,
    /// Content of the last answer that named it.
    pub(crate) service: Service,
    seen: Instant,
    /// The address that came with it, and the time of its last answer.
    address: Option<(IpAddr, Instant)>,
}

impl Site {
    /// The address that came with it.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address.map(|(ip, _)| ip)
    }
}

impl Services {
    /// Takes the places of an answer, and the addresses that it names unasked. Each of those is for one place; the first
    /// one counts. Returns the places that do not count any more, in order.
    pub(crate) fn take(&mut self, answer: &[Service], others: &[(String, IpAddr)], now: Instant, obsolete: Duration) -> Vec<u64> {
        let key = |service: &Service| (service.target.clone(), service.port);
        let mut known: HashMap<(String, u16), usize> =
            self.places.iter().enumerate().map(|(at, site)| (key(&site.service), at)).collect();
        for service in answer {
            let at = *known.entry(key(service)).or_insert_with(|| {
                let hash = xxh32(&labels(&service.target), TYPE_SRV);
                self.places.push(Site { hash, id: self.count, service: service.clone(), seen: now, address: None });
                self.count += 1;
                self.places.len() - 1
            });
            let site = &mut self.places[at];
            (site.service, site.seen) = (service.clone(), now);
        }
        self.places.sort_by_key(|site| (site.hash, site.id));
        self.take_addresses(others, now, obsolete);
        self.places.extract_if(.., |site| !counts(site.seen, now, obsolete)).map(|site| site.id).collect()
    }

    fn take_addresses(&mut self, others: &[(String, IpAddr)], now: Instant, obsolete: Duration) {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut of_target: HashMap<&str, usize> = HashMap::new();
        for (at, site) in self.places.iter().enumerate() {
            let group = *of_target.entry(&site.service.target).or_insert(groups.len());
            groups.resize_with(groups.len().max(group + 1), Vec::new);
            groups[group].push(at);
        }
        let (mut refreshed, mut left) = (HashSet::new(), Vec::new());
        for (target, ip) in others {
            let Some(group) = of_target.get(target.as_str()) else { continue };
            let has_it = |at: &&usize| self.places[**at].address() == Some(*ip) && !refreshed.contains(*at);
            match groups[*group].iter().find(has_it).copied() {
                Some(at) => drop(refreshed.insert(at)),
                None => left.push((*group, *ip)),
            }
        }
        for (at, site) in self.places.iter_mut().enumerate() {
            if refreshed.contains(&at) {
                site.address = site.address.map(|(ip, _)| (ip, now));
            }
            site.address = site.address.filter(|(_, seen)| counts(*seen, now, obsolete));
        }
        for (group, ip) in left {
            if let Some(at) = groups[group].iter().find(|at| self.places[**at].address.is_none()) {
                self.places[*at].address = Some((ip, now));
            }
        }
    }

    /// The places that count, in order.
    pub(crate) fn places(&self) -> &[Site] {
        &self.places
    }

    /// Drops all places; returns their numbers, in order.
    pub(crate) fn clear(&mut self) -> Vec<u64> {
        self.places.drain(..).map(|site| site.id).collect()
    }
}

fn counts(seen: Instant, now: Instant, obsolete: Duration) -> bool {
    seen == now || now.saturating_duration_since(seen) <= obsolete
}

/// A name as messages have it, without its end.
fn labels(name: &str) -> Vec<u8> {
    name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect()
}

/// Types of records (RFC 1035, RFC 3596, RFC 2782).
const TYPE_A: u32 = 1;
const TYPE_AAAA: u32 = 28;
const TYPE_SRV: u32 = 33;

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn wish(address: Option<u8>) -> Wish {
        let networks = std::sync::Arc::default();
        Wish { address: address.map(ip), group: 0, prefers_v4: true, shares: false, networks }
    }

    fn named(answer: &[IpAddr]) -> Addresses {
        let mut records = Addresses::default();
        records.take(answer, Instant::now(), Duration::ZERO);
        records
    }

    /// The hashes of xxHash's own implementation: HAProxy's order for these.
    #[test]
    fn the_order_is_that_of_hashes() {
        let answer: Vec<IpAddr> = (1..=4).map(ip).collect();
        let hashes: Vec<u32> = in_order(&answer).into_iter().map(|ip| place(ip).0).collect();
        assert!(hashes.is_sorted() && hashes.len() == 4, "{hashes:?}");
        assert_ne!(place(ip(1)).0, place("::a00:1".parse().unwrap()).0);
        let shuffled: Vec<IpAddr> = [3, 1, 4, 2, 1].map(ip).into();
        assert_eq!(in_order(&answer), in_order(&shuffled));
        assert_eq!(labels("ab.c"), b"\x02ab\x01c");
    }

    #[test]
    fn records_that_are_not_named_count_until_they_are_obsolete() {
        let (start, mut records) = (Instant::now(), Addresses::default());
        records.take(&[ip(1), ip(2)], start, HOUR);
        records.take(&[ip(2)], start + HOUR, HOUR);
        assert!(records.has(ip(1)) && records.has(ip(2)));
        records.take(&[ip(3)], start + HOUR + Duration::from_millis(1), HOUR);
        assert!(!records.has(ip(1)) && records.has(ip(2)) && records.has(ip(3)));
        records.take(&[ip(3)], start + HOUR + Duration::from_millis(2), Duration::ZERO);
        assert!(!records.has(ip(2)) && records.has(ip(3)));
        records.clear();
        assert!(!records.has(ip(3)));
    }

    #[test]
    fn servers_get_what_others_have_not_and_share_where_they_may() {
        let (mut records, mut taken) = (named(&[ip(1), ip(2)]), HashSet::new());
        let first = records.choose(&wish(None), &taken).unwrap();
        taken.insert((0, first));
        let second = records.choose(&wish(Some(1)), &taken).unwrap();
        assert_ne!(first, second);
        taken.insert((0, second));
        assert_eq!(records.choose(&wish(None), &taken), None);
        let shared = records.choose(&Wish { shares: true, ..wish(None) }, &taken);
        assert_eq!(shared, Some(first), "it begins behind the one that was chosen last");
        assert!(records.choose(&Wish { group: 1, ..wish(None) }, &taken).is_some());
        assert_eq!(named(&[]).choose(&wish(None), &HashSet::new()), None);
        for own in [1, 2] {
            assert_eq!(named(&[ip(1), ip(2)]).choose(&wish(Some(own)), &HashSet::new()), Some(ip(own)));
        }
    }

    #[test]
    fn families_go_before_networks_and_those_before_one_s_own() {
        let (v6, near) = ("2001:db8::1".parse().unwrap(), [10, 1, 2, 3].into());
        let of = |wish: &Wish| named(&[ip(1), v6, near]).choose(wish, &HashSet::new());
        let networks: std::sync::Arc<[(IpAddr, u8)]> = [("2001:db8::".parse().unwrap(), 32), ([10, 1, 0, 0].into(), 16)].into();
        assert_eq!(of(&Wish { prefers_v4: false, ..wish(Some(1)) }), Some(v6));
        assert_eq!(of(&Wish { networks: networks.clone(), ..wish(Some(1)) }), Some(near));
        assert_eq!(of(&wish(Some(1))), Some(ip(1)));
        assert_eq!(named(&[ip(1)]).choose(&Wish { networks, ..wish(None) }, &HashSet::new()), Some(ip(1)));
        assert_eq!(named(&[v6]).choose(&wish(None), &HashSet::new()), Some(v6));
        assert!(contains(("::".parse().unwrap(), 0), "::1".parse().unwrap()) && !contains((ip(0), 8), "::1".parse().unwrap()));
    }

    fn service(target: &str, port: u16, weight: u16) -> Service {
        Service { priority: 1, weight, port, target: target.into() }
    }

    #[test]
    fn places_are_known_by_target_and_port() {
        let (start, mut records) = (Instant::now(), Services::default());
        records.take(&[service("a", 80, 1), service("a", 81, 1), service("b", 80, 1)], &[], start, Duration::ZERO);
        let before: HashMap<u64, Service> = records.places().iter().map(|site| (site.id, site.service.clone())).collect();
        assert!(records.places().is_sorted_by_key(|site| (site.hash, site.id)) && before.len() == 3);
        let later = start + Duration::from_millis(1);
        let dropped = records.take(&[service("b", 80, 1), service("a", 81, 7), service("c", 80, 1)], &[], later, Duration::ZERO);
        let of =
            |target: &str, port| records.places().iter().find(|site| site.service.target == target && site.service.port == port);
        assert!(of("a", 80).is_none() && dropped.len() == 1 && before[&dropped[0]].port == 80);
        let kept = of("a", 81).unwrap();
        assert_eq!((&before[&kept.id].target, before[&kept.id].port, kept.service.weight), (&"a".to_owned(), 81, 7));
        assert!(!before.contains_key(&of("c", 80).unwrap().id));
        assert!(records.take(&[], &[], later + HOUR, HOUR).is_empty() && records.places().len() == 3);
        let order: Vec<u64> = records.places().iter().map(|site| site.id).collect();
        assert_eq!(records.take(&[], &[], later + HOUR + Duration::from_millis(1), HOUR), order);
        assert!(records.places().is_empty());
    }

    #[test]
    fn addresses_that_come_along_are_for_one_place_each() {
        let (start, mut records) = (Instant::now(), Services::default());
        let two = [service("a", 80, 1), service("a", 81, 1)];
        let told = |list: &[u8]| list.iter().map(|last| ("a".to_owned(), ip(*last))).collect::<Vec<_>>();
        let has = |records: &Services| records.places().iter().map(Site::address).collect::<Vec<_>>();
        records.take(&two, &told(&[1]), start, Duration::ZERO);
        assert_eq!(has(&records), [Some(ip(1)), None]);
        let tick = |at: u64| start + Duration::from_millis(at);
        records.take(&two, &told(&[1, 1, 9]), tick(1), Duration::ZERO);
        assert_eq!(has(&records), [Some(ip(1)); 2]);
        records.take(&two, &told(&[1, 2]), tick(2), Duration::ZERO);
        assert_eq!(has(&records), [Some(ip(1)), Some(ip(2))]);
        records.take(&two, &[("b".into(), ip(5))], tick(3), HOUR);
        assert_eq!(has(&records), [Some(ip(1)), Some(ip(2))], "what is not told any more stays as long as it counts");
        records.take(&two, &[], tick(4), Duration::ZERO);
        assert_eq!(has(&records), [None, None]);
    }
}
