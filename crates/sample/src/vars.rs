//! Variables: names become slots while the configuration loads, a look-up is an array index.
//!
//! A [`Store`] holds one scope's values in pages that are allocated when a variable on them is first set: ten thousand declared
//! names cost a stream nothing. Stores belong to one thread; the scope of the process is a [`ProcessStore`] with a lock for each
//! variable, because every worker sees it.

use crate::value::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// How long a variable lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum VarScope {
    /// `proc`: the process.
    Process,
    /// `sess`: the client's connection.
    Session,
    /// `txn`: the request and its response.
    Transaction,
    /// `req`: while the request is processed.
    Request,
    /// `res`: while the response is processed.
    Response,
    /// `check`: one health check.
    Check,
}

/// A variable's place, known when the configuration has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VarSlot {
    /// The scope.
    pub scope: VarScope,
    /// The index in the scope.
    pub index: u32,
}

/// The names of all scopes, each with its slot.
#[derive(Clone, Default, Debug)]
pub struct VarNames {
    scopes: [HashMap<String, u32>; VarScope::ALL.len()],
}

/// One scope's values.
#[derive(Default, Debug)]
pub struct Store {
    pages: RefCell<Vec<Option<Box<Page>>>>,
}

/// The process's values.
#[derive(Default, Debug)]
pub struct ProcessStore {
    values: Vec<RwLock<Option<Value<'static>>>>,
}

/// The stores that an expression can see.
#[derive(Clone, Copy, Default, Debug)]
pub struct Vars<'a> {
    /// Of the process.
    pub process: Option<&'a ProcessStore>,
    /// Of the session.
    pub session: Option<&'a Store>,
    /// Of the transaction.
    pub transaction: Option<&'a Store>,
    /// Of the request.
    pub request: Option<&'a Store>,
    /// Of the response.
    pub response: Option<&'a Store>,
    /// Of the health check.
    pub check: Option<&'a Store>,
}

/// What `set-var(<name>[,<condition>...])` names: a variable, and the conditions under which it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The variable.
    pub slot: VarSlot,
    conditions: u8,
}

const PAGE: usize = 16;
type Page = [Option<Value<'static>>; PAGE];

impl Store {
    /// The value, if the variable is set.
    #[inline]
    pub fn get(&self, index: u32) -> Option<Value<'static>> {
        let index = index as usize;
        self.pages.borrow().get(index / PAGE)?.as_ref()?[index % PAGE].clone()
    }

    /// Sets the variable, or unsets it.
    pub fn set(&self, index: u32, value: Option<Value<'static>>) {
        let index = index as usize;
        let pages = &mut *self.pages.borrow_mut();
        if index / PAGE >= pages.len() {
            if value.is_none() {
                return;
            }
            pages.resize_with(index / PAGE + 1, || None);
        }
        pages[index / PAGE].get_or_insert_default()[index % PAGE] = value;
    }

    /// Unsets all, and gives the memory back.
    pub fn clear(&self) {
        self.pages.take();
    }

    /// Whether no variable was set since the store was made or cleared.
    pub fn is_unused(&self) -> bool {
        self.pages.borrow().is_empty()
    }
}

impl ProcessStore {
    /// Room for all names of the process's scope that the configuration holds.
    pub fn new(names: &VarNames) -> ProcessStore {
        ProcessStore { values: (0..names.count(VarScope::Process)).map(|_| RwLock::new(None)).collect() }
    }

    /// The value, if the variable is set.
    pub fn get(&self, index: u32) -> Option<Value<'static>> {
        self.values.get(index as usize)?.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the variable, or unsets it.
    pub fn set(&self, index: u32, value: Option<Value<'static>>) {
        if let Some(slot) = self.values.get(index as usize) {
            *slot.write().unwrap_or_else(PoisonError::into_inner) = value;
        }
    }
}

