//! The size from which on compression should leave its worker: the cost of leaving, against the cost of staying for the other
//! clients.
//!
//! The same bodies are compressed twice, by the compressor that the proxy uses: in place, and by the offload queue. Leaving costs
//! processor time (the job is handed over, a thread wakes, the worker is woken) and the body itself arrives later. Staying makes
//! every other client of the worker wait for the whole of it. Leaving pays from where it costs less than [`WORTH`] of the work.
//! Below that, the wait that others are spared is short, and its price would be a good part of it.
//!
//! Also measured is the cost of a job that goes on to an engine in a process of its own. It stands beside the cost of software in
//! place: the engine pays from where it costs less.

mod engine;
mod trial;

use crate::bench::card::library as bench_library;
use crate::bench::machine;
use crate::cores;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use terse_card::keeper;
use terse_compress::coder::Engine;
use terse_compress::{Coding, EngineSettings, Level, Plan};
use trial::{Cost, Trial};

/// Length of the measurement, and files for the results.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of measurements of each size in each way; the best one is kept.
    pub rounds: usize,
    /// File for the page.
    pub page: PathBuf,
    /// File for the numbers.
    pub numbers: PathBuf,
}

/// Sizes of bodies, in bytes.
const SIZES: [usize; 12] = [512, 1024, 2048, 4096, 8192, 12_288, 16_384, 24_576, 32_768, 65_536, 131_072, 262_144];

/// The part of a job's own time that leaving may cost.
const WORTH: f64 = 0.05;

/// Codings and levels that are measured.
const PLANS: [Plan; 8] = [
    plan(Coding::Gzip, 1),
    plan(Coding::Gzip, 6),
    plan(Coding::Gzip, 9),
    plan(Coding::Zstd, 1),
    plan(Coding::Zstd, 6),
    plan(Coding::Brotli, 1),
    plan(Coding::Brotli, 4),
    plan(Coding::Brotli, 6),
];

const fn plan(coding: Coding, level: u8) -> Plan {
    Plan { coding, level: Level(level) }
}

/// Costs measured for one size.
#[derive(Clone, Copy, Debug)]
struct Row {
    plan: Plan,
    bytes: usize,
    stays: Cost,
    leaves: Cost,
    /// Time that the proxy expects the work to take, in nanoseconds: by that it decides.
    expected_ns: f64,
}

impl Row {
    /// Cost of leaving, in nanoseconds of processor time.
    fn extra_ns(&self) -> f64 {
        (self.leaves.cpu_ns - self.stays.cpu_ns).max(0.0)
    }
}

/// Runs this process as the keeper of the card, if it has been started as that.
pub fn keeper() -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (word, rest) = words.split_first()?;
    (word == keeper::WORD).then(|| keeper::keep(rest))
}

/// Measures, and writes both files.
pub fn run(options: &Options) -> Result<bool> {
    if std::env::var_os(engine::RESULTS).is_none() {
        // The environment tells the card the results that it knows, so the process that starts it must have that.
        let folder = tempfile::Builder::new().prefix("terse-card-").tempdir()?;
        engine::prepare(folder.path())?;
        let mut again = Command::new(std::env::current_exe()?);
        again.args(std::env::args_os().skip(1)).env(engine::RESULTS, folder.path());
        return Ok(again.status()?.success());
    }
    // As in production at the worst: the worker and the queue's thread share a core.
    let (core, machine) = (*cores::available().first().context("no core")?, machine::description());
    cores::pin_this_thread(core)?;
    let mut rows = Vec::new();
    for plan in PLANS {
        let trial = Trial::new(plan)?;
        for bytes in SIZES {
            let (stays, leaves) = trial.costs(bytes, options.rounds)?;
            let expected_ns = Engine::of(plan.coding).body_ns(plan.level, &trial::body(bytes)) as f64;
            rows.push(Row { plan, bytes, stays, leaves, expected_ns });
        }
    }
    let page = page(&rows, &machine) + &card_page(&engine::costs(options.rounds)?, &rows);
    print!("{page}");
    std::fs::write(&options.page, page).with_context(|| options.page.display().to_string())?;
    std::fs::write(&options.numbers, numbers(&rows)).with_context(|| options.numbers.display().to_string())?;
    Ok(true)
}

/// Work from which on leaving costs less than [`WORTH`] of it, in nanoseconds: the median cost of leaving, over that part.
fn break_even_ns(rows: &[Row]) -> f64 {
    median(rows.iter().map(Row::extra_ns)).unwrap_or(0.0) / WORTH
}

/// The number in the middle; none of no numbers.
pub(crate) fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn page(rows: &[Row], machine: &str) -> String {
    let break_even = break_even_ns(rows);
    let expected = break_even * median(rows.iter().map(|row| row.expected_ns / row.stays.cpu_ns.max(1.0))).unwrap_or(0.0);
    let mut page = format!(
        "# Where leaving the worker pays\n\nWritten by `terse-lab breakeven`: {machine}\n\nA body of made-up JavaScript is compressed by \
         the worker itself, and by a thread of the offload queue on the same core. µs for each body: what the \
         proxy expects by its tables, most of which are of text that is harder, processor time in place, what leaving adds to it, the same \
         as part of it, and how much later the body is there.\n\n\
         | coding | level | bytes | expected | in place | leaving adds | part | later |\n|---|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let (cpu, extra, later) = (row.stays.cpu_ns, row.extra_ns(), row.leaves.wall_ns - row.stays.wall_ns);
        let _ = writeln!(
            page,
            "| {} | {} | {} | {:.1} | {:.1} | {:.1} | {:.0} % | {:.1} |",
            row.plan.coding.word(),
            row.plan.level.0,
            row.bytes,
            row.expected_ns / 1e3,
            cpu / 1e3,
            extra / 1e3,
            100.0 * extra / cpu.max(1.0),
            later / 1e3
        );
    }
    let _ = writeln!(
        page,
        "\nOn the median leaving adds {:.1} µs. That is less than {:.0} % of the work from {:.0} µs of it on, which the proxy \
         expects to be {:.0} µs. Its constant is {:.0} µs: of what it expects to take between two thirds of that and that, \
         leaving would cost more than this for {}, and of what is up to half as much longer, for {}.",
        break_even * WORTH / 1e3,
        100.0 * WORTH,
        break_even / 1e3,
        expected / 1e3,
        CONSTANT_NS / 1e3,
        dear(rows, CONSTANT_NS / 1.5..CONSTANT_NS),
        dear(rows, CONSTANT_NS..CONSTANT_NS * 1.5)
    );
    page
}

