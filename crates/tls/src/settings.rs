//! Settings of TLS, as the keywords of the configuration leave them.

use crate::ignored::Ignored;
use crate::version::VersionWords;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use terse_config::{Place, Setting};

pub use crate::records::Policy;
pub use crate::version::Version;

/// Settings of `global`.
#[derive(Clone, Debug)]
pub struct Global {
    /// `crt-base`: folder for relative names of certificates.
    pub crt_base: Option<PathBuf>,
    /// `key-base`: folder for relative names of keys in `crt-store` sections.
    pub key_base: Option<PathBuf>,
    /// `ca-base`: folder for relative names of authorities and lists of revoked certificates.
    pub ca_base: Option<PathBuf>,
    /// `issuers-chain-path`: certificates that complete chains.
    pub issuers: Option<PathBuf>,
    /// `ssl-load-extra-files`: the files that are read beside certificates.
    pub extra: ExtraFiles,
    /// `ssl-load-extra-del-ext`: names of extra files take the place of the certificate's extension.
    pub extra_replaces_extension: bool,
    /// `ssl-skip-self-issued-ca`: roots are left out of chains.
    pub skips_roots: bool,
    /// `ssl-server-verify`: whether servers' certificates are verified where their lines have no `verify`; default true.
    pub server_verify: bool,
    /// `ssl-security-level`
    pub security_level: Option<u32>,
    /// `ssl-dh-param-file`
    pub dh_file: Option<FileName>,
    /// `tune.ssl.default-dh-param`: the longest Diffie-Hellman parameters where no file has some; 0: then there are none.
    pub dh_bits: u32,
    /// `tune.ssl.cachesize`: sessions that each address remembers.
    pub cache_size: u32,
    /// `tune.ssl.ssl-ctx-cache-size`: made certificates that each address remembers.
    pub made_certificates: usize,
    /// Bytes of each client's hello that are kept for fetches.
    pub hello_bytes: usize,
    /// `tune.ssl.lifetime`: lifetime of remembered sessions.
    pub lifetime: Duration,
    /// `tune.ssl.maxrecord`: bytes of each record at the beginning of a burst; 0: as many as fit.
    pub max_record: usize,
    /// `tune.ssl.hard-maxrecord`: bytes of any record; 0: as many as fit.
    pub hard_max_record: usize,
    /// `ocsp-update.*`
    pub ocsp: OcspUpdates,
    /// `tune.ssl.keylog`: secrets of connections are kept for fetches.
    pub keeps_secrets: bool,
    /// `ssl-expired-certificates accept`: certificates are taken whose time has not come, or is over.
    pub takes_expired: bool,
}

/// Settings of the fetching of answers about certificates' states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OcspUpdates {
    /// `ocsp-update.mode`: default for certificates without a setting of their own.
    pub by_default: bool,
    /// `ocsp-update.disable`: for no certificate.
    pub disabled: bool,
    /// `ocsp-update.mindelay`: least seconds between two requests.
    pub min_s: i64,
    /// `ocsp-update.maxdelay`: most seconds between two requests.
    pub max_s: i64,
    /// `ocsp-update.httpproxy`: proxy that requests go through, as `host:port`.
    pub proxy: Option<Arc<str>>,
}

impl Default for OcspUpdates {
    fn default() -> OcspUpdates {
        OcspUpdates { by_default: false, disabled: false, min_s: 300, max_s: 3600, proxy: None }
    }
}

impl Default for Global {
    fn default() -> Global {
        Global {
            crt_base: None,
            key_base: None,
            ca_base: None,
            issuers: None,
            extra: ExtraFiles::default(),
            extra_replaces_extension: false,
            skips_roots: false,
            server_verify: true,
            security_level: None,
            dh_file: None,
            dh_bits: 0,
            cache_size: 20_000,
            made_certificates: 1000,
            hello_bytes: 0,
            lifetime: Duration::from_secs(300),
            max_record: 0,
            hard_max_record: 0,
            ocsp: OcspUpdates::default(),
            keeps_secrets: false,
            takes_expired: false,
        }
    }
}

impl Setting for Global {
    fn inherit(&self) -> Global {
        self.clone()
    }
}

