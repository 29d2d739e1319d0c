//! Pieces of deflate streams (RFC 1951), coded by coders that belong to the thread.
//!
//! The table of `terse gzip` gives libdeflate's level whose output is no larger than zlib's. Longer pieces of text at
//! levels 4 to 6 are coded by terse's own coder, in 0.78 of the time of libdeflate's level 6 at level 6. A page of 131,882
//! bytes is 41,672 there, zlib's 41,945.

use libdeflater::{CompressionLvl, Compressor};
use libz_rs_sys::{Z_DEFAULT_STRATEGY, Z_FILTERED};
use std::cell::RefCell;
use terse_deflate::{Encoder, splice_streams};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status, Strategy};

/// A piece to code.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// Bytes of the piece.
    pub(crate) bytes: &'a [u8],
    /// Bytes before it, which may be referred to.
    pub(crate) history: &'a [u8],
    /// Whether it ends the stream. Other pieces end with an empty stored block at the border of a byte.
    pub(crate) is_last: bool,
}

/// Parameters of the coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Manner {
    /// Level, 0 to 9.
    pub(crate) level: u8,
    /// The window, as a power of two, 9 to 15.
    pub(crate) window_bits: u8,
    /// zlib's strategy.
    pub(crate) strategy: i32,
}

/// libdeflate's levels for zlib's 0 to 9.
const LEVELS: [i32; 10] = [0, 1, 1, 2, 3, 5, 6, 7, 8, 9];

/// Size from which a piece is worth more in one go, without the bytes before it, than in zlib's way with them.
const WORTH_ALONE: usize = 1 << 16;

/// Bytes that follow a piece which is not the last: an empty stored block after its three bits.
const MARKER: [u8; 4] = [0, 0, 0xff, 0xff];

/// Limit of a coded piece, in bytes.
pub(crate) const fn bound(bytes: usize) -> usize {
    bytes + 5 * (bytes / MAX_STORED + 1) + 1 + MARKER.len()
}

/// Limit of a stored block, in bytes (section 3.2.4).
const MAX_STORED: usize = 65_535;

/// Levels of our own coder, and none.
const OWN: usize = 1 + *terse_deflate::LEVELS.end() as usize;

/// Reusable coders of a thread.
struct Coders {
    whole: [Option<Compressor>; 10],
    stream: Option<(Manner, Deflate)>,
    /// Encoders, by their own levels.
    own: [Option<Encoder>; OWN],
}

