//! A body that is in memory already.

use std::sync::Arc;
use terse_message::body::Pieces;

/// The rest of a body in pieces.
pub struct Held {
    pieces: Arc<dyn Pieces>,
    index: usize,
    at: usize,
    left: u64,
}

impl Held {
    /// All of a body of so many bytes.
    pub fn new(pieces: Arc<dyn Pieces>, bytes: u64) -> Held {
        Held { pieces, index: 0, at: 0, left: bytes }
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The bytes that are at hand; empty at the end.
    pub fn data(&self) -> &[u8] {
        self.pieces.piece(self.index).get(self.at..).unwrap_or_default()
    }

    /// Records that so many of these bytes have gone on.
    pub fn consume(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n as u64);
        self.at += n;
        if self.at >= self.pieces.piece(self.index).len() {
            (self.index, self.at) = (self.index + 1, 0);
        }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("left", &self.left).finish_non_exhaustive()
    }
}
