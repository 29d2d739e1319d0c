//! GPUs of NVIDIA's as engines: deflate by kernels of our own (`cuda/kernel.cu`), which the driver compiles for the device that is there.
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
//! So one batch fills while others are in flight, and a batch is as large as what came meanwhile.
//!
//! Invariants:
//! * Nothing is copied but over the bus: the device reads bodies from the segments that terse received them into, and writes what it makes
//!   of them into the slots that terse reads. Both are pinned as far as bodies reach.
//! * What the device may write to is a slot of a job that it has. Segments are pinned for reading.
//! * An error that leaves the device's context unusable ends the process, after its jobs were answered: the keeper starts another one.
//!
//! Source: CUDA Driver API, reference manual 12.

mod batch;
mod driver;
mod layout;
mod pinned;
mod serve;
mod sums;

pub(crate) use serve::serve;

/// The name of a device, with its driver's version.
///
/// # Errors
/// Why there is none of that number, or why it cannot be used.
pub(crate) fn look(number: u32) -> Result<String, String> {
    driver::Driver::load()?.device(number).map(|device| device.version)
}
