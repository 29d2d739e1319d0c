//! The decision about a request's own body.

use super::facts::{forbids_transform, is_coded, judge_first, judge_load, judge_type, looks};
use super::offer::Method;
use super::{Decision, Link, Load, Plan, Verdict};
use crate::coding::Coding;
use crate::reason::Reason;
use crate::settings::Effective;
use terse_message::{BodyLength, Known, Request};

/// Judges a request's body. `link`: the hop toward the server. `allowed` returns whether the conditions hold (`compression
/// if-req`); it is called once, and only for a body that might be compressed. `varies` is never set.
pub fn decide_request(
    request: &Request,
    link: Link,
    load: &Load,
    settings: &Effective<'_>,
    allowed: impl FnOnce() -> bool,
) -> Verdict {
    let allowed = configured(settings)
        .and_then(|coding| judge_request(request, link, settings).map(|()| coding))
        .and_then(|coding| if allowed() { Ok(coding) } else { Err(Reason::Condition) })
        .and_then(|coding| judge_load(load, settings).map(|()| coding));
    match allowed {
        Err(reason) => Verdict::pass(reason),
        Ok(coding) => {
            let bytes = if let BodyLength::Exact(bytes) = request.body { Some(bytes) } else { None };
            let plan = Plan { coding, level: settings.level(coding, bytes, load.pace) };
            // A client that waits for 100-continue sends no first bytes before the server has seen the head.
            let looks = looks(coding, bytes.is_some(), settings.request_min_bytes(), settings);
            let can_look = looks && !request.fields.has(Known::Expect);
            Verdict { decision: if can_look { Decision::Look(plan) } else { Decision::Compress(plan) }, varies: false }
        }
    }
}

/// Judges a request's body by its first bytes, as [`super::look`] does for a response.
pub fn look_request(verdict: &Verdict, first: &[u8], whole: Option<u64>, settings: &Effective<'_>) -> Verdict {
    judge_first(verdict, first, whole, settings.request_min_bytes(), settings.sniff())
}

fn configured(settings: &Effective<'_>) -> Result<Coding, Reason> {
    if !settings.is_configured() {
        Err(Reason::NotConfigured)
    } else if !settings.directions().request {
        Err(Reason::Direction)
    } else {
        settings.request_coding().ok_or(Reason::NoAlgorithm)
    }
}

fn judge_request(request: &Request, link: Link, settings: &Effective<'_>) -> Result<(), Reason> {
    let fields = &request.fields;
    link.may_code()?;
    match Method::of(request) {
        Method::Connect => return Err(Reason::Upgrade),
        Method::Head => return Err(Reason::Head),
        Method::Get | Method::Other => {}
    }
    if fields.has(Known::Upgrade) {
        return Err(Reason::Upgrade);
    }
    match request.body {
        BodyLength::None | BodyLength::Exact(0) => return Err(Reason::NoBody),
        BodyLength::Exact(bytes) if bytes < settings.request_min_bytes() => return Err(Reason::TooSmall),
        BodyLength::Exact(_) | BodyLength::Framed | BodyLength::UntilClose => {}
    }
    if request.version < settings.http_version() {
        return Err(Reason::ClientVersion);
    }
    if fields.has(Known::ContentRange) {
        return Err(Reason::Partial);
    }
    if is_coded(fields) {
        return Err(Reason::AlreadyCoded);
    }
    if forbids_transform(fields) {
        return Err(Reason::RequestNoTransform);
    }
    judge_type(fields.first(Known::ContentType), settings.request_types())
}
