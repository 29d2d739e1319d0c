//! Keywords that are understood and not built.

use super::refused;
use terse_config::Keyword;

pub(super) const SERVER_TEMPLATE: Keyword = refused(
    "server-template",
    "<prefix> <count> <name>:<port> [<parameter>...]",
    "Makes servers of a name's addresses.",
    "names that change at run time come later; write a 'server' line for each address",
);
pub(super) const DISPATCH: Keyword =
    refused("dispatch", "<address>:<port>", "Sends everything to one address.", "write 'server <name> <address>:<port>'");
pub(super) const APPSESSION: Keyword = refused(
    "appsession",
    "<cookie> len <length> timeout <time>",
    "Learns which server made an application's cookie.",
    "HAProxy has dropped it; write 'cookie <name> prefix', or 'cookie <name> insert'",
);
pub(super) const HASH_BALANCE_FACTOR: Keyword =
    refused("hash-balance-factor", "<percent>", "Bounds the load of a server whose key is asked for often.", LATER);
pub(super) const LOAD_STATE: Keyword =
    refused("load-server-state-from-file", "{ global | local | none }", "Starts servers in the state that a file says.", LATER);
pub(super) const STATE_FILE_NAME: Keyword =
    refused("server-state-file-name", "[use-backend-name | <file>]", "Names the file of servers' states.", LATER);
pub(super) const CHECKCACHE: Keyword =
    refused("option checkcache", "", "Blocks answers that may be cached with a cookie in them.", LATER);
pub(super) const EXTERNAL_CHECK: Keyword = refused("option external-check", "", "Checks servers by a program.", PROGRAM);
pub(super) const EXTERNAL_CHECK_COMMAND: Keyword =
    refused("external-check command", "<file>", "Names the program that checks servers.", PROGRAM);
pub(super) const EXTERNAL_CHECK_PATH: Keyword =
    refused("external-check path", "<path>", "Sets PATH for the program that checks servers.", PROGRAM);
pub(super) const LDAP_CHECK: Keyword = refused("option ldap-check", "", "Checks servers by LDAP.", PROTOCOL);
pub(super) const MYSQL_CHECK: Keyword =
    refused("option mysql-check", "[user <name>]", "Checks servers by MySQL's protocol.", PROTOCOL);
pub(super) const PGSQL_CHECK: Keyword =
    refused("option pgsql-check", "user <name>", "Checks servers by PostgreSQL's protocol.", PROTOCOL);
pub(super) const REDIS_CHECK: Keyword = refused("option redis-check", "", "Checks servers by a PING of Redis.", PROTOCOL);
pub(super) const SMTPCHK: Keyword = refused("option smtpchk", "[<hello> <domain>]", "Checks servers by SMTP.", PROTOCOL);
pub(super) const SPOP_CHECK: Keyword = refused("option spop-check", "", "Checks agents of SPOE.", "SPOE is not built");
pub(super) const SSL_HELLO_CHK: Keyword = refused("option ssl-hello-chk", "", "Checks servers by a hello of SSLv3.", PROTOCOL);

const LATER: &str = "it comes later";
const PROGRAM: &str = "checks by a program come later; 'option httpchk' and 'tcp-check' lines are built";
const PROTOCOL: &str = "checks of this protocol come later; 'tcp-check' lines can say the same";
