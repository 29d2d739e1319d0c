//! What zlib-rs does as it is: decompression, checksums, files.

use libz_rs_sys::{Bytef, gz_headerp, gzFile, in_func, out_func, size_t, uInt, z_off_t, z_off64_t, z_stream, z_streamp};
use std::ffi::{c_char, c_int, c_long, c_uchar, c_uint, c_ulong, c_void};

/// Exports functions of zlib-rs under zlib's names.
macro_rules! pass {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// zlib's function of this name.
        ///
        /// # Safety
        /// As zlib's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller vouches for what the same function of zlib-rs wants. Some of them want nothing.
            #[allow(unused_unsafe)]
            unsafe { libz_rs_sys::$name($($argument),*) }
        }
    )*};
}

pass! {
    fn crc32_z(crc: c_ulong, buf: *const Bytef, len: size_t) -> c_ulong;
    fn crc32(crc: c_ulong, buf: *const Bytef, len: uInt) -> c_ulong;
    fn crc32_combine(crc1: c_ulong, crc2: c_ulong, len2: z_off_t) -> c_ulong;
    fn crc32_combine64(crc1: c_ulong, crc2: c_ulong, len2: z_off64_t) -> c_ulong;
    fn get_crc_table() -> *const [u32; 256];
    fn crc32_combine_gen64(len2: z_off64_t) -> c_ulong;
    fn crc32_combine_gen(len2: z_off_t) -> c_ulong;
    fn crc32_combine_op(crc1: c_ulong, crc2: c_ulong, op: c_ulong) -> c_ulong;
    fn adler32_z(adler: c_ulong, buf: *const Bytef, len: size_t) -> c_ulong;
    fn adler32(adler: c_ulong, buf: *const Bytef, len: uInt) -> c_ulong;
    fn adler32_combine(adler1: c_ulong, adler2: c_ulong, len2: z_off_t) -> c_ulong;
    fn adler32_combine64(adler1: c_ulong, adler2: c_ulong, len2: z_off64_t) -> c_ulong;
    fn uncompress_z(dest: *mut u8, destLen: *mut usize, source: *const u8, sourceLen: usize) -> c_int;
    fn uncompress(dest: *mut u8, destLen: *mut c_ulong, source: *const u8, sourceLen: c_ulong) -> c_int;
    fn uncompress2_z(dest: *mut u8, destLen: *mut usize, source: *const u8, sourceLen: *mut usize) -> c_int;
    fn uncompress2(dest: *mut u8, destLen: *mut c_ulong, source: *const u8, sourceLen: *mut c_ulong) -> c_int;
    fn inflateEnd(strm: *mut z_stream) -> c_int;
    fn inflateBackInit_(strm: z_streamp, windowBits: c_int, window: *mut c_uchar, version: *const c_char, stream_size: c_int) -> c_int;
    fn inflateBack(strm: z_streamp, in_: Option<in_func>, in_desc: *mut c_void, out: Option<out_func>, out_desc: *mut c_void) -> c_int;
    fn inflateBackEnd(strm: z_streamp) -> c_int;
    fn inflateMark(strm: *const z_stream) -> c_long;
    fn inflateSync(strm: *mut z_stream) -> c_int;
    fn inflateSyncPoint(strm: *mut z_stream) -> c_int;
    fn inflateInit_(strm: z_streamp, version: *const c_char, stream_size: c_int) -> c_int;
    fn inflateInit2_(strm: z_streamp, windowBits: c_int, version: *const c_char, stream_size: c_int) -> c_int;
    fn inflatePrime(strm: *mut z_stream, bits: c_int, value: c_int) -> c_int;
    fn inflateReset(strm: *mut z_stream) -> c_int;
    fn inflateReset2(strm: *mut z_stream, windowBits: c_int) -> c_int;
    fn inflateSetDictionary(strm: *mut z_stream, dictionary: *const u8, dictLength: c_uint) -> c_int;
    fn inflateGetHeader(strm: z_streamp, head: gz_headerp) -> c_int;
    fn inflateUndermine(strm: *mut z_stream, subvert: c_int) -> c_int;
    fn inflateValidate(strm: *mut z_stream, check: c_int) -> c_int;
    fn inflateResetKeep(strm: *mut z_stream) -> c_int;
    fn inflateCodesUsed(strm: *mut z_stream) -> c_ulong;
    fn compressBound_z(sourceLen: usize) -> usize;
    fn compressBound(sourceLen: c_ulong) -> c_ulong;
    fn zError(err: c_int) -> *const c_char;
    fn zlibVersion() -> *const c_char;
    fn zlibCompileFlags() -> c_ulong;
    fn inflateGetDictionary(strm: *const z_stream, dictionary: *mut c_uchar, dictLength: *mut c_uint) -> c_int;
}

