//! Checksums of bodies, combined from those of their blocks.

use zlib_rs::adler32::adler32_combine;
use zlib_rs::crc32::crc32_combine;

/// CRC-32 (RFC 1952) of a body. For each block: its bytes, and its raw CRC, which begins with zero and is not inverted at its end.
pub(super) fn crc(blocks: impl Iterator<Item = (u32, u32)>) -> u32 {
    // Combining shifts the first sum by the second one's bytes and adds that, which is as good for raw sums.
    !blocks.fold(u32::MAX, |crc, (bytes, raw)| crc32_combine(crc, raw, bytes.into()))
}

/// Adler-32 (RFC 1950) of a body. For each block: its bytes, their sum, and their sum weighted by the number of bytes
/// from each on; both modulo [`ADLER_BASE`].
pub(super) fn adler(blocks: impl Iterator<Item = (u32, u32, u32)>) -> u32 {
    blocks.fold(1, |adler, (bytes, sum, weighed)| {
        let of_block = (((bytes + weighed) % ADLER_BASE) << 16) | ((1 + sum) % ADLER_BASE);
        adler32_combine(adler, of_block, bytes.into())
    })
}

const ADLER_BASE: u32 = 65_521;

#[cfg(test)]
mod tests {
    use super::*;

    const POLYNOMIAL: u32 = 0xedb8_8320;

    fn raw_crc(bytes: &[u8]) -> u32 {
        bytes
            .iter()
            .fold(0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 }))
    }

    fn adler_sums(bytes: &[u8]) -> (u32, u32, u32) {
        let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
        let weighed: u64 = bytes.iter().rev().zip(1..).map(|(byte, left)| u64::from(*byte) * left).sum();
        (bytes.len() as u32, (sum % u64::from(ADLER_BASE)) as u32, (weighed % u64::from(ADLER_BASE)) as u32)
    }

    #[test]
    fn blocks_make_the_sums_of_the_whole() {
        // Values of other programs: RFC 3720, B.4 has none for these polynomials, zlib does.
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
