//! The server's side of an exchange.

use super::{Ends, Framing, Parts};
use crate::figures::Figures;
use crate::io::Pools;
use crate::server::ServerConnection;
use std::cell::Cell;
use std::time::Duration;

/// The server's side of an attempt at an exchange: a connection of HTTP/1, a stream of HTTP/2, or a service in this process.
pub struct Upstream<'c> {
    connection: &'c mut ServerConnection,
    framing: Framing,
    out: Vec<u8>,
    /// Bytes at the front of the output that are no part of the exchange.
    announced: u64,
    limit: Cell<Option<Duration>>,
}

impl<'c> Upstream<'c> {
    /// A side that writes by way of `out`, an empty buffer. The header for the server before the connection's first byte goes
    /// first.
    pub fn new(connection: &'c mut ServerConnection, mut out: Vec<u8>) -> Upstream<'c> {
        let announced = connection.announce(&mut out) as u64;
        Upstream { connection, framing: Framing::Done, out, announced, limit: Cell::new(None) }
    }

    /// Both directions, which count into a stream's figures. `limit`: time limit of the server's taking nothing. The limit of
    /// its silence is set later ([`super::Watch::set_limit`]): it is not expected to speak first.
    pub fn ends<'a>(&'a mut self, pools: &'a Pools, figures: &'a Figures, limit: Option<Duration>) -> Ends<'a> {
        let Upstream { connection, framing, out, announced, limit: cell } = self;
        let ServerConnection { io, buffer, timer, .. } = &mut **connection;
        let parts = Parts { io, buffer, timer, framing, out, limit: cell };
        let mut ends = parts.ends(pools, &figures.bytes_from_server, &figures.bytes_to_server, limit);
        ends.to.uncounted = std::mem::take(announced);
        ends
    }

    /// Bytes until the connection closes, both ways: a tunnel.
    pub fn open(&mut self) {
        self.framing = Framing::UntilClose;
    }

    /// The buffer that it wrote by way of.
    pub fn into_out(self) -> Vec<u8> {
        self.out
    }
}
