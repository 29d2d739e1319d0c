//! The end of an exchange, and the continuation of its connection.

use terse_message::{Abort, BodyLength, Who};

/// The end of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The end of the request.
    pub request: Asked,
    /// The end of the response.
    pub response: Answered,
    /// The fate of the client's connection by the messages, the rules and the worker.
    pub connection: Then,
}

/// The end of a request. An answer alone ends no upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// All of it was taken.
    Whole,
    /// Its server has closed or takes no more: `Some`; or its rest is no longer waited for.
    Unread(Option<Abort>),
    /// Its client broke off, or it could not be read.
    Broken(Abort),
}

/// The end of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    /// The client has all of it.
    Whole,
    /// It broke off.
    Broken,
    /// The client gets no response.
    Nothing,
}

/// Whether a connection may carry another message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It may.
    Keep,
    /// It ends after this exchange.
    Drain,
    /// It ends at once, whatever is on its way.
    Kill,
}

/// The continuation of the client's connection. A stream of HTTP/2 ends with its exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// Another request may come.
    Request,
    /// The connection ends.
    Close,
    /// The connection ends, but bytes of the client's are still on their way: they are [read and dropped](crate::connection::linger), or
    /// the kernel would answer them with a reset that could overtake our answer (RFC 9112 section 9.6).
    Linger,
    /// The connection is reset: a body that only its end would have ended broke off (RFC 9112 section 8).
    Reset,
}

impl Ended {
    /// A message that went out whole, in answer to a request that was read whole or not.
    pub fn whole(is_read: bool, keeps: bool) -> Ended {
        let request = if is_read { Asked::Whole } else { Asked::Unread(None) };
        Ended { request, response: Answered::Whole, connection: if keeps { Then::Keep } else { Then::Drain } }
    }

    /// An end without a further byte.
    pub const fn cut() -> Ended {
        Ended { request: Asked::Whole, response: Answered::Nothing, connection: Then::Kill }
    }

    /// A response that broke off.
    pub const fn broken() -> Ended {
        Ended { request: Asked::Whole, response: Answered::Broken, connection: Then::Drain }
    }

    /// The continuation of the connection. `length` is the framing of the response's body; `must_close`: the request's
    /// framing was put right, so that no other may follow it; `has_more`: the client has sent more already.
    pub fn after(self, length: BodyLength, must_close: bool, has_more: bool) -> After {
        match (self.connection, self.response, self.request) {
            // A close would make it look whole.
            (_, Answered::Broken, _) if length == BodyLength::UntilClose => After::Reset,
            (Then::Kill, ..) | (_, Answered::Nothing | Answered::Broken, _) => After::Close,
            (_, _, Asked::Broken(abort)) if matches!(abort.who, Who::Client | Who::ClientTimeout) => After::Close,
            (_, _, Asked::Broken(_) | Asked::Unread(_)) => After::Linger,
            (Then::Keep, ..) => After::Request,
            (Then::Drain, ..) if must_close || has_more => After::Linger,
            (Then::Drain, ..) => After::Close,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_message::{Cause, Phase};

    #[test]
    fn what_follows_is_decided_from_how_it_ended() {
        let (left, junk) = (
            Asked::Broken(Abort::new(Who::Client, Phase::Data, Cause::Reset)),
            Asked::Broken(Abort::new(Who::Proxy, Phase::Data, Cause::Malformed)),
        );
        let refused = Asked::Unread(None);
        for (request, response, connection, length, must_close, has_more, after) in [
            (Asked::Whole, Answered::Whole, Then::Keep, BodyLength::Exact(1), false, false, After::Request),
            (Asked::Whole, Answered::Whole, Then::Keep, BodyLength::Exact(1), false, true, After::Request),
            (Asked::Whole, Answered::Whole, Then::Drain, BodyLength::Exact(1), false, false, After::Close),
            (Asked::Whole, Answered::Whole, Then::Drain, BodyLength::Exact(1), false, true, After::Linger),
            (Asked::Whole, Answered::Whole, Then::Drain, BodyLength::Exact(1), true, false, After::Linger),
            (refused, Answered::Whole, Then::Keep, BodyLength::Exact(1), false, false, After::Linger),
            (junk, Answered::Whole, Then::Keep, BodyLength::Exact(1), false, false, After::Linger),
            (left, Answered::Whole, Then::Keep, BodyLength::Exact(1), false, false, After::Close),
            (Asked::Whole, Answered::Broken, Then::Drain, BodyLength::UntilClose, false, false, After::Reset),
            (Asked::Whole, Answered::Broken, Then::Drain, BodyLength::Framed, false, true, After::Close),
            (refused, Answered::Nothing, Then::Keep, BodyLength::None, true, true, After::Close),
            (refused, Answered::Whole, Then::Kill, BodyLength::None, true, true, After::Close),
        ] {
            let ended = Ended { request, response, connection };
            assert_eq!(ended.after(length, must_close, has_more), after, "{ended:?} {length:?} {must_close} {has_more}");
        }
    }
}
