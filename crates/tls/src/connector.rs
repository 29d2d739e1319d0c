//! TLS to servers: the compiled form of a `server` line's TLS settings.
//!
//! A single session of before is kept for each server, with the name that it was made under. The next connection that asks
//! for this name offers it.

use crate::certificate::Unusable;
use crate::context;
use crate::counters::{COUNTERS, HandshakeCounts, bump};
use crate::records::{self, Hold, Policy};
use crate::secured::{Limits, Secured, Side};
use crate::settings::{Global, ServerTls};
use crate::socket::Socket;
use crate::trust::TrustKind;
use crate::vault::files::{Files, Key, Version as TrustVersion, key};
use crate::vault::{Touched, Vault};
use crate::verification::{self, Tolerance};
use crate::version::Version;
use crate::{alpn, keylog, raw, trust};
use arc_swap::ArcSwap;
use openssl::ex_data::Index;
use openssl::ssl::{NameType, Ssl, SslContext, SslMethod, SslOptions, SslRef, SslSession, SslSessionCacheMode, SslVerifyMode};
use openssl::x509::verify::X509CheckFlags;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use terse_config::{Diagnostics, Place};

/// Makes connections to a server secure.
pub struct Connector {
    tls: ServerTls,
    limits: Limits,
    /// Name that its certificate must have, whatever name is asked for.
    verify_host: Option<Asked>,
    verifies: bool,
    /// Protocols that requests offer, as TLS carries them.
    protocols: Vec<u8>,
    reuses: bool,
    keeps_secrets: bool,
    securing: ArcSwap<Securing>,
    /// Number of changes of its context.
    changes: AtomicU32,
    counts: Arc<HandshakeCounts>,
}

/// The parts of a connector that a change of certificates replaces.
pub(crate) struct Securing {
    context: SslContext,
    kept: Arc<Mutex<Option<Kept>>>,
    certificates: Vec<Key>,
    trusted: Vec<Arc<TrustVersion>>,
}

/// A session of before.
struct Kept {
    name: Option<Asked>,
    session: SslSession,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Purpose of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Requests, or bytes.
    Traffic,
    /// A request that may go ahead of the handshake, where the session of before and the line allow it.
    Safe,
    /// The same as [`Request::Traffic`], but by HTTP/1: `h2` is not offered.
    Http1,
    /// A health check.
    Check {
        /// The protocols that it offers.
        protocols: &'a [&'a str],
    },
}

impl Connector {
    /// Reads the files that a line names and makes its context. All faults are reported; `None` if there is any.
    pub fn build(tls: &ServerTls, place: &Place, vault: &Vault, diagnostics: &mut Diagnostics) -> Option<Arc<Connector>> {
        if !vault.read_server(tls, diagnostics) {
            return None;
        }
        Connector::enrolled(tls, place, vault, diagnostics)
    }

    /// The same while the process runs: only files that the vault holds already count.
    pub fn of_held(tls: &ServerTls, place: &Place, vault: &Vault, diagnostics: &mut Diagnostics) -> Option<Arc<Connector>> {
        if tls.common.records == Policy::Allow && !records::was_found() {
            let reason = "'tls-compression allow': only where a line of the configuration says so, too";
            diagnostics.alert(place, reason);
            return None;
        }
        Connector::enrolled(tls, place, vault, diagnostics)
    }

    /// Makes a connector of the files that the vault has read, and enrols it there.
    fn enrolled(tls: &ServerTls, place: &Place, vault: &Vault, diagnostics: &mut Diagnostics) -> Option<Arc<Connector>> {
        let mut held = vault.held();
        let connector = Connector::new(tls, held.files(), vault.global());
        let connector = connector.map_err(|Unusable(reason)| diagnostics.alert(place, reason)).ok()?;
        held.enrol_server(&connector);
        connector.remarks().into_iter().for_each(|remark| diagnostics.warn(place, remark));
        Some(connector)
    }

    fn new(tls: &ServerTls, files: &Files, global: &Global) -> Result<Arc<Connector>, Unusable> {
        let securing = ArcSwap::from_pointee(secure(tls, files, global)?);
        let verify_host = tls.verify_host.as_deref().map(Asked::of).transpose();
        let verify_host = verify_host.map_err(|_| Unusable("'verifyhost': a NUL is in no name".into()))?.flatten();
        Ok(Arc::new(Connector {
            tls: tls.clone(),
            limits: Limits::of(global),
            verify_host,
            verifies: tls.verify.unwrap_or(global.server_verify),
            protocols: alpn::wire(tls.alpn.iter().flatten().map(|name| &**name)),
            reuses: !tls.forgets_sessions,
            keeps_secrets: global.keeps_secrets,
            securing,
            changes: AtomicU32::new(0),
            counts: Arc::default(),
        }))
    }

