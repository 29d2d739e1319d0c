//! Criteria: an expression and the patterns that its values are compared with, `path_beg -i -f file /images`.

use crate::compiler::{Compiler, split_name, with_hint};
use crate::env::Env;
use crate::expr::Expr;
use crate::near;
use crate::pattern::{Columns, Matching, Output, Patterns, Use, Way, number};
use crate::registry::Needs;
use crate::value::Type;
use std::net::Ipv4Addr;
use std::sync::Arc;
use terse_config::{Fault, Word};

/// An expression and the patterns that its values are compared with.
#[derive(Clone, Debug)]
pub struct Criterion {
    expr: Expr,
    patterns: Patterns,
}

impl Criterion {
    /// Whether any of the expression's values matches.
    #[inline]
    pub fn eval(&self, env: &Env<'_>) -> bool {
        self.expr.each(env, &mut |value| self.patterns.matches(value))
    }

    /// Needs of its expression.
    pub fn needs(&self) -> Needs {
        self.expr.needs()
    }
}

impl Compiler<'_> {
    /// Reads `<criterion> [flags] [operator] <value>...`; `base` is the index of the first word in the line.
    pub fn criterion(&mut self, words: &[Word], base: usize) -> Result<Criterion, Fault> {
        self.word = base;
        let Some((first, values)) = words.split_first() else {
            return Err(Fault::new(base.saturating_sub(1), "expects a criterion, such as 'path_beg /images'"));
        };
        // After a comma, the next word is a converter.
        let open = std::iter::once(first).chain(values).take_while(|word| word.bytes.ends_with(b",")).count().min(values.len());
        let (more, values) = values.split_at(open);
        let base = base + open;
        let joined: Vec<u8> = std::iter::once(first).chain(more).flat_map(|word| word.bytes.iter().copied()).collect();
        let (expr, derived) = self.criterion_expression(&joined)?;
        // As in HAProxy, an empty word ends the line.
        let end = values.iter().position(|word| word.bytes.is_empty()).unwrap_or(values.len());
        let (values, behind) = values.split_at(end);
        if behind.len() > 1 {
            let fault = Fault::new(base + 1 + end, "what stands behind an empty pattern is not looked at");
            self.warnings.push(fault);
        }
        let mut flags = Flags { matching: derived.or(Matching::of(expr.output())), ..Flags::default() };
        let mut at = 0;
        while let Some(word) = values.get(at).filter(|word| word.bytes.starts_with(b"-")) {
            self.word = base + 1 + at;
            at += 1;
            if word.bytes == b"--" {
                break;
            }
            at += self.flag(word, values.get(at), &expr, &mut flags)?;
        }
        self.word = base;
        let matching = flags.matching.ok_or_else(|| self.no_matching(&expr))?;
        if let Some(derived) = derived
            && derived != matching
            && derived != Matching::Str
        {
            let fault = self.fault(format!("'-m {}' takes the place of the '{}' in the name", matching.name(), derived.name()));
            self.warnings.push(fault);
        }
        if values.is_empty() && !matches!(matching, Matching::Bool | Matching::Found) {
            let text = expr.text();
            self.warnings.push(self.fault(format!(
                "no pattern stands behind '{text}', so it never matches; write '--' if this is meant, '-m found' to ask for existence"
            )));
        }
        let patterns = values.get(at..).unwrap_or_default();
        let numbers: Vec<Word>;
        let patterns = match VERSIONS.contains(&split_name(&joined).0) {
            true => {
                numbers = patterns.iter().map(undotted).collect();
                &numbers
            }
            false => patterns,
        };
        let name = split_name(if derived.is_some() { &joined } else { expr.text().as_bytes() }).0;
        self.line_patterns(patterns, base + 1 + at, matching, name, &mut flags)?;
        Ok(Criterion { expr, patterns: Patterns::new(matching, flags.ways) })
    }

    /// The expression of a criterion, whose fetch may carry a matching method: `path_beg` is `path` with `beg`.
    fn criterion_expression(&mut self, text: &[u8]) -> Result<(Expr, Option<Matching>), Fault> {
        let (name, rest) = split_name(text);
        let is_text = |kind| matches!(kind, Type::Str | Type::Method | Type::Bin | Type::Any);
        let derived = name.rsplit_once('_').filter(|_| self.registry.fetch(name).is_none()).and_then(|(base, suffix)| {
            let fetch = self.registry.fetch(base).filter(|f| is_text(f.output));
            fetch.and(Matching::named(suffix)).map(|matching| (base, matching))
        });
        // In an ACL `hdr` is of the request, wherever the ACL is used.
        let whole = |name: &str| if name == "hdr" { [b"req.hdr", rest].concat() } else { [name.as_bytes(), rest].concat() };
        let expr = self.expression(&whole(derived.map_or(name, |(base, _)| base)));
        let expr = expr.map_err(|fault| match derived.is_none() && self.registry.fetch(name).is_none() && fault.hint.is_none() {
            true => with_hint(fault, self.registry.criterion_near(name, is_text)),
            false => fault,
        });
        // After a converter the converter's type counts.
        expr.map(|expr| match derived {
            Some((_, matching)) if !expr.has_converters() => (expr, Some(matching)),
            _ => (expr, None),
        })
    }

    /// Reads a flag; returns how many of the words after it were its argument.
    fn flag(&mut self, word: &Word, next: Option<&Word>, expr: &Expr, flags: &mut Flags) -> Result<usize, Fault> {
        let name = word.as_str();
        let argument = || next.map(Word::as_str).ok_or_else(|| self.fault(format!("'{name}' expects an argument")));
        match name {
            "-i" => flags.ignore_case = true,
            "-n" => flags.no_names = true,
            "-M" => flags.as_map = true,
            "-u" => {
                let id: u32 =
                    argument()?.parse().map_err(|_| Fault::new(self.word + 1, "the argument of '-u' must be a whole number"))?;
                if self.registry.patterns.find(&format!("#{id}")).is_some() {
                    return Err(Fault::new(self.word + 1, format!("another ACL or map has the number {id} already")));
                }
                flags.id = Some(id);
                return Ok(1);
            }
            "-m" => {
                flags.matching = Some(self.method(argument()?, expr, flags)?);
                flags.forced = true;
                return Ok(1);
            }
            "-f" => {
                let file = argument()?;
                let matching = flags.matching.ok_or_else(|| self.no_matching(expr))?;
                self.file(file, matching, flags)?;
                return Ok(1);
            }
            _ => {
                return Err(self
                    .fault(format!("'{name}' is no flag of an ACL"))
                    .hint("write '--' before patterns that begin with '-'; flags are -i, -n, -m, -f, -M and -u"));
            }
        }
        Ok(0)
    }

    /// `-m <method>`.
    fn method(&self, method: &str, expr: &Expr, flags: &Flags) -> Result<Matching, Fault> {
        if flags.forced || !flags.ways.is_empty() {
            return Err(self.fault("'-m' may stand once, before patterns and files"));
        }
        let Some(matching) = Matching::named(method) else {
            let fault = Fault::new(self.word + 1, format!("unknown matching method '{method}'"));
            let hint = near::hint(method, Matching::names());
            let all = || format!("one of {}", Matching::names().collect::<Vec<_>>().join(", "));
            return Err(with_hint(fault, hint.or_else(|| Some(all()))));
        };
        if !crate::cast::exists(expr.output(), matching.expects()) {
            let (text, output) = (expr.text(), expr.output().name());
            let reason = format!("matching method '{method}' cannot be used with '{text}', whose values are of type {output}");
            return Err(Fault::new(self.word + 1, reason));
        }
        Ok(matching)
    }

    /// `-f <file>`.
    fn file(&mut self, name: &str, matching: Matching, flags: &mut Flags) -> Result<(), Fault> {
        let files = self.registry.files.clone();
        let resolve = |host: &str| files.as_ref().filter(|_| !flags.no_names)?.resolve(host);
        let usage = Use {
            matching,
            ignore_case: flags.ignore_case,
            output: Output::Nothing,
            columns: if flags.as_map { Columns::Two } else { Columns::One },
            as_map: false,
            user: format!("by {} at {}", if flags.as_map { "map" } else { "acl" }, self.place_text()),
            resolve: &resolve,
        };
        let way = self.registry.pattern_file(name, &usage).map_err(|reason| Fault::new(self.word + 1, reason))?;
        flags.ways.push(way);
        Ok(())
    }

    /// The patterns of the line itself. Each line has a reference of its own, so that its patterns can be changed at run
    /// time too.
    fn line_patterns(
        &mut self,
        values: &[Word],
        first: usize,
        matching: Matching,
        name: &str,
        flags: &mut Flags,
    ) -> Result<(), Fault> {
        let files = self.registry.files.clone();
        let resolve = |host: &str| -> Option<Ipv4Addr> { files.as_ref().filter(|_| !flags.no_names)?.resolve(host) };
        let usage = Use {
            matching,
            ignore_case: flags.ignore_case,
            output: Output::Nothing,
            columns: Columns::One,
            as_map: false,
            user: format!("acl '{name}' {}", self.place_text()),
            resolve: &resolve,
        };
        let (reference, way) = self.registry.patterns.of_line(flags.id, &usage).map_err(|reason| self.fault(reason))?;
        let mut operator = None;
        for (value, word) in values.iter().zip(first..) {
            let of_numbers = matches!(matching, Matching::Int | Matching::Len);
            if let Some(named) = Operator::named(&value.bytes).filter(|_| of_numbers) {
                operator = Some(named);
                continue;
            }
            let pattern = match operator.filter(|_| of_numbers && !value.bytes.iter().any(|byte| matches!(byte, b':' | b'-'))) {
                Some(operator) => operator.range(&value.bytes).map_err(|reason| Fault::new(word, reason).hint(OPERATORS))?,
                None => value.bytes.clone(),
            };
            if let Some(end) = pattern.strip_prefix(b"-").filter(|_| of_numbers) {
                let reason = format!("'-{0}' is the range up to {0}, not a negative number", end.escape_ascii());
                self.warnings.push(Fault::new(word, reason).hint("write ':' for ranges"));
            }
            reference.add_early(&pattern, &resolve).map_err(|refusal| {
                let fault = Fault::new(word, refusal.to_string());
                let is_word = of_numbers && pattern.iter().all(u8::is_ascii_alphabetic);
                with_hint(fault, is_word.then(|| OPERATORS.to_owned()))
            })?;
        }
        flags.ways.push(way);
        Ok(())
    }

    fn no_matching(&self, expr: &Expr) -> Fault {
        let text = expr.text();
        self.fault(format!("a matching method must be named with '-m' for '{text}', whose values have no fixed type"))
    }
}

