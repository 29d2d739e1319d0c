//! Engines of compression, and their states. HAProxy has no such command.

use crate::answer::{Answer, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::coder::names;
use terse_compress::offload::{Cause, Lane};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show engines",
    usage: "show engines",
    summary: "show what compresses, its state, and what it has done",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let mut text = String::from("# software coding streams whole_bodies\n");
    for name in names::all() {
        let _ = writeln!(text, "software {} {} {}", name.coding.word(), name.stream, name.whole);
    }
    let engines = call.context.queue.as_deref().map(|queue| queue.engines()).unwrap_or_default();
    if !engines.is_empty() {
        text.push_str(
            "# engine name state version process starts waiting in_flight jobs bytes_in bytes_out unfit cancelled in_vain falls probes \
             failed_probes mean_us max_us max_wait_us engine_us mean_late_us max_late_us verify",
        );
        for cause in Cause::ALL {
            let _ = write!(text, " {}", cause.word());
        }
        text.push_str(" library trouble\n");
    }
    engines.iter().for_each(|lane| engine(lane, &mut text));
    Ok(Answer::Text(text))
}

/// A line; a dash where a value is unknown. The fault is last, because it has blanks.
fn engine(lane: &Lane, text: &mut String) {
    let (settings, numbers, status, (waiting, flying)) = (lane.settings(), lane.numbers(), lane.status(), lane.depth());
    let known = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".into());
    let version = known(status.version.map(|version| version.replace(' ', "_")));
    let process = known(status.process.map(|process| process.to_string()));
    let _ = write!(text, "engine {} {} {version} {process} {}", settings.name, lane.standing().word(), status.starts);
    let _ = write!(text, " {waiting} {flying}");
    let counted = [
        &numbers.jobs,
        &numbers.bytes_in,
        &numbers.bytes_out,
        &numbers.unfit,
        &numbers.cancelled,
        &numbers.in_vain,
        &numbers.falls,
        &numbers.probes,
        &numbers.failed_probes,
    ];
    for number in counted {
        let _ = write!(text, " {}", number.load(Relaxed));
    }
    let [max, wait, engine, late] = [&numbers.max_latency_us, &numbers.max_wait_us, &numbers.engine_us, &numbers.max_late_us]
        .map(|number| number.load(Relaxed));
    let _ = write!(text, " {} {max} {wait} {engine} {} {late}", numbers.mean_latency_us(), numbers.mean_late_us());
    let _ = write!(text, " {}", settings.verify.word());
    for cause in Cause::ALL {
        let _ = write!(text, " {}", numbers.fallen(cause));
    }
    let _ = writeln!(text, " {} {}", settings.source, known(status.trouble));
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn software_is_always_there() {
        let said = Talk::new(WEB).says("show engines");
        assert!(said.starts_with("# software coding streams whole_bodies\nsoftware gzip "), "{said}");
        assert!(said.contains("\nsoftware zstd ") && !said.contains("# engine"), "{said}");
    }
}
