//! An allocator that counts, for tests.

use std::ffi::{c_uint, c_void};

/// Memory that a stream has allocated.
#[derive(Default)]
pub(crate) struct Ledger {
    /// All bytes ever asked for.
    pub(crate) taken: usize,
    /// Pieces of memory that it holds.
    pub(crate) blocks: usize,
}

/// `zalloc`, whose `opaque` is a [`Ledger`].
pub(crate) unsafe extern "C" fn take(ledger: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: it is the test's ledger.
    let ledger = unsafe { &mut *ledger.cast::<Ledger>() };
    ledger.taken += items as usize * size as usize;
    ledger.blocks += 1;
    // SAFETY: any size will do.
    unsafe { libc::malloc(items as usize * size as usize) }
}

/// `zfree` of the same.
pub(crate) unsafe extern "C" fn give(ledger: *mut c_void, memory: *mut c_void) {
    // SAFETY: it is the test's ledger, and its memory.
    unsafe {
        (*ledger.cast::<Ledger>()).blocks -= 1;
        libc::free(memory);
    }
}
