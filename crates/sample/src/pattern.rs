//! Patterns of ACLs: how values are compared with them.

use crate::argument::{mask4, mask6};
use crate::cast;
use crate::octets::Octets;
use crate::regexp;
use crate::value::{Type, Value};
use regex::bytes::Regex;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

/// How values are compared with patterns (`-m <method>`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matching {
    /// `found`: there is a value.
    Found,
    /// `bool`: it is true.
    Bool,
    /// `int`: it lies in one of the ranges.
    Int,
    /// `ip`: it lies in one of the networks.
    Ip,
    /// `bin`: it is one of the strings, which are written in hexadecimal digits.
    Bin,
    /// `len`: its length lies in one of the ranges.
    Len,
    /// `str`: it is one of the strings.
    Str,
    /// `sub`: one of the strings is in it.
    Sub,
    /// `dir`: one of the strings stands between its slashes.
    Dir,
    /// `dom`: one of the strings stands between its dots.
    Dom,
    /// `end`: it ends with one of the strings.
    End,
    /// `beg`: it begins with one of the strings.
    Beg,
    /// `reg`: one of the regular expressions matches.
    Reg,
    /// It is one of the methods; the default for methods.
    Method,
}

/// Compiled patterns.
#[derive(Clone, Debug)]
pub struct Patterns {
    matching: Matching,
    ignore_case: bool,
    /// An operator before numbers holds for all numbers behind it.
    operator: Operator,
    ranges: Vec<(i64, i64)>,
    networks: Vec<Network>,
    texts: Vec<Box<[u8]>>,
    exact: HashSet<Box<[u8]>>,
    regexes: Vec<Regex>,
}

/// A network, IPv4 ones as IPv4-mapped IPv6.
#[derive(Clone, Copy, Debug)]
struct Network {
    address: u128,
    mask: u128,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
}

/// From how many strings on a set is quicker than a list.
const SET_FROM: usize = 8;

impl Matching {
    /// The method of that name.
    pub fn named(name: &str) -> Option<Matching> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, matching)| *matching)
    }

    /// The method that values of a type are matched with when none is named.
    pub const fn of(kind: Type) -> Option<Matching> {
        match kind {
            Type::Bool => Some(Matching::Bool),
            Type::Int => Some(Matching::Int),
            Type::Addr | Type::Ipv4 | Type::Ipv6 => Some(Matching::Ip),
            Type::Str => Some(Matching::Str),
            Type::Method => Some(Matching::Method),
            Type::Any | Type::Bin => None,
        }
    }

    /// The type that it compares.
    pub const fn expects(self) -> Type {
        match self {
            Matching::Found => Type::Any,
            Matching::Bool | Matching::Int => Type::Int,
            Matching::Ip => Type::Addr,
            Matching::Bin => Type::Bin,
            Matching::Method => Type::Method,
            _ => Type::Str,
        }
    }
}

const NAMES: [(&str, Matching); 13] = [
    ("found", Matching::Found),
    ("bool", Matching::Bool),
    ("int", Matching::Int),
    ("ip", Matching::Ip),
    ("bin", Matching::Bin),
    ("len", Matching::Len),
    ("str", Matching::Str),
    ("sub", Matching::Sub),
    ("dir", Matching::Dir),
    ("dom", Matching::Dom),
    ("end", Matching::End),
    ("beg", Matching::Beg),
    ("reg", Matching::Reg),
];

impl Patterns {
    /// No patterns yet.
    pub fn new(matching: Matching, ignore_case: bool) -> Patterns {
        Patterns {
            matching,
            ignore_case,
            operator: Operator::Eq,
            ranges: Vec::new(),
            networks: Vec::new(),
            texts: Vec::new(),
            exact: HashSet::new(),
            regexes: Vec::new(),
        }
    }

    /// How values are compared.
    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// Adds one, as it stands in the configuration or on a line of a file.
    pub fn add(&mut self, pattern: &[u8]) -> Result<(), String> {
        match self.matching {
            Matching::Found | Matching::Bool => {}
            Matching::Int | Matching::Len => {
                if let Some(operator) = Operator::named(pattern) {
                    self.operator = operator;
                } else {
                    self.ranges.push(range(pattern, self.operator)?);
                }
            }
            Matching::Ip => self.networks.push(Network::parse(pattern)?),
            Matching::Reg => self.regexes.push(regexp::compile(pattern, self.ignore_case)?),
            Matching::Bin => self.add_text(&hex(pattern).ok_or_else(|| wrong(pattern, "an even number of hexadecimal digits"))?),
            Matching::Dir => self.add_text(trim(pattern, DIR)),
            Matching::Dom => self.add_text(trim(pattern, DOM)),
            _ => self.add_text(pattern),
        }
        Ok(())
    }

