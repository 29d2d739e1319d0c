//! Arguments in parentheses: `field(1,':')`. Their kinds, their syntax, and their compiled form.

use crate::cast;
use crate::compiler::Compiler;
use crate::condition::Condition;
use crate::regexp::Regexp;
use crate::vars::VarSlot;
use std::any::Any;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use terse_message::{Fields, Known};

/// A parameter of a fetch or a converter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Kind of its arguments.
    pub kind: ParamKind,
    /// Whether it is required.
    pub required: bool,
}

/// Kind of the argument that a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    /// Any text.
    Str,
    /// A whole number.
    Int,
    /// A duration, in milliseconds.
    Time,
    /// A number of bytes.
    Size,
    /// The name of a header field.
    Header,
    /// The name of a variable.
    Var,
    /// A whole number, or the name of a variable that holds it.
    IntOrVar,
    /// The name of a variable, or text that is none.
    StrOrVar,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An IPv4 mask: `24` or `255.255.255.0`.
    Mask4,
    /// An IPv6 mask: `64` or `ffff:ffff::`.
    Mask6,
}

/// An argument, as compiled.
#[derive(Clone, Debug, Default)]
pub enum Arg {
    /// An argument that is missing or empty.
    #[default]
    None,
    /// A number: also of times and sizes.
    Int(i64),
    /// Text.
    Str(Box<[u8]>),
    /// A header field's name.
    Header(HeaderName),
    /// A variable.
    Var(VarSlot),
    /// An address or a mask.
    Addr(IpAddr),
    /// A regular expression.
    Regex(Box<Regexp>),
    /// A condition.
    Condition(Box<Condition>),
    /// A value that the check of another crate made of it.
    Own(Own),
}

/// A value that only its crate knows.
#[derive(Clone)]
pub struct Own(pub Arc<dyn Any + Send + Sync>);

/// The name of a header field, with its index among the known ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderName {
    known: Known,
    name: Box<[u8]>,
}

/// All arguments; an argument beyond the end is [`Arg::None`].
#[derive(Clone, Debug, Default)]
pub struct ArgList(Box<[Arg]>);

/// A parameter that must be given.
pub const fn need(kind: ParamKind) -> Param {
    Param { kind, required: true }
}

/// A parameter that may be left out.
pub const fn may(kind: ParamKind) -> Param {
    Param { kind, required: false }
}

impl ArgList {
    /// A list of these arguments.
    pub fn new(args: Vec<Arg>) -> ArgList {
        ArgList(args.into())
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `i`th argument.
    #[inline]
    pub fn at(&self, i: usize) -> &Arg {
        self.0.get(i).unwrap_or(&Arg::None)
    }

    /// The `i`th as a number.
    #[inline]
    pub fn int(&self, i: usize) -> Option<i64> {
        if let Arg::Int(n) = self.at(i) { Some(*n) } else { None }
    }

    /// The `i`th as text.
    #[inline]
    pub fn str(&self, i: usize) -> Option<&[u8]> {
        if let Arg::Str(s) = self.at(i) { Some(s) } else { None }
    }

    /// The `i`th as a variable.
    #[inline]
    pub fn var(&self, i: usize) -> Option<VarSlot> {
        if let Arg::Var(v) = self.at(i) { Some(*v) } else { None }
    }

    /// The `i`th as a header field's name.
    #[inline]
    pub fn header(&self, i: usize) -> Option<&HeaderName> {
        if let Arg::Header(h) = self.at(i) { Some(h) } else { None }
    }

    /// The `i`th as an address or mask.
    pub fn addr(&self, i: usize) -> Option<IpAddr> {
        if let Arg::Addr(a) = self.at(i) { Some(*a) } else { None }
    }

    /// The `i`th as the value that a check made of it, if it is of type `T`.
    pub fn own<T: Any>(&self, i: usize) -> Option<&T> {
        if let Arg::Own(own) = self.at(i) { own.0.downcast_ref() } else { None }
    }
}

impl HeaderName {
    /// A header field's name.
    pub fn new(name: &[u8]) -> HeaderName {
        HeaderName { known: Known::of(name), name: name.into() }
    }

