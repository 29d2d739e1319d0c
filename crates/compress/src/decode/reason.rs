//! Why a body that came coded, or might have, was left as it was.

use crate::named::named;

named! {
    /// Reason why a body was not decoded although the configuration asks for it. There is a reason for every single case, for
    /// the log, a sample fetch and a metric.
    Reason {
        /// No Content-Encoding is there.
        NotCoded = "not-coded",
        /// The client takes the coding; of a request, it is not among those that are to be decoded.
        Accepted = "accepted",
        /// A coding that terse does not know.
        UnknownCoding = "unknown-coding",
        /// More codings than [`super::policy::MAX_CODINGS`] would have to be undone.
        TooManyCodings = "too-many-codings",
        /// A status that has no body (1xx, 204, 304), or a body of no bytes.
        NoBody = "no-body",
        /// A part of a body: 206, or Content-Range.
        Partial = "partial",
        /// A tunnel: 101, a successful CONNECT, or a request for a tunnel.
        Upgrade = "upgrade",
        /// `Cache-Control: no-transform` of the message itself (RFC 9110 section 7.7).
        NoTransform = "no-transform",
        /// The request's `Cache-Control: no-transform` (RFC 9111 section 5.2.1.6).
        RequestNoTransform = "request-no-transform",
        /// gRPC: its messages have a coding of their own.
        Grpc = "grpc",
        /// The limit of memory is reached.
        BufferLimit = "buffer-limit",
    }
}
