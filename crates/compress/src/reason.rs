//! Why a response, or a request's body, was not compressed.

use crate::named::named;

named! {
    /// Why a body was left as it was. One for every single case, for the log, a sample fetch and a metric.
    Reason {
        /// Neither the frontend nor the backend says `compression`.
        NotConfigured = "not-configured",
        /// The proxy has answered itself: a page, a redirection, `return`.
        OwnAnswer = "own-answer",
        /// `compression direction` leaves this direction out.
        Direction = "direction",
        /// `compression` is there, but names no algorithm for this direction.
        NoAlgorithm = "no-algorithm",
        /// A condition of `compression if` or `compression unless` does not hold.
        Condition = "condition",
        /// The link toward the receiver compresses already: one compressor a hop.
        LinkCompresses = "link-compresses",
        /// `http-compression off` for the hop toward the receiver.
        SwitchedOff = "switched-off",
        /// The client speaks a version below `compression http-version`.
        ClientVersion = "client-version",
        /// The server answered in a version below `compression http-version`, under `http-conformance haproxy`.
        ServerVersion = "server-version",
        /// The body ends with the server's connection, under `http-conformance haproxy`.
        UntilClose = "until-close",
        /// The User-Agent is one that cannot decode what it asks for.
        Agent = "agent",
        /// The request came through another proxy and `compression proxied` leaves it out.
        Proxied = "proxied",
        /// The request's `Cache-Control: no-transform` (RFC 9111 section 5.2.1.6).
        RequestNoTransform = "request-no-transform",
        /// The request names no codings.
        NoAcceptEncoding = "no-accept-encoding",
        /// The client wants the plain bytes: an empty list, `identity` alone, or `identity` above every coding that it takes.
        ClientIdentity = "client-identity",
        /// The client refuses the configured codings: `gzip;q=0`.
        CodingRefused = "coding-refused",
        /// The client names codings, none of which is configured.
        NoCommonCoding = "no-common-coding",
        /// The client's list is longer than [`crate::accept::MAX_ELEMENTS`].
        AcceptEncodingLimit = "accept-encoding-limit",
        /// The answer to HEAD: it has no body.
        Head = "head",
        /// A tunnel: 101, or a successful CONNECT.
        Upgrade = "upgrade",
        /// A status that has no body (1xx, 204, 205, 304), or a body of no bytes.
        NoBody = "no-body",
        /// 226, or under `http-conformance haproxy` a status other than 200 to 203.
        Status = "status",
        /// A part of a body: 206, or Content-Range.
        Partial = "partial",
        /// A Content-Encoding is there already.
        AlreadyCoded = "already-coded",
        /// `Cache-Control: no-transform` of the message itself (RFC 9110 section 7.7).
        NoTransform = "no-transform",
        /// The ETag is no entity tag (RFC 9110 section 8.8.3): it could not be made weak.
        InvalidEtag = "invalid-etag",
        /// More than one ETag.
        MultipleEtags = "multiple-etags",
        /// Types are configured, and the message has no Content-Type.
        MissingType = "missing-type",
        /// The Content-Type is not among the configured ones.
        TypeNotListed = "type-not-listed",
        /// A multipart type: its parts have codings of their own.
        Multipart = "multipart",
        /// gRPC: its messages have a coding of their own, and its peers no use for ours.
        Grpc = "grpc",
        /// Smaller than `compression minsize-res`.
        TooSmall = "too-small",
        /// The first bytes are those of a compressed format.
        Magic = "magic",
        /// The first bytes look like noise: nothing would be won.
        Entropy = "entropy",
        /// More comes in than `maxcomprate` lets be compressed.
        RateBrake = "rate-brake",
        /// The processor is busier than `maxcompcpuusage`.
        CpuBrake = "cpu-brake",
        /// The limit of memory is reached.
        BufferLimit = "buffer-limit",
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
