//! A keyword's arguments: a cursor over the words of a line.
//!
//! A parser takes words, reports a wrong one by a [`Fault`], and leaves none over: the loader refuses the words that are
//! left.

use crate::diagnostic::Place;
use crate::environment::Environment;
use crate::units::{self, TimeUnit};
use crate::words::Word;
use std::borrow::Cow;
use std::time::Duration;

/// Fault of an argument, as a parser returns it. The loader adds the keyword, file and line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The index of the word that is meant, in the words of the line.
    pub word: usize,
    /// The reason, to be read after the keyword's name: as the rest of a sentence (`expects <address> as argument`). If it
    /// does not begin with a verb such as `expects`, `cannot`, `is`, `may`, it is read after a colon (`<n>: 'abc' is not a
    /// whole number`).
    pub reason: String,
    /// Text to write instead.
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

/// The words after a keyword, taken one by one.
#[derive(Debug)]
pub struct Args<'a> {
    words: &'a [Word],
    at: usize,
    keyword: &'a str,
    environment: Option<&'a Environment>,
    remarks: Remarks,
}

/// Remarks of parsers on words that they do not refuse.
#[derive(Default, Debug)]
pub(crate) struct Remarks {
    /// Warnings.
    pub(crate) warnings: Vec<Fault>,
    /// Words that have no effect here, and the reasons.
    pub(crate) accepted: Vec<(usize, &'static str)>,
}

impl<'a> Args<'a> {
    /// A cursor over all words of a line, whose first `at` ones are the keyword itself.
    pub fn new(words: &'a [Word], at: usize) -> Args<'a> {
        let keyword = words.first().map(Word::as_str).unwrap_or_default();
        Args { words, at, keyword, environment: None, remarks: Remarks::default() }
    }

    /// The same for a keyword of that name, with the environment that addresses may name variables of.
    pub fn within(words: &'a [Word], at: usize, keyword: &'a str, environment: &'a Environment) -> Args<'a> {
        Args { words, at, keyword, environment: Some(environment), remarks: Remarks::default() }
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
        let bytes = self.need_bytes(what)?;
        std::str::from_utf8(bytes).map_err(|_| self.fault(format!("{what}: the word is not UTF-8 text")))
    }

    /// Takes the next word as bytes.
    pub fn need_bytes(&mut self, what: &str) -> Result<&'a [u8], Fault> {
        match self.words.get(self.at) {
            Some(word) => {
                self.at += 1;
                Ok(&word.bytes)
            }
            None => Err(Fault::new(self.words.len().saturating_sub(1), format!("expects {what} as argument"))),
        }
    }

    /// Takes the next word as an address: `$VAR` and `${VAR}` stand for variables of the environment, also without quotes.
    pub fn need_address(&mut self, what: &str) -> Result<Cow<'a, str>, Fault> {
        let word = self.need(what)?;
        let address = self.expand(word);
        match address.is_empty() {
            true => Err(self.fault(format!("{what}: '{word}' is empty once its variables are replaced"))),
            false => Ok(address),
        }
    }

    /// A text with `$VAR` and `${VAR}` replaced by the environment's variables; those that are not set become empty.
    pub fn expand(&self, text: &'a str) -> Cow<'a, str> {
        match self.environment {
            Some(environment) => environment.expand(text),
            None => Cow::Borrowed(text),
        }
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
        self.time_in(what, TimeUnit::Milliseconds)
    }

    /// The same for a keyword whose numbers without a unit are not milliseconds.
    pub fn time_in(&mut self, what: &str, unit: TimeUnit) -> Result<Duration, Fault> {
        let word = self.need(what)?;
        units::parse_time_in(word, unit).map_err(|reason| self.fault(format!("{what}: {reason}")))
    }

    /// Takes the next word as a number of bytes, with `k`, `m` or `g`.
    pub fn size(&mut self, what: &str) -> Result<u64, Fault> {
        let word = self.need(what)?;
        units::parse_size(word).map_err(|reason| self.fault(format!("{what}: {reason}")))
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

    /// The place of the next word in the line that `line` is a place of; `line` itself at the end.
    pub fn place(&self, line: &Place) -> Place {
        self.rest().first().map_or_else(|| line.clone(), |word| line.at(word.span.clone()))
    }

    /// Moves to a word of the line.
    pub fn seek(&mut self, position: usize) {
        self.at = position.min(self.words.len());
    }

    /// The keyword's name.
    pub fn keyword(&self) -> &'a str {
        self.keyword
    }

    /// The word taken last; empty before the first.
    pub fn taken(&self) -> &'a str {
        self.at.checked_sub(1).and_then(|at| self.words.get(at)).map(Word::as_str).unwrap_or_default()
    }

