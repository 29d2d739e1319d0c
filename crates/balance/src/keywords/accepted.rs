//! Keywords that cannot change anything here.

use super::refused;
use terse_config::{Keyword, Kind};

pub(super) const FULLCONN: Keyword = Keyword {
    kind: Kind::Accepted("only servers with 'minconn' look at it, and there are none"),
    ..refused("fullconn", "<connections>", "Says how full a backend is when its servers get their whole 'maxconn'.", "")
};
