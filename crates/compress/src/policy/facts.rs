//! Facts that both directions judge alike.

use super::{Decision, Load, Verdict};
use crate::agent;
use crate::coding::Coding;
use crate::reason::Reason;
use crate::settings::Effective;
use crate::sniff;
use terse_message::{Fields, Known, list};

/// Whether the User-Agent is to get plain bytes.
pub(crate) fn agent_is_broken(user_agent: &[u8], settings: &Effective<'_>) -> bool {
    agent::is_broken(user_agent) || settings.disabled_agents().iter().any(|regex| regex.is_match(user_agent))
}

/// Whether Cache-Control forbids to transform the message (RFC 9110 section 7.7).
pub(crate) fn forbids_transform(fields: &Fields) -> bool {
    has_directive(fields, b"no-transform")
}

/// Whether Cache-Control has a directive, with or without an argument.
pub(crate) fn has_directive(fields: &Fields, name: &[u8]) -> bool {
    fields.every(Known::CacheControl).flat_map(list::elements).any(|directive| {
        let end = memchr::memchr(b'=', directive).unwrap_or(directive.len());
        directive[..end].trim_ascii_end().eq_ignore_ascii_case(name)
    })
}

/// The codings that Content-Encoding names. `identity` is no coding, and an empty list names none (RFC 9110 sections 5.6.1.2
/// and 8.4.1).
pub(crate) fn codings(fields: &Fields) -> impl Iterator<Item = &[u8]> {
    fields.every(Known::ContentEncoding).flat_map(list::elements).filter(|name| !name.eq_ignore_ascii_case(b"identity"))
}

/// Whether a message's body is coded.
pub fn is_coded(fields: &Fields) -> bool {
    codings(fields).next().is_some()
}

/// Judges a Content-Type. `types` are prefixes, or suffixes of structured syntaxes (`+json`), in small letters; an empty list
/// means any.
pub(crate) fn judge_type(content_type: Option<&[u8]>, types: &[Box<[u8]>]) -> Result<(), Reason> {
    match content_type {
        Some(value) if is_grpc(value) => Err(Reason::Grpc),
        Some(value) if is_grpc_web(value) && !types.iter().any(|name| name.len() > GRPC.len() && has_prefix(value, name)) => {
            Err(Reason::Grpc)
        }
        Some(value) if types.is_empty() || types.iter().any(|name| is_of(value, name)) => Ok(()),
        Some(value) if is_compressed(value) => Err(Reason::CompressedType),
        Some(_) => Err(Reason::TypeNotListed),
        None if types.is_empty() => Ok(()),
        None => Err(Reason::MissingType),
    }
}

/// Whether a Content-Type is that of a format that is compressed by itself. It only chooses the reason: a type that is listed is taken.
fn is_compressed(content_type: &[u8]) -> bool {
    const KINDS: &[&[u8]] = &[b"image/", b"video/", b"audio/", b"font/woff"];
    const PLAIN: &[&[u8]] =
        &[b"image/svg", b"image/bmp", b"image/x-ms-bmp", b"image/x-icon", b"image/vnd.microsoft.icon", b"audio/midi", b"audio/wav"];
    const FORMATS: &[&str] = &[
        "7z-compressed",
        "bzip",
        "bzip2",
        "epub+zip",
        "font-woff",
        "font-woff2",
        "gzip",
        "java-archive",
        "pdf",
        "rar",
        "rar-compressed",
        "xz",
        "zip",
        "zip-compressed",
        "zstd",
    ];
    if KINDS.iter().any(|kind| has_prefix(content_type, kind)) {
        return !PLAIN.iter().any(|kind| has_prefix(content_type, kind));
    }
    let bare = media_type(content_type).to_ascii_lowercase();
    let Some(format) = bare.strip_prefix(b"application/") else { return false };
    let format = ["x-", "vnd."].iter().find_map(|prefix| format.strip_prefix(prefix.as_bytes())).unwrap_or(format);
    // Documents of Office are archives.
    format.starts_with(b"openxmlformats-officedocument") || FORMATS.iter().any(|known| known.as_bytes() == format)
}

/// The media type of a Content-Type, without its parameters (RFC 9110 section 8.3.1).
pub fn media_type(content_type: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    content_type[..end].trim_ascii_end()
}

/// Whether a Content-Type has that prefix, or that suffix (RFC 6838 section 4.2.8) before its parameters.
fn is_of(content_type: &[u8], name: &[u8]) -> bool {
    if name.first() != Some(&b'+') {
        return has_prefix(content_type, name);
    }
    let bare = media_type(content_type);
    bare.len() > name.len() && bare[bare.len() - name.len()..].eq_ignore_ascii_case(name)
}

/// Whether a type is gRPC's own: messages in frames, each with a coding of its own.
pub(crate) fn is_grpc(content_type: &[u8]) -> bool {
    behind_grpc(content_type).is_some_and(|rest| matches!(rest.trim_ascii_start().first(), None | Some(b'+' | b';')))
}

/// Whether a type is gRPC-Web's, whose bodies are coded as a whole where that is asked for.
fn is_grpc_web(content_type: &[u8]) -> bool {
    behind_grpc(content_type).is_some_and(|rest| has_prefix(rest, b"-web"))
}

fn behind_grpc(content_type: &[u8]) -> Option<&[u8]> {
    has_prefix(content_type, GRPC).then(|| &content_type[GRPC.len()..])
}

const GRPC: &[u8] = b"application/grpc";

/// Whether a value has that prefix, in any case.
pub(crate) fn has_prefix(value: &[u8], prefix: &[u8]) -> bool {
    value.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Judges how busy the process is.
pub(crate) fn judge_load(load: &Load, settings: &Effective<'_>) -> Result<(), Reason> {
    match settings.process().brake(load.bytes_per_second, load.idle_percent) {
        Some(reason) => Err(reason),
        None if load.memory_full => Err(Reason::BufferLimit),
        None => Ok(()),
    }
}

/// Whether first bytes are looked at: for their kind, or, where no length is known, for their number.
pub(crate) fn looks(coding: Coding, known: bool, min_bytes: u64, settings: &Effective<'_>) -> bool {
    (settings.sniff() && !coding.is_identity()) || (!known && min_bytes > 0)
}

/// Settles a verdict that asked for the first bytes. `whole`: the body's length, where all of it has come.
pub(crate) fn judge_first(verdict: &Verdict, first: &[u8], whole: Option<u64>, min_bytes: u64, sniffs: bool) -> Verdict {
    let Decision::Look(plan) = verdict.decision else { return *verdict };
    match whole {
        Some(0) => return Verdict::pass(Reason::NoBody),
        Some(bytes) if bytes < min_bytes => return Verdict::pass(Reason::TooSmall),
        _ => {}
    }
    match sniff::look(first).filter(|_| sniffs && !plan.coding.is_identity()) {
        Some(reason) => Verdict::pass(reason),
        None => Verdict { decision: Decision::Compress(plan), varies: verdict.varies },
    }
}
