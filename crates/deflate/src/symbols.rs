//! The alphabets of RFC 1951 section 3.2.5: lengths and distances as symbols with extra bits.

/// Symbols of the first alphabet: 256 bytes, the end of a block, 29 lengths, and two that never occur but have their places in the
/// fixed code.
pub(crate) const LITLEN_SYMBOLS: usize = 288;
/// Distances.
pub(crate) const DISTANCE_SYMBOLS: usize = 30;
/// The symbol that ends a block.
pub(crate) const END_OF_BLOCK: usize = 256;
/// The symbol of the shortest length.
pub(crate) const FIRST_LENGTH: usize = 257;

/// The shortest match of the format.
pub(crate) const MIN_MATCH: usize = 3;
/// The longest match of the format.
pub(crate) const MAX_MATCH: usize = 258;
/// The farthest match of the format.
pub(crate) const WINDOW: usize = 32_768;

/// Extra bits of the length symbols.
pub(crate) const LENGTH_EXTRA: [u8; 29] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// The length symbol of a match, counted from [`FIRST_LENGTH`], by its length less [`MIN_MATCH`].
pub(crate) const LENGTH_SLOT: [u8; 256] = length_slots();

/// The shortest length of each symbol, less [`MIN_MATCH`].
pub(crate) const LENGTH_BASE: [u8; 29] = length_bases();

const fn length_bases() -> [u8; 29] {
    let mut bases = [0; 29];
    let (mut slot, mut base) = (0, 0);
    while slot < 28 {
        bases[slot] = base as u8;
        base += 1 << LENGTH_EXTRA[slot];
        slot += 1;
    }
    // The longest has a symbol of its own, though the symbol before could express it.
    bases[28] = 255;
    bases
}

const fn length_slots() -> [u8; 256] {
    let (mut slots, bases) = ([0; 256], length_bases());
    let mut slot = 0;
    while slot < 29 {
        let mut length = bases[slot] as usize;
        while length < 256 {
            slots[length] = slot as u8;
            length += 1;
        }
        slot += 1;
    }
    slots
}

/// The symbol of a distance, 1 to [`WINDOW`]: two for each power of two.
#[inline(always)]
pub(crate) const fn distance_slot(distance: u16) -> usize {
    let distance = distance.wrapping_sub(1) as usize;
    DISTANCE_SLOT[if distance < 256 { distance } else { 256 + (distance >> 7) } & 511] as usize
}

/// By the distance less one up to 256; after these, for each 128 of the others, which have six extra bits or more.
static DISTANCE_SLOT: [u8; 512] = distance_slots();

const fn distance_slots() -> [u8; 512] {
    let mut slots = [0; 512];
    let mut at = 0;
    while at < 512 {
        let distance = if at < 256 { at } else { (at - 256) << 7 };
        slots[at] = if distance < 2 {
            distance as u8
        } else {
            let log = (distance as u32).ilog2();
            (2 * log + ((distance as u32 >> (log - 1)) & 1)) as u8
        };
        at += 1;
    }
    slots
}

/// Extra bits of a distance symbol.
#[inline(always)]
pub(crate) const fn distance_extra(slot: usize) -> u32 {
    (slot as u32 / 2).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_distances_have_the_symbols_of_the_rfc() {
        let length = |length: usize| FIRST_LENGTH + usize::from(LENGTH_SLOT[length - MIN_MATCH]);
        assert_eq!(
            [3, 10, 11, 12, 13, 114, 115, 130, 131, 257, 258].map(length),
            [257, 264, 265, 265, 266, 279, 280, 280, 281, 284, 285]
        );
        let distances = [1, 2, 3, 4, 5, 6, 7, 8, 9, 24_576, 24_577, 32_768];
        assert_eq!(distances.map(distance_slot), [0, 1, 2, 3, 4, 4, 5, 5, 6, 28, 29, 29]);
        assert_eq!([0, 3, 4, 5, 6, 29].map(distance_extra), [0, 0, 1, 1, 2, 13]);
    }
}
