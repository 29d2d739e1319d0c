//! Opens a deflate stream (RFC 1951) at its end, so that another can follow.
//!
//! libdeflate only makes whole streams: the last block is marked as the last. The position of that block is unknown. So
//! the stream is walked from code to code, without making its output, to find it; this takes a twentieth of the time of
//! the compression. Then the block's bit is cleared, and an empty stored block brings the stream to the border of a
//! byte.

/// Changes the stream in `out[start..]`, which is whole, into one that goes on. `None`, with `out` unchanged: it is no
/// deflate stream.
pub fn open(out: &mut Vec<u8>, start: usize) -> Option<()> {
    let (last, end) = ends(out.get(start..)?)?;
    let (byte, bit) = (start + last / 8, last % 8);
    *out.get_mut(byte)? &= !(1 << bit);
    out.truncate(start + end.div_ceil(8));
    if !end.is_multiple_of(8) {
        // The bits that fill the last byte have no meaning so far, and need not be zero (section 3.2.3).
        *out.last_mut()? &= (1 << (end % 8)) - 1;
    }
    // An empty stored block: three bits, then zeros up to a byte, then the length 0 and its complement (section 3.2.4).
    if end % 8 > 5 || end.is_multiple_of(8) {
        out.push(0);
    }
    out.extend_from_slice(&[0, 0, 0xff, 0xff]);
    Some(())
}

/// Start of the last block, and end of the stream, in bits.
fn ends(stream: &[u8]) -> Option<(usize, usize)> {
    let mut bits = Bits::new(stream);
    let mut codes = Box::<Codes>::default();
    loop {
        let begin = bits.position();
        let is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => bits.skip_stored()?,
            1 => {
                codes.set_fixed()?;
                codes.skip_symbols(&mut bits)?;
            }
            2 => {
                codes.read(&mut bits)?;
                codes.skip_symbols(&mut bits)?;
            }
            _ => return None,
        }
        if is_last {
            return Some((begin, bits.position()));
        }
    }
}

/// Reader of bits, from the lowest of each byte on.
struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte to load.
    next: usize,
    /// Loaded bits; those above `count` may hold any correct bits, because loading sets them again.
    loaded: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, next: 0, loaded: 0, count: 0 }
    }

    fn position(&self) -> usize {
        self.next * 8 - self.count as usize
    }

    /// Loads 56 bits, or the rest; after the end there are zeros, which `take` does not return.
    #[inline(always)]
    fn load(&mut self) {
        if let Some(word) = self.bytes.get(self.next..self.next + 8).and_then(|word| word.try_into().ok()) {
            self.loaded |= u64::from_le_bytes(word) << self.count;
            let taken = (63 - self.count) / 8;
            self.next += taken as usize;
            self.count += taken * 8;
        } else {
            while self.count <= 56
                && let Some(&byte) = self.bytes.get(self.next)
            {
                self.loaded |= u64::from(byte) << self.count;
                self.next += 1;
                self.count += 8;
            }
        }
    }

    /// Drops bits that were read.
    #[inline(always)]
    fn drop(&mut self, count: u32) -> Option<()> {
        self.count = self.count.checked_sub(count)?;
        self.loaded >>= count;
        Some(())
    }

    /// Takes up to 16 bits.
    fn take(&mut self, count: u32) -> Option<usize> {
        self.load();
        let value = self.loaded & ((1 << count) - 1);
        self.drop(count)?;
        Some(value as usize)
    }

    fn skip_stored(&mut self) -> Option<()> {
        let begin = self.position().div_ceil(8);
        let length = self.bytes.get(begin..begin + 2)?;
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        (self.next, self.loaded, self.count) = (begin + 4 + length, 0, 0);
        (self.next <= self.bytes.len()).then_some(())
    }
}

/// Number of a code's bits that are looked up at once; longer codes take a second step.
const FAST_BITS: u32 = 10;
/// The longest code (section 3.2.7).
const MAX_BITS: usize = 15;

/// A block's two codes.
struct Codes {
    lengths: Code,
    distances: Code,
}

/// A prefix code, from codes to the bits that a reader skips.
struct Code {
    /// Entry for each ending of the bits to come; 0 where the code is longer, or there is none.
    fast: [u16; 1 << FAST_BITS],
    /// Table for longer codes: number of codes of each length, and all symbols in order.
    counts: [u16; MAX_BITS + 1],
    symbols: Vec<u16>,
}

/// An entry: bits to drop, including those after the code, and its kind.
const DROP: u16 = 0x3f;
const IS_MATCH: u16 = 0x40;
const IS_END: u16 = 0x80;

