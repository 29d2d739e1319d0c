//! Bytes of a connection that carries bytes: their number, parts of them, and the targets that the first bytes of some
//! protocols name.
//!
//! A connection that carries HTTP has no payload: its bodies are `req.body` and `res.body`.
//!
//! Invariant: nothing here looks beyond the bytes that are there, and no number in them is trusted: a length that leads outside is
//! either waited for, when a buffer could hold it, or means that there is no value.

use super::facts;
use crate::inspection::{Inspection, Side};
use terse_sample::argument::{Param, ParamKind, may, need};
use terse_sample::{Arg, ArgList, Compiler, Env, Fetch, Needs, Octets, Type, Value};

const RANGE: &[Param] = &[need(ParamKind::Int), need(ParamKind::Int)];
const LENGTH_VALUE: &[Param] = &[need(ParamKind::Int), need(ParamKind::Int), may(ParamKind::Str)];
const NAME: &[Param] = &[may(ParamKind::Str)];
const TOKEN: &[Param] = &[need(ParamKind::Str), may(ParamKind::Int)];

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("req.len", Type::Int, "How many bytes of the client's are there.", |_, env| length(env, Side::Request))
        .also(&["req_len"])
        .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("res.len", Type::Int, "How many bytes of the server's are there.", |_, env| length(env, Side::Response))
        .needs(Needs::BYTES.or(Needs::RESPONSE)),
    Fetch::one("req.payload", Type::Bin, "Bytes of the client's: from an offset so many, or all with 0.", |args, env| {
        payload(args, &Raw::of(env, Some(Side::Request))?)
    })
    .params(RANGE)
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("res.payload", Type::Bin, "Bytes of the server's: from an offset so many, or all with 0.", |args, env| {
        payload(args, &Raw::of(env, Some(Side::Response))?)
    })
    .params(RANGE)
    .needs(Needs::BYTES.or(Needs::RESPONSE)),
    Fetch::one("payload", Type::Bin, "Bytes of the side that is looked at: from an offset so many, or all with 0.", |args, env| {
        payload(args, &Raw::of(env, None)?)
    })
    .params(RANGE)
    .needs(Needs::BYTES),
    Fetch::one("req.payload_lv", Type::Bin, "Bytes of the client's whose number stands before them.", |args, env| {
        length_value(args, &Raw::of(env, Some(Side::Request))?)
    })
    .params(LENGTH_VALUE)
    .check(check_length_value)
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("res.payload_lv", Type::Bin, "Bytes of the server's whose number stands before them.", |args, env| {
        length_value(args, &Raw::of(env, Some(Side::Response))?)
    })
    .params(LENGTH_VALUE)
    .check(check_length_value)
    .needs(Needs::BYTES.or(Needs::RESPONSE)),
    Fetch::one("payload_lv", Type::Bin, "Bytes of the side that is looked at whose number stands before them.", |args, env| {
        length_value(args, &Raw::of(env, None)?)
    })
    .params(LENGTH_VALUE)
    .check(check_length_value)
    .needs(Needs::BYTES),
    Fetch::one("req.rdp_cookie", Type::Str, "The cookie of an RDP client's first packet.", |args, env| {
        let raw = Raw::of(env, Some(Side::Request))?;
        raw.settle(rdp_cookie(raw.bytes, args.str(0).unwrap_or_default())).map(Value::str)
    })
    .also(&["rdp_cookie"])
    .params(NAME)
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("req.rdp_cookie_cnt", Type::Int, "1 when an RDP client's first packet has the cookie, 0 when not.", |args, env| {
        // HTTP has no such cookie.
        let Some(raw) = Raw::of(env, Some(Side::Request)) else { return facts(env).map(|_| Value::Int(0)) };
        match rdp_cookie(raw.bytes, args.str(0).unwrap_or_default()) {
            Read::More if raw.inspection.is_open() => raw.settle(Read::More),
            // Where no more bytes can come, the missing cookie never will.
            read => Some(Value::Int(matches!(read, Read::Found(_)).into())),
        }
    })
    .also(&["rdp_cookie_cnt", "req_rdp_cookie", "req_rdp_cookie_cnt"])
    .params(NAME)
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("distcc_param", Type::Int, "The parameter of a token of distcc.", |args, env| {
        let raw = Raw::of(env, None)?;
        raw.settle(raw.distcc(args)).map(|token| Value::Int(token.parameter.into()))
    })
    .params(TOKEN)
    .check(check_token)
    .needs(Needs::BYTES),
    Fetch::one("distcc_body", Type::Bin, "The body of a token of distcc, as far as it is there.", |args, env| {
        let raw = Raw::of(env, None)?;
        let token = raw.settle(raw.distcc(args))?;
        Some(Value::Bin(Octets::from(token.body)))
    })
    .params(TOKEN)
    .check(check_token)
    .needs(Needs::BYTES),
    Fetch::one(
        "wait_end",
        Type::Bool,
        "True once nothing more is waited for: at the end of 'inspect-delay', or without one.",
        |_, env| match facts(env)?.inspection.as_deref().filter(|inspection| inspection.is_open()) {
            Some(inspection) => {
                inspection.doubt.raise();
                None
            }
            None => Some(Value::Bool(true)),
        },
    ),
];

