//! Facts that both directions judge alike.

use super::{Decision, Load, Verdict};
use crate::agent;
use crate::reason::Reason;
use crate::settings::Effective;
use crate::sniff;
use terse_message::{Fields, Known, list};

/// Whether the User-Agent is one that is sent plain bytes.
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

/// Judges a Content-Type. `types` are prefixes in small letters; none means any.
pub(crate) fn judge_type(content_type: Option<&[u8]>, types: &[Box<[u8]>]) -> Result<(), Reason> {
    match content_type {
        Some(value) if has_prefix(value, b"application/grpc") => Err(Reason::Grpc),
        Some(value) if types.is_empty() || types.iter().any(|prefix| has_prefix(value, prefix)) => Ok(()),
        Some(_) => Err(Reason::TypeNotListed),
        None if types.is_empty() => Ok(()),
        None => Err(Reason::MissingType),
    }
}

/// Whether a value begins so, in any case.
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

/// Settles a verdict that asked for the first bytes.
pub(crate) fn judge_first(verdict: &Verdict, first: &[u8], whole: bool, min_bytes: u64) -> Verdict {
    let Decision::Look(plan) = verdict.decision else { return *verdict };
    if whole && first.is_empty() {
        return Verdict::pass(Reason::NoBody);
    }
    if whole && (first.len() as u64) < min_bytes {
        return Verdict::pass(Reason::TooSmall);
    }
    match sniff::look(first) {
        Some(reason) => Verdict::pass(reason),
        None => Verdict { decision: Decision::Compress(plan), varies: verdict.varies },
    }
}
