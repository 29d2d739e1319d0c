//! Request targets and the host they name (RFC 9112 section 3.2).

use super::normal;
use super::reading::Reading;
use terse_message::{Known, Malformed, Request, Version};

/// Bytes that a target's path and query may hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Targets {
    /// The bytes that RFC 9112 section 3.2 allows: no blank, control, fragment or byte beyond ASCII.
    #[default]
    Strict,
    /// Fragments and text beyond ASCII (UTF-8) too. Blanks and controls, which end the target or the line for some reader,
    /// never. No more is taken where the target names a host, but for a fragment after it that no reader takes for another
    /// host.
    Loose,
}

/// Refuses a target that does not fit its method, and a host that is missing, repeated or contradicts the target.
pub fn check(request: &mut Request, reading: Reading) -> Result<(), Malformed> {
    // Without a way out of the loop, many bytes are checked in one step.
    let unusual = request.target().iter().fold(false, |unusual, &b| unusual | !is_usual(b));
    if unusual {
        if reading.is_haproxy() {
            request.trim_target();
        }
        let may_hold = |b: u8| is_usual(b) || reading.targets == Targets::Loose && is_loose(b);
        if !request.target().iter().all(|&b| may_hold(b)) || !is_text(request.target()) {
            return Err(Malformed::Target);
        }
    }
    let target = request.target();
    let authority = match target {
        _ if request.method() == b"CONNECT" => Some(connect_authority(target)?),
        b"*" if request.method() == b"OPTIONS" => None,
        [b'/', ..] => None,
        _ => Some(absolute_authority(target, reading)?),
    };
    let names_host = authority.is_some();
    host(request, authority, reading)?;
    if names_host && reading.is_haproxy() {
        normal::shorten(request);
    }
    Ok(())
}

fn is_usual(b: u8) -> bool {
    matches!(b, b'!'..=b'~') && b != b'#'
}

fn is_loose(b: u8) -> bool {
    b == b'#' || b > 127
}

/// Whether bytes are UTF-8 without controls: an overlong form or half a surrogate is another character for some reader, `/`
/// too.
fn is_text(target: &[u8]) -> bool {
    std::str::from_utf8(target).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// `host:port`, both needed.
fn connect_authority(target: &[u8]) -> Result<&[u8], Malformed> {
    match split_port(target) {
        Some((host, port)) if !port.is_empty() && valid_authority(target) && !host.is_empty() => Ok(target),
        _ => Err(Malformed::Target),
    }
}

/// The authority of `scheme://authority/...`.
fn absolute_authority(target: &[u8], reading: Reading) -> Result<&[u8], Malformed> {
    let at = memchr::memmem::find(target, b"://").ok_or(Malformed::Target)?;
    let scheme = &target[..at];
    if !scheme.first().is_some_and(u8::is_ascii_alphabetic)
        || !scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
    {
        return Err(Malformed::Target);
    }
    let rest = &target[at + 3..];
    let (authority, behind) = rest.split_at(memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len()));
    let host = without_userinfo(authority);
    // `http://:80/` names no host (RFC 9110 section 4.2.1).
    let names_nobody = match host {
        [b':', port @ ..] => !(reading.is_haproxy() && normal::may_be_nobody(&target[..at + 3], authority, port)),
        host => host.is_empty(),
    };
    // A fragment ends the host too (RFC 3986 section 3.2). A reader that does not know that shall find none, not another
    // one: `http://a#@b/`.
    let misleads = behind.first() == Some(&b'#') && behind.iter().any(|b| b"/?@:\\".contains(b) || *b > 127);
    if names_nobody || !valid_authority(host) || misleads || !authority.iter().all(|&b| is_usual(b)) {
        Err(Malformed::Target)
    } else {
        Ok(authority)
    }
}

