//! A stream's memory: one allocation by the program's own allocator.
//!
//! ```text
//!   | State | history, up to the window | gathered input; after it was coded, output that waits for room |
//! ```

use super::header::Wrap;
use super::piece::{self, Manner};
use crate::tag::{Kind, Tag};
use libz_rs_sys::{gz_headerp, z_stream};
use std::ffi::{c_int, c_uint, c_void};
use std::{mem, ptr, slice};

/// Phase of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its head has not been written.
    Head,
    /// It takes input.
    Body,
    /// Its last piece was coded.
    Tail,
}

/// State of a stream, at the beginning of its memory. Plain data: it may be copied, and has no drop.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) tag: Tag,
    /// Bytes after the state.
    pub(super) area_bytes: usize,
    pub(super) wrap: Wrap,
    pub(super) manner: Manner,
    pub(super) phase: Phase,
    /// Last flush, for zlib's rule on calls that can do nothing.
    pub(super) last_flush: c_int,
    /// gzip's head, which the program keeps until it has been written.
    pub(super) header: gz_headerp,
    /// Adler-32 of the dictionary, for zlib's head.
    pub(super) dictionary: Option<u32>,
    /// Bytes of the head that have been written.
    pub(super) head_given: usize,
    /// Checksum and number of the bytes taken.
    pub(super) sum: u32,
    pub(super) length: u64,
    /// Bytes of history, which end where the gathered input begins.
    pub(super) history: usize,
    /// Bytes gathered.
    pub(super) gathered: usize,
    /// Waiting output: begin and end within the room of gathered input.
    pub(super) waiting: (usize, usize),
    /// Bits of `deflatePrime` that fill no byte yet: their number, and their value.
    pub(super) prime: (u8, u8),
    /// Flush that was done last, if no input was taken since.
    pub(super) flushed: c_int,
}

impl State {
    /// Size of the window, in bytes.
    pub(super) fn window(&self) -> usize {
        1 << self.manner.window_bits
    }

    /// Number of bytes that can be gathered, so that their coded form has room in their place.
    pub(super) fn room(&self) -> usize {
        let space = self.area_bytes - self.window();
        space - (piece::bound(space) - space) - SPARE
    }

    /// Restarts the stream, with the same parameters.
    pub(super) fn restart(&mut self) {
        *self = State {
            phase: Phase::Head,
            last_flush: NO_FLUSH_YET,
            dictionary: None,
            head_given: 0,
            sum: self.wrap.start(),
            length: 0,
            history: 0,
            gathered: 0,
            waiting: (0, 0),
            prime: (0, 0),
            flushed: NO_FLUSH_YET,
            ..*self
        };
    }
}

/// Value of the last flush before any call.
pub(super) const NO_FLUSH_YET: c_int = -2;
/// Room for the bytes after a piece: the tail, bits of `deflatePrime`.
const SPARE: usize = 24;

/// Offset of the area.
const AREA: usize = mem::size_of::<State>().next_multiple_of(64);

/// Allocates a stream's memory, and lets `stream` point to it.
///
/// # Safety
/// `stream` points to a stream whose allocator is set.
pub(super) unsafe fn create(stream: *mut z_stream, wrap: Wrap, manner: Manner, memory_level: u8) -> Option<()> {
    let area_bytes = (1usize << (manner.window_bits + 2)) + (1usize << (memory_level + 9));
    let state = State {
        tag: Tag { owner: stream, kind: Kind::DEFLATE },
        area_bytes,
        wrap,
        manner,
        phase: Phase::Head,
        last_flush: NO_FLUSH_YET,
        header: ptr::null_mut(),
        dictionary: None,
        head_given: 0,
        sum: wrap.start(),
        length: 0,
        history: 0,
        gathered: 0,
        waiting: (0, 0),
        prime: (0, 0),
        flushed: NO_FLUSH_YET,
    };
    // SAFETY: as the caller vouches.
    unsafe { place(stream, state) }.map(|_| ())
}

