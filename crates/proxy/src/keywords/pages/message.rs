//! Error files: a response as it would be sent, head and body (HAProxy's manual, "errorfile").
//!
//! They are written by hand, so lines may end in LF alone. A contradictory message is refused when it is read, not when it is
//! sent.

use crate::reply::Answer;
use std::sync::Arc;

/// The answer that a file holds; an empty file is no answer.
pub(crate) fn parse(bytes: &[u8]) -> Result<Answer, String> {
    if bytes.is_empty() {
        return Ok(Answer::nothing());
    }
    if bytes.len() > MOST_BYTES {
        return Err(format!("larger than {MOST_BYTES} bytes"));
    }
    let (lines, body) = split(bytes)?;
    let [first, fields @ ..] = &lines[..] else { return Err("there is no status line".into()) };
    let (status, reason) = status_line(first)?;
    let mut answer =
        Answer { status, stands_for: None, reason: Arc::from(reason), fields: Vec::new(), body: Arc::from(body), close: false };
    for (number, line) in fields.iter().enumerate() {
        let (name, value) = field(line).ok_or_else(|| format!("line {} is not a header field", number + 2))?;
        add(&mut answer, name, value)?;
    }
    if matches!(status, 204 | 304) && !answer.body.is_empty() {
        return Err(format!("a response with status {status} has no body"));
    }
    Ok(answer)
}

/// The lines of the head, and the body after the empty line.
fn split(bytes: &[u8]) -> Result<(Vec<&[u8]>, &[u8]), String> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = &rest[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        rest = &rest[end + 1..];
        if line.is_empty() {
            return Ok((lines, rest));
        }
        if lines.len() == MOST_FIELDS {
            return Err(format!("more than {MOST_FIELDS} header fields"));
        }
        lines.push(line);
    }
    Err("there is no empty line behind the head".into())
}

/// `HTTP/1.0 503 Service Unavailable`
fn status_line(line: &[u8]) -> Result<(u16, &str), String> {
    let invalid = || format!("'{}' is not a status line such as 'HTTP/1.0 503 Service Unavailable'", line.escape_ascii());
    let text = std::str::from_utf8(line).ok().filter(|text| !text.contains(|c: char| c.is_ascii_control())).ok_or_else(invalid)?;
    let (version, rest) = text.split_once(' ').ok_or_else(invalid)?;
    let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let known = version.strip_prefix("HTTP/").is_some_and(|v| matches!(v.as_bytes(), [b'0'..=b'9', b'.', b'0'..=b'9']));
    match status.parse() {
        Ok(number @ 200..=599) if known && status.len() == 3 => Ok((number, reason)),
        Ok(number @ 100..=199) if known => Err(format!("status {number} cannot be the one of an error page")),
        _ => Err(invalid()),
    }
}

/// A field's name and value (RFC 9110 section 5.1).
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    let text = |b: &u8| *b == b'\t' || !b.is_ascii_control();
    (!name.is_empty() && name.iter().all(token) && value.iter().all(text)).then_some((name, value))
}

/// Takes a field over, unless it determines the length of the body or the end of the connection.
fn add(answer: &mut Answer, name: &[u8], value: &[u8]) -> Result<(), String> {
    if name.eq_ignore_ascii_case(b"content-length") {
        let length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
        if length != Some(answer.body.len()) {
            let (said, real) = (value.escape_ascii(), answer.body.len());
            return Err(format!("payload size does not match the announced content-length ({real} != {said})"));
        }
    } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
        return Err("chunk-encoded payload not supported".into());
    } else if name.eq_ignore_ascii_case(b"connection") {
        answer.close |= value.split(|b| *b == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"));
    } else {
        answer.fields.push((Arc::from(name), value.to_vec()));
    }
    Ok(())
}

/// Limit of a page's size: pages for people are no larger, and each worker holds the parts that it sends.
const MOST_BYTES: usize = 1 << 20;

/// HAProxy's `tune.http.maxhdr` when it is not set.
const MOST_FIELDS: usize = 101;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_write_them() {
        let page = parse(
            b"HTTP/1.0 503 Service Unavailable\nCache-Control: no-cache\nConnection: Keep-Alive, Close\nX:\n\n<h1>Sorry</h1>\n",
        )
        .unwrap();
        assert_eq!(
            (page.status, &*page.reason, page.close, &*page.body),
            (503, "Service Unavailable", true, &b"<h1>Sorry</h1>\n"[..])
        );
        let fields: Vec<_> = page.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(fields, [(&b"Cache-Control"[..], &b"no-cache"[..]), (b"X", b"")]);
        let page = parse(b"HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno").unwrap();
        assert_eq!((page.status, &*page.reason, page.fields.len(), &*page.body), (404, "", 0, &b"no"[..]));
        assert!(parse(b"").unwrap().is_nothing());
    }

    #[test]
    fn what_contradicts_itself() {
        for (text, reason) in [
            ("\n", "no status line"),
            ("HTTP/1.0 503 Sorry\n", "no empty line"),
            ("<html>\n\n", "not a status line"),
            ("HTTP/1.0 5030 Sorry\n\n", "not a status line"),
            ("HTTP/x 503 Sorry\n\n", "not a status line"),
            ("HTTP/1.0 100 Go on\n\n", "cannot be the one"),
            ("HTTP/1.0 503 Sorry\nno colon\n\n", "line 2 is not"),
            ("HTTP/1.0 503 Sorry\nA: b\nC : d\n\n", "line 3 is not"),
            ("HTTP/1.0 503 Sorry\nA: b\n c\n\n", "line 3 is not"),
            ("HTTP/1.0 503 Sorry\nContent-Length: 3\n\nab", "(2 != 3)"),
            ("HTTP/1.0 503 Sorry\nTransfer-Encoding: chunked\n\n0\n\n", "chunk-encoded"),
            ("HTTP/1.0 204 Sorry\n\nx", "no body"),
        ] {
            let said = parse(text.as_bytes()).unwrap_err();
            assert!(said.contains(reason), "{text:?}: {said}");
        }
    }
}
