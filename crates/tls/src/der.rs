//! As much of DER (X.690) as is needed to look into certificates: elements one after the other, and object identifiers.

/// An element: its tag and its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
}

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const SEQUENCE: u8 = 0x30;
/// `[3]` of a certificate: its extensions.
const EXTENSIONS: u8 = 0xa3;

/// The elements of some bytes; bytes that are no element end them.
pub(crate) fn elements(mut bytes: &[u8]) -> impl Iterator<Item = Element<'_>> {
    std::iter::from_fn(move || {
        let (element, rest) = split(bytes)?;
        bytes = rest;
        Some(element)
    })
}

/// An element on the wire.
pub(crate) fn encode(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let bytes = len.to_be_bytes();
    let digits = &bytes[len.leading_zeros() as usize / 8..];
    let mut element = match len {
        0..0x80 => vec![tag, len as u8],
        _ => [&[tag, 0x80 | digits.len() as u8][..], digits].concat(),
    };
    element.extend_from_slice(content);
    element
}

/// The first element, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match *first {
        len @ 0..=0x7f => (usize::from(len), rest),
        long => {
            // A length in four bytes is more than any certificate has.
            let (len, rest) = rest.split_at_checked(usize::from(long & 0x7f)).filter(|(len, _)| (1..=4).contains(&len.len()))?;
            (len.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)), rest)
        }
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((Element { tag: *tag, content }, rest))
}

/// Content of an extension of a certificate (RFC 5280 section 4.2).
pub(crate) fn extension<'a>(certificate: &'a [u8], object: &[u8]) -> Option<&'a [u8]> {
    let whole = elements(certificate).next().filter(|whole| whole.tag == SEQUENCE)?;
    let signed = elements(whole.content).next().filter(|signed| signed.tag == SEQUENCE)?;
    let list = elements(signed.content).find(|part| part.tag == EXTENSIONS)?;
    let list = elements(list.content).next().filter(|list| list.tag == SEQUENCE)?;
    let is_it = |extension: &Element<'_>| {
        elements(extension.content).next().is_some_and(|first| first.tag == OBJECT && first.content == object)
    };
    // Its name may be followed by the critical flag, before its content.
    elements(list.content)
        .find(is_it)
        .and_then(|found| elements(found.content).last())
        .filter(|value| value.tag == OCTETS)
        .map(|v| v.content)
}

/// An object identifier with dots: `2.5.29.32`.
pub(crate) fn dotted(object: &[u8]) -> Option<String> {
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc: u64 = 0;
    for byte in object {
        arc = arc.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            arcs.push(std::mem::take(&mut arc));
        }
    }
    let first = arcs.first_mut()?;
    // The first two share a number.
    let top = (*first / 40).min(2);
    *first -= top * 40;
    let rest = arcs.iter().map(u64::to_string);
    object.last().filter(|last| **last & 0x80 == 0)?;
    Some(std::iter::once(top.to_string()).chain(rest).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_dots() {
        assert_eq!(dotted(&[0x55, 0x1d, 0x20]).as_deref(), Some("2.5.29.32"));
        assert_eq!(dotted(&[0x04, 0x00, 0x8e, 0x46, 0x01, 0x04]).as_deref(), Some("0.4.0.1862.1.4"));
        assert_eq!(dotted(&[0x88, 0x37]).as_deref(), Some("2.999"));
        for bad in [&[][..], &[0x80], &[0x55, 0x80], &[0xff; 20]] {
            assert_eq!(dotted(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_no_element() {
        let whole = [0x30, 3, 4, 1, 7, 5, 0];
        let found: Vec<_> = elements(&whole).map(|element| (element.tag, element.content.len())).collect();
        assert_eq!(found, [(0x30, 3), (5, 0)]);
        for len in 0..5 {
            assert_eq!(elements(&whole[..len]).count(), 0, "{len}");
        }
        for len in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; len];
            assert_eq!(elements(&encode(4, &content)).next().unwrap().content, content, "{len}");
        }
        assert_eq!(elements(&[4, 0x81, 1, 9]).next().unwrap().content, [9]);
        assert_eq!(elements(&[4, 0x85, 0, 0, 0, 0, 1, 9]).count(), 0);
        assert_eq!(elements(&[4, 0x80, 9]).count(), 0);
    }
}
