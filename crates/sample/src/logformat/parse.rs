//! Parser of formats: text, `%` and the items after it.

use super::encoding::{Encoding, ItemType};
use super::options::Options;
use super::{Item, LogFormat, Usage};
use crate::cast;
use crate::compiler::{Compiler, with_hint};
use crate::registry::{AliasKind, Needs};
use crate::value::Type;
use terse_config::Fault;

impl Compiler<'_> {
    /// Compiles a format. `self.word` is the word of the line that holds it.
    pub fn log_format(&mut self, text: &[u8], usage: Usage) -> Result<LogFormat, Fault> {
        let mut draft = Draft {
            format: LogFormat::default(),
            literal: Vec::new(),
            blanks: matches!(usage, Usage::Log | Usage::Id),
            name: "".into(),
            http: matches!(usage, Usage::Http | Usage::Id),
            global: None,
        };
        let mut options = Options { mandatory: usage == Usage::Log, http: draft.http, ..Options::default() };
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
        Ok(draft.finish())
    }

    /// Parses the item after a percent sign; returns the rest of the text.
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
            let (flags, word) = (String::from_utf8_lossy(&after[..end]), self.word);
            options = options.change(&flags, |flag| {
                let reason = format!("unknown flag '{flag}' in '%{{{flags}}}', it has no effect");
                self.warnings
                    .push(Fault::new(word, reason).hint("flags are Q, X, E, M, bin, json and cbor, each after '+' or '-'"));
            });
            rest = &after[end + 1..];
        }
        if let Some(after) = rest.strip_prefix(b"[") {
            let (expr, after) = self.expression_prefix(after)?;
            self.check_needs(expr.needs(), expr.text())?;
            if draft.http && expr.needs().has(Needs::BYTES) {
                let reason = format!("'{}' looks at the bytes of a connection, which is one of HTTP here", expr.text());
                self.warnings.push(self.fault(reason));
            }
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
            // The item writes no text: its options hold for the items after it, and an encoding for the whole.
            draft.hold(options);
            draft.name = "".into();
            *common = Options { kind: ItemType::Own, ..options };
            return Ok(after);
        }
        let Some(alias) = self.registry.alias(name) else {
            let fault =
                self.fault(format!("no such format alias '%{}' (a percent sign itself is written '%%')", shown_alias(rest)));
            return Err(with_hint(fault, self.registry.alias_near(name).filter(|_| !name.is_empty())));
        };
        if let AliasKind::Refused(reason) = alias.kind {
            return Err(self.fault(format!("format alias '%{name}' is not supported: {reason}")));
        }
        self.check_needs(alias.needs, &format!("%{name}"))?;
        draft.format.needs = draft.format.needs.or(alias.needs);
        draft.item(Item::Alias(alias.kind, options));
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

/// A format that is not finished.
struct Draft {
    format: LogFormat,
    literal: Vec<u8>,
    /// Runs of blanks become one.
    blanks: bool,
    /// A field's value or a part of a URL: its expressions are not encoded.
    http: bool,
    /// The name of the next item.
    name: Box<str>,
    /// Options of the whole from `%o`: its encoding, and whether binary values stay as they are.
    global: Option<(Option<Encoding>, bool)>,
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

    /// Notes the flags of `%o`. Of several, the whole has the flags of all of them.
    fn hold(&mut self, options: Options) {
        let own = (options.encoding, options.binary);
        self.global = match self.global {
            None if options == Options::default() => None,
            None => Some(own),
            Some((encoding, binary)) => Some((encoding.filter(|encoding| own.0 == Some(*encoding)), binary && own.1)),
        };
    }

    /// Combines the flags of the whole with those of items.
    fn finish(mut self) -> LogFormat {
        self.flush();
        let (encoding, binary) = self.global.unwrap_or_default();
        for item in &mut self.format.items {
            let (Item::Expr(_, options) | Item::Alias(_, options)) = item else { continue };
            options.binary = binary;
            options.encoding = encoding.or(options.encoding).filter(|_| !self.http);
            // An encoding escapes in its own way.
            options.escape &= options.encoding.is_none();
        }
        (self.format.encoding, self.format.binary) = (encoding.filter(|_| !self.http), binary);
        self.format
    }

    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.format.names.push("".into());
            self.format.items.push(Item::Text(std::mem::take(&mut self.literal).into()));
        }
    }
}
