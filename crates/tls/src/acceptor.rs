//! TLS to clients: what a `bind` line comes to.
//!
//! ```text
//! hello -> its name -> Names -> a context of the certificates that have it (one of each kind of key) -> the handshake goes on with it
//! ```
//!
//! The first context is where sessions and the keys of tickets live, so that a session can be resumed under any name of the line.

use crate::certificate::{Certificate, Unusable};
use crate::context;
use crate::counters::{COUNTERS, bump};
use crate::list::{self, Entry};
use crate::names::{self, Name, Names};
use crate::secured::{Limits, Secured, Side, Socket};
use crate::settings::{BindTls, CertificateKind, Global, Own, Verify};
use crate::vault::Vault;
use crate::verification::{self, Tolerance};
use crate::version::Version;
use crate::{alpn, raw, trust};
use arc_swap::ArcSwap;
use openssl::bn::BigNum;
use openssl::dh::Dh;
use openssl::pkey::{Id, Params};
use openssl::ssl::{
    AlpnError, ClientHelloResponse, Ssl, SslAlert, SslContext, SslContextBuilder, SslMethod, SslOptions, SslRef,
    SslSessionCacheMode, SslVerifyMode,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use terse_config::{Diagnostics, Place};

/// Makes connections of clients secure.
pub struct Acceptor {
    first: SslContext,
    limits: Limits,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

/// What the names of clients lead to.
struct Offer {
    names: Names<Option<Arc<Choice>>>,
    /// For clients without a name, or with one that no certificate has.
    default: Option<Arc<Choice>>,
    /// Such clients are refused.
    strict: bool,
}

/// A context that a handshake goes on with.
struct Choice {
    context: SslContext,
    verify: SslVerifyMode,
    versions: (Version, Version),
    suites: Option<Arc<str>>,
}

/// A certificate of the line.
struct Line {
    certificate: Arc<Certificate>,
    names: Vec<Name>,
    /// Words of its own, in a list.
    own: Option<Arc<Own>>,
    /// `default-crt`
    says_default: bool,
    /// It, or its bundle, is what the line names first.
    is_first: bool,
}

impl Acceptor {
    /// Reads what a line names and makes its contexts. Everything that is wrong is said; there is none if anything is.
    ///
    /// `http`: the connections carry HTTP, so that only protocols are offered that are spoken.
    pub fn build(tls: &BindTls, http: bool, place: &Place, vault: &mut Vault, diagnostics: &mut Diagnostics) -> Option<Acceptor> {
        let lines = lines(tls, vault, diagnostics)?;
        let strict = tls.strict_sni.unwrap_or_default();
        if lines.is_empty() && !strict {
            diagnostics.alert(place, "there is no certificate to show: 'ssl' needs 'crt <file>'");
            return None;
        }
        match make(tls, lines, strict, http, &vault.global) {
            Ok((acceptor, remarks)) => {
                remarks.into_iter().for_each(|remark| diagnostics.warn(place, remark));
                Some(acceptor)
            }
            Err(Unusable(reason)) => {
                diagnostics.alert(place, reason);
                None
            }
        }
    }

    /// A connection whose handshake is still to be made. `early` was read from it already.
    ///
    /// # Errors
    /// OpenSSL has no memory.
    pub fn accept(&self, socket: Socket, early: &[u8]) -> std::io::Result<Secured> {
        let mut ssl = Ssl::new(&self.first)?;
        ssl.set_accept_state();
        Secured::new(ssl, socket, early, self.limits, Side::Client)
    }
}

/// The certificates of a line, with their names.
fn lines(tls: &BindTls, vault: &mut Vault, diagnostics: &mut Diagnostics) -> Option<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    let mut is_whole = true;
    let base = vault.global.crt_base.clone();
    for word in &tls.certificates {
        let listed = word.kind == CertificateKind::List;
        let entries = match listed {
            true => list::load(&word.file.path(base.as_deref()), tls, &word.file.place),
            false => Ok(vec![Entry { file: word.file.clone(), tls: None, names: Vec::new() }]),
        };
        let entries = entries.unwrap_or_else(|wrong| {
            wrong.into_iter().for_each(|Unusable(reason)| diagnostics.alert(&word.file.place, format!("crt-list {reason}")));
            is_whole = false;
            Vec::new()
        });
        for Entry { file, tls, names } in entries {
            let path = file.path(base.as_deref());
            let (found, wrong) = vault.all_of(&path);
            for Unusable(reason) in wrong {
                diagnostics.alert(&word.file.place, format!("unable to load certificate {reason}"));
                is_whole = false;
            }
            let own = tls.map(|tls| Arc::new(tls.own));
            let (says_default, begins) = (word.kind == CertificateKind::Default, lines.is_empty());
            for (number, certificate) in found.into_iter().enumerate() {
                let mut names = names.clone();
                // Names that are only excluded leave the certificate's own.
                if names.iter().all(|name| matches!(name, Name::Not(_))) {
                    names.extend(certificate.names().iter().map(|name| Name::parse(name)));
                }
                // Of a folder only the first is first; of a bundle all are.
                let is_first = begins && (number == 0 || !path.is_dir());
                lines.push(Line { certificate, names, own: own.clone(), says_default, is_first });
            }
        }
    }
    is_whole.then_some(lines)
}

fn make(tls: &BindTls, lines: Vec<Line>, strict: bool, http: bool, global: &Global) -> Result<(Acceptor, Vec<String>), Unusable> {
    let mut remarks = Vec::new();
    let mut make = Make { own: &tls.own, global, http, made: HashMap::new(), lines: &lines, wrong: None };
    let patterns: Vec<Vec<Name>> = lines.iter().map(|line| line.names.clone()).collect();
    let names = names::sort(&patterns, |numbers| make.choice(numbers));
    // The default are those that say so, or else those whose names are any, or else the first.
    let numbers = |which: &dyn Fn(usize) -> bool| (0..lines.len()).filter(|n| which(*n)).collect::<Vec<_>>();
    let tries: [&dyn Fn(usize) -> bool; 3] =
        [&|n| lines[n].says_default, &|n| patterns[n].contains(&Name::Any), &|n| lines[n].is_first];
    let defaults = tries.iter().map(|which| numbers(*which)).find(|numbers| !numbers.is_empty()).unwrap_or_default();
    let default = make.choice(&defaults);
    if let Some(wrong) = make.wrong {
        return Err(wrong);
    }
    if protocols(&tls.own, http).1.iter().any(|name| &**name == "h2") {
        remarks.push("'alpn h2': HTTP/2 is not spoken to clients yet, so it is not offered to them".into());
    }
    let offer = Arc::new(ArcSwap::from_pointee(Offer { names, default, strict }));
    let first = first(&tls.own, global, http, offer)?;
    let limits = Limits { first: global.max_record, any: global.hard_max_record };
    Ok((Acceptor { first, limits }, remarks))
}

/// Contexts on their way: each combination of certificates becomes one.
struct Make<'a> {
    own: &'a Own,
    global: &'a Global,
    http: bool,
    lines: &'a [Line],
    made: HashMap<Vec<usize>, Arc<Choice>>,
    wrong: Option<Unusable>,
}

