use super::*;
use crate::io::{Transport, Wheel};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::cell::Cell;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use tokio::runtime::Builder;

const FRAMINGS: [Outgoing; 3] = [Outgoing::Plain, Outgoing::Chunked { trailers: false }, Outgoing::Chunked { trailers: true }];
const LENGTHS: [usize; 6] = [0, 1, COPIED, COPIED + 1, ENOUGH, 100_000];
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
/// Bytes before the message.
const UNCOUNTED: u64 = 3;

/// The result of a message.
struct Sent {
    /// The received bytes, by writes where the socket keeps them apart.
    received: Vec<Vec<u8>>,
    /// The sender's count.
    written: u64,
}

/// Sends a message over a socket of a kind, with a buffer of so many bytes.
fn send(kind: SocketType, buffer: usize, framing: Outgoing, waits: &[u8], parts: &[&[u8]], last: &[u8]) -> Sent {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::NONBLOCK, None).unwrap();
    set_socket_send_buffer_size(&ours, buffer).unwrap();
    let reader = read_all(theirs.into());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let written = runtime.block_on(async {
        let mut transport = Transport::Unix(tokio::net::UnixStream::from_std(ours.into()).unwrap());
        let (mut out, timer, count) = (waits.to_vec(), Wheel::new().timer(), Cell::new(0));
        let mut sender = Sender::new(transport.split().1, &mut out, &timer, None, &count);
        (sender.framing, sender.uncounted) = (framing, UNCOUNTED);
        for part in parts {
            sender.send(part).await.unwrap();
        }
        let mut trailers = Fields::default();
        trailers.push(b"Sum", b"1");
        sender.finish_with(last, &trailers).await.unwrap();
        assert!(sender.out.is_empty());
        let written = sender.written;
        assert_eq!(count.get(), written - UNCOUNTED.min(written));
        written
    });
    Sent { received: reader.join().unwrap(), written }
}

fn read_all(socket: UnixStream) -> JoinHandle<Vec<Vec<u8>>> {
    socket.set_nonblocking(false).unwrap();
    std::thread::spawn(move || {
        let (mut received, mut buffer) = (Vec::new(), vec![0; 1 << 18]);
        while let n @ 1.. = io::Read::read(&mut &socket, &mut buffer).unwrap() {
            received.push(buffer[..n].to_vec());
        }
        received
    })
}

/// The bytes of a message.
fn expected(framing: Outgoing, waits: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut message = waits.to_vec();
    let is_chunked = framing != Outgoing::Plain;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let start = if is_chunked { format!("{:x}\r\n", part.len()) } else { String::new() };
        message.extend([start.as_bytes(), part, if is_chunked { b"\r\n" } else { b"" }].concat());
    }
    message.extend_from_slice(match framing {
        Outgoing::Plain | Outgoing::Frames { .. } => b"",
        Outgoing::Chunked { trailers: false } => b"0\r\n\r\n",
        Outgoing::Chunked { trailers: true } => b"0\r\nSum: 1\r\n\r\n",
    });
    message
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8).collect()
}

#[test]
fn all_arrives_however_little_the_socket_takes() {
    for framing in FRAMINGS {
        for (first, last) in LENGTHS.into_iter().flat_map(|first| LENGTHS.map(|last| (body(first), body(last)))) {
            let sent = send(SocketType::STREAM, 1, framing, HEAD, &[&first], &last);
            let expected = expected(framing, HEAD, &[&first, &last]);
            let what = format!("{framing:?}, {} and {} bytes", first.len(), last.len());
            assert!(sent.received.concat() == expected, "{what}");
            assert_eq!(sent.written, expected.len() as u64, "{what}");
        }
    }
}

#[test]
fn the_last_part_and_the_end_leave_together() {
    for framing in FRAMINGS {
        for waits in [HEAD, &body(ENOUGH - 1)] {
            for last in LENGTHS.map(body) {
                let sent = send(SocketType::SEQPACKET, 1 << 20, framing, waits, &[], &last);
                let lengths: Vec<usize> = sent.received.iter().map(Vec::len).collect();
                assert!(sent.received == [expected(framing, waits, &[&last])], "{framing:?}, {} bytes: {lengths:?}", last.len());
            }
        }
    }
}
