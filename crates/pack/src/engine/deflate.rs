//! Pieces of a deflate stream (RFC 1951): by terse's own coder, libdeflate, whose streams are opened at their end
//! ([`terse_deflate::splice_streams`]), and zlib-rs.
//!
//! A level is a promise on size: no more bytes than gzip's own level of that number. The table shows the levels that
//! keep it at the least cost, in bytes, with pieces of a megabyte. The inputs are the Canterbury corpus as one tar,
//! which is eight pieces for terse's own, and 60 MB of an image of /usr:
//!
//! ```text
//!            gzip                    libdeflate                  terse's own
//!   1        873,330 27,619,492      1   793,781 26,804,125
//!   2        842,962 27,068,190      1
//!   3        812,034 26,631,312      2   750,606 26,144,452
//!   4        789,538 25,999,601      3   740,984 25,909,069      2, 3   728,113
//!   5        749,883 25,565,430      5   729,724 25,388,223      4, 5   716,354
//!   6        738,784 25,379,422      6   724,771 25,258,214      6      713,875
//!   7        740,750 25,329,560      7   722,192 25,174,017      7      717,276
//!   8        736,694 25,283,720      8   699,660 25,118,024
//!   9        736,172 25,256,492      9   697,861 25,105,688
//! ```
//!
//! All 533 MB of the image at level 6: gzip 216,884,721, libdeflate 216,595,052 in 4.7 s of CPU time, terse's own 216,859,323 in
//! 2.8 s.

use super::{Coder, Piece};
use crate::fault::Fault;
use libdeflater::{CompressionLvl, Compressor};
use terse_deflate::{Encoder, splice_streams};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status};

/// libdeflate's levels for gzip's 1 to 9.
const LEVELS: [u8; 9] = [1, 1, 2, 3, 5, 6, 7, 8, 9];

/// The coder that keeps a level's promise at the least cost: our own for pieces that it makes no larger than gzip does, libdeflate.
pub(super) fn usual(level: u8) -> Result<Box<dyn Coder>, Fault> {
    let whole = Whole(compressor(level)?);
    Ok(Box::new(Usual { level, own: [const { None }; 1 + *terse_deflate::LEVELS.end() as usize], whole }))
}

/// The level of our own coder with the number of gzip's: its second, which is quick, is none of those.
fn own_level(level: u8) -> u8 {
    level.saturating_add(u8::from(level > 1)).clamp(*terse_deflate::LEVELS.start(), *terse_deflate::LEVELS.end())
}

/// The least level of our own coder that is used, also for the first where that pays. Our own first would leave more
/// bytes than libdeflate's in not much less time.
const LEAST_OWN: u8 = 2;

/// The level of our own coder that looks at one place or two for each byte. Numbers that count up have their like far back at a place that it has
/// forgotten: it leaves 0.39 of them, the next levels, in twice its time, 0.21 (gzip's third 0.31, its sixth 0.39). So a sample of a long piece is tried both ways.
const QUICK: u8 = 2;
const THOROUGH: u8 = 5;

/// Bytes of the sample, and those of a piece that is worth it. Bodies of all kinds leave 0.95 or more of the quick way's bytes in the other,
/// numbers 0.78.
const SAMPLE: usize = 8 * 1024;
const LEAST_SAMPLED: usize = 64 * SAMPLE;

struct Usual {
    level: u8,
    /// Encoders, by their own levels.
    own: [Option<Encoder>; 1 + *terse_deflate::LEVELS.end() as usize],
    whole: Whole,
}

impl Coder for Usual {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let is_for_own = self.level >= LEAST_OWN || terse_deflate::is_mostly_no_text(piece.bytes);
        let wanted = self.level.max(LEAST_OWN);
        let Some(level) = terse_deflate::for_zlib(wanted, piece.bytes).filter(|_| is_for_own) else {
            return self.whole.code(piece, out);
        };
        // Pieces refer back, so they need no higher level than gzip's to be as small.
        let mut level = level.min(own_level(wanted));
        if level == QUICK && self.is_thorough_worth_it(piece.bytes) {
            level = THOROUGH;
        }
        let Some(place) = self.own.get_mut(usize::from(level)) else { return Err(Fault::Engine) };
        let start = out.len();
        out.reserve(terse_deflate::bound(piece.bytes.len()));
        place.get_or_insert_with(|| Encoder::new(level)).encode(piece.history, piece.bytes, piece.is_last, out);
        let end = out.len();
        if (end - start) * terse_deflate::WORST < piece.bytes.len() {
            self.whole.code(piece, out)?;
            if out.len() - end < end - start {
                out.drain(start..end);
            } else {
                out.truncate(end);
            }
        }
        Ok(())
    }
}

