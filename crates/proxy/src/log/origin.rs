//! Origin of a log line: a step of a transaction, or a list of rules.

/// Origin of a log line. `%OG` names it, and log profiles tell lines apart by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u8)]
pub enum Origin {
    /// No transaction is meant: a server went down, a message was passed on.
    #[default]
    Unspecified,
    /// A client's connection never became a transaction.
    Error,
    /// A connection was accepted.
    Accept,
    /// The request is known.
    Request,
    /// The connection to the server is there.
    Connect,
    /// The response is known.
    Response,
    /// The transaction has ended.
    Close,
    /// `do-log` in `tcp-request connection`.
    TcpRequestConnection,
    /// `do-log` in `tcp-request session`.
    TcpRequestSession,
    /// `do-log` in `tcp-request content`.
    TcpRequestContent,
    /// `do-log` in `tcp-response content`.
    TcpResponseContent,
    /// `do-log` in `http-request`.
    HttpRequest,
    /// `do-log` in `http-response`.
    HttpResponse,
    /// `do-log` in `http-after-response`.
    HttpAfterResponse,
}

impl Origin {
    /// Its name in `%OG`.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Unspecified => "unspec",
            Origin::Error => "sess_error",
            Origin::Accept => "txn_accept",
            Origin::Request => "txn_request",
            Origin::Connect => "txn_connect",
            Origin::Response => "txn_response",
            Origin::Close => "txn_close",
            Origin::TcpRequestConnection => "tcp-req-conn",
            Origin::TcpRequestSession => "tcp-req-sess",
            Origin::TcpRequestContent => "tcp-req-cont",
            Origin::TcpResponseContent => "tcp-res-cont",
            Origin::HttpRequest => "http-req",
            Origin::HttpResponse => "http-res",
            Origin::HttpAfterResponse => "http-after-res",
        }
    }

    /// The step that a `log-profile` or `log-steps` means by a word.
    pub fn parse(word: &str) -> Option<Origin> {
        STEPS.into_iter().find(|(name, _)| *name == word).map(|(_, origin)| origin)
    }

    /// The words that [`Origin::parse`] knows.
    pub fn words() -> impl Iterator<Item = &'static str> {
        STEPS.into_iter().map(|(name, _)| name)
    }
}

/// The steps at which transactions are logged (`log-steps`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps(u16);

impl Steps {
    /// Each of them (`log-steps all`).
    pub const ALL: Steps = Steps(u16::MAX);

    /// Reads `accept,close` or `all`; the error is the word that is no step.
    pub fn parse(list: &str) -> Result<Steps, &str> {
        if list == "all" {
            return Ok(Steps::ALL);
        }
        list.split(',').try_fold(Steps(0), |steps, word| match Origin::parse(word) {
            Some(Origin::Error) | None => Err(word),
            Some(origin) => Ok(Steps(steps.0 | 1 << origin as u16)),
        })
    }

    /// Whether the set contains an origin.
    pub const fn has(self, origin: Origin) -> bool {
        self.0 & 1 << origin as u16 != 0
    }
}

/// The keywords of the configuration: they are shorter than the names that `%OG` writes.
const STEPS: [(&str, Origin); 13] = [
    ("accept", Origin::Accept),
    ("request", Origin::Request),
    ("connect", Origin::Connect),
    ("response", Origin::Response),
    ("close", Origin::Close),
    ("error", Origin::Error),
    ("tcp-req-conn", Origin::TcpRequestConnection),
    ("tcp-req-sess", Origin::TcpRequestSession),
    ("tcp-req-cont", Origin::TcpRequestContent),
    ("tcp-res-cont", Origin::TcpResponseContent),
    ("http-req", Origin::HttpRequest),
    ("http-res", Origin::HttpResponse),
    ("http-after-res", Origin::HttpAfterResponse),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_lists() {
        let steps = Steps::parse("connect,close").unwrap();
        assert!(steps.has(Origin::Connect) && steps.has(Origin::Close));
        assert!(!steps.has(Origin::Accept) && !steps.has(Origin::Error) && !steps.has(Origin::HttpRequest));
        assert!(STEPS.iter().all(|(_, origin)| Steps::ALL.has(*origin)));
        for (list, word) in
            [("", ""), ("close,", ""), ("close,error", "error"), ("any", "any"), ("accept request", "accept request")]
        {
            assert_eq!(Steps::parse(list), Err(word), "{list}");
        }
    }

    #[test]
    fn words_find_their_step() {
        assert!(Origin::words().all(|word| Origin::parse(word).is_some()));
        assert_eq!(Origin::parse("http-res").map(Origin::name), Some("http-res"));
        assert_eq!(Origin::parse("close").map(Origin::name), Some("txn_close"));
    }
}
