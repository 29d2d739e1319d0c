//! The four structures with the same names in them, and the same look-ups on each, in turns.

use super::NAMES;
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;
use terse_ceb::U64Tree;
use terse_sample::Value;
use terse_sample::vars::Store;

/// So many variables in each structure, and an order in which they are asked for.
pub(super) struct Contest {
    list: Option<Box<Link>>,
    tree: U64Tree<i64>,
    hash: HashMap<u64, i64>,
    slots: Store,
    /// The hash and the slot of each name, in the order in which they are looked up.
    asked: Vec<(u64, u32)>,
}

/// A node of a list: the newest first, as it grows in HAProxy.
struct Link {
    hash: u64,
    value: i64,
    next: Option<Box<Link>>,
}

impl Contest {
    pub(super) fn new(count: usize) -> Contest {
        let mut random = 1;
        let hashes: Vec<u64> = (0..count).map(|_| mix(&mut random)).collect();
        let mut contest = Contest {
            list: None,
            tree: U64Tree::default(),
            hash: HashMap::new(),
            slots: Store::default(),
            asked: (0..LOOK_UPS).map(|_| (mix(&mut random) % count as u64) as usize).map(|i| (hashes[i], i as u32)).collect(),
        };
        for (i, &hash) in hashes.iter().enumerate() {
            let value = i as i64;
            contest.list = Some(Box::new(Link { hash, value, next: contest.list.take() }));
            // A thousand entries fit.
            let _ = contest.tree.insert(hash, value);
            contest.hash.insert(hash, value);
            contest.slots.set(i as u32, Some(Value::Int(value)));
        }
        contest
    }

    /// Nanoseconds a look-up, in the order of [`NAMES`].
    pub(super) fn costs(&self, rounds: usize) -> [f64; NAMES.len()] {
        let mut best = [f64::INFINITY; NAMES.len()];
        for _ in 0..rounds {
            for (best, run) in best.iter_mut().zip(RUNS) {
                let begun = Instant::now();
                black_box(run(black_box(self)));
                *best = best.min(begun.elapsed().as_nanos() as f64 / LOOK_UPS as f64);
            }
        }
        best
    }

    /// True if all find the same values.
    #[cfg(test)]
    pub(super) fn agree(&self) -> bool {
        let sums = RUNS.map(|run| run(self));
        sums.iter().all(|sum| *sum == sums[0])
    }

    fn sum(&self, find: impl Fn(u64, u32) -> Option<i64>) -> i64 {
        // The next one is not asked for before this one is there: its cost counts, not the number that fit side by side.
        let mut last = 0;
        let mut sum = 0i64;
        for &(hash, slot) in &self.asked {
            last = find(hash ^ (last >> 63), slot ^ (last >> 63) as u32).map_or(0, |value| value as u64);
            sum = sum.wrapping_add(last as i64);
        }
        sum
    }
}

type Run = fn(&Contest) -> i64;

const RUNS: [Run; NAMES.len()] = [
    |contest| {
        contest.sum(|hash, _| {
            let mut link = contest.list.as_deref();
            while let Some(this) = link {
                if this.hash == hash {
                    return Some(this.value);
                }
                link = this.next.as_deref();
            }
            None
        })
    },
    |contest| contest.sum(|hash, _| contest.tree.get(hash).copied()),
    |contest| contest.sum(|hash, _| contest.hash.get(&hash).copied()),
    |contest| contest.sum(|_, slot| contest.slots.get(slot).and_then(Value::into_int)),
];

/// The next number of a sequence that looks like chance (splitmix64).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// In one round: enough for the clock, few enough that a round fits between two interruptions, and more than a processor's memory
/// of branches holds.
const LOOK_UPS: usize = 8192;
