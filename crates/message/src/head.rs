//! Requests' and responses' heads.

use crate::fields::Fields;
use crate::name::Known;
use std::ops::Range;

/// Protocol version that a message came with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2
    Http2,
}

impl Version {
    /// Name of the version in logs: `HTTP/1.1`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        }
    }
}

/// Length of a body, as far as its head gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BodyLength {
    /// There is no body, and none may be sent (a request without one; 1xx, 204, 304; a response to HEAD).
    #[default]
    None,
    /// A length of so many bytes.
    Exact(u64),
    /// No length is known, and its framing marks the end: chunks, or DATA frames.
    Framed,
    /// No length is known, and the end of the connection ends it. Only a response's body can (RFC 9112 section 6.3).
    UntilClose,
}

/// A request's head.
#[derive(Clone, Default, Debug)]
pub struct Request {
    /// Its fields.
    pub fields: Fields,
    /// The version it came with.
    pub version: Version,
    /// The body that follows.
    pub body: BodyLength,
    /// Its head was unsure of the body's end: no other message may follow on its connection (RFC 9112 section 6.1).
    pub must_close: bool,
    /// Whether the request is meant for a proxy, and its fields for proxies are for this one (RFC 9110 section 11.7).
    pub to_proxy: bool,
    method: Range<usize>,
    target: Range<usize>,
}

impl Request {
    /// Empties it, keeps the memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        (self.version, self.body) = (Version::Http11, BodyLength::None);
        (self.must_close, self.to_proxy) = (false, false);
        (self.method, self.target) = (0..0, 0..0);
    }

    /// Sets the places of the method and the target in the loaded buffer.
    pub fn place_line(&mut self, method: Range<usize>, target: Range<usize>) {
        (self.method, self.target) = (method, target);
    }

    /// Whether no head was read.
    pub fn is_empty(&self) -> bool {
        self.method.is_empty()
    }

    /// The method, as sent (methods are case-sensitive).
    pub fn method(&self) -> &[u8] {
        &self.fields.bytes()[self.method.clone()]
    }

    /// The target of the first line: origin form, absolute form, authority form or `*` (RFC 9112 section 3.2).
    pub fn target(&self) -> &[u8] {
        &self.fields.bytes()[self.target.clone()]
    }

    /// The path of the target, without its query: `/` and the rest, `*` for the asterisk form, empty for the authority form.
    pub fn path(&self) -> &[u8] {
        let whole = self.path_and_query();
        &whole[..memchr::memchr(b'?', whole).unwrap_or(whole.len())]
    }

    /// The query, without its `?`; `None` when there is no `?`.
    pub fn query(&self) -> Option<&[u8]> {
        let whole = self.path_and_query();
        memchr::memchr(b'?', whole).map(|i| &whole[i + 1..])
    }

    /// The target without scheme and authority.
    pub fn path_and_query(&self) -> &[u8] {
        let target = self.target();
        match target.first() {
            Some(b'/' | b'*') => target,
            _ => match target.windows(3).position(|w| w == b"://") {
                Some(i) => {
                    let rest = &target[i + 3..];
                    let at = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
                    if rest.get(at) == Some(&b'/') || rest.get(at) == Some(&b'?') { &rest[at..] } else { b"/" }
                }
                None => b"",
            },
        }
    }

    /// The scheme of an absolute target, in any case of letters.
    pub fn scheme(&self) -> Option<&[u8]> {
        let target = self.target();
        // Nearly all targets have none, and their first byte shows it.
        target.first().filter(|first| first.is_ascii_alphabetic())?;
        target.windows(3).position(|w| w == b"://").map(|end| &target[..end])
    }

    /// The authority that is asked for: that of an absolute target, or the Host field.
    pub fn authority(&self) -> Option<&[u8]> {
        let Some(scheme) = self.scheme() else { return self.fields.first(Known::Host) };
        let rest = &self.target()[scheme.len() + 3..];
        Some(&rest[..memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len())])
    }

    /// The credentials that it has for us: Authorization, or of a request that is meant for a proxy Proxy-Authorization.
    pub fn credentials(&self) -> Option<&[u8]> {
        if self.to_proxy { self.fields.get(b"Proxy-Authorization") } else { self.fields.first(Known::Authorization) }
    }

    /// Removes the blanks round the target; returns whether there were any.
    pub fn trim_target(&mut self) -> bool {
        let target = self.target();
        let (rest, kept) = (target.trim_ascii_start().len(), target.trim_ascii().len());
        let start = self.target.end - rest;
        let trimmed = start..start + kept;
        std::mem::replace(&mut self.target, trimmed.clone()) != trimmed
    }

    /// Puts another method in the first line.
    pub fn set_method(&mut self, method: &[u8]) {
        self.method = self.fields.append(method);
    }

    /// Puts another target in the first line.
    pub fn set_target(&mut self, target: &[u8]) {
        self.target = self.fields.append(target);
    }

    /// Whether its method is safe: it only asks (RFC 9110 section 9.2.1).
    pub fn is_safe(&self) -> bool {
        matches!(self.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
    }

    /// Whether repeating the request does no more than sending it once (RFC 9110 section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(self.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
    }
}

