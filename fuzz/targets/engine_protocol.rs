//! What an engine's process says on its socket and writes into the memory that it shares with terse: no order is lost or ended twice, and
//! no result comes from beyond its slot.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| terse_card::hostile::play(script));
