//! An exchange: a request and its response, with a client on one side and a server on the other, over any version of HTTP.
//!
//! ```text
//!             Client                                          Upstream
//! socket ---> Receiver --- part, data, consume --- phases ---> Sender ---> socket
//! socket <--- Sender   <--- send, flush, finish -- phases ---- Receiver <-- socket
//!                \-------------- Watch: timeouts, resets ------/
//! ```
//!
//! [`Client`] and [`Upstream`] are the sides; their [`Ends`] are in use at once, one for each direction. Framing of bodies,
//! heads on the wire and frames of HTTP/2 stay below: phases see heads, lengths and data. The end of an exchange
//! ([`Ended`]) is a set of facts; the continuation of its connection ([`After`]) is decided from them in a single
//! place.
//!
//! **Invariant:** the rest of a body lies in its side, never in a future: a future that serves can be dropped at any await,
//! and the side still knows where the next message would begin.

pub mod cancel;
mod client;
mod ended;
mod framing;
pub mod held;
mod peek;
mod receiver;
pub mod replay;
mod sender;
mod shared;
mod upstream;

pub use crate::io::Cancel;
pub use crate::io::http2::Fate;
pub use client::{Client, NoRequest};
pub use ended::{After, Answered, Asked, Ended, Then};
pub use framing::Framing;
pub use held::Held;
pub use peek::{Body, Lend, Peek};
pub use receiver::{Broken, NoHead, Part, Receiver};
pub use sender::{ConnectionOption, Peer, Sender};
pub use shared::SharedConnection;
pub use upstream::Upstream;

use crate::io::{Buffer, Http2Stream, Pools, Timer, Transport};
use std::cell::Cell;
use std::task::{Context, Poll};
use std::time::Duration;

/// Both directions of a side, and an eye on its peer. All three are in use at once.
pub struct Ends<'a> {
    /// The receiver of the peer's bytes.
    pub from: Receiver<'a>,
    /// The sender of bytes to the peer.
    pub to: Sender<'a>,
    /// The peer, while its ends are in use.
    pub peer: Watch<'a>,
}

/// A peer, beside its receiver and sender.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    stream: Option<&'a Http2Stream>,
    timer: &'a Timer,
    limit: &'a Cell<Option<Duration>>,
}

impl Watch<'_> {
    /// Ready once the peer has reset its stream of HTTP/2. A socket shows that by its bytes.
    pub fn poll_reset(self, cx: &Context<'_>) -> Poll<()> {
        self.stream.map_or(Poll::Pending, |stream| stream.poll_reset(cx))
    }

    /// Sets the time limit of the peer's silence from now on.
    pub fn set_limit(self, limit: Option<Duration>) {
        self.limit.set(limit);
    }

    /// The same, and the time that runs begins anew.
    pub fn restart(self, limit: Option<Duration>) {
        self.limit.set(limit);
        self.timer.set(limit);
    }
}

/// The parts of a side, to make its ends of.
struct Parts<'a> {
    io: &'a mut Transport,
    buffer: &'a mut Buffer,
    timer: &'a Timer,
    framing: &'a mut Framing,
    out: &'a mut Vec<u8>,
    limit: &'a Cell<Option<Duration>>,
}

impl<'a> Parts<'a> {
    /// The ends, which count the bytes that come and go.
    fn ends(self, pools: &'a Pools, received: &'a Cell<u64>, sent: &'a Cell<u64>, limit: Option<Duration>) -> Ends<'a> {
        let Parts { io, buffer, timer, framing, out, limit: cell } = self;
        let (reader, writer) = io.split();
        let stream = match &writer {
            crate::io::Writer::Stream(stream) => Some(*stream),
            _ => None,
        };
        Ends {
            from: Receiver::new(reader, buffer, framing, pools, timer, cell, received),
            to: Sender::new(writer, out, timer, limit, sent),
            peer: Watch { stream, timer, limit: cell },
        }
    }
}
