//! Integers of the peers protocol: one byte up to 239. Larger ones have the high bits set in the first byte, and go on
//! in steps of seven bits, the lowest first.

/// Appends a number.
pub(crate) fn put(n: u64, to: &mut Vec<u8>) {
    if n < FIRST {
        to.push(n as u8);
        return;
    }
    to.push(n as u8 | FIRST as u8);
    let mut rest = (n - FIRST) >> 4;
    while rest >= MORE {
        to.push(rest as u8 | MORE as u8);
        rest = (rest - MORE) >> 7;
    }
    to.push(rest as u8);
}

/// Takes a number off the front; `None` when it is cut off or does not fit 64 bits.
pub(crate) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut bytes = from.iter();
    let mut n = u64::from(*bytes.next()?);
    if n >= FIRST {
        let mut shift = 4;
        loop {
            let byte = u64::from(*bytes.next()?);
            if shift >= 64 || byte.leading_zeros() < shift {
                return None;
            }
            n = n.checked_add(byte << shift)?;
            if byte < MORE {
                break;
            }
            shift += 7;
        }
    }
    *from = bytes.as_slice();
    Some(n)
}

/// Least number that needs further bytes.
const FIRST: u64 = 0xf0;
/// Bit of a further byte that is not the last.
const MORE: u64 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_those_of_the_protocol() {
        for (n, bytes) in [
            (0, &[0u8][..]),
            (239, &[239]),
            (240, &[0xf0, 0]),
            (2287, &[0xff, 0x7f]),
            (2288, &[0xf0, 0x80, 0]),
            (10_000, &[0xf0, 0xe2, 3]),
            (264_431, &[0xff, 0xff, 0x7f]),
            (264_432, &[0xf0, 0x80, 0x80, 0]),
        ] {
            let mut put_bytes = Vec::new();
            put(n, &mut put_bytes);
            assert_eq!(put_bytes, bytes, "{n}");
        }
    }

    proptest! {
        #[test]
        fn what_was_put_is_taken(n: u64, behind: Vec<u8>) {
            let mut bytes = Vec::new();
            put(n, &mut bytes);
            bytes.extend(&behind);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(n));
            prop_assert_eq!(rest, &behind[..]);
        }

        #[test]
        fn any_bytes_are_a_number_or_none(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            let taken = take(&mut rest);
            prop_assert!(taken.is_some() || rest.len() == bytes.len());
        }
    }
}
