//! The configuration language with everybody's keywords: no bytes make it panic, and what is said about a file says something.

#![no_main]

use libfuzzer_sys::fuzz_target;
use terse_config::{Environment, Loader, Settings, Source};

fuzz_target!(|input: &[u8]| {
    let environment = Environment { version: "3.5".into(), features: vec!["THREAD".into()], ..Environment::default() };
    let mut shared = Settings::default();
    *shared.entry() = terse::keywords::samples(&environment);
    let loader = Loader { tables: terse::keywords::tables(), environment };
    let source = Source { name: "fuzz.cfg".into(), bytes: input.to_vec() };
    let (_, diagnostics) = loader.load(&[source], shared);
    assert!(diagnostics.iter().all(|diagnostic| !diagnostic.reason.is_empty()));
});
