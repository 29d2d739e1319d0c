//! Header blocks to heads, and the faults that make a head malformed (RFC 9113 section 8.2 and 8.3).

use super::error::Malformed;
use super::hpack::{Decoder, Line, Stop};
use super::limits::Limits;
use crate::h1::{MAX_FIELDS, head::content_length, normal::one_length, target};
use std::ops::Range;
use terse_message::hop::is_protocol;
use terse_message::name::is_token;
use terse_message::text::control_at;
use terse_message::{BodyLength, Conformance, Fields, Known, Request, Response, Version};

/// Memory for the reading of heads.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Lines as [`Fields`] keeps them; those of pseudo-headers are no fields.
    lines: Vec<u8>,
    crumbs: Vec<Range<usize>>,
    /// A crumb may not be put into a table.
    secret_cookie: bool,
    pseudo: [Option<Range<usize>>; PSEUDO.len()],
}

const PSEUDO: [&[u8]; 6] = [b":method", b":scheme", b":authority", b":path", b":protocol", b":status"];
const METHOD: usize = 0;
const SCHEME: usize = 1;
const AUTHORITY: usize = 2;
const PATH: usize = 3;
const PROTOCOL: usize = 4;
const STATUS: usize = 5;

/// The pseudo-headers of requests, of responses and of trailers.
const OF_REQUESTS: Range<usize> = METHOD..STATUS;
const OF_RESPONSES: Range<usize> = STATUS..STATUS + 1;
const OF_TRAILERS: Range<usize> = 0..0;

/// Reason why there is no head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bad {
    Malformed(Malformed),
    /// No request, but it is answered as one: HAProxy's reading.
    Unusable(Malformed),
    /// Above the limit: the block was read to its end.
    TooLarge {
        /// By the path alone.
        is_target: bool,
    },
    /// Above four times the limit.
    FarTooLarge,
    /// The block cannot be read, nor any after it.
    Compression,
}

impl Bad {
    /// A fault whose stream is reset, or else answered.
    fn of(malformed: Malformed, resets: bool) -> Bad {
        if resets { Bad::Malformed(malformed) } else { Bad::Unusable(malformed) }
    }
}

impl From<Malformed> for Bad {
    fn from(malformed: Malformed) -> Bad {
        Bad::Malformed(malformed)
    }
}

