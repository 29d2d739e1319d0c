//! Content types of answers that went as they were because of their type or bytes: the heaviest, and what a sample of each would save.
//!
//! Each worker has a board of [`PLACES`] entries. A type that finds it full takes the lightest entry's place and its weight
//! (the space-saving algorithm), so types that are sent much are never lost, whatever else comes.
//!
//! A sample is the beginning of one body, up to [`SAMPLE_BYTES`], of a type that is not listed. It is compressed once in
//! [`SAMPLE_EVERY`], as an answer would be. Answers that are one user's own are never sampled, and of a sample the ratio alone is kept.

use crate::io::Listener;
use crate::plan::Plan;
use crate::worker::Worker;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use terse_compress::{Coding, Compressor, Level, Reason, Step};

/// Entries of a board.
pub const PLACES: usize = 32;
/// Bytes of a type that are kept.
const NAME_BYTES: usize = 64;
/// Bytes of a body that are compressed as a sample.
pub const SAMPLE_BYTES: usize = 64 * 1024;
/// Bodies below this say little of their type.
const LEAST_SAMPLE_BYTES: usize = 1024;
/// Time between two samples of a type.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(600);
/// The level of a sample, in gzip: what `compression on` begins with.
const SAMPLE_LEVEL: Level = Level(6);

/// The boards of a process, one for each worker.
pub struct Types {
    boards: Box<[Mutex<Vec<Entry>>]>,
}

/// A type, and the reason that its answers went as they were.
struct Entry {
    name: Box<str>,
    reason: Reason,
    answers: u64,
    bytes: u64,
    /// Bytes of types that had this place before: what the entry is weighed with, beside its own.
    inherited: u64,
    sampled: Option<Instant>,
    ratio: Option<Ratio>,
}

/// Bytes of a sample, before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Bytes of the sample.
    pub bytes_in: u64,
    /// Bytes that gzip made of it.
    pub bytes_out: u64,
}

/// A type over all workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfType {
    /// The type, in small letters, without parameters; empty where there was none.
    pub name: Box<str>,
    /// Why its answers went as they were.
    pub reason: Reason,
    /// Answers.
    pub answers: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// What the newest sample came to.
    pub ratio: Option<Ratio>,
}

impl Types {
    /// Empty boards for so many workers.
    pub fn new(workers: usize) -> Types {
        Types { boards: (0..workers.max(1)).map(|_| Mutex::default()).collect() }
    }

    /// Counts an answer with so many bytes of body, where the reason is one of types.
    pub fn note(&self, worker: usize, content_type: Option<&[u8]>, reason: Reason, bytes: u64) {
        if !is_of_type(reason) {
            return;
        }
        let Some(mut board) = self.board(worker) else { return };
        let name = content_type.unwrap_or_default();
        let known = board.iter().position(|entry| entry.reason == reason && is_named(&entry.name, name));
        let at = known.unwrap_or_else(|| {
            let fresh = Entry { name: named(name), reason, answers: 0, bytes: 0, inherited: 0, sampled: None, ratio: None };
            let lightest = (0..board.len()).min_by_key(|at| board[*at].weight()).filter(|_| board.len() == PLACES);
            match lightest {
                Some(at) => board[at] = Entry { inherited: board[at].weight(), ..fresh },
                None => board.push(fresh),
            }
            lightest.unwrap_or(board.len() - 1)
        });
        board[at].answers += 1;
        board[at].bytes += bytes;
    }

    /// Whether a body of the type is to be sampled now: then the next one is after [`SAMPLE_EVERY`].
    fn begin_sample(&self, worker: usize, content_type: &[u8], now: Instant) -> bool {
        let Some(mut board) = self.board(worker) else { return false };
        let mut entries = board.iter_mut();
        // A type is known from its first answer on: what comes once is not worth it.
        let Some(entry) = entries.find(|entry| entry.reason == Reason::TypeNotListed && is_named(&entry.name, content_type)) else {
            return false;
        };
        let is_due = entry.sampled.is_none_or(|last| now.saturating_duration_since(last) >= SAMPLE_EVERY);
        if is_due {
            entry.sampled = Some(now);
        }
        is_due
    }

