//! Answers that are learned from: public files that last, and whose names change with their releases.
//!
//! A response's head decides, beside what its request said of its client.

use super::learning::LEAST_BYTES;
use crate::policy::{forbids_transform, has_directive, has_prefix, is_coded, media_type};
use std::hash::{DefaultHasher, Hash as _, Hasher};
use terse_dictionary::MOST_BYTES;
use terse_message::{BodyLength, Fields, Known, Response, date, list};

/// For how many seconds an answer must be fresh.
const LEAST_FRESH_S: u64 = 86_400;

/// Whether a response to GET is a file that any client may have, and will have for long, as far as its head says. `is_personal`: the request
/// said whose it is. `now`: seconds since 1970.
pub fn is_file(response: &Response, bytes: Option<u64>, is_personal: bool, now: i64) -> bool {
    let fields = &response.fields;
    let content_type = fields.first(Known::ContentType).unwrap_or_default();
    let is_ended = match response.body {
        BodyLength::Exact(_) | BodyLength::Framed => true,
        // One that ends with its connection may have been cut.
        BodyLength::UntilClose | BodyLength::None => false,
    };
    response.status == 200
        && is_ended
        && bytes.is_none_or(|bytes| (LEAST_BYTES..=MOST_BYTES).contains(&bytes))
        && is_static(content_type)
        && (is_shared(fields, content_type) || !is_personal && !is_json(content_type))
        && !is_coded(fields)
        && !fields.has(Known::ContentRange)
        && !fields.has(Known::SetCookie)
        && fields.get(b"Use-As-Dictionary").is_none()
        && !UNSHARED.iter().any(|name| has_directive(fields, name))
        && !forbids_transform(fields)
        && varies_little(fields)
        && (has_directive(fields, b"immutable") || fresh_s(fields, now).is_some_and(|fresh| fresh >= LEAST_FRESH_S))
}

/// Directives of answers that are one client's, or that clients must not keep.
const UNSHARED: [&[u8]; 3] = [b"private", b"no-cache", b"no-store"];

/// Whether an answer is everybody's, whatever its request said of its client: it says so (RFC 9111 section 3.5), or it is a part of pages
/// that never changes.
fn is_shared(fields: &Fields, content_type: &[u8]) -> bool {
    has_directive(fields, b"public")
        || has_directive(fields, b"s-maxage")
        || has_directive(fields, b"immutable") && !is_json(content_type)
}

/// Whether a type is JSON, which may be anybody's data.
fn is_json(content_type: &[u8]) -> bool {
    let bare = media_type(content_type);
    let ends = |end: &[u8]| bare.len() >= end.len() && bare[bare.len() - end.len()..].eq_ignore_ascii_case(end);
    ends(b"/json") || ends(b"+json")
}

/// Whether a type is one of files that have releases: a script, a style, WebAssembly, JSON.
fn is_static(content_type: &[u8]) -> bool {
    const SCRIPTS: [&str; 5] = ["javascript", "x-javascript", "ecmascript", "x-ecmascript", "jsx"];
    let bare = media_type(content_type).to_ascii_lowercase();
    let is = |kind: &str, of: &str| bare.strip_prefix(kind.as_bytes()).is_some_and(|name| name == of.as_bytes());
    SCRIPTS.iter().any(|name| is("text/", name) || is("application/", name))
        || is("text/", "css")
        || ["wasm", "json"].iter().any(|name| is("application/", name))
        || has_prefix(&bare, b"application/") && bare.ends_with(b"+json")
}

/// Whether the answer is the same for all clients, but for its coding and the permission to read it.
fn varies_little(fields: &Fields) -> bool {
    let may = [Known::AcceptEncoding.name(), "Origin", Known::AvailableDictionary.name()];
    fields.values(b"vary").flat_map(list::elements).all(|name| may.iter().any(|may| name.eq_ignore_ascii_case(may.as_bytes())))
}

/// For how many seconds a client may take it from its cache, if the head says so.
fn fresh_s(fields: &Fields, now: i64) -> Option<u64> {
    // A number that is too large is very large (RFC 9111 section 1.2.2).
    let digits = |value: &[u8]| {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        is_number.then(|| std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(u64::MAX))
    };
    let mut ages = fields.every(Known::CacheControl).flat_map(list::elements).filter_map(|directive| {
        let at = memchr::memchr(b'=', directive)?;
        directive[..at].trim_ascii_end().eq_ignore_ascii_case(b"max-age").then(|| directive[at + 1..].trim_ascii_start())
    });
    let lifetime = match (ages.next(), ages.next()) {
        (Some(value), None) => digits(value)?,
        (Some(_), Some(_)) => return None,
        (None, _) => {
            let sent = fields.get(b"Date").and_then(|date| date::parse(date, now)).unwrap_or(now);
            u64::try_from(date::parse(fields.get(b"Expires")?, now)?.checked_sub(sent)?).ok()?
        }
    };
    match fields.get(b"Age") {
        None => Some(lifetime),
        Some(age) => lifetime.checked_sub(digits(age)?),
    }
}

