//! Idle connections to a server: their number over all workers.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts that workers keep up to date.
#[derive(Default, Debug)]
pub struct IdleCounts {
    shared: AtomicUsize,
    own: AtomicUsize,
    needed: AtomicUsize,
}

/// Share of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IdleShare {
    /// Connections for any session's requests.
    pub shared: usize,
    /// Connections that stay with their sessions.
    pub own: usize,
    /// Number of connections that are likely to be needed.
    pub needed: usize,
}

impl IdleCounts {
    /// Replaces a worker's previous share.
    pub fn change(&self, before: IdleShare, now: IdleShare) {
        for (count, before, now) in
            [(&self.shared, before.shared, now.shared), (&self.own, before.own, now.own), (&self.needed, before.needed, now.needed)]
        {
            if before != now {
                count.fetch_add(now.wrapping_sub(before), Relaxed);
            }
        }
    }

    /// Connections for any session's requests.
    pub fn shared(&self) -> usize {
        self.shared.load(Relaxed)
    }

    /// Connections that stay with their sessions.
    pub fn own(&self) -> usize {
        self.own.load(Relaxed)
    }

    /// Number of connections that are likely to be needed.
    pub fn needed(&self) -> usize {
        self.needed.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_workers_add_up() {
        let counts = IdleCounts::default();
        let share = |shared, own, needed| IdleShare { shared, own, needed };
        counts.change(share(0, 0, 0), share(2, 1, 3));
        counts.change(share(0, 0, 0), share(1, 0, 1));
        counts.change(share(2, 1, 3), share(0, 1, 2));
        assert_eq!((counts.shared(), counts.own(), counts.needed()), (1, 1, 3));
    }
}
