//! Shared memory for bodies: terse alone writes it, the card's process can only read it.
//!
//! ```text
//!   the server's bytes                 terse                                      the card's process
//!
//!   received, or copied if ──> Place: a segment, lent for ──── a job ──────────> Body: mapped to be read, from
//!   they were elsewhere          one body                                          its first job until terse has
//!                                   │  ^                                           let go of the segment
//!   checks, software, the memory <──┘  └── free segments, whose pages are there
//!   of bodies: the same bytes
//! ```
//!
//! A segment has room for an engine's largest body. Pages that were never written take no memory; written pages stay
//! with it, so that the next body finds them.
//!
//! Invariants:
//! * A lent segment is sealed: beside terse's own mapping, which came first, no process can make a writable one, nor
//!   change the size or punch holes. So software finds the data that terse has put in when the card fails, whatever its
//!   process does.
//! * A segment belongs to one body from the moment that it is taken until the last reader of that body has let go of
//!   it. A process that was given up may still read it then, but its output is dropped.
//! * Memory is counted once: by the borrower of a segment, and otherwise here, against the limit. Where the limit is
//!   nearly reached, a segment that comes back is not kept. There are no more free segments than can be lent.
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_compress::Budget;
use terse_compress::device::{Lent, Piece};

/// Segments of an engine.
pub(crate) struct Segments {
    /// Size of each segment, in bytes.
    bytes: usize,
    /// Limit of lent segments, and of free ones that are kept.
    most: usize,
    /// Whether the kernel seals against writing. Without that, no segment is lent.
    seals: bool,
    limit: Arc<dyn Budget>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Free segments; the last used is the first to be used again.
    free: Vec<Segment>,
    lent: usize,
    /// Numbers of dropped segments, which the card's process is to drop too.
    gone: Vec<u64>,
    next_number: u64,
}

/// A segment, and the part of it that belongs to a body.
pub(crate) struct Place {
    /// `None` only when it is dropped.
    segment: Option<Segment>,
    filled: usize,
    /// Bytes that are counted here for it: 0 while it is lent.
    counted: usize,
    lent: bool,
    owner: Arc<Segments>,
}

/// A body in the card's process.
pub(crate) struct Body {
    mapping: Mapping,
}

impl Segments {
    /// Creates segments of `bytes` each. Up to `most` are lent at a time, beside those that bodies are copied to.
    pub(crate) fn new(bytes: usize, most: usize, limit: Arc<dyn Budget>) -> Arc<Segments> {
        Arc::new(Segments { bytes: bytes.max(1), most, seals: kernel_seals(), limit, state: Mutex::default() })
    }

    /// Lends a segment for a body that is being received; `None` when enough are lent, or where the kernel cannot seal
    /// them (Linux before 5.1).
    pub(crate) fn lend(self: &Arc<Segments>) -> Option<Box<dyn Lent>> {
        if !self.seals {
            return None;
        }
        {
            let mut state = self.lock();
            if state.lent >= self.most {
                return None;
            }
            state.lent += 1;
        }
        let mut place = Place { segment: None, filled: 0, counted: 0, lent: true, owner: self.clone() };
        place.segment = Some(self.take().ok()?);
        Some(Box::new(place))
    }

