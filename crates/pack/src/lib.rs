//! `terse gzip` and `terse gunzip`: files and streams, compressed on all cores.
//!
//! ```text
//!  words ──> options ──> operands, one after the other
//!                            │
//!    compress: pieces ──> workers, each with a coder of an engine ──> joined in order into one stream ──> draft ──> its name
//!    decompress: members, frames ──> checked ──> draft ──> its name
//! ```
//!
//! Invariants:
//! * Under a file's final name there is nothing, the previous file, or the complete output ([`draft`]); the input is
//!   removed after that.
//! * Memory does not depend on the input's size: a few pieces for each worker.
//! * Output in gzip's format is one member, which every reader of the format (RFC 1952) takes.
//! * No input panics: its flaws are a [`Fault`], in gzip's words.

pub mod draft;
pub mod engine;
mod fault;
mod form;
pub mod header;
mod interrupt;
mod line;
mod listing;
mod operand;
pub mod options;
mod progress;
mod report;
mod stream;
mod suffix;
pub mod unpack;
mod walk;

#[cfg(test)]
mod conformance;

pub use engine::device::Devices;
pub use fault::Fault;
pub use form::Form;
pub use options::Options;

use engine::device;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs `terse gzip` and `terse gunzip`, with the arguments after them. Returns gzip's exit codes: 0, 1 for an error, 2
/// for a warning.
///
/// To be called while one thread runs: `devices` may start processes.
pub fn run(command: options::Command, words: impl IntoIterator<Item = OsString>, devices: &dyn Devices) -> ExitCode {
    let done = Options::parse(command, words).and_then(|request| match request {
        options::Request::Work(mut options) => {
            if let (Some(name), options::Mode::Compress) = (&options.device, options.mode) {
                let threads = options.processes.unwrap_or_else(Options::cores);
                options.opened = Some(device::open(name, &options.configuration, threads, devices)?);
            }
            Ok(walk::walk(&options))
        }
        options::Request::Say(text) => Ok(report::answer(&text)),
        options::Request::Engines(files) => Ok(report::answer(&(engine::list() + &device::list(&files, devices)?))),
    });
    done.unwrap_or_else(|misuse| report::misuse(command, &misuse))
}
