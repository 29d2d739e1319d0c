//! Keywords that are understood and not built.

use super::refused;
use terse_config::Keyword;

pub(super) const APPSESSION: Keyword = refused(
    "appsession",
    "<cookie> len <length> timeout <time>",
    "Learns which server made an application's cookie.",
    "HAProxy has dropped it; write 'cookie <name> prefix', or 'cookie <name> insert'",
);
pub(super) const EXTERNAL_CHECK: Keyword = refused("option external-check", "", "Checks servers by a program.", PROGRAM);
pub(super) const EXTERNAL_CHECK_COMMAND: Keyword =
    refused("external-check command", "<file>", "Names the program that checks servers.", PROGRAM);
pub(super) const EXTERNAL_CHECK_PATH: Keyword =
    refused("external-check path", "<path>", "Sets PATH for the program that checks servers.", PROGRAM);

const PROGRAM: &str = "no program is started; 'option httpchk' and 'tcp-check' lines are built";
