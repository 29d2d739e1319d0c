//! Checksums of bodies, put together of their blocks'.

/// CRC-32 (RFC 1952) of a body. For each block: its bytes, and its raw CRC, which begins with zero and is not inverted at its end.
pub(super) fn crc(blocks: impl Iterator<Item = (u32, u32)>) -> u32 {
    let mut crc = u32::MAX;
    // All blocks of a body but its last are of one size.
    let mut shift = (0, ONE);
    for (bytes, raw) in blocks {
        if shift.0 != bytes {
            shift = (bytes, power(bytes));
        }
        crc = product(crc, shift.1) ^ raw;
    }
    !crc
}

/// Adler-32 (RFC 1950) of a body. For each block: its bytes, their sum, and their sum weighed by how many are left from each on.
pub(super) fn adler(blocks: impl Iterator<Item = (u32, u32, u32)>) -> u32 {
    let (mut low, mut high) = (1u64, 0u64);
    for (bytes, sum, weighed) in blocks {
        high = (high + u64::from(bytes) * low + u64::from(weighed)) % ADLER_BASE;
        low = (low + u64::from(sum)) % ADLER_BASE;
    }
    (high << 16 | low) as u32
}

/// x to the power of so many bytes' bits, modulo the CRC's polynomial.
fn power(bytes: u32) -> u32 {
    let (mut result, mut factor, mut left) = (ONE, BYTE, bytes);
    while left > 0 {
        if left & 1 == 1 {
            result = product(result, factor);
        }
        factor = product(factor, factor);
        left >>= 1;
    }
    result
}

/// The product of two polynomials modulo the CRC's, their lowest powers in the highest bits.
fn product(mut a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    while a != 0 {
        product ^= if a & ONE != 0 { b } else { 0 };
        a <<= 1;
        b = b >> 1 ^ if b & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    product
}

const POLYNOMIAL: u32 = 0xedb8_8320;
const ONE: u32 = 0x8000_0000;
/// x to the power of eight.
const BYTE: u32 = 0x0080_0000;
const ADLER_BASE: u64 = 65_521;

#[cfg(test)]
mod tests {
    use super::*;

    fn raw_crc(bytes: &[u8]) -> u32 {
        bytes
            .iter()
            .fold(0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 }))
    }

    fn adler_sums(bytes: &[u8]) -> (u32, u32, u32) {
        let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
        let weighed: u64 = bytes.iter().rev().zip(1..).map(|(byte, left)| u64::from(*byte) * left).sum();
        (bytes.len() as u32, (sum % ADLER_BASE) as u32, (weighed % ADLER_BASE) as u32)
    }

    #[test]
    fn blocks_make_the_sums_of_the_whole() {
        // Values that other programs give: RFC 3720, B.4 has none for these polynomials, zlib does.
        assert_eq!(crc([(9, raw_crc(b"123456789"))].into_iter()), 0xcbf4_3926);
        assert_eq!(adler([adler_sums(b"Wikipedia")].into_iter()), 0x11e6_0398);
        let body: Vec<u8> = (0..100_003u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let whole = (crc([(body.len() as u32, raw_crc(&body))].into_iter()), adler([adler_sums(&body)].into_iter()));
        for size in [1000, 32_768, 99_999] {
            let crc = crc(body.chunks(size).map(|block| (block.len() as u32, raw_crc(block))));
            assert_eq!((crc, adler(body.chunks(size).map(adler_sums))), whole, "{size}");
        }
        assert_eq!((crc([(0, 0)].into_iter()), adler([(0, 0, 0)].into_iter())), (0, 1), "an empty body");
    }
}
