//! The tree: its structure, insertion, and look-up of one key.
//!
//! ```text
//!   An entry has two parts in one place: a leaf, which is its key, and a node, which is a place `at` in the keys (where they
//!   first differ) and two links: to what has a 0 there, and to what has a 1. n entries need n leaves and n - 1 nodes, so one
//!   entry, the lone one, has no node.
//!
//!   0010, 0111, 0110 and 1100, inserted in this order; (x) is the node of x, [x] its leaf, and `at` counts from the left:
//!
//!                        root
//!                         |
//!                      (1100)  at 0
//!                     0/    \1
//!                 (0111)    [1100]        Each leaf lies below its own node, and the places grow on the way down.
//!                  at 1                   Parents are not kept: removal, next and previous
//!                0/    \1                 descend again, by the entry's own key.
//!            [0010]    (0110)  at 3
//!             lone    0/    \1
//!                 [0110]    [0111]
//!
//!   Look-up: follow the key's own bits to a leaf, ignoring bits between the places, and compare once, there.
//!
//!   Insertion: look up; the first place where key and leaf differ is where the new node belongs. Descend again to the first link
//!   whose node is beyond that place, and put the new entry's node on it: one link to its own leaf, the other to what was there.
//!   Nothing else moves, ever: that is the tree's elasticity. Its shape depends on the keys alone, and no path is longer than a
//!   key has bits.
//!
//!   Removal: the node above the leaf is not needed any more, its other link takes its place. If it was not the entry's own, it
//!   takes the place of the entry's own, which must go too: it still has its leaf below it.
//!
//!   Equal keys: the leaf's link goes to the last of a list of them, of which the first is the origin, the entry that may have a
//!   node. The others are never nodes, so their links are the list's: backwards, and forwards to the first that is not the origin.
//!
//!        link (list) ----------------------------+
//!                                                v
//!        [origin] <---- [second] <---- [third] <---- [last]
//!                          |  ^ -------> | -------> |  |
//!                          |  +------------------------+
//! ```
//!
//! HAProxy's original keeps nodes inside the caller's structures, finds the place where two branches differ by comparing their
//! keys, and needs both for each step. Here entries lie in an arena, so a link takes 4 bytes, not 8, and 4 of the 8 bytes saved
//! hold `at`: a descent reads one node a step and no key but the last. Nodes, keys and values are three arrays, so that a descent
//! meets nothing but nodes.

use crate::keys::Keys;
use crate::link::{Id, Link};

/// A compact elastic binary tree of keys of one kind, each with a value.
///
/// Equal keys may be inserted several times; they stay in the order of their insertion. A look-up of an entry costs a
/// descent. That has at most as many steps as a key has bits, and about the logarithm of the number of entries when
/// keys are spread.
#[derive(Clone, Debug)]
pub struct Tree<K: Keys, V> {
    root: Link,
    /// Chained through `links[0]`.
    free: Link,
    len: usize,
    entries: Vec<Entry<K::Held>>,
    keys: K,
    pub(crate) values: Vec<Option<V>>,
}

/// There is no room: 2^30 entries, 4 GiB of text, or a key that is too long. The limit is 16 MiB of text; in a tree of
/// slices, any length but theirs is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// Part of an entry that a descent reads: all but its value.
#[derive(Clone, Copy, Debug)]
struct Entry<H> {
    node: Node,
    held: H,
}

/// The node part of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// The place in the keys that this node looks at, or [`LISTED`].
    pub(crate) at: u32,
    /// Links to the subtree with a 0 there, and to that with a 1; of a [`LISTED`] node, to the previous and the next.
    pub(crate) links: [Link; 2],
}

impl Node {
    /// Node of an entry without one.
    const LONE: Node = Node { at: EVERYWHERE, links: [Link::NONE; 2] };
}

/// Storage of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Root,
    Under(u32, bool),
}

