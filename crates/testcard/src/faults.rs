//! Faults of the card, from a file. Each line has a word and a number from 0 to 1, the part of all jobs that fail that way.
//!
//! ```text
//! seed 7        other dice
//! error 0.01    deflate returns Z_STREAM_ERROR
//! hang 0.01     deflate does not return
//! garbage 0.01  deflate returns bytes that look right, with one bit in the middle turned over
//! noise 0.01    deflate returns noise
//! abort 0.01    abort() is called
//! die 0.01      the process ends in the middle of the result
//! ```

use crate::results::mix;
use std::path::Path;

/// Fault of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// An error is returned.
    Error,
    /// The call does not return.
    Hang,
    /// A wrong result that looks right.
    Garbage,
    /// A wrong result.
    Noise,
    /// `abort()`.
    Abort,
    /// The process ends when half of the result is written.
    Die,
}

const WORDS: [(&str, Fault); 6] = [
    ("error", Fault::Error),
    ("hang", Fault::Hang),
    ("garbage", Fault::Garbage),
    ("noise", Fault::Noise),
    ("abort", Fault::Abort),
    ("die", Fault::Die),
];

/// The fault of the job of that number, if any, by a file's settings.
pub fn draw(path: &Path, job: u64) -> Option<Fault> {
    decide(&std::fs::read_to_string(path).ok()?, job)
}

fn decide(text: &str, job: u64) -> Option<Fault> {
    let lines = || text.lines().filter_map(|line| line.trim().split_once(' '));
    let seed = lines().find_map(|(word, number)| (word == "seed").then(|| number.parse().ok())?).unwrap_or(0);
    // Twice: neighbouring jobs and seeds are to have nothing in common.
    let dice = mix(mix(job) ^ seed) as f64 / u64::MAX as f64;
    let mut so_far = 0.0;
    lines().find_map(|(word, number)| {
        let fault = WORDS.iter().find(|(known, _)| *known == word)?.1;
        so_far += number.trim().parse::<f64>().ok()?;
        (dice <= so_far).then_some(fault)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_the_file_says() {
        let text = "seed 3\nerror 0.1\nhang 0.05\nnonsense\ndie x\n";
        let count = |fault| (0..10_000).filter(|job| decide(text, *job) == fault).count();
        assert!((900..1100).contains(&count(Some(Fault::Error))) && (400..600).contains(&count(Some(Fault::Hang))));
        assert!(count(None) > 8000);
        assert!((0..100).all(|job| decide("garbage 1", job) == Some(Fault::Garbage)));
        assert_ne!(decide("seed 1\nerror 0.5", 9), decide("seed 4\nerror 0.5", 9));
    }
}
