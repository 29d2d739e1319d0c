//! Checks over HTTP/2, of a server that speaks it without TLS.

use super::*;
use terse_http::h2::{self, Code, Connection, Event};
use terse_message::Request;

/// A request that has come.
struct Asked {
    stream: u32,
    head: Request,
    scheme: Vec<u8>,
    body: Vec<u8>,
}

/// Outcome of a check, by the lines of a backend, of a server that answers each request by `act`, with a body where
/// that gives one.
async fn checked_by(lines: &str, act: impl Fn(&mut Connection, &Asked) -> Option<Vec<u8>>) -> LastCheck {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let lines = lines.replace("PORT", &port.to_string());
    let farm = farm(&format!("option httpchk\n{lines}\nserver s 127.0.0.1:{port} check check-proto h2"));
    let server = farm.servers()[0].clone();
    tokio::select! {
        outcome = made(&farm, &server, limits(5000, None), &Nowhere) => outcome,
        () = serve_http2(listener, act) => unreachable!("it stays"),
    }
}

async fn serve_http2(listener: TcpListener, act: impl Fn(&mut Connection, &Asked) -> Option<Vec<u8>>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut connection = Connection::server(h2::Limits::default());
        let (mut asked, mut body) = (None, None);
        loop {
            let mut bytes = Vec::new();
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                break;
            }
            let mut rest = &bytes[..];
            while let (used, Some(event)) = connection.receive(rest, std::time::Instant::now()) {
                rest = &rest[used..];
                let ended = match event {
                    Event::Request { id, end } => {
                        let mut head = Request::default();
                        connection.take_request(&mut head);
                        asked = Some(Asked { stream: id, head, scheme: connection.scheme().to_vec(), body: Vec::new() });
                        end
                    }
                    Event::Data { id, end } => {
                        connection.take_data(id, &mut asked.as_mut().unwrap().body);
                        end
                    }
                    _ => false,
                };
                if ended {
                    body = act(&mut connection, asked.as_ref().unwrap());
                }
            }
            if let (Some(asked), Some(left)) = (&asked, &mut body) {
                let taken = connection.send_data(asked.stream, left, true);
                left.drain(..taken);
            }
            if stream.write_all(connection.output()).await.is_err() {
                break;
            }
            connection.wrote(usize::MAX);
        }
    }
}

fn response(status: u16, fields: &[(&str, &str)]) -> Response {
    let mut response = Response::default();
    response.status = status;
    fields.iter().for_each(|(name, value)| response.fields.push(name.as_bytes(), value.as_bytes()));
    response
}

/// Answers with a status, a field and a body.
fn answer(status: u16, body: &'static str) -> impl Fn(&mut Connection, &Asked) -> Option<Vec<u8>> {
    move |connection, asked| {
        connection.send_response(asked.stream, &response(status, &[("X-Mood", "good")]), body.is_empty());
        Some(body.into()).filter(|body: &Vec<u8>| !body.is_empty())
    }
}

#[tokio::test]
async fn answers_are_judged_as_those_of_http1() {
    for (lines, status, body, expected) in [
        ("", 200, "", (CheckStatus::L7Ok, 200, "")),
        ("", 204, "", (CheckStatus::L7Ok, 204, "")),
        // There are no reasons.
        ("", 500, "sorry", (CheckStatus::L7Status, 500, "")),
        ("http-check disable-on-404", 404, "", (CheckStatus::L7OkStopping, 404, "")),
        ("http-check expect string fine", 200, "all fine", (CheckStatus::L7Ok, 200, "")),
        ("http-check expect string fine", 200, "sick", (CheckStatus::L7Response, 200, "HTTP content check did not match")),
        ("http-check expect ! string fine", 200, "all fine", (CheckStatus::L7Response, 200, "HTTP check matched unwanted content")),
        (
            "http-check expect string fine",
            200,
            "",
            (CheckStatus::L7Response, 200, "HTTP content check could not find a response body"),
        ),
        ("http-check expect hdr name x-mood value good", 200, "", (CheckStatus::L7Ok, 200, "")),
        ("http-check expect hdr name x-mood value bad comment m", 200, "", (CheckStatus::L7Status, 200, " comment: m")),
        ("http-check expect on-error \"mood %[res.hdr(x-mood)]\" status 201", 200, "", (CheckStatus::L7Status, 200, "mood good")),
        ("http-check expect status 200\nhttp-check expect string fine", 200, "fine", (CheckStatus::L7Ok, 200, "")),
    ] {
        assert_eq!(told(&checked_by(lines, answer(status, body)).await), expected, "{lines} {status} {body}");
    }
}

