//! TLS to servers: what a `server` line comes to.
//!
//! One session of before is kept for each server, with the name that it was made under: the next connection that asks for this name
//! offers it.

use crate::certificate::Unusable;
use crate::context;
use crate::secured::{Limits, Secured, Side, Socket};
use crate::settings::ServerTls;
use crate::vault::Vault;
use crate::verification::{self, Tolerance};
use crate::version::Version;
use crate::{alpn, raw, trust};
use openssl::ssl::{NameType, Ssl, SslContext, SslMethod, SslOptions, SslRef, SslSession, SslSessionCacheMode, SslVerifyMode};
use openssl::x509::verify::X509CheckFlags;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use terse_config::{Diagnostics, Place};

/// Makes connections to a server secure.
pub struct Connector {
    context: SslContext,
    limits: Limits,
    /// The name that its certificate must have, whatever is asked for.
    verify_host: Option<Arc<str>>,
    verifies: bool,
    /// Protocols that requests offer, as TLS carries them, and those of checks.
    protocols: [Vec<u8>; 2],
    kept: Arc<Mutex<Option<Kept>>>,
    reuses: bool,
}

/// A session of before.
struct Kept {
    name: Option<Box<str>>,
    session: SslSession,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Requests, or bytes.
    Traffic,
    /// A health check.
    Check,
}

impl Connector {
    /// Reads what a line names and makes its context. Everything that is wrong is said; there is none if anything is.
    pub fn build(tls: &ServerTls, place: &Place, vault: &mut Vault, diagnostics: &mut Diagnostics) -> Option<Connector> {
        match make(tls, vault) {
            Ok(connector) => Some(connector),
            Err(Unusable(reason)) => {
                diagnostics.alert(place, reason);
                None
            }
        }
    }

    /// A connection whose handshake is still to be made, to a server that is asked for a name.
    ///
    /// # Errors
    /// OpenSSL takes no such name.
    pub fn connect(&self, socket: Socket, name: Option<&str>, request: Request) -> io::Result<Secured> {
        let mut ssl = Ssl::new(&self.context)?;
        ssl.set_connect_state();
        // An address is no name (RFC 6066 section 3).
        let name = name.filter(|name| !name.is_empty() && name.parse::<std::net::IpAddr>().is_err());
        if let Some(name) = name {
            ssl.set_hostname(name)?;
        }
        if let Some(host) = self.verify_host.as_deref().or(name).filter(|_| self.verifies) {
            let param = ssl.param_mut();
            param.set_hostflags(X509CheckFlags::NO_PARTIAL_WILDCARDS);
            match host.parse() {
                Ok(ip) => param.set_ip(ip)?,
                Err(_) => param.set_host(host)?,
            }
        }
        let protocols = &self.protocols[usize::from(request == Request::Check)];
        if !protocols.is_empty() {
            ssl.set_alpn_protos(protocols)?;
        }
        if self.reuses {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(kept) = kept.as_ref().filter(|kept| kept.name.as_deref() == name) {
                // One that cannot be offered makes a new one.
                let _ = raw::resume(&mut ssl, &kept.session);
            }
        }
        Secured::new(ssl, socket, b"", self.limits, Side::Server)
    }
}

fn make(tls: &ServerTls, vault: &mut Vault) -> Result<Connector, Unusable> {
    let global = vault.global.clone();
    let mut context = context::builder(SslMethod::tls_client(), &tls.common, &global, Version::Tls10)?;
    if tls.common.renegotiates == Some(false) {
        context.set_options(SslOptions::NO_RENEGOTIATION);
    }
    let verifies = tls.verify.unwrap_or(global.server_verify);
    let mode = if verifies { SslVerifyMode::PEER } else { SslVerifyMode::NONE };
    verification::watch(&mut context, mode, Tolerance::default());
    let base = global.ca_base.as_deref();
    if verifies {
        let file = tls.ca_file.as_ref();
        let file = file.ok_or_else(|| Unusable("verify is enabled by default but no CA file specified: write 'ca-file <file>', or 'verify none' if the network is trusted".into()))?;
        let revoked = tls.crl_file.as_ref().map(|file| file.path(base));
        context.set_cert_store(trust::store(&trust::authorities(&file.path(base))?, revoked.as_deref())?);
    }
    if let Some(file) = &tls.certificate {
        let certificate = vault.load(&file.path(global.crt_base.as_deref()));
        let certificate = certificate.map_err(|Unusable(reason)| Unusable(format!("unable to load certificate {reason}")))?;
        context::show(&mut context, &certificate)?;
    }
    let kept: Arc<Mutex<Option<Kept>>> = Arc::default();
    let reuses = !tls.forgets_sessions;
    if reuses {
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let keep = kept.clone();
        context.set_new_session_callback(move |ssl: &mut SslRef, session| {
            let name = ssl.servername(NameType::HOST_NAME).map(Into::into);
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept { name, session });
        });
    } else {
        context.set_session_cache_mode(SslSessionCacheMode::OFF);
    }
    let wire = |names: &Option<Vec<Box<str>>>| alpn::wire(names.iter().flatten().map(|name| &**name));
    Ok(Connector {
        context: context.build(),
        limits: Limits { first: global.max_record, any: global.hard_max_record },
        verify_host: tls.verify_host.clone(),
        verifies,
        protocols: [wire(&tls.alpn), wire(&tls.check_alpn)],
        kept,
        reuses,
    })
}
