//! crypt(3): whether a password has a hash. The system's library knows every method that /etc/shadow may hold.
#![allow(unsafe_code, reason = "libcrypt has no safe face, and no crate knows all its methods")]

use std::ffi::{CStr, CString, c_char};

/// Bytes of scratch memory, more than `struct crypt_data` takes: 32,768 bytes with libxcrypt, 131,232 with old C libraries.
const SCRATCH_BYTES: usize = 256 * 1024;

/// Room for the library, aligned as any of its fields may want.
#[repr(C, align(64))]
struct Scratch([u8; SCRATCH_BYTES]);

#[link(name = "crypt")]
unsafe extern "C" {
    fn crypt_r(phrase: *const c_char, setting: *const c_char, data: *mut Scratch) -> *mut c_char;
}

/// Whether a password has that hash. It takes as long as the hash's method: milliseconds.
pub(super) fn matches(password: &[u8], hash: &str) -> bool {
    let Some(made) = hashed(password, hash) else { return false };
    made.len() == hash.len() && openssl::memcmp::eq(&made, hash.as_bytes())
}

/// Whether the library knows the method of a hash.
pub(super) fn is_known(hash: &str) -> bool {
    hashed(b"", hash).is_some()
}

/// The password's hash, with the method and salt of another; `None` for methods that are not known.
fn hashed(password: &[u8], setting: &str) -> Option<Vec<u8>> {
    let (password, setting) = (CString::new(password).ok()?, CString::new(setting).ok()?);
    // Zeroed, as the library requires before its first use; on the heap, since threads have small stacks.
    let mut scratch: Box<[u8]> = vec![0; SCRATCH_BYTES + align_of::<Scratch>()].into();
    let offset = scratch.as_ptr().align_offset(align_of::<Scratch>());
    let room = scratch.get_mut(offset..offset.checked_add(SCRATCH_BYTES)?)?;
    // SAFETY: both texts end in a NUL and live until the call returns. The third argument points to zeroed memory, aligned
    // and larger than the library's structure, that is not used elsewhere.
    let made = unsafe { crypt_r(password.as_ptr(), setting.as_ptr(), room.as_mut_ptr().cast()) };
    if made.is_null() {
        return None;
    }
    // SAFETY: a pointer that is not null points to a text that ends in a NUL, within the scratch, which is still there.
    let made = unsafe { CStr::from_ptr(made) }.to_bytes().to_vec();
    // "*0" and "*1" mean that the method is not known.
    (!made.starts_with(b"*")).then_some(made)
}
