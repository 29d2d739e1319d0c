//! From serving to the end: the control thread's loop.
//!
//! ```text
//!   Serving --Drain--> Grace --'grace' is over--> Draining --'hard-stop-after' is over--> Stopping
//!      |                 |                           |
//!      +------ Stop -----+----------- Stop ----------+----------------------------------> Stopping
//!
//!   any --the last worker has ended--> the end
//!   any --a worker has failed--------> Stopping
//! ```

use crate::crew::{Crew, End};
use crate::signals::Order;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// Time limits of the process's end.
#[derive(Clone, Copy, Default, Debug)]
pub struct Leave {
    /// `grace`: between the order to drain and its execution.
    pub grace: Duration,
    /// `hard-stop-after`: the longest drain; `None`: as long as it takes.
    pub most: Option<Duration>,
}

/// Action at a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Close the listeners, let open connections finish.
    Drain,
    /// Cut open connections.
    Stop,
    /// Log the servers' states.
    Report,
}

/// Outcome of a course.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// The number of the signal that stopped it, if one did.
    pub signal: Option<i32>,
    /// Workers that failed: their index and the reason.
    pub failures: Vec<(usize, String)>,
}

/// Waits for orders and workers' ends, and calls `act` at every turn, until no worker is left.
pub async fn run(crew: &mut Crew, orders: &mut UnboundedReceiver<Order>, leave: Leave, mut act: impl FnMut(Turn)) -> Outcome {
    let mut outcome = Outcome::default();
    let mut phase = Phase::Serving;
    loop {
        let deadline = phase.deadline();
        tokio::select! {
            order = next(orders) => match order {
                Order::Report => act(Turn::Report),
                Order::Drain if phase == Phase::Serving => phase = Phase::Grace { until: Instant::now() + leave.grace },
                Order::Drain | Order::Reload => {}
                Order::Stop(signal) => {
                    outcome.signal.get_or_insert(signal);
                    phase.stop(&mut act);
                }
            },
            () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => match phase {
                Phase::Grace { .. } => {
                    act(Turn::Drain);
                    phase = Phase::Draining { until: leave.most.map(|most| Instant::now() + most) };
                }
                _ => phase.stop(&mut act),
            },
            end = crew.next_end() => match end {
                None => return outcome,
                Some(End { failure: None, .. }) => {}
                Some(End { index, failure: Some(reason) }) => {
                    outcome.failures.push((index, reason));
                    phase.stop(&mut act);
                }
            },
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Serving,
    Grace { until: Instant },
    Draining { until: Option<Instant> },
    Stopping,
}

impl Phase {
    fn deadline(self) -> Option<Instant> {
        match self {
            Phase::Serving | Phase::Stopping => None,
            Phase::Grace { until } => Some(until),
            Phase::Draining { until } => until,
        }
    }

    fn stop(&mut self, act: &mut impl FnMut(Turn)) {
        if *self != Phase::Stopping {
            *self = Phase::Stopping;
            act(Turn::Stop);
        }
    }
}

/// Waits for the next order. When no sender is left, it waits for ever.
async fn next(orders: &mut UnboundedReceiver<Order>) -> Order {
    match orders.recv().await {
        Some(order) => order,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crew::Job;
    use std::sync::mpsc::{Receiver, channel};
    use tokio::sync::mpsc::unbounded_channel;

    /// Runs a course with one worker, which ends at the turns in `ends_at`; the orders are given one by one, each after the turn that
    /// the one before has caused.
    fn course(orders: &[Order], leave: Leave, ends_at: &'static [Turn]) -> (Vec<Turn>, Outcome) {
        let (tell, told): (_, Receiver<Turn>) = channel();
        let work = move || {
            while !ends_at.contains(&told.recv().map_err(std::io::Error::other)?) {}
            Ok(())
        };
        let (give, mut given) = unbounded_channel();
        let mut waiting = orders.iter().copied();
        waiting.next().into_iter().for_each(|order| give.send(order).unwrap());
        let mut turns = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome = runtime.block_on(async {
            let mut crew = Crew::start(vec![Job { processors: None, work: Box::new(work) }]).unwrap();
            let act = |turn| {
                turns.push(turn);
                tell.send(turn).unwrap();
                waiting.next().into_iter().for_each(|order| give.send(order).unwrap());
            };
            run(&mut crew, &mut given, leave, act).await
        });
        (turns, outcome)
    }

    const STOP: Order = Order::Stop(15);

    #[test]
    fn a_signal_stops() {
        let (turns, outcome) = course(&[Order::Report, STOP], Leave::default(), &[Turn::Stop]);
        assert_eq!((turns, outcome.signal), (vec![Turn::Report, Turn::Stop], Some(15)));
    }

    #[test]
    fn a_drain_waits_for_what_runs() {
        let (turns, outcome) = course(&[Order::Drain], Leave::default(), &[Turn::Drain]);
        assert_eq!((turns, outcome), (vec![Turn::Drain], Outcome::default()));
        let (turns, outcome) = course(&[Order::Drain, Order::Report, STOP], Leave::default(), &[Turn::Stop]);
        assert_eq!((turns, outcome.signal), (vec![Turn::Drain, Turn::Report, Turn::Stop], Some(15)));
    }

    #[test]
    fn a_drain_has_an_end() {
        let leave = Leave { grace: Duration::from_millis(1), most: Some(Duration::from_millis(1)) };
        let (turns, outcome) = course(&[Order::Drain], leave, &[Turn::Stop]);
        assert_eq!((turns, outcome.signal), (vec![Turn::Drain, Turn::Stop], None));
    }

    #[test]
    fn a_worker_that_fails_stops_all() {
        let (give, mut given) = unbounded_channel();
        let (tell, told) = channel::<()>();
        let jobs: [Box<dyn FnOnce() -> std::io::Result<()> + Send>; 2] =
            [Box::new(|| Err(std::io::Error::other("broken"))), Box::new(move || told.recv().map_err(std::io::Error::other))];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome = runtime.block_on(async {
            let mut crew = Crew::start(jobs.into_iter().map(|work| Job { processors: None, work }).collect()).unwrap();
            run(&mut crew, &mut given, Leave::default(), |_| tell.send(()).unwrap()).await
        });
        assert_eq!(outcome, Outcome { signal: None, failures: vec![(0, "broken".into())] });
        drop(give);
    }
}
