//! The decision about a response.

use super::facts::{forbids_transform, has_directive, has_prefix, is_coded, judge_first, judge_load, judge_type, looks};
use super::offer::Method;
use super::{Decision, Load, Offer, Plan, Verdict};
use crate::coding::{Coding, Level};
use crate::dictionary::Usage;
use crate::etag::Tag;
use crate::reason::Reason;
use crate::settings::{Effective, Proxied};
use terse_message::{BodyLength, Known, Response, Version, date};

/// Judges a response by its head. The offer is that of its request, under the same settings. `allowed` returns whether the
/// conditions hold (`compression if`); it is called once, and only for a response that would be compressed for some client.
pub fn decide(
    offer: &Offer,
    response: &Response,
    load: &Load,
    settings: &Effective<'_>,
    allowed: impl FnOnce() -> bool,
) -> Verdict {
    if let Err(reason @ (Reason::NotConfigured | Reason::Direction | Reason::NoAlgorithm)) = offer.want {
        return Verdict::pass(reason);
    }
    if let Err(reason) = judge_message(offer, response, settings).and_then(|()| judge_resource(response, settings)) {
        let varies = offer.may_hold_ours && offer.method.reads() && concerns_ours(offer, response, settings, allowed);
        return Verdict { decision: Decision::Pass(reason), varies };
    }
    if !allowed() {
        return Verdict::pass(Reason::Condition);
    }
    let dictionary = dictionary_level(offer, response, load, settings).ok();
    let want = dictionary.map_or(offer.want, |_| Ok(Coding::Dcz));
    let allowed = judge_proxied(offer, response, settings).and(want).and_then(|coding| judge_load(load, settings).map(|()| coding));
    let level = |coding: Coding, bytes| match dictionary.filter(|_| coding.has_dictionary()) {
        Some(level) => level,
        None => settings.level(coding, bytes, load.pace),
    };
    let decision = match allowed {
        Err(reason) => Decision::Pass(reason),
        Ok(_) if offer.method == Method::Head && settings.process().as_haproxy => Decision::Pass(Reason::Head),
        Ok(coding) if offer.method == Method::Head => {
            // There are no first bytes: the type is believed.
            Decision::Head(Plan { coding, level: level(coding, None) })
        }
        Ok(coding) => {
            let plan = Plan { coding, level: level(coding, known_bytes(offer, response)) };
            let known = known_bytes(offer, response).is_some();
            if looks(coding, known, settings.response_min_bytes(), settings) {
                Decision::Look(plan)
            } else {
                Decision::Compress(plan)
            }
        }
    };
    Verdict { decision, varies: offer.may_hold_ours }
}

/// The level at which the response would be coded with the client's dictionary.
fn dictionary_level(offer: &Offer, response: &Response, load: &Load, settings: &Effective<'_>) -> Result<Level, Usage> {
    let offered = offer.dictionary().ok_or(Usage::None)?;
    offered.settle(response, known_bytes(offer, response), settings, load.pace).map(|(_, level)| level)
}

/// What became of the client's dictionary, once it is decided what becomes of the response; nothing where there are none.
pub fn usage(offer: &Offer, response: &Response, verdict: &Verdict, load: &Load, settings: &Effective<'_>) -> Option<Usage> {
    offer.dictionary()?;
    Some(match (dictionary_level(offer, response, load, settings), verdict.decision) {
        (_, Decision::Compress(plan) | Decision::Head(plan)) if plan.coding.has_dictionary() => Usage::Used,
        (Err(usage), _) => usage,
        (Ok(_), Decision::Pass(Reason::Partial)) => Usage::Partial,
        (Ok(_), Decision::Pass(Reason::BufferLimit)) => Usage::Memory,
        (Ok(_), _) => Usage::NotCoded,
    })
}

/// Judges a response by its first bytes, after a verdict that asked for them. `first` is what has come so far, at least
/// [`crate::sniff::LOOK_BYTES`] of it if that can be had without waiting; empty says that nothing came in time and the head has to
/// leave. `whole` is the body's length, where all of it has come.
pub fn look(verdict: &Verdict, first: &[u8], whole: Option<u64>, settings: &Effective<'_>) -> Verdict {
    judge_first(verdict, first, whole, settings.response_min_bytes(), settings.sniff())
}

/// Judges whether the message carries a whole body: status, version, framing.
fn judge_message(offer: &Offer, response: &Response, settings: &Effective<'_>) -> Result<(), Reason> {
    let fields = &response.fields;
    match response.status {
        101 => return Err(Reason::Upgrade),
        200..=299 if offer.method == Method::Connect => return Err(Reason::Upgrade),
        100..=199 | 204 | 205 | 304 => return Err(Reason::NoBody),
        206 => return Err(Reason::Partial),
        // A body that is no representation, but the difference between two (RFC 3229).
        226 => return Err(Reason::Status),
        200..=203 => {}
        _ if settings.process().as_haproxy => return Err(Reason::Status),
        _ => {}
    }
    if settings.process().as_haproxy {
        judge_framing(response, settings)?;
    }
    if fields.has(Known::ContentRange) {
        return Err(Reason::Partial);
    }
    match known_bytes(offer, response) {
        Some(0) => Err(Reason::NoBody),
        Some(bytes) if bytes < settings.response_min_bytes() => Err(Reason::TooSmall),
        _ => Ok(()),
    }
}

