//! Bytes that pass unchanged between two plain TCP sockets, without entering the process: `option splice-request`, `splice-response`
//! and `splice-auto`.
//!
//! ```text
//!  one socket --splice(2)--> pipe --splice(2)--> other socket
//!       ^                                            |
//!       +---- when the pipe is empty again <---------+
//! ```
//! Framing (heads, sizes of chunks, trailers) is read and written as ever; data that is known to be many bytes goes through
//! pipes: the rest of a body with a known length, of a large chunk, or of a body that ends with the connection and comes
//! quickly. A pipe is held from the moment when bytes are in it until they are out: a wait for a sender holds none. Where no
//! pipe is to be had, bytes are copied.
//!
//! **Invariant:** bytes in a pipe have left one socket and not yet reached the other: a body that breaks ends both connections, and
//! nothing of it is sent again. The exchange's own rules see to that, as they do for bytes that were read and are gone.

use crate::exchange::{Broken, Receiver, Sender};
use crate::filter::{self, Direction, Passage};
use crate::plan::roll::Held;
use crate::session::Session;
use crate::stream::Stream;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// The way of a direction's bytes, when they go as they are.
pub struct Way {
    /// The filters that they go through.
    pub passage: Option<Passage>,
    /// Whether they may go around the process: only where they go through no filter.
    pub splicing: Option<Splicing>,
}

/// Bytes of a direction may go through pipes.
pub struct Splicing {
    session: Rc<Session>,
    backend: Option<Held>,
    direction: Direction,
    /// `option splice-auto`: only while they come quickly.
    when_quick: bool,
    /// The system has reported that it does not do it with these sockets.
    refused: Cell<bool>,
}

/// The side on which bytes broke off.
#[derive(Debug)]
pub enum Broke {
    /// The side that they come from.
    Receiver(Broken),
    /// The side that they go to.
    Sender(io::Error),
}

/// Which directions a proxy lets go through pipes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SpliceOptions {
    /// `option splice-auto`
    pub auto: bool,
    /// `option splice-request`
    pub request: bool,
    /// `option splice-response`
    pub response: bool,
}

impl SpliceOptions {
    /// Whether any of them is on.
    pub fn any(self) -> bool {
        self.auto || self.request || self.response
    }
}

/// The connections whose bytes may go through pipes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spliced {
    /// The limits of frontends that let them, together.
    pub frontends: usize,
    /// `fullconn` of backends that let them, together.
    pub backends: usize,
    /// Whether a frontend lets them that has no limit but the process's.
    pub is_open: bool,
    /// Number of backends that let them and do not set `fullconn`.
    pub open_backends: usize,
}

impl Spliced {
    /// Limit of their number, for a process's number of connections; `None`: as many as these, which is not known yet.
    pub fn connections(self, of_process: Option<usize>) -> Option<usize> {
        let Some(most) = of_process else {
            let is_open = self.is_open || self.open_backends > 0;
            return (!is_open).then(|| self.frontends.max(self.backends));
        };
        let backends = self.open_backends.saturating_mul(most).saturating_add(self.backends);
        Some(if self.is_open { most } else { self.frontends.max(backends).min(most) })
    }
}

impl Way {
    /// The way of a stream's bytes.
    pub fn of(stream: &mut Stream, direction: Direction) -> Way {
        let passage = filter::passage(stream, direction);
        let splicing = if passage.is_none() { Splicing::of(stream, direction) } else { None };
        Way { passage, splicing }
    }
}

impl Splicing {
    fn of(stream: &Stream, direction: Direction) -> Option<Splicing> {
        let facts = &stream.facts;
        if !facts.session.worker.pools.pipes.is_on() {
            return None;
        }
        let sides = [Some(facts.frontend().options.splice), facts.backend().map(|backend| backend.options.splice)];
        let any = |of: fn(SpliceOptions) -> bool| sides.into_iter().flatten().any(of);
        let named = match direction {
            Direction::In => any(|side| side.request),
            Direction::Out => any(|side| side.response),
        };
        (named || any(|side| side.auto)).then(|| Splicing {
            session: facts.session.clone(),
            backend: facts.backend.clone(),
            direction,
            when_quick: !named,
            refused: Cell::new(false),
        })
    }

    /// Whether the next bytes can go through a pipe.
    pub fn fits(&self, receiver: &Receiver<'_>, sender: &Sender<'_>) -> bool {
        !self.refused.get() && receiver.can_splice() && (receiver.comes_quickly() || !self.when_quick) && sender.can_splice()
    }

    /// Moves bytes for as long as that [fits](Splicing::fits). False: it cannot be done now, and bytes must be copied.
    ///
    /// `moved` is called when bytes have left the receiver. `stays` returns whether a peer that was silent too long is waited
    /// for.
    ///
    /// # Errors
    /// The side that broke off. Bytes may be lost with the pipe.
    pub async fn run(
        &self,
        receiver: &mut Receiver<'_>,
        sender: &mut Sender<'_>,
        moved: impl Fn(),
        stays: impl Fn() -> bool,
    ) -> Result<bool, Broke> {
        let pools = receiver.pools();
        while self.fits(receiver, sender) {
            // A task that always finds bytes and room must let others have their turn.
            tokio::task::coop::consume_budget().await;
            let Some(mut pipe) = pools.pipes.take() else { return Ok(false) };
            match receiver.splice(&mut pipe) {
                Ok(None) => return Ok(false),
                Ok(Some(0)) => receiver.found_end().map_err(Broke::Receiver)?,
                Ok(Some(n)) => {
                    receiver.count(n);
                    moved();
                    self.count(n, true);
                    let sent = sender.send_piped(&mut pipe).await;
                    self.count(n - pipe.held().min(n), false);
                    sent.map_err(Broke::Sender)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    drop(pipe);
                    sender.flush().await.map_err(Broke::Sender)?;
                    match receiver.readable().await {
                        Err(Broken::Timeout) if stays() => {}
                        result => result.map_err(Broke::Receiver)?,
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.refused.set(true);
                    return Ok(false);
                }
                Err(error) => return Err(Broke::Receiver(Broken::of(&error))),
            }
        }
        Ok(true)
    }

    /// Counts bytes that came from a socket into a pipe, or went on from there: on the side that the socket belongs to.
    fn count(&self, bytes: usize, received: bool) {
        let worker = &self.session.worker;
        let is_front = received == (self.direction == Direction::In);
        let counters = match is_front {
            true => Some(self.session.frontend().tally.of(worker.index)),
            false => self.backend.as_deref().map(|backend| backend.tally.of(worker.index)),
        };
        if let Some(counters) = counters {
            if received { &counters.spliced_in } else { &counters.spliced_out }.add(bytes as u64);
        }
    }
}
