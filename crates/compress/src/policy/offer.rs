//! What a request lets us do with its response.

use super::Link;
use crate::coding::Coding;
use crate::reason::Reason;
use crate::settings::Effective;
use terse_message::{Request, Version};

/// What is kept of a request for the decision about its response; the request itself may be edited or gone by then.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The coding that the client would get, or why it gets none.
    pub want: Result<Coding, Reason>,
    /// The version that the client speaks.
    pub version: Version,
    _state: (),
}

/// Reads a request before it is edited for the server, when frontend and backend are known. `link` is the one toward the client.
pub fn offer(_request: &Request, _link: Link, _settings: &Effective<'_>) -> Offer {
    unreachable!("not built yet")
}
