//! Memory and time of processes under test, and their behaviour under load.
//!
//! These tests are apart from the others so that these do not disturb their figures. Those that take a machine whole hold [`alone`].

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod chaos;
mod engines;
mod hostile_files;
mod memory;
mod soak;
mod streaming;
#[path = "../support/mod.rs"]
mod support;
mod variable_memory;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The right to the machine: of the tests that hold it, no two run at a time.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
