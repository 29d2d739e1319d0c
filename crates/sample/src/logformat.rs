//! Log formats: text with expressions and aliases in it, `%ci [%tr] %{+Q}r %[req.hdr(host)]`. Also the values of headers, the
//! bodies of answers and every other string that may hold expressions.

mod encoding;

use self::encoding::{Encoding, ItemType, write_hex};
use crate::cast;
use crate::compiler::{Compiler, with_hint};
use crate::env::Env;
use crate::expr::Expr;
use crate::registry::{Alias, AliasEach, AliasKind, AliasRun, Needs};
use crate::value::{Type, Value};
use std::net::IpAddr;
use terse_config::{Args, Fault, Scope};
use terse_message::text::control_at;

/// A compiled format.
#[derive(Clone, Debug, Default)]
pub struct LogFormat {
    items: Vec<Item>,
    /// The names of items, empty for those that have none; as many as there are items.
    names: Vec<Box<str>>,
    needs: Needs,
    /// The whole is an object.
    encoding: Option<Encoding>,
    /// CBOR is written as it is.
    binary: bool,
}

/// What a format is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// A line of a log: what is undefined is written as `-`, runs of blanks become one.
    Log,
    /// A value of a header or of a URL: what is undefined is empty, control characters in expressions become `%XX`.
    Http,
    /// Plain text, a body or a variable: what is undefined is empty.
    Text,
    /// An identifier: what is undefined is empty, runs of blanks become one.
    Id,
}

#[derive(Clone, Debug)]
enum Item {
    Text(Box<[u8]>),
    /// A blank, unless nothing or one was just written.
    Blank,
    Expr(Box<Expr>, Options),
    Alias(AliasRun, Options),
    Line(AliasRun, Options),
    List(AliasEach, Options),
}

/// `%{+Q-X}`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Options {
    /// `Q`: strings in double quotes.
    quote: bool,
    /// `X`: numbers and addresses in hexadecimal digits.
    hex: bool,
    /// `E`: `"`, `\` and `]` behind a backslash (RFC 5424 section 6.3.3).
    escape: bool,
    /// `M`: `-` for what is undefined.
    mandatory: bool,
    /// Control characters of expressions as `%XX`.
    http: bool,
    /// `json`, `cbor`: as one value of these.
    encoding: Option<Encoding>,
    /// `bin`: CBOR as it is.
    binary: bool,
    /// What the value is taken for.
    kind: ItemType,
}

/// The aliases that an [`Env`] alone can tell.
pub(crate) const ALIASES: &[Alias] = &[
    Alias::new("ci", Needs::NONE, "The client's address.", |env| env.client.map(|a| Value::Addr(a.ip()))),
    Alias::new("cp", Needs::NONE, "The client's port.", |env| env.client.map(|a| Value::Int(a.port().into()))),
    Alias::new("fi", Needs::NONE, "The address that the client connected to.", |env| env.local.map(|a| Value::Addr(a.ip()))),
    Alias::new("fp", Needs::NONE, "The port that the client connected to.", |env| env.local.map(|a| Value::Int(a.port().into()))),
    Alias::line("HM", "The request's method.", |env| env.request.map(|r| Value::str(r.method()))),
    Alias::line("HP", "The request's target without its query.", |env| {
        let target = env.request?.target();
        Some(Value::str(&target[..query_at(target)]))
    }),
    Alias::line("HPO", "The path of the request's target.", |env| {
        let path = env.request?.path();
        Some(Value::str(if path.starts_with(b"/") { path } else { b"" }))
    }),
    Alias::line("HU", "The request's target.", |env| env.request.map(|r| Value::str(r.target()))),
    Alias::line("HQ", "The query of the request's target, with its question mark.", |env| {
        let target = env.request?.target();
        Some(Value::str(&target[query_at(target)..]))
    }),
    Alias::line("HV", "The request's version.", |env| env.request.map(|r| Value::str(r.version.name().as_bytes()))),
    Alias::new("ST", Needs::RESPONSE, "The response's status.", |env| env.response.map(|r| Value::Int(r.status.into()))),
];

