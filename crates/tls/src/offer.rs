//! Contexts that the names of clients lead to: those of a `bind` line, made of its certificates. A change of a certificate
//! makes a new offer, which shares the contexts that need not change.

use crate::acceptor;
use crate::certificate::{Certificate, Unusable};
use crate::counters::HandshakeCounts;
use crate::generated::{Authority, Maker, Shown};
use crate::names::{self, Name, Names};
use crate::settings::{BindTls, CertificateKind, Global, Own, Verify};
use crate::trust::TrustKind;
use crate::vault::files::{Files, Key, Version, key};
use crate::vault::folder_key;
use crate::version::Version as Protocol;
use crate::{raw, records, verification};
use openssl::pkey::Id;
use openssl::ssl::{SslContext, SslOptions, SslRef, SslVerifyMode};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use terse_config::Place;

/// Contexts that the names of clients lead to.
pub(crate) struct Offer {
    names: Names<Option<Arc<Choice>>>,
    /// Context for clients without a name, or with a name that no certificate has.
    default: Option<Arc<Choice>>,
    /// Makes certificates for the latter, which are shown in place of those of the default.
    maker: Option<Arc<Maker>>,
    /// Whether such clients are refused.
    pub(crate) strict: bool,
    /// Whether any certificate's keywords allow early data.
    pub(crate) takes_early: bool,
    /// Its certificates.
    pub(crate) lines: Vec<Line>,
    /// The numbers of those that are shown by default.
    pub(crate) defaults: Vec<usize>,
    made: HashMap<Recipe, Arc<Choice>>,
}

/// A context that a handshake goes on with.
pub(crate) struct Choice {
    pub(crate) context: SslContext,
    /// The names of its sessions: of connections that do not compress records, and of those that may.
    pub(crate) sessions: [[u8; 32]; 2],
    pub(crate) verify: SslVerifyMode,
    pub(crate) versions: (Protocol, Protocol),
    pub(crate) suites: Option<Arc<str>>,
    /// Groups of the key exchange, where they are not those of the line.
    pub(crate) groups: Option<Arc<str>>,
    pub(crate) early_bytes: u32,
}

/// A certificate of the line.
pub(crate) struct Line {
    /// The name of its file.
    pub(crate) key: Key,
    pub(crate) certificate: Arc<Certificate>,
    pub(crate) names: Vec<Name>,
    /// Keywords of its own, in a list.
    pub(crate) own: Option<Arc<Own>>,
    /// `ocsp-update`, of the list's line or of the `bind` line.
    pub(crate) updates: Option<bool>,
    /// `default-crt`
    says_default: bool,
    /// Whether it, or its bundle, is the first certificate that the line names.
    pub(crate) is_first: bool,
    /// The list or folder that it comes from, and its number there.
    pub(crate) list: Option<(Key, usize)>,
}

/// Ingredients of a context. Parts are the same if they are at the same place in memory: the offer holds them.
#[derive(Clone)]
struct Recipe {
    certificates: Vec<Arc<Certificate>>,
    trusted: Vec<Arc<Version>>,
    own: Option<Arc<Own>>,
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Recipe) -> bool {
        let is_one = |a: &[Arc<Version>], b: &[Arc<Version>]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b));
        let are = self.certificates.iter().zip(&other.certificates).all(|(a, b)| Arc::ptr_eq(a, b));
        are && self.certificates.len() == other.certificates.len() && is_one(&self.trusted, &other.trusted) && self.own == other.own
    }
}

impl Eq for Recipe {}

impl Hash for Recipe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.certificates.iter().for_each(|certificate| Arc::as_ptr(certificate).hash(state));
    }
}

/// Settings of the `bind` line and its surroundings.
pub(crate) struct Terms<'a> {
    pub(crate) tls: &'a BindTls,
    /// The connections carry HTTP.
    pub(crate) http: bool,
    pub(crate) strict: bool,
    pub(crate) place: &'a Place,
    pub(crate) files: &'a Files,
    pub(crate) global: &'a Global,
    pub(crate) counts: &'a Arc<HandshakeCounts>,
    /// `generate-certificates`: the authority that signs.
    pub(crate) authority: Option<&'a Arc<Authority>>,
}

