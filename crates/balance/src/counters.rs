//! Counters that every request increments, without contention of workers for a cache line.
//!
//! Each set of counters is kept several times, in lanes; a thread adds to its own lane and readers add the lanes up. A sum is exact
//! once the writers rest; while they run, each single count is right at some moment during the call.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts of a server, and of its backend under the same names.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Count { $($(#[$doc])* $name),* }

        const COUNTS: usize = [$(Count::$name),*].len();
    };
}

counts! {
    /// Streams sent to it (`stot`).
    Sessions,
    /// Streams that the algorithm, not persistence, sent to it (`lbtot`).
    Balanced,
    /// Bytes from clients (`bin`).
    BytesIn,
    /// Bytes to clients (`bout`).
    BytesOut,
    /// Bytes of requests sent to it (`reqbout`).
    BytesToServer,
    /// Bytes of responses received from it (`resbin`).
    BytesFromServer,
    /// Requests denied by a rule (`dreq`).
    DeniedRequests,
    /// Responses denied by a rule (`dresp`).
    DeniedResponses,
    /// Edits of heads that rules could not make (`wrew`).
    RewriteFailures,
    /// Connections that could not be made (`econ`).
    ConnectErrors,
    /// Broken responses (`eresp`).
    ResponseErrors,
    /// Connections tried again on the same server (`wretr`).
    Retries,
    /// Requests sent elsewhere after this server failed (`wredis`).
    Redispatches,
    /// Transfers that the client ended (`cli_abrt`).
    ClientAborts,
    /// Transfers that the server ended (`srv_abrt`).
    ServerAborts,
    /// Responses 1xx (`hrsp_1xx`).
    Status1xx,
    /// Responses 2xx (`hrsp_2xx`).
    Status2xx,
    /// Responses 3xx (`hrsp_3xx`).
    Status3xx,
    /// Responses 4xx (`hrsp_4xx`).
    Status4xx,
    /// Responses 5xx (`hrsp_5xx`).
    Status5xx,
    /// Responses with another status (`hrsp_other`).
    StatusOther,
    /// Streams that a fault of this program ended (`eint`).
    InternalErrors,
    /// Requests (`req_tot`).
    Requests,
    /// Connections made (`connect`).
    Connects,
    /// Requests that went over a connection that was there already (`reuse`).
    Reuses,
    /// Health checks that failed while the server was up (`chkfail`).
    FailedChecks,
    /// Times it went from up to down (`chkdown`).
    WentDown,
    /// Times that errors of requests were too many (`hanafail`).
    AnalysisFailures,
}

/// A set of counters.
#[derive(Debug)]
pub struct Counters {
    lanes: Box<[Lane; LANES]>,
    /// Sums at the time of the last clearing: a lane is written by its thread only.
    cleared: Box<Lane>,
}

/// Twice a cache line: neighbouring lines are fetched in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Lane([AtomicU64; COUNTS]);

impl Default for Counters {
    fn default() -> Counters {
        let lane = || Lane(std::array::from_fn(|_| AtomicU64::new(0)));
        Counters { lanes: Box::new(std::array::from_fn(|_| lane())), cleared: Box::new(lane()) }
    }
}

impl Counters {
    /// Adds to one count.
    pub fn add(&self, count: Count, n: u64) {
        let lane = lane();
        let sum = &self.lanes[lane].0[count as usize];
        if lane == SHARED_LANE {
            sum.fetch_add(n, Relaxed);
        } else {
            // The lane has one writer, so this need not be one step, which would cost many times as much.
            sum.store(sum.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    /// Adds 1.
    pub fn bump(&self, count: Count) {
        self.add(count, 1);
    }

    /// Counts a response by its status.
    pub fn bump_status(&self, status: u16) {
        self.bump(match status / 100 {
            1 => Count::Status1xx,
            2 => Count::Status2xx,
            3 => Count::Status3xx,
            4 => Count::Status4xx,
            5 => Count::Status5xx,
            _ => Count::StatusOther,
        });
    }

    /// The sum over all threads.
    pub fn total(&self, count: Count) -> u64 {
        self.sum(count as usize).wrapping_sub(self.cleared.0[count as usize].load(Relaxed))
    }

    fn sum(&self, count: usize) -> u64 {
        self.lanes[..taken_lanes()].iter().map(|lane| lane.0[count].load(Relaxed)).fold(0, u64::wrapping_add)
    }

    /// Sets all to zero (`clear counters all`).
    pub fn clear(&self) {
        self.cleared.0.iter().enumerate().for_each(|(count, cleared)| cleared.store(self.sum(count), Relaxed));
    }
}

/// Number of lanes: as many as a machine usually gives to a proxy, and one more that all further threads share.
pub(crate) const LANES: usize = 17;
const SHARED_LANE: usize = LANES - 1;

/// Number of lanes that threads have taken.
static NEXT_LANE: AtomicUsize = AtomicUsize::new(0);

/// Lanes that threads write to: those after them are zero, and not worth the cache's time.
pub(crate) fn taken_lanes() -> usize {
    NEXT_LANE.load(Relaxed).min(LANES)
}

/// The lane of this thread.
pub(crate) fn lane() -> usize {
    thread_local!(static MINE: Cell<usize> = const { Cell::new(usize::MAX) });
    MINE.with(|mine| match mine.get() {
        usize::MAX => {
            mine.set(NEXT_LANE.fetch_add(1, Relaxed).min(SHARED_LANE));
            mine.get()
        }
        lane => lane,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..100).for_each(|_| counters.add(Count::BytesIn, 3)));
            }
        });
        counters.bump_status(204);
        counters.bump_status(999);
        assert_eq!(counters.total(Count::BytesIn), 6000);
        assert_eq!((counters.total(Count::Status2xx), counters.total(Count::StatusOther)), (1, 1));
        counters.clear();
        assert_eq!(counters.total(Count::BytesIn), 0);
    }
}
