//! The incremental coder of a body: with a slot of its connection, and with a dictionary where reading that costs no more than it wins.

use super::Compressor;
use crate::coder::{Coder, Engine, Flush, Keep, Pool, dcz};
use crate::coding::Level;
use crate::dictionary::{Trial, is_worth};
use crate::slots::Slots;
use std::sync::Arc;
use terse_dictionary::Dictionary;

/// Length of a body, as far as it is known when its coder is made.
#[derive(Clone, Copy)]
pub(super) enum Length {
    /// Nothing is known.
    Unknown,
    /// The length in the head: fewer bytes may come.
    Said(u64),
    /// The length of a body that is all there.
    Exact(u64),
}

impl Length {
    pub(super) fn of_stream(said: Option<u64>) -> Length {
        said.map_or(Length::Unknown, Length::Said)
    }
}

impl Compressor {
    /// Makes the coder of a stream, which takes a slot if one is left.
    pub(super) fn new_coder(&mut self) -> Box<dyn Coder> {
        if self.slot.is_none() {
            self.slot = self.slots.as_ref().and_then(Slots::take);
        }
        self.make_coder(Length::of_stream(self.known_bytes.map(|bytes| bytes as u64)), 0)
    }

    /// Makes a coder, beside so many bytes of input. It does without its dictionary where that may not be read.
    pub(super) fn make_coder(&mut self, length: Length, input: usize) -> Box<dyn Coder> {
        let dictionary = self.dictionary.as_ref().map(|dictionary| (dictionary, self.trial));
        let mut coder = coder_of(self.engine, self.plan.level, dictionary, length, &self.place.pool);
        let may_read = self.dictionary.as_deref().is_none_or(|dictionary| self.may_read(dictionary, length));
        if self.dictionary.is_some() && !(may_read && self.hold(coder.full_memory() + input)) {
            coder.lighten(Keep::Nothing);
        }
        coder
    }

    /// Whether the form that was just made is one that its dictionary was no help for: it is not to be kept.
    pub(super) fn is_not_worth(&self) -> bool {
        let noted = |(dictionary, trial): (&Arc<Dictionary>, Trial)| dictionary.notes.has(trial.pair);
        self.dictionary.as_ref().zip(self.trial).is_some_and(noted)
    }

    /// Whether a dictionary may be read: it is not far larger than the body, and a thread of the queue is free to read it, unless that takes a
    /// short time.
    fn may_read(&self, dictionary: &Dictionary, length: Length) -> bool {
        let is_long = read_ns(dictionary) > READ_IN_PLACE_NS;
        let has_thread = self.place.queue.is_some() && !self.is_crowded();
        let bytes = if let Length::Exact(bytes) = length { bytes } else { u64::MAX };
        is_worth(dictionary.bytes().len(), bytes) && (has_thread || !is_long)
    }

    /// Expected time of a push of so many bytes with that flush, in nanoseconds. The first one reads the dictionary; if it is the last one,
    /// too, what comes out may be compared with the ordinary form.
    pub(super) fn push_ns(&self, coder: &dyn Coder, bytes: usize, flush: Flush) -> u64 {
        let unread = self.dictionary.as_deref().filter(|_| coder.memory() == 0 && self.bytes_out == 0);
        let trial = self.trial.filter(|_| flush == Flush::Finish);
        let compared = unread.zip(trial).map_or(0, |(dictionary, trial)| trial.due_ns(bytes, dictionary));
        self.engine
            .stream_ns(self.plan.level, coder.due(bytes, flush))
            .saturating_add(unread.map_or(0, read_ns))
            .saturating_add(compared)
    }
}

/// The incremental coder of a body.
pub(super) fn coder_of(
    engine: &Engine,
    level: Level,
    dictionary: Option<(&Arc<Dictionary>, Option<Trial>)>,
    length: Length,
    pool: &Arc<Pool>,
) -> Box<dyn Coder> {
    let (bytes, is_exact) = match length {
        Length::Unknown => (None, false),
        Length::Said(bytes) => (Some(bytes), false),
        Length::Exact(bytes) => (Some(bytes), true),
    };
    match dictionary {
        Some((dictionary, trial)) if engine.coding.has_dictionary() => {
            Box::new(dcz::Stream::new(level, bytes, is_exact, dictionary, pool).compared(trial))
        }
        _ => (engine.stream)(level, bytes, pool),
    }
}

fn read_ns(dictionary: &Dictionary) -> u64 {
    dcz::PRIME_NS * dictionary.bytes().len() as u64
}

/// Time in which a worker may read a dictionary itself, in nanoseconds.
const READ_IN_PLACE_NS: u64 = 5_000_000;
