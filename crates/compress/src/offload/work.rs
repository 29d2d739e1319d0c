//! What there is to do: a stream's next bytes, or a whole body.

use crate::coder::{Coder, CoderFault, Engine, Flush, Keep, Pool};
use crate::coding::Level;
use std::sync::Arc;

/// Bytes of a stream that are coded at one go; then it is another's turn.
pub(crate) const SLICE_BYTES: usize = 64 * 1024;

/// A piece of work that owns all it needs, so that it can be done anywhere.
pub(crate) struct Work {
    task: Task,
    /// What came out.
    pub(crate) out: Vec<u8>,
}

enum Task {
    Stream { coder: Box<dyn Coder>, input: Vec<u8>, at: usize, flush: Flush, lighten: Option<Keep> },
    Whole { engine: &'static Engine, level: Level, pool: Arc<Pool>, input: Vec<u8> },
}

impl Work {
    /// Pushes `input` through a coder with that flush, and then makes the coder small if told so.
    pub(crate) fn stream(coder: Box<dyn Coder>, input: Vec<u8>, flush: Flush, lighten: Option<Keep>) -> Work {
        Work { task: Task::Stream { coder, input, at: 0, flush, lighten }, out: Vec::new() }
    }

    /// Codes a whole body.
    pub(crate) fn whole(engine: &'static Engine, level: Level, pool: Arc<Pool>, input: Vec<u8>) -> Work {
        Work { task: Task::Whole { engine, level, pool, input }, out: Vec::new() }
    }

    /// Bytes that go in.
    pub(crate) fn bytes(&self) -> usize {
        match &self.task {
            Task::Stream { input, .. } | Task::Whole { input, .. } => input.len(),
        }
    }

    /// Does a slice; says whether that was the last.
    pub(crate) fn step(&mut self) -> Result<bool, CoderFault> {
        match &mut self.task {
            Task::Whole { engine, level, pool, input } => (engine.whole)(input, *level, pool, &mut self.out).map(|()| true),
            Task::Stream { coder, input, at, flush, lighten } => {
                let end = input.len().min(*at + SLICE_BYTES);
                let last = end == input.len();
                coder.push(&input[*at..end], &mut self.out, if last { *flush } else { Flush::None })?;
                *at = end;
                if let Some(keep) = lighten.filter(|_| last) {
                    coder.lighten(keep);
                }
                Ok(last)
            }
        }
    }

    /// Does all of it.
    pub(crate) fn run(mut self) -> Result<Work, CoderFault> {
        while !self.step()? {}
        Ok(self)
    }

    /// The coder, if it was a stream's, and what came out.
    pub(crate) fn into_parts(self) -> (Option<Box<dyn Coder>>, Vec<u8>) {
        match self.task {
            Task::Stream { coder, .. } => (Some(coder), self.out),
            Task::Whole { .. } => (None, self.out),
        }
    }
}
