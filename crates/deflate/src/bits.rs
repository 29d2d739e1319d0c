//! Bits into bytes, the first bit lowest (RFC 1951 section 3.1.1).
//!
//! Bits gather in a register of 64. A store writes all eight of its bytes and moves on by the whole ones among them, so it
//! needs no branch; the bytes beyond are written again by the next store. After a store at most 7 bits are left, so 56 may be
//! put before the next store.

use crate::lanes::put_word;

/// Bits that may be put between two stores.
pub(crate) const ROOM: u32 = 56;

/// The rest of the last byte between two blocks.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Rest {
    bits: u64,
    count: u32,
}

impl Rest {
    /// Bits in it, 0 to 7.
    pub(crate) fn count(self) -> u32 {
        self.count
    }

    /// Writes the last byte, filled up with zeros.
    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        if self.count > 0 {
            out.push(self.bits as u8);
        }
    }
}

/// A writer at the end of a buffer, for a block whose size is known.
pub(crate) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
    bits: u64,
    count: u32,
}

impl<'a> Writer<'a> {
    /// Begins to write up to `bits` bits after those in `out` and in `rest`.
    pub(crate) fn new(out: &'a mut Vec<u8>, rest: Rest, bits: u64) -> Writer<'a> {
        let at = out.len();
        // A store needs eight bytes, wherever the last bit falls.
        out.resize(at + (u64::from(rest.count) + bits).div_ceil(8) as usize + 8, 0);
        Writer { room: out, at, bits: rest.bits, count: rest.count }
    }

    /// Puts the low `count` bits of `bits`, above which there must be none. At most [`ROOM`] between two stores.
    #[inline(always)]
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        debug_assert!(bits >> count == 0 && self.count + count < 64);
        self.bits |= bits << (self.count & 63);
        self.count += count;
    }

    /// Stores the whole bytes.
    #[inline(always)]
    pub(crate) fn store(&mut self) {
        put_word(self.room, self.at, self.bits);
        self.at += (self.count >> 3) as usize;
        self.bits >>= self.count & 56;
        self.count &= 7;
    }

    /// Goes on at the next byte's border.
    pub(crate) fn align(&mut self) {
        self.count = self.count.next_multiple_of(8);
        self.store();
    }

    /// Writes bytes; only at a border.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.count, 0);
        self.room[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Ends the block; returns the end of the whole bytes, and the rest of the last byte.
    pub(crate) fn finish(mut self) -> (usize, Rest) {
        self.store();
        (self.at, Rest { bits: self.bits, count: self.count })
    }
}
