//! The fields of a head: one buffer and an index.
//!
//! A head is parsed once and usually sent on with few changes. So the buffer keeps each field as the line `name: value CR LF`, in
//! the order of arrival, and [`Fields::write_to`] copies runs of untouched lines at once: a head that nobody edited is one
//! `memcpy`. An edited or added field is appended to the buffer as a new line and the index points there; a removed field is only
//! taken out of the index.

use std::ops::Range;

/// The fields of a message's head, in order, names matched without regard to case (RFC 9110 section 5).
#[derive(Clone, Default, Debug)]
pub struct Fields {
    bytes: Vec<u8>,
    index: Vec<Field>,
    /// A bit for each known name that was ever put in: most questions are for names that are not there.
    seen: u64,
}

/// Where one field lies in the buffer: the line is `bytes[name][": "][value]["\r\n"]`, blanks round the value as they came.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: u32,
    name_len: u32,
    value: u32,
    value_len: u32,
    known: Known,
}

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
            /// The name's place in the list, `Other` when it has none.
            pub fn of(name: &[u8]) -> Known {
                let candidate = PLACES[place(name)];
                if is_name(name, candidate.name().as_bytes(), candidate.letters()) { candidate } else { Known::Other }
            }

            /// The bit that tells large letters from small ones, at each letter of the name.
            const fn letters(self) -> &'static [u8] {
                match self {
                    Known::Other => b"",
                    $(Known::$variant => &const { letters::<{ $text.len() }>($text) }),*
                }
            }

            /// All of them.
            const ALL: &[Known] = &[$(Known::$variant),*];

            const fn bit(self) -> u64 {
                1 << self as u8
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

const LENGTH: usize = 9;
const FIRST: usize = 20;

const fn letters<const N: usize>(text: &str) -> [u8; N] {
    let mut letters = [0; N];
    let mut i = 0;
    while i < N {
        letters[i] = if text.as_bytes()[i].is_ascii_alphabetic() { 0x20 } else { 0 };
        i += 1;
    }
    letters
}

/// Whether a name is the known one, but for the case of letters. Every field of every message is asked, so several bytes are
/// compared at once: the first and the last few, which may overlap.
fn is_name(name: &[u8], known: &[u8], letters: &[u8]) -> bool {
    let ends = match (name.len(), name.len() == known.len()) {
        (8..=16, true) => ends::<8>(name, known, letters),
        (4..=7, true) => ends::<4>(name, known, letters),
        (2..=3, true) => ends::<2>(name, known, letters),
        _ => return name.eq_ignore_ascii_case(known),
    };
    ends == Some(0)
}

/// What differs between two texts of the same length in their first and last `N` bytes, but for the case of letters.
fn ends<const N: usize>(a: &[u8], b: &[u8], letters: &[u8]) -> Option<u64> {
    let differs = |[a, b, letters]: [&[u8; N]; 3]| {
        let word = |bytes: &[u8; N]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        (word(a) ^ word(b)) & !word(letters)
    };
    let first = differs([a.first_chunk()?, b.first_chunk()?, letters.first_chunk()?]);
    let last = differs([a.last_chunk()?, b.last_chunk()?, letters.last_chunk()?]);
    Some(first | last)
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

impl Fields {
    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.index.clear();
        self.seen = 0;
    }

    /// Takes a head as it was read: `raw` becomes the buffer. The codec calls [`Fields::index_line`] for each field in it.
    pub fn load(&mut self, raw: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(raw);
    }

    /// Adds the field whose name and value lie at these places of the loaded buffer, in the order of the buffer.
    pub fn index_line(&mut self, name: Range<usize>, value: Range<usize>) {
        debug_assert!(name.end <= value.start && value.end <= self.bytes.len());
        let known = Known::of(&self.bytes[name.clone()]);
        self.seen |= known.bit();
        self.index.push(Field {
            name: name.start as u32,
            name_len: name.len() as u32,
            value: value.start as u32,
            value_len: value.len() as u32,
            known,
        });
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes of memory that the head holds, used or reserved.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.index.capacity() * size_of::<Field>()
    }

    /// All fields, in order, as (name, value).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        self.index.iter().map(|f| (self.name_of(f), self.value_of(f)))
    }

    /// The name and value of the `i`th field.
    pub fn at(&self, i: usize) -> Option<(&[u8], &[u8])> {
        self.index.get(i).map(|f| (self.name_of(f), self.value_of(f)))
    }

    /// The value of the first field of that name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.positions(name).next().map(|i| self.value_of(&self.index[i]))
    }

    /// The values of all fields of that name, in order.
    pub fn values<'a, 'n>(&'a self, name: &'n [u8]) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'n> {
        self.positions(name).map(|i| self.value_of(&self.index[i]))
    }

    /// The places, for [`Fields::at`] and [`Fields::replace`], of all fields of that name.
    pub fn positions<'a, 'n>(&'a self, name: &'n [u8]) -> impl DoubleEndedIterator<Item = usize> + use<'a, 'n> {
        let known = Known::of(name);
        self.index_if_seen(known).iter().enumerate().filter_map(move |(i, f)| {
            let same = f.known == known && (known != Known::Other || self.name_of(f).eq_ignore_ascii_case(name));
            same.then_some(i)
        })
    }

    /// The value of the first field of a known name.
    pub fn first(&self, name: Known) -> Option<&[u8]> {
        self.index_if_seen(name).iter().find(|f| f.known == name).map(|f| self.value_of(f))
    }

    /// The values of all fields of a known name.
    pub fn every(&self, name: Known) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.index_if_seen(name).iter().filter(move |f| f.known == name).map(|f| self.value_of(f))
    }

    /// Whether a field of a known name is there.
    pub fn has(&self, name: Known) -> bool {
        self.index_if_seen(name).iter().any(|f| f.known == name)
    }

    /// Where a name can be: nowhere, when it was never put in.
    fn index_if_seen(&self, name: Known) -> &[Field] {
        if self.seen & name.bit() == 0 { &[] } else { &self.index }
    }

    /// Adds a field at the end. CR, LF and NUL become blanks; a name that is no token (RFC 9110 section 5.6.2) adds nothing.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        if let Some(field) = self.append_line(name, value) {
            self.index.push(field);
        }
    }

    /// Removes all fields of that name, then adds one.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.remove(name);
        self.push(name, value);
    }

    /// Gives the `i`th field a new value; it keeps its place and its name.
    pub fn replace(&mut self, i: usize, value: &[u8]) {
        let Some(old) = self.index.get(i).copied() else { return };
        let name = self.name_of(&old).to_vec();
        if let Some(field) = self.append_line(&name, value) {
            self.index[i] = field;
        }
    }

    /// Removes all fields of that name; says how many there were.
    pub fn remove(&mut self, name: &[u8]) -> usize {
        match Known::of(name) {
            Known::Other => self.retain(|n, _| !n.eq_ignore_ascii_case(name)),
            known => self.remove_known(known),
        }
    }

    /// Removes all fields of a known name; says how many there were.
    pub fn remove_known(&mut self, name: Known) -> usize {
        let before = self.index.len();
        if self.seen & name.bit() != 0 {
            self.index.retain(|f| f.known != name);
            self.seen &= !name.bit();
        }
        before - self.index.len()
    }

    /// Removes the `i`th field.
    pub fn remove_at(&mut self, i: usize) {
        if i < self.index.len() {
            self.index.remove(i);
        }
    }

    /// Keeps the fields that `keep(name, value)` wants; says how many went.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> usize {
        let before = self.index.len();
        let bytes = &self.bytes;
        self.index.retain(|f| keep(&bytes[f.name_range()], &bytes[f.value_range()]));
        before - self.index.len()
    }

    /// Writes the fields as HTTP/1 lines, each `name: value CR LF`, without the empty line that ends a head.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let mut run: Option<Range<usize>> = None;
        for f in &self.index {
            let line = f.name as usize..(f.value + f.value_len) as usize;
            match &mut run {
                // The next line begins right behind this one's CR LF: it belongs to the same run.
                Some(r) if r.end + 2 == line.start && &self.bytes[r.end..line.start] == b"\r\n" => r.end = line.end,
                other => {
                    if let Some(r) = other.replace(line) {
                        out.extend_from_slice(&self.bytes[r]);
                        out.extend_from_slice(b"\r\n");
                    }
                }
            }
        }
        if let Some(r) = run {
            out.extend_from_slice(&self.bytes[r]);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// The whole buffer, for the heads' first lines.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Puts bytes of a first line behind the fields; says where they lie. CR, LF and NUL become blanks.
    pub(crate) fn append(&mut self, text: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        blank_controls(&mut self.bytes[start..]);
        start..self.bytes.len()
    }

    fn append_line(&mut self, name: &[u8], value: &[u8]) -> Option<Field> {
        if name.is_empty() || !name.iter().all(|&b| is_token(b)) {
            return None;
        }
        // The lines before must end where this one begins, or a run could not be told from a gap: lines added here always carry
        // their own CR LF, and a loaded head ends with one.
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        let value_at = self.append(value);
        self.bytes.extend_from_slice(b"\r\n");
        let known = Known::of(name);
        self.seen |= known.bit();
        Some(Field {
            name: start as u32,
            name_len: name.len() as u32,
            value: value_at.start as u32,
            value_len: value_at.len() as u32,
            known,
        })
    }

    fn name_of(&self, f: &Field) -> &[u8] {
        &self.bytes[f.name_range()]
    }

    fn value_of(&self, f: &Field) -> &[u8] {
        &self.bytes[f.value_range()]
    }
}

