//! Tables of the meaning of the next bits.
//!
//! A code of up to `ROOT` bits is found at once: the next `ROOT` bits are the place of its entry, whatever follows it in
//! them. For a longer code the entry there leads to a second table, whose place is in the bits after those. An entry has all
//! of a symbol: the number of bits to pass over, and the byte, or the base of a length or distance and the number of its
//! extra bits.
//!
//! ```text
//!   31       30 … 16                        15     14     13 … 8             7 … 0
//!   a byte   byte, base, or where a table   other  which  bits of the code   with those that are added
//! ```
//!
//! Entries of other kinds: the end of a block, a second table (the bits of its places stand where those of a code do), and
//! bits that are no code.

use crate::huffman::MAX_LENGTH;
use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, FIRST_LENGTH, LENGTH_BASE, LENGTH_EXTRA, LITLEN_SYMBOLS, MIN_MATCH, distance_extra,
};

/// Meaning of the next bits.
#[derive(Clone, Copy)]
pub(super) struct Entry(u32);

const LITERAL: u32 = 1 << 31;
const OTHER: u32 = 1 << 15;
const TABLE: u32 = 1 << 14;

impl Entry {
    /// No code.
    pub(super) const NONE: Entry = Entry(OTHER | 1 << 8 | 1);
    /// The end of a block.
    const END: Entry = Entry(OTHER | 1 << 16);

    /// A length or distance of `base` and more.
    pub(super) const fn number(base: u16, added_bits: u8) -> Entry {
        Entry((base as u32) << 16 | added_bits as u32)
    }

    fn table(start: usize, bits: usize, root: usize) -> Entry {
        Entry(OTHER | TABLE | (start << 16 | bits << 8 | root) as u32)
    }

    /// The same with a code of so many bits.
    #[inline(always)]
    fn with_code(self, bits: usize) -> Entry {
        Entry(self.0 + (bits << 8 | bits) as u32)
    }

    #[inline(always)]
    pub(super) fn is_literal(self) -> bool {
        self.0 & LITERAL != 0
    }

    #[inline(always)]
    pub(super) fn is_other(self) -> bool {
        self.0 & OTHER != 0
    }

    #[inline(always)]
    pub(super) fn is_table(self) -> bool {
        self.0 & TABLE != 0
    }

    /// Of those that are neither byte nor number nor table.
    #[inline(always)]
    pub(super) fn is_end(self) -> bool {
        self.0 >> 16 != 0
    }

    /// The byte.
    #[inline(always)]
    pub(super) fn byte(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The number with nothing added.
    #[inline(always)]
    pub(super) fn base(self) -> u32 {
        self.0 >> 16
    }

    /// Bits of the code.
    #[inline(always)]
    pub(super) fn code_bits(self) -> u32 {
        self.0 >> 8 & 0x3f
    }

    /// Bits of the code and the extra bits.
    #[inline(always)]
    pub(super) fn all_bits(self) -> u32 {
        self.0 & 0xff
    }

    /// The number, of the bits at the code's begin.
    #[inline(always)]
    pub(super) fn value(self, bits: u64) -> u32 {
        let below = bits & !(u64::MAX.wrapping_shl(self.0));
        self.base() + below.wrapping_shr(self.0 >> 8) as u32
    }

    /// The bits after the code and its extra bits.
    #[inline(always)]
    pub(super) fn pass(self, bits: u64) -> u64 {
        bits.wrapping_shr(self.0)
    }

    /// The number of bits that are left of `count`: right in the lowest eight bits.
    #[inline(always)]
    pub(super) fn take_from(self, count: u32) -> u32 {
        count.wrapping_sub(self.0)
    }

    /// The place in the second table.
    #[inline(always)]
    pub(super) fn place(self, bits: u64) -> usize {
        let rest = bits >> self.all_bits();
        (self.0 >> 16 & 0x7fff) as usize + (rest & ((1 << self.code_bits()) - 1)) as usize
    }
}

/// A table with room for `N` entries, of which the first `1 << ROOT` are the first table.
#[derive(Clone, Copy)]
pub(super) struct Table<const N: usize, const ROOT: usize>([Entry; N]);

impl<const N: usize, const ROOT: usize> Table<N, ROOT> {
    pub(super) const EMPTY: Self = Table([Entry::NONE; N]);

    /// Finds the meaning of these bits.
    #[inline(always)]
    pub(super) fn find(&self, bits: u64) -> Entry {
        const { assert!(1 << ROOT <= N) };
        self.0[(bits & ((1 << ROOT) - 1)) as usize]
    }

    /// Finds their meaning where the first table leads to a second one.
    #[inline(always)]
    pub(super) fn follow(&self, table: Entry, bits: u64) -> Entry {
        self.0.get(table.place(bits)).copied().unwrap_or(Entry::NONE)
    }

    /// Keeps a small number where the table will be.
    pub(super) fn keep(&mut self, at: usize, number: u8) {
        if let Some(entry) = self.0.get_mut(at) {
            *entry = Entry(u32::from(number));
        }
    }

    /// A number that was kept.
    pub(super) fn kept_at(&self, at: u16) -> u8 {
        self.0.get(usize::from(at)).map_or(0, |entry| entry.0 as u8)
    }

