//! Commands that other parts of the program bring while the configuration is read, such as scripts.
//!
//! ```text
//!   a client's words --> none of our own commands --> Guests::find --> Guest::begin, with one end of a socket pair
//!                                                                          |
//!   the client <-- what comes out of the other end, until it is closed ----+
//! ```
//!
//! Invariant: no guest takes the place of a command of ours ([`crate::inside`] adds them, and looks).

use crate::words::Word;
use std::fmt::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A command of another part of the program.
pub trait Guest: Send + Sync {
    /// Begins to answer: the bytes that are written to the socket are the answer, and its close is the end. The socket does
    /// not block.
    ///
    /// # Errors
    /// It cannot answer now.
    fn begin(&self, words: Vec<Vec<u8>>, socket: UnixStream) -> Result<(), String>;
}

/// An entry.
#[derive(Clone)]
struct Entry {
    words: Vec<String>,
    usage: String,
    guest: Arc<dyn Guest>,
}

/// The list.
#[derive(Default)]
pub(crate) struct Guests(Mutex<Vec<Entry>>);

impl Guests {
    /// Adds a command; it takes the place of another guest with the same words.
    ///
    /// # Errors
    /// There are no words, or too many.
    pub(crate) fn add(&self, words: Vec<String>, usage: String, guest: Arc<dyn Guest>) -> Result<(), String> {
        let has_blank = |word: &String| word.is_empty() || word.contains(|c: char| c.is_whitespace() || c.is_control() || c == ';');
        if words.is_empty() || words.len() > MOST_WORDS || words.iter().any(has_blank) {
            return Err(format!("a command has 1 to {MOST_WORDS} words without blanks"));
        }
        let mut entries = self.lock();
        entries.retain(|entry| entry.words != words);
        if entries.len() >= MOST {
            return Err(format!("there are {MOST} commands of scripts already"));
        }
        entries.push(Entry { words, usage, guest });
        Ok(())
    }

    /// The command whose words these begin with; the longest match wins.
    pub(crate) fn find(&self, words: &[Word]) -> Option<Arc<dyn Guest>> {
        let entries = self.lock();
        let begins =
            |entry: &&Entry| words.len() >= entry.words.len() && entry.words.iter().zip(words).all(|(own, word)| *word == **own);
        entries.iter().filter(begins).max_by_key(|entry| entry.words.len()).map(|entry| entry.guest.clone())
    }

    /// Their lines in `help`, for those that begin with the words.
    pub(crate) fn list(&self, words: &[Word], text: &mut String) {
        let begins = |entry: &&Entry| entry.words.iter().zip(words).all(|(own, word)| own.starts_with(word.as_str()));
        for entry in self.lock().iter().filter(begins) {
            let _ = writeln!(text, "  {:<39} : {}", entry.words.join(" "), entry.usage.lines().next().unwrap_or_default());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lock().iter().map(|entry| &entry.words)).finish()
    }
}

/// Most words of a command, as in HAProxy.
const MOST_WORDS: usize = 5;
/// Most commands.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Guest for Silent {
        fn begin(&self, _: Vec<Vec<u8>>, _: UnixStream) -> Result<(), String> {
            Err("not now".into())
        }
    }

    #[test]
    fn guests_are_found_by_their_words() {
        let guests = Guests::default();
        let add = |text: &str| guests.add(text.split(' ').map(str::to_owned).collect(), format!("Shows {text}"), Arc::new(Silent));
        let finds = |text: &str| guests.find(&text.split(' ').map(Word::from).collect::<Vec<_>>()).is_some();
        assert_eq!(add("show mine"), Ok(()));
        assert_eq!(add("show mine too"), Ok(()));
        assert_eq!(add("show mine"), Ok(()), "again");
        assert!(add("a b c d e f").is_err() && add("a  b").is_err() && add("").is_err() && add("a;b").is_err());
        assert!(finds("show mine") && finds("show mine too x") && !finds("show min") && !finds("show"));
        let mut text = String::new();
        guests.list(&["show".into(), "m".into()], &mut text);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("show mine too") && text.contains(" : Shows show mine\n"));
    }
}
