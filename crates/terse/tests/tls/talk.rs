//! A client that speaks TLS as a test wants it.

use crate::certificates::Pair;
use openssl::nid::Nid;
use openssl::ssl::{Ssl, SslContext, SslContextBuilder, SslMethod, SslSession, SslStream, SslVerifyMode, SslVersion};
use openssl::x509::X509;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A request of a client.
#[derive(Default)]
pub struct Ask<'a> {
    /// The name.
    pub name: Option<&'a str>,
    /// The only version.
    pub version: Option<SslVersion>,
    /// Its certificate.
    pub shown: Option<&'a Pair>,
    /// The authority that has signed it, which it sends too.
    pub above: Option<&'a Pair>,
    /// Algorithms of signatures.
    pub signatures: Option<&'a str>,
    /// Ciphers up to TLS 1.2.
    pub ciphers: Option<&'a str>,
    /// Groups of the key exchange.
    pub groups: Option<&'a str>,
    /// Protocols, as TLS carries them.
    pub protocols: Option<&'a [u8]>,
    /// A session of before.
    pub session: Option<&'a SslSession>,
}

/// Outcome of a request.
#[derive(PartialEq, Eq, Debug)]
pub enum Outcome {
    /// An answer.
    Served {
        /// The common name of the certificate.
        subject: String,
        /// Its key: `rsa`, `ec`.
        key: &'static str,
        /// The version.
        version: String,
        /// The protocol.
        protocol: Option<Vec<u8>>,
        /// True if the session was resumed.
        resumed: bool,
        /// Status of the response.
        status: String,
    },
    /// Nothing.
    Refused,
}

impl Ask<'_> {
    fn context(&self) -> SslContextBuilder {
        let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
        context.set_verify(SslVerifyMode::NONE);
        context.set_security_level(0);
        if let Some(version) = self.version {
            context.set_min_proto_version(Some(version)).unwrap();
            context.set_max_proto_version(Some(version)).unwrap();
        }
        if let Some(Pair { certificate, key }) = self.shown {
            context.set_certificate(certificate).unwrap();
            context.set_private_key(key).unwrap();
        }
        if let Some(Pair { certificate, .. }) = self.above {
            context.add_extra_chain_cert(certificate.clone()).unwrap();
        }
        if let Some(list) = self.signatures {
            context.set_sigalgs_list(list).unwrap();
        }
        if let Some(list) = self.ciphers {
            context.set_cipher_list(list).unwrap();
        }
        if let Some(list) = self.groups {
            context.set_groups_list(list).unwrap();
        }
        if let Some(list) = self.protocols {
            context.set_alpn_protos(list).unwrap();
        }
        context
    }

    /// A connection, once the handshake is made.
    pub fn connect(&self, address: SocketAddr) -> Option<SslStream<TcpStream>> {
        let mut ssl = Ssl::new(&self.context().build()).unwrap();
        if let Some(name) = self.name {
            ssl.set_hostname(name).unwrap();
        }
        if let Some(session) = self.session {
            resume(&mut ssl, session);
        }
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
        ssl.connect(stream).ok()
    }

    /// The outcome of one request.
    pub fn outcome(&self, address: SocketAddr) -> Outcome {
        let Some(mut stream) = self.connect(address) else { return Outcome::Refused };
        let mut answer = Vec::new();
        let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        if asked.and_then(|()| stream.read_to_end(&mut answer)).is_err() || answer.is_empty() {
            return Outcome::Refused;
        }
        let ssl = stream.ssl();
        let certificate = ssl.peer_certificate().unwrap();
        Outcome::Served {
            subject: common_name(&certificate),
            key: if certificate.public_key().unwrap().rsa().is_ok() { "rsa" } else { "ec" },
            version: ssl.version_str().into(),
            protocol: ssl.selected_alpn_protocol().map(<[u8]>::to_vec),
            resumed: ssl.session_reused(),
            status: String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned(),
        }
    }
}

/// The common name of a certificate.
pub fn common_name(certificate: &X509) -> String {
    certificate.subject_name().entries_by_nid(Nid::COMMONNAME).next().unwrap().data().to_string().unwrap().to_string()
}

/// Lets a connection go on with a session of before, of a context that is the same but for its address.
pub fn resume(ssl: &mut Ssl, session: &SslSession) {
    #[allow(unsafe_code, reason = "the crate asks for it")]
    // SAFETY: tests take sessions from contexts of their own, which are the same as this one but for their address.
    unsafe {
        ssl.set_session(session).unwrap();
    }
}
