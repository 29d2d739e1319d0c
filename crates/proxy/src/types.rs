//! Content types of answers that went as they were because of their type or bytes: the heaviest, and the possible saving of a
//! sample of each.
//!
//! Each worker has a board of [`PLACES`] entries. A type that finds it full takes the lightest entry's place and its weight
//! (the space-saving algorithm), so types that are sent much are never lost, whatever else comes.
//!
//! A sample is the beginning of a body, up to [`SAMPLE_BYTES`], of a type that is not listed. A worker compresses a sample of
//! a type in [`SAMPLE_EVERY`], and one of all types in [`SAMPLE_PAUSE`]. Answers for a single user are never sampled, and of
//! a sample the ratio alone is kept.

use crate::io::clock;
use crate::plan::Plan;
use crate::worker::Worker;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use terse_compress::{Coding, Compressor, Level, Reason, Step, policy};
use terse_message::body::Listener;

/// Entries of a board.
pub const PLACES: usize = 32;
/// Bytes of a type that are kept.
const NAME_BYTES: usize = 64;
/// Bytes of a body that are compressed as a sample.
pub const SAMPLE_BYTES: usize = 64 * 1024;
/// Bodies below this say little of their type.
const LEAST_SAMPLE_BYTES: u64 = 1024;
/// Time between two samples of a type.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(600);
/// Time between two samples of any types, for a worker.
const SAMPLE_PAUSE: Duration = Duration::from_secs(1);
/// The level of a sample, in gzip: the initial level of `compression on`.
const SAMPLE_LEVEL: Level = Level(6);

/// The boards of a process, one for each worker.
pub struct Types {
    boards: Box<[Place]>,
}

/// A worker's board, on cache lines of its own.
#[derive(Default)]
#[repr(align(64))]
struct Place(Mutex<Board>);

#[derive(Default)]
struct Board {
    entries: Vec<Entry>,
    /// When the last sample was begun, of whichever type.
    sampled: Option<Instant>,
}

/// A type, and the reason that its answers went as they were.
struct Entry {
    name: Box<str>,
    reason: Reason,
    answers: u64,
    bytes: u64,
    /// Bytes of types that had this place before: a part of the entry's weight, beside its own bytes.
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
    /// The newest sample.
    pub ratio: Option<Ratio>,
}

impl Types {
    /// Empty boards for so many workers.
    pub fn new(workers: usize) -> Types {
        Types { boards: (0..workers.max(1)).map(|_| Place::default()).collect() }
    }