impl Reader {
    /// Reads a request's head; `ends` where no body follows. Returns the length of the data that must follow, where it is given.
    pub(super) fn request(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        ends: bool,
        limits: &Limits,
        request: &mut Request,
    ) -> Result<Option<u64>, Bad> {
        request.clear();
        request.version = Version::Http2;
        self.read(decoder, block, OF_REQUESTS, limits, &mut request.fields)?;
        let method = self.pseudo[METHOD].clone().ok_or(Malformed::PseudoHeader)?;
        let minds = limits.reading.conformance == Conformance::Rfc;
        if method.is_empty() || !self.lines[method.clone()].iter().all(|b| is_token(*b)) {
            return Err(Bad::of(Malformed::Method, minds));
        }
        let is_connect = &self.lines[method.clone()] == b"CONNECT";
        let is_extended = self.pseudo[PROTOCOL].is_some();
        let tunnel = is_connect && !is_extended;
        let place = if tunnel { AUTHORITY } else { PATH };
        let target = self.pseudo[place].clone().ok_or(Malformed::PseudoHeader)?;
        let has_scheme = self.pseudo[SCHEME].as_ref().is_some_and(|scheme| is_scheme(&self.lines[scheme.clone()]));
        let fits = if tunnel {
            self.pseudo[SCHEME].is_none() && self.pseudo[PATH].is_none()
        } else {
            has_scheme && (!is_extended || is_connect && limits.extended_connect && self.pseudo[AUTHORITY].is_some())
        };
        if !fits {
            let has_odd_scheme = !tunnel && self.pseudo[SCHEME].is_some() && !has_scheme;
            return Err(Bad::of(Malformed::PseudoHeader, minds || !has_odd_scheme));
        }
        // RFC 8441 section 4: as in Upgrade, but one alone.
        if is_extended && !is_protocol(self.protocol()) {
            return Err(Malformed::PseudoHeader.into());
        }
        request.fields.load(&self.lines);
        // RFC 9113 section 8.3.1: an http URI names a host.
        let is_http = [&b"http"[..], b"https"].iter().any(|scheme| self.scheme().eq_ignore_ascii_case(scheme));
        if minds && is_http && request.fields.first(Known::Host).is_none_or(<[u8]>::is_empty) {
            return Err(Malformed::Host.into());
        }
        // An extended CONNECT asks for a path (RFC 8441 section 4).
        request.place_line(if is_extended { 0..0 } else { method.clone() }, target.clone());
        if memchr::memchr(b' ', request.target()).is_some() {
            return Err(Malformed::Target.into());
        }
        let is_path = matches!(request.target(), [b'/', ..]) || request.method() == b"OPTIONS" && request.target() == b"*";
        if !tunnel && !is_path {
            return Err(Bad::of(Malformed::Target, minds || request.target() != b"*"));
        }
        target::check(request, limits.reading).map_err(|malformed| match malformed {
            terse_message::Malformed::Host => Malformed::Host,
            _ => Malformed::Target,
        })?;
        if is_extended {
            request.place_line(method, target);
        }
        let length = match content_length(&request.fields) {
            Err(_) if !minds => one_length(&mut request.fields),
            read => read,
        };
        let length = length.map_err(|_| Malformed::ContentLength)?;
        if is_connect && length.is_some() || ends && length.is_some_and(|length| length > 0) {
            return Err(Malformed::ContentLength.into());
        }
        request.body = match length {
            _ if ends || is_connect => BodyLength::None,
            Some(0) => BodyLength::None,
            Some(length) => BodyLength::Exact(length),
            None => BodyLength::Framed,
        };
        Ok(length)
    }

    /// The value of `:scheme` of the last request.
    pub(super) fn scheme(&self) -> &[u8] {
        self.value(SCHEME)
    }

    /// The value of `:protocol` of the last request.
    pub(super) fn protocol(&self) -> &[u8] {
        self.value(PROTOCOL)
    }

    fn value(&self, place: usize) -> &[u8] {
        self.pseudo[place].clone().map_or(b"", |range| &self.lines[range])
    }

