//! The card's process: it loads the library, and does jobs on so many threads until its socket ends.
#![allow(unsafe_code)]

use crate::memory::Memory;
use crate::wire::{Job, MAX_BYTES, Reply};
use crate::zlib::Library;
use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

/// Serves. The kernel hands each message to one of the threads that wait for it.
pub(crate) fn serve(path: &Path, threads: usize, socket: &OwnedFd, memory: &Memory) {
    let library = match Library::open(path) {
        Ok(library) => library,
        Err(unfit) => return say(socket, &Reply::Unfit(unfit.to_string())),
    };
    say(socket, &Reply::Ready(library.version()));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work(&library, socket, memory));
        }
        work(&library, socket, memory);
    });
}

fn work(library: &Library, socket: &OwnedFd, memory: &Memory) {
    let mut message = [0; MAX_BYTES];
    loop {
        let received = rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut message[..], RecvFlags::empty()));
        let Ok((_, length @ 1..)) = received else { return };
        let Some(job) = message.get(..length).and_then(Job::read) else { return };
        let since = Instant::now();
        let result = code(library, memory, &job);
        let took_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        say(socket, &Reply::Done { ticket: job.ticket, slot: job.slot, result, took_us });
    }
}

fn code(library: &Library, memory: &Memory, job: &Job) -> Result<u64, i32> {
    let places = (memory.body(job.slot as usize), memory.coded(job.slot as usize), usize::try_from(job.bytes));
    let (Some((body, most)), Some(room), Ok(bytes)) = places else { return Err(BAD_JOB) };
    if bytes > most {
        return Err(BAD_JOB);
    }
    // SAFETY: the slot's body has that many bytes, its room lies behind it, and terse touches neither until it has the answer.
    unsafe { library.code_raw((body, bytes), job.wrapper, job.level, room) }.map(|given| given as u64)
}

/// A message that cannot be sent means that terse has gone: the next receipt says so.
fn say(socket: &OwnedFd, reply: &Reply) {
    let _ = rustix::io::retry_on_intr(|| rustix::net::send(socket, &reply.write(), SendFlags::NOSIGNAL));
}

/// zlib's `Z_STREAM_ERROR`.
const BAD_JOB: i32 = -2;
