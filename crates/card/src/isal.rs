//! ISA-L's igzip (`libisal.so.2`), if it is installed: deflate for the lowest levels, on the processor's vector units.
//!
//! A level here is igzip's level whose output is no larger than zlib's of that number, on text. Binary records
//! (kennedy.xls) are 2.4 % larger at level 1. Bytes (nanoseconds a byte):
//!
//! ```text
//!                    cp.html 24,603    alice29.txt 152,089    lcet10.txt 426,754    kennedy.xls 1,029,744
//!   zlib 1           9,046 (13)        65,132 (14)            174,121 (14)          245,025 (8)
//!            igzip 1 8,810 (2.6)       63,846 (4.1)           170,959 (3.9)         253,265 (2.3)
//!   level 1: igzip 2 8,713 (2.8)       62,285 (4.1)           165,950 (4.0)         250,856 (2.3)
//!   zlib 2           8,829             62,267                 166,113               241,552
//!   level 2: igzip 3 8,544 (6.6)       60,893 (6.5)           161,332 (6.5)         239,345 (6.0)
//!   zlib 3           8,617             59,479                 158,757               236,653
//! ```
//!
//! At levels 1 and 2 our own coder takes long texts first, which is quicker. Beyond these levels libdeflate's output is
//! smaller than igzip can make it. It is used for whole bodies. As a stream it would need its 82 KB of state and 332 KB
//! of tables for each body that waits for its server.
//!
//! Source: the declarations of igzip_lib.h 2.30; the fields up to the internal state are the library's interface.
#![allow(unsafe_code)]

use crate::zlib::{RTLD_DEEPBIND, Unfit, symbol};
use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};
use terse_compress::Level;
use terse_compress::coder::{CoderFault, Fast};
use terse_compress::device::room_for;

/// File name of the library, with the version of its interface.
pub const NAME: &str = "libisal.so.2";

/// igzip.
pub struct Isal {
    init: Stateless,
    deflate: Deflate,
    /// Idle states.
    idle: Mutex<Vec<State>>,
    /// Path of the loaded file, as far as the system reports it: its name has the version.
    path: Option<String>,
    _handle: ManuallyDrop<Handle>,
}

/// Loads the library, if it is installed.
///
/// # Errors
/// It is not, or it is not the expected library.
pub fn load() -> Result<Isal, Unfit> {
    // SAFETY: a library of the system's, by its own name; its initializers choose functions for the processor.
    let handle = unsafe { Handle::open(Some(NAME), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) };
    let handle = ManuallyDrop::new(handle.map_err(|error| Unfit::Unloadable(error.to_string()))?);
    // SAFETY: the types are those of igzip_lib.h.
    let (init, deflate) = unsafe {
        (symbol::<Stateless>(&handle, "isal_deflate_stateless_init")?, symbol::<Deflate>(&handle, "isal_deflate_stateless")?)
    };
    let path = std::fs::read_to_string("/proc/self/maps").ok().and_then(|maps| mapped(&maps));
    Ok(Isal { init, deflate, idle: Mutex::default(), path, _handle: handle })
}

/// Path of the library among the mapped files, with links resolved: `libisal.so.2.0.30`.
fn mapped(maps: &str) -> Option<String> {
    maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).find(|path| path.contains("/libisal.so")).map(String::from)
}

impl Fast for Isal {
    fn name(&self) -> String {
        format!("ISA-L({})", self.path.as_deref().unwrap_or(NAME))
    }

    fn takes(&self, level: Level) -> bool {
        matches!(level.0, 1 | 2)
    }

    fn deflate(&self, input: &[u8], level: Level, out: &mut Vec<u8>) -> Result<(), CoderFault> {
        let start = out.len();
        out.resize(start + room_for(input.len()), 0);
        let given = self.run(input, if level.0 < 2 { 2 } else { 3 }, &mut out[start..]);
        out.truncate(start + given.unwrap_or(0));
        given.map(drop).ok_or(CoderFault)
    }
}