/// What a head says of its body: two answers with the same mark have the same one, as far as their server keeps to its validators. `path`
/// is without its query, which changes more often than files do. None without a validator.
pub fn mark(path: &[u8], response: &Response, bytes: Option<u64>) -> Option<u64> {
    let (tag, modified) = (response.fields.first(Known::Etag), response.fields.get(b"Last-Modified"));
    if tag.is_none() && modified.is_none() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (path, tag, modified, bytes).hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::response;

    const FILE: &str = "200\nContent-Type: text/javascript\nContent-Length: 20000\n";
    const LASTING: &str = "Cache-Control: public, max-age=86400\n";
    const NOW: i64 = 784_111_777;

    fn takes(head: &str) -> bool {
        takes_of(head, false)
    }

    fn takes_of(head: &str, is_personal: bool) -> bool {
        let response = response(head);
        let bytes = if let BodyLength::Exact(bytes) = response.body { Some(bytes) } else { None };
        is_file(&response, bytes, is_personal, NOW)
    }

    #[test]
    fn what_a_known_client_gets_must_be_everybodys() {
        for (line, of_anyone, of_one) in [
            ("max-age=86400", true, false),
            ("max-age=86400, public", true, true),
            ("max-age=86400, s-maxage=5", true, true),
            ("immutable", true, true),
        ] {
            let head = format!("{FILE}Cache-Control: {line}\n");
            assert_eq!((takes_of(&head, false), takes_of(&head, true)), (of_anyone, of_one), "{line}");
            let head = format!("200\nContent-Type: application/Json\nCache-Control: {line}\n");
            let is_public = line.contains("public") || line.contains("s-maxage");
            assert_eq!((takes_of(&head, false), takes_of(&head, true)), (is_public, is_public), "JSON {line}");
        }
        let dated = format!("{FILE}Expires: Mon, 07 Nov 1994 08:49:37 GMT\n");
        assert!(takes_of(&dated, false) && !takes_of(&dated, true));
    }

    #[test]
    fn lasting_public_files_are_learned() {
        for lines in [
            LASTING,
            "Cache-Control: immutable\n",
            "Cache-Control: max-age=86400\nVary: Accept-Encoding, origin\n",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\nExpires: Mon, 07 Nov 1994 08:49:37 GMT\n",
            "Expires: Mon, 07 Nov 1994 08:49:37 GMT\n",
            "Cache-Control: max-age=90000\nAge: 3600\n",
            "Cache-Control: max-age=99999999999999999999999\nAge: 3600\n",
            "Expires: Fri, 31 Dec 9999 23:59:59 GMT\n",
        ] {
            assert!(takes(&format!("{FILE}{lines}")), "{lines}");
        }
        for kind in
            ["application/javascript; charset=utf-8", "text/css", "application/wasm", "application/json", "application/ld+json"]
        {
            assert!(takes(&format!("200\nContent-Type: {kind}\n{LASTING}")), "{kind}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for lines in [
            "",
            "Cache-Control: max-age=86399\n",
            "Cache-Control: max-age=90000, max-age=1\n",
            "Cache-Control: max-age=90000\nAge: 3601\n",
            "Cache-Control: max-age=x\n",
            "Cache-Control: max-age=+86400\n",
            "Cache-Control: max-age=90000\nAge: 99999999999999999999999\n",
            "Cache-Control: s-maxage=90000\n",
            "Expires: 0\n",
            "Expires: Mon, 07 Nov 1994 08:49:36 GMT\n",
            "Last-Modified: Mon, 07 Nov 1970 08:49:36 GMT\n",
            "Cache-Control: immutable, private\n",
            "Cache-Control: immutable, no-cache=\"x\"\n",
            "Cache-Control: immutable\nCache-Control: No-Store\n",
            "Cache-Control: immutable, no-transform\n",
        ] {
            assert!(!takes(&format!("{FILE}{lines}")), "{lines}");
        }
        for lines in [
            "Set-Cookie: a=b\n",
            "Vary: *\n",
            "Vary: Accept-Encoding, Cookie\n",
            "Use-As-Dictionary: match=\"/x\"\n",
            "Content-Encoding: gzip\n",
            "Content-Range: bytes 0-1/2\n",
        ] {
            assert!(!takes(&format!("{FILE}{LASTING}{lines}")), "{lines}");
        }
        for head in [
            "200\nContent-Type: text/html\n",
            "200\n",
            "203\nContent-Type: text/css\n",
            "200 close\nContent-Type: text/css\n",
            "200\nContent-Type: text/css\nContent-Length: 8191\n",
            "200\nContent-Type: text/css\nContent-Length: 4194305\n",
        ] {
            assert!(!takes(&format!("{head}{LASTING}")), "{head}");
        }
    }

    #[test]
    fn a_mark_is_a_validators() {
        let of = |path: &str, lines: &str| mark(path.as_bytes(), &response(&format!("{FILE}{lines}")), Some(1));
        assert_eq!(of("/a", ""), None);
        assert_eq!(of("/a", "ETag: \"x\"\n"), of("/a", "ETag: \"x\"\n"));
        for (path, lines) in [("/b", "ETag: \"x\"\n"), ("/a", "ETag: \"y\"\n"), ("/a", "Last-Modified: x\n")] {
            assert_ne!(of(path, lines), of("/a", "ETag: \"x\"\n"), "{path} {lines}");
        }
    }
}
