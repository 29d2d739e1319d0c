//! HTTP/2 connections of both sides: no input panics, no split of it changes what is said and answered, and what is held keeps within
//! the budget.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Instant;
use terse_http::h2::{Code, Connection, Event, Limits, PREFACE};
use terse_message::{Request, Response};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, input)) = input.split_first() else { return };
    let is_server = choice & 1 == 0;
    let step = usize::from(choice >> 1) + 1;
    let whole = run(input, is_server, input.len().max(1));
    let split = run(input, is_server, step);
    assert_eq!(whole, split, "in steps of {step}");
});

const EMPTY_SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// What is said of the input, the data of all streams, and the output.
fn run(input: &[u8], is_server: bool, step: usize) -> (Vec<Event>, Vec<Vec<u8>>, Vec<u8>) {
    let limits = Limits { stream_window: 1000, head_bytes: 500, block_bytes: 2000, concurrent_streams: 5, ..Limits::default() };
    let mut connection = if is_server { Connection::server(limits) } else { Connection::client(limits) };
    let now = Instant::now();
    let start = [if is_server { PREFACE } else { b"" }, EMPTY_SETTINGS].concat();
    let mut events = Vec::new();
    feed(&mut connection, &start, now, &mut events);
    if !is_server {
        for method in [&b"GET"[..], b"HEAD", b"POST"] {
            let mut request = Request::default();
            request.fields.push(b"Host", b"h");
            request.set_method(method);
            request.set_target(b"/");
            connection.send_request(&request, b"http", None, method != b"POST").expect("a stream is free");
        }
    }
    input.chunks(step).for_each(|piece| feed(&mut connection, piece, now, &mut events));
    let data = (0..16).map(|id| connection.data(id).to_vec()).collect::<Vec<_>>();
    assert!(data.iter().map(Vec::len).sum::<usize>() <= limits.receive_budget as usize);
    let output = connection.output().to_vec();
    for id in 0..16 {
        connection.consume(id, 1 << 20);
        connection.release(id, Code::CANCEL);
    }
    assert!(connection.open_streams() == 0 || events.iter().any(|event| matches!(event, Event::Request { id: 16.., .. } | Event::TooLarge { id: 16.., .. })));
    (events, data, output)
}

fn feed(connection: &mut Connection, mut input: &[u8], now: Instant, events: &mut Vec<Event>) {
    loop {
        let (used, event) = connection.receive(input, now);
        input = &input[used..];
        match event {
            None => break,
            // A frame may be told in parts.
            Some(Event::Data { end: false, .. }) => continue,
            Some(Event::Request { id, .. }) => {
                let mut request = Request::default();
                connection.take_request(&mut request);
                assert!(!request.method().is_empty() && !request.target().is_empty());
                let mut lines = Vec::new();
                request.fields.write_to(&mut lines);
                assert!(!lines.windows(2).any(|pair| pair[0] != b'\r' && pair[1] == b'\n'));
                if id % 4 == 1 {
                    let mut response = Response::default();
                    response.status = 200;
                    connection.send_response(id, &response, false);
                    connection.send_data(id, b"some data", id % 8 == 1);
                }
            }
            Some(_) => {}
        }
        events.extend(event);
    }
    assert!(input.is_empty());
}
