//! Services that answer requests themselves, from memory: the statistics page.

use crate::phase::judge::Verdict;
use crate::stream::Stream;

/// A part of a proxy after its `http-request` rules that answers certain requests itself.
pub trait Service: Send + Sync {
    /// Whether it answers this request. Its body has not been read.
    fn takes(&self, stream: &Stream) -> bool;

    /// The answer to a request that it takes. `body` is the request's, as far as a buffer holds it. It must not block, and
    /// should be quick: it runs on a worker.
    fn answer(&self, stream: &mut Stream, body: &[u8]) -> Verdict;
}
