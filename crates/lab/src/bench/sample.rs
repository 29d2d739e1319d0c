//! Measured values: numbers with their units, the best of several, and the median.

/// A measured value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sample {
    /// The scenario's name.
    pub(super) scenario: String,
    /// Contestant that was measured.
    pub(super) entrant: String,
    /// From 1.
    pub(super) round: usize,
    /// Metric that was measured.
    pub(super) metric: Metric,
    /// Value, in the metric's unit.
    pub(super) value: f64,
}

/// Metric of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Metric {
    /// CPU time of the proxy's processes per answer, microseconds.
    Cpu,
    /// Answers per second.
    Rate,
    /// Bytes on the wire per answer: head, body, chunk heads.
    Wire,
    /// From the request to the last byte of the answer, milliseconds.
    LoadTime,
    /// Half of the answers come within so many milliseconds.
    P50,
    /// The same without the downloads beside it.
    P50Alone,
    /// 99 of 100 answers come within so many milliseconds.
    P99,
    /// The same without the downloads beside it.
    P99Alone,
    /// Downloads that were finished beside it, per second.
    Downloads,
    /// Memory of the process's own per connection, bytes.
    OwnMemory,
    /// The same, with shared pages in proportion.
    ProportionalMemory,
    /// Instructions in user space per request, by callgrind.
    Instructions,
    /// System calls per request, by strace.
    SystemCalls,
    /// The bytes of a file's compressed form.
    Size,
    /// Quotient of the file's size and that of its compressed form.
    Ratio,
    /// From a command's start to its end, seconds.
    Elapsed,
    /// CPU time of a command and all that it started, seconds.
    CpuTime,
    /// A file's bits per second, in thousand millions.
    Speed,
}

impl Metric {
    /// For tables: name and unit.
    pub(super) fn title(self) -> &'static str {
        match self {
            Metric::Cpu => "CPU µs",
            Metric::Rate => "answers/s",
            Metric::Wire => "wire bytes",
            Metric::LoadTime => "load ms",
            Metric::P50 => "p50 ms",
            Metric::P50Alone => "p50 alone ms",
            Metric::P99 => "p99 ms",
            Metric::P99Alone => "p99 alone ms",
            Metric::Downloads => "downloads/s",
            Metric::OwnMemory => "own bytes/connection",
            Metric::ProportionalMemory => "proportional bytes/connection",
            Metric::Instructions => "instructions",
            Metric::SystemCalls => "system calls",
            Metric::Size => "bytes",
            Metric::Ratio => "ratio",
            Metric::Elapsed => "elapsed s",
            Metric::CpuTime => "CPU s",
            Metric::Speed => "Gbit/s",
        }
    }

    /// For the file of numbers.
    pub(super) fn word(self) -> &'static str {
        match self {
            Metric::Cpu => "cpu_us",
            Metric::Rate => "answers_per_s",
            Metric::Wire => "wire_bytes",
            Metric::LoadTime => "load_ms",
            Metric::P50 => "p50_ms",
            Metric::P50Alone => "p50_alone_ms",
            Metric::P99 => "p99_ms",
            Metric::P99Alone => "p99_alone_ms",
            Metric::Downloads => "downloads_per_s",
            Metric::OwnMemory => "own_bytes_per_connection",
            Metric::ProportionalMemory => "proportional_bytes_per_connection",
            Metric::Instructions => "instructions",
            Metric::SystemCalls => "system_calls",
            Metric::Size => "bytes",
            Metric::Ratio => "ratio",
            Metric::Elapsed => "elapsed_s",
            Metric::CpuTime => "cpu_s",
            Metric::Speed => "gbit_per_s",
        }
    }

    /// True if more is better.
    pub(super) fn more_is_better(self) -> bool {
        matches!(self, Metric::Rate | Metric::Downloads | Metric::Ratio | Metric::Speed)
    }

    /// Number of significant digits after the point.
    pub(super) fn decimals(self) -> usize {
        match self {
            Metric::Cpu | Metric::LoadTime | Metric::Downloads => 1,
            Metric::P50
            | Metric::P50Alone
            | Metric::P99
            | Metric::P99Alone
            | Metric::SystemCalls
            | Metric::Ratio
            | Metric::Speed => 2,
            Metric::Elapsed | Metric::CpuTime => 3,
            _ => 0,
        }
    }
}

/// The rounds of one number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Summary {
    /// Noise only adds: the best round is the nearest to the truth.
    pub(super) best: f64,
    /// The round in the middle.
    pub(super) median: f64,
    /// Number of rounds.
    pub(super) rounds: usize,
}

/// Sums up the rounds of an entrant's metric in a scenario, if there are any.
pub(super) fn summary(samples: &[Sample], scenario: &str, entrant: &str, metric: Metric) -> Option<Summary> {
    let matching = samples.iter().filter(|s| s.scenario == scenario && s.entrant == entrant && s.metric == metric);
    let mut values: Vec<f64> = matching.map(|s| s.value).collect();
    values.sort_by(f64::total_cmp);
    if metric.more_is_better() {
        values.reverse();
    }
    Some(Summary { best: *values.first()?, median: *values.get(values.len() / 2)?, rounds: values.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_and_median() {
        let sample = |metric, value| Sample { scenario: "s".into(), entrant: "e".into(), round: 1, metric, value };
        let samples: Vec<_> = [3.0, 1.0, 2.0].iter().flat_map(|v| [sample(Metric::Cpu, *v), sample(Metric::Rate, *v)]).collect();
        assert_eq!(summary(&samples, "s", "e", Metric::Cpu), Some(Summary { best: 1.0, median: 2.0, rounds: 3 }));
        assert_eq!(summary(&samples, "s", "e", Metric::Rate), Some(Summary { best: 3.0, median: 2.0, rounds: 3 }));
        assert_eq!(summary(&samples, "s", "other", Metric::Rate), None);
    }
}
