//! Commands and figures for other parts of the program, such as scripts.
//!
//! A command runs in the caller's thread, at the level admin. Those that make a client wait, follow a ring or leave are
//! refused.

use crate::answer::{Answer, Severity};
use crate::client::Client;
use crate::command::{self, Call};
use crate::figures::{self, row::Row};
use crate::guests::Guest;

use crate::page::Link;
use crate::rows::Sight;
use crate::words::Word;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use terse_balance::Server;
use terse_proxy::plan::{Backend, Bind, Frontend, Plan};
use terse_tls::Secret;

/// Subject of figures.
#[derive(Clone, Copy)]
pub enum Of<'a> {
    /// A frontend, by its place in the plan.
    Frontend(usize, &'a Frontend),
    /// An address that a frontend listens on.
    Address(&'a Frontend, &'a Bind),
    /// A backend.
    Backend(&'a Backend),
    /// A server of a backend.
    Server(&'a Backend, &'a Server),
}

/// A figure of `show stat`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shown {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

impl Link {
    /// Answer to a command, given as its words, without the empty line after it.
    ///
    /// # Errors
    /// The fault of the command, or that the process does not serve yet.
    pub fn ask(&self, words: &[&[u8]]) -> Result<Vec<u8>, String> {
        self.give(words, None)
    }

    /// The same, with a payload.
    ///
    /// # Errors
    /// As [`Link::ask`].
    pub fn give(&self, words: &[&[u8]], payload: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let context = self.context().ok_or("the process does not serve yet")?;
        let words: Vec<Word> = words.iter().map(|word| Word::of(word)).collect();
        let (command, args) = command::find(&words).ok_or("there is no such command")?;
        context.tally.commands.fetch_add(1, Relaxed);
        let mut client = Client::of_script(context.settings.timeout());
        client.payload = payload.map(|payload| Secret::from(payload.to_vec()));
        let outcome = (command.run)(&mut Call { args, client: &mut client, context: &context });
        if client.waiting.is_some() || client.following.is_some() || client.ending.is_some() {
            return Err(format!("'{}' is a command for clients alone", command.name));
        }
        let mut out = Vec::new();
        while let Some(piece) = client.pieces.as_mut().and_then(crate::answer::Pieces::next) {
            out.extend_from_slice(&piece);
            if out.len() > MOST_BYTES {
                return Err(format!("the answer is larger than {MOST_BYTES} bytes"));
            }
        }
        match outcome {
            Ok(Answer::Done) => {}
            Ok(Answer::Text(text)) => out.extend_from_slice(text.as_bytes()),
            Ok(Answer::Bytes(bytes)) => out.extend_from_slice(&bytes),
            Ok(Answer::Said(message)) if message.severity == Severity::Info => out.extend_from_slice(message.text.as_bytes()),
            Ok(Answer::Said(message)) | Err(message) => return Err(message.text),
        }
        Ok(out)
    }

    /// Adds a command of another part of the program.
    ///
    /// # Errors
    /// Its words are none, or those of a command of ours.
    pub fn add(&self, words: Vec<String>, usage: String, guest: Arc<dyn Guest>) -> Result<(), String> {
        let written: Vec<Word> = words.iter().map(|word| Word::of(word.as_bytes())).collect();
        match command::find(&written) {
            Some((own, _)) => Err(format!("'{}' is a command of terse's", own.name)),
            None => self.guests().add(words, usage, guest),
        }
    }

    /// Figures of a subject, by the names of their columns; unknown ones are left out. `None` for an address that is
    /// not counted on its own.
    pub fn figures(&self, plan: &Plan, of: Of<'_>) -> Option<Vec<(&'static str, Shown)>> {
        let context = self.context();
        let sight = Sight {
            plan,
            rates: context.as_deref().map(|context| &context.rates),
            is_stopping: context.as_deref().is_some_and(|context| context.host.is_stopping()),
            legends: true,
            now: Instant::now(),
        };
        let row: Row = match of {
            Of::Frontend(index, front) => sight.frontend(index, front),
            Of::Address(front, bind) => sight.address(front, bind)?,
            Of::Backend(back) => sight.backend(back),
            Of::Server(back, server) => sight.server(back, server),
        };
        let shown = |value: &figures::Value| match value {
            figures::Value::Small(number) => Shown::Number((*number).min(u32::MAX.into())),
            figures::Value::Large(number) => Shown::Number(*number),
            figures::Value::Text(text) => Shown::Text(text.clone()),
        };
        Some(row.cells().filter_map(|(column, figure)| Some((column.name(), shown(&figure?.value)))).collect())
    }
}

/// Limit of an answer.
const MOST_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::{WEB, context};

    #[test]
    fn commands_are_asked_by_their_words() {
        let context = context(WEB);
        let link = context.settings.link.clone();
        let ask = |words: &[&str]| link.ask(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        assert_eq!(ask(&["set", "server", "be/a", "state", "maint"]), Ok(Vec::new()));
        assert_eq!(ask(&["set", "server", "be/none", "state", "maint"]), Err("No such server.".into()));
        // A blank inside a word does not split it.
        assert_eq!(ask(&["set", "server", "be/a state ready", "state", "maint"]), Err("No such server.".into()));
        assert!(ask(&["quit"]).is_err() && ask(&["no", "command"]).is_err());
        let backend = context.plan.backends.now().iter().find(|backend| &*backend.name == "be").cloned().unwrap();
        let server = backend.farm.find_server("a").unwrap();
        let figures = link.figures(&context.plan, Of::Server(&backend, &server)).unwrap();
        assert!(figures.contains(&("status", Shown::Text("MAINT".into()))), "{figures:?}");
        assert!(figures.contains(&("pxname", Shown::Text("be".into()))), "{figures:?}");
    }
}
