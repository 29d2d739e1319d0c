//! Many bytes compared at once, in few steps where the processor has them.
//!
//! The unsafe code takes and gives values, and reads and writes where it has looked that there is room.

/// Bytes of the widest vector.
pub(crate) const LANES: usize = 32;

/// Comparison of many values at once.
pub(crate) trait Lanes: Copy {
    /// A bit for each byte of the first half that is equal to `low`, and of the second half to `high`; the first lowest.
    fn equal(self, bytes: &[u8; LANES], low: u8, high: u8) -> u32;

    /// Number of the first bytes that are equal.
    fn common(self, a: &[u8; WORD], b: &[u8; WORD]) -> u32;

    /// The same for twice as many.
    #[inline(always)]
    fn common_wide(self, a: &[u8; LANES], b: &[u8; LANES]) -> u32 {
        let (([a, later_a], _), ([b, later_b], _)) = (a.as_chunks(), b.as_chunks()) else { return 0 };
        let first = self.common(a, b);
        if first < WORD as u32 { first } else { WORD as u32 + self.common(later_a, later_b) }
    }
}

/// Distances of other places, seen from eight that follow one another: below zero if they are before them by 32,768 at most,
/// else 0 or 1. They are put into a single register: to store each apart would take as long as all other work for them.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) fn before(first: u16, others: [u16; 8]) -> [i16; 8] {
    use std::arch::x86_64::{__m128i, _mm_add_epi16, _mm_min_epi16, _mm_set_epi16, _mm_set1_epi16, _mm_sub_epi16};
    let [a, b, c, d, e, f, g, h] = others.map(|other| other as i16);
    // SAFETY: these need SSE2 and nothing else, and this function is only there where the target has it; a vector is eight numbers.
    unsafe {
        let places = _mm_add_epi16(_mm_set1_epi16(first as i16), _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0));
        let before = _mm_sub_epi16(_mm_set_epi16(h, g, f, e, d, c, b, a), places);
        std::mem::transmute::<__m128i, [i16; 8]>(_mm_min_epi16(before, _mm_set1_epi16(1)))
    }
}

/// The same for other processors.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) fn before(first: u16, others: [u16; 8]) -> [i16; 8] {
    std::array::from_fn(|at| (others[at].wrapping_sub(first.wrapping_add(at as u16)) as i16).min(1))
}

/// Bytes that are compared at once.
pub(crate) const WORD: usize = 16;

/// Bytes of which many are read at once.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    bytes: &'a [u8],
    /// Number of places with all bytes of a word.
    words: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes, words: (bytes.len() + 1).saturating_sub(WORD) }
    }

    /// The byte at a place; zero where there is none.
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The bytes from a place on, if they are all there.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn word(&self, at: usize) -> Option<&'a [u8; WORD]> {
        // SAFETY: less than `words`, so `at + WORD` is not beyond the end; any address is good enough for bytes.
        (at < self.words).then(|| unsafe { &*self.bytes.as_ptr().add(at).cast::<[u8; WORD]>() })
    }
}

/// Puts a number where it has room, the lowest byte first.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn put_word(room: &mut [u8], at: usize, word: u64) {
    assert!(room.len() >= size_of::<u64>() && at <= room.len() - size_of::<u64>());
    // SAFETY: there are as many bytes from `at` on; any address is good enough for bytes.
    unsafe { room.as_mut_ptr().add(at).cast::<[u8; size_of::<u64>()]>().write(word.to_le_bytes()) }
}