pass! {
    fn gzopen64(path: *const c_char, mode: *const c_char) -> gzFile;
    fn gzopen(path: *const c_char, mode: *const c_char) -> gzFile;
    fn gzdopen(fd: c_int, mode: *const c_char) -> gzFile;
    fn gzclose(file: gzFile) -> c_int;
    fn gzclose_r(file: gzFile) -> c_int;
    fn gzclose_w(file: gzFile) -> c_int;
    fn gzbuffer(file: gzFile, size: c_uint) -> c_int;
    fn gzerror(file: gzFile, errnum: *mut c_int) -> *const c_char;
    fn gzclearerr(file: gzFile) -> ();
    fn gzeof(file: gzFile) -> c_int;
    fn gzdirect(file: gzFile) -> c_int;
    fn gzread(file: gzFile, buf: *mut c_void, len: c_uint) -> c_int;
    fn gzfread(buf: *mut c_void, size: size_t, nitems: size_t, file: gzFile) -> size_t;
    fn gzwrite(file: gzFile, buf: *const c_void, len: c_uint) -> c_int;
    fn gzfwrite(buf: *const c_void, size: size_t, nitems: size_t, file: gzFile) -> size_t;
    fn gzflush(file: gzFile, flush: c_int) -> c_int;
    fn gztell64(file: gzFile) -> z_off64_t;
    fn gztell(file: gzFile) -> z_off_t;
    fn gzoffset64(file: gzFile) -> z_off64_t;
    fn gzoffset(file: gzFile) -> z_off_t;
    fn gzputc(file: gzFile, c: c_int) -> c_int;
    fn gzputs(file: gzFile, s: *const c_char) -> c_int;
    fn gzgetc(file: gzFile) -> c_int;
    fn gzgetc_(file: gzFile) -> c_int;
    fn gzungetc(c: c_int, file: gzFile) -> c_int;
    fn gzgets(file: gzFile, buf: *mut c_char, len: c_int) -> *mut c_char;
    fn gzsetparams(file: gzFile, level: c_int, strategy: c_int) -> c_int;
    fn gzrewind(file: gzFile) -> c_int;
}

/// zlib's function of this name. zlib-rs 0.6.8 has a count of its own of what came out, which forgets what a program or `inflateSync`
/// has put into `total_out`.
///
/// # Safety
/// As zlib's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflate(strm: *mut z_stream, flush: c_int) -> c_int {
    // SAFETY: the caller vouches for a stream, or null.
    let Some((total, room)) = (unsafe { strm.as_ref() }).map(|stream| (stream.total_out, stream.avail_out)) else {
        return libz_rs_sys::Z_STREAM_ERROR;
    };
    // SAFETY: as the caller vouches; it is a stream.
    unsafe {
        let code = libz_rs_sys::inflate(strm, flush);
        (*strm).total_out = total.wrapping_add(c_ulong::from(room - (*strm).avail_out));
        code
    }
}

/// zlib's function of this name. zlib-rs 0.6.8 refuses to copy a stream that was not given any room yet.
///
/// # Safety
/// As zlib's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inflateCopy(dest: *mut z_stream, source: *const z_stream) -> c_int {
    // SAFETY: the caller vouches for a stream, or null.
    let Some(&(mut from)) = (unsafe { source.as_ref() }) else { return libz_rs_sys::Z_STREAM_ERROR };
    let has_room = !from.next_out.is_null();
    if !has_room {
        from.next_out = std::ptr::NonNull::dangling().as_ptr();
    }
    // SAFETY: as the caller vouches; what stands in a stream is the same at another place.
    unsafe {
        let code = libz_rs_sys::inflateCopy(dest, &from);
        if code == libz_rs_sys::Z_OK && !has_room {
            (*dest).next_out = std::ptr::null_mut();
        }
        code
    }
}

/// zlib's function of this name.
///
/// # Safety
/// As zlib's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gzseek64(file: gzFile, offset: z_off64_t, whence: c_int) -> z_off64_t {
    // SAFETY: as the caller vouches.
    unsafe {
        prepare_to_seek(file, offset);
        libz_rs_sys::gzseek64(file, offset, whence)
    }
}

/// zlib's function of this name.
///
/// # Safety
/// As zlib's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gzseek(file: gzFile, offset: z_off_t, whence: c_int) -> z_off_t {
    // SAFETY: as the caller vouches.
    unsafe {
        prepare_to_seek(file, offset);
        libz_rs_sys::gzseek(file, offset, whence)
    }
}

