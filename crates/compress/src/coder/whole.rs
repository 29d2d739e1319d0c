//! Whole bodies of the deflate family, on our own coder where that wins, and on libdeflate.
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
//! Our own coder ([`terse_deflate`]) takes levels 1 to 3 and 5 to 7 of texts, and 1 to 7 of other bodies, if they are long
//! enough for its tables to pay: texts in two thirds of libdeflate's time, archives and pictures in half. Measured in turns
//! in one process, the best of many rounds:
//!
//! ```text
//!                        4 scripts of 131,882   alice29.txt 152,089   lcet10.txt 426,754   kennedy.xls   ptt5 513,216
//!   zlib 4               178,718 (13)           57,679 (14)           152,782 (14)         223,668 (7)   58,451 (6.6)
//!            libdeflate 5 171,773 (9.2)         54,758 (10)           145,353 (9.7)        198,900 (5)   55,743 (3.3)
//!   level 4: ours 3, 4   173,221 (7.7)          55,181 (8.2)          147,179 (8.5)        189,541 (5)   56,888 (2.8)
//!   zlib 5               173,186 (19)           55,616 (23)           147,196 (23)         205,994 (10)  57,410 (8.1)
//!            libdeflate 6 170,653 (12)          54,220 (13)           144,209 (13)         199,347 (6)   55,102 (4.0)
//!   level 5: ours 5, 6   170,554 (8.3)          54,359 (8.9)          144,825 (9.3)        188,777 (5)   55,698 (3.1)
//!   zlib 6               171,228 (28)           54,398 (40)           144,898 (39)         203,986 (22)  56,459 (13)
//!            libdeflate 7 170,000 (15)          53,801 (18)           143,604 (17)         199,777 (9)   54,742 (5.8)
//!   level 6: ours 7, 8   169,975 (8.9)          54,095 (9.7)          143,784 (9.9)        195,984 (7)   54,526 (3.6)
//! ```
//!
//! The second of two levels is for bodies that are no text; at level 4 it is for nothing else, since texts are libdeflate's
//! there. 38 headers, pages, tables and other texts of /usr, 40 KB to 1.3 MB each, come out at 0.987 of zlib's level 6, 7 of
//! them larger by more than 0.05 %, one by 1.6 %; by libdeflate's 7 at 0.979, 2 of them larger. Parts of 48 KB of an image of
//! /usr, by how well they can be coded (to 0.16, 0.28, 0.63 and 0.95 of their size): 0.997, 0.993, 1.002 and 1.002 of zlib's
//! size; by libdeflate's 7 0.992, 0.991, 0.996 and 0.998, in 1.2, 1.2, 1.4 and 4.6 times the time.
//!
//! The benchmark's bitmap of 7.3 MB comes out of it at 218,220 (zlib's level 6 208,952, libdeflate's 7 209,050, which is taken): see
//! [`terse_deflate::WORST`].
//!
//! At level 1 it takes texts from 8 KB on, by a way that guesses no branches:
//!
//! ```text
//!                        4 scripts of 131,882   alice29.txt 152,089   lcet10.txt 426,754
//!   zlib 1               202,847 (8.8)          65,130 (9.6)          174,124 (10)
//!            libdeflate 1 186,268 (4.1)         59,790 (4.4)          159,063 (4.4)
//!            igzip 2     192,931 (2.2)          62,285 (2.4)          165,950 (2.3)
//!   level 1: ours 1      193,220 (1.4)          62,200 (1.5)          165,870 (1.4)
//!            ours without AVX2   (1.7)                 (1.8)                  (1.7)
//! ```
//!
//! That is on an AMD EPYC (the tables above are of an Intel Xeon), in which each script comes again and again. Of a hundred others our own
//! takes 1.5 ns (libdeflate 4.0, igzip 2.2); of their first 8,000 bytes 2.7 (3.2, 2.2), 16,500 2.1 (3.9, 2.1), 32,000 1.8 (3.9, 2.0).
//! Before it, one earlier place and ordinary branches were 0.95 of libdeflate's time at 7 % more bytes: the guesses were the cost.
//!
//! At levels 2 and 3 it takes texts from 16 KB on by the same way with a second look, described in `quick.rs`:
//!
//! ```text
//!                        4 scripts of 131,882   4 style sheets         4 pages               4 of JSON              2 of WebAssembly
//!   zlib 3               163,192 (10)           107,376 (6.8)          55,983 (3.0)          134,494 (8.9)          132,449 (19)
//!            libdeflate 2 155,899 (4.6)         103,855 (3.4)          54,818 (2.1)          124,864 (4.2)          128,956 (7.1)
//!            libdeflate 3 152,935 (5.2)         100,568 (3.7)          51,507 (2.2)          121,694 (5.0)          128,373 (7.9)
//!   level 2: ours 2      154,915 (3.7)          103,633 (3.0)          55,629 (2.3)          124,487 (3.1)          128,938 (5.6)
//!            ours 1      166,652 (2.4)          114,286 (1.9)          66,066 (1.5)          137,870 (1.9)          133,147 (3.7)
//!            libdeflate 1 160,457 (3.6)         106,802 (2.5)          57,899 (1.6)          133,005 (2.7)          130,787 (5.7)
//! ```
//!
//! If the machine has quicker code than libdeflate's ([`super::fast`]), that takes the rest.
//!
//! Levels 10 to 12 take several times as long as zlib's 9 and 9 MB of memory; the first of them is for bodies that are made
//! once more in idle time ([`crate::memory`]), the others win hardly anything beyond it.

