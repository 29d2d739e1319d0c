//! Responses of protocols: functions that read the received part of a response, and decide the outcome of the check.
//! The outcome does not depend on how the bytes were split on their way.

use super::{CheckStatus, LastCheck};

/// An answer that a script waits for.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Reader of the answer.
    pub(super) read: Reader,
    /// Status when no answer comes in time.
    pub(super) late: CheckStatus,
    /// Status when the connection ends before it.
    pub(super) missing: CheckStatus,
}

/// Outcome of the bytes so far, or `None` if more are needed; `true`: no more will come.
pub(crate) type Reader = fn(&[u8], bool) -> Option<LastCheck>;

impl Answer {
    /// An answer of a protocol of applications.
    pub(crate) const fn of_application(read: Reader) -> Answer {
        Answer { read, late: CheckStatus::L7Timeout, missing: CheckStatus::L7Response }
    }

    /// An answer of TLS.
    pub(crate) const fn of_tls() -> Answer {
        Answer { read: tls, late: CheckStatus::L6Timeout, missing: CheckStatus::L6Response }
    }
}

/// Redis: the answer to `PING`.
pub(crate) fn redis(bytes: &[u8], last: bool) -> Option<LastCheck> {
    match line(bytes, last)? {
        b"+PONG" => Some(said(CheckStatus::L7Ok, 0, b"Redis server is ok")),
        line => Some(said(CheckStatus::L7Status, 0, line)),
    }
}

/// SPOP: an agent's HELLO (SPOE, section 3.2.5), which holds its version.
pub(crate) fn spop(bytes: &[u8], last: bool) -> Option<LastCheck> {
    let bad = |why: &[u8]| Some(said(CheckStatus::L7Response, 0, why));
    let length = match bytes.first_chunk::<4>() {
        Some(length) => u32::from_be_bytes(*length) as usize,
        None => return if last { bad(BAD_FRAME) } else { None },
    };
    let frame = match bytes.get(4..).and_then(|rest| rest.get(..length)) {
        Some(frame) => frame,
        None if last || length > MOST_FRAME_BYTES => return bad(BAD_FRAME),
        None => return None,
    };
    // The last fragment, of no stream and no frame.
    let Some(mut items) = frame.strip_prefix(&[AGENT_HELLO, 0, 0, 0, 1, 0, 0]) else { return bad(BAD_FRAME) };
    let mut version = None;
    while !items.is_empty() {
        let Some((name, value)) = spop_item(&mut items) else { return bad(BAD_FRAME) };
        if name == b"version" {
            version = value;
        }
    }
    match version.and_then(|version| version.trim_ascii().strip_prefix(b"2.")) {
        Some(_) => Some(said(CheckStatus::L7Ok, 0, b"SPOA server is ok")),
        None => bad(b"unsupported version"),
    }
}

/// A name, and its value where that is a text (SPOE, section 3.1).
fn spop_item<'a>(items: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let name = spop_text(items)?;
    let (kind, rest) = items.split_first()?;
    *items = rest;
    let fixed = match kind & 0x0f {
        0 | 1 => 0,
        2..=5 => {
            spop_number(items)?;
            0
        }
        6 => 4,
        7 => 16,
        8 | 9 => return Some((name, Some(spop_text(items)?))),
        _ => return None,
    };
    *items = items.get(fixed..)?;
    Some((name, None))
}

/// Bytes after their length.
fn spop_text<'a>(items: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(spop_number(items)?).ok()?;
    let (text, rest) = items.split_at_checked(length)?;
    *items = rest;
    Some(text)
}

