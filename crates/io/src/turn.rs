//! The turns of bodies that are coded: after a share of the work, the worker looks after its other clients.
//!
//! A task that always finds bytes to read and room to write goes on for as long as the runtime lets it, which counts
//! operations, not bytes: 128 times 64 KB with a coder's work after each is five milliseconds and more, for which small
//! requests waited. And each of many tasks that are ready does its share before the worker looks at bytes for others: sixteen
//! bodies of a third of a millisecond are five milliseconds again. So a worker has a single turn, which all its bodies use up
//! together. A task that finds too little left of it waits in line for the one place from which a look is taken, and goes on
//! after that.
//!
//! ```text
//!            enough is left of the turn
//!   work ───────────────────────────────────────────────────────────────────────────────────> it is done
//!     │ too little                                                                                 ^
//!     ├──> the line of streams ──────┐                                                             │
//!     ├──> that of whole bodies ─────┼── one of each in turn ──> a look at all clients: a new turn ┘
//!     └──> that of short work ───────┘
//! ```
//!
//! There are three lines, as a task with little work would wait for long after tasks with much: a page that was collected
//! after streams, which have one turn after another, and an event or a small page after large ones. Bodies that pass as they
//! are have no turns: there they cost 5 % of the CPU time, measured with 64 MB over four connections.
//!
//! **Invariant:** between two looks there is as much work as a turn has, or a single piece of work that is longer, and no
//! more than a slice of the offload queue's ([`terse_compress::offload::Hand`]) beside it. Collected bytes count when they
//! are there.

use std::cell::Cell;
use std::rc::Rc;
use std::thread::LocalKey;
use tokio::sync::Mutex;

thread_local! {
    /// The rest of the worker's turn, in bytes.
    static LEFT: Cell<usize> = const { Cell::new(TURN_BYTES) };
    /// Lock of the look at other clients, held during the look, which is all that it protects.
    static LOOK: Place = Place::default();
    /// The first in line of the tasks that code or decode a stream.
    static STREAMS: Place = Place::default();
    /// The first in line of the tasks that code a collected body.
    static WHOLE: Place = Place::default();
    /// The first in line of the tasks with short work.
    static SHORT: Place = Place::default();
}

/// Held by a single task; the others wait in line.
type Place = Rc<Mutex<()>>;

/// Begins a turn: the worker has slept, and has taken events for all since.
pub fn begin() {
    LEFT.set(TURN_BYTES);
}

/// Announces that so many bytes of a stream will be coded, or come out of a decoder. Returns when there is a turn for that:
/// the runtime has taken events for others, and given them their turns.
pub async fn stream(bytes: usize) {
    let line = if bytes <= EVENT_BYTES { &SHORT } else { &STREAMS };
    turn_for(bytes.max(LEAST_BYTES), line).await;
}

/// Announces that a collected body will be coded, which takes so many nanoseconds; if it is done in steps, the longest of
/// them. Returns as `stream` does.
pub async fn whole(ns: u64) {
    let line = if ns <= TURN_NS / 2 { &SHORT } else { &WHOLE };
    turn_for(usize::try_from(ns.saturating_mul(TURN_BYTES as u64) / TURN_NS).unwrap_or(TURN_BYTES), line).await;
}

/// Counts bytes of a body that were collected. Returns when some of a turn is left.
pub async fn collected(bytes: usize) {
    took(bytes.max(LEAST_BYTES) / COLLECTED);
    has(1, &SHORT).await;
}

/// Counts work beyond the announced amount.
pub fn took(bytes: usize) {
    LEFT.set(left().saturating_sub(bytes));
}

/// Waits for a turn for so many bytes, or a whole turn if none is long enough.
async fn turn_for(bytes: usize, line: &'static LocalKey<Place>) {
    let bytes = bytes.min(TURN_BYTES);
    has(bytes, line).await;
    took(bytes);
}

/// Waits until so much of a turn is left.
async fn has(bytes: usize, line: &'static LocalKey<Place>) {
    if left() >= bytes {
        return;
    }
    let (line, look) = (line.with(Rc::clone), LOOK.with(Rc::clone));
    let _first = line.lock().await;
    // The task before in line may have left enough.
    if left() >= bytes {
        return;
    }
    let _looks = look.lock().await;
    if left() < bytes {
        tokio::task::yield_now().await;
        begin();
    }
}

