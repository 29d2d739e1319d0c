//! The decoder of `deflate`.

#![no_main]

mod decoder;

use libfuzzer_sys::fuzz_target;
use terse_compress::Coding;

fuzz_target!(|input: &[u8]| decoder::check(Coding::Deflate, input));