impl Offer {
    /// Makes the contexts of a line, but for those that are the same as before.
    ///
    /// # Errors
    /// The reason why a part of it cannot be used.
    pub(crate) fn make(terms: &Terms<'_>, before: Option<&Offer>) -> Result<Offer, Unusable> {
        let lines = lines(terms)?;
        let made_before = before.map(|offer| &offer.made);
        let mut make = Make { terms, made: HashMap::new(), before: made_before, lines: &lines, wrong: None };
        let patterns: Vec<Vec<Name>> = lines.iter().map(|line| line.names.clone()).collect();
        let names = names::sort(&patterns, |numbers| make.choice(numbers));
        // The default certificates are those marked so, or else those whose names are any, or else the first.
        let numbers = |which: &dyn Fn(usize) -> bool| (0..lines.len()).filter(|n| which(*n)).collect::<Vec<_>>();
        let tries: [&dyn Fn(usize) -> bool; 3] =
            [&|n| lines[n].says_default, &|n| patterns[n].contains(&Name::Any), &|n| lines[n].is_first];
        let defaults = tries.iter().map(|which| numbers(*which)).find(|numbers| !numbers.is_empty()).unwrap_or_default();
        let default = make.choice(&defaults);
        let Make { made, wrong, .. } = make;
        match wrong {
            Some(wrong) => Err(wrong),
            None => {
                let own = lines.iter().filter_map(|line| line.own.as_deref()).chain([&terms.tls.own]);
                let takes_early = own.into_iter().any(|own| own.takes_early);
                let of = |choice: &Arc<Choice>| made.iter().find(|(_, made)| Arc::ptr_eq(made, choice)).map(|(recipe, _)| recipe);
                let of = default.as_ref().and_then(of).map(|recipe| recipe.certificates.clone());
                let maker = terms.authority.zip(of).map(|(authority, of)| {
                    let kept = before.and_then(|offer| offer.maker.clone()).filter(|maker| maker.is_of(&of));
                    kept.unwrap_or_else(|| Arc::new(Maker::new(authority.clone(), of, terms.global.made_certificates)))
                });
                Ok(Offer { names, default, maker, strict: terms.strict, takes_early, lines, defaults, made })
            }
        }
    }

    /// Context of a client that names this host, or none; with it a certificate, where one is made for it.
    pub(crate) fn find(&self, asked: Option<&str>) -> Option<(&Choice, Option<Arc<Shown>>)> {
        let choice = asked.and_then(|name| self.names.find(name)).and_then(Option::as_ref);
        if let Some(choice) = choice {
            return Some((choice, None));
        }
        let made = self.maker.as_ref().zip(asked).and_then(|(maker, name)| maker.shown(name));
        let default = self.default.as_ref().filter(|_| !self.strict || made.is_some());
        default.map(|choice| (&**choice, made))
    }

    /// Whether authorities, or their revocation lists, are in a context.
    pub(crate) fn trusts(&self, version: &Arc<Version>) -> bool {
        self.made.keys().any(|recipe| recipe.trusted.iter().any(|used| Arc::ptr_eq(used, version)))
    }
}

/// The certificates of a line, with their names.
fn lines(terms: &Terms<'_>) -> Result<Vec<Line>, Unusable> {
    let Terms { tls, place, files, global, .. } = terms;
    let mut lines: Vec<Line> = Vec::new();
    let base = global.crt_base.as_deref();
    for word in &tls.certificates {
        let path = word.file.path(base);
        let (says_default, begins) = (word.kind == CertificateKind::Default, lines.is_empty());
        let list_key = if word.kind == CertificateKind::List { key(&path) } else { folder_key(&path) };
        let list = files.lists.get(&list_key).filter(|list| list.is_folder == (word.kind != CertificateKind::List));
        let Some(list) = list else {
            for name in files.certificates_of(&key(&path)) {
                let certificate = files.certificate(name)?.clone();
                let names = own_names(&certificate).collect();
                let list = None;
                let updates = tls.ocsp_update;
                lines.push(Line {
                    key: name.clone(),
                    certificate,
                    names,
                    own: None,
                    updates,
                    says_default,
                    is_first: begins,
                    list,
                });
            }
            continue;
        };
        let first = list.lines.first().map(|line| line.number).filter(|_| begins);
        for line in &list.lines {
            let certificate = files.certificate(&line.certificate)?.clone();
            let own = line.entry.own(tls, place).map_err(Unusable)?.map(Arc::new);
            // Also where another line has its names and goes before it.
            own.as_ref().map(|own| trusted(own, terms)).transpose()?;
            let mut names = line.entry.names();
            // Names that are only excluded leave none: such a certificate can be a default one.
            if names.is_empty() {
                names.extend(own_names(&certificate));
            }
            lines.push(Line {
                key: line.certificate.clone(),
                certificate,
                names,
                own,
                updates: line.entry.updates.or(tls.ocsp_update),
                says_default,
                // Of a list only the first line is first; of a bundle all are.
                is_first: Some(line.number) == first,
                list: Some((list_key.clone(), line.number)),
            });
        }
    }
    Ok(lines)
}

