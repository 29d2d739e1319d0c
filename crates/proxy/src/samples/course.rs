//! The converter that knows how far a stream has come: `when`.

use super::facts;
use crate::facts::Facts;
use crate::phase::record;
use terse_sample::argument::{Arg, ParamKind, may, need};
use terse_sample::{Compiler, Converter, Type};

/// The table.
pub(super) const CONVERTERS: &[Converter] = &[Converter::new(
    "when",
    Type::Any,
    Type::Any,
    "The value, under a condition: error, normal, forwarded, processed, toapplet, stopping, or acl,<name>; with ! the opposite.",
    |value, args, env| match args.at(0) {
        Arg::Condition(condition) => condition.eval(env).then_some(value),
        _ => args.own::<When>(0)?.holds(facts(env)?).then_some(value),
    },
)
.params(&[need(ParamKind::Str), may(ParamKind::Str)])
.check(check_when)];

/// A condition of `when` on the stream.
struct When {
    state: State,
    negated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// An error: a case that `option dontlog-normal` would log.
    Error,
    /// A server was connected to.
    Forwarded,
    /// A service of ours answered.
    ToApplet,
    /// Either.
    Processed,
    /// The process drains.
    Stopping,
}

const STATES: [(&str, State, bool); 6] = [
    ("error", State::Error, false),
    ("forwarded", State::Forwarded, false),
    ("normal", State::Error, true),
    ("processed", State::Processed, false),
    ("stopping", State::Stopping, false),
    ("toapplet", State::ToApplet, false),
];

impl When {
    fn holds(&self, facts: &Facts) -> bool {
        let forwarded = facts.times.connected.is_some();
        let holds = match self.state {
            State::Error => record::is_trouble(facts),
            State::Forwarded => forwarded,
            State::ToApplet => facts.by_service,
            State::Processed => forwarded || facts.by_service,
            State::Stopping => !facts.session.worker.is_running(),
        };
        holds != self.negated
    }
}

fn check_when(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let text = |at: usize| match args.get(at) {
        Some(Arg::Str(text)) => std::str::from_utf8(text).unwrap_or_default(),
        _ => "",
    };
    let (word, name) = (text(0), text(1));
    let bare = word.trim_start_matches('!');
    let negated = (word.len() - bare.len()) % 2 == 1;
    let arg = match STATES.iter().find(|(known, ..)| *known == bare) {
        _ if bare == "acl" && name.is_empty() => return Err("'acl' expects the name of an ACL".into()),
        _ if bare == "acl" => {
            let negation = if negated { "!" } else { "" };
            Arg::Condition(Box::new(compiler.all_of(&[&format!("{negation}{name}")])?))
        }
        Some(_) if !name.is_empty() => return Err(format!("condition '{bare}' takes no argument, but is given '{name}'")),
        Some((_, state, opposite)) => Arg::own(When { state: *state, negated: negated != *opposite }),
        None => {
            let known = STATES.map(|(name, ..)| name).join(", ");
            return Err(format!("unknown condition '{bare}', expects acl, {known}"));
        }
    };
    *args = vec![arg];
    Ok(())
}