impl Field {
    fn name_range(&self) -> Range<usize> {
        self.name as usize..(self.name + self.name_len) as usize
    }

    fn value_range(&self) -> Range<usize> {
        self.value as usize..(self.value + self.value_len) as usize
    }
}

/// Whether a byte may be part of a token (RFC 9110 section 5.6.2).
pub const fn is_token(b: u8) -> bool {
    matches!(b, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
}

fn blank_controls(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(i) = memchr::memchr3(b'\r', b'\n', 0, &bytes[at..]) {
        bytes[at + i] = b' ';
        at += i + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Fields {
        let raw = b"GET / HTTP/1.1\r\nHost: a\r\nX-One:  1 \r\nAccept: */*\r\n\r\n";
        let mut f = Fields::default();
        f.load(raw);
        f.index_line(16..20, 22..23);
        f.index_line(25..30, 33..34);
        f.index_line(37..43, 45..48);
        f
    }

    fn written(f: &Fields) -> String {
        let mut out = Vec::new();
        f.write_to(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn untouched_fields_are_written_in_order() {
        assert_eq!(written(&loaded()), "Host: a\r\nX-One:  1\r\nAccept: */*\r\n");
    }

    #[test]
    fn edits_keep_the_order_of_the_others() {
        let mut f = loaded();
        f.replace(0, b"b");
        assert_eq!(written(&f), "Host: b\r\nX-One:  1\r\nAccept: */*\r\n");
        f.set(b"x-one", b"2");
        assert_eq!(written(&f), "Host: b\r\nAccept: */*\r\nx-one: 2\r\n");
        assert_eq!(f.remove(b"ACCEPT"), 1);
        assert_eq!(f.first(Known::Host), Some(&b"b"[..]));
        assert_eq!(written(&f), "Host: b\r\nx-one: 2\r\n");
    }

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

    #[test]
    fn no_value_can_split_a_message() {
        let mut f = Fields::default();
        f.push(b"A", b"1\r\nEvil: 2\0");
        f.push(b"Bad name", b"x");
        f.push(b"", b"x");
        assert_eq!(written(&f), "A: 1  Evil: 2 \r\n");
    }

    #[test]
    fn known_names_are_found_in_any_case() {
        assert_eq!(Known::of(b"content-LENGTH"), Known::ContentLength);
        assert_eq!(Known::of(b"content-lengths"), Known::Other);
        assert_eq!(Known::Etag.name(), "ETag");
    }
}