impl Usual {
    /// Whether a piece for the quick way comes out much smaller in the other, by a sample from its middle.
    fn is_thorough_worth_it(&mut self, bytes: &[u8]) -> bool {
        let middle = bytes.len() / 2;
        let Some(sample) = bytes.get(middle..middle + SAMPLE).filter(|_| bytes.len() >= LEAST_SAMPLED) else { return false };
        let mut size = |level: u8| {
            let mut out = Vec::with_capacity(SAMPLE);
            if let Some(place) = self.own.get_mut(usize::from(level)) {
                place.get_or_insert_with(|| Encoder::new(level)).encode(&[], sample, true, &mut out);
            }
            out.len()
        };
        8 * size(THOROUGH) < 7 * size(QUICK)
    }
}

/// libdeflate's coder.
pub(super) fn whole(level: u8) -> Result<Box<dyn Coder>, Fault> {
    Ok(Box::new(Whole(compressor(level)?)))
}

fn compressor(level: u8) -> Result<Compressor, Fault> {
    let level = usize::from(level).checked_sub(1).and_then(|place| LEVELS.get(place)).copied().unwrap_or(level);
    CompressionLvl::new(i32::from(level)).map(Compressor::new).map_err(|_| Fault::Engine)
}

struct Whole(Compressor);

impl Coder for Whole {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = out.len();
        out.resize(start + self.0.deflate_compress_bound(piece.bytes.len()), 0);
        let given = self.0.deflate_compress(piece.bytes, &mut out[start..]).map_err(|_| Fault::Engine)?;
        out.truncate(start + given);
        if !piece.is_last {
            splice_streams::open(out, start).ok_or(Fault::Engine)?;
        }
        Ok(())
    }
}

/// zlib-rs's coder. Its first level makes noise 5 % larger.
pub(super) fn stream(level: u8) -> Result<Box<dyn Coder>, Fault> {
    let config = DeflateConfig { level: i32::from(level.clamp(2, 9)), window_bits: -15, ..DeflateConfig::default() };
    Ok(Box::new(Stream(Deflate::new_with_config(config))))
}

struct Stream(Deflate);

impl Coder for Stream {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.0.reset();
        if !piece.history.is_empty() {
            self.0.set_dictionary(piece.history).map_err(|_| Fault::Engine)?;
        }
        let flush = if piece.is_last { DeflateFlush::Finish } else { DeflateFlush::SyncFlush };
        let mut left = piece.bytes;
        loop {
            let (start, taken, given) = (out.len(), self.0.total_in(), self.0.total_out());
            out.resize(start + (left.len() / 2).max(MIN_ROOM), 0);
            let status = self.0.compress(left, &mut out[start..], flush).map_err(|_| Fault::Engine)?;
            left = &left[(self.0.total_in() - taken) as usize..];
            let filled = start + (self.0.total_out() - given) as usize;
            let is_full = filled == out.len();
            out.truncate(filled);
            match status {
                Status::StreamEnd => return Ok(()),
                Status::Ok | Status::BufError if !is_full && left.is_empty() && !piece.is_last => return Ok(()),
                Status::Ok => {}
                Status::BufError if is_full => {}
                Status::BufError => return Err(Fault::Engine),
            }
        }
    }
}

/// Least room that is offered for output.
const MIN_ROOM: usize = 4096;

/// terse's own coder.
pub(super) fn rows(level: u8) -> Result<Box<dyn Coder>, Fault> {
    Ok(Box::new(Rows(Encoder::new(own_level(level)))))
}

struct Rows(Encoder);

impl Coder for Rows {
    fn code(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        out.reserve(terse_deflate::bound(piece.bytes.len()));
        self.0.encode(piece.history, piece.bytes, piece.is_last, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libdeflater::Decompressor;

    fn code(level: u8, bytes: &[u8]) -> Vec<u8> {
        let (mut coder, mut out) = (usual(level).unwrap(), Vec::new());
        coder.code(&Piece { bytes, history: &[], is_first: true, is_last: true }, &mut out).unwrap();
        let mut again = vec![0; bytes.len()];
        assert_eq!(Decompressor::new().deflate_decompress(&out, &mut again), Ok(bytes.len()));
        assert!(again == bytes);
        out
    }

    /// zlib 1.2.13 makes 280,168 and 257,822 bytes of these numbers.
    #[test]
    fn numbers_that_count_up_are_no_larger_than_zlibs() {
        let numbers: Vec<u8> = (1..=150_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        for (level, most) in [(2, 280_168), (3, 257_822)] {
            let bytes = code(level, &numbers).len();
            assert!(bytes <= most, "level {level}: {bytes}");
        }
    }

    #[test]
    fn a_text_is_left_to_the_quick_way() {
        let words: Vec<&str> = include_str!("deflate.rs").split(' ').collect();
        let (mut text, mut dice) = (Vec::new(), 7u32);
        while text.len() < LEAST_SAMPLED {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (dice >> 8) as usize % words.len();
            words[at..words.len().min(at + 6)].iter().for_each(|word| text.extend(word.bytes().chain([b' '])));
        }
        let mut quick = Vec::new();
        Encoder::new(QUICK).encode(&[], &text, true, &mut quick);
        assert!(code(3, &text) == quick);
    }
}