    /// Copies a body into a segment; `None` when it is too large, or when there is no memory.
    pub(crate) fn copy<'a>(self: &Arc<Segments>, pieces: impl Iterator<Item = &'a [u8]>) -> Option<Arc<Place>> {
        let segment = self.take().ok()?;
        let mut place = Place { segment: Some(segment), filled: 0, counted: 0, lent: false, owner: self.clone() };
        for piece in pieces {
            let needed = place.memory(place.filled + piece.len());
            if !self.limit.take(needed - place.counted) {
                return None;
            }
            place.counted = needed;
            place.room().get_mut(..piece.len())?.copy_from_slice(piece);
            place.advance(piece.len());
        }
        Some(Arc::new(place))
    }

    /// Drops free segments.
    pub(crate) fn rest(&self) {
        let free = {
            let mut state = self.lock();
            let free = std::mem::take(&mut state.free);
            state.gone.extend(free.iter().map(|segment| segment.number));
            free
        };
        self.limit.give(free.iter().map(|segment| segment.touched).sum());
    }

    /// Numbers of segments dropped since the last call.
    pub(crate) fn gone(&self) -> Vec<u64> {
        std::mem::take(&mut self.lock().gone)
    }

    /// Records that the drop of this segment could not be sent to the card's process yet.
    pub(crate) fn untold(&self, number: u64) {
        self.lock().gone.push(number);
    }

    fn take(&self) -> io::Result<Segment> {
        let mut state = self.lock();
        if let Some(segment) = state.free.pop() {
            drop(state);
            self.limit.give(segment.touched);
            return Ok(segment);
        }
        state.next_number += 1;
        let number = state.next_number;
        drop(state);
        Segment::new(number, self.bytes, self.seals)
    }

    fn give(&self, segment: Segment) {
        let kept = !self.limit.is_tight() && self.limit.take(segment.touched);
        let mut state = self.lock();
        if kept && state.free.len() < self.most {
            return state.free.push(segment);
        }
        state.gone.push(segment.number);
        drop(state);
        if kept {
            self.limit.give(segment.touched);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Place {
    /// Whether it is one of these segments.
    pub(crate) fn is_of(&self, segments: &Arc<Segments>) -> bool {
        Arc::ptr_eq(&self.owner, segments)
    }

    /// Number of the segment, and the file to pass to the other process.
    pub(crate) fn segment(&self) -> Option<(u64, BorrowedFd<'_>)> {
        self.segment.as_ref().map(|segment| (segment.number, segment.file.as_fd()))
    }
}

impl Lent for Place {
    fn filled(&self) -> &[u8] {
        let Some(segment) = &self.segment else { return &[] };
        segment.mapping.bytes().get(..self.filled).unwrap_or_default()
    }

    fn room(&mut self) -> &mut [u8] {
        let filled = self.filled;
        let Some(segment) = &mut self.segment else { return &mut [] };
        // SAFETY: the mapping is writable, and its bytes are reached through this value alone, which is borrowed
        // mutably. No other process can write them.
        let all = unsafe { std::slice::from_raw_parts_mut(segment.mapping.base.as_ptr(), segment.mapping.bytes) };
        all.get_mut(filled..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        if let Some(segment) = &mut self.segment {
            self.filled = (self.filled + bytes).min(segment.mapping.bytes);
            segment.touched = segment.touched.max(self.filled.next_multiple_of(PAGE));
        }
    }

    fn memory(&self, bytes: usize) -> usize {
        let touched = self.segment.as_ref().map_or(0, |segment| segment.touched);
        touched.max(bytes.next_multiple_of(PAGE))
    }

    fn into_piece(self: Box<Self>) -> Arc<dyn Piece> {
        Arc::<Place>::from(self)
    }
}

impl Piece for Place {
    fn bytes(&self) -> &[u8] {
        self.filled()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.owner.limit.give(self.counted);
        if self.lent {
            self.owner.lock().lent -= 1;
        }
        if let Some(segment) = self.segment.take() {
            self.owner.give(segment);
        }
    }
}

/// A piece of shared memory.
struct Segment {
    /// Number that no other segment of the engine has, ever.
    number: u64,
    mapping: Mapping,
    file: OwnedFd,
    /// Bytes whose pages are there.
    touched: usize,
}

impl Segment {
    fn new(number: u64, bytes: usize, seals: bool) -> io::Result<Segment> {
        let file = memfd_create("terse-body", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes as u64)?;
        let mapping = Mapping::new(&file, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        if seals {
            fcntl_add_seals(&file, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        }
        Ok(Segment { number, mapping, file, touched: 0 })
    }
}

/// Whether files can be sealed against writing by other processes.
fn kernel_seals() -> bool {
    let file = memfd_create("terse-seal", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    file.is_ok_and(|file| fcntl_add_seals(file, SealFlags::FUTURE_WRITE).is_ok())
}

impl Body {
    /// Maps a segment of another process.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn attach(file: &OwnedFd) -> io::Result<Body> {
        let bytes = usize::try_from(fstat(file)?.st_size).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Body { mapping: Mapping::new(file, bytes, ProtFlags::READ)? })
    }

    /// Address of the mapping, and its bytes.
    pub(crate) fn extent(&self) -> (*mut u8, usize) {
        (self.mapping.base.as_ptr(), self.mapping.bytes)
    }

    /// Address of the mapping; `None` when it is not that long.
    pub(crate) fn base(&self, bytes: usize) -> Option<*const u8> {
        (bytes <= self.mapping.bytes).then_some(self.mapping.base.as_ptr().cast_const())
    }
}

/// A file's bytes in this process's memory.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pointer is to memory that belongs to no thread, and the value owns it as a vector owns its own.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference its bytes are only read.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file that has so many bytes and cannot become shorter.
    fn new(file: &OwnedFd, bytes: usize, access: ProtFlags) -> io::Result<Mapping> {
        // SAFETY: a new mapping, at a place that the system chooses.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, bytes })
    }

    /// Bytes in terse, which no other process can write.
    fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped, and a writer of them has borrowed the value mutably.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing of it is used any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FallocateFlags;
    use std::os::fd::AsRawFd;
    use terse_compress::Limit;

    fn segments(bytes: usize, limit: usize) -> (Arc<Segments>, Arc<Limit>) {
        let limit = Arc::new(Limit::new(limit));
        (Segments::new(bytes, 2, limit.clone()), limit)
    }

    fn put(lent: &mut dyn Lent, bytes: &[u8]) {
        lent.room()[..bytes.len()].copy_from_slice(bytes);
        lent.advance(bytes.len());
    }

    #[test]
    fn the_other_process_reads_what_was_put_in_and_can_change_nothing() {
        let (segments, _) = segments(10_000, 1 << 20);
        let place = segments.copy([&b"first "[..], b"second"].into_iter()).unwrap();
        let file = place.segment().unwrap().1.try_clone_to_owned().unwrap();
        let body = Body::attach(&file).unwrap();
        let base = body.base(10_000).unwrap();
        assert!(body.base(10_001).is_none());
        // SAFETY: so many bytes are mapped.
        assert_eq!(unsafe { std::slice::from_raw_parts(base, place.filled) }, b"first second");
        // The other process has the same user, so it may open the file anew.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let reopened: OwnedFd = std::fs::File::options().read(true).write(true).open(path).unwrap().into();
        for file in [&file, &reopened] {
            assert!(Mapping::new(file, 100, ProtFlags::READ | ProtFlags::WRITE).is_err());
            assert!(rustix::io::pwrite(file, b"x", 0).is_err());
            assert!(ftruncate(file, 0).is_err() && ftruncate(file, 1 << 20).is_err());
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            assert!(rustix::fs::fallocate(file, punch, 0, 4096).is_err());
        }
        // SAFETY: the range is the mapping's; if its rights changed, it would not be written.
        let changed = unsafe { rustix::mm::mprotect(base.cast_mut().cast(), 4096, rustix::mm::MprotectFlags::WRITE) };
        assert!(changed.is_err());
        assert_eq!(place.bytes(), b"first second");
    }

    #[test]
    fn where_the_kernel_does_not_seal_nothing_is_lent_and_nothing_lost() {
        let limit = Arc::new(Limit::new(1 << 20));
        let segments = Arc::new(Segments { bytes: 10_000, most: 2, seals: false, limit: limit.clone(), state: Mutex::default() });
        drop(segments.copy([&b"body"[..]].into_iter()).unwrap());
        assert!(segments.lend().is_none());
        assert_eq!(segments.lock().free.len(), 1, "the free one is still there");
        assert_eq!((limit.used(), segments.gone()), (PAGE, vec![]));
        segments.rest();
        assert_eq!((limit.used(), segments.gone()), (0, vec![1]));
    }

    #[test]
    fn segments_are_lent_within_bounds_and_counted_once() {
        let (segments, limit) = segments(100_000, 100_000);
        let mut one = segments.lend().unwrap();
        put(&mut *one, &[1; 20_000]);
        assert_eq!((one.memory(20_000), limit.used()), (20_480, 0), "whoever has borrowed it counts it");
        let two = segments.lend().unwrap();
        assert!(segments.lend().is_none());
        let piece = one.into_piece();
        drop(two);
        assert_eq!((piece.bytes(), limit.used()), (&[1; 20_000][..], 0));
        drop(piece);
        assert_eq!(limit.used(), 20_480, "it is kept");
        let again = segments.lend().unwrap();
        assert_eq!((again.filled(), again.memory(1), limit.used()), (&b""[..], 20_480, 0), "its pages are there");
        drop(again);
        assert_eq!(segments.gone(), []);
        segments.rest();
        assert_eq!((limit.used(), segments.gone().len()), (0, 2));
        assert!(limit.take(60_000));
        let mut tight = segments.lend().unwrap();
        put(&mut *tight, &[1; 20_000]);
        drop(tight);
        assert_eq!((limit.used(), segments.gone()), (60_000, vec![3]), "it is not kept where memory is short");
        let copy = segments.copy([&[7; 30_000][..]].into_iter()).unwrap();
        assert_eq!(limit.used(), 60_000 + 32_768);
        assert!(segments.copy([&[7; 30_000][..]].into_iter()).is_none(), "there is no memory for it");
        drop(copy);
        limit.give(60_000);
        assert!(segments.copy([&[7; 99_999][..], b"12"].into_iter()).is_none(), "it is too long");
        drop(segments);
        assert_eq!(limit.used(), 0);
    }
}
