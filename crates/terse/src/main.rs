//! `terse`: see the library beside this file, and `terse_pack` for `terse gzip` and `terse gunzip`.

use std::ffi::OsString;
use std::process::ExitCode;
use terse_pack::options::Command;

/// Requests take and give back memory by the dozen: this allocator does it in less time than the C library's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(ended) = terse::engines::part(&words) {
        return ended;
    }
    if words.get(1).is_some_and(|word| word == "health") {
        return terse::health::run(words.into_iter().skip(2));
    }
    if words.get(1).is_some_and(|word| word == "check") {
        return terse::check::run(words.into_iter().skip(2));
    }
    #[cfg(feature = "top")]
    if words.get(1).is_some_and(|word| word == "top") {
        return terse_top::run(words.into_iter().skip(2).map(|word| word.to_string_lossy().into_owned()));
    }
    let command = match words.get(1).and_then(|word| word.to_str()) {
        Some("gzip") => Some(Command::Gzip),
        Some("gunzip") => Some(Command::Gunzip),
        _ => None,
    };
    match command {
        Some(command) => {
            terse::engines::find_fast_code();
            terse_pack::run(command, words.into_iter().skip(2), &terse::engines::ForFiles)
        }
        None => terse::life::live(words),
    }
}
