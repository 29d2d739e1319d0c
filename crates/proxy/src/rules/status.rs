//! A response's first line: `set-status`.

use super::{AFTER, Action, ActionWord, Flow, RESPONSE, RuleSet, done, rewrite};
use crate::stream::Stream;
use terse_config::{Args, Fault, Scope};
use terse_message::status::reason as usual;
use terse_message::{BodyLength, Response};

/// The table.
pub(super) const ACTIONS: &[ActionWord] =
    &[done("set-status", RESPONSE | AFTER, "<status> [reason <text>]", "Puts another status in the first line.", parse)];

struct SetStatus {
    status: u16,
    /// The reason phrase; the usual phrase when the line gives none.
    reason: Box<[u8]>,
}

impl Action for SetStatus {
    fn run(&self, stream: &mut Stream) -> Flow {
        let done = apply(&mut stream.response, self.status, Some(&self.reason));
        rewrite::outcome(done, stream)
    }
}

/// Sets the status, which decides whether a body follows (RFC 9112 section 6.3). A status without a body cannot be given to a
/// response that has bytes: false. A status with a body gets `Content-Length: 0` where there was none. Without a reason it
/// has the usual phrase.
pub(super) fn apply(response: &mut Response, status: u16, reason: Option<&[u8]>) -> bool {
    if is_bodyless(status) && response.body != BodyLength::None {
        if response.body != BodyLength::Exact(0) {
            return false;
        }
        response.fields.remove(b"content-length");
        response.body = BodyLength::None;
    }
    if is_bodyless(response.status) && !is_bodyless(status) {
        response.fields.set(b"Content-Length", b"0");
        response.body = BodyLength::Exact(0);
    }
    response.status = status;
    response.set_reason(reason.unwrap_or_else(|| usual(status).as_bytes()));
    true
}

fn is_bodyless(status: u16) -> bool {
    matches!(status, 100..=199 | 204 | 304)
}

fn parse(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let status = u16::try_from(args.integer("<status>", 100..=999)?).unwrap_or_default();
    let reason = match args.accept("reason") {
        true => args.need_bytes("<text>")?.into(),
        false => usual(status).as_bytes().into(),
    };
    Ok(Box::new(SetStatus { status, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(from: u16, body: BodyLength, to: u16) -> (bool, Response) {
        let mut response = Response::default();
        (response.status, response.body) = (from, body);
        let done = apply(&mut response, to, Some(b"Why"));
        (done, response)
    }

    #[test]
    fn the_body_stays_what_it_is() {
        let (done, response) = set(200, BodyLength::Framed, 503);
        assert_eq!((done, response.status, response.reason(), response.body), (true, 503, &b"Why"[..], BodyLength::Framed));
        let (done, response) = set(200, BodyLength::Exact(3), 204);
        assert_eq!((done, response.status), (false, 200));
        let (done, response) = set(200, BodyLength::Exact(0), 204);
        assert_eq!((done, response.status, response.body), (true, 204, BodyLength::None));
        let (done, response) = set(304, BodyLength::None, 200);
        assert_eq!((done, response.fields.get(b"content-length"), response.body), (true, Some(&b"0"[..]), BodyLength::Exact(0)));
        // An answer to HEAD.
        let (done, response) = set(200, BodyLength::None, 404);
        assert_eq!((done, response.fields.len(), response.body), (true, 0, BodyLength::None));
    }
}