/// `at` of an entry in a list of equal keys, except for the origin.
pub(crate) const LISTED: u32 = u32::MAX;
/// Beyond all places.
pub(crate) const EVERYWHERE: u32 = u32::MAX - 1;

impl<K: Keys, V> Tree<K, V> {
    /// An empty tree with these keys' storage, which must be empty too.
    pub fn with_keys(keys: K) -> Tree<K, V> {
        Tree { root: Link::NONE, free: Link::NONE, len: 0, entries: Vec::new(), keys, values: Vec::new() }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first of the entries with this key.
    #[inline]
    pub fn find(&self, key: K::Key<'_>) -> Option<Id> {
        if !self.keys.can_hold(key) {
            return None;
        }
        let mut link = self.root;
        while link.is_inner() {
            let node = self.node(link.slot());
            if K::COMPARED_EARLY && K::same(key, self.key_of(link.slot())) {
                break;
            }
            link = node.links[usize::from(K::side(key, node.at))];
        }
        if link.is_none() || !K::same(key, self.key_of(link.slot())) {
            return None;
        }
        Some(self.first_of(link))
    }

    /// The value of the first of the entries with this key.
    #[inline]
    pub fn get(&self, key: K::Key<'_>) -> Option<&V> {
        self.value(self.find(key)?)
    }

    /// The value of the first of the entries with this key, mutable.
    #[inline]
    pub fn get_mut(&mut self, key: K::Key<'_>) -> Option<&mut V> {
        let id = self.find(key)?;
        self.value_mut(id)
    }

    /// The key of an entry.
    pub fn key(&self, id: Id) -> Option<K::Key<'_>> {
        self.value(id).map(|_| self.key_of(id.0))
    }

    /// The value of an entry.
    #[inline]
    pub fn value(&self, id: Id) -> Option<&V> {
        self.values.get(id.index())?.as_ref()
    }

    /// The value of an entry, mutable.
    #[inline]
    pub fn value_mut(&mut self, id: Id) -> Option<&mut V> {
        self.values.get_mut(id.index())?.as_mut()
    }

    /// Adds an entry, after those of an equal key if there are any.
    pub fn insert(&mut self, key: K::Key<'_>, value: V) -> Result<Id, Full> {
        let leaf = self.descend(key);
        let differ = if leaf.is_none() { Some(0) } else { K::differ(key, self.key_of(leaf.slot())) };
        let slot = self.occupy(key, value)?;
        let (place, below) = self.reach(key, differ.unwrap_or(EVERYWHERE));
        let (node, link) = match differ {
            _ if below.is_none() => (Node::LONE, Link::leaf(slot)),
            Some(at) => {
                let own = Link::leaf(slot);
                let links = if K::side(key, at) { [below, own] } else { [own, below] };
                (Node { at, links }, Link::inner(slot))
            }
            None => {
                let last = below.slot();
                let first = match below.is_list() {
                    true => std::mem::replace(&mut self.node_mut(last).links[1], Link::leaf(slot)),
                    false => Link::leaf(slot),
                };
                (Node { at: LISTED, links: [Link::leaf(last), first] }, Link::list(slot))
            }
        };
        *self.node_mut(slot) = node;
        self.set_link(place, link);
        Ok(Id(slot))
    }

    /// The first of the entries with this key; if there is none, a new entry.
    pub fn find_or_insert_with(&mut self, key: K::Key<'_>, make: impl FnOnce() -> V) -> Result<Id, Full> {
        match self.find(key) {
            Some(id) => Ok(id),
            None => self.insert(key, make()),
        }
    }

