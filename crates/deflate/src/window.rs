//! The last 64 KB of the input, in a ring.
//!
//! Deflate looks back 32 KB. A ring of twice that has a property that is worth the copy: a position modulo 65,536 is a `u16`, so it
//! is an index that cannot be out of range and a table's entry of two bytes at once, and a distance is a subtraction that wraps. Nothing
//! slides and nothing is renumbered.
//!
//! Bytes ahead are copied in before they are looked at, [`STRIDE`] at a time. After the input's end there are zeros, so that
//! reads there give the same in each run.

use crate::lanes::{LANES, Lanes};
use crate::symbols::{MAX_MATCH, WINDOW};

pub(crate) const RING: usize = 65_536;
/// Bytes that are read at once.
pub(crate) const WIDE: usize = LANES;
/// Bytes that are looked at to see how they vary.
pub(crate) const VARIETY_OF: usize = 512;
/// Bytes copied at a time.
pub(crate) const STRIDE: usize = 16 * 1024;
/// Bytes ahead of a position that must be there: a match at one of the next two places, and a wide read at its end.
pub(crate) const AHEAD: usize = MAX_MATCH + 2 + 2 * WIDE;
const _: () = assert!(WINDOW + STRIDE + AHEAD <= RING);

/// The ring. Its first bytes are also after its last, so that a read may cross the end.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    ring: [u8; RING + WIDE],
    /// The position where the next byte goes.
    head: u16,
}

impl Window {
    pub(crate) const EMPTY: Window = Window { ring: [0; RING + WIDE], head: 0 };

    /// Begins again, with the last 32 KB of `dictionary`.
    pub(crate) fn reset(&mut self, dictionary: &[u8]) {
        self.head = 0;
        self.put(dictionary);
    }

    /// Copies in the bytes of `input` that may be looked at next, of which `filled` are there; returns the number that are
    /// there now.
    pub(crate) fn fill(&mut self, input: &[u8], filled: usize) -> usize {
        let end = input.len().min(filled + STRIDE);
        self.put(&input[filled..end]);
        if end == input.len() {
            self.put_zeros();
        }
        end
    }

    /// Says that nothing is known of what comes behind: zeros are there.
    pub(crate) fn put_zeros(&mut self) {
        let head = self.head;
        self.put(&[0; AHEAD]);
        self.head = head;
    }

    /// Appends bytes that are there to a list.
    pub(crate) fn copy(&self, from: u16, bytes: usize, out: &mut Vec<u8>) {
        let from = usize::from(from);
        let first = bytes.min(RING - from);
        out.extend_from_slice(&self.ring[from..from + first]);
        out.extend_from_slice(&self.ring[..bytes - first]);
    }

    /// Copies in what comes next.
    pub(crate) fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = usize::from(self.head);
            let (now, later) = bytes.split_at(bytes.len().min(RING - at));
            self.ring[at..at + now.len()].copy_from_slice(now);
            if at < WIDE {
                self.ring.copy_within(..WIDE, RING);
            }
            self.head = self.head.wrapping_add(now.len() as u16);
            bytes = later;
        }
    }

    /// A byte.
    #[inline(always)]
    pub(crate) fn byte(&self, at: u32) -> u8 {
        self.ring[usize::from(at as u16)]
    }

    /// Number of different bytes among [`VARIETY_OF`] between two places.
    pub(crate) fn variety(&self, from: u32, to: u32) -> u32 {
        let mut seen = [0u64; 4];
        for at in (from..to).step_by(to.saturating_sub(from) as usize / VARIETY_OF + 1) {
            let byte = self.byte(at);
            seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
        seen.iter().map(|seen| seen.count_ones()).sum()
    }

    /// Eight bytes; the first lowest.
    #[inline(always)]
    pub(crate) fn word(&self, at: u16) -> u64 {
        u64::from_le_bytes(self.read(at))
    }

    /// As many bytes as are compared at once.
    #[inline(always)]
    pub(crate) fn wide(&self, at: u16) -> &[u8; WIDE] {
        let at = usize::from(at);
        match self.ring[at..at + WIDE].first_chunk() {
            Some(bytes) => bytes,
            None => &[0; WIDE],
        }
    }

    #[inline(always)]
    fn read<const N: usize>(&self, at: u16) -> [u8; N] {
        const { assert!(N <= WIDE) };
        let at = usize::from(at);
        match self.ring[at..at + N].first_chunk() {
            Some(bytes) => *bytes,
            None => [0; N],
        }
    }

    /// Number of bytes that are equal at two places, of which the first `length` are known to be; may be more than
    /// [`MAX_MATCH`].
    #[inline(always)]
    pub(crate) fn common(&self, lanes: impl Lanes, earlier: u16, at: u16, mut length: u32) -> u32 {
        while length < MAX_MATCH as u32 {
            let [here, there] = [at, earlier].map(|place| self.wide(place.wrapping_add(length as u16)));
            let more = lanes.common_wide(here, there);
            length += more;
            if more < WIDE as u32 {
                break;
            }
        }
        length
    }
}

/// An earlier occurrence of the bytes at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Bytes; may be more than [`MAX_MATCH`], and reach beyond the input's end.
    pub(crate) length: u32,
    /// The distance back, 1 to [`WINDOW`]; 0 where there is no match.
    pub(crate) distance: u32,
}

impl Match {
    /// Another, if that is longer and near enough.
    #[inline(always)]
    pub(crate) fn or(self, length: u32, at: u32, earlier: u16) -> Match {
        let distance = distance(at, earlier);
        if length > self.length && usable(distance) { Match { length, distance } } else { self }
    }
}

/// Equal bytes of two words, given how they differ.
#[inline(always)]
pub(crate) fn common(difference: u64) -> u32 {
    difference.trailing_zeros() / 8
}

/// The distance back to an earlier position.
#[inline(always)]
pub(crate) fn distance(at: u32, earlier: u16) -> u32 {
    at.wrapping_sub(u32::from(earlier)) & 0xffff
}

/// Whether a match may be so far back.
#[inline(always)]
pub(crate) fn usable(distance: u32) -> bool {
    distance.wrapping_sub(1) < WINDOW as u32
}