fn own_names(certificate: &Certificate) -> impl Iterator<Item = Name> {
    certificate.names().into_iter().map(|name| Name::parse(&name))
}

/// Contexts on their way: each combination of certificates becomes one.
struct Make<'a> {
    terms: &'a Terms<'a>,
    lines: &'a [Line],
    made: HashMap<Recipe, Arc<Choice>>,
    before: Option<&'a HashMap<Recipe, Arc<Choice>>>,
    wrong: Option<Unusable>,
}

impl Make<'_> {
    /// The context of these lines: of each kind of key, the first that has it, as long as it has the same keywords as the
    /// very first.
    fn choice(&mut self, numbers: &[usize]) -> Option<Arc<Choice>> {
        let mut kinds: Vec<Id> = Vec::new();
        let mut certificates = Vec::new();
        let own = numbers.first().and_then(|number| self.lines[*number].own.clone());
        for number in numbers {
            let line = &self.lines[*number];
            let kind = line.certificate.kind();
            if !kinds.contains(&kind) && line.own == own {
                kinds.push(kind);
                certificates.push(line.certificate.clone());
            }
        }
        if certificates.is_empty() {
            return None;
        }
        let made = trusted(own.as_deref().unwrap_or(&self.terms.tls.own), self.terms).and_then(|trusted| {
            let recipe = Recipe { certificates, trusted, own };
            if let Some(made) = self.made.get(&recipe) {
                return Ok(made.clone());
            }
            let made = match self.before.and_then(|before| before.get(&recipe)) {
                Some(made) => made.clone(),
                None => Arc::new(self.context(&recipe)?),
            };
            self.made.insert(recipe, made.clone());
            Ok(made)
        });
        made.map_err(|wrong| self.wrong.get_or_insert(wrong)).ok()
    }

    fn context(&self, recipe: &Recipe) -> Result<Choice, Unusable> {
        let own = recipe.own.as_deref();
        let certificates = recipe.certificates.iter().map(|certificate| &**certificate).collect::<Vec<_>>();
        // Sessions that were made under other keywords, or under other authorities, are not resumed: the certificate would
        // not be verified again. Lines and processes may share the keys of tickets. So names hold all that counts,
        // whichever line or process sets it.
        let words = own.unwrap_or(&self.terms.tls.own);
        let trusted: Vec<[u8; 32]> = recipe.trusted.iter().map(|version| version.digest).collect();
        let is_plain = own.is_none() && matches!(words.verify, None | Some(Verify::None));
        let name = openssl::sha::sha256(format!("{:?} {trusted:?}", words.placeless()).as_bytes());
        let sessions: &[u8] = if is_plain { acceptor::SESSIONS } else { &name };
        acceptor::choice(words, self.terms, &certificates, sessions)
    }
}

/// The authorities and revocation lists of the contexts of these settings.
fn trusted(own: &Own, terms: &Terms<'_>) -> Result<Vec<Arc<Version>>, Unusable> {
    let base = terms.global.ca_base.as_deref();
    let authorities = own.ca_file.iter().chain(&own.ca_verify_file).map(|file| (TrustKind::Authorities, file));
    let files = authorities.chain(own.crl_file.iter().map(|file| (TrustKind::Revoked, file)));
    files.map(|(kind, file)| terms.files.trusted(kind, &file.path(base)).cloned()).collect()
}

impl Choice {
    /// Makes the handshake of a client that has asked for this name continue with it.
    pub(crate) fn give(&self, ssl: &mut SslRef, asked: Option<&[u8]>) -> Result<(), openssl::error::ErrorStack> {
        // Settings that the handshake has copied from the first context are not changed by another context.
        ssl.set_verify(self.verify);
        if self.verify != SslVerifyMode::NONE {
            verification::prepare(ssl);
        }
        ssl.set_min_proto_version(Some(self.versions.0.openssl()))?;
        ssl.set_max_proto_version(Some(self.versions.1.openssl()))?;
        ssl.set_max_early_data(self.early_bytes)?;
        if let Some(groups) = &self.groups {
            raw::set_groups(ssl, groups)?;
        }
        ssl.set_ssl_context(&self.context)?;
        // The connection gets a list of its own after that, which begins as its context's.
        if let Some(suites) = &self.suites {
            ssl.set_ciphersuites(suites)?;
        }
        let compresses = !raw::options(ssl).contains(SslOptions::NO_COMPRESSION);
        let sessions = &self.sessions[usize::from(compresses)];
        match asked {
            Some(name) => records::name_sessions(ssl, &openssl::sha::sha256(&[sessions, name].concat())),
            None => records::name_sessions(ssl, sessions),
        }
        Ok(())
    }
}
