//! Cost of a job that an engine does in a process of its own. The engine is the test card, which knows the bodies and so takes
//! hardly any of the processor's time itself.

use super::trial::{Trial, body};
use super::{SIZES, bench_library};
use crate::card;
use anyhow::{Context, Result, ensure};
use nix::unistd::Pid;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use terse_card::keeper::{Keeper, Launch};
use terse_card::remote::Remote;
use terse_compress::engine::Source;
use terse_compress::offload::{self, Standing};
use terse_compress::{Coding, Device, EngineId, EngineSettings, Level, Limit, Plan, Queue};

/// Variable for the file from which the card knows its results.
pub(super) const RESULTS: &str = "TERSE_TESTCARD_RESULTS";

/// Makes the results that the card is to know.
pub(super) fn prepare(folder: &Path) -> Result<()> {
    SIZES.iter().try_for_each(|bytes| card::keep(folder, &body(*bytes), LEVEL).map(drop))
}

/// Processor time of jobs of each size, in nanoseconds: this process's and the card's.
pub(super) fn costs(rounds: usize) -> Result<Vec<(usize, f64)>> {
    let settings = EngineSettings {
        name: "card".into(),
        source: Source::Library(bench_library()?),
        said_smallest: Some(0),
        ..EngineSettings::default()
    };
    let program = std::env::current_exe()?;
    let keeper = Keeper::start(&Launch { program: &program, user: None, group: None, forget: &[], quiet: false }, &settings)?;
    let device: Arc<dyn Device> = Arc::new(Remote::open(keeper, &settings, Arc::new(Limit::new(256 << 20)))?);
    let queue = Arc::new(Queue::with_engines(1, offload::DEFAULT_NICE, 64, vec![(settings, device)])?);
    let lane = queue.engines().first().context("no engine")?.clone();
    let begun = Instant::now();
    while lane.standing() != Standing::Up {
        ensure!(begun.elapsed() < PATIENCE, "the card does not come up: {:?}", lane.status());
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let process = lane.status().process.context("the card has no process")?;
    let plan = Plan { coding: Coding::Gzip, level: Level(6) };
    let trial = Trial::with(plan, queue, Some((EngineId(0), Pid::from_raw(i32::try_from(process)?))))?;
    let mut costs = Vec::new();
    for bytes in SIZES {
        costs.push((bytes, trial.costs(bytes, rounds)?.1.cpu_ns));
    }
    let fallen: u64 = offload::Cause::ALL.iter().map(|cause| lane.numbers().fallen(*cause)).sum();
    ensure!(fallen == 0 && lane.numbers().jobs.load(Relaxed) > 0, "software did {fallen} jobs of the card's");
    Ok(costs)
}

/// libdeflate's level of the results.
const LEVEL: i32 = 9;
const PATIENCE: Duration = Duration::from_secs(20);
