//! Variables of a scope, of a single thread.

use crate::value::Value;
use std::cell::{Cell, RefCell};

/// Variables of a scope, in pages that are allocated when a variable on them is first set: ten thousand declared names cost
/// a stream nothing.
#[derive(Default, Debug)]
pub struct Store {
    pages: RefCell<Pages>,
    /// Bytes that its variables count for, with those of the scopes within it; 0 without limits.
    pub(super) bytes: Cell<usize>,
}

/// The values of a store while none is set.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a>(&'a [Option<Box<Page>>]);

type Pages = Box<[Option<Box<Page>>]>;
type Page = [Option<Value<'static>>; PAGE];
const PAGE: usize = 16;

impl<'a> Values<'a> {
    /// The variable as a number, if it is set and can be one.
    #[inline]
    pub(crate) fn number(self, index: u32) -> Option<i64> {
        match self.place(index)? {
            Some(Value::Int(n)) => Some(*n),
            _ => self.cast_to_number(index),
        }
    }

    /// A function of its own, because it is rarely called and would crowd the look-ups.
    #[cold]
    fn cast_to_number(self, index: u32) -> Option<i64> {
        self.place(index)?.clone()?.into_int()
    }

    /// Place of the variable's value, if a variable of its page was ever set.
    #[inline]
    fn place(self, index: u32) -> Option<&'a Option<Value<'static>>> {
        Some(&self.0.get(index as usize / PAGE)?.as_ref()?[index as usize % PAGE])
    }
}

impl Store {
    /// The value, if the variable is set.
    #[inline]
    pub fn get(&self, index: u32) -> Option<Value<'static>> {
        match self.number(index) {
            Some(n) => Some(Value::Int(n)),
            None => self.any(index),
        }
    }

    /// The value, if it is a number. No function is called while the pages are borrowed, so that not even the borrow is
    /// written down.
    #[inline]
    fn number(&self, index: u32) -> Option<i64> {
        match Values(&self.pages.borrow()).place(index)? {
            Some(Value::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// A function of its own, because copying text would crowd the look-ups.
    #[inline(never)]
    fn any(&self, index: u32) -> Option<Value<'static>> {
        match Values(&self.pages.borrow()).place(index)?.as_ref()? {
            Value::Bool(b) => Some(Value::Bool(*b)),
            Value::Addr(a) => Some(Value::Addr(*a)),
            other => Some(other.clone()),
        }
    }

    /// All values, for several look-ups.
    #[inline]
    pub(crate) fn read<T>(&self, run: impl FnOnce(Values<'_>) -> T) -> T {
        run(Values(&self.pages.borrow()))
    }

    /// Sets the variable, or unsets it.
    #[inline]
    pub fn set(&self, index: u32, value: Option<Value<'static>>) {
        match value {
            // Counters: a number in place of another.
            Some(Value::Int(n)) if self.renew(index, n) => std::mem::forget(value),
            value => self.put(index, value),
        }
    }

    /// Replaces the value if the variable held a number; returns whether it did.
    #[inline]
    fn renew(&self, index: u32, n: i64) -> bool {
        let pages = &mut *self.pages.borrow_mut();
        let Some(Some(page)) = pages.get_mut(index as usize / PAGE) else { return false };
        let Some(Value::Int(old)) = &mut page[index as usize % PAGE] else { return false };
        *old = n;
        true
    }

    /// A function of its own, because it would crowd the counters.
    #[inline(never)]
    fn put(&self, index: u32, value: Option<Value<'static>>) {
        let index = index as usize;
        let pages = &mut *self.pages.borrow_mut();
        if index / PAGE >= pages.len() {
            if value.is_none() {
                return;
            }
            // Nearly always the first page: no room to spare is asked for, which would have to be given back.
            let mut more = Vec::with_capacity(index / PAGE + 1);
            more.extend(std::mem::take(pages));
            more.resize_with(index / PAGE + 1, || None);
            *pages = more.into_boxed_slice();
        }
        pages[index / PAGE].get_or_insert_default()[index % PAGE] = value;
    }

    /// Drops all values; keeps the memory of a few variables for the next scope.
    pub fn clear(&mut self) {
        self.bytes.set(0);
        match &mut **self.pages.get_mut() {
            [] => {}
            [Some(page)] => page.fill_with(|| None),
            _ => *self.pages.get_mut() = Box::default(),
        }
    }

    /// Whether no variable was ever set.
    pub fn is_unused(&self) -> bool {
        self.pages.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_storage_costs_nothing() {
        let store = Store::default();
        store.set(9_999, None);
        assert!(store.is_unused());
        store.set(9_999, Some(Value::Int(1)));
        assert_eq!(store.get(9_999), Some(Value::Int(1)));
        assert_eq!(store.get(9_998), None);
        assert_eq!(store.get(5), None);
        assert_eq!(store.pages.borrow().iter().flatten().count(), 1);
    }

    #[test]
    fn what_is_cleared_is_unset() {
        for last in [3, 100] {
            let mut store = Store::default();
            store.set(0, Some(Value::Int(1)));
            store.set(last, Some(Value::Str(b"text".as_slice().into())));
            store.clear();
            assert_eq!((store.get(0), store.get(last)), (None, None));
            // One page stays, more than one do not.
            assert_eq!(store.is_unused(), last == 100);
        }
    }

    #[test]
    fn a_store_is_four_words() {
        assert_eq!(size_of::<Store>(), 4 * size_of::<usize>());
    }
}
