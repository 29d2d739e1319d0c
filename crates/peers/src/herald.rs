//! Log lines of peers that come and go.

use crate::group::{Group, Peer};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use terse_balance::Level;

/// Log lines of peers that come and go: at most one a second, with the last event of each peer.
#[derive(Default, Debug)]
pub(crate) struct Herald {
    last: Option<Instant>,
    held: BTreeMap<Arc<str>, &'static str>,
}

impl Group {
    /// Logs that a peer comes or goes: now, or within a second.
    pub(crate) fn say(&self, peer: &Peer, what: &'static str, now: Instant) {
        if self.journal.is_some() {
            self.herald().held.insert(peer.name.clone(), what);
            self.say_held(now);
        }
    }

    /// Logs held events, unless another line was logged just before.
    pub(crate) fn say_held(&self, now: Instant) {
        let held = {
            let mut herald = self.herald();
            if herald.held.is_empty() || herald.last.is_some_and(|last| now < last + LINE_PAUSE) {
                return;
            }
            herald.last = Some(now);
            std::mem::take(&mut herald.held)
        };
        let said: Vec<String> = held.iter().map(|(peer, what)| format!("{}/{peer} {what}", self.name)).collect();
        if let Some(journal) = &self.journal {
            journal(Level::Notice, &format!("Peer {}.", said.join(", ")));
        }
    }

    fn herald(&self) -> MutexGuard<'_, Herald> {
        self.herald.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Interval of log lines.
const LINE_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::group;
    use std::sync::Mutex;

    #[test]
    fn one_line_a_second_is_logged() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let journal = lines.clone();
        let mut group = Arc::into_inner(group("a", &["b", "c"], "type string size 9")).unwrap();
        group.journal = Some(Arc::new(move |_, line: &str| journal.lock().unwrap().push(line.to_owned())));
        let now = Instant::now();
        for n in 0..100 {
            group.say(&group.peers[n % 2], "is connected", now);
            group.say(&group.peers[n % 2], "is gone", now);
        }
        group.tick(now + LINE_PAUSE / 2);
        assert_eq!(*lines.lock().unwrap(), ["Peer p/b is connected."]);
        group.tick(now + LINE_PAUSE);
        group.tick(now + 3 * LINE_PAUSE);
        assert_eq!(lines.lock().unwrap()[1..], ["Peer p/b is gone, p/c is gone."]);
    }
}
