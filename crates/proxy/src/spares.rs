//! Values whose memory serves later ones like them: the heads, variables and texts of streams that have ended.

use std::cell::RefCell;

/// The kept values: the usual number, and for a while as many as a burst of streams has left, where they are small.
#[derive(Debug)]
pub struct Spares<T> {
    kept: RefCell<Vec<T>>,
    bounds: Bounds,
}

/// Limits of the number of kept values, by the bytes that each holds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Of any that is kept at all.
    pub usual: usize,
    /// Above it nothing is kept.
    pub most_bytes: usize,
    /// Of small ones.
    pub small: usize,
    /// Up to it a value is small.
    pub small_bytes: usize,
}

impl<T> Spares<T> {
    /// Creates an empty store.
    pub fn new(bounds: Bounds) -> Spares<T> {
        Spares { kept: RefCell::default(), bounds }
    }

    /// Takes a value.
    pub fn take(&self) -> Option<T> {
        self.kept.borrow_mut().pop()
    }

    /// Takes a value of so many bytes back, where it is kept: `empty` makes it ready for the next use.
    pub fn give(&self, bytes: usize, empty: impl FnOnce() -> T) {
        let Bounds { usual, most_bytes, small, small_bytes } = self.bounds;
        let most = match bytes {
            bytes if bytes <= small_bytes => small,
            bytes if bytes <= most_bytes => usual,
            _ => 0,
        };
        let mut kept = self.kept.borrow_mut();
        if kept.len() < most {
            kept.push(empty());
        }
    }

    /// Drops half of those that are more than usual.
    pub fn trim(&self) {
        let mut kept = self.kept.borrow_mut();
        let surplus = kept.len().saturating_sub(self.bounds.usual);
        let left = kept.len() - surplus.div_ceil(2);
        kept.truncate(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_burst_leaves_goes_by_halves() {
        let spares = Spares::new(Bounds { usual: 2, most_bytes: 9, small: 6, small_bytes: 3 });
        (0..9).for_each(|n| spares.give(3, || n));
        spares.give(4, || unreachable!("there are more than two"));
        let count = |spares: &Spares<i32>| spares.kept.borrow().len();
        assert_eq!(count(&spares), 6);
        let left: Vec<usize> = std::iter::repeat_with(|| (spares.trim(), count(&spares)).1).take(4).collect();
        assert_eq!(left, [4, 3, 2, 2]);
        assert_eq!((spares.take(), spares.take(), spares.take()), (Some(1), Some(0), None));
        spares.give(10, || unreachable!("it is too large"));
        spares.give(9, || 7);
        assert_eq!(spares.take(), Some(7));
    }
}
