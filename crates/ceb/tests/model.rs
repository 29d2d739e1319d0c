//! Each kind of tree against a `BTreeMap` of lists: any sequence of insertions and removals, all look-ups after each.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound::{Excluded, Unbounded};
use terse_ceb::*;

/// Needs of the model for a kind of keys: an owned form that is ordered as the tree orders them.
trait Kind: Keys + Clone {
    type Owned: Ord + Clone + Debug;
    fn lend(key: &Self::Owned) -> Self::Key<'_>;
    fn own(key: Self::Key<'_>) -> Self::Owned;
}

impl Kind for Integers<u32> {
    type Owned = u32;
    fn lend(key: &u32) -> u32 {
        *key
    }
    fn own(key: u32) -> u32 {
        key
    }
}

impl Kind for Integers<u64> {
    type Owned = u64;
    fn lend(key: &u64) -> u64 {
        *key
    }
    fn own(key: u64) -> u64 {
        key
    }
}

impl Kind for Integers<u128> {
    type Owned = u128;
    fn lend(key: &u128) -> u128 {
        *key
    }
    fn own(key: u128) -> u128 {
        key
    }
}

impl<const N: usize> Kind for Blocks<N> {
    type Owned = [u8; N];
    fn lend(key: &[u8; N]) -> &[u8; N] {
        key
    }
    fn own(key: &[u8; N]) -> [u8; N] {
        *key
    }
}

impl Kind for Slices {
    type Owned = Vec<u8>;
    fn lend(key: &Vec<u8>) -> &[u8] {
        key
    }
    fn own(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }
}

impl Kind for Text {
    type Owned = Vec<u8>;
    fn lend(key: &Vec<u8>) -> &[u8] {
        key
    }
    fn own(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }
}

/// Text whose order and equality ignore case.
#[derive(Clone, Debug)]
struct Folded(Vec<u8>);

impl Folded {
    fn lower(&self) -> Vec<u8> {
        self.0.to_ascii_lowercase()
    }
}

impl PartialEq for Folded {
    fn eq(&self, other: &Folded) -> bool {
        self.lower() == other.lower()
    }
}

impl Eq for Folded {}

impl PartialOrd for Folded {
    fn partial_cmp(&self, other: &Folded) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Folded {
    fn cmp(&self, other: &Folded) -> std::cmp::Ordering {
        self.lower().cmp(&other.lower())
    }
}

impl Kind for Caseless {
    type Owned = Folded;
    fn lend(key: &Folded) -> &[u8] {
        &key.0
    }
    fn own(key: &[u8]) -> Folded {
        Folded(key.to_vec())
    }
}

impl Kind for Prefixes<u32> {
    type Owned = (u32, u8);
    fn lend(key: &(u32, u8)) -> Prefix<u32> {
        Prefix::new(key.0, key.1)
    }
    fn own(key: Prefix<u32>) -> (u32, u8) {
        (key.address(), key.length())
    }
}

/// The model: each key's values in order of insertion, each value with its handle.
type Model<K> = BTreeMap<<K as Kind>::Owned, Vec<(u32, Id)>>;

struct Pair<K: Kind> {
    tree: Tree<K, u32>,
    model: Model<K>,
    next: u32,
}

#[derive(Clone, Debug)]
enum Step<T> {
    Insert(T),
    InsertOnce(T),
    /// The entry at this fraction of their number, in order.
    Remove(u16),
    Clear,
}

fn steps<T: Clone + Debug + 'static>(
    key: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = (Vec<Step<T>>, Vec<T>)> {
    let step = prop_oneof![
        6 => key.clone().prop_map(Step::Insert),
        1 => key.clone().prop_map(Step::InsertOnce),
        4 => any::<u16>().prop_map(Step::Remove),
        1 => (0u8..20).prop_map(|n| if n == 0 { Step::Clear } else { Step::Remove(n.into()) }),
    ];
    (prop::collection::vec(step, 1..60), prop::collection::vec(key, 8))
}

impl<K: Kind> Pair<K> {
    fn new(keys: K) -> Pair<K> {
        Pair { tree: Tree::with_keys(keys), model: BTreeMap::new(), next: 0 }
    }

