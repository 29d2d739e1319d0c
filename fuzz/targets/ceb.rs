//! Trees against `BTreeMap`: the input is a sequence of insertions, removals and look-ups of keys that it chooses.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use terse_ceb::{CaselessTree, Id, Net4Tree, Prefix, TextTree, U64Tree};

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 4 {
        0 => texts(input),
        1 => integers(input),
        2 => caseless(input),
        _ => networks(input),
    }
});

/// An operation, and a key of up to 15 bytes behind it.
fn operations(mut input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&first, rest) = input.split_first()?;
        let (key, rest) = rest.split_at(usize::from(first & 15).min(rest.len()));
        input = rest;
        Some((first >> 4, key))
    })
}

/// What the operations do to any tree; the key in the model is one that is ordered as the tree's.
macro_rules! compare {
    ($input:ident, $tree:ident, |$raw:ident| $owned:expr, |$lent:ident| $key:expr) => {{
        let mut model: BTreeMap<_, Vec<(Id, usize)>> = BTreeMap::new();
        for (number, (operation, $raw)) in operations($input).enumerate() {
            let owned = $owned;
            let $lent = &owned;
            let equal = model.get(&owned);
            let ends = |list: Option<&Vec<(Id, usize)>>| list.and_then(|list| Some((list.first()?.0, list.last()?.0)));
            match operation {
                0..=5 => {
                    let id = $tree.insert($key, number).expect("there is room");
                    model.entry(owned).or_default().push((id, number));
                }
                6..=8 => {
                    // The one in the middle of those with the nearest key.
                    let Some(near) = model.range((Included(owned), Unbounded)).next().map(|(key, _)| key.clone()) else { continue };
                    let list = model.get_mut(&near).expect("it was just found");
                    let (id, value) = list.remove(list.len() / 2);
                    if list.is_empty() {
                        model.remove(&near);
                    }
                    assert_eq!($tree.remove(id), Some(value));
                    assert_eq!($tree.remove(id), None);
                }
                9 => assert_eq!($tree.find($key), ends(equal).map(|e| e.0)),
                10 => {
                    let next = model.range((Excluded(owned.clone()), Unbounded)).next();
                    assert_eq!($tree.find_gt($key), ends(next.map(|n| n.1)).map(|e| e.0));
                }
                11 => {
                    let before = model.range((Unbounded, Excluded(owned.clone()))).next_back();
                    assert_eq!($tree.find_lt($key), ends(before.map(|n| n.1)).map(|e| e.1));
                }
                12 => {
                    let from = model.range((Included(owned.clone()), Unbounded)).next();
                    assert_eq!($tree.find_ge($key), ends(from.map(|n| n.1)).map(|e| e.0));
                }
                13 => {
                    let to = model.range((Unbounded, Included(owned.clone()))).next_back();
                    assert_eq!($tree.find_le($key), ends(to.map(|n| n.1)).map(|e| e.1));
                }
                _ => {
                    let all: Vec<_> = model.values().flatten().copied().collect();
                    assert!($tree.iter().map(|(id, _, value)| (id, *value)).eq(all.iter().copied()));
                    assert!(std::iter::successors($tree.first(), |id| $tree.next(*id)).eq(all.iter().map(|e| e.0)));
                    assert!(std::iter::successors($tree.last(), |id| $tree.previous(*id)).eq(all.iter().rev().map(|e| e.0)));
                }
            }
            assert_eq!($tree.len(), model.values().map(Vec::len).sum::<usize>());
        }
        model
    }};
}

fn texts(input: &[u8]) {
    let mut tree = TextTree::default();
    let model = compare!(input, tree, |raw| raw.to_vec(), |key| key);
    for (_, key) in operations(input) {
        let longest = model.iter().filter(|(stored, _)| key.starts_with(stored)).max_by_key(|(stored, _)| stored.len());
        assert_eq!(tree.longest_prefix(key), longest.map(|(_, list)| list[0].0));
    }
}

fn integers(input: &[u8]) {
    let number = |raw: &[u8]| raw.iter().take(8).fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let mut tree = U64Tree::default();
    compare!(input, tree, |raw| number(raw), |key| *key);
}

fn caseless(input: &[u8]) {
    let mut tree = CaselessTree::default();
    compare!(input, tree, |raw| raw.to_ascii_lowercase(), |key| key);
}

fn networks(input: &[u8]) {
    let network = |raw: &[u8]| {
        let address = raw.iter().skip(1).take(4).fold(0u32, |n, byte| n << 8 | u32::from(*byte));
        let prefix = Prefix::new(address, raw.first().copied().unwrap_or(0) % 33);
        (prefix.address(), prefix.length())
    };
    let mut tree = Net4Tree::default();
    let model = compare!(input, tree, |raw| network(raw), |key| Prefix::new(key.0, key.1));
    for (_, raw) in operations(input) {
        let (address, length) = network(raw);
        let holds = |stored: &(u32, u8)| stored.1 <= length && Prefix::new(address, stored.1).address() == stored.0;
        let longest = model.iter().filter(|(stored, _)| holds(stored)).max_by_key(|(stored, _)| stored.1);
        assert_eq!(tree.longest_prefix(Prefix::new(address, length)), longest.map(|(_, list)| list[0].0));
    }
}