/// A response's head.
#[derive(Clone, Default, Debug)]
pub struct Response {
    /// Its fields.
    pub fields: Fields,
    /// The version it came with.
    pub version: Version,
    /// The body that follows.
    pub body: BodyLength,
    /// Its head was unsure of the body's end: no other message may follow on its connection (RFC 9112 section 6.1).
    pub must_close: bool,
    /// The status code, 100 to 999.
    pub status: u16,
    reason: Range<usize>,
}

impl Response {
    /// Empties it, keeps the memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        (self.version, self.body, self.must_close) = (Version::Http11, BodyLength::None, false);
        (self.status, self.reason) = (0, 0..0);
    }

    /// Becomes a copy of another response, in the memory that is there.
    pub fn copy_from(&mut self, other: &Response) {
        self.fields.copy_from(&other.fields);
        (self.version, self.body, self.must_close) = (other.version, other.body, other.must_close);
        (self.status, self.reason) = (other.status, other.reason.clone());
    }

    /// Sets the place of the reason phrase in the loaded buffer.
    pub fn place_reason(&mut self, reason: Range<usize>) {
        self.reason = reason;
    }

    /// The reason phrase; may be empty.
    pub fn reason(&self) -> &[u8] {
        &self.fields.bytes()[self.reason.clone()]
    }

    /// Puts another reason phrase in the first line.
    pub fn set_reason(&mut self, reason: &[u8]) {
        self.reason = self.fields.append(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str) -> Request {
        let mut r = Request::default();
        r.set_method(b"GET");
        r.set_target(target.as_bytes());
        r
    }

    #[test]
    fn targets_in_every_form() {
        for (target, path, query, authority) in [
            ("/a/b?c=d", "/a/b", Some("c=d"), None),
            ("/a?", "/a", Some(""), None),
            ("http://h:1/x?y", "/x", Some("y"), Some("h:1")),
            ("http://h", "/", None, Some("h")),
            ("http://h?q", "", Some("q"), Some("h")),
            ("*", "*", None, None),
            ("h:443", "", None, None),
            ("/http://x", "/http://x", None, None),
        ] {
            let r = request(target);
            assert_eq!(r.path(), path.as_bytes(), "{target}");
            assert_eq!(r.query(), query.map(str::as_bytes), "{target}");
            assert_eq!(r.authority(), authority.map(str::as_bytes), "{target}");
        }
    }

    #[test]
    fn schemes() {
        for (target, scheme) in
            [("http://h", Some("http")), ("HTTPS://h/x", Some("HTTPS")), ("/x?y=a://b", None), ("h:443", None), ("", None)]
        {
            assert_eq!(request(target).scheme(), scheme.map(str::as_bytes), "{target}");
        }
    }

    #[test]
    fn targets_lose_the_blanks_round_them() {
        for (target, trimmed) in [("/a", "/a"), ("  /a ", "/a"), ("/a b ", "/a b"), ("  ", ""), ("", "")] {
            let mut r = request(target);
            assert_eq!((r.trim_target(), r.target()), (target != trimmed, trimmed.as_bytes()));
        }
    }

    #[test]
    fn first_line_can_be_rewritten() {
        let mut r = request("/old");
        r.set_method(b"PUT");
        r.set_target(b"/new\r\n");
        assert_eq!((r.method(), r.target()), (&b"PUT"[..], &b"/new  "[..]));
        assert!(r.is_idempotent());
    }
}
