//! Lists in field values: `a, "b, c";q=1 , d` (RFC 9110 section 5.6.1).

/// The elements of a comma-separated value, blanks trimmed, empty ones left out; a comma inside a quoted string does not separate.
pub fn elements(value: &[u8]) -> Elements<'_> {
    Elements { rest: value, separator: b',' }
}

/// The parameters of an element: the same with semicolons.
pub fn parameters(value: &[u8]) -> Elements<'_> {
    Elements { rest: value, separator: b';' }
}

/// Whether any of the elements is that token, in any case.
pub fn has_token(value: &[u8], token: &[u8]) -> bool {
    elements(value).any(|e| e.eq_ignore_ascii_case(token))
}

/// See [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    separator: u8,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = element_end(self.rest, self.separator);
            let element = self.rest[..end].trim_ascii();
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !element.is_empty() {
                return Some(element);
            }
        }
        None
    }
}

fn element_end(value: &[u8], separator: u8) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (i, &b) in value.iter().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if b == separator && !quoted => return i,
            _ => {}
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_outside_quotes_only() {
        let all: Vec<_> = elements(br#" a ,, "b, \", c" ; q=1,d,"#).collect();
        assert_eq!(all, [&b"a"[..], br#""b, \", c" ; q=1"#, b"d"]);
        assert!(has_token(b"keep-alive, Upgrade", b"upgrade"));
        assert!(!has_token(b"upgraded", b"upgrade"));
        assert_eq!(elements(b" , ,").count(), 0);
    }
}
