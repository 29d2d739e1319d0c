//! The coder that changes nothing.

use super::{Coder, CoderFault, Flush, Keep};

/// See the module.
pub(super) struct Identity;

impl Coder for Identity {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, _: Flush) -> Result<(), CoderFault> {
        out.extend_from_slice(input);
        Ok(())
    }

    fn reset(&mut self) {}

    fn lighten(&mut self, _: Keep) {}

    fn memory(&self) -> usize {
        0
    }

    fn full_memory(&self) -> usize {
        0
    }

    fn history_memory(&self) -> usize {
        0
    }
}
