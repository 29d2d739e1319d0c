//! Keywords of TLS: of `global`, of `bind` lines and of `server` lines.
//!
//! Crates above read lines of `bind` and `server`; they ask these tables for the keywords that concern TLS.

mod bind;
mod common;
mod global;
mod server;
mod store;

use crate::settings::{BindTls, ServerTls};
use crate::store::Parts;
use terse_config::params::{self, Param, Standing};
use terse_config::{Args, Fault, Keyword, Place, reference, words};

/// The keywords of `global`.
pub const KEYWORDS: &[Keyword] = global::KEYWORDS;

/// The keywords of `crt-store` sections.
pub const STORE_KEYWORDS: &[Keyword] = store::KEYWORDS;

/// Reads the next keyword of a `bind` line and its arguments, if it concerns TLS; returns whether it did.
///
/// # Errors
/// The reason why they are invalid.
pub fn bind(args: &mut Args<'_>, line: &Place, tls: &mut BindTls) -> Result<bool, Fault> {
    take(args, line, tls, bind::TABLE)
}

/// The same of a `server` line.
///
/// # Errors
/// The reason why they are invalid.
pub fn server(args: &mut Args<'_>, line: &Place, tls: &mut ServerTls) -> Result<bool, Fault> {
    take(args, line, tls, server::TABLE)
}

/// Settings of a certificate in a list, apart from those of its handshakes.
#[derive(Default)]
pub(crate) struct Listed {
    /// Files of its parts.
    pub(crate) parts: Parts,
    /// `jwt`
    pub(crate) for_tokens: bool,
}

/// Reads the keywords of a line of a list of certificates; returns those that concern the certificate itself.
///
/// # Errors
/// The reason why they are invalid.
pub(crate) fn listed(text: &str, place: &Place, tls: &mut BindTls) -> Result<Listed, String> {
    let cut = words::split(text.as_bytes(), &|_| None).map_err(|error| error.reason)?;
    let mut args = Args::new(&cut.words, 0);
    let mut listed = Listed::default();
    while let Some(word) = args.peek() {
        let read = if PARTS.contains(&word) {
            store::part(&mut args, place, &mut listed)
        } else if LISTED.contains(&word) {
            bind(&mut args, place, tls).map(drop)
        } else {
            return Err(format!("'{word}' cannot stand here: known are {}, {}", LISTED.join(", "), PARTS.join(", ")));
        };
        read.map_err(|fault| fault.reason)?;
    }
    Ok(listed)
}

/// The keywords that a certificate of a list may have of its own.
const LISTED: &[&str] = &[
    "allow-0rtt",
    "alpn",
    "ca-file",
    "ca-verify-file",
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "crl-file",
    "curves",
    "ecdhe",
    "ktls",
    "no-alpn",
    "no-ca-names",
    "npn",
    "ocsp-update",
    "sigalgs",
    "ssl-max-ver",
    "ssl-min-ver",
    "verify",
];

/// Keywords that a `crt-store` knows too: the files of a certificate's parts, and whether it is for tokens.
const PARTS: &[&str] = &["key", "ocsp", "issuer", "sctl", "jwt"];

/// Settings that keywords fill, and the line that these stand in.
struct Draft<T> {
    tls: T,
    line: Place,
}

fn take<T: Default>(args: &mut Args<'_>, line: &Place, tls: &mut T, table: &[Param<Draft<T>>]) -> Result<bool, Fault> {
    let known = args.peek().is_some_and(|word| table.iter().any(|param| param.is(word)));
    if known {
        let mut draft = Draft { tls: std::mem::take(tls), line: line.clone() };
        let outcome = params::apply_one(args, "parameter", table, &mut draft);
        *tls = draft.tls;
        outcome?;
    }
    Ok(known)
}

/// Support state of the keywords of `bind` lines.
pub fn bind_standings() -> Vec<Standing> {
    params::standings(bind::TABLE)
}

/// Support state of the keywords of `server` lines.
pub fn server_standings() -> Vec<Standing> {
    params::standings(server::TABLE)
}

/// Markdown: the keywords within lines, for the manual.
pub fn reference() -> String {
    let tables = [
        reference::parameters("Parameters of `bind` that concern TLS", bind::TABLE),
        reference::parameters("Parameters of `server` that concern TLS", server::TABLE),
        reference::parameters("Parameters of `load` in `crt-store`", store::TABLE),
    ];
    tables.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::params::table_is_sound;

    #[test]
    fn the_tables_are_sound() {
        assert_eq!(table_is_sound(bind::TABLE), [""; 0]);
        assert_eq!(table_is_sound(server::TABLE), [""; 0]);
        assert_eq!(table_is_sound(store::TABLE), [""; 0]);
        assert_eq!(terse_config::keyword::tables_are_sound(&[KEYWORDS, STORE_KEYWORDS]), [""; 0]);
    }
}
