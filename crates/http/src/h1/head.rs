//! Heads of HTTP/1 messages: bytes to values.
//!
//! `httparse` finds the lines; what it lets pass and RFC 9112 does not want is refused here: lines that end in a bare LF, targets
//! that do not fit the method, and lengths that could be read in two ways.

use super::malformed::Malformed;
use super::target::{self, Targets};
use httparse::Status;
use std::mem::MaybeUninit;
use std::ops::Range;
use terse_message::{BodyLength, Fields, Known, Request, Response, Version, list};

/// The most fields of a head, as HAProxy's `tune.http.maxhdr` has it by default (101), rounded up.
pub const MAX_FIELDS: usize = 128;

/// The most empty lines that may stand before a request (RFC 9112 section 2.2 wants at least one to be ignored).
const MAX_EMPTY_LINES: usize = 4;

/// How far a head has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The head ends after so many bytes.
    Complete(usize),
}

/// Reads a request's head from the start of `input`. Nothing is kept from one call to the next.
///
/// On [`Parsed::Complete`], `request` holds the head, and in [`Request::body`] what follows it.
pub fn parse_request(input: &[u8], request: &mut Request) -> Result<Parsed, Malformed> {
    parse_request_with(input, request, Targets::Strict)
}

/// The same, with a say in what its target may hold.
pub fn parse_request_with(input: &[u8], request: &mut Request, targets: Targets) -> Result<Parsed, Malformed> {
    let start = skip_empty_lines(input)?;
    let raw = &input[start..];
    let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(raw, &mut slots) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return check_partial(raw),
        Err(error) => return Err(classify(error, raw)),
    };
    let head = &raw[..length];
    let (Some(method), Some(path), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(Malformed::FirstLine);
    };
    request.clear();
    request.version = if version == 0 { Version::Http10 } else { Version::Http11 };
    load_fields(head, parsed.headers, &mut request.fields)?;
    request.place_line(place(head, method.as_bytes()), place(head, path.as_bytes()));
    target::check(request, targets)?;
    request.body = request_body(request)?;
    Ok(Parsed::Complete(start + length))
}

/// Reads a response's head from the start of `input`. `method` is the request's: it decides whether a body follows.
pub fn parse_response(input: &[u8], method: &[u8], response: &mut Response) -> Result<Parsed, Malformed> {
    let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut []);
    let length = match httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, input, &mut slots) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return check_partial(input),
        Err(error) => return Err(classify(error, input)),
    };
    let head = &input[..length];
    let (Some(status), Some(version)) = (parsed.code, parsed.version) else { return Err(Malformed::FirstLine) };
    if status < 100 || !input.starts_with(b"HTTP/1.") {
        return Err(Malformed::FirstLine);
    }
    response.clear();
    response.version = if version == 0 { Version::Http10 } else { Version::Http11 };
    response.status = status;
    load_fields(head, parsed.headers, &mut response.fields)?;
    if let Some(reason) = parsed.reason.filter(|r| !r.is_empty()) {
        response.place_reason(place(head, reason.as_bytes()));
    }
    response.body = response_body(response, method)?;
    Ok(Parsed::Complete(length))
}

/// Trailers: the lines between the last chunk and the empty line, that line included.
pub fn parse_trailers(input: &[u8], trailers: &mut Fields) -> Result<(), Malformed> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_FIELDS];
    match httparse::parse_headers(input, &mut slots) {
        Ok(Status::Complete((length, fields))) if length == input.len() => {
            trailers.clear();
            load_fields(input, fields, trailers)
        }
        _ => Err(Malformed::Trailer),
    }
}

/// What does not wait for the rest of the head: a bare LF or a stray CR is refused as soon as it is seen.
fn check_partial(input: &[u8]) -> Result<Parsed, Malformed> {
    for at in memchr::memchr_iter(b'\n', input) {
        if at == 0 || input[at - 1] != b'\r' {
            return Err(Malformed::LineEnd);
        }
    }
    Ok(Parsed::Partial)
}

fn skip_empty_lines(input: &[u8]) -> Result<usize, Malformed> {
    let mut start = 0;
    while input[start..].starts_with(b"\r\n") {
        start += 2;
        if start > 2 * MAX_EMPTY_LINES {
            return Err(Malformed::FirstLine);
        }
    }
    match input.get(start) {
        Some(b'\n') => Err(Malformed::LineEnd),
        _ => Ok(start),
    }
}