    fn add_text(&mut self, text: &[u8]) {
        let mut text = text.to_vec();
        if self.ignore_case {
            text.make_ascii_lowercase();
        }
        self.texts.push(text.into());
        if matches!(self.matching, Matching::Str | Matching::Bin) && self.texts.len() >= SET_FROM {
            // The set holds all from the moment that there is one.
            let from = if self.exact.is_empty() { 0 } else { self.texts.len() - 1 };
            self.exact.extend(self.texts[from..].iter().cloned());
        }
    }

    /// Whether a value matches one of them.
    pub fn matches(&self, value: Value<'_>) -> bool {
        if self.matching == Matching::Found {
            return true;
        }
        match cast::cast(value, self.matching.expects()) {
            Some(Value::Bool(b)) => self.matches_int(i64::from(b)),
            Some(Value::Int(n)) => self.matches_int(n),
            Some(Value::Addr(address)) => self.matches_addr(address),
            Some(Value::Str(text) | Value::Bin(text) | Value::Method(text)) => self.matches_text(text),
            None => false,
        }
    }

    fn matches_int(&self, n: i64) -> bool {
        match self.matching {
            Matching::Bool => n != 0,
            _ => self.ranges.iter().any(|&(low, high)| low <= n && n <= high),
        }
    }

    fn matches_addr(&self, address: IpAddr) -> bool {
        let bits = mapped(address);
        let holds = |bits: u128| self.networks.iter().any(|n| bits & n.mask == n.address);
        let embedded = || match address {
            IpAddr::V6(_) => Value::Addr(address).cast(Type::Ipv4).and_then(Value::into_addr).map(mapped),
            IpAddr::V4(_) => None,
        };
        holds(bits) || embedded().is_some_and(holds)
    }

    fn matches_text(&self, mut text: Octets<'_>) -> bool {
        match self.matching {
            Matching::Len => return self.matches_int(i64::try_from(text.len()).unwrap_or(i64::MAX)),
            Matching::Reg => return self.regexes.iter().any(|r| r.is_match(&text)),
            _ => {}
        }
        if self.ignore_case && text.iter().any(u8::is_ascii_uppercase) {
            text.to_mut().make_ascii_lowercase();
        }
        let text = &*text;
        let mut texts = self.texts.iter();
        match self.matching {
            Matching::Beg => texts.any(|p| text.starts_with(p)),
            Matching::End => texts.any(|p| text.ends_with(p)),
            Matching::Sub => texts.any(|p| memchr::memmem::find(text, p).is_some()),
            Matching::Dir => texts.any(|p| has_word(text, p, DIR)),
            Matching::Dom => texts.any(|p| has_word(text, p, DOM)),
            _ if !self.exact.is_empty() => self.exact.contains(text),
            _ => texts.any(|p| **p == *text),
        }
    }
}

impl Operator {
    fn named(word: &[u8]) -> Option<Operator> {
        Some(match word {
            b"eq" => Operator::Eq,
            b"ge" => Operator::Ge,
            b"gt" => Operator::Gt,
            b"le" => Operator::Le,
            b"lt" => Operator::Lt,
            _ => return None,
        })
    }
}

impl Network {
    fn parse(pattern: &[u8]) -> Result<Network, String> {
        let wrong = || wrong(pattern, "an address or a network (names of hosts are not looked up)");
        let text = std::str::from_utf8(pattern).map_err(|_| wrong())?;
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().map_err(|_| wrong())?;
        let mask = match (address, mask) {
            (_, None) => u128::MAX,
            (IpAddr::V4(_), Some(mask)) => !u128::from(u32::MAX) | u128::from(u32::from(mask4(mask).ok_or_else(wrong)?)),
            (IpAddr::V6(_), Some(mask)) => u128::from(mask6(mask).ok_or_else(wrong)?),
        };
        Ok(Network { address: mapped(address) & mask, mask })
    }
}

fn mapped(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    address.into()
}

/// `5`, `1:5`, `1:`, `:5`, `1-5`; with an operator a single number.
fn range(pattern: &[u8], operator: Operator) -> Result<(i64, i64), String> {
    let wrong = || wrong(pattern, "a number, a range or an operator");
    let text = std::str::from_utf8(pattern).map_err(|_| wrong())?;
    let number = |text: &str, default: i64| if text.is_empty() { Ok(default) } else { text.parse().map_err(|_| wrong()) };
    if let Some((low, high)) = text.split_once(':') {
        return if text.len() > 1 { Ok((number(low, i64::MIN)?, number(high, i64::MAX)?)) } else { Err(wrong()) };
    }
    if let Some((low, high)) = text.split_once('-')
        && !low.is_empty()
    {
        return Ok((number(low, i64::MIN)?, number(high, i64::MAX)?));
    }
    let n: i64 = text.parse().map_err(|_| wrong())?;
    Ok(match operator {
        Operator::Eq => (n, n),
        Operator::Ge => (n, i64::MAX),
        Operator::Gt => (n.checked_add(1).ok_or_else(wrong)?, i64::MAX),
        Operator::Le => (i64::MIN, n),
        Operator::Lt => (i64::MIN, n.checked_sub(1).ok_or_else(wrong)?),
    })
}

