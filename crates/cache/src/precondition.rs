//! Conditional requests for a stored response (RFC 9111 section 4.3.2, RFC 9110 section 13).
//!
//! If-Match and If-Unmodified-Since are for the server of a resource, not for caches.

use super::freshness::moment;
use terse_compress::etag::{Tag, Tags};
use terse_message::{Fields, Known, Response};

/// Whether the client's copy is the stored response, which came at that time in seconds since 1970.
pub fn is_held(asked: &Fields, stored: &Fields, came: i64) -> bool {
    if asked.has(Known::IfNoneMatch) {
        let tag = stored.first(Known::Etag).and_then(Tag::parse);
        let same = |tags: &[u8]| match tags.trim_ascii() {
            b"*" => true,
            // The comparison is weak: only the text between the quotes counts.
            tags => tag.is_some_and(|tag| Tags::of(tags).any(|asked| asked.opaque == tag.opaque)),
        };
        return asked.every(Known::IfNoneMatch).any(same);
    }
    let Some(since) = moment(asked, b"If-Modified-Since", came) else { return false };
    let changed = moment(stored, b"Last-Modified", came).or_else(|| moment(stored, b"Date", came)).unwrap_or(came);
    changed <= since
}

/// Makes a 304 of the response (RFC 9110 section 15.4.5): fields that describe the body go, except those that a client
/// validates its copy by.
pub fn not_modified(response: &mut Response) {
    response.status = 304;
    response.set_reason(b"Not Modified");
    let tagged = response.fields.has(Known::Etag);
    response.fields.retain(|name, _| {
        let described = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"));
        let kept = name.eq_ignore_ascii_case(b"Content-Location") || !described;
        kept && !(tagged && name.eq_ignore_ascii_case(b"Last-Modified"))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        lines.iter().for_each(|(name, value)| fields.push(name.as_bytes(), value.as_bytes()));
        fields
    }

    #[test]
    fn tags_come_before_dates() {
        const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
        let strong = [("ETag", "\"a\""), ("Last-Modified", THEN)];
        for (stored, asked, held) in [
            (&strong[..], &[][..], false),
            (&strong, &[("If-None-Match", "\"a\"")], true),
            (&strong, &[("If-None-Match", "W/\"a\"")], true),
            (&strong, &[("If-None-Match", "\"b\", W/\"a\"")], true),
            (&strong, &[("If-None-Match", "\"b\""), ("If-None-Match", "*")], true),
            (&strong, &[("If-None-Match", "\"b\""), ("If-Modified-Since", LATER)], false),
            (&strong, &[("If-Modified-Since", THEN)], true),
            (&strong, &[("If-Modified-Since", "yesterday")], false),
            (&[("Date", LATER)], &[("If-Modified-Since", THEN)], false),
            (&[("Date", THEN)], &[("If-Modified-Since", THEN)], true),
            (&[], &[("If-Modified-Since", THEN)], false),
            (&[], &[("If-None-Match", "\"a\"")], false),
        ] {
            assert_eq!(is_held(&fields(asked), &fields(stored), i64::MAX), held, "{stored:?} {asked:?}");
        }
    }

    #[test]
    fn a_304_says_what_a_copy_is_kept_by() {
        let mut response = Response::default();
        response.status = 200;
        let lines = ["Content-Type", "ETag", "Last-Modified", "Content-Location", "Content-Length", "Vary", "X"];
        lines.iter().for_each(|name| response.fields.push(name.as_bytes(), b"x"));
        not_modified(&mut response);
        let left: Vec<_> = response.fields.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!((response.status, left.join(" ").as_str()), (304, "ETag Content-Location Vary X"));
    }
}
