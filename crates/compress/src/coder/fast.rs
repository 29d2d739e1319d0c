//! Quicker code than libdeflate's for whole bodies at the lowest levels, if this machine has any.
//!
//! Whether a library such as ISA-L is there is a fact about the machine, like its processor's instructions: it is found out
//! once, by the program, before the first body is coded, and then never changes. So the place for it is the process's.

use super::CoderFault;
use crate::coding::Level;
use std::sync::OnceLock;

/// Code that makes a raw deflate stream of a whole body.
pub trait Fast: Send + Sync {
    /// Its name, with its version.
    fn name(&self) -> String;

    /// Whether it is to be used at this level of zlib's: its output is no larger there than zlib's on text.
    fn takes(&self, level: Level) -> bool;

    /// Appends the raw stream of a body.
    ///
    /// # Errors
    /// It is broken.
    fn deflate(&self, input: &[u8], level: Level, out: &mut Vec<u8>) -> Result<(), CoderFault>;
}

/// Installs it; false when there is one already.
pub fn install(fast: Box<dyn Fast>) -> bool {
    INSTALLED.set(fast).is_ok()
}

/// The installed code, if any.
pub fn installed() -> Option<&'static dyn Fast> {
    INSTALLED.get().map(|fast| &**fast)
}

/// The installed code for a level.
pub(super) fn of(level: Level) -> Option<&'static dyn Fast> {
    installed().filter(|fast| fast.takes(level))
}

static INSTALLED: OnceLock<Box<dyn Fast>> = OnceLock::new();
