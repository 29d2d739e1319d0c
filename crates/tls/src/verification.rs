//! Errors of the other end's certificates that their verification finds: which error, its depth, and whether it is
//! tolerated.

use crate::failure::Cause;
use crate::ignored::Ignored;
use crate::remembered;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslContext, SslContextBuilder, SslRef, SslVerifyMode};
use openssl::x509::{X509, X509StoreContext, X509StoreContextRef};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU8};
use std::sync::{LazyLock, OnceLock};

/// The errors of one handshake. Atomics, since OpenSSL's places for them ask for it; one thread uses them.
#[derive(Default, Debug)]
pub(crate) struct Verification {
    authority: AtomicI32,
    authority_depth: AtomicI32,
    certificate: AtomicI32,
    fatal: AtomicU8,
    /// The other end's certificate, where its chain has a fault: OpenSSL forgets it when the handshake fails.
    shown: OnceLock<X509>,
}

impl Verification {
    /// The errors.
    pub(crate) fn errors(&self) -> Errors {
        let [authority, authority_depth, certificate] =
            [&self.authority, &self.authority_depth, &self.certificate].map(|number| number.load(Relaxed));
        Errors { authority, authority_depth, certificate }
    }

    /// The other end's certificate, if a fault was found.
    pub(crate) fn shown(&self) -> Option<&X509> {
        self.shown.get()
    }

    /// The error that has ended the handshake.
    pub(crate) fn fatal(&self) -> Option<Cause> {
        let number = self.fatal.load(Relaxed);
        [Cause::Authority, Cause::Certificate, Cause::Mismatch].into_iter().find(|cause| cause.number() == number)
    }

    fn note(&self, error: i32, depth: u32, tolerated: bool) {
        if depth == 0 {
            let _ = self.certificate.compare_exchange(0, error, Relaxed, Relaxed);
        } else if self.authority.compare_exchange(0, error, Relaxed, Relaxed).is_ok() {
            self.authority_depth.store(i32::try_from(depth).unwrap_or(i32::MAX), Relaxed);
        }
        let cause = match depth {
            _ if [X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH].contains(&error) => Cause::Mismatch,
            0 => Cause::Certificate,
            _ => Cause::Authority,
        };
        if !tolerated {
            let _ = self.fatal.compare_exchange(0, cause.number(), Relaxed, Relaxed);
        }
    }
}

/// The first errors of a chain of certificates; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Errors {
    /// Error of a certificate above the other end's own (`ssl_c_ca_err`).
    pub(crate) authority: i32,
    /// Distance of that certificate above it (`ssl_c_ca_err_depth`).
    pub(crate) authority_depth: i32,
    /// Error of its own certificate (`ssl_c_err`).
    pub(crate) certificate: i32,
}

/// Errors that a context tolerates.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tolerance {
    pub(crate) authority: Ignored,
    pub(crate) certificate: Ignored,
}

static FOUND: LazyLock<Option<Index<Ssl, Verification>>> = LazyLock::new(|| Ssl::new_ex_index().ok());
static TOLERATED: LazyLock<Option<Index<SslContext, Tolerance>>> = LazyLock::new(|| SslContext::new_ex_index().ok());

/// Verifies on a context, and notes the errors.
pub(crate) fn watch(context: &mut SslContextBuilder, mode: SslVerifyMode, tolerance: Tolerance) {
    if let Some(index) = *TOLERATED {
        context.set_ex_data(index, tolerance);
    }
    context.set_verify_callback(mode, judge);
}

/// Makes room for the errors of a connection.
pub(crate) fn prepare(ssl: &mut SslRef) {
    if let Some(index) = *FOUND {
        ssl.set_ex_data(index, Verification::default());
    }
}

/// The errors of a connection.
pub(crate) fn of(ssl: &SslRef) -> Option<&Verification> {
    ssl.ex_data((*FOUND)?)
}

fn judge(passed: bool, chain: &mut X509StoreContextRef) -> bool {
    let ssl = X509StoreContext::ssl_idx().ok().and_then(|index| chain.ex_data(index));
    let Some(ssl) = ssl else { return passed };
    let goes_on = passed || tolerates(ssl, chain);
    if goes_on && ssl.is_server() && (!passed || chain.error_depth() == 0) {
        remembered::note(ssl, chain);
    }
    goes_on
}

/// Notes an error; returns whether the handshake continues all the same.
fn tolerates(ssl: &SslRef, chain: &X509StoreContextRef) -> bool {
    let tolerance = (*TOLERATED).and_then(|index| ssl.ssl_context().ex_data(index)).copied().unwrap_or_default();
    let (error, depth) = (chain.error().as_raw(), chain.error_depth());
    let tolerated = if depth == 0 { tolerance.certificate.has(error) } else { tolerance.authority.has(error) };
    if let Some(found) = of(ssl) {
        found.note(error, depth, tolerated);
        if let Some(leaf) = chain.chain().and_then(|chain| chain.get(0)) {
            let _ = found.shown.set(leaf.to_owned());
        }
    }
    tolerated
}

/// `x509_vfy.h`
const X509_V_ERR_HOSTNAME_MISMATCH: i32 = 62;
const X509_V_ERR_IP_ADDRESS_MISMATCH: i32 = 64;
