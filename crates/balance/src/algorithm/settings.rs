//! Settings of load balancing: `balance`, `hash-type`, `hash-key`.

use super::hash;
use std::sync::Arc;
use terse_sample::Expr;

/// `balance`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Balance {
    /// `roundrobin`: each in turn, in proportion to its weight.
    #[default]
    RoundRobin,
    /// `static-rr`: the same, in the order of the table that hashes use.
    StaticRoundRobin,
    /// `leastconn`: the server with the fewest requests for its weight.
    LeastConn,
    /// `first`: the first one with a free slot.
    First,
    /// `source`: by the client's address.
    Source,
    /// `uri`: by the target.
    Uri(UriKey),
    /// `random(<draws>)`: the least loaded of so many drawn servers.
    Random(u8),
    /// `hash`, `hdr()`, `url_param`, `rdp-cookie`: by a key of the request.
    Key,
    /// `sticky`: the first server that came up, for as long as it stays; a server that comes back goes to the end. For
    /// logs.
    Sticky,
    /// `log-hash`: by the value of a line after converters. For logs.
    LogHash,
}

/// Part of the target that `balance uri` hashes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UriKey {
    /// `whole`: with the query.
    pub whole: bool,
    /// `path-only`: without scheme and authority.
    pub path_only: bool,
    /// `len`: limit of bytes; 0: all.
    pub len: usize,
    /// `depth`: limit of directories; 0: all.
    pub depth: usize,
}

/// Key of the hash.
#[derive(Clone, Debug)]
pub struct HashKey {
    /// Expressions; the first that has a value counts.
    pub expressions: Vec<Arc<Expr>>,
    /// Name of its algorithm.
    pub word: &'static str,
    /// Part of the value that is hashed.
    pub part: KeyPart,
}

/// Part of an expression's value that is hashed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyPart {
    /// All of it, empty or not.
    All,
    /// All of it; an empty one is no key.
    NotEmpty,
    /// `use_domain_only`: of a host's name the label before the last; an empty name is no key.
    Domain,
    /// `url_param`: the value of this parameter of a form, which may be empty; `check_post`: of a POST's body, too.
    Parameter {
        /// Its name.
        name: Box<[u8]>,
        /// Whether it is also looked for in a body.
        in_body: bool,
    },
}

impl HashKey {
    /// Hashed part of an expression's value; `None` where it holds no key.
    pub fn part_of<'v>(&self, value: &'v [u8]) -> Option<&'v [u8]> {
        match &self.part {
            KeyPart::All => Some(value),
            KeyPart::NotEmpty => Some(value).filter(|value| !value.is_empty()),
            KeyPart::Domain => Some(hash::domain(value)).filter(|label| !label.is_empty()),
            KeyPart::Parameter { name, .. } => {
                let mut pairs = value.split(|byte| *byte == b'&');
                pairs.find_map(|pair| pair.strip_prefix(&**name)?.strip_prefix(b"="))
            }
        }
    }

    /// Whether the body of a POST is searched.
    pub fn is_in_body(&self) -> bool {
        matches!(self.part, KeyPart::Parameter { in_body: true, .. })
    }
}

/// `hash-type`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hash {
    /// Mapping of a number to a server.
    pub method: HashMethod,
    /// Mapping of a key to a number.
    pub function: HashFunction,
    /// `avalanche`: the number's bits are mixed once more.
    pub avalanche: bool,
    /// `hash-preserve-affinity`: condition under which a consistent hash passes a server over.
    pub affinity: HashAffinity,
}

/// Condition under which a consistent hash goes on to the next server of the ring.
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

/// Mapping of a hash to a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashMethod {
    /// `map-based`: a place in the table of all servers that are up; most keys move when a server goes.
    #[default]
    Map,
    /// `consistent`: a place on a ring; only the keys of a server that goes move.
    Consistent,
}

/// Hash function of a key.
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

/// Source of a server's places on the ring of a consistent hash. A server that lacks it uses its number.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts that HAProxy 2.6 hashes: `None` where a request takes its turn.
    #[test]
    fn parts_that_are_hashed() {
        let parameter = || KeyPart::Parameter { name: (*b"a").into(), in_body: false };
        for (part, value, expected) in [
            (KeyPart::All, "", Some("")),
            (KeyPart::NotEmpty, "", None),
            (KeyPart::NotEmpty, "a", Some("a")),
            (KeyPart::Domain, "", None),
            (KeyPart::Domain, "www.example.org", Some("example")),
            (parameter(), "a=1", Some("1")),
            (parameter(), "b=1&a=2&a=3", Some("2")),
            (parameter(), "a=", Some("")),
            (parameter(), "a", None),
            (parameter(), "aa=1&A=1", None),
            (parameter(), "a=?x;b=1/", Some("?x;b=1/")),
            (parameter(), "b=1;a=2", None),
            (parameter(), "?a=1", None),
            (parameter(), "", None),
        ] {
            let key = HashKey { expressions: Vec::new(), word: "key", part: part.clone() };
            let found = key.part_of(value.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{part:?} of '{value}'");
        }
    }
}
