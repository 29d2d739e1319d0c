//! Any sequence of sets, unsets and ends of scopes gives the values that a map would, and counts no byte too many.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const SCOPES: [VarScope; 6] =
    [VarScope::Process, VarScope::Session, VarScope::Transaction, VarScope::Request, VarScope::Response, VarScope::Check];

#[derive(Clone, Debug)]
enum Step {
    Set(VarSlot, Value<'static>),
    Unset(VarSlot),
    NextTransaction,
    NextSession,
}

fn slot() -> impl Strategy<Value = VarSlot> {
    (prop::sample::select(SCOPES.to_vec()), prop_oneof![0..20u32, Just(999)]).prop_map(|(scope, index)| VarSlot { scope, index })
}

fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        proptest::collection::vec(any::<u8>(), 0..100).prop_map(|text| Value::str(&text).store()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (slot(), value()).prop_map(|(slot, value)| Step::Set(slot, value)),
        2 => slot().prop_map(Step::Unset),
        1 => Just(Step::NextTransaction),
        1 => Just(Step::NextSession),
    ]
}

/// A process with a thousand names in each scope.
fn process(limits: Limits) -> ProcessStore {
    let mut names = VarNames::default();
    for scope in SCOPES {
        for index in 0..1000 {
            names.slot(&format!("{}.v{index}", scope.name())).unwrap();
        }
    }
    ProcessStore::new(names, limits)
}

/// All scopes of one stream and one check.
#[derive(Default)]
struct Stores {
    session: Store,
    transaction: Store,
    request: Store,
    response: Store,
    check: Store,
}

impl Stores {
    fn vars<'a>(&'a self, process: &'a ProcessStore) -> Vars<'a> {
        Vars {
            process: Some(process),
            session: Some(&self.session),
            transaction: Some(&self.transaction),
            request: Some(&self.request),
            response: Some(&self.response),
            check: Some(&self.check),
        }
    }

    fn next_transaction(&mut self, process: &ProcessStore) {
        process.forget(&self.transaction, Some(&self.session));
        (self.transaction, self.request, self.response) = Default::default();
    }
}

fn play(steps: Vec<Step>, limits: Limits) {
    let process = process(limits);
    let mut stores = Stores::default();
    let mut model: HashMap<(u8, u32), Value<'static>> = HashMap::new();
    let is_of_transaction =
        |scope: u8| [VarScope::Transaction, VarScope::Request, VarScope::Response].iter().any(|s| *s as u8 == scope);
    for step in steps {
        match step {
            Step::Set(slot, value) => {
                let fits = stores.vars(&process).set(slot, value.clone());
                assert!(fits || !limits.is_none());
                match fits {
                    true => model.insert((slot.scope as u8, slot.index), value),
                    false => model.remove(&(slot.scope as u8, slot.index)),
                };
            }
            Step::Unset(slot) => {
                assert!(stores.vars(&process).unset(slot));
                model.remove(&(slot.scope as u8, slot.index));
            }
            Step::NextTransaction => {
                stores.next_transaction(&process);
                model.retain(|(scope, _), _| !is_of_transaction(*scope));
            }
            Step::NextSession => {
                stores.next_transaction(&process);
                process.forget(&stores.session, None);
                stores.session = Store::default();
                model.retain(|(scope, _), _| !is_of_transaction(*scope) && *scope != VarScope::Session as u8);
            }
        }
        let vars = stores.vars(&process);
        for scope in SCOPES {
            for index in (0..21).chain([998, 999]) {
                assert_eq!(vars.get(VarSlot { scope, index }).as_ref(), model.get(&(scope as u8, index)));
            }
        }
        let counted: usize = model.values().map(|value| limits::counted_bytes(Some(value))).sum();
        assert_eq!(process.counted(), if limits.is_none() { 0 } else { counted });
        assert!(limits.global == 0 || counted <= limits.global);
    }
}

proptest! {
    #[test]
    fn variables_are_a_map(steps in proptest::collection::vec(step(), 1..60)) {
        play(steps, Limits::default());
    }

    #[test]
    fn limits_hold(
        steps in proptest::collection::vec(step(), 1..60),
        [global, session, transaction, message, check] in prop::array::uniform5(prop_oneof![Just(0usize), 80..1000usize]),
    ) {
        play(steps, Limits { global, session, transaction, message, check, process: 0 });
    }
}

#[test]
fn a_variable_counts_in_all_scopes_around_it() {
    for limits in [
        Limits { message: 100, ..Limits::default() },
        Limits { transaction: 100, ..Limits::default() },
        Limits { session: 100, ..Limits::default() },
        Limits { process: 100, ..Limits::default() },
        Limits { global: 100, process: 500, ..Limits::default() },
    ] {
        let process = process(limits);
        let stores = Stores::default();
        let vars = stores.vars(&process);
        let slot = VarSlot { scope: VarScope::Request, index: 3 };
        assert!(vars.set(slot, Value::str(b"twelve bytes")), "{limits:?}");
        assert!(!vars.set(slot, Value::str(b"thirteen byte")), "{limits:?}");
        assert_eq!(vars.get(slot), None);
        assert!(vars.set(slot, Value::Int(1)), "{limits:?}");
    }
}

#[test]
fn other_scopes_do_not_count() {
    let process = process(Limits { check: 100, ..Limits::default() });
    let stores = Stores::default();
    let vars = stores.vars(&process);
    for scope in [VarScope::Process, VarScope::Session, VarScope::Request] {
        assert!(vars.set(VarSlot { scope, index: 0 }, Value::str(&[b'x'; 500])));
    }
    assert!(!vars.set(VarSlot { scope: VarScope::Check, index: 0 }, Value::str(&[b'x'; 500])));
}
