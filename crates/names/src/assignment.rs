//! Assignment of servers to the places of a service: a pure function of the servers' present places and the offered ones.
//!
//! A server keeps its place for as long as that counts. Other places go to the servers that have been free longest, in the
//! order of the places. A server without a place has no address.

use crate::message::Service;
use std::collections::{HashMap, HashSet, VecDeque};

/// State of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    /// Its group: each has one server for each place.
    pub(crate) group: usize,
    /// The number of its place.
    pub(crate) place: Option<u64>,
    /// Its turn among those without one: lower is earlier.
    pub(crate) turn: u64,
}

/// The place of each seat, of places that count in this order.
pub(crate) fn places(seats: &[Seat], offered: &[u64]) -> Vec<Option<u64>> {
    let counting: HashSet<u64> = offered.iter().copied().collect();
    let mut given: Vec<Option<u64>> = seats.iter().map(|seat| seat.place.filter(|place| counting.contains(place))).collect();
    let mut held: HashSet<(usize, u64)> = HashSet::new();
    let mut free: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, seat) in seats.iter().enumerate() {
        match given[at] {
            Some(place) => drop(held.insert((seat.group, place))),
            None => free.entry(seat.group).or_default().push(at),
        }
    }
    for (group, mut waiting) in free {
        waiting.sort_by_key(|at| seats[*at].turn);
        let mut waiting = VecDeque::from(waiting);
        for place in offered.iter().filter(|place| !held.contains(&(group, **place))) {
            let Some(at) = waiting.pop_front() else { break };
            given[at] = Some(*place);
        }
    }
    given
}

/// A server's weight for that of a record, 1 to 256 for 1 to 65535; 0 is 0. HAProxy's scale.
pub(crate) const fn weight(service: &Service) -> u32 {
    (service.weight as u32).div_ceil(256)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seat(group: usize, place: Option<u64>, turn: u64) -> Seat {
        Seat { group, place, turn }
    }

    #[test]
    fn servers_keep_their_places_and_others_wait_their_turn() {
        let seats = [seat(0, Some(7), 0), seat(0, None, 9), seat(0, Some(3), 1), seat(0, None, 4)];
        assert_eq!(places(&seats, &[3, 5, 7]), [Some(7), None, Some(3), Some(5)]);
        assert_eq!(places(&seats, &[8, 5, 7]), [Some(7), None, Some(8), Some(5)], "a server whose place is gone has its turn");
        assert_eq!(places(&seats, &[]), [None; 4]);
        assert_eq!(places(&[seat(0, None, 0)], &[5, 6]), [Some(5)]);
    }

    #[test]
    fn each_group_has_each_place() {
        let seats = [seat(0, None, 0), seat(1, Some(5), 1), seat(1, None, 2)];
        assert_eq!(places(&seats, &[5, 6]), [Some(5), Some(5), Some(6)]);
    }

    #[test]
    fn weights_are_a_256th_rounded_up() {
        let of = |weight: u16| super::weight(&Service { priority: 0, weight, port: 80, target: "a".into() });
        assert_eq!(
            [0, 1, 255, 256, 257, 512, 513, 32_768, 65_280, 65_281, 65_535].map(of),
            [0, 1, 1, 1, 2, 2, 3, 128, 255, 256, 256]
        );
    }
}
