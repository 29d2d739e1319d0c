//! Bytes that wait in a library until they are a block: how much work a push is, and where blocks end.
//!
//! Coders of brotli and zstd keep what they are given until a block is full, and code that in a single call. So a push of a few bytes may
//! be next to nothing, or a whole block's work, and a flush of nothing at all as much.

use super::Flush;

/// The bytes of a stream since its last block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Bytes of a block.
    block: usize,
    waiting: usize,
}

impl Blocks {
    /// At the beginning of a stream.
    pub(super) fn of(block: usize) -> Blocks {
        Blocks { block: block.max(1), waiting: 0 }
    }

    /// Bytes that a push of so many has coded. A block that is just full waits for another byte, as it may be the last.
    pub(super) fn due(self, bytes: usize, flush: Flush) -> usize {
        let all = self.waiting.saturating_add(bytes);
        match flush {
            Flush::None => all.saturating_sub(1) / self.block * self.block,
            Flush::Sync | Flush::Finish => all,
        }
    }

    /// Counts a push.
    pub(super) fn pushed(&mut self, bytes: usize, flush: Flush) {
        self.waiting = self.waiting.saturating_add(bytes) - self.due(bytes, flush);
    }

    /// Bytes until the present block is full, if there are more than those.
    pub(super) fn to_border(self, bytes: usize) -> Option<usize> {
        let left = self.block.saturating_sub(self.waiting);
        (bytes > left).then_some(left)
    }

    /// Begins another stream, or has nothing in hand any more.
    pub(super) fn reset(&mut self) {
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_is_worth_the_blocks_that_it_fills() {
        let mut blocks = Blocks::of(100);
        let mut push = |bytes, flush| {
            let due = blocks.due(bytes, flush);
            blocks.pushed(bytes, flush);
            due
        };
        assert_eq!([40, 60, 1, 98].map(|bytes| push(bytes, Flush::None)), [0, 0, 100, 0]);
        assert_eq!([push(301, Flush::None), push(0, Flush::Sync), push(0, Flush::Sync)], [300, 100, 0]);
        assert_eq!([push(7, Flush::None), push(5, Flush::Finish)], [0, 12]);
    }

    #[test]
    fn a_border_is_where_more_comes_behind_it() {
        let mut blocks = Blocks::of(100);
        assert_eq!([99, 100, 101].map(|bytes| blocks.to_border(bytes)), [None, None, Some(100)]);
        blocks.pushed(100, Flush::None);
        assert_eq!([0, 1].map(|bytes| blocks.to_border(bytes)), [None, Some(0)]);
        blocks.reset();
        assert_eq!(blocks.to_border(100), None);
    }
}
