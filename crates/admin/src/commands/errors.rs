//! Malformed messages: the last of each proxy's requests and responses.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::halves::{self, Half};
use crate::settings::Level;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use terse_proxy::evidence::{self, Evidence, Origin};
use terse_proxy::log::Zone;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show errors",
    usage: "show errors [<proxy>] [request|response]",
    summary: "show the last malformed request of each frontend, and response of each backend",
    level: Level::Operator,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let plan = &call.context.plan;
    let backends = plan.backends.now();
    let mut halves = halves::of(plan, &backends);
    for word in call.args {
        match word.as_str() {
            "request" => halves.retain(|half| matches!(half, Half::Front(..))),
            "response" => halves.retain(|half| matches!(half, Half::Back(..))),
            "-1" => {}
            name => {
                halves.retain(|half| half.name() == name || half.id().to_string() == name);
                if halves.is_empty() {
                    return Err(Message::error("No such proxy."));
                }
            }
        }
    }
    let zone = plan.sinks.zone();
    let mut text = format!("Total events captured on [{}] : {}\n", date(zone, SystemTime::now()), evidence::events());
    let kept = halves.into_iter().filter_map(|half| match half {
        Half::Front(_, front) => front.tally.exhibit.last(),
        Half::Back(back) => back.tally.exhibit.last(),
    });
    kept.for_each(|evidence| entry(zone, &evidence, &mut text));
    Ok(Answer::Text(text))
}

fn date(zone: &Zone, at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = zone.at(i64::try_from(since.as_secs()).unwrap_or_default());
    let clock = format!("{:02}:{:02}:{:02}.{:03}", time.hour, time.minute, time.second, since.subsec_millis());
    format!("{:02}/{}/{:04}:{clock}", time.day, time.month_name(), time.year)
}

/// As in HAProxy, except for figures of its own buffers. No line is empty: that would end the answer.
fn entry(zone: &Zone, evidence: &Evidence, out: &mut String) {
    let named = |name: Option<&(_, u32)>| {
        name.map_or("<NONE> (#-1)".into(), |(name, id): &(std::sync::Arc<str>, u32)| format!("{name} (#{id})"))
    };
    let frontend = named(Some(&evidence.frontend));
    let date = date(zone, evidence.at);
    let _ = match &evidence.origin {
        None => write!(out, " \n[{date}] frontend {frontend}: invalid request\n  backend <NONE> (#-1), server <NONE> (#-1)"),
        Some(Origin { backend, server }) => {
            let (backend, server) = (named(Some(backend)), named(server.as_ref()));
            write!(out, " \n[{date}] backend {backend}: invalid response\n  frontend {frontend}, server {server}")
        }
    };
    let client = evidence.client.map_or("unix".into(), |client| client.to_string());
    let (event, len, position, flaw) = (evidence.event, evidence.bytes.len(), evidence.position(), evidence.flaw.name());
    let _ = writeln!(out, ", event #{event}, src {client}\n  len {len}, error at position {position}: {flaw}\n  ");
    bytes(&evidence.bytes, out);
}

/// A line of a message per line; a long line is continued in the next, with a `+`.
fn bytes(bytes: &[u8], out: &mut String) {
    let (mut line, mut mark) = (0, ' ');
    let mut shown = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\t' => shown.push_str("\\t"),
            b'\n' => shown.push_str("\\n"),
            b'\r' => shown.push_str("\\r"),
            0x1b => shown.push_str("\\e"),
            b'\\' => shown.push_str("\\\\"),
            b' '..=b'~' => shown.push(char::from(*byte)),
            byte => drop(write!(shown, "\\x{byte:02X}")),
        }
        let ends = *byte == b'\n';
        if ends || shown.len() > LINE_WIDTH || at + 1 == bytes.len() {
            let _ = writeln!(out, "  {line:05}{mark} {shown}");
            (line, mark) = (at + 1, if ends { ' ' } else { '+' });
            shown.clear();
        }
    }
}

/// Approximate width of such lines, as in HAProxy.
const LINE_WIDTH: usize = 68;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn proxies_and_directions_are_chosen() {
        let mut talk = Talk::new(WEB);
        for command in ["show errors", "show errors be", "show errors 2 request", "show errors -1 response", "show errors request"]
        {
            let said = talk.says(command);
            assert!(said.starts_with("Total events captured on [") && said.ends_with("] : 0\n\n"), "{said}");
        }
        assert_eq!(talk.says("show errors nope"), "No such proxy.\n\n");
        talk.client.level = Level::User;
        assert_eq!(talk.says("show errors"), "Permission denied\n\n");
    }

    #[test]
    fn bytes_are_shown_line_by_line() {
        let mut out = String::new();
        bytes(b"GET /\xff HTTP/1.1\r\nA: \\\x1b\t\r\n\r\n", &mut out);
        assert_eq!(out, "  00000  GET /\\xFF HTTP/1.1\\r\\n\n  00017  A: \\\\\\e\\t\\r\\n\n  00025  \\r\\n\n");
        let mut out = String::new();
        bytes(&[b'a'; 100], &mut out);
        assert_eq!(out, format!("  00000  {}\n  00069+ {}\n", "a".repeat(69), "a".repeat(31)));
    }
}