    /// Counts an answer with so many bytes of body, where the reason is its type or its first bytes.
    pub fn note(&self, worker: usize, content_type: Option<&[u8]>, reason: Reason, bytes: u64) {
        if !is_of_type(reason) {
            return;
        }
        let Some(mut board) = self.board(worker) else { return };
        let board = &mut board.entries;
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

    /// Whether a body of the type is to be sampled now.
    fn begin_sample(&self, worker: usize, content_type: &[u8], now: Instant) -> bool {
        let Some(mut board) = self.board(worker) else { return false };
        let Board { entries, sampled } = &mut *board;
        let is_past = |last: Option<Instant>, pause| last.is_none_or(|last| now.saturating_duration_since(last) >= pause);
        if !is_past(*sampled, SAMPLE_PAUSE) {
            return false;
        }
        // A type is known from its first answer on: a type that comes once is not worth it.
        let entry = entries.iter_mut().find(|entry| entry.reason == Reason::TypeNotListed && is_named(&entry.name, content_type));
        let Some(entry) = entry.filter(|entry| is_past(entry.sampled, SAMPLE_EVERY)) else { return false };
        (entry.sampled, *sampled) = (Some(now), Some(now));
        true
    }

    /// Takes the result of a sample; without a ratio it failed, and another body may be sampled.
    fn end_sample(&self, worker: usize, name: &str, ratio: Option<Ratio>) {
        let Some(mut board) = self.board(worker) else { return };
        let mut entries = board.entries.iter_mut();
        let Some(entry) = entries.find(|entry| entry.reason == Reason::TypeNotListed && *entry.name == *name) else { return };
        match ratio {
            Some(_) => entry.ratio = ratio,
            None => entry.sampled = None,
        }
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        (0..self.boards.len()).filter_map(|worker| self.board(worker)).for_each(|mut board| board.entries.clear());
    }

    /// All types over all workers, the heaviest first.
    pub fn all(&self) -> Vec<OfType> {
        let mut all: Vec<(OfType, Option<Instant>)> = Vec::new();
        for worker in 0..self.boards.len() {
            for entry in self.board(worker).iter().flat_map(|board| board.entries.iter()) {
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

    fn board(&self, worker: usize) -> Option<MutexGuard<'_, Board>> {
        Some(self.boards.get(worker)?.0.lock().unwrap_or_else(PoisonError::into_inner))
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
    let bare = policy::media_type(content_type).trim_ascii_start();
    &bare[..bare.len().min(NAME_BYTES)]
}

/// A byte of a type as it is shown: a question mark where it is no graphic sign.
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
    slot: Slot,
    coder: Compressor,
}

/// The right to a sample of a type. It is given back where nothing comes of it.
struct Slot {
    plan: Arc<Plan>,
    worker: usize,
    name: Box<str>,
    ratio: Option<Ratio>,
}

impl Slot {
    fn end(mut self, ratio: Ratio) {
        self.ratio = Some(ratio);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.plan.types.end_sample(self.worker, &self.name, self.ratio);
    }
}

impl Sampling {
    /// A sample of a body of that type, where one is due. `known_bytes`: the body's length.
    pub fn begin(worker: &Rc<Worker>, content_type: &[u8], known_bytes: Option<u64>) -> Option<Sampling> {
        let is_short = known_bytes.is_some_and(|bytes| bytes < LEAST_SAMPLE_BYTES);
        if is_short || !worker.plan.types.begin_sample(worker.index, content_type, clock::now()) {
            return None;
        }
        let slot = Slot { plan: worker.plan.clone(), worker: worker.index, name: named(content_type), ratio: None };
        let how = terse_compress::Plan { coding: Coding::Gzip, level: SAMPLE_LEVEL };
        Some(Sampling { slot, coder: Compressor::new(how, None, SAMPLE_BYTES, &worker.workplace) })
    }

    /// Compresses the collected bytes, beside the worker's other clients.
    fn compress(self) {
        let Sampling { slot, mut coder } = self;
        if coder.bytes_in() < LEAST_SAMPLE_BYTES {
            return;
        }
        tokio::task::spawn_local(async move {
            let Ok(step) = coder.finish() else { return };
            if coder.settle(step).await.is_ok() {
                slot.end(Ratio { bytes_in: coder.bytes_in(), bytes_out: coder.bytes_out() });
            }
        });
    }
}

/// A listener that samples a body; `None` once the sample is complete, or where there is no memory for it.
pub struct Listening(Option<Sampling>);

impl From<Sampling> for Listening {
    fn from(sampling: Sampling) -> Listening {
        Listening(Some(sampling))
    }
}

impl Listener for Listening {
    fn hear(&mut self, data: &[u8]) -> bool {
        let Some(sampling) = &mut self.0 else { return false };
        let room = SAMPLE_BYTES.saturating_sub(usize::try_from(sampling.coder.bytes_in()).unwrap_or(SAMPLE_BYTES));
        match sampling.coder.feed(&data[..data.len().min(room)]) {
            Ok(Step::Done) if data.len() >= room => self.0.take().into_iter().for_each(Sampling::compress),
            Ok(Step::Done) => {}
            // It is not collected any more: there is no memory for that.
            Ok(Step::Here(_) | Step::Away(_)) | Err(_) => self.0 = None,
        }
        self.0.is_some()
    }

    fn end(mut self: Box<Self>) {
        self.0.take().into_iter().for_each(Sampling::compress);
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
        types.note(0, Some(b"application/x-other"), Reason::TypeNotListed, 10);
        types.note(0, Some(b"image/png"), Reason::CompressedType, 10);
        assert!(types.begin_sample(0, b"application/wasm", now));
        // Of all types together one sample in a second, whatever a server invents.
        assert!(!types.begin_sample(0, b"application/x-other", now + SAMPLE_PAUSE / 2));
        assert!(types.begin_sample(0, b"application/x-other", now + SAMPLE_PAUSE));
        assert!(!types.begin_sample(0, b"application/wasm; v=1", now + SAMPLE_EVERY - Duration::from_secs(1)));
        assert!(types.begin_sample(0, b"application/wasm", now + SAMPLE_EVERY));
        // A sample that failed makes room for another.
        types.end_sample(0, "application/wasm", None);
        assert!(!types.begin_sample(0, b"application/wasm", now + SAMPLE_EVERY));
        assert!(types.begin_sample(0, b"application/wasm", now + SAMPLE_EVERY + SAMPLE_PAUSE));
        assert!(!types.begin_sample(0, b"image/png", now + 9 * SAMPLE_EVERY));
        types.end_sample(0, "application/wasm", Some(Ratio { bytes_in: 1000, bytes_out: 190 }));
        let wasm = types.all().into_iter().find(|of| &*of.name == "application/wasm").unwrap();
        assert_eq!(wasm.ratio.map(Ratio::permille), Some(190));
        assert_eq!(Ratio { bytes_in: 0, bytes_out: 0 }.permille(), 1000);
        types.clear();
        assert_eq!(types.all(), []);
    }
}
