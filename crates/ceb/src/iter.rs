//! Entries in order, each node visited once.

use crate::keys::Keys;
use crate::link::{Id, Link};
use crate::tree::Tree;

/// Iterator over the entries of a tree in the order of their keys, equal ones in the order of their insertion:
/// [`Tree::iter`].
#[derive(Debug)]
pub struct Iter<'a, K: Keys, V> {
    tree: &'a Tree<K, V>,
    /// Links to the right of the path to the current entry.
    pending: Vec<Link>,
    /// Next entry in a list, and its last.
    list: Option<(u32, u32)>,
}

impl<K: Keys, V> Tree<K, V> {
    /// All entries in order. It keeps its path, which [`Tree::next`] has to find again for each step.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let pending = if self.is_empty() { Vec::new() } else { vec![self.root()] };
        Iter { tree: self, pending, list: None }
    }
}

impl<'a, K: Keys, V> Iterator for Iter<'a, K, V> {
    type Item = (Id, K::Key<'a>, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let slot = self.step()?;
        let id = Id(slot);
        Some((id, self.tree.key(id)?, self.tree.value(id)?))
    }
}

impl<K: Keys, V> Iter<'_, K, V> {
    fn step(&mut self) -> Option<u32> {
        if let Some((slot, last)) = self.list {
            self.list = (slot != last).then(|| (self.tree.node(slot).links[1].slot(), last));
            return Some(slot);
        }
        let mut link = self.pending.pop()?;
        while link.is_inner() {
            let [left, right] = self.tree.node(link.slot()).links;
            self.pending.push(right);
            link = left;
        }
        if link.is_list() {
            self.list = Some((self.tree.node(link.slot()).links[1].slot(), link.slot()));
        }
        Some(self.tree.first_of(link).0)
    }
}
