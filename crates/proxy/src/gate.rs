//! Whether a frontend takes connections: an operator may pause it, let it go on, or close it for good.

use tokio::sync::watch;

/// A frontend's gate.
#[derive(Debug)]
pub struct Gate(watch::Sender<State>);

/// State of a frontend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It takes connections.
    Open,
    /// It takes no connections for now (`disable frontend`).
    Paused,
    /// It takes no connections any more (`shutdown frontend`).
    Closed,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate(watch::Sender::new(State::Open))
    }
}

impl Gate {
    /// The frontend's state now.
    pub fn state(&self) -> State {
        *self.0.borrow()
    }

    /// Lets it do this from now on.
    pub fn set(&self, state: State) {
        self.0.send_replace(state);
    }

    /// The same, to be awaited.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.0.subscribe()
    }
}
