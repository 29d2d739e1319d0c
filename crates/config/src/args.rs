//! A keyword's arguments: a cursor over the words of a line.

use crate::words::Word;
use std::time::Duration;

/// What a parser says when an argument is wrong. The loader adds file and line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The index of the word that is meant, in the words of the line.
    pub word: usize,
    /// What is wrong.
    pub reason: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault at a word.
    pub fn new(word: usize, reason: impl Into<String>) -> Fault {
        Fault { word, reason: reason.into(), hint: None }
    }

    /// The same, with a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }
}

/// The words behind a keyword, taken one by one.
#[derive(Debug)]
pub struct Args<'a> {
    words: &'a [Word],
    at: usize,
}

impl<'a> Args<'a> {
    /// A cursor over all words of a line, whose first `at` ones are the keyword itself.
    pub fn new(words: &'a [Word], at: usize) -> Args<'a> {
        Args { words, at }
    }

    /// The next word, without taking it.
    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(Word::as_str)
    }

    /// Takes the next word, if there is one.
    pub fn take(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Takes the next word; `what` names it in the error, such as `<address>`.
    pub fn need(&mut self, what: &str) -> Result<&'a str, Fault> {
        self.take().ok_or_else(|| Fault::new(self.words.len().saturating_sub(1), format!("expects {what} as argument")))
    }

    /// Takes the next word as bytes.
    pub fn need_bytes(&mut self, what: &str) -> Result<&'a [u8], Fault> {
        self.need(what)?;
        Ok(&self.words[self.at - 1].bytes)
    }

    /// Takes the next word if it is this one.
    pub fn accept(&mut self, word: &str) -> bool {
        let here = self.peek() == Some(word);
        self.at += usize::from(here);
        here
    }

    /// Takes the next word as a whole number in a range.
    pub fn integer(&mut self, what: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64, Fault> {
        let word = self.need(what)?;
        match word.parse::<i64>() {
            Ok(n) if range.contains(&n) => Ok(n),
            Ok(n) => Err(self.fault(format!("{what}: {n} is not between {} and {}", range.start(), range.end()))),
            Err(_) => Err(self.fault(format!("{what}: '{word}' is not a whole number"))),
        }
    }

    /// Takes the next word as a duration: a number with `us`, `ms`, `s`, `m`, `h` or `d`, milliseconds without a unit.
    pub fn time(&mut self, what: &str) -> Result<Duration, Fault> {
        let word = self.need(what)?;
        crate::words::parse_time(word).map_err(|reason| self.fault(format!("{what}: {reason}")))
    }

    /// Takes the next word as a number of bytes, with `k`, `m` or `g`.
    pub fn size(&mut self, what: &str) -> Result<u64, Fault> {
        let word = self.need(what)?;
        crate::words::parse_size(word).map_err(|reason| self.fault(format!("{what}: {reason}")))
    }

    /// The words that are left, not taken.
    pub fn rest(&self) -> &'a [Word] {
        self.words.get(self.at..).unwrap_or_default()
    }

    /// Takes all words that are left.
    pub fn take_rest(&mut self) -> &'a [Word] {
        let rest = self.rest();
        self.at = self.words.len();
        rest
    }

    /// The index of the next word in the line.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes to a word of the line.
    pub fn seek(&mut self, position: usize) {
        self.at = position.min(self.words.len());
    }

    /// The keyword itself: the first word of the line.
    pub fn keyword(&self) -> &'a str {
        self.words.first().map(Word::as_str).unwrap_or_default()
    }

    /// Says that the word taken last is wrong.
    pub fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.at.saturating_sub(1), reason)
    }

    /// Says that nothing may follow.
    pub fn end(&self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(Fault::new(self.at, format!("cannot handle unexpected argument '{word}'"))),
        }
    }
}
