//! How long the coding of one client's body holds a worker, and a thread of the offload queue.
//!
//! A body goes through the compressor that the proxy uses, the way that a worker drives it, and each call is timed by the processor
//! time of this thread. What the compressor sends away is done by a thread of a queue, as in the proxy. A second run, without a queue
//! but as patient as one, does all steps here: the longest of them is how long a thread has a body before another's turn.

use crate::bench::machine;
use crate::clock::thread_time;
use crate::content::script;
use anyhow::{Context, Result, anyhow};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use terse_compress::body::{DEFAULT_COLLECT_BYTES, Fault, IN_PLACE_NS};
use terse_compress::{Coding, Compressor, Level, Limit, Plan, Pool, Queue, Step, Tuning, Workplace, offload};
use tokio::runtime::Runtime;

/// File for the results.
#[derive(Clone, Debug)]
pub struct Options {
    /// File for the page.
    pub page: PathBuf,
    /// Measurements of each; the least is kept.
    pub rounds: usize,
}

/// Codings and levels that are measured.
const PLANS: [(Coding, &[u8]); 3] =
    [(Coding::Gzip, &[1, 6, 9]), (Coding::Brotli, &[0, 2, 4, 5, 6, 7, 9]), (Coding::Zstd, &[1, 3, 6, 9, 12, 15, 19])];

/// Bytes of a stream.
const STREAM_BYTES: usize = 4 << 20;
/// The same at levels that take a second for so many.
const SHORT_STREAM_BYTES: usize = 1 << 20;
/// Nanoseconds a byte of such levels.
const SLOW_NS: u64 = 150;

/// Way in which a body comes.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// Bytes at a time.
    piece: usize,
    /// Pieces between two pauses of the server.
    pause_every: usize,
    is_stream: bool,
}

const WAYS: [Way; 4] = [
    Way { name: "in pieces of 4 KB", piece: 4096, pause_every: usize::MAX, is_stream: true },
    Way { name: "of 16 KB, a pause behind each third", piece: 16 * 1024, pause_every: 3, is_stream: true },
    Way { name: "of 64 KB", piece: 64 * 1024, pause_every: usize::MAX, is_stream: true },
    Way { name: "whole, 256 KB", piece: 64 * 1024, pause_every: usize::MAX, is_stream: false },
];

/// What was seen of a body.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    longest_ns: u64,
    jobs: u64,
}

/// Measures, and writes the page.
pub fn run(options: &Options) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let queue = Arc::new(Queue::start(1, offload::DEFAULT_NICE, 64)?);
    let mut page = format!(
        "# How long a body holds a worker\n\nWritten by `terse-lab holds`: {}\n\nMade-up JavaScript of {} MB ({} MB at levels that take more than \
         {SLOW_NS} ns a byte) as streams, of {} KB as whole bodies. The longest call of a worker's in µs of processor time, and in \
         parentheses the jobs that went to the queue; behind the bar the longest step of a thread. A call may take {} µs, by what the \
         proxy expects.\n\n",
        machine::description(),
        STREAM_BYTES >> 20,
        SHORT_STREAM_BYTES >> 20,
        DEFAULT_COLLECT_BYTES >> 10,
        IN_PLACE_NS / 1000
    );
    let _ = writeln!(page, "| | {} |\n|---|{}", WAYS.map(|way| way.name).join(" | "), "---|".repeat(WAYS.len()));
    for (coding, levels) in PLANS {
        for level in levels {
            let mut row = format!("| {} {level}", coding.word());
            for way in WAYS {
                let plan = Plan { coding, level: Level(*level) };
                let at_worker = best(options.rounds, || trial(&runtime, plan, way, Some(queue.clone())))?;
                let at_thread = best(options.rounds, || trial(&runtime, plan, way, None))?;
                let us = |seen: Seen| seen.longest_ns / 1000;
                let _ = write!(row, " | {} ({}) \\| {}", us(at_worker), at_worker.jobs, us(at_thread));
            }
            println!("{row} |");
            page += &format!("{row} |\n");
        }
    }
    std::fs::write(&options.page, page).with_context(|| options.page.display().to_string())?;
    Ok(true)
}

fn best(rounds: usize, mut trial: impl FnMut() -> Result<Seen>) -> Result<Seen> {
    let mut best = trial()?;
    for _ in 1..rounds {
        let next = trial()?;
        if next.longest_ns < best.longest_ns {
            best = next;
        }
    }
    Ok(best)
}

/// A body on its way, beside a queue or without.
fn trial(runtime: &Runtime, plan: Plan, way: Way, queue: Option<Arc<Queue>>) -> Result<Seen> {
    let is_slow = terse_compress::coder::Engine::of(plan.coding).stream_ns(plan.level, 1) > SLOW_NS;
    let bytes = match (way.is_stream, is_slow) {
        (false, _) => DEFAULT_COLLECT_BYTES,
        (true, true) => SHORT_STREAM_BYTES,
        (true, false) => STREAM_BYTES,
    };
    let body = script::script(7, bytes, usize::MAX).bytes;
    let place = Arc::new(Workplace {
        pool: Arc::new(Pool::new(Tuning::default())),
        queue,
        budget: Arc::new(Limit::new(256 << 20)),
        in_place_ns: IN_PLACE_NS,
        meter: None,
        brake: None,
    });
    let collect = if way.is_stream { 0 } else { DEFAULT_COLLECT_BYTES };
    let mut seen = Seen::default();
    // The second time states are warm.
    for _ in 0..2 {
        seen = Seen::default();
        let compressor = Compressor::new(plan, Some(body.len() as u64), collect, &place);
        runtime.block_on(drive(compressor, &body, way, &mut seen)).map_err(|_| anyhow!("the coder is broken"))?;
    }
    Ok(seen)
}

async fn drive(mut compressor: Compressor, body: &[u8], way: Way, seen: &mut Seen) -> Result<(), Fault> {
    for (i, piece) in body.chunks(way.piece).enumerate() {
        settle(&mut compressor, seen, |compressor| compressor.feed(piece)).await?;
        if i % way.pause_every == way.pause_every - 1 {
            settle(&mut compressor, seen, Compressor::pause).await?;
        }
    }
    settle(&mut compressor, seen, Compressor::finish).await
}

/// A call and what follows from it.
async fn settle(
    compressor: &mut Compressor,
    seen: &mut Seen,
    call: impl FnOnce(&mut Compressor) -> Result<Step, Fault>,
) -> Result<(), Fault> {
    let mut step = timed(seen, || call(compressor))?;
    loop {
        step = match step {
            Step::Done => break,
            Step::Here(_) => timed(seen, || compressor.work())?,
            Step::Away(job) => {
                seen.jobs += 1;
                compressor.resume(job.await)?;
                break;
            }
        };
    }
    drop(compressor.take_output());
    compressor.delivered();
    Ok(())
}

fn timed<T>(seen: &mut Seen, work: impl FnOnce() -> T) -> T {
    let now = || thread_time().unwrap_or_default();
    let before = now();
    let done = work();
    seen.longest_ns = seen.longest_ns.max((now() - before).as_nanos() as u64);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_driven_with_a_queue_and_without() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let queue = Arc::new(Queue::start(1, 0, 8).unwrap());
        let plan = Plan { coding: Coding::Brotli, level: Level(5) };
        let with = trial(&runtime, plan, WAYS[3], Some(queue)).unwrap();
        let without = trial(&runtime, plan, WAYS[3], None).unwrap();
        assert!(with.jobs == 1 && without.jobs == 0 && without.longest_ns > with.longest_ns, "{with:?} {without:?}");
    }
}
