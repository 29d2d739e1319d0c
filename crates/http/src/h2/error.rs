//! Error codes and causes (RFC 9113 section 7).

use std::fmt;

/// A code of RST_STREAM and GOAWAY.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident = $value:literal),* $(,)?) => {
        impl Code {
            $(#[doc = concat!("`", stringify!($name), "`")] pub const $name: Code = Code($value);)*

            /// Name in the RFC; `UNKNOWN` for others.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Code::$name => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

codes! {
    NO_ERROR = 0x0,
    PROTOCOL_ERROR = 0x1,
    INTERNAL_ERROR = 0x2,
    FLOW_CONTROL_ERROR = 0x3,
    SETTINGS_TIMEOUT = 0x4,
    STREAM_CLOSED = 0x5,
    FRAME_SIZE_ERROR = 0x6,
    REFUSED_STREAM = 0x7,
    CANCEL = 0x8,
    COMPRESSION_ERROR = 0x9,
    CONNECT_ERROR = 0xa,
    ENHANCE_YOUR_CALM = 0xb,
    INADEQUATE_SECURITY = 0xc,
    HTTP_1_1_REQUIRED = 0xd,
}

impl fmt::Debug for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}({:#x})", self.name(), self.0)
    }
}

/// End of a connection by this side, with a few words for its log line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The code of the GOAWAY frame.
    pub code: Code,
    /// The cause.
    pub cause: &'static str,
}

impl Failure {
    pub(super) const fn new(code: Code, cause: &'static str) -> Failure {
        Failure { code, cause }
    }

    pub(super) const fn protocol(cause: &'static str) -> Failure {
        Failure::new(Code::PROTOCOL_ERROR, cause)
    }

    pub(super) const fn size(cause: &'static str) -> Failure {
        Failure::new(Code::FRAME_SIZE_ERROR, cause)
    }
}

/// Fault of a head (RFC 9113 section 8.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// A pseudo-header that is unknown, repeated, missing, after a field, or not of this kind of message.
    PseudoHeader,
    /// A name with a byte that no token has, or a large letter.
    FieldName,
    /// A value with a control, or blanks at its ends.
    FieldValue,
    /// A field that belongs to a connection of HTTP/1.1.
    ConnectionField,
    /// A method with a byte that no token has.
    Method,
    /// A path, or an authority, that fits no form of RFC 9113 section 8.3.1.
    Target,
    /// No host, several hosts, or a host that contradicts `:authority`.
    Host,
    /// `Content-Length` that is no number, given more than once, or not the length that came.
    ContentLength,
    /// A `:status` that is no status, or 101.
    Status,
    /// Fields after the body that do not end the stream.
    Trailers,
}

impl Malformed {
    /// A few words for logs and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Malformed::PseudoHeader => "pseudo-header",
            Malformed::FieldName => "field name",
            Malformed::FieldValue => "field value",
            Malformed::ConnectionField => "connection field",
            Malformed::Method => "method",
            Malformed::Target => "target",
            Malformed::Host => "host",
            Malformed::ContentLength => "content length",
            Malformed::Status => "status",
            Malformed::Trailers => "trailers",
        }
    }
}
