//! Variables: names become slots while the configuration loads, a look-up is an array index.
//!
//! ```text
//! VarNames (name -> slot, at load) ... Vars (the scopes that an expression sees) -> Store (one scope's values, by index)
//!                                                                                -> ProcessStore (the process's, with locks)
//! ```
//!
//! A [`Store`] belongs to one thread; every worker sees the [`ProcessStore`], which has a lock for each variable. Memory is counted
//! only where the configuration limits it ([`Limits`]).

mod late;
mod limits;
mod names;
mod process;
mod store;
mod target;

pub use limits::Limits;
pub use names::VarNames;
pub use process::ProcessStore;
pub use store::Store;
pub use target::Target;

use crate::value::Value;

/// Lifetime of a variable.
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
    /// `psess`, `ptxn`, `preq`, `pres`: those of the stream that this stream was made for. HAProxy makes such streams for
    /// its agents and for Lua. Here no stream has a parent, so they are never there, as in an ordinary stream of HAProxy's.
    Parent,
}

/// Scope and index of a variable, known when the configuration has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VarSlot {
    /// The scope.
    pub scope: VarScope,
    /// The index in the scope.
    pub index: u32,
}

/// The stores that an expression can see.
#[derive(Clone, Copy, Default, Debug)]
pub struct Vars<'a> {
    /// The process's.
    pub process: Option<&'a ProcessStore>,
    /// The session's.
    pub session: Option<&'a Store>,
    /// The transaction's.
    pub transaction: Option<&'a Store>,
    /// The request's.
    pub request: Option<&'a Store>,
    /// The response's.
    pub response: Option<&'a Store>,
    /// The health check's.
    pub check: Option<&'a Store>,
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

    /// Sets the variable; returns whether it is set. It is not where its scope does not exist, nor beyond a limit of
    /// memory, which leaves it unset.
    pub fn set(&self, slot: VarSlot, value: Value<'_>) -> bool {
        self.write(slot, Some(value.store()))
    }

    /// Unsets the variable; returns whether its scope exists.
    pub fn unset(&self, slot: VarSlot) -> bool {
        self.write(slot, None)
    }

    /// Whether the scope exists here.
    #[inline]
    pub fn has(&self, scope: VarScope) -> bool {
        match scope {
            VarScope::Process => self.process.is_some(),
            scope => self.store(scope).is_some(),
        }
    }

    fn write(&self, slot: VarSlot, value: Option<Value<'static>>) -> bool {
        match (self.store(slot.scope), self.process) {
            (Some(store), Some(process)) if process.is_limited() => {
                let old = store.get(slot.index);
                let fits = self.recount(slot.scope, old.as_ref(), value.as_ref(), process);
                store.set(slot.index, value.filter(|_| fits));
                fits
            }
            (Some(store), _) => {
                store.set(slot.index, value);
                true
            }
            (None, Some(process)) if slot.scope == VarScope::Process => process.set(slot.index, value),
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn store(&self, scope: VarScope) -> Option<&'a Store> {
        match scope {
            VarScope::Process | VarScope::Parent => None,
            VarScope::Session => self.session,
            VarScope::Transaction => self.transaction,
            VarScope::Request => self.request,
            VarScope::Response => self.response,
            VarScope::Check => self.check,
        }
    }
}

impl VarScope {
    /// All scopes.
    pub const ALL: [VarScope; 7] = [
        VarScope::Process,
        VarScope::Session,
        VarScope::Transaction,
        VarScope::Request,
        VarScope::Response,
        VarScope::Check,
        VarScope::Parent,
    ];

    /// The prefix before the dot; of a parent's scopes, which are four, none.
    pub const fn name(self) -> &'static str {
        match self {
            VarScope::Process => "proc",
            VarScope::Session => "sess",
            VarScope::Transaction => "txn",
            VarScope::Request => "req",
            VarScope::Response => "res",
            VarScope::Check => "check",
            VarScope::Parent => "",
        }
    }
}

#[cfg(test)]
mod tests;