impl<'a> Vars<'a> {
    /// The value, if the scope exists here and the variable is set.
    #[inline]
    pub fn get(&self, slot: VarSlot) -> Option<Value<'static>> {
        match self.store(slot.scope) {
            Some(store) => store.get(slot.index),
            None if slot.scope == VarScope::Process => self.process?.get(slot.index),
            None => None,
        }
    }

    /// Sets the variable; nothing happens where its scope does not exist.
    pub fn set(&self, slot: VarSlot, value: Value<'_>) {
        self.write(slot, Some(value.store()));
    }

    /// Unsets the variable.
    pub fn unset(&self, slot: VarSlot) {
        self.write(slot, None);
    }

    fn write(&self, slot: VarSlot, value: Option<Value<'static>>) {
        match (self.store(slot.scope), self.process) {
            (Some(store), _) => store.set(slot.index, value),
            (None, Some(process)) if slot.scope == VarScope::Process => process.set(slot.index, value),
            _ => {}
        }
    }

    #[inline]
    fn store(&self, scope: VarScope) -> Option<&'a Store> {
        match scope {
            VarScope::Process => None,
            VarScope::Session => self.session,
            VarScope::Transaction => self.transaction,
            VarScope::Request => self.request,
            VarScope::Response => self.response,
            VarScope::Check => self.check,
        }
    }
}

impl VarNames {
    /// The slot of a name with its scope, `txn.name`; a new name gets a new slot.
    pub fn slot(&mut self, name: &str) -> Result<VarSlot, String> {
        let (scope, rest) = VarNames::split(name)?;
        let names = &mut self.scopes[scope as usize];
        let index = match names.get(rest) {
            Some(&index) => index,
            None => {
                let index = names.len() as u32;
                names.insert(rest.to_owned(), index);
                index
            }
        };
        Ok(VarSlot { scope, index })
    }

    /// The slot of a name that is known already.
    pub fn find(&self, name: &str) -> Option<VarSlot> {
        let (scope, rest) = VarNames::split(name).ok()?;
        let index = *self.scopes[scope as usize].get(rest)?;
        Some(VarSlot { scope, index })
    }

    /// How many names a scope has.
    pub fn count(&self, scope: VarScope) -> usize {
        self.scopes[scope as usize].len()
    }

    /// The names of a scope and their indices, in no order.
    pub fn iter(&self, scope: VarScope) -> impl Iterator<Item = (&str, u32)> {
        self.scopes[scope as usize].iter().map(|(name, &index)| (name.as_str(), index))
    }

    fn split(name: &str) -> Result<(VarScope, &str), String> {
        let found = name.split_once('.').and_then(|(scope, rest)| {
            let scope = VarScope::ALL.into_iter().find(|s| s.name() == scope)?;
            (!rest.is_empty()).then_some((scope, rest))
        });
        let (scope, rest) = found.ok_or_else(|| {
            format!("invalid variable name '{name}': it must start with its scope: proc, sess, txn, req, res or check, and a dot")
        })?;
        match rest.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '-')) {
            Some(wrong) => Err(format!("invalid character '{wrong}' in variable name '{name}'")),
            None => Ok((scope, rest)),
        }
    }
}

impl VarScope {
    const ALL: [VarScope; 6] =
        [VarScope::Process, VarScope::Session, VarScope::Transaction, VarScope::Request, VarScope::Response, VarScope::Check];

    /// The word before the dot.
    pub const fn name(self) -> &'static str {
        match self {
            VarScope::Process => "proc",
            VarScope::Session => "sess",
            VarScope::Transaction => "txn",
            VarScope::Request => "req",
            VarScope::Response => "res",
            VarScope::Check => "check",
        }
    }
}

impl Target {
    /// A variable that is always written.
    pub const fn always(slot: VarSlot) -> Target {
        Target { slot, conditions: 0 }
    }

