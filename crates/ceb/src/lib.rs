//! Compact elastic binary trees: ordered indexes with two links a node.
//!
//! [`Tree`] explains the structure. One tree serves every kind of key; a kind ([`Keys`]) defines how its keys are kept
//! and which bit of a key a node looks at:
//!
//! | alias | keys | bytes a node, beside its value |
//! |---|---|---|
//! | [`U32Tree`], [`U64Tree`], [`U128Tree`] | integers | 12 and the integer |
//! | [`BlockTree`] | `[u8; N]` | 12 + N |
//! | [`SliceTree`] | byte slices of one length, known when the tree is made | 12 + length |
//! | [`TextTree`] | byte strings of any length and content | 17 + length (21 from 255 bytes on) |
//! | [`CaselessTree`] | the same, upper and lower case of ASCII being equal | the same |
//! | [`Net4Tree`], [`Net6Tree`] | networks, found by the addresses in them | 20, 32 |
//!
//! Values are the caller's, one a node. An [`Id`] is a handle: it names its entry until that entry is removed, whatever else comes
//! and goes.
//!
//! ```
//! use terse_ceb::{TextTree, Net4Tree, Prefix};
//!
//! let mut ages = TextTree::default();
//! let ada = ages.insert(b"ada", 36)?;
//! ages.insert(b"alan", 41)?;
//! assert_eq!(ages.get(b"alan"), Some(&41));
//! assert_eq!(ages.find_ge(b"ad"), Some(ada));
//! assert_eq!(ages.remove(ada), Some(36));
//!
//! let mut sites = Net4Tree::default();
//! sites.insert(Prefix::new(u32::from_be_bytes([10, 0, 0, 0]), 8), "office")?;
//! let found = sites.longest_prefix(Prefix::host(u32::from_be_bytes([10, 1, 2, 3])));
//! assert_eq!(found.and_then(|id| sites.value(id)), Some(&"office"));
//! # Ok::<(), terse_ceb::Full>(())
//! ```
//!
//! Invariants:
//! * No balancing and no recursion: a path is at most as long as a key has bits, even for hostile keys.
//! * Nothing here panics on any key, and no identifier, however old, does harm: it finds its entry, another one or nothing.
//! * Pure and safe: no clock, no randomness, no `unsafe`.
#![forbid(unsafe_code)]

mod iter;
mod keys;
mod link;
mod remove;
mod search;
mod tree;

pub use iter::Iter;
pub use keys::blocks::{Blocks, Slices};
pub use keys::integers::{Integer, Integers};
pub use keys::prefixes::{Prefix, Prefixes};
pub use keys::text::{Caseless, Text};
pub use keys::{Keys, Prefixed};
pub use link::Id;
pub use tree::{Full, Tree};

/// A tree of 32-bit integers.
pub type U32Tree<V> = Tree<Integers<u32>, V>;
/// A tree of 64-bit integers: hashes, times.
pub type U64Tree<V> = Tree<Integers<u64>, V>;
/// A tree of 128-bit integers: IPv6 addresses.
pub type U128Tree<V> = Tree<Integers<u128>, V>;
/// A tree of blocks of a length that is known at compile time.
pub type BlockTree<const N: usize, V> = Tree<Blocks<N>, V>;
/// A tree of blocks of a length that is known at run time: [`Tree::with_keys`] of [`Slices::new`].
pub type SliceTree<V> = Tree<Slices, V>;
/// A tree of byte strings.
pub type TextTree<V> = Tree<Text, V>;
/// A tree of byte strings in which case is ignored.
pub type CaselessTree<V> = Tree<Caseless, V>;
/// A tree of IPv4 networks.
pub type Net4Tree<V> = Tree<Prefixes<u32>, V>;
/// A tree of IPv6 networks.
pub type Net6Tree<V> = Tree<Prefixes<u128>, V>;
