//! TLS to clients and to servers, by the system's OpenSSL.
//!
//! ```text
//! keywords -> settings --+
//!                        +-> Vault (files) -> Acceptor (of a bind line) --+
//! global's settings -----+                 -> Connector (of a server) ----+-> Secured (a connection) -> Handshake (facts)
//! ```
//!
//! Settings and names are pure. Files are read while the plan is built, by a [`Vault`], each once; every fault is reported
//! with the file's name and a reason. Contexts are made then, too: a connection costs an `SSL` and nothing of ours.
//!
//! Invariants:
//! * A key never is in a message, in the log, or in `Debug`.
//! * The bytes that one write to a connection has taken go out, encrypted, before any other. A write that is given up in
//!   the middle leaves whole records behind.
//! * An idle connection holds no buffer of ours, and of OpenSSL's only those that it cannot give back.
//! * Records are compressed where a line allows it, and nowhere else.
//! * unsafe lives in [`raw`], calls that the `openssl` crate does not have, and in the method of [`records`].

mod acceptor;
mod alpn;
mod answer;
mod certificate;
mod connector;
mod context;
mod counters;
mod der;
mod dn;
mod early;
mod ending;
mod failure;
mod generated;
mod handshake;
mod hello;
mod ignored;
mod keylog;
mod list;
mod names;
mod offer;
mod pem;
mod raw;
mod records;
mod remembered;
mod report;
mod secret;
mod secured;
mod shown;
mod socket;
mod store;
mod stream;
mod strength;
mod tickets;
mod trust;
mod vault;
mod verification;
mod version;
mod wire;

pub mod keywords;
pub mod settings;

pub use acceptor::Acceptor;
pub use alpn::{is_http as is_http_protocol, parse as protocols};
pub use connector::{Connector, Request};
pub use counters::{COUNTERS, Counters, HandshakeCounts};
pub use dn::{Dn, RootName};
pub use failure::{Cause, Failure};
pub use handshake::Handshake;
pub use hello::{Hello, without_grease};
pub use ignored::name_of as verify_error;
pub use keylog::KeyedBy;
pub use keywords::{KEYWORDS, STORE_KEYWORDS};
pub use records::{Ask, Hold, MEMORY_BYTES as RECORDS_MEMORY_BYTES};
#[cfg(feature = "hostile")]
pub use records::{packer, unpacker};
pub use secret::Secret;
pub use secured::Secured;
pub use settings::{BindTls, Defaults, Global, ServerTls};
pub use shown::{Shown, Whose};
pub use socket::{Socket, gone};
pub use stream::Stream;
pub use tickets::BadTicketKey;
pub use vault::{Fetched, Names as FileNames, Question, Refusal, TokenCertificate, Tokens, TrustKind, Vault};

/// Bytes in base64, in one line.
pub fn base64(bytes: &[u8]) -> String {
    openssl::base64::encode_block(bytes).replace('\n', "")
}

/// The library in use, by its own name and as a number: `OpenSSL 3.0.15 3 Sep 2024`, `3.0.15`.
pub fn library() -> (&'static str, String) {
    let name = openssl::version::version();
    let number = openssl::version::number() as u64;
    let (major, minor, patch) = (number >> 28 & 0xf, number >> 20 & 0xff, number >> 4 & 0xff);
    (name, format!("{major}.{minor}.{patch}"))
}

#[cfg(test)]
mod testing;
