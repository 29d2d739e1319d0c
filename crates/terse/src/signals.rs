//! Signals and the orders that they give to the process.
//!
//! | signal | meaning |
//! |---|---|
//! | `SIGTERM`, `SIGINT` | stop at once |
//! | `SIGUSR1` | drain: stop listening, finish, leave |
//! | `SIGHUP` | log the servers' states; a master process reloads |
//! | `SIGUSR2` | a master process reloads; others do nothing |
//! | `SIGTTIN`, `SIGTTOU` | nothing: with them an HAProxy that starts asks an old one to pause its listeners |

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Order given by a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// End now; the signal's number.
    Stop(i32),
    /// Close the listeners, let open connections finish, then end.
    Drain,
    /// Log the servers' states.
    Report,
    /// Let another process take over.
    Reload,
}

/// The signals of this process. From here on none of them has its default effect.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    drain: Signal,
    report: Signal,
    reload: Signal,
    _without_effect: [Signal; 2],
}

impl Signals {
    /// Catches the signals; needs a runtime.
    ///
    /// # Errors
    /// The system's error.
    pub fn new() -> io::Result<Signals> {
        let ignored = |number: i32| signal(SignalKind::from_raw(number));
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            drain: signal(SignalKind::user_defined1())?,
            report: signal(SignalKind::hangup())?,
            reload: signal(SignalKind::user_defined2())?,
            _without_effect: [ignored(libc::SIGTTIN)?, ignored(libc::SIGTTOU)?],
        })
    }

    /// Waits for the next order.
    pub async fn next(&mut self) -> Order {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Order::Stop(libc::SIGTERM),
            _ = self.interrupt.recv() => Order::Stop(libc::SIGINT),
            _ = self.drain.recv() => Order::Drain,
            _ = self.report.recv() => Order::Report,
            _ = self.reload.recv() => Order::Reload,
        }
    }
}
