//! Translation of PCRE expressions for an engine with nested classes and fewer escapes.
//!
//! In a class, `[`, `&`, `~` and `-` twice are themselves. A brace that begins no quantifier is itself, and comments are
//! left out. Escapes that the engine lacks (`\h`, `\R`, `\Q`, octal numbers...) are written in others. Bytes beyond ASCII
//! are escapes: an expression is of bytes, not of characters. All other syntax is the same in both.

use std::fmt::Write as _;

/// The same expression for the engine.
pub(super) fn portable(pattern: &[u8]) -> String {
    let mut writer = Writer { pattern, at: 0, out: String::with_capacity(pattern.len() + 8), in_class: false };
    while let Some(&byte) = pattern.get(writer.at) {
        writer.at += 1;
        match byte {
            b'\\' => writer.escape(),
            _ if writer.in_class => writer.member(byte),
            b'[' => writer.open(),
            b'{' if !is_quantifier(writer.rest()) => writer.out.push_str("\\{"),
            b'(' if writer.rest().starts_with(b"?#") => {
                let rest = writer.rest();
                writer.at += memchr::memchr(b')', rest).map_or(rest.len(), |end| end + 1);
            }
            byte => push(byte, &mut writer.out),
        }
    }
    writer.out
}

struct Writer<'p> {
    pattern: &'p [u8],
    /// Offset of the next byte.
    at: usize,
    out: String,
    in_class: bool,
}

impl<'p> Writer<'p> {
    fn rest(&self) -> &'p [u8] {
        &self.pattern[self.at..]
    }

    /// Translates the text after the bracket of a class. A bracket that closes right at the start is itself.
    fn open(&mut self) {
        self.in_class = true;
        self.out.push('[');
        if self.rest().starts_with(b"^") {
            self.out.push('^');
            self.at += 1;
        }
        if self.rest().starts_with(b"]") {
            self.out.push_str("\\]");
            self.at += 1;
        }
    }

    /// Translates a byte in a class.
    fn member(&mut self, byte: u8) {
        let before = self.at.checked_sub(2).and_then(|at| self.pattern.get(at)).copied();
        match byte {
            b'[' if self.rest().starts_with(b":") => self.out.push('['),
            b']' if before == Some(b':') && self.is_in_named_class() => self.out.push(']'),
            b']' => {
                self.in_class = false;
                self.out.push(']');
            }
            b'[' | b'&' | b'~' => {
                self.out.push('\\');
                self.out.push(char::from(byte));
            }
            b'-' if self.rest().starts_with(b"-") => self.out.push_str("\\-"),
            byte => push(byte, &mut self.out),
        }
    }

    /// Whether the last bracket that was written opens a named class, `[:alpha:`.
    fn is_in_named_class(&self) -> bool {
        self.out.rfind("[:").is_some_and(|at| !self.out[at..].contains(']'))
    }

    /// Translates the text after a backslash.
    fn escape(&mut self) {
        let Some(&escaped) = self.rest().first() else { return self.out.push('\\') };
        self.at += 1;
        match escaped {
            b'Q' => self.literal(),
            b'E' => {}
            b'h' => self.set("\\t\\x20\\xa0", false),
            b'H' => self.set("\\t\\x20\\xa0", true),
            b'v' => self.set(LINE_ENDS, false),
            b'V' => self.set(LINE_ENDS, true),
            b'N' if !self.in_class && !self.rest().starts_with(b"{") => self.out.push_str("[^\\n]"),
            b'R' if !self.in_class => _ = write!(self.out, "(?:\\r\\n|[{LINE_ENDS}])"),
            b'b' if self.in_class => self.byte(8),
            // In PCRE, as `$`, it also matches before a line's end that ends the text; here both match the end alone.
            b'Z' if !self.in_class => self.out.push_str("\\z"),
            b'e' => self.byte(0x1b),
            b'c' => match self.rest().first() {
                Some(&control) if control.is_ascii() => {
                    self.at += 1;
                    self.byte(control.to_ascii_uppercase() ^ 0x40);
                }
                _ => self.out.push_str("\\c"),
            },
            b'x' if !self.rest().starts_with(b"{") => {
                let digits = self.rest().iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                let value = self.number(digits, 16);
                self.byte(value as u8);
            }
            b'0'..=b'9' => self.digits(),
            // The engine takes these for the edges of words.
            b'<' | b'>' => self.out.push(char::from(escaped)),
            _ => {
                self.out.push('\\');
                push(escaped, &mut self.out);
            }
        }
    }

    /// Translates the text after `\Q`, up to `\E`.
    fn literal(&mut self) {
        let rest = self.rest();
        let end = rest.windows(2).position(|two| two == b"\\E");
        rest[..end.unwrap_or(rest.len())].iter().for_each(|byte| self.byte(*byte));
        self.at += end.map_or(rest.len(), |end| end + 2);
    }

    /// `\0`, `\101`, `\1`: an octal number, or a reference back to a group.
    fn digits(&mut self) {
        self.at -= 1;
        let decimal = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let octal = self.rest().iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        let number = std::str::from_utf8(&self.rest()[..decimal]).ok().and_then(|text| text.parse::<usize>().ok());
        let is_group = number.is_some_and(|number| (1..10).contains(&number) || number >= 10 && number <= groups(self.pattern));
        if octal == 0 || !self.in_class && is_group && !self.rest().starts_with(b"0") {
            self.out.push('\\');
            self.out.extend(self.rest()[..decimal].iter().map(|byte| char::from(*byte)));
            self.at += decimal;
        } else {
            let value = self.number(octal, 8);
            self.byte(value as u8);
        }
    }

    /// The number that the next digits are.
    fn number(&mut self, digits: usize, base: u32) -> u32 {
        let digit = |byte: &u8| char::from(*byte).to_digit(base).unwrap_or(0);
        let number = self.rest()[..digits].iter().fold(0, |number, byte| number * base + digit(byte));
        self.at += digits;
        number
    }

    /// Writes a set of bytes, or all others.
    fn set(&mut self, members: &str, negated: bool) {
        let caret = if negated { "^" } else { "" };
        _ = if self.in_class && !negated { self.out.write_str(members) } else { write!(self.out, "[{caret}{members}]") };
    }

    /// Writes a byte that means itself.
    fn byte(&mut self, byte: u8) {
        if byte.is_ascii_alphanumeric() { self.out.push(char::from(byte)) } else { _ = write!(self.out, "\\x{byte:02x}") }
    }
}

/// Matches of `\v` and `\R`: PCRE's ends of lines, as bytes.
const LINE_ENDS: &str = "\\n\\x0b\\x0c\\r\\x85";

/// Whether a brace with this text after it is a quantifier: `{2}`, `{2,}`, `{2,3}`.
fn is_quantifier(rest: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b'}', rest) else { return false };
    let (least, most) = match memchr::memchr(b',', &rest[..end]) {
        Some(comma) => (&rest[..comma], &rest[comma + 1..end]),
        None => (&rest[..end], &rest[..0]),
    };
    !least.is_empty() && least.iter().chain(most).all(u8::is_ascii_digit)
}

/// Number of groups of an expression, or a few more.
fn groups(pattern: &[u8]) -> usize {
    let opens = |two: &[u8]| two[0] == b'(' && two[1] != b'?';
    pattern.windows(2).filter(|two| opens(two)).count()
        + pattern.windows(3).filter(|three| matches!(three, [b'(', b'?', b'<' | b'P'])).count()
}

fn push(byte: u8, out: &mut String) {
    if byte.is_ascii() {
        out.push(char::from(byte));
    } else {
        _ = write!(out, "\\x{byte:02x}");
    }
}
