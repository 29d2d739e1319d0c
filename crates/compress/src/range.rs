//! Preconditions and ranges: what of them may go to the server.
//!
//! The server knows one representation, ours are more: the same resource plain, and in each coding. What a client says about a
//! representation that it holds (RFC 9110 sections 13 and 14) may be about one of ours, and the server would take it for its own. Two
//! harms could come of it: bytes of two representations joined in one file, and a 304 for something that the client cannot use.
//!
//! What a client can hold of ours: the tag `W/"x"` where the server's is `"x"` or `W/"x"` (or `W/"x;terse=gzip"`, with
//! `compression etag suffix`), the server's Last-Modified, no Accept-Ranges, no length. Never a strong tag. So:
//!
//! **Range with If-Range** (13.1.5, 14.2). A strong tag names a representation of the server's: it goes on, foreign suffixes such as
//! `"x-gzip"` as they are. A weak tag never matches: the range goes, as it would at a server that compares as the RFC demands (some
//! compare the text). A date is shared by all representations, so that it is no strong validator of any (8.8.2.2): the range goes.
//! What is no tag and no date: the same.
//!
//! **Range with If-Unmodified-Since** and no strong If-Match: that date again; the range goes.
//!
//! **Range alone.** A conforming client joins parts under one strong validator only (15.3.7.3); a part of a compressible resource
//! that has no strong tag therefore loses its Last-Modified ([`crate::head`]). Simple clients just go on at the byte where they were
//! cut off: `bytes=N-`. From one that is sent compressed bodies that range goes. Other forms stay: whoever was sent a compressed body
//! has no length to compute them from, browsers ask for parts under `Accept-Encoding: identity`, and random access into large files
//! must work.
//!
//! A dropped range brings the whole body, which a server may always send (14.2).
//!
//! **If-None-Match** (13.1.2). `W/"x"` matches the server's `"x"`, and the 304 is right for whoever takes the representation that it
//! holds. It may be in any of our codings, so from a client that does not take them all (a cache, asking on behalf of somebody else,
//! RFC 9111 section 4.1) weak tags go, and with the last of them If-Modified-Since, which was void beside them. With
//! `compression etag suffix` a tag tells its coding: it is stripped to `W/"x"` if that coding would be chosen now, and goes on as it
//! is, unknown to the server, if not; weak tags without our mark are the server's own and stay.
//!
//! **If-Match** (13.1.1) stays as it is. It compares strongly: a weak tag of ours fails with 412, which loses no update.
//! **If-Modified-Since** alone stays: a cache that asks about responses stored for other requests names their tags.
//!
//! Methods other than GET and HEAD are left alone: there these fields guard a change of the resource.

use crate::etag::Tags;
use crate::policy::{Method, Offer};
use crate::settings::Effective;
use terse_message::{Fields, Known, Request};

/// What becomes of the ETag of a compressed response.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EtagMode {
    /// It becomes weak, as with HAProxy and nginx.
    #[default]
    Weaken,
    /// It becomes weak and gets a suffix that names the coding.
    Suffix,
}

/// Edits the preconditions of a request that goes to the server. To be called after [`crate::policy::offer`], which keeps what the
/// client sent. Says whether anything was edited.
pub fn guard(request: &mut Request, offer: &Offer, settings: &Effective<'_>) -> bool {
    if !offer.may_hold_ours {
        return false;
    }
    let fields = &mut request.fields;
    match offer.method {
        Method::Get => guard_validators(fields, offer, settings) | guard_range(fields, offer),
        Method::Head => guard_validators(fields, offer, settings),
        Method::Connect | Method::Other => false,
    }
}

fn guard_range(fields: &mut Fields, offer: &Offer) -> bool {
    if !may_join(fields, offer.coded().is_some()) {
        return false;
    }
    fields.remove_known(Known::Range);
    fields.remove_known(Known::IfRange);
    true
}

/// Whether a request asks for a part that its client could join with one of ours; `sent_ours`: it is sent some.
pub(crate) fn may_join(fields: &Fields, sent_ours: bool) -> bool {
    if !fields.has(Known::Range) {
        return false;
    }
    let mut conditions = fields.every(Known::IfRange);
    if let Some(condition) = conditions.next() {
        return conditions.next().is_some() || !is_strong(condition);
    }
    let strong_match = fields.every(Known::IfMatch).any(is_strong);
    if !strong_match && fields.get(b"If-Unmodified-Since").is_some() {
        return true;
    }
    !strong_match && sent_ours && fields.every(Known::Range).any(is_resumption)
}

/// Whether a list begins with tags and all of them are strong.
fn is_strong(value: &[u8]) -> bool {
    let mut tags = Tags::of(value);
    let mut count = 0;
    tags.by_ref().inspect(|_| count += 1).all(|tag| !tag.weak) && count > 0 && tags.is_sound()
}

/// Whether a range is the one of a cut download: `bytes=N-` with N above 0.
fn is_resumption(value: &[u8]) -> bool {
    let Some((unit, set)) = value.iter().position(|&b| b == b'=').map(|at| (&value[..at], &value[at + 1..])) else {
        return false;
    };
    let Some(first) = set.trim_ascii().strip_suffix(b"-") else { return false };
    unit.trim_ascii().eq_ignore_ascii_case(b"bytes") && first.iter().all(u8::is_ascii_digit) && first.iter().any(|&b| b != b'0')
}

fn guard_validators(fields: &mut Fields, offer: &Offer, settings: &Effective<'_>) -> bool {
    let Some(sent) = &offer.if_none_match else { return false };
    let mut tags = Tags::of(sent);
    let mut kept = Vec::with_capacity(sent.len());
    let (mut edited, mut any) = (false, false);
    for tag in tags.by_ref() {
        any = true;
        match settings.etag() {
            EtagMode::Weaken if tag.weak && !offer.takes_all => {
                edited = true;
                continue;
            }
            EtagMode::Weaken => push(&mut kept, |out| tag.write(out)),
            EtagMode::Suffix => match tag.coding() {
                Some((before, coding)) if offer.coded() == Some(coding) => {
                    edited = true;
                    push(&mut kept, |out| crate::etag::Tag { weak: true, opaque: before }.write(out));
                }
                _ => push(&mut kept, |out| tag.write(out)),
            },
        }
    }
    // `*` names no representation. Of another list that cannot be read, what can be read is not enough to let it pass.
    let unreadable = !tags.is_sound() && any && settings.etag() == EtagMode::Weaken && !offer.takes_all;
    if !edited && !unreadable {
        return false;
    }
    if kept.is_empty() || unreadable {
        fields.remove_known(Known::IfNoneMatch);
        fields.remove(b"If-Modified-Since");
    } else if tags.is_sound() {
        fields.set(Known::IfNoneMatch.name().as_bytes(), &kept);
    }
    true
}

fn push(list: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    if !list.is_empty() {
        list.extend_from_slice(b", ");
    }
    write(list);
}

#[cfg(test)]
mod tests;