    fn end_sample(&self, worker: usize, name: &str, ratio: Ratio) {
        let Some(mut board) = self.board(worker) else { return };
        let entry = board.iter_mut().find(|entry| entry.reason == Reason::TypeNotListed && *entry.name == *name);
        entry.into_iter().for_each(|entry| entry.ratio = Some(ratio));
    }

    /// All types over all workers, the heaviest first.
    pub fn all(&self) -> Vec<OfType> {
        let mut all: Vec<(OfType, Option<Instant>)> = Vec::new();
        for worker in 0..self.boards.len() {
            for entry in self.board(worker).iter().flat_map(|board| board.iter()) {
                let known = all.iter().position(|(of, _)| (&of.name, of.reason) == (&entry.name, entry.reason));
                let at = known.unwrap_or_else(|| {
                    let of = OfType { name: entry.name.clone(), reason: entry.reason, answers: 0, bytes: 0, ratio: None };
                    all.push((of, None));
                    all.len() - 1
                });
                let (of, sampled) = &mut all[at];
                of.answers += entry.answers;
                of.bytes += entry.bytes;
                if entry.ratio.is_some() && entry.sampled >= *sampled {
                    (of.ratio, *sampled) = (entry.ratio, entry.sampled);
                }
            }
        }
        all.sort_by(|(a, _), (b, _)| (b.bytes, b.answers, &a.name).cmp(&(a.bytes, a.answers, &b.name)));
        all.into_iter().map(|(of, _)| of).collect()
    }

