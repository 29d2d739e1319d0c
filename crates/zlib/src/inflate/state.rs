//! A stream's memory: its state, and a window once there is something to remember, both by the program's own allocator.
//!
//! A body that is decompressed in one call has no window at all, as with zlib.

use crate::tag::{Kind, Tag};
use libz_rs_sys::{gz_headerp, z_stream};
use std::ffi::{c_uint, c_void};
use std::{mem, ptr, slice};
use terse_deflate::decode::{Decoder, Fill, History};

/// Phase of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    /// The first two bytes decide the wrapper.
    Head,
    /// gzip's head, field by field.
    Flags,
    Time,
    System,
    ExtraLength,
    Extra,
    Name,
    Comment,
    HeadSum,
    /// zlib's head refers to a dictionary.
    DictionarySum,
    /// The dictionary is awaited from the program.
    Dictionary,
    Body,
    /// Tail of the stream.
    Sum,
    Length,
    Done,
    /// The stream is malformed.
    Bad,
    /// There was no memory.
    Memory,
    /// `inflateSync` looks for a place to go on.
    Sync,
}

/// A stream's state.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) tag: Tag,
    /// Pointer from the allocator.
    memory: *mut c_void,
    /// Window of `window_bytes` bytes, or null.
    window: *mut u8,
    window_bytes: usize,
    /// The program's structure for gzip's head.
    pub(super) header: gz_headerp,
    /// Bytes of output.
    pub(super) total: u64,
    /// Checksum of the output, or of the head.
    pub(super) sum: u32,
    /// gzip's flags, 0 for zlib's wrapper. `None`: unknown, or no wrapper.
    pub(super) flags: Option<u16>,
    /// Bytes of a field of the head: to come, or received.
    pub(super) field: u32,
    fill: Fill,
    /// Bytes of the four that `inflateSync` has found.
    pub(super) found: u8,
    pub(super) phase: Phase,
    /// Wrappers that the program accepts.
    pub(super) takes: Takes,
    /// Bits of the window; 0: those of zlib's head.
    pub(super) window_bits: u8,
    pub(super) has_dictionary: bool,
    /// Whether the window is kept.
    is_kept: bool,
    pub(super) decoder: Decoder,
}

/// Wrappers that a program accepts (`windowBits`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Takes {
    pub(super) zlib: bool,
    pub(super) gzip: bool,
    /// Whether checksums are verified.
    pub(super) is_checked: bool,
}

impl Takes {
    /// Whether no wrapper is accepted.
    pub(super) fn is_raw(self) -> bool {
        !self.zlib && !self.gzip
    }

    /// Meaning of `windowBits`: accepted wrappers, and the window's bits.
    pub(super) fn of(window_bits: i32) -> Option<(Takes, u8)> {
        let (takes, bits) = match window_bits {
            ..0 => (Takes { zlib: false, gzip: false, is_checked: false }, window_bits.checked_neg()?),
            0..16 => (Takes { zlib: true, gzip: false, is_checked: true }, window_bits),
            16..32 => (Takes { zlib: false, gzip: true, is_checked: true }, window_bits - 16),
            32..48 => (Takes { zlib: true, gzip: true, is_checked: true }, window_bits - 32),
            _ => return None,
        };
        (bits == 0 || (8..=15).contains(&bits)).then_some((takes, bits as u8))
    }
}

/// Bytes of a state, wherever the allocator puts it.
pub(super) const BYTES: usize = mem::size_of::<State>() + mem::align_of::<State>() - 1;
/// Bytes that zlib 1.3's state takes: with a full window, 39,928 in all.
const _: () = assert!(BYTES <= 7160);

impl State {
    fn new(owner: *mut z_stream, takes: Takes, window_bits: u8) -> State {
        State {
            tag: Tag { owner, kind: Kind::INFLATE },
            memory: ptr::null_mut(),
            window: ptr::null_mut(),
            window_bytes: 0,
            header: ptr::null_mut(),
            total: 0,
            sum: 0,
            flags: None,
            field: 0,
            fill: Fill::default(),
            found: 0,
            phase: Phase::Head,
            takes,
            window_bits,
            has_dictionary: false,
            is_kept: false,
            decoder: Decoder::new(),
        }
    }

    /// Restarts the stream, with the window as it is.
    pub(super) fn restart(&mut self) {
        (self.phase, self.header, self.flags) = (Phase::Head, ptr::null_mut(), None);
        (self.total, self.has_dictionary) = (0, false);
        self.decoder.reset();
    }

    /// Empties the window.
    pub(super) fn forget(&mut self) {
        (self.fill, self.is_kept) = (Fill::default(), false);
    }

    /// Whether the window is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Data of the window.
    ///
    /// # Safety
    /// The result is not to be used when the window has changed.
    pub(super) unsafe fn history<'a>(&self) -> History<'a> {
        if self.window.is_null() {
            return History::NONE;
        }
        // SAFETY: the window has so many bytes, and the caller does not use them after they change.
        self.fill.history(unsafe { slice::from_raw_parts(self.window, self.window_bytes) })
    }

