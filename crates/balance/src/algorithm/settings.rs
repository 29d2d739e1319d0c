//! What the configuration says of how requests are spread: `balance`, `hash-type`, `hash-key`.

use std::sync::Arc;
use terse_sample::Expr;

/// `balance`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Balance {
    /// `roundrobin`: each in turn, as often as its weight says.
    #[default]
    RoundRobin,
    /// `static-rr`: the same, in the order of the table that hashes use.
    StaticRoundRobin,
    /// `leastconn`: the one with the fewest requests for its weight.
    LeastConn,
    /// `first`: the first one with a free slot.
    First,
    /// `source`: by the client's address.
    Source,
    /// `uri`: by the target.
    Uri(UriKey),
    /// `random(<draws>)`: the least loaded of so many drawn.
    Random(u8),
    /// `hash`, `hdr()`, `url_param`, `rdp-cookie`: by a key of the request.
    Key,
    /// `sticky`: the first that came up, for as long as it stays; one that comes back goes to the end. For logs.
    Sticky,
    /// `log-hash`: by what converters make of a line. For logs.
    LogHash,
}

/// Which part of the target `balance uri` looks at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UriKey {
    /// `whole`: with the query.
    pub whole: bool,
    /// `path-only`: without scheme and authority.
    pub path_only: bool,
    /// `len`: that many bytes; 0: all.
    pub len: usize,
    /// `depth`: that many directories; 0: all.
    pub depth: usize,
}

/// A key that equal requests share.
#[derive(Clone, Debug)]
pub struct HashKey {
    /// The expression; the first that has a value counts.
    pub expressions: Vec<Arc<Expr>>,
    /// What its algorithm is called.
    pub word: &'static str,
    /// `use_domain_only`: of a host's name only the label before the last.
    pub domain_only: bool,
}

/// `hash-type`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hash {
    /// How a number finds its server.
    pub method: HashMethod,
    /// How a key becomes a number.
    pub function: HashFunction,
    /// `avalanche`: the number's bits are mixed once more.
    pub avalanche: bool,
    /// `hash-preserve-affinity`: which servers a consistent hash passes over.
    pub affinity: HashAffinity,
}

/// When a consistent hash goes on to the next server of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashAffinity {
    /// `always`: never, while the server is up.
    #[default]
    Always,
    /// `maxconn`: when all its slots are in use.
    MaxConn,
    /// `maxqueue`: when its queue is full, too.
    MaxQueue,
}

/// How a hash finds its server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashMethod {
    /// `map-based`: a place in the table of all servers that are up; most keys move when one goes.
    #[default]
    Map,
    /// `consistent`: a place on a ring; only the keys of a server that goes move.
    Consistent,
}

/// How a key is hashed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashFunction {
    /// `sdbm`
    #[default]
    Sdbm,
    /// `djb2`
    Djb2,
    /// `wt6`
    Wt6,
    /// `crc32`
    Crc32,
    /// `none`: the key is the number.
    None,
}

/// What a server's places on the ring of a consistent hash come from. Where it has none of that, they come from its number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RingKey {
    /// `id`: its number in statistics.
    #[default]
    Id,
    /// `id32`: the same, mixed first.
    Id32,
    /// `addr`: its address.
    Address,
    /// `addr-port`: its address and port.
    AddressAndPort,
    /// `guid`
    Guid,
}
