//! The decision: which codings of a message are undone. Pure, as that about compression is.

use super::reason::Reason;
use super::settings::{Effective, Responses};
use crate::accept::Admission;
use crate::coding::Coding;
use crate::policy::{Method, codings, forbids_transform, is_grpc};
use crate::range;
use terse_message::{BodyLength, Fields, Known, Request, Response};

/// Codings of one message that are undone at most. One is the rule, two happen (a compressed file, compressed again on its way).
pub const MAX_CODINGS: usize = 3;

/// Codings of one message that are read.
const MAX_MEMBERS: usize = 8;

/// The codings to undo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The outermost first; `count` of them.
    codings: [Coding; MAX_CODINGS],
    count: usize,
    /// Members of Content-Encoding that stay, from the first on.
    pub(super) keep: usize,
    /// The last of the kept codings; `identity` where none stays.
    pub(super) kept: Coding,
}

impl Plan {
    /// The codings that are undone, the outermost first: Content-Encoding has them in the other direction.
    pub fn codings(&self) -> &[Coding] {
        &self.codings[..self.count]
    }
}

/// The decision about a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is decoded. An answer to HEAD has no body, but its head is that of the decoded one.
    Decode(Plan),
    /// It stays as it is.
    Pass(Reason),
    /// It must not reach the client: it is a part that the client asked for in order to join it with its own bytes, which may
    /// be decoded, and it is coded. The whole is asked for instead.
    Refuse,
}

/// Facts of a request for the decision about its response; the request itself may be edited or gone by then.
#[derive(Clone, Debug)]
pub struct Ask {
    pub(super) admission: Admission,
    pub(super) method: Method,
    no_transform: bool,
    /// Whether it asks for a part to join with bytes that its client may have got decoded.
    pub(crate) joins: bool,
    /// Whether responses that the client takes are coded again, if compression codes them better.
    pub(super) recodes: bool,
    /// If-None-Match as the client sent it.
    pub(super) if_none_match: Option<Box<[u8]>>,
    /// The decision about the response to GET; `None` where that response is not known.
    pub(super) about_whole: Option<Decision>,
}

/// Reads a request before it is edited for the server, when frontend and backend are known; `None` where no response is
/// decoded.
pub fn ask(request: &Request, settings: &Effective<'_>) -> Option<Box<Ask>> {
    if settings.responses() == Responses::Off {
        return None;
    }
    let fields = &request.fields;
    let admission = Admission::read(fields.every(Known::AcceptEncoding));
    let method = Method::of(request);
    let takes_all = Coding::ordinary().filter(|coding| !coding.is_identity()).all(|coding| admission.admits(coding));
    let tags: Vec<&[u8]> = fields.every(Known::IfNoneMatch).collect();
    Some(Box::new(Ask {
        joins: method == Method::Get && range::may_join(fields, !takes_all),
        admission,
        method,
        no_transform: forbids_transform(fields),
        recodes: settings.responses() == Responses::Recode,
        about_whole: None,
        if_none_match: (!tags.is_empty()).then(|| tags.join(&b", "[..]).into()),
    }))
}

impl Ask {
    /// Whether the client can use the rest in that coding.
    pub(crate) fn takes(&self, coding: Coding) -> bool {
        coding.is_identity() || self.admission.admits(coding)
    }

    /// Whether it asks for a part to join with bytes that its client may have got decoded.
    pub fn joins(&self) -> bool {
        self.joins
    }

    /// Records what becomes of the response to GET, which is here already: for the fields of its 304.
    pub fn know(&mut self, whole: &Response) {
        self.about_whole = Some(decide(self, whole, false));
    }

    /// Whether a response may be decoded at all.
    pub(super) fn allows(&self) -> bool {
        !self.no_transform && self.method != Method::Connect
    }
}

/// Judges a response by its head. `memory_full`: the limit of memory is reached.
pub fn decide(ask: &Ask, response: &Response, memory_full: bool) -> Decision {
    let fields = &response.fields;
    match response.status {
        101 => return Decision::Pass(Reason::Upgrade),
        200..=299 if ask.method == Method::Connect => return Decision::Pass(Reason::Upgrade),
        100..=199 | 204 | 205 | 304 => return Decision::Pass(Reason::NoBody),
        _ => {}
    }
    let members = match Members::read(fields) {
        Ok(members) => members,
        Err(reason) => return Decision::Pass(reason),
    };
    let keep = members.list().iter().take_while(|coding| coding.is_some_and(|coding| ask.admission.admits(coding))).count();
    if keep == members.count {
        return Decision::Pass(Reason::Accepted);
    }
    if response.status == 206 || fields.has(Known::ContentRange) {
        return if ask.joins { Decision::Refuse } else { Decision::Pass(Reason::Partial) };
    }
    match response.body {
        BodyLength::None if ask.method != Method::Head => return Decision::Pass(Reason::NoBody),
        BodyLength::Exact(0) => return Decision::Pass(Reason::NoBody),
        _ => {}
    }
    let allowed = if ask.no_transform { Err(Reason::RequestNoTransform) } else { judge(fields, memory_full, Reason::NoTransform) };
    match allowed.and_then(|()| members.undo(keep)) {
        Ok(plan) => Decision::Decode(plan),
        Err(reason) => Decision::Pass(reason),
    }
}