impl Isal {
    fn run(&self, input: &[u8], level: u32, room: &mut [u8]) -> Option<usize> {
        let (avail_in, avail_out) = (u32::try_from(input.len()).ok()?, u32::try_from(room.len()).ok()?);
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut state = kept.unwrap_or_default();
        let tables = &raw mut *state.tables;
        let stream = &raw mut *state.stream;
        // SAFETY: the stream is larger than the library's, and its data of the last body is set anew by `init`, which
        // chooses the default Huffman tables. The slices match the fields, and outlive the call.
        let (code, left) = unsafe {
            (self.init)(stream.cast());
            let head = &mut (*stream).head;
            (head.next_in, head.avail_in) = (input.as_ptr(), avail_in);
            (head.next_out, head.avail_out) = (room.as_mut_ptr(), avail_out);
            (head.level, head.level_buf, head.level_buf_size) = (level, tables.cast(), TABLE_BYTES as u32);
            (head.end_of_stream, head.flush, head.gzip_flag) = (1, 0, 0);
            ((self.deflate)(stream.cast()), (*stream).head.avail_out)
        };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(state);
        }
        (code == COMP_OK && left <= avail_out).then(|| (avail_out - left) as usize)
    }
}

struct State {
    stream: Box<Stream>,
    tables: Box<Tables>,
}

impl Default for State {
    fn default() -> State {
        State {
            stream: Box::new(Stream { head: Head::EMPTY, rest: [0; STREAM_BYTES] }),
            tables: Box::new(Tables([0; TABLE_BYTES])),
        }
    }
}

// SAFETY: its pointers are set before each use and are not used after it.
unsafe impl Send for State {}

/// `struct isal_zstream`, and room for its internal part: 82,384 bytes in 2.30.
#[repr(C, align(64))]
struct Stream {
    head: Head,
    rest: [u8; STREAM_BYTES],
}

#[repr(C, align(64))]
struct Tables([u8; TABLE_BYTES]);

#[repr(C)]
struct Head {
    next_in: *const u8,
    avail_in: u32,
    total_in: u32,
    next_out: *mut u8,
    avail_out: u32,
    total_out: u32,
    hufftables: *mut c_void,
    level: u32,
    level_buf_size: u32,
    level_buf: *mut u8,
    end_of_stream: u16,
    flush: u16,
    gzip_flag: u16,
    hist_bits: u16,
}

const _: () = assert!(size_of::<Head>() == 64);

impl Head {
    const EMPTY: Head = Head {
        next_in: std::ptr::null(),
        avail_in: 0,
        total_in: 0,
        next_out: std::ptr::null_mut(),
        avail_out: 0,
        total_out: 0,
        hufftables: std::ptr::null_mut(),
        level: 0,
        level_buf_size: 0,
        level_buf: std::ptr::null_mut(),
        end_of_stream: 0,
        flush: 0,
        gzip_flag: 0,
        hist_bits: 0,
    };
}

type Stateless = unsafe extern "C" fn(*mut c_void);
type Deflate = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Three times what version 2.30 needs.
const STREAM_BYTES: usize = 256 * 1024;
/// `ISAL_DEF_LVL3_DEFAULT`, the larger one of the two levels that are used, rounded up.
const TABLE_BYTES: usize = 352 * 1024;
const COMP_OK: c_int = 0;
/// Number of threads that code at a time on most machines; each state is half a megabyte.
const MAX_IDLE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_found_among_those_that_are_mapped() {
        let maps = "7f00-7f01 r--p 00000000 fd:00 12 /usr/lib/libc.so.6\n7f02-7f03 rw-p 00000000 00:00 0\n\
                    7f04-7f05 r-xp 00001000 fd:00 34   /usr/lib/x86_64-linux-gnu/libisal.so.2.0.30\n";
        assert_eq!(mapped(maps).as_deref(), Some("/usr/lib/x86_64-linux-gnu/libisal.so.2.0.30"));
        assert_eq!(mapped("7f00-7f01 r--p 00000000 fd:00 12 /usr/lib/libc.so.6\n"), None);
    }
}
