//! Keywords of `global` for variables: those of the process (`proc.*`), which are set before anything is served, and the memory
//! that variables may take.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, Setting};
use terse_sample::vars::Limits;
use terse_sample::{Compiler, Env, Expr, LogFormat, Needs, Now, Octets, ProcessStore, Registry, Target, Usage, Value, Vars, World};

/// The table.
pub static KEYWORDS: &[Keyword] = &[
    set("set-var", "<name>[,<condition>...] <expression>", "Sets a variable of the process to a value.", |args, scope| {
        let target = target(args, scope)?;
        let value = Assigned::Value(Expr::parse(args, scope, Needs::NONE)?);
        remember(scope, Assignment { target, value });
        Ok(())
    }),
    set("set-var-fmt", "<name>[,<condition>...] <fmt>", "Sets a variable of the process to a text.", |args, scope| {
        let target = target(args, scope)?;
        let word = args.position();
        let format = LogFormat::parse(args, scope, Needs::NONE, Usage::Text)?;
        let mut compiler = Compiler::new(scope, Needs::NONE);
        compiler.word = word;
        compiler.check_needs(format.needs(), args.taken())?;
        remember(scope, Assignment { target, value: Assigned::Text(format) });
        Ok(())
    }),
    limit("tune.vars.global-max-size", "The most memory of all variables.", |args, scope| {
        limits(scope).global = bytes(args)?;
        Ok(())
    }),
    limit("tune.vars.proc-max-size", "The most memory of the process's variables, in which all others count.", |args, scope| {
        limits(scope).process = bytes(args)?;
        Ok(())
    }),
    limit("tune.vars.sess-max-size", "The most memory of a session's variables, with those of its transactions.", |args, scope| {
        limits(scope).session = bytes(args)?;
        Ok(())
    }),
    limit("tune.vars.txn-max-size", "The most memory of a transaction's variables, with those of both messages.", |args, scope| {
        limits(scope).transaction = bytes(args)?;
        Ok(())
    }),
    limit("tune.vars.reqres-max-size", "The most memory of the variables of a request or of a response.", |args, scope| {
        limits(scope).message = bytes(args)?;
        Ok(())
    }),
    limit("tune.vars.check-max-size", "The most memory of a health check's variables.", |args, scope| {
        limits(scope).check = bytes(args)?;
        Ok(())
    }),
];

/// Variables that `global` sets, in order.
#[derive(Default)]
pub struct ProcessVariables {
    assignments: Vec<Assignment>,
}

struct Assignment {
    target: Target,
    value: Assigned,
}

enum Assigned {
    Value(Expr),
    Text(LogFormat),
}

impl ProcessVariables {
    /// Sets the variables.
    pub fn apply(&self, store: &ProcessStore) {
        let env = Env { vars: Vars { process: Some(store), ..Vars::default() }, ..Env::bare(&Outside) };
        for Assignment { target, value } in &self.assignments {
            match value {
                Assigned::Value(expression) => {
                    if let Some(value) = expression.eval(&env) {
                        target.set(&env.vars, value);
                    }
                }
                Assigned::Text(format) => {
                    let mut text = Vec::new();
                    format.write(&env, &mut text);
                    target.set(&env.vars, Value::Str(Octets::from(&text[..])));
                }
            }
        }
    }
}

impl Setting for ProcessVariables {
    fn inherit(&self) -> ProcessVariables {
        ProcessVariables::default()
    }
}

/// The world as it is outside the workers: before there are any, and for the stats socket.
pub struct Outside;

impl World for Outside {
    fn now(&self) -> Now {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { seconds: now.as_secs() as i64, micros: now.subsec_micros() }
    }

    fn random(&self) -> u64 {
        // Each state has keys of its own, which the system's random numbers are the seed of.
        RandomState::new().build_hasher().finish()
    }
}

const fn set(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Done(parser) }
}

const fn limit(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments: "<bytes>", summary, kind: Kind::Done(parser) }
}

fn limits<'a>(scope: &'a mut Scope<'_>) -> &'a mut Limits {
    scope.section.settings.entry()
}

/// A size; 0 is no limit.
fn bytes(args: &mut Args<'_>) -> Result<usize, Fault> {
    let bytes = args.size("<bytes>")?;
    usize::try_from(bytes).map_err(|_| args.fault("expects a size that memory can have"))
}

fn remember(scope: &mut Scope<'_>, assignment: Assignment) {
    scope.section.settings.entry::<ProcessVariables>().assignments.push(assignment);
}

fn target(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Target, Fault> {
    let name = args.need("<name>")?;
    if !name.starts_with("proc.") {
        return Err(args.fault(format!("'{name}' does not live as long as the process: its name has to begin with 'proc.'")));
    }
    let registry: &mut Registry = scope.shared.entry();
    Target::parse(name, &mut registry.names).map_err(|reason| args.fault(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::{Environment, Loader, Settings, Source};

    fn load(lines: &str) -> (Vec<String>, impl FnMut(&str) -> Option<Value<'static>>) {
        let loader = Loader { tables: vec![KEYWORDS, terse_sample::KEYWORDS], environment: Environment::default() };
        let source = Source { name: "t".into(), bytes: format!("global\n{lines}\n").into_bytes() };
        let (mut config, diagnostics) = loader.load(&[source], Settings::default());
        let said = diagnostics.iter().map(|diagnostic| diagnostic.reason.clone()).collect();
        let variables: ProcessVariables = config.global.settings.take().unwrap_or_default();
        let mut registry: Registry = config.shared.take().unwrap_or_default();
        let store = ProcessStore::new(registry.names.clone(), Limits::default());
        variables.apply(&store);
        (said, move |name| store.get(registry.names.slot(name).unwrap().index))
    }

    #[test]
    fn lines_see_what_earlier_ones_have_set() {
        let lines = "set-var proc.a int(12)\nset-var proc.b var(proc.a),div(5)\nset-var-fmt proc.c \"<%[var(proc.b)]>\"\n\
                     set-var proc.u uuid()\nset-var proc.b,ifnotexists int(7)";
        let (said, mut value) = load(lines);
        assert_eq!(said, [""; 0]);
        assert_eq!(value("proc.b"), Some(Value::Int(2)));
        assert_eq!(value("proc.c"), Some(Value::Str(Octets::from(&b"<2>"[..]))));
        assert!(value("proc.u").is_some());
        assert_eq!(value("proc.none"), None);
    }

    #[test]
    fn only_what_is_there_at_start_can_be_used() {
        for line in [
            "set-var txn.a int(1)",
            "set-var proc.a path",
            "set-var-fmt proc.a %[path]",
            "set-var proc.a",
            "set-var proc.a int(1) x",
        ] {
            assert_eq!(load(line).0.len(), 1, "{line}");
        }
    }
}
