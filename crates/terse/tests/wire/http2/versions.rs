//! The corpus of messages between versions, through the whole program: servers of HTTP/1 with clients of HTTP/2, and back.

use super::support::PATIENCE;
use super::support::proxy::listen;
use cases::{Case, Expected, Pairs};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use terse_http::h2::PREFACE;

#[path = "../../../../http/tests/versions/cases.rs"]
#[expect(dead_code, reason = "why a message is refused is told by the codec alone")]
mod cases;

const CORPUS: &str = include_str!("../../../../http/tests/versions/corpus.txt");
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
/// Kinds and flags of frames (RFC 9113 section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// A plain answer.
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A server that records the head of each connection, and answers with the bytes given for it.
struct Raw {
    address: SocketAddr,
    heads: Receiver<Vec<u8>>,
    answers: Sender<Vec<u8>>,
}

impl Raw {
    fn start() -> Raw {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heads) = channel();
        let (answers, answer) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head, mut byte) = (stream.unwrap(), Vec::new(), [0]);
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    head.push(byte[0]);
                }
                if tell.send(head).is_err() {
                    return;
                }
                let Ok(answer) = answer.recv() else { return };
                // A proxy that has seen enough may be gone.
                let _ = stream.write_all(&answer);
            }
        });
        Raw { address, heads, answers }
    }
}

/// Outcome of a client's stream.
#[derive(Debug)]
enum Told {
    Head(Pairs),
    Reset,
}

/// Opens a stream by hand on a connection of its own, and reads its outcome.
fn ask(address: SocketAddr, pairs: &Pairs, ends: bool) -> Told {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let text = |text: &[u8]| [&[u8::try_from(text.len()).unwrap()], text].concat();
    let block: Vec<u8> = pairs.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
    let frame = |kind, flags, payload: &[u8]| {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &1u32.to_be_bytes(), payload].concat()
    };
    let mut out = [PREFACE, SETTINGS, &frame(HEADERS, END_HEADERS | u8::from(ends), &block)].concat();
    if !ends {
        let length =
            pairs.iter().find(|(name, _)| name == b"content-length").and_then(|(_, value)| String::from_utf8(value.clone()).ok());
        let bytes = length.and_then(|length| length.parse().ok()).unwrap_or(5).min(100);
        out.extend(frame(DATA, END_STREAM, &vec![b'x'; bytes]));
    }
    stream.write_all(&out).unwrap();
    loop {
        let mut head = [0; 9];
        match stream.read_exact(&mut head) {
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => return Told::Reset,
            read => read.unwrap(),
        }
        let [a, b, c, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).unwrap();
        match kind {
            HEADERS => return Told::Head(hpack::Decoder::new().decode(&payload).unwrap()),
            RESET | GOAWAY => return Told::Reset,
            _ => {}
        }
    }
}

fn corpus(to_http2: bool, kinds: &[&str]) -> Vec<Case> {
    cases::read(CORPUS).into_iter().filter(|case| case.to_http2 == to_http2 && kinds.contains(&&*case.kind)).collect()
}

/// A malformed request reaches no server, and a right one reaches it in the lines that the corpus has.
#[test]
fn requests_reach_servers_as_they_must() {
    let cases = corpus(false, &["request", "post"]);
    assert!(cases.len() > 80);
    let mut wrong = Vec::new();
    for case in &cases {
        // A server of its own for each: the bytes that reach it are this case's.
        let server = Raw::start();
        let terse = listen(&format!("server one {}", server.address));
        server.answers.send(OK.to_vec()).unwrap();
        let told = ask(terse.address("web"), &case.pairs(), case.kind == "request");
        terse.end();
        let heads: Vec<String> = server.heads.try_iter().map(|head| String::from_utf8_lossy(&head).into_owned()).collect();
        let is_right = match &case.expected {
            // A body that has come whole has a length, and the case of names means nothing.
            Expected::Lines(lines) => {
                let wanted = (lines.join("\r\n") + "\r\n\r\n").to_lowercase();
                let heads: Vec<_> = heads.iter().map(|head| head.to_lowercase()).collect();
                heads == [&*wanted] || heads == [wanted.replace("transfer-encoding: chunked", "content-length: 5")]
            }
            Expected::Refused(_) => matches!(told, Told::Reset) && heads.is_empty(),
        };
        if !is_right {
            wrong.push(format!("{}: {told:?} {heads:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// A malformed response is a 502, and a right one has the fields that the corpus has.
#[test]
fn answers_reach_clients_as_they_must() {
    let cases = corpus(true, &["response"]);
    assert!(cases.len() > 4);
    let server = Raw::start();
    let terse = listen(&format!("http-reuse never\n server one {}", server.address));
    let mut wrong = Vec::new();
    for case in &cases {
        server.answers.send(case.head()).unwrap();
        let told = ask(terse.address("web"), &cases::start("GET"), true);
        server.heads.recv_timeout(PATIENCE).unwrap();
        let Told::Head(pairs) = told else { panic!("{}: {told:?}", case.name) };
        let told: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{} = {}", name.escape_ascii(), value.escape_ascii())).collect();
        let is_right = match &case.expected {
            Expected::Lines(lines) => told == *lines,
            Expected::Refused(_) => told[0] == ":status = 502",
        };
        if !is_right {
            wrong.push(format!("{}: {told:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    terse.end();
}
