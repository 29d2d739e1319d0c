//! ISA-L's igzip, by itself and in place of other coders, through the cases that all engines pass.
//!
//! The library is not installed for tests: everything that runs here would use it then. `make test` fetches it into the
//! target folder, and runs these with `LD_LIBRARY_PATH`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use terse_card::isal::{self, Isal, NAME};
use terse_compress::coder::{Engine, Fast, Pool, Tuning, fast};
use terse_compress::device::room_for;
use terse_compress::{Coding, Level};
use terse_trial::bodies::text;
use terse_trial::{Form, Whole, whole};

struct Raw(Isal);

impl Whole for Raw {
    fn name(&self) -> String {
        Fast::name(&self.0)
    }

    fn form(&self) -> Form {
        Form::Raw
    }

    fn levels(&self) -> Vec<u8> {
        vec![1, 2]
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        self.0.deflate(body, Level(level), out).map_err(|fault| format!("{fault:?}"))
    }

    fn bound(&self, bytes: usize) -> usize {
        room_for(bytes)
    }
}

/// Engine for gzip, which uses the library once it is registered.
struct Gzip(Pool);

impl Whole for Gzip {
    fn name(&self) -> String {
        format!("gzip with {}", fast::installed().unwrap().name())
    }

    fn form(&self) -> Form {
        Form::Gzip
    }

    fn levels(&self) -> Vec<u8> {
        vec![1, 2, 3]
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        (Engine::of(Coding::Gzip).whole)(body, Level(level), &self.0, out).map_err(|fault| format!("{fault:?}"))
    }
}

#[test]
#[ignore = "needs libisal.so.2: make test fetches it and runs this"]
fn isal_passes_what_every_engine_passes() {
    let open = || isal::load().unwrap_or_else(|unfit| panic!("{NAME}: {unfit}"));
    let raw = Raw(open());
    whole::try_all(&raw);
    let body = text(1, 400_000);
    let by_isal = |body: &[u8], level| {
        let mut out = Vec::new();
        raw.code(body, level, &mut out).unwrap();
        assert!(out.len() < body.len() / 2, "level {level}: {} of {}", out.len(), body.len());
        out
    };

    assert!(fast::install(Box::new(open())));
    let gzip = Gzip(Pool::new(Tuning::default()));
    let by_gzip = |body: &[u8], level| {
        let mut out = Vec::new();
        gzip.code(body, level, &mut out).unwrap();
        out[10..out.len() - 8].to_vec()
    };
    let short = &body[..8_000];
    assert!(by_gzip(short, 2) == by_isal(short, 2), "it is what codes level 2");
    for level in [1, 2] {
        assert!(by_gzip(&body, level) != by_isal(&body, level), "texts are our own coder's at level {level}");
    }
    whole::try_all(&gzip);
}
