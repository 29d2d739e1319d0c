//! ACLs: named tests of a section, `acl <name> <criterion> [flags] [operator] <value>...`.

use crate::compiler::{Compiler, split_name};
use crate::env::Env;
use crate::expr::Expr;
use crate::near;
use crate::pattern::{Matching, Patterns};
use crate::registry::Needs;
use crate::value::Type;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use terse_config::{Args, Fault, Keyword, Kind, Scope, Sections, Setting, Word};

/// A named test. Lines of the same name are alternatives, and those that follow a rule count for that rule too: so a condition
/// holds the ACL, and the ACL a list that only grows while the configuration loads.
#[derive(Default)]
pub struct Acl {
    first: OnceLock<Box<Line>>,
}

struct Line {
    criterion: Criterion,
    next: OnceLock<Box<Line>>,
}

/// An expression and the patterns that its values are compared with.
#[derive(Clone, Debug)]
pub struct Criterion {
    expr: Expr,
    patterns: Patterns,
}

/// The ACLs of a section by name. A section does not see those of its defaults.
#[derive(Default)]
pub struct AclSet {
    by_name: HashMap<String, Arc<Acl>>,
}

/// This crate's keywords.
pub const KEYWORDS: &[Keyword] = &[Keyword {
    name: "acl",
    old_names: &[],
    sections: Sections::PROXY,
    arguments: "<name> <criterion> [-i] [-n] [-m <method>] [-f <file>] [-u <id>] [--] [<operator>] <value>...",
    summary: "Names a test; several lines of one name are alternatives.",
    kind: Kind::Done(parse_acl),
}];

impl Acl {
    /// Adds an alternative.
    pub fn push(&self, criterion: Criterion) {
        let mut line = Box::new(Line { criterion, next: OnceLock::new() });
        let mut end = &self.first;
        while let Err(back) = end.set(line) {
            line = back;
            match end.get() {
                Some(full) => end = &full.next,
                None => return,
            }
        }
    }

    /// Whether one of the alternatives holds.
    pub fn eval(&self, env: &Env<'_>) -> bool {
        self.criteria().any(|criterion| criterion.eval(env))
    }

    /// What must be there for all of its alternatives.
    pub fn needs(&self) -> Needs {
        self.criteria().fold(Needs::NONE, |all, criterion| all.or(criterion.expr.needs()))
    }

    fn criteria(&self) -> impl Iterator<Item = &Criterion> {
        std::iter::successors(self.first.get(), |line| line.next.get()).map(|line| &line.criterion)
    }
}

impl Drop for Acl {
    /// One line after the other: a long list must not use the stack.
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut line) = next {
            next = line.next.take();
        }
    }
}

impl fmt::Debug for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.criteria()).finish()
    }
}

impl Criterion {
    /// Whether one of the expression's values matches.
    #[inline]
    pub fn eval(&self, env: &Env<'_>) -> bool {
        self.expr.each(env, &mut |value| self.patterns.matches(value))
    }
}

impl AclSet {
    /// The ACL of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<Acl>> {
        self.by_name.get(name)
    }

    pub(crate) fn near(&self, name: &str) -> Option<String> {
        near::hint(name, self.by_name.keys().map(String::as_str))
    }
}

impl Setting for AclSet {
    fn inherit(&self) -> AclSet {
        AclSet::default()
    }
}

fn parse_acl(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    if name.is_empty() || split_name(name.as_bytes()).0 != name {
        return Err(args.fault(format!("invalid ACL name '{name}': only letters, digits, '.', ':', '_' and '-' may be in it")));
    }
    if matches!(name, "or") {
        return Err(args.fault("'or' cannot be the name of an ACL: it joins conditions"));
    }
    let base = args.position();
    let words = args.take_rest();
    let criterion = Compiler::new(scope, Needs::ALL).criterion(words, base)?;
    scope.section.settings.entry::<AclSet>().by_name.entry(name.to_owned()).or_default().push(criterion);
    Ok(())
}

