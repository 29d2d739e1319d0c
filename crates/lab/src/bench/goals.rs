//! Goals of terse, and the check of the numbers against them.

use super::files::{WITH_CARD, WITH_CARD_TWICE};
use super::sample::{Metric, Sample, summary};

/// A bound on one number of terse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    scenario: &'static str,
    /// Contestant that is held to it.
    entrant: &'static str,
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
    /// At the quickest of its levels that comes to that ratio, at least so much.
    AtRatio(f64, f64),
    /// Two workers' best is at most so many times one worker's.
    Workers(f64),
}

/// A goal's outcome, as the cells of a table row, and whether it was reached.
pub(super) struct Verdict {
    /// Scenario and metric, the bound, the measured value.
    pub(super) cells: [String; 3],
    /// True if it holds.
    pub(super) held: bool,
}

impl Goal {
    /// Compares; none if one of the numbers was not measured.
    pub(super) fn verdict(&self, samples: &[Sample]) -> Option<Verdict> {
        let best = |entrant: &str| summary(samples, self.scenario, entrant, self.metric).map(|s| s.best);
        let is_amount = matches!(self.bound, Bound::Amount(_) | Bound::AtLeastAmount(_) | Bound::AtRatio(..));
        let decimals = if is_amount { self.metric.decimals() } else { 2 };
        let own = || best(self.entrant);
        let (measured, limit, text) = match self.bound {
            Bound::Times(limit, rival) => (own()? / best(rival)?, limit, format!("≤ {limit:.2} of {rival}'s")),
            Bound::AtLeast(limit, rival) => (own()? / best(rival)?, limit, format!("≥ {limit:.2} of {rival}'s")),
            Bound::Amount(limit) => (own()?, limit, format!("≤ {limit}")),
            Bound::AtLeastAmount(limit) => (own()?, limit, format!("≥ {limit}")),
            Bound::Own(limit, metric) => {
                let other = summary(samples, self.scenario, self.entrant, metric)?.best;
                (own()? / other, limit, format!("≤ {limit:.2} of {}", metric.title()))
            }
            Bound::AtRatio(limit, ratio) => {
                let of_terse = |s: &&Sample| s.scenario == self.scenario && s.metric == self.metric && s.entrant.starts_with(TERSE);
                let reaches = |s: &&Sample| {
                    summary(samples, self.scenario, &s.entrant, Metric::Ratio).is_some_and(|reached| reached.best >= ratio)
                };
                samples.iter().find(of_terse)?;
                let speeds = samples.iter().filter(of_terse).filter(reaches).map(|s| s.value);
                (speeds.fold(0.0, f64::max), limit, format!("≥ {limit} at ≥ {ratio}:1"))
            }
            Bound::Workers(limit) => {
                (best("terse, 2 workers")? / best("terse, 1 worker")?, limit, format!("2 workers ≤ {limit:.2} of 1"))
            }
        };
        let at_least = matches!(self.bound, Bound::AtLeast(..) | Bound::AtLeastAmount(_) | Bound::AtRatio(..));
        let held = if at_least { measured >= limit } else { measured <= limit };
        let words = [self.scenario, self.entrant, self.metric.title()];
        let what = words.into_iter().filter(|word| *word != TERSE).collect::<Vec<_>>().join(", ");
        Some(Verdict { cells: [what, text, format!("{measured:.decimals$}")], held })
    }
}

/// Of terse itself.
const fn goal(scenario: &'static str, metric: Metric, bound: Bound) -> Goal {
    goal_of(TERSE, scenario, metric, bound)
}

const fn goal_of(entrant: &'static str, scenario: &'static str, metric: Metric, bound: Bound) -> Goal {
    Goal { scenario, entrant, metric, bound }
}

const TERSE: &str = "terse";

/// Entrants of the scenarios with a card: terse without the card, and without compression.
pub(super) const SOFTWARE: &str = "terse, software";
/// See [`SOFTWARE`].
pub(super) const UNCOMPRESSED: &str = "terse, uncompressed";
/// nginx with our library in zlib's place.
pub(super) const ON_OUR_ZLIB: &str = "nginx on libterse_z.so";

