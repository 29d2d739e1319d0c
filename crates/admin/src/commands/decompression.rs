//! Figures of decoding. HAProxy has no such command.

use super::compression::counts;
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::halves::{self, Half};
use crate::settings::Level;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::decode::Reason;
use terse_compress::decode::counters::Side;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show decompression",
    usage: "show decompression [<proxy>]",
    summary: "show what was decoded, what was not and why, and bombs",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let backends = call.context.plan.backends.now();
    let mut halves = halves::of(&call.context.plan, &backends);
    if let Some(name) = call.args.first() {
        halves.retain(|half| *name == half.name());
        if halves.is_empty() {
            return Err(Message::error("No such proxy."));
        }
    }
    let mut text = String::from("# proxy side direction decoded bytes_in bytes_out bombs broken not_decoded\n");
    for half in halves {
        let (side, counters) = match half {
            Half::Front(_, front) => ("frontend", front.tally.decompression()),
            Half::Back(back) => ("backend", back.tally.decompression()),
        };
        line(half.name(), side, "request", &counters.request, &mut text);
        line(half.name(), side, "response", &counters.response, &mut text);
    }
    Ok(Answer::Text(text))
}

/// A line such as `web frontend response 3 300 1000 1 0 accepted:2,not-coded:7`; a dash where no message was left as it
/// was.
fn line(name: &str, side: &str, direction: &str, counters: &Side, text: &mut String) {
    let [decoded, bytes_in, bytes_out, bombs, broken] =
        [&counters.decoded, &counters.bytes_in, &counters.bytes_out, &counters.bombs, &counters.broken].map(|n| n.load(Relaxed));
    let reasons = counts(Reason::ALL.iter().map(|reason| (reason.name(), counters.passed(*reason))));
    let _ = writeln!(text, "{name} {side} {direction} {decoded} {bytes_in} {bytes_out} {bombs} {broken} {reasons}");
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use terse_compress::decode::counters::Outcome;
    use terse_compress::decode::{Fault, Reason};

    #[test]
    fn both_directions_are_counted() {
        let mut talk = Talk::new(WEB);
        let plan = talk.context.plan.clone();
        let backends = plan.backends.now();
        let counters = &backends[0].tally.of(1).decompression;
        counters.response.count(&Outcome::Decoded { bytes_in: 100, bytes_out: 900, fault: None });
        counters.response.count(&Outcome::Passed(Reason::Accepted));
        counters.request.count(&Outcome::Decoded { bytes_in: 1, bytes_out: 9, fault: Some(Fault::Ratio) });
        let header = "# proxy side direction decoded bytes_in bytes_out bombs broken not_decoded\n";
        let lines = "be backend request 1 1 9 1 0 -\nbe backend response 1 100 900 0 0 accepted:1\n";
        assert_eq!(talk.says("show decompression be"), format!("{header}{lines}\n"));
        assert_eq!(talk.says("show decompression nope"), "No such proxy.\n\n");
        assert!(talk.says("show decompression").lines().count() > 6);
    }
}
