//! Preconditions and ranges: those that may go to the server.
//!
//! The server knows one representation, ours are more: the same resource plain, and in each coding. A client's condition on a
//! representation that it holds (RFC 9110 sections 13 and 14) may be about a representation of ours, and the server would
//! take it for its own. Two harms could follow: bytes of two representations joined in one file, and a 304 for a
//! representation that the client cannot use.
//!
//! **Tags.** Each representation has a tag of its own: the server's for its own, and for a representation of ours that tag
//! with a mark which names the coding and records whether the server's was weak: `W/"x;terse=gzip"` for `"x"`
//! ([`crate::etag::Marked`]). So a mark comes off without a doubt, and the server gets its own tag, byte for byte: servers
//! that compare bytes find it.
//!
//! **If-None-Match** (13.1.2). The mark comes off where the client can use that coding. Where it cannot (a cache asks on
//! behalf of another client, RFC 9111 section 4.1), the tag goes on as it is, unknown to the server. A 304 names the client's
//! tag again ([`crate::head`]).
//!
//! **If-Match** (13.1.1), and both with methods that change the resource: the mark comes off. The client's copy was made of
//! the representation that the tag names, so no update is lost.
//!
//! **If** of WebDAV (RFC 4918 section 10.4) names tags in brackets, beside tokens of locks: there the mark comes off, too.
//!
//! **Range with a tag of ours**, in If-Range or If-Match: the client holds bytes of ours, to which no part of the server's belongs. The range
//! goes, and the whole comes, which a server may always send (14.2).
//!
//! **Range with a strong tag** in If-Range or If-Match goes on: that tag names a representation of the server's (13.1.5, 15.3.7.3).
//!
//! **Other ranges that may be joined with one of ours**: with a date, which all representations share, so that it is no
//! strong validator of any (8.8.2.2); with a weak tag; or `bytes=N-` alone, from a client that gets some of ours: simple
//! clients just go on at the byte where they were cut off. They go on, since it is not known yet whether the resource has a
//! representation of ours. If the 206 shows that there may be one, it is dropped, and the server is asked once more, for the
//! whole. Where the request cannot be sent again the range goes at once.
//!
//! **Other ranges alone** stay: a client that got a compressed body has no length to compute them from, browsers ask for
//! parts under `Accept-Encoding: identity`, and random access into large files must work. A part of a resource of which there
//! may be one of ours, without a strong tag, loses its Last-Modified ([`crate::head`]).
//!
//! **Dates** in If-Modified-Since and If-Unmodified-Since stay: a cache that asks about responses stored for other requests names tags.
//!
//! With `compression etag weaken` tags have no marks, and a weak one may name any representation. It goes on in both forms, `"x", W/"x"`;
//! in If-None-Match from a client that does not take all of our codings it goes, and with the last of them If-Modified-Since, which was
//! void beside it; and a range with it goes.

use crate::decode::Ask;
use crate::etag::{Form, Tag, Tags};
use crate::policy::{Method, Offer};
use terse_message::{BodyLength, Fields, Known, Request};

/// Treatment of the ETag of a compressed response.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EtagMode {
    /// It becomes weak and gets a mark that names the coding.
    #[default]
    Suffix,
    /// It becomes weak, as with HAProxy and nginx.
    Weaken,
}

/// Edits the preconditions of a request that goes to the server, or to a cache. To be called after [`crate::policy::offer`]
/// and [`crate::decode::policy::ask`], which keep the client's fields. Returns whether a part that comes may be joined with
/// one of ours: then the whole is to be asked for instead ([`whole`]), unless the resource is not coded or decoded for any
/// client.
pub fn guard(request: &mut Request, offer: Option<&Offer>, ask: Option<&Ask>, mode: EtagMode) -> bool {
    let offer = offer.filter(|offer| offer.may_hold_ours);
    if offer.is_none() && ask.is_none() {
        return false;
    }
    let method = Method::of(request);
    let takes =
        |form: Form| offer.is_none_or(|offer| offer.takes(form)) && ask.is_none_or(|ask| offer.is_some() || ask.takes(form.coding));
    let takes_all = offer.is_none_or(|offer| offer.takes_all);
    let fields = &mut request.fields;
    let sent_ours = offer.is_some_and(|offer| offer.coded().is_some());
    let joins = method == Method::Get && ((offer.is_some() && may_join(fields, sent_ours)) || ask.is_some_and(|ask| ask.joins));
    let holds = method == Method::Get && fields.has(Known::Range) && holds_ours(fields, mode);
    let weak = match mode {
        EtagMode::Suffix => WeakTags::Stay,
        EtagMode::Weaken => WeakTags::Doubled,
    };
    restore(fields, Known::IfMatch, weak, |_| true);
    match method {
        Method::Get | Method::Head if mode == EtagMode::Weaken && !takes_all => {
            restore(fields, Known::IfNoneMatch, WeakTags::Go, takes);
        }
        Method::Get | Method::Head => restore(fields, Known::IfNoneMatch, weak, takes),
        Method::Connect | Method::Other => restore(fields, Known::IfNoneMatch, weak, |_| true),
    }
    if method == Method::Other {
        restore_bracketed(fields);
    }
    if holds || (joins && request.body != BodyLength::None) {
        whole(request);
        return false;
    }
    joins
}

