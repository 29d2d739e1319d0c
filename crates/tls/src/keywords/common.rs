//! Keywords that both sides have, and readers of arguments for both sides.

use super::Draft;
use crate::alpn;
use crate::settings::{BindTls, Common, FileName, Policy, ServerTls};
use crate::version::Version;
use std::sync::Arc;
use terse_config::params::{Param, ParamKind, ParamParser};
use terse_config::{Args, Fault, Place};

/// Settings of either side, with the part that both have.
pub(super) trait Sided: 'static {
    /// The settings that both sides have.
    fn common(&mut self) -> &mut Common;
}

impl Sided for BindTls {
    fn common(&mut self) -> &mut Common {
        &mut self.own.common
    }
}

impl Sided for ServerTls {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

pub(super) const fn done<T>(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    parser: ParamParser<Draft<T>>,
) -> Param<Draft<T>> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}

pub(super) const fn accepted<T>(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    why: &'static str,
) -> Param<Draft<T>> {
    Param { name, arguments, summary, kind: ParamKind::Accepted(why) }
}

pub(super) const fn refused<T>(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    why: &'static str,
) -> Param<Draft<T>> {
    Param { name, arguments, summary, kind: ParamKind::Refused(why) }
}

/// `ssl-min-ver`
pub(super) const fn oldest<T: Sided>(summary: &'static str) -> Param<Draft<T>> {
    done("ssl-min-ver", "<version>", summary, |args, draft| {
        // The library speaks no older version: below SSLv3 is as below TLSv1.0.
        draft.tls.common().versions.min = match args.accept("SSLv3") {
            true => Some(Version::Tls10),
            false => version(args)?,
        };
        Ok(())
    })
}

/// `ssl-max-ver`
pub(super) const fn newest<T: Sided>() -> Param<Draft<T>> {
    done("ssl-max-ver", "<version>", "The newest version.", |args, draft| {
        draft.tls.common().versions.max = version(args)?;
        Ok(())
    })
}

/// A keyword whose name holds the version: `no-tlsv10`, `force-tlsv13`.
pub(super) const fn by_version<T: Sided>(name: &'static str, summary: &'static str) -> Param<Draft<T>> {
    done(name, "", summary, |args, draft| {
        version_word(args.taken(), draft.tls.common());
        Ok(())
    })
}

/// `ciphers`
pub(super) const fn ciphers<T: Sided>() -> Param<Draft<T>> {
    done("ciphers", "<ciphers>", "Ciphers up to TLS 1.2, in OpenSSL's language.", |args, draft| {
        draft.tls.common().ciphers = list(args, "<ciphers>")?;
        Ok(())
    })
}

/// `ciphersuites`
pub(super) const fn ciphersuites<T: Sided>() -> Param<Draft<T>> {
    done("ciphersuites", "<suites>", "Ciphers of TLS 1.3, separated by colons.", |args, draft| {
        draft.tls.common().ciphersuites = list(args, "<suites>")?;
        Ok(())
    })
}

/// `curves`
pub(super) const fn curves<T: Sided>() -> Param<Draft<T>> {
    done("curves", "<curves>", "Groups of the key exchange, separated by colons.", |args, draft| {
        draft.tls.common().curves = list(args, "<curves>")?;
        Ok(())
    })
}

/// `sigalgs`
pub(super) const fn signatures<T: Sided>() -> Param<Draft<T>> {
    done("sigalgs", "<algorithms>", "Algorithms of signatures, separated by colons.", |args, draft| {
        draft.tls.common().sigalgs = list(args, "<algorithms>")?;
        Ok(())
    })
}

/// `tls-compression`
pub(super) fn records<T: Sided>(args: &mut Args<'_>, tls: &mut T) -> Result<Policy, Fault> {
    let word = args.need("'forbid', 'detect' or 'allow'")?;
    let policy = Policy::of_word(word);
    let policy = policy.ok_or_else(|| args.fault(format!("'{word}' is neither 'forbid' nor 'detect' nor 'allow'")))?;
    tls.common().records = policy;
    Ok(policy)
}

/// `client-sigalgs`
pub(super) const fn client_signatures<T: Sided>(summary: &'static str) -> Param<Draft<T>> {
    done("client-sigalgs", "<algorithms>", summary, |args, draft| {
        draft.tls.common().client_sigalgs = list(args, "<algorithms>")?;
        Ok(())
    })
}

/// A version by its name.
pub(super) fn version(args: &mut Args<'_>) -> Result<Option<Version>, Fault> {
    let name = args.need("<version>")?;
    match Version::from_name(name) {
        Some(Version::Ssl3) => Err(args.fault("'SSLv3' is not supported: the system's OpenSSL is built without it")),
        Some(version) => Ok(Some(version)),
        None => Err(args.fault(format!("'{name}' is not a version: expects TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3"))),
    }
}

/// Applies the keyword of a version without arguments, if `word` is such a keyword; returns whether it was.
pub(super) fn version_word(word: &str, common: &mut Common) -> bool {
    let of = |word: &str| match word {
        "sslv3" => Some(Version::Ssl3),
        "tlsv10" => Some(Version::Tls10),
        "tlsv11" => Some(Version::Tls11),
        "tlsv12" => Some(Version::Tls12),
        "tlsv13" => Some(Version::Tls13),
        _ => None,
    };
    if let Some(version) = word.strip_prefix("no-").and_then(of) {
        common.versions.switch_off(version);
        true
    } else if let Some(version) = word.strip_prefix("force-").and_then(of) {
        common.versions.force(version);
        true
    } else {
        false
    }
}

/// A list in OpenSSL's language, which is not looked into here.
pub(super) fn list(args: &mut Args<'_>, what: &str) -> Result<Option<Arc<str>>, Fault> {
    match args.need(what)? {
        "" => Err(args.fault(format!("{what} is empty"))),
        list if list.contains('\0') => Err(args.fault(format!("{what} has a NUL byte"))),
        list => Ok(Some(list.into())),
    }
}

/// `on` or `off`
pub(super) fn on_off(args: &mut Args<'_>) -> Result<bool, Fault> {
    match args.need("'on' or 'off'")? {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(args.fault(format!("'{other}' is neither 'on' nor 'off'"))),
    }
}

/// Application protocols.
pub(super) fn protocols(args: &mut Args<'_>) -> Result<Option<Vec<Box<str>>>, Fault> {
    alpn::parse(args.need("<protocols>")?).map(Some).map_err(|reason| args.fault(reason))
}

/// A file's name.
pub(super) fn file(args: &mut Args<'_>, line: &Place) -> Result<FileName, Fault> {
    let name = args.need("<file>")?;
    if name.is_empty() {
        return Err(args.fault("<file>: the name is empty"));
    }
    Ok(FileName { name: name.into(), place: args.place(line) })
}
