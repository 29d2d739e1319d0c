//! Learning of the tables by a new process: from the process that it replaces, or else from one peer after the other.

use crate::group::Group;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Stage of learning the tables' earlier data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The predecessor may still connect and teach.
    Predecessor,
    /// Any connected peer is to be asked.
    Wanted,
    /// This peer teaches.
    Asked(usize),
    /// All is known that could be learnt.
    Complete,
}

/// State of learning: the stage, its deadline, and the peers with nothing more to teach.
#[derive(Debug)]
pub(crate) struct Lesson {
    stage: Stage,
    /// End of the stage, if nothing comes.
    until: Option<Instant>,
    /// Peers that did not know all themselves.
    ignorant: Vec<usize>,
}

impl Default for Lesson {
    fn default() -> Lesson {
        Lesson { stage: Stage::Wanted, until: None, ignorant: Vec::new() }
    }
}

impl Group {
    /// Stage of learning.
    pub fn stage(&self) -> Stage {
        self.lesson().stage
    }

    /// Begins to learn: from the predecessor where there was one, else from a peer.
    pub(crate) fn begin(&self, predecessor: bool, now: Instant) {
        self.enter(if predecessor { Stage::Predecessor } else { Stage::Wanted }, now);
    }

    /// Whether this peer is to be asked now for all its entries.
    pub(crate) fn asks(&self, peer: usize, now: Instant) -> bool {
        let asks = {
            let lesson = self.lesson();
            lesson.stage == Stage::Wanted && !lesson.ignorant.contains(&peer)
        };
        if asks {
            self.enter(Stage::Asked(peer), now);
        }
        asks
    }

    /// Whether the predecessor is expected, and has not connected.
    pub(crate) fn expects_predecessor(&self) -> bool {
        self.stage() == Stage::Predecessor && !self.has_predecessor.load(Relaxed)
    }

    /// Registers a connection as the predecessor's: from now on it has some time to teach.
    pub(crate) fn seat_predecessor(&self, now: Instant) {
        self.has_predecessor.store(true, Relaxed);
        self.enter(Stage::Predecessor, now);
    }

    /// Unregisters the predecessor's connection: no other is expected.
    pub(crate) fn unseat_predecessor(&self, now: Instant) {
        self.has_predecessor.store(false, Relaxed);
        self.lost(None, now);
    }

    /// Records the end of a lesson by a peer, or by the predecessor (`None`), which counts only while it is expected.
    /// `complete`: the teacher knew all itself.
    pub(crate) fn told(&self, peer: Option<usize>, complete: bool, now: Instant) {
        match (peer, self.stage()) {
            (_, Stage::Complete) => {}
            (None, Stage::Predecessor) | (Some(_), _) if complete => self.enter(Stage::Complete, now),
            (None, Stage::Predecessor) => self.enter(Stage::Wanted, now),
            (Some(peer), Stage::Asked(asked)) if peer == asked => {
                self.lesson().ignorant.push(peer);
                self.enter(Stage::Wanted, now);
            }
            _ => {}
        }
    }

    /// Records the end of the connection to a peer, or to the predecessor.
    pub(crate) fn lost(&self, peer: Option<usize>, now: Instant) {
        match (peer, self.stage()) {
            (Some(peer), Stage::Asked(asked)) if peer == asked => self.enter(Stage::Wanted, now),
            (None, Stage::Predecessor) => self.enter(Stage::Wanted, now),
            _ => {}
        }
    }

    /// Ends a stage that takes too long.
    pub(crate) fn end_late(&self, now: Instant) {
        let (stage, until) = {
            let lesson = self.lesson();
            (lesson.stage, lesson.until)
        };
        if until.is_some_and(|until| until <= now) {
            match stage {
                Stage::Predecessor => self.enter(Stage::Wanted, now),
                Stage::Wanted => self.enter(Stage::Complete, now),
                Stage::Asked(peer) => {
                    self.lesson().ignorant.push(peer);
                    self.enter(Stage::Wanted, now);
                }
                Stage::Complete => {}
            }
        }
    }

    fn enter(&self, stage: Stage, now: Instant) {
        let patience = match stage {
            Stage::Complete => None,
            Stage::Asked(_) => Some(LESSON),
            Stage::Predecessor | Stage::Wanted => Some(PATIENCE),
        };
        {
            let mut lesson = self.lesson();
            lesson.stage = stage;
            lesson.until = patience.map(|patience| now + patience);
        }
        self.wake_sessions();
    }

    fn lesson(&self) -> MutexGuard<'_, Lesson> {
        self.lesson.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time limit for a teacher to connect.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit of a whole lesson.
const LESSON: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::group;

    #[test]
    fn one_after_the_other_is_asked() {
        let group = group("a", &["b", "c"], "type string size 9");
        let now = Instant::now();
        group.begin(true, now);
        assert!(!group.asks(0, now), "the process before may come");
        group.tick(now + PATIENCE);
        assert!(group.asks(0, now) && !group.asks(1, now));
        group.told(Some(0), false, now);
        assert!(!group.asks(0, now) && group.asks(1, now));
        group.lost(Some(1), now);
        assert!(group.asks(1, now));
        group.told(Some(1), true, now);
        assert_eq!(group.stage(), Stage::Complete);
    }

    #[test]
    fn nobody_to_ask_is_enough() {
        let group = group("a", &["b"], "type string size 9");
        let now = Instant::now();
        group.begin(false, now);
        group.tick(now);
        assert_eq!(group.stage(), Stage::Wanted);
        group.tick(now + PATIENCE);
        assert_eq!(group.stage(), Stage::Complete);
    }

    #[test]
    fn the_process_before_comes_once() {
        let group = group("a", &["b"], "type string size 9");
        let now = Instant::now();
        group.begin(false, now);
        group.told(None, true, now);
        assert!(!group.expects_predecessor() && group.stage() == Stage::Wanted, "there was none");
        group.begin(true, now);
        assert!(group.expects_predecessor());
        group.seat_predecessor(now + PATIENCE / 2);
        assert!(!group.expects_predecessor());
        group.tick(now + PATIENCE);
        assert_eq!(group.stage(), Stage::Predecessor, "it has time to tell");
        group.told(None, true, now);
        group.unseat_predecessor(now);
        assert!(!group.expects_predecessor() && group.stage() == Stage::Complete);
        group.begin(true, now);
        group.seat_predecessor(now);
        group.unseat_predecessor(now);
        assert!(!group.expects_predecessor() && group.stage() == Stage::Wanted, "it has told nothing");
    }
}
