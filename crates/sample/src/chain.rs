//! Operations on numbers, one after the other: `add(txn.a),add(txn.b),mul(2)`.
//!
//! Between two of them no value is made and no scope is looked up. A chain reads its operands from a single source, and a
//! step is a call and a look-up by index. Where the source changes, another chain begins.

use crate::argument::Arg;
use crate::registry::Operation;
use crate::vars::{VarScope, VarSlot, Vars};

/// Operations whose operands come from a single source.
#[derive(Clone, Debug)]
pub(crate) enum Chain {
    /// Numbers of the configuration.
    Constants(Vec<(Operation, i64)>),
    /// The variables of one scope, by index.
    Variables(VarScope, Vec<(Operation, u32)>),
}

impl Chain {
    /// A chain of a single operation, with the operand as [`crate::argument::ParamKind::IntOrVar`] was read.
    pub(crate) fn new(operation: Operation, operand: &Arg) -> Chain {
        match operand {
            Arg::Var(slot) => Chain::Variables(slot.scope, vec![(operation, slot.index)]),
            other => Chain::Constants(vec![(operation, constant(other))]),
        }
    }

    /// Adds an operation; false if its operand comes from another source.
    pub(crate) fn add(&mut self, operation: Operation, operand: &Arg) -> bool {
        match (self, operand) {
            (Chain::Variables(scope, all), Arg::Var(slot)) if *scope == slot.scope => all.push((operation, slot.index)),
            (Chain::Constants(all), Arg::Int(n)) => all.push((operation, *n)),
            _ => return false,
        }
        true
    }

    /// The result; `None` if a variable is not set or holds no number.
    pub(crate) fn run(&self, mut number: i64, vars: &Vars<'_>) -> Option<i64> {
        match self {
            Chain::Constants(all) => {
                for (operation, operand) in all {
                    number = operation(number, *operand);
                }
            }
            Chain::Variables(scope, all) => match vars.store(*scope) {
                Some(store) => {
                    return store.read(|values| {
                        all.iter().try_fold(number, |number, (operation, index)| Some(operation(number, values.number(*index)?)))
                    });
                }
                None => {
                    for (operation, index) in all {
                        let operand = vars.get(VarSlot { scope: *scope, index: *index })?;
                        number = operation(number, operand.into_int()?);
                    }
                }
            },
        }
        Some(number)
    }
}

/// The parameter gives numbers and variables only.
fn constant(operand: &Arg) -> i64 {
    if let Arg::Int(n) = operand { *n } else { 0 }
}
