//! Whether an answer is worth its dictionary: its form is below [`WORTH`] of the ordinary one.
//!
//! The head says `dcz` before the body is coded, so the first answer of a pair cannot tell. It is compared with its ordinary form instead,
//! where it was held as a whole and did not come out small anyway, and the pair is noted ([`terse_dictionary::Notes`]): later answers are
//! sent in the ordinary form. A pair is the dictionary and what is behind an address: host, target, ETag and Last-Modified. Streams are not
//! compared.

use crate::coder::{Engine, Pool};
use crate::coding::{Coding, Level};
use terse_dictionary::Dictionary;
use terse_message::{Known, Request, Response};

/// A form is worth it below so many tenths of the ordinary one.
const WORTH: usize = 9;

/// A form of a whole body that is smaller than this part of it is not compared: it is worth it.
const SMALL: usize = 8;

/// What an answer that refers to a dictionary is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trial {
    /// The pair of answer and dictionary.
    pub pair: u64,
    /// The coding that the client would get otherwise.
    pub coding: Coding,
    /// Its level.
    pub level: Level,
}

impl Trial {
    /// Time that comparing a body of so many bytes takes, in nanoseconds, if the next one is compared.
    pub(crate) fn due_ns(&self, bytes: usize, dictionary: &Dictionary) -> u64 {
        match !self.coding.is_identity() && dictionary.notes.compares_next() {
            true => Engine::of(self.coding).whole_ns(self.level, bytes),
            false => 0,
        }
    }

    /// Compares a body's form with the ordinary one, if it might not be worth it, and notes the outcome.
    pub(crate) fn run(&self, body: &[u8], form: usize, dictionary: &Dictionary, pool: &Pool) {
        if form.saturating_mul(SMALL) < body.len() || !dictionary.notes.may_compare() {
            return;
        }
        let mut out = Vec::new();
        let ordinary = match self.coding.is_identity() {
            true => body.len(),
            // A coder that fails at it tells nothing.
            false if (Engine::of(self.coding).whole)(body, self.level, pool, &mut out).is_err() => return,
            false => out.len(),
        };
        dictionary.notes.compared(self.pair, form.saturating_mul(10) < ordinary.saturating_mul(WORTH));
    }
}

/// What is asked for, as far as the request tells; nothing of a method whose answer is no representation of its target.
pub(super) fn subject(request: &Request) -> Option<u64> {
    if !matches!(request.method(), b"GET" | b"HEAD") {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(request.fields.first(Known::Host)?).update(b"\0").update(request.path_and_query());
    Some(word(&hasher))
}

/// The pair of an answer to that and its dictionary.
pub(super) fn pair(subject: u64, response: &Response) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&subject.to_le_bytes());
    for value in [response.fields.first(Known::Etag), response.fields.get(b"Last-Modified")] {
        hasher.update(value.unwrap_or_default()).update(b"\0");
    }
    word(&hasher)
}

fn word(hasher: &blake3::Hasher) -> u64 {
    hasher.finalize().as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
