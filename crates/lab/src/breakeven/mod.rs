//! From which size on compression should leave its worker: what leaving costs, against what staying costs the others.
//!
//! The same bodies are compressed twice, by the compressor that the proxy uses: in place, and by the offload queue. Leaving costs
//! processor time (the job is handed over, a thread wakes, the worker is woken) and the body itself arrives later; staying makes every
//! other client of the worker wait for the whole of it. Leaving pays from where it costs less than [`WORTH`] of the work: below that,
//! the wait that others are spared is short, and what is paid for it would be a good part of it.

mod trial;

use crate::bench::machine;
use crate::cores;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::PathBuf;
use terse_compress::coder::Engine;
use terse_compress::{Coding, Level};
use trial::{Cost, Trial};

/// How long it takes, and where the results go.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each size is measured each way; the best one is kept.
    pub rounds: usize,
    /// Where the page is written.
    pub page: PathBuf,
    /// Where the numbers are written.
    pub numbers: PathBuf,
}

/// Sizes of bodies, in bytes.
const SIZES: [usize; 12] = [512, 1024, 2048, 4096, 8192, 12_288, 16_384, 24_576, 32_768, 65_536, 131_072, 262_144];

/// The part of a job's own time that leaving may cost.
const WORTH: f64 = 0.05;

/// Levels of gzip.
const LEVELS: [u8; 3] = [1, 6, 9];

/// What was measured of one size.
#[derive(Clone, Copy, Debug)]
struct Row {
    level: u8,
    bytes: usize,
    stays: Cost,
    leaves: Cost,
}

impl Row {
    /// What leaving costs, in nanoseconds of processor time.
    fn extra_ns(&self) -> f64 {
        (self.leaves.cpu_ns - self.stays.cpu_ns).max(0.0)
    }

    /// What the proxy expects the work to take: by that it decides.
    fn expected_ns(&self) -> f64 {
        Engine::of(Coding::Gzip).whole_ns(Level(self.level), self.bytes) as f64
    }
}

/// Measures, and writes both files.
pub fn run(options: &Options) -> Result<bool> {
    // As in production at the worst: the worker and the queue's thread share a core.
    let (core, machine) = (*cores::available().first().context("no core")?, machine::description());
    cores::pin_this_thread(core)?;
    let mut rows = Vec::new();
    for level in LEVELS {
        let trial = Trial::new(level)?;
        for bytes in SIZES {
            let (stays, leaves) = trial.costs(bytes, options.rounds)?;
            rows.push(Row { level, bytes, stays, leaves });
        }
    }
    let page = page(&rows, &machine);
    print!("{page}");
    std::fs::write(&options.page, page).with_context(|| options.page.display().to_string())?;
    std::fs::write(&options.numbers, numbers(&rows)).with_context(|| options.numbers.display().to_string())?;
    Ok(true)
}

/// From which work on leaving costs less than [`WORTH`] of it, in nanoseconds: what leaving costs on the median, over that part.
fn break_even_ns(rows: &[Row]) -> f64 {
    median(rows.iter().map(Row::extra_ns)) / WORTH
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn page(rows: &[Row], machine: &str) -> String {
    let break_even = break_even_ns(rows);
    let expected = break_even * median(rows.iter().map(|row| row.expected_ns() / row.stays.cpu_ns.max(1.0)));
    let mut page = format!(
        "# Where leaving the worker pays\n\nWritten by `terse-lab breakeven`: {machine}\n\nA body of made-up JavaScript is compressed to gzip by \
         the worker itself, and by a thread of the offload queue on the same core. µs for each body: what the \
         proxy expects by its tables, which are of text that is harder, processor time in place, what leaving adds to it, the same \
         as part of it, and how much later the body is there.\n\n\
         | level | bytes | expected | in place | leaving adds | part | later |\n|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let (cpu, extra, later) = (row.stays.cpu_ns, row.extra_ns(), row.leaves.wall_ns - row.stays.wall_ns);
        let _ = writeln!(
            page,
            "| {} | {} | {:.1} | {:.1} | {:.1} | {:.0} % | {:.1} |",
            row.level,
            row.bytes,
            row.expected_ns() / 1e3,
            cpu / 1e3,
            extra / 1e3,
            100.0 * extra / cpu.max(1.0),
            later / 1e3
        );
    }
    let _ = writeln!(
        page,
        "\nOn the median leaving adds {:.1} µs. That is less than {:.0} % of the work from {:.0} µs of it on, which the proxy \
         expects to be {:.0} µs. Its constant is {} µs.",
        break_even * WORTH / 1e3,
        100.0 * WORTH,
        break_even / 1e3,
        expected / 1e3,
        terse_compress::body::IN_PLACE_NS / 1000
    );
    page
}

fn numbers(rows: &[Row]) -> String {
    let mut text = String::from("level\tbytes\tcpu_in_place_ns\tcpu_away_ns\twall_in_place_ns\twall_away_ns\n");
    for row in rows {
        let (stays, leaves) = (row.stays, row.leaves);
        let _ = writeln!(
            text,
            "{}\t{}\t{:.0}\t{:.0}\t{:.0}\t{:.0}",
            row.level, row.bytes, stays.cpu_ns, leaves.cpu_ns, stays.wall_ns, leaves.wall_ns
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stays: f64, leaves: f64) -> Row {
        let cost = |cpu_ns| Cost { cpu_ns, wall_ns: cpu_ns };
        Row { level: 6, bytes: 1, stays: cost(stays), leaves: cost(leaves) }
    }

    #[test]
    fn the_price_over_the_part_is_the_break_even() {
        let rows = [row(1000.0, 11_000.0), row(50_000.0, 62_000.0), row(900_000.0, 890_000.0)];
        assert_eq!(break_even_ns(&rows), 10_000.0 / WORTH);
        let page = page(&rows, "a machine");
        assert!(page.contains("breakeven`: a machine\n") && page.contains(" | 50.0 | 12.0 | 24 % | 12.0 |"), "{page}");
        assert!(page.contains("\nOn the median leaving adds 10.0 µs. That is less than 5 % of the work from 200 µs"), "{page}");
        assert_eq!(numbers(&rows).lines().count(), 4);
    }

    #[test]
    fn both_ways_are_measured() {
        let (stays, leaves) = Trial::new(1).unwrap().costs(2048, 1).unwrap();
        assert!(stays.cpu_ns > 0.0 && leaves.wall_ns > 0.0);
    }
}
