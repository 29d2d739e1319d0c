//! Dictionaries of compression. HAProxy has no such commands.

use super::compression::counts;
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::dictionaries::{OfDictionary, OfProxy, OfStore};
use crate::settings::Level;
use serde::Serialize;
use std::fmt::Write;
use terse_dictionary::LEARNED;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "show dictionary",
        usage: "show dictionary [json]",
        summary: "list the dictionaries and what they have done, and what became of clients' dictionaries at each proxy",
        level: Level::User,
        run: show,
    },
    Command {
        name: "clear dictionary",
        usage: "clear dictionary [<name>]",
        summary: "set the figures of all dictionaries or one to 0, and forget what they were no help for; 'auto': forget the learned ones",
        level: Level::Operator,
        run: clear,
    },
];

/// The figures with the version of their form: fields are only ever added to it.
#[derive(Serialize)]
struct Document {
    v: u8,
    dictionaries: Vec<OfDictionary>,
    proxies: Vec<OfProxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<OfStore>,
}

fn show(call: &mut Call<'_>) -> Outcome {
    let plan = &call.context.plan;
    let (dictionaries, proxies, store) = (OfDictionary::all(plan), OfProxy::all(plan), OfStore::of(plan));
    if call.args == ["json"] {
        let json = serde_json::to_string(&Document { v: 1, dictionaries, proxies, store });
        return json.map(|json| Answer::Text(json + "\n")).map_err(|error| Message::error(error.to_string()));
    }
    if !call.args.is_empty() {
        return Err(Message::error("'show dictionary' takes nothing, or 'json'."));
    }
    let mut text = String::from(
        "# name hash size match announced fetched offered used bytes_in bytes_out path not_worth notes age_s origin\n",
    );
    dictionaries.iter().for_each(|one| line(one, &mut text));
    if !proxies.is_empty() {
        text.push_str("# proxy side announced offered outcomes bytes_in bytes_out dictionaries bytes_held oldest_s\n");
        proxies.iter().for_each(|one| proxy(one, &mut text));
    }
    if let Some(OfStore { folder, files, bytes, failures, last_failure }) = store {
        let last = if last_failure.is_empty() { "-" } else { &last_failure };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# store files bytes failures last_failure\n{folder} {files} {bytes} {failures} {last}");
    }
    Ok(Answer::Text(text))
}

fn line(one: &OfDictionary, text: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{} {} {} {}", one.name, one.hash, one.bytes, one.pattern);
    for number in [one.announced, one.fetched, one.offered, one.used, one.bytes_in, one.bytes_out] {
        let _ = write!(text, " {number}");
    }
    let (path, origin) = (if one.path.is_empty() { "-" } else { &one.path }, one.origin.as_deref().unwrap_or("-"));
    let _ = writeln!(text, " {path} {} {} {} {origin}", one.not_worth, one.notes, one.age_s);
}

/// A line such as `web frontend 3 12 used:10,none:40,unknown:1,not-worth:2 500000 20000 1 70000 3600`.
fn proxy(one: &OfProxy, text: &mut String) {
    let outcomes = counts(one.outcomes.iter().map(|(usage, number)| (usage.name(), *number)));
    let oldest = one.oldest_s.map_or_else(|| "-".into(), |age| age.to_string());
    let _ = writeln!(
        text,
        "{} {} {} {} {outcomes} {} {} {} {} {oldest}",
        one.name, one.side, one.announced, one.offered, one.bytes_in, one.bytes_out, one.count, one.held
    );
}

fn clear(call: &mut Call<'_>) -> Outcome {
    if call.args.len() > 1 {
        return Err(Message::error("'clear dictionary' takes one name, or none for all."));
    }
    let name = call.args.first();
    if name.is_some_and(|name| *name == LEARNED) {
        let forgotten = call.context.plan.dictionaries.learner().clear();
        return Ok(Answer::Said(Message::info(format!("{forgotten} learned dictionaries forgotten."))));
    }
    let (mut cleared, mut notes) = (0, 0);
    let learned = call.context.plan.dictionaries.learner().all();
    let all = call.context.plan.dictionaries.all().chain(learned.iter().map(|one| &one.dictionary));
    for dictionary in all.filter(|one| name.is_none_or(|name| *name == *one.name)) {
        (cleared, notes) = (cleared + 1, notes + dictionary.notes.count());
        dictionary.counters.clear();
        dictionary.notes.clear();
    }
    match name {
        Some(_) if cleared == 0 => Err(Message::error("No such dictionary.")),
        _ => Ok(Answer::Said(Message::info(format!("{cleared} dictionaries: figures at 0, {notes} notes forgotten.")))),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use terse_compress::Coding;
    use terse_compress::dictionary::Usage;

    #[test]
    fn a_proxy_that_was_asked_about_dictionaries_has_a_line() {
        let mut talk = Talk::new(WEB);
        let plan = talk.context.plan.clone();
        let head = "# name hash size match announced fetched offered used bytes_in bytes_out path not_worth notes age_s origin\n";
        assert_eq!(talk.says("show dictionary"), format!("{head}\n"));
        let backends = plan.backends.now();
        let counters = &backends[0].tally.of(1).compression;
        [Usage::Used, Usage::None, Usage::NotWorth, Usage::None].iter().for_each(|usage| counters.dictionaries().count(*usage));
        counters.count_compressed(Coding::Dcz, 1000, 50);
        let said = talk.says("show dictionary");
        assert!(said.ends_with("\nbe backend 0 2 used:1,none:2,not-worth:1 1000 50 0 0 -\n\n"), "{said}");
        let json: serde_json::Value = serde_json::from_str(&talk.says("show dictionary json")).unwrap();
        let proxy = &json["proxies"][0];
        assert_eq!((&proxy["outcomes"]["none"], &proxy["offered"], &proxy["in"]), (&2.into(), &2.into(), &1000.into()));
        assert_eq!(talk.says("clear dictionary three"), "No such dictionary.\n\n");
        assert_eq!(talk.says("clear dictionary auto"), "0 learned dictionaries forgotten.\n\n");
        assert_eq!(talk.says("clear dictionary"), "0 dictionaries: figures at 0, 0 notes forgotten.\n\n");
        assert!(talk.says("show dictionary two").starts_with("'show dictionary' takes nothing"));
        assert!(talk.says("clear dictionary a b").starts_with("'clear dictionary' takes one name"));
    }
}
