//! The lines of a head, read in one pass: RFC 9112 sections 2.2 and 5, without the leniency that they allow a recipient.
//!
//! ```text
//!   G E T   /   H T T P / 1 . 1 CR LF   H o s t : h CR LF   CR LF
//!   token ' '   text            end     token  ':' text end  end
//! ```
//!
//! **Invariant:** a line ends in CR LF, and nowhere else is there a CR, an LF or any control but the tab. So no later
//! reader can see another line, or a line end in another place.

use std::ops::Range;
use terse_message::name::is_token;
use terse_message::text::control_at;
use terse_message::{Fields, Malformed};

/// The most fields of a head, as HAProxy's `tune.http.maxhdr` has it by default (101), rounded up.
pub const MAX_FIELDS: usize = 128;

/// Reason why reading stops before the end of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The bytes end, and may be the beginning of a head.
    Partial,
    /// The bytes are no head.
    Malformed(Malformed),
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Stop {
        Stop::Malformed(malformed)
    }
}

/// A place in the bytes that a head begins with.
pub(super) struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Reader<'a> {
        Reader { input, at: 0 }
    }

    /// The bytes that were read.
    pub(super) fn head(&self) -> &'a [u8] {
        &self.input[..self.at]
    }

    /// Reads that byte, if it is the next.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.input.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads a token (RFC 9110 section 5.6.2), which may be empty, to the byte that ends it.
    #[inline]
    pub(super) fn token(&mut self) -> Result<Range<usize>, Stop> {
        let start = self.at;
        let rest = self.input[start..].iter();
        self.at += rest.map(|b| TOKEN[usize::from(*b)]).position(|is_token| !is_token).ok_or(Stop::Partial)?;
        Ok(start..self.at)
    }

    /// Reads text to the end of its line, that included; `otherwise` is the fault when another control ends it.
    #[inline]
    pub(super) fn text(&mut self, otherwise: Malformed) -> Result<Range<usize>, Stop> {
        let start = self.at;
        let end = start + control_at(&self.input[start..]).ok_or(Stop::Partial)?;
        if !self.input[end..].starts_with(b"\r\n") {
            return Err(self.no_end(end, otherwise));
        }
        self.at = end + 2;
        Ok(start..end)
    }

    /// The fault where a line should end.
    #[cold]
    fn no_end(&self, at: usize, otherwise: Malformed) -> Stop {
        match self.input[at..] {
            [b'\r'] => Stop::Partial,
            [b'\n', ..] => Malformed::LineEnd.into(),
            _ => otherwise.into(),
        }
    }

    /// Reads fields up to the empty line, that included. Their places are in all the bytes that were read: [`Fields::load`]
    /// takes these next.
    pub(super) fn fields(&mut self, fields: &mut Fields) -> Result<(), Stop> {
        while !self.input[self.at..].starts_with(b"\r\n") {
            let name = self.token()?;
            if name.is_empty() || !self.take(b':') || fields.len() == MAX_FIELDS {
                return Err(self.no_name(name, fields));
            }
            let mut value = self.text(Malformed::FieldValue)?;
            while !value.is_empty() && is_blank(self.input[value.start]) {
                value.start += 1;
            }
            while !value.is_empty() && is_blank(self.input[value.end - 1]) {
                value.end -= 1;
            }
            fields.index_line(self.input, name, value);
        }
        self.at += 2;
        Ok(())
    }

    /// The fault where a field should begin.
    #[cold]
    fn no_name(&self, name: Range<usize>, fields: &Fields) -> Stop {
        match self.input[name.start..] {
            [b'\r'] => Stop::Partial,
            [b'\r' | b'\n', ..] => Malformed::LineEnd.into(),
            [b' ' | b'\t', ..] => Malformed::Folding.into(),
            _ if fields.len() == MAX_FIELDS => Malformed::TooManyFields.into(),
            _ => Malformed::FieldName.into(),
        }
    }
}

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t')
}

/// [`is_token`] as a table: names are the only bytes of a head that are checked one by one.
static TOKEN: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut b = 0;
    while b < 256 {
        bytes[b] = is_token(b as u8);
        b += 1;
    }
    bytes
};
