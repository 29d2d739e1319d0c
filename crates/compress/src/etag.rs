//! Entity tags (RFC 9110 section 8.8.3): reading, weakening, and the suffix that names a coding.

use crate::coding::{CODINGS, Coding};

/// What a representation of ours is: a coding, and for `dcz` the first bytes of the dictionary's hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// The coding; `identity` where a coding of the server's was undone.
    pub coding: Coding,
    /// The first bytes of the hash of the dictionary; none where the coding has none.
    pub dictionary: Option<[u8; 8]>,
}

impl From<Coding> for Form {
    fn from(coding: Coding) -> Form {
        Form { coding, dictionary: None }
    }
}

/// One entity tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag<'a> {
    /// Whether it begins with `W/`.
    pub weak: bool,
    /// The text between the quotes.
    pub opaque: &'a [u8],
}

impl<'a> Tag<'a> {
    /// Parses the value of an ETag field; `None` when it is no entity tag. A blank inside is accepted, a second quote is not.
    pub fn parse(value: &'a [u8]) -> Option<Tag<'a>> {
        let (tag, rest) = Tag::first(value)?;
        rest.is_empty().then_some(tag)
    }

    /// Splits off the tag at the start of a value.
    fn first(value: &'a [u8]) -> Option<(Tag<'a>, &'a [u8])> {
        let quoted = value.strip_prefix(b"W/");
        let inside = quoted.unwrap_or(value).strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', inside)?;
        Some((Tag { weak: quoted.is_some(), opaque: &inside[..end] }, &inside[end + 1..]))
    }

    /// The tag as it stands in a field.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.weak {
            out.extend_from_slice(b"W/");
        }
        out.push(b'"');
        out.extend_from_slice(self.opaque);
        out.push(b'"');
    }

    /// The tag without its `W/`.
    pub fn strong(self) -> Tag<'a> {
        Tag { weak: false, ..self }
    }

    /// The tag with `W/`.
    pub fn weakened(self) -> Tag<'a> {
        Tag { weak: true, ..self }
    }

    /// The tag of the server's representation in another coding: `W/"x;terse=gzip"` for `"x"`, `W/"x;terse=w-gzip"` for `W/"x"`. The mark
    /// is long enough that no server's own tag ends in it; a suffix of another kind, such as Apache's `-gzip`, is never taken for it. A
    /// mark that is there already makes room.
    /// Behind `dcz` stand 16 digits of the dictionary's hash: `W/"x;terse=dcz-0123456789abcdef"`.
    pub fn with_form(&self, form: impl Into<Form>) -> Vec<u8> {
        let form = form.into();
        let server = self.marked().map_or(*self, |mark| mark.server);
        let weak = if server.weak { WEAK } else { b"" };
        let mut opaque = [server.opaque, MARK, weak, form.coding.word().as_bytes()].concat();
        if let Some(dictionary) = form.dictionary {
            opaque.extend_from_slice(format!("-{:016x}", u64::from_be_bytes(dictionary)).as_bytes());
        }
        let mut out = Vec::with_capacity(opaque.len() + 4);
        Tag { weak: true, opaque: &opaque }.write(&mut out);
        out
    }

    /// What [`Tag::with_form`] has put into it. A client that has lost the `W/` is understood all the same.
    pub fn marked(&self) -> Option<Marked<'a>> {
        let at = memchr::memmem::rfind(self.opaque, MARK)?;
        let word = &self.opaque[at + MARK.len()..];
        let name = word.strip_prefix(WEAK).unwrap_or(word);
        let entry = CODINGS
            .iter()
            .find(|entry| name.starts_with(entry.word.as_bytes()) && is_end(&name[entry.word.len()..], entry.coding))?;
        let dictionary = digits(&name[entry.word.len()..]);
        let server = Tag { weak: name.len() < word.len(), opaque: &self.opaque[..at] };
        Some(Marked { server, form: Form { coding: entry.coding, dictionary } })
    }
}

/// Whether what follows a coding's word is what must follow it.
fn is_end(rest: &[u8], coding: Coding) -> bool {
    if coding.has_dictionary() { digits(rest).is_some() } else { rest.is_empty() }
}

/// The bytes of a hash in `-0123456789abcdef`.
fn digits(text: &[u8]) -> Option<[u8; 8]> {
    let digits = text.strip_prefix(b"-").filter(|digits| digits.len() == 16)?;
    let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let digits = std::str::from_utf8(digits).ok().filter(|text| text.as_bytes().iter().all(is_digit))?;
    u64::from_str_radix(digits, 16).ok().map(u64::to_be_bytes)
}

