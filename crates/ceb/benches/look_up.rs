//! Nanoseconds per look-up of present keys, by kind and number of keys: `cargo bench -p terse-ceb`.
//!
//! Keys and order are those of bench/ceb.md's comparison with the original. A slice of look-ups is repeated, and the
//! best slice counts: noise only adds.

#![allow(clippy::expect_used, reason = "a measurement that cannot go on fails")]

use std::hint::black_box;
use std::time::Instant;
use terse_ceb::{Keys, TextTree, Tree, U32Tree, U64Tree};

fn main() {
    println!("keys\tcount\tns");
    for count in [100, 1_000, 100_000, 1_000_000] {
        let mut random = 42;
        let numbers: Vec<u64> = (0..count).map(|_| mix(&mut random)).collect();
        let short: Vec<u32> = numbers.iter().map(|n| *n as u32).collect();
        let names: Vec<Vec<u8>> = (0..count).map(|n| format!("var{n:04}").into_bytes()).collect();
        let hosts: Vec<Vec<u8>> = short.iter().map(|n| format!("www.site-{n:x}.example.com").into_bytes()).collect();
        report("u32", U32Tree::default(), short, |key| *key, &mut random);
        report("u64", U64Tree::default(), numbers, |key| *key, &mut random);
        report("name", TextTree::default(), names, |key| key, &mut random);
        report("host", TextTree::default(), hosts, |key| key, &mut random);
    }
}

fn report<K: Keys, T>(
    what: &str,
    mut tree: Tree<K, ()>,
    mut keys: Vec<T>,
    lend: for<'a> fn(&'a T) -> K::Key<'a>,
    random: &mut u64,
) {
    for key in &keys {
        tree.insert(lend(key), ()).expect("a million keys fit");
    }
    for i in (1..keys.len()).rev() {
        keys.swap(i, (mix(random) % (i as u64 + 1)) as usize);
    }
    let slice = keys.len().min(SLICE);
    let mut best = f64::INFINITY;
    for round in 0..ROUNDS {
        let from = round * slice % (keys.len() - slice + 1);
        let asked = &keys[from..from + slice];
        let begun = Instant::now();
        for _ in 0..SLICE / slice {
            let found = asked.iter().filter(|key| black_box(&tree).find(lend(key)).is_some()).count();
            assert_eq!(black_box(found), slice);
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / (SLICE / slice * slice) as f64);
    }
    println!("{what}\t{}\t{best:.1}", keys.len());
}

/// Next number of a pseudo-random sequence (splitmix64).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const SLICE: usize = 20_000;
const ROUNDS: usize = 200;
