//! Limits of the memory of variables (`tune.vars.*-max-size`).
//!
//! A variable counts against its own scope and against those around it: a request's variable counts against the
//! transaction, the session and the process too. Without limits nothing is counted.

use super::{ProcessStore, Store, VarScope, Vars};
use crate::value::Value;
use terse_config::Setting;

/// The limits, in bytes; 0 is none. A setting of `global`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// `tune.vars.global-max-size`: of all scopes together.
    pub global: usize,
    /// `tune.vars.proc-max-size`: of the process's scope, in which all others count: the same as `global`.
    pub process: usize,
    /// `tune.vars.sess-max-size`: of a session.
    pub session: usize,
    /// `tune.vars.txn-max-size`: of a transaction.
    pub transaction: usize,
    /// `tune.vars.reqres-max-size`: of the processing of a request or of a response.
    pub message: usize,
    /// `tune.vars.check-max-size`: of a health check.
    pub check: usize,
}

impl Setting for Limits {
    fn inherit(&self) -> Limits {
        *self
    }
}

impl Limits {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    /// Most bytes that may be counted in the whole process.
    pub(super) fn widest(&self) -> usize {
        [self.global, self.process].into_iter().filter(|limit| *limit > 0).min().unwrap_or(usize::MAX)
    }

    /// Most bytes that a store of a scope may count; the process's limit is elsewhere.
    fn of(&self, scope: VarScope) -> usize {
        let limit = match scope {
            VarScope::Session => self.session,
            VarScope::Transaction => self.transaction,
            VarScope::Request | VarScope::Response => self.message,
            VarScope::Check => self.check,
            VarScope::Process | VarScope::Parent => 0,
        };
        if limit == 0 { usize::MAX } else { limit }
    }
}

impl Vars<'_> {
    /// Counts a change of a variable; when the new value does not fit, counts the removal of the variable. Returns whether
    /// it fits.
    pub(super) fn recount(
        &self,
        scope: VarScope,
        old: Option<&Value<'_>>,
        new: Option<&Value<'_>>,
        process: &ProcessStore,
    ) -> bool {
        let (before, after) = (counted_bytes(old), counted_bytes(new));
        let around = scopes_around(scope).iter().filter_map(|scope| Some((self.store(*scope)?, process.limits().of(*scope))));
        let count = |from: usize, to: usize| {
            around.clone().for_each(|(store, _)| store.bytes.set(store.bytes.get().saturating_sub(from) + to));
        };
        let fits = after <= before
            || around.clone().all(|(store, limit)| store.bytes.get() - before.min(store.bytes.get()) + after <= limit);
        if fits && process.recount(before, after) {
            count(before, after);
            return true;
        }
        process.recount(before, 0);
        count(before, 0);
        false
    }
}

impl ProcessStore {
    /// Ends a store, and with it its variables: they no longer count in the store around it, and in the process.
    pub fn forget(&self, ended: &Store, around: Option<&Store>) {
        let bytes = ended.bytes.take();
        if bytes > 0 {
            self.recount(bytes, 0);
            if let Some(around) = around {
                around.bytes.set(around.bytes.get().saturating_sub(bytes));
            }
        }
    }
}

/// The scopes whose stores count a variable of a scope, from the narrowest.
const fn scopes_around(scope: VarScope) -> &'static [VarScope] {
    match scope {
        VarScope::Request => &[VarScope::Request, VarScope::Transaction, VarScope::Session],
        VarScope::Response => &[VarScope::Response, VarScope::Transaction, VarScope::Session],
        VarScope::Transaction => &[VarScope::Transaction, VarScope::Session],
        VarScope::Session => &[VarScope::Session],
        VarScope::Check => &[VarScope::Check],
        VarScope::Process | VarScope::Parent => &[],
    }
}

/// Bytes that a variable counts for: its node, and the bytes of a text.
pub(super) fn counted_bytes(value: Option<&Value<'_>>) -> usize {
    match value {
        None => 0,
        Some(Value::Str(text) | Value::Bin(text) | Value::Method(text)) => NODE_BYTES + text.len(),
        Some(_) => NODE_BYTES,
    }
}

/// The size of HAProxy 3.5's `struct var` on 64 bits: limits that were chosen there mean the same here.
const NODE_BYTES: usize = 88;
