//! The loop in the middle of a block, as long as there is enough of input and of room that neither has to be asked for.

use super::Flaw;
use super::input::{Bits, Input};
use super::output::Output;
use super::table::Entry;
use super::{Distances, Litlen};
use crate::lanes::Lanes;
use crate::processor::Work;
use crate::symbols::MAX_MATCH;

/// Room that a turn of the loop takes at most: three bytes and a match, and the bytes that are written after it.
pub(super) const ROOM: usize = 3 + MAX_MATCH + WIDE;
/// Input that a turn reads at most.
pub(super) const INPUT: usize = 16;

/// Bytes copied at once.
const WIDE: usize = 32;

/// Work of the loop: to be run where there are [`ROOM`] and [`INPUT`].
pub(super) struct Fast<'a, 'b, 'c> {
    pub(super) litlen: &'a Litlen,
    pub(super) distances: &'a Distances,
    pub(super) bits: &'a mut Bits,
    pub(super) input: &'a mut Input<'b>,
    pub(super) output: &'a mut Output<'c>,
}

impl Work for Fast<'_, '_, '_> {
    /// Whether the block ended.
    type Result = Result<bool, Flaw>;

    #[inline(always)]
    fn run(self, _: impl Lanes) -> Result<bool, Flaw> {
        let Fast { litlen, distances, bits, input, output } = self;
        let mut ahead = Ahead::of(bits, input);
        let mut at = output.at;
        let (room, before) = (&mut *output.room, output.before);
        ahead.refill();
        let mut entry = litlen.find(ahead.hold);
        let result = loop {
            if room.len() - at < ROOM || ahead.rest.len() < INPUT {
                break Ok(false);
            }
            // Of 56 bits, two bytes take 20 at most, a third or a length 20 more.
            if entry.is_literal() {
                ahead.skip(entry);
                room[at] = entry.byte();
                at += 1;
                entry = litlen.find(ahead.hold);
                if entry.is_literal() {
                    ahead.skip(entry);
                    room[at] = entry.byte();
                    at += 1;
                    entry = litlen.find(ahead.hold);
                    if entry.is_literal() {
                        ahead.skip(entry);
                        room[at] = entry.byte();
                        at += 1;
                        ahead.refill();
                        entry = litlen.find(ahead.hold);
                        continue;
                    }
                }
            }
            if entry.is_other() {
                if entry.is_table() {
                    entry = litlen.follow(entry, ahead.hold);
                }
                if entry.is_literal() {
                    ahead.skip(entry);
                    room[at] = entry.byte();
                    at += 1;
                    ahead.refill();
                    entry = litlen.find(ahead.hold);
                    continue;
                }
                if entry.is_other() {
                    ahead.skip(entry);
                    break if entry.is_end() { Ok(true) } else { Err(Flaw::Symbol) };
                }
            }
            let length = entry.value(ahead.hold) as usize;
            ahead.skip(entry);
            ahead.refill();
            let mut code = distances.find(ahead.hold);
            if code.is_other() {
                if code.is_table() {
                    code = distances.follow(code, ahead.hold);
                }
                if code.is_other() {
                    break Err(Flaw::DistanceSymbol);
                }
            }
            let distance = code.value(ahead.hold) as usize;
            ahead.skip(code);
            // The next entry is on its way while bytes are copied.
            ahead.refill();
            entry = litlen.find(ahead.hold);
            if distance <= at {
                repeat(room, at, distance, length);
            } else if !before.repeat_with_spill::<WIDE>(room, at, distance, length) {
                break Err(Flaw::Distance);
            }
            at += length;
        };
        ahead.put_back(bits, input);
        output.at = at;
        result
    }
}

/// Bits and input, in registers.
struct Ahead<'a> {
    rest: &'a [u8],
    hold: u64,
    /// Number of bits, in the lowest eight bits.
    count: u32,
}

impl<'a> Ahead<'a> {
    #[inline(always)]
    fn of(bits: &Bits, input: &Input<'a>) -> Ahead<'a> {
        Ahead { rest: input.rest(), hold: bits.hold, count: bits.count }
    }

    #[inline(always)]
    fn put_back(self, bits: &mut Bits, input: &mut Input<'a>) {
        input.at = input.bytes.len() - self.rest.len();
        (bits.hold, bits.count) = (self.hold, self.count & 0xff);
    }

    /// Refills as [`Bits`] does.
    #[inline(always)]
    fn refill(&mut self) {
        if let Some(word) = self.rest.first_chunk() {
            self.hold |= u64::from_le_bytes(*word).wrapping_shl(self.count);
            self.rest = &self.rest[(7 - (self.count >> 3 & 7)) as usize..];
            self.count |= 56;
        }
    }

    /// Passes over a code and its extra bits.
    #[inline(always)]
    fn skip(&mut self, entry: Entry) {
        self.hold = entry.pass(self.hold);
        self.count = entry.take_from(self.count);
    }
}

/// Copies a match; up to [`WIDE`] bytes after it are overwritten.
#[inline(always)]
fn repeat(room: &mut [u8], at: usize, distance: usize, length: usize) {
    let (mut from, mut to, end) = (at - distance, at, at + length);
    if distance >= WIDE {
        loop {
            copy::<WIDE>(room, from, to);
            (from, to) = (from + WIDE, to + WIDE);
            if to >= end {
                return;
            }
        }
    }
    if distance == 1 {
        let bytes = [room[from]; WIDE];
        while to < end {
            room[to..to + WIDE].copy_from_slice(&bytes);
            to += WIDE;
        }
        return;
    }
    // The distance between the two is twice as long after each step.
    let mut distance = distance;
    while distance < 16 {
        copy::<16>(room, from, to);
        to += distance;
        if to >= end {
            return;
        }
        distance *= 2;
    }
    from = to - distance;
    while to < end {
        copy::<16>(room, from, to);
        (from, to) = (from + 16, to + 16);
    }
}

#[inline(always)]
fn copy<const N: usize>(room: &mut [u8], from: usize, to: usize) {
    room.copy_within(from..from + N, to);
}
