//! The converter that leaves values where developers look: `debug`.

use crate::log::Ring;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use terse_sample::argument::{Arg, ParamKind, may};
use terse_sample::{Compiler, Converter, Octets, Type, Value};

/// The table.
pub(super) const CONVERTERS: &[Converter] = &[Converter::new(
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
.check(check_debug)];

/// Destination of `debug`.
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

/// Ring for values without another destination: HAProxy's name of it.
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

    /// Sets the ring.
    pub(crate) fn settle(&self, ring: &Arc<Ring>) {
        if let To::Ring(_, found) = &self.to {
            found.get_or_init(|| ring.clone());
        }
    }

    fn write(&self, value: &Value<'_>) {
        let line = self.line(value);
        // A failed write, such as without a reader, is no reason to stop.
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
