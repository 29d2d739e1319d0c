//! Input, and the bits that were read of it.
//!
//! Bits are read ahead of the decoder, eight bytes at a time where there are so many; whole bytes that were not used go back
//! when a call is over ([`Bits::give_back`]). So a caller sees no more bytes taken than were needed, as with zlib.

/// Input of a call, and how far it was read.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Input<'a> {
    /// Nothing of it was read.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, at: 0 }
    }

    /// Bytes that were taken.
    pub fn taken(&self) -> usize {
        self.at
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Takes bytes, as many as there are.
    pub fn take(&mut self, most: usize) -> &'a [u8] {
        let rest = self.rest();
        let taken = &rest[..most.min(rest.len())];
        self.at += taken.len();
        taken
    }
}

/// Bits between the input and the decoder; the next one lowest.
///
/// Invariant: above the lowest `count` bits there is nothing, or the next bits of the input.
#[derive(Clone, Copy)]
pub struct Bits {
    pub(super) hold: u64,
    pub(super) count: u32,
}

impl Bits {
    /// No bits.
    pub const NONE: Bits = Bits { hold: 0, count: 0 };

    /// Number of bits.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The next bits; more than [`Bits::count`] of them mean nothing.
    #[inline(always)]
    pub(super) fn peek(&self) -> u64 {
        self.hold
    }

    /// Passes over bits that are there.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.hold >>= count;
        self.count -= count;
    }

    /// The next `count` bits, 32 at most. `None`: there are fewer, and the input is all taken.
    #[inline(always)]
    pub fn take(&mut self, count: u32, input: &mut Input<'_>) -> Option<u32> {
        let bits = self.see(count, input)?;
        self.skip(count);
        Some(bits)
    }

    /// As [`Bits::take`], and they stay.
    #[inline(always)]
    pub fn see(&mut self, count: u32, input: &mut Input<'_>) -> Option<u32> {
        if self.count < count {
            self.refill(input);
        }
        (self.count >= count).then_some((self.hold & ((1 << count) - 1)) as u32)
    }

    /// Goes to the border of a byte.
    pub fn align(&mut self) {
        self.skip(self.count % 8);
    }

    /// Puts bits after those that are there (`inflatePrime`), if there is room for them.
    pub fn prime(&mut self, count: u32, bits: u32) -> bool {
        let fits = count <= 16 && self.count + count <= 32;
        if fits {
            self.hold |= (u64::from(bits) & ((1 << count) - 1)) << self.count;
            self.count += count;
        }
        fits
    }

    /// Reads ahead: there are 56 bits or more then, or the input is all taken.
    #[inline(always)]
    pub(super) fn refill(&mut self, input: &mut Input<'_>) {
        match input.bytes.get(input.at..).and_then(|rest| rest.first_chunk()) {
            Some(word) => {
                self.hold |= u64::from_le_bytes(*word) << self.count;
                input.at += ((63 - self.count) / 8) as usize;
                self.count |= 56;
            }
            None => self.refill_by_byte(input),
        }
    }

    #[cold]
    fn refill_by_byte(&mut self, input: &mut Input<'_>) {
        while self.count < 56
            && let Some(&byte) = input.bytes.get(input.at)
        {
            self.hold |= u64::from(byte) << self.count;
            self.count += 8;
            input.at += 1;
        }
    }

    /// Gives whole bytes back that were not used.
    pub fn give_back(&mut self, input: &mut Input<'_>) {
        let bytes = (self.count / 8).min(u32::try_from(input.at).unwrap_or(u32::MAX));
        input.at -= bytes as usize;
        self.count -= bytes * 8;
        self.keep();
    }

    /// Clears the bits above those that count.
    pub fn keep(&mut self) {
        self.hold &= (1 << self.count) - 1;
    }
}