/// Numbers that patterns write as `3.1`: the major version, times 65536, and the minor one.
const VERSIONS: &[&str] = &["req.ssl_ver", "req_ssl_ver"];

/// A version, or a range of them, as the numbers that they are; another word as it is.
fn undotted(word: &Word) -> Word {
    let number = |end: &str| match end.split_once('.') {
        Some((major, minor)) => {
            Some((u32::from(major.parse::<u16>().ok()?) << 16 | u32::from(minor.parse::<u16>().ok()?)).to_string())
        }
        None if end.is_empty() => Some(String::new()),
        None => Some((u32::from(end.parse::<u16>().ok()?) << 16).to_string()),
    };
    let ends =
        std::str::from_utf8(&word.bytes).ok().and_then(|text| text.split([':', '-']).map(number).collect::<Option<Vec<_>>>());
    Word { bytes: ends.map_or_else(|| word.bytes.clone(), |ends| ends.join(":").into_bytes()), span: word.span.clone() }
}

/// Flags between a criterion and its patterns.
#[derive(Default)]
struct Flags {
    ignore_case: bool,
    no_names: bool,
    as_map: bool,
    id: Option<u32>,
    matching: Option<Matching>,
    forced: bool,
    ways: Vec<Arc<Way>>,
}

/// An operator before numbers; it holds for all numbers after it, up to the next operator.
#[derive(Clone, Copy)]
enum Operator {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
}

const OPERATORS: &str = "operators before numbers are eq, ge, gt, le and lt";

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

    /// The pattern with the same meaning.
    fn range(self, text: &[u8]) -> Result<Vec<u8>, String> {
        let wrong = || format!("'{}' is neither a number nor a supported operator", text.escape_ascii());
        let n = number(text).ok_or_else(wrong)?;
        let pattern = match self {
            Operator::Eq => n.to_string(),
            Operator::Ge => format!("{n}:"),
            Operator::Gt => format!("{}:", n.checked_add(1).ok_or_else(wrong)?),
            Operator::Le => format!(":{n}"),
            Operator::Lt => format!(":{}", n.checked_sub(1).ok_or_else(wrong)?),
        };
        Ok(pattern.into_bytes())
    }
}
