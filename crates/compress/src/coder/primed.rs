//! A state of zstd with a dictionary before it.
//!
//! The library keeps a pointer to the dictionary's bytes for as long as a frame is coded, and has no lifetime for a state that outlives a
//! call. Here the bytes are held beside the state, and none leaves the other.

#![allow(unsafe_code, reason = "a state refers to bytes that are held beside it")]

use super::{CoderFault, Flush, zstd};
use std::sync::Arc;
use terse_dictionary::Dictionary;
use zstd_safe::{CCtx, ResetDirective};

/// A state at the beginning of a frame, or within it, that may refer to a dictionary.
pub(super) struct Primed {
    /// First: it goes before the bytes do.
    state: CCtx<'static>,
    /// What the state may point to.
    _dictionary: Option<Arc<Dictionary>>,
}

impl Primed {
    /// A state whose next frame refers to the dictionary as raw bytes, whatever they look like.
    pub(super) fn new(mut state: CCtx<'static>, dictionary: Option<Arc<Dictionary>>) -> Result<Primed, CoderFault> {
        if let Some(dictionary) = &dictionary {
            let bytes = dictionary.bytes();
            // SAFETY: the bytes lie in an `Arc` that is never written to, and that is kept beside the state until the state is dropped or has
            // forgotten them (`Primed::into_state`). The state cannot leave this struct otherwise: the field is private, and no
            // method lends it out.
            let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
            state.ref_prefix(bytes).map_err(|_| CoderFault)?;
        }
        Ok(Primed { state, _dictionary: dictionary })
    }

    /// Pushes all of `input` through the state.
    pub(super) fn push(&mut self, input: &[u8], out: &mut Vec<u8>, flush: Flush) -> Result<(), CoderFault> {
        zstd::compress(&mut self.state, input, out, flush)
    }

    /// Pushes a whole body through the state.
    pub(super) fn push_whole(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CoderFault> {
        zstd::compress_whole(&mut self.state, input, out)
    }

    /// Bytes of the state.
    pub(super) fn memory(&self) -> usize {
        self.state.sizeof()
    }

    /// The state without a dictionary, for another body; none if it cannot be had.
    pub(super) fn into_state(mut self) -> Option<CCtx<'static>> {
        // Parameters and dictionaries go together.
        self.state.reset(ResetDirective::SessionAndParameters).ok()?;
        Some(self.state)
    }
}
