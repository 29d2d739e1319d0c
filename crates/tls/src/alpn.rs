//! Application protocols (RFC 7301), in the form in which TLS carries them: a length and a name each.

/// The protocols of a list `h2,http/1.1`.
///
/// # Errors
/// A name that is empty or longer than 255 bytes.
pub fn parse(list: &str) -> Result<Vec<Box<str>>, String> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let check = |name: &str| match name.len() {
        1..=255 => Ok(name.into()),
        _ => Err(format!("'{name}' is not the name of a protocol: it has 1 to 255 bytes")),
    };
    list.split(',').map(check).collect()
}

/// Encodes the names as on the wire.
pub(crate) fn wire<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in names {
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes
}

/// Whether HTTP/1 can be spoken under that name: under any but those of HTTP's other versions. Private names mean anything
/// that both ends agree on, which is HTTP/1 here as in HAProxy.
fn is_http1(name: &str) -> bool {
    !OTHERS.contains(&name) && !["h2-", "h3-", "hq-", "spdy/"].iter().any(|begin| name.starts_with(begin))
}

/// Whether HTTP is spoken under that name.
pub fn is_http(name: &str) -> bool {
    name == "h2" || is_http1(name)
}

/// Protocols that are offered to clients where the configuration names none.
pub(crate) const USUAL: [&str; 2] = ["h2", "http/1.1"];

const OTHERS: &[&str] = &["h2", "h2c", "h3"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_lengths_and_names() {
        let names = parse("h2,http/1.1").unwrap();
        assert_eq!(wire(names.iter().map(|name| &**name)), b"\x02h2\x08http/1.1");
        assert_eq!(parse("").unwrap().len(), 0);
        assert!(["http/1.1", "http/1.0", "mine", "hquery", "h2o"].into_iter().all(is_http1));
        assert!(!["h2", "h2c", "h2-14", "h3", "h3-29", "hq-interop", "spdy/3.1"].into_iter().any(is_http1));
        assert!(parse("h2,").is_err() && parse(&"x".repeat(256)).is_err());
    }
}
