//! Answers about certificates' states that are fetched (`ocsp-update`): of which certificates, when, and with what result.
//! Requests are sent by a crate above: a single question at a time goes out, and its outcome comes back.
//!
//! ```text
//! begins to be wanted --no answer--> now --asked--> Updated: min(max delay, end of its time), at least min delay
//!                   \--an answer--> as if updated \--> anything else: min delay, doubled with each failure, at most max delay
//! ```

use super::answers::now_s;
use super::files::Key;
use super::{Held, Refusal, Vault};
use crate::answer::{Answer, CertificateId, SKEW_S};
use crate::certificate::Certificate;
use crate::offer::Line;
use crate::settings::OcspUpdates;
use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::ocsp::{OcspCertId, OcspFlag, OcspRequest, OcspResponse};
use openssl::stack::Stack;
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::verify::X509VerifyFlags;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Request to an authority.
#[derive(Debug)]
pub struct Question {
    /// The file of the certificate.
    pub file: Arc<str>,
    /// The URL of the responder, from the certificate.
    pub url: String,
    /// The request in DER.
    pub der: Vec<u8>,
    id: CertificateId,
}

/// Outcome of a request, by HAProxy's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Fetched {
    /// No responder has been asked yet.
    Unknown,
    /// Clients get the answer.
    Updated,
    /// There was no connection, no answer in time, or a refusal.
    Http,
    /// The content type of the answer is another.
    OtherType,
    /// No authorised signer has signed it, or it is about another certificate.
    Check,
    /// The answer cannot be given to clients.
    Insertion,
}

impl Fetched {
    const fn text(self) -> &'static str {
        match self {
            Fetched::Unknown => "Unknown",
            Fetched::Updated => "Update successful",
            Fetched::Http => "HTTP error",
            Fetched::OtherType => "Missing \"ocsp-response\" header",
            Fetched::Check => "OCSP response check failure",
            Fetched::Insertion => "Error during insertion",
        }
    }
}

/// Reason why answers about a certificate cannot be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hindrance {
    /// Its issuer is not known.
    Issuer,
    /// The certificate names no responder.
    Responder,
}

/// The certificates whose answers are fetched.
#[derive(Default)]
pub(crate) struct Updates(BTreeMap<CertificateId, Update>);

struct Update {
    file: Key,
    /// Whether answers are fetched again and again; otherwise once, by a command.
    is_regular: bool,
    /// `None`: it is being asked.
    next_s: Option<i64>,
    last_s: Option<i64>,
    successes: u64,
    failures: u64,
    failures_in_a_row: u32,
    outcome: Fetched,
}

impl Vault {
    /// Whether there are certificates whose states are asked for.
    pub fn has_questions(&self) -> bool {
        !self.held().wanted(&self.global.ocsp).is_empty()
    }

    /// The question that is due, or the time until one is.
    pub fn due_question(&self) -> Result<Question, Duration> {
        let (now, settings) = (now_s(), &self.global.ocsp);
        let wanted = self.held().wanted(settings);
        let mut updates = self.updates();
        updates.0.retain(|id, update| !update.is_regular || wanted.contains_key(id));
        for (id, (file, certificate)) in wanted {
            let update = updates.0.entry(id).or_insert_with(|| {
                // An answer that clients are not given is as good as none.
                let answer = certificate.answer().and_then(Result::ok).filter(|_| certificate.answer_fault(now).is_none());
                let until = answer.and_then(|answer| answer.until_s());
                Update::new(&file, until.map_or(now, |until| after(settings, now, until)))
            });
            (update.is_regular, update.file) = (true, file);
        }
        loop {
            let next = updates.0.iter_mut().filter_map(|(id, update)| Some((update.next_s?, id, update)));
            let Some((at, id, update)) = next.min_by_key(|(at, ..)| *at) else { return Err(LONG) };
            if at > now {
                return Err(Duration::from_secs(at.abs_diff(now)).min(LONG));
            }
            (update.next_s, update.outcome) = (None, Fetched::Unknown);
            let (id, file) = (id.clone(), update.file.clone());
            match self.held().files.certificate(&file).ok().and_then(|certificate| question(&file, certificate, &id)) {
                Some(question) => return Ok(question),
                // It has changed meanwhile.
                None => drop(updates.0.remove(&id)),
            }
        }
    }

    /// Proxy that requests go through, as `host:port`.
    pub fn questions_proxy(&self) -> Option<&str> {
        self.global.ocsp.proxy.as_deref()
    }

    /// Returns when a question may be due that was not.
    pub async fn questions_change(&self) {
        self.changed.notified().await;
    }

