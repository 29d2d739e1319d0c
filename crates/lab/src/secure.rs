//! TLS for the clients of the benchmark, and a certificate for the proxies.

use anyhow::{Context, Result};
use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::ssl::{SslConnector, SslConnectorBuilder, SslMethod, SslSession, SslSessionCacheMode, SslStream, SslVerifyMode};
use openssl::x509::{X509, X509NameBuilder};
use std::fmt;
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Writes a new key of RSA, 2,048 bits, and a certificate for `localhost` into one file.
pub fn write_certificate(file: &Path) -> Result<()> {
    let key = PKey::from_rsa(Rsa::generate(2048)?)?;
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_text("CN", "localhost")?;
    let name = name.build();
    let mut certificate = X509::builder()?;
    certificate.set_version(2)?;
    certificate.set_subject_name(&name)?;
    certificate.set_issuer_name(&name)?;
    certificate.set_pubkey(&key)?;
    certificate.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    certificate.set_not_after(&*Asn1Time::days_from_now(2)?)?;
    certificate.sign(&key, MessageDigest::sha256())?;
    let pem = [certificate.build().to_pem()?, key.private_key_to_pem_pkcs8()?].concat();
    std::fs::write(file, pem).with_context(|| file.display().to_string())
}

/// State that clients of TLS 1.3 share.
#[derive(Clone)]
pub struct Secure {
    connector: SslConnector,
    /// The last session, where one is to be resumed.
    session: Option<Arc<Mutex<Option<SslSession>>>>,
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secure").field("resumes", &self.session.is_some()).finish_non_exhaustive()
    }
}

impl Secure {
    /// Clients that resume the session of the one before, or begin one each.
    pub fn new(resumes: bool) -> Result<Secure> {
        Secure::of(SslConnector::builder(SslMethod::tls_client())?, resumes)
    }

    /// Clients that speak HTTP/2, and offer it by ALPN.
    pub fn for_http2() -> Result<Secure> {
        let mut connector = SslConnector::builder(SslMethod::tls_client())?;
        connector.set_alpn_protos(b"\x02h2")?;
        Secure::of(connector, false)
    }

    fn of(mut connector: SslConnectorBuilder, resumes: bool) -> Result<Secure> {
        // The certificate is one that was just made; the cost of verifying it is the client's time.
        connector.set_verify(SslVerifyMode::NONE);
        let session = resumes.then(Arc::<Mutex<Option<SslSession>>>::default);
        if let Some(last) = session.clone() {
            connector.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
            connector.set_new_session_callback(move |_, session| {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
            });
        }
        Ok(Secure { connector: connector.build(), session })
    }

    /// Shakes hands; returns whether a session was resumed.
    pub(crate) fn shake(&self, socket: TcpStream) -> Result<(SslStream<TcpStream>, bool)> {
        let mut settings = self.connector.configure()?.verify_hostname(false).into_ssl("localhost")?;
        let last = self.session.as_ref().and_then(|last| last.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(last) = last {
            #[allow(unsafe_code, reason = "the library marks it so")]
            // SAFETY: the session comes from a connection of the same context.
            unsafe {
                settings.set_session(&last)?;
            }
        }
        let stream = settings.connect(socket).map_err(|error| anyhow::anyhow!("handshake: {error}"))?;
        let resumed = stream.ssl().session_reused();
        Ok((stream, resumed))
    }
}
