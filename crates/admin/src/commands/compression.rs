//! Figures of compression. HAProxy has no such command.

use super::memory;
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::halves::{self, Half};
use crate::savings::Savings;
use crate::settings::Level;
use serde::Serialize;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::{Counters, Layer, Reason, Recall};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show compression",
    usage: "show compression [json|<proxy>]",
    summary: "show what was compressed, what was not and why, and the queue; as JSON with microseconds and bytes",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    if call.args == ["json"] {
        let savings = Savings::of(call.context);
        let json = serde_json::to_string(&Document { v: 1, savings: &savings });
        return json.map(|json| Answer::Text(json + "\n")).map_err(|error| Message::error(error.to_string()));
    }
    let backends = call.context.plan.backends.now();
    let mut halves = halves::of(&call.context.plan, &backends);
    if let Some(name) = call.args.first() {
        halves.retain(|half| *name == half.name());
        if halves.is_empty() {
            return Err(Message::error("No such proxy."));
        }
    }
    let mut text = String::from("# proxy side responses bytes_in bytes_out bypassed not_compressed memory hops\n");
    for half in halves {
        let (side, counters) = match half {
            Half::Front(_, front) => ("frontend", front.tally.compression()),
            Half::Back(back) => ("backend", back.tally.compression()),
        };
        proxy(half.name(), side, &counters, &mut text);
    }
    if call.args.is_empty() {
        codings(call, &mut text);
        queue(call, &mut text);
        memory::show(&call.context.plan, &mut text);
    }
    Ok(Answer::Text(text))
}

/// A line such as `web frontend 3 1000 300 0 head:2,too-small:7 hit:2,new:1 content:3,none:9`.
fn proxy(name: &str, side: &str, counters: &Counters, text: &mut String) {
    let [responses, bytes_in, bytes_out, bypassed] =
        [&counters.compressed, &counters.bytes_in, &counters.bytes_out, &counters.bypassed].map(|number| number.load(Relaxed));
    let reasons = counts(Reason::ALL.iter().map(|reason| (reason.name(), counters.passed(*reason))));
    let recalls = counts(Recall::ALL.iter().map(|recall| (recall.name(), counters.recalled(*recall))));
    let hops = counts(Layer::ALL.iter().map(|layer| (layer.name(), counters.hops(*layer))));
    let _ = writeln!(text, "{name} {side} {responses} {bytes_in} {bytes_out} {bypassed} {reasons} {recalls} {hops}");
}

/// A line for each coding in the process, such as `coding gzip 10 5000 1200 830 0 0`.
fn codings(call: &Call<'_>, text: &mut String) {
    let codings = Savings::of(call.context).codings;
    if codings.is_empty() {
        return;
    }
    text.push_str("# coding name answers bytes_in bytes_out worker_us queue_us idle_us\n");
    for of in codings {
        let _ = write!(text, "coding {} {} {} {}", of.name, of.answers, of.bytes_in, of.bytes_out);
        for us in of.coder_us_by_site() {
            let _ = write!(text, " {us}");
        }
        text.push('\n');
    }
}

/// The figures with the version of their form: fields are only ever added to it.
#[derive(Serialize)]
struct Document<'a> {
    v: u8,
    #[serde(flatten)]
    savings: &'a Savings,
}

/// Counts that are not 0, such as `head:2,too-small:7`; a dash without any.
pub(super) fn counts(all: impl Iterator<Item = (&'static str, u64)>) -> String {
    let some: Vec<String> = all.filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}:{count}")).collect();
    if some.is_empty() { "-".into() } else { some.join(",") }
}

fn queue(call: &Call<'_>, text: &mut String) {
    let Some(queue) = &call.context.queue else { return };
    let numbers = queue.numbers();
    let [waiting, jobs, bytes, full, cancelled, max_wait_us, shared, helped] = [
        &numbers.waiting,
        &numbers.jobs,
        &numbers.bytes,
        &numbers.full,
        &numbers.cancelled,
        &numbers.max_wait_us,
        &numbers.shared,
        &numbers.helped,
    ]
    .map(|number| number.load(Relaxed));
    text.push_str("# queue waiting jobs bytes full cancelled max_wait_us mean_wait_us shared helped\n");
    let _ = writeln!(
        text,
        "queue {waiting} {jobs} {bytes} {full} {cancelled} {max_wait_us} {} {shared} {helped}",
        numbers.mean_wait_us()
    );
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use terse_compress::{Coding, Layer, Reason, Recall};

    #[test]
    fn reasons_are_counted_by_name() {
        let mut talk = Talk::new(WEB);
        let plan = talk.context.plan.clone();
        let backends = plan.backends.now();
        let compression = &backends[0].tally.of(1).compression;
        compression.count_compressed(Coding::Gzip, 1000, 300);
        compression.count_passed(Reason::TooSmall);
        compression.count_passed(Reason::TooSmall);
        compression.count_passed(Reason::Head);
        compression.count_recall(Recall::Hit);
        compression.count_hop(Layer::Records);
        let header = "# proxy side responses bytes_in bytes_out bypassed not_compressed memory hops\n";
        assert_eq!(
            talk.says("show compression be"),
            format!("{header}be backend 1 1000 300 0 head:1,too-small:2 hit:1 records:1\n\n")
        );
        assert_eq!(talk.says("show compression fe"), format!("{header}fe frontend 0 0 0 0 - - -\n\n"));
        assert_eq!(talk.says("show compression raw").lines().count(), 4);
        assert_eq!(talk.says("show compression").lines().count(), 9);
        assert_eq!(talk.says("show compression nope"), "No such proxy.\n\n");
    }
}
