//! Coders of streams: how many a client's connection may have at a time.
//!
//! A coder that lasts holds its state between two pushes: of gzip 0.2 MB, of zstd one, of br several. A hundred streams of a client of HTTP/2
//! are a hundred such bodies. Bodies that are coded as a whole have no such coder, and take no slot.

use std::cell::Cell;
use std::rc::Rc;

/// The coders that a connection may have at a time, unless `tune.comp.coders` says otherwise: twice the streams of events of six tabs, and
/// 10 MB of gzip's states.
pub const DEFAULT_CODERS: usize = 32;

/// The slots of a connection.
#[derive(Debug)]
pub struct Slots {
    taken: Cell<usize>,
    most: usize,
}

/// A slot that is taken; given back when it is dropped.
#[derive(Debug)]
pub struct Slot(Rc<Slots>);

impl Slots {
    /// So many slots.
    pub fn new(most: usize) -> Rc<Slots> {
        Rc::new(Slots { taken: Cell::new(0), most })
    }

    /// Takes one; none where all are taken.
    pub fn take(self: &Rc<Slots>) -> Option<Slot> {
        let taken = self.taken.get();
        (taken < self.most).then(|| {
            self.taken.set(taken + 1);
            Slot(self.clone())
        })
    }

    /// Whether one is left.
    pub fn has_room(&self) -> bool {
        self.taken.get() < self.most
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.set(self.0.taken.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_given_back() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take(), slots.take());
        assert!(first.is_some() && second.is_some() && slots.take().is_none() && !slots.has_room());
        drop(first);
        assert!(slots.has_room() && slots.take().is_some());
        drop(second);
        assert_eq!(slots.taken.get(), 0);
    }
}
