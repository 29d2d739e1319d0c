//! Settings of a `stick-table` line.

use super::data::Data;
use terse_config::{Place, Setting};

/// A `stick-table` line.
#[derive(Clone, Debug)]
pub struct TableSettings {
    /// `type`: type of keys.
    pub key: KeyKind,
    /// `size`: limit of entries.
    pub size: usize,
    /// `expire`: lifetime of an entry that is not touched, in milliseconds; `None`: until room is needed.
    pub expire_ms: Option<u32>,
    /// `nopurge`: a full table takes no new entry, rather than to drop the oldest.
    pub no_purge: bool,
    /// `srvkey`: identification of servers.
    pub server_key: ServerKeyKind,
    /// `brates-factor`: unit of bytes, where they are counted in a period.
    pub byte_rate_factor: u32,
    /// `store`: data of entries, in the order of [`Data::ALL`] or any other.
    pub store: Vec<Stored>,
    /// `write-to`: another table that receives what peers send.
    pub write_to: Option<String>,
    /// `recv-only`: counters of current connections are learnt from peers, too.
    pub receives_only: bool,
    /// `peers`: the section whose peers share it.
    pub peers: Option<String>,
    /// Place in the configuration.
    pub place: Place,
}

/// A kind of data that entries hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Kind of data.
    pub data: Data,
    /// Number of elements: 1, or for an array as many as are configured.
    pub elements: u32,
    /// Period in milliseconds, of kinds that count in a period.
    pub period_ms: u32,
}

/// Type of keys: HAProxy's `type`.
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

/// Identification of servers in `server_key`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ServerKeyKind {
    /// `name`
    #[default]
    Name,
    /// `addr`: address and port.
    Address,
}

impl KeyKind {
    /// Argument in the configuration.
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
