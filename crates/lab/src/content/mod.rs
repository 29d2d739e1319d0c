//! Bodies that the origin serves, all made up: the same seed gives the same bytes on every machine.
//!
//! Bodies are built to compress like the real thing, because a benchmark of compression on unreal bodies proves nothing. Scripts
//! compress to about a third, the bitmap to a fortieth, the photo not at all.

pub mod page;
pub mod photo;
pub mod picture;
pub mod records;
pub mod rng;
pub mod script;
mod words;

/// A body with the places where a counter may be written into it.
#[derive(Clone, Debug)]
pub struct Template {
    /// The body.
    pub bytes: Vec<u8>,
    /// Offsets of [`STAMP_BYTES`] bytes that may be overwritten without harm to the body's form; ascending, not overlapping.
    pub stamps: Vec<usize>,
}

/// The width of a stamp: 16 hexadecimal digits.
pub const STAMP_BYTES: usize = 16;

/// The digits of the `place`th stamp of the body number `count`. No two bodies share one, and no two places of a body.
pub fn stamp(count: u64, place: usize) -> [u8; STAMP_BYTES] {
    let mixed = rng::mix(count ^ (place as u64).rotate_right(16));
    let mut digits = [0; STAMP_BYTES];
    for (i, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(mixed >> (4 * i)) as usize & 15];
    }
    digits
}
