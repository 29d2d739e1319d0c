//! Values inside JSON texts (RFC 8259): `json_query('$.a.b[0]')`. Paths are RFC 9535's, as far as they select by names, by
//! places and by `*`; of several values the first is taken.
//!
//! The text is walked once for each `*` of the path, without a tree. Depth is limited, so that no text can use up the
//! stack.

use crate::argument::{Arg, ArgList, ParamKind, may, need};
use crate::compiler::Compiler;
use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};

pub(crate) const CONVERTERS: &[Converter] = &[Converter::new(
    "json_query",
    Type::Str,
    Type::Any,
    "The value at a path of a JSON text, such as '$.a.b[0]'; numbers as text, or with \"int\" as whole numbers.",
    |value, args, _| query(value, args),
)
.params(&[need(ParamKind::Str), may(ParamKind::Str)])
.check(check)];

/// Whole numbers that every reader of JSON keeps exactly (RFC 8259 section 6).
const EXACT: std::ops::RangeInclusive<i64> = -9_007_199_254_740_991..=9_007_199_254_740_991;

/// Depth to which arrays and objects may lie in each other.
const MAX_DEPTH: usize = 64;

/// Most `*` of a path: each walks the text once more.
const MAX_WILDCARDS: usize = 8;

#[derive(Clone, PartialEq, Debug)]
enum Step {
    Key(Vec<u8>),
    /// Indexes below 0 count from the end.
    Index(isize),
    /// All elements of an array, all values of an object.
    Any,
}

pub(super) fn check(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(path)) = args.first() else { return Err("expects a path".into()) };
    let steps = parse_path(path).ok_or_else(|| format!("'{}' is not a path such as '$.a.b[0]'", path.escape_ascii()))?;
    let as_int = match args.get(1) {
        Some(Arg::Str(word)) if &**word == b"int" => 1,
        Some(Arg::Str(word)) if !word.is_empty() => {
            return Err(format!("output type '{}' is unknown, only 'int' is", word.escape_ascii()));
        }
        _ => 0,
    };
    *args = vec![Arg::own(steps), Arg::Int(as_int)];
    Ok(())
}

/// Parses a path. A dot inside a key is written after a backslash.
fn parse_path(path: &[u8]) -> Option<Vec<Step>> {
    let (mut rest, mut steps) = (path.strip_prefix(b"$")?, Vec::new());
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b'.' => {
                let (mut key, mut at) = (Vec::new(), 0);
                while let Some(&b) = after.get(at).filter(|b| !matches!(b, b'.' | b'[')) {
                    at += usize::from(b == b'\\' && at + 1 < after.len());
                    key.push(*after.get(at)?);
                    at += 1;
                }
                steps.push(if key == b"*" && at == 1 { Step::Any } else { Step::Key(key) });
                &after[at..]
            }
            b'[' => {
                let (step, after) = parse_selector(after)?;
                steps.push(step);
                after.strip_prefix(b"]")?
            }
            _ => return None,
        };
    }
    (steps.iter().filter(|step| **step == Step::Any).count() <= MAX_WILDCARDS).then_some(steps)
}

/// Parses the selector between brackets: an index, `*`, or a name in quotes.
fn parse_selector(text: &[u8]) -> Option<(Step, &[u8])> {
    let (&first, after) = text.split_first()?;
    match first {
        b'*' => Some((Step::Any, after)),
        b'\'' | b'"' => {
            let (mut name, mut at) = (Vec::new(), 0);
            while *after.get(at)? != first {
                at += usize::from(after[at] == b'\\');
                name.push(*after.get(at)?);
                at += 1;
            }
            Some((Step::Key(name), &after[at + 1..]))
        }
        _ => {
            let (digits, after) = text.split_at(memchr::memchr(b']', text)?);
            Some((Step::Index(std::str::from_utf8(digits).ok()?.parse().ok()?), after))
        }
    }
}

/// The text of a member of an object, when it is a string.
pub fn member(object: &[u8], key: &str) -> Option<Vec<u8>> {
    unescape(find(object, &[Step::Key(key.as_bytes().to_vec())])?).map(Buffer::into_vec)
}

/// The JSON text of a member of an object.
pub fn member_text<'j>(object: &'j [u8], key: &str) -> Option<&'j [u8]> {
    find(object, &[Step::Key(key.as_bytes().to_vec())])
}

/// The value at the path in the arguments that [`check`] has read.
pub(super) fn query<'a>(value: Value<'a>, args: &ArgList) -> Option<Value<'a>> {
    let text = value.into_octets()?;
    let found = find(&text, args.own::<Vec<Step>>(0)?)?;
    match found.first()? {
        b't' => Some(Value::Bool(true)),
        b'f' => Some(Value::Bool(false)),
        b'"' => unescape(found).map(|s| Value::Str(Octets::from(s))),
        b'[' => Some(Value::Str(Octets::copy(found))),
        b'-' | b'0'..=b'9' if args.int(1) == Some(1) => {
            let digits = found.iter().skip(1).take_while(|b| b.is_ascii_digit()).count();
            let n = std::str::from_utf8(&found[..=digits]).ok()?.parse().ok()?;
            EXACT.contains(&n).then_some(Value::Int(n))
        }
        b'-' | b'0'..=b'9' => Some(Value::Str(Octets::from(general(std::str::from_utf8(found).ok()?.parse().ok()?).into_bytes()))),
        _ => None,
    }
}