fn left() -> usize {
    LEFT.get()
}

/// Some 50 to 300 µs of work, and a job of the offload queue.
const TURN_BYTES: usize = 64 * 1024;

/// A piece of a stream that comes at once and is no longer is probably an event, or the bytes before a pause.
const EVENT_BYTES: usize = 4 * 1024;

/// Least length of a turn, in nanoseconds; work of which the length is known counts by it.
const TURN_NS: u64 = 50_000;

/// To collect a byte is so many times less work than to code it.
const COLLECTED: usize = 4;

/// Least count of a part, however short it is: it costs some 50 to 100 ns of its own.
const LEAST_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    /// Number of looks at other clients.
    fn looks(turn: impl Future<Output = ()>) -> usize {
        let mut turn = pin!(turn);
        let mut poll = || turn.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        std::iter::from_fn(|| poll().is_pending().then_some(())).count()
    }

    fn goes_on<F: Future<Output = ()>>(body: &mut Pin<Box<F>>) -> bool {
        body.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_turn_ends_when_there_is_too_little_left_of_it() {
        let counts = [1, 65_472, 1, 65_472, 1, 1 << 20, 5].map(|bytes| looks(stream(bytes)));
        assert_eq!(counts, [0, 0, 1, 0, 1, 1, 1]);
        took(60_000);
        assert_eq!([5_000, 5_000].map(|bytes| looks(stream(bytes))), [0, 1]);
    }

    #[test]
    fn a_worker_that_has_slept_begins_another() {
        took(TURN_BYTES);
        begin();
        assert_eq!((looks(whole(TURN_NS)), looks(stream(0))), (0, 1));
    }

    #[test]
    fn what_is_long_has_a_turn_of_its_own() {
        let counts = [0, TURN_NS, 0, 1, TURN_NS / 2, TURN_NS / 2, TURN_NS / 2, 10 * TURN_NS].map(|ns| looks(whole(ns)));
        assert_eq!(counts, [0, 0, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn one_body_of_all_begins_another_turn_between_two_looks() {
        assert_eq!(looks(whole(TURN_NS)), 0);
        let mut bodies = [2, 2, 1].map(|turns| Box::pin(whole(turns * TURN_NS)));
        // The second waits for the first, and then for a look of its own; so does the third.
        assert_eq!(
            [0, 1, 2, 0, 1, 2, 1, 2, 2].map(|body| goes_on(&mut bodies[body])),
            [false, false, false, true, false, false, true, false, true]
        );
    }

    #[test]
    fn who_waited_in_line_needs_no_look_where_enough_was_left() {
        took(TURN_BYTES);
        let mut bodies = [1, 1].map(|bytes| Box::pin(stream(bytes)));
        assert_eq!([0, 1, 0, 1].map(|body| goes_on(&mut bodies[body])), [false, false, true, true]);
    }

    #[test]
    fn what_is_collected_is_a_quarter_of_the_work() {
        assert_eq!([200_000, 62_143, 1, 100_000].map(|bytes| looks(collected(bytes))), [0, 0, 1, 0]);
    }

    #[test]
    fn who_has_little_to_do_does_not_wait_for_all_who_have_much() {
        let order = Rc::new(RefCell::new(Vec::new()));
        let comes = |name: &'static str, turn: Pin<Box<dyn Future<Output = ()>>>| {
            let order = order.clone();
            tokio::task::spawn_local(async move {
                turn.await;
                order.borrow_mut().push(name);
            });
        };
        let local = tokio::task::LocalSet::new();
        let enter = local.enter();
        took(TURN_BYTES);
        for name in ["stream 1", "stream 2", "stream 3"] {
            comes(name, Box::pin(stream(TURN_BYTES)));
        }
        for name in ["page 1", "page 2"] {
            comes(name, Box::pin(whole(TURN_NS)));
        }
        comes("event", Box::pin(stream(100)));
        comes("small page", Box::pin(whole(TURN_NS / 10)));
        drop(enter);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(local);
        assert_eq!(*order.borrow(), ["stream 1", "page 1", "event", "small page", "stream 2", "page 2", "stream 3"]);
    }

    #[test]
    fn parts_of_nearly_nothing_use_a_turn_up() {
        assert_eq!((0..5 * 1024).map(|_| looks(stream(0))).sum::<usize>(), 4);
    }
}