#[tokio::test]
async fn requests_say_what_lines_tell() {
    let lines = "http-check send-state\nhttp-check send meth PUT uri /a?b ver HTTP/1.1 hdr Host h.test hdr X-Y z body hello";
    let outcome = checked_by(lines, |connection, asked| {
        let (head, fields) = (&asked.head, &asked.head.fields);
        assert_eq!((head.method(), head.target(), &*asked.scheme), (&b"PUT"[..], &b"/a?b"[..], &b"http"[..]));
        assert_eq!(head.authority(), Some(&b"h.test"[..]));
        assert_eq!((fields.get(b"x-y"), fields.get(b"content-length")), (Some(&b"z"[..]), Some(&b"5"[..])));
        assert!(fields.get(b"x-haproxy-server-state").unwrap().starts_with(b"UP"));
        assert_eq!((fields.get(b"connection"), &*asked.body), (None, &b"hello"[..]));
        connection.send_response(asked.stream, &response(200, &[]), true);
        None
    });
    assert_eq!(told(&outcome.await), (CheckStatus::L7Ok, 200, ""));
}

#[tokio::test]
async fn what_comes_before_and_behind_an_answer_does_not_count() {
    let outcome = checked_by("http-check expect string body", |connection, asked| {
        for status in [100, 103] {
            connection.send_response(asked.stream, &response(status, &[]), false);
        }
        connection.send_response(asked.stream, &response(200, &[]), false);
        connection.send_data(asked.stream, b"body", false);
        connection.send_trailers(asked.stream, &response(200, &[("x", "y")]).fields);
        // Without an error.
        connection.goaway(Code::NO_ERROR);
        None
    });
    assert_eq!(told(&outcome.await), (CheckStatus::L7Ok, 200, ""));
}

#[tokio::test]
async fn each_connection_has_its_own_request() {
    let lines = "http-check connect default\nhttp-check send uri /1\nhttp-check expect string one\n\
                 http-check connect port PORT proto h2\nhttp-check send uri /2\nhttp-check expect string two";
    let outcome = checked_by(lines, |connection, asked| {
        assert!(asked.head.authority().unwrap().starts_with(b"127.0.0.1:"));
        connection.send_response(asked.stream, &response(200, &[]), false);
        Some(if asked.head.target() == b"/1" { b"one".to_vec() } else { b"two".to_vec() })
    });
    assert_eq!(told(&outcome.await), (CheckStatus::L7Ok, 200, ""));
}

#[tokio::test]
async fn of_a_long_body_the_beginning_is_judged() {
    let long = |lines| {
        checked_by(lines, |connection, asked| {
            connection.send_response(asked.stream, &response(200, &[]), false);
            Some([&[b'x'; 300_000][..], b"end"].concat())
        })
    };
    assert_eq!(told(&long("http-check expect rstring x{1000}").await), (CheckStatus::L7Ok, 200, ""));
    assert_eq!(told(&long("http-check expect ! string end").await), (CheckStatus::L7Ok, 200, ""));
    let outcome = long("http-check expect string end").await;
    assert_eq!(told(&outcome), (CheckStatus::L7Response, 200, "HTTP content check did not match"));
}

