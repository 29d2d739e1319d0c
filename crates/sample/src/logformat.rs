//! Log formats: text with expressions and aliases in it, `%ci [%tr] %{+Q}r %[req.hdr(host)]`. Also the values of headers, the
//! bodies of answers and every other string that may hold expressions.

mod encoding;
mod options;
mod parse;

use self::encoding::{Encoding, write_hex};
use self::options::Options;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::expr::Expr;
use crate::registry::{Alias, AliasKind, Needs};
use crate::value::Value;
use terse_config::{Args, Fault, Scope};

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

/// Purpose of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// A line of a log: undefined values are written as `-`, runs of blanks become one.
    Log,
    /// A value of a field or of a URL: expressions are neither quoted nor encoded, and their control characters become `%XX`.
    Http,
    /// Plain text, a body or a variable: undefined values are empty.
    Text,
    /// An identifier: as a value of a field, and runs of blanks become one.
    Id,
}

#[derive(Clone, Debug)]
enum Item {
    Text(Box<[u8]>),
    /// A blank, unless the output is empty or ends with a blank.
    Blank,
    Expr(Box<Expr>, Options),
    Alias(AliasKind, Options),
}

/// Aliases that need only an [`Env`].
pub(crate) const ALIASES: &[Alias] = &[
    Alias::text("ci", "The client's address.", |env| env.client.map(|a| Value::Addr(a.ip()))),
    Alias::number("cp", "The client's port.", |env| env.client.map(|a| Value::Int(a.port().into()))).digits(4),
    Alias::text("fi", "The address that the client connected to.", |env| env.local.map(|a| Value::Addr(a.ip()))),
    Alias::number("fp", "The port that the client connected to.", |env| env.local.map(|a| Value::Int(a.port().into()))).digits(4),
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
    Alias::number("ST", "The response's status.", |env| env.response.map(|r| Value::Int(r.status.into()))).needs(Needs::RESPONSE),
];

impl LogFormat {
    /// Reads a format from the next word of a line.
    pub fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, have: Needs, usage: Usage) -> Result<LogFormat, Fault> {
        let mut compiler = Compiler::new(scope, have);
        compiler.word = args.position();
        compiler.log_format(args.need_bytes("<format>")?, usage)
    }

    /// A format that is this text, whatever it holds.
    pub fn text(text: &[u8]) -> LogFormat {
        LogFormat { items: vec![Item::Text(text.into())], names: vec!["".into()], ..LogFormat::default() }
    }

    /// Appends the formatted text.
    pub fn write(&self, env: &Env<'_>, out: &mut Vec<u8>) {
        if let Some(encoding) = self.encoding {
            return self.write_object(encoding, env, out);
        }
        // As HAProxy has it: an expression without a value parts two blanks, an alias that wrote nothing does not.
        let mut is_blank = true;
        for item in &self.items {
            let start = out.len();
            match item {
                Item::Text(text) => out.extend_from_slice(text),
                Item::Blank => {
                    if !std::mem::replace(&mut is_blank, true) {
                        out.push(b' ');
                    }
                    continue;
                }
                Item::Expr(_, Options { encoding: Some(encoding), .. })
                | Item::Alias(_, Options { encoding: Some(encoding), .. }) => {
                    item.write_encoded(*encoding, env, out);
                }
                Item::Expr(expr, options) => {
                    options.write_expression(expr.eval(env), out);
                    is_blank = false;
                }
                Item::Alias(kind, options) => options.write_alias(*kind, env, out),
            }
            is_blank &= out.len() == start;
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

    /// Needs of all its items.
    pub fn needs(&self) -> Needs {
        self.needs
    }
}

/// Appends encoded bytes: CBOR in hexadecimal digits, unless it may be as it is.
fn write_encoded(encoding: Encoding, binary: bool, bytes: &[u8], out: &mut Vec<u8>) {
    if encoding == Encoding::Cbor && !binary { write_hex(bytes, out) } else { out.extend_from_slice(bytes) }
}

impl Item {
    /// Appends its value in an encoding; text has none.
    fn encode(&self, encoding: Encoding, env: &Env<'_>, out: &mut Vec<u8>) {
        match self {
            Item::Text(_) | Item::Blank => {}
            Item::Expr(expr, options) => encoding.value(expr.eval(env), options.kind, out),
            Item::Alias(kind, options) => options.encode_alias(*kind, encoding, env, out),
        }
    }

    /// Appends its value alone, in an encoding. A function of its own, because few formats do it, and it would crowd the
    /// others.
    #[cold]
    fn write_encoded(&self, encoding: Encoding, env: &Env<'_>, out: &mut Vec<u8>) {
        let (Item::Expr(_, options) | Item::Alias(_, options)) = self else { return };
        let mut value = Vec::new();
        self.encode(encoding, env, &mut value);
        write_encoded(encoding, options.binary, &value, out);
    }
}

/// Offset of the query of a target, at its question mark.
fn query_at(target: &[u8]) -> usize {
    memchr::memchr(b'?', target).unwrap_or(target.len())
}

/// Appends bytes that came from a client: quotes, `#`, bytes that are not printable ASCII and the `reserved` bytes as
/// `#XX`. Captured header fields reserve `{|}`.
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
