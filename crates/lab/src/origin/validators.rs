//! Static bodies with validators and ranges (RFC 9110 sections 13 and 14).

use super::answer::{Answer, Body, Framing, Pace, head};
use super::request::Request;
use bytes::Bytes;

/// A body that never changes.
#[derive(Debug)]
pub(super) struct Asset {
    kind: &'static str,
    bytes: Bytes,
    etag: String,
    /// The answer to a request without conditions.
    whole: Answer,
}

impl Asset {
    pub(super) fn new(kind: &'static str, bytes: Bytes) -> Asset {
        let etag = format!("\"{:016x}\"", sum(&bytes));
        let whole = answer(200, kind, &etag, Body::once(bytes.clone()), None);
        Asset { kind, bytes, etag, whole }
    }

    pub(super) fn whole(&self) -> Answer {
        self.whole.clone()
    }

    /// The answer to a request with conditions, in the order of RFC 9110 section 13.2.2.
    pub(super) fn answer(&self, request: &Request<'_>) -> Answer {
        let met = match (request.field("if-match"), request.field("if-unmodified-since")) {
            (Some(tags), _) => self.is_in(tags, Comparison::Strong),
            (None, Some(date)) => !modified_after(date).unwrap_or(false),
            (None, None) => true,
        };
        if !met {
            return self.bare(412);
        }
        let changed = match (request.field("if-none-match"), request.field("if-modified-since")) {
            (Some(tags), _) => !self.is_in(tags, Comparison::Weak),
            (None, Some(date)) => modified_after(date).unwrap_or(true),
            (None, None) => true,
        };
        if !changed {
            return self.bare(if matches!(request.method, "GET" | "HEAD") { 304 } else { 412 });
        }
        let same = request.field("if-range").is_none_or(|tag| tag.trim() == self.etag || tag.trim() == MODIFIED);
        match request.field("range").filter(|_| same && request.method == "GET").map(|range| self.range(range)) {
            None | Some(Range::Ignored) => self.whole(),
            Some(Range::Unsatisfiable) => {
                let fields = [("Content-Range", format!("bytes */{}", self.bytes.len()))];
                answer(416, self.kind, &self.etag, Body::default(), Some(&fields))
            }
            Some(Range::Part(from, to)) => {
                let fields = [("Content-Range", format!("bytes {from}-{}/{}", to - 1, self.bytes.len()))];
                answer(206, self.kind, &self.etag, Body::once(self.bytes.slice(from..to)), Some(&fields))
            }
        }
    }

    fn bare(&self, status: u16) -> Answer {
        let head = head(status, &[("ETag", &self.etag), ("Last-Modified", MODIFIED)]);
        let length = if status == 304 { "" } else { "Content-Length: 0\r\n" };
        let framing = Framing::Length;
        Answer { head: (head + length).into(), body: Body::default(), framing, pace: Pace::default(), trailers: String::new() }
    }

    /// True if one of the tags is ours.
    fn is_in(&self, tags: &str, comparison: Comparison) -> bool {
        tags.split(',').map(str::trim).any(|tag| {
            let opaque = match comparison {
                Comparison::Strong => tag,
                Comparison::Weak => tag.strip_prefix("W/").unwrap_or(tag),
            };
            tag == "*" || opaque == self.etag
        })
    }

    /// Parses a single range; several are answered with the whole, as a server may.
    fn range(&self, field: &str) -> Range {
        let length = self.bytes.len();
        let Some((first, last)) = field.trim().strip_prefix("bytes=").and_then(|spec| spec.split_once('-')) else {
            return Range::Ignored;
        };
        match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            (Ok(from), Ok(to)) if from > to => Range::Ignored,
            (Ok(from), _) if from >= length => Range::Unsatisfiable,
            (Ok(from), Ok(to)) => Range::Part(from, length.min(to.saturating_add(1))),
            (Ok(from), Err(_)) if last.trim().is_empty() => Range::Part(from, length),
            (Err(_), Ok(0)) if first.trim().is_empty() => Range::Unsatisfiable,
            (Err(_), Ok(suffix)) if first.trim().is_empty() => Range::Part(length.saturating_sub(suffix), length),
            _ => Range::Ignored,
        }
    }
}

