//! What compression does to heads.

use crate::policy::{Offer, Plan, Verdict};
use crate::settings::Effective;
use terse_message::{Fields, Request, Response};

/// Takes Accept-Encoding from a request that goes to the server, when `compression offload` says so and the client takes one of our
/// codings. To be called after [`crate::policy::offer`].
pub fn offload(_request: &mut Request, _offer: &Offer, _settings: &Effective<'_>) {
    unreachable!("not built yet")
}

/// Edits a response's head as the verdict demands: the fields of a compressed response, Vary of one that is not, and what a 304 says
/// about a response that was compressed. A verdict that still wants to look at bytes edits nothing.
pub fn apply(_response: &mut Response, _offer: &Offer, _verdict: &Verdict, _settings: &Effective<'_>) {
    unreachable!("not built yet")
}

/// Edits the head of a request whose body is compressed.
pub fn apply_request(_request: &mut Request, _plan: Plan) {
    unreachable!("not built yet")
}

/// Takes from the trailers of a compressed message what no longer holds of it.
pub fn apply_trailers(_trailers: &mut Fields) {
    unreachable!("not built yet")
}
