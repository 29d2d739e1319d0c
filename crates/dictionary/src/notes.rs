//! What a dictionary was no help for: pairs of an answer and the dictionary, each a fingerprint, in a table that does not grow.
//!
//! An answer is compared with its ordinary form once, and only now and then where the last comparisons came out well. A note that was used
//! so many times (`USES`) goes, so that what has changed behind an address is tried again. A wrong note costs bytes, never a wrong byte.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Notes of a dictionary; empty ones take no room.
#[derive(Default, Debug)]
pub struct Notes {
    places: OnceLock<Box<[AtomicU64]>>,
    /// Answers that are not compared after a comparison that came out well.
    pause: AtomicU32,
    /// How many of them are left.
    left: AtomicU32,
}

/// Places of a dictionary's notes: 4 KB.
const MOST_NOTES: usize = 512;

/// Answers that a note decides before it goes.
const USES: u64 = 200;

/// The most answers that are not compared after one that was.
const MOST_PAUSE: u32 = 63;

/// Places that a fingerprint may have.
const WAYS: usize = 4;

/// The part of a place that counts its uses; the rest is the fingerprint.
const COUNT: u64 = 0xff;

impl Notes {
    /// Whether the pair is noted.
    pub fn has(&self, pair: u64) -> bool {
        self.find(pair).is_some()
    }

    /// Whether nothing was ever noted.
    pub fn is_empty(&self) -> bool {
        self.places.get().is_none()
    }

    /// Number of notes.
    pub fn count(&self) -> usize {
        self.all().filter(|place| place.load(Relaxed) != 0).count()
    }

    /// Counts an answer that a note has decided.
    pub fn spend(&self, pair: u64) {
        let Some(place) = self.find(pair) else { return };
        let one_less = |note: u64| Some(if note & COUNT > 1 { note - 1 } else { 0 }).filter(|_| tag(note) == tag(pair));
        let _ = place.fetch_update(Relaxed, Relaxed, one_less);
    }

    /// Whether the next answer that might not be worth it is to be compared.
    pub fn may_compare(&self) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
    }

    /// Whether [`Notes::may_compare`] would be true now.
    pub fn compares_next(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    /// Notes the outcome of a comparison.
    pub fn compared(&self, pair: u64, is_worth: bool) {
        let pause = if is_worth { (self.pause.load(Relaxed) * 2 + 1).min(MOST_PAUSE) } else { 0 };
        self.pause.store(pause, Relaxed);
        self.left.store(pause, Relaxed);
        if is_worth {
            return;
        }
        let places = self.places.get_or_init(|| (0..MOST_NOTES).map(|_| AtomicU64::new(0)).collect());
        let set = &places[set(pair)..][..WAYS];
        let is_free = |place: &&AtomicU64| matches!(place.load(Relaxed), note if note == 0 || tag(note) == tag(pair));
        // The one that was used most is the one to try again first.
        let place = set.iter().find(is_free).or_else(|| set.iter().min_by_key(|place| place.load(Relaxed) & COUNT));
        if let Some(place) = place {
            place.store(tag(pair) | USES, Relaxed);
        }
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.all().for_each(|place| place.store(0, Relaxed));
        self.pause.store(0, Relaxed);
        self.left.store(0, Relaxed);
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.places.get().into_iter().flat_map(|places| places.iter())
    }

    fn find(&self, pair: u64) -> Option<&AtomicU64> {
        let set = &self.places.get()?[set(pair)..][..WAYS];
        set.iter().find(|place| matches!(place.load(Relaxed), note if note != 0 && tag(note) == tag(pair)))
    }
}

/// A note without its count: no note is 0.
fn tag(note: u64) -> u64 {
    note & !COUNT
}

/// Where the places of a pair begin.
fn set(pair: u64) -> usize {
    (pair >> 32) as usize % (MOST_NOTES / WAYS) * WAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(number: u64) -> u64 {
        number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn a_note_lasts_for_so_many_answers() {
        let notes = Notes::default();
        assert!(notes.is_empty() && !notes.has(pair(1)) && notes.may_compare());
        notes.compared(pair(1), false);
        assert!(notes.has(pair(1)) && !notes.has(pair(2)));
        for _ in 1..USES {
            notes.spend(pair(1));
        }
        assert!(notes.has(pair(1)));
        notes.spend(pair(1));
        assert!(!notes.has(pair(1)));
        notes.spend(pair(1));
        assert_eq!(notes.count(), 0);
    }

    #[test]
    fn what_is_worth_it_is_compared_ever_less() {
        let notes = Notes::default();
        let mut compared = 0;
        for number in 0..1000 {
            if notes.may_compare() {
                compared += 1;
                notes.compared(pair(number), true);
            }
        }
        assert!((15..25).contains(&compared), "{compared}");
        assert!(notes.is_empty());
        while !notes.may_compare() {}
        notes.compared(pair(1), false);
        assert!(notes.may_compare(), "the next one at once");
    }

    #[test]
    fn a_flood_takes_no_more_room_and_the_last_ones_stay() {
        let notes = Notes::default();
        (0..100_000).for_each(|number| notes.compared(pair(number), false));
        assert!(notes.count() <= MOST_NOTES && notes.count() > MOST_NOTES / 2, "{}", notes.count());
        assert!(notes.has(pair(99_999)));
        notes.clear();
        assert_eq!(notes.count(), 0);
        assert!(!notes.has(pair(99_999)) && notes.may_compare());
    }
}
