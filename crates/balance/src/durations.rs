//! Durations of streams, of a server or a backend: averages over the last 1024 of them, the longest, and the time of
//! the last.
//!
//! Like counters they are kept in lanes, one for each of the first threads. A stream's end costs its thread a few
//! relaxed loads and stores in a line of its own. A reader weighs the lanes by their numbers of streams. Threads that
//! share a lane may lose each other's newest sample, and nothing else.

use crate::counters::{LANES, lane, taken_lanes};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A part of a stream's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Span {
    /// Time in queues (`qtime`).
    Queue,
    /// Time of connecting (`ctime`).
    Connect,
    /// Time to the response (`rtime`).
    Response,
    /// Total time (`ttime`).
    Total,
}

/// Durations of streams.
#[derive(Debug)]
pub struct Durations {
    lanes: Box<[Lane; LANES]>,
}

#[derive(Default, Debug)]
#[repr(align(128))]
struct Lane {
    /// Streams so far, up to [`SAMPLES`].
    count: AtomicU64,
    /// Milliseconds, times [`SCALE`].
    means: [AtomicU64; SPANS],
    /// Milliseconds.
    most: [AtomicU64; SPANS],
    /// Seconds from the start to the last stream, plus one; 0: there was none.
    last: AtomicU64,
}

/// Change of a mean of `count` samples by one sample; a division only until there are enough of them.
fn share(difference: u64, count: u64) -> u64 {
    if count == SAMPLES { difference.div_ceil(SAMPLES) } else { difference.div_ceil(count) }
}

impl Default for Durations {
    fn default() -> Durations {
        Durations { lanes: Box::new(std::array::from_fn(|_| Lane::default())) }
    }
}

impl Durations {
    /// Adds a stream's times, in milliseconds, in the order of [`Span`].
    pub fn add(&self, times_ms: [u64; SPANS]) {
        let Some(lane) = self.lanes.get(lane()) else { return };
        let count = (lane.count.load(Relaxed) + 1).min(SAMPLES);
        lane.count.store(count, Relaxed);
        for ((mean, most), ms) in lane.means.iter().zip(&lane.most).zip(times_ms) {
            let ms = ms.min(MOST_MS);
            let (before, sample) = (mean.load(Relaxed), ms * SCALE);
            if sample > before {
                mean.store(before + share(sample - before, count), Relaxed);
            } else if sample < before {
                mean.store(before - share(before - sample, count), Relaxed);
            }
            if ms > most.load(Relaxed) {
                most.store(ms, Relaxed);
            }
        }
    }

    /// Records a stream, at seconds from the start.
    pub fn touch(&self, at_s: u64) {
        if let Some(lane) = self.lanes.get(lane()) {
            lane.last.store(at_s + 1, Relaxed);
        }
    }

    fn taken(&self) -> impl Iterator<Item = &Lane> {
        self.lanes[..taken_lanes()].iter()
    }

    /// Average, in milliseconds.
    pub fn average_ms(&self, span: Span) -> u64 {
        let (mut sum, mut count) = (0u64, 0u64);
        for lane in self.taken() {
            let n = lane.count.load(Relaxed);
            sum += n * lane.means.get(span as usize).map_or(0, |mean| mean.load(Relaxed));
            count += n;
        }
        (sum + count * SCALE / 2) / (count.max(1) * SCALE)
    }

    /// Longest duration, in milliseconds.
    pub fn most_ms(&self, span: Span) -> u64 {
        self.taken().filter_map(|lane| Some(lane.most.get(span as usize)?.load(Relaxed))).max().unwrap_or(0)
    }

    /// Time of the last stream, in seconds from the start.
    pub fn last_s(&self) -> Option<u64> {
        self.taken().map(|lane| lane.last.load(Relaxed)).max().and_then(|last| last.checked_sub(1))
    }

    /// Resets the longest durations.
    pub fn clear_peaks(&self) {
        self.lanes.iter().flat_map(|lane| &lane.most).for_each(|most| most.store(0, Relaxed));
    }

    /// Resets everything but the time of the last stream.
    pub fn clear(&self) {
        self.clear_peaks();
        for lane in self.lanes.iter() {
            lane.count.store(0, Relaxed);
            lane.means.iter().for_each(|mean| mean.store(0, Relaxed));
        }
    }
}

/// Number of spans.
const SPANS: usize = 4;
/// Limit of streams over which averages are taken: HAProxy's manual, `qtime`.
const SAMPLES: u64 = 1024;
/// Averages are kept this much finer than milliseconds: a sample of 1 ms among 1024 of 0 still counts.
const SCALE: u64 = 1024;
/// Above a month no duration is of use; sums of all lanes fit.
const MOST_MS: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_follow_what_happens() {
        let durations = Durations::default();
        assert_eq!((durations.average_ms(Span::Total), durations.last_s()), (0, None));
        (0..10).for_each(|n| durations.add([n, 0, 7, 100]));
        assert_eq!(
            [Span::Queue, Span::Connect, Span::Response, Span::Total].map(|span| durations.average_ms(span)),
            [5, 0, 7, 100]
        );
        assert_eq!((durations.most_ms(Span::Queue), durations.most_ms(Span::Total)), (9, 100));
        (0..20_000).for_each(|_| durations.add([0, 0, 0, 300]));
        assert_eq!((durations.average_ms(Span::Total), durations.average_ms(Span::Queue)), (300, 0));
        durations.touch(0);
        assert_eq!(durations.last_s(), Some(0));
        durations.clear();
        assert_eq!((durations.average_ms(Span::Total), durations.most_ms(Span::Total), durations.last_s()), (0, 0, Some(0)));
        durations.add([u64::MAX; SPANS]);
        assert_eq!(durations.average_ms(Span::Total), MOST_MS);
    }

    #[test]
    fn lanes_weigh_by_their_streams() {
        let durations = Durations::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..300).for_each(|_| durations.add([10; SPANS])));
            scope.spawn(|| (0..100).for_each(|_| durations.add([50; SPANS])));
        });
        // Each thread in a lane of its own: 20; both in one, as with many threads: somewhere between.
        assert!((10..=50).contains(&durations.average_ms(Span::Total)));
    }
}
