//! HTTP on the wire, without sockets: bytes in, values out, and back.
//!
//! `h1` is HTTP/1.0 and HTTP/1.1 (RFC 9112), `h2` is HTTP/2 (RFC 9113); `proxy_protocol` is what may stand in front of a connection's
//! first request. What a message means is in `terse-message`, which knows no version; what to do with it is in `terse-proxy`, which does
//! not know either.
//!
//! Invariant: a message that could be understood in two ways is refused, never guessed at. Two parties that disagree on where a
//! message ends are what request smuggling is made of (RFC 9112 section 11.2).

pub mod h1;
pub mod h2;
pub mod proxy_protocol;
