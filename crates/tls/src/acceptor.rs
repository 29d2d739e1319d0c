//! TLS to clients: the compiled form of a `bind` line's TLS settings.
//!
//! ```text
//! hello -> server name -> Names -> a context of its certificates (one of each kind of key) -> the handshake goes on with it
//! ```
//!
//! The first context holds the sessions and the keys of tickets. A session belongs to the name that its client has asked
//! for: under another name a handshake is made anew (RFC 6066 section 3).

use crate::certificate::{Certificate, Unusable, check_dates};
use crate::context;
use crate::counters::{COUNTERS, HandshakeCounts, bump};
use crate::early::EARLY_BYTES;
use crate::generated::{self, Authority};
use crate::offer::{Choice, Offer, Terms};
use crate::records::{self, Ask, Policy};
use crate::secured::{Limits, Secured, Side};
use crate::settings::{BindTls, CertificateWord, FileName, Global, Own, Verify};
use crate::socket::Socket;
use crate::tickets::TicketKeys;
use crate::trust::{TrustKind, Trusted};
use crate::vault::answers::now_s;
use crate::vault::files::{Files, Key};
use crate::vault::updates::Hindrance;
use crate::vault::{Touched, Vault, folder_key};
use crate::verification::{self, Tolerance};
use crate::version::Version;
use crate::{alpn, hello, keylog, raw, strength, tickets, trust};
use arc_swap::ArcSwap;
use openssl::bn::BigNum;
use openssl::dh::Dh;
use openssl::pkey::{Id, Params};
use openssl::ssl::{
    AlpnError, ClientHelloResponse, ExtensionContext, NameType, SniError, Ssl, SslAlert, SslContext, SslContextBuilder, SslMethod,
    SslOptions, SslRef, SslSessionCacheMode, SslVerifyMode,
};
use openssl::x509::X509Ref;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, iter};
use terse_config::{Diagnostics, Place};