/// The proxy's.
const CONSTANT_NS: f64 = terse_compress::body::IN_PLACE_NS as f64;

/// Number of the rows in that range for which leaving costs more than [`WORTH`].
fn dear(rows: &[Row], expected_ns: std::ops::Range<f64>) -> String {
    let near: Vec<&Row> = rows.iter().filter(|row| expected_ns.contains(&row.expected_ns)).collect();
    let dear = near.iter().filter(|row| row.extra_ns() > WORTH * row.stays.cpu_ns).count();
    format!("{dear} of {}", near.len())
}

/// Costs of jobs that the card does, beside software in place.
fn card_page(costs: &[(usize, f64)], rows: &[Row]) -> String {
    let mut page = String::from(
        "\n## Engines\n\nA job that goes to a library in a process of its own: µs of processor time of both processes, with the check of its \
         checksum. The library is the simulated card, which takes next to nothing itself. Beside it gzip by software in place, at each level.\n\n\
         | bytes | the card | level 1 | level 6 | level 9 |\n|---|---|---|---|---|\n",
    );
    let in_place = |level, bytes| {
        let mut of_plan = rows.iter().filter(|row| row.plan == plan(Coding::Gzip, level));
        of_plan.find(|row| row.bytes == bytes).map_or(0.0, |row| row.stays.cpu_ns)
    };
    for &(bytes, cost) in costs {
        let software = [1, 6, 9].map(|level| format!("{:.1}", in_place(level, bytes) / 1e3)).join(" | ");
        let _ = writeln!(page, "| {bytes} | {:.1} | {software} |", cost / 1e3);
    }
    // From where on it costs less at every size that was measured.
    let pays_from = |level| {
        let dearer = costs.iter().rposition(|&(bytes, cost)| cost >= in_place(level, bytes));
        costs.get(dearer.map_or(0, |last| last + 1)).map_or("no size".into(), |(bytes, _)| format!("{bytes} bytes"))
    };
    let _ = writeln!(
        page,
        "\nIt costs less than software from {} on at level 1, {} at level 6, {} at level 9. Without `smallest` an engine is given bodies from {} on: a card that is \
         there has a driver, which takes something itself.",
        pays_from(1),
        pays_from(6),
        pays_from(9),
        EngineSettings::default().smallest()
    );
    page
}

fn numbers(rows: &[Row]) -> String {
    let mut text = String::from("coding\tlevel\tbytes\tcpu_in_place_ns\tcpu_away_ns\twall_in_place_ns\twall_away_ns\n");
    for row in rows {
        let (stays, leaves) = (row.stays, row.leaves);
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{:.0}\t{:.0}\t{:.0}\t{:.0}",
            row.plan.coding.word(),
            row.plan.level.0,
            row.bytes,
            stays.cpu_ns,
            leaves.cpu_ns,
            stays.wall_ns,
            leaves.wall_ns
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stays: f64, leaves: f64) -> Row {
        let cost = |cpu_ns| Cost { cpu_ns, wall_ns: cpu_ns };
        Row { plan: plan(Coding::Gzip, 6), bytes: 1, stays: cost(stays), leaves: cost(leaves), expected_ns: 2.0 * stays }
    }

    #[test]
    fn the_price_over_the_part_is_the_break_even() {
        let rows = [row(1000.0, 11_000.0), row(50_000.0, 62_000.0), row(900_000.0, 890_000.0)];
        assert_eq!(break_even_ns(&rows), 10_000.0 / WORTH);
        let page = page(&rows, "a machine");
        assert!(page.contains("breakeven`: a machine\n") && page.contains(" | 100.0 | 50.0 | 12.0 | 24 % | 12.0 |"), "{page}");
        assert!(page.contains("\nOn the median leaving adds 10.0 µs. That is less than 5 % of the work from 200 µs"), "{page}");
        assert_eq!(numbers(&rows).lines().count(), 4);
    }

    #[test]
    fn an_engine_pays_where_it_costs_less_at_every_size() {
        let gzip = |level, bytes, ns| Row { plan: plan(Coding::Gzip, level), bytes, ..row(ns, ns) };
        let rows: Vec<Row> = [(1, 9000.0), (2, 40_000.0), (3, 90_000.0)].map(|(bytes, ns)| gzip(6, bytes, ns)).into();
        let page = card_page(&[(1, 8000.0), (2, 41_000.0), (3, 42_000.0)], &rows);
        assert!(page.contains("| 2 | 41.0 | 0.0 | 40.0 | 0.0 |\n"), "{page}");
        assert!(page.contains("from no size on at level 1, 3 bytes at level 6"), "{page}");
    }

    #[test]
    fn both_ways_are_measured() {
        let (stays, leaves) = Trial::new(plan(Coding::Brotli, 1)).unwrap().costs(2048, 1).unwrap();
        assert!(stays.cpu_ns > 0.0 && leaves.wall_ns > 0.0);
    }
}