fn wrong(pattern: &[u8], expected: &str) -> String {
    format!("'{}' is not {expected}", pattern.escape_ascii())
}

const DIR: &[u8] = b"/?";
const DOM: &[u8] = b"/?.:";

fn trim<'a>(text: &'a [u8], delimiters: &[u8]) -> &'a [u8] {
    let start = text.iter().take_while(|b| delimiters.contains(b)).count();
    let end = text.iter().rev().take_while(|b| delimiters.contains(b)).count();
    text.get(start..text.len() - end).unwrap_or_default()
}

/// Whether a word, or words with delimiters between them, stands between delimiters or ends of the text.
fn has_word(text: &[u8], word: &[u8], delimiters: &[u8]) -> bool {
    let is_edge = |at: Option<&u8>| at.is_none_or(|b| delimiters.contains(b));
    !word.is_empty()
        && memchr::memmem::find_iter(text, word.get(..1).unwrap_or_default()).any(|at| {
            let before = at.checked_sub(1).and_then(|i| text.get(i));
            text[at..].starts_with(word) && is_edge(before) && is_edge(text.get(at + word.len()))
        })
}

/// Bytes from hexadecimal digits.
pub(crate) fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(matching: &str, ignore_case: bool, patterns: &str, value: &str) -> bool {
        let mut all = Patterns::new(Matching::named(matching).unwrap(), ignore_case);
        for pattern in patterns.split(' ') {
            all.add(pattern.as_bytes()).unwrap();
        }
        all.matches(Value::str(value.as_bytes()))
    }

    #[test]
    fn texts() {
        for (matching, patterns, value, expected) in [
            ("str", "a b", "b", true),
            ("str", "a b", "B", false),
            ("beg", "/x /y", "/yz", true),
            ("end", ".png .gif", "/a.gif", true),
            ("sub", "ell", "hello", true),
            ("sub", "elx", "hello", false),
            ("dir", "b", "/a/b/c", true),
            ("dir", "/b/c/", "/a/b/c?d", true),
            ("dir", "b", "/a/bb/c", false),
            ("dom", "example", "www.example.com:80", true),
            ("dom", "xample", "www.example.com", false),
            ("reg", "^/[a-c]+$", "/abc", true),
            ("len", "gt 3", "abcd", true),
            ("len", "3", "abcd", false),
            ("bin", "616263", "abc", true),
            ("found", "x", "", true),
            ("str", "1 2 3 4 5 6 7 8 9", "9", true),
            ("str", "1 2 3 4 5 6 7 8 9", "1", true),
            ("str", "1 2 3 4 5 6 7 8 9", "0", false),
        ] {
            assert_eq!(matches(matching, false, patterns, value), expected, "{matching} {patterns} {value}");
        }
        assert!(matches("str", true, "AbC", "aBc"));
        assert!(matches("reg", true, "^abc$", "ABC"));
    }

    #[test]
    fn numbers() {
        for (patterns, value, expected) in [
            ("5", "5", true),
            ("1:5", "3", true),
            ("1-5", "6", false),
            (":5", "-100", true),
            ("5:", "4", false),
            ("eq 1 2", "2", true),
            ("ge 5", "5", true),
            ("gt 5", "5", false),
            ("lt 5", "4", true),
            ("le 5", "6", false),
            ("-1", "-1", true),
        ] {
            assert_eq!(matches("int", false, patterns, value), expected, "{patterns} {value}");
        }
        for wrong in ["x", ":", "", "1:x", "9223372036854775808"] {
            assert!(Patterns::new(Matching::Int, false).add(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks() {
        for (patterns, value, expected) in [
            ("127.0.0.0/8 ::1", "127.1.2.3", true),
            ("127.0.0.0/8 ::1", "::1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("192.168.0.0/255.255.0.0", "192.168.3.4", true),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("10.0.0.0/8", "2002:0a01:0101::", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "1.2.3.4", true),
        ] {
            assert_eq!(matches("ip", false, patterns, value), expected, "{patterns} {value}");
        }
        for wrong in ["localhost", "1.2.3.4/33", "1.2.3.4/", "/8", "::1/129"] {
            assert!(Patterns::new(Matching::Ip, false).add(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
