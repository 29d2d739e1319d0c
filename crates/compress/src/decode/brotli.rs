//! Brotli (RFC 7932). Windows of up to 16 MB; the large ones of its extension are none of the web's.

use super::{Decoder, Flaw, Next, Piece, Progress};
use brotli::enc::StandardAlloc;
use brotli::{Allocator, BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapper};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes of a state beside its allocations.
const STATE_BYTES: usize = size_of::<State>();

type State = BrotliState<Counted, Counted, Counted>;

pub(super) struct Brotli {
    state: Box<State>,
    held: Rc<Cell<usize>>,
    ended: bool,
}

impl Brotli {
    pub(super) fn new() -> Brotli {
        let held = Rc::default();
        Brotli { state: state(&held), held, ended: false }
    }
}

impl Decoder for Brotli {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw> {
        let (mut left, mut taken, limit) = (input.len(), 0, out.len().saturating_add(room));
        let mut pieces = Piece::first();
        loop {
            if self.ended {
                return Ok(Progress { taken, next: Next::Ended });
            }
            let start = out.len();
            if start >= limit {
                return Ok(Progress { taken, next: Next::Room });
            }
            let piece = pieces.next(limit - start);
            out.resize(start + piece, 0);
            let (mut space, mut end, mut total) = (piece, start, 0);
            let result =
                BrotliDecompressStream(&mut left, &mut taken, input, &mut space, &mut end, out, &mut total, &mut self.state);
            out.truncate(end);
            match result {
                BrotliResult::ResultSuccess => self.ended = true,
                // It asks for input while output waits for room.
                BrotliResult::NeedsMoreInput if space == 0 => {}
                BrotliResult::NeedsMoreInput => return Ok(Progress { taken, next: Next::Input }),
                BrotliResult::NeedsMoreOutput if end > start => {}
                BrotliResult::NeedsMoreOutput | BrotliResult::ResultFailure => return Err(Flaw::Corrupt),
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.ended
    }

    fn reset(&mut self) {
        // A state cannot begin again.
        *self = Brotli::new();
    }

    fn memory(&self) -> usize {
        STATE_BYTES + self.held.get()
    }
}

fn state(held: &Rc<Cell<usize>>) -> Box<State> {
    let alloc = || Counted { inner: StandardAlloc::default(), held: held.clone() };
    let mut state = Box::new(State::new(alloc(), alloc(), alloc()));
    state.large_window = false;
    state
}

/// Memory that is counted.
#[derive(Clone)]
struct Counted {
    inner: StandardAlloc,
    held: Rc<Cell<usize>>,
}

impl<T: Clone + Default> Allocator<T> for Counted {
    type AllocatedMemory = <StandardAlloc as Allocator<T>>::AllocatedMemory;

    fn alloc_cell(&mut self, len: usize) -> Self::AllocatedMemory {
        self.held.set(self.held.get() + len * size_of::<T>());
        self.inner.alloc_cell(len)
    }

    fn free_cell(&mut self, data: Self::AllocatedMemory) {
        self.held.set(self.held.get().saturating_sub(size_of_val(data.slice())));
        self.inner.free_cell(data);
    }
}