impl Default for Codes {
    fn default() -> Codes {
        let code = || Code { fast: [0; 1 << FAST_BITS], counts: [0; MAX_BITS + 1], symbols: Vec::new() };
        Codes { lengths: code(), distances: code() }
    }
}

impl Codes {
    /// Section 3.2.6.
    fn set_fixed(&mut self) -> Option<()> {
        let mut lengths = [8u8; 288];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        self.lengths.set(&lengths, length_entry)?;
        self.distances.set(&[5; 30], distance_entry)
    }

    /// Section 3.2.7.
    fn read(&mut self, bits: &mut Bits<'_>) -> Option<()> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let (literals, distances, codes) = (bits.take(5)? + 257, bits.take(5)? + 1, bits.take(4)? + 4);
        let mut lengths = [0u8; 19];
        for &place in &ORDER[..codes] {
            lengths[place] = bits.take(3)? as u8;
        }
        let code = &mut self.lengths;
        code.set(&lengths, |_| 0)?;
        let mut lengths = [0u8; 286 + 2 + 32];
        let mut filled = 0;
        while filled < literals + distances {
            let (value, times) = match code.symbol(bits)? {
                16 => (*lengths.get(filled.checked_sub(1)?)?, bits.take(2)? + 3),
                17 => (0, bits.take(3)? + 3),
                18 => (0, bits.take(7)? + 11),
                length => (length as u8, 1),
            };
            lengths.get_mut(filled..filled + times)?.fill(value);
            filled += times;
        }
        self.lengths.set(&lengths[..literals], length_entry)?;
        self.distances.set(lengths.get(literals..literals + distances)?, distance_entry)
    }

    fn skip_symbols(&self, bits: &mut Bits<'_>) -> Option<()> {
        loop {
            bits.load();
            // Two literals and a match, or four literals, fit into 56 loaded bits: codes of up to 15 with up to 13
            // extra bits.
            let mut entry = self.lengths.entry(bits, length_entry)?;
            bits.drop(u32::from(entry & DROP))?;
            if entry & (IS_MATCH | IS_END) == 0 {
                entry = self.lengths.entry(bits, length_entry)?;
                bits.drop(u32::from(entry & DROP))?;
            }
            if entry & IS_END != 0 {
                return Some(());
            }
            if entry & IS_MATCH != 0 {
                if bits.count < 28 {
                    bits.load();
                }
                let entry = self.distances.entry(bits, distance_entry)?;
                bits.drop(u32::from(entry & DROP))?;
            }
        }
    }
}

/// Section 3.2.5: extra bits of lengths.
fn length_entry(symbol: u16) -> u16 {
    match symbol {
        0..=255 => 0,
        256 => IS_END,
        257..=264 | 285 => IS_MATCH,
        _ => IS_MATCH | ((symbol - 261) / 4),
    }
}

/// Section 3.2.5: extra bits of distances.
fn distance_entry(symbol: u16) -> u16 {
    (symbol / 2).saturating_sub(1)
}