    /// A fault of the word taken last.
    pub fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.at.saturating_sub(1), reason)
    }

    /// Warns about the word taken last.
    pub fn warn(&mut self, reason: impl Into<String>) {
        let fault = self.fault(reason);
        self.remarks.warnings.push(fault);
    }

    /// Records that the word taken last has no effect here, and the reason.
    pub fn changes_nothing(&mut self, why: &'static str) {
        self.remarks.accepted.push((self.at.saturating_sub(1), why));
    }

    /// Fails if any word follows.
    pub fn end(&self) -> Result<(), Fault> {
        match self.words.get(self.at) {
            None => Ok(()),
            Some(word) => Err(Fault::new(self.at, format!("cannot handle unexpected argument '{}'", word.display()))),
        }
    }

    /// The warnings about words that are not refused.
    pub fn into_warnings(self) -> Vec<Fault> {
        self.remarks.warnings
    }

    /// All remarks of the parser.
    pub(crate) fn into_remarks(self) -> Remarks {
        self.remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Word> {
        crate::words::split(line.as_bytes(), &|_| None).unwrap().words
    }

    #[test]
    fn words_are_taken_in_order() {
        let line = words("maxconn 40 size 4k wait 5s");
        let mut args = Args::new(&line, 1);
        assert_eq!(args.integer("<n>", 1..=50), Ok(40));
        assert!(!args.accept("wait"));
        assert!(args.accept("size"));
        assert_eq!(args.size("<size>"), Ok(4096));
        assert_eq!((args.keyword(), args.taken(), args.position()), ("maxconn", "4k", 4));
        assert_eq!(args.end(), Err(Fault::new(4, "cannot handle unexpected argument 'wait'")));
        args.take();
        assert_eq!(args.time("<wait>"), Ok(Duration::from_secs(5)));
        assert_eq!(args.end(), Ok(()));
    }

    #[test]
    fn a_missing_word_is_the_last_words_fault() {
        let line = words("bind");
        assert_eq!(Args::new(&line, 1).need("<address>"), Err(Fault::new(0, "expects <address> as argument")));
    }

    #[test]
    fn words_know_their_place() {
        let text = "bind  :80";
        let line = Place { file: "f".into(), line: 1, text: text.into(), span: 0..4 };
        let words = words(text);
        let mut args = Args::new(&words, 1);
        assert_eq!(args.place(&line).span, 6..9);
        args.take();
        assert_eq!(args.place(&line), line);
    }

    #[test]
    fn numbers_know_their_range() {
        let line = words("x 7 seven 99999999999999999999");
        let mut args = Args::new(&line, 1);
        assert_eq!(args.integer("<n>", 8..=9).unwrap_err().reason, "<n>: 7 is not between 8 and 9");
        assert_eq!(args.integer("<n>", 8..=9).unwrap_err(), Fault::new(2, "<n>: 'seven' is not a whole number"));
        assert!(args.integer("<n>", 8..=9).is_err());
    }

    #[test]
    fn bytes_that_are_not_text_are_said_so() {
        let line = words("x \\xff \\xff");
        let mut args = Args::new(&line, 1);
        assert_eq!(args.need("<text>").unwrap_err().word, 1);
        assert_eq!(args.need_bytes("<bytes>"), Ok(&[0xff][..]));
    }

    #[test]
    fn addresses_speak_of_the_environment_without_quotes() {
        let environment = Environment { variables: [("fe".into(), "7".into())].into(), ..Environment::default() };
        let line = words("bind fd@${fe} $fe:80 $none");
        let mut args = Args::within(&line, 1, "bind", &environment);
        assert_eq!(args.need_address("<address>").as_deref(), Ok("fd@7"));
        assert_eq!(args.need_address("<address>").as_deref(), Ok("7:80"));
        assert_eq!(args.need_address("<address>").unwrap_err().word, 3);
    }
}
