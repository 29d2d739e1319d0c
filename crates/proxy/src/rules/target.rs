//! A request's first line: `set-method`, `set-path`, `set-pathq`, `set-query`, `set-uri`, `replace-path`, `replace-pathq`, `replace-uri`.
//!
//! Blanks and control characters would end the target early; they are written as `%XX` (RFC 3986 section 2.1).

use super::{Action, ActionWord, Flow, REQUEST, RuleSet, done, rewrite};
use crate::captures;
use crate::stream::Stream;
use terse_config::{Args, Fault, Scope};
use terse_message::name::is_token;
use terse_message::{Known, Request};
use terse_sample::regexp::{self, Regexp};
use terse_sample::{LogFormat, Usage};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("set-method", REQUEST, "<fmt>", "Puts another method in the first line.", |args, scope, set| {
        Ok(Box::new(SetMethod { method: LogFormat::parse(args, scope, set.have(), Usage::Http)? }))
    }),
    done("set-path", REQUEST, "<fmt>", "Puts another path in the target, and leaves the rest.", |args, scope, set| {
        set_part(args, scope, set, Part::Path)
    }),
    done("set-pathq", REQUEST, "<fmt>", "Puts another path and query in the target.", |args, scope, set| {
        set_part(args, scope, set, Part::PathAndQuery)
    }),
    done("set-query", REQUEST, "<fmt>", "Puts another query in the target.", |args, scope, set| {
        set_part(args, scope, set, Part::Query)
    }),
    done("set-uri", REQUEST, "<fmt>", "Puts another target in the first line.", |args, scope, set| {
        set_part(args, scope, set, Part::Whole)
    }),
    done("replace-path", REQUEST, "<regex> <fmt>", "Rewrites the path when it matches.", |args, scope, set| {
        replace_part(args, scope, set, Part::Path)
    }),
    done("replace-pathq", REQUEST, "<regex> <fmt>", "Rewrites path and query when they match.", |args, scope, set| {
        replace_part(args, scope, set, Part::PathAndQuery)
    }),
    done("replace-uri", REQUEST, "<regex> <fmt>", "Rewrites the target when it matches.", |args, scope, set| {
        replace_part(args, scope, set, Part::Whole)
    }),
];

/// A part of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// From the first slash after scheme and authority as far as the query.
    Path,
    /// The same with the query and its mark.
    PathAndQuery,
    /// After the question mark.
    Query,
    /// All of it.
    Whole,
}

struct SetMethod {
    method: LogFormat,
}

impl Action for SetMethod {
    fn run(&self, stream: &mut Stream) -> Flow {
        let done = rewrite::with_text(&self.method, stream, |stream, method| {
            let valid = !method.is_empty() && method.iter().all(|b| is_token(*b));
            if valid && method != stream.request.method() {
                captures::keep_request_line(stream);
                stream.request.set_method(method);
            }
            valid
        });
        rewrite::outcome(done, stream)
    }
}

struct SetPart {
    part: Part,
    value: LogFormat,
}

impl Action for SetPart {
    fn run(&self, stream: &mut Stream) -> Flow {
        let done = rewrite::with_text(&self.value, stream, |stream, value| put(stream, self.part, value));
        rewrite::outcome(done, stream)
    }
}

struct ReplacePart {
    part: Part,
    regex: Regexp,
    to: LogFormat,
}

impl Action for ReplacePart {
    fn run(&self, stream: &mut Stream) -> Flow {
        let whole = self.part.of(&stream.request);
        // The asterisk form and an authority have no path (RFC 9112 section 3.2).
        let is_there = !matches!(self.part, Part::Path | Part::PathAndQuery) || whole.starts_with(b"/");
        if !is_there || !self.regex.is_match(whole) {
            return Flow::Next;
        }
        let done = rewrite::with_text(&self.to, stream, |stream, template| {
            let mut value = Vec::new();
            if let Some(captures) = self.regex.captures(self.part.of(&stream.request)) {
                regexp::expand(template, &captures, &mut value);
            }
            put(stream, self.part, &value)
        });
        rewrite::outcome(done, stream)
    }
}

/// Puts a part into the stream's target; false when that would leave none, or would not fit.
pub(super) fn put(stream: &mut Stream, part: Part, value: &[u8]) -> bool {
    let target = with_part(stream.request.target(), part, value);
    if target.is_empty() || !rewrite::fits(&stream.request.fields, target.len(), rewrite::limit(stream, RuleSet::Request)) {
        return false;
    }
    captures::keep_request_line(stream);
    stream.request.set_target(&target);
    if part == Part::Whole {
        follow_target(&mut stream.request);
    }
    true
}

impl Part {
    /// The part of a request's target.
    pub(super) fn of(self, request: &Request) -> &[u8] {
        match self {
            Part::Path => request.path(),
            Part::PathAndQuery => request.path_and_query(),
            Part::Query => request.query().unwrap_or_default(),
            Part::Whole => request.target(),
        }
    }
}

