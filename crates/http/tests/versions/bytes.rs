//! Each byte at each place of a message.

use crate::cases::{Pairs, start};
use crate::wire;

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// RFC 9110 section 5.5.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

/// The pseudo-headers of a GET, one with another value.
fn replaced(name: &str, value: Vec<u8>) -> Pairs {
    let mut pairs = start("GET");
    let place = pairs.iter().position(|(known, _)| known == name.as_bytes()).expect("a pseudo-header");
    pairs[place].1 = value;
    pairs
}

#[test]
fn http2_takes_these_bytes_and_no_others() {
    let field = |name: Vec<u8>, value: Vec<u8>| [start("GET"), vec![(name, value)]].concat();
    type Place<'a> = (&'a str, Box<dyn Fn(u8) -> Pairs>, fn(u8) -> bool);
    let places: [Place<'_>; 8] = [
        ("name", Box::new(move |b| field(vec![b'x', b, b'y'], b"v".to_vec())), |b| is_token(b) && !b.is_ascii_uppercase()),
        ("value", Box::new(move |b| field(b"x".to_vec(), vec![b'x', b, b'y'])), is_text),
        ("value's start", Box::new(move |b| field(b"x".to_vec(), vec![b, b'y'])), |b| is_text(b) && b != b' ' && b != b'\t'),
        ("value's end", Box::new(move |b| field(b"x".to_vec(), vec![b'x', b])), |b| is_text(b) && b != b' ' && b != b'\t'),
        ("method", Box::new(|b| replaced(":method", vec![b'G', b, b'T'])), is_token),
        // RFC 3986, and the bytes that browsers send without escapes.
        ("path", Box::new(|b| replaced(":path", vec![b'/', b, b'x'])), |b| matches!(b, b'!'..=b'~') && b != b'#'),
        ("authority", Box::new(|b| replaced(":authority", vec![b'a', b, b'c'])), |b| {
            b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&b)
        }),
        ("scheme", Box::new(|b| replaced(":scheme", vec![b'h', b, b'p'])), |b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)),
    ];
    for (place, message, is_taken) in places {
        for byte in 0..=255 {
            let became = wire::request_to_http1(&message(byte), true);
            assert_eq!(became.is_ok(), is_taken(byte), "{place} with {}: {became:?}", byte.escape_ascii());
        }
    }
}

#[test]
fn http2_takes_these_bytes_of_responses_and_trailers() {
    for byte in 0..=255 {
        let field = (vec![b'x', byte], vec![b'v', byte, b'w']);
        let is_taken = is_token(byte) && !byte.is_ascii_uppercase();
        let response = vec![(b":status".to_vec(), b"200".to_vec()), field.clone()];
        assert_eq!(wire::response_to_http1(&response, "GET").is_ok(), is_taken, "{}", byte.escape_ascii());
        assert_eq!(wire::trailers_to_http1(&vec![field]).is_ok(), is_taken, "{}", byte.escape_ascii());
        let status = vec![(b":status".to_vec(), vec![b'2', byte, b'0'])];
        assert_eq!(wire::response_to_http1(&status, "GET").is_ok(), byte.is_ascii_digit(), "{}", byte.escape_ascii());
    }
}

#[test]
fn what_http1_takes_is_the_same_in_http2() {
    for byte in 0..=255 {
        let name = [b"GET / HTTP/1.1\r\nHost: a\r\nx", &[byte][..], b"y: v\r\n\r\n"].concat();
        let value = [b"GET / HTTP/1.1\r\nHost: a\r\nx: v", &[byte][..], b"w\r\n\r\n"].concat();
        let target = [b"GET /", &[byte][..], b"x HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let method = [b"G", &[byte][..], b"T / HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let host = [b"GET / HTTP/1.1\r\nHost: a", &[byte][..], b"c\r\n\r\n"].concat();
        let last = |message: &[u8]| wire::request_to_http2(message).map(|pairs| pairs.last().cloned().expect("a field"));
        let of = |message: &[u8], name: &[u8]| {
            let pairs = wire::request_to_http2(message).ok()?;
            pairs.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
        };
        let shown = byte.escape_ascii();
        // A colon ends the name.
        let expected = match byte {
            b':' => Some((b"x".to_vec(), b"y: v".to_vec())),
            _ => is_token(byte).then(|| (vec![b'x', byte.to_ascii_lowercase(), b'y'], b"v".to_vec())),
        };
        assert_eq!(last(&name).ok(), expected, "{shown}");
        assert_eq!(last(&value).ok(), is_text(byte).then(|| (b"x".to_vec(), vec![b'v', byte, b'w'])), "{shown}");
        let is_usual = matches!(byte, b'!'..=b'~') && byte != b'#';
        assert_eq!(of(&target, b":path"), is_usual.then(|| vec![b'/', byte, b'x']), "{shown}");
        assert_eq!(of(&method, b":method"), is_token(byte).then(|| vec![b'G', byte, b'T']), "{shown}");
        let is_name = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte);
        assert_eq!(of(&host, b":authority"), is_name.then(|| vec![b'a', byte, b'c']), "{shown}");
    }
}