impl Make<'_> {
    /// The context of these lines: of each kind of key, the first that has it, as long as it has the same words as the very first.
    fn choice(&mut self, numbers: &[usize]) -> Option<Arc<Choice>> {
        let mut kinds: Vec<Id> = Vec::new();
        let mut chosen = Vec::new();
        let own = numbers.first().and_then(|number| self.lines[*number].own.clone());
        for number in numbers {
            let line = &self.lines[*number];
            let kind = line.certificate.kind();
            if !kinds.contains(&kind) && line.own == own {
                kinds.push(kind);
                chosen.push(*number);
            }
        }
        if chosen.is_empty() {
            return None;
        }
        if let Some(made) = self.made.get(&chosen) {
            return Some(made.clone());
        }
        let certificates = chosen.iter().map(|number| &*self.lines[*number].certificate).collect::<Vec<_>>();
        // Sessions that were made under other words are not gone on with: they may have asked for no certificate.
        let words = chosen[0].to_string();
        let sessions = if own.is_some() { words.as_bytes() } else { SESSIONS };
        match choice(own.as_deref().unwrap_or(self.own), self.global, self.http, &certificates, sessions) {
            Ok(choice) => {
                let choice = Arc::new(choice);
                self.made.insert(chosen, choice.clone());
                Some(choice)
            }
            Err(wrong) => {
                self.wrong.get_or_insert(wrong);
                None
            }
        }
    }
}

