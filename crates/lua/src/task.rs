//! `core.register_task`: functions that run beside traffic.

use crate::home::{House, complain};
use crate::lent;
use crate::run::{Callable, Failure, Limits, Run};
use crate::tuning::Tuning;
use std::rc::Rc;
use std::sync::Arc;
use terse_proxy::worker::Worker;

/// A function that runs independently of traffic.
pub(crate) struct Task {
    pub(crate) callable: Callable,
    pub(crate) args: mlua::MultiValue,
    pub(crate) house: Arc<dyn House>,
}

impl Task {
    /// Starts it on a worker.
    pub(crate) fn spawn(self, worker: &Rc<Worker>, tuning: Tuning) {
        let limits = Limits { total: tuning.task, burst: tuning.burst };
        let worker = worker.clone();
        tokio::task::spawn_local(async move {
            let mut run = match Run::start(&self.callable, self.args, limits) {
                Ok(run) => run,
                Err(_) => return,
            };
            let result = std::future::poll_fn(|cx| lent::worker(&worker, || run.poll(cx))).await;
            if let Err(Failure::Wrong(reason)) = result {
                lent::worker(&worker, || complain(&*self.house, &format!("Lua task: runtime error: {reason}")));
            }
        });
    }
}
