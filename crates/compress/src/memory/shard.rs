//! A part of the memory: bodies by their names, within a bound of bytes.
//!
//! A body that comes when there is no room must be asked for more often than the body that goes. Candidates to go are found
//! by looking at a few at random: of [`SAMPLE`] the body that is asked for least, and of equals that whose last use is
//! longest ago. So there is no list to keep in order at each hit, and a flood of bodies that come once or twice pushes out
//! nothing that is hot.

use super::sketch::Sketch;
use super::{Form, Name};
use crate::coding::Coding;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bodies by their names.
pub(super) struct Shard {
    places: HashMap<Name, usize, BuildHasherDefault<NameHasher>>,
    entries: Vec<Entry>,
    sketch: Sketch,
    /// Bytes that the entries take, and may take.
    used: usize,
    bytes: usize,
    /// Grows with each look: the time of uses, and the source of samples.
    turn: u64,
}

struct Entry {
    name: Name,
    /// At most one for each coding.
    forms: Vec<Kept>,
    used_at: u64,
}

/// A form, and its state.
pub(super) struct Kept {
    pub(super) form: Form,
    /// Hits since it was kept at its level.
    pub(super) hits: u32,
    /// Whether a higher level is being tried.
    pub(super) raising: bool,
}

/// Bytes that an entry takes beside its forms, and each form.
pub(super) const ENTRY_BYTES: usize = 160;
pub(super) const FORM_BYTES: usize = 64;

/// Entries that are looked at to find the entry that goes.
const SAMPLE: usize = 8;

/// Room of a body on average, as far as the sketch's size depends on it.
const BYTES_A_COLUMN: usize = 2048;

impl Shard {
    pub(super) fn new(bytes: usize) -> Shard {
        Shard {
            places: HashMap::default(),
            entries: Vec::new(),
            sketch: Sketch::new((bytes / BYTES_A_COLUMN).clamp(256, 1 << 16)),
            used: 0,
            bytes,
            turn: 0,
        }
    }

    /// Counts a name; returns whether it had been seen before.
    pub(super) fn see(&mut self, name: &Name) -> bool {
        self.turn = self.turn.wrapping_add(1);
        self.sketch.count(name) > 1
    }

    /// The form of a coding.
    pub(super) fn form(&mut self, name: &Name, coding: Coding) -> Option<&mut Kept> {
        let entry = self.entries.get_mut(*self.places.get(name)?)?;
        entry.used_at = self.turn;
        entry.forms.iter_mut().find(|kept| kept.form.coding == coding)
    }

    /// Keeps a form in the place of that of its coding, if there is room or can be made; returns whether it did, and the
    /// number of evicted entries.
    pub(super) fn keep(&mut self, name: &Name, form: Form) -> (bool, usize) {
        let mut entry = self.remove(name).unwrap_or_else(|| Entry { name: *name, forms: Vec::new(), used_at: self.turn });
        let coding = form.coding;
        let old = entry.forms.iter().position(|kept| kept.form.coding == coding).map(|i| entry.forms.swap_remove(i));
        entry.forms.push(Kept { form, hits: 0, raising: false });
        let (fits, gone) = self.make_room(entry.bytes(), name);
        if !fits {
            entry.forms.pop();
            entry.forms.extend(old);
        }
        if !entry.forms.is_empty() {
            self.insert(entry);
        }
        (fits, gone)
    }

    /// Entries, and the bytes that they take.
    pub(super) fn held(&self) -> (usize, usize) {
        (self.entries.len(), self.used)
    }

    /// Forgets all; counts of how often they were asked for stay.
    pub(super) fn clear(&mut self) {
        (self.places, self.entries, self.used) = (HashMap::default(), Vec::new(), 0);
    }

    fn insert(&mut self, entry: Entry) {
        self.used += entry.bytes();
        self.places.insert(entry.name, self.entries.len());
        self.entries.push(entry);
    }

    fn remove(&mut self, name: &Name) -> Option<Entry> {
        let place = self.places.remove(name)?;
        let entry = self.entries.swap_remove(place);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.name, place);
        }
        self.used -= entry.bytes();
        Some(entry)
    }

    /// Evicts entries that are asked for less than `name`, until there is room; returns whether there is, and the number of
    /// evicted entries.
    fn make_room(&mut self, bytes: usize, name: &Name) -> (bool, usize) {
        let worth = self.sketch.estimate(name);
        let mut gone = 0;
        while self.used + bytes > self.bytes {
            let victim = if bytes > self.bytes { None } else { self.victim() };
            let Some(victim) = victim.filter(|victim| self.sketch.estimate(victim) < worth) else { return (false, gone) };
            self.remove(&victim);
            gone += 1;
        }
        (true, gone)
    }

    fn victim(&mut self) -> Option<Name> {
        let entries = self.entries.len();
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn.wrapping_mul(SAMPLE as u64);
        let sample = (0..SAMPLE as u64).filter_map(|i| self.entries.get(mix(turn.wrapping_add(i)) as usize % entries.max(1)));
        let least = sample.min_by_key(|entry| (self.sketch.estimate(&entry.name), entry.used_at))?;
        Some(least.name)
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.forms.iter().map(|kept| FORM_BYTES + kept.form.bytes.len()).sum::<usize>()
    }
}

/// A number for each turn, as good as random.
fn mix(turn: u64) -> u64 {
    let mut z = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ z >> 27
}

/// A name is a hash with a secret key: its first word is as good as any hash of it.
#[derive(Default)]
pub(super) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not called: a name hashes itself as a single word.
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
