//! Default ciphers and groups for clients: those that pass scanners.
//!
//! OpenSSL's own defaults also have ciphers whose recordings the certificate's key can decrypt later (RSA's key exchange,
//! ROBOT), and ciphers in CBC mode (LUCKY13). All clients that speak TLS 1.2 and are in use know better ones.

use crate::certificate::Unusable;
use crate::settings::{BindTls, CertificateKind, Own, Verify};
use crate::version::Version;
use openssl::error::ErrorStack;
use openssl::ssl::SslContextBuilder;

/// Ciphers of TLS 1.2: forward secret, authenticated; in OpenSSL's order. Those of Diffie-Hellman's exchange over numbers
/// count only where there are parameters.
const CIPHERS: &str = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
     ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
     ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
     DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256";

/// Groups of the key exchange; the first is OpenSSL's from 3.5 on (ML-KEM).
const GROUPS: [&str; 2] = ["X25519MLKEM768:X25519:P-256:P-384", "X25519:P-256:P-384"];

/// Sets the ciphers of a context, where the line names none. A line whose oldest version is older than TLS 1.2, or whose
/// newest is not TLS 1.3, is for old clients. These may know only ciphers that are left out here.
pub(crate) fn set_ciphers(context: &mut SslContextBuilder, own: &Own) -> Result<(), Unusable> {
    let (oldest, newest) = own.common.versions.range(Version::Tls12).map_err(Unusable)?;
    if own.common.ciphers.is_none() && oldest >= Version::Tls12 && newest == Version::Tls13 {
        context.set_cipher_list(CIPHERS).map_err(|_| Unusable("OpenSSL has none of the usual ciphers".into()))?;
    }
    Ok(())
}

/// Sets the groups of the context that connections begin with, where the line names none. Up to TLS 1.2 they also limit the
/// keys of clients' certificates. So they stay OpenSSL's where such certificates are asked for, which a list may do name by
/// name.
pub(crate) fn set_groups(context: &mut SslContextBuilder, tls: &BindTls) -> Result<(), Unusable> {
    let asks = !matches!(tls.own.verify, None | Some(Verify::None));
    let may_ask = asks || tls.certificates.iter().any(|word| word.kind == CertificateKind::List);
    if tls.own.common.curves.is_none() && !may_ask {
        let set = GROUPS.iter().any(|groups| context.set_groups_list(groups).is_ok());
        // Errors about unknown groups must not be taken for those of the next call.
        drop(ErrorStack::get());
        if !set {
            return Err(Unusable("OpenSSL has none of the usual groups".into()));
        }
    }
    Ok(())
}
