//! HTTP on the wire, without sockets: bytes in, values out, and back.
//!
//! `h1` is HTTP/1.0 and HTTP/1.1 (RFC 9112), `h2` is HTTP/2 (RFC 9113). `proxy_protocol` is the head that may stand in
//! front of a connection's first request. The meaning of a message is in `terse-message`, which knows no version; its
//! handling is in `terse-proxy`, which does not know the version either.
//!
//! Invariant: a message that could be understood in two ways is refused, never guessed at. Request smuggling needs two
//! parties that disagree on where a message ends (RFC 9112 section 11.2).

pub mod h1;
pub mod h2;
pub mod proxy_protocol;
