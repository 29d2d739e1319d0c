//! Memory that both processes write: a slot for each job, for its coded body.
//!
//! Pages that were never written take no memory. Bodies have [memory of their own](crate::segment).
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use terse_compress::device::room_for;

/// Layout of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Number of slots.
    pub(crate) slots: usize,
    /// Bytes of the largest body.
    pub(crate) largest: usize,
}

/// The memory, as this process sees it.
pub(crate) struct Memory {
    base: *mut u8,
    layout: Layout,
    file: OwnedFd,
}

// SAFETY: the pointer is to memory that belongs to no thread; the callers settle which of them may touch which slot.
unsafe impl Send for Memory {}
// SAFETY: as above: nothing is reached through a shared reference but bytes of slots, by copies.
unsafe impl Sync for Memory {}

impl Layout {
    /// Bytes from a slot to the next one: whole pages.
    pub(crate) fn stride(self) -> usize {
        self.room().next_multiple_of(PAGE)
    }

    fn bytes(self) -> io::Result<usize> {
        self.stride().checked_mul(self.slots).filter(|bytes| *bytes > 0).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Bytes of the largest coded body.
    pub(crate) fn room(self) -> usize {
        room_for(self.largest)
    }
}

impl Memory {
    /// Creates memory of a sealed size.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(layout: Layout) -> io::Result<Memory> {
        let file = memfd_create("terse-engine", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, layout.bytes()? as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Memory::attach(file, layout)
    }

    /// Attaches memory that another process has made.
    ///
    /// # Errors
    /// It is not of that layout, or the system's error.
    pub(crate) fn attach(file: OwnedFd, layout: Layout) -> io::Result<Memory> {
        let bytes = layout.bytes()?;
        if fstat(&file)?.st_size as usize != bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: a new mapping, at a place that the system chooses, of a file that is as long.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0) }?;
        Ok(Memory { base: base.cast(), layout, file })
    }

    /// Layout of the memory.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// File to pass to the other process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Copies a coded body out of a slot; `None` when it cannot be that long.
    pub(crate) fn take_coded(&self, slot: usize, bytes: usize) -> Option<Vec<u8>> {
        let (from, room) = self.coded(slot)?;
        if bytes > room {
            return None;
        }
        let mut copy = Vec::with_capacity(bytes);
        // SAFETY: `bytes` can be read, as they are in the mapping, and fit the new vector. Whatever the other process
        // writes meanwhile, they are bytes, and they are judged in the copy.
        unsafe {
            std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), bytes);
            copy.set_len(bytes);
        }
        Some(copy)
    }

    /// Address of a slot's coded body, and its room in bytes; `None` when there is no such slot.
    pub(crate) fn coded(&self, slot: usize) -> Option<(*mut u8, usize)> {
        // SAFETY: the slot is one of the mapping's.
        (slot < self.layout.slots).then(|| (unsafe { self.base.add(slot * self.layout.stride()) }, self.layout.room()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Ok(bytes) = self.layout.bytes() {
            // SAFETY: the mapping is this value's own, and nothing of it is used any more.
            let _ = unsafe { munmap(self.base.cast(), bytes) };
        }
    }
}

const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_the_other_sees_and_slots_are_apart() {
        let layout = Layout { slots: 3, largest: 5000 };
        let mine = Memory::create(layout).unwrap();
        let theirs = Memory::attach(mine.file().try_clone_to_owned().unwrap(), layout).unwrap();
        for slot in 0..3 {
            let (coded, room) = theirs.coded(slot).unwrap();
            assert_eq!(room, layout.room());
            // SAFETY: there is room for more.
            unsafe { std::ptr::write_bytes(coded, slot as u8, 5000) };
        }
        for slot in 0..3 {
            assert_eq!(mine.take_coded(slot, 5000).unwrap(), vec![slot as u8; 5000]);
        }
        assert!(mine.take_coded(0, layout.room() + 1).is_none() && mine.take_coded(3, 0).is_none());
    }

    #[test]
    fn its_size_is_fixed() {
        let layout = Layout { slots: 1, largest: 5000 };
        let memory = Memory::create(layout).unwrap();
        assert!(ftruncate(memory.file(), 0).is_err() && ftruncate(memory.file(), 1 << 20).is_err());
        let other = Layout { slots: 2, largest: 5000 };
        assert!(Memory::attach(memory.file().try_clone_to_owned().unwrap(), other).is_err());
        assert!(Memory::create(Layout { slots: 0, largest: 1 }).is_err());
    }
}
