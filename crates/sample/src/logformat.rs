//! Log formats: text with expressions and aliases in it, `%ci [%tr] %{+Q}r %[req.hdr(host)]`. Also the values of headers, the
//! bodies of answers and every other string that may hold expressions.

mod encoding;
mod parse;

use self::encoding::{Encoding, ItemType, write_hex};
use crate::cast;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::expr::Expr;
use crate::registry::{Alias, AliasEach, AliasRun, Needs};
use crate::value::Value;
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
}

/// What stands behind a backslash in structured data (RFC 5424 section 6.3.3).
const ESCAPED: [u8; 3] = *b"\"\\]";

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

#[cfg(test)]
mod tests;
