//! Versions of HTTP that connections agree on.

/// A version of HTTP that a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// Its name in ALPN (RFC 7301).
    pub const fn alpn(self) -> &'static str {
        match self {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
        }
    }

    /// The protocol of a keyword of the configuration: `h1`, `h2`.
    pub fn of(word: &str) -> Option<Protocol> {
        match word {
            "h1" => Some(Protocol::Http1),
            "h2" => Some(Protocol::Http2),
            _ => None,
        }
    }
}
