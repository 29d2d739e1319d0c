//! What a `stick-table` line says.

use super::data::Data;
use terse_config::{Place, Setting};

/// A `stick-table` line.
#[derive(Clone, Debug)]
pub struct TableSettings {
    /// `type`: what keys are.
    pub key: KeyKind,
    /// `size`: the most entries.
    pub size: usize,
    /// `expire`: how long an entry that nobody touches lives, in milliseconds; `None`: until room is needed.
    pub expire_ms: Option<u32>,
    /// `nopurge`: a full table takes no new entry, rather than to drop the oldest.
    pub no_purge: bool,
    /// `srvkey`: by what servers are known.
    pub server_key: ServerKeyKind,
    /// `brates-factor`: bytes are counted by so many, where they are counted in a period.
    pub byte_rate_factor: u32,
    /// `store`: what entries hold, in the order of [`Data::ALL`] or any other.
    pub store: Vec<Stored>,
    /// `write-to`: the table that what peers say is written to, too.
    pub write_to: Option<String>,
    /// `recv-only`: what else peers count is learnt, too: their current connections.
    pub receives_only: bool,
    /// `peers`: the section whose peers share it.
    pub peers: Option<String>,
    /// Where it stands.
    pub place: Place,
}

/// One kind of data that entries hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// What it is.
    pub data: Data,
    /// How many of it: 1, or for those by number as many as are named.
    pub elements: u32,
    /// The period in milliseconds, of those that count in one.
    pub period_ms: u32,
}

/// What keys are: HAProxy's `type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    /// `ip`: IPv4 addresses, 4 bytes.
    Ip,
    /// `ipv6`: IPv6 addresses, 16 bytes.
    Ipv6,
    /// `integer`: numbers of 32 bits, 4 bytes, the highest first.
    Integer,
    /// `string`: text of at most so many bytes, cut at the first NUL.
    Text(usize),
    /// `binary`: so many bytes, shorter ones filled up with NUL.
    Binary(usize),
}

/// By what servers are known in `server_key`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ServerKeyKind {
    /// `name`
    #[default]
    Name,
    /// `addr`: address and port.
    Address,
}

impl KeyKind {
    /// The word in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            KeyKind::Ip => "ip",
            KeyKind::Ipv6 => "ipv6",
            KeyKind::Integer => "integer",
            KeyKind::Text(_) => "string",
            KeyKind::Binary(_) => "binary",
        }
    }
}

/// A section's `stick-table` line. Tables are not inherited.
#[derive(Clone, Default, Debug)]
pub struct TableLine(pub Option<TableSettings>);

impl Setting for TableLine {
    fn inherit(&self) -> TableLine {
        TableLine(None)
    }
}
