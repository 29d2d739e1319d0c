//! Borders between blocks.
//!
//! A block's code fits its symbols on the average, so a block should end where the symbols change their ways, and not sooner:
//! each has a head of some 60 to 100 bytes. The sequences are cut into pieces of about a thousand symbols ([`crate::parse`]);
//! then the two neighbours that gain most by sharing a code become one, as long as any gain. The cost of a part is estimated
//! by its entropy and by the number of symbols that its head would have to name; the end of the block costs about the same in
//! all of them.

use crate::lanes::Lanes;
use crate::parse::MOST_PARTS;
use crate::processor::{Processor, Work};
use crate::sequence::{Histogram, Sequence};

/// Sequences that share a block.
pub(crate) struct Part {
    /// Their number.
    pub(crate) sequences: usize,
    /// Bytes of input they stand for.
    pub(crate) bytes: usize,
    /// Their symbols; once parts are joined, with the end of the block.
    pub(crate) histogram: Histogram,
}

impl Part {
    /// A piece of these sequences, whose symbols were counted.
    pub(crate) fn new(sequences: &[Sequence], histogram: &Histogram) -> Part {
        let bytes = sequences.iter().map(|sequence| sequence.bytes()).sum();
        Part { sequences: sequences.len(), bytes, histogram: histogram.clone() }
    }

    /// Takes the next part in, which becomes empty.
    #[inline(always)]
    fn take(&mut self, next: &mut Part) {
        self.sequences += std::mem::take(&mut next.sequences);
        self.bytes += std::mem::take(&mut next.bytes);
        self.histogram.add(&next.histogram);
    }
}

/// Joins pieces to blocks.
pub(crate) fn join(processor: Processor, parts: &mut Vec<Part>) {
    match &mut parts[..] {
        [] => {}
        // What it costs is of no interest.
        [part] => part.histogram.end(),
        _ => processor.run(Join { parts }),
    }
}

/// Work of [`join`].
struct Join<'a> {
    parts: &'a mut Vec<Part>,
}

/// A block as far as it has been joined.
#[derive(Clone, Copy)]
struct Joined {
    /// The part that has its symbols; those that have joined it are empty.
    part: usize,
    cost: f32,
}

impl Work for Join<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, _: impl Lanes) {
        let parts = self.parts;
        let mut count = parts.len().min(MOST_PARTS);
        let mut blocks = [Joined { part: 0, cost: 0.0 }; MOST_PARTS];
        // The gain when the next block joins a block.
        let mut gains = [f32::NEG_INFINITY; MOST_PARTS];
        for (at, part) in parts.iter().take(count).enumerate() {
            blocks[at] = Joined { part: at, cost: cost(&part.histogram, &Histogram::EMPTY) };
        }
        for at in 0..count.saturating_sub(1) {
            gains[at] = gain(parts, blocks[at], blocks[at + 1]);
        }
        while count > 1 {
            let most = gains[..count - 1].iter().fold(f32::NEG_INFINITY, |most, gain| if *gain > most { *gain } else { most });
            let Some(best) = gains[..count - 1].iter().position(|gain| *gain == most).filter(|_| most >= 0.0) else { break };
            let next = blocks[best + 1];
            blocks[best].cost += next.cost - most;
            let (earlier, later) = parts.split_at_mut(next.part);
            earlier[blocks[best].part].take(&mut later[0]);
            blocks.copy_within(best + 2..count, best + 1);
            gains.copy_within(best + 1..count, best);
            count -= 1;
            for at in best.saturating_sub(1)..=best {
                if at + 1 < count {
                    gains[at] = gain(parts, blocks[at], blocks[at + 1]);
                }
            }
        }
        parts.retain(|part| part.sequences > 0);
        parts.iter_mut().for_each(|part| part.histogram.end());
    }
}

/// About the size of a block in a code of its own, without extra bits, in bits.
pub(crate) fn cost_of(processor: Processor, histogram: &Histogram) -> f32 {
    processor.run(Cost { histogram })
}

/// Work of [`cost_of`].
struct Cost<'a> {
    histogram: &'a Histogram,
}

impl Work for Cost<'_> {
    type Result = f32;

    #[inline(always)]
    fn run(self, _: impl Lanes) -> f32 {
        cost(self.histogram, &Histogram::EMPTY)
    }
}

#[inline(always)]
fn gain(parts: &[Part], a: Joined, b: Joined) -> f32 {
    a.cost + b.cost - cost(&parts[a.part].histogram, &parts[b.part].histogram)
}

