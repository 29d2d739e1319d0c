//! Counters of a proxy's compression, for the statistics, written by many threads.

use crate::coding::{CODINGS, Coding};
use crate::dictionary::Figures;
use crate::memory::Recall;
use crate::policy::Layer;
use crate::reason::Reason;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a proxy in a direction. `bytes_in`, `bytes_out` and `bypassed` are HAProxy's `comp_in`, `comp_out` and
/// `comp_byp`; `compressed` is its `comp_rsp`.
#[derive(Debug)]
pub struct Counters {
    /// Bytes that went into coders.
    pub bytes_in: AtomicU64,
    /// Bytes that came out of them.
    pub bytes_out: AtomicU64,
    /// Bytes of bodies that were left as they were.
    pub bypassed: AtomicU64,
    /// Messages that were compressed.
    pub compressed: AtomicU64,
    passed: [AtomicU64; Reason::ALL.len()],
    recalled: [AtomicU64; Recall::ALL.len()],
    hops: [AtomicU64; Layer::ALL.len()],
    /// Counters that few proxies use: made at the first use, so that thousands of idle ones take no room.
    codings: OnceLock<Box<[CodingCounters; CODINGS.len()]>>,
    passed_bytes: OnceLock<Box<[AtomicU64; Reason::ALL.len()]>>,
    dictionaries: OnceLock<Box<Figures>>,
}

/// Counters of a coding.
#[derive(Default, Debug)]
pub struct CodingCounters {
    /// Messages.
    pub messages: AtomicU64,
    /// Bytes that went into the coder.
    pub bytes_in: AtomicU64,
    /// Bytes that came out of it.
    pub bytes_out: AtomicU64,
}

impl CodingCounters {
    fn all(&self) -> [&AtomicU64; 3] {
        [&self.messages, &self.bytes_in, &self.bytes_out]
    }
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            bypassed: AtomicU64::new(0),
            compressed: AtomicU64::new(0),
            passed: [const { AtomicU64::new(0) }; Reason::ALL.len()],
            recalled: [const { AtomicU64::new(0) }; Recall::ALL.len()],
            hops: [const { AtomicU64::new(0) }; Layer::ALL.len()],
            codings: OnceLock::new(),
            passed_bytes: OnceLock::new(),
            dictionaries: OnceLock::new(),
        }
    }
}

impl Counters {
    /// Counts a message that was compressed, and its bytes before and after.
    pub fn count_compressed(&self, coding: Coding, input: u64, output: u64) {
        self.compressed.fetch_add(1, Relaxed);
        self.bytes_in.fetch_add(input, Relaxed);
        self.bytes_out.fetch_add(output, Relaxed);
        let of_coding = &self.codings.get_or_init(Box::default)[coding as usize];
        for (number, more) in of_coding.all().into_iter().zip([1, input, output]) {
            number.fetch_add(more, Relaxed);
        }
    }

    /// The counters of a coding: messages, bytes in and bytes out.
    pub fn of_coding(&self, coding: Coding) -> [u64; 3] {
        self.codings.get().map_or([0; 3], |codings| codings[coding as usize].all().map(|number| number.load(Relaxed)))
    }

    /// Counts a message that is left as it is, and why.
    pub fn count_passed(&self, reason: Reason) {
        self.passed[reason as usize].fetch_add(1, Relaxed);
    }

    /// Counts the bytes that such a message was sent with, head and body.
    pub fn count_passed_bytes(&self, reason: Reason, bytes: u64) {
        self.passed_bytes.get_or_init(|| Box::new([const { AtomicU64::new(0) }; Reason::ALL.len()]))[reason as usize]
            .fetch_add(bytes, Relaxed);
    }

    /// Bytes of messages that were left as they are for that reason.
    pub fn passed_bytes(&self, reason: Reason) -> u64 {
        self.passed_bytes.get().map_or(0, |bytes| bytes[reason as usize].load(Relaxed))
    }

    /// Counts bytes of a message that was left as it is for want of time or memory.
    pub fn count_bypassed(&self, bytes: u64) {
        self.bypassed.fetch_add(bytes, Relaxed);
    }

    /// Number of messages that were left as they are for that reason.
    pub fn passed(&self, reason: Reason) -> u64 {
        self.passed[reason as usize].load(Relaxed)
    }

    /// Counts the memory's result for a message that is compressed.
    pub fn count_recall(&self, recall: Recall) {
        self.recalled[recall as usize].fetch_add(1, Relaxed);
    }

    /// Number of that result of the memory.
    pub fn recalled(&self, recall: Recall) -> u64 {
        self.recalled[recall as usize].load(Relaxed)
    }

    /// The counters of clients' dictionaries, to count in.
    pub fn dictionaries(&self) -> &Figures {
        self.dictionaries.get_or_init(Box::default)
    }

    /// The same to read; nothing where none was ever asked about.
    pub fn of_dictionaries(&self) -> Option<&Figures> {
        self.dictionaries.get().map(|figures| &**figures)
    }

    /// Counts the layer that compressed a response on the proxy's hop: a frontend's is that to clients, a backend's that to
    /// servers.
    pub fn count_hop(&self, layer: Layer) {
        self.hops[layer as usize].fetch_add(1, Relaxed);
    }

    /// Number of responses that this layer compressed.
    pub fn hops(&self, layer: Layer) -> u64 {
        self.hops[layer as usize].load(Relaxed)
    }

