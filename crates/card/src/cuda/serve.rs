//! Main loop of a device's process: batches of jobs from its socket, until that ends.

#![allow(unsafe_code)]

use super::batch::{Batch, Task, share_of};
use super::driver::{Gpu, Trouble};
use super::pinned::{Access, Pinned};
use crate::memory::Memory;
use crate::segment::Body;
use crate::wire::{Job, Reply, Told};
use crate::worker::say;
use rustix::net::RecvFlags;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A segment that is mapped here.
struct Held {
    /// Unpinned before the mapping is dropped.
    pinned: Option<Pinned>,
    body: Body,
}

type Segments = HashMap<u64, Arc<Held>>;
type Taken = (Job, Option<Arc<Held>>);

struct Place<'a> {
    gpu: &'a Arc<Gpu>,
    socket: &'a OwnedFd,
    memory: &'a Memory,
    slots: &'a [Pinned],
    /// Segments; the thread that holds the lock takes the next batch.
    segments: Mutex<Segments>,
    most_bytes: usize,
}

/// Serves, with a limit of concurrent batches.
pub(crate) fn serve(number: u32, threads: usize, deadline: Duration, socket: &OwnedFd, memory: &Memory) {
    let gpu = match Gpu::open(number) {
        Ok(gpu) => gpu,
        Err(reason) => return say(socket, &Reply::Unfit(format!("GPU {number} {reason}"))),
    };
    let layout = memory.layout();
    let most_bytes = batch_bytes(deadline).max(share_of(layout.largest));
    let batches: Result<Vec<Batch>, Trouble> = (0..threads).map(|_| Batch::new(&gpu, most_bytes, layout.slots)).collect();
    let batches = match batches {
        Ok(batches) => batches,
        Err(trouble) => return say(socket, &Reply::Unfit(format!("GPU {number} {}", String::from(trouble)))),
    };
    let slot = |slot| memory.coded(slot).map(|(base, _)| Pinned::new(&gpu, base, layout.stride(), Access::Write));
    let slots: Vec<Pinned> = (0..layout.slots).filter_map(slot).collect();
    say(socket, &Reply::Ready(gpu.version.clone()));
    let place = Place { gpu: &gpu, socket, memory, slots: &slots, segments: Mutex::default(), most_bytes };
    std::thread::scope(|scope| {
        for batch in batches {
            scope.spawn(|| place.work(batch));
        }
    });
}

/// Bytes of a batch that a slow device codes in a fraction of the deadline: batches before it have their time, too.
fn batch_bytes(deadline: Duration) -> usize {
    let bytes = deadline.as_micros().saturating_mul(SLOW_BYTES_PER_US) / u128::from(PART_OF_DEADLINE);
    usize::try_from(bytes).unwrap_or(usize::MAX).min(MOST_BATCH_BYTES)
}

fn share_of_body(bytes: u64) -> usize {
    share_of(usize::try_from(bytes).unwrap_or(usize::MAX / 2))
}

