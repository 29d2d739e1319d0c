//! Names of fields: those that terse looks for in every message, and those that the configuration names.

macro_rules! known {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// Names that terse itself looks for in every message: found by comparing one byte instead of a string.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Known {
            /// Any other name.
            Other,
            $(#[doc = concat!("`", $text, "`")] $variant),*
        }

        impl Known {
            /// The known name, by its place in the list; `Other` for any other name.
            pub fn of(name: &[u8]) -> Known {
                Known::with_bit(name).0
            }

            /// The same, and the name's [`bit`].
            #[inline]
            pub(crate) fn with_bit(name: &[u8]) -> (Known, u64) {
                let place = place(name);
                let candidate = PLACES[place];
                let known = is_name(name, candidate.name().as_bytes(), candidate.letters());
                (if known { candidate } else { Known::Other }, 1 << place)
            }

            /// The bit that distinguishes large letters from small ones, at each letter of the name.
            const fn letters(self) -> &'static [u8] {
                match self {
                    Known::Other => b"",
                    $(Known::$variant => &const { letters::<{ $text.len() }>($text) }),*
                }
            }

            /// All of them.
            const ALL: &[Known] = &[$(Known::$variant),*];

            /// The bit of its [`place`]; none for `Other`.
            pub(crate) const fn bit(self) -> u64 {
                match self {
                    Known::Other => 0,
                    $(Known::$variant => const { bit($text.as_bytes()) }),*
                }
            }

            /// The name as it is written in the RFCs; empty for `Other`.
            pub const fn name(self) -> &'static str {
                match self {
                    Known::Other => "",
                    $(Known::$variant => $text),*
                }
            }
        }
    };
}

/// The known name that a name can be at all, by [`place`].
static PLACES: [Known; 64] = {
    let mut places = [Known::Other; 64];
    let mut i = 0;
    while i < Known::ALL.len() {
        let at = place(Known::ALL[i].name().as_bytes());
        assert!(matches!(places[at], Known::Other), "two known names in one place: choose other factors");
        places[at] = Known::ALL[i];
        i += 1;
    }
    places
};

const LENGTH: usize = 62;
const FIRST: usize = 15;

const fn letters<const N: usize>(text: &str) -> [u8; N] {
    let mut letters = [0; N];
    let mut i = 0;
    while i < N {
        letters[i] = if text.as_bytes()[i].is_ascii_alphabetic() { 0x20 } else { 0 };
        i += 1;
    }
    letters
}

/// Whether a name is the known one, but for the case of letters. It is called for every field of every message, so several
/// bytes are compared at once: the first and the last few, which may overlap.
fn is_name(name: &[u8], known: &[u8], letters: &[u8]) -> bool {
    let ends = match (name.len(), name.len() == known.len()) {
        (8..=16, true) => ends::<8>(name, known, letters),
        (4..=7, true) => ends::<4>(name, known, letters),
        (2..=3, true) => ends::<2>(name, known, letters),
        _ => return name.eq_ignore_ascii_case(known),
    };
    ends == Some(0)
}

/// The bits in which the first and last `N` bytes of two texts of the same length differ, but for the case of letters.
fn ends<const N: usize>(a: &[u8], b: &[u8], letters: &[u8]) -> Option<u64> {
    let differs = |[a, b, letters]: [&[u8; N]; 3]| {
        let word = |bytes: &[u8; N]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        (word(a) ^ word(b)) & !word(letters)
    };
    let first = differs([a.first_chunk()?, b.first_chunk()?, letters.first_chunk()?]);
    let last = differs([a.last_chunk()?, b.last_chunk()?, letters.last_chunk()?]);
    Some(first | last)
}

/// A name's bit in a set of names: a name whose bit is not in the set was never put in.
const fn bit(name: &[u8]) -> u64 {
    1 << place(name)
}