/// About the size of a block of these symbols, without extra bits, in bits.
#[inline(always)]
fn cost(a: &Histogram, b: &Histogram) -> f32 {
    entropy(&a.litlen, &b.litlen) + entropy(&a.distance, &b.distance)
}

/// Bits that the head needs for a symbol that occurs.
const NAMED: f32 = 4.0;
/// About half of the head's size without symbols, and the end of the block.
const HEAD: f32 = 37.0;

/// Of the sums of two histograms.
#[inline(always)]
fn entropy<const N: usize>(a: &[u32; N], b: &[u32; N]) -> f32 {
    let ((a, few_a), (b, few_b)) = (a.as_chunks(), b.as_chunks());
    let mut few = [[0; AT_ONCE]; 2];
    few[0][..few_a.len()].copy_from_slice(few_a);
    few[1][..few_b.len()].copy_from_slice(few_b);
    let mut sums = Sums { totals: [0; AT_ONCE], weights: [0.0; AT_ONCE], used: [0; AT_ONCE] };
    for (a, b) in a.iter().zip(b) {
        sums = sums.add(a, b);
    }
    sums = sums.add(&few[0], &few[1]);
    let used = sums.used.iter().sum::<i32>() as f32;
    weight(sums.totals.iter().sum()) - sums.weights.iter().sum::<f32>() + used * NAMED + HEAD
}

/// Counts that are looked at together, in vectors.
const AT_ONCE: usize = 8;

/// Sums over counts. The order of the additions is the same on every processor, and so is the result.
#[derive(Clone, Copy)]
struct Sums {
    totals: [i32; AT_ONCE],
    weights: [f32; AT_ONCE],
    /// Counts that are not zero.
    used: [i32; AT_ONCE],
}

impl Sums {
    #[inline(always)]
    fn add(mut self, a: &[u32; AT_ONCE], b: &[u32; AT_ONCE]) -> Sums {
        for at in 0..AT_ONCE {
            let count = (a[at] + b[at]) as i32;
            self.totals[at] += count;
            self.used[at] += i32::from(count != 0);
            self.weights[at] += weight(count);
        }
        self
    }
}

/// `n` times its binary logarithm. That is right to 0.00013: the exponent, and for the mantissa a polynomial that is exact at 1 and at 2.
#[inline(always)]
fn weight(n: i32) -> f32 {
    let n = n as f32;
    let bits = n.to_bits();
    let whole = (bits >> (f32::MANTISSA_DIGITS - 1)) as i32 - (f32::MAX_EXP - 1);
    let part = f32::from_bits(bits & 0x007f_ffff | 1f32.to_bits()) - 1.0;
    let bend = part * (1.0 - part) * (0.438_379_33 + part * (-0.237_501_32 + part * 0.080_653_16));
    n * (whole as f32 + part + bend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::END_OF_BLOCK;

    #[test]
    fn logarithms_are_right_to_a_few_ten_thousandths() {
        assert_eq!([weight(0), weight(1), weight(2), weight(65_536)], [0.0, 0.0, 2.0, 1_048_576.0]);
        for n in 1..200_000 {
            let exact = f64::from(n) * f64::from(n).log2();
            assert!((f64::from(weight(n)) - exact).abs() <= f64::from(n) * 0.000_14 + 0.13, "{n}");
        }
    }

    /// A piece with these counts.
    fn piece(symbols: &[(usize, u32)]) -> Part {
        let mut histogram = Histogram::EMPTY;
        symbols.iter().for_each(|(symbol, count)| histogram.litlen[*symbol] += count);
        Part::new(&[Sequence { literals: 1, length: 0, slot: 0, extra: 0 }], &histogram)
    }

    #[test]
    fn what_is_alike_becomes_one_block_and_what_is_not_does_not() {
        let (even, odd): (Vec<_>, Vec<_>) = (0..128).map(|at| ((2 * at, 40), (2 * at + 1, 40))).unzip();
        let make = || [&even, &even, &odd, &odd, &odd, &even].map(|symbols| piece(symbols)).into_iter().collect::<Vec<_>>();
        for processor in Processor::all() {
            let mut parts = make();
            join(processor, &mut parts);
            assert_eq!(parts.iter().map(|part| part.sequences).collect::<Vec<_>>(), [2, 3, 1]);
            assert_eq!(parts.iter().map(|part| part.histogram.litlen[1]).collect::<Vec<_>>(), [0, 120, 0]);
            assert_eq!(parts.iter().map(|part| part.histogram.litlen[END_OF_BLOCK]).collect::<Vec<_>>(), [1; 3]);
        }
        let mut none = Vec::new();
        join(Processor::here(), &mut none);
        assert!(none.is_empty());
    }
}
