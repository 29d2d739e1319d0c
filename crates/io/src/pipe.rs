//! Pipes that bytes take from a socket to another without entering the process's memory.
//!
//! **Invariant:** bytes in a pipe have left their source and not yet reached their sink. A pipe that is given back with bytes in it is
//! closed: no other body may ever find them.

use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_compress::Idle;

/// State of the process's pipes that the workers share.
#[derive(Debug, Default)]
pub struct PipeLimit {
    /// `maxpipes`: the most there are, in use or kept; 0: nothing goes through pipes.
    pub most: usize,
    /// `tune.pipesize`: bytes that a pipe holds, where the system's default is not wanted.
    pub bytes: Option<usize>,
    used: AtomicUsize,
    kept: AtomicUsize,
}

/// A worker's pipes.
pub struct Pipes {
    limit: Arc<PipeLimit>,
    free: RefCell<Idle<Ends>>,
    /// Number of pipes that it keeps: its share, so that the others can make theirs; 0: there are no pipes.
    kept_most: usize,
}

/// A pipe in use: bytes go in at one end and out at the other, and it is given back when dropped.
pub struct Pipe<'a> {
    pipes: &'a Pipes,
    ends: Option<Ends>,
    held: usize,
}

struct Ends {
    exit: OwnedFd,
    entry: OwnedFd,
}

/// The most that a system call moves: a pipe holds sixteen pieces, which with large segments are 512 KB, and others wait
/// meanwhile.
const MOST_BYTES: usize = 256 * 1024;

impl PipeLimit {
    /// A limit of `most` pipes of so many `bytes` each.
    pub fn new(most: usize, bytes: Option<usize>) -> PipeLimit {
        PipeLimit { most, bytes, ..PipeLimit::default() }
    }

    /// Number of pipes in use now.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Number of pipes that are kept for use.
    pub fn kept(&self) -> usize {
        self.kept.load(Relaxed)
    }
}

impl Pipes {
    /// The pipes of a worker among so many; none is made before it is needed.
    pub fn new(limit: Arc<PipeLimit>, workers: usize) -> Pipes {
        let kept_most = if limit.most == 0 { 0 } else { (limit.most / workers.max(1)).max(1) };
        Pipes { limit, free: RefCell::default(), kept_most }
    }

    /// Whether there are pipes at all.
    pub fn is_on(&self) -> bool {
        self.kept_most > 0
    }

    /// Closes those that were not needed since the last time.
    pub fn trim(&self) {
        let unneeded = self.free.borrow_mut().trim();
        self.limit.kept.fetch_sub(unneeded.len(), Relaxed);
    }

    /// An empty pipe; `None` at the limit, or where the system has no more descriptors.
    pub fn take(&self) -> Option<Pipe<'_>> {
        if let Some(ends) = self.free.borrow_mut().take() {
            self.limit.used.fetch_add(1, Relaxed);
            self.limit.kept.fetch_sub(1, Relaxed);
            return Some(Pipe { pipes: self, ends: Some(ends), held: 0 });
        }
        if self.limit.used.fetch_add(1, Relaxed) + self.limit.kept.load(Relaxed) >= self.limit.most {
            self.limit.used.fetch_sub(1, Relaxed);
            return None;
        }
        let made = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let Ok((exit, entry)) = made.inspect_err(|error| {
            EXHAUSTION.note(&(*error).into(), Purpose::Pipe);
        }) else {
            self.limit.used.fetch_sub(1, Relaxed);
            return None;
        };
        if let Some(bytes) = self.limit.bytes {
            // The system may refuse more than it allows a user; the pipe is as good with its default.
            let _ = fcntl_setpipe_size(&entry, bytes);
        }
        Some(Pipe { pipes: self, ends: Some(Ends { exit, entry }), held: 0 })
    }
}

impl Pipe<'_> {
    /// Number of bytes in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Takes up to `most` bytes from a socket; returns their number; 0 at the stream's end. To be called while the pipe is
    /// empty: so that an error of blocking means that the socket has no bytes.
    pub fn fill(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let n = splice(from, None, &ends.entry, None, most.min(MOST_BYTES), SpliceFlags::NONBLOCK | SpliceFlags::MOVE)?;
        self.held += n;
        Ok(n)
    }

    /// Hands bytes over to a socket; returns their number. To be called while the pipe holds some: so that an error of
    /// blocking means that the socket is full.
    pub fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let n = splice(&ends.exit, None, to, None, self.held, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)?;
        self.held -= n.min(self.held);
        Ok(n)
    }
}

impl Drop for Pipe<'_> {
    fn drop(&mut self) {
        let mut free = self.pipes.free.borrow_mut();
        match self.ends.take() {
            Some(ends) if self.held == 0 && free.len() < self.pipes.kept_most => {
                self.pipes.limit.kept.fetch_add(1, Relaxed);
                free.give(self.pipes.kept_most, ends);
            }
            ends => drop(ends),
        }
        // Last, so that another worker never finds room for a pipe that is still there.
        self.pipes.limit.used.fetch_sub(1, Relaxed);
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        self.limit.kept.fetch_sub(self.free.borrow().len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn there_are_no_more_than_allowed_and_free_ones_are_used_again() {
        let limit = Arc::new(PipeLimit::new(2, Some(8192)));
        let pipes = Pipes::new(limit.clone(), 1);
        let (one, two) = (pipes.take(), pipes.take());
        assert!(one.is_some() && two.is_some() && pipes.take().is_none());
        assert_eq!((limit.used(), limit.kept()), (2, 0));
        drop(one);
        assert_eq!((limit.used(), limit.kept()), (1, 1));
        let again = pipes.take();
        assert!(again.is_some() && pipes.take().is_none());
        drop((again, two));
        assert_eq!((limit.used(), limit.kept()), (0, 2));
        (0..2).for_each(|_| pipes.trim());
        assert_eq!((limit.used(), limit.kept()), (0, 0), "what nobody needs is closed");
        drop(pipes.take());
        assert_eq!((limit.used(), limit.kept()), (0, 1));
        drop(pipes);
        assert_eq!((limit.used(), limit.kept()), (0, 0));
        assert!(!Pipes::new(Arc::default(), 1).is_on());
    }

    #[test]
    fn a_pipe_with_bytes_in_it_is_never_kept() {
        let limit = Arc::new(PipeLimit::new(4, None));
        let pipes = Pipes::new(limit.clone(), 1);
        let (mut here, there) = UnixStream::pair().unwrap();
        there.set_nonblocking(true).unwrap();
        here.write_all(b"left behind").unwrap();
        let mut pipe = pipes.take().unwrap();
        assert_eq!(pipe.fill(&there, 4).unwrap(), 4);
        assert_eq!(pipe.held(), 4);
        drop(pipe);
        assert_eq!((limit.used(), limit.kept()), (0, 0));

        let mut pipe = pipes.take().unwrap();
        assert_eq!(pipe.fill(&there, 100).unwrap(), 7);
        let (to, mut out) = UnixStream::pair().unwrap();
        while pipe.held() > 0 {
            pipe.drain(&to).unwrap();
        }
        let mut got = [0; 7];
        out.read_exact(&mut got).unwrap();
        assert_eq!(&got, b" behind");
        assert_eq!(pipe.fill(&there, 100).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(here);
        assert_eq!(pipe.fill(&there, 100).unwrap(), 0);
        drop(pipe);
        assert_eq!((limit.used(), limit.kept()), (0, 1));
    }
}
