//! Messages through both versions as they are on the wire.

use crate::cases::Pairs;
use std::time::Instant;
use terse_http::h1::{Parsed, encode, head::parse_trailers, parse_request, parse_response};
use terse_http::h2::{Connection, Event, Limits, PREFACE};
use terse_message::{BodyLength, Fields, Persistence, Request, Response};

/// A message that is forwarded, or the reason why it is not.
pub(crate) type Became<T> = Result<T, String>;

const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A request of HTTP/2 as it goes to a server of HTTP/1, in lines. `ends` where no body follows.
pub(crate) fn request_to_http1(pairs: &Pairs, ends: bool) -> Became<Vec<String>> {
    let request = read_request(&literal(pairs), ends)?;
    let bytes = write_request(request.clone());
    // The next reader finds the same message, and no other after it.
    let mut read = Request::default();
    assert_eq!(parse_request(&bytes, &mut read), Ok(Parsed::Complete(bytes.len())), "{}", bytes.escape_ascii());
    assert_eq!((read.method(), read.target()), (request.method(), request.target()));
    assert_eq!((read.body, read.must_close), (request.body, false));
    // From there to HTTP/2 and back, it is still the same.
    assert_eq!(write_request(read_request(&encode_request(read), ends)?), bytes, "{}", bytes.escape_ascii());
    Ok(lines(&bytes))
}

/// A request of HTTP/1 as it goes to a server of HTTP/2.
pub(crate) fn request_to_http2(head: &[u8]) -> Became<Pairs> {
    let mut request = Request::default();
    match parse_request(head, &mut request) {
        Ok(Parsed::Complete(length)) => assert_eq!(length, head.len()),
        Ok(Parsed::Partial) => return Err("no end".to_owned()),
        Err(malformed) => return Err(malformed.name().to_owned()),
    }
    let ends = request.body == BodyLength::None;
    let block = encode_request(request);
    // A server of ours takes it.
    let read = read_request(&block, ends).expect("a request");
    let bytes = write_request(read);
    assert_eq!(parse_request(&bytes, &mut Request::default()), Ok(Parsed::Complete(bytes.len())), "{}", bytes.escape_ascii());
    Ok(decode(&block))
}

/// A response of HTTP/2 as it goes to a client of HTTP/1.
pub(crate) fn response_to_http1(pairs: &Pairs, method: &str) -> Became<Vec<String>> {
    let response = read_response(&literal(pairs), method)?;
    let mut written = response.clone();
    if written.body == BodyLength::Framed {
        written.fields.push(b"Transfer-Encoding", b"chunked");
    }
    let mut bytes = Vec::new();
    encode::response_head(&written, written.version, encode::Connection::Implied, &mut bytes);
    let mut read = Response::default();
    assert_eq!(parse_response(&bytes, method.as_bytes(), &mut read), Ok(Parsed::Complete(bytes.len())), "{}", bytes.escape_ascii());
    assert_eq!((read.status, read.body, read.must_close), (response.status, response.body, false));
    Ok(lines(&bytes))
}

/// A response of HTTP/1 as it goes to a client of HTTP/2.
pub(crate) fn response_to_http2(head: &[u8], method: &str) -> Became<Pairs> {
    let mut response = Response::default();
    match parse_response(head, method.as_bytes(), &mut response) {
        Ok(Parsed::Complete(length)) => assert_eq!(length, head.len()),
        Ok(Parsed::Partial) => return Err("no end".to_owned()),
        Err(malformed) => return Err(malformed.name().to_owned()),
    }
    Persistence::take(&mut response.fields, response.version);
    let mut connection = server(&literal(&crate::cases::start(method)), true).0;
    connection.wrote(connection.output().len());
    if !connection.send_response(1, &response, false) {
        return Err("not sent".to_owned());
    }
    let block = block_of(connection.output());
    read_response(&block, method).expect("a response");
    Ok(decode(&block))
}

/// Fields after a body of HTTP/2 as they are forwarded after chunks.
pub(crate) fn trailers_to_http1(pairs: &Pairs) -> Became<Vec<String>> {
    let mut connection = server(&literal(&crate::cases::start("POST")), false).0;
    match receive(&mut connection, &frame(END_STREAM, &literal(pairs))) {
        Some(Event::Trailers { .. }) => {}
        Some(Event::Reset { .. }) => return Err("refused".to_owned()),
        other => panic!("{other:?}"),
    }
    let mut bytes = Vec::new();
    connection.take_trailers(1).expect("trailers").write_to(&mut bytes);
    bytes.extend_from_slice(b"\r\n");
    assert_eq!(parse_trailers(&bytes, &mut Fields::default()), Ok(()));
    Ok(lines(&bytes))
}

