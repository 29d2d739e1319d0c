//! gzip's head (RFC 1952 section 2.3), as its fields go into the program's `gz_header`, and into the checksum of the head.

use super::state::State;
use libz_rs_sys::gz_header;
use std::ptr;

/// The head has a checksum.
pub(super) const HAS_SUM: u16 = 0x200;
pub(super) const HAS_EXTRA: u16 = 0x400;
pub(super) const HAS_NAME: u16 = 0x800;
pub(super) const HAS_COMMENT: u16 = 0x1000;
/// Flags without a meaning yet.
pub(super) const RESERVED: u16 = 0xe000;

impl State {
    /// Whether gzip's flags have this flag.
    pub(super) fn has(&self, flag: u16) -> bool {
        self.flags.is_some_and(|flags| flags & flag != 0)
    }

    /// The program's head, if it wants one.
    ///
    /// # Safety
    /// The program keeps the head of `inflateGetHeader` until it was read.
    pub(super) unsafe fn head<'a>(&self) -> Option<&'a mut gz_header> {
        // SAFETY: as the caller vouches.
        unsafe { self.header.as_mut() }
    }

    /// Adds bytes of the head to its checksum, if it has one.
    pub(super) fn add_head(&mut self, bytes: &[u8]) {
        if self.has(HAS_SUM) && self.takes.is_checked {
            self.sum = zlib_rs::crc32::crc32(self.sum, bytes);
        }
    }

    /// Stores bytes of the extra field, of which `before` have come already.
    pub(super) fn keep_extra(&self, before: usize, bytes: &[u8]) {
        // SAFETY: the program keeps its head, where there is room for `extra_max` bytes or none at all.
        unsafe {
            if let Some(head) = self.head()
                && !head.extra.is_null()
            {
                keep(head.extra, head.extra_max, before, bytes);
            }
        }
    }

    /// Stores bytes of the file's name.
    pub(super) fn keep_name(&self, before: usize, bytes: &[u8]) {
        // SAFETY: as above.
        unsafe {
            if let Some(head) = self.head()
                && !head.name.is_null()
            {
                keep(head.name, head.name_max, before, bytes);
            }
        }
    }

    /// Stores bytes of the comment.
    pub(super) fn keep_comment(&self, before: usize, bytes: &[u8]) {
        // SAFETY: as above.
        unsafe {
            if let Some(head) = self.head()
                && !head.comment.is_null()
            {
                keep(head.comment, head.comm_max, before, bytes);
            }
        }
    }
}

/// Copies the bytes that fit.
///
/// # Safety
/// `to` points to `most` bytes.
unsafe fn keep(to: *mut u8, most: u32, before: usize, bytes: &[u8]) {
    let room = (most as usize).saturating_sub(before);
    if room > 0 {
        // SAFETY: so many fit there, as the caller vouches.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(before), bytes.len().min(room)) };
    }
}