impl Place<'_> {
    /// Main loop of a thread.
    fn work(&self, mut batch: Batch) {
        if let Err(trouble) = self.gpu.enter() {
            return self.give_up(&trouble);
        }
        while let Some(taken) = self.take() {
            let since = Instant::now();
            let mut tasks: Vec<Task> = taken.iter().map(|(job, held)| self.task(job, held.as_deref())).collect();
            // SAFETY: `taken` holds the mappings; terse touches neither a job's body nor its slot until it has the answer.
            let outcome = unsafe { batch.run(&mut tasks) };
            let took_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
            for ((job, _), task) in taken.iter().zip(tasks) {
                let result = outcome.as_ref().map_err(|trouble| trouble.code).and(task.result);
                say(self.socket, &Reply::Done { ticket: job.ticket, slot: job.slot, result, took_us });
            }
            if let Err(trouble) = outcome
                && trouble.is_final()
            {
                return self.give_up(&trouble);
            }
        }
    }

    /// Takes the next job and all that wait after it, as far as they fit in a batch; `None` at the end.
    ///
    /// A thread waits without the lock. Otherwise the next thread would have to be woken with each job to wait in its
    /// place.
    fn take(&self) -> Option<Vec<Taken>> {
        let mut taken = Vec::new();
        while taken.is_empty() {
            if !Told::comes(self.socket) {
                return None;
            }
            self.fill_batch(&mut taken);
        }
        Some(taken)
    }

    /// Takes the waiting jobs; another thread may have been faster.
    fn fill_batch(&self, taken: &mut Vec<Taken>) {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        while taken.len() < self.slots.len() {
            if !taken.is_empty() {
                let next = Told::next_body(self.socket).map(share_of_body);
                if next.is_none_or(|share| share > self.most_bytes - bytes) {
                    return;
                }
            }
            match Told::receive(self.socket, RecvFlags::DONTWAIT) {
                Some(Told::Forget(number)) => _ = segments.remove(&number),
                Some(Told::Do(job, file)) => {
                    bytes += share_of_body(job.bytes).min(self.most_bytes);
                    let held = self.held(&mut segments, job.segment, file);
                    taken.push((job, held));
                }
                None => return,
            }
        }
    }

    /// A segment, which is mapped when its descriptor comes.
    fn held(&self, segments: &mut Segments, number: u64, file: Option<OwnedFd>) -> Option<Arc<Held>> {
        let Some(file) = file else { return segments.get(&number).cloned() };
        let body = Body::attach(&file).ok()?;
        let (base, bytes) = body.extent();
        // Without pinning, the driver copies through memory of its own.
        let pinned = self.gpu.pins_to_read.then(|| Pinned::new(self.gpu, base, bytes, Access::Read));
        let held = Arc::new(Held { pinned, body });
        segments.insert(number, held.clone());
        Some(held)
    }

    fn task(&self, job: &Job, held: Option<&Held>) -> Task {
        let mut task = Task {
            input: std::ptr::null(),
            bytes: 0,
            wrapper: job.wrapper,
            slot: std::ptr::null_mut(),
            slot_address: 0,
            slot_bytes: 0,
            result: Ok(0),
        };
        if let Err(code) = self.fill(&mut task, job, held) {
            task.result = Err(code);
        }
        task
    }

    fn fill(&self, task: &mut Task, job: &Job, held: Option<&Held>) -> Result<(), i32> {
        let bytes = usize::try_from(job.bytes).map_err(|_| BAD_JOB)?;
        let slot = job.slot as usize;
        let (Some((base, room)), Some(held), Some(pinned)) = (self.memory.coded(slot), held, self.slots.get(slot)) else {
            return Err(BAD_JOB);
        };
        task.input = held.body.base(bytes).ok_or(BAD_JOB)?;
        // A segment that could not be pinned now is copied, as where pinning is not possible.
        if let Some(pinned) = &held.pinned {
            let _ = pinned.reach(bytes);
        }
        let room = room.min(terse_compress::device::room_for(bytes));
        pinned.reach(room).map_err(|trouble| trouble.code)?;
        task.slot_address = pinned.address().map_err(|trouble| trouble.code)?;
        (task.bytes, task.slot, task.slot_bytes) = (bytes, base, room);
        Ok(())
    }

    /// Ends the process: the device is unusable in it.
    fn give_up(&self, trouble: &Trouble) {
        say(self.socket, &Reply::Unfit(format!("its device failed: {trouble}")));
        // Not `exit`: the driver's own endings may wait for a device that does not answer, or for threads that are in its calls.
        // SAFETY: takes a number; nothing of this process is to be run again.
        unsafe { libc::_exit(1) };
    }
}

/// zlib's `Z_STREAM_ERROR`.
const BAD_JOB: i32 = -2;
/// Limit of a batch, in bytes. Four of these in flight keep an H200 and its bus as busy as larger ones do.
const MOST_BATCH_BYTES: usize = 32 << 20;
/// A slower device cannot meet the deadline; an H200 does some 28,000.
const SLOW_BYTES_PER_US: u128 = 2000;
const PART_OF_DEADLINE: u32 = 8;