/// What a tag of ours is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marked<'a> {
    /// The server's tag.
    pub server: Tag<'a>,
    /// What its representation is here.
    pub form: Form,
}

const MARK: &[u8] = b";terse=";

/// The server's tag was weak.
const WEAK: &[u8] = b"w-";

/// The entity tags of an If-Match or If-None-Match value, in order. Ends at the first text that is no tag, which
/// [`Tags::is_sound`] then reports; `*` is no tag.
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    rest: &'a [u8],
    sound: bool,
}

impl<'a> Tags<'a> {
    /// The tags of a value.
    pub fn of(value: &'a [u8]) -> Tags<'a> {
        Tags { rest: value, sound: true }
    }

    /// Whether all texts that were read so far were tags.
    pub fn is_sound(&self) -> bool {
        self.sound
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        let start = self.rest.iter().position(|b| !matches!(b, b' ' | b'\t' | b','))?;
        match Tag::first(&self.rest[start..]) {
            Some((tag, rest)) => {
                self.rest = rest;
                Some(tag)
            }
            None => {
                (self.rest, self.sound) = (&[], false);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_strong_weak_or_none() {
        for (value, expected) in [
            (&b"\"123\""[..], Some((false, &b"123"[..]))),
            (b"W/\"456\"", Some((true, b"456"))),
            (b"\"W/789\"", Some((false, b"W/789"))),
            (b"\"\"", Some((false, b""))),
            (b"W/\"\"", Some((true, b""))),
            (b"\"invalid", None),
            (b"invalid\"", None),
            (b"invalid", None),
            (b"W/\"invalid", None),
            (b"W/invalid\"", None),
            (b"W/invalid", None),
            (b"w/\"x\"", None),
            (b"\"", None),
            (b"W/\"", None),
            (b"\"a\", \"b\"", None),
            (b"", None),
        ] {
            let tag = Tag::parse(value).map(|tag| (tag.weak, tag.opaque));
            assert_eq!(tag, expected, "{}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn lists_are_read_up_to_what_is_no_tag() {
        let mut tags = Tags::of(br#"W/"a\", "b,c" ,,"d""#);
        let all: Vec<_> = tags.by_ref().map(|tag| (tag.weak, tag.opaque.to_vec())).collect();
        assert_eq!(all, [(true, b"a\\".to_vec()), (false, b"b,c".to_vec()), (false, b"d".to_vec())]);
        assert!(tags.is_sound());
        let mut tags = Tags::of(b"\"a\", b, \"c\"");
        assert_eq!(tags.by_ref().count(), 1);
        assert!(!tags.is_sound());
    }

    #[test]
    fn the_mark_comes_off_again_and_foreign_ones_stay() {
        for (server, coding, ours) in [
            (&b"\"x\""[..], Coding::RawDeflate, &b"W/\"x;terse=raw-deflate\""[..]),
            (b"W/\"x\"", Coding::Gzip, b"W/\"x;terse=w-gzip\""),
            (b"\"x-gzip\"", Coding::Identity, b"W/\"x-gzip;terse=identity\""),
            (b"\"\"", Coding::Brotli, b"W/\";terse=br\""),
        ] {
            let server = Tag::parse(server).unwrap();
            assert_eq!(server.with_form(coding), ours);
            let tag = Tag::parse(ours).unwrap();
            assert_eq!(tag.marked(), Some(Marked { server, form: coding.into() }));
            assert_eq!(tag.strong().marked(), tag.marked(), "the W/ was lost on the way");
            assert_eq!(tag.with_form(coding), ours, "one mark is enough");
        }
        let form = Form { coding: Coding::Dcz, dictionary: Some([0, 1, 2, 3, 0xab, 0xcd, 0xef, 0xff]) };
        for (server, ours) in
            [(&b"\"x\""[..], &b"W/\"x;terse=dcz-00010203abcdefff\""[..]), (b"W/\"x\"", b"W/\"x;terse=w-dcz-00010203abcdefff\"")]
        {
            let server = Tag::parse(server).unwrap();
            assert_eq!(server.with_form(form), ours);
            assert_eq!(Tag::parse(ours).unwrap().marked(), Some(Marked { server, form }));
        }
        for foreign in [
            &b"\"x-gzip\""[..],
            b"W/\"x-gzip\"",
            b"W/\"x;terse=\"",
            b"W/\"x;terse=w-\"",
            b"\"x;terse=zip\"",
            b"\"x;terse=dcz\"",
            b"\"x;terse=dcz-0123456789ABCDEF\"",
            b"\"x;terse=dcz-1\"",
            b"\"x;terse=gzip-0123456789abcdef\"",
        ] {
            assert_eq!(Tag::parse(foreign).unwrap().marked(), None);
        }
    }
}