/// Makes a request for the whole of a request for a part.
pub fn whole(request: &mut Request) {
    request.fields.remove_known(Known::Range);
    request.fields.remove_known(Known::IfRange);
}

/// Whether a request asks for a part that its client could join with one of ours; `sent_ours`: it gets some.
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

/// Whether a condition of a range names a representation of ours.
fn holds_ours(fields: &Fields, mode: EtagMode) -> bool {
    let names_ours = |tag: Tag<'_>| tag.marked().is_some() || (tag.weak && mode == EtagMode::Weaken);
    fields.every(Known::IfRange).chain(fields.every(Known::IfMatch)).flat_map(Tags::of).any(names_ours)
}

/// Whether a list begins with tags and all of them are strong.
fn is_strong(value: &[u8]) -> bool {
    let mut tags = Tags::of(value);
    let mut count = 0;
    tags.by_ref().inspect(|_| count += 1).all(|tag| !tag.weak) && count > 0 && tags.is_sound()
}

/// Whether a range is that of a cut download: `bytes=N-` with N above 0.
fn is_resumption(value: &[u8]) -> bool {
    let Some((unit, set)) = value.iter().position(|&b| b == b'=').map(|at| (&value[..at], &value[at + 1..])) else {
        return false;
    };
    let Some(first) = set.trim_ascii().strip_suffix(b"-") else { return false };
    unit.trim_ascii().eq_ignore_ascii_case(b"bytes") && first.iter().all(u8::is_ascii_digit) && first.iter().any(|&b| b != b'0')
}

/// Treatment of weak tags without a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WeakTags {
    /// They are the server's own.
    Stay,
    /// They may be strong tags of the server's that were made weak: they go on in both forms, for servers that compare bytes.
    Doubled,
    /// The client may not be able to use the representation that they name.
    Go,
}

/// Makes the server's tags of ours again, in a field that lists tags; marked ones only where the client can use what they name.
fn restore(fields: &mut Fields, field: Known, weak: WeakTags, usable: impl Fn(Form) -> bool) {
    if !fields.has(field) {
        return;
    }
    let all = fields.every(field).collect::<Vec<_>>().join(&b", "[..]);
    let mut tags = Tags::of(&all);
    let mut kept: Vec<Tag<'_>> = Vec::new();
    let mut keep = |tag| {
        if !kept.contains(&tag) {
            kept.push(tag);
        }
    };
    let (mut edited, mut any) = (false, false);
    for tag in tags.by_ref() {
        any = true;
        match tag.marked().filter(|mark| usable(mark.form)) {
            Some(mark) => {
                edited = true;
                keep(mark.server);
            }
            None if !tag.weak || weak == WeakTags::Stay || tag.marked().is_some() => keep(tag),
            None => {
                edited = true;
                if weak == WeakTags::Doubled {
                    keep(tag.strong());
                    keep(tag);
                }
            }
        }
    }
    // `*` names no representation. Of another list that cannot be parsed, the readable part is not enough to let it pass.
    let unreadable = !tags.is_sound() && any && weak == WeakTags::Go;
    if unreadable || (edited && kept.is_empty()) {
        fields.remove_known(field);
        fields.remove(b"If-Modified-Since");
    } else if edited && tags.is_sound() {
        let mut value = Vec::with_capacity(all.len());
        for tag in kept {
            if !value.is_empty() {
                value.extend_from_slice(b", ");
            }
            tag.write(&mut value);
        }
        fields.set(field.name().as_bytes(), &value);
    }
}

/// Takes the marks off tags in brackets, in WebDAV's If. What stands in `<` and `>` is an address, and stays.
fn restore_bracketed(fields: &mut Fields) {
    const NAME: &[u8] = b"If";
    for i in fields.positions(NAME).collect::<Vec<_>>() {
        let Some((_, value)) = fields.at(i) else { continue };
        if let Some(value) = unmark_bracketed(value) {
            fields.replace(i, &value);
        }
    }
}

/// The value without marks; none where it has none.
fn unmark_bracketed(value: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(value.len());
    let (mut edited, mut rest) = (false, value);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        out.push(byte);
        if byte == b'<' {
            let end = memchr::memchr(b'>', rest)? + 1;
            out.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        } else if byte == b'['
            && let Some(end) = memchr::memmem::find(rest, b"\"]").map(|at| at + 1)
            && let Some(mark) = Tag::parse(&rest[..end]).and_then(|tag| tag.marked())
        {
            mark.server.write(&mut out);
            edited = true;
            rest = &rest[end..];
        }
    }
    edited.then_some(out)
}

#[cfg(test)]
mod tests;
