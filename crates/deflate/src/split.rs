//! Where one block ends and the next begins.
//!
//! A block's code fits its symbols on the average, so a block should end where the symbols change their ways, and not sooner: each has
//! a head of some 60 to 100 bytes. The sequences are cut into pieces of about [`PIECE_SYMBOLS`]; then the two neighbours that gain
//! most by sharing a code become one, as long as any gain. What a part costs is estimated by its entropy and by how many symbols its
//! head would have to name.

use crate::sequence::{Histogram, Sequence};
use crate::symbols::END_OF_BLOCK;

/// Sequences that share a block.
pub(crate) struct Part {
    /// Their number.
    pub(crate) sequences: usize,
    /// Bytes of input they stand for.
    pub(crate) bytes: usize,
    /// Their symbols, and the end of the block.
    pub(crate) histogram: Histogram,
    cost: u64,
    /// What is gained when the next part joins this one, in 65,536ths of a bit.
    gain: i64,
}

impl Part {
    /// A piece of these sequences, whose symbols were counted.
    pub(crate) fn new(sequences: &[Sequence], histogram: &Histogram) -> Part {
        let mut histogram = histogram.clone();
        histogram.end();
        let bytes = sequences.iter().map(|sequence| sequence.bytes()).sum();
        let cost = cost(&histogram);
        Part { sequences: sequences.len(), bytes, histogram, cost, gain: 0 }
    }
}

/// Joins pieces to blocks.
pub(crate) fn join(parts: &mut Vec<Part>) {
    for at in 0..parts.len().saturating_sub(1) {
        parts[at].gain = gain(&parts[at], &parts[at + 1]);
    }
    while let Some(best) = (0..parts.len().saturating_sub(1)).max_by_key(|at| parts[*at].gain).filter(|at| parts[*at].gain >= 0) {
        let next = parts.remove(best + 1);
        let joined = &mut parts[best];
        joined.sequences += next.sequences;
        joined.bytes += next.bytes;
        joined.histogram.add(&next.histogram);
        joined.histogram.end();
        joined.cost = cost(&joined.histogram);
        for at in best.saturating_sub(1)..=best {
            if at + 1 < parts.len() {
                parts[at].gain = gain(&parts[at], &parts[at + 1]);
            }
        }
    }
}

fn gain(a: &Part, b: &Part) -> i64 {
    let mut both = a.histogram.clone();
    both.add(&b.histogram);
    both.litlen[END_OF_BLOCK] = 1;
    (a.cost + b.cost) as i64 - cost(&both) as i64
}

/// About the size of a block of these symbols, without extra bits, in 65,536ths of a bit.
fn cost(histogram: &Histogram) -> u64 {
    entropy(&histogram.litlen) + entropy(&histogram.distance)
}

/// Bits that the head needs for a symbol that occurs, and for one that does not.
const NAMED: u64 = 4 << 16;
/// About what the head takes without symbols.
const HEAD: u64 = 30 << 16;

fn entropy<const N: usize>(counts: &[u32; N]) -> u64 {
    let (mut total, mut sum, mut used) = (0u32, 0u64, 0u64);
    for count in counts {
        total += count;
        sum += weight(*count);
        used += u64::from(*count != 0);
    }
    weight(total) - sum + used * NAMED + HEAD
}

/// `n` times its binary logarithm, in 65,536ths.
#[inline(always)]
fn weight(n: u32) -> u64 {
    // Beyond the table, that of its leading digits.
    let shift = (32 - (n >> LOG_BITS).leading_zeros()) as u64;
    let log = u64::from(LOG2[(n >> shift) as usize & (LOG2.len() - 1)]) + (shift << 16);
    if n == 0 { 0 } else { u64::from(n) * log }
}

const LOG_BITS: u32 = 10;

/// Binary logarithms in 65,536ths.
static LOG2: [u32; 1 << LOG_BITS] = logarithms();

const fn logarithms() -> [u32; 1 << LOG_BITS] {
    let mut table = [0; 1 << LOG_BITS];
    let mut n = 1;
    while n < table.len() {
        let whole = (n as u32).ilog2();
        // The mantissa in 2^-31ths, 1 to 2; squared, each bit of the logarithm shows as a carry.
        let mut mantissa = (n as u64) << (31 - whole);
        let mut log = whole;
        let mut bit = 0;
        while bit < 16 {
            mantissa = (mantissa * mantissa) >> 31;
            let carry = (mantissa >> 32) as u32;
            mantissa >>= carry;
            log = log << 1 | carry;
            bit += 1;
        }
        table[n] = log;
        n += 1;
    }
    table
}
