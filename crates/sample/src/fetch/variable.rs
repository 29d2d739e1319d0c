//! Variables and ACLs as values: `var`, `dump_all_vars`, `acl`.

use crate::argument::{Arg, ArgList, Param, ParamKind, may, need};
use crate::cast;
use crate::compiler::Compiler;
use crate::env::Env;
use crate::octets::Octets;
use crate::registry::Fetch;
use crate::value::{Type, Value};
use crate::vars::{VarScope, VarSlot};
use data_encoding::HEXUPPER;

/// HAProxy's limit of arguments.
const NAMES: &[Param] = &{
    let mut names = [may(ParamKind::Str); 12];
    names[0] = need(ParamKind::Str);
    names
};

pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("var", Type::Any, "The value of a variable; the text behind it when it is not set.", var)
        .params(&[need(ParamKind::Var), may(ParamKind::Str)]),
    Fetch::one(
        "dump_all_vars",
        Type::Str,
        "All variables that are set, as name=value; of one scope, of those whose name begins so.",
        dump,
    )
    .params(&[may(ParamKind::Str), may(ParamKind::Str), may(ParamKind::Str)])
    .check(check_dump),
    Fetch::one("acl", Type::Bool, "Whether all of these ACLs hold; '!' before a name asks for the opposite.", acl)
        .params(NAMES)
        .check(check_acl),
];

#[inline]
fn var<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let slot = args.var(0)?;
    match env.vars.get(slot) {
        Some(value) => Some(value),
        // A variable whose scope is missing has no default value either.
        None => args.str(1).filter(|_| env.vars.has(slot.scope)).map(Value::str),
    }
}

/// `dump_all_vars([<scope>[,<prefix>[,<delimiter>]]])`: [`DUMPED`] without a scope, in the order in which the configuration
/// names them. A text is written in quotes, a binary value in hexadecimal digits. Beyond [`MOST_DUMPED`] bytes there is no
/// value.
fn dump<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let names = env.vars.process?.names();
    let scopes = args.own::<VarScope>(0).map_or(&DUMPED[..], std::slice::from_ref);
    let (prefix, delimiter) = (args.str(1).unwrap_or_default(), args.str(2).unwrap_or(b", "));
    let mut out = Vec::new();
    for &scope in scopes.iter().filter(|scope| env.vars.has(**scope)) {
        for (index, name) in (0..).zip(names.of(scope)).filter(|(_, name)| name.as_bytes().starts_with(prefix)) {
            let Some(value) = env.vars.get(VarSlot { scope, index }) else { continue };
            if !out.is_empty() {
                out.extend_from_slice(delimiter);
            }
            out.extend_from_slice(format!("{}.{name}=", scope.name()).as_bytes());
            write_value(value, &mut out);
            if out.len() > MOST_DUMPED {
                return None;
            }
        }
    }
    Some(Value::Str(Octets::from(out)))
}

fn write_value(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(n) => cast::write_decimal(n, out),
        Value::Addr(address) => out.extend_from_slice(address.to_string().as_bytes()),
        Value::Bin(bytes) => out.extend_from_slice(HEXUPPER.encode(&bytes).as_bytes()),
        Value::Str(text) | Value::Method(text) => {
            out.push(b'"');
            for &byte in text.iter() {
                match byte {
                    b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    8 => out.extend_from_slice(b"\\b"),
                    0 => out.extend_from_slice(b"\\0"),
                    byte => out.push(byte),
                }
            }
            out.push(b'"');
        }
    }
}

/// A check's variables are named only where they are asked for.
const DUMPED: [VarScope; 5] = [VarScope::Session, VarScope::Transaction, VarScope::Request, VarScope::Response, VarScope::Process];
/// HAProxy's limit is the buffer (`tune.bufsize`), whose usual size this is.
const MOST_DUMPED: usize = 16 * 1024;

fn check_dump(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(word)) = args.first() else { return Ok(()) };
    if word.is_empty() {
        return Ok(());
    }
    let scope = VarScope::ALL.into_iter().find(|scope| scope.name().as_bytes() == &**word);
    let scope = scope.ok_or_else(|| {
        format!("'{}' is no scope: expects one of proc, sess, txn, req, res and check, or nothing for all", word.escape_ascii())
    })?;
    args[0] = Arg::own(scope);
    Ok(())
}

fn acl<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    match args.at(0) {
        Arg::Condition(condition) => Some(Value::Bool(condition.eval(env))),
        _ => None,
    }
}

fn check_acl(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let names = args.iter().map(|arg| match arg {
        Arg::Str(name) => std::str::from_utf8(name).map_err(|_| "not a name of an ACL".to_owned()),
        _ => Err("expects names of ACLs".to_owned()),
    });
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    let condition = compiler.all_of(&names)?;
    *args = vec![Arg::Condition(Box::new(condition))];
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::vars::{Limits, ProcessStore, Store, VarScope, VarSlot};
    use crate::{Env, Value, Vars, testing::Bench};

    #[test]
    fn variables_that_are_set_are_dumped() {
        let mut bench = Bench::new();
        let mut dumped = |text: &str| {
            let expression = bench.expr(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.reason));
            for name in ["proc.n", "proc.unset", "sess.text", "sess.bin", "txn.yes", "txn.at", "res.r"] {
                bench.registry.names.slot(name).unwrap();
            }
            let process = ProcessStore::new(bench.registry.names.clone(), Limits::default());
            let (session, transaction) = (Store::default(), Store::default());
            let vars =
                Vars { process: Some(&process), session: Some(&session), transaction: Some(&transaction), ..Vars::default() };
            let set = |scope, index, value| assert!(vars.set(VarSlot { scope, index }, value));
            set(VarScope::Process, 0, Value::Int(-7));
            set(VarScope::Session, 0, Value::str(b"a \"b\"\r\n\\"));
            set(VarScope::Session, 1, Value::Bin(b"\x00\xfe"[..].into()));
            set(VarScope::Transaction, 0, Value::Bool(true));
            set(VarScope::Transaction, 1, Value::Addr([192, 0, 2, 1].into()));
            let value = expression.eval(&Env { vars, ..bench.env() }).and_then(Value::into_octets);
            value.map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        let session = r#"sess.text="a \"b\"\r\n\\", sess.bin=00FE"#;
        let all = format!("{session}, txn.yes=true, txn.at=192.0.2.1, proc.n=-7");
        assert_eq!(dumped("dump_all_vars").as_deref(), Some(&*all));
        assert_eq!(dumped("dump_all_vars(sess)").as_deref(), Some(session));
        assert_eq!(dumped("dump_all_vars(txn,a)").as_deref(), Some("txn.at=192.0.2.1"));
        assert_eq!(dumped("dump_all_vars(txn,,;)").as_deref(), Some("txn.yes=true;txn.at=192.0.2.1"));
        assert_eq!(dumped("dump_all_vars(res)").as_deref(), Some(""));
    }

    #[test]
    fn other_scopes_cannot_be_dumped() {
        let fault = Bench::new().expr("dump_all_vars(global)").unwrap_err();
        assert!(fault.reason.contains("'global' is no scope"), "{}", fault.reason);
    }
}