fn host(request: &Request, authority: Option<&[u8]>, reading: Reading) -> Result<(), Malformed> {
    let mut hosts = request.fields.every(Known::Host);
    let Some(host) = hosts.next() else {
        // RFC 9112 section 3.2: a server must answer 400 to an HTTP/1.1 request without Host.
        let needed = request.version == Version::Http11 && !reading.is_haproxy();
        return if needed { Err(Malformed::Host) } else { Ok(()) };
    };
    // Several are refused even where they agree (RFC 9112 section 3.2).
    if hosts.next().is_some() || !(valid_authority(host) || names_nobody(host)) {
        return Err(Malformed::Host);
    }
    match authority {
        Some(authority) if !same_host(without_userinfo(authority), host, default_port(request)) => Err(Malformed::Host),
        _ => Ok(()),
    }
}

fn same_host(a: &[u8], b: &[u8], default: &[u8]) -> bool {
    let normal = |x| match split_port(x) {
        Some((host, port)) if port.is_empty() || port == default => (host, &b""[..]),
        Some((host, port)) => (host, port),
        None => (x, &b""[..]),
    };
    let ((host_a, port_a), (host_b, port_b)) = (normal(a), normal(b));
    host_a.eq_ignore_ascii_case(host_b) && port_a == port_b
}

/// The default port: the scheme's, or for CONNECT, either of the two that HTTP knows.
fn default_port(request: &Request) -> &'static [u8] {
    let target = request.target();
    match request.method() {
        b"CONNECT" if target.ends_with(b":443") => b"443",
        b"CONNECT" => b"80",
        _ if target.get(..6).is_some_and(|s| s.eq_ignore_ascii_case(b"https:")) => b"443",
        _ => b"80",
    }
}

pub(crate) fn without_userinfo(authority: &[u8]) -> &[u8] {
    memchr::memrchr(b'@', authority).map_or(authority, |at| &authority[at + 1..])
}

/// Host and port, split at the last colon after which no bracket closes.
pub(super) fn split_port(authority: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memrchr(b':', authority)?;
    let port = &authority[at + 1..];
    port.iter().all(u8::is_ascii_digit).then_some((&authority[..at], port))
}

/// Whether this is a `host[:port]` with no byte that could mean something else to the next reader (RFC 3986 section 3.2).
fn valid_authority(authority: &[u8]) -> bool {
    let (host, port) = match authority {
        [b'[', ..] => match memchr::memchr(b']', authority) {
            Some(end) => {
                let inside = &authority[1..end];
                if inside.is_empty() || !inside.iter().all(|b| b.is_ascii_hexdigit() || b":.vV".contains(b)) {
                    return false;
                }
                (&b"x"[..], &authority[end + 1..])
            }
            None => return false,
        },
        _ => match memchr::memchr(b':', authority) {
            Some(at) => (&authority[..at], &authority[at..]),
            None => (authority, &b""[..]),
        },
    };
    let port_is_valid = match port {
        [] | [b':'] => true,
        [b':', digits @ ..] => is_port(digits),
        _ => false,
    };
    port_is_valid && host.iter().all(|&b| HOST_BYTES[usize::from(b)])
}

/// Whether a Host names no host and has a port that begins as a number and continues as a name, `:8443example.org`. Rules
/// of HAProxy's users check such fields, and no reader can find another host in one.
fn names_nobody(host: &[u8]) -> bool {
    let Some(port) = host.strip_prefix(b":") else { return false };
    port.first().is_some_and(u8::is_ascii_digit) && port.iter().all(|&b| HOST_BYTES[usize::from(b)])
}

fn is_port(digits: &[u8]) -> bool {
    let number = digits.iter().fold(0u32, |number, &b| number.saturating_mul(10).saturating_add(u32::from(b.wrapping_sub(b'0'))));
    digits.iter().all(u8::is_ascii_digit) && number <= u32::from(u16::MAX)
}

/// Bytes that the name of a host may hold (RFC 3986 section 3.2.2, `reg-name`).
static HOST_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut b = 0;
    while b < 256 {
        bytes[b] = (b as u8).is_ascii_alphanumeric();
        b += 1;
    }
    let marks = b"-._~!$&'()*+,;=%";
    let mut i = 0;
    while i < marks.len() {
        bytes[marks[i] as usize] = true;
        i += 1;
    }
    bytes
};
