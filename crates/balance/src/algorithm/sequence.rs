//! Order of turns in a weighted round robin.
//!
//! Each server appears in proportion to its weight, spread as evenly as whole turns allow. After any number of turns,
//! each has had its share to within one turn. That is the schedule of pfair (Baruah, Cohen, Plaxton, Varvel 1996) on
//! one processor: the `k`th turn of a server with share `w / W` may come from turn `k W / w` on. It must come before
//! turn `(k + 1) W / w`. Of the servers that may come, the one with the earliest bound is taken. Servers of equal
//! weight take turns in the order of the configuration.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The order for these (server, weight) pairs, with weights above 0. It is as long as the sum of the weights over their common
/// divisor.
pub(super) fn spread(shares: &[(u32, u32)]) -> Vec<u32> {
    let divisor = divisor(shares.iter().map(|(_, weight)| *weight));
    let total: u64 = shares.iter().map(|(_, weight)| u64::from(weight / divisor)).sum();
    let mut order = Vec::with_capacity(total as usize);
    // (first turn that may be its next, place in `shares`, turns taken)
    let mut later: BinaryHeap<_> = (0..shares.len()).map(|place| Reverse((0u64, place, 0u64))).collect();
    // (turn before which its next must come, place in `shares`, turns taken)
    let mut ready = BinaryHeap::new();
    for turn in 0..total {
        while let Some(&Reverse((from, place, taken))) = later.peek()
            && from <= turn
        {
            later.pop();
            let weight = u64::from(shares[place].1 / divisor);
            ready.push(Reverse((((taken + 1) * total).div_ceil(weight), place, taken)));
        }
        let Some(Reverse((_, place, taken))) = ready.pop() else { break };
        let (server, weight) = shares[place];
        order.push(server);
        later.push(Reverse(((taken + 1) * total / u64::from(weight / divisor), place, taken + 1)));
    }
    order
}

/// The table in which map-based hashes and `static-rr` find servers: HAProxy's, so that a cluster of both sends the same key to the
/// same server. `divisor` is the common divisor of all of the backend's weights, up or not.
///
/// Each turn adds a server's weight to its score. The first whose score has passed the sum of the weights takes the
/// turn and pays that sum. When none has, the first that has not paid in advance does.
pub(super) fn table(shares: &[(u32, u32)], divisor: u32) -> Vec<u32> {
    let weights: Vec<i64> = shares.iter().map(|(_, weight)| i64::from((weight / divisor.max(1)).max(1))).collect();
    let total: i64 = weights.iter().sum();
    let mut scores = vec![0i64; shares.len()];
    (0..total)
        .filter_map(|_| {
            scores.iter_mut().zip(&weights).for_each(|(score, weight)| *score += weight);
            // Of equals the first.
            let best = (0..scores.len()).rev().max_by_key(|place| (scores[*place] + total) / total)?;
            scores[best] -= total;
            Some(shares[best].0)
        })
        .collect()
}

/// Common divisor of all weights.
pub(super) fn divisor(weights: impl Iterator<Item = u32>) -> u32 {
    weights.fold(0, common_divisor).max(1)
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_weights_take_turns_in_order() {
        assert_eq!(spread(&[(7, 10), (8, 10), (9, 10)]), [7, 8, 9]);
        assert_eq!(spread(&[(3, 256)]), [3]);
        assert_eq!(spread(&[]), [0; 0]);
    }

    #[test]
    fn a_heavy_server_is_spread_between_light_ones() {
        assert_eq!(spread(&[(0, 3), (1, 1), (2, 1), (3, 1)]), [0, 1, 0, 2, 0, 3]);
    }

    #[test]
    fn tables_begin_with_the_first_server() {
        assert_eq!(table(&[(0, 1), (1, 1), (2, 1)], 1), [0, 1, 2]);
        assert_eq!(table(&[(0, 10), (1, 10)], 10), [0, 1]);
        assert_eq!(table(&[], 1), [0; 0]);
        assert_eq!(divisor([4, 6, 0].into_iter()), 2);
    }

    proptest! {
        #[test]
        fn a_table_has_each_server_by_its_weight(weights in prop::collection::vec(1u32..=256, 1..12)) {
            let shares: Vec<(u32, u32)> = weights.iter().enumerate().map(|(i, w)| (i as u32, *w)).collect();
            let table = table(&shares, 1);
            prop_assert_eq!(table.len() as u32, weights.iter().sum::<u32>());
            for (server, weight) in &shares {
                let turns = table.iter().filter(|turn| *turn == server).count();
                prop_assert_eq!(turns as u32, *weight);
            }
        }

        #[test]
        fn each_has_its_share_to_within_one_turn(weights in prop::collection::vec(1u32..=256, 1..20)) {
            let shares: Vec<(u32, u32)> = weights.iter().enumerate().map(|(i, w)| (i as u32, *w)).collect();
            let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
            let order = spread(&shares);
            prop_assert_eq!(total % order.len() as u64, 0);
            let mut turns = vec![0u64; weights.len()];
            for (turn, server) in order.iter().enumerate() {
                turns[*server as usize] += 1;
                for (had, weight) in turns.iter().zip(&weights) {
                    let due = (turn as u64 + 1) * u64::from(*weight);
                    prop_assert!((had * total).abs_diff(due) < total, "{} turns of {} at {}", had, weight, turn);
                }
            }
        }
    }
}
