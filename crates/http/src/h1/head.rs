//! Heads of HTTP/1 messages: bytes to values.
//!
//! A head is taken as RFC 9112 writes it and not otherwise. A head that could be read in two ways is refused, here and in
//! `lines`. HAProxy's reading ([`Reading`]) of requests takes some more, and corrects it.

use super::lines::{Reader, Stop};
use super::reading::Reading;
use super::{normal, target};
use terse_message::hop::unframe;
use terse_message::{BodyLength, Fields, Known, Malformed, Request, Response, Version, list};

pub use super::lines::MAX_FIELDS;

/// The most empty lines before a request (RFC 9112 section 2.2 asks recipients to ignore at least one).
const MAX_EMPTY_LINES: usize = 4;

/// Progress of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The head ends after so many bytes.
    Complete(usize),
}

/// Reads a request's head from the start of `input`. No state is kept from one call to the next.
///
/// On [`Parsed::Complete`], `request` holds the head, and [`Request::body`] the kind of the body that follows it.
pub fn parse_request(input: &[u8], request: &mut Request) -> Result<Parsed, Malformed> {
    parse_request_with(input, request, Reading::default())
}

/// The same, with a choice of the reading.
pub fn parse_request_with(input: &[u8], request: &mut Request, reading: Reading) -> Result<Parsed, Malformed> {
    let start = skip_empty_lines(input)?;
    request.clear();
    if &input[start..] == b"\r" {
        // Half an empty line.
        return Ok(Parsed::Partial);
    }
    match read_request(&input[start..], request) {
        Ok(length) => {
            target::check(request, reading)?;
            request.body = request_body(request, reading)?;
            Ok(Parsed::Complete(start + length))
        }
        Err(stop) => {
            request.clear();
            stopped(stop)
        }
    }
}

/// What is wrong with a request's head that fills all the room that there is and does not end: its target alone does (RFC 9112 section 3), its
/// method, or all of it together.
pub fn too_large(input: &[u8]) -> Malformed {
    let line = &input[skip_empty_lines(input).unwrap_or_default()..];
    if line.contains(&b'\n') {
        return Malformed::HeadTooLarge;
    }
    if line.contains(&b' ') { Malformed::TargetTooLong } else { Malformed::FirstLine }
}

/// Reads a response's head from the start of `input`. `method` is the request's: it decides whether a body follows.
pub fn parse_response(input: &[u8], method: &[u8], response: &mut Response) -> Result<Parsed, Malformed> {
    response.clear();
    if input.is_empty() {
        return Ok(Parsed::Partial);
    }
    match read_response(input, response) {
        Ok(length) => {
            response.body = response_body(response, method)?;
            Ok(Parsed::Complete(length))
        }
        Err(stop) => {
            response.clear();
            stopped(stop)
        }
    }
}

/// Trailers: the lines between the last chunk and the empty line, that line included.
pub fn parse_trailers(input: &[u8], trailers: &mut Fields) -> Result<(), Malformed> {
    trailers.clear();
    let mut reader = Reader::new(input);
    if reader.fields(trailers).is_ok() && reader.head().len() == input.len() {
        trailers.load(input);
        return Ok(());
    }
    trailers.clear();
    Err(Malformed::Trailer)
}

fn stopped(stop: Stop) -> Result<Parsed, Malformed> {
    match stop {
        Stop::Partial => Ok(Parsed::Partial),
        Stop::Malformed(malformed) => Err(malformed),
    }
}

/// Reads all lines (RFC 9112 section 3); returns their length. The target is checked later.
fn read_request(input: &[u8], request: &mut Request) -> Result<usize, Stop> {
    let mut reader = Reader::new(input);
    let method = reader.token()?;
    if method.is_empty() || !reader.take(b' ') {
        return Err(Malformed::Method.into());
    }
    let rest = reader.text(Malformed::FirstLine)?;
    request.version = match input[rest.clone()].last_chunk() {
        Some(b" HTTP/1.1") => Version::Http11,
        Some(b" HTTP/1.0") => Version::Http10,
        _ if input.starts_with(b"PRI * HTTP/2.0") => return Err(Malformed::Preface.into()),
        _ => return Err(no_version(&input[rest]).into()),
    };
    reader.fields(&mut request.fields)?;
    request.fields.load(reader.head());
    request.place_line(method, rest.start..rest.end - " HTTP/1.1".len());
    Ok(reader.head().len())
}

/// The fault of a first line that does not end in a version of ours; `rest` is the text after the method.
fn no_version(rest: &[u8]) -> Malformed {
    let Some(at) = memchr::memrchr(b' ', rest) else { return Malformed::FirstLine };
    let behind_ours = rest[at + 1..].strip_prefix(b"HTTP/1.").is_some_and(|minor| matches!(minor, [b'0' | b'1', ..]));
    if behind_ours { Malformed::LineEnd } else { Malformed::Version }
}

