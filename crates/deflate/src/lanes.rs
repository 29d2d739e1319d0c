//! Many bytes compared at once, in few steps where the processor has them: thirty-two with one, sixteen with sixteen.
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

/// How many of the first bytes are equal.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) fn common(a: [u8; 16], b: [u8; 16]) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8};
    // SAFETY: these need SSE2 and nothing else, and this function is only there where the target has it; any sixteen bytes are a vector.
    let same = unsafe {
        let [a, b] = [a, b].map(|bytes| std::mem::transmute::<[u8; 16], __m128i>(bytes));
        _mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) as u32
    };
    (!same).trailing_zeros()
}

/// The same for other processors.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) fn common(a: [u8; 16], b: [u8; 16]) -> u32 {
    let difference = u128::from_le_bytes(a) ^ u128::from_le_bytes(b);
    (difference.trailing_zeros() / 8).min(16)
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

    #[test]
    fn the_first_difference_counts() {
        for at in 0..16 {
            let (mut a, b) = ([9; 16], [9; 16]);
            (a[at], a[15]) = (1, 2);
            assert_eq!(common(a, b), at as u32);
        }
        assert_eq!(common([7; 16], [7; 16]), 16);
    }
}
