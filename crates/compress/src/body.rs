//! A body's way through its coder, driven by the proxy.

use crate::budget::Budget;
use crate::coder::{CoderFault, Pool};
use crate::offload::{Finished, Job, Queue};
use crate::policy::Plan;
use std::sync::Arc;

/// Bytes of a body held for work on the whole of it, unless `compression collect` says otherwise.
pub const DEFAULT_COLLECT_BYTES: usize = 256 * 1024;

/// The most that `compression collect` may say.
pub const MAX_COLLECT_BYTES: usize = 64 << 20;

/// A broken coder: the stream must be aborted ([`terse_message::Who::Internal`]).
pub type Fault = CoderFault;

/// What compressors share: a worker has one.
pub struct Workplace {
    /// States of coders.
    pub pool: Arc<Pool>,
    /// Where larger work goes; without it all is done in place.
    pub queue: Option<Arc<Queue>>,
    /// The memory that coders and collected bytes count against.
    pub budget: Arc<dyn Budget>,
}

/// What became of a call.
#[must_use]
pub enum Step {
    /// It is done; what came out is in [`Compressor::output`].
    Done,
    /// It is being done elsewhere: await the job, hand what it returns to [`Compressor::resume`], and call nothing else before. A
    /// dropped job ends the compressor: later calls return a [`Fault`].
    Away(Job),
}

/// The compressor of one body.
///
/// Drive: `feed` for each piece that the server sends, `pause` when it has been silent for a moment and something was fed since, and
/// `finish` at the end. After each call (and its job), take what is in `output`.
pub struct Compressor {
    _state: (),
}

impl Compressor {
    /// A compressor; `known_bytes` is the body's length where the head says it, `collect_bytes` that of
    /// [`crate::Effective::collect_bytes`].
    pub fn new(_plan: Plan, _known_bytes: Option<u64>, _collect_bytes: usize, _place: &Arc<Workplace>) -> Compressor {
        unreachable!("not built yet")
    }

    /// Takes a piece of the body. Pieces of up to 64 KB are best: one is at most one job.
    pub fn feed(&mut self, _input: &[u8]) -> Result<Step, Fault> {
        unreachable!("not built yet")
    }

    /// Says that the server is silent: all that was fed comes out decodable.
    pub fn pause(&mut self) -> Result<Step, Fault> {
        unreachable!("not built yet")
    }

    /// Says that the body has ended.
    pub fn finish(&mut self) -> Result<Step, Fault> {
        unreachable!("not built yet")
    }

    /// Takes back what a job has finished.
    pub fn resume(&mut self, _finished: Finished) -> Result<(), Fault> {
        unreachable!("not built yet")
    }

    /// Awaits the step's job, if there is one, and resumes.
    pub async fn settle(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::Done => Ok(()),
            Step::Away(job) => self.resume(job.await),
        }
    }

    /// What has come out so far; the caller takes bytes from it and leaves the rest.
    pub fn output(&mut self) -> &mut Vec<u8> {
        unreachable!("not built yet")
    }

    /// Whether something was fed that has not come out: whether a pause has work to do.
    pub fn has_pending(&self) -> bool {
        unreachable!("not built yet")
    }

    /// Bytes that were fed.
    pub fn bytes_in(&self) -> u64 {
        unreachable!("not built yet")
    }

    /// Bytes that came out.
    pub fn bytes_out(&self) -> u64 {
        unreachable!("not built yet")
    }
}
