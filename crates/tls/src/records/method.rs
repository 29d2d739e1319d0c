//! The method that OpenSSL's list of compression methods gets. Its structures are private to OpenSSL: they are written here
//! as 3.0 lays them out, and with any other version nothing is touched.
#![allow(unsafe_code, reason = "OpenSSL keeps the API of compression methods, but not its headers")]

use super::coder::{Packer, Unpacker};
use super::{DEFLATE, MANNER};
use crate::counters::COUNTERS;
use foreign_types::ForeignTypeRef;
use openssl::ssl::{SslContextBuilder, SslRef};
use openssl_sys as ffi;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

/// `struct comp_method_st`
#[repr(C)]
struct Method {
    kind: c_int,
    name: *const c_char,
    init: unsafe extern "C" fn(*mut Ctx) -> c_int,
    finish: unsafe extern "C" fn(*mut Ctx),
    compress: unsafe extern "C" fn(*mut Ctx, *mut c_uchar, c_uint, *mut c_uchar, c_uint) -> c_int,
    expand: unsafe extern "C" fn(*mut Ctx, *mut c_uchar, c_uint, *mut c_uchar, c_uint) -> c_int,
}

// SAFETY: it is never changed, and its name is a constant.
unsafe impl Sync for Method {}

/// `struct comp_ctx_st`: one direction of one connection.
#[repr(C)]
struct Ctx {
    method: *const Method,
    counts: [c_ulong; 4],
    data: *mut c_void,
}

/// `struct ssl_comp_st`: an entry of the list.
#[repr(C)]
struct Entry {
    id: c_int,
    name: *const c_char,
    method: *const Method,
}

/// State that `data` points to.
struct State {
    packer: Packer,
    unpacker: Unpacker,
}

type SecurityCallback =
    unsafe extern "C" fn(*const ffi::SSL, *const ffi::SSL_CTX, c_int, c_int, c_int, *mut c_void, *mut c_void) -> c_int;

unsafe extern "C" {
    fn SSL_COMP_get_compression_methods() -> *mut c_void;
    fn SSL_get_current_compression(ssl: *const ffi::SSL) -> *const Method;
    fn SSL_CTX_get_security_callback(ctx: *const ffi::SSL_CTX) -> Option<SecurityCallback>;
    fn SSL_CTX_set_security_callback(ctx: *mut ffi::SSL_CTX, callback: SecurityCallback);
    fn SSL_set_options(ssl: *mut ffi::SSL, options: u64) -> u64;
    fn SSL_CTX_clear_options(ctx: *mut ffi::SSL_CTX, options: u64) -> u64;
    fn SSL_set_session_id_context(ssl: *mut ffi::SSL, name: *const c_uchar, len: c_uint) -> c_int;
    fn OPENSSL_sk_push(stack: *mut c_void, data: *const c_void) -> c_int;
    fn CRYPTO_malloc(bytes: usize, file: *const c_char, line: c_int) -> *mut c_void;
}

static METHOD: Method = Method { kind: NID_ZLIB_COMPRESSION, name: c"DEFLATE".as_ptr(), init, finish, compress, expand };

/// Adds the method to the list of the process, once.
pub(super) fn register() -> Result<(), String> {
    let version = openssl::version::number() as u64;
    if version >> 20 != 0x300 {
        return Err(format!("it is known how OpenSSL 3.0 does it, and this is {}", openssl::version::version()));
    }
    openssl::init();
    // SAFETY: the call returns the list of the process, which lives as long as it does, or NULL where OpenSSL was built
    // without compression. OpenSSL frees entries with OPENSSL_free, so this one is from its allocator, and the method is a
    // static. Its layout is that of this version, as asked above. Contexts look at the list only while they make a
    // handshake, and this runs while the configuration is read, before there are any.
    unsafe {
        let list = SSL_COMP_get_compression_methods();
        if list.is_null() {
            return Err("this OpenSSL was built without it".into());
        }
        let entry = CRYPTO_malloc(size_of::<Entry>(), ptr::null(), 0).cast::<Entry>();
        if entry.is_null() {
            return Err("OpenSSL has no memory".into());
        }
        entry.write(Entry { id: DEFLATE.into(), name: METHOD.name, method: &METHOD });
        if OPENSSL_sk_push(list, entry.cast()) == 0 {
            return Err("OpenSSL does not take another method".into());
        }
    }
    Ok(())
}

/// Allows a context to compress, whatever its security level has for that; all else is still decided by that level.
pub(super) fn allow(context: &mut SslContextBuilder) {
    // SAFETY: the context lives. The callback is a function, and asks the one that was there before for all but one operation.
    unsafe {
        SSL_CTX_clear_options(context.as_ptr(), NO_COMPRESSION);
        if let Some(default) = SSL_CTX_get_security_callback(context.as_ptr()) {
            // It is OpenSSL's own, the same for each context.
            DEFAULT.get_or_init(|| default);
        }
        SSL_CTX_set_security_callback(context.as_ptr(), admit);
    }
}

