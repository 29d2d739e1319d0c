//! Generated JavaScript: functions, loops, objects and comments from a small grammar, with names put together from the words that
//! programs are made of.
//!
//! It parses, does nothing when run but define functions, and shrinks under gzip as a library's source does: 132 KB to a third at level 6, 38 % at level 1.

use super::rng::Rng;
use super::words::{NOUNS, PROSE, VERBS};
use super::{STAMP_BYTES, Template};
use std::collections::HashSet;
use std::fmt::Write;

/// A script of exactly so many bytes (at least 200), with a stamp in about every `stamp_every` bytes.
pub fn script(seed: u64, bytes: usize, stamp_every: usize) -> Template {
    let mut writer = Writer {
        rng: Rng::new(seed),
        out: String::with_capacity(bytes + 4096),
        depth: 0,
        declared: HashSet::new(),
        locals: Vec::new(),
    };
    let mut stamps = Vec::new();
    let mut misfits = 0;
    while misfits < MISFITS_MOST {
        if writer.out.len() >= stamps.len() * stamp_every && writer.out.len() + 100 < bytes {
            let _ = write!(writer.out, "/*! build ");
            stamps.push(writer.out.len());
            let _ = writeln!(writer.out, "{} */", "0".repeat(STAMP_BYTES));
        }
        let end = writer.out.len();
        if writer.rng.percent(TABLE_PERCENT) {
            writer.table();
        } else {
            writer.function();
        }
        if writer.out.len() + PADDING_LEAST > bytes {
            writer.out.truncate(end);
            misfits += 1;
        }
    }
    writer.pad(bytes);
    Template { bytes: writer.out.into_bytes(), stamps }
}

struct Writer {
    rng: Rng,
    out: String,
    depth: usize,
    /// The functions so far.
    declared: HashSet<String>,
    /// Names that the current function may use: its parameters and variables.
    locals: Vec<String>,
}

impl Writer {
    fn function(&mut self) {
        let name = self.fresh_global();
        self.locals.clear();
        for _ in 0..1 + self.rng.below(3) {
            let parameter = self.fresh_local();
            self.locals.push(parameter);
        }
        if self.rng.percent(45) {
            self.comment();
        }
        let parameters = self.locals.join(", ");
        let _ = match self.rng.below(3) {
            0 => writeln!(self.out, "export function {name}({parameters}) {{"),
            1 => writeln!(self.out, "const {name} = ({parameters}) => {{"),
            _ => writeln!(self.out, "function {name}({parameters}) {{"),
        };
        self.depth = 1;
        for _ in 0..2 + self.rng.below(5) {
            if self.rng.percent(15) {
                self.comment();
            }
            self.statement();
        }
        let value = self.expression(2);
        let _ = writeln!(self.out, "  return {value};\n}}\n");
        self.depth = 0;
    }

    /// A constant list of numbers, as libraries carry them: weights, code points, tables of an algorithm.
    fn table(&mut self) {
        let name = self.fresh_global();
        let _ = write!(self.out, "const {name} = [");
        let digits = 2 + self.rng.below(5) as u32;
        for i in 0..24 + self.rng.below(60) {
            let number = self.rng.below(10usize.pow(digits));
            let _ = write!(self.out, "{}{number},", if i % 16 == 0 { "\n  " } else { " " });
        }
        self.out.push_str("\n];\n\n");
    }