/// A number of one to ten bytes: four bits and seven more each, while the highest bit says so.
fn spop_number(items: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = items.split_first()?;
    *items = rest;
    let mut number = u64::from(first);
    if first < 0xf0 {
        return Some(number);
    }
    for shift in (4..64).step_by(7) {
        let (&byte, rest) = items.split_first()?;
        *items = rest;
        number = number.checked_add(u64::from(byte).checked_shl(shift)?)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

const BAD_FRAME: &[u8] = b"invalid frame received";
const AGENT_HELLO: u8 = 101;
/// Frame size that agents are offered.
const MOST_FRAME_BYTES: usize = 16_380;

/// SMTP: a reply, all its lines (RFC 5321 section 4.2.1).
pub(crate) fn smtp(bytes: &[u8], last: bool) -> Option<LastCheck> {
    let mut rest = bytes;
    loop {
        let line = line(rest, last)?;
        let (code, text) = line.split_at_checked(3).unwrap_or((line, b""));
        let Some(number) = number(code).filter(|_| matches!(text.first(), None | Some(b' ' | b'-'))) else {
            return Some(said(CheckStatus::L7Response, 0, line));
        };
        let text = text.get(1..).unwrap_or_default().trim_ascii_start();
        match line.get(3) {
            _ if !(200..300).contains(&number) => return Some(said(CheckStatus::L7Status, number, text)),
            Some(b'-') => rest = rest.get(rest.iter().position(|&byte| byte == b'\n')? + 1..)?,
            _ => return Some(said(CheckStatus::L7Ok, number, text)),
        }
    }
}

/// LDAP: the answer to a bind (RFC 4511 section 4.2.2), in BER.
pub(crate) fn ldap(bytes: &[u8], _: bool) -> Option<LastCheck> {
    match bind_result(bytes) {
        Ok(0) => Some(said(CheckStatus::L7Ok, 0, b"Success")),
        Ok(code) => {
            let info = b"See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9";
            Some(said(CheckStatus::L7Status, code.into(), info))
        }
        Err(Flaw::Short) => None,
        Err(Flaw::Wrong) => Some(said(CheckStatus::L7Response, 0, b"Not LDAPv3 protocol")),
    }
}

/// PostgreSQL: the answer to a startup message, a request for a password or an error.
pub(crate) fn pgsql(bytes: &[u8], last: bool) -> Option<LastCheck> {
    let unknown = || Some(said(CheckStatus::L7Status, 0, b"PostgreSQL unknown error"));
    let (kind, rest) = bytes.split_first()?;
    match kind {
        b'E' => {
            // The length counts itself. The first field is the severity: a letter and a text.
            let (length, fields) = rest.split_first_chunk()?;
            let fields = fields.get(..(u32::from_be_bytes(*length) as usize).saturating_sub(4)).or(last.then_some(fields))?;
            Some(said(CheckStatus::L7Response, 0, fields.get(1..).unwrap_or_default()))
        }
        b'R' => match rest.get(4..8)? {
            [0, 0, 0, 0 | 2..=7 | 9 | 10] => Some(said(CheckStatus::L7Ok, 0, b"PostgreSQL server is ok")),
            _ => unknown(),
        },
        _ => unknown(),
    }
}

/// MySQL: the greeting of version 9 or 10, which holds the server's version.
pub(crate) fn mysql_greeting(bytes: &[u8], _: bool) -> Option<LastCheck> {
    Some(match packet(bytes)?.0 {
        [9 | 10, version @ ..] => said(CheckStatus::L7Ok, 0, version),
        [0xff, error @ ..] => mysql_error(error),
        _ => said(CheckStatus::L7Response, 0, b"no greeting of MySQL"),
    })
}

/// MySQL: the answer to a login, after the greeting. The greeting's details stay.
pub(crate) fn mysql_login(bytes: &[u8], _: bool) -> Option<LastCheck> {
    let (_, rest) = packet(bytes)?;
    Some(match packet(rest)?.0 {
        [0xff, error @ ..] => mysql_error(error),
        _ => said(CheckStatus::L7Ok, 0, b""),
    })
}

fn mysql_error(error: &[u8]) -> LastCheck {
    let (code, text) = error.split_first_chunk().unwrap_or((&[0, 0], b""));
    said(CheckStatus::L7Status, u16::from_le_bytes(*code), text)
}

/// TLS, or SSL before it: the record of an alert or of a handshake.
fn tls(bytes: &[u8], _: bool) -> Option<LastCheck> {
    match bytes.first()? {
        0x15 | 0x16 => Some(said(CheckStatus::L6Ok, 0, b"")),
        _ => Some(said(CheckStatus::L6Response, 0, b"no record of TLS")),
    }
}

/// Flaw of a message.
enum Flaw {
    /// It is not whole yet.
    Short,
    /// It is another message.
    Wrong,
}

/// The result code of message 1, the answer to a bind.
fn bind_result(bytes: &[u8]) -> Result<u8, Flaw> {
    let message = element(bytes, 0x30)?;
    let response = element(after(message, b"\x02\x01\x01")?, 0x61)?;
    after(response, b"\x0a\x01")?.first().copied().ok_or(Flaw::Short)
}

/// Bytes after the wanted prefix.
fn after<'a>(bytes: &'a [u8], wanted: &[u8]) -> Result<&'a [u8], Flaw> {
    match bytes.strip_prefix(wanted) {
        Some(rest) => Ok(rest),
        None if wanted.starts_with(bytes) => Err(Flaw::Short),
        None => Err(Flaw::Wrong),
    }
}