static DEFAULT: OnceLock<SecurityCallback> = OnceLock::new();

unsafe extern "C" fn admit(
    ssl: *const ffi::SSL,
    context: *const ffi::SSL_CTX,
    operation: c_int,
    bits: c_int,
    nid: c_int,
    other: *mut c_void,
    extra: *mut c_void,
) -> c_int {
    match DEFAULT.get() {
        _ if operation == SECOP_COMPRESSION => 1,
        // SAFETY: the arguments are those that OpenSSL called this one with.
        Some(default) => unsafe { default(ssl, context, operation, bits, nid, other, extra) },
        None => 0,
    }
}

/// Forbids it for one connection whose context allows it.
pub(crate) fn forbid(ssl: &SslRef) {
    // SAFETY: the connection lives; the call sets a flag in it.
    unsafe { SSL_set_options(ssl.as_ptr(), NO_COMPRESSION) };
}

/// Names the session context of a connection: it resumes only sessions of the same name.
pub(crate) fn name_sessions(ssl: &SslRef, name: &[u8; 32]) {
    // SAFETY: the connection lives; the call copies the name, which is as long as may be.
    unsafe { SSL_set_session_id_context(ssl.as_ptr(), name.as_ptr(), name.len() as c_uint) };
}

/// Whether the records of a connection are compressed, as its handshake has settled it.
pub(crate) fn current(ssl: &SslRef) -> bool {
    // SAFETY: the connection lives; the call returns the method in use or NULL, and it is only compared.
    unsafe { ptr::eq(SSL_get_current_compression(ssl.as_ptr()), &raw const METHOD) }
}

unsafe extern "C" fn init(ctx: *mut Ctx) -> c_int {
    let state = Box::new(State { packer: Packer::new(), unpacker: Unpacker::new() });
    // SAFETY: OpenSSL has made the context for this method, and calls this before anything else.
    unsafe { (*ctx).data = Box::into_raw(state).cast() };
    1
}

unsafe extern "C" fn finish(ctx: *mut Ctx) {
    // SAFETY: OpenSSL calls this last, on a context that `init` has seen; `data` is not used elsewhere.
    unsafe {
        let data = std::mem::replace(&mut (*ctx).data, ptr::null_mut());
        if !data.is_null() {
            drop(Box::from_raw(data.cast::<State>()));
        }
    }
}

unsafe extern "C" fn compress(ctx: *mut Ctx, out: *mut c_uchar, room: c_uint, input: *mut c_uchar, len: c_uint) -> c_int {
    // SAFETY: `data` is what `init` has put there. OpenSSL gives a record of `len` bytes and room of `room` bytes, which do
    // not overlap.
    let (state, record, room) = unsafe {
        let Some(state) = (*ctx).data.cast::<State>().as_mut() else { return -1 };
        (state, bytes(input, len), room_of(out, room))
    };
    match state.packer.pack(record, room, MANNER.get()) {
        Ok(n) => {
            COUNTERS.records_plain.fetch_add(len.into(), Relaxed);
            COUNTERS.records_packed.fetch_add(n as u64, Relaxed);
            c_int::try_from(n).unwrap_or(-1)
        }
        Err(_) => -1,
    }
}

unsafe extern "C" fn expand(ctx: *mut Ctx, out: *mut c_uchar, room: c_uint, input: *mut c_uchar, len: c_uint) -> c_int {
    // SAFETY: as in `compress`.
    let (state, record, room) = unsafe {
        let Some(state) = (*ctx).data.cast::<State>().as_mut() else { return -1 };
        (state, bytes(input, len), room_of(out, room))
    };
    match state.unpacker.unpack(record, room) {
        Ok(n) => c_int::try_from(n).unwrap_or(-1),
        Err(_) => -1,
    }
}

/// SAFETY: to be called with so many bytes that can be read as long as the result is used.
unsafe fn bytes<'a>(at: *const c_uchar, len: c_uint) -> &'a [u8] {
    if at.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: see above.
    unsafe { std::slice::from_raw_parts(at, len as usize) }
}

/// SAFETY: to be called with room for so many bytes that nothing else uses as long as the result is used.
unsafe fn room_of<'a>(at: *mut c_uchar, len: c_uint) -> &'a mut [u8] {
    if at.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: see above. The room may not be initialised: zeros are written, which takes a thousandth of the coder's time.
    unsafe {
        ptr::write_bytes(at, 0, len as usize);
        std::slice::from_raw_parts_mut(at, len as usize)
    }
}

/// `ssl.h`: `SSL_OP_NO_COMPRESSION`
const NO_COMPRESSION: u64 = 1 << 17;
/// `ssl.h`: `SSL_SECOP_COMPRESSION`, with the flags of its kind.
const SECOP_COMPRESSION: c_int = 15;
/// `obj_mac.h`: `NID_zlib_compression`
const NID_ZLIB_COMPRESSION: c_int = 125;