    fn board(&self, worker: usize) -> Option<MutexGuard<'_, Vec<Entry>>> {
        Some(self.boards.get(worker)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entry {
    fn weight(&self) -> u64 {
        self.bytes.saturating_add(self.inherited)
    }
}

impl Ratio {
    /// Thousandths of the sample that gzip leaves.
    pub fn permille(self) -> u64 {
        (self.bytes_out.saturating_mul(1000)).checked_div(self.bytes_in).unwrap_or(1000)
    }
}

/// Whether the answer's type, or its first bytes, were the reason.
const fn is_of_type(reason: Reason) -> bool {
    use Reason::{CompressedType, Entropy, Magic, MissingType, TypeNotListed};
    matches!(reason, TypeNotListed | CompressedType | MissingType | Magic | Entropy)
}

/// A Content-Type without its parameters.
fn bare(content_type: &[u8]) -> &[u8] {
    let end = content_type.iter().position(|byte| *byte == b';').unwrap_or(content_type.len());
    let bare = content_type[..end].trim_ascii();
    &bare[..bare.len().min(NAME_BYTES)]
}

/// What a type is shown as: what is no sign of a token is a question mark.
fn shown(byte: u8) -> u8 {
    if byte.is_ascii_graphic() { byte.to_ascii_lowercase() } else { b'?' }
}

fn named(content_type: &[u8]) -> Box<str> {
    bare(content_type).iter().map(|byte| char::from(shown(*byte))).collect()
}

fn is_named(name: &str, content_type: &[u8]) -> bool {
    let bare = bare(content_type);
    name.len() == bare.len() && name.bytes().zip(bare).all(|(known, byte)| known == shown(*byte))
}

/// The beginning of a body that is compressed as a sample while it goes by. Its memory is counted as that of any body that is collected.
pub struct Sampling {
    plan: Arc<Plan>,
    worker: usize,
    name: Box<str>,
    /// None once it has its part, or where there is no memory for it.
    coder: Option<Compressor>,
}

impl Sampling {
    /// A sample of a body of that type, where one is due.
    pub fn begin(worker: &Rc<Worker>, content_type: &[u8]) -> Option<Sampling> {
        let due = worker.plan.types.begin_sample(worker.index, content_type, Instant::now());
        due.then(|| {
            let how = terse_compress::Plan { coding: Coding::Gzip, level: SAMPLE_LEVEL };
            let coder = Some(Compressor::new(how, None, SAMPLE_BYTES, &worker.workplace));
            Sampling { plan: worker.plan.clone(), worker: worker.index, name: named(content_type), coder }
        })
    }

    /// Compresses what has come, beside what the worker serves.
    fn compress(&mut self) {
        let Some(mut coder) = self.coder.take().filter(|coder| coder.bytes_in() >= LEAST_SAMPLE_BYTES as u64) else { return };
        let (plan, worker, name) = (self.plan.clone(), self.worker, self.name.clone());
        tokio::task::spawn_local(async move {
            let Ok(step) = coder.finish() else { return };
            if coder.settle(step).await.is_ok() {
                let ratio = Ratio { bytes_in: coder.bytes_in(), bytes_out: coder.bytes_out() };
                plan.types.end_sample(worker, &name, ratio);
            }
        });
    }
}

impl Listener for Sampling {
    fn hear(&mut self, data: &[u8]) {
        let Some(coder) = &mut self.coder else { return };
        let room = SAMPLE_BYTES.saturating_sub(usize::try_from(coder.bytes_in()).unwrap_or(SAMPLE_BYTES));
        match coder.feed(&data[..data.len().min(room)]) {
            Ok(Step::Done) if data.len() >= room => self.compress(),
            Ok(Step::Done) => {}
            // It is not collected any more: there is no memory for that.
            Ok(Step::Here(_) | Step::Away(_)) | Err(_) => self.coder = None,
        }
    }

    fn end(mut self: Box<Self>) {
        self.compress();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(types: &Types) -> Vec<(String, &'static str, u64, u64)> {
        types.all().into_iter().map(|of| (of.name.into(), of.reason.name(), of.answers, of.bytes)).collect()
    }

    #[test]
    fn types_are_counted_over_all_workers() {
        let types = Types::new(2);
        types.note(0, Some(b"Application/Wasm; a=b"), Reason::TypeNotListed, 100);
        types.note(1, Some(b"application/wasm"), Reason::TypeNotListed, 20);
        types.note(1, Some(b"image/png"), Reason::CompressedType, 500);
        types.note(0, None, Reason::MissingType, 1);
        types.note(0, Some(b"a\x01b\xff/\"c"), Reason::TypeNotListed, 2);
        types.note(0, Some(b"text/html"), Reason::TooSmall, 1000);
        types.note(9, Some(b"text/html"), Reason::TypeNotListed, 1000);
        let wanted = [
            ("image/png", "compressed-type", 1, 500),
            ("application/wasm", "type-not-listed", 2, 120),
            ("a?b?/\"c", "type-not-listed", 1, 2),
            ("", "missing-type", 1, 1),
        ];
        assert_eq!(told(&types), wanted.map(|(name, reason, answers, bytes)| (name.to_owned(), reason, answers, bytes)));
    }

    /// A heavy type stays, whatever a server invents beside it, and names are cut.
    #[test]
    fn heavy_types_stay() {
        let types = Types::new(1);
        for number in 0..10_000 {
            types.note(0, Some(format!("x/{number}-{}", "long".repeat(100)).as_bytes()), Reason::TypeNotListed, 10);
            types.note(0, Some(b"application/wasm"), Reason::TypeNotListed, 20);
        }
        let all = types.all();
        assert_eq!((all.len(), &*all[0].name, all[0].answers, all[0].bytes), (PLACES, "application/wasm", 10_000, 200_000));
        assert!(all.iter().all(|of| of.name.len() <= NAME_BYTES));
    }

    #[test]
    fn samples_are_rare_and_never_of_what_comes_once() {
        let types = Types::new(1);
        let now = Instant::now();
        assert!(!types.begin_sample(0, b"application/wasm", now));
        types.note(0, Some(b"application/wasm"), Reason::TypeNotListed, 10);
        types.note(0, Some(b"image/png"), Reason::CompressedType, 10);
        assert!(types.begin_sample(0, b"application/wasm", now));
        assert!(!types.begin_sample(0, b"application/wasm; v=1", now + SAMPLE_EVERY - Duration::from_secs(1)));
        assert!(types.begin_sample(0, b"application/wasm", now + SAMPLE_EVERY));
        assert!(!types.begin_sample(0, b"image/png", now));
        types.end_sample(0, "application/wasm", Ratio { bytes_in: 1000, bytes_out: 190 });
        assert_eq!(types.all()[0].ratio.map(Ratio::permille), Some(190));
        assert_eq!(Ratio { bytes_in: 0, bytes_out: 0 }.permille(), 1000);
    }
}
