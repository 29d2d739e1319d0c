//! The card's process: it loads the library, and does jobs on a fixed number of threads until its socket ends.
#![allow(unsafe_code)]

use crate::memory::Memory;
use crate::segment::Body;
use crate::wire::{Job, Reply, Told};
use crate::zlib::Library;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Segments that are mapped, by their numbers.
#[derive(Default)]
struct Bodies(Mutex<HashMap<u64, Arc<Body>>>);

/// Serves jobs. The kernel hands each message to one of the waiting threads.
pub(crate) fn serve(path: &Path, threads: usize, socket: &OwnedFd, memory: &Memory) {
    let library = match Library::open(path) {
        Ok(library) => library,
        Err(unfit) => return say(socket, &Reply::Unfit(unfit.to_string())),
    };
    say(socket, &Reply::Ready(library.version()));
    let bodies = Bodies::default();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work(&library, socket, memory, &bodies));
        }
        work(&library, socket, memory, &bodies);
    });
}

fn work(library: &Library, socket: &OwnedFd, memory: &Memory, bodies: &Bodies) {
    while let Some(told) = Told::receive(socket, RecvFlags::empty()) {
        let (job, segment) = match told {
            Told::Do(job, segment) => (job, segment),
            Told::Forget(number) => {
                bodies.lock().remove(&number);
                continue;
            }
        };
        let since = Instant::now();
        let result = code(library, memory, &job, bodies.find(job.segment, segment));
        let took_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        say(socket, &Reply::Done { ticket: job.ticket, slot: job.slot, result, took_us });
    }
}

fn code(library: &Library, memory: &Memory, job: &Job, body: Option<Arc<Body>>) -> Result<u64, i32> {
    let (Some(room), Some(body), Ok(bytes)) = (memory.coded(job.slot as usize), body, usize::try_from(job.bytes)) else {
        return Err(BAD_JOB);
    };
    let base = body.base(bytes).ok_or(BAD_JOB)?;
    // SAFETY: so many bytes are mapped, the slot has so much room elsewhere, and terse touches neither until it has the answer.
    unsafe { library.code_raw((base, bytes), job.wrapper, job.level, room) }.map(|given| given as u64)
}

impl Bodies {
    /// The segment of that number, which is mapped when its descriptor comes.
    fn find(&self, number: u64, file: Option<OwnedFd>) -> Option<Arc<Body>> {
        let Some(file) = file else { return self.lock().get(&number).cloned() };
        let body = Arc::new(Body::attach(&file).ok()?);
        self.lock().insert(number, body.clone());
        Some(body)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Body>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a reply. A message that cannot be sent means that terse has gone: the next receipt returns the end.
pub(crate) fn say(socket: &OwnedFd, reply: &Reply) {
    let _ = rustix::io::retry_on_intr(|| rustix::net::send(socket, &reply.write(), SendFlags::NOSIGNAL));
}

/// zlib's `Z_STREAM_ERROR`.
const BAD_JOB: i32 = -2;
