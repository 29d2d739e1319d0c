//! Thirty-two bytes compared with one, in few steps where the processor has them.
//!
//! The only unsafe code of the crate. It takes and gives values, no pointers.

/// Bytes compared.
pub(crate) const LANES: usize = 32;

/// A bit for each of `bytes` that is equal to `byte`; the first lowest.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) fn equal(bytes: &[u8; LANES], byte: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let (halves, _) = bytes.as_chunks::<16>();
    let [low, high] = [halves[0], halves[1]].map(|half| {
        let all = u128::from_le_bytes(half);
        // SAFETY: these need SSE2 and nothing else, and this function is only there where the target has it.
        unsafe {
            let all = _mm_set_epi64x((all >> 64) as i64, all as i64);
            _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(byte as i8))) as u32
        }
    });
    low | high << 16
}

/// The same for other processors.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) fn equal(bytes: &[u8; LANES], byte: u8) -> u32 {
    bytes.iter().enumerate().fold(0, |mask, (lane, other)| mask | u32::from(*other == byte) << lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_has_its_bit() {
        for lane in 0..LANES {
            let mut bytes = [7; LANES];
            bytes[lane] = 200;
            assert_eq!((equal(&bytes, 200), equal(&bytes, 7), equal(&bytes, 0)), (1 << lane, !(1 << lane), 0));
        }
    }
}
