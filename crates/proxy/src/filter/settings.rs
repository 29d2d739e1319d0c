//! The configuration of filters.

use super::share::Share;
use crate::cache::CacheName;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terse_config::Place;

/// The filters of a proxy.
#[derive(Clone, Default, Debug)]
pub struct FilterSettings {
    /// Filters of bandwidth, by name: declared by `filter bwlim-in` or `bwlim-out`, or as yet only used by rules.
    pub limits: Vec<Arc<Limit>>,
    /// `filter cache` lines.
    pub caches: Vec<Arc<CacheName>>,
    /// `filter trace` lines.
    pub traces: Vec<Arc<TraceSettings>>,
}

/// A filter of bandwidth: its name stands for it from the first line that names it.
#[derive(Debug)]
pub struct Limit {
    /// Its name.
    pub name: Box<str>,
    /// The first line that names it.
    pub place: Place,
    /// Settings of its own line, once that has been read.
    pub declared: OnceLock<LimitSettings>,
}

/// `filter bwlim-in`, `filter bwlim-out`
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Which bodies.
    pub direction: Direction,
    /// On which side of the coder.
    pub side: Side,
    /// Subject of the limit, and its rate.
    pub kind: LimitKind,
    /// `min-size`: bytes at a time.
    pub least_bytes: usize,
}

/// Subject of a filter of bandwidth.
#[derive(Clone, Debug)]
pub enum LimitKind {
    /// Each stream.
    Stream {
        /// `default-limit`: bytes in a period; more than 0.
        bytes: u64,
        /// `default-period`; more than 0.
        period: Duration,
    },
    /// All streams with the same key.
    Shared(Share),
}

/// `filter trace`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceSettings {
    /// `name`: the begin of its lines.
    pub name: Box<str>,
    /// On which side of the coder.
    pub side: Side,
    /// `quiet`: nothing is written.
    pub quiet: bool,
    /// `random-forwarding`: of the bytes at hand some go on.
    pub random: bool,
    /// `hexdump`: bytes are written, too.
    pub dumps: bool,
    /// `max-fwd`: bytes at a time; 0: any number.
    pub most_bytes: usize,
}

/// A direction of bodies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the client to the server.
    In,
    /// From the server to the client.
    Out,
}

/// Side of the coder on which a filter stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Before the coder: it sees bytes as they came.
    Before,
    /// After it: bytes as they leave.
    Behind,
}

impl FilterSettings {
    /// The filter of bandwidth of that name; it need not have been declared yet.
    pub fn limit(&mut self, name: &str, place: &Place) -> Arc<Limit> {
        if let Some(known) = self.limits.iter().find(|limit| *limit.name == *name) {
            return known.clone();
        }
        let limit = Arc::new(Limit { name: name.into(), place: place.clone(), declared: OnceLock::new() });
        self.limits.push(limit.clone());
        limit
    }
}
