//! Maps and ACLs that rules change: `set-map`, `del-map`, `add-acl`, `del-acl`.
//!
//! A rule names a file or a name that a map or an ACL reads somewhere in the configuration. The change is seen by all workers
//! from the next look-up on.

use super::variable::in_parentheses;
use super::{ANY, Action, ActionWord, Flow, RuleSet, done, rewrite};
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::{Args, Fault, Scope};
use terse_sample::pattern::{Change, Reference};
use terse_sample::{LogFormat, Registry, Usage};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("set-map(", ANY, "<file>) <key fmt> <value fmt>", "Puts an entry into a map, or changes it.", |args, scope, set| {
        let reference = reference(args, scope, Change::Put)?;
        let key = format(args, scope, set)?;
        let value = format(args, scope, set)?;
        Ok(Box::new(Put { reference, key, value }))
    }),
    done("del-map(", ANY, "<file>) <key fmt>", "Removes an entry of a map.", remove),
    done("add-acl(", ANY, "<file>) <key fmt>", "Adds a pattern to an ACL's file.", |args, scope, set| {
        let reference = reference(args, scope, Change::Add)?;
        let key = format(args, scope, set)?;
        Ok(Box::new(Add { reference, key }))
    }),
    done("del-acl(", ANY, "<file>) <key fmt>", "Removes a pattern from an ACL's file.", remove),
];

struct Put {
    reference: Arc<Reference>,
    key: LogFormat,
    value: LogFormat,
}

impl Action for Put {
    fn run(&self, stream: &mut Stream) -> Flow {
        rewrite::with_text(&self.key, stream, |stream, key| {
            rewrite::with_text(&self.value, stream, |_, value| {
                // As in HAProxy, a key or a value that the map cannot take changes nothing.
                let _ = self.reference.put(key, value);
            });
        });
        Flow::Next
    }
}

struct Add {
    reference: Arc<Reference>,
    key: LogFormat,
}

impl Action for Add {
    fn run(&self, stream: &mut Stream) -> Flow {
        rewrite::with_text(&self.key, stream, |_, key| {
            // As above.
            let _ = self.reference.add_unless_there(key);
        });
        Flow::Next
    }
}

struct Remove {
    reference: Arc<Reference>,
    key: LogFormat,
}

impl Action for Remove {
    fn run(&self, stream: &mut Stream) -> Flow {
        rewrite::with_text(&self.key, stream, |_, key| self.reference.remove(key));
        Flow::Next
    }
}

fn remove(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let reference = reference(args, scope, Change::Remove)?;
    let key = format(args, scope, set)?;
    Ok(Box::new(Remove { reference, key }))
}

/// The entries that the action's parentheses name.
fn reference(args: &Args<'_>, scope: &mut Scope<'_>, change: Change) -> Result<Arc<Reference>, Fault> {
    let name = in_parentheses(args)?;
    if name.is_empty() {
        return Err(args.fault("expects the name of a file in its parentheses"));
    }
    Ok(scope.shared.entry::<Registry>().patterns.changed(name, change, &scope.place))
}

fn format(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<LogFormat, Fault> {
    LogFormat::parse(args, scope, set.have(), Usage::Text)
}

#[cfg(test)]
mod tests {
    use crate::trial::{self, Trial};

    const ASK: &str = "GET / HTTP/1.1\nHost: a";

    #[test]
    fn entries_come_change_and_go() {
        let trial = Trial::front(
            "http-request set-map(virt@m) %[req.hdr(k)] %[req.hdr(v)] if { req.hdr(v) -m found }
             http-request del-map(virt@m) %[req.hdr(d)] if { req.hdr(d) -m found }
             http-request add-acl(virt@a) %[req.hdr(k)] if { req.hdr(k) -m found }
             http-request del-acl(virt@a) %[req.hdr(d)] if { req.hdr(d) -m found }
             http-request set-var(txn.x) str(one),map_str_int(virt@m,0)
             http-request set-var(txn.a) bool(true) if { str(one) -f virt@a }
             log 127.0.0.1 local0
 log-format %[var(txn.x)]-%[var(txn.a)]",
        );
        let say = |fields: &str| {
            let mut stream = trial.stream(&format!("{ASK}{fields}"));
            assert!(matches!(trial.judge_request(&mut stream), crate::rules::Flow::Next));
            trial.line(&stream)
        };
        assert_eq!(say(""), "0--");
        assert_eq!(say("\nK: one\nV: 1"), "1-1");
        assert_eq!(say("\nK: one\nV: none"), "1-1", "no number");
        assert_eq!(say("\nK: one\nV: 2"), "2-1");
        assert_eq!(say("\nD: one"), "0--");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, said) in [
            ("http-request set-map(x a b", "no closing parenthesis"),
            ("http-request set-map() a b", "expects the name of a file"),
            ("http-request set-map(virt@x) a", "expects"),
            ("http-request del-acl(virt@x)", "expects"),
            ("http-request set-map(virt@x) a b", "no map reads"),
            ("http-request add-acl(virt@x) a\n http-request set-var(txn.x) str(a),map(virt@x)", "has a value"),
            ("http-request set-map(virt@x) a b\n http-request deny if { path -f virt@x }", "no map reads"),
        ] {
            let (_, said_of) = trial::load(&trial::front(line));
            assert!(said_of.iter().any(|text| text.contains(said)), "{line}: {said_of:?}");
        }
    }
}
