//! The lengths that a set of keys has.
//!
//! With them a hash table answers more than "is it there": there are as many candidates for the longest prefix of a text
//! that is a key as there are lengths. Sets of thousands of keys have a few dozen lengths.

/// Lengths, each with the number of its keys, in ascending order.
#[derive(Clone, Default, Debug)]
pub(super) struct Lengths(Vec<(usize, usize)>);

impl Lengths {
    /// Adds a key of that length.
    pub(super) fn add(&mut self, len: usize) {
        match self.0.binary_search_by_key(&len, |(len, _)| *len) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (len, 1)),
        }
    }

    /// Removes so many keys of that length.
    pub(super) fn remove(&mut self, len: usize, keys: usize) {
        if let Ok(at) = self.0.binary_search_by_key(&len, |(len, _)| *len) {
            self.0[at].1 -= keys;
            if self.0[at].1 == 0 {
                self.0.remove(at);
            }
        }
    }

    /// The lengths up to a limit, in ascending order.
    #[inline]
    pub(super) fn up_to(&self, limit: usize) -> impl DoubleEndedIterator<Item = usize> {
        let end = self.0.partition_point(|(len, _)| *len <= limit);
        self.0[..end].iter().map(|(len, _)| *len)
    }

    /// Whether no key is longer than that, or there is none.
    #[inline]
    pub(super) fn has_from(&self, len: usize) -> bool {
        self.0.last().is_some_and(|(longest, _)| *longest >= len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted() {
        let mut lengths = Lengths::default();
        [3, 1, 3, 9].into_iter().for_each(|len| lengths.add(len));
        assert_eq!(lengths.up_to(8).collect::<Vec<_>>(), [1, 3]);
        lengths.remove(3, 1);
        lengths.remove(1, 1);
        lengths.remove(7, 1);
        lengths.remove(9, 0);
        assert_eq!(lengths.up_to(100).rev().collect::<Vec<_>>(), [9, 3]);
        assert!(lengths.has_from(9) && !lengths.has_from(10) && !Lengths::default().has_from(0));
    }
}