/// The text of the value at the path.
fn find<'j>(text: &'j [u8], path: &[Step]) -> Option<&'j [u8]> {
    find_at(text, 0, path)
}

/// The same from an offset on. It calls itself for each `*`.
fn find_at<'j>(text: &'j [u8], at: usize, path: &[Step]) -> Option<&'j [u8]> {
    let mut scanner = Scanner { text, at };
    for (i, step) in path.iter().enumerate() {
        match (scanner.token()?, step) {
            (b'{', Step::Key(key)) => scanner.enter_key(key)?,
            (b'[', Step::Index(index)) => scanner.enter_index(*index)?,
            (b'{' | b'[', Step::Any) => {
                let mut inside = scanner.enter()?;
                while inside {
                    if let Some(found) = find_at(text, scanner.at, &path[i + 1..]) {
                        return Some(found);
                    }
                    inside = scanner.advance()?;
                }
                return None;
            }
            _ => return None,
        }
    }
    scanner.token()?;
    let start = scanner.at;
    scanner.skip(0)?;
    Some(&text[start..scanner.at])
}

struct Scanner<'j> {
    text: &'j [u8],
    at: usize,
}

impl Scanner<'_> {
    /// The next byte that is no blank; it is not consumed.
    fn token(&mut self) -> Option<u8> {
        self.at += self.text.get(self.at..)?.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.token()? == byte).then(|| self.at += 1)
    }

    /// Moves before the value of that key of the object that begins here.
    fn enter_key(&mut self, key: &[u8]) -> Option<()> {
        self.take(b'{')?;
        loop {
            self.token()?;
            let start = self.at;
            self.skip_string()?;
            let found = unescape(&self.text[start..self.at])?;
            self.take(b':')?;
            if *found == *key {
                return Some(());
            }
            self.skip(0)?;
            self.take(b',')?;
        }
    }

    /// Moves before that element of the array that begins here.
    fn enter_index(&mut self, index: isize) -> Option<()> {
        let index = if index < 0 { self.elements()?.checked_sub(index.unsigned_abs())? } else { index.unsigned_abs() };
        self.take(b'[')?;
        for _ in 0..index {
            self.skip(0)?;
            self.take(b',')?;
        }
        (self.token()? != b']').then_some(())
    }

    /// Number of elements of the array that begins here.
    fn elements(&self) -> Option<usize> {
        let mut ahead = Scanner { text: self.text, at: self.at };
        let (mut count, mut inside) = (0, ahead.enter()?);
        while inside {
            count += 1;
            inside = ahead.advance()?;
        }
        Some(count)
    }

    /// Moves before the first value of the array or object that begins here; false where there is none.
    fn enter(&mut self) -> Option<bool> {
        let begin = self.token()?;
        self.at += 1;
        if matches!(self.token()?, b']' | b'}') {
            return Some(false);
        }
        if begin == b'{' {
            self.skip_name()?;
        }
        Some(true)
    }

    /// Moves from a value to the next; false where there is none.
    fn advance(&mut self) -> Option<bool> {
        self.skip(0)?;
        if self.take(b',').is_none() {
            return Some(false);
        }
        // Only a name is followed by a colon.
        let value = self.at;
        if self.token()? == b'"' && self.skip_name().is_none() {
            self.at = value;
        }
        Some(true)
    }

    /// Moves past a name and its colon.
    fn skip_name(&mut self) -> Option<()> {
        self.token()?;
        self.skip_string()?;
        self.take(b':')
    }

    fn skip(&mut self, depth: usize) -> Option<()> {
        match self.token()? {
            b'"' => self.skip_string(),
            b'{' => self.skip_all(b'}', depth),
            b'[' => self.skip_all(b']', depth),
            b'-' | b'0'..=b'9' => {
                self.at +=
                    self.text[self.at..].iter().take_while(|b| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')).count();
                Some(())
            }
            _ => {
                let word = [&b"true"[..], b"false", b"null"].into_iter().find(|w| self.text[self.at..].starts_with(w))?;
                self.at += word.len();
                Some(())
            }
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            self.at += memchr::memchr2(b'"', b'\\', self.text.get(self.at..)?)? + 1;
            match self.text[self.at - 1] {
                b'"' => return Some(()),
                _ => self.at += 1,
            }
        }
    }

    /// Moves past an object or an array.
    fn skip_all(&mut self, end: u8, depth: usize) -> Option<()> {
        self.at += 1;
        if depth == MAX_DEPTH {
            return None;
        }
        if self.token()? == end {
            return self.take(end);
        }
        loop {
            if end == b'}' {
                self.token()?;
                self.skip_string()?;
                self.take(b':')?;
            }
            self.skip(depth + 1)?;
            if self.token()? == end {
                return self.take(end);
            }
            self.take(b',')?;
        }
    }
}

