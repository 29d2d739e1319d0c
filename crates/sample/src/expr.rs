//! Expressions: a fetch and the converters behind it, `req.hdr(host),lower,field(1,:)`.

use crate::argument::ArgList;
use crate::cast;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::registry::{ConverterRun, FetchEach, FetchRun, Needs};
use crate::value::{Type, Value};
use terse_config::{Args, Fault, Scope};

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expr {
    pub(crate) run: FetchRun,
    pub(crate) each: Option<FetchEach>,
    pub(crate) args: ArgList,
    pub(crate) steps: Vec<Step>,
    pub(crate) output: Type,
    pub(crate) needs: Needs,
    pub(crate) text: String,
}

/// A converter with its arguments, and the cast before it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) input: Type,
    pub(crate) run: ConverterRun,
    pub(crate) args: ArgList,
}

impl Expr {
    /// Reads an expression from the next word of a line. As in HAProxy, words behind it that are names of converters belong to it.
    pub fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, have: Needs) -> Result<Expr, Fault> {
        let mut compiler = Compiler::new(scope, have);
        let expr = compiler.expression_words(args)?;
        compiler.check_needs(expr.needs, &expr.text)?;
        Ok(expr)
    }

    /// The value, or nothing.
    #[inline]
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<Value<'a>> {
        self.convert((self.run)(&self.args, env)?, env)
    }

    /// Gives one value after the other until the visitor says `true`; says whether it did. Only header fields, cookies and their
    /// like have more than one value.
    pub fn each<'a>(&'a self, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
        match self.each {
            None => self.eval(env).is_some_and(visit),
            Some(each) => each(&self.args, env, &mut |value| self.convert(value, env).is_some_and(&mut *visit)),
        }
    }

    /// The type of its values; [`Type::Any`] when only a value can tell.
    pub fn output(&self) -> Type {
        self.output
    }

    /// What must be there for it.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether there is a converter behind the fetch.
    pub fn has_converters(&self) -> bool {
        !self.steps.is_empty()
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What its converters make of a value that does not come from its fetch.
    #[inline]
    pub fn convert<'a>(&'a self, mut value: Value<'a>, env: &Env<'a>) -> Option<Value<'a>> {
        for step in &self.steps {
            value = (step.run)(cast::cast(value, step.input)?, &step.args, env)?;
        }
        Some(value)
    }
}
