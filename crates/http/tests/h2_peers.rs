//! The crate `h2`, written apart from ours, as client of our server and as server of our client, over a pipe in memory.

#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use std::time::Instant;
use terse_http::h2::hpack::Encoder;
use terse_http::h2::{Code, Connection, Event, Limits, PREFACE};
use terse_message::{Fields, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Requests of each session, by the lengths of their bodies: of each frame and window size, one is on either side of it.
const BODIES: [usize; 8] = [0, 1, 100, 16_383, 16_385, 65_536, 100_000, 1_000_000];

/// Moves bytes between a connection and a pipe, and gives events to `take` until that returns that it is done, or the pipe
/// ends.
async fn drive(connection: &mut Connection, mut pipe: DuplexStream, mut take: impl FnMut(&mut Connection, Option<Event>) -> bool) {
    let mut buffer = [0; 4096];
    loop {
        while take(connection, None) {
            if connection.output().is_empty() {
                break;
            }
            pipe.write_all(connection.output()).await.expect("the pipe is open");
            connection.wrote(connection.output().len());
        }
        if connection.is_finished() {
            return;
        }
        let Ok(length @ 1..) = pipe.read(&mut buffer).await else { return };
        let mut rest = &buffer[..length];
        loop {
            let (used, event) = connection.receive(rest, Instant::now());
            rest = &rest[used..];
            match event {
                Some(event) => take(connection, Some(event)),
                None => break,
            };
        }
    }
}

/// Bodies on their way out: stream, bytes, count of sent bytes.
type Sending = Vec<(u32, Vec<u8>, usize)>;

/// Sends as much as the windows allow; the body ends with trailers.
fn send_all(connection: &mut Connection, sending: &mut Sending) {
    sending.retain_mut(|(id, body, sent)| {
        *sent += connection.send_data(*id, &body[*sent..], false);
        let more = *sent < body.len();
        if !more {
            let mut trailers = Fields::default();
            trailers.push(b"X-Length", body.len().to_string().as_bytes());
            assert!(connection.send_trailers(*id, &trailers));
        }
        more
    });
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(std::time::Duration::from_secs(60), test).await.expect("the session ends");
    });
}

#[test]
fn our_server_echoes_to_another_client() {
    run(async {
        let (ours, theirs) = tokio::io::duplex(10_000);
        let server = tokio::task::spawn_local(async move {
            let mut connection = Connection::server(Limits::default());
            let (mut bodies, mut sending): (Vec<(u32, Vec<u8>)>, Sending) = (Vec::new(), Vec::new());
            drive(&mut connection, ours, |connection, event| {
                match event {
                    Some(Event::Request { id, end }) => {
                        let mut request = Request::default();
                        connection.take_request(&mut request);
                        assert_eq!(request.target(), format!("/{}", id / 2).as_bytes());
                        assert_eq!(request.fields.get(b"x-custom"), Some(&b"value"[..]));
                        assert!(!end);
                        bodies.push((id, Vec::new()));
                    }
                    Some(Event::Data { id, end }) => {
                        let body = &mut bodies.iter_mut().find(|(of, _)| *of == id).unwrap().1;
                        let before = body.len();
                        connection.take_data(id, body);
                        connection.consume(id, body.len() - before);
                        if end {
                            let mut response = Response::default();
                            response.status = 200;
                            response.fields.push(b"Content-Length", body.len().to_string().as_bytes());
                            assert!(connection.send_response(id, &response, false));
                            sending.push((id, std::mem::take(body), 0));
                        }
                    }
                    Some(Event::Failed(failure)) => panic!("{failure:?}"),
                    _ => {}
                }
                send_all(connection, &mut sending);
                true
            })
            .await;
            assert_eq!(bodies.len(), BODIES.len());
        });
        let (mut client, connection) = h2::client::handshake(theirs).await.unwrap();
        tokio::task::spawn_local(connection);
        let mut exchanges = Vec::new();
        for (i, length) in BODIES.into_iter().enumerate() {
            client = client.ready().await.unwrap();
            let request = http::Request::post(format!("http://h/{i}")).header("x-custom", "value").body(()).unwrap();
            let (response, mut body) = client.send_request(request, false).unwrap();
            body.send_data(Bytes::from(text(length)), true).unwrap();
            exchanges.push(tokio::task::spawn_local(async move {
                let response = response.await.unwrap();
                assert_eq!(
                    (response.status().as_u16(), response.headers()["content-length"].to_str().unwrap()),
                    (200, &*length.to_string())
                );
                let (mut body, mut got) = (response.into_body(), Vec::new());
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    body.flow_control().release_capacity(data.len()).unwrap();
                    got.extend_from_slice(&data);
                }
                assert!(got == text(length));
                assert_eq!(body.trailers().await.unwrap().unwrap()["x-length"], length.to_string());
            }));
        }
        for exchange in exchanges {
            exchange.await.unwrap();
        }
        drop(client);
        server.await.unwrap();
    });
}

