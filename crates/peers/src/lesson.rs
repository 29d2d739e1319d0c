//! What a process learns of the time before it came: from the process that it replaces, or else from one peer after the other.

use crate::group::Group;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far this process has learnt what was known before it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The process before may still come and tell.
    Predecessor,
    /// Any peer that is connected is to be asked.
    Wanted,
    /// This peer tells.
    Asked(usize),
    /// All is known that could be learnt.
    Complete,
}

/// How far it is, until when, and from whom nothing more is to be learnt.
#[derive(Debug)]
pub(crate) struct Lesson {
    stage: Stage,
    /// When the stage is over, if nothing comes.
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
    /// How far this process has learnt what was known before it came.
    pub fn stage(&self) -> Stage {
        self.lesson().stage
    }

    /// Begins to learn: from the process before where there was one, else from a peer.
    pub(crate) fn begin(&self, predecessor: bool, now: Instant) {
        self.enter(if predecessor { Stage::Predecessor } else { Stage::Wanted }, now);
    }

    /// Whether this peer is to be asked now for all that it knows.
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

    /// Whether the process before is expected, and nobody has come as it.
    pub(crate) fn expects_predecessor(&self) -> bool {
        self.stage() == Stage::Predecessor && !self.has_predecessor.load(Relaxed)
    }

    /// Somebody comes as the process before: from now on it has some time to tell.
    pub(crate) fn seat_predecessor(&self, now: Instant) {
        self.has_predecessor.store(true, Relaxed);
        self.enter(Stage::Predecessor, now);
    }

    /// Who came as the process before has gone: nobody else is expected.
    pub(crate) fn unseat_predecessor(&self, now: Instant) {
        self.has_predecessor.store(false, Relaxed);
        self.lost(None, now);
    }

    /// Somebody has told all: a peer, or the process before (`None`), which counts only while it is expected. `complete`: it knew all itself.
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

    /// The connection to a peer, or to the process before, has ended.
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

/// How long somebody is waited for who could tell.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long somebody may take to tell all.
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
