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
    /// At most so much.
    Amount(f64),
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
        let (measured, limit, text) = match self.bound {
            Bound::Times(limit, rival) => (best("terse")? / best(rival)?, limit, format!("≤ {limit:.2} of {rival}'s")),
            Bound::Amount(limit) => (best("terse")?, limit, format!("≤ {limit:.0}")),
            Bound::Workers(limit) => {
                (best("terse, 2 workers")? / best("terse, 1 worker")?, limit, format!("2 workers ≤ {limit:.2} of 1"))
            }
        };
        let shown = if let Bound::Amount(_) = self.bound { format!("{measured:.0}") } else { format!("{measured:.2}") };
        Some(Verdict { cells: [format!("{}, {}", self.scenario, self.metric.title()), text, shown], held: measured <= limit })
    }
}

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
    Goal { scenario: "page-6", metric: Metric::Cpu, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-6", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-6-chunked", metric: Metric::Cpu, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-6-chunked", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "page-again", metric: Metric::Cpu, bound: Bound::Times(0.05, "nginx") },
    Goal { scenario: "page-again", metric: Metric::Wire, bound: Bound::Times(1.0, "nginx") },
    Goal { scenario: "tail-1", metric: Metric::P99, bound: Bound::Times(1.0, "haproxy") },
    Goal { scenario: "tail-6", metric: Metric::P99, bound: Bound::Times(1.0, "haproxy") },
    Goal { scenario: "idle", metric: Metric::OwnMemory, bound: Bound::Amount(2048.0) },
    Goal { scenario: "scale-plain", metric: Metric::Cpu, bound: Bound::Workers(1.1) },
    Goal { scenario: "scale-page", metric: Metric::Cpu, bound: Bound::Workers(1.1) },
];
