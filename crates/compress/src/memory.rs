//! The memory of compressed bodies: the same bytes are not compressed twice.
//!
//! ```text
//!   a body, held as a whole ── keyed BLAKE3 ──> Name ──> look ── Found: its compressed form, as an Arc
//!                                                          ├──── Known: compress, then keep
//!                                                          └──── New:   compress; only its name is counted
//! ```
//!
//! A body is known by its bytes alone, so URL, method and cache headers make no difference, and nothing can be stale: a
//! server that sends other bytes gets another name. Names are hashed with the key of an [`Owner`], a backend: another
//! backend's bodies have other names, and no outsider can make two bodies fall on the same place.
//!
//! Invariants:
//! * A form decodes to the body of its name. (Two bodies of the same name: 2^-128 without the key, and no better with it.)
//! * The bytes held never exceed the bound. A form that a client is still being sent counts as that response's, once it has gone.
//! * A body is kept when it comes for the second time, and pushes out only bodies that are asked for less: [`shard`].
//! * No lock is held while anything is hashed, compressed or copied.
//!
//! A body that several clients ask for at the same time is compressed once too, where that leaves their worker:
//! [`crate::offload`].
//!
//! A body that is asked for often is compressed once more, at the highest level allowed, by a thread that runs at the lowest
//! priority: [`raise`].

mod raise;
mod recall;
mod remembrance;
mod shard;
mod sketch;

pub use raise::Raiser;
pub use recall::Recall;
pub use remembrance::Remembrance;

pub(crate) use raise::Raise;

use crate::coding::{Coding, Level};
use shard::Shard;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the memory that proxies share, unless `tune.comp.memory` is set.
pub const DEFAULT_BYTES: usize = 64 << 20;

/// The key of an owner's names: without it, names look like noise.
#[derive(Clone)]
pub struct Owner([u8; 32]);

impl Owner {
    /// The owner of that name, in a process with that random key.
    pub fn new(key: &[u8; 32], name: &str) -> Owner {
        Owner(*blake3::keyed_hash(key, name.as_bytes()).as_bytes())
    }

    /// The same for forms that were made with a dictionary: their names are others with each.
    pub(crate) fn with_dictionary(&self, dictionary: &terse_dictionary::Hash) -> Owner {
        Owner(*blake3::keyed_hash(&self.0, &dictionary.0).as_bytes())
    }
}

/// A body's name: the keyed BLAKE3 hash of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name([u64; 4]);

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}

impl Name {
    /// The name of a body.
    pub fn of(owner: &Owner, body: &[u8]) -> Name {
        Name::from_hash(blake3::keyed_hash(&owner.0, body))
    }

    fn from_hash(hash: blake3::Hash) -> Name {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(hash.as_bytes().as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Name(words)
    }
}

/// Names a body while it comes, so that a large one does not hold its worker up at the end: up to [`STRIDE_BYTES`] are hashed
/// in a single piece when all is there, which is quickest; beyond that, as soon as as many more have come.
pub struct Naming {
    owner: Owner,
    hasher: Option<Box<blake3::Hasher>>,
    hashed: usize,
}

/// Bytes that are hashed at a time: 256 KB, some 100 µs.
const STRIDE_BYTES: usize = 256 * 1024;

impl Naming {
    /// Of a body of that owner.
    pub fn new(owner: Owner) -> Naming {
        Naming { owner, hasher: None, hashed: 0 }
    }

    /// Takes note that so much of the body is there, and more will come.
    pub fn see(&mut self, body: &[u8]) {
        if body.len() - self.hashed.min(body.len()) > STRIDE_BYTES {
            let hasher = self.hasher.get_or_insert_with(|| Box::new(blake3::Hasher::new_keyed(&self.owner.0)));
            hasher.update(&body[self.hashed..]);
            self.hashed = body.len();
        }
    }

