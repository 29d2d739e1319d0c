//! Answers of a server to a client whose streams have small first windows: what it may send ahead of readers.

use crate::peer::*;
use std::time::{Duration, Instant};
use terse_http::h2::{Code, Connection, Event, Limits};

const FIRST: usize = 2048;
const SHARE: usize = 48 * 1024;
const READ: usize = 65_535;

/// A client, and a server that sends as much as it may.
struct Download {
    pair: Pair,
    /// Frames that opened a stream's window.
    updates: usize,
}

impl Download {
    fn new() -> Download {
        let limits = Limits {
            stream_window: FIRST as u32,
            read_window: READ as u32,
            widest_window: 512 * 1024,
            announced_share: SHARE as u32,
            receive_budget: (1024 * 1024 + 100 * READ) as u32,
            ..Limits::default()
        };
        let (client, server, now) = (Connection::client(limits), Connection::server(Limits::default()), Instant::now());
        let mut pair = Pair { client, server, now };
        pair.ask();
        pair.answer();
        pair.ask();
        Download { pair, updates: 0 }
    }

    /// Asks, and has the head answered; gives the stream.
    fn begin(&mut self, fields: &[(&str, &str)]) -> u32 {
        let id =
            self.pair.client.send_request(&request(b"GET", b"/", &[("host", "a.test")]), b"http", None, true).expect("a stream");
        self.ask();
        assert!(self.pair.server.send_response(id, &response(200, fields), false));
        self.answer();
        id
    }

    fn ask(&mut self) {
        let sent = frames(self.pair.client.output());
        self.updates += sent.iter().filter(|(kind, _, id, _)| *kind == WINDOW_UPDATE && *id != 0).count();
        self.pair.ask();
    }

    fn answer(&mut self) -> Vec<Event> {
        let events = self.pair.answer();
        self.ask();
        events
    }

    /// Sends so many bytes at most; gives how many the windows let through.
    fn pour(&mut self, id: u32, bytes: usize) -> usize {
        let mut left = bytes;
        loop {
            let n = self.pair.server.send_data(id, &vec![b'x'; left.min(16_384)], false);
            self.answer();
            left -= n;
            if n == 0 {
                return bytes - left;
            }
        }
    }

    /// Reads all that has come on a stream.
    fn read(&mut self, id: u32) -> usize {
        let mut taken = Vec::new();
        self.pair.client.take_data(id, &mut taken);
        self.pair.client.consume(id, taken.len());
        self.ask();
        taken.len()
    }

    /// Reads a stream while it comes; gives the most that came at once.
    fn read_all(&mut self, id: u32, mut bytes: usize) -> usize {
        let mut most = 0;
        while bytes > 0 {
            let n = self.pour(id, bytes);
            assert!(n > 0, "{bytes} bytes wait for a window that does not open");
            assert_eq!(self.read(id), n);
            (bytes, most) = (bytes - n, most.max(n));
        }
        most
    }
}

#[test]
fn bodies_that_nobody_reads_hold_their_first_windows_and_a_share() {
    for fields in [&[("content-length", "2000000")][..], &[]] {
        let mut download = Download::new();
        let ids: Vec<_> = (0..100).map(|_| download.begin(fields)).collect();
        let held: usize = (0..3).flat_map(|_| ids.iter()).map(|id| download.pour(*id, 2_000_000)).sum();
        assert!(held > 100 * FIRST + SHARE / 2, "the share is not used: {held}");
        assert!(held <= 100 * FIRST + SHARE, "{held} bytes that nobody reads");
        assert_eq!(download.pair.client.unconsumed(), held);
    }
}

#[test]
fn a_reader_beside_stuck_ones_has_all_of_the_room() {
    let mut download = Download::new();
    for _ in 0..99 {
        let id = download.begin(&[("content-length", "2000000")]);
        download.pour(id, 2_000_000);
    }
    let id = download.begin(&[("content-length", "2000000")]);
    assert!(download.read_all(id, 2_000_000) >= 128 * 1024);
    assert!(download.updates < 100, "{} frames for two megabytes", download.updates);
}

