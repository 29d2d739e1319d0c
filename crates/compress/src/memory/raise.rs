//! Better forms of bodies that are asked for often, made when there is nothing else to do.
//!
//! A single thread, at the lowest priority that the system has. It is not the offload queue's: a body is compressed in a
//! single piece, which takes up to [`MOST_NS`] at these levels, and jobs after it would wait for so long. A worker hands over
//! a body that it has in hand, only when it is mostly idle itself; at most [`WAITING`] of them wait, and a body that does not
//! fit is offered again after some more hits.

use super::{Form, Memory, Name};
use crate::budget::Budget;
use crate::coder::{Engine, Pool, Tuning, dcz};
use crate::coding::{Coding, Level};
use crate::offload::{Queue, stand_back};
use crate::spent::{self, Site};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use terse_dictionary::Dictionary;

/// The thread that raises levels.
pub struct Raiser {
    give: SyncSender<Raise>,
}

/// Bodies that may wait for it.
const WAITING: usize = 4;

/// The most expected time of a body, in nanoseconds.
const MOST_NS: u64 = 500_000_000;

/// Niceness of the thread: the highest.
const NICE: u8 = 19;

impl Raiser {
    /// Starts the thread. It rests while jobs wait in `queue`. To be called after the process has become a daemon.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(queue: Option<Arc<Queue>>) -> std::io::Result<Raiser> {
        let (give, take) = sync_channel(WAITING);
        // Its end is not waited for: it holds nothing but memory, and a body may take it half a second.
        std::thread::Builder::new().name("terse-raise".into()).spawn(move || {
            stand_back(NICE);
            serve(&take, queue.as_deref());
        })?;
        Ok(Raiser { give })
    }

    /// The level that it would try for: the best that the coding has, under `most`, and that does not take too long.
    pub(crate) fn level(coding: Coding, most: Level, bytes: usize) -> Level {
        let engine = Engine::of(coding);
        let best = best(coding).min(most);
        (0..=best.0).rev().map(Level).find(|&level| engine.whole_ns(level, bytes) <= MOST_NS).unwrap_or(Level(0))
    }

    /// Hands over a body, if there is room for it.
    pub(crate) fn offer(&self, raise: Raise) {
        // A body that does not fit ends here, and reports so to the memory.
        let _ = self.give.try_send(raise);
    }
}

/// The highest level that is worth its time where there is enough of it.
fn best(coding: Coding) -> Level {
    // zstd above 16 wins a thousandth and takes twice as long. Brotli's 10 and
    // 11 and gzip's 10 are no levels that the configuration names: they are for this.
    Level(match coding {
        Coding::Zstd => 16,
        Coding::Brotli => 11,
        Coding::Gzip | Coding::Deflate | Coding::RawDeflate => 10,
        // Beside a dictionary it wins a tenth.
        Coding::Dcz => 19,
        Coding::Identity => 0,
    })
}

/// A body that could do with a better form. Whatever the outcome, it is reported to the memory.
pub(crate) struct Raise {
    memory: Arc<Memory>,
    name: Name,
    coding: Coding,
    level: Level,
    dictionary: Option<Arc<Dictionary>>,
    body: Vec<u8>,
    /// The budget that the body's memory counts against, and the counted bytes.
    budget: Arc<dyn Budget>,
    held: usize,
    better: Option<Form>,
}

impl Raise {
    /// A try for that level. `held` bytes of the budget go over with the body.
    pub(crate) fn new(
        (memory, name): (Arc<Memory>, Name),
        (coding, level): (Coding, Level),
        dictionary: Option<Arc<Dictionary>>,
        body: Vec<u8>,
        (budget, held): (Arc<dyn Budget>, usize),
    ) -> Raise {
        Raise { memory, name, coding, level, dictionary, body, budget, held, better: None }
    }

    fn run(mut self) {
        // A pool of its own: states for such levels are large, and this one goes with the body.
        let pool = Arc::new(Pool::new(Tuning::default()));
        let mut out = Vec::new();
        let code = || match &self.dictionary {
            Some(dictionary) => dcz::whole(&self.body, self.level, dictionary, &pool, &mut out),
            None => (Engine::of(self.coding).whole)(&self.body, self.level, &pool, &mut out),
        };
        if spent::timed(self.coding, Site::Idle, code).0.is_ok() {
            // A hit of it saves the time of the form before: no client would have waited for this form.
            self.better = Some(Form { coding: self.coding, level: self.level, bytes: out.into(), cost_ns: 0 });
        }
    }
}

impl Drop for Raise {
    fn drop(&mut self) {
        self.memory.raise(&self.name, self.coding, self.better.take());
        self.budget.give(self.held);
    }
}

fn serve(take: &Receiver<Raise>, queue: Option<&Queue>) {
    while let Ok(raise) = take.recv() {
        if queue.is_none_or(|queue| queue.numbers().waiting.load(Relaxed) == 0) {
            // A panic is an engine's fault: it ends the try, not the thread.
            let _ = catch_unwind(AssertUnwindSafe(|| raise.run()));
        }
    }
}
