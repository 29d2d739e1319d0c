//! Filters: observers of a body on its way, which may hold it up.
//!
//! ```text
//! Receiver -> filters before the coder -> coder, where the body is compressed -> filters after it -> Sender
//! ```
//!
//! A filter returns how many of the bytes at hand may go on now ([`Quota`]), and sees those that do. Compression is no
//! filter: it has its own place, and a `filter compression` line determines which filters stand before it. Without filters, a
//! body pays a look at an `Option` for each part of it.
//!
//! Filters of one side of the coder are asked together, so their order among each other makes no difference: the bytes that
//! all of them allow go on.

pub mod bandwidth;
pub mod keywords;
mod passage;
mod settings;
pub mod share;
mod trace;

pub use passage::{Bandwidth, Passage, Reach};
pub use settings::{Direction, FilterSettings, Limit, LimitKind, LimitSettings, Side, TraceSettings};

use crate::stream::Stream;
use std::sync::Arc;
use std::time::Duration;

/// A filter's answer for the bytes at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quota {
    /// This number of them may go on: at least 1.
    Bytes(usize),
    /// No byte, for this time.
    Wait(Duration),
}

/// The filters of a stream.
#[derive(Default)]
pub struct Filters {
    up: Passage,
    down: Passage,
    /// Whether the filters that need no rule have been added.
    begun: bool,
}

impl Filters {
    /// The passage of a direction.
    pub fn passage(&mut self, direction: Direction) -> &mut Passage {
        match direction {
            Direction::In => &mut self.up,
            Direction::Out => &mut self.down,
        }
    }
}

/// The filters that a body of this stream goes through. Those that need no rule are added now, when its backend is known.
pub fn passage(stream: &mut Stream, direction: Direction) -> Option<Passage> {
    let has_traces = |filters: &FilterSettings| !filters.traces.is_empty();
    let facts = &stream.facts;
    if facts.filters.is_none() && !has_traces(&facts.frontend().filters) && !facts.backend().is_some_and(|b| has_traces(&b.filters))
    {
        return None;
    }
    let session = stream.facts.session.clone();
    let front = &session.frontend().filters;
    let back = stream.facts.backend.clone();
    let own = back.as_deref().filter(|backend| backend.twin != Some(session.frontend)).map(|backend| &backend.filters);
    let traces = || [Some(front), own].into_iter().flatten().flat_map(|filters: &Arc<FilterSettings>| &filters.traces);
    if stream.facts.filters.is_none() && traces().next().is_none() {
        return None;
    }
    let filters = stream.facts.filters.get_or_insert_default();
    if !std::mem::replace(&mut filters.begun, true) {
        for settings in traces() {
            for direction in [Direction::In, Direction::Out] {
                filters.passage(direction).trace(settings, direction, stream.facts.id);
            }
        }
    }
    Some(filters.passage(direction).clone()).filter(|passage| !passage.is_empty())
}
