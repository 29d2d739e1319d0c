//! Faults of a message, and the reading that they depend on.

/// Reading of requests that applies.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Conformance {
    /// RFC 9112's, the stricter form where it allows a choice.
    #[default]
    Rfc,
    /// HAProxy's: it accepts requests without Host in HTTP/1.1, and with several blanks between the words of the first
    /// line. It accepts lengths that agree or yield to chunks, and chunks in HTTP/1.0. Hosts and ports of absolute targets
    /// get their shortest form.
    HAProxy,
}

/// Reason why a message is refused. `Copy` and small: it ends in a log line and a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// The first line is not one of RFC 9112 section 3 or 4.
    FirstLine,
    /// A method with a byte that no token has.
    Method,
    /// A target that fits no form of RFC 9112 section 3.2, or not this method's.
    Target,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    Version,
    /// The preface of HTTP/2 (RFC 9113 section 3.4), where it is not spoken.
    Preface,
    /// A field name with a byte that no token has, or a blank before its colon.
    FieldName,
    /// A field value with a control character.
    FieldValue,
    /// A field continued on the next line (obsolete folding, RFC 9112 section 5.2).
    Folding,
    /// A line that ends in LF alone, or a CR without LF.
    LineEnd,
    /// More bytes than a head may have.
    HeadTooLarge,
    /// A target that leaves no room in a head for anything else.
    TargetTooLong,
    /// More fields than a head may have.
    TooManyFields,
    /// `Content-Length` that is no number, or too large, or given more than once.
    ContentLength,
    /// `Content-Length` together with `Transfer-Encoding`, `Transfer-Encoding` in HTTP/1.0, or a CONNECT with content.
    Framing,
    /// A transfer coding that is not understood (RFC 9112 section 6.1).
    TransferCoding,
    /// No `Host` in HTTP/1.1, several, or one that contradicts the target (RFC 9112 section 3.2).
    Host,
    /// A chunk whose size is no number, or too large.
    ChunkSize,
    /// A chunk's data that is not followed by CR LF.
    ChunkEnd,
    /// Trailers that are malformed or too large.
    Trailer,
    /// WebSocket is asked for without `Sec-WebSocket-Key` (RFC 6455 section 4.2.1).
    WebSocketKey,
}

impl Malformed {
    /// The status of the response to the client (RFC 9110 section 15.5 and 15.6).
    pub const fn status(self, conformance: Conformance) -> u16 {
        match (self, conformance) {
            (Malformed::TransferCoding, Conformance::Rfc) => 501,
            (Malformed::TransferCoding, Conformance::HAProxy) => 422,
            (Malformed::Preface, Conformance::HAProxy) => 405,
            (Malformed::TargetTooLong, Conformance::Rfc) => 414,
            // RFC 6585 section 5.
            (Malformed::HeadTooLarge | Malformed::TooManyFields, Conformance::Rfc) => 431,
            _ => 400,
        }
    }

    /// A few words for logs and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Malformed::FirstLine => "first line",
            Malformed::Method => "method",
            Malformed::Target => "target",
            Malformed::Version => "version",
            Malformed::Preface => "preface of HTTP/2",
            Malformed::FieldName => "field name",
            Malformed::FieldValue => "field value",
            Malformed::Folding => "folded field",
            Malformed::LineEnd => "line end",
            Malformed::HeadTooLarge => "head too large",
            Malformed::TargetTooLong => "target too long",
            Malformed::TooManyFields => "too many fields",
            Malformed::ContentLength => "content length",
            Malformed::Framing => "ambiguous length",
            Malformed::TransferCoding => "transfer coding",
            Malformed::Host => "host",
            Malformed::ChunkSize => "chunk size",
            Malformed::ChunkEnd => "chunk end",
            Malformed::Trailer => "trailer",
            Malformed::WebSocketKey => "no websocket key",
        }
    }
}