thread_local! {
    static CODERS: RefCell<Coders> =
        const { RefCell::new(Coders { whole: [const { None }; 10], stream: None, own: [const { None }; OWN] }) };
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Limit of a thread's scratch memory between pieces.
const MAX_SCRATCH: usize = 1 << 20;

/// Codes a piece and passes the output, at most [`bound`] bytes, to `then`. `None`: a coder broke.
pub(crate) fn code<R>(piece: &Piece<'_>, manner: Manner, then: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
    scratch.clear();
    let coded = code_into(piece, manner, &mut scratch);
    let result = coded.map(|()| then(&scratch));
    if scratch.capacity() <= MAX_SCRATCH {
        let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
    }
    result
}

fn code_into(piece: &Piece<'_>, manner: Manner, out: &mut Vec<u8>) -> Option<()> {
    if piece.bytes.is_empty() && !piece.is_last {
        out.push(0);
        out.extend_from_slice(&MARKER);
        return Some(());
    }
    if manner.level == 0 {
        store(piece, out);
        return Some(());
    }
    let reach = piece.history.len() + piece.bytes.len();
    let is_plain = matches!(manner.strategy, Z_DEFAULT_STRATEGY | Z_FILTERED);
    let fits_window = manner.window_bits >= 15 || reach <= 1 << manner.window_bits;
    let in_one_go = is_plain && fits_window && (piece.history.is_empty() || piece.bytes.len() >= WORTH_ALONE);
    CODERS
        .try_with(|coders| {
            let coders = &mut *coders.borrow_mut();
            match terse_deflate::for_zlib(manner.level, piece.bytes) {
                Some(level) if in_one_go => coders.own(piece, manner.level, level, out),
                _ if in_one_go => coders.whole(piece, manner.level, out),
                _ => coders.stream(piece, manner, out),
            }
        })
        .ok()
        .flatten()?;
    if out.len() > stored_bytes(piece) {
        out.clear();
        store(piece, out);
    }
    Some(())
}

impl Coders {
    fn whole(&mut self, piece: &Piece<'_>, level: u8, out: &mut Vec<u8>) -> Option<()> {
        let place = usize::from(level).min(LEVELS.len() - 1);
        let coder = match &mut self.whole[place] {
            Some(coder) => coder,
            none => none.insert(Compressor::new(CompressionLvl::new(LEVELS[place]).ok()?)),
        };
        out.resize(coder.deflate_compress_bound(piece.bytes.len()), 0);
        let given = coder.deflate_compress(piece.bytes, out).ok()?;
        out.truncate(given);
        if piece.is_last { Some(()) } else { splice_streams::open(out, 0) }
    }

    /// Codes at a level of our own coder that stands for zlib's.
    fn own(&mut self, piece: &Piece<'_>, zlib: u8, level: u8, out: &mut Vec<u8>) -> Option<()> {
        let coder = self.own.get_mut(usize::from(level))?.get_or_insert_with(|| Encoder::new(level));
        coder.encode(piece.history, piece.bytes, piece.is_last, out);
        if out.len() * terse_deflate::WORST < piece.bytes.len() {
            let mut again = Vec::new();
            self.whole(piece, zlib, &mut again)?;
            if again.len() < out.len() {
                *out = again;
            }
        }
        Some(())
    }

    /// Codes in zlib's way: for short pieces after others, for windows that are smaller than the piece, for strategies.
    fn stream(&mut self, piece: &Piece<'_>, manner: Manner, out: &mut Vec<u8>) -> Option<()> {
        let state = match &mut self.stream {
            Some((kept, state)) if *kept == manner => {
                state.reset();
                state
            }
            other => {
                let config = DeflateConfig {
                    level: i32::from(manner.level),
                    window_bits: -i32::from(manner.window_bits),
                    strategy: Strategy::try_from(manner.strategy).ok()?,
                    ..DeflateConfig::default()
                };
                &mut other.insert((manner, Deflate::new_with_config(config))).1
            }
        };
        if !piece.history.is_empty() {
            state.set_dictionary(piece.history).ok()?;
        }
        let flush = if piece.is_last { DeflateFlush::Finish } else { DeflateFlush::SyncFlush };
        let mut left = piece.bytes;
        loop {
            let (start, taken, given) = (out.len(), state.total_in(), state.total_out());
            out.resize(start + bound(left.len()), 0);
            let status = state.compress(left, &mut out[start..], flush).ok()?;
            left = left.get((state.total_in() - taken) as usize..)?;
            let filled = start + (state.total_out() - given) as usize;
            let is_full = filled == out.len();
            out.truncate(filled);
            match status {
                Status::StreamEnd => return Some(()),
                _ if !is_full && left.is_empty() && !piece.is_last => return Some(()),
                Status::BufError if !is_full => return None,
                _ => {}
            }
        }
    }
}

/// A piece without compression.
fn store(piece: &Piece<'_>, out: &mut Vec<u8>) {
    let mut left = piece.bytes;
    loop {
        let (now, later) = left.split_at(left.len().min(MAX_STORED));
        let length = now.len() as u16;
        out.push(u8::from(piece.is_last && later.is_empty()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(now);
        left = later;
        if left.is_empty() {
            break;
        }
    }
    if !piece.is_last {
        out.push(0);
        out.extend_from_slice(&MARKER);
    }
}

fn stored_bytes(piece: &Piece<'_>) -> usize {
    let blocks = piece.bytes.len().div_ceil(MAX_STORED).max(1);
    piece.bytes.len() + 5 * (blocks + usize::from(!piece.is_last))
}
