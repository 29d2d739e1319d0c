//! An input with some bytes read ahead.

use crate::fault::Fault;
use crate::progress::Progress;
use std::io::{ErrorKind, Read};

/// Input of decoders.
pub struct Input<'a> {
    source: &'a mut dyn Read,
    progress: Option<&'a Progress>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    taken: u64,
}

impl<'a> Input<'a> {
    /// Reads from `source`.
    pub fn new(source: &'a mut dyn Read) -> Input<'a> {
        Input { source, progress: None, buffer: vec![0; BUFFER_BYTES], begin: 0, end: 0, taken: 0 }
    }

    pub(crate) fn with_progress(mut self, progress: &'a Progress) -> Input<'a> {
        self.progress = Some(progress);
        self
    }

    /// Number of bytes taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The bytes to come: at least one, unless it is the end.
    ///
    /// # Errors
    /// [`Fault::Read`].
    pub fn fill(&mut self) -> Result<&[u8], Fault> {
        self.peek(1)
    }

    /// The bytes to come: at least `count` of them, which is small, or all up to the end.
    ///
    /// # Errors
    /// [`Fault::Read`].
    pub fn peek(&mut self, count: usize) -> Result<&[u8], Fault> {
        debug_assert!(count <= BUFFER_BYTES);
        while self.end - self.begin < count {
            if self.begin > 0 {
                self.buffer.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => {
                    self.end += read;
                    if let Some(progress) = self.progress {
                        progress.add(read as u64);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Read(error)),
            }
        }
        Ok(&self.buffer[self.begin..self.end])
    }

    /// Takes bytes that were peeked.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.begin);
        self.begin += count;
        self.taken += count as u64;
    }

    /// Takes a byte; none at the end.
    ///
    /// # Errors
    /// [`Fault::Read`].
    pub fn byte(&mut self) -> Result<Option<u8>, Fault> {
        let byte = self.fill()?.first().copied();
        self.consume(1);
        Ok(byte)
    }
}

const BUFFER_BYTES: usize = 1 << 18;
