//! Rules' changes of a stream's service: timeouts, attempts, places in queues, interim answers, marks of packets.
//!
//! A stream whose rules change nothing of it has no [`Changes`] at all.

use crate::io::keep_silent;
use crate::settings::Timeouts;
use std::net::SocketAddr;
use std::time::Duration;
use terse_balance::Precedence;
use terse_message::Response;

/// Changes by rules.
#[derive(Default)]
pub struct Changes {
    /// The number of the backend that `timeouts` and `retries` belong to, beside those of the client.
    pub(crate) owner: Option<usize>,
    /// `set-timeout`
    pub(crate) timeouts: Timeouts,
    /// `set-retries`
    pub(crate) retries: Option<u32>,
    /// `disable-l7-retry`
    pub sent_once: bool,
    /// `set-priority-class`, `set-priority-offset`: the place in queues.
    pub priority: Precedence,
    /// `early-hint`: the interim response on its way.
    pub hints: Option<Box<Response>>,
    /// `set-mark` and its like, for the client's connection.
    pub client_packets: Packets,
    /// The same for the connection to the server.
    pub server_packets: Packets,
}

impl Changes {
    /// Makes sure that changes for a backend belong to this backend: those for another are dropped.
    pub(crate) fn own(&mut self, owner: Option<usize>) {
        if self.owner != owner {
            self.owner = owner;
            self.timeouts = Timeouts { client: self.timeouts.client, tarpit: self.timeouts.tarpit, ..Timeouts::default() };
            self.retries = None;
        }
    }
}

/// Marks that the kernel shall write into packets of a connection, or attach to them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Packets {
    /// `SO_MARK`
    pub mark: Option<u32>,
    /// The byte of type of service, or of traffic class.
    pub tos: Option<u8>,
    /// `silent-drop`: the end of the connection.
    pub farewell: Option<Farewell>,
}

/// The end of a connection that its client shall not notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Farewell {
    /// Without a segment, where the process may do that; otherwise by a reset that dies at the first router.
    Silent,
    /// By a reset that dies at this router (`rst-ttl`).
    Reset {
        /// Which of them.
        hops: u8,
    },
}

impl Packets {
    /// Applies them to a connection with that peer. The kernel may forbid a mark: then packets go without it.
    pub fn apply(self, socket: &socket2::SockRef<'_>, peer: Option<SocketAddr>) {
        let is_v6 = matches!(peer, Some(SocketAddr::V6(_)));
        let hops = match self.farewell {
            None => None,
            Some(Farewell::Silent) => (!keep_silent(socket)).then_some(1),
            Some(Farewell::Reset { hops }) => Some(hops),
        };
        if let Some(hops) = hops {
            // The connection ends by a reset, which dies on its way: the client goes on waiting.
            let _ = socket.set_linger(Some(Duration::ZERO));
            let _ = match is_v6 {
                true => socket.set_unicast_hops_v6(hops.into()),
                false => socket.set_ttl_v4(hops.into()),
            };
        }
        if let Some(mark) = self.mark {
            let _ = socket.set_mark(mark);
        }
        if let Some(tos) = self.tos {
            let _ = match is_v6 {
                true => socket.set_tclass_v6(tos.into()),
                false => socket.set_tos_v4(tos.into()),
            };
        }
    }
}