/// Fields after chunks as they are forwarded after a body of HTTP/2.
pub(crate) fn trailers_to_http2(head: &[u8]) -> Became<Pairs> {
    let mut trailers = Fields::default();
    parse_trailers(head, &mut trailers).map_err(|malformed| malformed.name().to_owned())?;
    let mut connection = server(&literal(&crate::cases::start("GET")), true).0;
    let mut response = Response::default();
    response.status = 200;
    assert!(connection.send_response(1, &response, false));
    connection.wrote(connection.output().len());
    assert!(connection.send_trailers(1, &trailers));
    Ok(decode(&block_of(connection.output())))
}

/// Fields as the corpus has them.
pub(crate) fn listed(pairs: Pairs) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("{} = {}", name.escape_ascii(), value.escape_ascii())).collect()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
    assert_eq!(lines.split_off(lines.len() - 2), ["", ""]);
    assert!(lines.iter().all(|line| !line.is_empty() && !line.contains(['\r', '\n', '\0'])), "{lines:?}");
    lines
}

fn write_request(mut request: Request) -> Vec<u8> {
    if request.body == BodyLength::Framed {
        request.fields.push(b"Transfer-Encoding", b"chunked");
    }
    let mut bytes = Vec::new();
    encode::request_head(&request, encode::request_version(&request, false), encode::Connection::Implied, &mut bytes);
    bytes
}

/// The block of a request that came by HTTP/1.
fn encode_request(mut request: Request) -> Vec<u8> {
    Persistence::take(&mut request.fields, request.version);
    let mut connection = Connection::client(Limits::default());
    connection.wrote(connection.output().len());
    connection.send_request(&request, b"https", None, true).expect("a stream is free");
    block_of(connection.output())
}

fn read_request(block: &[u8], ends: bool) -> Became<Request> {
    let (mut connection, event) = server(block, ends);
    match event {
        Some(Event::Request { .. }) => {
            let mut request = Request::default();
            connection.take_request(&mut request);
            Ok(request)
        }
        Some(Event::Malformed { malformed, .. }) => Err(malformed.name().to_owned()),
        other => panic!("{other:?}"),
    }
}

fn read_response(block: &[u8], method: &str) -> Became<Response> {
    let mut connection = Connection::client(Limits::default());
    let mut request = Request::default();
    request.fields.push(b"Host", b"a:443");
    request.set_method(method.as_bytes());
    request.set_target(if method == "CONNECT" { b"a:443" } else { b"/" });
    connection.send_request(&request, b"https", None, true).expect("a stream is free");
    assert_eq!(receive(&mut connection, SETTINGS), Some(Event::Settings));
    match receive(&mut connection, &frame(0, block)) {
        Some(Event::Response { .. } | Event::Interim { .. }) => {
            let mut response = Response::default();
            connection.take_response(&mut response);
            Ok(response)
        }
        Some(Event::Reset { by_peer: false, .. }) => Err("refused".to_owned()),
        other => panic!("{other:?}"),
    }
}

/// A server with a stream opened by a head, and the event of it.
fn server(block: &[u8], ends: bool) -> (Connection, Option<Event>) {
    let mut connection = Connection::server(Limits::default());
    assert_eq!(receive(&mut connection, &[PREFACE, SETTINGS].concat()), Some(Event::Settings));
    let event = receive(&mut connection, &frame(if ends { END_STREAM } else { 0 }, block));
    (connection, event)
}

fn receive(connection: &mut Connection, bytes: &[u8]) -> Option<Event> {
    let (used, event) = connection.receive(bytes, Instant::now());
    assert_eq!(used, bytes.len());
    event
}

fn frame(flags: u8, block: &[u8]) -> Vec<u8> {
    let length = (block.len() as u32).to_be_bytes();
    [&length[1..], &[HEADERS, flags | END_HEADERS], &1u32.to_be_bytes(), block].concat()
}

/// The block of the last frame of an output, which has a head.
fn block_of(mut output: &[u8]) -> Vec<u8> {
    let mut block = None;
    while let Some((&[a, b, c, kind, ..], rest)) = output.split_first_chunk::<9>() {
        let (payload, more) = rest.split_at(u32::from_be_bytes([0, a, b, c]) as usize);
        block = (kind == HEADERS).then(|| payload.to_vec());
        output = more;
    }
    block.expect("a head")
}

/// Fields as a block, each written out.
fn literal(pairs: &Pairs) -> Vec<u8> {
    let text = |text: &[u8]| {
        assert!(text.len() < 127);
        [&[text.len() as u8], text].concat()
    };
    pairs.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

fn decode(block: &[u8]) -> Pairs {
    hpack::Decoder::new().decode(block).expect("a block")
}
