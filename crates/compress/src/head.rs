//! What compression does to heads.
//!
//! A compressed response (RFC 9110 sections 8.4 and 8.8.3, 12.5.5, 14.3; RFC 9530): Content-Encoding is added, Vary is kept right, the
//! ETag becomes weak, and what speaks of the plain bytes goes: Content-Length, Accept-Ranges, Content-MD5, and the digests, of the
//! representation as well as of the content.
//!
//! Others speak of compressed ones too. A 304 renews what a client has stored: it names the tag that the client has been given, and
//! brings neither a Vary without Accept-Encoding nor a digest of the plain bytes (RFC 9111 sections 3.2 and 4.3.4). A 206 of a
//! resource that is compressed for some must not offer Last-Modified as the only thing to join parts by: see [`crate::range`].
//!
//! The answer to HEAD keeps its length and its tag, as HAProxy's does.

use crate::coding::Coding;
use crate::etag::{Tag, Tags};
use crate::policy::{Decision, Offer, Plan, Verdict, judge_resource};
use crate::range::EtagMode;
use crate::reason::Reason;
use crate::settings::Effective;
use terse_message::{BodyLength, Fields, Known, Request, Response, list};

/// Takes Accept-Encoding from a request that goes to the server, when `compression offload` says so and the client takes one of our
/// codings. To be called after [`crate::policy::offer`].
pub fn offload(request: &mut Request, offer: &Offer, settings: &Effective<'_>) {
    if settings.offload() && offer.coded().is_some() {
        request.fields.remove_known(Known::AcceptEncoding);
    }
}

/// Edits a response's head as the verdict demands: the fields of a compressed response, Vary of one that is not, and what 304 and 206
/// say about responses that were compressed. A verdict that still wants to look at bytes edits nothing.
pub fn apply(response: &mut Response, offer: &Offer, verdict: &Verdict, settings: &Effective<'_>) {
    match verdict.decision {
        Decision::Look(_) => return,
        Decision::Compress(plan) => compress(response, plan, settings),
        Decision::Pass(_) if !offer.may_hold_ours => {}
        Decision::Pass(_) => match response.status {
            304 => renew(&mut response.fields, offer, settings),
            206 => part(response, settings),
            _ => {}
        },
    }
    if verdict.varies && settings.vary() {
        add_vary(&mut response.fields);
    }
}

/// Edits the head of a request whose body is compressed.
pub fn apply_request(request: &mut Request, plan: Plan) {
    request.body = BodyLength::Unknown;
    code(&mut request.fields, plan.coding);
}

/// Takes from the trailers of a compressed message what no longer holds of it.
pub fn apply_trailers(trailers: &mut Fields) {
    drop_digests(trailers);
}

fn compress(response: &mut Response, plan: Plan, settings: &Effective<'_>) {
    response.body = BodyLength::Unknown;
    let fields = &mut response.fields;
    code(fields, plan.coding);
    if plan.coding.is_identity() {
        return;
    }
    fields.remove_known(Known::AcceptRanges);
    let Some((i, value)) = tag_of(fields) else { return };
    if let Some(tag) = Tag::parse(&value) {
        fields.replace(i, &ours(&tag, plan.coding, settings.etag()));
    }
}

/// What holds for a coded message of either direction.
fn code(fields: &mut Fields, coding: Coding) {
    fields.remove_known(Known::ContentLength);
    if !coding.is_identity() {
        fields.push(Known::ContentEncoding.name().as_bytes(), coding.token().as_bytes());
        drop_digests(fields);
    }
}

/// Digests of the plain bytes: RFC 1864, RFC 3230, RFC 9530.
pub(crate) fn drop_digests(fields: &mut Fields) {
    for name in [Known::ContentMd5, Known::ContentDigest, Known::ReprDigest] {
        fields.remove_known(name);
    }
    fields.remove(b"Digest");
}

/// The tag of the compressed form.
fn ours(tag: &Tag<'_>, coding: Coding, mode: EtagMode) -> Vec<u8> {
    match mode {
        EtagMode::Suffix => tag.with_coding(coding),
        EtagMode::Weaken => {
            let mut out = Vec::with_capacity(tag.opaque.len() + 4);
            Tag { weak: true, ..*tag }.write(&mut out);
            out
        }
    }
}

/// The place and a copy of the ETag.
pub(crate) fn tag_of(fields: &Fields) -> Option<(usize, Vec<u8>)> {
    let i = fields.positions(Known::Etag.name().as_bytes()).next()?;
    fields.at(i).map(|(_, value)| (i, value.to_vec()))
}

/// A 304: the client may have stored one of ours.
fn renew(fields: &mut Fields, offer: &Offer, settings: &Effective<'_>) {
    drop_digests(fields);
    let held = tag_of(fields).and_then(|(i, value)| Some((i, held_tag(&value, offer, settings.etag())?)));
    let holds_ours = held.is_some();
    if let Some((i, tag)) = held {
        fields.replace(i, &tag);
        fields.remove_known(Known::AcceptRanges);
    }
    if settings.vary() && (holds_ours || fields.has(Known::Vary)) {
        add_vary(fields);
    }
}

/// The tag of ours that the client asked about, when the server's tag says that it is the one.
fn held_tag(value: &[u8], offer: &Offer, mode: EtagMode) -> Option<Vec<u8>> {
    let tag = Tag::parse(value)?;
    let asked = || Tags::of(offer.if_none_match.as_deref().unwrap_or_default());
    let coding = offer.coded();
    match mode {
        EtagMode::Weaken => {
            let weak = Tag { weak: true, ..tag };
            let ours_alone = !tag.weak && asked().any(|t| t == weak) && !asked().any(|t| t == tag);
            ours_alone.then(|| ours(&tag, Coding::Identity, mode))
        }
        EtagMode::Suffix => {
            let same = |t: Tag<'_>| t.coding().is_some_and(|(before, c)| before == tag.opaque && coding == Some(c));
            coding.filter(|_| asked().any(same)).map(|coding| ours(&tag, coding, mode))
        }
    }
}

/// A 206: without a strong tag, its Last-Modified would be what it is joined by.
fn part(response: &mut Response, settings: &Effective<'_>) {
    let never_ours = matches!(
        judge_resource(response, settings),
        Err(Reason::AlreadyCoded | Reason::NoTransform | Reason::TypeNotListed | Reason::Grpc)
    );
    let has_strong = response.fields.first(Known::Etag).and_then(Tag::parse).is_some_and(|tag| !tag.weak);
    if !never_ours && !has_strong {
        response.fields.remove(b"Last-Modified");
    }
}

/// Adds Accept-Encoding to Vary, to the last of its fields, unless it or `*` is there.
pub(crate) fn add_vary(fields: &mut Fields) {
    let named = |element: &[u8]| element == b"*" || element.eq_ignore_ascii_case(b"Accept-Encoding");
    if fields.every(Known::Vary).flat_map(list::elements).any(named) {
        return;
    }
    let name = Known::Vary.name().as_bytes();
    let last = fields.positions(name).next_back().and_then(|i| Some((i, fields.at(i)?.1.to_vec())));
    match last {
        None => fields.push(name, b"Accept-Encoding"),
        Some((i, value)) if value.trim_ascii().is_empty() => fields.replace(i, b"Accept-Encoding"),
        Some((i, mut value)) => {
            value.extend_from_slice(b",Accept-Encoding");
            fields.replace(i, &value);
        }
    }
}

#[cfg(test)]
mod tests;
