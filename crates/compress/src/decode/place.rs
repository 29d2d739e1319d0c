//! State that the decoders of a worker share: the memory that they count against, and states that wait for the next body.
//!
//! A state for deflate costs 40 KB of fresh pages, a state of zstd 160 KB. It stays on its worker's thread, so there is no
//! lock. At most [`MAX_IDLE`] of each coding wait here, none that has grown for a large window, and none that [`Place::trim`]
//! finds unneeded.

use super::{Decoder, decoder};
use crate::budget::Budget;
use crate::coding::{CODINGS, Coding};
use crate::idle::Idle;
use std::cell::RefCell;
use std::sync::Arc;

/// States that wait at most, of each coding.
const MAX_IDLE: usize = 8;
/// A state that is larger is not kept.
const MAX_IDLE_BYTES: usize = 256 * 1024;

/// Decoders' states and memory; a worker has one.
pub struct Place {
    idle: [RefCell<Idle<Box<dyn Decoder>>>; CODINGS.len()],
    budget: Arc<dyn Budget>,
}

impl Place {
    /// A place without states.
    pub fn new(budget: Arc<dyn Budget>) -> Place {
        Place { idle: Default::default(), budget }
    }

    /// The memory that bodies count against.
    pub fn budget(&self) -> &dyn Budget {
        &*self.budget
    }

    /// A decoder at the beginning of a body; `None` when there is no memory for it, and for `identity`.
    pub(super) fn take(&self, coding: Coding) -> Option<Box<dyn Decoder>> {
        self.idle[coding as usize].borrow_mut().take().or_else(|| decoder(coding))
    }

    /// Takes it back.
    pub(super) fn give(&self, coding: Coding, mut decoder: Box<dyn Decoder>) {
        if decoder.memory() <= MAX_IDLE_BYTES {
            decoder.reset();
            self.idle[coding as usize].borrow_mut().give(MAX_IDLE, decoder);
        }
    }

    /// Drops the states that were not needed since the last time.
    pub fn trim(&self) {
        self.idle.iter().for_each(|idle| drop(idle.borrow_mut().trim()));
    }
}
