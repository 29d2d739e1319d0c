//! `option http-restrict-req-hdr-names`: names of fields with other characters than letters, digits and dashes. Applications that
//! turn names into variables of an environment, as CGI does (RFC 3875 section 4.1.18), cannot tell `X-User` from `X_User`.
//!
//! It is a rule before all others of its proxy.

use super::{Action, Flow, Rule};
use crate::reply;
use crate::settings::UnusualNames;
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::Place;

/// The rule; `None` where no field is to be changed.
pub fn rule(names: UnusualNames) -> Option<Arc<Rule>> {
    let action: Box<dyn Action> = match names {
        UnusualNames::Preserve => return None,
        names => Box::new(Restrict(names)),
    };
    Some(Arc::new(Rule { action, condition: None, place: Place::nowhere() }))
}

struct Restrict(UnusualNames);

impl Action for Restrict {
    fn run(&self, stream: &mut Stream) -> Flow {
        if stream.request.fields.iter().all(|(name, _)| is_usual(name)) {
            return Flow::Next;
        }
        if self.0 == UnusualNames::Reject {
            return Flow::Deny(Box::new(reply::page(stream, 403)));
        }
        stream.request.fields.retain(|name, _| is_usual(name));
        Flow::Next
    }
}

fn is_usual(name: &[u8]) -> bool {
    name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
}
