//! Edits of heads for compression.
//!
//! A compressed response (RFC 9110 sections 8.4 and 8.8.3, 12.5.5, 14.3; RFC 9530): Content-Encoding is added, Vary is kept
//! right, the ETag becomes weak, and fields about the plain bytes go: Content-Length, Accept-Ranges, Content-MD5, and the
//! digests, of the representation as well as of the content.
//!
//! Other responses concern compressed ones, too. A 304 renews a client's stored response: it names the tag that the client
//! has been given, and brings neither a Vary without Accept-Encoding nor a digest of the plain bytes (RFC 9111 sections 3.2
//! and 4.3.4). A 206 of a resource that is compressed for some must not offer Last-Modified as the only validator to join
//! parts by: see [`crate::range`].
//!
//! The answer to HEAD has the head of GET's. The ETag of an answer to another method stays: it names the method's result on
//! the resource, not the answer's body (section 8.8). Trailer does not name fields that go from trailers.

use crate::coding::Coding;
use crate::etag::{Form, Tag, Tags};
use crate::policy::{Decision, Offer, Plan, Verdict};
use crate::range::EtagMode;
use crate::settings::Effective;
use terse_message::{BodyLength, Fields, Known, Request, Response, list};

/// Removes Accept-Encoding from a request that goes to the server, when `compression offload` is set and the client takes one
/// of our codings. To be called after [`crate::policy::offer`].
pub fn offload(request: &mut Request, offer: &Offer, settings: &Effective<'_>) {
    if settings.offload() && offer.coded().is_some() {
        request.fields.remove_known(Known::AcceptEncoding);
    }
}

/// Edits a response's head as the verdict demands: the fields of a compressed response, Vary of an uncompressed one, and the
/// fields of 304 and 206 about responses that were compressed. A verdict that still wants to look at bytes edits nothing.
pub fn apply(response: &mut Response, offer: &Offer, verdict: &Verdict, settings: &Effective<'_>) {
    match verdict.decision {
        Decision::Look(_) => return,
        Decision::Compress(plan) => {
            response.body = BodyLength::Framed;
            compress(&mut response.fields, plan, offer, settings);
        }
        Decision::Head(plan) => compress(&mut response.fields, plan, offer, settings),
        Decision::Pass(_) if !offer.may_hold_ours || !offer.method.reads() => {}
        Decision::Pass(_) => match response.status {
            304 => renew(&mut response.fields, offer, verdict.varies, settings),
            206 if verdict.varies => part(&mut response.fields),
            _ => {}
        },
    }
    // HAProxy adds Vary to compressed responses only.
    let is_told = !settings.process().as_haproxy || !matches!(verdict.decision, Decision::Pass(_));
    if verdict.varies && settings.vary() && is_told {
        tell_choice(&mut response.fields, offer);
    }
}

/// Edits the head of a request whose body is compressed.
pub fn apply_request(request: &mut Request, plan: Plan) {
    request.body = BodyLength::Framed;
    code(&mut request.fields, plan.coding);
}

/// Removes fields from the trailers of a compressed message that no longer hold.
pub fn apply_trailers(trailers: &mut Fields) {
    drop_digests(trailers);
}

fn compress(fields: &mut Fields, plan: Plan, offer: &Offer, settings: &Effective<'_>) {
    code(fields, plan.coding);
    if plan.coding.is_identity() {
        return;
    }
    fields.remove_known(Known::AcceptRanges);
    let Some((i, value)) = tag_of(fields).filter(|_| offer.method.reads()) else { return };
    if let Some(tag) = Tag::parse(&value) {
        fields.replace(i, &ours(&tag, offer.form(plan.coding), settings.etag()));
    }
}

/// The edits of a coded message of either direction.
fn code(fields: &mut Fields, coding: Coding) {
    fields.remove_known(Known::ContentLength);
    if !coding.is_identity() {
        fields.remove_known(Known::ContentEncoding);
        fields.push(Known::ContentEncoding.name().as_bytes(), coding.token().as_bytes());
        drop_digests(fields);
    }
}

/// Digests of the plain bytes: RFC 1864, RFC 3230, RFC 9530. Nor does Trailer announce them.
pub(crate) fn drop_digests(fields: &mut Fields) {
    for name in [Known::ContentMd5, Known::ContentDigest, Known::ReprDigest] {
        fields.remove_known(name);
    }
    fields.remove(b"Digest");
    if fields.every(Known::Trailer).flat_map(list::elements).any(is_digest) {
        let kept: Vec<&[u8]> = fields.every(Known::Trailer).flat_map(list::elements).filter(|name| !is_digest(name)).collect();
        let kept = kept.join(&b", "[..]);
        fields.remove_known(Known::Trailer);
        if !kept.is_empty() {
            fields.push(Known::Trailer.name().as_bytes(), &kept);
        }
    }
}

