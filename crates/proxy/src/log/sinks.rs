//! Descriptors that lines are written to, each with a thread.
//!
//! A write to a pipe without a reader blocks, and a descriptor that is shared with other programs (a terminal, a container's
//! stdout) must not be switched to non-blocking: the switch would be theirs as well. So workers put lines into a bounded
//! queue, and a thread writes them, with a write for each line. It starts with the first line, so that a process may fork
//! until then.
//!
//! ```text
//!   worker --+                          +- swap -> batch -> write, write, write
//!   worker --+-> queue, at most 1 MiB --+
//!   worker --+   full: drop and count   +- empty: sleep until a worker wakes it
//! ```

use super::clock::Zone;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// State that all loggers of the process share: descriptors, the count of lost lines, the time zone.
pub struct Sinks {
    writers: Mutex<Vec<(i32, Arc<Writer>)>>,
    inherited: Box<Inherited>,
    dropped: Arc<AtomicU64>,
    zone: Zone,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sinks").field("dropped", &self.dropped).finish_non_exhaustive()
    }
}

/// Gives a descriptor by its number: of those that the process was started with.
type Inherited = dyn Fn(i32) -> io::Result<OwnedFd> + Send + Sync;

impl Sinks {
    /// No descriptor is open yet. `inherited` gives those that `fd@` names beyond `stdout` and `stderr`. Reads the time zone: to be
    /// made before a chroot.
    pub fn new(inherited: impl Fn(i32) -> io::Result<OwnedFd> + Send + Sync + 'static) -> Arc<Sinks> {
        Arc::new(Sinks { writers: Mutex::default(), inherited: Box::new(inherited), dropped: Arc::default(), zone: Zone::system() })
    }

    /// Lines that were lost so far: full queues and socket buffers, servers and daemons that are not there.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all queues are written, at most this long, before the process ends. Returns whether they are.
    pub fn flush(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        let writers: Vec<_> = lock(&self.writers).iter().map(|(_, writer)| Arc::clone(writer)).collect();
        writers.iter().all(|writer| writer.flush(deadline))
    }

    /// The zone that lines tell the time in.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The writer of a descriptor: the same for all targets that name it.
    pub(super) fn writer(&self, fd: i32) -> io::Result<Arc<Writer>> {
        let mut writers = lock(&self.writers);
        if let Some((_, writer)) = writers.iter().find(|(number, _)| *number == fd) {
            return Ok(Arc::clone(writer));
        }
        let output = match fd {
            1 => Output::Stdout(io::stdout()),
            2 => Output::Stderr(io::stderr()),
            _ => Output::Inherited((self.inherited)(fd)?),
        };
        let writer = Arc::new(Writer::new(output, Arc::clone(&self.dropped)));
        writers.push((fd, Arc::clone(&writer)));
        Ok(writer)
    }

    /// Counts a line that was lost.
    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// The queue of a descriptor, and its thread.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    fn new(output: Output, dropped: Arc<AtomicU64>) -> Writer {
        Writer { shared: Arc::new(Shared { output, dropped, queue: Mutex::default(), wake: Condvar::new(), idle: Condvar::new() }) }
    }

    /// Queues a line, its line feed included; a full queue counts it as dropped.
    pub(super) fn push(&self, line: &[u8]) {
        let mut queue = lock(&self.shared.queue);
        let fits = queue.lines.bytes.len() + line.len() <= QUEUE_BYTES;
        if !fits || !(queue.running || self.start(&mut queue)) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.lines.push(line);
        if queue.sleeping {
            queue.sleeping = false;
            self.shared.wake.notify_one();
        }
    }

    /// Starts the thread; false when the system has none to give.
    fn start(&self, queue: &mut Queue) -> bool {
        let shared = Arc::clone(&self.shared);
        queue.running = std::thread::Builder::new().name("log-writer".into()).spawn(move || shared.run()).is_ok();
        queue.running
    }

    fn flush(&self, deadline: Instant) -> bool {
        let mut queue = lock(&self.shared.queue);
        while !queue.is_done() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            queue = self.shared.idle.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.wake.notify_one();
    }
}

/// State that the workers and the thread share.
#[derive(Debug)]
struct Shared {
    output: Output,
    dropped: Arc<AtomicU64>,
    queue: Mutex<Queue>,
    /// Signals that there is something to write, or that the last user of the queue has gone.
    wake: Condvar,
    /// All is written.
    idle: Condvar,
}

#[derive(Default, Debug)]
struct Queue {
    lines: Lines,
    /// The thread was started.
    running: bool,
    /// The thread waits to be woken.
    sleeping: bool,
    /// The thread has taken lines that it has not yet written.
    writing: bool,
    /// The thread shall end when all is written.
    closed: bool,
}

impl Queue {
    fn is_done(&self) -> bool {
        self.lines.bytes.is_empty() && !self.writing
    }
}

