//! Keywords of proxies that are understood and not built, and those that HAProxy itself has dropped: each with a replacement
//! or a reason.

use super::done;
use terse_config::{Keyword, Kind, Sections};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    refused(
        "option accept-unsafe-violations-in-http-response",
        "Malformed responses are passed on.",
        "malformed messages are never passed on",
    ),
    refused("option accept-invalid-http-response", "Malformed responses are passed on.", "malformed messages are never passed on"),
    refused("option transparent", "Connections go where clients sent them.", "write 'server <name> *'"),
    refused("option http_proxy", "Requests go to the host in their target.", "write a 'server' with an address"),
    refused("option http-tunnel", "Only the first request of a connection is looked at.", "remove it: every request is looked at"),
    refused("option assume-rfc6587-ntf", "How syslog messages are framed.", LOGS),
    refused("option dont-parse-log", "Syslog messages are passed on as they are.", LOGS),
    refused("email-alert from", "Who sends mails.", MAIL),
    refused("email-alert level", "Which lines are mailed.", MAIL),
    refused("email-alert mailers", "Who carries mails.", MAIL),
    refused("email-alert myhostname", "The host's name in mails.", MAIL),
    refused("email-alert to", "Who gets mails.", MAIL),
    refused("filter-sequence", "The order of filters.", "filters have a fixed order"),
    refused("use-fcgi-app", "Servers speak FastCGI.", "FastCGI is not spoken"),
    refused("quic-initial", "Rules on QUIC's first packets.", "there is no QUIC yet"),
    refused("crt", "A certificate.", "write 'crt' in the 'bind' line"),
    refused("ssl-f-use", "A certificate.", "write 'crt' or 'crt-list' in the 'bind' line"),
    // Keywords that HAProxy has dropped.
    refused("redispatch", "Another server on the last attempt.", "write 'option redispatch'"),
    refused("redisp", "Another server on the last attempt.", "write 'option redispatch'"),
    refused("transparent", "Connections go where clients sent them.", "write 'server <name> *'"),
    refused("monitor-net", "Networks that are answered at once.", "write 'http-request return status 200 if { src <network> }'"),
    refused("block", "Denies requests.", "write 'http-request deny if ...'"),
    refused("grace", "How long the proxy goes on when the process stops.", "write 'grace' in 'global'"),
    refused("usesrc", "The address that servers see.", "it belongs to the line of 'source', behind the address"),
    refused("reqadd", "Adds a field to requests.", "write 'http-request add-header <name> <value>'"),
    refused("reqdel", "Removes fields of requests.", DELETE_REQUEST),
    refused("reqidel", "Removes fields of requests.", DELETE_REQUEST),
    refused("reqdeny", "Denies requests.", DENY_REQUEST),
    refused("reqideny", "Denies requests.", DENY_REQUEST),
    refused("reqtarpit", "Holds requests.", TARPIT),
    refused("reqitarpit", "Holds requests.", TARPIT),
    refused("reqallow", "Allows requests.", "write 'http-request allow if ...'"),
    refused("reqiallow", "Allows requests.", "write 'http-request allow if ...'"),
    refused("reqpass", "Leaves fields of requests alone.", "write conditions behind 'http-request' rules"),
    refused("reqipass", "Leaves fields of requests alone.", "write conditions behind 'http-request' rules"),
    refused("reqrep", "Replaces in requests.", REPLACE_REQUEST),
    refused("reqirep", "Replaces in requests.", REPLACE_REQUEST),
    refused("cliexp", "Replaces in requests.", REPLACE_REQUEST),
    refused("rspadd", "Adds a field to responses.", "write 'http-response add-header <name> <value>'"),
    refused("rspdel", "Removes fields of responses.", DELETE_RESPONSE),
    refused("rspidel", "Removes fields of responses.", DELETE_RESPONSE),
    refused("rspdeny", "Denies responses.", "write 'http-response deny if ...'"),
    refused("rspideny", "Denies responses.", "write 'http-response deny if ...'"),
    refused("rsprep", "Replaces in responses.", REPLACE_RESPONSE),
    refused("rspirep", "Replaces in responses.", REPLACE_RESPONSE),
    refused("srvexp", "Replaces in responses.", REPLACE_RESPONSE),
];

const LOGS: &str = "syslog messages are not carried";
const MAIL: &str = "no mail is sent; watch the logs";
const DELETE_REQUEST: &str = "write 'http-request del-header <name>'";
const DENY_REQUEST: &str = "write 'http-request deny if ...'";
const TARPIT: &str = "write 'http-request tarpit if ...'";
const REPLACE_REQUEST: &str =
    "write 'http-request replace-path', 'replace-uri' or 'replace-header', whichever the expression was about";
const DELETE_RESPONSE: &str = "write 'http-response del-header <name>'";
const REPLACE_RESPONSE: &str = "write 'http-response replace-header <name> <regex> <format>'";

const fn refused(name: &'static str, summary: &'static str, instead: &'static str) -> Keyword {
    Keyword { kind: Kind::Refused(instead), sections: Sections::PROXY, ..done(name, "...", summary, |_, _| Ok(())) }
}
