//! A direction of a stream, with the filters that its body goes through.

use super::bandwidth::Limiter;
use super::share::SharedLimiter;
use super::trace::Tracer;
use super::{Direction, Limit, Quota, Side, TraceSettings};
use crate::exchange::Sender;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// The filters of one direction.
#[derive(Clone, Default)]
pub struct Passage {
    stages: Vec<(Side, Stage)>,
}

#[derive(Clone)]
enum Stage {
    /// A limit of bandwidth, and its filter.
    Limit(Arc<Limit>, Bandwidth),
    Trace(Tracer),
}

/// A limit of bandwidth at work.
#[derive(Clone)]
pub enum Bandwidth {
    /// Of this stream.
    Own(Limiter),
    /// A limit that streams share.
    Shared(Box<SharedLimiter>),
}

/// Which filters bytes go through now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// All: there is no coder.
    All,
    /// The filters of this side of the coder.
    Only(Side),
}

impl Passage {
    /// Whether there is no filter.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Sets a limit of bandwidth, or replaces it.
    pub fn limit(&mut self, limit: &Arc<Limit>, side: Side, limiter: Bandwidth) {
        let is_same = |stage: &&mut (Side, Stage)| matches!(&stage.1, Stage::Limit(own, _) if Arc::ptr_eq(own, limit));
        match self.stages.iter_mut().find(is_same) {
            Some((_, stage)) => *stage = Stage::Limit(limit.clone(), limiter),
            None => self.stages.push((side, Stage::Limit(limit.clone(), limiter))),
        }
    }

    /// Adds a trace.
    pub(super) fn trace(&mut self, settings: &Arc<TraceSettings>, direction: Direction, stream: u64) {
        self.stages.push((settings.side, Stage::Trace(Tracer::new(settings, direction, stream))));
    }

    /// Returns how many of the bytes at hand go on; waits until some may. Bytes that wait in the sender go before that wait.
    pub async fn admit(&mut self, reach: Reach, data: &[u8], sender: &mut Sender<'_>) -> io::Result<usize> {
        loop {
            // The runtime's clock, not the worker's: many waits fit into one of its turns.
            match self.quota(reach, data.len(), Instant::now()) {
                Quota::Bytes(bytes) => {
                    self.take(reach, &data[..bytes.min(data.len())], Instant::now());
                    return Ok(bytes.min(data.len()));
                }
                Quota::Wait(wait) => {
                    sender.flush().await?;
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    /// The quota that all filters allow.
    fn quota(&mut self, reach: Reach, bytes: usize, now: Instant) -> Quota {
        let mut allowed = Quota::Bytes(bytes);
        for stage in self.reached(reach) {
            let own = match stage {
                Stage::Limit(_, Bandwidth::Own(limiter)) => limiter.quota(bytes, now),
                Stage::Limit(_, Bandwidth::Shared(limiter)) => limiter.quota(bytes, now),
                Stage::Trace(tracer) => tracer.quota(bytes),
            };
            allowed = match (allowed, own) {
                (Quota::Bytes(one), Quota::Bytes(other)) => Quota::Bytes(one.min(other)),
                (Quota::Wait(one), Quota::Wait(other)) => Quota::Wait(one.max(other)),
                (wait @ Quota::Wait(_), _) | (_, wait) => wait,
            };
        }
        allowed
    }

    fn take(&mut self, reach: Reach, data: &[u8], now: Instant) {
        for stage in self.reached(reach) {
            match stage {
                Stage::Limit(_, Bandwidth::Own(limiter)) => limiter.take(data.len(), now),
                Stage::Limit(_, Bandwidth::Shared(limiter)) => limiter.take(data.len(), now),
                Stage::Trace(tracer) => tracer.take(data),
            }
        }
    }

    fn reached(&mut self, reach: Reach) -> impl Iterator<Item = &mut Stage> {
        self.stages.iter_mut().filter(move |(side, _)| reach == Reach::All || reach == Reach::Only(*side)).map(|(_, stage)| stage)
    }
}
