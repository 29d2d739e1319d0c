//! The keywords of `crt-store` sections, and those of their lines.

use super::common::{self, done, refused};
use super::{Draft, Listed, global};
use crate::settings::FileName;
use crate::store::{Load, Parts, Store};
use terse_config::params::{self, Param};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Place, Scope, Sections};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    keyword("crt-base", "<folder>", "Where relative names of certificates of this section begin.", |args, scope| {
        let folder = global::folder(args)?;
        before_loads(args, scope)?.crt_base = Some(folder);
        args.end()
    }),
    keyword("key-base", "<folder>", "Where relative names of keys of this section begin.", |args, scope| {
        let folder = global::folder(args)?;
        before_loads(args, scope)?.key_base = Some(folder);
        args.end()
    }),
    keyword("load", "crt <file> [<parameter>...]", "A certificate, and where its parts are.", |args, scope| {
        let mut draft = Draft { tls: Words::default(), line: scope.place.clone() };
        params::apply(args, "parameter", TABLE, &mut draft)?;
        let Words { certificate, parts, alias, updates, for_tokens } = draft.tls;
        let certificate = certificate.ok_or_else(|| args.fault("mandatory 'crt' parameter not found"))?;
        store(scope).loads.push(Load { certificate, parts, alias, updates, for_tokens: for_tokens == Some(true) });
        Ok(())
    }),
];

/// The keywords of a `load` line.
pub(super) const TABLE: &[Param<Draft<Words>>] = &[
    done("crt", "<file>", "The certificate, those above it, and its key, where 'key' names no other file.", |args, draft| {
        draft.tls.certificate = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("key", "<file>", "Its key.", |args, draft| {
        draft.tls.parts.key = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("ocsp", "<file>", "An answer about its state, in DER.", |args, draft| {
        draft.tls.parts.ocsp = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("alias", "<name>", "What it is called by: '@<section>/<name>'.", |args, draft| {
        let name = args.need("<name>")?;
        if name.is_empty() || name.starts_with('/') {
            return Err(args.fault(format!("'{name}': '/' is forbidden as the first character, and a name is needed")));
        }
        draft.tls.alias = Some(name.to_owned());
        Ok(())
    }),
    done("issuer", "<file>", "Who has signed it.", |args, draft| {
        draft.tls.parts.issuer = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("sctl", "<file>", "Timestamps of logs that have seen it (RFC 6962).", |args, draft| {
        draft.tls.parts.timestamps = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("ocsp-update", "{ on | off }", "Whether answers about its state are fetched.", |args, draft| {
        draft.tls.updates = Some(common::on_off(args)?);
        Ok(())
    }),
    done("jwt", "{ on | off }", "Whether it verifies and decrypts tokens; then it needs no key.", |args, draft| {
        draft.tls.for_tokens = Some(common::on_off(args)?);
        Ok(())
    }),
    refused("acme", "<section>", "Orders it.", ORDERED),
    refused("domains", "<names>", "The names that are ordered.", ORDERED),
    refused("ips", "<addresses>", "The addresses that are ordered.", ORDERED),
    refused("generate-dummy", "{ on | off }", "Makes one that nobody has signed.", ORDERED),
    refused("keytype", "<kind>", "The kind of key of a made one.", ORDERED),
    refused("bits", "<bits>", "The size of its key.", ORDERED),
    refused("curves", "<curve>", "The curve of its key.", ORDERED),
];

const ORDERED: &str = "certificates are neither ordered nor made here; use a client such as certbot";

/// The keywords of a `load` line, as they are read.
#[derive(Default)]
pub(super) struct Words {
    certificate: Option<FileName>,
    parts: Parts,
    alias: Option<String>,
    updates: Option<bool>,
    for_tokens: Option<bool>,
}

/// Reads a keyword of a `load` line in a list: the file of a part, or whether the certificate is for tokens.
///
/// # Errors
/// The reason why it is invalid.
pub(super) fn part(args: &mut Args<'_>, line: &Place, listed: &mut Listed) -> Result<(), Fault> {
    let words = Words { parts: std::mem::take(&mut listed.parts), ..Words::default() };
    let mut draft = Draft { tls: words, line: line.clone() };
    let outcome = params::apply_one(args, "parameter", TABLE, &mut draft);
    listed.parts = draft.tls.parts;
    listed.for_tokens = draft.tls.for_tokens.unwrap_or(listed.for_tokens);
    outcome
}

const fn keyword(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::CRT_STORE, arguments, summary, kind: Kind::Done(parser) }
}

fn store<'a>(scope: &'a mut Scope<'_>) -> &'a mut Store {
    scope.section.settings.entry()
}

fn before_loads<'a>(args: &Args<'_>, scope: &'a mut Scope<'_>) -> Result<&'a mut Store, Fault> {
    let store = store(scope);
    match store.loads.is_empty() {
        true => Ok(store),
        false => Err(args.fault("it can't be used after a load line, use it at the beginning of the section")),
    }
}