    /// The name as it was written.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The values of all fields of that name, in order.
    pub fn values<'a>(&self, fields: &'a Fields) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, '_> {
        let known = self.known;
        let (by_place, by_name) = match known {
            Known::Other => (None, Some(fields.values(&self.name))),
            known => (Some(fields.every(known)), None),
        };
        by_place.into_iter().flatten().chain(by_name.into_iter().flatten())
    }
}

impl Arg {
    /// Wraps a value that only the calling crate knows.
    pub fn own(value: impl Any + Send + Sync) -> Arg {
        Arg::Own(Own(Arc::new(value)))
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl ParamKind {
    /// The kind's name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            ParamKind::Str => "string",
            ParamKind::Int => "integer",
            ParamKind::Time => "time",
            ParamKind::Size => "size",
            ParamKind::Header => "header name",
            ParamKind::Var => "variable",
            ParamKind::IntOrVar => "integer or variable",
            ParamKind::StrOrVar => "string or variable",
            ParamKind::Ipv4 => "IPv4 address",
            ParamKind::Ipv6 => "IPv6 address",
            ParamKind::Mask4 => "IPv4 mask",
            ParamKind::Mask6 => "IPv6 mask",
        }
    }
}

/// Reads the arguments at the start of a text, parentheses included when there are some; returns them and the rest of the
/// text.
pub(crate) fn parse_list<'t>(
    text: &'t [u8],
    params: &[Param],
    compiler: &mut Compiler<'_>,
) -> Result<(Vec<Arg>, &'t [u8]), String> {
    let required = params.iter().take_while(|p| p.required).count();
    let inside = text.strip_prefix(b"(");
    if inside.is_none() && required == 0 {
        return Ok((Vec::new(), text));
    }
    // As in HAProxy, no parentheses where an argument is demanded are an empty argument.
    let mut rest = inside.unwrap_or_default();
    let mut args = Vec::new();
    while args.len() < params.len() {
        let (word, after) = unquote(rest);
        rest = after;
        // Empty parentheses are no argument where none is required.
        if args.is_empty() && word.is_empty() && rest.starts_with(b")") && required == 0 {
            break;
        }
        if inside.is_some() && rest.is_empty() {
            return Err(unclosed(text));
        }
        let arg = compile(&word, params[args.len()], args.len(), compiler)?;
        args.push(arg);
        match rest.strip_prefix(b",") {
            Some(after) if args.len() < params.len() => rest = after,
            _ => break,
        }
    }
    if let (true, Some(missing)) = (args.len() < required, params.get(args.len())) {
        return Err(format!("missing arguments (got {}/{required}), type '{}' expected", args.len(), missing.kind.name()));
    }
    match rest.strip_prefix(b")") {
        _ if inside.is_none() => Ok((args, text)),
        Some(after) => Ok((args, after)),
        None if rest.is_empty() => Err(unclosed(text)),
        None => Err(match params.len() {
            0 => format!("it takes no arguments, expected ')' before '{}'", rest.escape_ascii()),
            most => format!(
                "it takes {most} argument{} at most, expected ')' before '{}'",
                if most == 1 { "" } else { "s" },
                rest.escape_ascii()
            ),
        }),
    }
}

fn unclosed(text: &[u8]) -> String {
    format!("expected ')' at the end of '{}'", text.escape_ascii())
}

/// Reads an argument, up to a comma or a closing parenthesis outside quotes; returns it unquoted, and the rest of the text.
fn unquote(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut out, mut at) = (Vec::new(), 0);
    let (mut single, mut double) = (false, false);
    while let Some(&b) = text.get(at) {
        at += 1;
        match (b, text.get(at)) {
            (b'"', _) if !single => double = !double,
            (b'\'', _) if !double => single = !single,
            (b'\\', Some(&next)) if !single => {
                let escaped = match next {
                    b'\\' | b' ' | b'"' | b'\'' => Some(next),
                    b'r' => Some(b'\r'),
                    b'n' => Some(b'\n'),
                    b't' => Some(b'\t'),
                    _ => None,
                };
                out.push(escaped.unwrap_or(b'\\'));
                at += usize::from(escaped.is_some());
            }
            (b',' | b')', _) if !single && !double => return (out, &text[at - 1..]),
            _ => out.push(b),
        }
    }
    (out, b"")
}

