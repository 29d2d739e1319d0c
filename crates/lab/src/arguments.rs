//! Arguments of a sub-command: `--name value`, `--name` and files or names without an option.

use anyhow::{Context, Result, bail};
use std::str::FromStr;

/// Arguments that are left of a command line.
#[derive(Debug)]
pub struct Arguments {
    rest: Vec<String>,
}

impl Arguments {
    /// All of them.
    pub fn new(words: impl IntoIterator<Item = String>) -> Arguments {
        Arguments { rest: words.into_iter().collect() }
    }

    /// Takes a switch.
    pub fn switch(&mut self, name: &str) -> bool {
        let place = self.rest.iter().position(|word| word == name);
        place.map(|at| self.rest.remove(at)).is_some()
    }

    /// Takes an option's value.
    pub fn value<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(at) = self.rest.iter().position(|word| word == name) else { return Ok(None) };
        if at + 1 >= self.rest.len() {
            bail!("{name} wants a value");
        }
        let value = self.rest.remove(at + 1);
        self.rest.remove(at);
        value.parse().map(Some).with_context(|| format!("{name} {value}"))
    }

    /// Takes the remaining arguments; an unknown option among them is an error that names it.
    pub fn words(self) -> Result<Vec<String>> {
        match self.rest.iter().find(|word| word.starts_with("--")) {
            Some(word) => bail!("no such option: {word}"),
            None => Ok(self.rest),
        }
    }

    /// Returns an error if anything is left.
    pub fn end(self) -> Result<()> {
        match self.rest.first() {
            Some(word) => bail!("no such option: {word}"),
            None => Ok(()),
        }
    }
}