    /// Takes the outcome of a request; returns the log's line, unless the answer is not wanted any more.
    pub fn take_fetched(&self, question: &Question, fetched: Result<Vec<u8>, Fetched>) -> Option<String> {
        let taken = fetched.and_then(|der| self.judge(question, der));
        let (now, settings) = (now_s(), &self.global.ocsp);
        let mut updates = self.updates();
        let update = updates.0.get_mut(&question.id)?;
        match taken {
            Ok(until) => {
                (update.successes, update.failures_in_a_row) = (update.successes + 1, 0);
                (update.outcome, update.last_s) = (Fetched::Updated, Some(now));
                update.next_s = Some(after(settings, now, until));
            }
            Err(outcome) => {
                (update.failures, update.outcome) = (update.failures + 1, outcome);
                let doubled = settings.min_s.saturating_mul(1 << update.failures_in_a_row.min(MOST_DOUBLINGS));
                update.failures_in_a_row += 1;
                update.next_s = Some(now + doubled.min(settings.max_s));
            }
        }
        let Update { outcome, failures, successes, is_regular, .. } = *update;
        if !is_regular {
            updates.0.remove(&question.id);
        }
        Some(format!("<OCSP-UPDATE> {} {} {:?} {failures} {successes}", question.file, outcome as u8, outcome.text()))
    }

    /// Schedules again, after the usual delay, the questions that were begun and will not end.
    pub fn give_up_questions(&self) {
        let next = now_s() + self.global.ocsp.min_s;
        for update in self.updates().0.values_mut().filter(|update| update.next_s.is_none()) {
            (update.failures, update.outcome, update.next_s) = (update.failures + 1, Fetched::Check, Some(next));
        }
    }

    /// Checks that an answer is about the certificate, signed by an authorised signer, and no older than the present one;
    /// then clients get it. Returns the time until which it holds.
    fn judge(&self, question: &Question, der: Vec<u8>) -> Result<i64, Fetched> {
        let certificate = self.held().files.certificate(&question.file).map_err(|_| Fetched::Check)?.clone();
        // First its signer, then its content.
        is_signed(&der, &certificate).ok_or(Fetched::Check)?;
        let answer = Answer::fresh(der.clone(), now_s()).ok().filter(|answer| answer.id == question.id).ok_or(Fetched::Check)?;
        let held = certificate.answer().and_then(Result::ok).and_then(|held| held.since_s());
        if answer.since_s() < held {
            return Err(Fetched::Check);
        }
        let until = answer.until_s().ok_or(Fetched::Check)?;
        self.take_answer(der).map_err(|_| Fetched::Insertion)?;
        Ok(until)
    }

    /// A line for each answer that is fetched, under HAProxy's columns, the next one first.
    pub fn list_updates(&self) -> String {
        let wanted = self.held().wanted(&self.global.ocsp);
        let updates = self.updates();
        let mut rows: Vec<_> = updates.0.iter().filter(|(id, update)| update.is_regular && wanted.contains_key(id)).collect();
        rows.sort_by_key(|(_, update)| update.next_s);
        let mut text = String::from(
            "OCSP Certid | Path | Next Update | Last Update | Successes | Failures | Last Update Status | Last Update Status (str)\n",
        );
        for (id, Update { file, next_s, last_s, successes, failures, outcome, .. }) in rows {
            let [next, last] = [next_s, last_s].map(|at| at.and_then(date).unwrap_or_else(|| "-".into()));
            let _ = writeln!(
                text,
                "{} | {file} | {next} | {last} | {successes} | {failures} | {} | {}",
                id.hex(),
                *outcome as u8,
                outcome.text()
            );
        }
        text
    }

    /// Asks for an answer now, for a certificate that has one or is to have one.
    ///
    /// # Errors
    /// There is no such certificate, or no responder to ask about it.
    pub fn update_now(&self, name: &str) -> Result<(), Refusal> {
        let held = self.held();
        let found = held.files.certificates.get_key_value(name).and_then(|(file, found)| Some((file.clone(), found.clone()?)));
        let (file, certificate) = found.ok_or(Refusal::Unknown)?;
        let is_wanted = certificate.ocsp.is_some() || held.wanted(&self.global.ocsp).values().any(|(wanted, _)| *wanted == file);
        drop(held);
        let id = certificate.id().filter(|id| is_wanted && question(&file, &certificate, id).is_some());
        let id = id.ok_or_else(|| {
            Refusal::Payload(
                "'update ssl ocsp-response' only works on certificates that already have a known OCSP response, \
                 whose issuer is known, and that say whom to ask."
                    .into(),
            )
        })?;
        let mut updates = self.updates();
        let update = updates.0.entry(id).or_insert_with(|| Update { is_regular: false, ..Update::new(&file, 0) });
        // A question that is being asked comes anyhow.
        update.next_s = update.next_s.map(|_| 0);
        drop(updates);
        self.changed.notify_one();
        Ok(())
    }