/// Makes connections of clients secure.
pub struct Acceptor {
    first: SslContext,
    limits: Limits,
    offer: Arc<ArcSwap<Offer>>,
    tls: BindTls,
    http: bool,
    strict: bool,
    place: Place,
    frontend: Arc<str>,
    lists: Vec<Key>,
    ticket_keys: Option<Arc<TicketKeys>>,
    keeps_secrets: bool,
    counts: Arc<HandshakeCounts>,
    authority: Option<Arc<Authority>>,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

impl Acceptor {
    /// Reads the files that a line of a frontend names, and makes its contexts. All faults are reported; `None` if there is
    /// any.
    ///
    /// `http`: the connections carry HTTP, so that only protocols that the proxy speaks are offered.
    pub fn build(
        tls: &BindTls,
        http: bool,
        (frontend, place): (&Arc<str>, &Place),
        vault: &Vault,
        diagnostics: &mut Diagnostics,
    ) -> Option<Arc<Acceptor>> {
        if !vault.read_bind(tls, diagnostics) {
            return None;
        }
        let global = vault.global();
        let strict = tls.strict_sni.unwrap_or_default();
        let mut held = vault.held();
        let counts = Arc::default();
        let authority = authority(tls, global, place, diagnostics).ok()?;
        let files = held.files();
        let terms = Terms { tls, http, strict, place, files, global, counts: &counts, authority: authority.as_ref() };
        let offer = Offer::make(&terms, None);
        let offer = offer.map_err(|Unusable(reason)| diagnostics.alert(place, reason)).ok()?;
        if offer.lines.is_empty() && !strict {
            diagnostics.alert(place, "there is no certificate to show: 'ssl' needs 'crt <file>'");
            return None;
        }
        if authority.is_some() && offer.lines.is_empty() {
            diagnostics
                .alert(place, "'generate-certificates' takes the key of a certificate that is shown by default: add 'crt <file>'");
            return None;
        }
        let listed = offer.lines.iter().filter_map(|line| line.own.as_deref());
        let owns = || iter::once(&tls.own).chain(listed.clone());
        let is_mute = |own: &&Own| matches!(protocols(own, http), (spoken, unspoken) if spoken.is_empty() && !unspoken.is_empty());
        if let Some(own) = owns().find(is_mute) {
            let names = protocols(own, http).1.join(",");
            diagnostics.alert(
                place,
                format!("'alpn {names}': only HTTP/1 and HTTP/2 are spoken to clients: add 'h2,http/1.1' if they may use them"),
            );
            return None;
        }
        let unspoken: BTreeSet<_> = owns().flat_map(|own| protocols(own, http).1).collect();
        for name in unspoken {
            diagnostics
                .warn(place, format!("'alpn {name}': only HTTP/1 and HTTP/2 are spoken to clients, so it is not offered to them"));
        }
        let others: Vec<_> = held.acceptors().map(|acceptor| acceptor.offer()).collect();
        let lines = others.iter().flat_map(|offer| &offer.lines).chain(&offer.lines);
        if let Some(reason) = held.quarrel(lines, &global.ocsp) {
            diagnostics.alert(place, reason);
            return None;
        }
        for line in &offer.lines {
            if let Some(Unusable(reason)) = line.certificate.answer_fault(now_s()) {
                diagnostics.warn(place, format!("clients are not given the answer beside '{}': {reason}", line.key));
            }
        }
        for line in &offer.lines {
            let file = &line.key;
            match held.hindrance(line, &global.ocsp) {
                None => {}
                Some(Hindrance::Issuer) => {
                    let reason = "'ocsp-update on' does nothing: nobody knows who has signed it";
                    diagnostics.warn(place, format!("'{file}': {reason}: add that certificate to the file, after it"));
                }
                Some(Hindrance::Responder) => {
                    let reason = "'ocsp-update on' does nothing: the certificate names nobody who answers by http";
                    diagnostics.warn(place, format!("'{file}': {reason}"));
                }
            }
        }
        if tls.own.common.records == Policy::Allow {
            diagnostics.warn(place, records::WARNING);
        }
        let offer = Arc::new(ArcSwap::from_pointee(offer));
        let ticket_keys = tls.ticket_keys.as_ref().and_then(|file| held.ticket_keys(&file.name));
        let first = first(tls, global, http, ticket_keys.is_some(), offer.clone());
        let first = first.map_err(|Unusable(reason)| diagnostics.alert(place, reason)).ok()?;
        let limits = Limits::of(global);
        let path = |word: &CertificateWord| word.file.path(global.crt_base.as_deref());
        let lists = tls.certificates.iter().map(|word| folder_key(&path(word))).collect();
        let (tls, place, frontend) = (tls.clone(), place.clone(), frontend.clone());
        let keeps_secrets = global.keeps_secrets;
        let acceptor = Arc::new(Acceptor {
            first,
            limits,
            offer,
            tls,
            http,
            strict,
            place,
            frontend,
            lists,
            ticket_keys,
            keeps_secrets,
            counts,
            authority,
        });
        held.enrol(&acceptor);
        Some(acceptor)
    }

    /// The contexts that names would lead to with these files.
    pub(crate) fn prepare(&self, files: &Files, global: &Global) -> Result<Offer, Unusable> {
        let Acceptor { tls, http, strict, place, counts, authority, .. } = self;
        let (http, strict, authority) = (*http, *strict, authority.as_ref());
        Offer::make(&Terms { tls, http, strict, place, files, global, counts, authority }, Some(&self.offer()))
    }

    /// Replaces the contexts that names lead to, from now on.
    pub(crate) fn adopt(&self, offer: Offer) {
        self.offer.store(Arc::new(offer));
    }

    /// Counts of its handshakes.
    pub fn counts(&self) -> &HandshakeCounts {
        &self.counts
    }

    /// The contexts that names lead to now.
    pub(crate) fn offer(&self) -> Arc<Offer> {
        self.offer.load_full()
    }

    /// Whether its contexts use any of the files that changed.
    pub(crate) fn uses(&self, touched: &Touched<'_>) -> bool {
        let offer = self.offer();
        match touched {
            Touched::Certificate(name) => offer.lines.iter().any(|line| *line.key == **name),
            Touched::Certificates(names) => offer.lines.iter().any(|line| names.contains(&line.key)),
            Touched::Trusted(version) => version.is_some_and(|version| offer.trusts(version)),
            Touched::List(name) => self.lists.iter().any(|list| **list == **name),
        }
    }

    /// The frontend, and the place of the line.
    pub(crate) fn line(&self) -> (&str, &Place) {
        (&self.frontend, &self.place)
    }