/// Streams that were read, and are not any more, hold the windows that they had.
#[test]
fn a_reader_beside_streams_that_were_read_has_room() {
    let mut download = Download::new();
    let mut held = 0;
    for _ in 0..99 {
        let id = download.begin(&[]);
        download.read_all(id, 2_000_000);
        held += download.pour(id, 2_000_000);
    }
    assert!(held <= 512 * 1024 + 100 * READ, "{held} bytes that nobody reads");
    let id = download.begin(&[]);
    assert!(download.read_all(id, 2_000_000) >= READ);
}

#[test]
fn a_window_grows_to_half_of_the_budget() {
    let mut download = Download::new();
    let id = download.begin(&[]);
    assert_eq!(download.read_all(id, 8_000_000), 512 * 1024);
}

/// Where a server is far away, each window that has to be opened costs a round trip.
#[test]
fn the_only_large_body_has_its_window_before_it_is_read() {
    for fields in [&[("content-length", "50000")][..], &[]] {
        let mut download = Download::new();
        let id = download.begin(fields);
        assert_eq!(download.pour(id, 50_000), 50_000, "{fields:?}");
    }
}

#[test]
fn small_answers_and_messages_cost_no_frames() {
    let mut download = Download::new();
    for fields in [&[("content-length", "1000")][..], &[], &[("content-length", "2048")]] {
        let id = download.begin(fields);
        assert_eq!(download.pour(id, 1000), 1000);
        download.read(id);
        assert_eq!(download.updates, 0, "{fields:?}");
        download.pair.client.release(id, Code::CANCEL);
        download.ask();
    }
}

/// A stream of small messages, as gRPC has them: none ever waits for a window, and few frames open it.
#[test]
fn messages_both_ways_never_wait() {
    let mut download = Download::new();
    let stuck: Vec<_> = (0..99).map(|_| download.begin(&[])).collect();
    for id in stuck {
        download.pour(id, 2_000_000);
    }
    let id = download.begin(&[]);
    let before = download.updates;
    for message in 0..1000 {
        assert_eq!(download.pour(id, 100), 100, "message {message}");
        assert_eq!(download.read(id), 100);
        download.pair.now += Duration::from_millis(1);
    }
    assert!(download.updates - before < 20, "{} frames", download.updates - before);
}

#[test]
fn a_share_comes_back_with_the_end_of_its_answer() {
    let mut download = Download::new();
    for _ in 0..10 {
        let id = download.begin(&[("content-length", "50000")]);
        assert_eq!(download.pour(id, 49_999), 49_999);
        download.pair.client.release(id, Code::CANCEL);
        download.ask();
    }
}

#[test]
fn data_beyond_the_first_window_is_an_error_of_the_stream() {
    let mut client = Connection::client(Limits { stream_window: FIRST as u32, ..Limits::default() });
    let id = client.send_request(&request(b"GET", b"/", &[("host", "a.test")]), b"http", None, true).expect("a stream");
    client.wrote(client.output().len());
    let settings = Connection::server(Limits::default()).output().to_vec();
    let mut block = Vec::new();
    let mut encoder = terse_http::h2::hpack::Encoder::default();
    encoder.begin(&mut block);
    encoder.field(b":status", b"200", &mut block);
    let bytes = [settings, frame(HEADERS, END_HEADERS, id, &block), frame(DATA, 0, id, &[0; FIRST + 1])].concat();
    let (mut at, mut events) = (0, Vec::new());
    loop {
        let (used, event) = client.receive(&bytes[at..], Instant::now());
        at += used;
        let Some(event) = event else { break };
        events.push(event);
    }
    assert_eq!(events.last(), Some(&Event::Reset { id, code: Code::FLOW_CONTROL_ERROR, by_peer: false }));
    assert_eq!(client.failure(), None);
}
