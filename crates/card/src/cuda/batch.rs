//! Bodies that the device compresses together, and the memory for them.
#![allow(unsafe_code)]

use super::driver::{Address, Gpu, Opaque, Trouble};
use super::layout::{
    ADLER, BLOCK_BYTES, BODY_ALIGNMENT, Block, Body, CODE_THREADS, CODED_ROOM, GATHER_THREADS, HISTORY, INPUT_SPARE, LAST,
    MATCH_SHARED, MATCH_THREADS, NO_ROOM,
};
use super::pinned::{OnDevice, Shared};
use super::sums;
use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use terse_compress::device::Wrapper;

/// Memory and a stream for a batch at a time.
pub(super) struct Batch {
    gpu: Arc<Gpu>,
    stream: Opaque,
    most_bytes: usize,
    most_bodies: usize,
    input: OnDevice,
    /// Matches, four bytes a position; tokens replace them.
    matches: OnDevice,
    coded: OnDevice,
    sizes: OnDevice,
    blocks: Shared<Block>,
    bodies: Shared<Body>,
    sums: Shared<[u32; 2]>,
    results: Shared<u32>,
}

// SAFETY: the stream is used by the owner of the value alone.
unsafe impl Send for Batch {}

/// A body of a batch: its input, and the slot for its coded form.
pub(super) struct Task {
    /// Readable until the batch is done.
    pub(super) input: *const u8,
    pub(super) bytes: usize,
    pub(super) wrapper: Wrapper,
    /// Writable until the batch is done, here and by the device.
    pub(super) slot: *mut u8,
    pub(super) slot_address: Address,
    pub(super) slot_bytes: usize,
    /// Bytes of the coded form, or the number of the failure.
    pub(super) result: Result<u64, i32>,
}

/// Bytes that a body takes in a batch.
pub(super) fn share_of(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(BODY_ALIGNMENT)
}

impl Batch {
    /// Creates a batch for so many bodies, of `most_bytes` together by [`share_of`].
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn new(gpu: &Arc<Gpu>, most_bytes: usize, most_bodies: usize) -> Result<Batch, Trouble> {
        let blocks = most_bytes / BLOCK_BYTES + most_bodies + 1;
        let (mut stream, calls) = (std::ptr::null_mut(), &gpu.driver.calls);
        // SAFETY: one pointer is written.
        gpu.driver.check("cuStreamCreate", unsafe { (calls.stream_create)(&raw mut stream, BESIDE_OTHERS) })?;
        Ok(Batch {
            gpu: gpu.clone(),
            stream,
            most_bytes,
            most_bodies,
            input: OnDevice::new(gpu, most_bytes + INPUT_SPARE)?,
            matches: OnDevice::new(gpu, blocks * BLOCK_BYTES * size_of::<u32>())?,
            coded: OnDevice::new(gpu, blocks * CODED_ROOM)?,
            sizes: OnDevice::new(gpu, blocks * size_of::<u32>())?,
            blocks: Shared::new(gpu, blocks)?,
            bodies: Shared::new(gpu, most_bodies)?,
            sums: Shared::new(gpu, blocks)?,
            results: Shared::new(gpu, most_bodies)?,
        })
    }

    /// Compresses bodies; each task has its result then.
    ///
    /// # Errors
    /// The device failed at all of them.
    ///
    /// # Safety
    /// The tasks' memory is as they describe until this returns.
    pub(super) unsafe fn run(&mut self, tasks: &mut [Task]) -> Result<(), Trouble> {
        let work = match self.lay_out(tasks) {
            Ok(0) => return Ok(()),
            Ok(blocks) => self.launch(blocks),
            Err(trouble) => Err(trouble),
        };
        // Even where a copy or a launch failed, earlier work may still touch the tasks' memory.
        // SAFETY: the stream is this value's own.
        let waited = unsafe { (self.gpu.driver.calls.stream_wait)(self.stream) };
        work.and(self.gpu.driver.check("cuStreamSynchronize", waited))?;
        self.finish(tasks);
        Ok(())
    }

