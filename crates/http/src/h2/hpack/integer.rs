//! Integers with a prefix (RFC 7541 section 5.1).

/// Takes an integer whose first byte has `prefix` bits of it; `None` where it ends too early or is longer than any table or
/// text.
#[inline]
pub(super) fn take(input: &mut &[u8], prefix: u32) -> Option<usize> {
    let (&first, mut rest) = input.split_first()?;
    let most = (1 << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, more) = rest.split_first()?;
            rest = more;
            value += (usize::from(byte) & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift > SHIFT_MOST {
                return None;
            }
        }
    }
    *input = rest;
    Some(value)
}

/// Appends an integer after the bits of `first` that its prefix leaves.
pub(super) fn put(value: usize, prefix: u32, first: u8, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Four bytes after the prefix: 28 bits are more than any table or text has.
const SHIFT_MOST: u32 = 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_appendix_c_1() {
        for (value, prefix, bytes) in [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])] {
            let mut out = Vec::new();
            put(value, prefix, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(take(&mut &out[..], prefix), Some(value));
        }
    }

    #[test]
    fn every_prefix_and_the_limits() {
        for prefix in 1..=8 {
            for value in [0, 1, 126, 127, 128, 254, 255, 256, 16_383, 1 << 20, (1 << 28) - 1] {
                let mut out = Vec::new();
                put(value, prefix, 0, &mut out);
                assert_eq!(take(&mut &out[..], prefix), Some(value));
                assert_eq!(take(&mut &out[..out.len() - 1], prefix), None);
            }
        }
        assert_eq!(take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], 7), None);
        assert_eq!(take(&mut &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0][..], 7), None);
    }
}
