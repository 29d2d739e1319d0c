//! Which server is next.

use std::net::IpAddr;
use terse_message::Request;

/// What a choice may depend on.
#[derive(Clone, Copy, Default, Debug)]
pub struct Key<'a> {
    /// The client's address, for `balance source`.
    pub source: Option<IpAddr>,
    /// The request, for `balance uri`.
    pub request: Option<&'a Request>,
}
