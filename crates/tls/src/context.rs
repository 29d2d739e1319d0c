//! Settings that contexts of both sides have in common.

use crate::certificate::{Certificate, Unusable, said};
use crate::keylog;
use crate::raw;
use crate::records::{self, Policy};
use crate::remembered;
use crate::settings::{Common, Global};
use crate::version::Version;
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::pkey::Id;
use openssl::ssl::{SslContext, SslContextBuilder, SslMethod, SslMode, SslOptions, SslRef};
use openssl::x509::X509;
use std::sync::{Arc, LazyLock};

/// A context with everything that both sides set. `oldest` is the oldest version where the configuration names none.
pub(crate) fn builder(method: SslMethod, words: &Common, global: &Global, oldest: Version) -> Result<SslContextBuilder, Unusable> {
    let failed = |error: ErrorStack| Unusable(format!("OpenSSL makes no context: {}", said(&error)));
    let mut context = SslContextBuilder::new(method).map_err(failed)?;
    if let Some(level) = global.security_level {
        context.set_security_level(level);
    }
    let (min, max) = words.versions.range(oldest).map_err(Unusable)?;
    context.set_min_proto_version(Some(min.openssl())).map_err(failed)?;
    context.set_max_proto_version(Some(max.openssl())).map_err(failed)?;
    let mut options = SslOptions::ALL | SslOptions::NO_COMPRESSION | SslOptions::SINGLE_DH_USE | SslOptions::SINGLE_ECDH_USE;
    if words.tickets == Some(false) {
        options |= SslOptions::NO_TICKET;
    }
    context.set_options(options);
    if words.records == Policy::Allow {
        let lacks = |why| Unusable(format!("'tls-compression allow': records cannot be compressed: {why}"));
        records::support().map_err(lacks)?;
        records::allow(&mut context);
    }
    if global.keeps_secrets {
        keylog::listen(&mut context);
    }
    context.set_mode(SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER | SslMode::RELEASE_BUFFERS);
    // The authorities of a `ca-file` do not complete our own chains.
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    // One system call for a record instead of two.
    context.set_read_ahead(true);
    // OpenSSL's lists end at a NUL, and the `openssl` crate panics at one.
    let lists = [
        ("ciphers", &words.ciphers),
        ("ciphersuites", &words.ciphersuites),
        ("curves", &words.curves),
        ("sigalgs", &words.sigalgs),
        ("client-sigalgs", &words.client_sigalgs),
    ];
    if let Some((word, _)) = lists.iter().find(|(_, list)| list.as_ref().is_some_and(|list| list.contains('\0'))) {
        return Err(Unusable(format!("'{word}': there is a NUL in it")));
    }
    if let Some(ciphers) = &words.ciphers {
        context.set_cipher_list(ciphers).map_err(|error| wrong("ciphers", ciphers, &error))?;
    }
    if let Some(suites) = &words.ciphersuites {
        context.set_ciphersuites(suites).map_err(|error| wrong("ciphersuites", suites, &error))?;
    }
    if let Some(curves) = &words.curves {
        context.set_groups_list(curves).map_err(|error| wrong("curves", curves, &error))?;
    }
    if let Some(algorithms) = &words.sigalgs {
        context.set_sigalgs_list(algorithms).map_err(|error| wrong("sigalgs", algorithms, &error))?;
    }
    if let Some(algorithms) = &words.client_sigalgs {
        raw::set_client_signatures(&mut context, algorithms).map_err(|error| wrong("client-sigalgs", algorithms, &error))?;
    }
    Ok(context)
}

/// Gives a context a certificate to show. It can have one of each kind of key.
pub(crate) fn show(context: &mut SslContextBuilder, certificate: &Certificate) -> Result<(), Unusable> {
    let failed =
        |error: ErrorStack| Unusable(format!("'{}': OpenSSL does not take it: {}", certificate.path.display(), said(&error)));
    context.set_certificate(&certificate.leaf).map_err(failed)?;
    let key = certificate.key.as_ref().ok_or_else(|| Unusable::new(&certificate.path, "there is no private key"))?;
    context.set_private_key(key).map_err(failed)?;
    for above in &certificate.chain {
        raw::add_chain_certificate(context, above).map_err(failed)?;
    }
    Ok(())
}

/// The certificates of a context, and the name of each.
type Named = Vec<(X509, Arc<str>)>;

static NAMED: LazyLock<Option<Index<SslContext, Named>>> = LazyLock::new(|| SslContext::new_ex_index().ok());

/// Remembers the names of the certificates of a context.
pub(crate) fn name(context: &mut SslContextBuilder, certificates: &[&Certificate]) {
    let named = certificates.iter().map(|shown| (shown.leaf.clone(), shown.path.to_string_lossy().into()));
    if let Some(index) = *NAMED {
        context.set_ex_data(index, named.collect());
    }
}

/// Name of the certificate that a connection shows.
pub(crate) fn name_of_shown(ssl: &SslRef) -> Option<Arc<str>> {
    let (named, shown) = (ssl.ssl_context().ex_data((*NAMED)?)?, shown(ssl)?);
    named.iter().find(|(leaf, _)| **leaf == *shown).map(|(_, name)| name.clone())
}

/// The certificate that a connection shows. A resumed session shows none: then, of the candidates, the one of the key that
/// the session began with.
pub(crate) fn shown(ssl: &SslRef) -> Option<X509> {
    let named = (*NAMED).and_then(|index| ssl.ssl_context().ex_data(index)).filter(|_| ssl.session_reused());
    let began = named.into_iter().flatten().map(|(leaf, _)| leaf).find(|leaf| {
        let kind = leaf.public_key().map(|key| key.id());
        kind.is_ok_and(|kind| match remembered::of(ssl).and_then(|remembered| remembered.signature) {
            Some(signature) => raw::is_of_kind(signature, kind),
            // A session in memory, up to TLS 1.2: there the cipher shows it.
            None => ssl.current_cipher().is_some_and(|cipher| cipher.name().contains("ECDSA") == (kind != Id::RSA)),
        })
    });
    began.cloned().or_else(|| ssl.certificate().map(ToOwned::to_owned))
}

fn wrong(word: &str, list: &str, error: &ErrorStack) -> Unusable {
    Unusable(format!("'{word}': OpenSSL takes nothing of '{list}': {}", said(error)))
}