impl Compiler<'_> {
    /// Reads `<criterion> [flags] [operator] <value>...`; `base` is the index of the first word in the line.
    pub fn criterion(&mut self, words: &[Word], base: usize) -> Result<Criterion, Fault> {
        self.word = base;
        let Some((first, values)) = words.split_first() else {
            return Err(Fault::new(base.saturating_sub(1), "expects a criterion, such as 'path_beg /images'"));
        };
        let (expr, derived) = self.criterion_expression(&first.bytes)?;
        let mut flags = Flags { matching: derived.or(Matching::of(expr.output())), ..Flags::default() };
        let mut at = 0;
        while let Some(word) = values.get(at).filter(|w| w.bytes.starts_with(b"-")) {
            self.word = base + 1 + at;
            at += 1;
            if word.bytes == b"--" {
                break;
            }
            at += self.flag(word, values.get(at), &expr, &mut flags)?;
        }
        self.word = base;
        let Some(matching) = flags.matching else {
            let text = expr.text();
            return Err(
                self.fault(format!("a matching method must be named with '-m' for '{text}', whose values have no fixed type"))
            );
        };
        let mut patterns = Patterns::new(matching, flags.ignore_case);
        for (name, file) in &flags.files {
            for line in file.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty() && !l.starts_with(b"#")) {
                patterns.add(line).map_err(|reason| self.fault(format!("file '{name}': {reason}")))?;
            }
        }
        for (i, value) in values.iter().enumerate().skip(at) {
            patterns.add(&value.bytes).map_err(|reason| Fault::new(base + 1 + i, reason))?;
        }
        if values.is_empty() && !matches!(matching, Matching::Bool | Matching::Found) {
            let text = expr.text();
            self.warnings.push(self.fault(format!(
                "no pattern stands behind '{text}', so it never matches; write '--' if this is meant, '-m found' to ask for existence"
            )));
        }
        Ok(Criterion { expr, patterns })
    }

    /// The expression of a criterion, whose fetch may carry a matching method: `path_beg` is `path` with `beg`.
    fn criterion_expression(&mut self, text: &[u8]) -> Result<(Expr, Option<Matching>), Fault> {
        let (name, rest) = split_name(text);
        if self.registry.fetch(name).is_none()
            && let Some((base, suffix)) = name.rsplit_once('_')
            && let Some(matching) = Matching::named(suffix)
            && self.registry.fetch(base).is_some_and(|f| matches!(f.output, Type::Str | Type::Method | Type::Bin | Type::Any))
        {
            let expr = self.expression(&[base.as_bytes(), rest].concat())?;
            // Behind a converter it is the converter's type that counts.
            let derived = if expr.has_converters() { None } else { Some(matching) };
            return Ok((expr, derived));
        }
        Ok((self.expression(text)?, None))
    }

    /// Reads one flag; says how many of the words behind it were its argument.
    fn flag(&mut self, word: &Word, next: Option<&Word>, expr: &Expr, flags: &mut Flags) -> Result<usize, Fault> {
        let name = word.as_str();
        let argument = || next.map(Word::as_str).ok_or_else(|| self.fault(format!("'{name}' expects an argument")));
        match name {
            "-i" => flags.ignore_case = true,
            "-n" => {}
            "-u" => {
                argument()?.parse::<u32>().map_err(|_| self.fault("the argument of '-u' must be a whole number"))?;
                return Ok(1);
            }
            "-m" => {
                let method = argument()?;
                if flags.forced || !flags.files.is_empty() {
                    return Err(self.fault("'-m' may stand once, before patterns and files"));
                }
                let Some(matching) = Matching::named(method) else {
                    return Err(Fault::new(self.word + 1, format!("unknown matching method '{method}'")));
                };
                if !crate::cast::exists(expr.output(), matching.expects()) {
                    let (text, output) = (expr.text(), expr.output().name());
                    return Err(Fault::new(
                        self.word + 1,
                        format!("matching method '{method}' cannot be used with '{text}', whose values are of type {output}"),
                    ));
                }
                (flags.matching, flags.forced) = (Some(matching), true);
                return Ok(1);
            }
            "-f" => {
                let file = argument()?;
                let Some(files) = &self.registry.files else { return Err(self.fault("files of patterns cannot be read here")) };
                let bytes = files.read(file).map_err(|reason| Fault::new(self.word + 1, format!("file '{file}': {reason}")))?;
                flags.files.push((file.to_owned(), bytes));
                return Ok(1);
            }
            "-M" => return Err(self.fault("'-M' is not supported: files of patterns are lists here")),
            _ => return Err(self.fault(format!("'{name}' is no flag of an ACL; write '--' before values that begin with '-'"))),
        }
        Ok(0)
    }
}

#[derive(Default)]
struct Flags {
    ignore_case: bool,
    matching: Option<Matching>,
    forced: bool,
    files: Vec<(String, Vec<u8>)>,
}
