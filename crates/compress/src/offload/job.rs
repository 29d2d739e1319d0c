//! One piece of work away from its worker.

use std::pin::Pin;
use std::task::{Context, Poll};

/// What a job brings back: to be handed to [`crate::Compressor::resume`].
pub struct Finished {
    _state: (),
}

/// A piece of work in the offload queue. Ready when it is done; dropped before it began, it is not done at all.
#[must_use]
pub struct Job {
    _state: (),
}

impl Future for Job {
    type Output = Finished;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Finished> {
        unreachable!("not built yet")
    }
}
