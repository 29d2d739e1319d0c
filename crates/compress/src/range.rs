//! Preconditions and ranges: what of them may go to the server.

use crate::policy::Offer;
use crate::settings::Effective;
use terse_message::Request;

/// What becomes of the ETag of a compressed response.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EtagMode {
    /// It becomes weak, as with HAProxy and nginx.
    #[default]
    Weaken,
    /// It becomes weak and gets a suffix that names the coding.
    Suffix,
}

/// Edits the preconditions of a request that goes to the server. To be called after [`crate::policy::offer`], which keeps what the
/// client sent. Says whether anything was edited.
pub fn guard(_request: &mut Request, _offer: &Offer, _settings: &Effective<'_>) -> bool {
    unreachable!("not built yet")
}
