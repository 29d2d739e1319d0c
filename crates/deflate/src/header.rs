//! The head of a dynamic block: the two codes' lengths, run-length coded, in a code of their own (RFC 1951 section 3.2.7).

use crate::bits::Writer;
use crate::huffman;
use crate::symbols::{DISTANCE_SYMBOLS, FIRST_LENGTH, LITLEN_SYMBOLS};

/// The order in which the lengths of the code for lengths are written.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Repeats the length before, 3 to 6 times.
const REPEAT: u8 = 16;
/// 3 to 10 zeros.
const ZEROS: u8 = 17;
/// 11 to 138 zeros.
const MANY_ZEROS: u8 = 18;

/// Extra bits of the three, from [`REPEAT`] on.
const EXTRA: [u32; 3] = [2, 3, 7];

/// A head, ready to be written.
pub(crate) struct Header {
    litlens: usize,
    distances: usize,
    /// Symbols with their extra bits.
    items: [(u8, u8); LITLEN_SYMBOLS + DISTANCE_SYMBOLS],
    item_count: usize,
    lengths: [u8; 19],
    /// Lengths of the code for lengths that are written.
    length_count: usize,
}

impl Header {
    /// The head for these lengths.
    pub(crate) fn new(litlen: &[u8; LITLEN_SYMBOLS], distance: &[u8; DISTANCE_SYMBOLS]) -> Header {
        let litlens = used(litlen).max(FIRST_LENGTH);
        let distances = used(distance).max(1);
        // A single list: a run may go from one code into the other.
        let mut both = [0u8; LITLEN_SYMBOLS + DISTANCE_SYMBOLS];
        both[..litlens].copy_from_slice(&litlen[..litlens]);
        both[litlens..litlens + distances].copy_from_slice(&distance[..distances]);

        let mut header = Header {
            litlens,
            distances,
            items: [(0, 0); LITLEN_SYMBOLS + DISTANCE_SYMBOLS],
            item_count: 0,
            lengths: [0; 19],
            length_count: 4,
        };
        let mut counts = [0; 19];
        for run in both[..litlens + distances].chunk_by(|a, b| a == b) {
            header.push_run(run[0], run.len(), &mut counts);
        }
        huffman::lengths(&counts, 7, &mut header.lengths);
        let last = ORDER.iter().rposition(|symbol| header.lengths[*symbol] != 0).unwrap_or(0);
        header.length_count = header.length_count.max(last + 1);
        header
    }

    fn push_run(&mut self, length: u8, mut left: usize, counts: &mut [u32; 19]) {
        let mut push = |symbol: u8, extra: usize| {
            self.items[self.item_count] = (symbol, extra as u8);
            self.item_count += 1;
            counts[usize::from(symbol)] += 1;
        };
        if length == 0 {
            while left >= 11 {
                let zeros = left.min(138);
                push(MANY_ZEROS, zeros - 11);
                left -= zeros;
            }
            if left >= 3 {
                push(ZEROS, left - 3);
                left = 0;
            }
        } else if left >= 4 {
            push(length, 0);
            left -= 1;
            while left >= 3 {
                // Seven are better written as four and three than as six and one.
                let again = if left == 7 { 4 } else { left.min(6) };
                push(REPEAT, again - 3);
                left -= again;
            }
        }
        for _ in 0..left {
            push(length, 0);
        }
    }

    /// Bits that [`Header::write`] writes.
    pub(crate) fn bits(&self) -> u64 {
        let items = self.items[..self.item_count].iter();
        5 + 5
            + 4
            + 3 * self.length_count as u64
            + items.map(|item| u64::from(self.lengths[usize::from(item.0)]) + u64::from(extra(item.0))).sum::<u64>()
    }

    /// Writes it, after the block's kind.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.put((self.litlens - FIRST_LENGTH) as u64, 5);
        writer.put((self.distances - 1) as u64, 5);
        writer.put((self.length_count - 4) as u64, 4);
        writer.store();
        for symbol in &ORDER[..self.length_count] {
            writer.put(u64::from(self.lengths[*symbol]), 3);
            writer.store();
        }
        let codes = huffman::codes(&self.lengths);
        for (symbol, value) in &self.items[..self.item_count] {
            let at = usize::from(*symbol);
            writer.put(u64::from(codes[at]), u32::from(self.lengths[at]));
            writer.put(u64::from(*value), extra(*symbol));
            writer.store();
        }
    }
}

/// The number of symbols up to the last that has a code.
fn used(lengths: &[u8]) -> usize {
    lengths.iter().rposition(|length| *length != 0).map_or(0, |last| last + 1)
}

fn extra(symbol: u8) -> u32 {
    symbol.checked_sub(REPEAT).map_or(0, |at| EXTRA[usize::from(at)])
}