    /// The context that would secure connections with these files.
    pub(crate) fn prepare(&self, files: &Files, global: &Global) -> Result<Securing, Unusable> {
        secure(&self.tls, files, global)
    }

    /// Replaces the context that secures connections, from now on.
    pub(crate) fn adopt(&self, securing: Securing) {
        self.securing.store(Arc::new(securing));
        self.changes.fetch_add(1, Release);
    }

    /// Number of changes of the context. Connections of before have shown another certificate, or have trusted others.
    pub fn changes(&self) -> u32 {
        self.changes.load(Acquire)
    }

    /// Counts of its handshakes, those of checks too.
    pub fn counts(&self) -> &HandshakeCounts {
        &self.counts
    }

    /// Whether its context uses any of the files that changed.
    pub(crate) fn uses(&self, touched: &Touched<'_>) -> bool {
        let securing = self.securing.load();
        match touched {
            Touched::Certificate(name) => securing.certificates.iter().any(|used| **used == **name),
            Touched::Certificates(names) => securing.certificates.iter().any(|used| names.contains(used)),
            Touched::Trusted(version) => {
                version.is_some_and(|version| securing.trusted.iter().any(|used| Arc::ptr_eq(used, version)))
            }
            Touched::List(_) => false,
        }
    }

    /// Remarks on a server whose records may be compressed.
    fn remarks(&self) -> Vec<&'static str> {
        if !self.compresses_records() {
            return Vec::new();
        }
        let newest = self.tls.common.versions.range(Version::Tls10).map(|(_, newest)| newest);
        let too_new = "'tls-compression allow': TLS 1.3 has none, and OpenSSL offers none where it may come to that: it needs \
                       'ssl-max-ver TLSv1.2'";
        std::iter::once(records::WARNING).chain((newest == Ok(Version::Tls13)).then_some(too_new)).collect()
    }

    /// Whether it may compress records, and so asks for a [`Hold`] on [`crate::RECORDS_MEMORY_BYTES`].
    pub fn compresses_records(&self) -> bool {
        self.tls.common.records == Policy::Allow
    }

    /// A connection whose handshake is still to be made, to a server that is asked for a name. Its records are compressed
    /// only under a `hold`, for which checks have no use.
    ///
    /// # Errors
    /// The name is invalid: no server can be asked for it.
    pub fn connect(&self, socket: Socket, name: Option<&str>, request: Request<'_>, hold: Option<Hold>) -> io::Result<Secured> {
        let securing = self.securing.load();
        let mut ssl = Ssl::new(&securing.context)?;
        ssl.set_connect_state();
        if self.keeps_secrets {
            keylog::keep(&mut ssl);
        }
        let name = match name.map(Asked::of).transpose() {
            // Nothing depends on it.
            Err(_) if !self.verifies || self.verify_host.is_some() => None,
            asked => asked?.flatten(),
        };
        match &name {
            Some(Asked::Name(name)) => ssl.set_hostname(name)?,
            Some(Asked::Address(address)) => note_address(&mut ssl, *address),
            None => {}
        }
        if let Some(host) = self.verify_host.as_ref().or(name.as_ref()).filter(|_| self.verifies) {
            let param = ssl.param_mut();
            param.set_hostflags(X509CheckFlags::NO_PARTIAL_WILDCARDS);
            match host {
                Asked::Address(address) => param.set_ip(*address)?,
                Asked::Name(host) => param.set_host(host)?,
            }
        }
        let is_check = matches!(request, Request::Check { .. });
        let protocols = match request {
            Request::Check { protocols } => Cow::Owned(alpn::wire(protocols.iter().copied())),
            Request::Http1 => {
                let offered = self.tls.alpn.iter().flatten().map(|name| &**name).filter(|name| *name != "h2");
                Cow::Owned(alpn::wire(offered))
            }
            Request::Traffic | Request::Safe => Cow::Borrowed(&*self.protocols),
        };
        if !protocols.is_empty() {
            ssl.set_alpn_protos(&protocols)?;
        }
        if self.compresses_records() && hold.is_none() && !is_check {
            bump(&COUNTERS.records_no_room);
        }
        // A session that compresses is resumed only by a connection that may compress.
        if self.reuses && self.compresses_records() == hold.is_some() {
            let kept = securing.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(kept) = kept.as_ref().filter(|kept| kept.name == name && raw::is_resumable(&kept.session)) {
                // A session that cannot be offered makes a new one.
                let _ = raw::resume(&mut ssl, &kept.session);
            }
        }
        let allowed = ssl.session().map_or(0, |session| session.max_early_data());
        let secured = Secured::new(ssl, socket, b"", self.limits, (Side::Server, &self.counts), hold)?;
        if request == Request::Safe && self.tls.sends_early && allowed > 0 {
            secured.hold();
        }
        Ok(secured)
    }
}

