//! The allocator of programs that name none.

use libz_rs_sys::z_stream;
use std::ffi::{c_uint, c_void};
use std::ptr;

/// Lets a stream have zlib's own allocator, where the program has set none.
///
/// # Safety
/// `stream` points to a stream.
pub(crate) unsafe fn set_allocator(stream: *mut z_stream) {
    // SAFETY: as the caller vouches.
    let stream = unsafe { &mut *stream };
    if stream.zalloc.is_none() {
        stream.zalloc = Some(allocate);
        stream.opaque = ptr::null_mut();
    }
    if stream.zfree.is_none() {
        stream.zfree = Some(release);
    }
}

unsafe extern "C" fn allocate(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: malloc takes any size.
    unsafe { libc::malloc(items as usize * size as usize) }
}

unsafe extern "C" fn release(_: *mut c_void, memory: *mut c_void) {
    // SAFETY: it came from `allocate`.
    unsafe { libc::free(memory) }
}
