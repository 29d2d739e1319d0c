//! The turns of bodies that are coded: when so much of them was done, the worker looks after its other clients.
//!
//! A task that always finds something to read and room to write goes on for as long as the runtime lets it, which counts operations, not
//! bytes: 128 times 64 KB with a coder's work behind each is five milliseconds and more, for which small requests waited. And each of many
//! tasks that are ready does its share before the worker looks at what has come for others: sixteen bodies of a third of a millisecond are
//! five milliseconds again. So a worker has one turn, which all its bodies use up together. Whoever finds too little left of it begins
//! another: waits in line for the one place from which a look is taken, and goes on behind that.
//!
//! ```text
//!   one body's work ───┐                                             ┌───> work
//!   another's ─────────┼──> what is left of the turn ──> too little: in line ──> a look at all clients: a turn is left
//!   a third's ─────────┘
//! ```
//!
//! A body that was collected is coded in one go at its end, of which is known before how long it takes. One that passes as it is has no
//! turns: there they cost 5 % of the CPU time, measured with 64 MB over four connections.
//!
//! **Invariant:** between two looks there is work for one turn, and one piece of work that is longer.

use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::Mutex;

thread_local! {
    /// What is left of the worker's turn, in bytes.
    static LEFT: Cell<usize> = const { Cell::new(TURN_BYTES) };
    /// Whoever begins another turn holds it during the look, which is all that it protects; the others wait in line.
    static LINE: Rc<Mutex<()>> = Rc::default();
}

/// The worker has slept, and has heard what has come for all since.
pub fn begin() {
    LEFT.set(TURN_BYTES);
}

/// So many bytes of a body have moved. Returns when there is something left of a turn: the runtime has heard what has come for others, and
/// given them theirs.
pub async fn moved(bytes: usize) {
    take(bytes.max(LEAST_BYTES));
    has(1).await;
}

/// What comes next will be done in one go, and take so many nanoseconds. Returns when there is a turn for that, or a whole one if none is
/// long enough.
pub async fn before(ns: u64) {
    let bytes = usize::try_from(ns.saturating_mul(TURN_BYTES as u64) / TURN_NS).unwrap_or(TURN_BYTES).min(TURN_BYTES);
    has(bytes).await;
    take(bytes);
}

/// Waits until so much of a turn is left.
async fn has(bytes: usize) {
    if left() < bytes {
        let line = LINE.with(Rc::clone);
        let _place = line.lock().await;
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
        let mut goes_on = |body: usize| bodies[body].as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        // The second waits for the first, and then for a look of its own; so does the third.
        assert_eq!([0, 1, 2, 0, 1, 2, 1, 2, 2].map(&mut goes_on), [false, false, false, true, false, false, true, false, true]);
    }

    #[test]
    fn who_waited_in_line_needs_no_look_where_enough_was_left() {
        take(TURN_BYTES);
        let mut bodies = [1, 1].map(|bytes| Box::pin(moved(bytes)));
        let mut goes_on = |body: usize| bodies[body].as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert_eq!([0, 1, 0, 1].map(&mut goes_on), [false, false, true, true]);
    }

    #[test]
    fn parts_of_nearly_nothing_use_a_turn_up() {
        assert_eq!((0..5 * 1024).map(|_| looks(moved(0))).sum::<usize>(), 5);
    }
}