/// Makes sure that a file which is written has its buffers: zlib-rs 0.6.8, as zlib 1.2.13, writes what was in them, and not zeros,
/// where nothing but a seek stands before a flush or the end. It changes nothing in files that are read. A seek that moves nothing leaves
/// the buffers to `gzbuffer`, as in zlib.
///
/// # Safety
/// `file` is null or an open file.
unsafe fn prepare_to_seek(file: gzFile, offset: impl Into<i64>) {
    // SAFETY: as the caller vouches.
    unsafe {
        if offset.into() != 0 && libz_rs_sys::gztell64(file) == 0 {
            libz_rs_sys::gzflush(file, libz_rs_sys::Z_NO_FLUSH);
        }
    }
}

unsafe extern "C" {
    fn terse_z_gzprintf();
    fn terse_z_gzvprintf(file: gzFile, format: *const c_char, arguments: *mut c_void) -> c_int;
}

/// `int gzprintf(gzFile, const char *, ...)`: goes on in C with everything that it was given.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn gzprintf() {
    std::arch::naked_asm!("jmp {}", sym terse_z_gzprintf)
}

/// `int gzprintf(gzFile, const char *, ...)`: goes on in C with everything that it was given.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn gzprintf() {
    std::arch::naked_asm!("b {}", sym terse_z_gzprintf)
}

/// `int gzvprintf(gzFile, const char *, va_list)`.
///
/// # Safety
/// As zlib's. A `va_list` is passed as a pointer to one on the systems for which this library is built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gzvprintf(file: gzFile, format: *const c_char, arguments: *mut c_void) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe { terse_z_gzvprintf(file, format, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Ledger, give, take};
    use libz_rs_sys::{Z_NO_FLUSH, Z_OK, Z_STREAM_END};
    use std::mem::size_of;

    /// What the manual says that a decompressor takes.
    const DECOMPRESSOR_BYTES: usize = 47_561;

    #[test]
    fn a_file_of_a_seek_alone_is_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::ffi::CString::new(folder.path().join("a.gz").into_os_string().into_encoded_bytes()).unwrap();
        let mut out = vec![0xaau8; 100_000];
        // SAFETY: files and buffers of the test's.
        unsafe {
            // From now on, memory of malloc is not zero by chance.
            libc::mallopt(libc::M_PERTURB, 0x55);
            let file = gzopen(path.as_ptr(), c"wb".as_ptr());
            assert_eq!((gzseek(file, 0, 1), gzbuffer(file, 65_536)), (0, 0), "nothing was moved");
            assert_eq!(gzseek(file, 60_000, 0), 60_000);
            assert_eq!(gzseek(file, 50_000, 0), 50_000, "nothing was written yet");
            assert_eq!(gzclose(file), Z_OK);
            let file = gzopen(path.as_ptr(), c"rb".as_ptr());
            assert_eq!(gzread(file, out.as_mut_ptr().cast(), out.len() as c_uint), 50_000);
            assert_eq!(gzclose(file), Z_OK);
            libc::mallopt(libc::M_PERTURB, 0);
        }
        assert_eq!(out[..50_000].iter().position(|&byte| byte != 0), None);
    }

    #[test]
    fn a_decompressor_takes_its_memory_at_once() {
        let text = b"a window is filled, and more than one: ".repeat(4000);
        let mut packed = vec![0; 10_000];
        let mut length = packed.len() as c_ulong;
        // SAFETY: streams and buffers of the test's.
        unsafe {
            assert_eq!(crate::compress(packed.as_mut_ptr(), &mut length, text.as_ptr(), text.len() as c_ulong), Z_OK);
            for window_bits in [-15, -9, -8, 8, 9, 12, 15, 24, 31, 40, 47] {
                let mut ledger = Ledger::default();
                let mut stream =
                    z_stream { zalloc: Some(take), zfree: Some(give), opaque: (&raw mut ledger).cast(), ..z_stream::default() };
                let size = size_of::<z_stream>() as c_int;
                assert_eq!(inflateInit2_(&mut stream, window_bits, zlibVersion(), size), Z_OK);
                if matches!(window_bits, 15 | 47) {
                    let mut out = vec![0; 1000];
                    (stream.next_in, stream.avail_in) = (packed.as_ptr(), length as c_uint);
                    while stream.total_out < text.len() as c_ulong {
                        (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), out.len() as c_uint);
                        assert!(matches!(inflate(&mut stream, Z_NO_FLUSH), Z_OK | Z_STREAM_END));
                    }
                }
                assert_eq!((ledger.taken, ledger.blocks), (DECOMPRESSOR_BYTES, 1), "{window_bits}");
                assert_eq!(inflateEnd(&mut stream), Z_OK);
                assert_eq!(ledger.blocks, 0);
            }
        }
    }
}