/// Where a part that the parser borrowed lies in the head.
fn place(head: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize).min(head.len());
    start..(start + part.len()).min(head.len())
}

fn load_fields(head: &[u8], parsed: &[httparse::Header<'_>], fields: &mut Fields) -> Result<(), Malformed> {
    fields.load(head);
    for header in parsed {
        let (name, value) = (place(head, header.name.as_bytes()), place(head, header.value));
        ends_in_crlf(head, name.start)?;
        // An empty value is borrowed from anywhere; it lies behind its name.
        let value = if value.is_empty() { name.end + 1..name.end + 1 } else { value };
        fields.index_line(name, value);
    }
    // The last field's line, then the empty line.
    ends_in_crlf(head, head.len())?;
    if !parsed.is_empty() || head.len() > 2 {
        ends_in_crlf(head, head.len() - 2)?;
    }
    Ok(())
}

/// Whether the line before `end` ends as RFC 9112 section 2.2 wants it; `httparse` also takes a bare LF.
fn ends_in_crlf(head: &[u8], end: usize) -> Result<(), Malformed> {
    if end == 0 || head[..end].ends_with(b"\r\n") { Ok(()) } else { Err(Malformed::LineEnd) }
}

/// `httparse` names the place; folding and bare line ends deserve their own name.
fn classify(error: httparse::Error, input: &[u8]) -> Malformed {
    match error {
        httparse::Error::TooManyHeaders => Malformed::TooManyFields,
        httparse::Error::Version => Malformed::Version,
        httparse::Error::Token => Malformed::Method,
        httparse::Error::NewLine => Malformed::LineEnd,
        httparse::Error::Status => Malformed::FirstLine,
        httparse::Error::HeaderName => match memchr::memmem::find(input, b"\n ").or(memchr::memmem::find(input, b"\n\t")) {
            Some(_) => Malformed::Folding,
            None => Malformed::FieldName,
        },
        httparse::Error::HeaderValue => Malformed::FieldValue,
    }
}

/// RFC 9112 section 6.3, for requests.
fn request_body(request: &Request) -> Result<BodyLength, Malformed> {
    let length = content_length(&request.fields)?;
    if request.fields.has(Known::TransferEncoding) {
        if length.is_some() || request.version == Version::Http10 {
            return Err(Malformed::Framing);
        }
        return only_chunked(&request.fields).map(|()| BodyLength::Unknown);
    }
    Ok(match length {
        None | Some(0) => BodyLength::None,
        Some(n) => BodyLength::Exact(n),
    })
}

/// RFC 9112 section 6.3, for responses. A server's `Content-Length` beside its `Transfer-Encoding` is dropped: the chunks count.
fn response_body(response: &mut Response, method: &[u8]) -> Result<BodyLength, Malformed> {
    let length = content_length(&response.fields)?;
    let chunked = response.fields.has(Known::TransferEncoding);
    if chunked {
        only_chunked(&response.fields)?;
        response.fields.remove_known(Known::ContentLength);
    }
    let none = method == b"HEAD"
        || matches!(response.status, 100..=199 | 204 | 304)
        || (method == b"CONNECT" && response.status / 100 == 2);
    Ok(match length {
        _ if none => BodyLength::None,
        Some(n) if !chunked => BodyLength::Exact(n),
        _ => BodyLength::Unknown,
    })
}

/// The one `Content-Length`, if there is one.
fn content_length(fields: &Fields) -> Result<Option<u64>, Malformed> {
    let mut values = fields.every(Known::ContentLength);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() || value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return Err(Malformed::ContentLength);
    }
    Ok(Some(value.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0'))))
}

/// `chunked`, once, last and alone: other codings are not understood.
fn only_chunked(fields: &Fields) -> Result<(), Malformed> {
    let (mut chunked, mut other) = (0, false);
    let mut last_is_chunked = false;
    for coding in fields.every(Known::TransferEncoding).flat_map(list::elements) {
        last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
        if last_is_chunked {
            chunked += 1;
        } else {
            other = true;
        }
    }
    match (chunked, other) {
        (1, false) => Ok(()),
        (1, true) if last_is_chunked => Err(Malformed::TransferCoding),
        _ => Err(Malformed::Framing),
    }
}
