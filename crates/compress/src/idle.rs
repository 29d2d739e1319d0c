//! Values that wait to be used again, and go when they are not needed for a while.

/// A list of them. The newest is taken first, so the oldest are those that are not needed.
#[derive(Debug)]
pub struct Idle<T> {
    kept: Vec<T>,
    /// The fewest that were here since [`Idle::trim`]: this number was not needed.
    fewest: usize,
}

impl<T> Default for Idle<T> {
    fn default() -> Idle<T> {
        Idle { kept: Vec::new(), fewest: 0 }
    }
}

impl<T> Idle<T> {
    /// The newest.
    pub fn take(&mut self) -> Option<T> {
        let taken = self.kept.pop();
        self.fewest = self.fewest.min(self.kept.len());
        taken
    }

    /// Keeps it, unless so many are here already.
    pub fn give(&mut self, most: usize, thing: T) {
        if self.kept.len() < most {
            self.kept.push(thing);
        }
    }

    /// Takes out those that were not needed since the last time.
    pub fn trim(&mut self) -> Vec<T> {
        let unneeded = self.kept.drain(..self.fewest).collect();
        self.fewest = self.kept.len();
        if self.kept.is_empty() {
            self.kept = Vec::new();
        }
        unneeded
    }

    /// Number of waiting values.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether no value waits.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_goes_at_the_second_look() {
        let mut idle = Idle::default();
        (0..5).for_each(|n| idle.give(4, n));
        assert_eq!((idle.len(), idle.trim()), (4, vec![]), "all of them came since the last look");
        let taken = (idle.take(), idle.take());
        assert_eq!(taken, (Some(3), Some(2)));
        idle.give(4, 2);
        assert_eq!(idle.trim(), [0, 1], "one at least was left over all the time, beside the one that came back");
        assert_eq!(idle.trim(), [2]);
        assert!(idle.is_empty() && idle.take().is_none() && idle.trim().is_empty());
    }
}
