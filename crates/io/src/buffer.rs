//! Buffers, and the shared limit that all of them count against.
//!
//! An idle connection holds no buffer: it borrows one when bytes arrive and gives it back when they have gone on. Workers keep the
//! memory of given-back buffers for the next, and drop what they do not need for a while; only buffers in use count against the limit.

use super::pipe::Pipes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use terse_compress::{Budget, Idle, Limit};
use tokio::sync::Notify;

/// A worker's buffers.
pub struct Pool {
    size: usize,
    free: RefCell<Idle<Box<[u8]>>>,
    memory: Arc<Limit>,
    /// Bytes that this worker has taken from [`Limit`] and holds as unused credit, so that the shared counter is not touched for
    /// every request.
    credit: Cell<usize>,
    /// Bytes of credit that are taken at once: never so many that idle workers could own a small limit.
    credit_step: usize,
    given_back: Notify,
    /// Number of tasks that wait for a buffer to be given back.
    waiting: Cell<usize>,
}

/// A worker's pools: buffers of the configured size (`tune.bufsize`), which hold heads and most bodies, and larger ones for bodies
/// that fill those: fewer system calls for each megabyte.
pub struct Pools {
    /// Of `tune.bufsize`.
    pub small: Rc<Pool>,
    /// Of [`TINY_BYTES`].
    pub tiny: Rc<Pool>,
    /// Of [`BULK_BYTES`].
    pub bulk: Rc<Pool>,
    /// Pipes, for bytes that need no buffer.
    pub pipes: Pipes,
}

/// 64 KB: four times HAProxy's buffer, and a quarter of its system calls; more gained nothing, since the kernel's socket buffers
/// and the processor's second-level cache are the next limits.
pub const BULK_BYTES: usize = 64 * 1024;

/// For heads of responses whose clients take no body: the server's further bytes stay in the kernel.
pub const TINY_BYTES: usize = 1024;

/// Unused buffers that a worker keeps.
const KEPT: usize = 256;
/// Credit that a worker takes at once, and keeps, in buffers.
const CREDIT: usize = 16;

impl Pool {
    /// A pool of buffers of `size` bytes.
    pub fn new(size: usize, memory: Arc<Limit>) -> Rc<Pool> {
        let credit_step = size * (memory.bytes() / (64 * size)).clamp(1, CREDIT);
        Rc::new(Pool {
            size,
            free: RefCell::default(),
            memory,
            credit: Cell::new(0),
            credit_step,
            given_back: Notify::new(),
            waiting: Cell::new(0),
        })
    }

    /// The size of its buffers in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether so little is left that buffers had better be small: the memory that slow clients hold would be missing for new
    /// requests.
    pub fn is_tight(&self) -> bool {
        self.memory.is_tight()
    }

    /// A buffer, unless the limit is reached.
    pub fn take(self: &Rc<Pool>) -> Option<Buffer> {
        if self.credit.get() < self.size {
            if self.memory.take(self.credit_step) {
                self.credit.set(self.credit.get() + self.credit_step);
            } else if self.memory.take(self.size) {
                self.credit.set(self.credit.get() + self.size);
            } else {
                return None;
            }
        }
        self.credit.set(self.credit.get() - self.size);
        let bytes = self.free.borrow_mut().take().unwrap_or_else(|| vec![0; self.size].into_boxed_slice());
        Some(Buffer { bytes, head: 0, tail: 0, pool: Some(self.clone()) })
    }

    /// A buffer; waits while the limit is reached.
    pub async fn get(self: &Rc<Pool>) -> Buffer {
        loop {
            if let Some(buffer) = self.take() {
                return buffer;
            }
            // A buffer of this worker may come back first; another worker's is seen within 10 ms.
            let _waiting = Waiting::new(&self.waiting);
            let _ = tokio::time::timeout(Duration::from_millis(10), self.given_back.notified()).await;
        }
    }

    /// Drops the unused buffers that were not needed since the last time.
    pub fn trim(&self) {
        drop(self.free.borrow_mut().trim());
    }