/// Defaults that `ssl-default-bind-*` and `ssl-default-server-*` have set so far: they hold for the lines after them.
#[derive(Clone, Default, Debug)]
pub struct Defaults {
    /// Defaults of `bind` lines.
    pub bind: Common,
    /// Defaults of `server` lines.
    pub server: Common,
    /// `ssl-default-bind-options strict-sni`
    pub strict_sni: bool,
}

impl Setting for Defaults {
    fn inherit(&self) -> Defaults {
        self.clone()
    }
}

/// Files that are read beside certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtraFiles {
    /// `bundle`: FILE.rsa, FILE.dsa, FILE.ecdsa, where there is no FILE.
    pub bundle: bool,
    /// `key`: FILE.key.
    pub key: bool,
    /// `issuer`: FILE.issuer.
    pub issuer: bool,
    /// `ocsp`: FILE.ocsp.
    pub ocsp: bool,
    /// `sctl`: FILE.sctl.
    pub sctl: bool,
}

impl Default for ExtraFiles {
    fn default() -> ExtraFiles {
        ExtraFiles { bundle: true, key: true, issuer: true, ocsp: true, sctl: true }
    }
}

/// A name in the configuration, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileName {
    /// The name as it is written.
    pub name: Arc<str>,
    /// Its place.
    pub place: Place,
}

impl FileName {
    /// The file, under a base if the name is relative.
    pub fn path(&self, base: Option<&Path>) -> PathBuf {
        match base {
            // Names that begin with '@' are no files; they get no prefix.
            Some(base) if !self.name.starts_with(['/', '@']) => base.join(&*self.name),
            _ => PathBuf::from(&*self.name),
        }
    }
}

/// Settings that both sides have.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Common {
    /// `ssl-min-ver` and its like.
    pub versions: VersionWords,
    /// `ciphers`: up to TLS 1.2.
    pub ciphers: Option<Arc<str>>,
    /// `ciphersuites`: of TLS 1.3.
    pub ciphersuites: Option<Arc<str>>,
    /// `curves`, `ecdhe`
    pub curves: Option<Arc<str>>,
    /// `sigalgs`
    pub sigalgs: Option<Arc<str>>,
    /// `client-sigalgs`
    pub client_sigalgs: Option<Arc<str>>,
    /// `no-tls-tickets`, `tls-tickets`
    pub tickets: Option<bool>,
    /// `prefer-client-ciphers`
    pub client_chooses: bool,
    /// `renegotiate`, `no-renegotiate`: of TLS 1.2 and older, when a server asks for it.
    pub renegotiates: Option<bool>,
    /// `tls-compression`
    pub records: Policy,
}

impl Common {
    /// Takes from `other` the settings that are missing here.
    fn settle(&mut self, other: &Common) {
        let Common {
            versions,
            ciphers,
            ciphersuites,
            curves,
            sigalgs,
            client_sigalgs,
            tickets,
            client_chooses,
            renegotiates,
            // `global` has no default for it: each line that allows it has the keyword itself.
            records: _,
        } = other;
        self.versions.settle(versions);
        self.ciphers = self.ciphers.take().or_else(|| ciphers.clone());
        self.ciphersuites = self.ciphersuites.take().or_else(|| ciphersuites.clone());
        self.curves = self.curves.take().or_else(|| curves.clone());
        self.sigalgs = self.sigalgs.take().or_else(|| sigalgs.clone());
        self.client_sigalgs = self.client_sigalgs.take().or_else(|| client_sigalgs.clone());
        self.tickets = self.tickets.or(*tickets);
        self.client_chooses |= client_chooses;
        self.renegotiates = self.renegotiates.or(*renegotiates);
    }
}

/// Demand for the other end's certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify {
    /// A certificate is not asked for, or not checked.
    None,
    /// A certificate is verified if the other end has one.
    Optional,
    /// A certificate is required.
    Required,
}

/// The TLS keywords of a `bind` line.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BindTls {
    /// `ssl`
    pub enabled: bool,
    /// `crt`, `default-crt`, `crt-list`, in order.
    pub certificates: Vec<CertificateWord>,
    /// `strict-sni`, `no-strict-sni`
    pub strict_sni: Option<bool>,
    /// `tls-ticket-keys`
    pub ticket_keys: Option<FileName>,
    /// `ocsp-update`
    pub ocsp_update: Option<bool>,
    /// `generate-certificates`: certificates are made for names that none has.
    pub generates: bool,
    /// `ca-sign-file`: the authority that signs them.
    pub ca_sign_file: Option<FileName>,
    /// `ca-sign-pass`: password of the key of that file.
    pub ca_sign_pass: Option<Passphrase>,
    /// Settings that a certificate of a list may have of its own.
    pub own: Own,
}

