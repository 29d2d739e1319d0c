//! The turn of a body that is coded: when so many bytes of it have moved, the worker looks after its other clients.
//!
//! A task that always finds something to read and room to write goes on for as long as the runtime lets it, which counts operations, not
//! bytes: 128 times 64 KB with a coder's work behind each is five milliseconds and more, for which small requests waited. And of all bodies one
//! begins another turn between two looks at what has come for others, or eight of them would be half a millisecond. A body that was collected
//! is coded in one go at its end, which is a turn, too. One that passes as it is has no turns: there they cost 5 % of the CPU time, measured with
//! 64 MB over four connections.

use std::rc::Rc;
use tokio::sync::Mutex;

thread_local! {
    /// Whoever begins another turn holds it meanwhile; the others wait in line.
    static GATE: Rc<Mutex<()>> = Rc::default();
}

/// What is left of a turn.
pub struct Turn {
    left: usize,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn { left: TURN_BYTES }
    }
}

impl Turn {
    /// So many bytes have moved. At the end of a turn the runtime hears what has come for others, and then gives them theirs.
    pub async fn moved(&mut self, bytes: usize) {
        match self.left.checked_sub(bytes.max(LEAST_BYTES)) {
            Some(left @ 1..) => self.left = left,
            _ => self.end().await,
        }
    }

    /// What comes next is done in one go, and will take so many nanoseconds: if that is long, it is a turn of its own.
    pub async fn before(&mut self, ns: u64) {
        if ns >= LONG_NS {
            self.end().await;
        }
    }

    async fn end(&mut self) {
        self.left = TURN_BYTES;
        let gate = GATE.with(Rc::clone);
        let _held = gate.lock().await;
        tokio::task::yield_now().await;
    }
}

/// Some 50 to 300 µs of work, and one job of the offload queue.
const TURN_BYTES: usize = 64 * 1024;

/// As much in one go, for which others need not wait twice.
const LONG_NS: u64 = 50_000;

/// What a part counts at least, however short it is: it costs some 50 to 100 ns of its own.
const LEAST_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn a_turn_ends_when_so_many_bytes_have_moved() {
        let mut turn = Turn::default();
        let mut yields = |bytes| pin!(turn.moved(bytes)).poll(&mut Context::from_waker(Waker::noop())).is_pending();
        let moved = [1, 65_471, 1, 65_535, 1, 1 << 20, 5].map(&mut yields);
        assert_eq!(moved, [false, false, true, false, true, true, false]);
    }

    #[test]
    fn one_body_of_all_begins_another_turn_between_two_looks() {
        let (mut first, mut second) = (Turn::default(), Turn::default());
        let (mut first, mut second) = (pin!(first.moved(TURN_BYTES)), pin!(second.moved(TURN_BYTES)));
        let mut context = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending() && second.as_mut().poll(&mut context).is_pending());
        // The second waits for the first, and then for a look of its own.
        assert!(first.as_mut().poll(&mut context).is_ready() && second.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn what_is_long_is_a_turn_of_its_own() {
        let mut turn = Turn::default();
        let mut yields = |ns| pin!(turn.before(ns)).poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert_eq!([0, LONG_NS - 1, LONG_NS].map(&mut yields), [false, false, true]);
    }

    #[test]
    fn parts_of_nearly_nothing_use_a_turn_up() {
        let mut turn = Turn::default();
        let mut yields = || pin!(turn.moved(0)).poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert_eq!((0..5 * 1024).filter(|_| yields()).count(), 5);
    }
}