#[derive(Clone, Copy)]
enum Comparison {
    Strong,
    Weak,
}

enum Range {
    Ignored,
    Unsatisfiable,
    /// From here to before there.
    Part(usize, usize),
}

fn answer(status: u16, kind: &str, etag: &str, body: Body, more: Option<&[(&str, String)]>) -> Answer {
    let length = body.bytes.to_string();
    let mut fields = vec![
        ("Content-Type", kind),
        ("Content-Length", &length),
        ("ETag", etag),
        ("Last-Modified", MODIFIED),
        ("Accept-Ranges", "bytes"),
    ];
    fields.extend(more.unwrap_or_default().iter().map(|(name, value)| (*name, value.as_str())));
    Answer { head: head(status, &fields).into(), body, framing: Framing::Length, pace: Pace::default(), trailers: String::new() }
}

/// FNV-1a of 64 bits: enough to tell made-up bodies apart.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(SUM_START, |sum, byte| add_to_sum(sum, *byte))
}

/// Adds a byte to a checksum.
pub(super) fn add_to_sum(sum: u64, byte: u8) -> u64 {
    (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}

/// The sum of nothing.
pub(super) const SUM_START: u64 = 0xcbf2_9ce4_8422_2325;

/// True if the last change is later than a date; `None` if the date cannot be parsed.
fn modified_after(date: &str) -> Option<bool> {
    Some(parse_date(MODIFIED)? > parse_date(date)?)
}

/// An IMF-fixdate (RFC 9110 section 5.6.7) as something that compares.
fn parse_date(date: &str) -> Option<(u32, usize, u32, &str)> {
    let (_, rest) = date.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|m| *m == month)?;
    Some((year.parse().ok()?, month, day.parse().ok()?, time))
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Date of the last change of all bodies: the founding document's autumn.
const MODIFIED: &str = "Mon, 25 Oct 2010 10:00:00 GMT";

#[cfg(test)]
mod tests {
    use super::super::request::{Found, find};
    use super::*;

    fn status(asset: &Asset, fields: &str) -> (u16, u64) {
        let text = format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n");
        let Found::Head(request, _) = find(text.as_bytes()) else { panic!("{text}") };
        let answer = asset.answer(&request);
        (std::str::from_utf8(&answer.head[9..12]).unwrap().parse().unwrap(), answer.body.bytes)
    }

    #[test]
    fn conditions_and_ranges() {
        let asset = Asset::new("text/plain", Bytes::from_static(b"0123456789"));
        let etag = asset.etag.clone();
        assert_eq!(status(&asset, "A: b"), (200, 10));
        assert_eq!(status(&asset, "Range: bytes=2-4"), (206, 3));
        assert_eq!(status(&asset, "Range: bytes=-4"), (206, 4));
        assert_eq!(status(&asset, "Range: bytes=8-"), (206, 2));
        assert_eq!(status(&asset, "Range: bytes=10-"), (416, 0));
        assert_eq!(status(&asset, "Range: bytes=0-1,3-4"), (200, 10));
        assert_eq!(status(&asset, &format!("Range: bytes=2-4\r\nIf-Range: {etag}")), (206, 3));
        assert_eq!(status(&asset, "Range: bytes=2-4\r\nIf-Range: \"other\""), (200, 10));
        assert_eq!(status(&asset, &format!("Range: bytes=2-4\r\nIf-Range: W/{etag}")), (200, 10));
        assert_eq!(status(&asset, &format!("If-None-Match: \"x\", W/{etag}")), (304, 0));
        assert_eq!(status(&asset, &format!("If-Match: W/{etag}")), (412, 0));
        assert_eq!(status(&asset, &format!("If-Match: {etag}")), (200, 10));
        assert_eq!(status(&asset, "If-Modified-Since: Tue, 26 Oct 2010 00:00:00 GMT"), (304, 0));
        assert_eq!(status(&asset, "If-Modified-Since: Fri, 01 Jan 2010 00:00:00 GMT"), (200, 10));
        assert_eq!(status(&asset, "If-Modified-Since: yesterday"), (200, 10));
        assert_eq!(status(&asset, "If-Unmodified-Since: Fri, 01 Jan 2010 00:00:00 GMT"), (412, 0));
    }
}