/// Name that a server is asked for, or that its certificate must have.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    Name(Box<str>),
    /// No server name (RFC 6066 section 3): the handshake carries no name, but the server's certificate must have it (RFC
    /// 9110 section 4.3.5).
    Address(IpAddr),
}

impl Asked {
    /// Parses a name. An address may be in brackets, as in a URI. An empty name asks for none.
    ///
    /// # Errors
    /// A NUL, which a client may have sent: no server can be asked for it, and none be verified.
    fn of(text: &str) -> io::Result<Option<Asked>> {
        if text.contains('\0') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let address = match bare {
            Some(bare) => bare.parse().ok().map(IpAddr::V6),
            None => text.parse().ok(),
        };
        Ok(Some(address.map_or_else(|| Asked::Name(text.into()), Asked::Address)).filter(|_| !text.is_empty()))
    }
}

/// The addresses that connections are asked for, which OpenSSL does not know as it knows names.
static ADDRESSES: LazyLock<Option<Index<Ssl, IpAddr>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

fn note_address(ssl: &mut SslRef, address: IpAddr) {
    if let Some(index) = *ADDRESSES {
        ssl.set_ex_data(index, address);
    }
}

/// The name or address that a connection was asked for.
fn asked(ssl: &SslRef) -> Option<Asked> {
    let address = (*ADDRESSES).and_then(|index| ssl.ex_data(index)).map(|address| Asked::Address(*address));
    address.or_else(|| ssl.servername(NameType::HOST_NAME).map(|name| Asked::Name(name.into())))
}

fn secure(tls: &ServerTls, files: &Files, global: &Global) -> Result<Securing, Unusable> {
    let mut context = context::builder(SslMethod::tls_client(), &tls.common, global, Version::Tls10)?;
    if tls.common.renegotiates == Some(false) {
        context.set_options(SslOptions::NO_RENEGOTIATION);
    }
    let verifies = tls.verify.unwrap_or(global.server_verify);
    let mode = if verifies { SslVerifyMode::PEER } else { SslVerifyMode::NONE };
    verification::watch(&mut context, mode, Tolerance::default());
    let base = global.ca_base.as_deref();
    let mut trusted = Vec::new();
    if verifies {
        let file = tls.ca_file.as_ref();
        let file = file.ok_or_else(|| Unusable("verify is enabled by default but no CA file specified: write 'ca-file <file>', or 'verify none' if the network is trusted".into()))?;
        let authorities = files.trusted(TrustKind::Authorities, &file.path(base))?;
        let revoked = tls.crl_file.as_ref().map(|file| files.trusted(TrustKind::Revoked, &file.path(base))).transpose()?;
        let lists = revoked.map(|version| version.content.revoked());
        context.set_cert_store(trust::store(authorities.content.authorities().iter(), lists)?);
        trusted.extend(std::iter::once(authorities).chain(revoked).cloned());
    }
    let mut certificates = Vec::new();
    if let Some(file) = &tls.certificate {
        let name = key(&file.path(global.crt_base.as_deref()));
        certificates = files.certificates_of(&name).to_vec();
        for part in &certificates {
            context::show(&mut context, files.certificate(part)?)?;
        }
    }
    let kept: Arc<Mutex<Option<Kept>>> = Arc::default();
    if tls.forgets_sessions {
        context.set_session_cache_mode(SslSessionCacheMode::OFF);
    } else {
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let keep = kept.clone();
        let compresses = tls.common.records == Policy::Allow;
        context.set_new_session_callback(move |ssl: &mut SslRef, session| {
            if compresses && raw::options(ssl).contains(SslOptions::NO_COMPRESSION) {
                return;
            }
            let name = asked(ssl);
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept { name, session });
        });
    }
    Ok(Securing { context: context.build(), kept, certificates, trusted })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::Asked;

    #[test]
    fn addresses_are_no_names() {
        let name = |name: &str| Some(Asked::Name(name.into()));
        let address = |text: &str| Some(Asked::Address(text.parse().unwrap()));
        for (text, asked) in [
            ("a.test", name("a.test")),
            ("127.0.0.1", address("127.0.0.1")),
            ("::1", address("::1")),
            ("[::1]", address("::1")),
            ("[0:0:0:0:0:0:0:1]", address("::1")),
            // Names that no certificate has.
            ("[127.0.0.1]", name("[127.0.0.1]")),
            ("[::1", name("[::1")),
            ("127.1", name("127.1")),
            ("127.0.0.1.", name("127.0.0.1.")),
            ("fe80::1%lo", name("fe80::1%lo")),
            ("", None),
        ] {
            assert_eq!(Asked::of(text).unwrap(), asked, "{text}");
        }
        for text in ["\0", "a.test\0", "a\0.test"] {
            assert!(Asked::of(text).is_err(), "{text:?}");
        }
    }
}
