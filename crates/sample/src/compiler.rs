//! From text to expressions: names found, arguments read, casts checked.

use crate::acl::AclSet;
use crate::argument::{Arg, ArgList, Param, parse_list};
use crate::cast;
use crate::expr::Expr;
use crate::registry::{ConverterKind, FetchKind, Needs, Registry};
use crate::scripted::{self, Callee, Function};
use crate::value::Type;
use std::sync::Arc;
use terse_config::{Args, Fault, Place, Scope};

/// State that the compilation of expressions, conditions and log formats may see and change.
pub struct Compiler<'a> {
    /// Tables and names.
    pub registry: &'a mut Registry,
    /// The ACLs of the section.
    pub acls: &'a AclSet,
    /// Data that will be there when the expression is evaluated.
    pub have: Needs,
    /// Warnings of the line.
    pub warnings: &'a mut Vec<Fault>,
    /// The word that is compiled, for messages.
    pub word: usize,
    /// The name of the section; empty for `global` and nameless `defaults`.
    pub section: Arc<str>,
    /// Place of the line.
    pub place: Place,
}

impl<'a> Compiler<'a> {
    /// A compiler for a line of a section.
    pub fn new(scope: &'a mut Scope<'_>, have: Needs) -> Compiler<'a> {
        Compiler {
            registry: scope.shared.entry(),
            acls: scope.section.settings.entry(),
            have,
            warnings: &mut scope.warnings,
            word: 0,
            section: scope.section.name.clone(),
            place: scope.place.clone(),
        }
    }

    /// A fault at the word that is compiled.
    pub fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.word, reason)
    }

    /// Place of the line, as lists at run time show it.
    pub(crate) fn place_text(&self) -> String {
        format!("file '{}' line {}", self.place.file, self.place.line)
    }

    /// Compiles a text that is one expression. Its needs are not checked against the data that will be there.
    pub fn expression(&mut self, text: &[u8]) -> Result<Expr, Fault> {
        match self.expression_prefix(text)? {
            (expr, b"") => Ok(expr),
            (_, rest) => Err(self.fault(format!("missing comma before '{}' in '{}'", rest.escape_ascii(), text.escape_ascii()))),
        }
    }

    /// Compiles the expression that a text begins with; returns it and the rest of the text.
    pub fn expression_prefix<'t>(&mut self, text: &'t [u8]) -> Result<(Expr, &'t [u8]), Fault> {
        let (mut expr, rest) = self.fetch(text)?;
        let rest = match rest {
            [b',', ..] => self.converters(&mut expr, rest)?,
            _ => rest,
        };
        expr.text = String::from_utf8_lossy(&text[..text.len() - rest.len()]).into_owned();
        Ok((expr, rest))
    }

    /// Compiles an expression from the next word of a line, and from the words after it that are names of converters.
    pub fn expression_words(&mut self, args: &mut Args<'_>) -> Result<Expr, Fault> {
        self.word = args.position();
        let mut expr = self.expression(args.need_bytes("<expression>")?)?;
        while let Some(word) = args.rest().first()
            && self.registry.converter(split_name(&word.bytes).0).is_some()
        {
            self.word = args.position();
            args.take();
            if let rest @ [_, ..] = self.converters(&mut expr, &word.bytes)? {
                return Err(self.fault(format!("missing comma before '{}'", rest.escape_ascii())));
            }
            expr.text = format!("{},{}", expr.text, String::from_utf8_lossy(&word.bytes));
        }
        Ok(expr)
    }

    /// Fails when data that is needed will not be there.
    pub fn check_needs(&self, needs: Needs, text: &str) -> Result<(), Fault> {
        match needs.missing(self.have) {
            Needs::NONE => Ok(()),
            missing => {
                let fault = self.fault(format!("'{text}' needs {}, which is not available here", missing.describe()));
                Err(with_hint(fault, self.kept_hint(missing)))
            }
        }
    }

    /// A hint for a rule at whose place the request has gone.
    pub(crate) fn kept_hint(&self, missing: Needs) -> Option<String> {
        let is_gone = missing.has(Needs::REQUEST) && self.have.has(Needs::RESPONSE);
        is_gone.then(|| "keep it while the request is there: 'http-request set-var(txn.<name>) <expression>'".into())
    }

    fn fetch<'t>(&mut self, text: &'t [u8]) -> Result<(Expr, &'t [u8]), Fault> {
        let (name, rest) = split_name(text);
        if name.is_empty() {
            return Err(self.fault(format!("missing fetch method in '{}'", excerpt(text).escape_ascii())));
        }
        if let Some(bare) = name.strip_prefix(scripted::PREFIX) {
            let callee = self.registry.scripts.clone().and_then(|scripts| scripts.fetch(bare));
            let callee = callee.ok_or_else(|| self.unregistered("fetch method", name, "register_fetches"))?;
            return self.scripted_fetch(callee, name, rest);
        }
        let Some(fetch) = self.registry.fetch(name) else {
            let text = excerpt(text);
            if self.registry.converter(name).is_some() {
                let reason = "it is a converter: a fetch method comes first, and converters behind it with commas between them";
                return Err(self.fault(format!("unknown fetch method '{name}' in '{}': {reason}", text.escape_ascii())));
            }
            let fault = self.fault(format!("unknown fetch method '{name}' in '{}'", text.escape_ascii()));
            return Err(with_hint(fault, self.registry.fetch_near(name)));
        };
        let (run, each) = match fetch.kind {
            FetchKind::One(run) => (run, None),
            FetchKind::Each(run, each) => (run, Some(each)),
            FetchKind::Refused(reason) => return Err(self.fault(format!("fetch method '{name}' is not supported: {reason}"))),
        };
        let (mut args, rest) = self.arguments(rest, fetch.params, "fetch method", name)?;
        if let Some(check) = fetch.check {
            check(&mut args, self).map_err(|reason| self.fault(format!("fetch method '{name}': {reason}")))?;
        }
        let (output, needs) = (fetch.output, fetch.needs);
        self.acls.note(needs);
        Ok((Expr { run, each, args: ArgList::new(args), steps: Vec::new(), output, needs, text: String::new() }, rest))
    }

    /// Adds converters with commas between them, as far as they go; commas at the end have no effect.
    fn converters<'t>(&mut self, expr: &mut Expr, mut text: &'t [u8]) -> Result<&'t [u8], Fault> {
        loop {
            text = &text[text.iter().take_while(|&&b| b == b',').count()..];
            if text.is_empty() {
                return Ok(text);
            }
            text = self.converter(expr, text)?;
            if !text.starts_with(b",") {
                return Ok(text);
            }
        }
    }

    fn converter<'t>(&mut self, expr: &mut Expr, text: &'t [u8]) -> Result<&'t [u8], Fault> {
        let (name, rest) = split_name(text);
        if let Some(bare) = name.strip_prefix(scripted::PREFIX) {
            let callee = self.registry.scripts.clone().and_then(|scripts| scripts.converter(bare));
            let callee = callee.ok_or_else(|| self.unregistered("converter", name, "register_converters"))?;
            return self.scripted_converter(callee, expr, name, rest);
        }
        let Some(converter) = self.registry.converter(name) else {
            let text = excerpt(text);
            if self.registry.fetch(name).is_some() {
                let reason = "it is a fetch method, which stands at the start of an expression";
                return Err(self.fault(format!("unknown converter '{name}' in '{}': {reason}", text.escape_ascii())));
            }
            let fault = self.fault(format!("unknown converter '{name}' in '{}'", text.escape_ascii()));
            return Err(with_hint(fault, self.registry.converter_near(name)));
        };
        if let ConverterKind::Refused(reason) = converter.kind {
            return Err(self.fault(format!("converter '{name}' is not supported: {reason}")));
        }
        if !cast::exists(expr.output, converter.input) {
            let (from, to) = (expr.output.name(), converter.input.name());
            return Err(self.fault(format!("converter '{name}' cannot be applied: it takes a value of type {to}, not {from}")));
        }
        let (mut args, rest) = self.arguments(rest, converter.params, "converter", name)?;
        if let Some(check) = converter.check {
            check(&mut args, self).map_err(|reason| self.fault(format!("invalid arguments in converter '{name}': {reason}")))?;
        }
        if (converter.input, converter.output) != (Type::Any, Type::Any) {
            expr.output = converter.output;
        }
        expr.add(converter, args);
        Ok(rest)
    }

    fn scripted_fetch<'t>(&mut self, callee: Arc<dyn Function>, name: &str, rest: &'t [u8]) -> Result<(Expr, &'t [u8]), Fault> {
        let fetch = &scripted::FETCH;
        let FetchKind::One(run) = fetch.kind else { return Err(self.unregistered("fetch method", name, "register_fetches")) };
        let (mut args, rest) = self.arguments(rest, fetch.params, "fetch method", name)?;
        args.insert(0, Arg::own(Callee(callee)));
        let (output, needs) = (fetch.output, fetch.needs);
        Ok((Expr { run, each: None, args: ArgList::new(args), steps: Vec::new(), output, needs, text: String::new() }, rest))
    }

    fn scripted_converter<'t>(
        &mut self,
        callee: Arc<dyn Function>,
        expr: &mut Expr,
        name: &str,
        rest: &'t [u8],
    ) -> Result<&'t [u8], Fault> {
        let converter = &scripted::CONVERTER;
        if !cast::exists(expr.output, converter.input) {
            let from = expr.output.name();
            return Err(self.fault(format!("converter '{name}' cannot be applied: it takes a value of type string, not {from}")));
        }
        let (mut args, rest) = self.arguments(rest, converter.params, "converter", name)?;
        args.insert(0, Arg::own(Callee(callee)));
        expr.output = converter.output;
        expr.add(converter, args);
        Ok(rest)
    }

    fn unregistered(&self, what: &str, name: &str, how: &str) -> Fault {
        self.fault(format!("unknown {what} '{name}'")).hint(format!("no script that is loaded has registered it by 'core.{how}'"))
    }

    fn arguments<'t>(&mut self, text: &'t [u8], params: &[Param], what: &str, name: &str) -> Result<(Vec<Arg>, &'t [u8]), Fault> {
        parse_list(text, params, self).map_err(|reason| self.fault(format!("{what} '{name}': {reason}")))
    }
}

/// The name at the start of a text, and the rest of the text.
pub(crate) fn split_name(text: &[u8]) -> (&str, &[u8]) {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b':' | b'_' | b'-' | b'+');
    let (name, rest) = text.split_at(text.iter().take_while(|b| is_name(b)).count());
    (std::str::from_utf8(name).unwrap_or_default(), rest)
}

/// The part of a text that an expression may be: it ends before a bracket that closes the construct around the expression.
pub(crate) fn excerpt(text: &[u8]) -> &[u8] {
    let (mut depth, mut quote) = (0usize, None);
    for (at, byte) in text.iter().enumerate() {
        match (byte, quote) {
            (b'\'' | b'"', None) if depth > 0 => quote = Some(byte),
            (_, Some(mark)) => quote = Some(mark).filter(|mark| *mark != byte),
            (b'(', None) => depth += 1,
            (b')', None) => depth = depth.saturating_sub(1),
            (b']', None) if depth == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

pub(crate) fn with_hint(fault: Fault, hint: Option<String>) -> Fault {
    match hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}
