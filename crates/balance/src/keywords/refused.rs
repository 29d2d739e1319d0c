//! Keywords that are understood and not built.

use super::refused;
use terse_config::Keyword;

pub(super) const APPSESSION: Keyword = refused(
    "appsession",
    "<cookie> len <length> timeout <time>",
    "Learns which server made an application's cookie.",
    "HAProxy has dropped it; write 'cookie <name> prefix', or 'cookie <name> insert'",
);
