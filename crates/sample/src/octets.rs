//! Strings of bytes that are borrowed, short, or shared.

use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Buffer for a converter's result: up to [`SHORT`] bytes lie in place.
pub type Buffer = SmallVec<[u8; SHORT]>;

/// The longest string that is kept without allocation.
pub const SHORT: usize = 30;

/// The bytes of a string or binary value.
///
/// Most are parts of a message's head and are borrowed. Short results of converters are kept in place. Longer values of
/// variables are shared, so that reading a variable never copies more than [`SHORT`] bytes.
#[derive(Clone)]
pub struct Octets<'a>(Repr<'a>);

#[derive(Clone)]
enum Repr<'a> {
    Borrowed(&'a [u8]),
    Short(u8, [u8; SHORT]),
    Owned(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl<'a> Octets<'a> {
    /// No bytes.
    pub const EMPTY: Octets<'static> = Octets(Repr::Borrowed(b""));

    /// A copy of bytes that do not live long enough to be borrowed.
    pub fn copy(bytes: &[u8]) -> Octets<'static> {
        match Octets::short(bytes) {
            Some(short) => short,
            None => Octets(Repr::Owned(bytes.to_vec())),
        }
    }

    /// The same bytes without a borrow, in the form that is cheapest to read again and again.
    pub fn store(self) -> Octets<'static> {
        match self.0 {
            Repr::Short(len, bytes) => Octets(Repr::Short(len, bytes)),
            Repr::Shared(shared) => Octets(Repr::Shared(shared)),
            Repr::Borrowed(bytes) => Octets::short(bytes).unwrap_or_else(|| Octets(Repr::Shared(bytes.into()))),
            Repr::Owned(bytes) => Octets::short(&bytes).unwrap_or_else(|| Octets(Repr::Shared(bytes.into()))),
        }
    }

    /// A part of the bytes; borrowed bytes stay borrowed. A range beyond the end is cut.
    pub fn slice(self, range: std::ops::Range<usize>) -> Octets<'a> {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        match self.0 {
            Repr::Borrowed(bytes) => Octets(Repr::Borrowed(&bytes[start..end])),
            Repr::Owned(mut bytes) => {
                bytes.truncate(end);
                bytes.drain(..start);
                Octets(Repr::Owned(bytes))
            }
            other => Octets::copy(&Octets(other)[start..end]),
        }
    }

    /// The bytes, to be changed in place; borrowed or shared ones are copied first.
    pub fn to_mut(&mut self) -> &mut [u8] {
        if let Repr::Borrowed(_) | Repr::Shared(_) = self.0 {
            *self = Octets::copy(self);
        }
        match &mut self.0 {
            Repr::Short(len, bytes) => &mut bytes[..*len as usize],
            Repr::Owned(bytes) => bytes,
            Repr::Borrowed(_) | Repr::Shared(_) => &mut [],
        }
    }

    fn short(bytes: &[u8]) -> Option<Octets<'static>> {
        let mut short = [0; SHORT];
        short.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Octets(Repr::Short(bytes.len() as u8, short)))
    }
}

impl Deref for Octets<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Borrowed(bytes) => bytes,
            Repr::Short(len, bytes) => &bytes[..*len as usize],
            Repr::Owned(bytes) => bytes,
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a [u8]> for Octets<'a> {
    fn from(bytes: &'a [u8]) -> Octets<'a> {
        Octets(Repr::Borrowed(bytes))
    }
}

impl<'a> From<&'a str> for Octets<'a> {
    fn from(text: &'a str) -> Octets<'a> {
        Octets(Repr::Borrowed(text.as_bytes()))
    }
}

impl From<Vec<u8>> for Octets<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Octets(Repr::Owned(bytes))
    }
}

impl<'a> From<Cow<'a, [u8]>> for Octets<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Octets<'a> {
        match bytes {
            Cow::Borrowed(bytes) => Octets(Repr::Borrowed(bytes)),
            Cow::Owned(bytes) => Octets(Repr::Owned(bytes)),
        }
    }
}

impl From<Buffer> for Octets<'_> {
    fn from(buffer: Buffer) -> Self {
        if buffer.spilled() { Octets(Repr::Owned(buffer.into_vec())) } else { Octets::copy(&buffer) }
    }
}

impl PartialEq for Octets<'_> {
    fn eq(&self, other: &Octets<'_>) -> bool {
        **self == **other
    }
}

impl Eq for Octets<'_> {}

impl fmt::Debug for Octets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_small() {
        assert_eq!(size_of::<Octets<'_>>(), 32);
    }

    #[test]
    fn every_form_reads_slices_and_changes_alike() {
        let long = [b'x'; SHORT + 10];
        for bytes in [&b""[..], b"abc", &long] {
            let shared = Octets::from(bytes).store();
            for form in [Octets::from(bytes), Octets::copy(bytes), Octets::from(bytes.to_vec()), shared] {
                assert_eq!(&*form, bytes);
                assert_eq!(&*form.clone().store(), bytes);
                assert_eq!(&*form.clone().slice(1..2), bytes.get(1..2).unwrap_or_default());
                assert_eq!(&*form.clone().slice(1..99), bytes.get(1..).unwrap_or_default());
                let mut changed = form;
                changed.to_mut().fill(b'y');
                assert!(changed.iter().all(|&b| b == b'y') && changed.len() == bytes.len());
            }
        }
    }

    #[test]
    fn buffers_become_octets() {
        assert_eq!(&*Octets::from(Buffer::from_slice(b"ab")), b"ab");
        assert_eq!(Octets::from(Buffer::from_elem(b'a', 100)).len(), 100);
    }
}