/// Content of a string with its quotes.
fn unescape(quoted: &[u8]) -> Option<Buffer> {
    let mut rest = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut out = Buffer::new();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (&escaped, mut after) = rest[at + 1..].split_first()?;
        match escaped {
            b'u' => {
                let (first, more) = code_unit(after)?;
                let second = more.strip_prefix(b"\\u").and_then(code_unit);
                let units = [first, second.map_or(0, |(unit, _)| unit)];
                let (c, pair) = match char::decode_utf16(units).next()? {
                    Ok(c) => (c, c.len_utf16() == 2),
                    Err(_) => (char::REPLACEMENT_CHARACTER, false),
                };
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                after = second.filter(|_| pair).map_or(more, |(_, more)| more);
            }
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'"' | b'\\' | b'/' => out.push(escaped),
            _ => return None,
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    Some(out)
}

fn code_unit(text: &[u8]) -> Option<(u16, &[u8])> {
    let digits = std::str::from_utf8(text.get(..4)?).ok()?;
    Some((u16::from_str_radix(digits, 16).ok()?, &text[4..]))
}

/// A number with six significant digits, as `%g` writes it in C.
fn general(n: f64) -> String {
    let scientific = format!("{n:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim =
        |text: &str| if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{n:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    fn at(json: &str, args: &str) -> Option<String> {
        let mut bench = Bench::new();
        bench.set("txn.json", Value::str(json.as_bytes()));
        bench.eval(&format!("var(txn.json),json_query({args})"))
    }

    #[test]
    fn values_at_paths() {
        let json = r#" { "iss" : "kubernetes.io/x", "i":4, "n":-4, "d": 4.5, "t":true, "f":false, "z":null,
            "my.key":["v1", "v2",{"deep":[1,[2]]}], "o":{}, "esc":"a\"\u00e9\ud83d\ude00\n\/", "big":9007199254740993, "e":1.5e10 } "#;
        for (args, expected) in [
            ("'$.iss'", Some("kubernetes.io/x")),
            ("'$.i',int", Some("4")),
            ("'$.n',int", Some("-4")),
            ("'$.d'", Some("4.5")),
            ("'$.i'", Some("4")),
            ("'$.e'", Some("1.5e+10")),
            ("'$.t'", Some("1")),
            ("'$.f'", Some("0")),
            ("'$.z'", None),
            ("'$.o'", None),
            ("'$.my\\.key[0]'", Some("v1")),
            ("'$.my\\.key[2].deep[1]'", Some("[2]")),
            ("'$.my\\.key[3]'", None),
            ("'$.my\\.key'", Some(r#"["v1", "v2",{"deep":[1,[2]]}]"#)),
            ("'$.esc'", Some("a\"é😀\n/")),
            ("'$.big',int", None),
            ("'$.none'", None),
            ("'$.iss.x'", None),
            ("'$.my\\.key[*]'", Some("v1")),
            ("'$.my\\.key[*].deep[0]'", Some("1")),
            ("'$.my\\.key[*].deep[*][*]'", Some("2")),
            ("'$.my\\.key[*].none'", None),
            ("'$[*]'", Some("kubernetes.io/x")),
            ("'$.*.deep'", None),
            ("'$.*[2].deep[1][0]'", Some("2")),
            ("'$.o[*]'", None),
            ("'$.iss[*]'", None),
            ("'$.my\\.key[-3]'", Some("v1")),
            ("'$.my\\.key[-2]'", Some("v2")),
            ("'$.my\\.key[-4]'", None),
            ("'$[\"my.key\"][1]'", Some("v2")),
        ] {
            assert_eq!(at(json, args).as_deref(), expected, "{args}");
        }
        for broken in ["", "{", "{\"a\"", "{\"a\":", "{\"a\":\"", "{\"a\":tru", "{\"b\":1", "[1]", "{\"a\":\"\\"] {
            assert_eq!(at(broken, "'$.a'"), None, "{broken}");
        }
        assert_eq!(at(&"[".repeat(100_000), "'$[0]'"), None);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let mut bench = Bench::new();
        for (args, said) in [("a", "not a path"), ("'$.a',uint", "'uint'"), ("'$[x]'", "not a path")] {
            let fault = bench.expr(&format!("str(x),json_query({args})")).expect_err(args);
            assert!(fault.reason.contains(said), "{args}: {}", fault.reason);
        }
    }

    #[test]
    fn numbers_as_c_writes_them() {
        for (n, expected) in
            [(0.0, "0"), (100_000.0, "100000"), (1e6, "1e+06"), (0.0001, "0.0001"), (0.00001, "1e-05"), (1.0 / 3.0, "0.333333")]
        {
            assert_eq!(general(n), expected);
        }
    }
}