    fn apply(&mut self, step: &Step<K::Owned>) {
        match step {
            Step::Insert(key) => {
                let id = self.tree.insert(K::lend(key), self.next).unwrap();
                self.model.entry(key.clone()).or_default().push((self.next, id));
                self.next += 1;
            }
            Step::InsertOnce(key) => {
                let next = self.next;
                let id = self.tree.find_or_insert_with(K::lend(key), || next).unwrap();
                let list = self.model.entry(key.clone()).or_default();
                if list.is_empty() {
                    list.push((next, id));
                }
                assert_eq!(list[0].1, id);
                self.next += 1;
            }
            Step::Remove(at) => {
                let all: Vec<_> = self.model.iter().flat_map(|(k, list)| list.iter().map(|e| (k.clone(), *e))).collect();
                if all.is_empty() {
                    return;
                }
                let (key, (value, id)) = all[usize::from(*at) * all.len() / (usize::from(u16::MAX) + 1)].clone();
                assert_eq!(self.tree.remove(id), Some(value));
                assert_eq!(self.tree.remove(id), None);
                assert_eq!((self.tree.value(id), self.tree.next(id), self.tree.previous(id)), (None, None, None));
                let list = self.model.get_mut(&key).unwrap();
                list.retain(|entry| entry.0 != value);
                if list.is_empty() {
                    self.model.remove(&key);
                }
            }
            Step::Clear => {
                self.tree.clear();
                self.model.clear();
            }
        }
    }

    /// Compares the results of all look-ups.
    fn compare(&self, probes: &[K::Owned]) {
        let all: Vec<_> = self.model.iter().flat_map(|(k, list)| list.iter().map(|e| (k.clone(), *e))).collect();
        let (tree, model) = (&self.tree, &self.model);
        assert_eq!(tree.len(), all.len());
        assert_eq!(tree.is_empty(), all.is_empty());
        let found: Vec<_> = tree.iter().map(|(id, key, value)| (K::own(key), (*value, id))).collect();
        assert_eq!(found, all);
        assert_eq!(tree.first(), all.first().map(|e| e.1.1));
        assert_eq!(tree.last(), all.last().map(|e| e.1.1));
        for (i, (key, (value, id))) in all.iter().enumerate() {
            assert_eq!(tree.next(*id), all.get(i + 1).map(|e| e.1.1), "after {key:?}");
            assert_eq!(tree.previous(*id), i.checked_sub(1).map(|i| all[i].1.1), "before {key:?}");
            assert_eq!(tree.value(*id), Some(value));
            assert_eq!(tree.key(*id).map(K::own).as_ref(), Some(key));
        }
        for key in probes.iter().chain(model.keys()) {
            let lent = K::lend(key);
            let equal = model.get(key);
            let below = model.range::<K::Owned, _>((Unbounded, Excluded(key))).next_back().map(|(_, list)| list.last().unwrap().1);
            let above = model.range::<K::Owned, _>((Excluded(key), Unbounded)).next().map(|(_, list)| list[0].1);
            assert_eq!(tree.find(lent), equal.map(|list| list[0].1), "{key:?}");
            assert_eq!(tree.get(lent), equal.map(|list| &list[0].0), "{key:?}");
            assert_eq!(tree.find_lt(lent), below, "< {key:?}");
            assert_eq!(tree.find_gt(lent), above, "> {key:?}");
            assert_eq!(tree.find_le(lent), equal.map(|list| list.last().unwrap().1).or(below), "<= {key:?}");
            assert_eq!(tree.find_ge(lent), equal.map(|list| list[0].1).or(above), ">= {key:?}");
        }
    }

