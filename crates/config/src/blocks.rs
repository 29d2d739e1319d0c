//! Conditional blocks: `.if`, `.elif`, `.else`, `.endif`.
//!
//! ```text
//!            condition holds
//!   .if  ------------------------> Taken ----------+
//!    |                               ^             | .elif, .else
//!    | it does not                   | .elif that  |
//!    +--------> Waiting -------------+ holds,      v
//!    |          (.elif that does not   .else     Over -- .endif --> the outer block
//!    |           stays)                            ^
//!    +--- condition is wrong, or the outer block --+
//!         is not read
//! ```
//!
//! Invariant: only lines whose blocks are all `Taken` are read; a wrong condition costs one diagnostic and skips its block.

use crate::args::Fault;
use crate::condition;
use crate::diagnostic::Place;
use crate::environment::Environment;
use crate::words::Word;

/// The open blocks of a file, outermost first.
#[derive(Default)]
pub(crate) struct Blocks {
    open: Vec<Block>,
}

struct Block {
    place: Place,
    state: State,
    has_else: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// This branch is read.
    Taken,
    /// No branch was read yet.
    Waiting,
    /// No branch will be read any more.
    Over,
}

impl Blocks {
    /// Whether lines here are skipped.
    pub(crate) fn skipping(&self) -> bool {
        self.open.last().is_some_and(|block| block.state != State::Taken)
    }

    /// Reads the line if it opens, changes or closes a block; `None` if it does not.
    pub(crate) fn read(&mut self, words: &[Word], place: &Place, environment: &Environment) -> Option<Result<(), Fault>> {
        match words.first()?.as_str() {
            ".if" => Some(self.open(words, place, environment)),
            ".elif" => Some(self.change(words, environment)),
            ".else" => Some(self.otherwise(words)),
            ".endif" => Some(self.close(words)),
            _ => None,
        }
    }

    /// Places of the blocks that are not closed.
    pub(crate) fn unclosed(&self) -> impl Iterator<Item = &Place> {
        self.open.iter().map(|block| &block.place)
    }

    fn open(&mut self, words: &[Word], place: &Place, environment: &Environment) -> Result<(), Fault> {
        let outcome = match self.skipping() {
            true => Ok(State::Over),
            false if self.open.len() == MAX_NESTED => Err(Fault::new(0, format!("too many nested '.if': at most {MAX_NESTED}"))),
            false => branch(words, environment),
        };
        let state = *outcome.as_ref().unwrap_or(&State::Over);
        self.open.push(Block { place: place.clone(), state, has_else: false });
        outcome.map(|_| ())
    }

    fn change(&mut self, words: &[Word], environment: &Environment) -> Result<(), Fault> {
        let block = self.last("'.elif'")?;
        if block.has_else {
            return Err(Fault::new(0, "'.elif' after '.else' is not permitted"));
        }
        if block.state != State::Waiting {
            block.state = State::Over;
            return Ok(());
        }
        let outcome = branch(words, environment);
        block.state = *outcome.as_ref().unwrap_or(&State::Over);
        outcome.map(|_| ())
    }

    fn otherwise(&mut self, words: &[Word]) -> Result<(), Fault> {
        let block = self.last("'.else'")?;
        if block.has_else {
            return Err(Fault::new(0, "'.else' after '.else' is not permitted"));
        }
        block.has_else = true;
        block.state = if block.state == State::Waiting { State::Taken } else { State::Over };
        alone(words)
    }

    fn close(&mut self, words: &[Word]) -> Result<(), Fault> {
        self.last("'.endif'")?;
        self.open.pop();
        alone(words)
    }

    fn last(&mut self, directive: &str) -> Result<&mut Block, Fault> {
        self.open.last_mut().ok_or_else(|| Fault::new(0, format!("lone {directive} with no matching '.if'")))
    }
}

/// The state of a block whose branch has this condition.
fn branch(words: &[Word], environment: &Environment) -> Result<State, Fault> {
    let (directive, rest) = words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
    match condition::evaluate(&condition::join(rest), environment) {
        Ok(true) => Ok(State::Taken),
        Ok(false) => Ok(State::Waiting),
        Err(error) => Err(Fault::new(1 + word_at(rest, error.position), format!("{} in '{directive}'", error.reason))),
    }
}

