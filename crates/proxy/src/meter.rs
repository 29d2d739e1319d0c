//! `option contstats`: bytes are counted while they pass, for streams that last longer than the readers of the statistics
//! wait.
//!
//! Without the option a stream's bytes are counted once, at its end, and no meter exists. A meter's count is kept in the
//! stream's figures, so that its end does not count it again.

use crate::facts::Facts;
use crate::figures::{Figures, add};
use crate::plan::roll::Held;
use crate::session::Session;
use std::rc::Rc;
use std::sync::Arc;
use terse_balance::{Count, Server};

/// Counter of the bytes that a sink writes.
pub struct Meter {
    session: Rc<Session>,
    backend: Option<Held>,
    server: Option<Arc<Server>>,
    direction: Direction,
    figures: Rc<Figures>,
}

/// Which way bytes pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the client.
    In,
    /// To the client.
    Out,
}

impl Meter {
    /// The meter of a stream whose backend and server are chosen; `None` unless the configuration asks for it.
    pub fn of(facts: &Facts, direction: Direction) -> Option<Meter> {
        facts.frontend().options.count_while_passing.then(|| Meter {
            session: facts.session.clone(),
            backend: facts.backend.clone(),
            server: facts.server.clone(),
            direction,
            figures: facts.figures.clone(),
        })
    }

    /// Counts bytes that were written.
    pub fn count(&self, bytes: u64) {
        let metered = &self.figures.metered;
        add(if self.direction == Direction::In { &metered.0 } else { &metered.1 }, bytes);
        let worker = &self.session.worker;
        let front = self.session.frontend().tally.of(worker.index);
        let back = self.backend.as_deref().map(|backend| backend.tally.of(worker.index));
        for counters in [Some(front), back, self.session.address_counters()].into_iter().flatten() {
            match self.direction {
                Direction::In => counters.bytes_in.add(bytes),
                Direction::Out => counters.bytes_out.add(bytes),
            }
        }
        if let Some(server) = &self.server {
            server.counters.add(if self.direction == Direction::In { Count::BytesIn } else { Count::BytesOut }, bytes);
        }
    }
}
