//! Pieces of a deflate stream by the machine's quick code for low levels (ISA-L), where it is installed. They are whole
//! streams that are opened at their ends, as libdeflate's are.
//!
//! There is one level, igzip's 3: the least that keeps the promise of gzip's `-1`. In bytes, with pieces of a megabyte,
//! and nanoseconds a byte on one core:
//!
//! ```text
//!                 the Canterbury corpus as one tar    60 MB of /usr       kennedy.xls        alice29.txt
//!   zlib 1        867,155                             29,071,836          242,293            65,130
//!   igzip 2       861,229 (1.8)                       29,291,383 (1.2)    251,671 (1.4)      62,285 (2.6)
//!   igzip 3       836,385 (2.1)                       28,866,432 (2.0)    239,569 (1.7)      60,893 (2.5)
//!   libdeflate 1  793,918 (3.4)                       28,486,008 (4.4)    221,813 (2.0)      59,790 (4.5)
//! ```

use super::{Coder, Piece};
use crate::fault::Fault;
use terse_compress::Level;
use terse_compress::coder::{Fast, fast};
use terse_deflate::splice_streams;

/// Whether ISA-L is installed.
pub(super) fn is_there() -> bool {
    fast::installed().is_some()
}

/// The coder.
pub(super) fn pieces(_: u8) -> Result<Box<dyn Coder>, Fault> {
    Ok(Box::new(Quick(fast::installed().ok_or(Fault::Engine)?)))
}

struct Quick(&'static dyn Fast);

impl Coder for Quick {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = out.len();
        self.0.deflate(piece.bytes, LEVEL, out).map_err(|_| Fault::Engine)?;
        if !piece.is_last {
            splice_streams::open(out, start).ok_or(Fault::Engine)?;
        }
        Ok(())
    }
}

/// Level that stands for igzip's 3 there.
const LEVEL: Level = Level(2);