    /// Adds the counts of another, so that workers can count apart.
    pub fn add(&self, other: &Counters) {
        if other.codings.get().is_some() {
            self.codings.get_or_init(Box::default);
        }
        if other.passed_bytes.get().is_some() {
            self.passed_bytes.get_or_init(|| Box::new([const { AtomicU64::new(0) }; Reason::ALL.len()]));
        }
        if other.dictionaries.get().is_some() {
            self.dictionaries();
        }
        let all = self.all().zip(other.all());
        let codings = self.of_codings().zip(other.of_codings());
        let bytes = self.of_reasons().zip(other.of_reasons());
        let dictionaries = self.of_usages().zip(other.of_usages());
        for (sum, part) in all.chain(codings).chain(bytes).chain(dictionaries) {
            sum.fetch_add(part.load(Relaxed), Relaxed);
        }
    }

    /// Sets all to 0.
    pub fn clear(&self) {
        self.all()
            .chain(self.of_codings())
            .chain(self.of_reasons())
            .chain(self.of_usages())
            .for_each(|number| number.store(0, Relaxed));
    }

    fn of_codings(&self) -> impl Iterator<Item = &AtomicU64> {
        self.codings.get().into_iter().flat_map(|codings| codings.iter()).flat_map(CodingCounters::all)
    }

    fn of_reasons(&self) -> impl Iterator<Item = &AtomicU64> {
        self.passed_bytes.get().into_iter().flat_map(|bytes| bytes.iter())
    }

    fn of_usages(&self) -> impl Iterator<Item = &AtomicU64> {
        self.dictionaries.get().into_iter().flat_map(|figures| figures.all())
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.bytes_in, &self.bytes_out, &self.bypassed, &self.compressed]
            .into_iter()
            .chain(&self.passed)
            .chain(&self.recalled)
            .chain(&self.hops)
    }
}

/// Bytes that enter coders in a second, process-wide: compared with `maxcomprate`. Time is the caller's, in milliseconds of
/// any clock that does not go back.
#[derive(Default, Debug)]
pub struct Rate {
    second: AtomicU64,
    now: AtomicU64,
    before: AtomicU64,
}

impl Rate {
    /// Counts bytes.
    pub fn add(&self, now_ms: u64, bytes: u64) {
        self.turn(now_ms / 1000);
        self.now.fetch_add(bytes, Relaxed);
    }

    /// The bytes of the last 1000 milliseconds; of the second before this one, as if they had come evenly.
    pub fn per_second(&self, now_ms: u64) -> u64 {
        self.turn(now_ms / 1000);
        let left = 1000 - now_ms % 1000;
        self.now.load(Relaxed).saturating_add(self.before.load(Relaxed).saturating_mul(left) / 1000)
    }

    /// Begins another second, once. Bytes that others add meanwhile may count for either.
    fn turn(&self, second: u64) {
        let last = self.second.load(Relaxed);
        if second > last && self.second.compare_exchange(last, second, Relaxed, Relaxed).is_ok() {
            let now = self.now.swap(0, Relaxed);
            self.before.store(if second == last + 1 { now } else { 0 }, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Usage;

    #[test]
    fn a_rate_is_that_of_the_last_second() {
        let rate = Rate::default();
        rate.add(5_000, 600);
        rate.add(5_900, 400);
        assert_eq!(rate.per_second(5_999), 1000);
        assert_eq!(rate.per_second(6_250), 750);
        rate.add(6_500, 100);
        assert_eq!(rate.per_second(6_500), 600);
        assert_eq!(rate.per_second(9_000), 0);
    }

    #[test]
    fn each_reason_has_its_own_number() {
        let counters = Counters::default();
        for &reason in Reason::ALL {
            counters.count_passed(reason);
        }
        counters.count_passed(Reason::BufferLimit);
        assert!(Reason::ALL.iter().all(|&r| counters.passed(r) == 1 + u64::from(r == Reason::BufferLimit)));
    }

    #[test]
    fn sums_and_clears() {
        let (sum, part) = (Counters::default(), Counters::default());
        part.count_compressed(Coding::Zstd, 10, 3);
        part.count_passed(Reason::Head);
        part.count_passed_bytes(Reason::Status, 50);
        part.dictionaries().count(Usage::Used);
        sum.add(&part);
        sum.add(&part);
        sum.add(&Counters::default());
        assert_eq!((sum.of_coding(Coding::Zstd), sum.of_coding(Coding::Gzip)), ([2, 20, 6], [0; 3]));
        assert_eq!((sum.passed_bytes(Reason::Status), sum.passed_bytes(Reason::Head)), (100, 0));
        assert_eq!((sum.compressed.load(Relaxed), sum.bytes_in.load(Relaxed), sum.bytes_out.load(Relaxed)), (2, 20, 6));
        assert_eq!(sum.passed(Reason::Head), 2);
        assert_eq!(sum.of_dictionaries().unwrap().of(Usage::Used), 2);
        sum.clear();
        assert_eq!((sum.bytes_in.load(Relaxed), sum.passed(Reason::Head)), (0, 0));
        assert_eq!((sum.of_coding(Coding::Zstd), sum.passed_bytes(Reason::Status)), ([0; 3], 0));
        assert_eq!(sum.of_dictionaries().unwrap().offered(), 0);
    }
}
