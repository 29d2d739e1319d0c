//! `redirect`: as an action, and as the old line.

use super::{Action, ActionWord, BOTH, Flow, RuleSet, done, rewrite};
use crate::reply::Answer;
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::{Args, Fault, Scope};
use terse_message::{Known, Request};
use terse_sample::{Condition, LogFormat, Usage};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "redirect",
    BOTH,
    "{location | prefix | scheme} <fmt> [code <status>] [drop-query] [append-slash] [keep-query] [ignore-empty] \
     [set-cookie <name>[=<value>]] [set-cookie-fmt <fmt>] [clear-cookie <name>[=]]",
    "Answers that the resource is elsewhere.",
    |args, scope, set| Ok(Box::new(parse(args, scope, set, true)?)),
)];

/// A redirect.
struct Redirect {
    to: To,
    text: LogFormat,
    status: u16,
    cookie: Option<LogFormat>,
    drop_query: bool,
    keep_query: bool,
    append_slash: bool,
    ignore_empty: bool,
    /// It is an old line, after all other rules.
    is_old: bool,
}

/// Meaning of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum To {
    /// The whole location.
    Location,
    /// The text before the request's path.
    Prefix,
    /// The scheme before the request's Host and path.
    Scheme,
}

impl Action for Redirect {
    fn run(&self, stream: &mut Stream) -> Flow {
        let location = rewrite::with_text(&self.text, stream, |stream, text| self.location(&stream.request, text));
        let Some(location) = location else { return Flow::Next };
        let mut fields = vec![(Arc::from(&b"Location"[..]), location)];
        if matches!(self.status, 302 | 303 | 307) {
            fields.push((Arc::from(&b"Cache-Control"[..]), b"no-cache".to_vec()));
        }
        if let Some(cookie) = &self.cookie {
            let mut value = Vec::new();
            cookie.write(&stream.env(), &mut value);
            fields.push((Arc::from(&b"Set-Cookie"[..]), value));
        }
        Flow::Answer(Box::new(Answer::bare(self.status, fields)))
    }

    fn is_final(&self) -> bool {
        !self.ignore_empty
    }

    fn is_last(&self) -> bool {
        self.is_old
    }
}

impl Redirect {
    /// The location; `None` when it is empty, and that is to be passed over.
    fn location(&self, request: &Request, text: &[u8]) -> Option<Vec<u8>> {
        let mut location = text.to_vec();
        if self.to == To::Location {
            if location.is_empty() && self.ignore_empty {
                return None;
            }
            if self.keep_query {
                append_query(&mut location, request.query().unwrap_or_default());
            }
            return Some(location);
        }
        if self.to == To::Scheme {
            location.extend_from_slice(b"://");
            location.extend_from_slice(request.fields.first(Known::Host).unwrap_or_default());
        }
        let path = if self.drop_query { request.path() } else { request.path_and_query() };
        // A target that is an asterisk or an authority has no path.
        location.extend_from_slice(if path.starts_with(b"/") { path } else { b"/" });
        if self.append_slash && location.last() != Some(&b'/') {
            location.push(b'/');
        }
        Some(location)
    }
}

/// Adds a query to a location that may have one already.
fn append_query(location: &mut Vec<u8>, query: &[u8]) {
    if query.is_empty() {
        return;
    }
    match memchr::memchr(b'?', location) {
        None => location.push(b'?'),
        Some(mark) if mark + 1 < location.len() => location.push(b'&'),
        Some(_) => {}
    }
    location.extend_from_slice(query);
}