impl LogFormat {
    /// Reads a format from the next word of a line.
    pub fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, have: Needs, usage: Usage) -> Result<LogFormat, Fault> {
        let mut compiler = Compiler::new(scope, have);
        compiler.word = args.position();
        compiler.log_format(args.need_bytes("<format>")?, usage)
    }

    /// A format that is this text, whatever stands in it.
    pub fn text(text: &[u8]) -> LogFormat {
        LogFormat { items: vec![Item::Text(text.into())], names: vec!["".into()], ..LogFormat::default() }
    }

    /// Appends what the format says.
    pub fn write(&self, env: &Env<'_>, out: &mut Vec<u8>) {
        if let Some(encoding) = self.encoding {
            return self.write_object(encoding, env, out);
        }
        let start = out.len();
        for item in &self.items {
            match item {
                Item::Expr(_, Options { encoding: Some(encoding), .. })
                | Item::Alias(_, Options { encoding: Some(encoding), .. })
                | Item::Line(_, Options { encoding: Some(encoding), .. })
                | Item::List(_, Options { encoding: Some(encoding), .. }) => item.write_encoded(*encoding, env, out),
                Item::Text(text) => out.extend_from_slice(text),
                Item::Blank if out.len() == start || out.last() == Some(&b' ') => {}
                Item::Blank => out.push(b' '),
                Item::Expr(expr, options) => options.write_text(options.kind.of(expr.eval(env)), out),
                Item::Alias(run, options) => options.write_alias(run(env), out),
                Item::Line(run, options) => options.write_line(run(env), out),
                Item::List(each, options) => options.write_list(*each, env, out),
            }
        }
    }

    /// Appends an object of the items that have names.
    #[cold]
    fn write_object(&self, encoding: Encoding, env: &Env<'_>, out: &mut Vec<u8>) {
        let mut object = Vec::new();
        encoding.begin(&mut object);
        let named = self.items.iter().zip(&self.names).filter(|(_, name)| !name.is_empty());
        for (i, (item, name)) in named.enumerate() {
            encoding.name(name, i == 0, &mut object);
            item.encode(encoding, env, &mut object);
        }
        encoding.end(&mut object);
        write_encoded(encoding, self.binary, &object, out);
    }

    /// The text, when it holds no expression and no alias.
    pub fn as_text(&self) -> Option<&[u8]> {
        match self.items.as_slice() {
            _ if self.encoding.is_some() => None,
            [] => Some(b""),
            [Item::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What must be there for it.
    pub fn needs(&self) -> Needs {
        self.needs
    }
}

/// Appends what was encoded: CBOR in hexadecimal digits, unless it may be as it is.
fn write_encoded(encoding: Encoding, binary: bool, bytes: &[u8], out: &mut Vec<u8>) {
    if encoding == Encoding::Cbor && !binary { write_hex(bytes, out) } else { out.extend_from_slice(bytes) }
}

impl Item {
    /// Appends its value in an encoding; text has none.
    fn encode(&self, encoding: Encoding, env: &Env<'_>, out: &mut Vec<u8>) {
        match self {
            Item::Text(_) | Item::Blank => {}
            Item::Expr(expr, options) => encoding.value(expr.eval(env), options.kind, out),
            Item::Alias(run, options) => encoding.value(run(env), options.kind, out),
            Item::Line(run, options) => {
                let mut line = Vec::new();
                Options { quote: false, ..*options }.write_line(run(env), &mut line);
                encoding.value(Some(Value::str(&line)), options.kind, out);
            }
            Item::List(each, _) => {
                let mut values = Vec::new();
                each(env, &mut |value| values.push(value));
                encoding.list(&values, out);
            }
        }
    }

    /// Appends its value alone, in an encoding. Apart, because few formats do, and it would crowd those that do not.
    #[cold]
    fn write_encoded(&self, encoding: Encoding, env: &Env<'_>, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        self.encode(encoding, env, &mut value);
        write_encoded(encoding, self.is_binary(), &value, out);
    }

    fn is_binary(&self) -> bool {
        match self {
            Item::Text(_) | Item::Blank => false,
            Item::Expr(_, options) | Item::Alias(_, options) | Item::Line(_, options) | Item::List(_, options) => options.binary,
        }
    }
}

impl Options {
    fn write_alias(self, value: Option<Value<'_>>, out: &mut Vec<u8>) {
        match value {
            Some(Value::Int(n)) if self.hex => out.extend_from_slice(format!("{n:04X}").as_bytes()),
            Some(Value::Int(n)) => cast::write_decimal(n, out),
            Some(Value::Addr(IpAddr::V4(a))) if self.hex => out.extend_from_slice(format!("{:08X}", u32::from(a)).as_bytes()),
            Some(Value::Addr(IpAddr::V6(a))) if self.hex => out.extend_from_slice(format!("{:032X}", u128::from(a)).as_bytes()),
            value => self.write_text(value, out),
        }
    }

    fn write_list(self, each: AliasEach, env: &Env<'_>, out: &mut Vec<u8>) {
        let mut first = true;
        each(env, &mut |value| {
            if !std::mem::take(&mut first) {
                out.push(b' ');
            }
            // A place in a list is never empty.
            Options { mandatory: true, ..self }.write_alias(value, out);
        });
    }

    fn write_line(self, value: Option<Value<'_>>, out: &mut Vec<u8>) {
        if self.quote {
            out.push(b'"');
        }
        match value.and_then(Value::into_octets) {
            Some(text) => encode(&text, b"", out),
            None => out.extend_from_slice(b"<BADREQ>"),
        }
        if self.quote {
            out.push(b'"');
        }
    }

    fn write_text(self, value: Option<Value<'_>>, out: &mut Vec<u8>) {
        if self.quote {
            out.push(b'"');
        }
        match value {
            // Digits and dots need no look.
            Some(Value::Int(n)) => cast::write_decimal(n, out),
            Some(Value::Addr(IpAddr::V4(address))) => cast::write_ipv4(address, out),
            value => match value.and_then(Value::into_octets).filter(|text| !(text.is_empty() && self.mandatory)) {
                Some(text) => self.encode(&text, out),
                None if self.mandatory && !self.quote => out.push(b'-'),
                None => {}
            },
        }
        if self.quote {
            out.push(b'"');
        }
    }

    fn encode(self, text: &[u8], out: &mut Vec<u8>) {
        // Most text is as it may stay.
        match self.http && control_at(text).is_some() || self.escape && text.iter().any(|b| ESCAPED.contains(b)) {
            false => out.extend_from_slice(text),
            true => self.encode_each(text, out),
        }
    }

    #[cold]
    fn encode_each(self, text: &[u8], out: &mut Vec<u8>) {
        for &b in text {
            if self.http && (b < b' ' && b != b'\t' || b == 0x7f) {
                out.extend_from_slice(format!("%{b:02X}").as_bytes());
            } else {
                if self.escape && ESCAPED.contains(&b) {
                    out.push(b'\\');
                }
                out.push(b);
            }
        }
    }

    fn change(mut self, text: &str) -> Result<Options, String> {
        for word in text.split(',') {
            let mut on = true;
            let mut rest = word.trim();
            while let Some(c) = rest.chars().next() {
                let long = [("json", Some(Encoding::Json)), ("cbor", Some(Encoding::Cbor)), ("bin", None)];
                if let Some((word, encoding)) = long.iter().find(|(word, _)| rest.starts_with(word)) {
                    match encoding {
                        Some(_) => self.encoding = encoding.filter(|_| on),
                        None => self.binary = on,
                    }
                    rest = &rest[word.len()..];
                    continue;
                }
                match c {
                    '+' => on = true,
                    '-' => on = false,
                    'Q' => self.quote = on,
                    'X' => self.hex = on,
                    'E' => self.escape = on,
                    'M' => self.mandatory = on,
                    _ => {
                        let known = "expects Q, X, E, M, json, cbor, bin, each behind '+' or '-'";
                        return Err(format!("unknown format option '{c}' in '{text}', {known}"));
                    }
                }
                rest = &rest[c.len_utf8()..];
            }
        }
        Ok(self)
    }
}

/// What stands behind a backslash in structured data (RFC 5424 section 6.3.3).
const ESCAPED: [u8; 3] = *b"\"\\]";

impl Compiler<'_> {
    /// Compiles a format. `self.word` is the word that it stands in.
    pub fn log_format(&mut self, text: &[u8], usage: Usage) -> Result<LogFormat, Fault> {
        let mut draft = Draft {
            format: LogFormat::default(),
            literal: Vec::new(),
            blanks: matches!(usage, Usage::Log | Usage::Id),
            name: "".into(),
        };
        let mut options = Options { mandatory: usage == Usage::Log, http: usage == Usage::Http, ..Options::default() };
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'%', rest) {
            draft.text(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(b"%") {
                draft.literal.push(b'%');
                rest = after;
                continue;
            }
            rest = self.log_item(rest, &mut options, &mut draft)?;
        }
        draft.text(rest);
        draft.flush();
        Ok(draft.format)
    }

    /// What stands behind a percent sign; gives what follows it.
    fn log_item<'t>(&mut self, text: &'t [u8], common: &mut Options, draft: &mut Draft) -> Result<&'t [u8], Fault> {
        let (mut rest, mut kind) = (text, ItemType::Own);
        let shown = || String::from_utf8_lossy(text);
        if let Some(after) = rest.strip_prefix(b"(") {
            let end = memchr::memchr(b')', after).ok_or_else(|| self.fault(format!("missing ')' in '%{}'", shown())))?;
            (draft.name, kind) = self.item_name(&after[..end])?;
            rest = &after[end + 1..];
        }
        let mut options = Options { kind, ..*common };
        if let Some(after) = rest.strip_prefix(b"{") {
            let end = memchr::memchr(b'}', after).ok_or_else(|| self.fault(format!("missing '}}' in '%{}'", shown())))?;
            options = options.change(&String::from_utf8_lossy(&after[..end])).map_err(|reason| self.fault(reason))?;
            rest = &after[end + 1..];
        }
        if let Some(after) = rest.strip_prefix(b"[") {
            let (expr, after) = self.expression_prefix(after)?;
            self.check_needs(expr.needs(), expr.text())?;
            let Some(after) = after.strip_prefix(b"]") else {
                return Err(self.fault(format!("expected ']' after '{}' in '%{}'", expr.text(), shown())));
            };
            if !cast::exists(expr.output(), Type::Str) {
                return Err(self.fault(format!("'{}' cannot be written as text", expr.text())));
            }
            draft.format.needs = draft.format.needs.or(expr.needs());
            draft.item(Item::Expr(Box::new(expr), options));
            return Ok(after);
        }
        let (name, after) = rest.split_at(rest.iter().take_while(|b| b.is_ascii_alphanumeric()).count());
        let name = std::str::from_utf8(name).unwrap_or_default();
        if name == "o" {
            // It writes nothing: its options hold for what follows, and an encoding for the whole.
            (draft.format.encoding, draft.format.binary) = (options.encoding.or(draft.format.encoding), options.binary);
            draft.name = "".into();
            *common = Options { kind: ItemType::Own, ..options };
            return Ok(after);
        }
        let Some(alias) = self.registry.alias(name) else {
            let fault =
                self.fault(format!("no such format alias '%{}' (a percent sign itself is written '%%')", shown_alias(rest)));
            return Err(with_hint(fault, self.registry.alias_near(name).filter(|_| !name.is_empty())));
        };
        let item = match alias.kind {
            AliasKind::Done(run) => Item::Alias(run, options),
            AliasKind::Plain(run) => Item::Alias(run, Options { quote: false, ..options }),
            AliasKind::Line(run) => Item::Line(run, options),
            AliasKind::List(each) => Item::List(each, options),
            AliasKind::Refused(reason) => return Err(self.fault(format!("format alias '%{name}' is not supported: {reason}"))),
        };
        self.check_needs(alias.needs, &format!("%{name}"))?;
        draft.format.needs = draft.format.needs.or(alias.needs);
        draft.item(item);
        Ok(after)
    }

    /// `%(name)` or `%(name:type)`.
    fn item_name(&self, text: &[u8]) -> Result<(Box<str>, ItemType), Fault> {
        let text = String::from_utf8_lossy(text);
        let (name, word) = text.split_once(':').map_or((&*text, None), |(name, word)| (name, Some(word)));
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            return Err(self.fault(format!("invalid character in item name '{name}'")));
        }
        let Some(word) = word else { return Ok((name.into(), ItemType::Own)) };
        match ItemType::WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, kind)) => Ok((name.into(), *kind)),
            None => Err(self.fault(format!("unknown item type '{word}', expects one of str, sint, bool, raw"))),
        }
    }
}