#[test]
fn our_client_asks_another_server() {
    run(async {
        let (ours, theirs) = tokio::io::duplex(10_000);
        let server = tokio::task::spawn_local(async move {
            let mut connection =
                h2::server::Builder::new().initial_window_size(20_000).handshake::<_, Bytes>(theirs).await.unwrap();
            while let Some(exchange) = connection.accept().await {
                let Ok((request, mut respond)) = exchange else { return };
                tokio::task::spawn_local(async move {
                    assert_eq!(request.uri().host(), Some("h"));
                    let (mut body, mut got) = (request.into_body(), Vec::new());
                    while let Some(data) = body.data().await {
                        let data = data.unwrap();
                        body.flow_control().release_capacity(data.len()).unwrap();
                        got.extend_from_slice(&data);
                    }
                    assert_eq!(body.trailers().await.unwrap().unwrap()["x-length"], got.len().to_string());
                    let mut answer = respond.send_response(http::Response::new(()), got.is_empty()).unwrap();
                    if !got.is_empty() {
                        answer.send_data(Bytes::from(got), true).unwrap();
                    }
                });
            }
        });
        let mut connection = Connection::client(Limits::default());
        let (mut sending, mut got, mut done): (Sending, Vec<(u32, Vec<u8>)>, usize) = (Vec::new(), Vec::new(), 0);
        for length in BODIES {
            let mut request = Request::default();
            request.fields.push(b"Host", b"h");
            request.set_method(b"POST");
            request.set_target(b"/");
            let id = connection.send_request(&request, b"http", None, false).unwrap();
            sending.push((id, text(length), 0));
            got.push((id, Vec::new()));
        }
        drive(&mut connection, ours, |connection, event| {
            match event {
                Some(Event::Response { id, end }) => {
                    let mut response = Response::default();
                    connection.take_response(&mut response);
                    assert_eq!((response.status, end), (200, id == 1));
                    done += usize::from(end);
                }
                Some(Event::Data { id, end }) => {
                    let body = &mut got.iter_mut().find(|(of, _)| *of == id).unwrap().1;
                    let before = body.len();
                    connection.take_data(id, body);
                    connection.consume(id, body.len() - before);
                    done += usize::from(end);
                }
                Some(Event::Failed(failure)) => panic!("{failure:?}"),
                Some(Event::Reset { .. }) => panic!("{event:?}"),
                _ => {}
            }
            send_all(connection, &mut sending);
            if done == BODIES.len() {
                (1..16).step_by(2).for_each(|id| connection.release(id, Code::NO_ERROR));
                connection.goaway(Code::NO_ERROR);
            }
            true
        })
        .await;
        for ((_, body), length) in got.iter().zip(BODIES) {
            assert!(*body == text(length));
        }
        server.await.unwrap();
    });
}

#[test]
fn names_by_index_and_coded_text_are_read_alike() {
    // `:method GET`, `:scheme http`, `:path /`, an authority, and each name of the static table after the pseudo-headers,
    // but for Transfer-Encoding.
    let mut block = b"\x82\x86\x84\x41\x01h".to_vec();
    let names: Vec<u8> = (15..=61).filter(|index| *index != 57).collect();
    for index in &names {
        let value = match index {
            28 => "0".to_owned(),
            38 => "h".to_owned(),
            other => other.to_string(),
        };
        block.extend_from_slice(&[0x0f, index - 15, value.len() as u8]);
        block.extend_from_slice(value.as_bytes());
    }
    // Every byte that a value may hold, by the code.
    let all: Vec<u8> = (0x21..=0xff).filter(|byte| *byte != 0x7f).collect();
    for piece in all.chunks(8) {
        // Bytes with long codes among many with a short one: the encoder takes the shorter form.
        Encoder::default().field(b"x-piece", &[piece, &b"e".repeat(200)].concat(), &mut block);
    }
    let length = (block.len() as u32).to_be_bytes();
    let bytes = [PREFACE, b"\0\0\0\x04\0\0\0\0\0", &length[1..], b"\x01\x05\0\0\0\x01", &block].concat();

    let mut ours = Vec::new();
    let limits = Limits { head_bytes: 64 * 1024, ..Limits::default() };
    let mut connection = Connection::server(limits);
    let (used, _) = connection.receive(&bytes, Instant::now());
    let (_, event) = connection.receive(&bytes[used..], Instant::now());
    assert_eq!(event, Some(Event::Request { id: 1, end: true }));
    let mut request = Request::default();
    connection.take_request(&mut request);
    let pairs = request.fields.iter().filter(|(name, _)| *name != b"host").map(|(name, value)| (name.to_vec(), value.to_vec()));
    ours.extend(pairs);
    assert_eq!(ours.iter().filter(|(name, _)| name != b"x-piece").count(), names.len() - 1);

    run(async move {
        let (mut pipe, theirs) = tokio::io::duplex(100_000);
        pipe.write_all(&bytes).await.unwrap();
        let mut connection = h2::server::Builder::new().max_header_list_size(1 << 20).handshake::<_, Bytes>(theirs).await.unwrap();
        let (request, _) = connection.accept().await.unwrap().unwrap();
        let mut theirs: Vec<_> =
            request.headers().iter().map(|(name, value)| (name.as_str().as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        theirs.retain(|(name, _)| name != b"host");
        // A map has no order between names.
        theirs.sort();
        ours.sort();
        assert_eq!(ours, theirs);
    });
}