    /// A connection whose handshake is still to be made. `early` was read from it already; its records are compressed only
    /// if it may `ask` for memory.
    ///
    /// # Errors
    /// OpenSSL has no memory.
    pub fn accept(&self, socket: Socket, early: &[u8], ask: Option<Ask>) -> std::io::Result<Secured> {
        let mut ssl = Ssl::new(&self.first)?;
        ssl.set_accept_state();
        if let Some(ask) = ask {
            records::ask_later(&mut ssl, ask);
        }
        if let Some(keys) = &self.ticket_keys {
            tickets::lend(&mut ssl, keys);
        }
        if self.keeps_secrets {
            keylog::keep(&mut ssl);
        }
        let secured = Secured::new(ssl, socket, early, self.limits, (Side::Client, &self.counts), None)?;
        if self.offer.load().takes_early {
            secured.expect_early();
        }
        Ok(secured)
    }

    /// Whether it may compress records, and so asks for [`crate::RECORDS_MEMORY_BYTES`].
    pub fn compresses_records(&self) -> bool {
        self.tls.own.common.records == Policy::Allow
    }
}

/// Authority that signs the certificates that are made, if any are. Faults are reported.
fn authority(tls: &BindTls, global: &Global, place: &Place, diagnostics: &mut Diagnostics) -> Result<Option<Arc<Authority>>, ()> {
    let Some(file) = &tls.ca_sign_file else {
        if tls.generates {
            diagnostics.alert(place, "'generate-certificates': nobody signs them: add 'ca-sign-file <file>'");
            return Err(());
        }
        return Ok(None);
    };
    if !tls.generates {
        diagnostics.warn(place, "'ca-sign-file' does nothing without 'generate-certificates'");
        return Ok(None);
    }
    let path = file.path(global.ca_base.as_deref());
    let authority = Authority::load(&path, tls.ca_sign_pass.as_ref());
    let authority = authority.and_then(|found| check_dates(&path, found.certificate(), global).map(|()| found));
    authority
        .map(|found| Some(Arc::new(found)))
        .map_err(|Unusable(reason)| diagnostics.alert(&file.place, format!("'ca-sign-file': {reason}")))
}

/// Name of the sessions of a context: a hash of the words that they were made under, and of whether their records may be
/// compressed. A session that compressed cannot be resumed where compression is forbidden: OpenSSL would end the handshake.
pub(crate) fn session_name(words: &[u8], compresses: bool) -> [u8; 32] {
    let ending: &[u8] = if compresses { b", records" } else { b"" };
    openssl::sha::sha256(&[words, ending].concat())
}

/// Builds a context with the settings that all contexts of a line share.
fn common(own: &Own, global: &Global, http: bool, sessions: &[u8]) -> Result<SslContextBuilder, Unusable> {
    let mut context = context::builder(SslMethod::tls_server(), &own.common, global, Version::Tls12)?;
    strength::set_ciphers(&mut context, own)?;
    let mut options = SslOptions::NO_RENEGOTIATION;
    if !own.common.client_chooses {
        options |= SslOptions::CIPHER_SERVER_PREFERENCE | SslOptions::PRIORITIZE_CHACHA;
    }
    context.set_options(options);
    raw::count_renegotiations(&mut context);
    let unfit = |_| Unusable("OpenSSL refuses the name of the session's context".into());
    context.set_session_id_context(&session_name(sessions, own.common.records == Policy::Allow)).map_err(unfit)?;
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

/// The protocols that are offered, and those that a line names and the proxy does not speak.
fn protocols(own: &Own, http: bool) -> (Vec<Box<str>>, Vec<Box<str>>) {
    let spoken = |name: &str| !http || alpn::is_http(name);
    match &own.alpn {
        Some(names) => names.iter().cloned().partition(|name| spoken(name)),
        None if http => (alpn::USUAL.map(Into::into).to_vec(), Vec::new()),
        None => (Vec::new(), Vec::new()),
    }
}

/// The context that connections begin with.
fn first(
    tls: &BindTls,
    global: &Global,
    http: bool,
    shares_tickets: bool,
    offer: Arc<ArcSwap<Offer>>,
) -> Result<SslContext, Unusable> {
    let mut context = common(&tls.own, global, http, SESSIONS)?;
    strength::set_groups(&mut context, tls)?;
    if shares_tickets {
        raw::share_tickets(&mut context).map_err(|_| Unusable("OpenSSL takes no keys of tickets".into()))?;
    }
    if global.hello_bytes > 0 {
        hello::keep(&mut context, global.hello_bytes).map_err(|_| Unusable("OpenSSL shows no messages".into()))?;
    }
    context.set_session_cache_mode(match global.cache_size {
        0 => SslSessionCacheMode::OFF,
        _ => SslSessionCacheMode::SERVER,
    });
    context.set_session_cache_size(i32::try_from(global.cache_size).unwrap_or(i32::MAX));
    raw::on_missing_session(&mut context, || bump(&COUNTERS.cache_misses));
    raw::set_session_lifetime(&mut context, u32::try_from(global.lifetime.as_secs()).unwrap_or(u32::MAX));
    // OpenSSL makes room for the extensions of a hello by this context's list, before another context takes its place. So
    // no context may have more extensions of its own than this one, or OpenSSL would look past that room.
    let silent = |_: &mut SslRef, _: ExtensionContext, _: Option<(usize, &X509Ref)>| Ok(None::<Vec<u8>>);
    let added = context.add_custom_ext(TIMESTAMPS, timestamped(), silent, |_, _, _, _| Ok(()));
    added.map_err(|_| Unusable("OpenSSL takes no timestamps of certificates".into()))?;
    // Only with it OpenSSL keeps the name in the session, up to TLS 1.2.
    context.set_servername_callback(|ssl, _| ssl.servername_raw(NameType::HOST_NAME).map(|_| ()).ok_or(SniError::NOACK));
    raw::complete_sessions(&mut context).map_err(|_| Unusable("OpenSSL takes nothing into sessions".into()))?;
    let watches = tls.own.common.records != Policy::Forbid;
    context.set_client_hello_callback(move |ssl, alert| {
        if watches {
            records::note_offer(ssl);
        }
        records::ask_now(ssl);
        let offer = offer.load();
        let asked = raw::hello_extension(ssl, hello::SERVER_NAME).and_then(hello::server_name).map(<[u8]>::to_vec);
        match offer.find(asked.as_ref().and_then(|name| std::str::from_utf8(name).ok())) {
            Some((choice, made)) => {
                choice.give(ssl, asked.as_deref())?;
                made.map_or(Ok(()), |made| made.show(ssl))?;
                Ok(ClientHelloResponse::SUCCESS)
            }
            None => {
                *alert = SslAlert::UNRECOGNIZED_NAME;
                Err(openssl::error::ErrorStack::get())
            }
        }
    });
    Ok(context.build())
}

/// The context of some certificates.
pub(crate) fn choice(own: &Own, terms: &Terms<'_>, certificates: &[&Certificate], sessions: &[u8]) -> Result<Choice, Unusable> {
    let Terms { http, global, .. } = *terms;
    let mut context = common(own, global, http, sessions)?;
    for certificate in certificates {
        context::show(&mut context, certificate)?;
    }
    let no_parameters = |_| Unusable("OpenSSL refuses the Diffie-Hellman parameters".into());
    match certificates.iter().find_map(|certificate| certificate.dh.as_ref()).or(terms.files.dh.as_ref()) {
        Some(dh) => context.set_tmp_dh(dh).map_err(no_parameters)?,
        None => {
            let bits = certificates
                .iter()
                .filter(|certificate| certificate.kind() == Id::RSA)
                .filter_map(|rsa| Some(rsa.key.as_ref()?.bits()))
                .max();
            if let Some(dh) = dh_parameters(bits.unwrap_or_default().min(global.dh_bits)) {
                // Where the security level refuses weak parameters, such as `tune.ssl.default-dh-param 1024`, clients get
                // other key exchanges.
                let _ = context.set_tmp_dh(&dh);
            }
        }
    }
    trusted(&mut context, own, terms)?;
    // Of several certificates the client's ciphers choose one, and with it the files beside it.
    let answers = certificates.iter().filter_map(|certificate| Some((certificate.leaf.clone(), certificate.answer()?.ok()?)));
    let answers: Vec<_> = answers.collect();
    if !answers.is_empty() {
        let counts = terms.counts.clone();
        let staple = move |ssl: &mut SslRef| {
            let Some((_, answer)) = answers.iter().find(|(leaf, _)| ssl.certificate().is_some_and(|shown| *shown == **leaf)) else {
                return Ok(false);
            };
            let is_sent = answer.is_current(now_s()) && ssl.set_ocsp_status(&answer.der).is_ok();
            bump(if is_sent { &counts.stapled } else { &counts.staple_failed });
            Ok(is_sent)
        };
        context.set_status_callback(staple).map_err(|_| Unusable("OpenSSL takes no answer about a certificate's state".into()))?;
    }
    if certificates.iter().any(|certificate| certificate.timestamps.is_some()) {
        let timestamps: Vec<_> =
            certificates.iter().map(|found| (found.kind(), found.leaf.clone(), found.timestamps.clone())).collect();
        let send = move |ssl: &mut SslRef, _, shown: Option<(usize, &X509Ref)>| {
            let chosen = match shown {
                // TLS 1.3: of a chain, the certificate itself.
                Some((0, shown)) => timestamps.iter().find(|(_, leaf, _)| *shown == **leaf),
                Some(_) => None,
                // No log has seen a certificate that was made here.
                None if generated::is_given(ssl) => None,
                // The connection has no certificate yet that could be asked for, but a key that it will sign with.
                None if timestamps.len() == 1 => timestamps.first(),
                None => timestamps.iter().find(|(kind, ..)| raw::signs_with(ssl, *kind)),
            };
            Ok(chosen.and_then(|(.., timestamps)| timestamps.clone()))
        };
        let added = context.add_custom_ext(TIMESTAMPS, timestamped(), send, |_, _, _, _| Ok(()));
        added.map_err(|_| Unusable("OpenSSL takes no timestamps of certificates".into()))?;
    }
    context::name(&mut context, certificates);
    let versions = own.common.versions.range(Version::Tls12).map_err(Unusable)?;
    let early_bytes = if own.takes_early { EARLY_BYTES } else { 0 };
    let sessions = [false, true].map(|compresses| session_name(sessions, compresses));
    Ok(Choice {
        context: context.build(),
        sessions,
        verify: mode(own),
        versions,
        suites: own.common.ciphersuites.clone(),
        groups: own.common.curves.clone().filter(|own| terms.tls.own.common.curves.as_ref() != Some(own)),
        early_bytes,
    })
}

/// Messages in which timestamps of certificates are asked for and sent.
fn timestamped() -> ExtensionContext {
    ExtensionContext::CLIENT_HELLO
        | ExtensionContext::TLS1_2_SERVER_HELLO
        | ExtensionContext::TLS1_3_CERTIFICATE
        | ExtensionContext::IGNORE_ON_RESUMPTION
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

/// Sets the authorities that clients' certificates must come from.
fn trusted(context: &mut SslContextBuilder, own: &Own, terms: &Terms<'_>) -> Result<(), Unusable> {
    let base = terms.global.ca_base.as_deref();
    let find = |kind: TrustKind, file: &Option<FileName>| {
        let found = file.as_ref().map(|file| terms.files.trusted(kind, &file.path(base))).transpose();
        found.map(|version| version.map(|version| &version.content))
    };
    let told = find(TrustKind::Authorities, &own.ca_file)?.map(Trusted::authorities).unwrap_or_default();
    let more = find(TrustKind::Authorities, &own.ca_verify_file)?.map(Trusted::authorities).unwrap_or_default();
    if told.is_empty() && more.is_empty() {
        return match mode(own) {
            SslVerifyMode::NONE => Ok(()),
            _ => Err(Unusable("'verify' of clients needs 'ca-file <file>'".into())),
        };
    }
    let revoked = find(TrustKind::Revoked, &own.crl_file)?.map(Trusted::revoked);
    if !own.hides_authorities {
        context.set_client_ca_list(trust::subjects(told));
    }
    context.set_cert_store(trust::store(told.iter().chain(more), revoked)?);
    Ok(())
}

/// Session context of lines without words of their own.
pub(crate) const SESSIONS: &[u8] = b"terse";

/// RFC 6962 section 3.3.1: the number of the extension.
const TIMESTAMPS: u16 = 18;
