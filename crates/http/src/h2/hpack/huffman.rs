//! The Huffman code of RFC 7541 section 5.2: canonical, so that a code is found by its length and its place among those.

use super::facts::CODES;

/// Appends the decoded text; false where the input is no code: more than seven bits of padding, other padding than ones, or
/// EOS.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut bits, mut count, mut rest) = (0u64, 0u32, input);
    loop {
        // The bits lie at the upper end; below them are zeros.
        if let (Some(word), true) = (rest.first_chunk(), count <= 32) {
            bits |= u64::from(u32::from_be_bytes(*word)) << (32 - count);
            (count, rest) = (count + 32, &rest[4..]);
        }
        while let (true, [byte, more @ ..]) = (count <= 56 && rest.len() < 4, rest) {
            bits |= u64::from(*byte) << (56 - count);
            (count, rest) = (count + 8, more);
        }
        if count == 0 {
            return true;
        }
        let (symbol, length) = match SHORT[(bits >> 56) as usize] {
            (_, 0) => match long(bits) {
                Some(found) => found,
                None => return is_padding(bits, count),
            },
            found => found,
        };
        if u32::from(length) > count {
            return is_padding(bits, count);
        }
        out.push(symbol);
        bits <<= length;
        count -= u32::from(length);
    }
}

fn is_padding(bits: u64, count: u32) -> bool {
    count < 8 && bits >> (64 - count) == (1 << count) - 1
}

/// A code of more than 8 bits.
fn long(bits: u64) -> Option<(u8, u8)> {
    let top = (bits >> 32) as u32;
    for (length, &Row { first, count, place }) in ROWS.iter().enumerate().skip(9) {
        let at = (top >> (32 - length)).wrapping_sub(first);
        if at < count {
            return u8::try_from(ORDER[(place + at) as usize]).ok().map(|symbol| (symbol, length as u8));
        }
    }
    None
}

/// Bytes of a text's code.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    text.iter().map(|b| usize::from(CODES[usize::from(*b)].1)).sum::<usize>().div_ceil(8)
}

/// Appends the code of a text, padded with one bits.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0u32);
    for &byte in text {
        let (code, length) = CODES[usize::from(byte)];
        bits = bits << length | u64::from(code);
        count += u32::from(length);
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    while count >= 8 {
        count -= 8;
        out.push((bits >> count) as u8);
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

const LONGEST: usize = 30;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Row {
    first: u32,
    count: u32,
    /// Index of their first symbol in [`ORDER`].
    place: u32,
}

/// All symbols by the length of their code, then by their code.
static ORDER: [u16; 257] = TABLES.1;
static ROWS: [Row; LONGEST + 1] = TABLES.0;

const TABLES: ([Row; LONGEST + 1], [u16; 257]) = {
    let mut rows = [Row { first: 0, count: 0, place: 0 }; LONGEST + 1];
    let mut order = [0; 257];
    let (mut length, mut placed) = (1, 0);
    while length <= LONGEST {
        rows[length].place = placed as u32;
        let mut symbol = 0;
        while symbol < 257 {
            let (code, bits) = CODES[symbol];
            if bits as usize == length {
                if rows[length].count == 0 {
                    rows[length].first = code;
                }
                assert!(code == rows[length].first + rows[length].count, "the code is canonical");
                rows[length].count += 1;
                order[placed] = symbol as u16;
                placed += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    (rows, order)
};

/// Symbol and length of the code that eight bits begin with; length 0 where the code is longer.
static SHORT: [(u8, u8); 256] = {
    let mut short = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < 256 {
        let (code, bits) = CODES[symbol];
        if bits <= 8 {
            let mut low = 0;
            while low < 1 << (8 - bits) {
                short[(code as usize) << (8 - bits) | low] = (symbol as u8, bits);
                low += 1;
            }
        }
        symbol += 1;
    }
    short
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_there_and_back() {
        for length in [0, 1, 2, 3, 7, 200] {
            for first in 0..=255u8 {
                let text: Vec<u8> = (0..length).map(|i: u8| first.wrapping_add(i.wrapping_mul(29))).collect();
                let (mut code, mut back) = (Vec::new(), Vec::new());
                encode(&text, &mut code);
                assert_eq!(code.len(), encoded_len(&text));
                assert!(decode(&code, &mut back));
                assert_eq!(back, text);
            }
        }
    }

    #[test]
    fn wrong_padding_and_the_end_of_string_are_refused() {
        for wrong in [&[0xff][..], &[0x1f, 0xff], &[0x1e], &[0xff, 0xff, 0xff, 0xff], &[0x00]] {
            assert!(!decode(wrong, &mut Vec::new()), "{wrong:x?}");
        }
        let mut out = Vec::new();
        assert!(decode(&[0x1f], &mut out));
        assert_eq!(out, b"a");
    }
}