/// The password of a key; it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(pub(crate) Box<str>);

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passphrase")
    }
}

/// Keywords of a `bind` line that a line of a `crt-list` may have too.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Own {
    /// Settings that both sides have.
    pub common: Common,
    /// `alpn`: the protocols that are offered; `None`: those that the proxy speaks.
    pub alpn: Option<Vec<Box<str>>>,
    /// `verify`
    pub verify: Option<Verify>,
    /// `ca-file`: the authorities of clients' certificates; their names are sent to clients.
    pub ca_file: Option<FileName>,
    /// `ca-verify-file`: the same, but their names are not sent.
    pub ca_verify_file: Option<FileName>,
    /// `crl-file`
    pub crl_file: Option<FileName>,
    /// `allow-0rtt`: early data is taken.
    pub takes_early: bool,
    /// `no-ca-names`: no names of authorities are sent.
    pub hides_authorities: bool,
    /// `crt-ignore-err`
    pub crt_ignored: Ignored,
    /// `ca-ignore-err`
    pub ca_ignored: Ignored,
}

impl Own {
    /// The same keywords, without their places.
    pub(crate) fn placeless(&self) -> Own {
        let mut own = self.clone();
        for file in [&mut own.ca_file, &mut own.ca_verify_file, &mut own.crl_file].into_iter().flatten() {
            file.place = Place::nowhere();
        }
        own
    }
}

impl BindTls {
    /// Takes the defaults of all lines, once this line is read.
    pub fn settle(&mut self, defaults: Option<&Defaults>) {
        if let Some(defaults) = defaults {
            self.own.common.settle(&defaults.bind);
            self.strict_sni = self.strict_sni.or(defaults.strict_sni.then_some(true));
        }
    }
}

impl ServerTls {
    /// Takes the defaults of all lines, once this line is read.
    pub fn settle(&mut self, defaults: Option<&Defaults>) {
        if let Some(defaults) = defaults {
            self.common.settle(&defaults.server);
        }
    }
}

/// A keyword that names certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateWord {
    /// The file, folder or list.
    pub file: FileName,
    /// Kind of the keyword.
    pub kind: CertificateKind,
}

/// Keyword that names a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertificateKind {
    /// `crt`: a file or a folder.
    Files,
    /// `default-crt`: a file, for clients whose name no other has.
    Default,
    /// `crt-list`
    List,
}

/// The TLS keywords of a `server` line.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ServerTls {
    /// `ssl`
    pub enabled: bool,
    /// `no-ssl`, and whether `ssl` stood before it: then the stats socket may switch it on.
    pub declined: Option<bool>,
    /// Settings that both sides have.
    pub common: Common,
    /// `verify`: `None` as `ssl-server-verify` has it.
    pub verify: Option<bool>,
    /// `verifyhost`
    pub verify_host: Option<Arc<str>>,
    /// `ca-file`
    pub ca_file: Option<FileName>,
    /// `crl-file`
    pub crl_file: Option<FileName>,
    /// `crt`: the certificate that is shown to a server that asks for one.
    pub certificate: Option<FileName>,
    /// `sni`: the expression, and its place.
    pub sni: Option<FileName>,
    /// `no-sni-auto`: where there is no `sni`, the request's host is not asked for.
    pub no_sni_auto: bool,
    /// `alpn`
    pub alpn: Option<Vec<Box<str>>>,
    /// `allow-0rtt`: requests may go ahead of the handshake.
    pub sends_early: bool,
    /// `no-ssl-reuse`: each connection makes a new session.
    pub forgets_sessions: bool,
    /// `check-ssl`, `no-check-ssl`
    pub check: Option<bool>,
    /// `check-sni`
    pub check_sni: Option<Arc<str>>,
    /// `no-check-sni-auto`
    pub no_check_sni_auto: bool,
    /// `check-alpn`
    pub check_alpn: Option<Vec<Box<str>>>,
}
