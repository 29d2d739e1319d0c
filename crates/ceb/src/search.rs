//! Ordered look-ups: neighbours of a key, and the stored prefixes of a key.

use crate::keys::{Keys, Prefixed};
use crate::link::{Id, Link};
use crate::tree::{EVERYWHERE, LISTED, Tree};

/// The surroundings of a key: three subtrees, or none.
struct Around {
    /// Subtree whose entries are before the key, with no other entry between.
    before: Link,
    /// Leaf of this very key.
    equal: Link,
    /// Subtree whose entries are after the key, with no other entry between.
    after: Link,
}

impl<K: Keys, V> Tree<K, V> {
    /// The first entry.
    pub fn first(&self) -> Option<Id> {
        self.lowest(self.root())
    }

    /// The last entry.
    pub fn last(&self) -> Option<Id> {
        self.highest(self.root())
    }

    /// The first entry whose key is equal or greater.
    pub fn find_ge(&self, key: K::Key<'_>) -> Option<Id> {
        let around = self.around(key);
        self.lowest(around.equal).or_else(|| self.lowest(around.after))
    }

    /// The first entry whose key is greater.
    pub fn find_gt(&self, key: K::Key<'_>) -> Option<Id> {
        self.lowest(self.around(key).after)
    }

    /// The last entry whose key is equal or less.
    pub fn find_le(&self, key: K::Key<'_>) -> Option<Id> {
        let around = self.around(key);
        self.highest(around.equal).or_else(|| self.highest(around.before))
    }

    /// The last entry whose key is less.
    pub fn find_lt(&self, key: K::Key<'_>) -> Option<Id> {
        self.highest(self.around(key).before)
    }

    /// The entry after this: the next of the same key, or the first of the next key.
    pub fn next(&self, id: Id) -> Option<Id> {
        let key = self.key(id)?;
        let node = self.node(id.0);
        if node.at == LISTED && self.node(node.links[1].slot()).links[0] == Link::leaf(id.0) {
            return Some(Id(node.links[1].slot()));
        }
        let (leaf, [_, after]) = self.beside(key, EVERYWHERE);
        if leaf.is_list() && node.at != LISTED {
            return Some(Id(self.node(leaf.slot()).links[1].slot()));
        }
        self.lowest(after)
    }

    /// The entry before this: the previous of the same key, or the last of the previous key.
    pub fn previous(&self, id: Id) -> Option<Id> {
        let key = self.key(id)?;
        let node = self.node(id.0);
        if node.at == LISTED {
            return Some(Id(node.links[0].slot()));
        }
        let (_, [before, _]) = self.beside(key, EVERYWHERE);
        self.highest(before)
    }

    fn around(&self, key: K::Key<'_>) -> Around {
        let leaf = self.descend(key);
        if leaf.is_none() {
            return Around { before: Link::NONE, equal: Link::NONE, after: Link::NONE };
        }
        let differ = K::differ(key, self.key_of(leaf.slot()));
        let (below, [before, after]) = self.beside(key, differ.unwrap_or(EVERYWHERE));
        match differ {
            None => Around { before, equal: below, after },
            Some(at) if K::side(key, at) => Around { before: below, equal: Link::NONE, after },
            Some(_) => Around { before, equal: Link::NONE, after: below },
        }
    }

    /// The first link on a key's path that leads to a leaf or to a node at `limit` or beyond. With it, the last links
    /// that were left aside on the path, to the left and to the right.
    fn beside(&self, key: K::Key<'_>, limit: u32) -> (Link, [Link; 2]) {
        let (mut link, mut aside) = (self.root(), [Link::NONE; 2]);
        while link.is_inner() {
            let node = self.node(link.slot());
            if node.at >= limit {
                break;
            }
            let side = usize::from(K::side(key, node.at));
            aside[1 - side] = node.links[1 - side];
            link = node.links[side];
        }
        (link, aside)
    }

    fn lowest(&self, link: Link) -> Option<Id> {
        let leaf = self.outermost(link, 0);
        (!leaf.is_none()).then(|| self.first_of(leaf))
    }

    fn highest(&self, link: Link) -> Option<Id> {
        let leaf = self.outermost(link, 1);
        (!leaf.is_none()).then(|| Id(leaf.slot()))
    }

    fn outermost(&self, mut link: Link, side: usize) -> Link {
        while link.is_inner() {
            link = self.node(link.slot()).links[side];
        }
        link
    }
}

impl<K: Prefixed, V> Tree<K, V> {
    /// First entry of the longest key that is a prefix of this key.
    pub fn longest_prefix(&self, key: K::Key<'_>) -> Option<Id> {
        let leaf = self.descend(key);
        if leaf.is_none() {
            return None;
        }
        let Some(differ) = K::differ(key, self.key_of(leaf.slot())) else {
            return Some(self.first_of(leaf));
        };
        if K::is_end(differ) && K::side(key, differ) {
            return Some(self.first_of(leaf));
        }
        // A prefix that ended before that place ends inside the common part of the key and the leaf.
        let (mut link, mut found) = (self.root(), Link::NONE);
        while link.is_inner() {
            let node = self.node(link.slot());
            if node.at >= differ {
                break;
            }
            let side = K::side(key, node.at);
            if side && K::is_end(node.at) {
                found = node.links[0];
            }
            link = node.links[usize::from(side)];
        }
        (!found.is_none()).then(|| self.first_of(found))
    }
}
