//! Commands: entries of tables, one file of [`crate::commands`] per family; those of a master are in [`crate::master`].

use crate::answer::{Message, Outcome};
use crate::client::Client;
use crate::commands;
use crate::context::Context;
use crate::settings::Level;
use crate::words::Word;
use std::sync::Arc;
use terse_balance::Server;
use terse_proxy::plan::{Backend, Frontend};

/// A command with a context of type `C`: by default that of a process that serves.
pub(crate) struct Command<C: 'static = Context> {
    /// Words, separated by single blanks: `show stat`.
    pub(crate) name: &'static str,
    /// Usage in lists: the words and their arguments.
    pub(crate) usage: &'static str,
    /// Summary, in a few words.
    pub(crate) summary: &'static str,
    /// Required level.
    pub(crate) level: Level,
    /// Implementation.
    pub(crate) run: fn(&mut Call<'_, C>) -> Outcome,
}

/// A command of a client.
pub(crate) struct Call<'a, C = Context> {
    /// Arguments: the words after the command's own.
    pub(crate) args: &'a [Word],
    /// The client.
    pub(crate) client: &'a mut Client,
    /// Context of the process.
    pub(crate) context: &'a C,
}

/// Tables of commands.
pub(crate) type Families<C = Context> = &'static [&'static [Command<C>]];

/// All commands of some tables, in the order of their names.
pub(crate) fn all<C>(families: Families<C>) -> impl Iterator<Item = &'static Command<C>> {
    let mut all: Vec<&Command<C>> = families.iter().copied().flatten().collect();
    all.sort_by_key(|command| command.name);
    all.into_iter()
}

/// Looks a command of a process that serves up with [`find_in`].
pub(crate) fn find(words: &[Word]) -> Option<(&'static Command, &[Word])> {
    find_in(commands::FAMILIES, words)
}

/// The command whose words these begin with, and the words after it. The longest match wins.
pub(crate) fn find_in<C>(families: Families<C>, words: &[Word]) -> Option<(&'static Command<C>, &[Word])> {
    let commands = families.iter().copied().flatten();
    commands.filter_map(|command| Some((command, behind(command.name, words)?))).min_by_key(|(_, args)| args.len())
}

/// The words after a name, if they begin with it.
pub(crate) fn behind<'w>(name: &str, words: &'w [Word]) -> Option<&'w [Word]> {
    let mut rest = words;
    for part in name.split(' ') {
        let (first, behind) = rest.split_first()?;
        if *first != *part {
            return None;
        }
        rest = behind;
    }
    Some(rest)
}

impl<'a, C> Call<'a, C> {
    /// The argument at an index; empty when there is none.
    pub(crate) fn arg(&self, index: usize) -> &'a str {
        self.args.get(index).map_or("", Word::as_str)
    }

    /// Refuses clients below a level, for commands with forms that need more than their entry requires.
    pub(crate) fn require(&self, level: Level) -> Result<(), Message> {
        if self.client.level >= level { Ok(()) } else { Err(Message::denied()) }
    }
}

impl<'a> Call<'a> {
    /// The backend of a name, or of a number written `#<number>`.
    pub(crate) fn backend(&self, name: &str) -> Option<Arc<Backend>> {
        let backends = self.context.plan.backends.now();
        let id = name.strip_prefix('#').and_then(|id| id.parse().ok());
        backends.iter().find(|backend| *backend.name == *name || Some(backend.id) == id).cloned()
    }

    /// The frontend of a name, or of a number written `#<number>`.
    pub(crate) fn frontend(&self, name: &str) -> Option<&'a Frontend> {
        let frontends = &self.context.plan.frontends;
        let id = name.strip_prefix('#').and_then(|id| id.parse().ok());
        frontends.iter().find(|frontend| *frontend.name == *name || Some(frontend.id) == id)
    }

    /// The server that an argument names as `<backend>/<server>`.
    pub(crate) fn server(&self, index: usize) -> Result<(Arc<Backend>, Arc<Server>), Message> {
        let named = self.arg(index).split_once('/').filter(|(_, server)| !server.is_empty());
        let (backend, server) = named.ok_or_else(|| Message::error("Require 'backend/server'."))?;
        let backend = self.backend(backend).ok_or_else(|| Message::error("No such backend."))?;
        let server = backend.farm.find_server(server).ok_or_else(|| Message::error("No such server."))?;
        let server = Arc::clone(&server);
        Ok((backend, server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn words(text: &str) -> Vec<Word> {
        text.split_whitespace().map(Word::from).collect()
    }

    #[test]
    fn the_longest_name_is_meant() {
        let found = |text: &str| find(&words(text)).map(|(command, args)| (command.name, args.len()));
        assert_eq!(found("show stat be 1 2"), Some(("show stat", 3)));
        assert_eq!(found("set maxconn server a/b 1"), Some(("set maxconn server", 2)));
        assert_eq!(found("show"), None);
        assert_eq!(found("show sta"), None);
    }

    #[test]
    fn entries_are_written_in_one_way() {
        let mut names = HashSet::new();
        for command in all(commands::FAMILIES) {
            assert!(names.insert(command.name), "{} stands twice", command.name);
            assert!(command.usage.starts_with(command.name), "{}", command.usage);
            assert!(!command.summary.is_empty() && !command.summary.ends_with('.'), "{}", command.summary);
        }
    }
}