fn shown_alias(rest: &[u8]) -> String {
    let end = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len()).max(1);
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
}

/// Where the query of a target begins, at its question mark.
fn query_at(target: &[u8]) -> usize {
    memchr::memchr(b'?', target).unwrap_or(target.len())
}

/// Appends bytes that came from a client: quotes, `#`, what is not printable ASCII and the `reserved` bytes as `#XX`. Captured
/// header fields reserve `{|}`.
pub fn encode(bytes: &[u8], reserved: &[u8], out: &mut Vec<u8>) {
    if reserved.is_empty() && !bytes.iter().fold(false, |odd, &b| odd | !(b' '..=b'~').contains(&b) | matches!(b, b'"' | b'#')) {
        return out.extend_from_slice(bytes);
    }
    for &b in bytes {
        if !(b' '..=b'~').contains(&b) || matches!(b, b'"' | b'#') || reserved.contains(&b) {
            out.extend_from_slice(format!("#{b:02X}").as_bytes());
        } else {
            out.push(b);
        }
    }
}

/// A format that is not finished.
struct Draft {
    format: LogFormat,
    literal: Vec<u8>,
    /// Runs of blanks become one.
    blanks: bool,
    /// The name of the item that comes.
    name: Box<str>,
}

impl Draft {
    fn text(&mut self, text: &[u8]) {
        if !self.blanks {
            return self.literal.extend_from_slice(text);
        }
        for &b in text {
            if b == b' ' { self.item(Item::Blank) } else { self.literal.push(b) }
        }
    }

