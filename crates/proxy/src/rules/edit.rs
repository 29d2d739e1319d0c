//! Edits of heads by scripts: the same edits as rules', checked and limited as theirs are.
//!
//! The end of a message is known from the message itself, and no script may change it.

use super::RuleSet;
use super::attempts;
use super::field::{self, is_framing};
use super::rewrite::{self, FIELD_BYTES};
use super::status;
use super::target::{self, Part};
use crate::captures;
use crate::inspection::Side;
use crate::stream::Stream;
use terse_message::name::is_token;
use terse_message::{Fields, Known};
use terse_sample::regexp::Regexp;

/// Appends a field. False when it is no valid field, determines where the message ends, or does not fit.
pub fn add_field(stream: &mut Stream, side: Side, name: &[u8], value: &[u8]) -> bool {
    put(stream, side, (name, value), Fields::push)
}

/// Puts a field in the place of all of that name.
pub fn set_field(stream: &mut Stream, side: Side, name: &[u8], value: &[u8]) -> bool {
    put(stream, side, (name, value), Fields::set)
}

/// Removes all fields of that name. False when they say where the message ends: they stay.
pub fn remove_field(stream: &mut Stream, side: Side, name: &[u8]) -> bool {
    let may = !is_framing(name);
    if may {
        fields(stream, side).remove(name);
    }
    may
}

/// Rewrites the matches of an expression in a field's values, each as a whole, or in their elements between commas. False
/// when the field determines where the message ends, or does not fit.
pub fn replace_values(stream: &mut Stream, side: Side, (name, elements): (&[u8], bool), regex: &Regexp, template: &[u8]) -> bool {
    if is_framing(name) {
        return false;
    }
    let limit = rewrite::limit(stream, set(side));
    let fits = field::rewrite_values(fields(stream, side), (name, elements), regex, template, limit);
    set(side).after_host(Known::of(name), stream);
    fits
}

/// Marks the packets to the client.
pub fn set_mark(stream: &mut Stream, mark: u32) {
    stream.facts.changes().client_packets.mark = Some(mark);
}

/// Sets the type of service of packets to the client.
pub fn set_tos(stream: &mut Stream, tos: u8) {
    stream.facts.changes().client_packets.tos = Some(tos);
}

/// Changes the class in queues: lower classes go first. It is kept within bounds.
pub fn set_priority_class(stream: &mut Stream, class: i64) {
    attempts::put_class(&mut stream.facts.changes().priority, class);
}

/// Changes the place in queues by milliseconds, within bounds.
pub fn set_priority_offset(stream: &mut Stream, offset_ms: i64) {
    attempts::put_offset(&mut stream.facts.changes().priority, offset_ms);
}

fn put(stream: &mut Stream, side: Side, (name, value): (&[u8], &[u8]), put: impl FnOnce(&mut Fields, &[u8], &[u8])) -> bool {
    let limit = rewrite::limit(stream, set(side));
    let fields = fields(stream, side);
    let may = is_field(name, value) && !is_framing(name) && rewrite::fits(fields, name.len() + value.len() + FIELD_BYTES, limit);
    if may {
        put(fields, name, value);
        set(side).after_host(Known::of(name), stream);
    }
    may
}

/// Puts another method in the first line.
pub fn set_method(stream: &mut Stream, method: &[u8]) -> bool {
    let valid = is_name(method);
    if valid && method != stream.request.method() {
        captures::keep_request_line(stream);
        stream.request.set_method(method);
    }
    valid
}

/// Puts another path in the target.
pub fn set_path(stream: &mut Stream, path: &[u8]) -> bool {
    target::put(stream, Part::Path, path)
}

/// Puts another query in the target.
pub fn set_query(stream: &mut Stream, query: &[u8]) -> bool {
    target::put(stream, Part::Query, query)
}

/// Puts another target in the first line.
pub fn set_uri(stream: &mut Stream, uri: &[u8]) -> bool {
    target::put(stream, Part::Whole, uri)
}

/// Puts another status in the first line; without a reason the usual phrase.
pub fn set_status(stream: &mut Stream, status: u16, reason: Option<&[u8]>) -> bool {
    let is_text = reason.is_none_or(|reason| reason.iter().all(|b| !b.is_ascii_control()));
    (100..=999).contains(&status) && is_text && status::apply(&mut stream.response, status, reason)
}

/// Whether the field can stand in a head: a name is a token, and a value ends no line (RFC 9110 section 5).
pub fn is_field(name: &[u8], value: &[u8]) -> bool {
    is_name(name) && !value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| is_token(*b))
}

fn fields(stream: &mut Stream, side: Side) -> &mut Fields {
    match side {
        Side::Request => &mut stream.request.fields,
        Side::Response => &mut stream.response.fields,
    }
}

const fn set(side: Side) -> RuleSet {
    match side {
        Side::Request => RuleSet::Request,
        Side::Response => RuleSet::Response,
    }
}