/// The instructions of every processor of the target.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(unsafe_code)]
impl Lanes for Plain {
    #[inline(always)]
    fn equal(self, bytes: &[u8; LANES], low: u8, high: u8) -> u32 {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
        let (halves, _) = bytes.as_chunks::<16>();
        let [low, high] = [(halves[0], low), (halves[1], high)].map(|(half, byte)| {
            let all = u128::from_le_bytes(half);
            // SAFETY: these need SSE2 and nothing else, and this function is only there where the target has it.
            unsafe {
                let all = _mm_set_epi64x((all >> 64) as i64, all as i64);
                _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(byte as i8))) as u32
            }
        });
        low | high << 16
    }

    #[inline(always)]
    fn common(self, a: &[u8; WORD], b: &[u8; WORD]) -> u32 {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
        // SAFETY: these need SSE2 and nothing else, and this function is only there where the target has it; sixteen bytes are read of
        // sixteen, from any address.
        let same = unsafe {
            let [a, b] = [a, b].map(|bytes| _mm_loadu_si128(bytes.as_ptr().cast()));
            _mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) as u32
        };
        (!same).trailing_zeros()
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
impl Lanes for Plain {
    #[inline(always)]
    fn equal(self, bytes: &[u8; LANES], low: u8, high: u8) -> u32 {
        let wanted = |lane| if lane < LANES / 2 { low } else { high };
        bytes.iter().enumerate().fold(0, |mask, (lane, byte)| mask | u32::from(*byte == wanted(lane)) << lane)
    }

    #[inline(always)]
    fn common(self, a: &[u8; WORD], b: &[u8; WORD]) -> u32 {
        let difference = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
        (difference.trailing_zeros() / 8).min(16)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #![allow(unsafe_code)]
    use super::{LANES, Lanes, Plain, WORD};
    use crate::processor::Avx2;
    use std::arch::x86_64::{__m256i, _mm_set1_epi8, _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_set_m128i};

    impl Lanes for Avx2 {
        #[inline(always)]
        fn equal(self, bytes: &[u8; LANES], low: u8, high: u8) -> u32 {
            // SAFETY: the processor has AVX2; `self` is the proof.
            unsafe { equal(bytes, low, high) }
        }

        #[inline(always)]
        fn common(self, a: &[u8; WORD], b: &[u8; WORD]) -> u32 {
            Plain.common(a, b)
        }

        #[inline(always)]
        fn common_wide(self, a: &[u8; LANES], b: &[u8; LANES]) -> u32 {
            // SAFETY: as above.
            unsafe { common_wide(a, b) }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn equal(bytes: &[u8; LANES], low: u8, high: u8) -> u32 {
        let wanted = _mm256_set_m128i(_mm_set1_epi8(high as i8), _mm_set1_epi8(low as i8));
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(vector(*bytes), wanted)) as u32
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn common_wide(a: &[u8; LANES], b: &[u8; LANES]) -> u32 {
        let same = _mm256_movemask_epi8(_mm256_cmpeq_epi8(vector(*a), vector(*b))) as u32;
        (!same).trailing_zeros()
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn vector(bytes: [u8; LANES]) -> __m256i {
        // SAFETY: any thirty-two bytes are a vector.
        unsafe { std::mem::transmute::<[u8; LANES], __m256i>(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::{Processor, Work};

    struct EachLane;

    impl Work for EachLane {
        type Result = ();

        fn run(self, lanes: impl Lanes) {
            for lane in 0..LANES {
                let mut bytes = [7; LANES];
                bytes[lane] = 200;
                let found = [(200, 200), (7, 7), (0, 0), (7, 0)].map(|(low, high)| lanes.equal(&bytes, low, high));
                assert_eq!(found, [1 << lane, !(1 << lane), 0, !(1 << lane) & 0xffff]);
            }
            for at in 0..16 {
                let (mut a, b) = ([9; 16], [9; 16]);
                (a[at], a[15]) = (1, 2);
                assert_eq!(lanes.common(&a, &b), at as u32);
            }
            assert_eq!(lanes.common(&[7; 16], &[7; 16]), 16);
            for at in 0..LANES {
                let (mut a, b) = ([9; LANES], [9; LANES]);
                (a[at], a[LANES - 1]) = (1, 2);
                assert_eq!(lanes.common_wide(&a, &b), at as u32);
            }
            assert_eq!(lanes.common_wide(&[7; LANES], &[7; LANES]), LANES as u32);
        }
    }

    #[test]
    fn each_lane_has_its_bit_and_the_first_difference_counts() {
        for processor in Processor::all() {
            processor.run(EachLane);
        }
    }
}