impl Shared {
    fn run(&self) {
        let mut batch = Lines::default();
        let mut queue = lock(&self.queue);
        loop {
            if queue.lines.bytes.is_empty() {
                queue.writing = false;
                self.idle.notify_all();
                if queue.closed {
                    return;
                }
                queue.sleeping = true;
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.sleeping = false;
                continue;
            }
            queue.writing = true;
            std::mem::swap(&mut queue.lines, &mut batch);
            drop(queue);
            for line in batch.iter() {
                if self.write(line).is_err() {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            batch.clear();
            queue = lock(&self.queue);
        }
    }

    /// Writes a line, in a single write unless the descriptor takes less.
    fn write(&self, mut line: &[u8]) -> Result<(), Errno> {
        while !line.is_empty() {
            match rustix::io::write(&self.output, line) {
                Ok(0) => return Err(Errno::IO),
                Ok(written) => line = line.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&self.output, PollFlags::OUT)], None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Lines in a single buffer.
#[derive(Default, Debug)]
struct Lines {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    fn push(&mut self, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.bytes.get(start..*end))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A descriptor. The standard ones are not duplicated, so that a later change holds for them, such as `/dev/null` of a
/// daemon.
#[derive(Debug)]
enum Output {
    Stdout(io::Stdout),
    Stderr(io::Stderr),
    Inherited(OwnedFd),
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Output::Stdout(stdout) => stdout.as_fd(),
            Output::Stderr(stderr) => stderr.as_fd(),
            Output::Inherited(fd) => fd.as_fd(),
        }
    }
}

/// Takes a lock. Nothing panics under one here; were it to, a torn line would be better than no more logs.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bounds a descriptor's memory to twice this (a queue and a batch): at 300 bytes a line, 35 ms of 100,000 lines a second.
const QUEUE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::pipe::pipe;
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read};

    fn writer(fd: OwnedFd) -> Writer {
        Writer::new(Output::Inherited(fd), Arc::default())
    }

    fn dropped(writer: &Writer) -> u64 {
        writer.shared.dropped.load(Ordering::Relaxed)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn a_full_pipe_drops_and_counts_and_nobody_waits() {
        let (reader, end) = pipe().unwrap();
        let writer = writer(end);
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        let pushed = 5 * QUEUE_BYTES / line.len();
        for _ in 0..pushed {
            writer.push(&line);
        }
        let lost = dropped(&writer);
        assert!(lost > 0);
        assert!(!writer.flush(Instant::now()));
        let shared = Arc::clone(&writer.shared);
        drop(writer);
        let mut lines = 0;
        let mut input = BufReader::new(File::from(reader));
        while lines + lost < pushed as u64 {
            let mut text = Vec::new();
            input.read_until(b'\n', &mut text).unwrap();
            assert_eq!(text, line);
            lines += 1;
        }
        assert_eq!(shared.dropped.load(Ordering::Relaxed), lost);
    }

    #[test]
    fn one_write_for_each_line_in_order() {
        let (reader, end) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
        let writer = writer(end);
        for n in 0..100 {
            writer.push(format!("line {n}\n").as_bytes());
        }
        let mut input = File::from(reader);
        let mut buffer = [0; 100];
        for n in 0..100 {
            let len = input.read(&mut buffer).unwrap();
            assert_eq!(buffer[..len], *format!("line {n}\n").as_bytes());
        }
        assert!(writer.flush(soon()));
        assert_eq!(dropped(&writer), 0);
    }

    #[test]
    fn a_descriptor_that_others_made_non_blocking() {
        let (reader, end) = pipe().unwrap();
        rustix::io::ioctl_fionbio(&end, true).unwrap();
        let writer = writer(end);
        let line = [[b'x'; 9_999].as_slice(), b"\n"].concat();
        for _ in 0..50 {
            writer.push(&line);
        }
        let mut input = BufReader::new(File::from(reader));
        for _ in 0..50 {
            let mut text = Vec::new();
            input.read_until(b'\n', &mut text).unwrap();
            assert_eq!(text, line);
        }
        assert!(writer.flush(soon()));
        assert_eq!(dropped(&writer), 0);
    }

    #[test]
    fn a_closed_pipe_costs_its_lines_only() {
        let (reader, end) = pipe().unwrap();
        drop(reader);
        let writer = writer(end);
        writer.push(b"one\n");
        writer.push(b"two\n");
        assert!(writer.flush(soon()));
        assert_eq!(dropped(&writer), 2);
    }

    #[test]
    fn the_thread_ends_with_its_last_user() {
        let (reader, end) = pipe().unwrap();
        let writer = writer(end);
        writer.push(b"one\n");
        drop(writer);
        let mut text = String::new();
        // Ends when the thread has closed the pipe.
        File::from(reader).read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\n");
    }

    #[test]
    fn a_descriptor_has_one_writer() {
        let sinks = Sinks::new(|fd| Err(io::Error::other(format!("no {fd}"))));
        let first = sinks.writer(2).unwrap();
        assert!(Arc::ptr_eq(&first, &sinks.writer(2).unwrap()));
        assert!(!Arc::ptr_eq(&first, &sinks.writer(1).unwrap()));
        assert_eq!(sinks.writer(7).unwrap_err().to_string(), "no 7");
        assert!(sinks.flush(Duration::ZERO));
    }
}
