//! The HTTP/1 codec: it never panics, what it understands it understands the same way again, and no split of the input changes
//! what it says. What HAProxy's reading takes is, as it goes on, the same message by the RFC's.

#![no_main]

use libfuzzer_sys::fuzz_target;
use terse_http::h1::{ChunkDecoder, MAX_FIELDS, Parsed, Reading, Step, Targets, encode};
use terse_http::h1::{parse_request, parse_request_with, parse_response};
use terse_message::{Conformance, Known, Malformed, Request, Response, Version};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, input)) = input.split_first() else { return };
    match choice % 3 {
        0 => {
            request(input);
            as_haproxy(input);
        }
        1 => response(input, if choice & 4 == 0 { b"GET" } else { b"HEAD" }),
        _ => chunks(input, usize::from(choice) / 3 + 1),
    }
});

fn request(input: &[u8]) {
    let mut request = Request::default();
    let Ok(Parsed::Complete(length)) = parse_request(input, &mut request) else { return };
    for end in 0..length {
        let early = parse_request(&input[..end], &mut Request::default());
        assert_eq!(early, Ok(Parsed::Partial), "{end} of {length} bytes of {}", input.escape_ascii());
    }
    let (mut wire, mut again) = (Vec::new(), Request::default());
    encode::request_head(&request, encode::request_version(&request, false), encode::Connection::Implied, &mut wire);
    assert_eq!(parse_request(&wire, &mut again), Ok(Parsed::Complete(wire.len())), "{}", wire.escape_ascii());
    assert_eq!((again.method(), again.target(), again.body), (request.method(), request.target(), request.body));
    assert!(again.fields.iter().eq(request.fields.iter()));
}

fn as_haproxy(input: &[u8]) {
    let (mut request, mut strict) = (Request::default(), Request::default());
    let reading = Reading { targets: Targets::Strict, conformance: Conformance::HAProxy };
    let Ok(Parsed::Complete(length)) = parse_request_with(input, &mut request, reading) else {
        // Whatever the RFC's reading takes, HAProxy's takes.
        assert!(!matches!(parse_request(input, &mut strict), Ok(Parsed::Complete(_))), "{}", input.escape_ascii());
        return;
    };
    for end in 0..length {
        let early = parse_request_with(&input[..end], &mut Request::default(), reading);
        assert_eq!(early, Ok(Parsed::Partial), "{end} of {length} bytes of {}", input.escape_ascii());
    }
    let (mut wire, mut again) = (Vec::new(), Request::default());
    encode::request_head(&request, encode::request_version(&request, true), encode::Connection::Implied, &mut wire);
    let read = parse_request(&wire, &mut again);
    // The host that HTTP/1.1 wants and this request lacked is one field more.
    if request.fields.len() == MAX_FIELDS && !request.fields.has(Known::Host) && read.is_err() {
        assert_eq!(read, Err(Malformed::TooManyFields));
        return;
    }
    assert_eq!(read, Ok(Parsed::Complete(wire.len())), "{}", wire.escape_ascii());
    assert_eq!((again.method(), again.body), (request.method(), request.body));
    assert!(!again.must_close);
    let chunked = request.fields.has(Known::TransferEncoding);
    assert_eq!(again.version == Version::Http10, request.version == Version::Http10 && !chunked);
    // A target that names an empty host goes without it.
    if again.target() != request.target() {
        assert!(request.target().windows(4).any(|w| w == b":///" || w == b"://?") || request.target().ends_with(b"://"));
        assert_eq!(request.fields.first(Known::Host), Some(&b""[..]));
    }
    if !request.fields.has(Known::Host) && again.version == Version::Http11 {
        assert_eq!(again.fields.first(Known::Host), Some(&b""[..]));
        again.fields.remove_known(Known::Host);
    }
    assert!(again.fields.iter().eq(request.fields.iter()));
}

fn response(input: &[u8], method: &[u8]) {
    let mut response = Response::default();
    let Ok(Parsed::Complete(length)) = parse_response(input, method, &mut response) else { return };
    for end in 0..length {
        let early = parse_response(&input[..end], method, &mut Response::default());
        assert_eq!(early, Ok(Parsed::Partial), "{end} of {length} bytes of {}", input.escape_ascii());
    }
    let (mut wire, mut again) = (Vec::new(), Response::default());
    encode::response_head(&response, response.version, encode::Connection::Implied, &mut wire);
    assert_eq!(parse_response(&wire, method, &mut again), Ok(Parsed::Complete(wire.len())), "{}", wire.escape_ascii());
    assert_eq!((again.status, again.body), (response.status, response.body));
    assert!(again.fields.iter().eq(response.fields.iter()));
}

fn chunks(input: &[u8], step: usize) {
    let whole = decode(input, input.len().max(1));
    let split = decode(input, step);
    assert_eq!(whole, split, "in steps of {step}: {}", input.escape_ascii());
}

/// The data, whether the body ended, and the trailers; of input that comes in pieces.
fn decode(input: &[u8], step: usize) -> Result<(Vec<u8>, bool, Vec<u8>), Malformed> {
    let (mut decoder, mut data) = (ChunkDecoder::default(), Vec::new());
    for piece in input.chunks(step) {
        let mut rest = piece;
        loop {
            let (used, found) = decoder.step(rest)?;
            match found {
                Step::Data(range) => data.extend_from_slice(&rest[range]),
                Step::More => break,
                Step::End => return Ok((data, true, decoder.trailers().to_vec())),
            }
            rest = &rest[used..];
        }
    }
    Ok((data, decoder.is_done(), decoder.trailers().to_vec()))
}