/// Result of parsing the bytes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Read<T> {
    /// The value.
    Found(T),
    /// The bytes to come decide.
    More,
    /// There is none, whatever bytes come.
    Never,
}

impl<T> Read<T> {
    /// Continues with the value, where there is one.
    pub(super) fn and_then<U>(self, next: impl FnOnce(T) -> Read<U>) -> Read<U> {
        match self {
            Read::Found(value) => next(value),
            Read::More => Read::More,
            Read::Never => Read::Never,
        }
    }
}

/// The bytes of a direction of a connection that carries bytes.
pub(super) struct Raw<'a> {
    pub(super) bytes: &'a [u8],
    /// Size of a buffer in bytes: bytes that do not fit never come.
    room: u64,
    inspection: &'a Inspection,
}

impl<'a> Raw<'a> {
    /// The bytes of that side; `None`: of the side under inspection.
    pub(super) fn of(env: &Env<'a>, side: Option<Side>) -> Option<Raw<'a>> {
        let facts = facts(env).filter(|facts| facts.version.is_none())?;
        let inspection = facts.inspection.as_deref()?;
        let bytes = inspection.bytes(side.unwrap_or(inspection.side()));
        Some(Raw { bytes, room: facts.plan().process.buffer_bytes as u64, inspection })
    }

    /// The value, if there is one; records when it may yet come.
    pub(super) fn settle<T>(&self, read: Read<T>) -> Option<T> {
        match read {
            Read::Found(value) => Some(value),
            Read::More => {
                self.inspection.doubt.raise();
                None
            }
            Read::Never => None,
        }
    }

    /// Keeps a handshake message that was put together, as long as the bytes are lent.
    pub(super) fn keep(&self, message: Vec<u8>) -> &'a [u8] {
        self.inspection.keep(message)
    }

    /// The `length` bytes from `at` on.
    fn part(&self, at: u64, length: u64) -> Read<&'a [u8]> {
        match at.checked_add(length) {
            Some(end) if end <= self.bytes.len() as u64 => {
                Read::Found(self.bytes.get(at as usize..end as usize).unwrap_or_default())
            }
            Some(end) if end <= self.room => Read::More,
            _ => Read::Never,
        }
    }

    /// A token of distcc: four letters, eight hexadecimal digits, and for most tokens as many bytes as those say.
    fn distcc(&self, args: &ArgList) -> Read<Token<'a>> {
        let (name, wanted) = (args.str(0).unwrap_or_default(), args.int(1).unwrap_or(0));
        let (mut at, mut seen) = (0_u64, 0);
        loop {
            let head = match self.part(at, 12) {
                Read::Found(head) => head,
                Read::More => return Read::More,
                Read::Never => return Read::Never,
            };
            let (letters, digits) = head.split_at(4);
            let Some(parameter) = hexadecimal(digits) else { return Read::Never };
            let length = if WITHOUT_BODY.contains(&letters) { 0 } else { u64::from(parameter) };
            at += 12;
            if letters == name {
                seen += 1;
                if wanted == 0 || wanted == seen {
                    let rest = self.bytes.get(at as usize..).unwrap_or_default();
                    let body = rest.get(..length as usize).unwrap_or(rest);
                    return Read::Found(Token { parameter, body });
                }
            }
            if length > self.bytes.len() as u64 - at {
                return Read::Never;
            }
            at += length;
        }
    }
}

struct Token<'a> {
    parameter: u32,
    body: &'a [u8],
}

/// Tokens of distcc whose parameter is no length.
const WITHOUT_BODY: &[&[u8]] = &[b"ARGC", b"DIST", b"NFIL", b"STAT", b"DONE"];

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number: u32, &digit| Some(number << 4 | char::from(digit).to_digit(16)?))
}

/// Under HTTP the head counts, and the body as far as it has come.
fn length<'a>(env: &Env<'a>, side: Side) -> Option<Value<'a>> {
    let facts = facts(env)?;
    let inspection = facts.inspection.as_deref()?;
    let head = match (side, facts.version) {
        (_, None) => 0,
        (Side::Request, _) => facts.figures.bytes_in.get(),
        (Side::Response, _) => facts.figures.bytes_from_server.get(),
    };
    inspection.doubt.raise();
    Some(Value::Int((head as i64).saturating_add(inspection.bytes(side).len() as i64)))
}

fn payload<'a>(args: &ArgList, raw: &Raw<'a>) -> Option<Value<'a>> {
    let (at, length) = (u64::try_from(args.int(0)?).ok()?, u64::try_from(args.int(1)?).ok()?);
    if length == 0 {
        let rest = raw.settle(raw.part(at, 0)).and_then(|_| raw.bytes.get(at as usize..))?;
        raw.inspection.doubt.raise();
        return Some(Value::Bin(Octets::from(rest)));
    }
    raw.settle(raw.part(at, length)).map(|bytes| Value::Bin(Octets::from(bytes)))
}

