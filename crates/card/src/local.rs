//! Device whose library is called by threads of terse itself: for trusted libraries.
//!
//! Nothing can end a call that hangs: its thread is lost until it comes back. When all are lost, jobs are refused.

use crate::zlib::Library;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use terse_compress::EngineSettings;
use terse_compress::device::{Coded, Device, Failure, Order, Status, room_for};

/// A library in this process.
pub struct Local {
    shared: Arc<Shared>,
}

struct Shared {
    library: Library,
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Order>,
    /// Tickets of the jobs in progress.
    running: Vec<u64>,
    /// Tickets of overdue jobs.
    hanging: Vec<u64>,
    stopped: bool,
}

impl Local {
    /// Creates a device that calls a library on threads of this process.
    ///
    /// # Errors
    /// No threads could be started.
    pub fn open(library: Library, settings: &EngineSettings) -> io::Result<Local> {
        let shared = Arc::new(Shared { library, most: settings.jobs(), state: Mutex::default(), changed: Condvar::new() });
        let local = Local { shared };
        for _ in 0..settings.threads.max(1) {
            let shared = local.shared.clone();
            std::thread::Builder::new().name("terse-engine".into()).spawn(move || shared.work())?;
        }
        Ok(local)
    }
}

impl Device for Local {
    fn submit(&self, batch: Vec<Order>) {
        for order in batch {
            let mut state = self.shared.lock();
            if state.stopped || state.waiting.len() + state.running.len() >= self.shared.most {
                drop(state);
                order.end(Err(Failure::Refused));
                continue;
            }
            state.waiting.push_back(order);
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    fn overdue(&self, ticket: u64) {
        let mut state = self.shared.lock();
        let waits = state.waiting.iter().position(|order| order.ticket == ticket);
        let order = waits.and_then(|at| state.waiting.remove(at));
        if state.running.contains(&ticket) {
            state.hanging.push(ticket);
        }
        drop(state);
        drop(order);
    }

    fn status(&self) -> Status {
        let hanging = self.shared.lock().hanging.len();
        let trouble = (hanging > 0).then(|| format!("{hanging} of its threads did not come back at a deadline"));
        Status { version: Some(self.shared.library.version()), process: Some(std::process::id()), starts: 1, trouble }
    }
}

impl Drop for Local {
    /// Threads that hang cannot be waited for.
    fn drop(&mut self) {
        let left = {
            let mut state = self.shared.lock();
            state.stopped = true;
            std::mem::take(&mut state.waiting)
        };
        self.shared.changed.notify_all();
        drop(left);
    }
}

impl Shared {
    fn work(&self) {
        while let Some(order) = self.next() {
            let (ticket, since) = (order.ticket, Instant::now());
            let mut room = vec![0; room_for(order.input.bytes())];
            let coded = self.library.code(order.input.iter(), order.wrapper, order.level, &mut room);
            {
                let mut state = self.lock();
                state.running.retain(|running| *running != ticket);
                state.hanging.retain(|hanging| *hanging != ticket);
            }
            order.end(match coded {
                Ok(bytes) => {
                    room.truncate(bytes);
                    room.shrink_to_fit();
                    Ok(Coded { bytes: room, took: since.elapsed() })
                }
                Err(code) => Err(Failure::Error(code)),
            });
        }
    }

    fn next(&self) -> Option<Order> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(order) = state.waiting.pop_front() {
                state.running.push(order.ticket);
                return Some(order);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
