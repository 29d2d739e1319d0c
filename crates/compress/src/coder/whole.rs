//! Whole bodies of the deflate family, on libdeflate, and on our own coder where that wins.
//!
//! A level here is the one of libdeflate that comes out no larger than zlib's of that number. Bytes (nanoseconds a byte):
//!
//! ```text
//!                          a script of 131,882    another       cp.html 24,603    alice29.txt 152,089    kennedy.xls 1,029,744
//!   zlib 1                 50,368 (14)            43,479 (16)   9,028 (13)        65,130 (14)            242,293 (8)
//!   level 1: libdeflate 1  46,084 (6)             40,185 (6)    8,385 (10)        59,790 (10)            221,813 (4)
//!   zlib 6                 42,308 (42)            34,223 (63)   7,955 (36)        54,398 (70)            203,986 (35)
//!            libdeflate 6  42,197 (19)            35,085 (21)   7,986 (19)        54,220 (28)            199,347 (14)
//!   level 6: libdeflate 7  41,981 (24)            34,051 (36)   7,954 (16)        53,801 (36)            199,777 (20)
//!   zlib 9                 42,259 (59)            33,613 (121)  7,934 (38)        54,164 (98)            207,023 (475)
//!   level 9: libdeflate 9  41,960 (34)            33,912 (66)   7,916 (22)        53,546 (61)            181,451 (176)
//!            libdeflate 10 40,195 (133)           31,746 (184)  7,725 (112)       51,721 (197)           179,347 (97)
//! ```
//!
//! Our own coder ([`terse_deflate`]) takes level 6 of bodies that are long enough for its tables to pay: in less time than libdeflate's
//! level 7, whose bytes it almost reaches on programs. The bitmap alone comes out 5 % above zlib. Measured in turns, on a busier machine:
//!
//! ```text
//!                  a script of 131,882    alice29.txt    lcet10.txt 426,754    kennedy.xls    ptt5 513,216    a bitmap of 7,300,854
//!   zlib 6         41,945 (42)            54,398 (74)    144,898 (59)          203,986 (45)   56,459 (21)     85,123 (7)
//!   libdeflate 6   41,820 (19)            54,220 (25)                                         55,102 (14)
//!   libdeflate 7   41,652 (22)            53,801 (27)    143,604 (25)          199,777 (16)   54,742 (10)     85,972 (10)
//!   level 6: ours  41,658 (19)            54,319 (22)    144,397 (22)          190,724 (17)   55,399 (11)     89,094 (6)
//! ```
//!
//! Where the machine has quicker code for a level ([`super::fast`]), that goes first.
//!
//! Levels 10 to 12 take several times as long as zlib's 9 and 9 MB of memory; they are left to what has time.

use super::CoderFault;
use super::fast;
use super::frame::{Format, Frame};
use super::pool::Pool;
use crate::coding::Level;

/// The levels of libdeflate that stand for zlib's 0 to 9.
const LEVELS: [u8; 10] = [0, 1, 2, 3, 5, 6, 7, 8, 9, 9];

/// The level that our own coder takes.
pub(super) const OWN_LEVEL: u8 = 6;

/// Bytes of the shortest body that it takes. Shorter ones have few repetitions to choose among, and libdeflate's chains are short.
const OWN_LEAST: usize = 64 * 1024;

/// Nanoseconds a byte on text, by zlib's level.
pub(super) const COST_NS: [u16; 10] = [1, 10, 15, 17, 23, 29, 30, 55, 66, 66];

/// Appends the coded form of a body to `out`.
pub(super) fn code(format: Format, input: &[u8], level: Level, pool: &Pool, out: &mut Vec<u8>) -> Result<(), CoderFault> {
    if let Some(fast) = fast::of(level) {
        let (start, mut frame) = (out.len(), Frame::new(format));
        frame.update(input, out);
        if fast.deflate(input, level, out).is_ok() {
            frame.finish(out);
            return Ok(());
        }
        out.truncate(start);
    }
    if level.0 == OWN_LEVEL && input.len() >= OWN_LEAST {
        own(format, input, pool, out);
        return Ok(());
    }
    let level = LEVELS[usize::from(level.0).min(LEVELS.len() - 1)];
    let mut state = pool.take_whole(level).ok_or(CoderFault)?;
    let bound = match format {
        Format::Gzip => state.gzip_compress_bound(input.len()),
        Format::Zlib => state.zlib_compress_bound(input.len()),
        Format::Raw => state.deflate_compress_bound(input.len()),
    };
    let start = out.len();
    out.resize(start + bound, 0);
    let room = &mut out[start..];
    let given = match format {
        Format::Gzip => state.gzip_compress(input, room),
        Format::Zlib => state.zlib_compress(input, room),
        Format::Raw => state.deflate_compress(input, room),
    };
    pool.give_whole(level, state);
    out.truncate(start + given.as_ref().copied().unwrap_or(0));
    given.map(|_| ()).map_err(|_| CoderFault)
}

/// The same by our own coder.
fn own(format: Format, input: &[u8], pool: &Pool, out: &mut Vec<u8>) {
    let mut frame = Frame::new(format);
    frame.update(input, out);
    let mut state = pool.take_own();
    state.encode(&[], input, true, out);
    pool.give_own(state);
    frame.finish(out);
}