/// What every context of a line has.
fn common(own: &Own, global: &Global, http: bool, sessions: &[u8]) -> Result<SslContextBuilder, Unusable> {
    let mut context = context::builder(SslMethod::tls_server(), &own.common, global, Version::Tls12)?;
    let mut options = SslOptions::NO_RENEGOTIATION;
    if !own.common.client_chooses {
        options |= SslOptions::CIPHER_SERVER_PREFERENCE | SslOptions::PRIORITIZE_CHACHA;
    }
    context.set_options(options);
    let unfit = |_| Unusable("OpenSSL refuses the name of the session's context".into());
    context.set_session_id_context(sessions).map_err(unfit)?;
    verification::watch(&mut context, mode(own), Tolerance { authority: own.ca_ignored, certificate: own.crt_ignored });
    let offered = alpn::wire(protocols(own, http).0.iter().map(|name| &**name));
    if !offered.is_empty() {
        context.set_alpn_select_callback(move |_, wanted| select(&offered, wanted).ok_or(AlpnError::NOACK));
    }
    Ok(context)
}

/// Our first protocol that the client offers too.
fn select<'w>(offered: &[u8], wanted: &'w [u8]) -> Option<&'w [u8]> {
    each(offered).find_map(|ours| each(wanted).find(|theirs| *theirs == ours))
}

/// The names of a list as TLS carries it.
fn each(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = list.split_first()?;
        let (name, behind) = rest.split_at_checked(usize::from(*len))?;
        list = behind;
        Some(name)
    })
}

fn mode(own: &Own) -> SslVerifyMode {
    match own.verify {
        None | Some(Verify::None) => SslVerifyMode::NONE,
        Some(Verify::Optional) => SslVerifyMode::PEER,
        Some(Verify::Required) => SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT,
    }
}

/// The protocols that are offered, and those that a line names and nobody here speaks.
fn protocols(own: &Own, http: bool) -> (Vec<Box<str>>, Vec<Box<str>>) {
    let spoken = |name: &str| !http || alpn::HTTP.contains(&name);
    match &own.alpn {
        Some(names) => names.iter().cloned().partition(|name| spoken(name)),
        None if http => (vec![alpn::HTTP[0].into()], Vec::new()),
        None => (Vec::new(), Vec::new()),
    }
}

/// The context that connections begin with.
fn first(own: &Own, global: &Global, http: bool, offer: Arc<ArcSwap<Offer>>) -> Result<SslContext, Unusable> {
    let mut context = common(own, global, http, SESSIONS)?;
    context.set_session_cache_mode(match global.cache_size {
        0 => SslSessionCacheMode::OFF,
        _ => SslSessionCacheMode::SERVER,
    });
    context.set_session_cache_size(i32::try_from(global.cache_size).unwrap_or(i32::MAX));
    raw::on_missing_session(&mut context, || bump(&COUNTERS.cache_misses));
    raw::set_session_lifetime(&mut context, u32::try_from(global.lifetime.as_secs()).unwrap_or(u32::MAX));
    context.set_client_hello_callback(move |ssl, alert| {
        let offer = offer.load();
        let asked = raw::hello_extension(ssl, SERVER_NAME).and_then(server_name).and_then(|name| std::str::from_utf8(name).ok());
        let choice = asked.and_then(|name| offer.names.find(name)).and_then(Option::as_ref);
        let choice = choice.or(offer.default.as_ref().filter(|_| !offer.strict));
        match choice {
            Some(choice) => choice.give(ssl).map(|()| ClientHelloResponse::SUCCESS),
            None => {
                *alert = SslAlert::UNRECOGNIZED_NAME;
                Err(openssl::error::ErrorStack::get())
            }
        }
    });
    Ok(context.build())
}

impl Choice {
    fn give(&self, ssl: &mut SslRef) -> Result<(), openssl::error::ErrorStack> {
        // What the handshake has copied from the first context is not changed by another one.
        ssl.set_verify(self.verify);
        ssl.set_min_proto_version(Some(self.versions.0.openssl()))?;
        ssl.set_max_proto_version(Some(self.versions.1.openssl()))?;
        if let Some(suites) = &self.suites {
            ssl.set_ciphersuites(suites)?;
        }
        ssl.set_ssl_context(&self.context)
    }
}