/// Bytes after a tag and a length of up to four bytes.
fn element(bytes: &[u8], tag: u8) -> Result<&[u8], Flaw> {
    let rest = after(bytes, &[tag])?;
    match rest.split_first() {
        None => Err(Flaw::Short),
        Some((0..=0x7f, content)) => Ok(content),
        Some((length @ 0x81..=0x84, content)) => content.get(usize::from(length & 0x7f)..).ok_or(Flaw::Short),
        Some(_) => Err(Flaw::Wrong),
    }
}

/// A whole packet of MySQL, without its length and its number, and the bytes after it.
fn packet(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([low, middle, high, _], rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes([*low, *middle, *high, 0]) as usize)
}

/// The first line, without its end.
fn line(bytes: &[u8], last: bool) -> Option<&[u8]> {
    let line = match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => &bytes[..end],
        None if last => bytes,
        None => return None,
    };
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

fn number(digits: &[u8]) -> Option<u16> {
    let all = digits.len() == 3 && digits.iter().all(u8::is_ascii_digit);
    all.then(|| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}

/// Outcome with the server's text up to its end, a zero; an unprintable byte becomes a dot.
fn said(status: CheckStatus, code: u16, words: &[u8]) -> LastCheck {
    let words = words.split(|&byte| byte == 0).next().unwrap_or_default();
    let words = String::from_utf8_lossy(&words[..words.len().min(MOST_INFO_BYTES)]);
    let info = words.trim_end().chars().map(|word| if word.is_control() { '.' } else { word }).collect();
    LastCheck { status, code, info, ..LastCheck::default() }
}

/// Limit of the bytes of a server's text that are shown, as in HAProxy.
const MOST_INFO_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcome of an answer by a reader; it must be the same wherever the answer is cut.
    fn read(reader: Reader, answer: &[u8]) -> (CheckStatus, u16, String) {
        let whole = reader(answer, true).unwrap();
        for cut in 0..answer.len() {
            if let Some(early) = reader(&answer[..cut], false) {
                assert_eq!(early, whole, "after {cut} bytes");
            }
            // No end of a connection is too short to be read.
            let _ = reader(&answer[..cut], true);
        }
        (whole.status, whole.code, whole.info)
    }

    fn told(status: CheckStatus, code: u16, info: &str) -> (CheckStatus, u16, String) {
        (status, code, info.to_owned())
    }

    #[test]
    fn agents_of_spoe_say_their_version() {
        let frame = |body: &[u8]| [&(body.len() as u32).to_be_bytes()[..], body].concat();
        let hello = |items: &[u8]| frame(&[&[101, 0, 0, 0, 1, 0, 0][..], items].concat());
        let good = hello(b"\x07version\x08\x032.0\x0emax-frame-size\x03\xfc\xf0\x06\x0ccapabilities\x08\0");
        assert_eq!(read(spop, &good), told(CheckStatus::L7Ok, 0, "SPOA server is ok"));
        let bad = |why| told(CheckStatus::L7Response, 0, why);
        assert_eq!(read(spop, &hello(b"\x07version\x08\x031.0")), bad("unsupported version"));
        for answer in [
            frame(b""),
            frame(b"\x65\0\0\0\0\0\0"),
            frame(b"\x66\0\0\0\x01\0\0"),
            hello(b"\x07version\x08\x092.0"),
            hello(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            b"\xff\xff\xff\xff".to_vec(),
        ] {
            assert_eq!(read(spop, &answer), bad("invalid frame received"), "{answer:?}");
        }
        assert_eq!(spop(&good[..9], false), None);
    }

    #[test]
    fn redis_answers_a_line() {
        assert_eq!(read(redis, b"+PONG\r\n"), told(CheckStatus::L7Ok, 0, "Redis server is ok"));
        assert_eq!(read(redis, b"-NOAUTH no\r\n$1"), told(CheckStatus::L7Status, 0, "-NOAUTH no"));
        assert_eq!(redis(b"+PONG", false), None);
    }

    #[test]
    fn smtp_answers_lines_with_a_code() {
        assert_eq!(read(smtp, b"221 mail closing\r\n"), told(CheckStatus::L7Ok, 221, "mail closing"));
        assert_eq!(read(smtp, b"250-mail\r\n250-SIZE\r\n250  HELP\r\n"), told(CheckStatus::L7Ok, 250, "HELP"));
        assert_eq!(read(smtp, b"250-mail\n250 OK\n"), told(CheckStatus::L7Ok, 250, "OK"));
        assert_eq!(read(smtp, b"248\r\n"), told(CheckStatus::L7Ok, 248, ""));
        assert_eq!(read(smtp, b"421 Try again\r\n"), told(CheckStatus::L7Status, 421, "Try again"));
        assert_eq!(read(smtp, b"I'm none\r\n"), told(CheckStatus::L7Response, 0, "I'm none"));
        assert_eq!(read(smtp, b"2200 a\r\n"), told(CheckStatus::L7Response, 0, "2200 a"));
        assert_eq!(smtp(b"250-mail\r\n", false), None);
        assert_eq!(smtp(b"250-mail\r\n250", false), None);
    }

    #[test]
    fn ldap_answers_a_bind_with_lengths_short_or_long() {
        let refused = "See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9";
        for (answer, outcome) in [
            (&b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00"[..], told(CheckStatus::L7Ok, 0, "Success")),
            (b"\x30\x84\0\0\0\x10\x02\x01\x01\x61\x84\0\0\0\x07\x0a\x01\x00\x04\x00", told(CheckStatus::L7Ok, 0, "Success")),
            (b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x31\x04\x00\x04\x00", told(CheckStatus::L7Status, 49, refused)),
            (b"\x30\x0c\x02\x01\x01\x60\x07\x0a\x01\x00", told(CheckStatus::L7Response, 0, "Not LDAPv3 protocol")),
            (b"\x30\x80\x02\x01\x01", told(CheckStatus::L7Response, 0, "Not LDAPv3 protocol")),
        ] {
            assert_eq!(read(ldap, answer), outcome);
        }
    }

    #[test]
    fn pgsql_asks_for_a_password_or_says_no() {
        assert_eq!(read(pgsql, b"R\0\0\0\x08\0\0\0\x05salt"), told(CheckStatus::L7Ok, 0, "PostgreSQL server is ok"));
        assert_eq!(read(pgsql, b"R\0\0\0\x08\0\0\0\x63"), told(CheckStatus::L7Status, 0, "PostgreSQL unknown error"));
        assert_eq!(read(pgsql, b"E\0\0\0\x0bSFATAL\0"), told(CheckStatus::L7Response, 0, "FATAL"));
        assert_eq!(read(pgsql, b"E\0\0\0\0S"), told(CheckStatus::L7Response, 0, ""));
        assert_eq!(read(pgsql, b"HTTP/1.1 400"), told(CheckStatus::L7Status, 0, "PostgreSQL unknown error"));
    }

    #[test]
    fn mysql_greets_with_its_version_and_lets_in_or_not() {
        assert_eq!(read(mysql_greeting, b"\x09\0\0\0\x0a8.0.19\0x"), told(CheckStatus::L7Ok, 0, "8.0.19"));
        assert_eq!(read(mysql_greeting, b"\x06\0\0\0\xff\x10\x04Too"), told(CheckStatus::L7Status, 1040, "Too"));
        assert_eq!(read(mysql_greeting, b"\x02\0\0\0\x01\x02"), told(CheckStatus::L7Response, 0, "no greeting of MySQL"));
        assert_eq!(read(mysql_login, b"\x01\0\0\0\x0a\x03\0\0\x02\0\0\0"), told(CheckStatus::L7Ok, 0, ""));
        assert_eq!(read(mysql_login, b"\x01\0\0\0\x0a\x05\0\0\x02\xff\xe3\x04No"), told(CheckStatus::L7Status, 1251, "No"));
        assert_eq!(mysql_login(b"\0\0\0\0\x01\0\0\x02\xff", false).unwrap().code, 0);
        assert_eq!(mysql_login(b"\0\0\0\0\xff\xff\xff\x02\xff", true), None);
    }

    #[test]
    fn tls_answers_a_record() {
        assert_eq!(read(tls, b"\x15\x03\x00\x00\x02"), told(CheckStatus::L6Ok, 0, ""));
        assert_eq!(read(tls, b"HTTP/1.1"), told(CheckStatus::L6Response, 0, "no record of TLS"));
    }

    #[test]
    fn hostile_words_are_cut_and_cleaned() {
        let said = redis(&[b"-\x1b[2J".as_slice(), &[b'x'; 4000]].concat(), true).unwrap();
        assert!(said.info.starts_with("-.[2Jx") && said.info.len() == MOST_INFO_BYTES, "{}", said.info);
    }
}