    /// The longest of the keys that `is_prefix_of` accepts.
    fn compare_prefixes<L: Ord>(
        &self,
        probes: &[K::Owned],
        length: impl Fn(&K::Owned) -> L,
        is_prefix_of: impl Fn(&K::Owned, &K::Owned) -> bool,
    ) where
        K: Prefixed,
    {
        for key in probes.iter().chain(self.model.keys()) {
            let longest = self.model.iter().filter(|(k, _)| is_prefix_of(k, key)).min_by_key(|(k, _)| Reverse(length(k)));
            assert_eq!(self.tree.longest_prefix(K::lend(key)), longest.map(|(_, list)| list[0].1), "in {key:?}");
        }
    }
}

fn run<K: Kind>(keys: K, steps: &[Step<K::Owned>], probes: &[K::Owned]) -> Pair<K> {
    let mut pair = Pair::new(keys);
    for step in steps {
        pair.apply(step);
        pair.compare(probes);
    }
    pair
}

/// Few values, so that keys repeat, at both ends and around the middle.
fn number() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![0..8u64, (0..8u64).prop_map(|n| u64::MAX - n), (0..64u32).prop_map(|n| 1 << n), any::<u64>()]
}

/// Zero bytes, common prefixes, and cases of one letter.
fn text() -> impl Strategy<Value = Vec<u8>> + Clone {
    let byte = prop::sample::select(&b"\0\0aAbB\x7f\x80\xff@`"[..]);
    let short = prop::collection::vec(byte.clone(), 0..5);
    let long = (prop::sample::select(vec![7usize, 8, 15, 16, 253, 254, 255, 256]), prop::collection::vec(byte, 0..3)).prop_map(
        |(n, end)| {
            let mut key = vec![b'a'; n];
            key.extend(end);
            key
        },
    );
    prop_oneof![3 => short, 1 => long]
}

fn network() -> impl Strategy<Value = (u32, u8)> + Clone {
    (prop::sample::select(vec![0u32, 1, 0x0a00_0000, 0x0a01_0000, 0x0a01_0203, 0xffff_ffff, 0x8000_0000]), 0u8..=32)
        .prop_map(|(address, length)| Prefixes::<u32>::own(Prefix::new(address, length)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 96 } else { 2_000 }))]

    #[test]
    fn integers_64((steps, probes) in steps(number())) {
        run(Integers::<u64>::default(), &steps, &probes);
    }

    #[test]
    fn integers_32((steps, probes) in steps(number().prop_map(|n| n as u32))) {
        run(Integers::<u32>::default(), &steps, &probes);
    }

    #[test]
    fn integers_128((steps, probes) in steps((number(), 0..3u32).prop_map(|(n, by)| u128::from(n) << (by * 32)))) {
        run(Integers::<u128>::default(), &steps, &probes);
    }

    #[test]
    fn blocks((steps, probes) in steps(number().prop_map(|n| n.to_le_bytes()))) {
        run(Blocks::<8>, &steps, &probes);
    }

    #[test]
    fn slices((steps, probes) in steps(number().prop_map(|n| n.to_be_bytes()[3..].to_vec()))) {
        run(Slices::new(5), &steps, &probes);
    }

    #[test]
    fn texts((steps, probes) in steps(text())) {
        let pair = run(Text::default(), &steps, &probes);
        pair.compare_prefixes(&probes, Vec::len, |short, long| long.starts_with(short));
    }

    #[test]
    fn caseless_texts((steps, probes) in steps(text().prop_map(Folded))) {
        let pair = run(Caseless::default(), &steps, &probes);
        pair.compare_prefixes(&probes, |key| key.0.len(), |short, long| long.lower().starts_with(&short.lower()));
    }

    #[test]
    fn networks((steps, probes) in steps(network())) {
        let pair = run(Prefixes::<u32>::default(), &steps, &probes);
        pair.compare_prefixes(&probes, |key| key.1, |short, long| {
            short.1 <= long.1 && Prefix::new(long.0, short.1) == Prefix::new(short.0, short.1)
        });
    }
}
