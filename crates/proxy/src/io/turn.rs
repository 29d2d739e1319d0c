//! The turns of bodies that are coded: when so much of them was done, the worker looks after its other clients.
//!
//! A task that always finds something to read and room to write goes on for as long as the runtime lets it, which counts operations, not
//! bytes: 128 times 64 KB with a coder's work behind each is five milliseconds and more, for which small requests waited. And each of many
//! tasks that are ready does its share before the worker looks at what has come for others: sixteen bodies of a third of a millisecond are
//! five milliseconds again. So a worker has one turn, which all its bodies use up together. Whoever finds too little left of it waits in line
//! for the one place from which a look is taken, and goes on behind that.
//!
//! ```text
//!   streams ──────┐                      too little is left
//!                 ├──> the turn's work ────────────────────> their own line ──┐
//!   whole bodies ─┘         ^                                                 ├── one of each in turn ──> a look at all clients ──┐
//!                           │                                another line   ──┘                                                   │
//!                           └─────────────────────────────────────────────────────────────────────────────────── a new turn ──────┘
//! ```
//!
//! A body that is collected is coded in one go at its end, of which is known before how long it takes. Such bodies have a line of their own,
//! as a page has one long turn and some short ones, and would wait for each behind all streams, which have one after another. What passes as
//! it is has no turns: there they cost 5 % of the CPU time, measured with 64 MB over four connections.
//!
//! **Invariant:** between two looks there is work for one turn, and one piece of work that is longer.

use std::cell::Cell;
use std::rc::Rc;
use std::thread::LocalKey;
use tokio::sync::Mutex;

thread_local! {
    /// What is left of the worker's turn, in bytes.
    static LEFT: Cell<usize> = const { Cell::new(TURN_BYTES) };
    /// Whoever takes a look holds it meanwhile, which is all that it protects.
    static LOOK: Place = Place::default();
    /// The first in line of those who code or decode a stream.
    static STREAMS: Place = Place::default();
    /// The first in line of those who collect a body, or code one that they have.
    static WHOLE: Place = Place::default();
}

/// Held by one; the others wait in line.
type Place = Rc<Mutex<()>>;

/// The worker has slept, and has heard what has come for all since.
pub fn begin() {
    LEFT.set(TURN_BYTES);
}

/// So many bytes of a stream were coded, or decoded. Returns when there is something left of a turn: the runtime has heard what has come for
/// others, and given them theirs.
pub async fn moved(bytes: usize) {
    take(bytes.max(LEAST_BYTES));
    has(1, &STREAMS).await;
}

/// So many bytes of a body were collected: the same.
pub async fn collected(bytes: usize) {
    take(bytes.max(LEAST_BYTES) / COLLECTED);
    has(1, &WHOLE).await;
}

/// What was collected will be coded, a step of which takes so many nanoseconds. Returns when there is a turn for that, or a whole one if none
/// is long enough.
pub async fn before(ns: u64) {
    let bytes = usize::try_from(ns.saturating_mul(TURN_BYTES as u64) / TURN_NS).unwrap_or(TURN_BYTES).min(TURN_BYTES);
    has(bytes, &WHOLE).await;
    take(bytes);
}

/// Waits until so much of a turn is left.
async fn has(bytes: usize, line: &'static LocalKey<Place>) {
    if left() < bytes {
        let (line, look) = (line.with(Rc::clone), LOOK.with(Rc::clone));
        let _first = line.lock().await;
        let _looks = look.lock().await;
        // Whoever was before in line may have left enough.
        if left() < bytes {
            tokio::task::yield_now().await;
            begin();
        }
    }
}

fn take(bytes: usize) {
    LEFT.set(left().saturating_sub(bytes));
}

fn left() -> usize {
    LEFT.get()
}

/// Some 50 to 300 µs of work, and one job of the offload queue.
const TURN_BYTES: usize = 64 * 1024;

/// How long a turn is at least, in nanoseconds; work of which the length is known counts by it.
const TURN_NS: u64 = 50_000;

/// To collect a byte is so many times less work than to code it.
const COLLECTED: usize = 4;

/// What a part counts at least, however short it is: it costs some 50 to 100 ns of its own.
const LEAST_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// How often that looks at other clients.
    fn looks(turn: impl Future<Output = ()>) -> usize {
        let mut turn = pin!(turn);
        let mut poll = || turn.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        std::iter::from_fn(|| poll().is_pending().then_some(())).count()
    }

    fn goes_on<F: Future<Output = ()>>(body: &mut std::pin::Pin<Box<F>>) -> bool {
        body.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_turn_ends_when_so_many_bytes_have_moved() {
        let counts = [1, 65_471, 1, 65_535, 1, 1 << 20, 5].map(|bytes| looks(moved(bytes)));
        assert_eq!(counts, [0, 0, 1, 0, 1, 1, 0]);
    }

    #[test]
    fn a_worker_that_has_slept_begins_another() {
        take(TURN_BYTES);
        begin();
        assert_eq!((looks(before(TURN_NS)), looks(moved(0))), (0, 1));
    }

    #[test]
    fn what_is_long_has_a_turn_of_its_own() {
        let counts = [0, TURN_NS, 0, 1, TURN_NS / 2, TURN_NS / 2, TURN_NS / 2, 10 * TURN_NS].map(|ns| looks(before(ns)));
        assert_eq!(counts, [0, 0, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn one_body_of_all_begins_another_turn_between_two_looks() {
        assert_eq!(looks(before(TURN_NS)), 0);
        let mut bodies = [2, 2, 1].map(|turns| Box::pin(before(turns * TURN_NS)));
        // The second waits for the first, and then for a look of its own; so does the third.
        assert_eq!(
            [0, 1, 2, 0, 1, 2, 1, 2, 2].map(|body| goes_on(&mut bodies[body])),
            [false, false, false, true, false, false, true, false, true]
        );
    }

    #[test]
    fn who_waited_in_line_needs_no_look_where_enough_was_left() {
        take(TURN_BYTES);
        let mut bodies = [1, 1].map(|bytes| Box::pin(moved(bytes)));
        assert_eq!([0, 1, 0, 1].map(|body| goes_on(&mut bodies[body])), [false, false, true, true]);
    }

    #[test]
    fn what_is_collected_is_a_quarter_of_the_work() {
        assert_eq!([200_000, 62_143, 1, 100_000].map(|bytes| looks(collected(bytes))), [0, 0, 1, 0]);
    }

    #[test]
    fn streams_and_whole_bodies_take_turns() {
        take(TURN_BYTES);
        let mut streams = [1, 2, 3].map(|_| Box::pin(moved(TURN_BYTES)));
        assert!(streams.iter_mut().all(|stream| !goes_on(stream)));
        let mut page = Box::pin(before(TURN_NS));
        assert!(!goes_on(&mut page));
        // The first stream has had its look; the page is before the second.
        assert!(goes_on(&mut streams[0]));
        take(TURN_BYTES);
        assert_eq!((goes_on(&mut streams[1]), goes_on(&mut page), goes_on(&mut streams[2])), (false, false, false));
        assert_eq!((goes_on(&mut streams[1]), goes_on(&mut page)), (false, true));
        assert_eq!((goes_on(&mut streams[1]), goes_on(&mut streams[2])), (false, false));
        assert_eq!((goes_on(&mut streams[2]), goes_on(&mut streams[1])), (false, true));
    }

    #[test]
    fn parts_of_nearly_nothing_use_a_turn_up() {
        assert_eq!((0..5 * 1024).map(|_| looks(moved(0))).sum::<usize>(), 5);
    }
}