    fn item(&mut self, item: Item) {
        self.flush();
        self.format.names.push(std::mem::take(&mut self.name));
        self.format.items.push(item);
    }

    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.format.names.push("".into());
            self.format.items.push(Item::Text(std::mem::take(&mut self.literal).into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn formats() {
        let mut bench = Bench::new();
        for (text, usage, expected) in [
            ("plain", Usage::Http, "plain"),
            ("100%%", Usage::Http, "100%"),
            ("%ci:%cp [%HM]", Usage::Log, "198.51.100.7:1234 [GET]"),
            ("a  b", Usage::Log, "a b"),
            ("a  b", Usage::Http, "a  b"),
            ("a   %ST   b", Usage::Log, "a 404 b"),
            ("%{+X}o  %cp  %[req.hdr(none)]", Usage::Id, "04D2 "),
            ("%{+Q}HM %{+Q}ST", Usage::Log, "\"GET\" 404"),
            ("%{+Q}o %HM %{-Q}HM %[path]", Usage::Log, "\"GET\" GET \"/dir/file.html\""),
            ("%[path,field(2,/)]-%[status]", Usage::Text, "dir-404"),
            ("%[req.hdr(none)]|%[var(txn.none)]", Usage::Http, "|"),
            ("%[req.hdr(none)]", Usage::Log, "-"),
            ("%{+Q}[req.hdr(none)]", Usage::Log, "\"\""),
            ("%[str('a\nb')]", Usage::Http, "a%0Ab"),
            ("%[str('a\nb')]", Usage::Text, "a\nb"),
            ("%{+E}[str('\\\"]')]", Usage::Text, r#"\\\"\]"#),
            ("%{+X}cp %{+X}ci", Usage::Log, "04D2 C6336407"),
            ("%(name)ci %(n:sint)[status]", Usage::Log, "198.51.100.7 404"),
            ("%HP%HQ %HV", Usage::Log, "/dir/file.html?a=1&b=two%20x&a=3&C=4 HTTP/1.1"),
            ("[%[str(a]b)]]", Usage::Text, "[a]b]"),
            ("", Usage::Log, ""),
            ("x\n", Usage::Text, "x\n"),
        ] {
            assert_eq!(bench.write(text, usage), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut bench = Bench::new();
        for (text, said) in [
            ("%", "no such format alias '%'"),
            ("50% off", "'%%'"),
            ("%zz", "no such format alias '%zz'"),
            ("%[path", "expected ']'"),
            ("%[path x]", "expected ']' after 'path'"),
            ("%[pathe]", "unknown fetch method 'pathe' in 'pathe'"),
            ("%[req.hdrr(x)] and more", "in 'req.hdrr(x)'"),
            ("%[req.hdrr(a]b,'c)]',d)] and more", r"in 'req.hdrr(a]b,\'c)]\',d)'"),
            ("%[path,lowr]", "unknown converter 'lowr' in 'lowr'"),
            ("%[src,lower,add(x", "converter 'add': expected ')' at the end of '(x'"),
            ("%[lua.foo]", "unknown fetch method 'lua.foo'"),
            ("%[path,lua.foo(a)]", "unknown converter 'lua.foo'"),
            ("%{+Q", "missing '}'"),
            ("%{+Z}ci", "unknown format option 'Z'"),
            ("%{+jsn}o", "expects Q, X, E, M, json, cbor, bin"),
            ("%(a b)ci", "invalid character"),
            ("%(a:int)ci", "unknown item type 'int'"),
        ] {
            let fault = bench.format(text, Usage::Log).expect_err(text);
            assert!(fault.reason.contains(said), "{text}: {}", fault.reason);
        }
        bench.have = Needs::REQUEST;
        assert!(bench.format("%ST", Usage::Log).unwrap_err().reason.contains("the response's head"));
        assert!(bench.format("%[status]", Usage::Log).unwrap_err().reason.contains("the response's head"));
    }

    #[test]
    fn objects() {
        let mut bench = Bench::new();
        for (text, expected) in [
            ("%{+json}o %(a)[path] text %ci %(b)ST %(c)[int(-7)]", r#"{"a": "/dir/file.html", "b": 404, "c": -7}"#),
            (
                r#"%{+json}o %(a)[bool(true)] %(b)[req.hdr(none)] %(c)[bin(61225c0a)]"#,
                r#"{"a": true, "b": "", "c": "a\"\\\u000a"}"#,
            ),
            (
                "%{+json}o %(a:str)[int(5)] %(b:sint)[str(abc)] %(c:bool)[int(2)] %(d:raw)[str(x y)]",
                r#"{"a": "5", "b": 0, "c": true, "d": x y}"#,
            ),
            ("%{+json}o %{-json}(a)ci", "no such format alias"),
            ("%{+json}o %(a){+Q,+X}cp %(b)HM", r#"{"a": 1234, "b": "GET"}"#),
            ("x %{+json}[path] %(n){+json}ST", "x \"/dir/file.html\" 404"),
            ("%{+json}o", "{}"),
            (
                "%{+cbor}o %(a)[str(p)] %(b)[int(500)] %(c)[int(-7)] %(d)[bool(true)] %(e)[bin(00ff)] %(f)[req.hdr(none)]",
                "BF616161706162 1901F4 6163 26 6164 F5 6165 4200FF 6166 F6 FF",
            ),
            ("%{+cbor}[int(70000)] %{+cbor}[int(9223372036854775807)] %{+cbor}[int(24)]", "1A00011170 1B7FFFFFFFFFFFFFFF 1818"),
        ] {
            match bench.format(text, Usage::Log) {
                Ok(_) if text.contains("cbor}o") => assert_eq!(bench.write(text, Usage::Log), expected.replace(' ', ""), "{text}"),
                Ok(_) => assert_eq!(bench.write(text, Usage::Log), expected, "{text}"),
                Err(fault) => assert!(fault.reason.contains(expected), "{text}: {}", fault.reason),
            }
        }
        let format = bench.format("%{+cbor,+bin}o %(a)[int(1)]", Usage::Log).unwrap();
        let mut out = Vec::new();
        format.write(&bench.env(), &mut out);
        assert_eq!(out, [0xbf, 0x61, b'a', 1, 0xff]);
        assert_eq!(bench.write("%(n:sint)[str(12abc)]", Usage::Text), "12");
        assert_eq!(bench.format("%{+json}o", Usage::Log).unwrap().as_text(), None);
    }

    #[test]
    fn first_lines_cannot_break_a_log() {
        let mut bench = Bench::new();
        bench.request.set_target(b"http://h/\"#\xe9?");
        assert_eq!(bench.write("%HP|%HPO|%HQ|%{+Q}HU", Usage::Log), "http://h/#22#23#E9|/#22#23#E9|?|\"http://h/#22#23#E9?\"");
        let format = bench.format("%HM %HU", Usage::Log).unwrap();
        let mut out = Vec::new();
        format.write(&Env { request: None, ..bench.env() }, &mut out);
        assert_eq!(out, b"<BADREQ> <BADREQ>");
    }

    #[test]
    fn what_a_format_holds() {
        let mut bench = Bench::new();
        let format = bench.format("%[path] %ST", Usage::Text).unwrap();
        assert_eq!(format.needs(), Needs::REQUEST.or(Needs::RESPONSE));
        assert_eq!(format.as_text(), None);
        assert_eq!(bench.format("a%%b", Usage::Text).unwrap().as_text(), Some(&b"a%b"[..]));
        assert_eq!(LogFormat::text(b"%raw").as_text(), Some(&b"%raw"[..]));
    }
}
