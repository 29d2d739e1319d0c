//! Dictionaries of compression. HAProxy has no such command.

use crate::answer::{Answer, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use terse_dictionary::Dictionary;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show dictionary",
    usage: "show dictionary",
    summary: "list the dictionaries, and what they have done",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let mut text = String::from("# name hash size match announced fetched offered used bytes_in bytes_out path\n");
    call.context.plan.dictionaries.all().for_each(|dictionary| line(dictionary, &mut text));
    Ok(Answer::Text(text))
}

fn line(dictionary: &Dictionary, text: &mut String) {
    let counters = &dictionary.counters;
    let size = dictionary.bytes().len();
    // Writing to a string cannot fail.
    let _ = write!(text, "{} {} {size} {}", dictionary.name, dictionary.hash(), dictionary.use_as.pattern.as_str());
    let [bytes_in, bytes_out] = &counters.bytes;
    for number in [&counters.announced, &counters.fetched, &counters.offered, &counters.used, bytes_in, bytes_out] {
        let _ = write!(text, " {}", number.load(Relaxed));
    }
    let _ = writeln!(text, " {}", dictionary.path);
}