fn is_digest(name: &[u8]) -> bool {
    [&b"Content-MD5"[..], b"Content-Digest", b"Repr-Digest", b"Digest"].iter().any(|digest| name.eq_ignore_ascii_case(digest))
}

/// The tag of a representation of ours.
pub(crate) fn ours(tag: &Tag<'_>, form: impl Into<Form>, mode: EtagMode) -> Vec<u8> {
    match mode {
        EtagMode::Suffix => tag.with_form(form),
        EtagMode::Weaken => {
            let mut out = Vec::with_capacity(tag.opaque.len() + 4);
            tag.weakened().write(&mut out);
            out
        }
    }
}

/// The place and a copy of the ETag.
pub(crate) fn tag_of(fields: &Fields) -> Option<(usize, Vec<u8>)> {
    let i = fields.positions(Known::Etag.name().as_bytes()).next()?;
    fields.at(i).map(|(_, value)| (i, value.to_vec()))
}

/// A 304: the client may have stored a representation of ours. `varies`: the 200 would have Vary.
fn renew(fields: &mut Fields, offer: &Offer, varies: bool, settings: &Effective<'_>) {
    drop_digests(fields);
    let sent = offer.coded().filter(|_| varies).map(|coding| offer.form(coding));
    let held = tag_of(fields).and_then(|(i, value)| {
        let asked = offer.if_none_match.as_deref().unwrap_or_default();
        held_tag(&value, asked, sent, settings.etag(), |form| offer.takes(form)).map(|tag| (i, tag))
    });
    let holds_ours = held.is_some();
    if let Some((i, tag)) = held {
        fields.replace(i, &tag);
        fields.remove_known(Known::AcceptRanges);
    }
    if holds_ours || sent.is_some() {
        // RFC 9110 section 8.6: it would be that of the 200.
        fields.remove_known(Known::ContentLength);
    }
    if settings.vary() && holds_ours {
        tell_choice(fields, offer);
    }
}

/// The tag of ours that a 304 is about, when the server's tag is its base: the tag that the client asked about; for a client
/// that names no tag, that of the representation that it would be `sent`.
pub(crate) fn held_tag(
    value: &[u8],
    asked: &[u8],
    sent: Option<Form>,
    mode: EtagMode,
    takes: impl Fn(Form) -> bool,
) -> Option<Vec<u8>> {
    let tag = Tag::parse(value)?;
    let server = tag.marked().map_or(tag, |mark| mark.server);
    if Tags::of(asked).next().is_none() {
        return sent.map(|form| ours(&server, form, mode));
    }
    let same = |tag: &Tag<'_>| tag.marked().is_some_and(|mark| mark.server.opaque == server.opaque && takes(mark.form));
    let preferred = |tag: &Tag<'_>| same(tag) && tag.marked().map(|mark| mark.form) == sent;
    if let Some(held) = Tags::of(asked).find(preferred).or_else(|| Tags::of(asked).find(same)) {
        let mut out = Vec::with_capacity(held.opaque.len() + 4);
        held.weakened().write(&mut out);
        return Some(out);
    }
    let has = |wanted: Tag<'_>| Tags::of(asked).any(|tag| tag == wanted);
    let weakened = mode == EtagMode::Weaken && !server.weak && has(server.weakened()) && !has(server);
    weakened.then(|| ours(&server, Coding::Identity, mode))
}

/// A 206: without a strong tag, its Last-Modified would be the validator that it is joined by.
fn part(fields: &mut Fields) {
    if fields.first(Known::Etag).and_then(Tag::parse).is_none_or(|tag| tag.weak) {
        fields.remove(b"Last-Modified");
    }
}

/// Says in Vary which fields of the request a representation was chosen by.
fn tell_choice(fields: &mut Fields, offer: &Offer) {
    add_vary(fields);
    if offer.reads_dictionaries() {
        add_to_vary(fields, Known::AvailableDictionary.name().as_bytes());
    }
}

/// Adds Accept-Encoding to Vary.
pub(crate) fn add_vary(fields: &mut Fields) {
    add_to_vary(fields, b"Accept-Encoding");
}

/// Adds a name to Vary, to the last of its fields, unless it or `*` is there.
fn add_to_vary(fields: &mut Fields, added: &[u8]) {
    let named = |element: &[u8]| element == b"*" || element.eq_ignore_ascii_case(added);
    if fields.every(Known::Vary).flat_map(list::elements).any(named) {
        return;
    }
    let name = Known::Vary.name().as_bytes();
    let last = fields.positions(name).next_back().and_then(|i| Some((i, fields.at(i)?.1.to_vec())));
    match last {
        None => fields.push(name, added),
        Some((i, value)) if value.trim_ascii().is_empty() => fields.replace(i, added),
        Some((i, mut value)) => {
            value.push(b',');
            value.extend_from_slice(added);
            fields.replace(i, &value);
        }
    }
}

#[cfg(test)]
mod tests;
