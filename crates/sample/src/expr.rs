//! Expressions: a fetch and the converters after it, `req.hdr(host),lower,field(1,:)`.

use crate::argument::{Arg, ArgList};
use crate::cast;
use crate::chain::Chain;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::registry::{Converter, ConverterKind, ConverterRun, FetchEach, FetchRun, Needs};
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

/// A step that makes a value of another.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A converter with its arguments, and the cast before it.
    Converter { input: Type, run: ConverterRun, args: ArgList },
    /// Converters of numbers, one after the other.
    Numbers(Chain),
}

impl Expr {
    /// Reads an expression from the next word of a line. As in HAProxy, words after it that are names of converters belong
    /// to it.
    pub fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, have: Needs) -> Result<Expr, Fault> {
        let mut compiler = Compiler::new(scope, have);
        let expr = compiler.expression_words(args)?;
        compiler.check_needs(expr.needs, &expr.text)?;
        Ok(expr)
    }

    /// Returns the value, if there is one.
    #[inline]
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<Value<'a>> {
        self.convert((self.run)(&self.args, env)?, env)
    }

    /// Visits the values one after the other until the visitor returns `true`; returns whether it did. Only header fields,
    /// cookies and their like have more than one value.
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

    /// Needs of its fetch and converters.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether the fetch is followed by a converter.
    pub fn has_converters(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Applies its converters to a value that does not come from its fetch.
    #[inline]
    pub fn convert<'a>(&'a self, mut value: Value<'a>, env: &Env<'a>) -> Option<Value<'a>> {
        for step in &self.steps {
            value = match step {
                Step::Converter { input, run, args } => run(cast::cast(value, *input)?, args, env)?,
                Step::Numbers(chain) => Value::Int(chain.run(value.into_int()?, &env.vars)?),
            };
        }
        Some(value)
    }

    /// Appends a converter.
    pub(crate) fn add(&mut self, converter: &Converter, args: Vec<Arg>) {
        match converter.kind {
            ConverterKind::Done(run) => {
                self.steps.push(Step::Converter { input: converter.input, run, args: ArgList::new(args) });
            }
            ConverterKind::Arithmetic(operation) => {
                let operand = args.into_iter().next().unwrap_or_default();
                if let Some(Step::Numbers(chain)) = self.steps.last_mut()
                    && chain.add(operation, &operand)
                {
                    return;
                }
                self.steps.push(Step::Numbers(Chain::new(operation, &operand)));
            }
            ConverterKind::Refused(_) => {}
        }
    }
}