    /// The first numbers that were kept.
    pub(super) fn kept<const COUNT: usize>(&self) -> [u8; COUNT] {
        const { assert!(COUNT <= N) };
        std::array::from_fn(|at| self.0[at].0 as u8)
    }

    /// Makes the table of a code, of the lengths of its symbols' codes and the meaning of each; returns the number of its
    /// entries.
    ///
    /// RFC 1951 section 3.2.2: shorter codes come first, and among those of equal length those of lower symbols; the first
    /// bit of a code is its highest. Codes that leave bits without a meaning are taken where the RFC has a use for them: a
    /// single symbol with a code of one bit, and none at all.
    pub(super) fn fill(&mut self, lengths: &[u8], meaning: impl Fn(usize) -> Entry) -> Result<usize, Uneven> {
        const { assert!(1 << ROOT <= N && ROOT < MAX_LENGTH) };
        let sorted = Sorted::of(lengths)?;
        let (mut symbols, mut counts) = (sorted.symbols(), sorted.of_length);
        let entries = &mut self.0;
        if !sorted.is_complete {
            entries[..1 << ROOT].fill(Entry::NONE);
            if let Some(symbol) = symbols.next() {
                entries[..1 << ROOT].iter_mut().step_by(2).for_each(|entry| *entry = meaning(symbol).with_code(1));
            }
            return Ok(1 << ROOT);
        }
        // Bit by bit: a table of one bit more is the same twice, but for the codes that end with that bit.
        let mut code = Some(0);
        for (length, &count) in sorted.of_length.iter().enumerate().take(ROOT + 1).skip(1) {
            entries.copy_within(..1 << (length - 1), 1 << (length - 1));
            for symbol in symbols.by_ref().take(count) {
                let Some(now) = code else { return Err(Uneven) };
                entries[now] = meaning(symbol).with_code(length);
                code = next(now, length);
            }
        }
        let (mut end, mut current) = (1 << ROOT, None);
        for length in ROOT + 1..=MAX_LENGTH {
            for symbol in symbols.by_ref().take(counts[length]) {
                let Some(now) = code else { return Err(Uneven) };
                let root = now & ((1 << ROOT) - 1);
                let (start, bits) = match current {
                    Some((of, start, bits)) if of == root => (start, bits),
                    _ => {
                        let bits = bits_of_second(&counts, length, ROOT);
                        entries[root] = Entry::table(end, bits, ROOT);
                        current = Some((root, end, bits));
                        end += 1 << bits;
                        (end - (1 << bits), bits)
                    }
                };
                let Some(second) = entries.get_mut(start..start + (1 << bits)) else { return Err(Uneven) };
                let entry = meaning(symbol).with_code(length);
                second[now >> ROOT..].iter_mut().step_by(1 << (length - ROOT)).for_each(|place| *place = entry);
                code = next(now, length);
                counts[length] -= 1;
            }
        }
        Ok(end)
    }
}

/// The code after another of the same length, first bit lowest.
fn next(code: usize, length: usize) -> Option<usize> {
    let zeros = code ^ ((1 << length) - 1);
    let highest = 1 << zeros.checked_ilog2()?;
    Some(code & (highest - 1) | highest)
}

/// Bits of the second table that begins with a code of `length` bits: as many as the codes need that begin with the same root.
fn bits_of_second(counts: &[usize; MAX_LENGTH + 1], length: usize, root: usize) -> usize {
    let mut bits = length - root;
    let mut used = counts[length];
    while used < 1 << bits && root + bits < MAX_LENGTH {
        bits += 1;
        used = (used << 1) + counts[root + bits];
    }
    bits
}

/// Symbols by the lengths of their codes.
struct Sorted {
    of_length: [usize; MAX_LENGTH + 1],
    symbols: [u16; LITLEN_SYMBOLS],
    used: usize,
    is_complete: bool,
}

impl Sorted {
    fn of(lengths: &[u8]) -> Result<Sorted, Uneven> {
        let mut of_length = [0; MAX_LENGTH + 1];
        for &length in lengths {
            of_length[usize::from(length) % (MAX_LENGTH + 1)] += 1;
        }
        of_length[0] = 0;
        let (mut free, mut used, mut next) = (1usize, 0, [0; MAX_LENGTH + 1]);
        for length in 1..=MAX_LENGTH {
            next[length] = used;
            used += of_length[length];
            free = (free << 1).checked_sub(of_length[length]).ok_or(Uneven)?;
        }
        if free > 0 && used > of_length[1] {
            return Err(Uneven);
        }
        let mut symbols = [0; LITLEN_SYMBOLS];
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let place = &mut next[usize::from(length) % (MAX_LENGTH + 1)];
            *symbols.get_mut(*place).ok_or(Uneven)? = symbol as u16;
            *place += 1;
        }
        Ok(Sorted { of_length, symbols, used, is_complete: free == 0 })
    }

    fn symbols(&self) -> impl Iterator<Item = usize> {
        self.symbols[..self.used].iter().map(|&symbol| usize::from(symbol))
    }
}