/// Allocates memory for a state as large as that one, and copies the state there.
///
/// # Safety
/// `stream` points to a stream whose allocator is set.
unsafe fn place(stream: *mut z_stream, state: State) -> Option<*mut State> {
    // SAFETY: the caller vouches for the stream.
    let (zalloc, opaque) = unsafe { ((*stream).zalloc?, (*stream).opaque) };
    // SAFETY: an allocator of zlib's kind takes a number of items and their size.
    let memory = unsafe { zalloc(opaque, 1, (AREA + state.area_bytes) as c_uint) }.cast::<State>();
    if memory.is_null() {
        return None;
    }
    // Allocators of programs need not align as ours do; the state is moved by copy alone.
    // SAFETY: the memory is as large as was asked for, which is more than a state.
    unsafe {
        memory.write_unaligned(State { tag: Tag { owner: stream, kind: Kind::DEFLATE }, ..state });
        (*stream).state = memory.cast();
    }
    Some(memory)
}

/// Copy of a stream's state, if it is a state of this library.
///
/// # Safety
/// `stream` is null or points to a `z_stream`, whose state is null or one of this library's.
pub(super) unsafe fn load(stream: *const z_stream) -> Option<State> {
    // SAFETY: as the caller vouches; a state of that kind is one that `create` has made.
    unsafe { Tag::is(stream, Kind::DEFLATE).then(|| (*stream).state.cast::<State>().read_unaligned()) }
}

/// Stores a state in the place from which it was loaded.
///
/// # Safety
/// `stream` is one from which [`load`] gave a state.
pub(super) unsafe fn save(stream: *mut z_stream, state: &State) {
    // SAFETY: as the caller vouches.
    unsafe { (*stream).state.cast::<State>().write_unaligned(*state) }
}

/// Area of a stream: bytes that were written may be read.
#[derive(Clone, Copy)]
pub(super) struct Area {
    begin: *mut u8,
    length: usize,
}

impl Area {
    /// Area of a stream.
    ///
    /// # Safety
    /// `stream` is one from which [`load`] gave `state`, and its area is not used elsewhere as long as the result is
    /// used.
    pub(super) unsafe fn of(stream: *mut z_stream, state: &State) -> Area {
        // SAFETY: the area comes after the state in the same allocation.
        Area { begin: unsafe { (*stream).state.cast::<u8>().add(AREA) }, length: state.area_bytes }
    }

    /// Writes bytes, which are not the area's own. Bytes that do not fit would be a mistake of ours, and panic here.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.length && bytes.len() <= self.length - at);
        // SAFETY: it was checked that they fit, and they are outside of the area.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.begin.add(at), bytes.len()) }
    }

    /// Moves bytes.
    pub(super) fn shift(&mut self, from: usize, to: usize, count: usize) {
        assert!(from.max(to) <= self.length && count <= self.length - from.max(to));
        // SAFETY: it was checked that both places are the area's.
        unsafe { ptr::copy(self.begin.add(from), self.begin.add(to), count) }
    }

    /// Written bytes.
    ///
    /// # Safety
    /// They were written, and are not changed while the result lives.
    pub(super) unsafe fn read<'a>(self, at: usize, count: usize) -> &'a [u8] {
        assert!(at <= self.length && count <= self.length - at);
        // SAFETY: it was checked that they are the area's; the caller vouches for the rest.
        unsafe { slice::from_raw_parts(self.begin.add(at), count) }
    }
}

/// Frees a stream's memory.
///
/// # Safety
/// `stream` is one from which [`load`] gave a state.
pub(super) unsafe fn free(stream: *mut z_stream) {
    // SAFETY: the memory came from this allocator.
    unsafe {
        let memory = (*stream).state.cast::<c_void>();
        (*stream).state = ptr::null_mut();
        if let Some(zfree) = (*stream).zfree {
            zfree((*stream).opaque, memory);
        }
    }
}

/// Makes `to` a copy of `from`, memory and all.
///
/// # Safety
/// `from` is a stream from which [`load`] gave `state`; `to` points to memory for another stream.
pub(super) unsafe fn duplicate(to: *mut z_stream, from: *mut z_stream, state: &State) -> Option<()> {
    // SAFETY: as the caller vouches; both areas have the size in the state, and are different.
    unsafe {
        ptr::copy_nonoverlapping(from, to, 1);
        (*to).state = ptr::null_mut();
        place(to, *state)?;
        let (source, target) = ((*from).state.cast::<u8>(), (*to).state.cast::<u8>());
        ptr::copy_nonoverlapping(source.add(AREA), target.add(AREA), state.area_bytes);
    }
    Some(())
}
