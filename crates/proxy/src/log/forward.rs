//! `log-forward` sections: syslog messages come in and are passed on to the section's targets.
//!
//! ```text
//!   dgram-bind --datagram--+
//!                          +--> message --> its header, as far as it has one --> each target, in its own form or another
//!   bind --stream--frame---+
//! ```
//!
//! Invariant: this is the courier's work, on a thread of its own; no worker takes part, and no message waits: a message that
//! a target cannot take is dropped and counted.

pub(super) mod frame;
mod keywords;
pub(super) mod relay;

pub use keywords::KEYWORDS;

use super::journal::Journal;
use crate::settings::BindSettings;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use terse_config::{Place, Setting};
use terse_tls::Acceptor;

/// A `log-forward` section, as it was written.
#[derive(Clone, Debug)]
pub struct ForwardSettings {
    /// `bind` lines.
    pub binds: Vec<BindSettings>,
    /// `dgram-bind` lines.
    pub datagrams: Vec<DatagramBind>,
    /// `backlog`: connections that the kernel may hold.
    pub backlog: Option<u32>,
    /// `maxconn`: connections at a time.
    pub maxconn: usize,
    /// `timeout client`: time limit of silence on a connection.
    pub client_timeout: Option<Duration>,
    /// `option dont-parse-log`: a message is passed on as it is.
    pub verbatim: bool,
    /// `option assume-rfc6587-ntf`: messages on streams are lines, whatever they begin with.
    pub lines_only: bool,
    /// `option host`
    pub host: HostRule,
}

impl Default for ForwardSettings {
    fn default() -> ForwardSettings {
        ForwardSettings {
            binds: Vec::new(),
            datagrams: Vec::new(),
            backlog: None,
            maxconn: 10,
            client_timeout: None,
            verbatim: false,
            lines_only: false,
            host: HostRule::default(),
        }
    }
}

impl Setting for ForwardSettings {
    fn inherit(&self) -> ForwardSettings {
        self.clone()
    }
}

/// An address at which datagrams come in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatagramBind {
    /// The address.
    pub address: SocketAddr,
    /// `interface`: the device that they must come through.
    pub interface: Option<String>,
    /// `transparent`: the address need not be this machine's.
    pub transparent: bool,
    /// Place of the line in the configuration.
    pub place: Place,
}

/// Which host a message is from that is passed on (`option host`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HostRule {
    /// `replace`: the sender's address.
    Replace,
    /// `fill`: the host in the message, else the sender's address.
    #[default]
    Fill,
    /// `keep`: the host in the message.
    Keep,
    /// `append`: the host in the message, a comma and the sender's address.
    Append,
}

/// A `log-forward` section, ready.
#[derive(Debug)]
pub struct Forwarder {
    /// Its name.
    pub name: Arc<str>,
    /// Its settings.
    pub settings: ForwardSettings,
    /// TLS acceptors, by the index of the `bind` line; `None`: plain text.
    pub acceptors: Vec<Option<Arc<Acceptor>>>,
    /// The targets of the messages.
    pub journal: Journal,
    /// Counters.
    pub received: Received,
}

/// Counters of the messages that come in.
#[derive(Default, Debug)]
pub struct Received {
    /// Messages.
    pub messages: AtomicU64,
    /// Connections.
    pub connections: AtomicU64,
    /// Connections that were closed because the received bytes were no message: too long, wrongly framed, cut off.
    pub malformed: AtomicU64,
}