    /// Reads a response's head; `method` is the request's. Returns the length of the data that must follow, where it is given.
    pub(super) fn response(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        (ends, method): (bool, &[u8]),
        limits: &Limits,
        response: &mut Response,
    ) -> Result<Option<u64>, Bad> {
        response.clear();
        response.version = Version::Http2;
        self.read(decoder, block, OF_RESPONSES, limits, &mut response.fields)?;
        response.status = match self.value(STATUS) {
            b"" => return Err(Malformed::PseudoHeader.into()),
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                [a, b, c].into_iter().fold(0, |n, d| n * 10 + u16::from(d - b'0'))
            }
            _ => return Err(Malformed::Status.into()),
        };
        response.fields.load(&self.lines);
        let is_interim = response.status < 200;
        // An interim response ends nothing, and another protocol cannot follow (RFC 9113 section 8.6).
        if response.status == 101 || is_interim && ends {
            return Err(Malformed::Status.into());
        }
        let length = content_length(&response.fields).map_err(|_| Malformed::ContentLength)?;
        let is_tunnel = method == b"CONNECT" && response.status / 100 == 2;
        if is_interim || is_tunnel || method == b"HEAD" || matches!(response.status, 204 | 304) {
            response.body = BodyLength::None;
            return Ok(if is_interim || is_tunnel { None } else { Some(0) });
        }
        if ends && length.is_some_and(|length| length > 0) {
            return Err(Malformed::ContentLength.into());
        }
        response.body = match length {
            _ if ends => BodyLength::Exact(0),
            Some(length) => BodyLength::Exact(length),
            None => BodyLength::Framed,
        };
        Ok(length)
    }

    /// Reads the trailers after a body.
    pub(super) fn trailers(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limits: &Limits,
        fields: &mut Fields,
    ) -> Result<(), Bad> {
        fields.clear();
        self.read(decoder, block, OF_TRAILERS, limits, fields)?;
        fields.load(&self.lines);
        // These fields define how a head is read and come too late (RFC 9110 section 6.5.1). A reader that joins trailers
        // and head would be misled.
        fields.remove_known(Known::ContentLength);
        fields.remove_known(Known::Host);
        Ok(())
    }

    /// Reads a block for the sake of the table alone.
    pub(super) fn discard(&mut self, decoder: &mut Decoder, block: &[u8], limits: &Limits) -> Result<(), Stop> {
        self.lines.clear();
        let mut total = 0;
        decoder.decode(block, &mut self.lines, |lines, line| {
            total += lines.len();
            lines.truncate(line.name.start);
            total <= limits.head_bytes.saturating_mul(FAR)
        })
    }

    /// Reads all fields; the first fault is returned when the block is at its end.
    fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        allowed: Range<usize>,
        limits: &Limits,
        fields: &mut Fields,
    ) -> Result<(), Bad> {
        let Reader { lines, crumbs, pseudo, secret_cookie } = self;
        lines.clear();
        crumbs.clear();
        *secret_cookie = false;
        *pseudo = Default::default();
        let (mut wrong, mut total, mut too_large, mut is_target) = (None, 0, false, false);
        let is_request = allowed == OF_REQUESTS;
        let minds = limits.reading.conformance == Conformance::Rfc;
        let read = decoder.decode(block, lines, |lines, line| {
            let Line { name, value, never_indexed } = line;
            let before = (fields.len(), crumbs.len());
            let length = lines.len() - name.start;
            total += length;
            is_target |= length > limits.head_bytes && lines[name.clone()] == *b":path";
            too_large |= total > limits.head_bytes || fields.len() >= MAX_FIELDS || crumbs.len() >= limits.cookie_crumbs;
            if too_large || wrong.is_some() {
                lines.truncate(name.start);
                return total <= limits.head_bytes.saturating_mul(FAR);
            }
            let start = name.start;
            let done = if lines[name.clone()].first() == Some(&b':') {
                take_pseudo(lines, (name, value), (&allowed, crumbs.is_empty()), pseudo, fields)
            } else {
                let value = if minds { value } else { trim(lines, value) };
                take_field(lines, (name, value), (is_request, &pseudo[AUTHORITY], minds), crumbs, fields)
            };
            if let Err(malformed) = done {
                wrong = Some(malformed);
                lines.truncate(start);
            } else if never_indexed {
                if fields.len() > before.0 {
                    fields.mark_secret();
                }
                *secret_cookie |= crumbs.len() > before.1;
            }
            true
        });
        match (read, wrong) {
            (Err(Stop::Malformed), _) => return Err(Bad::Compression),
            (Err(Stop::Enough), _) => return Err(Bad::FarTooLarge),
            _ if too_large => return Err(Bad::TooLarge { is_target }),
            (_, Some(malformed)) => return Err(malformed.into()),
            _ => {}
        }
        self.join_crumbs(fields);
        Ok(())
    }

    /// The cookies of a request become one field (RFC 9113 section 8.2.3).
    fn join_crumbs(&mut self, fields: &mut Fields) {
        let Reader { lines, crumbs, .. } = self;
        match &crumbs[..] {
            [] => {}
            [one] => fields.index_line(lines, one.start - COOKIE.len()..one.start - 2, one.clone()),
            [first, rest @ ..] => {
                let start = lines.len();
                lines.extend_from_slice(COOKIE);
                lines.extend_from_within(first.clone());
                for crumb in rest {
                    lines.extend_from_slice(b"; ");
                    lines.extend_from_within(crumb.clone());
                }
                let end = lines.len();
                lines.extend_from_slice(b"\r\n");
                fields.index_line(lines, start..start + COOKIE.len() - 2, start + COOKIE.len()..end);
            }
        }
        if self.secret_cookie {
            fields.mark_secret();
        }
    }
}

