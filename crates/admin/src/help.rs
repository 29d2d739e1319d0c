//! Lists of commands: all, those that begin with some words, or those that are spelt like a mistyped one.

use crate::answer::Message;
use crate::answer::Severity;
use crate::command::{self, Command, Families};
use crate::commands::{self, absent};
use crate::words::{self, Word};
use std::fmt::Write;
use terse_config::near;

/// Text of `help`: all commands of some tables, or those that the words may mean.
pub(crate) fn list<C>(families: Families<C>, words: &[Word]) -> String {
    let mut text = String::from("The following commands are valid at this level:\n");
    candidates(families, words).into_iter().for_each(|command| entry(command, &mut text));
    text
}

/// Message for an unknown command of a process that serves.
pub(crate) fn unknown(words: &[Word]) -> Message {
    if let Some(absent) = absent::find(words) {
        return Message::error(format!("'{}' is not supported: {}.", absent.name, absent.reason));
    }
    unknown_in(commands::FAMILIES, words)
}

/// Message for an unknown command of other tables.
pub(crate) fn unknown_in<C>(families: Families<C>, words: &[Word]) -> Message {
    let first = words.first().map_or("", Word::as_str);
    let mut text = format!("Unknown command: '{first}', but maybe one of the following ones is a better match:\n");
    candidates(families, words).into_iter().for_each(|command| entry(command, &mut text));
    text.truncate(text.trim_end().len());
    Message { severity: Severity::Info, text }
}

/// Commands that begin as the words do, as far as they do; else those that are spelt alike; all if there are no words.
/// `help`, `prompt` and `quit` come at the end of every list.
fn candidates<C>(families: Families<C>, words: &[Word]) -> Vec<&'static Command<C>> {
    let least = words.len().min(1);
    let mut found: Vec<&Command<C>> = (least..=words.len().min(3))
        .rev()
        .map(|count| command::all(families).filter(|command| begins(command.name, &words[..count])).collect())
        .find(|found: &Vec<_>| !found.is_empty())
        .unwrap_or_default();
    if found.is_empty() {
        let text: String = String::from_utf8_lossy(&words::joined(words)).chars().take(MOST_CHARS).collect();
        let names = near::nearest(&text, command::all(families).map(|command| command.name));
        found = command::all(families).filter(|command| names.contains(&command.name)).collect();
    }
    found.retain(|command| !ALWAYS.contains(&command.name));
    found.extend(command::all(families).filter(|command| ALWAYS.contains(&command.name)));
    found
}

/// Whether a name begins with all words but the last, and its next word with the last.
fn begins(name: &str, words: &[Word]) -> bool {
    let Some((last, whole)) = words.split_last() else { return true };
    let mut parts = name.split(' ');
    whole.iter().all(|word| parts.next() == Some(word.as_str())) && parts.next().is_some_and(|part| part.starts_with(last.as_str()))
}

fn entry<C>(command: &Command<C>, text: &mut String) {
    let _ = writeln!(text, "  {:<39} : {}", command.usage, command.summary);
}

const ALWAYS: &[&str] = &["help", "prompt", "quit"];

/// No command's name is longer; a longer text resembles none.
const MOST_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        let words: Vec<Word> = text.split_whitespace().map(Word::from).collect();
        candidates(commands::FAMILIES, &words).into_iter().map(|command| command.name).collect()
    }

    #[test]
    fn what_begins_alike_is_meant() {
        assert_eq!(names("show st"), ["show startup-logs", "show stat", "help", "prompt", "quit"]);
        assert!(names("show").len() > 8);
        assert!(names("show nothing").len() > 8, "as far as they are alike");
        assert_eq!(names("sohw stat"), ["show stat", "help", "prompt", "quit"]);
        assert_eq!(names("xyzzy"), ["help", "prompt", "quit"]);
        assert_eq!(names("quit x"), ["help", "prompt", "quit"]);
    }

    #[test]
    fn what_is_not_built_is_named() {
        let message = unknown(&["show".into(), "quic".into(), "x".into()]);
        assert!(message.text.starts_with("'show quic' is not supported: "), "{}", message.text);
        let message = unknown(&["foo".into()]);
        assert!(message.text.starts_with("Unknown command: 'foo', but maybe"), "{}", message.text);
        assert!(message.text.ends_with(": disconnect"), "{}", message.text);
    }
}
