//! Converters that know how far a stream has come, and those that leave something behind: in its captures, or where developers look.

use super::facts;
use crate::facts::{Facts, Slots};
use crate::log::{Capture, LogSettings, Ring};
use crate::phase::record;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use terse_sample::argument::{Arg, Param, ParamKind, may, need};
use terse_sample::{ArgList, Compiler, Converter, Env, Octets, Type, Value};

const SLOT: &[Param] = &[need(ParamKind::Int)];

/// The table.
pub(super) const CONVERTERS: &[Converter] = &[
    Converter::new(
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
    .check(check_when),
    Converter::new("capture-req", Type::Str, Type::Str, "The text, which is also put into a capture of the request.", |value, args, env| {
        capture(value, args, env, |facts| &facts.request_captures, |settings| &settings.request_captures)
    })
    .params(SLOT),
    Converter::new("capture-res", Type::Str, Type::Str, "The text, which is also put into a capture of the response.", |value, args, env| {
        capture(value, args, env, |facts| &facts.response_captures, |settings| &settings.response_captures)
    })
    .params(SLOT),
    Converter::new(
        "debug",
        Type::Any,
        Type::Any,
        "The value, which is also written to a ring, buf0 where none is named, or to stdout or stderr, behind a prefix.",
        |value, args, _| {
            args.own::<Trail>(0)?.write(&value);
            Some(value)
        },
    )
    .params(&[may(ParamKind::Str), may(ParamKind::Str)])
    .check(check_debug),
];

/// A condition of `when` on the stream.
struct When {
    state: State,
    negated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Something went wrong: what `option dontlog-normal` would log.
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

/// Puts a text into a slot of this frontend's captures, if it has it; the text stays what it is.
fn capture<'a>(
    value: Value<'a>,
    args: &ArgList,
    env: &Env<'a>,
    slots: fn(&Facts) -> &Slots,
    declared: fn(&LogSettings) -> &[Capture],
) -> Option<Value<'a>> {
    let text: Octets<'a> = value.into_octets()?;
    if let Some(facts) = facts(env)
        && let Ok(slot) = usize::try_from(args.int(0)?)
        && let Some(Capture { len, .. }) = declared(&facts.frontend().log.settings).get(slot)
    {
        slots(facts).put(slot, text.get(..*len).unwrap_or(&text).into());
    }
    Some(Value::Str(text))
}

/// Where `debug` writes.
pub(crate) struct Trail {
    prefix: Box<str>,
    to: To,
}

enum To {
    Stdout,
    Stderr,
    /// Found when the configuration is complete.
    Ring(Box<str>, OnceLock<Arc<Ring>>),
}

/// Where values go that nothing else is said of: HAProxy's name of it.
const USUAL_RING: &str = "buf0";

fn check_debug(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let text = |at: usize| match args.get(at) {
        Some(Arg::Str(text)) => std::str::from_utf8(text).map_err(|_| "expects text"),
        _ => Ok(""),
    };
    let to = match text(1)? {
        "stdout" => To::Stdout,
        "stderr" => To::Stderr,
        name => To::Ring(if name.is_empty() { USUAL_RING } else { name }.into(), OnceLock::new()),
    };
    let trail = Arc::new(Trail { prefix: text(0)?.into(), to });
    compiler.registry.refer(trail.clone(), compiler.place.clone());
    *args = vec![Arg::Own(terse_sample::argument::Own(trail))];
    Ok(())
}

impl Trail {
    /// The ring that it names.
    pub(crate) fn ring(&self) -> Option<&str> {
        match &self.to {
            To::Ring(name, _) => Some(name),
            To::Stdout | To::Stderr => None,
        }
    }

    /// Whether a ring of that name is made where there is none.
    pub(crate) fn is_usual(&self) -> bool {
        self.ring() == Some(USUAL_RING)
    }

    /// Says which ring that is.
    pub(crate) fn settle(&self, ring: &Arc<Ring>) {
        if let To::Ring(_, found) = &self.to {
            found.get_or_init(|| ring.clone());
        }
    }

    fn write(&self, value: &Value<'_>) {
        let line = self.line(value);
        // Nobody may be there to read it, which is no reason to stop.
        let _ = match &self.to {
            To::Stdout => std::io::stdout().write_all(&[&line, &b"\n"[..]].concat()),
            To::Stderr => std::io::stderr().write_all(&[&line, &b"\n"[..]].concat()),
            To::Ring(_, ring) => {
                ring.get().map(|ring| ring.push(&line));
                Ok(())
            }
        };
    }

    /// `[debug] prefix: type=str <value>`
    fn line(&self, value: &Value<'_>) -> Vec<u8> {
        let name = match value {
            Value::Bool(_) => "bool",
            Value::Int(_) => "sint",
            Value::Addr(address) if address.is_ipv4() => "ipv4",
            Value::Addr(_) => "ipv6",
            Value::Str(_) => "str",
            Value::Bin(_) => "bin",
            Value::Method(_) => "meth",
        };
        let mut line = format!("[debug] {}: type={name} <", self.prefix).into_bytes();
        let text = value.clone().into_octets().unwrap_or(Octets::EMPTY);
        line.extend(text.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { b } else { b'.' }));
        line.push(b'>');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_shows_type_and_text() {
        let trail = Trail { prefix: "p".into(), to: To::Stderr };
        for (value, line) in [
            (Value::Int(-3), "[debug] p: type=sint <-3>"),
            (Value::str(b"a\tb c"), "[debug] p: type=str <a.b c>"),
            (Value::Bool(true), "[debug] p: type=bool <1>"),
        ] {
            assert_eq!(String::from_utf8(trail.line(&value)).unwrap(), line);
        }
    }
}