    /// The name, now that all is there.
    pub fn finish(&mut self, body: &[u8]) -> Name {
        match self.hasher.take() {
            None => Name::of(&self.owner, body),
            Some(mut hasher) => Name::from_hash(hasher.update(&body[self.hashed.min(body.len())..]).finalize()),
        }
    }
}

/// A compressed form of a body.
#[derive(Clone)]
pub struct Form {
    /// The coding.
    pub coding: Coding,
    /// Its level.
    pub level: Level,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Time in coders that it took, in nanoseconds: the saving of a hit.
    pub cost_ns: u64,
}

/// Result of a lookup of a body.
pub enum Look {
    /// Its form. With `popular` it is asked for so often that a better form of it would be worth its price, and the caller
    /// must try to make it ([`Memory::raise`]).
    Found {
        /// The form.
        form: Form,
        /// Whether to try for a better form.
        popular: bool,
    },
    /// It has been seen before: worth keeping.
    Known,
    /// It has not been seen before.
    New,
}

/// Counters of a memory.
#[derive(Default, Debug)]
pub struct Numbers {
    /// Looks that found a form.
    pub hits: AtomicU64,
    /// Time in coders that those hits have spared, in nanoseconds.
    pub spared_ns: AtomicU64,
    /// Lookups that found none.
    pub misses: AtomicU64,
    /// Forms that were kept.
    pub admitted: AtomicU64,
    /// Forms that were not, because all that was there is asked for as often.
    pub refused: AtomicU64,
    /// Bodies that went to make room.
    pub evicted: AtomicU64,
    /// Forms that were made anew at a higher level.
    pub raised: AtomicU64,
    /// Bytes that this has saved, of the forms before.
    pub raised_bytes: AtomicU64,
}

/// A bounded memory of compressed bodies, for many threads.
pub struct Memory {
    /// A power of two of them: a name's second word chooses.
    shards: Box<[Mutex<Shard>]>,
    bytes: usize,
    numbers: Numbers,
}

/// A shard has no less, so that a small memory has room for a large body.
const SHARD_BYTES: usize = 4 << 20;
const MOST_SHARDS: usize = 16;

/// Hits of a form until a better form is tried for.
const POPULAR_HITS: u32 = 16;

impl Memory {
    /// An empty memory for so many bytes. It takes room only as it fills.
    pub fn new(bytes: usize) -> Memory {
        let shards = (bytes / SHARD_BYTES).clamp(1, MOST_SHARDS);
        let shards = 1 << shards.ilog2();
        Memory { shards: (0..shards).map(|_| Mutex::new(Shard::new(bytes / shards))).collect(), bytes, numbers: Numbers::default() }
    }

    /// The form of a body, in that coding and at least at that level. `to_raise` is the level that the caller would try for, if this
    /// is the moment for it.
    pub fn look(&self, name: &Name, coding: Coding, least: Level, to_raise: Option<Level>) -> Look {
        let mut shard = self.shard(name);
        let seen = shard.see(name);
        let found = shard.form(name, coding).filter(|kept| kept.form.level >= least).map(|kept| {
            kept.hits = kept.hits.saturating_add(1);
            let popular = kept.hits >= POPULAR_HITS && !kept.raising && to_raise.is_some_and(|level| kept.form.level < level);
            kept.raising |= popular;
            Look::Found { form: kept.form.clone(), popular }
        });
        drop(shard);
        let number = match &found {
            Some(Look::Found { form, .. }) => {
                self.numbers.spared_ns.fetch_add(form.cost_ns, Relaxed);
                &self.numbers.hits
            }
            _ => &self.numbers.misses,
        };
        number.fetch_add(1, Relaxed);
        found.unwrap_or(if seen { Look::Known } else { Look::New })
    }

    /// Keeps a form of a body, unless there is a better form or no room that it is worth; returns whether it did.
    pub fn keep(&self, name: &Name, form: Form) -> bool {
        let mut shard = self.shard(name);
        if shard.form(name, form.coding).is_some_and(|kept| kept.form.level >= form.level) {
            return true;
        }
        let (kept, gone) = shard.keep(name, form);
        drop(shard);
        self.count_kept(kept, gone)
    }

    /// Ends the try for a better form of a body, with that form if there is any. It takes the place of the former form,
    /// unless it is larger.
    pub fn raise(&self, name: &Name, coding: Coding, better: Option<Form>) {
        let mut shard = self.shard(name);
        // It may have gone meanwhile: then so few clients ask for it that it is not needed back.
        let Some(kept) = shard.form(name, coding) else { return };
        (kept.raising, kept.hits) = (false, 0);
        let Some(mut better) = better else { return };
        better.cost_ns = kept.form.cost_ns;
        let before = kept.form.bytes.len();
        if better.bytes.len() >= before {
            // Nothing is won, and no further try shall be made.
            kept.form.level = kept.form.level.max(better.level);
            return;
        }
        let saved = before - better.bytes.len();
        // It is smaller: no other form has to go for it.
        let (kept, _) = shard.keep(name, better);
        drop(shard);
        if kept {
            self.numbers.raised.fetch_add(1, Relaxed);
            self.numbers.raised_bytes.fetch_add(saved as u64, Relaxed);
        }
    }

    /// Its counters.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The bodies that it holds now, and the bytes that they take.
    pub fn held(&self) -> (usize, usize) {
        let each = self.shards.iter().map(|shard| lock(shard).held());
        each.fold((0, 0), |(bodies, bytes), (more, taken)| (bodies + more, bytes + taken))
    }

    /// The most bytes that it may hold.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets all bodies.
    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| lock(shard).clear());
    }

    fn count_kept(&self, kept: bool, gone: usize) -> bool {
        let number = if kept { &self.numbers.admitted } else { &self.numbers.refused };
        number.fetch_add(1, Relaxed);
        self.numbers.evicted.fetch_add(gone as u64, Relaxed);
        kept
    }

    fn shard(&self, name: &Name) -> MutexGuard<'_, Shard> {
        // The number of shards is a power of two.
        lock(&self.shards[name.0[1] as usize & (self.shards.len() - 1)])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