/// Reads all lines (RFC 9112 section 4); returns their length.
fn read_response(input: &[u8], response: &mut Response) -> Result<usize, Stop> {
    let mut reader = Reader::new(input);
    let known = &PROTOCOL[..input.len().min(PROTOCOL.len())];
    if !input.starts_with(known) {
        return Err(Malformed::FirstLine.into());
    }
    let line = reader.text(Malformed::FirstLine)?;
    let (version, rest) = match input[line.clone()].split_first_chunk() {
        Some((b"HTTP/1.1 ", rest)) => (Version::Http11, rest),
        Some((b"HTTP/1.0 ", rest)) => (Version::Http10, rest),
        _ => return Err(Malformed::FirstLine.into()),
    };
    let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = rest else { return Err(Malformed::FirstLine.into()) };
    if !matches!(reason, [] | [b' ', ..]) {
        return Err(Malformed::FirstLine.into());
    }
    response.version = version;
    response.status = [a, b, c].into_iter().fold(0, |n, digit| n * 10 + u16::from(digit - b'0'));
    reader.fields(&mut response.fields)?;
    response.fields.load(reader.head());
    response.place_reason(line.end - reason.len().saturating_sub(1)..line.end);
    Ok(reader.head().len())
}

const PROTOCOL: &[u8] = b"HTTP/1.";

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

/// RFC 9112 section 6.3, for requests.
fn request_body(request: &mut Request, reading: Reading) -> Result<BodyLength, Malformed> {
    let length = match content_length(&request.fields) {
        Err(_) if reading.is_haproxy() => normal::one_length(&mut request.fields)?,
        length => length?,
    };
    if request.method() == b"CONNECT" {
        return connect_body(request, length, reading).map(|()| BodyLength::None);
    }
    if request.fields.has(Known::TransferEncoding) {
        if length.is_some() || request.version == Version::Http10 {
            if !reading.is_haproxy() {
                return Err(Malformed::Framing);
            }
            request.fields.remove_known(Known::ContentLength);
            request.must_close = true;
        }
        return only_chunked(&mut request.fields).map(|()| BodyLength::Framed);
    }
    Ok(match length {
        None | Some(0) => BodyLength::None,
        Some(n) => BodyLength::Exact(n),
    })
}

/// A CONNECT has no content (RFC 9110 section 9.3.6): the bytes after its head are the tunnel's, or the next request. No
/// framing field is forwarded, or a server that refuses to connect could read a body of its own choice as a request.
fn connect_body(request: &mut Request, length: Option<u64>, reading: Reading) -> Result<(), Malformed> {
    let chunked = request.fields.has(Known::TransferEncoding);
    if chunked || length.is_some_and(|length| length > 0) {
        if !reading.is_haproxy() {
            return Err(Malformed::Framing);
        }
        if chunked {
            only_chunked(&mut request.fields)?;
        }
        request.must_close = true;
    }
    unframe(&mut request.fields);
    Ok(())
}

/// RFC 9112 section 6.3, for responses. A server's `Content-Length` with a `Transfer-Encoding` is dropped: the chunks
/// count. A server that sends both, or chunks in HTTP/1.0, is not trusted with another request.
fn response_body(response: &mut Response, method: &[u8]) -> Result<BodyLength, Malformed> {
    let length = content_length(&response.fields)?;
    let chunked = response.fields.has(Known::TransferEncoding);
    if chunked {
        only_chunked(&mut response.fields)?;
        let both = response.fields.remove_known(Known::ContentLength) > 0;
        response.must_close = both || response.version == Version::Http10;
    }
    let none = method == b"HEAD"
        || matches!(response.status, 100..=199 | 204 | 304)
        || (method == b"CONNECT" && response.status / 100 == 2);
    Ok(match length {
        _ if none => BodyLength::None,
        _ if chunked => BodyLength::Framed,
        Some(n) => BodyLength::Exact(n),
        None => BodyLength::UntilClose,
    })
}

/// The value of `Content-Length`, if there is one.
pub(crate) fn content_length(fields: &Fields) -> Result<Option<u64>, Malformed> {
    let mut values = fields.every(Known::ContentLength);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() { Err(Malformed::ContentLength) } else { length(value).map(Some) }
}

/// A length, digits alone.
pub(super) fn length(digits: &[u8]) -> Result<u64, Malformed> {
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed::ContentLength);
    }
    Ok(digits.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
}

/// `chunked`, once, last and alone: other codings are not understood. It is forwarded in the form that every reader
/// understands.
fn only_chunked(fields: &mut Fields) -> Result<(), Malformed> {
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
        (1, false) => {
            let is_usual = {
                let mut places = fields.positions(b"transfer-encoding");
                let line = places.next().and_then(|place| fields.line(place)).unwrap_or_default();
                line.get(b"transfer-encoding".len()..) == Some(b": chunked") && places.next().is_none()
            };
            if !is_usual {
                fields.set(b"Transfer-Encoding", b"chunked");
            }
            Ok(())
        }
        (1, true) if last_is_chunked => Err(Malformed::TransferCoding),
        _ => Err(Malformed::Framing),
    }
}
