//! Results of a handshake.

use crate::context;
use crate::dn::RootName;
use crate::hello::{self, Hello};
use crate::keylog::{self, KeyedBy};
use crate::raw;
use crate::records;
use crate::remembered;
use crate::secured::Secured;
use crate::shown::Shown;
use crate::verification::{self, Errors, Verification};
use openssl::ssl::{NameType, SslRef};
use std::sync::Arc;

/// A view of a connection's handshake.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a>(pub(crate) &'a Secured);

impl Secured {
    /// The results of its handshake.
    pub fn handshake(&self) -> Handshake<'_> {
        Handshake(self)
    }
}

impl Handshake<'_> {
    /// The version: `TLSv1.3`.
    pub fn version(&self) -> &'static str {
        self.0.with(|ssl| ssl.version_str())
    }

    /// The client's hello, where it is kept.
    pub fn hello(&self) -> Option<Arc<Hello>> {
        self.0.with(hello::kept)
    }

    /// OpenSSL's name of a cipher's number, if it knows it.
    pub fn name_of_cipher(&self, number: [u8; 2]) -> Option<&'static str> {
        self.0.with(|ssl| raw::cipher_name(ssl, number))
    }

    /// The cipher, by OpenSSL's name.
    pub fn cipher(&self) -> Option<&'static str> {
        self.0.with(|ssl| ssl.current_cipher().map(|cipher| cipher.name()))
    }

    /// Bits of the cipher's key: used, and of the algorithm.
    pub fn key_bits(&self) -> Option<(i32, i32)> {
        self.0.with(|ssl| ssl.current_cipher().map(|cipher| cipher.bits())).map(|bits| (bits.secret, bits.algorithm))
    }

    /// The name that the client asked for.
    pub fn server_name(&self) -> Option<Vec<u8>> {
        self.0.with(|ssl| ssl.servername_raw(NameType::HOST_NAME).map(<[u8]>::to_vec))
    }

    /// The protocol that both ends agreed on.
    pub fn protocol(&self) -> Option<Vec<u8>> {
        self.0.with(|ssl| ssl.selected_alpn_protocol().map(<[u8]>::to_vec))
    }

    /// The compression of records: `deflate`; `offered` where the client offers it and it is not taken; `none`. The
    /// client's offer is known where its line has `detect` or `allow`.
    pub fn compression(&self) -> &'static str {
        match self.0.compresses_records() {
            true => "deflate",
            false if self.0.with(records::was_offered) => "offered",
            false => "none",
        }
    }

    /// The session's name; one that lives in a ticket has none.
    pub fn session_id(&self) -> Option<Vec<u8>> {
        self.0.with(|ssl| ssl.session().map(|session| session.id().to_vec()).filter(|id| !id.is_empty()))
    }

    /// Whether it resumed a session of before.
    pub fn is_resumed(&self) -> bool {
        self.0.with(|ssl| ssl.session_reused())
    }

    /// The certificate that the other end has shown.
    pub fn peer_certificate(&self) -> Option<Shown> {
        self.0.with(|ssl| ssl.peer_certificate().or_else(|| verification::of(ssl)?.shown().cloned())).map(Shown)
    }

    /// The certificate that we have shown.
    pub fn own_certificate(&self) -> Option<Shown> {
        self.0.with(context::shown).map(Shown)
    }

    /// The name of the certificate that we have shown a client: its file, or as a `crt-store` has it.
    pub fn own_name(&self) -> Option<Arc<str>> {
        self.0.with(context::name_of_shown)
    }

    /// The certificates that the other end has shown, one after the other, in DER.
    pub fn peer_chain(&self) -> Option<Vec<u8>> {
        self.0.with(|ssl| {
            // To a server OpenSSL shows the chain without the client's own.
            let own = if ssl.is_server() { ssl.peer_certificate() } else { None };
            if ssl.is_server() && ssl.session_reused() {
                let above = remembered::of(ssl).map(|remembered| remembered.above).unwrap_or_default();
                return Some([own?.to_der().ok()?.as_slice(), above].concat());
            }
            let chain = ssl.peer_cert_chain().into_iter().flatten().filter_map(|above| above.to_der().ok());
            let all: Vec<u8> = own.and_then(|own| own.to_der().ok()).into_iter().chain(chain).flatten().collect();
            (!all.is_empty()).then_some(all)
        })
    }

    /// The group of the key exchange: `X25519`, `SECP256R1`.
    pub fn group(&self) -> Option<String> {
        self.0.with(raw::group_name).map(|name| name.to_ascii_uppercase())
    }

    /// The name of the root of the other end's chain, as it was verified.
    pub fn root_name(&self) -> Option<RootName> {
        self.0.with(|ssl| match ssl.is_server() && ssl.session_reused() {
            true => RootName::from_der(remembered::of(ssl)?.root),
            false => RootName::of(ssl.verified_chain()?.iter().last()?.subject_name()),
        })
    }

    /// Random bytes of the client's hello, and of the server's.
    pub fn randoms(&self) -> ([u8; 32], [u8; 32]) {
        let (mut client, mut server) = ([0; 32], [0; 32]);
        self.0.with(|ssl| {
            ssl.client_random(&mut client);
            ssl.server_random(&mut server);
        });
        (client, server)
    }

    /// The secret that the session's keys come from. It decrypts recordings of the connection.
    pub fn session_key(&self) -> Option<Vec<u8>> {
        self.0.with(|ssl| {
            let session = ssl.session()?;
            let mut key = vec![0; session.master_key_len()];
            session.master_key(&mut key);
            Some(key)
        })
    }

    /// A secret in hexadecimal digits, where it is kept: `tune.ssl.keylog`.
    pub fn secret(&self, which: KeyedBy) -> Option<Vec<u8>> {
        self.0.with(|ssl| keylog::kept(ssl, which))
    }

    /// A value that only both ends know (RFC 5929 `tls-unique`): the first Finished message.
    pub fn unique_id(&self) -> Vec<u8> {
        self.0.with(|ssl| {
            let mut message = [0; 64];
            // The client's is the first, but in a resumed session.
            let len = match ssl.session_reused() != ssl.is_server() {
                true => ssl.peer_finished(&mut message),
                false => ssl.finished(&mut message),
            };
            message[..len.min(message.len())].to_vec()
        })
    }

    /// Result of the verification of the other end's certificate; 0: it is as it should be.
    pub fn verify_result(&self) -> i32 {
        self.0.with(|ssl| ssl.verify_result().as_raw())
    }

    /// The first error of the other end's own certificate; 0: none.
    pub fn certificate_error(&self) -> i32 {
        self.0.with(errors).certificate
    }

    /// The first error above it, and its distance above.
    pub fn authority_error(&self) -> (i32, i32) {
        let errors = self.0.with(errors);
        (errors.authority, errors.authority_depth)
    }
}

/// The errors that were found on a connection, or by the handshake that its session comes from.
fn errors(ssl: &SslRef) -> Errors {
    match remembered::of(ssl).filter(|_| ssl.session_reused()) {
        Some(remembered) => remembered.errors,
        None => verification::of(ssl).map(Verification::errors).unwrap_or_default(),
    }
}
