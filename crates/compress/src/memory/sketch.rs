//! Estimated frequency of requests for bodies, in little space: a count-min sketch with decay, after a doorkeeper.
//!
//! A name that comes for the first time only sets its bits in the door, a Bloom filter; from the second time on it counts, in
//! one column of each of four rows, and the least of the four is the estimate. So names that come once, however many, do not
//! blur the counts of frequent ones. An estimate may be too high, and is too low only by the decay: after ten times as many
//! looks as there are columns, the door is closed again and all counts are halved. (TinyLFU: Einziger, Friedman and Manes,
//! 2017.)

use super::Name;

/// The counts of a shard.
pub(super) struct Sketch {
    /// Bits; empty until the first count.
    door: Vec<u64>,
    /// The rows, in sequence.
    counts: Vec<u8>,
    columns: usize,
    looks: usize,
}

const ROWS: usize = 4;

/// Looks for each column until all is halved.
const AGE: usize = 10;

/// Bits of the door for each look: of the names that come for the first time, 2 % at most are taken for known.
const DOOR_BITS: usize = 8;

/// Limit of a count: a body that is asked for more often is hot enough.
const MOST: u8 = 64;

impl Sketch {
    /// For about as many bodies as there are columns: 14 bytes for each.
    pub(super) fn new(columns: usize) -> Sketch {
        Sketch { door: Vec::new(), counts: Vec::new(), columns: columns.max(1), looks: 0 }
    }

    /// Counts a name; returns its count by now.
    pub(super) fn count(&mut self, name: &Name) -> u8 {
        if self.counts.is_empty() {
            self.counts = vec![0; ROWS * self.columns];
            self.door = vec![0; (self.columns * AGE * DOOR_BITS).div_ceil(64)];
        }
        self.looks += 1;
        if self.looks > self.columns * AGE {
            self.looks = 0;
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.door.fill(0);
        }
        let before = self.counted(name);
        if self.enters(name) {
            for place in self.places(name) {
                // Only the least of the rows counts: the others need not grow with it.
                if let Some(count) = self.counts.get_mut(place).filter(|count| **count == before && before < MOST) {
                    *count += 1;
                }
            }
            return before.saturating_add(2);
        }
        before + 1
    }

    /// Count of a name.
    pub(super) fn estimate(&self, name: &Name) -> u8 {
        let bits = self.door.len() as u64 * 64;
        let known = bits > 0 && name.0.iter().all(|&word| self.is_open(door_bit(word, bits)));
        self.counted(name) + u8::from(known)
    }

    /// Count of a name after the door.
    fn counted(&self, name: &Name) -> u8 {
        self.places(name).map(|place| self.counts.get(place).copied().unwrap_or(0)).into_iter().min().unwrap_or(0)
    }

    /// Goes through the door; false for the first time, which opens it.
    fn enters(&mut self, name: &Name) -> bool {
        let bits = self.door.len() as u64 * 64;
        let mut known = true;
        for &word in &name.0 {
            let bit = door_bit(word, bits);
            known &= self.is_open(bit);
            if let Some(word) = self.door.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
        known
    }

    fn is_open(&self, bit: usize) -> bool {
        self.door.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// A name is a hash: its words are as good as four hashes of it. The upper half of each is for the rows.
    fn places(&self, name: &Name) -> [usize; ROWS] {
        let mut row = 0;
        name.0.map(|word| {
            let place = row * self.columns + (word >> 32) as usize % self.columns;
            row += 1;
            place
        })
    }
}

/// The lower half is for the door.
fn door_bit(word: u64, bits: u64) -> usize {
    (((word & 0xffff_ffff) * bits) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::super::tests::name;
    use super::*;

    #[test]
    fn counts_are_never_too_low_and_seldom_too_high() {
        let mut sketch = Sketch::new(1000);
        assert_eq!(sketch.estimate(&name(1)), 0);
        for round in 1..=4 {
            for i in 0..200 {
                assert!(sketch.count(&name(i)) >= round);
            }
        }
        assert!((0..200).all(|i| sketch.estimate(&name(i)) >= 4));
        assert!((0..200).filter(|&i| sketch.estimate(&name(i)) > 4).count() < 5);
        assert!((1000..2000).filter(|&i| sketch.estimate(&name(i)) > 0).count() < 20);
    }

    #[test]
    fn what_comes_once_does_not_blur_the_rest() {
        let mut sketch = Sketch::new(1000);
        let known = (0..9_000).filter(|&i| sketch.count(&name(i)) > 1).count();
        assert!(known < 180, "{known} were taken for known");
    }

    #[test]
    fn what_is_not_asked_for_any_more_is_forgotten() {
        let mut sketch = Sketch::new(64);
        for _ in 0..600 {
            sketch.count(&name(7));
        }
        assert!(sketch.estimate(&name(7)) > 20);
        for i in 0..10_000 {
            sketch.count(&name(100 + i % 3));
        }
        assert!(sketch.estimate(&name(7)) < 2, "{}", sketch.estimate(&name(7)));
        assert!(sketch.estimate(&name(100)) > 20);
    }
}
