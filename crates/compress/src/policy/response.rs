//! The decision about a response.

use super::{Load, Offer, Plan, Verdict};
use crate::settings::Effective;
use terse_message::Response;

/// Judges a response by its head.
pub fn decide(_offer: &Offer, _response: &Response, _load: &Load, _settings: &Effective<'_>) -> Verdict {
    unreachable!("not built yet")
}

/// Judges a response, or a request's body, by its first bytes, after a verdict that asked for them. `first` is what has come so far,
/// `whole` says that it is all there is. Any first piece will do: the more, the better the judgement, up to
/// [`crate::sniff::LOOK_BYTES`].
pub fn look(_verdict: &Verdict, _first: &[u8], _whole: bool, _settings: &Effective<'_>) -> Verdict {
    unreachable!("not built yet")
}