/// Reads the line of old, up to its condition: its texts are no formats.
pub(super) fn parse_old(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Box<dyn Action>, Fault> {
    let mut redirect = parse(args, scope, RuleSet::Request, false)?;
    redirect.is_old = true;
    Ok(Box::new(redirect))
}

fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, formats: bool) -> Result<Redirect, Fault> {
    let first = args.position();
    let mut to = None;
    let mut redirect = Redirect {
        to: To::Location,
        text: LogFormat::default(),
        status: 302,
        cookie: None,
        drop_query: false,
        keep_query: false,
        append_slash: false,
        ignore_empty: false,
        is_old: false,
    };
    while !matches!(args.peek(), None | Some("if" | "unless")) {
        match args.take().unwrap_or_default() {
            "location" => to = Some((To::Location, text(args, scope, set, formats)?)),
            "prefix" => to = Some((To::Prefix, prefix(args, scope, set, formats)?)),
            "scheme" => to = Some((To::Scheme, text(args, scope, set, formats)?)),
            "code" => redirect.status = status(args)?,
            "set-cookie" => redirect.cookie = Some(cookie(args, b"; path=/;")?),
            "clear-cookie" => redirect.cookie = Some(cookie(args, b"; path=/; Max-Age=0;")?),
            "set-cookie-fmt" => {
                let mut compiler = terse_sample::Compiler::new(scope, set.have());
                compiler.word = args.position();
                let fmt = [args.need_bytes("<fmt>")?, b"; path=/;"].concat();
                redirect.cookie = Some(compiler.log_format(&fmt, Usage::Http)?);
            }
            "drop-query" => redirect.drop_query = true,
            "keep-query" => redirect.keep_query = true,
            "append-slash" => redirect.append_slash = true,
            "ignore-empty" => redirect.ignore_empty = true,
            other if Condition::is_meant_by(other) => {
                return Err(args.fault(format!("expects 'if' or 'unless' and a condition, not '{other}'")));
            }
            other => {
                let hint = "one of location, prefix, scheme, code, drop-query, keep-query, append-slash, ignore-empty, set-cookie, \
                            set-cookie-fmt, clear-cookie";
                return Err(args.fault(format!("unknown option '{other}' of a redirect")).hint(hint));
            }
        }
    }
    let Some((to, text)) = to else {
        return Err(Fault::new(first.saturating_sub(1), "expects 'location', 'prefix' or 'scheme' and where to redirect"));
    };
    if set != RuleSet::Request && to != To::Location {
        return Err(Fault::new(first, "responses can be redirected by 'location' only"));
    }
    Ok(Redirect { to, text, ..redirect })
}

fn text(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, formats: bool) -> Result<LogFormat, Fault> {
    match formats {
        true => LogFormat::parse(args, scope, set.have(), Usage::Http),
        false => Ok(LogFormat::text(args.need_bytes("<to>")?)),
    }
}

/// A slash alone as prefix stands for no prefix, so that a page can redirect to itself.
fn prefix(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, formats: bool) -> Result<LogFormat, Fault> {
    if args.accept("/") { Ok(LogFormat::text(b"")) } else { text(args, scope, set, formats) }
}

fn status(args: &mut Args<'_>) -> Result<u16, Fault> {
    match args.need("<status>")? {
        "301" => Ok(301),
        "302" => Ok(302),
        "303" => Ok(303),
        "307" => Ok(307),
        "308" => Ok(308),
        other => Err(args.fault(format!("unsupported HTTP code '{other}'")).hint("one of 301, 302, 303, 307, 308")),
    }
}

fn cookie(args: &mut Args<'_>, attributes: &[u8]) -> Result<LogFormat, Fault> {
    Ok(LogFormat::text(&[args.need_bytes("<name>")?, attributes].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str) -> Request {
        let mut request = Request::default();
        request.set_method(b"GET");
        request.set_target(target.as_bytes());
        request.fields.push(b"Host", b"h.example");
        request
    }

    fn location(to: To, text: &str, options: &str, target: &str) -> Option<String> {
        let redirect = Redirect {
            to,
            text: LogFormat::default(),
            status: 302,
            cookie: None,
            drop_query: options.contains("drop-query"),
            keep_query: options.contains("keep-query"),
            append_slash: options.contains("append-slash"),
            ignore_empty: options.contains("ignore-empty"),
            is_old: false,
        };
        redirect.location(&request(target), text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn locations() {
        for (to, text, options, target, expected) in [
            (To::Location, "/x", "", "/a?b", Some("/x")),
            (To::Location, "/x", "keep-query", "/a?b", Some("/x?b")),
            (To::Location, "/x?c", "keep-query", "/a?b", Some("/x?c&b")),
            (To::Location, "/x?", "keep-query", "/a?b", Some("/x?b")),
            (To::Location, "/x", "keep-query", "/a?", Some("/x")),
            (To::Location, "", "", "/a", Some("")),
            (To::Location, "", "ignore-empty", "/a", None),
            (To::Prefix, "http://o", "", "/a?b", Some("http://o/a?b")),
            (To::Prefix, "http://o", "drop-query", "/a?b", Some("http://o/a")),
            (To::Prefix, "http://o", "drop-query append-slash", "/a?b", Some("http://o/a/")),
            (To::Prefix, "", "append-slash", "/a", Some("/a/")),
            (To::Prefix, "", "append-slash", "/a/", Some("/a/")),
            (To::Prefix, "", "", "http://x/a", Some("/a")),
            (To::Prefix, "http://o", "", "x:443", Some("http://o/")),
            (To::Scheme, "https", "", "/a?b", Some("https://h.example/a?b")),
            (To::Scheme, "https", "drop-query", "/a?b", Some("https://h.example/a")),
            (To::Scheme, "https", "", "*", Some("https://h.example/")),
            (To::Prefix, "http://o", "append-slash", "*", Some("http://o/")),
            (To::Prefix, "http://o", "drop-query", "http://x?a", Some("http://o/")),
        ] {
            assert_eq!(location(to, text, options, target).as_deref(), expected, "{to:?} {text} {options} {target}");
        }
    }
}
