//! Reading a request's head.

use std::borrow::Cow;

/// A request's head, in place.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    /// True for HTTP/1.1; else HTTP/1.0.
    pub(super) modern: bool,
    fields: Vec<(&'a str, &'a [u8])>,
}

/// Length of a request's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BodyLength {
    Bytes(u64),
    Chunked,
}

/// Meaning of the first bytes of a connection.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// A head of so many bytes.
    Head(Request<'a>, usize),
    /// The beginning of one.
    Partial,
    /// No request.
    Invalid,
}

/// Looks for a head at the beginning of the bytes that were read.
pub(super) fn find(bytes: &[u8]) -> Found<'_> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MOST];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => {
            let (Some(method), Some(target)) = (parsed.method, parsed.path) else { return Found::Invalid };
            let fields = parsed.headers.iter().map(|f| (f.name, f.value)).collect();
            Found::Head(Request { method, target, modern: parsed.version == Some(1), fields }, length)
        }
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MOST => Found::Partial,
        _ => Found::Invalid,
    }
}

impl<'a> Request<'a> {
    /// A head that was read elsewhere, as text.
    pub(super) fn of(head: &'a terse_message::Request) -> Request<'a> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let fields = head.fields.iter().map(|(name, value)| (text(name), value)).collect();
        Request { method: text(head.method()), target: text(head.target()), modern: true, fields }
    }

    /// The first field of that name (in small letters), as text; empty if it is not text.
    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(std::str::from_utf8(value).unwrap_or_default())
    }

    /// True if no field is present that a whole, unconditional answer must look at: none of those that begin with `If-`, and no
    /// Range.
    pub(super) fn is_unconditional(&self) -> bool {
        !self
            .fields
            .iter()
            .any(|(n, _)| n.eq_ignore_ascii_case("range") || n.get(..3).is_some_and(|p| p.eq_ignore_ascii_case("if-")))
    }

    /// The path without the query.
    pub(super) fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The parameters of the query, `+` and `%` undone.
    pub(super) fn query(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (unescape(name), unescape(value))
        })
    }

    /// True if the connection ends with the answer.
    pub(super) fn wants_close(&self) -> bool {
        let connection = self.field("connection").unwrap_or_default();
        if self.modern { has_token(connection, "close") } else { !has_token(connection, "keep-alive") }
    }

    /// The body's length; none when it cannot be known.
    pub(super) fn body(&self) -> Option<BodyLength> {
        if let Some(coding) = self.field("transfer-encoding") {
            return coding.trim().eq_ignore_ascii_case("chunked").then_some(BodyLength::Chunked);
        }
        match self.field("content-length") {
            Some(length) => length.trim().parse().ok().map(BodyLength::Bytes),
            None => Some(BodyLength::Bytes(0)),
        }
    }

    /// The head as it came, one line a field.
    pub(super) fn lines(&self) -> String {
        let mut out = format!("{} {} HTTP/1.{}\n", self.method, self.target, u8::from(self.modern));
        for (name, value) in &self.fields {
            out.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value)));
        }
        out
    }
}

fn has_token(list: &str, token: &str) -> bool {
    list.split(',').any(|element| element.trim().eq_ignore_ascii_case(token))
}

/// Undoes `+` and `%xx`; a broken escape stays as it is.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        let escaped = match (byte, more) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        if escaped.is_some() {
            rest = &more[2..];
        }
        out.push(escaped.unwrap_or(if byte == b'+' { b' ' } else { byte }));
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|d| d as u8)
}

/// More fields than any proxy adds.
const FIELDS_MOST: usize = 200;

/// More than any proxy lets pass.
const HEAD_BYTES_MOST: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths_queries_and_lengths() {
        let head = b"POST /made?a=1+2&b=%0d%zz&c HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: x, Close\r\n\r\n";
        let Found::Head(request, length) = find(head) else { panic!("not found") };
        assert_eq!((request.path(), length), ("/made", head.len()));
        let query: Vec<_> = request.query().collect();
        assert_eq!(query, [("a".into(), "1 2".into()), ("b".into(), "\r%zz".into()), ("c".into(), "".into())]);
        assert_eq!(request.body(), Some(BodyLength::Chunked));
        assert!(request.wants_close() && request.is_unconditional());
        assert!(matches!(find(b"GET / HT"), Found::Partial));
        assert!(matches!(find(b"GET\0"), Found::Invalid));
    }
}
