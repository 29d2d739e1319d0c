use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn origin(host: &str) -> Origin {
    Origin::of(host.as_bytes(), true).unwrap()
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

fn sample(pattern_text: &str, mark: u64, client: u32, bytes: &[u8]) -> Sample {
    let client = Client::V4(client);
    Sample { pattern: pattern(pattern_text), mark: Some(mark), client, hash: Hash::of(bytes), bytes: bytes.into() }
}

/// Versions with small bounds, whose host `a` was announced.
fn versions(bytes: usize) -> (Versions, Origin) {
    let bounds = Bounds { bytes, hosts: 2, patterns: 2, versions: 2, announcements: 3, pause_s: 100 };
    let (mut versions, a) = (Versions::new(bounds), origin("a"));
    versions.announce(&a, &pattern("/*.js"), None, 0);
    (versions, a)
}

/// Lets two clients have it.
fn keep(versions: &mut Versions, origin: &Origin, pattern: &str, mark: u64, bytes: &[u8]) -> Hash {
    assert_eq!(versions.learn(origin, sample(pattern, mark, 1, bytes), 7), Learned::Candidate);
    assert_eq!(versions.learn(origin, sample(pattern, mark, 2, bytes), 8), Learned::Kept);
    Hash::of(bytes)
}

#[test]
fn a_second_client_makes_a_dictionary() {
    let (mut versions, a) = versions(100_000);
    for _ in 0..3 {
        assert_eq!(versions.learn(&a, sample("/*.js", 1, 1, b"one"), 1), Learned::Candidate, "one client alone");
        assert!(versions.is_empty() && versions.find(&a, &Hash::of(b"one")).is_none());
    }
    assert_eq!(versions.announce(&a, &pattern("/*.js"), Some(1), 1), Announcement::Wanted);
    assert_eq!(versions.learn(&a, sample("/*.js", 1, 2, b"one"), 2), Learned::Kept);
    assert_eq!(versions.learn(&a, sample("/*.js", 1, 3, b"one"), 3), Learned::Known);
    let found = versions.find(&a, &Hash::of(b"one")).unwrap();
    assert_eq!((&found.bytes()[..], found.use_as.pattern.as_str()), (&b"one"[..], "/*.js"));
    let listed = versions.list();
    assert_eq!((listed.len(), listed[0].since, listed[0].origin.to_string().as_str()), (1, 2, "https://a"));
    assert_eq!((versions.len(), versions.bytes()), (1, 3 + OVERHEAD + OF_PATTERN));
    let mut empty = versions.emptied();
    assert!(empty.is_empty() && empty.bytes() == 0 && empty.find(&a, &Hash::of(b"one")).is_none());
}

#[test]
fn two_families_of_addresses_may_be_one_client() {
    let (mut versions, a) = versions(100_000);
    let mut learn = |address: &str| {
        let client = Client::of(address.parse().unwrap());
        versions.learn(&a, Sample { client, ..sample("/*.js", 1, 0, b"one") }, 1)
    };
    for same in ["192.0.2.1", "2001:db8::1", "2001:db8::2", "::ffff:192.0.2.1", "192.0.2.1", "2001:db8::1"] {
        assert_eq!(learn(same), Learned::Candidate, "{same}");
    }
    assert_eq!(learn("2001:db8:0:1::1"), Learned::Kept, "another network");
    assert_eq!(learn("192.0.2.1"), Learned::Known);
}

#[test]
fn patterns_of_all_hosts_count_and_have_a_bound() {
    let bounds = Bounds { hosts: 100, patterns: 50, ..Bounds::of(40 * OF_PATTERN) };
    let mut versions = Versions::new(bounds);
    let first = origin("first");
    versions.announce(&first, &pattern("/*.js"), None, 0);
    let hash = keep(&mut versions, &first, "/*.js", 1, b"one");
    for i in 0..30 {
        let host = origin(&format!("h{}", i / 5));
        versions.announce(&host, &pattern("/*.js"), None, 0);
        assert_eq!(versions.learn(&host, sample(&format!("/{i}-*.js"), 1, 1, b"two"), 0), Learned::Candidate);
        assert!(versions.patterns <= 10 && versions.bytes() <= bounds.bytes);
        assert_eq!(versions.patterns, versions.hosts.values().map(|host| host.families.len()).sum::<usize>());
    }
    assert!(versions.find(&first, &hash).is_none(), "its clients have been silent longest");
    assert_eq!(versions.gone().iter().map(|gone| *gone.hash()).collect::<Vec<_>>(), [hash]);
    let mut alone = Versions::new(bounds);
    alone.announce(&first, &pattern("/*.js"), None, 0);
    for i in 0..30 {
        alone.learn(&first, sample(&format!("/{i}-*.js"), 1, 1, b"two"), 0);
    }
    assert_eq!((alone.patterns, alone.bytes()), (10, 10 * OF_PATTERN), "one host has no more than all have");
}

#[test]
fn the_same_head_needs_no_bytes_and_another_does() {
    let (mut versions, a) = versions(100_000);
    keep(&mut versions, &a, "/*.js", 1, b"one");
    let mut announce = |text: &str, mark| versions.announce(&a, &pattern(text), mark, 0);
    assert_eq!(announce("/*.js", Some(1)), Announcement::Known);
    assert_eq!(announce("/*.css", Some(1)), Announcement::Wanted);
    versions.find(&a, &Hash::of(b"one"));
    let mut announce = |text: &str, mark| versions.announce(&a, &pattern(text), mark, 0);
    assert_eq!(announce("/*.js", Some(2)), Announcement::Wanted);
    assert_eq!(announce("/*.js", None), Announcement::Wanted);
}

#[test]
fn another_origin_has_its_own() {
    let (mut versions, a) = versions(100_000);
    let hash = keep(&mut versions, &a, "/*.js", 1, b"one");
    for other in [origin("b"), origin("a:8443"), Origin::of(b"a", false).unwrap()] {
        assert!(versions.find(&other, &hash).is_none());
        versions.announce(&other, &pattern("/*.js"), None, 0);
        assert!(versions.find(&other, &hash).is_none());
    }
}

#[test]
fn what_was_offered_least_recently_goes_first() {
    let (mut versions, a) = versions(24_600);
    let one = keep(&mut versions, &a, "/1-*.js", 1, &[1; 4096]);
    let two = keep(&mut versions, &a, "/2-*.js", 1, &[2; 4096]);
    assert!(versions.find(&a, &one).is_some());
    let large = keep(&mut versions, &a, "/2-*.js", 2, &[0; 4100]);
    assert!(versions.find(&a, &two).is_none() && versions.find(&a, &one).is_some(), "bytes");
    keep(&mut versions, &a, "/2-*.js", 3, &[3; 4096]);
    assert!(versions.find(&a, &large).is_none() && versions.find(&a, &one).is_some(), "bytes again");
    assert_eq!(versions.learn(&a, sample("/1-*.js", 1, 1, &[1; 18_000]), 0), Learned::TooLarge);
}

#[test]
fn patterns_versions_and_hosts_have_bounds() {
    let (mut versions, a) = versions(1 << 20);
    let hashes: Vec<Hash> = (1..=3).map(|i| keep(&mut versions, &a, "/*.js", i, &[i as u8])).collect();
    let has = |versions: &mut Versions, hash: &Hash| versions.find(&a, hash).is_some();
    assert!(!has(&mut versions, &hashes[0]) && has(&mut versions, &hashes[1]) && has(&mut versions, &hashes[2]));
    let css = keep(&mut versions, &a, "/*.css", 1, b"css");
    assert!(has(&mut versions, &hashes[2]));
    let third = keep(&mut versions, &a, "/*.json", 1, b"json");
    assert!(!has(&mut versions, &css) && has(&mut versions, &hashes[2]) && has(&mut versions, &third), "a third pattern");
    for host in ["b", "c", "d"] {
        versions.announce(&origin(host), &pattern("/*.js"), None, 0);
    }
    assert!(has(&mut versions, &third), "hosts without dictionaries go first");
    assert_eq!(versions.learn(&origin("b"), sample("/*.js", 1, 1, b"x"), 0), Learned::Declined, "it has gone");
    keep(&mut versions, &origin("d"), "/*.js", 1, b"d");
    versions.announce(&origin("e"), &pattern("/*.js"), None, 0);
    assert!(!has(&mut versions, &third), "the host of the oldest offer");
}

#[test]
fn what_was_kept_elsewhere_drops_nothing() {
    let (mut versions, a) = versions(40_000);
    let restore = |versions: &mut Versions, host: &str, pattern_text: &str, bytes: &[u8]| {
        versions
            .restore(Kept { origin: origin(host), pattern: pattern(pattern_text), hash: Hash::of(bytes), bytes: bytes.into() }, 5)
    };
    assert!(restore(&mut versions, "a", "/*.js", b"one") && !restore(&mut versions, "a", "/*.js", b"one"));
    assert!(versions.find(&a, &Hash::of(b"one")).is_some());
    assert_eq!(versions.announce(&a, &pattern("/*.js"), Some(1), 5), Announcement::Wanted, "its mark is not known");
    assert_eq!(versions.learn(&a, sample("/*.js", 1, 9, b"one"), 6), Learned::Known);
    assert_eq!(versions.announce(&a, &pattern("/*.js"), Some(1), 6), Announcement::Known);
    assert!(restore(&mut versions, "a", "/*.js", b"two") && !restore(&mut versions, "a", "/*.js", b"three"), "releases");
    assert!(restore(&mut versions, "b", "/*.js", b"one"));
    assert!(!restore(&mut versions, "c", "/*.js", b"one"), "hosts");
    assert!(!restore(&mut versions, "b", "/*.css", &[0; 20_000]), "bytes");
    assert_eq!((versions.len(), versions.gone().len()), (3, 0));
    versions.leave(&a, 7);
    assert!(!restore(&mut versions, "a", "/*.js", b"one"), "it is left alone");
    assert_eq!(versions.bytes(), 3 + OVERHEAD + OF_PATTERN);
}

#[test]
fn a_host_without_offers_pauses() {
    let (mut versions, a) = versions(100_000);
    let announce = |versions: &mut Versions, now| versions.announce(&a, &pattern("/*.js"), None, now);
    assert_eq!(announce(&mut versions, 0), Announcement::Wanted);
    assert_eq!(announce(&mut versions, 0), Announcement::Wanted);
    assert_eq!(announce(&mut versions, 0), Announcement::Silent, "the fourth");
    assert_eq!(announce(&mut versions, 99), Announcement::Silent);
    assert_eq!(versions.learn(&a, sample("/*.js", 1, 1, b"one"), 99), Learned::Declined);
    assert_eq!(announce(&mut versions, 100), Announcement::Wanted);
    (0..3).for_each(|_| _ = announce(&mut versions, 100));
    assert_eq!(announce(&mut versions, 101), Announcement::Silent);
    assert!(versions.find(&a, &Hash::of(b"any")).is_none());
    assert_eq!(announce(&mut versions, 101), Announcement::Silent, "a hash that is not known is no help");
    let (mut versions, a) = self::versions(100_000);
    let hash = keep(&mut versions, &a, "/*.js", 1, b"one");
    let announce = |versions: &mut Versions| versions.announce(&a, &pattern("/*.js"), None, 100);
    (0..3).for_each(|_| _ = announce(&mut versions));
    assert_eq!(announce(&mut versions), Announcement::Silent);
    assert!(versions.find(&a, &hash).is_some());
    assert_eq!(announce(&mut versions), Announcement::Wanted, "a client has offered one");
}

#[test]
fn a_host_with_dictionaries_of_its_own_is_left_alone() {
    let (mut versions, a) = versions(100_000);
    let hash = keep(&mut versions, &a, "/*.js", 1, b"one");
    versions.leave(&a, 50);
    assert!(versions.find(&a, &hash).is_none() && versions.bytes() == 0);
    for host in ["b", "c", "d"] {
        versions.announce(&origin(host), &pattern("/*.js"), None, 60);
    }
    assert_eq!(versions.announce(&a, &pattern("/*.js"), None, 149), Announcement::Silent, "an offer changes nothing");
    assert_eq!(versions.announce(&a, &pattern("/*.js"), None, 150), Announcement::Wanted);
}

#[derive(Clone, Debug)]
enum Step {
    Announce(usize, usize, u64),
    Learn(usize, usize, u32, u8),
    Find(usize, u8),
    Leave(usize),
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..4usize, 0..4usize, 0..3u64).prop_map(|(host, pattern, mark)| Step::Announce(host, pattern, mark)),
        4 => (0..4usize, 0..4usize, 0..3u32, 0..12u8).prop_map(|(host, pattern, client, body)| Step::Learn(host, pattern, client, body)),
        2 => (0..4usize, 0..12u8).prop_map(|(host, body)| Step::Find(host, body)),
        1 => (0..4usize).prop_map(Step::Leave),
        1 => Just(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn bounds_hold_and_nothing_is_found_that_two_clients_have_not_had(steps in prop::collection::vec(step(), 0..300)) {
        let bounds = Bounds { bytes: 6 * (OVERHEAD + 8) + 1000, hosts: 3, patterns: 2, versions: 2, announcements: 20, pause_s: 10 };
        let (mut versions, mut now) = (Versions::new(bounds), 0);
        let hosts: Vec<Origin> = (0..4).map(|i| origin(&format!("h{i}"))).collect();
        let mut had: HashSet<(usize, u8, u32)> = HashSet::new();
        for step in steps {
            match step {
                Step::Announce(host, family, mark) => {
                    versions.announce(&hosts[host], &pattern(&format!("/{family}*")), Some(mark), now);
                }
                Step::Learn(host, family, client, body) => {
                    had.insert((host, body, client));
                    versions.learn(&hosts[host], sample(&format!("/{family}*"), 1, client, &vec![body; usize::from(body)]), now);
                }
                Step::Find(host, body) => {
                    if let Some(found) = versions.find(&hosts[host], &Hash::of(&vec![body; usize::from(body)])) {
                        prop_assert_eq!(&found.bytes()[..], &vec![body; usize::from(body)][..]);
                        let clients = had.iter().filter(|(a, b, _)| (*a, *b) == (host, body)).count();
                        prop_assert!(clients >= 2, "{} clients", clients);
                    }
                }
                Step::Leave(host) => versions.leave(&hosts[host], now),
                Step::Wait => now += 5,
            }
            let list = versions.list();
            let sum: usize = list.iter().map(|listed| listed.dictionary.bytes().len() + OVERHEAD).sum();
            let patterns: usize = versions.hosts.values().map(|host| host.families.len()).sum();
            prop_assert_eq!((list.len(), patterns), (versions.len(), versions.patterns));
            prop_assert_eq!(sum + patterns * OF_PATTERN, versions.bytes());
            prop_assert!(versions.bytes() <= bounds.bytes && versions.hosts.len() <= bounds.hosts);
            for host in versions.hosts.values() {
                prop_assert!(host.families.len() <= bounds.patterns);
                prop_assert!(host.families.values().all(|family| family.versions.len() <= bounds.versions));
                prop_assert_eq!(host.families.values().map(|family| family.versions.len()).sum::<usize>(), host.versions.len());
            }
        }
    }
}
