//! Engines of compression: coders of pieces.
//!
//! An input is cut into pieces that are coded on all cores at once, and the outputs are joined into one stream. A coder
//! belongs to one worker. It gets pieces in order, not necessarily neighbours. With each it gets the bytes before it,
//! if its format can refer to them without having coded them.

mod brotli;
mod deflate;
pub mod device;
mod isal;
mod zstd;

use crate::fault::Fault;
use crate::form::Form;

pub(crate) use brotli::Joiner;

/// A piece of the input.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Bytes of the piece. Only an empty input has an empty piece.
    pub bytes: &'a [u8],
    /// Up to [`HISTORY_BYTES`] bytes before it.
    pub history: &'a [u8],
    /// Whether it is the first piece.
    pub is_first: bool,
    /// Whether it is the last piece.
    pub is_last: bool,
}

/// Distance that deflate can refer back to, in bytes.
pub const HISTORY_BYTES: usize = 1 << 15;

/// A worker's coder.
pub trait Coder: Send {
    /// Appends the coded form of a piece, which ends at the border of a byte.
    ///
    /// # Errors
    /// [`Fault::Engine`]: a coder that broke.
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault>;
}

/// An engine: an implementation of a format.
pub struct Engine {
    /// Name in `--engine`.
    pub name: &'static str,
    /// Format of its output.
    pub form: Form,
    /// Description in a few words.
    pub about: &'static str,
    /// Limit of a piece, in bytes.
    pub piece_bytes: usize,
    /// Makes a coder of a level that the format has.
    pub make: &'static Make,
}

/// Constructor of a coder of a level.
pub type Make = dyn Fn(u8) -> Result<Box<dyn Coder>, Fault> + Send + Sync;

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All engines, including those that some machines lack. The default of a format is its first, except for [`of`].
pub const ENGINES: &[Engine] = &[
    Engine {
        name: "deflate",
        form: Form::Gzip,
        about: "terse's own (rows) to level 7, libdeflate above and for quick texts: gzip's sizes for a quarter of its time",
        piece_bytes: 1 << 20,
        make: &deflate::usual,
    },
    Engine {
        name: "libdeflate",
        form: Form::Gzip,
        about: "whole pieces, levels 1 to 12",
        piece_bytes: 1 << 20,
        make: &deflate::whole,
    },
    Engine {
        name: "zlib-rs",
        form: Form::Gzip,
        about: "zlib's way, which refers back into the piece before",
        piece_bytes: 1 << 18,
        make: &deflate::stream,
    },
    Engine {
        name: "rows",
        form: Form::Gzip,
        about: "terse's own, which refers back too; levels above 7 are 7",
        piece_bytes: 1 << 20,
        make: &deflate::rows,
    },
    Engine {
        name: ISAL,
        form: Form::Gzip,
        about: "Intel's ISA-L, whole pieces; its levels are one, that of -1",
        piece_bytes: 1 << 20,
        make: &isal::pieces,
    },
    Engine {
        name: "zstd",
        form: Form::Zstd,
        about: "the format's reference library; pieces are frames",
        piece_bytes: 4 << 20,
        make: &zstd::frames,
    },
    Engine {
        name: "brotli",
        form: Form::Brotli,
        about: "pieces that can be joined, without the format's dictionary",
        piece_bytes: 4 << 20,
        make: &brotli::pieces,
    },
];

/// ISA-L's name.
const ISAL: &str = "isal";

/// Engines that this machine has.
pub fn present() -> impl Iterator<Item = &'static Engine> {
    ENGINES.iter().filter(|engine| engine.name != ISAL || isal::is_there())
}

/// The engine of a name.
pub fn find(name: &str) -> Option<&'static Engine> {
    present().find(|engine| engine.name == name)
}

/// Engine of a format at a level: the one that keeps the level's promise on size in the least time.
pub fn of(form: Form, level: u8) -> &'static Engine {
    let quick = find(ISAL).filter(|quick| quick.form == form && level == 1);
    quick.or_else(|| present().find(|engine| engine.form == form)).unwrap_or(&ENGINES[0])
}

/// Names of the engines, for messages.
pub(crate) fn names() -> String {
    present().map(|engine| engine.name).collect::<Vec<_>>().join(", ")
}

/// The engines, for `--engines`.
pub(crate) fn list() -> String {
    present().map(|engine| format!("{:<12} {:<7} {}\n", engine.name, engine.form.name(), engine.about)).collect()
}
