//! Tag at the beginning of a stream's state, by which it is recognized.

use libz_rs_sys::z_stream;
use std::ptr;

/// First fields of each state.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    /// The stream, so that a mere copy of `z_stream` is not taken for another stream.
    pub(crate) owner: *mut z_stream,
    pub(crate) kind: Kind,
}

/// Kind of a state.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind(u32);

impl Kind {
    pub(crate) const DEFLATE: Kind = Kind(0x7465_7a64);
    pub(crate) const INFLATE: Kind = Kind(0x7465_7a69);
    pub(crate) const INFLATE_BACK: Kind = Kind(0x7465_7a62);
}

impl Tag {
    /// Whether a stream has a state of that kind.
    ///
    /// # Safety
    /// `stream` is null or points to a `z_stream`, whose state is null or one of this library's.
    pub(crate) unsafe fn is(stream: *const z_stream, kind: Kind) -> bool {
        // SAFETY: as the caller vouches.
        let Some(its) = (unsafe { stream.as_ref() }) else { return false };
        if its.state.is_null() || its.zalloc.is_none() || its.zfree.is_none() {
            return false;
        }
        // SAFETY: each state of this library begins with a tag, wherever it stands.
        let tag = unsafe { its.state.cast::<Tag>().read_unaligned() };
        ptr::eq(tag.owner, stream) && tag.kind == kind
    }
}