/// Judges whether HAProxy would compress the response of a server of that version, framed so.
fn judge_framing(response: &Response, settings: &Effective<'_>) -> Result<(), Reason> {
    if response.version < settings.http_version() {
        return Err(Reason::ServerVersion);
    }
    if response.body == BodyLength::UntilClose && settings.http_version() > Version::Http10 {
        return Err(Reason::UntilClose);
    }
    Ok(())
}

/// Whether a 304 or a 206 is about a resource whose 200 would be compressed for some client, as far as its head shows:
/// unknown facts are taken for yes. So a 304 has the Vary of the 200 (RFC 9110 section 15.4.5), and no part is joined with
/// bytes that may be ours.
fn concerns_ours(offer: &Offer, response: &Response, settings: &Effective<'_>, allowed: impl FnOnce() -> bool) -> bool {
    let fields = &response.fields;
    let may_be = || match judge_resource(response, settings) {
        Ok(()) => !settings.process().as_haproxy || response.version >= settings.http_version(),
        Err(Reason::MissingType) => response.status == 304 || offer.has_if_range,
        Err(Reason::Multipart) => fields.first(Known::ContentType).is_some_and(|value| has_prefix(value, b"multipart/byteranges")),
        Err(_) => false,
    };
    match response.status {
        304 => offer.is_coded_for_some.unwrap_or_else(may_be),
        206 => whole_bytes(response).is_none_or(|bytes| bytes >= settings.response_min_bytes()) && may_be() && allowed(),
        _ => false,
    }
}

/// The length of the representation that a part belongs to.
fn whole_bytes(response: &Response) -> Option<u64> {
    let range = response.fields.first(Known::ContentRange)?;
    let total = &range[memchr::memchr(b'/', range)? + 1..];
    std::str::from_utf8(total).ok()?.trim().parse().ok()
}

/// The body's length, as far as it is known; of an answer to HEAD, that of GET's.
fn known_bytes(offer: &Offer, response: &Response) -> Option<u64> {
    match response.body {
        BodyLength::Exact(bytes) => Some(bytes),
        BodyLength::Framed | BodyLength::UntilClose => None,
        BodyLength::None if offer.method == Method::Head => {
            let value = response.fields.first(Known::ContentLength)?;
            std::str::from_utf8(value).ok()?.parse().ok()
        }
        BodyLength::None => Some(0),
    }
}

/// Judges whether the server's response can be compressed for any client. Asked for parts of a body as well: they are of such a
/// resource.
fn judge_resource(response: &Response, settings: &Effective<'_>) -> Result<(), Reason> {
    let fields = &response.fields;
    if is_coded(fields) {
        return Err(Reason::AlreadyCoded);
    }
    if forbids_transform(fields) {
        return Err(Reason::NoTransform);
    }
    let mut tags = fields.every(Known::Etag);
    if tags.next().is_some_and(|tag| Tag::parse(tag).is_none()) {
        return Err(Reason::InvalidEtag);
    }
    if tags.next().is_some() {
        return Err(Reason::MultipleEtags);
    }
    let content_type = fields.first(Known::ContentType);
    if content_type.is_some_and(|value| has_prefix(value, b"multipart")) {
        return Err(Reason::Multipart);
    }
    judge_type(content_type, settings.response_types())
}

/// The effect of `compression proxied` on a request that came through another proxy.
fn judge_proxied(offer: &Offer, response: &Response, settings: &Effective<'_>) -> Result<(), Reason> {
    let Proxied::When(when) = settings.proxied() else { return Ok(()) };
    if !offer.proxied {
        return Ok(());
    }
    let fields = &response.fields;
    let holds = (when.expired && is_expired(response))
        || (when.no_cache && has_directive(fields, b"no-cache"))
        || (when.no_store && has_directive(fields, b"no-store"))
        || (when.private && has_directive(fields, b"private"))
        || (when.no_last_modified && fields.get(b"Last-Modified").is_none())
        || (when.no_etag && !fields.has(Known::Etag))
        || (when.auth && offer.authorized);
    if holds { Ok(()) } else { Err(Reason::Proxied) }
}

/// Whether Expires forbids caches to keep the response: not after Date, or no date at all (RFC 9111 section 5.3). The
/// obsolete forms of dates are not read.
fn is_expired(response: &Response) -> bool {
    let Some(expires) = response.fields.get(b"Expires") else { return false };
    let seconds = |date: &[u8]| date::imf(std::str::from_utf8(date.trim_ascii()).ok()?);
    match (seconds(expires), response.fields.get(b"Date").and_then(seconds)) {
        (Some(expires), Some(date)) => expires <= date,
        (Some(_), None) => false,
        (None, _) => true,
    }
}