/// The context of some certificates.
fn choice(own: &Own, global: &Global, http: bool, certificates: &[&Certificate], sessions: &[u8]) -> Result<Choice, Unusable> {
    let mut context = common(own, global, http, sessions)?;
    for certificate in certificates {
        context::show(&mut context, certificate)?;
    }
    let no_parameters = |_| Unusable("OpenSSL refuses the Diffie-Hellman parameters".into());
    match certificates.iter().find_map(|certificate| certificate.dh.as_ref()) {
        Some(dh) => context.set_tmp_dh(dh).map_err(no_parameters)?,
        None => match &global.dh_file {
            Some(file) => {
                let path = file.path(None);
                let pem = crate::certificate::read(&path)?;
                let dh = Dh::params_from_pem(&pem);
                let dh = dh.map_err(|_| Unusable(format!("'{}': there are no Diffie-Hellman parameters in it", path.display())))?;
                context.set_tmp_dh(&dh).map_err(no_parameters)?;
            }
            None => {
                let bits = certificates.iter().filter(|certificate| certificate.kind() == Id::RSA).map(|rsa| rsa.key.bits()).max();
                if let Some(dh) = dh_parameters(bits.unwrap_or_default().min(global.dh_bits)) {
                    context.set_tmp_dh(&dh).map_err(no_parameters)?;
                }
            }
        },
    }
    trusted(&mut context, own, global)?;
    if let Some(answer) = certificates.iter().find_map(|certificate| certificate.ocsp.clone())
        && let [_] = certificates
    {
        let staple = move |ssl: &mut SslRef| Ok(ssl.set_ocsp_status(&answer).is_ok());
        context.set_status_callback(staple).map_err(|_| Unusable("OpenSSL takes no answer about a certificate's state".into()))?;
    }
    let versions = own.common.versions.range(Version::Tls12).map_err(Unusable)?;
    Ok(Choice { context: context.build(), verify: mode(own), versions, suites: own.common.ciphersuites.clone() })
}

/// Well-known parameters (RFC 3526; of 1024 bits RFC 2409), as long as that or shorter.
fn dh_parameters(bits: u32) -> Option<Dh<Params>> {
    let prime = match bits {
        0..1024 => return None,
        1024..2048 => BigNum::get_rfc2409_prime_1024(),
        2048..4096 => BigNum::get_rfc3526_prime_2048(),
        4096.. => BigNum::get_rfc3526_prime_4096(),
    };
    Dh::from_pqg(prime.ok()?, None, BigNum::from_u32(2).ok()?).ok()
}

/// Whom clients' certificates must come from.
fn trusted(context: &mut SslContextBuilder, own: &Own, global: &Global) -> Result<(), Unusable> {
    let base = global.ca_base.as_deref();
    let told = own.ca_file.as_ref().map(|file| trust::authorities(&file.path(base))).transpose()?.unwrap_or_default();
    let more = own.ca_verify_file.as_ref().map(|file| trust::authorities(&file.path(base))).transpose()?.unwrap_or_default();
    if told.is_empty() && more.is_empty() {
        return match mode(own) {
            SslVerifyMode::NONE => Ok(()),
            _ => Err(Unusable("'verify' of clients needs 'ca-file <file>'".into())),
        };
    }
    let revoked = own.crl_file.as_ref().map(|file| file.path(base));
    if !own.hides_authorities {
        context.set_client_ca_list(trust::subjects(&told));
    }
    context.set_cert_store(trust::store(&[told, more].concat(), revoked.as_deref())?);
    Ok(())
}

/// What sessions of lines without words of their own belong to.
const SESSIONS: &[u8] = b"terse";

/// RFC 6066: the number of the extension.
const SERVER_NAME: u16 = 0;

/// The host name of the extension: a list of one entry, of type 0.
fn server_name(extension: &[u8]) -> Option<&[u8]> {
    let entry = sized(extension)?;
    let (kind, rest) = entry.split_first()?;
    (*kind == 0).then(|| sized(rest)).flatten()
}

/// What a length of two bytes announces.
fn sized(bytes: &[u8]) -> Option<&[u8]> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*len)))
}