/// Blocks of this many times the limit end the connection.
const FAR: usize = 4;

const COOKIE: &[u8] = b"cookie: ";

/// Takes a line that begins with a colon.
fn take_pseudo(
    lines: &mut [u8],
    (name, value): (Range<usize>, Range<usize>),
    (allowed, has_no_cookie): (&Range<usize>, bool),
    pseudo: &mut [Option<Range<usize>>; PSEUDO.len()],
    fields: &mut Fields,
) -> Result<(), Malformed> {
    let place = PSEUDO.iter().position(|known| **known == lines[name.clone()]).ok_or(Malformed::PseudoHeader)?;
    let is_late = !has_no_cookie || fields.len() > usize::from(pseudo[AUTHORITY].is_some());
    if !allowed.contains(&place) || is_late || pseudo[place].is_some() {
        return Err(Malformed::PseudoHeader);
    }
    check_value(&lines[value.clone()])?;
    if place == AUTHORITY {
        let host = value.start - HOST.len();
        lines[host..value.start].copy_from_slice(HOST);
        fields.index_line(lines, host..host + HOST.len() - 2, value.clone());
    }
    pseudo[place] = Some(value);
    Ok(())
}

/// Takes a line of a field.
fn take_field(
    lines: &mut Vec<u8>,
    (name, value): (Range<usize>, Range<usize>),
    (is_request, authority, minds): (bool, &Option<Range<usize>>, bool),
    crumbs: &mut Vec<Range<usize>>,
    fields: &mut Fields,
) -> Result<(), Malformed> {
    // Without a way out of the loop, the bytes are looked up side by side.
    let is_name = lines[name.clone()].iter().fold(true, |is_name, b| is_name & NAME_BYTES[usize::from(*b)]);
    if name.is_empty() || !is_name {
        return Err(Malformed::FieldName);
    }
    check_value(&lines[value.clone()])?;
    match Known::of(&lines[name.clone()]) {
        Known::Connection | Known::KeepAlive | Known::ProxyConnection | Known::TransferEncoding | Known::Upgrade => {
            return Err(Malformed::ConnectionField);
        }
        Known::Te if !lines[value.clone()].eq_ignore_ascii_case(b"trailers") => return Err(Malformed::ConnectionField),
        Known::Cookie if is_request => {
            crumbs.push(value);
            return Ok(());
        }
        // `:authority` was taken for it; another host misleads some reader (RFC 9113 section 8.3.1).
        Known::Host if authority.as_ref().is_some_and(|known| lines[known.clone()].eq_ignore_ascii_case(&lines[value.clone()])) => {
            lines.truncate(name.start);
        }
        Known::Host if authority.is_some() && minds => return Err(Malformed::Host),
        Known::Host if authority.is_some() => lines.truncate(name.start),
        _ => fields.index_line(lines, name, value),
    }
    Ok(())
}

/// Removes the blanks around the last line's value, which HAProxy takes. All bytes of a line are sent on to servers of
/// HTTP/1.
fn trim(lines: &mut Vec<u8>, value: Range<usize>) -> Range<usize> {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let before = lines[value.clone()].iter().take_while(is_blank).count();
    lines.drain(value.start..value.start + before);
    let end = value.end - before;
    let behind = lines[value.start..end].iter().rev().take_while(is_blank).count();
    lines.drain(end - behind..end);
    value.start..end - behind
}

fn check_value(value: &[u8]) -> Result<(), Malformed> {
    let blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    if control_at(value).is_some() || blank(value.first()) || blank(value.last()) { Err(Malformed::FieldValue) } else { Ok(()) }
}

const HOST: &[u8] = b"host: ";

/// Bytes that a name may hold: a token's bytes but for large letters (RFC 9113 section 8.2.1). They are checked one by one,
/// so a table has them.
static NAME_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut b = 0;
    while b < 256 {
        bytes[b] = is_token(b as u8) && !(b as u8).is_ascii_uppercase();
        b += 1;
    }
    bytes
};

/// RFC 3986 section 3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
}