impl Code {
    /// Sets the lengths of all symbols' codes (section 3.2.2), and the meaning of each symbol.
    fn set(&mut self, lengths: &[u8], entry: fn(u16) -> u16) -> Option<()> {
        self.counts = [0; MAX_BITS + 1];
        for &length in lengths {
            *self.counts.get_mut(usize::from(length))? += 1;
        }
        self.counts[0] = 0;
        let (mut places, mut firsts) = ([0u16; MAX_BITS + 2], [0u16; MAX_BITS + 2]);
        for bits in 1..=MAX_BITS {
            places[bits + 1] = places[bits] + self.counts[bits];
            firsts[bits + 1] = (firsts[bits].wrapping_add(self.counts[bits])) << 1;
        }
        self.fast.fill(0);
        self.symbols.clear();
        self.symbols.resize(lengths.len(), 0);
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length != 0) {
            let (length, symbol) = (usize::from(length), symbol as u16);
            *self.symbols.get_mut(usize::from(places[length]))? = symbol;
            places[length] += 1;
            let code = firsts[length];
            firsts[length] = code.wrapping_add(1);
            if length <= FAST_BITS as usize {
                let ending = usize::from(code.reverse_bits() >> (16 - length));
                let value = entry(symbol) + length as u16;
                self.fast.get_mut(ending..)?.iter_mut().step_by(1 << length).for_each(|slot| *slot = value);
            }
        }
        Some(())
    }

    /// Entry of the bits to come, of which 15 must be loaded unless the stream ends.
    #[inline(always)]
    fn entry(&self, bits: &Bits<'_>, entry: fn(u16) -> u16) -> Option<u16> {
        let fast = self.fast[(bits.loaded & ((1 << FAST_BITS) - 1)) as usize];
        if fast != 0 {
            return Some(fast);
        }
        let (symbol, length) = self.slow(bits)?;
        Some(entry(symbol) + length as u16)
    }

    /// Takes the next symbol.
    fn symbol(&self, bits: &mut Bits<'_>) -> Option<u16> {
        bits.load();
        let (symbol, length) = self.slow(bits)?;
        bits.drop(length)?;
        Some(symbol)
    }

    /// The next symbol, bit by bit, and the length of its code.
    #[inline(never)]
    fn slow(&self, bits: &Bits<'_>) -> Option<(u16, u32)> {
        let (mut code, mut first, mut place) = (0u32, 0u32, 0u32);
        for length in 1..=MAX_BITS {
            code |= (bits.loaded >> (length - 1)) as u32 & 1;
            let count = u32::from(self.counts[length]);
            if let Some(beyond) = code.checked_sub(first)
                && beyond < count
            {
                return Some((*self.symbols.get((place + beyond) as usize)?, length as u32));
            }
            place += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libdeflater::{CompressionLvl, Compressor};
    use proptest::prelude::*;
    use std::io::Read;

    fn whole(level: i32, input: &[u8]) -> Vec<u8> {
        let mut coder = Compressor::new(CompressionLvl::new(level).unwrap());
        let mut out = vec![0; coder.deflate_compress_bound(input.len())];
        let length = coder.deflate_compress(input, &mut out).unwrap();
        out.truncate(length);
        out
    }

    /// Joins pieces, and decodes them with another library.
    fn round_trip(level: i32, pieces: &[&[u8]]) {
        let mut joined = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let start = joined.len();
            joined.extend(whole(level, piece));
            if number + 1 < pieces.len() {
                open(&mut joined, start).expect("libdeflate's streams are sound");
            }
        }
        let mut read = Vec::new();
        let mut decoder = flate2::bufread::DeflateDecoder::new(&joined[..]);
        decoder.read_to_end(&mut read).unwrap();
        assert_eq!(decoder.total_in() as usize, joined.len(), "nothing behind the last block");
        assert!(read == pieces.concat(), "level {level}");
    }

    /// Bytes that make all kinds of blocks: text, noise, runs.
    fn body(seed: u32, length: usize) -> Vec<u8> {
        let mut state = seed | 1;
        (0..length)
            .map(|at| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                match (at / 20_000) % 3 {
                    0 => b"the quick brown fox <p>"[(state >> 24) as usize % 23],
                    1 => (state >> 24) as u8,
                    _ => 7,
                }
            })
            .collect()
    }

    #[test]
    fn pieces_of_every_kind_join() {
        let long = body(1, 300_000);
        for level in [0, 1, 3, 6, 9, 12] {
            round_trip(level, &[&long, b"a", b"", &long[100..70_000], &[0; 5000], b"end"]);
            for length in 0..40 {
                round_trip(level, &[&long[..length], &long[length..2 * length]]);
            }
        }
    }

    #[test]
    fn what_fills_the_last_byte_is_no_part_of_it() {
        let read = |coded: &[u8]| {
            let mut read = Vec::new();
            flate2::bufread::DeflateDecoder::new(coded).read_to_end(&mut read).map(|_| read)
        };
        let mut filled = 0;
        for length in 20..60 {
            let body = vec![b'a'; length];
            let mut joined = whole(6, &body);
            let last = joined.len() - 1;
            joined[last] ^= 0x80;
            // Only where the last block ends before its last bit.
            if read(&joined).is_ok_and(|read| read == body) {
                open(&mut joined, 0).unwrap();
                joined.extend(whole(6, b"end"));
                assert_eq!(read(&joined).unwrap(), [&body[..], b"end"].concat(), "{length}");
                filled += 1;
            }
        }
        assert!(filled > 0);
    }

    #[test]
    fn what_is_no_stream_is_left_alone() {
        for bad in [&b""[..], &[7], &[5, 255, 255, 255], &[0xff; 40], &[1, 9, 0, 0, 0]] {
            let mut out = bad.to_vec();
            assert_eq!((open(&mut out, 0), &out[..]), (None, bad));
        }
        let sound = whole(6, &body(3, 50_000));
        for cut in [1, 10, sound.len() / 2, sound.len() - 1] {
            assert_eq!(open(&mut sound[..cut].to_vec(), 0), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn noise_does_not_panic(noise: Vec<u8>) {
            open(&mut noise.clone(), 0);
        }
    }
}
