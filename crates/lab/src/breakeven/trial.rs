//! A body, compressed in place and away.

use crate::content::script;
use anyhow::{Result, anyhow};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::sync::Arc;
use std::time::Instant;
use terse_compress::{Compressor, EngineId, Limit, Plan, Pool, Queue, Tuning, Workplace};
use tokio::runtime::Runtime;

/// Cost of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Processor time of the process.
    pub(super) cpu_ns: f64,
    /// From its first byte to its last.
    pub(super) wall_ns: f64,
}

/// A worker's means, twice.
pub(super) struct Trial {
    runtime: Runtime,
    plan: Plan,
    stays: Arc<Workplace>,
    leaves: Arc<Workplace>,
    /// Engine that does the jobs of the queue, if not software, and the process that it runs in.
    engine: Option<(EngineId, Pid)>,
}

/// Bytes that are compressed in one go: long enough for the clocks.
const BYTES_A_ROUND: usize = 2 << 20;

impl Trial {
    /// By software.
    pub(super) fn new(plan: Plan) -> Result<Trial> {
        Trial::with(plan, Queue::start(1, terse_compress::offload::DEFAULT_NICE, 64)?.into(), None)
    }

    /// In a queue, and there by an engine if one is named.
    pub(super) fn with(plan: Plan, queue: Arc<Queue>, engine: Option<(EngineId, Pid)>) -> Result<Trial> {
        let place = |in_place_ns| {
            Arc::new(Workplace {
                pool: Arc::new(Pool::new(Tuning::default())),
                queue: Some(queue.clone()),
                budget: Arc::new(Limit::new(64 << 20)),
                in_place_ns,
                meter: None,
                brake: None,
            })
        };
        Ok(Trial {
            runtime: tokio::runtime::Builder::new_current_thread().build()?,
            plan,
            stays: place(u64::MAX),
            leaves: place(0),
            engine,
        })
    }

    /// Costs of bodies of that size in place and away: the best of `rounds`, in turns.
    pub(super) fn costs(&self, bytes: usize, rounds: usize) -> Result<(Cost, Cost)> {
        let body = body(bytes);
        let (mut stays, mut leaves) = (WORST, WORST);
        for _ in 0..rounds.max(1) {
            stays = best(stays, self.cost(&body, &self.stays)?);
            leaves = best(leaves, self.cost(&body, &self.leaves)?);
        }
        Ok((stays, leaves))
    }

    fn cost(&self, body: &[u8], place: &Arc<Workplace>) -> Result<Cost> {
        let times = (BYTES_A_ROUND / body.len().max(1)).clamp(8, 512);
        self.runtime.block_on(async {
            let (cpu, wall) = (self.cpu_ns()?, Instant::now());
            for _ in 0..times {
                let fault = |_| anyhow!("the coder is broken");
                let mut compressor = Compressor::new(self.plan, Some(body.len() as u64), body.len(), place);
                compressor.prefer(self.engine.map(|(id, _)| id));
                let step = compressor.feed(body).map_err(fault)?;
                compressor.settle(step).await.map_err(fault)?;
                let step = compressor.finish().map_err(fault)?;
                compressor.settle(step).await.map_err(fault)?;
                drop(compressor.take_output());
            }
            let each = |ns: f64| ns / times as f64;
            Ok(Cost { cpu_ns: each(self.cpu_ns()? - cpu), wall_ns: each(wall.elapsed().as_nanos() as f64) })
        })
    }

    /// Processor time of this process, and of the engine's.
    fn cpu_ns(&self) -> Result<f64> {
        let mut clocks = vec![ClockId::CLOCK_PROCESS_CPUTIME_ID];
        if let Some((_, process)) = self.engine {
            clocks.push(ClockId::pid_cpu_clock_id(process)?);
        }
        let times: nix::Result<Vec<_>> = clocks.into_iter().map(clock_gettime).collect();
        Ok(times?.into_iter().map(|time| time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64).sum())
    }
}

/// A body of so many bytes.
pub(super) fn body(bytes: usize) -> Vec<u8> {
    script::script(bytes as u64, bytes, usize::MAX).bytes
}

const WORST: Cost = Cost { cpu_ns: f64::INFINITY, wall_ns: f64::INFINITY };

fn best(one: Cost, other: Cost) -> Cost {
    Cost { cpu_ns: one.cpu_ns.min(other.cpu_ns), wall_ns: one.wall_ns.min(other.wall_ns) }
}