#[tokio::test]
async fn what_breaks_off_is_no_answer() {
    type Act = fn(&mut Connection, &Asked);
    let cases: [(Act, u16, &str); 6] = [
        (
            |connection, asked| connection.reset(asked.stream, Code::INTERNAL_ERROR),
            0,
            "HTTP/2 stream reset by server: INTERNAL_ERROR",
        ),
        (
            |connection, asked| {
                connection.send_response(asked.stream, &response(200, &[]), false);
                connection.send_data(asked.stream, b"half", false);
                connection.reset(asked.stream, Code::CANCEL);
            },
            200,
            "HTTP/2 stream reset by server: CANCEL",
        ),
        (
            |connection, _| connection.abort(Code::ENHANCE_YOUR_CALM, "enough"),
            0,
            "HTTP/2 connection ended by server: ENHANCE_YOUR_CALM",
        ),
        // Not a number.
        (
            |connection, asked| {
                connection.send_response(asked.stream, &response(200, &[("content-length", "x")]), true);
            },
            0,
            "invalid HTTP/2 answer: PROTOCOL_ERROR",
        ),
        // Less than announced.
        (
            |connection, asked| {
                connection.send_response(asked.stream, &response(200, &[("content-length", "9")]), false);
                connection.send_data(asked.stream, b"half", true);
            },
            200,
            "invalid HTTP/2 answer: PROTOCOL_ERROR",
        ),
        // Too many.
        (
            |connection, asked| {
                for _ in 0..40 {
                    connection.send_response(asked.stream, &response(102, &[]), false);
                }
            },
            0,
            "invalid HTTP/2 answer: ENHANCE_YOUR_CALM",
        ),
    ];
    for (act, code, info) in cases {
        let outcome = checked_by("http-check expect string whole", |connection, asked| {
            act(connection, asked);
            None
        });
        assert_eq!(told(&outcome.await), (CheckStatus::L7Response, code, info));
    }
    // A head that meets the expectation is enough.
    let outcome = checked_by("http-check expect status 200", |connection, asked| {
        connection.send_response(asked.stream, &response(200, &[]), false);
        connection.reset(asked.stream, Code::CANCEL);
        None
    });
    assert_eq!(told(&outcome.await), (CheckStatus::L7Ok, 200, ""));
}

#[tokio::test]
async fn other_servers_are_told_apart() {
    for (answer, info) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1 answer to HTTP/2 request"),
        ("220 ready\r\n", "invalid HTTP/2: a frame above MAX_FRAME_SIZE"),
        ("", "TCPCHK got an empty response at step 1"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let farm = farm(&format!("option httpchk\nhttp-check expect status 200\nserver s {at} check proto h2"));
        let server = farm.servers()[0].clone();
        let spoken = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_buf(&mut Vec::new()).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            stream
        };
        let (_stream, outcome) = tokio::join!(spoken, made(&farm, &server, limits(5000, None), &Nowhere));
        assert_eq!(told(&outcome), (CheckStatus::L7Response, 0, info));
    }
}

/// Version in use, by the arguments of a server's line and of a step.
#[tokio::test]
async fn a_version_is_told_by_the_step_then_by_the_line() {
    for (words, step, is_http2) in [
        ("", "", false),
        ("proto h2", "", true),
        ("check-proto h2", "", true),
        ("proto h2 check-proto h1", "", false),
        ("proto h1 check-proto h2", "", true),
        ("proto h2", "connect", false),
        ("proto h2", "connect default", true),
        ("check-proto h2", "connect default proto h1", false),
        ("", "connect proto h2", true),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let step = if step.is_empty() { "" } else { &*format!("http-check {step}\n") };
        let farm = farm(&format!("option httpchk\n{step}server s {} check {words}", listener.local_addr().unwrap()));
        let server = farm.servers()[0].clone();
        let first = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0; 3];
            stream.read_exact(&mut first).await.unwrap();
            first
        };
        let (first, _) = tokio::join!(first, made(&farm, &server, limits(5000, None), &Nowhere));
        assert_eq!(&first == b"PRI", is_http2, "{words} {step}");
    }
}
