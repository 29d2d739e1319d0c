//! Removal: of a leaf with the node above it, or of a member of a list.

use crate::keys::Keys;
use crate::link::{Id, Link};
use crate::tree::{Node, Place, Tree};

/// Path of an entry's own key.
struct Way {
    /// Place of the link to the entry's node; `None` if it has no node.
    own: Option<Place>,
    /// Place of the link to the node above the leaf.
    above: Place,
    /// Place of the link to the leaf.
    place: Place,
    leaf: Link,
}

impl<K: Keys, V> Tree<K, V> {
    /// Removes an entry, and returns its value; `None` if it is not there any more.
    pub fn remove(&mut self, id: Id) -> Option<V> {
        let value = self.values.get_mut(id.index())?.take()?;
        let way = self.way(id.0);
        if way.leaf.is_list() {
            self.unlist(id.0, way);
        } else {
            self.unlink(id.0, way);
        }
        self.vacate(id.0);
        Some(value)
    }

    fn way(&self, slot: u32) -> Way {
        let key = self.key_of(slot);
        let mut way = Way { own: None, above: Place::Root, place: Place::Root, leaf: self.root() };
        while way.leaf.is_inner() {
            let inner = way.leaf.slot();
            let node = self.node(inner);
            if inner == slot {
                way.own = Some(way.place);
            }
            let side = K::side(key, node.at);
            way.above = way.place;
            way.place = Place::Under(inner, side);
            way.leaf = node.links[usize::from(side)];
        }
        way
    }

    /// Unlinks the only entry of its key.
    fn unlink(&mut self, slot: u32, way: Way) {
        let Place::Under(parent, side) = way.place else {
            return self.set_link(Place::Root, Link::NONE);
        };
        let sibling = self.node(parent).links[usize::from(!side)];
        self.set_link(way.above, sibling);
        if parent != slot {
            // The parent's node is out of the tree; it gets the node of the entry, or becomes the lone entry.
            self.bequeath(slot, parent, way.own);
        }
    }

    /// Unlinks one of several entries of a key.
    fn unlist(&mut self, slot: u32, mut way: Way) {
        let last = way.leaf.slot();
        let second = self.node(last).links[1].slot();
        let origin = self.node(second).links[0].slot();
        let Node { links: [before, after], .. } = *self.node(slot);
        if slot == origin {
            // The second becomes the origin, with its node; the third, if there is one, becomes the second.
            let third = self.node(second).links[1];
            if let Place::Under(above, side) = way.place
                && above == slot
            {
                way.place = Place::Under(second, side);
            }
            self.bequeath(slot, second, way.own);
            if second == last {
                self.set_link(way.place, Link::leaf(second));
            } else {
                self.node_mut(third.slot()).links[0] = Link::leaf(second);
                self.node_mut(last).links[1] = third;
            }
            return;
        }
        match (slot == second, slot == last) {
            (true, true) => self.set_link(way.place, Link::leaf(origin)),
            (true, false) => {
                self.node_mut(after.slot()).links[0] = before;
                self.node_mut(last).links[1] = after;
            }
            (false, true) => {
                self.node_mut(before.slot()).links[1] = after;
                self.set_link(way.place, Link::list(before.slot()));
            }
            (false, false) => {
                self.node_mut(before.slot()).links[1] = after;
                self.node_mut(after.slot()).links[0] = before;
            }
        }
    }

    /// Passes the node of `slot`, which is linked at `own`, to `heir`.
    fn bequeath(&mut self, slot: u32, heir: u32, own: Option<Place>) {
        *self.node_mut(heir) = *self.node(slot);
        if let Some(own) = own {
            self.set_link(own, Link::inner(heir));
        }
    }
}