fn compile(word: &[u8], param: Param, position: usize, compiler: &mut Compiler<'_>) -> Result<Arg, String> {
    let kind = param.kind;
    if word.is_empty() && kind != ParamKind::Str {
        if param.required && kind != ParamKind::StrOrVar {
            return Err(format!("expected type '{}' at position {}, but got nothing", kind.name(), position + 1));
        }
        return Ok(Arg::None);
    }
    let wrong = || format!("failed to parse '{}' as type '{}' at position {}", word.escape_ascii(), kind.name(), position + 1);
    let text = std::str::from_utf8(word).unwrap_or_default();
    Ok(match kind {
        ParamKind::Str => Arg::Str(word.into()),
        ParamKind::Header => Arg::Header(HeaderName::new(word)),
        ParamKind::Int => Arg::Int(text.parse().map_err(|_| wrong())?),
        ParamKind::Time => {
            let time = terse_config::words::parse_time(text).map_err(|reason| format!("{}: {reason}", wrong()))?;
            Arg::Int(time.as_millis().try_into().map_err(|_| wrong())?)
        }
        ParamKind::Size => {
            let size = terse_config::words::parse_size(text).map_err(|reason| format!("{}: {reason}", wrong()))?;
            Arg::Int(size.try_into().map_err(|_| wrong())?)
        }
        ParamKind::Var => Arg::Var(compiler.registry.names.slot(text)?),
        ParamKind::IntOrVar => match text.parse() {
            Ok(n) => Arg::Int(n),
            Err(_) => Arg::Var(compiler.registry.names.slot(text)?),
        },
        ParamKind::StrOrVar => match compiler.registry.names.slot(text) {
            Ok(slot) => Arg::Var(slot),
            Err(_) => Arg::Str(word.into()),
        },
        ParamKind::Ipv4 => Arg::Addr(IpAddr::V4(text.parse().map_err(|_| wrong())?)),
        ParamKind::Ipv6 => Arg::Addr(IpAddr::V6(text.parse().map_err(|_| wrong())?)),
        ParamKind::Mask4 => Arg::Addr(mask4(text).ok_or_else(wrong)?.into()),
        ParamKind::Mask6 => Arg::Addr(mask6(text).ok_or_else(wrong)?.into()),
    })
}

/// An IPv4 mask, by its length or its bits.
pub(crate) fn mask4(text: &str) -> Option<Ipv4Addr> {
    match text.parse::<u32>() {
        Ok(len) if len <= 32 => Some(u32::MAX.checked_shl(32 - len).unwrap_or(0).into()),
        Ok(_) => None,
        Err(_) => text.parse().ok(),
    }
}

/// An IPv6 mask, by its length or its bits.
pub(crate) fn mask6(text: &str) -> Option<Ipv6Addr> {
    match text.parse::<u32>() {
        Ok(len) if len <= 128 => Some(u128::MAX.checked_shl(128 - len).unwrap_or(0).into()),
        Ok(_) => None,
        Err(_) => match cast::exact_addr(text.as_bytes())? {
            IpAddr::V6(mask) => Some(mask),
            IpAddr::V4(_) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_unquoted() {
        for (text, word, rest) in [
            (r"a,b)", "a", ",b)"),
            (r"',',x)", ",", ",x)"),
            (r#""a)b" c)"#, "a)b c", ")"),
            (r"\n\'\x)", "\n'\\x", ")"),
            (r"'\n')", "\\n", ")"),
            ("abc", "abc", ""),
        ] {
            assert_eq!(unquote(text.as_bytes()), (word.as_bytes().to_vec(), rest.as_bytes()), "{text}");
        }
    }

    #[test]
    fn masks() {
        assert_eq!(mask4("24"), Some("255.255.255.0".parse().unwrap()));
        assert_eq!(mask4("0"), Some("0.0.0.0".parse().unwrap()));
        assert_eq!(mask4("255.0.0.0"), Some("255.0.0.0".parse().unwrap()));
        assert_eq!(mask4("33"), None);
        assert_eq!(mask6("64"), Some("ffff:ffff:ffff:ffff::".parse().unwrap()));
        assert_eq!(mask6("ffff::"), Some("ffff::".parse().unwrap()));
        assert_eq!(mask6("129"), None);
    }
}
