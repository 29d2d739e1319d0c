//! One scope's values, of one thread.

use crate::value::Value;
use std::cell::{Cell, Ref, RefCell};

/// One scope's values, in pages that are allocated when a variable on them is first set: ten thousand declared names cost a stream
/// nothing.
#[derive(Default, Debug)]
pub struct Store {
    pages: RefCell<Box<[Option<Box<Page>>]>>,
    /// What its variables count for, with those of the scopes within it; 0 where nothing is limited.
    pub(super) bytes: Cell<usize>,
}

/// The values of a store while nothing sets one.
pub(crate) struct Values<'a>(Ref<'a, Box<[Option<Box<Page>>]>>);

impl Values<'_> {
    /// The variable as a number, if it is set and can be one.
    #[inline]
    pub(crate) fn number(&self, index: u32) -> Option<i64> {
        let index = index as usize;
        match &self.0.get(index / PAGE)?.as_ref()?[index % PAGE] {
            Some(Value::Int(n)) => Some(*n),
            Some(other) => cast_to_number(other),
            None => None,
        }
    }
}

/// Apart, because it hardly ever happens and would crowd the look-ups.
#[cold]
fn cast_to_number(value: &Value<'static>) -> Option<i64> {
    value.clone().into_int()
}

const PAGE: usize = 16;
type Page = [Option<Value<'static>>; PAGE];

impl Store {
    /// The value, if the variable is set.
    #[inline]
    pub fn get(&self, index: u32) -> Option<Value<'static>> {
        let index = index as usize;
        self.pages.borrow().get(index / PAGE)?.as_ref()?[index % PAGE].clone()
    }

    /// All values, for several look-ups.
    #[inline]
    pub(crate) fn read(&self) -> Values<'_> {
        Values(self.pages.borrow())
    }

    /// Sets the variable, or unsets it.
    pub fn set(&self, index: u32, value: Option<Value<'static>>) {
        let index = index as usize;
        let pages = &mut *self.pages.borrow_mut();
        if index / PAGE >= pages.len() {
            if value.is_none() {
                return;
            }
            let mut more = std::mem::take(pages).into_vec();
            more.resize_with(index / PAGE + 1, || None);
            *pages = more.into_boxed_slice();
        }
        pages[index / PAGE].get_or_insert_default()[index % PAGE] = value;
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
    fn a_store_is_four_words() {
        assert_eq!(size_of::<Store>(), 4 * size_of::<usize>());
    }
}