/// All of them.
pub(super) const GOALS: &[Goal] = &[
    goal("plain", Metric::Cpu, Bound::Times(0.85, "haproxy")),
    goal("plain", Metric::Cpu, Bound::Times(0.85, "nginx")),
    goal("plain", Metric::Cpu, Bound::Times(1.15, "floor")),
    goal("rules", Metric::Cpu, Bound::Times(0.8, "haproxy")),
    goal("vars-100", Metric::Cpu, Bound::Times(0.17, "haproxy")),
    goal("vars-100", Metric::Cpu, Bound::Times(0.4, "haproxy2")),
    goal("vars-1000", Metric::Cpu, Bound::Times(0.15, "haproxy2")),
    goal("large", Metric::Cpu, Bound::Times(1.0, "haproxy")),
    goal("large", Metric::Cpu, Bound::Times(1.0, "nginx")),
    goal("page-6", Metric::Cpu, Bound::Times(0.45, "nginx")),
    goal("page-6", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("page-6-chunked", Metric::Cpu, Bound::Times(0.45, "nginx")),
    goal("page-6-chunked", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("page-again", Metric::Cpu, Bound::Times(0.05, "nginx")),
    goal("page-again", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("page-again-chunked", Metric::Cpu, Bound::Times(0.05, "nginx")),
    goal("page-again-chunked", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("page-1", Metric::Cpu, Bound::Times(0.3, "nginx")),
    goal("page-1", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("page-1", Metric::Cpu, Bound::Times(1.2, "haproxy")),
    goal("page-1", Metric::Wire, Bound::Times(0.8, "haproxy")),
    goal("page-1-chunked", Metric::Cpu, Bound::Times(0.3, "nginx")),
    goal("page-1-chunked", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("page-1-chunked", Metric::Cpu, Bound::Times(1.2, "haproxy")),
    goal("page-1-chunked", Metric::Wire, Bound::Times(0.8, "haproxy")),
    goal("page-zstd", Metric::Cpu, Bound::Times(0.45, "nginx")),
    goal("page-zstd", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("page-br", Metric::Cpu, Bound::Times(1.0, "nginx")),
    goal("page-br", Metric::Wire, Bound::Times(0.96, "nginx")),
    goal("card-simulated", Metric::Cpu, Bound::Times(1.1, UNCOMPRESSED)),
    goal("card-simulated", Metric::LoadTime, Bound::Times(1.0, SOFTWARE)),
    goal("card-simulated-2", Metric::Cpu, Bound::Times(1.1, UNCOMPRESSED)),
    // Nine tenths of the card's rate: the rest is the pauses between a client's answer and its next request.
    goal("card-simulated-2", Metric::Rate, Bound::AtLeastAmount(38.5)),
    goal_of(ON_OUR_ZLIB, "zlib-nginx", Metric::Cpu, Bound::Times(0.4, "nginx")),
    goal_of(ON_OUR_ZLIB, "zlib-nginx", Metric::Wire, Bound::Times(1.0, "nginx")),
    goal("tail-1", Metric::P99, Bound::Times(0.3, "haproxy")),
    goal("tail-1", Metric::P99, Bound::Own(3.0, Metric::P99Alone)),
    goal("tail-1", Metric::Downloads, Bound::AtLeast(0.5, "haproxy")),
    goal("tail-page-1", Metric::P99, Bound::Times(0.5, "haproxy")),
    goal("tail-6", Metric::P99, Bound::Times(1.0, "haproxy")),
    goal("idle", Metric::OwnMemory, Bound::Amount(2048.0)),
    goal("tls-page", Metric::Cpu, Bound::Times(0.9, "nginx")),
    // As many handshakes in a second of CPU time as 0.95 of haproxy's.
    goal("tls-full", Metric::Cpu, Bound::Times(1.0 / 0.95, "haproxy")),
    goal("tls-resumed", Metric::Cpu, Bound::Times(1.0 / 0.95, "haproxy")),
    goal("tls-idle", Metric::OwnMemory, Bound::Times(1.0, "haproxy")),
    goal("h2", Metric::Cpu, Bound::Times(0.65, "haproxy")),
    goal("h2", Metric::Cpu, Bound::Times(0.42, "haproxy2")),
    goal("scale-plain", Metric::Cpu, Bound::Workers(1.1)),
    goal("scale-page", Metric::Cpu, Bound::Workers(1.1)),
    goal("gzip-iso", Metric::Elapsed, Bound::Times(0.12, "gzip")),
    goal("gzip-iso", Metric::Size, Bound::Times(1.0, "gzip")),
    goal("gzip-canterbury", Metric::Ratio, Bound::AtLeastAmount(3.6)),
    // Which level that is depends on the machine: with ISA-L the first is quicker, and its ratio less.
    goal("gzip-canterbury-100", Metric::Speed, Bound::AtRatio(2.5, 3.5)),
    // The purpose of a card. In elapsed time two cores are quicker than its 2.5 Gbit/s.
    goal_of(WITH_CARD, "card-file", Metric::CpuTime, Bound::Times(0.6, TERSE)),
    // Nine tenths of the card's rate, as in card-simulated-2.
    goal_of(WITH_CARD_TWICE, "card-file", Metric::Speed, Bound::AtLeastAmount(2.25)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_of_scenarios_that_there_are() {
        for goal in GOALS {
            assert!(crate::bench::scenarios().any(|(name, _)| name == goal.scenario), "{}", goal.scenario);
        }
    }

    #[test]
    fn bounds_are_kept_or_not() {
        let sample = |entrant: &str, value| Sample {
            scenario: "gzip-canterbury".into(),
            entrant: entrant.into(),
            round: 0,
            metric: Metric::Ratio,
            value,
        };
        let samples = [sample("terse", 3.896), sample("terse -1", 3.4)];
        let verdict = |entrant| goal_of(entrant, "gzip-canterbury", Metric::Ratio, Bound::AtLeastAmount(3.5)).verdict(&samples);
        let (held, missed) = (verdict(TERSE).unwrap(), verdict("terse -1").unwrap());
        assert_eq!((held.cells.join("; "), held.held), ("gzip-canterbury, ratio; ≥ 3.5; 3.90".to_owned(), true));
        assert_eq!((missed.cells.join("; "), missed.held), ("gzip-canterbury, terse -1, ratio; ≥ 3.5; 3.40".to_owned(), false));
        assert!(verdict("gzip").is_none());
    }

    #[test]
    fn the_quickest_level_of_a_ratio_counts() {
        let verdict = |levels: &[(&str, f64, f64)]| {
            let of = |&(entrant, ratio, speed): &(&str, f64, f64)| {
                [(Metric::Ratio, ratio), (Metric::Speed, speed)].map(|(metric, value)| Sample {
                    scenario: "s".into(),
                    entrant: entrant.into(),
                    round: 0,
                    metric,
                    value,
                })
            };
            let samples: Vec<Sample> = levels.iter().flat_map(of).collect();
            let verdict = goal("s", Metric::Speed, Bound::AtRatio(2.5, 3.5)).verdict(&samples);
            verdict.map(|verdict| (verdict.cells.join("; "), verdict.held))
        };
        let (quick, good, slow) = (("terse -1", 3.4, 4.0), ("terse -2", 3.8, 2.7), ("terse", 3.9, 2.3));
        assert_eq!(verdict(&[quick, good, slow]), Some(("s, Gbit/s; ≥ 2.5 at ≥ 3.5:1; 2.70".to_owned(), true)));
        assert_eq!(verdict(&[quick, slow]), Some(("s, Gbit/s; ≥ 2.5 at ≥ 3.5:1; 2.30".to_owned(), false)));
        assert_eq!(verdict(&[quick]), Some(("s, Gbit/s; ≥ 2.5 at ≥ 3.5:1; 0.00".to_owned(), false)));
        assert_eq!(verdict(&[("gzip", 3.8, 2.7)]), None);
    }
}
