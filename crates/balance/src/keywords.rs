//! The keywords of backends that concern servers.
//!
//! As in HAProxy, lines for one half of a proxy may be in the other, with a warning that they have no effect there.

mod address;
mod announcement;
mod balance;
pub mod base;
mod check;
mod cookie;
mod course_words;
mod name_words;
mod protocol_check;
mod refused;
pub mod server;
mod server_words;
mod states;
pub mod table;

use crate::settings::FarmSettings;
use terse_config::params::{self, Standing};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, reference};

/// Table of keywords.
pub const KEYWORDS: &[Keyword] = &{
    use {balance::*, base::*, check::*, cookie::*, protocol_check::*, refused::*, server::*, states::*, table::*};
    [
        BALANCE,
        HASH_TYPE,
        HASH_PRESERVE_AFFINITY,
        ALLBACKUPS,
        COOKIE,
        PERSIST,
        SERVER,
        DEFAULT_SERVER,
        PURGE,
        SERVER_TEMPLATE,
        SOURCE,
        DYNAMIC_COOKIE_KEY,
        HTTPCHK,
        HTTP_CHECK,
        TCP_CHECK_OPTION,
        TCP_CHECK,
        TYPE,
        TIMEOUT_CHECK,
        LOG_HEALTH_CHECKS,
        STICK_TABLE,
        FULLCONN,
        DISPATCH,
        APPSESSION,
        HASH_BALANCE_FACTOR,
        LOAD_STATE,
        STATE_FILE_NAME,
        PROGRAMS,
        EXTERNAL_CHECK,
        EXTERNAL_CHECK_COMMAND,
        EXTERNAL_CHECK_PATH,
        LDAP_CHECK,
        MYSQL_CHECK,
        PGSQL_CHECK,
        REDIS_CHECK,
        SMTPCHK,
        SPOP_CHECK,
        SSL_HELLO_CHK,
    ]
};

/// Markdown: the keywords of `server`, `stick-table`, `http-check` and `tcp-check`, for the manual.
pub fn reference() -> String {
    let tables = [
        reference::parameters("Parameters of `server` and `default-server`", server_words::KEYWORDS),
        reference::parameters("Parameters of `server` that say how it comes, goes and fills", course_words::KEYWORDS),
        reference::parameters("Parameters of `server` that concern its name", name_words::KEYWORDS),
        reference::parameters("Parameters of `server` that concern the PROXY protocol", announcement::KEYWORDS),
        reference::parameters("Parameters of `stick-table`", table::KEYWORDS),
        reference::parameters("Steps of `http-check`", check::HTTP_STEPS),
        reference::parameters("Steps of `tcp-check`", check::TCP_STEPS),
    ];
    tables.join("\n")
}

/// Support of the keywords of `server` lines.
pub fn standings() -> Vec<Standing> {
    let tables = [server_words::KEYWORDS, course_words::KEYWORDS, name_words::KEYWORDS, announcement::KEYWORDS];
    tables.into_iter().flat_map(params::standings).chain(terse_tls::keywords::server_standings()).collect()
}

/// Support of a step of `http-check` or `tcp-check`.
pub fn step_standing(keyword: &str, step: &str) -> Option<Standing> {
    let steps = match keyword {
        "http-check" => check::HTTP_STEPS,
        "tcp-check" => check::TCP_STEPS,
        _ => return None,
    };
    params::standings(steps).into_iter().find(|standing| standing.name.trim_end_matches('(') == step)
}

/// A supported keyword.
const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Done(parser) }
}

/// A supported keyword that `no` before it takes back.
const fn switch(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { kind: Kind::Switch(parser), ..done(name, "", summary, parser) }
}

/// A keyword that is recognized and refused.
const fn refused(name: &'static str, arguments: &'static str, summary: &'static str, reason: &'static str) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Refused(reason) }
}

/// Parses a switch, which has no arguments, and sets it; in a frontend it only warns.
fn set(args: &mut Args<'_>, scope: &mut Scope<'_>, what: fn(&mut FarmSettings) -> &mut bool) -> Result<(), Fault> {
    args.end()?;
    let on = !scope.negated;
    if in_back(scope) {
        *what(settings(scope)) = on;
    }
    Ok(())
}

/// Settings of the section.
fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut FarmSettings {
    scope.section.settings.entry()
}

/// Settings of the section, where it has any.
fn settings_of<'a>(scope: &'a Scope<'_>) -> Option<&'a FarmSettings> {
    scope.section.settings.get()
}

/// Whether the section has servers, or is for sections that have; a section without servers gets a warning that the
/// line has no effect there.
fn in_back(scope: &mut Scope<'_>) -> bool {
    let section = &scope.section;
    if Sections::BACK.or(Sections::HEALTH_CHECK).has(section.kind) {
        return true;
    }
    let text = format!("ignored because {} '{}' has no backend capability", section.kind.name(), section.name);
    scope.warn(0, text);
    false
}

#[cfg(test)]
mod tests;