/// The index of the word that holds a byte of the joined text.
fn word_at(words: &[Word], position: usize) -> usize {
    let ends = words.iter().scan(0, |end, word| {
        *end += word.display().len() + 1;
        Some(*end)
    });
    ends.take_while(|end| *end <= position).count().min(words.len().saturating_sub(1))
}

fn alone(words: &[Word]) -> Result<(), Fault> {
    match words {
        [directive, extra, ..] => {
            Err(Fault::new(1, format!("unexpected argument '{}' for '{}'", extra.display(), directive.as_str())))
        }
        _ => Ok(()),
    }
}

/// HAProxy's limit; deeper nesting is the fault of a generator.
const MAX_NESTED: usize = 99;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads lines; returns those that are not skipped, and the problems.
    fn read(text: &str) -> (Vec<&str>, Vec<(usize, String)>, usize) {
        let (mut blocks, mut kept, mut faults) = (Blocks::default(), Vec::new(), Vec::new());
        for line in text.lines() {
            let words = crate::words::split(line.as_bytes(), &|_| None).unwrap().words;
            match blocks.read(&words, &Place::nowhere(), &Environment::default()) {
                Some(Err(fault)) => faults.push((fault.word, fault.reason)),
                Some(Ok(())) => {}
                None if blocks.skipping() => {}
                None => kept.push(line.trim()),
            }
        }
        (kept, faults, blocks.unclosed().count())
    }

    #[test]
    fn the_first_branch_that_holds_is_read() {
        let text = |a, b| format!("0\n.if {a}\n1\n.if 1\n2\n.endif\n.elif {b}\n3\n.elif 1\n4\n.else\n5\n.endif\n6");
        for (a, b, expected) in [("1", "1", "0 1 2 6"), ("0", "1", "0 3 6"), ("0", "0", "0 4 6")] {
            let text = text(a, b);
            assert_eq!(read(&text), (expected.split(' ').collect(), vec![], 0));
        }
        assert_eq!(read(".if 0\na\n.else\nb\n.endif").0, ["b"]);
        assert_eq!(read(".if 0\n.if 1\na\n.else\nb\n.endif\n.endif\nc").0, ["c"]);
    }

    #[test]
    fn a_wrong_condition_skips_its_block_and_is_said_once() {
        let (kept, faults, unclosed) = read(".if 1 && foo(\na\n.elif 1\nb\n.else\nc\n.endif\nd");
        assert_eq!((kept, unclosed), (vec!["d"], 0));
        assert_eq!(faults, [(3, "unparsable conditional expression 'foo(' in '.if'".to_owned())]);
        assert_eq!(read(".if 0\n.elif )\na\n.endif").1.len(), 1);
    }

    #[test]
    fn blocks_match() {
        for (text, reason) in [
            (".else", "lone '.else' with no matching '.if'"),
            (".elif 1", "lone '.elif' with no matching '.if'"),
            (".endif", "lone '.endif' with no matching '.if'"),
            (".if 1\n.else\n.else\n.endif", "'.else' after '.else' is not permitted"),
            (".if 1\n.else\n.elif 1\n.endif", "'.elif' after '.else' is not permitted"),
            (".if 1\n.else x\n.endif", "unexpected argument 'x' for '.else'"),
            (".if 1\n.endif x", "unexpected argument 'x' for '.endif'"),
        ] {
            let (_, faults, unclosed) = read(text);
            assert_eq!((faults.len(), unclosed), (1, 0), "{text}");
            assert_eq!(faults[0].1, reason, "{text}");
        }
        assert_eq!(read(&".if 1\n".repeat(MAX_NESTED)).1, []);
        assert_eq!(read(&".if 1\n".repeat(MAX_NESTED + 2)).1.len(), 1);
        assert_eq!(read(".if 1\n.if 0").2, 2);
    }
}