    /// Cuts bodies into blocks and has them copied; returns the number of blocks.
    fn lay_out(&mut self, tasks: &mut [Task]) -> Result<usize, Trouble> {
        let (mut at, mut blocks) = (0, 0);
        for (place, task) in tasks.iter_mut().enumerate() {
            let (head, tail) = wrapping(task.wrapper);
            let first_block = blocks;
            let fits = place < self.most_bodies && at + share_of(task.bytes) <= self.most_bytes;
            if !fits || task.slot_bytes < head.len() + tail {
                task.result = Err(BUF_ERROR);
            }
            if task.result.is_err() {
                // A body without a block is read by no kernel.
                continue;
            }
            if task.bytes > 0 {
                let to = self.input.at + at as Address;
                // SAFETY: the caller's promise; the input has room for it.
                let copied = unsafe { (self.gpu.driver.calls.copy_to)(to, task.input.cast::<c_void>(), task.bytes, self.stream) };
                self.gpu.driver.check("cuMemcpyHtoDAsync", copied)?;
            }
            let adler = if task.wrapper == Wrapper::Zlib { ADLER } else { 0 };
            let mut begin = 0;
            loop {
                let bytes = (task.bytes - begin).min(BLOCK_BYTES);
                let last = if begin + bytes == task.bytes { LAST } else { 0 };
                self.blocks.items()[blocks] = Block {
                    source: (at + begin) as u64,
                    bytes: bytes as u32,
                    history: begin.min(HISTORY) as u32,
                    body: place as u32,
                    flags: last | adler,
                };
                (begin, blocks) = (begin + bytes, blocks + 1);
                if last == LAST {
                    break;
                }
            }
            self.bodies.items()[place] = Body {
                target: task.slot_address + head.len() as Address,
                first_block: first_block as u32,
                blocks: (blocks - first_block) as u32,
                room: u32::try_from(task.slot_bytes - head.len() - tail).unwrap_or(u32::MAX - 1),
                unused: 0,
            };
            at += share_of(task.bytes);
        }
        Ok(blocks)
    }

    fn launch(&self, blocks: usize) -> Result<(), Trouble> {
        let (input, matches, coded, sizes) = (self.input.at, self.matches.at, self.coded.at, self.sizes.at);
        let (descriptions, bodies, sums, results) = (self.blocks.at, self.bodies.at, self.sums.at, self.results.at);
        let groups = blocks as c_uint;
        self.call(self.gpu.matcher, groups, MATCH_THREADS, MATCH_SHARED, &[input, descriptions, matches, sums])?;
        self.call(self.gpu.coder, groups, CODE_THREADS, 0, &[input, descriptions, matches, coded, sizes])?;
        self.call(self.gpu.gatherer, groups, GATHER_THREADS, 0, &[descriptions, bodies, coded, sizes, results])
    }

    fn call(&self, kernel: Opaque, groups: c_uint, threads: u32, shared: u32, arguments: &[Address]) -> Result<(), Trouble> {
        let mut pointers: Vec<Opaque> = arguments.iter().map(|argument| std::ptr::from_ref(argument).cast_mut().cast()).collect();
        // SAFETY: the kernel takes so many addresses (a test compares), of memory that is as large as its blocks need.
        let launched = unsafe {
            let none = std::ptr::null_mut();
            (self.gpu.driver.calls.launch)(kernel, groups, 1, 1, threads, 1, 1, shared, self.stream, pointers.as_mut_ptr(), none)
        };
        self.gpu.driver.check("cuLaunchKernel", launched)
    }

    /// Adds heads and tails to the device's output.
    fn finish(&mut self, tasks: &mut [Task]) {
        let (results, bodies, blocks, sums) = (self.results.items(), self.bodies.items(), self.blocks.items(), self.sums.items());
        for (place, task) in tasks.iter_mut().enumerate().filter(|(_, task)| task.result.is_ok()) {
            let (head, tail) = wrapping(task.wrapper);
            let (body, made) = (bodies[place], results[place]);
            if made == NO_ROOM || made > body.room {
                task.result = Err(BUF_ERROR);
                continue;
            }
            let of = body.first_block as usize..(body.first_block + body.blocks) as usize;
            let parts = blocks[of.clone()].iter().zip(&sums[of]);
            let mut end = [0; 8];
            match task.wrapper {
                Wrapper::Gzip => {
                    let crc = sums::crc(parts.map(|(block, sums)| (block.bytes, sums[0])));
                    end[..4].copy_from_slice(&crc.to_le_bytes());
                    end[4..].copy_from_slice(&(task.bytes as u32).to_le_bytes());
                }
                Wrapper::Zlib => {
                    let adler = sums::adler(parts.map(|(block, sums)| (block.bytes, sums[0], sums[1])));
                    end[..4].copy_from_slice(&adler.to_be_bytes());
                }
            }
            let coded = head.len() + made as usize;
            // SAFETY: the slot has room for head, coded form and tail; the device is done with it.
            unsafe {
                std::ptr::copy_nonoverlapping(head.as_ptr(), task.slot, head.len());
                std::ptr::copy_nonoverlapping(end.as_ptr(), task.slot.add(coded), tail);
            }
            task.result = Ok((coded + tail) as u64);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: the stream is this value's own, and has no work.
        unsafe { (self.gpu.driver.calls.stream_destroy)(self.stream) };
    }
}

/// Head of a wrapper, and the number of bytes of its tail (RFC 1952, 2.3; RFC 1950, 2.2).
fn wrapping(wrapper: Wrapper) -> (&'static [u8], usize) {
    match wrapper {
        Wrapper::Gzip => (&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], 8),
        Wrapper::Zlib => (&[0x78, 0x5e], 4),
    }
}

/// zlib's `Z_BUF_ERROR`.
const BUF_ERROR: i32 = -5;
/// `CU_STREAM_NON_BLOCKING`: it does not wait for other streams.
const BESIDE_OTHERS: c_uint = 1;