    /// Puts bytes into the window, which is made if there is none. `None`: there is no memory.
    ///
    /// # Safety
    /// `stream` is the one to which this state belongs.
    pub(super) unsafe fn remember(&mut self, stream: *mut z_stream, bytes: &[u8]) -> Option<()> {
        let wanted = 1 << self.window_bits;
        if self.window_bytes != wanted {
            // SAFETY: the caller vouches for the stream, whose allocator is set; the memory is as large as was asked for.
            unsafe {
                self.drop_window(stream);
                self.window = allocate(stream, wanted)?.cast();
                self.window.write_bytes(0, wanted);
            }
            self.window_bytes = wanted;
            self.forget();
        }
        if !self.is_kept {
            self.forget();
            self.is_kept = true;
        }
        // SAFETY: the window has so many bytes, and is not used elsewhere.
        self.fill.put(unsafe { slice::from_raw_parts_mut(self.window, self.window_bytes) }, bytes);
        Some(())
    }

    /// Frees the window, and drops its data.
    ///
    /// # Safety
    /// As [`State::remember`].
    pub(super) unsafe fn drop_window(&mut self, stream: *mut z_stream) {
        if !self.window.is_null() {
            // SAFETY: it came from this allocator.
            unsafe { release(stream, self.window.cast()) };
            (self.window, self.window_bytes) = (ptr::null_mut(), 0);
            self.forget();
        }
    }
}

/// # Safety
/// `stream` points to a stream whose allocator is set.
unsafe fn allocate(stream: *mut z_stream, bytes: usize) -> Option<*mut c_void> {
    // SAFETY: an allocator of zlib's kind takes a number of items and their size.
    let memory = unsafe { ((*stream).zalloc?)((*stream).opaque, bytes as c_uint, 1) };
    (!memory.is_null()).then_some(memory)
}

/// # Safety
/// As [`allocate`], from which `memory` came.
unsafe fn release(stream: *mut z_stream, memory: *mut c_void) {
    // SAFETY: as the caller vouches.
    unsafe {
        if let Some(zfree) = (*stream).zfree {
            zfree((*stream).opaque, memory);
        }
    }
}

/// Allocates a stream's state, and lets `stream` point to it.
///
/// # Safety
/// `stream` points to a stream whose allocator is set.
pub(super) unsafe fn create(stream: *mut z_stream, takes: Takes, window_bits: u8) -> Option<()> {
    // SAFETY: as the caller vouches.
    unsafe { place(stream, &State::new(stream, takes, window_bits)) }.map(|_| ())
}

/// Copies a state, without its window, into memory of its own.
///
/// # Safety
/// As [`create`].
unsafe fn place(stream: *mut z_stream, state: &State) -> Option<*mut State> {
    // SAFETY: as the caller vouches.
    let memory = unsafe { allocate(stream, BYTES)? };
    // Allocators of programs need not align as ours do.
    // SAFETY: the request includes the padding.
    let at = unsafe { memory.cast::<u8>().add(memory.align_offset(mem::align_of::<State>())) }.cast::<State>();
    // SAFETY: there is room for a state, aligned as one.
    unsafe {
        ptr::copy_nonoverlapping(state, at, 1);
        (*at).tag.owner = stream;
        (*at).memory = memory;
        (*at).window = ptr::null_mut();
        (*stream).state = at.cast();
    }
    Some(at)
}

/// State of a stream, if it has a state of this library.
///
/// # Safety
/// `stream` is null or points to a `z_stream`, whose state is null or one of this library's. The state is not used
/// elsewhere as long as the result is used.
pub(super) unsafe fn load<'a>(stream: *const z_stream) -> Option<&'a mut State> {
    // SAFETY: as the caller vouches; a state of the right kind is one that `create` has made.
    unsafe { Tag::is(stream, Kind::INFLATE).then(|| &mut *(*stream).state.cast::<State>()) }
}

/// Frees a stream's memory.
///
/// # Safety
/// `stream` is one from which [`load`] gave a state, which is not used any more.
pub(super) unsafe fn free(stream: *mut z_stream) {
    // SAFETY: the memory came from this allocator.
    unsafe {
        let state = (*stream).state.cast::<State>();
        (*state).drop_window(stream);
        release(stream, (*state).memory);
        (*stream).state = ptr::null_mut();
    }
}

/// Makes `to` a copy of `from`, memory and all.
///
/// # Safety
/// `from` is a stream from which [`load`] gave `state`; `to` points to memory for another stream.
pub(super) unsafe fn duplicate(to: *mut z_stream, from: *const z_stream, state: &State) -> Option<()> {
    // SAFETY: as the caller vouches.
    unsafe {
        let mut copy = *from;
        copy.state = ptr::null_mut();
        let at = place(&mut copy, state)?;
        if !state.window.is_null() {
            let Some(window) = allocate(&mut copy, state.window_bytes) else {
                release(&mut copy, (*at).memory);
                return None;
            };
            (*at).window = window.cast();
            ptr::copy_nonoverlapping(state.window, (*at).window, state.window_bytes);
        }
        (*at).tag.owner = to;
        to.write(copy);
    }
    Some(())
}
