//! Formats as they are read: text, `%` and what stands behind it.

use super::encoding::{Encoding, ItemType};
use super::{Item, LogFormat, Options, Usage};
use crate::cast;
use crate::compiler::{Compiler, with_hint};
use crate::registry::AliasKind;
use crate::value::Type;
use terse_config::Fault;

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

impl Options {
    /// `{+Q,-X}`: what changes.
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

fn shown_alias(rest: &[u8]) -> String {
    let end = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len()).max(1);
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
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
