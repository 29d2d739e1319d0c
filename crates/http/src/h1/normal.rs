//! Faults that HAProxy's reading takes and corrects ([`Conformance::HAProxy`](super::Conformance)).

use super::head::length;
use super::target::{split_port, without_userinfo};
use terse_message::{Fields, Known, Malformed, Request};

/// Merges several lengths that agree (RFC 9112 section 6.3 allows it).
pub(crate) fn one_length(fields: &mut Fields) -> Result<Option<u64>, Malformed> {
    let one = {
        let mut lengths = fields.every(Known::ContentLength).flat_map(|value| value.split(|&b| b == b',')).map(<[u8]>::trim_ascii);
        let Some(first) = lengths.next() else { return Ok(None) };
        let one = length(first)?;
        if lengths.any(|other| length(other) != Ok(one)) {
            return Err(Malformed::ContentLength);
        }
        one
    };
    fields.set(Known::ContentLength.name().as_bytes(), one.to_string().as_bytes());
    Ok(Some(one))
}

/// Removes the default port (RFC 3986 section 6.2.3) from Host and from a target that names a host, and writes an empty
/// path as `/`. A request without Host gets one, so that every reader finds its host in the same place.
pub(super) fn shorten(request: &mut Request) {
    let target = request.target();
    if request.method() == b"CONNECT" {
        let host = request.fields.first(Known::Host).unwrap_or(target);
        let shorter = match split_port(host) {
            Some((name, b"80" | b"443")) => name.to_vec(),
            _ => host.to_vec(),
        };
        return name_host(request, &shorter);
    }
    let Some(scheme) = memchr::memmem::find(target, b"://") else { return };
    let (scheme, rest) = target.split_at(scheme + 3);
    let (authority, path) = rest.split_at(memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len()));
    let host = without_userinfo(authority);
    let user = &authority[..authority.len() - host.len()];
    let (name, has_port) = match split_port(host) {
        Some((name, port)) if port.is_empty() || port == default_port(scheme) => (name, true),
        _ => (host, false),
    };
    let needs_path = path.is_empty() && request.method() != b"OPTIONS";
    let (changed, name) = (has_port || needs_path, name.to_vec());
    if changed {
        let shorter = [scheme, user, &name, path, if needs_path { b"/" } else { b"" }].concat();
        request.set_target(&shorter);
    }
    if changed || !request.fields.has(Known::Host) {
        name_host(request, &name);
    }
}

/// Whether HAProxy takes a target whose authority is only a port: only a default port, so that the target can be forwarded
/// without it.
pub(super) fn may_be_nobody(scheme: &[u8], authority: &[u8], port: &[u8]) -> bool {
    authority.len() == 1 + port.len() && (port.is_empty() || port == default_port(scheme))
}

fn name_host(request: &mut Request, host: &[u8]) {
    let at = request.fields.positions(b"host").next();
    match at {
        Some(at) => request.fields.replace(at, host),
        None => request.fields.push(b"Host", host),
    }
}

fn default_port(scheme: &[u8]) -> &'static [u8] {
    match scheme {
        _ if scheme.eq_ignore_ascii_case(b"http://") => b"80",
        _ if scheme.eq_ignore_ascii_case(b"https://") => b"443",
        _ => b"",
    }
}