    /// Removes all entries, and frees the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.entries = Vec::new();
        self.values = Vec::new();
        (self.root, self.free, self.len) = (Link::NONE, Link::NONE, 0);
    }

    /// The leaf at which a key's bits arrive; [`Link::NONE`] in an empty tree.
    #[inline]
    pub(crate) fn descend(&self, key: K::Key<'_>) -> Link {
        let mut link = self.root;
        while link.is_inner() {
            let node = self.node(link.slot());
            link = node.links[usize::from(K::side(key, node.at))];
        }
        link
    }

    /// The first link on a key's path that leads to a leaf or to a node at `limit` or beyond, and its place.
    fn reach(&self, key: K::Key<'_>, limit: u32) -> (Place, Link) {
        let (mut place, mut link) = (Place::Root, self.root);
        while link.is_inner() {
            let node = self.node(link.slot());
            if node.at >= limit {
                break;
            }
            let side = K::side(key, node.at);
            place = Place::Under(link.slot(), side);
            link = node.links[usize::from(side)];
        }
        (place, link)
    }

    /// The entry of a leaf; of a list, the origin.
    #[inline]
    pub(crate) fn first_of(&self, leaf: Link) -> Id {
        if !leaf.is_list() {
            return Id(leaf.slot());
        }
        let second = self.node(leaf.slot()).links[1];
        Id(self.node(second.slot()).links[0].slot())
    }

    #[inline]
    pub(crate) fn node(&self, slot: u32) -> &Node {
        &self.entries[slot as usize].node
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.entries[slot as usize].node
    }

    #[inline]
    pub(crate) fn key_of(&self, slot: u32) -> K::Key<'_> {
        self.keys.key(slot, &self.entries[slot as usize].held)
    }

    #[inline]
    pub(crate) fn root(&self) -> Link {
        self.root
    }

    pub(crate) fn set_link(&mut self, place: Place, link: Link) {
        match place {
            Place::Root => self.root = link,
            Place::Under(slot, side) => self.node_mut(slot).links[usize::from(side)] = link,
        }
    }

    /// Takes a slot for a key and its value.
    fn occupy(&mut self, key: K::Key<'_>, value: V) -> Result<u32, Full> {
        if self.free.is_none() {
            let slot = self.entries.len();
            if slot >= Link::SLOTS {
                return Err(Full);
            }
            let held = self.keys.hold(slot as u32, key)?;
            self.entries.push(Entry { node: Node::LONE, held });
            self.values.push(Some(value));
            self.len += 1;
            return Ok(slot as u32);
        }
        let slot = self.free.slot();
        let held = self.keys.hold(slot, key)?;
        self.free = self.node(slot).links[0];
        self.entries[slot as usize].held = held;
        self.values[slot as usize] = Some(value);
        self.len += 1;
        Ok(slot)
    }

    /// Frees a slot, whose value has been taken.
    pub(crate) fn vacate(&mut self, slot: u32) {
        if self.keys.release(&self.entries[slot as usize].held) {
            let used = self.entries.iter_mut().zip(&self.values).filter(|(_, value)| value.is_some());
            self.keys.tidy(used.map(|(entry, _)| &mut entry.held));
        }
        self.node_mut(slot).links[0] = self.free;
        self.free = Link::leaf(slot);
        self.len -= 1;
    }
}

impl<K: Keys + Default, V> Default for Tree<K, V> {
    fn default() -> Self {
        Tree::with_keys(K::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::blocks::{Blocks, Slices};
    use crate::keys::integers::Integers;
    use crate::keys::prefixes::Prefixes;
    use crate::keys::text::Text;

    /// The original's nodes are two pointers and the key.
    #[test]
    fn nodes_are_no_larger_than_the_original_s() {
        fn size<K: Keys>() -> usize {
            size_of::<Entry<K::Held>>()
        }
        assert_eq!(size::<Integers<u32>>(), 16);
        assert_eq!(size::<Integers<u64>>(), 20);
        assert_eq!(size::<Integers<u128>>(), 28);
        assert_eq!(size::<Blocks<20>>(), 32);
        assert_eq!(size::<Slices>(), 12);
        assert_eq!(size::<Text>(), 16);
        assert_eq!(size::<Prefixes<u32>>(), 20);
    }
}
