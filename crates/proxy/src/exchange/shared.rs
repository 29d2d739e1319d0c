//! Facts of a connection that carries many exchanges.

use crate::io::Multiplexed;
use std::rc::Rc;

/// A server's connection of HTTP/2, for queries while an exchange has a stream of it: facts, and no I/O.
#[derive(Clone)]
pub struct SharedConnection(Rc<Multiplexed>);

impl SharedConnection {
    /// A connection's.
    pub fn new(connection: Rc<Multiplexed>) -> SharedConnection {
        SharedConnection(connection)
    }

    /// Leaves the connection to a single session: its server knows a user by it.
    pub fn keep_to(&self, session: u64) {
        self.0.keep_to(session);
    }

    /// Streams that are open. The exchange's own is one of them until it is logged.
    pub fn streams(&self) -> usize {
        self.0.peek().open_streams().max(1)
    }

    /// Streams that may be open at a time.
    pub fn most_streams(&self) -> u32 {
        self.0.peek().most_streams()
    }

    /// Oddities of the server's.
    pub fn glitches(&self) -> u64 {
        self.0.peek().glitches()
    }
}