    fn give(&self, bytes: Box<[u8]>) {
        let credit = self.credit.get() + self.size;
        let excess = credit.saturating_sub(2 * self.credit_step);
        if excess > 0 {
            self.memory.give(excess);
        }
        self.credit.set(credit - excess);
        self.free.borrow_mut().give(KEPT, bytes);
        if self.waiting.get() > 0 {
            self.given_back.notify_one();
        }
    }
}

impl Pools {
    /// Drops the buffers that were not needed since the last time.
    pub fn trim(&self) {
        [&self.small, &self.tiny, &self.bulk].into_iter().for_each(|pool| pool.trim());
        self.pipes.trim();
    }
}

/// Counts a waiting task, for as long as it waits.
struct Waiting<'a>(&'a Cell<usize>);

impl Waiting<'_> {
    fn new(count: &Cell<usize>) -> Waiting<'_> {
        count.set(count.get() + 1);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.memory.give(self.credit.get());
    }
}

/// Bytes that have arrived and not yet gone on: `bytes[head..tail]`.
#[derive(Default)]
pub struct Buffer {
    bytes: Box<[u8]>,
    head: usize,
    tail: usize,
    pool: Option<Rc<Pool>>,
}

impl Buffer {
    /// Whether it holds no memory: the state of an idle connection's buffer.
    pub fn is_released(&self) -> bool {
        self.pool.is_none()
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that wait.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.head..self.tail]
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Whether no further byte can be read into it, even after [`Buffer::compact`].
    pub fn is_full(&self) -> bool {
        self.tail - self.head == self.bytes.len()
    }

    /// Room for more bytes, after those that wait.
    pub fn room(&mut self) -> &mut [u8] {
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        } else if self.tail == self.bytes.len() {
            self.compact();
        }
        &mut self.bytes[self.tail..]
    }

    /// Moves the bytes of another buffer after the bytes of this one, as far as there is room.
    pub fn take_over(&mut self, other: &mut Buffer) {
        let room = self.room();
        let n = room.len().min(other.filled().len());
        room[..n].copy_from_slice(&other.filled()[..n]);
        self.advance(n);
        other.consume(n);
    }

    /// Records that so many bytes were read into the room.
    pub fn advance(&mut self, n: usize) {
        self.tail = (self.tail + n).min(self.bytes.len());
    }

    /// Records that so many of the waiting bytes have gone on.
    pub fn consume(&mut self, n: usize) {
        self.head = (self.head + n).min(self.tail);
    }

    /// Moves the waiting bytes to the front.
    pub fn compact(&mut self) {
        self.bytes.copy_within(self.head..self.tail, 0);
        (self.head, self.tail) = (0, self.tail - self.head);
    }

    /// Gives the memory back if nothing waits in it.
    pub fn release_if_empty(&mut self) {
        if self.is_empty() && self.pool.is_some() {
            *self = Buffer::default();
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.give(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_in_use_count_and_no_others() {
        let memory = Arc::new(Limit::new(64 * 100));
        let pool = Pool::new(64, memory.clone());
        let held: Vec<Buffer> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(held.len(), 100);
        assert!(memory.refused() > 0);
        drop(held);
        assert!(memory.used() <= 2 * CREDIT * 64);
        assert_eq!(pool.free.borrow().len(), 100);
        pool.trim();
        drop([pool.take(), pool.take()]);
        pool.trim();
        assert_eq!(pool.free.borrow().len(), 2, "those that were not needed go");
        drop(pool);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let pool = Pool::new(8, Arc::new(Limit::new(1024)));
        let mut buffer = pool.take().unwrap();
        buffer.room()[..6].copy_from_slice(b"abcdef");
        buffer.advance(6);
        buffer.consume(4);
        assert_eq!(buffer.filled(), b"ef");
        buffer.room()[..2].copy_from_slice(b"gh");
        buffer.advance(2);
        assert_eq!(buffer.room().len(), 4);
        assert_eq!(buffer.filled(), b"efgh");
        buffer.consume(4);
        buffer.release_if_empty();
        assert!(buffer.is_released());
    }
}
