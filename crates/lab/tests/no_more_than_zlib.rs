//! A whole body never comes out larger than zlib's of the same level, whichever coder the policy chooses, except for [`ALLOWANCE`].
//!
//! zlib is the system's; where there is none, nothing is compared, and the test reports that. Bodies are the origin's, and the
//! Canterbury corpus where `TERSE_SHARED` names the folder that has it.

#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(unsafe_code)]

use std::ffi::{c_int, c_ulong};
use terse_compress::coder::{Engine, Pool, Tuning};
use terse_compress::coding::{Coding, Level};
use terse_lab::content::{page::page, picture::Picture, records::records, script::script};

/// `compress2` of zlib.h.
type Compress2 = unsafe extern "C" fn(*mut u8, *mut c_ulong, *const u8, c_ulong, c_int) -> c_int;

/// zlib's size of a body.
fn zlib_bytes(zlib: &libloading::Library, body: &[u8], level: u8) -> usize {
    let mut out = vec![0u8; body.len() + body.len() / 1000 + 64];
    let mut length = out.len() as c_ulong;
    // SAFETY: zlib's function of this name has this type.
    let compress2 = unsafe { zlib.get::<Compress2>(b"compress2\0") }.expect("zlib's function");
    // SAFETY: both buffers have the given lengths, and nothing is kept of them.
    let code = unsafe { compress2(out.as_mut_ptr(), &mut length, body.as_ptr(), body.len() as c_ulong, c_int::from(level)) };
    assert_eq!(code, 0, "zlib's answer");
    length as usize
}

fn our_bytes(pool: &Pool, body: &[u8], level: u8) -> usize {
    let mut out = Vec::new();
    (Engine::of(Coding::Deflate).whole)(body, Level(level), pool, &mut out).expect("a sound coder");
    out.len()
}

fn bodies() -> Vec<(String, Vec<u8>)> {
    let mut bodies = Vec::new();
    for bytes in [1000, 8192, 24 * 1024 - 1, 24 * 1024, 40_000, 131_882, 256 * 1024] {
        bodies.push((format!("a script of {bytes}"), script(bytes as u64, bytes, 2048).bytes));
        bodies.push((format!("a page of {bytes}"), page(bytes as u64, bytes).bytes));
    }
    for count in [20, 200, 1700] {
        bodies.push((format!("{count} records"), records(count as u64, count).bytes));
    }
    bodies.push(("a bitmap".to_owned(), Picture::city(1, 600, 450).bitmap(256 * 1024).bytes));
    match std::env::var_os("TERSE_SHARED") {
        None => eprintln!("The Canterbury corpus was left out: TERSE_SHARED is not set."),
        Some(shared) => {
            let folder = std::path::Path::new(&shared).join("corpora/canterbury");
            for entry in std::fs::read_dir(&folder).expect("the corpus") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                bodies.push((name, std::fs::read(&path).expect("a file")));
            }
        }
    }
    bodies
}

/// Bytes. libdeflate codes the lengths of its codes less well where bodies are short. A script of 1,000 bytes is 610 by zlib and
/// 620 by it.
const ALLOWANCE: usize = 16;

#[test]
fn whole_bodies_are_no_larger_than_zlibs() {
    // SAFETY: the system's zlib does nothing when it is loaded.
    let Ok(zlib) = (unsafe { libloading::Library::new("libz.so.1") }) else {
        eprintln!("Nothing was compared: there is no libz.so.1.");
        return;
    };
    let pool = Pool::new(Tuning::default());
    let mut larger = Vec::new();
    for (name, body) in bodies() {
        for level in 1..=9 {
            let (ours, theirs) = (our_bytes(&pool, &body, level), zlib_bytes(&zlib, &body, level));
            if ours > theirs + ALLOWANCE {
                larger.push(format!("{name} at level {level}: {ours}, zlib {theirs}"));
            }
        }
    }
    assert!(larger.is_empty(), "larger than zlib's:\n{}", larger.join("\n"));
}