    fn updates(&self) -> std::sync::MutexGuard<'_, Updates> {
        self.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Update {
    fn new(file: &Key, next_s: i64) -> Update {
        Update {
            file: file.clone(),
            is_regular: true,
            next_s: Some(next_s),
            last_s: None,
            successes: 0,
            failures: 0,
            failures_in_a_row: 0,
            outcome: Fetched::Unknown,
        }
    }
}

impl Held {
    /// The certificates whose answers are fetched, each kind of question once.
    fn wanted(&self, settings: &OcspUpdates) -> BTreeMap<CertificateId, (Key, Arc<Certificate>)> {
        let mut wanted = BTreeMap::new();
        if settings.disabled {
            return wanted;
        }
        for offer in self.acceptors().map(|acceptor| acceptor.offer()) {
            for line in offer.lines.iter().filter(|line| self.updates(line, settings)) {
                if let Some(id) = line.certificate.id().filter(|_| responder(&line.certificate.leaf).is_some()) {
                    wanted.entry(id).or_insert_with(|| (line.key.clone(), line.certificate.clone()));
                }
            }
        }
        wanted
    }

    /// Whether answers about a line's certificate are fetched.
    fn updates(&self, line: &Line, settings: &OcspUpdates) -> bool {
        self.says(line).unwrap_or(settings.by_default)
    }

    /// Setting of that: the line's, or the one where its certificate was loaded.
    fn says(&self, line: &Line) -> Option<bool> {
        line.updates.or_else(|| self.store_updates.get(&line.key).copied())
    }

    /// The same of a certificate that is in use.
    pub(super) fn is_updated(&self, name: &str, settings: &OcspUpdates) -> bool {
        let offers: Vec<_> = self.acceptors().map(|acceptor| acceptor.offer()).collect();
        offers.iter().flat_map(|offer| &offer.lines).any(|line| *line.key == *name && self.updates(line, settings))
    }

    /// The hindrance to fetching answers of a line that are to be fetched: the certificate's issuer is not known, or the
    /// certificate names no responder.
    pub(crate) fn hindrance(&self, line: &Line, settings: &OcspUpdates) -> Option<Hindrance> {
        match (responder(&line.certificate.leaf), line.certificate.id()) {
            _ if settings.disabled || !self.updates(line, settings) => None,
            (None, _) => (self.says(line) == Some(true)).then_some(Hindrance::Responder),
            (Some(_), None) => Some(Hindrance::Issuer),
            (Some(_), Some(_)) => None,
        }
    }

    /// The fault of lines that have different settings for one certificate.
    pub(crate) fn quarrel<'l>(&self, lines: impl Iterator<Item = &'l Line>, settings: &OcspUpdates) -> Option<String> {
        let mut said: BTreeMap<&Key, bool> = BTreeMap::new();
        for line in lines {
            let updates = self.updates(line, settings);
            if *said.entry(&line.key).or_insert(updates) != updates {
                return Some(format!("certificate '{}' is used with different parameter 'ocsp-update'", line.key));
            }
        }
        None
    }
}

/// Time of the next question, where the present answer holds until `until_s`.
fn after(settings: &OcspUpdates, now_s: i64, until_s: i64) -> i64 {
    (now_s + settings.max_s).min(until_s - SKEW_S).max(now_s + settings.min_s)
}

/// The first HTTP URL that a certificate names for answers.
fn responder(certificate: &X509) -> Option<String> {
    let is_asked = |url: &&openssl::string::OpensslStringRef| url.starts_with("http://");
    let found = certificate.ocsp_responders().ok().and_then(|urls| urls.iter().find(is_asked).map(|url| url.to_string()));
    drop(openssl::error::ErrorStack::get());
    found
}

fn question(file: &Key, certificate: &Certificate, id: &CertificateId) -> Option<Question> {
    let url = responder(&certificate.leaf)?;
    let made = || {
        let mut request = OcspRequest::new()?;
        request.add_id(OcspCertId::from_cert(MessageDigest::sha1(), &certificate.leaf, certificate.issued_by()?)?)?;
        request.to_der()
    };
    Some(Question { file: file.clone(), url, der: made().ok()?, id: id.clone() })
}

/// Checks that the certificate's issuer, or a responder authorised by it, has signed an answer.
fn is_signed(der: &[u8], certificate: &Certificate) -> Option<()> {
    let verified = || {
        let mut store = X509StoreBuilder::new()?;
        let mut around = Stack::new()?;
        for above in certificate.chain.iter().chain([certificate.issued_by()?]) {
            store.add_cert(above.clone())?;
            around.push(above.clone())?;
        }
        // It need not lead up to a root: the issuer of the certificate is enough.
        store.set_flags(X509VerifyFlags::PARTIAL_CHAIN)?;
        OcspResponse::from_der(der)?.basic()?.verify(&around, &store.build(), OcspFlag::empty())
    };
    let done: Result<(), openssl::error::ErrorStack> = verified();
    done.ok()
}

/// `30/Jan/2023:00:08:09 +0000`
fn date(at_s: i64) -> Option<String> {
    let text = Asn1Time::from_unix(at_s).ok()?.to_string();
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [month, day, time, year, ..] => Some(format!("{day:0>2}/{month}/{year}:{time} +0000")),
        _ => None,
    }
}

/// Longest sleep where no question is due.
const LONG: Duration = Duration::from_secs(3600);
/// Number of doublings from which on the delay does not grow.
const MOST_DOUBLINGS: u32 = 16;