    /// Reads what stands between the parentheses: `txn.name` or `txn.name,ifnotset,ifnotempty`.
    pub fn parse(text: &str, names: &mut VarNames) -> Result<Target, String> {
        let mut parts = text.split(',').map(str::trim);
        let slot = names.slot(parts.next().unwrap_or_default())?;
        let mut target = Target::always(slot);
        for word in parts.filter(|word| !word.is_empty()) {
            target = target.when(word)?;
        }
        Ok(target)
    }

    /// The same with one more condition.
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

    /// Writes the value where the conditions allow it.
    pub fn set(self, vars: &Vars<'_>, value: Value<'_>) {
        if self.conditions == 0 || self.allows(vars, &value) {
            vars.set(self.slot, value);
        }
    }

    fn allows(self, vars: &Vars<'_>, new: &Value<'_>) -> bool {
        let old = vars.get(self.slot);
        // Variables of the process exist from the moment that the configuration names them.
        let exists = old.is_some() || self.slot.scope == VarScope::Process;
        // An order counts only between two scalars.
        let order = old.as_ref().and_then(scalar).zip(scalar(new)).map(|(old, new)| old.cmp(&new));
        let forbidden = [
            (IF_EXISTS, !exists),
            (IF_NOT_EXISTS, exists),
            (IF_EMPTY, !new.is_empty()),
            (IF_NOT_EMPTY, new.is_empty()),
            (IF_SET, old.is_none()),
            (IF_NOT_SET, old.is_some()),
            (IF_GREATER, order.is_some_and(|o| o.is_le())),
            (IF_LESS, order.is_some_and(|o| o.is_ge())),
        ];
        !forbidden.iter().any(|&(bit, forbids)| self.conditions & bit != 0 && forbids)
    }
}

const IF_EXISTS: u8 = 1;
const IF_NOT_EXISTS: u8 = 2;
const IF_EMPTY: u8 = 4;
const IF_NOT_EMPTY: u8 = 8;
const IF_SET: u8 = 16;
const IF_NOT_SET: u8 = 32;
/// What the variable holds is greater than the new value.
const IF_GREATER: u8 = 64;
/// What the variable holds is less than the new value.
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

fn scalar(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        Value::Bool(b) => Some(i64::from(*b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slots_once() {
        let mut names = VarNames::default();
        let a = names.slot("txn.a").unwrap();
        let b = names.slot("txn.b-c.d_e").unwrap();
        assert_eq!((a.index, b.index), (0, 1));
        assert_eq!(names.slot("txn.a").unwrap(), a);
        assert_eq!(names.slot("sess.a").unwrap().index, 0);
        assert_eq!(names.find("txn.none"), None);
        for wrong in ["", "a", "txn.", "foo.a", "txn.a b", ".a"] {
            assert!(names.slot(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unset_storage_costs_nothing() {
        let store = Store::default();
        store.set(9_999, None);
        assert!(store.is_unused());
        store.set(9_999, Some(Value::Int(1)));
        assert_eq!(store.get(9_999), Some(Value::Int(1)));
        assert_eq!(store.get(9_998), None);
        assert_eq!(store.get(5), None);
        assert_eq!(store.pages.borrow().iter().flatten().count(), 1);
        store.clear();
        assert!(store.is_unused());
    }

    fn holds(conditions: &str, scope: &str, old: Option<Value<'static>>, new: Value<'_>) -> bool {
        let mut names = VarNames::default();
        let target = Target::parse(&format!("{scope}.x,{conditions}"), &mut names).unwrap();
        let (process, session) = (ProcessStore::new(&names), Store::default());
        let vars = Vars { process: Some(&process), session: Some(&session), ..Vars::default() };
        vars.write(target.slot, old);
        target.set(&vars, new.clone());
        vars.get(target.slot) == Some(new.store())
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
        assert!(holds("ifset,iflt", "sess", Some(Value::Int(5)), Value::Int(55)));
        assert!(!holds("ifset,iflt", "sess", None, Value::Int(55)));
        assert!(Target::parse("sess.x,ifnever", &mut VarNames::default()).is_err());
    }
}
