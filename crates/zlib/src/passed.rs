//! Functions of zlib-rs that are exported as they are: checksums, files.

use libz_rs_sys::{Bytef, gzFile, size_t, uInt, z_off_t, z_off64_t};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

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
    fn compressBound_z(sourceLen: usize) -> usize;
    fn compressBound(sourceLen: c_ulong) -> c_ulong;
    fn zError(err: c_int) -> *const c_char;
    fn zlibCompileFlags() -> c_ulong;
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

/// The release of zlib whose API this is: programs split it at its dots and make numbers of the parts.
#[unsafe(no_mangle)]
pub extern "C" fn zlibVersion() -> *const c_char {
    c"1.3.1".as_ptr()
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

/// Makes sure that a file which is written has its buffers. zlib-rs 0.6.8, as zlib 1.2.13, writes their former content
/// in place of zeros, where only a seek comes before a flush or the end. Files that are read are not changed. A seek by
/// 0 bytes leaves the buffers to `gzbuffer`, as in zlib.
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

/// `int gzprintf(gzFile, const char *, ...)`: jumps to C with all its arguments.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn gzprintf() {
    std::arch::naked_asm!("jmp {}", sym terse_z_gzprintf)
}

/// `int gzprintf(gzFile, const char *, ...)`: jumps to C with all its arguments.
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
    use libz_rs_sys::Z_OK;

    #[test]
    fn a_file_of_a_seek_alone_is_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::ffi::CString::new(folder.path().join("a.gz").into_os_string().into_encoded_bytes()).unwrap();
        let mut out = vec![0xaau8; 100_000];
        // SAFETY: files and buffers of the test's.
        unsafe {
            // From now on, memory of malloc is never zero by chance.
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
}
