//! Link of a node: a slot of the arena, and in two bits the kind of its target.

/// Handle of an entry of a tree, from its insertion to its removal; later, another entry may get the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Id(pub(crate) u32);

impl Id {
    /// The handle as a number below the count of entries that the tree has ever held at a time: an index for data kept
    /// beside it.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A link: `leaf`, `list`, and thirty bits of slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link(u32);

impl Link {
    /// No entry. It looks like a leaf, so that every descent ends here.
    pub(crate) const NONE: Link = Link(u32::MAX);

    /// Limit of slots.
    pub(crate) const SLOTS: usize = SLOT as usize;

    /// The node part of an entry: the descent goes on.
    pub(crate) const fn inner(slot: u32) -> Link {
        Link(slot)
    }

    /// The leaf part of an entry: its key.
    pub(crate) const fn leaf(slot: u32) -> Link {
        Link(slot | LEAF)
    }

    /// Several entries of one key; the slot is that of the last.
    pub(crate) const fn list(last: u32) -> Link {
        Link(last | LEAF | LIST)
    }

    #[inline]
    pub(crate) const fn slot(self) -> u32 {
        self.0 & SLOT
    }

    #[inline]
    pub(crate) const fn is_inner(self) -> bool {
        self.0 & LEAF == 0
    }

    #[inline]
    pub(crate) const fn is_list(self) -> bool {
        self.0 & LIST != 0
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == Link::NONE.0
    }
}

const LEAF: u32 = 1 << 31;
const LIST: u32 = 1 << 30;
const SLOT: u32 = LIST - 1;
