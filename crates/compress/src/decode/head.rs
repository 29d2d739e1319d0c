//! Edits of heads for decoding.
//!
//! A decoded response loses the undone codings from Content-Encoding, and the fields about the coded bytes: Content-Length,
//! Accept-Ranges, Content-MD5, the digests. Its ETag becomes weak (RFC 9110 section 8.8.3): so a conforming client never
//! joins parts of it with parts of the coded one. Vary is kept right on each coded response that is decoded for some.
//!
//! Other responses concern decoded ones, too: a 304 names the tag that the client has been given, and a 206 that is still
//! coded must not offer Last-Modified as the only validator to join parts by. See [`crate::range`].

use super::policy::{Ask, Decision, Plan};
use super::reason::Reason;
use super::settings::Effective;
use crate::coding::Coding;
use crate::etag::{Tag, Tags};
use crate::head::{add_vary, drop_digests, held_tag, ours, tag_of};
use crate::policy::codings;
use crate::range::EtagMode;
use terse_message::{BodyLength, Fields, Known, Request, Response, list};

/// Asks the server for the codings of `decompression accept`, beside those that the client takes. To be called after
/// [`super::policy::ask`], and after `compression offload` has taken the field away.
pub fn widen(request: &mut Request, ask: &Ask, settings: &Effective<'_>) {
    let wanted = settings.accepted_codings();
    // A part of a coded body would be of no use, and a 304 for a coded body, which a tag of the server's names, would be
    // wrong.
    let names_servers = Tags::of(ask.if_none_match.as_deref().unwrap_or_default()).any(|tag| tag.marked().is_none());
    let can_decode = ask.allows() && !names_servers && !request.fields.has(Known::Range) && !request.fields.has(Known::Upgrade);
    if wanted.is_empty() || !can_decode || wanted.iter().all(|coding| ask.admission.admits(*coding)) {
        return;
    }
    let own = |name: &[u8]| wanted.iter().any(|coding| coding.is_named(name));
    let mut value: Vec<u8> = Vec::new();
    let mut add = |element: &[u8]| {
        if !value.is_empty() {
            value.extend_from_slice(b", ");
        }
        value.extend_from_slice(element);
    };
    for element in request.fields.every(Known::AcceptEncoding).flat_map(list::elements) {
        if !list::parameters(element).next().is_some_and(own) {
            add(element);
        }
    }
    wanted.iter().for_each(|coding: &Coding| add(coding.token().as_bytes()));
    request.fields.set(Known::AcceptEncoding.name().as_bytes(), &value);
}

/// Edits a response's head as was decided. `mode`: the treatment of tags.
pub fn apply(response: &mut Response, ask: &Ask, decision: &Decision, mode: EtagMode) {
    match decision {
        Decision::Decode(plan) => {
            decode(&mut response.fields, *plan);
            if ask.method.reads() {
                rename(&mut response.fields, plan.kept, mode);
            }
            response.fields.remove_known(Known::AcceptRanges);
            if let BodyLength::Exact(_) = response.body {
                response.body = BodyLength::Framed;
            }
            add_vary(&mut response.fields);
        }
        Decision::Pass(reason @ (Reason::Accepted | Reason::RequestNoTransform | Reason::Partial | Reason::BufferLimit)) => {
            let joins = *reason == Reason::Partial || ask.recodes && response.status == 206;
            if joins && !has_strong_tag(&response.fields) {
                response.fields.remove(b"Last-Modified");
            }
            add_vary(&mut response.fields);
        }
        Decision::Pass(Reason::NoBody) if response.status == 304 => renew(&mut response.fields, ask, mode),
        Decision::Pass(_) | Decision::Refuse => {}
    }
}

/// Edits the head of a request whose body is decoded.
pub fn apply_request(request: &mut Request, plan: Plan) {
    decode(&mut request.fields, plan);
    if let BodyLength::Exact(_) = request.body {
        request.body = BodyLength::Framed;
    }
}

/// The edits of a decoded message of either direction.
fn decode(fields: &mut Fields, plan: Plan) {
    let kept: Vec<&[u8]> = codings(fields).take(plan.keep).collect();
    let kept = kept.join(&b", "[..]);
    fields.remove_known(Known::ContentEncoding);
    if !kept.is_empty() {
        fields.push(Known::ContentEncoding.name().as_bytes(), &kept);
    }
    fields.remove_known(Known::ContentLength);
    drop_digests(fields);
}

/// Renames the tag to that of the rest when a coding is undone. A malformed tag names nothing, and goes.
fn rename(fields: &mut Fields, kept: Coding, mode: EtagMode) {
    let name = Known::Etag.name().as_bytes();
    let places: Vec<usize> = fields.positions(name).rev().collect();
    for i in places {
        let renamed = fields.at(i).and_then(|(_, value)| Tag::parse(value)).map(|tag| ours(&tag, kept, mode));
        match renamed {
            Some(value) => fields.replace(i, &value),
            None => fields.remove_at(i),
        }
    }
}

fn has_strong_tag(fields: &Fields) -> bool {
    fields.first(Known::Etag).and_then(Tag::parse).is_some_and(|tag| !tag.weak)
}

/// A 304: the client may have stored a decoded response. Where the 200 is not known, it is taken for one that is coded: RFC 9110
/// section 15.4.5 wants its Vary.
fn renew(fields: &mut Fields, ask: &Ask, mode: EtagMode) {
    if !ask.method.reads() {
        return;
    }
    let sent = match ask.about_whole {
        Some(Decision::Decode(plan)) => Some(plan.kept.into()),
        _ => None,
    };
    let asked = ask.if_none_match.as_deref().unwrap_or_default();
    let held = tag_of(fields).and_then(|(i, value)| Some((i, held_tag(&value, asked, sent, mode, |form| ask.takes(form.coding))?)));
    if let Some((i, tag)) = held {
        fields.replace(i, &tag);
        fields.remove_known(Known::AcceptRanges);
        fields.remove_known(Known::ContentLength);
        drop_digests(fields);
    }
    let varies = ask.about_whole.is_none_or(|decision| {
        matches!(decision, Decision::Decode(_) | Decision::Pass(Reason::Accepted | Reason::RequestNoTransform))
    });
    if varies {
        add_vary(fields);
    }
}

#[cfg(test)]
mod tests;