use super::CoderFault;
use super::fast;
use super::frame::{Format, Frame};
use super::pool::Pool;
use crate::coding::Level;

/// The levels of libdeflate that stand for zlib's 0 to 9, and the level for idle time.
const LEVELS: [u8; 11] = [0, 1, 2, 3, 5, 6, 7, 8, 9, 9, 10];

/// Nanoseconds a byte on text, by zlib's level, for bodies that are left to libdeflate: the most that a level takes.
pub(super) const COST_NS: [u16; 11] = [1, 10, 15, 17, 20, 21, 22, 55, 66, 66, 200];

/// The same for a body that our own coder's first two levels take: without AVX2, and rounded up. A body without repetitions,
/// such as base64, takes more, up to 4.6; no sample of it is worth its time, since a body in place is a turn of its own.
pub(super) fn quick_cost_ns(level: Level, body: &[u8]) -> Option<u16> {
    match own_level(level, body) {
        Some(1) if terse_deflate::is_mostly_no_text(body) => Some(4),
        Some(1) => Some(2),
        Some(2) => Some(5),
        _ => None,
    }
}

/// The level of our own coder for a whole body, where that takes it. At level 4 texts are libdeflate's: its fifth leaves 2 to
/// 4 % fewer bytes of 60 scripts, 15 style sheets and 34 of JSON than our third, in 0.91 to 0.99 of its time.
fn own_level(level: Level, body: &[u8]) -> Option<u8> {
    terse_deflate::for_zlib(level.0, body).filter(|own| (level, *own) != (Level(4), 3))
}

/// Appends the coded form of a body to `out`.
pub(super) fn code(format: Format, input: &[u8], level: Level, pool: &Pool, out: &mut Vec<u8>) -> Result<(), CoderFault> {
    if let Some(own_level) = own_level(level, input) {
        let start = out.len();
        own(format, input, own_level, pool, out);
        let coded = out.len() - start;
        if coded * terse_deflate::WORST < input.len() {
            let end = out.len();
            let again = libdeflate(format, input, level, pool, out);
            if again.is_ok() && out.len() - end < coded {
                out.drain(start..end);
            } else {
                out.truncate(end);
            }
        }
        return Ok(());
    }
    if let Some(fast) = fast::of(level) {
        let (start, mut frame) = (out.len(), Frame::new(format));
        frame.update(input, out);
        if fast.deflate(input, level, out).is_ok() {
            frame.finish(out);
            return Ok(());
        }
        out.truncate(start);
    }
    libdeflate(format, input, level, pool, out)
}

/// The same by libdeflate.
fn libdeflate(format: Format, input: &[u8], level: Level, pool: &Pool, out: &mut Vec<u8>) -> Result<(), CoderFault> {
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
fn own(format: Format, input: &[u8], level: u8, pool: &Pool, out: &mut Vec<u8>) {
    let mut frame = Frame::new(format);
    frame.update(input, out);
    let mut state = pool.take_own(level);
    state.encode(&[], input, true, out);
    pool.give_own(level, state);
    frame.finish(out);
}
