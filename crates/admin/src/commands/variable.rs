//! Variables of the process.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use terse_sample::{Env, Octets, Value, VarScope, Vars};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "get var",
        usage: "get var <name>",
        summary: "show a variable of the process",
        level: Level::Operator,
        run: |call| get(call),
    },
    Command {
        name: "set var",
        usage: "set var <name>[,<condition>...] [expr|fmt] <expression>|<format>",
        summary: "set a variable of the process, which may be new",
        level: Level::Operator,
        run: set,
    },
];

fn get(call: &Call<'_>) -> Outcome {
    let name = call.arg(0);
    if name.is_empty() {
        return Err(Message::error(NO_NAME));
    }
    let plan = &call.context.plan;
    let variable = plan.language.variable(name).filter(|slot| slot.scope == VarScope::Process);
    let value = variable.and_then(|slot| plan.process_variables.get(slot.index));
    let value = value.ok_or_else(|| Message::error("Variable not found."))?;
    let kind = kind(&value);
    let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
    let text = match value.into_octets() {
        Some(text) => format!("<{}>", text.iter().map(shown).collect::<String>()),
        None => "(undisplayable)".to_owned(),
    };
    Ok(Answer::Text(format!("{name}: type={kind} value={text}\n")))
}

fn set(call: &mut Call<'_>) -> Outcome {
    if !call.client.experimental {
        return Err(Message::error("This command is restricted to experimental mode only."));
    }
    let (target, kind, text) = match call.args {
        [] => return Err(Message::error(NO_NAME)),
        [_] => return Err(Message::error("Missing either 'expr', 'fmt' or expression.")),
        [target, text] => (target, "expr", text.bytes()),
        [target, kind, text, ..] => (target, kind.as_str(), text.bytes()),
    };
    let is_format = match kind {
        "expr" => false,
        "fmt" => true,
        other => return Err(Message::error(format!("'set var': arg type must be either 'expr' or 'fmt' but got '{other}'."))),
    };
    let plan = &call.context.plan;
    let target = plan.language.target(target).map_err(Message::error)?;
    if target.slot.scope != VarScope::Process {
        let said = format!("'set var': cannot set variable '{}', only scope 'proc' is permitted here.", call.arg(0));
        return Err(Message::error(said));
    }
    let vars = Vars { process: Some(&plan.process_variables), ..Vars::default() };
    let env = Env { vars, ..Env::bare(call.context.host.world()) };
    if is_format {
        let format = plan.language.format(text).map_err(Message::error)?;
        let mut text = Vec::new();
        format.write(&env, &mut text);
        target.set(&vars, Value::Str(Octets::from(text)));
        return Ok(Answer::Done);
    }
    match plan.language.expression(text).map_err(Message::error)?.eval(&env) {
        Some(value) => {
            target.set(&vars, value);
            Ok(Answer::Done)
        }
        None => Err(Message::error(format!(
            "'set var': '{}' has no value here, and the variable is what it was.",
            String::from_utf8_lossy(text)
        ))),
    }
}

/// HAProxy's names of types.
const fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "sint",
        Value::Addr(std::net::IpAddr::V4(_)) => "ipv4",
        Value::Addr(std::net::IpAddr::V6(_)) => "ipv6",
        Value::Str(_) => "str",
        Value::Bin(_) => "bin",
        Value::Method(_) => "meth",
    }
}

const NO_NAME: &str = "Missing process-wide variable identifier.";

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    fn talk() -> Talk {
        let rule = "frontend v\n mode http\n http-request set-var(proc.known) int(1)\n http-request set-var(txn.x) int(1)\n";
        let mut talk = Talk::new(&format!("{WEB}{rule}"));
        assert_eq!(talk.says("experimental-mode on"), "\n");
        talk
    }

    #[test]
    fn what_is_set_is_read() {
        let mut talk = talk();
        assert_eq!(talk.says("get var proc.known"), "Variable not found.\n\n");
        for (set, got) in [
            ("known int(5),add(1)", "known: type=sint value=<6>"),
            ("known expr str(a)", "known: type=str value=<a>"),
            ("new fmt %[var(proc.known)]\\ b", "new: type=str value=<a b>"),
            ("new,ifset bool(true)", "new: type=bool value=<1>"),
            ("new,ifnotset int(7)", "new: type=bool value=<1>"),
            ("new ipv4(192.0.2.1)", "new: type=ipv4 value=<192.0.2.1>"),
            ("b bin(00ff41)", "b: type=bin value=<>"),
        ] {
            assert_eq!(talk.says(&format!("set var proc.{set}")), "\n", "{set}");
            assert_eq!(talk.says(&format!("get var proc.{}", got.split(':').next().unwrap())), format!("proc.{got}\n\n"), "{set}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut talk = talk();
        for (words, said) in [
            ("get var", "Missing process-wide variable identifier."),
            ("get var txn.x", "Variable not found."),
            ("get var known", "Variable not found."),
            ("set var", "Missing process-wide variable identifier."),
            ("set var proc.a", "Missing either 'expr', 'fmt' or expression."),
            ("set var proc.a foo bar", "'set var': arg type must be either 'expr' or 'fmt' but got 'foo'."),
            ("set var txn.x int(1)", "'set var': cannot set variable 'txn.x', only scope 'proc' is permitted here."),
            ("set var proc.a src", "'set var': 'src' has no value here, and the variable is what it was."),
            ("set var proc.a path", "'path' needs the request's head, which is not available here"),
            ("set var proc.a strr(a)", "unknown fetch method 'strr' in 'strr(a)' (did you mean 'str'?)"),
        ] {
            assert_eq!(talk.says(words), format!("{said}\n\n"), "{words}");
        }
        assert!(talk.says("set var proc.a,ifnever int(1)").starts_with("unknown condition 'ifnever'"));
    }

    #[test]
    fn values_are_bytes() {
        let mut talk = talk();
        assert_eq!(talk.says_bytes(b"set var proc.raw str(a\xffb\xe9)"), "\n");
        assert_eq!(talk.says("set var proc.hex var(proc.raw),hex"), "\n");
        assert_eq!(talk.says("get var proc.hex"), "proc.hex: type=str value=<61FF62E9>\n\n");
        assert_eq!(talk.says_bytes(b"set var proc.raw fmt \xfe%[int(1)]"), "\n");
        assert_eq!(talk.says("set var proc.hex var(proc.raw),hex;get var proc.hex"), "\nproc.hex: type=str value=<FE31>\n\n");
    }

    #[test]
    fn setting_is_an_experiment() {
        let mut talk = Talk::new(WEB);
        let refused = "This command is restricted to experimental mode only.\n\n";
        assert_eq!(talk.says("set var proc.a int(1)"), refused);
        assert_eq!(talk.says("experimental-mode"), "experimental-mode is OFF\n\n");
        assert_eq!(talk.says("experimental-mode on; set var proc.a int(1); experimental-mode off"), "\n\n\n");
        assert_eq!(talk.says("set var proc.a int(1)"), refused);
        assert_eq!(talk.says("expert-mode"), "expert-mode is OFF\n\n");
    }
}
