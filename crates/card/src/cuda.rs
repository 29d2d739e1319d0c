//! NVIDIA's GPUs as engines: deflate by kernels of our own (`cuda/kernel.cu`), which the driver compiles for the
//! present device.
//!
//! ```text
//!  terse             its socket             the device's process                      the GPU
//!
//!  jobs ────────────> intake: a thread takes ─> Batch: copies, three kernels, ──────> a stream a thread
//!  (bodies lie in     what waits, up to a      one wait that sleeps
//!   segments)         cap, then lets the       heads and checksums
//!                     next thread take
//!  results <────────────────────────────────── a reply a job                <───────  writes into the jobs' slots
//! ```
//!
//! So a batch fills while others are in flight, and its size is that of the jobs that came meanwhile.
//!
//! Invariants:
//! * The only copies are over the bus. The device reads bodies from the segments that terse received them into, and
//!   writes its output into the slots that terse reads. Both are pinned as far as bodies reach.
//! * The device may write only to the slot of a job that it has. Segments are pinned for reading.
//! * An error that leaves the device's context unusable ends the process, after its jobs were answered: the keeper
//!   starts another.
//!
//! Source: CUDA Driver API, reference manual 12.

mod batch;
mod driver;
mod layout;
mod pinned;
mod serve;
mod sums;

pub(crate) use serve::serve;

/// Name of a device, with its driver's version.
///
/// # Errors
/// The reason why there is no device of that number, or why it cannot be used.
pub(crate) fn look(number: u32) -> Result<String, String> {
    driver::Driver::load()?.device(number).map(|device| device.version)
}
