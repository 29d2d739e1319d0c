//! Why a response, or a request's body, was not compressed.

use crate::named::named;

named! {
    /// Reason why a body was left as it was. There is a reason for every single case, for the log, a sample fetch and a
    /// metric.
    Reason {
        /// Neither the frontend nor the backend has `compression`.
        NotConfigured = "not-configured",
        /// The proxy has answered itself: a page, a redirection, `return`.
        OwnAnswer = "own-answer",
        /// `compression direction` leaves this direction out.
        Direction = "direction",
        /// `compression` is there, but names no algorithm for this direction.
        NoAlgorithm = "no-algorithm",
        /// A condition of `compression if` or `compression unless` does not hold.
        Condition = "condition",
        /// The link toward the receiver compresses already: a single compressor on each hop.
        LinkCompresses = "link-compresses",
        /// `http-compression off` for the hop toward the receiver.
        SwitchedOff = "switched-off",
        /// The client speaks a version below `compression http-version`.
        ClientVersion = "client-version",
        /// The server answered in a version below `compression http-version`, under `http-conformance haproxy`.
        ServerVersion = "server-version",
        /// The body ends with the server's connection, under `http-conformance haproxy`.
        UntilClose = "until-close",
        /// The User-Agent cannot decode the codings that it asks for.
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
        /// The Content-Type is not among the configured ones, and is that of a compressed format: a picture, a film, an archive.
        CompressedType = "compressed-type",
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
        /// The client's connection has as many coders as it may have (`tune.comp.coders`).
        CoderLimit = "coder-limit",
    }
}

/// Groups of reasons, by the party that causes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// The operator can change it.
    Configuration,
    /// The client asked for it.
    Client,
    /// The message leaves no choice.
    Message,
    /// It is small.
    TooSmall,
    /// It is compressed already, or nothing would be won.
    Compressed,
    /// A limit was reached.
    Limits,
}

impl Group {
    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Configuration => "configuration",
            Group::Client => "client",
            Group::Message => "message",
            Group::TooSmall => "too-small",
            Group::Compressed => "compressed",
            Group::Limits => "limits",
        }
    }
}

/// Explanation of a reason for the operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advice {
    /// The party that causes it.
    pub group: Group,
    /// Why, in a sentence.
    pub text: &'static str,
    /// The line of a configuration that changes it.
    pub line: Option<&'static str>,
}

impl Reason {
    /// Its explanation for the operator.
    pub const fn advice(self) -> Advice {
        use Group::{Client, Compressed, Configuration, Limits, Message, TooSmall};
        let (group, text, line) = match self {
            Reason::NotConfigured => (Configuration, "no compression is configured", Some("compression on")),
            Reason::OwnAnswer => (Message, "terse answered itself", None),
            Reason::Direction => (Configuration, "responses are left out", Some("compression direction response")),
            Reason::NoAlgorithm => (Configuration, "no coding is configured", Some("compression on")),
            Reason::Condition => (Configuration, "a condition does not hold", None),
            Reason::LinkCompresses => (Compressed, "the link to the client compresses", None),
            Reason::SwitchedOff => (Configuration, "compression is off towards clients", Some("http-compression auto")),
            Reason::ClientVersion => (Configuration, "the client speaks HTTP/1.0", Some("compression http-version 1.0")),
            Reason::ServerVersion => (Configuration, "the server speaks HTTP/1.0", Some("compression http-version 1.0")),
            Reason::UntilClose => (Configuration, "the body ends with the connection", Some("compression http-version 1.0")),
            Reason::Agent => (Client, "the client is known not to decode what it asks for", None),
            Reason::Proxied => (Configuration, "the request came through another proxy", Some("compression proxied any")),
            Reason::RequestNoTransform => (Client, "the client forbids it", None),
            Reason::NoAcceptEncoding => (Client, "the client names no coding", None),
            Reason::ClientIdentity => (Client, "the client wants plain bytes", None),
            Reason::CodingRefused => (Client, "the client refuses the configured codings", None),
            Reason::NoCommonCoding => {
                (Configuration, "the client takes other codings", Some("compression algo zstd br gzip deflate"))
            }
            Reason::AcceptEncodingLimit => (Limits, "the client names too many codings", None),
            Reason::Head => (Message, "the answer to HEAD has no body", None),
            Reason::Upgrade => (Message, "the connection became a tunnel", None),
            Reason::NoBody => (Message, "there is no body", None),
            Reason::Status => (Message, "the status does not allow it", None),
            Reason::Partial => (Message, "it is a part of a body", None),
            Reason::AlreadyCoded => (Compressed, "the server compressed it", None),
            Reason::NoTransform => (Message, "the server forbids it", None),
            Reason::InvalidEtag => (Message, "the server's ETag is not valid", None),
            Reason::MultipleEtags => (Message, "the server sent several ETags", None),
            Reason::MissingType => (Message, "the server names no type", None),
            Reason::TypeNotListed => (Configuration, "the type is not listed", Some("compression type TYPE")),
            Reason::CompressedType => (Compressed, "its type is that of a compressed format", None),
            Reason::Multipart => (Message, "its parts have codings of their own", None),
            Reason::Grpc => (Message, "gRPC compresses its messages itself", None),
            Reason::TooSmall => (TooSmall, "it is below minsize-res", None),
            Reason::Magic => (Compressed, "its format is a compressed one", None),
            Reason::Entropy => (Compressed, "nothing would be won", None),
            Reason::RateBrake => (Limits, "maxcomprate is reached", None),
            Reason::CpuBrake => (Limits, "maxcompcpuusage is reached", None),
            Reason::BufferLimit => (Limits, "the memory for compression is used up", None),
            Reason::CoderLimit => (Limits, "its connection has too many coders", None),
        };
        Advice { group, text, line }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operator_can_change_has_a_line_that_a_file_takes() {
        for reason in Reason::ALL {
            let Advice { group, text, line } = reason.advice();
            assert!(!text.is_empty() && text.len() <= 50, "{reason}: {text}");
            assert!(line.is_none() || group == Group::Configuration, "{reason}");
            let Some(line) = line else { continue };
            let line = line.replace("TYPE", "text/");
            let (_, said) = crate::testing::load(&[crate::keywords::KEYWORDS], &format!("listen l\n {line}\n"));
            assert_eq!(said, [""; 0], "{reason}: {line}");
        }
    }
}