/// Lengths that form no code: too many short ones, or too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uneven;

/// The meaning of bytes and lengths. Two symbols occur in no stream.
pub(super) const LITLEN: [Entry; LITLEN_SYMBOLS] = {
    let mut entries = [Entry(OTHER); LITLEN_SYMBOLS];
    let mut byte = 0;
    while byte < END_OF_BLOCK {
        entries[byte] = Entry(LITERAL | (byte as u32) << 16);
        byte += 1;
    }
    entries[END_OF_BLOCK] = Entry::END;
    let mut slot = 0;
    while slot < LENGTH_BASE.len() {
        entries[FIRST_LENGTH + slot] = Entry::number(LENGTH_BASE[slot] as u16 + MIN_MATCH as u16, LENGTH_EXTRA[slot]);
        slot += 1;
    }
    entries
};

/// The meaning of distances. Two symbols occur in no stream.
pub(super) const DISTANCES: [Entry; 32] = {
    let mut entries = [Entry(OTHER); 32];
    let (mut slot, mut base) = (0, 1);
    while slot < DISTANCE_SYMBOLS {
        let extra = distance_extra(slot);
        entries[slot] = Entry::number(base, extra as u8);
        base += 1 << extra;
        slot += 1;
    }
    entries
};

#[cfg(test)]
mod tests {
    use super::super::{Distances, Litlen};
    use super::*;
    use proptest::prelude::*;

    /// Lengths of a complete code: of a tree whose leaves are split, most often the deepest that may be.
    fn lengths(symbols: usize) -> impl Strategy<Value = Vec<u8>> {
        let splits = proptest::collection::vec((any::<prop::sample::Index>(), 0..4u8), 1..symbols);
        (splits, Just((0..symbols).collect::<Vec<_>>()).prop_shuffle()).prop_map(move |(splits, order)| {
            let mut leaves = vec![0u8];
            for (at, kind) in splits {
                let may = |leaf: &&usize| usize::from(leaves[**leaf]) < MAX_LENGTH;
                let places: Vec<usize> = (0..leaves.len()).collect();
                let able: Vec<usize> = places.iter().filter(may).copied().collect();
                let Some(deepest) = able.iter().max_by_key(|&&leaf| leaves[leaf]) else { break };
                let leaf = if kind == 0 { able[at.index(able.len())] } else { *deepest };
                leaves[leaf] += 1;
                leaves.push(leaves[leaf]);
            }
            let mut lengths = vec![0; symbols];
            for (leaf, symbol) in leaves.iter().zip(order) {
                lengths[symbol] = *leaf;
            }
            lengths
        })
    }

    /// Every code, with noise after it, leads to its symbol.
    fn check<const N: usize, const ROOT: usize>(lengths: &[u8], noise: u64) -> Result<(), TestCaseError> {
        let mut table = Table::<N, ROOT>::EMPTY;
        let entries = table.fill(lengths, |symbol| Entry::number(symbol as u16, 0)).expect("it fits");
        prop_assert!(entries <= N);
        let mut code = 0u64;
        for length in 1..=MAX_LENGTH {
            code <<= 1;
            for symbol in (0..lengths.len()).filter(|&symbol| usize::from(lengths[symbol]) == length) {
                let bits = noise << length | code.reverse_bits() >> (64 - length);
                let mut entry = table.find(bits);
                if entry.is_other() && entry.is_table() {
                    entry = table.follow(entry, bits);
                }
                prop_assert_eq!((entry.base() as usize, entry.code_bits() as usize), (symbol, length));
                code += 1;
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn codes_lead_to_their_symbols(litlen in lengths(286), distances in lengths(30), noise in any::<u64>()) {
            check::<1332, 10>(&litlen, noise)?;
            check::<402, 8>(&distances, noise)?;
        }

        #[test]
        fn what_is_no_code_is_refused(mut lengths in lengths(286), at in any::<prop::sample::Index>(), to in 0..16u8) {
            let place = at.index(lengths.len());
            let (before, used) = (lengths[place], lengths.iter().filter(|&&length| length > 0).count());
            lengths[place] = to;
            let is_other_sum = [before, to].map(|length| if length == 0 { 0 } else { 1 << (15 - length) });
            let mut table = Litlen::EMPTY;
            let filled = table.fill(&lengths, |symbol| LITLEN[symbol]);
            // A single code of one bit, or none, may be left.
            prop_assert!(filled.is_ok() == (is_other_sum[0] == is_other_sum[1]) || used <= 2);
        }
    }

    #[test]
    fn a_single_code_of_one_bit_will_do() {
        let mut table = Distances::EMPTY;
        assert!(table.fill(&[0, 0, 1], |symbol| DISTANCES[symbol]).is_ok());
        assert_eq!((table.find(0b10).value(0b10), table.find(0b11).is_other()), (3, true));
        assert!(table.fill(&[0, 0, 2], |symbol| DISTANCES[symbol]).is_err());
        assert!(table.fill(&[1, 1, 1], |symbol| DISTANCES[symbol]).is_err());
        assert!(table.fill(&[0; 30], |symbol| DISTANCES[symbol]).is_ok() && table.find(0).is_other());
    }
}