/// A target with one part replaced.
fn with_part(target: &[u8], part: Part, value: &[u8]) -> Vec<u8> {
    let (before, path) = target.split_at(authority_end(target));
    let (path, query) = path.split_at(memchr::memchr(b'?', path).unwrap_or(path.len()));
    let mut new = Vec::with_capacity(target.len() + value.len());
    match part {
        Part::Path => {
            new.extend_from_slice(before);
            encode(value, &mut new);
            new.extend_from_slice(query);
        }
        Part::PathAndQuery => {
            new.extend_from_slice(before);
            encode(value, &mut new);
        }
        Part::Query => {
            new.extend_from_slice(before);
            new.extend_from_slice(path);
            // A mark that is there stays, also before nothing.
            if !query.is_empty() || !value.is_empty() {
                new.push(b'?');
            }
            encode(value, &mut new);
        }
        Part::Whole => encode(value, &mut new),
    }
    new
}

/// Offset of the path: after `scheme://authority`. Targets without a path (`*`, `host:443`) are all path: they are replaced.
fn authority_end(target: &[u8]) -> usize {
    match target.windows(3).position(|window| window == b"://") {
        Some(at) if !target.starts_with(b"/") => {
            let authority = at + 3;
            let rest = target.get(authority..).unwrap_or_default();
            authority + memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len())
        }
        _ => 0,
    }
}

fn encode(text: &[u8], out: &mut Vec<u8>) {
    for &b in text {
        match b {
            0..=b' ' | 0x7f => out.extend_from_slice(format!("%{b:02X}").as_bytes()),
            _ => out.push(b),
        }
    }
}

/// Sets the Host field to the authority of the target, if it names one (RFC 9112 section 3.2.2).
fn follow_target(request: &mut Request) {
    let end = authority_end(request.target());
    let Some(start) = request.target().windows(3).position(|window| window == b"://").filter(|_| end > 0) else { return };
    let authority = request.target().get(start + 3..end).unwrap_or_default();
    let host = authority.rsplit(|b| *b == b'@').next().unwrap_or_default().to_vec();
    if !host.is_empty() && request.fields.first(Known::Host) != Some(&host) {
        request.fields.set(Known::Host.name().as_bytes(), &host);
    }
}

/// Sets the target's authority to that of the Host field, if the target names one.
pub(super) fn follow_host(request: &mut Request) {
    let target = request.target();
    let end = authority_end(target);
    let Some(start) = target.windows(3).position(|window| window == b"://").filter(|_| end > 0) else { return };
    let Some(host) = request.fields.first(Known::Host) else { return };
    if target.get(start + 3..end) != Some(host) {
        let mut new = target.get(..start + 3).unwrap_or_default().to_vec();
        encode(host, &mut new);
        new.extend_from_slice(target.get(end..).unwrap_or_default());
        request.set_target(&new);
    }
}

fn set_part(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, part: Part) -> Result<Box<dyn Action>, Fault> {
    Ok(Box::new(SetPart { part, value: LogFormat::parse(args, scope, set.have(), Usage::Http)? }))
}

fn replace_part(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, part: Part) -> Result<Box<dyn Action>, Fault> {
    let regex = regexp::compile(args.need_bytes("<regex>")?, false).map_err(|reason| args.fault(reason))?;
    Ok(Box::new(ReplacePart { part, regex, to: LogFormat::parse(args, scope, set.have(), Usage::Http)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_targets_in_every_form() {
        for (target, part, value, expected) in [
            ("/a?b", Part::Path, "/x", "/x?b"),
            ("/a", Part::Path, "/x y\r\n", "/x%20y%0D%0A"),
            ("http://h:1/a?b", Part::Path, "/x", "http://h:1/x?b"),
            ("http://h", Part::Path, "/x", "http://h/x"),
            ("http://h?b", Part::Path, "/x", "http://h/x?b"),
            ("*", Part::Path, "/x", "/x"),
            ("h:443", Part::Path, "/x", "/x"),
            ("/a?b", Part::PathAndQuery, "/x", "/x"),
            ("http://h/a?b", Part::PathAndQuery, "/x?y", "http://h/x?y"),
            ("/a?b", Part::Query, "c", "/a?c"),
            ("/a?b", Part::Query, "", "/a?"),
            ("/a", Part::Query, "c", "/a?c"),
            ("/a", Part::Query, "", "/a"),
            ("/a?u=http://h/", Part::Path, "/x", "/x?u=http://h/"),
            ("/a", Part::Whole, "http://h/x", "http://h/x"),
            ("/a", Part::Whole, "", ""),
        ] {
            let new = with_part(target.as_bytes(), part, value.as_bytes());
            assert_eq!(String::from_utf8_lossy(&new), expected, "{target} {part:?} {value}");
        }
    }

    fn request(target: &str, host: &str) -> Request {
        let mut request = Request::default();
        request.set_method(b"GET");
        request.set_target(target.as_bytes());
        request.fields.push(b"Host", host.as_bytes());
        request
    }

    #[test]
    fn host_and_target_agree() {
        for (target, host, by_target, by_host) in [
            ("/a", "h", "h", "/a"),
            ("http://x/a?b", "h", "x", "http://h/a?b"),
            ("http://u@x:1", "h", "x:1", "http://h"),
            ("*", "h", "h", "*"),
        ] {
            let mut one = request(target, host);
            follow_target(&mut one);
            assert_eq!(one.fields.get(b"host"), Some(by_target.as_bytes()), "{target}");
            let mut other = request(target, host);
            follow_host(&mut other);
            assert_eq!(other.target(), by_host.as_bytes(), "{target}");
        }
    }
}
