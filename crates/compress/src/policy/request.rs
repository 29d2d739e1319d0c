//! The decision about a request's own body.

use super::{Link, Load, Verdict};
use crate::settings::Effective;
use terse_message::Request;

/// Judges a request's body. `link` is the one toward the server. `varies` is never set.
pub fn decide_request(_request: &Request, _link: Link, _load: &Load, _settings: &Effective<'_>) -> Verdict {
    unreachable!("not built yet")
}
