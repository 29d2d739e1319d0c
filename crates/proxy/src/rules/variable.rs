//! Variables: `set-var`, `set-var-fmt`, `unset-var`.

use super::{ANY, Action, ActionWord, Flow, RuleSet, TCP, done, rewrite};
use crate::stream::Stream;
use terse_config::{Args, Fault, Scope};
use terse_sample::vars::{Target, VarSlot};
use terse_sample::{Expr, LogFormat, Octets, Registry, Usage, Value};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("set-var(", ANY | TCP, "<name>[,<condition>...]) <expression>", "Sets a variable to a value.", set_var),
    done("set-var-fmt(", ANY | TCP, "<name>[,<condition>...]) <fmt>", "Sets a variable to a text.", set_var_fmt),
    done("unset-var(", ANY | TCP, "<name>)", "Unsets a variable.", unset_var),
];

struct SetVar {
    target: Target,
    value: Expr,
}

impl Action for SetVar {
    fn run(&self, stream: &mut Stream) -> Flow {
        let env = stream.env();
        if let Some(value) = self.value.eval(&env) {
            self.target.set(&env.vars, value);
        }
        Flow::Next
    }
}

struct SetVarFmt {
    target: Target,
    value: LogFormat,
}

impl Action for SetVarFmt {
    fn run(&self, stream: &mut Stream) -> Flow {
        rewrite::with_text(&self.value, stream, |stream, text| {
            self.target.set(&stream.env().vars, Value::Str(Octets::from(text)));
        });
        Flow::Next
    }
}

struct UnsetVar {
    slot: VarSlot,
}

impl Action for UnsetVar {
    fn run(&self, stream: &mut Stream) -> Flow {
        stream.env().vars.unset(self.slot);
        Flow::Next
    }
}

fn set_var(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let target = target(args, scope)?;
    Ok(Box::new(SetVar { target, value: Expr::parse(args, scope, set.have())? }))
}

fn set_var_fmt(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let target = target(args, scope)?;
    Ok(Box::new(SetVarFmt { target, value: LogFormat::parse(args, scope, set.have(), Usage::Text)? }))
}

fn unset_var(args: &mut Args<'_>, scope: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let name = in_parentheses(args)?;
    let registry: &mut Registry = scope.shared.entry();
    let slot = registry.names.slot(name).map_err(|reason| args.fault(reason))?;
    Ok(Box::new(UnsetVar { slot }))
}

fn target(args: &Args<'_>, scope: &mut Scope<'_>) -> Result<Target, Fault> {
    let text = in_parentheses(args)?;
    let registry: &mut Registry = scope.shared.entry();
    Target::parse(text, &mut registry.names).map_err(|reason| args.fault(reason))
}

/// The text in the parentheses of the action's name.
pub(super) fn in_parentheses<'a>(args: &Args<'a>) -> Result<&'a str, Fault> {
    let inside = args.taken().split_once('(').and_then(|(_, inside)| inside.strip_suffix(')'));
    inside.map(str::trim).ok_or_else(|| args.fault(format!("'{}' has no closing parenthesis", args.taken())))
}
