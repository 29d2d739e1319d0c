//! Target of `set-var`: a variable, and the conditions of the write.

use super::{VarNames, VarScope, VarSlot, Vars};
use crate::value::Value;

/// Target that `set-var(<name>[,<condition>...])` names: a variable, and the conditions under which it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The variable.
    pub slot: VarSlot,
    conditions: u8,
}

impl Target {
    /// A variable that is always written.
    pub const fn always(slot: VarSlot) -> Target {
        Target { slot, conditions: 0 }
    }

    /// Reads the text between the parentheses: `txn.name` or `txn.name,ifnotset,ifnotempty`.
    ///
    /// # Errors
    /// The reason why the name or a condition is invalid.
    pub fn parse(text: &str, names: &mut VarNames) -> Result<Target, String> {
        let mut parts = text.split(',').map(str::trim);
        let slot = names.slot(parts.next().unwrap_or_default())?;
        let mut target = Target::always(slot);
        for word in parts.filter(|word| !word.is_empty()) {
            target = target.when(word)?;
        }
        Ok(target)
    }

    /// The same with another condition.
    ///
    /// # Errors
    /// There is no such condition.
    pub fn when(mut self, condition: &str) -> Result<Target, String> {
        match CONDITIONS.iter().find(|(name, _)| *name == condition) {
            Some((_, bit)) => self.conditions |= bit,
            None => {
                let names: Vec<_> = CONDITIONS.iter().map(|(name, _)| *name).collect();
                return Err(format!("unknown condition '{condition}', expects one of {}", names.join(", ")));
            }
        }
        Ok(self)
    }

    /// Writes the value where the conditions allow it; returns whether it was written.
    pub fn set(self, vars: &Vars<'_>, value: Value<'_>) -> bool {
        (self.conditions == 0 || self.allows(vars, &value)) && vars.set(self.slot, value)
    }

    fn allows(self, vars: &Vars<'_>, new: &Value<'_>) -> bool {
        let old = vars.get(self.slot);
        // Variables of the process exist from the moment that the configuration names them.
        let exists = old.is_some() || self.slot.scope == VarScope::Process;
        // An order counts only between two numbers.
        let order = match (&old, new) {
            (Some(Value::Int(old)), Value::Int(new)) => Some(old.cmp(new)),
            _ => None,
        };
        let forbidden = [
            (IF_EXISTS, !exists),
            (IF_NOT_EXISTS, exists),
            (IF_EMPTY, !has_length(new) || !new.is_empty()),
            (IF_NOT_EMPTY, has_length(new) && new.is_empty()),
            (IF_SET, old.is_none()),
            (IF_NOT_SET, old.is_some()),
            (IF_GREATER, order.is_some_and(|o| o.is_le())),
            (IF_LESS, order.is_some_and(|o| o.is_ge())),
        ];
        !forbidden.iter().any(|&(bit, forbids)| self.conditions & bit != 0 && forbids)
    }
}

/// Whether a value can be empty: a text can, a number or a method cannot.
fn has_length(value: &Value<'_>) -> bool {
    matches!(value, Value::Str(_) | Value::Bin(_))
}

const IF_EXISTS: u8 = 1;
const IF_NOT_EXISTS: u8 = 2;
const IF_EMPTY: u8 = 4;
const IF_NOT_EMPTY: u8 = 8;
const IF_SET: u8 = 16;
const IF_NOT_SET: u8 = 32;
/// The variable's value is greater than the new one.
const IF_GREATER: u8 = 64;
/// The variable's value is less than the new one.
const IF_LESS: u8 = 128;

const CONDITIONS: [(&str, u8); 8] = [
    ("ifexists", IF_EXISTS),
    ("ifnotexists", IF_NOT_EXISTS),
    ("ifempty", IF_EMPTY),
    ("ifnotempty", IF_NOT_EMPTY),
    ("ifset", IF_SET),
    ("ifnotset", IF_NOT_SET),
    ("ifgt", IF_GREATER),
    ("iflt", IF_LESS),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vars::{Limits, ProcessStore, Store};

    fn holds(conditions: &str, scope: &str, old: Option<Value<'static>>, new: Value<'_>) -> bool {
        let mut names = VarNames::default();
        let target = Target::parse(&format!("{scope}.x,{conditions}"), &mut names).unwrap();
        let (process, session) = (ProcessStore::new(names, Limits::default()), Store::default());
        let vars = Vars { process: Some(&process), session: Some(&session), ..Vars::default() };
        vars.write(target.slot, old);
        let written = target.set(&vars, new.clone());
        assert_eq!(written, vars.get(target.slot) == Some(new.store()));
        written
    }

    #[test]
    fn conditions_of_set_var() {
        let text = || Value::str(b"old").store();
        assert!(holds("ifexists", "proc", None, Value::Int(1)));
        assert!(!holds("ifexists", "sess", None, Value::Int(1)));
        assert!(!holds("ifnotexists", "proc", None, Value::Int(1)));
        assert!(holds("ifnotexists", "sess", None, Value::Int(1)));
        assert!(!holds("ifempty", "sess", Some(text()), Value::Bool(false)));
        assert!(holds("ifempty", "sess", Some(text()), Value::str(b"")));
        assert!(!holds("ifnotempty", "sess", Some(text()), Value::str(b"")));
        assert!(holds("ifnotempty", "sess", Some(text()), Value::Int(7)));
        assert!(!holds("ifset", "proc", None, Value::Int(1)));
        assert!(!holds("ifnotset", "sess", Some(text()), Value::Int(1)));
        assert!(holds("ifgt", "sess", Some(text()), Value::Int(55)));
        assert!(!holds("ifgt", "sess", Some(Value::Int(5)), Value::Int(55)));
        assert!(holds("ifgt", "sess", Some(Value::Int(5)), Value::Int(2)));
        assert!(holds("ifgt", "sess", Some(Value::Bool(false)), Value::Bool(true)));
        assert!(holds("ifset,iflt", "sess", Some(Value::Int(5)), Value::Int(55)));
        assert!(!holds("ifset,iflt", "sess", None, Value::Int(55)));
        assert!(Target::parse("sess.x,ifnever", &mut VarNames::default()).is_err());
    }

    #[test]
    fn a_parent_is_never_there() {
        let target = Target::parse("ptxn.x", &mut VarNames::default()).unwrap();
        assert!(!target.set(&Vars::default(), Value::Int(1)));
    }
}