    fn comment(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            self.indent();
            self.out.push_str("//");
            for _ in 0..4 + self.rng.below(11) {
                let word = self.prose();
                let _ = write!(self.out, " {word}");
            }
            self.out.push('\n');
        }
    }

    /// A word of a comment, bent a little.
    fn prose(&mut self) -> String {
        let (list, endings) = match self.rng.below(5) {
            0..=1 => (PROSE, &[""][..]),
            2 => (VERBS, &["", "s", "ed", "ing", "able"][..]),
            _ => (NOUNS, &["", "", "s", "-wise", "'s"][..]),
        };
        format!("{}{}", self.rng.pick(list), self.rng.pick(endings))
    }

    fn statement(&mut self) {
        self.indent();
        match self.rng.below(if self.depth < 3 { 11 } else { 6 }) {
            0..=2 => {
                let value = self.expression(2);
                let local = self.fresh_local();
                let keyword = if self.rng.percent(75) { "const" } else { "let" };
                let _ = writeln!(self.out, "{keyword} {local} = {value};");
                self.locals.push(local);
            }
            3 => {
                let (target, member, value) = (self.path(), self.member(), self.expression(2));
                let _ = writeln!(self.out, "{target}.{member} = {value};");
            }
            4 => {
                let call = self.call(2);
                let _ = writeln!(self.out, "{call};");
            }
            5 => {
                let condition = self.condition();
                let value = if self.rng.percent(50) { "null".to_owned() } else { self.expression(1) };
                let _ = writeln!(self.out, "if ({condition}) return {value};");
            }
            6 | 7 => {
                let condition = self.condition();
                self.block(&format!("if ({condition})"));
                if self.rng.percent(30) {
                    self.indent();
                    self.block("else");
                }
            }
            8 => {
                let (item, list) = (self.rng.pick(NOUNS), self.path());
                self.block(&format!("for (const {item} of {list})"));
            }
            9 => {
                let (list, verb, item) = (self.path(), self.rng.pick(&["forEach", "map", "filter", "some"]), self.rng.pick(NOUNS));
                let value = self.expression(2);
                let _ = writeln!(self.out, "{list}.{verb}(({item}) => ({value}));");
            }
            _ => {
                self.block("try");
                self.indent();
                let message = self.message();
                let _ = writeln!(self.out, "catch (error) {{ throw new Error('{message}', {{ cause: error }}); }}");
            }
        }
    }

    fn block(&mut self, head: &str) {
        let _ = writeln!(self.out, "{head} {{");
        self.depth += 1;
        for _ in 0..1 + self.rng.below(3) {
            self.statement();
        }
        self.depth -= 1;
        self.indent();
        self.out.push_str("}\n");
    }

    fn condition(&mut self) -> String {
        let left = self.path();
        match self.rng.below(6) {
            0 => format!("!{left}"),
            1 => format!("typeof {left} === '{}'", self.rng.common(&["string", "function", "undefined", "object", "number"])),
            2 => format!("{left}.length > {}", self.rng.below(12)),
            3 => format!("{left} && {}", self.path()),
            4 => format!("{left} === {}", self.literal()),
            _ => format!("{left} !== {}", self.path()),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return if self.rng.percent(70) { self.path() } else { self.literal() };
        }
        match self.rng.below(9) {
            0 | 1 => self.path(),
            2 | 3 => self.call(depth),
            4 => format!(
                "{} {} {}",
                self.path(),
                self.rng.common(&["+", "-", "||", "*", "&&", "%", "|", ">>"]),
                self.expression(depth - 1)
            ),
            5 => {
                let fields: Vec<_> =
                    (0..1 + self.rng.below(4)).map(|_| format!("{}: {}", self.member(), self.expression(depth - 1))).collect();
                format!("{{ {} }}", fields.join(", "))
            }
            6 => format!("({}) ? {} : {}", self.condition(), self.expression(depth - 1), self.expression(depth - 1)),
            7 => format!("[{}, {}]", self.expression(depth - 1), self.expression(depth - 1)),
            _ => self.literal(),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        let (target, verb) = (self.path(), self.rng.pick(VERBS));
        let arguments: Vec<_> = (0..self.rng.below(3)).map(|_| self.expression(depth - 1)).collect();
        format!("{target}.{verb}({})", arguments.join(", "))
    }

    fn path(&mut self) -> String {
        let own = self.rng.below(self.locals.len() + 1);
        let mut path = match self.locals.get(own) {
            Some(local) => local.clone(),
            None => self.rng.common(&["this", "options", "state", "context", "document", "window"]).to_owned(),
        };
        while self.rng.percent(35) {
            path.push('.');
            let member = self.member();
            path.push_str(&member);
        }
        path
    }

    /// A property's name: one word, or two of them joined.
    fn member(&mut self) -> String {
        let mut name = self.rng.pick(NOUNS).to_owned();
        if self.rng.percent(COMPOUND_PERCENT) {
            capital(&mut name, self.rng.pick(NOUNS));
        }
        name
    }

    fn literal(&mut self) -> String {
        match self.rng.below(6) {
            0 => self.rng.common(&["true", "false", "null", "undefined"]).to_owned(),
            1 | 2 => [0, 1, 2, 10, 16, 100, 255, 1000][self.rng.below(8)].to_string(),
            3 if self.rng.percent(50) => format!("0x{:x}", self.rng.number() >> 40),
            3 => self.rng.below(100_000).to_string(),
            4 => format!("'{}'", self.message()),
            _ => format!("'{}-{}'", self.rng.pick(NOUNS), self.rng.pick(NOUNS)),
        }
    }

    fn message(&mut self) -> String {
        let words: Vec<_> = (0..2 + self.rng.below(4)).map(|_| self.prose().replace('\'', "")).collect();
        words.join(" ")
    }

    /// A name that no function or table has yet.
    fn fresh_global(&mut self) -> String {
        loop {
            let name = self.name();
            if self.declared.insert(name.clone()) {
                return name;
            }
        }
    }

    /// A name that the function at hand does not have yet.
    fn fresh_local(&mut self) -> String {
        loop {
            let name = if self.rng.percent(60) { self.rng.pick(NOUNS).to_owned() } else { self.name() };
            if !self.locals.contains(&name) {
                return name;
            }
        }
    }

    fn name(&mut self) -> String {
        let (verb, noun) = (self.rng.pick(VERBS), self.rng.pick(NOUNS));
        let mut name = verb.to_owned();
        capital(&mut name, noun);
        if self.rng.percent(COMPOUND_PERCENT) {
            capital(&mut name, self.rng.pick(NOUNS));
        }
        name
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    /// Fills the script up to so many bytes with a last comment.
    fn pad(&mut self, bytes: usize) {
        self.out.push_str("//");
        while self.out.len() + 1 < bytes {
            let word = self.rng.pick(PROSE);
            let _ = write!(self.out, " {word}");
        }
        self.out.truncate(bytes - 1);
        self.out.push('\n');
    }
}

/// Adds a word with a capital letter.
fn capital(name: &mut String, word: &str) {
    name.extend(word.chars().take(1).map(|c| c.to_ascii_uppercase()));
    name.push_str(&word[1..]);
}

/// Percentage of names that have more words than they need. As for [`TABLE_PERCENT`].
const COMPOUND_PERCENT: usize = 45;

/// Percentage of items that are tables of numbers: raised until gzip left as much of a script as of a real one.
const TABLE_PERCENT: usize = 27;

/// Room for the last comment.
const PADDING_LEAST: usize = 4;

/// Number of functions that do not fit into the remaining bytes before the rest is filled with a comment.
const MISFITS_MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_size_asked_for_and_stays_the_same() {
        for bytes in [200, 8192, 131_882] {
            let one = script(7, bytes, 4096);
            assert_eq!(one.bytes.len(), bytes);
            assert_eq!(one.bytes, script(7, bytes, 4096).bytes);
            assert_ne!(one.bytes, script(8, bytes, 4096).bytes);
            assert!(one.stamps.iter().all(|&at| one.bytes[at..at + STAMP_BYTES].iter().all(|&b| b == b'0')));
        }
    }
}
