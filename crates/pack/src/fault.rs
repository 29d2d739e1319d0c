//! Faults of a file, in gzip's words.

use std::io;

/// Reason why a file could not be compressed or decompressed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The input could not be read.
    #[error("{}", plain(.0))]
    Read(io::Error),
    /// The output could not be written.
    #[error("{}", plain(.0))]
    Write(io::Error),
    /// The input has no known format, or not the requested one.
    #[error("not in {0} format")]
    Format(&'static str),
    /// The input ends in the middle.
    #[error("unexpected end of file")]
    End,
    /// The compressed data are malformed.
    #[error("invalid compressed data--format violated")]
    Violated,
    /// The checksum of the output differs.
    #[error("invalid compressed data--crc error")]
    Checksum,
    /// The length of the output differs.
    #[error("invalid compressed data--length error")]
    Length,
    /// The name in the head is longer than any file's.
    #[error("corrupted input -- file name too large")]
    LongName,
    /// A part of the format that is not supported.
    #[error("{0} -- not supported")]
    Unsupported(String),
    /// A coder broke: never with a sound one.
    #[error("the engine failed")]
    Engine,
}

impl Fault {
    /// Whether the reader of the output has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Fault::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The system's message, without Rust's number after it.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