/// A number made of a name's length and its ends, a different one for each known name.
const fn place(name: &[u8]) -> usize {
    match name {
        [first, .., last] => (name.len() * LENGTH + (*first as usize | 0x20) * FIRST + (*last as usize | 0x20)) % 64,
        _ => 0,
    }
}

known! {
    AcceptEncoding = "Accept-Encoding",
    AcceptRanges = "Accept-Ranges",
    Authorization = "Authorization",
    AvailableDictionary = "Available-Dictionary",
    CacheControl = "Cache-Control",
    Connection = "Connection",
    ContentDigest = "Content-Digest",
    ContentEncoding = "Content-Encoding",
    ContentLength = "Content-Length",
    ContentMd5 = "Content-MD5",
    ContentRange = "Content-Range",
    ContentType = "Content-Type",
    Cookie = "Cookie",
    Etag = "ETag",
    Expect = "Expect",
    Host = "Host",
    IfMatch = "If-Match",
    IfNoneMatch = "If-None-Match",
    IfRange = "If-Range",
    KeepAlive = "Keep-Alive",
    ProxyConnection = "Proxy-Connection",
    Range = "Range",
    ReprDigest = "Repr-Digest",
    SetCookie = "Set-Cookie",
    Te = "TE",
    Trailer = "Trailer",
    TransferEncoding = "Transfer-Encoding",
    Upgrade = "Upgrade",
    UserAgent = "User-Agent",
    Vary = "Vary",
    Via = "Via",
    XForwardedFor = "X-Forwarded-For",
}

/// Several known names, asked for at once: [`crate::Fields::may_have`].
#[derive(Clone, Copy, Debug)]
pub struct KnownSet(u64);

impl KnownSet {
    /// The set of these names.
    pub const fn of(names: &[Known]) -> KnownSet {
        let (mut bits, mut i) = (0, 0);
        while i < names.len() {
            bits |= names[i].bit();
            i += 1;
        }
        KnownSet(bits)
    }

    /// The set of a single name that need not be known.
    pub const fn naming(name: &[u8]) -> KnownSet {
        KnownSet(bit(name))
    }

    /// The union of this set and another.
    pub const fn with(self, more: KnownSet) -> KnownSet {
        KnownSet(self.0 | more.0)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

/// A name of a field, checked once: when the configuration is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldName {
    bytes: Box<[u8]>,
    known: Known,
    bit: u64,
}

impl FieldName {
    /// Checks a name; `None` when it is no token (RFC 9110 section 5.1) and so no field's.
    pub fn new(name: &[u8]) -> Option<FieldName> {
        let valid = !name.is_empty() && name.iter().all(|&b| is_token(b));
        let (known, bit) = Known::with_bit(name);
        valid.then(|| FieldName { bytes: name.into(), known, bit })
    }

    /// The name as it was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The known name that it is, or `Other`.
    pub fn known(&self) -> Known {
        self.known
    }

    pub(crate) fn with_bit(&self) -> (Known, u64) {
        (self.known, self.bit)
    }
}

/// Whether a byte may be part of a token (RFC 9110 section 5.6.2).
pub const fn is_token(b: u8) -> bool {
    matches!(b, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_in_any_case_and_no_others() {
        for &known in Known::ALL {
            let name = known.name().as_bytes();
            for variant in [name.to_vec(), name.to_ascii_lowercase(), name.to_ascii_uppercase()] {
                assert_eq!(Known::of(&variant), known);
            }
            for at in 0..name.len() {
                for bit in 0..8 {
                    let mut other = name.to_vec();
                    other[at] ^= 1 << bit;
                    let same = other.eq_ignore_ascii_case(name);
                    assert_eq!(Known::of(&other), if same { known } else { Known::Other }, "{}", other.escape_ascii());
                }
            }
            assert_eq!(Known::of(&name[1..]), Known::Other);
        }
        assert_eq!(Known::of(b""), Known::Other);
    }
}
