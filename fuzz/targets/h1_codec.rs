//! The HTTP/1 codec: it never panics, what it understands it understands the same way again, and no split of the input changes
//! what it says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use terse_http::h1::{ChunkDecoder, Malformed, Parsed, Step, encode, parse_request, parse_response};
use terse_message::{Request, Response};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, input)) = input.split_first() else { return };
    match choice % 3 {
        0 => request(input),
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
    encode::request_head(&request, encode::Connection::Implied, &mut wire);
    assert_eq!(parse_request(&wire, &mut again), Ok(Parsed::Complete(wire.len())), "{}", wire.escape_ascii());
    assert_eq!((again.method(), again.target(), again.body), (request.method(), request.target(), request.body));
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
    encode::response_head(&response, encode::Connection::Implied, &mut wire);
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
