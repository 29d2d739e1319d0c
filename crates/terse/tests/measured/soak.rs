//! A short form of `make soak`: mixed work beside HAProxy with three reloads. Every body is right, and all memory and descriptors
//! are given back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::path::PathBuf;
use std::time::Duration;
use support::PATIENCE;
use terse_lab::soak::{Options, run};

#[test]
fn a_few_seconds_of_everything_leave_nothing() {
    let _machine = crate::alone();
    let options = Options {
        terse: PathBuf::from(env!("CARGO_BIN_EXE_terse")),
        // The bar of memory is for a release: a debug build is larger before it does anything.
        haproxy: None,
        time: Duration::from_secs(20),
        quiet: PATIENCE,
        clients: 1,
        only: Vec::new(),
    };
    assert!(run(&options).unwrap(), "the lines above say what failed");
}