/// Whether a 206 that is coded is a part of a response that is decoded and coded again for some clients. They may join it with
/// what they hold.
pub fn is_part_of_recoded(
    ask: &Ask,
    offer: &crate::Offer,
    response: &Response,
    compression: &crate::Effective<'_>,
    allowed: impl FnOnce() -> bool,
) -> bool {
    let can_undo = || Members::read(&response.fields).and_then(|members| members.undo(0)).is_ok();
    if !ask.recodes || !ask.allows() || !can_undo() {
        return false;
    }
    let mut plain = response.clone();
    plain.fields.remove_known(Known::ContentEncoding);
    crate::policy::decide(offer, &plain, &crate::Load::IDLE, compression, allowed).varies
}

/// Judges a request's body; `None` where none is decoded.
pub fn decide_request(request: &Request, memory_full: bool, settings: &Effective<'_>) -> Option<Decision> {
    let unwanted = settings.request_codings();
    if unwanted.is_empty() {
        return None;
    }
    Some(match judge_request(request, memory_full, unwanted) {
        Ok(plan) => Decision::Decode(plan),
        Err(reason) => Decision::Pass(reason),
    })
}

fn judge_request(request: &Request, memory_full: bool, unwanted: &[Coding]) -> Result<Plan, Reason> {
    let fields = &request.fields;
    let members = Members::read(fields)?;
    if Method::of(request) == Method::Connect || fields.has(Known::Upgrade) {
        return Err(Reason::Upgrade);
    }
    if matches!(request.body, BodyLength::None | BodyLength::Exact(0)) {
        return Err(Reason::NoBody);
    }
    let is_unwanted = |coding: &Option<Coding>| coding.is_some_and(|coding| unwanted.contains(&coding));
    let keep = members.list().iter().position(is_unwanted).ok_or(Reason::Accepted)?;
    if fields.has(Known::ContentRange) {
        return Err(Reason::Partial);
    }
    judge(fields, memory_full, Reason::RequestNoTransform)?;
    members.undo(keep)
}

/// The common rules of both directions.
fn judge(fields: &Fields, memory_full: bool, no_transform: Reason) -> Result<(), Reason> {
    if forbids_transform(fields) {
        Err(no_transform)
    } else if fields.first(Known::ContentType).is_some_and(is_grpc) {
        Err(Reason::Grpc)
    } else if memory_full {
        Err(Reason::BufferLimit)
    } else {
        Ok(())
    }
}

/// Whether to decode a response that its client would take, because compression would code it in a way that the client likes
/// better (`decompression response recode`); returns the codings to undo. `offer` is that of the same request.
pub fn recode(
    ask: &Ask,
    offer: &crate::Offer,
    response: &Response,
    load: &crate::Load,
    compression: &crate::Effective<'_>,
) -> Option<Plan> {
    let better = offer.coded()?;
    let members = Members::read(&response.fields).ok()?;
    let plan = members.undo(0).ok()?;
    if !ask.allows() || plan.codings().iter().any(|coding| coding.token() == better.token()) {
        return None;
    }
    let mut plain = response.clone();
    plain.fields.remove_known(Known::ContentEncoding);
    let verdict = crate::policy::decide(offer, &plain, load, compression, || true);
    (!matches!(verdict.decision, crate::Decision::Pass(_))).then_some(plan)
}

/// The members of Content-Encoding that a message's fields name, without `identity`: those with known codings.
struct Members {
    codings: [Option<Coding>; MAX_MEMBERS],
    count: usize,
}

impl Members {
    fn read(fields: &Fields) -> Result<Members, Reason> {
        let mut members = Members { codings: [None; MAX_MEMBERS], count: 0 };
        for name in codings(fields) {
            let slot = members.codings.get_mut(members.count).ok_or(Reason::TooManyCodings)?;
            *slot = Coding::ordinary().find(|coding| coding.is_named(name));
            members.count += 1;
        }
        if members.count == 0 { Err(Reason::NotCoded) } else { Ok(members) }
    }

    fn list(&self) -> &[Option<Coding>] {
        &self.codings[..self.count]
    }

    /// Undoes all but the first so many.
    fn undo(&self, keep: usize) -> Result<Plan, Reason> {
        let last = keep.checked_sub(1).and_then(|at| *self.list().get(at)?);
        let kept = last.unwrap_or(Coding::Identity);
        let mut plan = Plan { codings: [Coding::Identity; MAX_CODINGS], count: 0, keep, kept };
        for coding in self.list().iter().skip(keep).rev() {
            *plan.codings.get_mut(plan.count).ok_or(Reason::TooManyCodings)? = coding.ok_or(Reason::UnknownCoding)?;
            plan.count += 1;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests;