fn length_value<'a>(args: &ArgList, raw: &Raw<'a>) -> Option<Value<'a>> {
    let (at, size) = (u64::try_from(args.int(0)?).ok()?, u64::try_from(args.int(1)?).ok()?);
    let digits = raw.settle(raw.part(at, size))?;
    let length = digits.iter().fold(0_u64, |length, &digit| length.wrapping_shl(8) | u64::from(digit));
    let begin = match args.own::<Offset>(2) {
        None => at + size,
        Some(Offset::Absolute(offset)) => *offset,
        Some(Offset::Relative(offset)) => (at + size).checked_add_signed(*offset)?,
    };
    if length == 0 {
        return None;
    }
    raw.settle(raw.part(begin, length)).map(|bytes| Value::Bin(Octets::from(bytes)))
}

/// Begin of the bytes of a `payload_lv`.
enum Offset {
    /// From the start.
    Absolute(u64),
    /// From the end of the length field.
    Relative(i64),
}

#[allow(clippy::ptr_arg, reason = "checks of arguments share one signature")]
fn check_length_value(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    let (Some(Arg::Int(at)), Some(Arg::Int(size))) = (args.first(), args.get(1)) else { return Ok(()) };
    if !(0..=LARGEST).contains(at) {
        return Err(format!("the offset of the length must be between 0 and {LARGEST}, not {at}"));
    }
    if !(1..=8).contains(size) {
        return Err(format!("the length must have 1 to 8 bytes, not {size}"));
    }
    let behind = at + size;
    if let Some(Arg::Str(text)) = args.get(2) {
        let text = String::from_utf8_lossy(text).into_owned();
        let offset: i64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
        let offset = match text.starts_with(['+', '-']) {
            true if behind.checked_add(offset).is_some_and(|at| at >= 0) => Offset::Relative(offset),
            false => Offset::Absolute(offset.unsigned_abs()),
            true => return Err(format!("the offset {offset} leads before the first byte or beyond all bytes")),
        };
        args[2] = Arg::own(offset);
    }
    Ok(())
}

/// No buffer is larger.
const LARGEST: i64 = 1 << 30;

#[allow(clippy::ptr_arg, reason = "checks of arguments share one signature")]
fn check_token(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    match args.first() {
        Some(Arg::Str(name)) if name.len() != 4 => Err("the name of a token has four letters".into()),
        _ => Ok(()),
    }
}

/// The value of `Cookie: <name>=<value>` in the connection request of RDP ([MS-RDPBCGR] section 2.2.1.1); an empty name is any.
fn rdp_cookie<'a>(bytes: &'a [u8], name: &[u8]) -> Read<&'a [u8]> {
    let Some(rest) = bytes.get(RDP_HEADER..).filter(|rest| rest.len() > COOKIE.len()) else { return Read::More };
    let (word, rest) = rest.split_at(COOKIE.len());
    if !word.eq_ignore_ascii_case(COOKIE) {
        return Read::Never;
    }
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    let rest = rest.get(blanks..).unwrap_or_default();
    let Some(equals) = memchr::memchr3(b'=', b'\r', b'\n', rest) else {
        return if name.is_empty() || rest.len() <= name.len() { Read::More } else { Read::Never };
    };
    let (found, value) = rest.split_at(equals);
    if !value.starts_with(b"=") || !name.is_empty() && !found.eq_ignore_ascii_case(name) {
        return Read::Never;
    }
    let value = value.get(1..).unwrap_or_default();
    match memchr::memchr(b'\r', value).map(|end| value.split_at(end)) {
        None | Some((_, [_])) => Read::More,
        Some((value, [_, b'\n', ..])) => Read::Found(value),
        Some(_) => Read::Never,
    }
}

/// The headers of TPKT and X.224 before the cookie.
const RDP_HEADER: usize = 11;
const COOKIE: &[u8] = b"Cookie:";

#[cfg(test)]
mod tests {
    use super::*;

    const RDP: &[u8] = b"\x03\0\0\x2c\x27\xe0\0\0\0\0\0Cookie: mstshash=user1\r\n\x01\0";

    #[test]
    fn cookies_of_rdp() {
        assert_eq!(rdp_cookie(RDP, b"mstshash"), Read::Found(&b"user1"[..]));
        assert_eq!(rdp_cookie(RDP, b"MSTSHASH"), Read::Found(&b"user1"[..]));
        assert_eq!(rdp_cookie(RDP, b""), Read::Found(&b"user1"[..]));
        assert_eq!(rdp_cookie(RDP, b"msts"), Read::Never);
        assert_eq!(rdp_cookie(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", b""), Read::Never);
        let end = RDP.len() - 2;
        for length in 0..end {
            assert_eq!(rdp_cookie(&RDP[..length], b"mstshash"), Read::More, "{length}");
        }
    }

    #[test]
    fn digits() {
        assert_eq!(hexadecimal(b"0000001f"), Some(31));
        assert_eq!(hexadecimal(b"ffffffff"), Some(u32::MAX));
        assert_eq!(hexadecimal(b"0000 01f"), None);
    }
}
