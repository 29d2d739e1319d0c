//! What terse is held to, and whether the numbers hold it.

use super::sample::{Metric, Sample, summary};

/// A bound on one number of terse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    scenario: &'static str,
    metric: Metric,
    bound: Bound,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    /// At most so many times another entrant's best.
    Times(f64, &'static str),
    /// At least so many times another entrant's best.
    AtLeast(f64, &'static str),
    /// At most so much.
    Amount(f64),
    /// At least so much.
    AtLeastAmount(f64),
    /// At most so many times another number of its own.
    Own(f64, Metric),
    /// Two workers' best is at most so many times one worker's.
    Workers(f64),
}

/// A goal's outcome, as the cells of a table row, and whether it was reached.
pub(super) struct Verdict {
    /// Scenario and metric, the bound, what was measured.
    pub(super) cells: [String; 3],
    /// Whether it holds.
    pub(super) held: bool,
}

impl Goal {
    /// Compares; none if one of the numbers was not measured.
    pub(super) fn verdict(&self, samples: &[Sample]) -> Option<Verdict> {
        let best = |entrant: &str| summary(samples, self.scenario, entrant, self.metric).map(|s| s.best);
        let decimals = if matches!(self.bound, Bound::Amount(_) | Bound::AtLeastAmount(_)) { 0 } else { 2 };
        let (measured, limit, text) = match self.bound {
            Bound::Times(limit, rival) => (best("terse")? / best(rival)?, limit, format!("≤ {limit:.2} of {rival}'s")),
            Bound::AtLeast(limit, rival) => (best("terse")? / best(rival)?, limit, format!("≥ {limit:.2} of {rival}'s")),
            Bound::Amount(limit) => (best("terse")?, limit, format!("≤ {limit:.0}")),
            Bound::AtLeastAmount(limit) => (best("terse")?, limit, format!("≥ {limit:.0}")),
            Bound::Own(limit, metric) => {
                let own = summary(samples, self.scenario, "terse", metric)?.best;
                (best("terse")? / own, limit, format!("≤ {limit:.2} of {}", metric.title()))
            }
            Bound::Workers(limit) => {
                (best("terse, 2 workers")? / best("terse, 1 worker")?, limit, format!("2 workers ≤ {limit:.2} of 1"))
            }
        };
        let at_least = matches!(self.bound, Bound::AtLeast(..) | Bound::AtLeastAmount(_));
        let held = if at_least { measured >= limit } else { measured <= limit };
        let what = format!("{}, {}", self.scenario, self.metric.title());
        Some(Verdict { cells: [what, text, format!("{measured:.decimals$}")], held })
    }
}

/// Entrants of the scenarios with a card: terse without the card, and without compression.
pub(super) const SOFTWARE: &str = "terse, software";
/// See [`SOFTWARE`].
pub(super) const UNCOMPRESSED: &str = "terse, uncompressed";

/// All of them.
pub(super) const GOALS: &[Goal] = &[
    Goal { scenario: "plain", metric: Metric::Cpu, bound: Bound::Times(0.85, "haproxy") },
    Goal { scenario: "plain", metric: Metric::Cpu, bound: Bound::Times(0.85, "nginx") },
    Goal { scenario: "rules", metric: Metric::Cpu, bound: Bound::Times(0.8, "haproxy") },
    Goal { scenario: "vars-100", metric: Metric::Cpu, bound: Bound::Times(0.17, "haproxy") },
    Goal { scenario: "vars-100", metric: Metric::Cpu, bound: Bound::Times(0.4, "haproxy2") },
    Goal { scenario: "vars-1000", metric: Metric::Cpu, bound: Bound::Times(0.15, "haproxy2") },
    Goal { scenario: "large", metric: Metric::Cpu, bound: Bound::Times(1.0, "haproxy") },
    Goal { scenario: "large", metric: Metric::Cpu, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-6", metric: Metric::Cpu, bound: Bound::Times(0.45, "nginx") },
    Goal { scenario: "page-6", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-6-chunked", metric: Metric::Cpu, bound: Bound::Times(0.45, "nginx") },
    Goal { scenario: "page-6-chunked", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-again", metric: Metric::Cpu, bound: Bound::Times(0.05, "nginx") },
    Goal { scenario: "page-again", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-again-chunked", metric: Metric::Cpu, bound: Bound::Times(0.05, "nginx") },
    Goal { scenario: "page-again-chunked", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-1", metric: Metric::Cpu, bound: Bound::Times(0.5, "nginx") },
    Goal { scenario: "page-1", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-1", metric: Metric::Cpu, bound: Bound::Times(1.2, "haproxy") },
    Goal { scenario: "page-1", metric: Metric::Wire, bound: Bound::Times(0.8, "haproxy") },
    Goal { scenario: "page-1-chunked", metric: Metric::Cpu, bound: Bound::Times(0.5, "nginx") },
    Goal { scenario: "page-1-chunked", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-1-chunked", metric: Metric::Cpu, bound: Bound::Times(1.2, "haproxy") },
    Goal { scenario: "page-1-chunked", metric: Metric::Wire, bound: Bound::Times(0.8, "haproxy") },
    Goal { scenario: "page-zstd", metric: Metric::Cpu, bound: Bound::Times(0.45, "nginx") },
    Goal { scenario: "page-zstd", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-br", metric: Metric::Cpu, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-br", metric: Metric::Wire, bound: Bound::Times(0.96, "nginx") },
    Goal { scenario: "card-simulated", metric: Metric::Cpu, bound: Bound::Times(1.1, UNCOMPRESSED) },
    Goal { scenario: "card-simulated", metric: Metric::LoadTime, bound: Bound::Times(1.0, SOFTWARE) },
    Goal { scenario: "card-simulated-2", metric: Metric::Cpu, bound: Bound::Times(1.1, UNCOMPRESSED) },
    // Nine tenths of the card's rate: the rest is the pauses between a client's answer and its next request.
    Goal { scenario: "card-simulated-2", metric: Metric::Rate, bound: Bound::AtLeastAmount(38.5) },
    Goal { scenario: "tail-1", metric: Metric::P99, bound: Bound::Times(0.3, "haproxy") },
    Goal { scenario: "tail-1", metric: Metric::P99, bound: Bound::Own(3.0, Metric::P99Alone) },
    Goal { scenario: "tail-1", metric: Metric::Downloads, bound: Bound::AtLeast(0.5, "haproxy") },
    Goal { scenario: "tail-6", metric: Metric::P99, bound: Bound::Times(1.0, "haproxy") },
    Goal { scenario: "idle", metric: Metric::OwnMemory, bound: Bound::Amount(2048.0) },
    Goal { scenario: "tls-page", metric: Metric::Cpu, bound: Bound::Times(0.9, "nginx") },
    // As many handshakes in a second of CPU time as 0.95 of haproxy's.
    Goal { scenario: "tls-full", metric: Metric::Cpu, bound: Bound::Times(1.0 / 0.95, "haproxy") },
    Goal { scenario: "tls-resumed", metric: Metric::Cpu, bound: Bound::Times(1.0 / 0.95, "haproxy") },
    Goal { scenario: "tls-idle", metric: Metric::OwnMemory, bound: Bound::Times(1.0, "haproxy") },
    Goal { scenario: "scale-plain", metric: Metric::Cpu, bound: Bound::Workers(1.1) },
    Goal { scenario: "scale-page", metric: Metric::Cpu, bound: Bound::Workers(1.1) },
];
