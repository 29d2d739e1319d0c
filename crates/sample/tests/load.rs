//! The use of the crate by others: keywords that read expressions, formats and conditions from a configuration, and a
//! stream that evaluates them.

use std::any::Any;
use terse_config::{
    Args, Config, Diagnostics, Environment, Fault, Keyword, Kind, Loader, Scope, Sections, Setting, Settings, Source,
};
use terse_message::Request;
use terse_sample::{Condition, Env, Expr, Fetch, LogFormat, Needs, Now, Registry, Store, Target, Type, Usage, Value, Vars, World};

/// Facts of a stream in a crate above.
struct Stream {
    backend: String,
}

const FETCHES: &[Fetch] = &[Fetch::one("be_name", Type::Str, "The backend's name.", |_, env| {
    env.facts::<Stream>().map(|stream| Value::str(stream.backend.as_bytes()))
})];

const KEYWORDS: &[Keyword] = &[
    keyword("set", "<name>[,<condition>...] <expression> [if | unless <condition>]", parse_set),
    keyword("say", "<format> [if | unless <condition>]", parse_say),
];

const fn keyword(name: &'static str, arguments: &'static str, parser: terse_config::Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary: "A rule.", kind: Kind::Done(parser) }
}

#[derive(Default)]
struct Rules(Vec<(Rule, Option<Condition>)>);

enum Rule {
    Set(Target, Expr),
    Say(LogFormat),
}

impl Setting for Rules {
    fn inherit(&self) -> Rules {
        Rules::default()
    }
}

fn parse_set(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    let target = Target::parse(name, &mut scope.shared.entry::<Registry>().names).map_err(|reason| args.fault(reason))?;
    let expr = Expr::parse(args, scope, Needs::REQUEST)?;
    let condition = Condition::parse(args, scope, Needs::REQUEST)?;
    scope.section.settings.entry::<Rules>().0.push((Rule::Set(target, expr), condition));
    Ok(())
}

fn parse_say(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let format = LogFormat::parse(args, scope, Needs::REQUEST, Usage::Text)?;
    let condition = Condition::parse(args, scope, Needs::REQUEST)?;
    scope.section.settings.entry::<Rules>().0.push((Rule::Say(format), condition));
    Ok(())
}

struct Still;

impl World for Still {
    fn now(&self) -> Now {
        Now::default()
    }
    fn random(&self) -> u64 {
        0
    }
}

fn load(text: &str) -> (Config, Diagnostics) {
    let mut shared = Settings::default();
    shared.entry::<Registry>().add_fetches(FETCHES);
    let loader = Loader { tables: vec![terse_sample::KEYWORDS, KEYWORDS], environment: Environment::default() };
    loader.load(&[Source { name: "test.cfg".into(), bytes: text.as_bytes().to_vec() }], shared)
}

fn run(text: &str) -> String {
    let (config, diagnostics) = load(text);
    let reasons: Vec<_> = diagnostics.iter().map(|d| d.reason.clone()).collect();
    assert!(reasons.is_empty(), "{reasons:?}");
    let mut request = Request::default();
    request.set_method(b"GET");
    request.set_target(b"/images/a.png?x=1");
    let stream = Stream { backend: "be1".into() };
    let transaction = Store::default();
    let facts: &dyn Any = &stream;
    let env = Env {
        request: Some(&request),
        facts,
        vars: Vars { transaction: Some(&transaction), ..Vars::default() },
        ..Env::bare(&Still)
    };
    let mut out = Vec::new();
    for section in &config.sections {
        for (rule, condition) in section.settings.get::<Rules>().map(|r| &r.0[..]).unwrap_or_default() {
            if condition.as_ref().is_some_and(|c| !c.eval(&env)) {
                continue;
            }
            match rule {
                Rule::Set(target, expr) => {
                    if let Some(value) = expr.eval(&env) {
                        target.set(&env.vars, value);
                    }
                }
                Rule::Say(format) => format.write(&env, &mut out),
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn rules_see_acls_variables_and_facts() {
    let said = run("frontend f\n\
        \tacl images path_beg /images\n\
        \tset txn.ext path,field(2,.) if images\n\
        \tset txn.ext str(other) unless images\n\
        \tset txn.ext,ifnotset str(late)\n\
        \tsay \"%[var(txn.ext)] %[be_name] \" if images { query -m sub x= } or FALSE\n\
        \tsay no if !images\n\
        \tset txn.up path upper\n\
        \tsay %[var(txn.up)]\n");
    assert_eq!(said, "png be1 /IMAGES/A.PNG");
}

#[test]
fn what_is_wrong_has_its_place() {
    for (line, column, said) in [
        ("say %[pth]", 4, "unknown fetch method 'pth'"),
        ("say %[path] if { path_bog /x }", 17, "unknown fetch method 'path_bog'"),
        ("say %[path] if nothing", 15, "no such ACL: 'nothing'"),
        ("say %[status]", 4, "the response's head"),
        ("set foo.x path", 4, "invalid variable name 'foo.x'"),
        ("acl a path -m", 11, "'-m' expects an argument"),
        ("acl a src 1.2.3.4 1.2.3", 18, "'1.2.3' is not a valid IPv4 or IPv6 address"),
        ("acl a", 4, "expects a criterion"),
        ("acl a! path", 4, "invalid ACL name"),
    ] {
        let (_, diagnostics) = load(&format!("frontend f\n{line}\n"));
        let all: Vec<_> = diagnostics.iter().collect();
        assert_eq!(all.len(), 1, "{line}: {all:?}");
        assert!(all[0].reason.contains(said), "{line}: {}", all[0].reason);
        assert_eq!(all[0].place.as_ref().map(|p| p.span.start), Some(column), "{line}");
    }
}

#[test]
fn acls_of_defaults_need_a_name_and_are_not_inherited() {
    assert!(load("defaults\nacl a always_true\n").1.iter().any(|d| d.reason.contains("without a name")));
    let (_, diagnostics) = load("defaults d\nacl a always_true\nfrontend f from d\nsay x if a\n");
    assert!(diagnostics.iter().any(|d| d.reason.contains("no such ACL: 'a'")));
}

#[test]
fn an_acl_that_was_refused_is_not_said_to_be_missing() {
    let (_, diagnostics) = load("frontend f\nacl a path -z\nacl a path -y\nsay x if a\nsay x if !a\nsay x if b\n");
    let lines: Vec<_> = diagnostics.iter().map(|d| d.place.as_ref().map_or(0, |place| place.line)).collect();
    assert_eq!(lines, [2, 3, 6]);
}

#[test]
fn what_a_configuration_holds_can_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Expr>();
    shared::<Condition>();
    shared::<LogFormat>();
    shared::<terse_sample::ProcessStore>();
}
