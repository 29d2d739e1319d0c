//! Answers of a server of HTTP/2 that clients do not take: how much of them comes ahead, and how those of others go on beside them.

use super::super::client::{Client, request};
use super::super::support::proxy::listen;
use super::super::support::server::Server;
use super::super::support::{Terse, until};
use super::peer::{Peer, scripted};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use terse_http::h2::Limits;

/// Figures of a server that sends as much as it may.
#[derive(Default)]
struct Poured {
    /// Bytes of answers for `/stuck`, and their number.
    stuck: AtomicUsize,
    answers: AtomicUsize,
    /// The widest window of any other answer.
    widest: AtomicUsize,
    /// Messages that were sent back, and those that had to wait for a window.
    messages: AtomicUsize,
    late: AtomicUsize,
}

/// The length of each answer but those for `/echo`, which have none.
const BODY_BYTES: usize = 2 << 20;

/// The bytes of an answer that may come ahead of its reader, and of larger ones on a connection beyond that.
const FIRST_WINDOW: usize = 2048;
const ANNOUNCED: usize = 48 * 1024;

/// The least that a window has to hold for a body at full speed: a frame.
const FRAME_BYTES: usize = 16 * 1024;

/// The bytes of each answer that is taken which may come ahead.
const READ_WINDOW: usize = 65_535;

/// Streams that are stuck: one less than a connection carries.
const STUCK: usize = 99;

/// An answer on its way.
struct Answer {
    id: u32,
    is_stuck: bool,
    /// Bytes still to be sent; of an echo, those that were sent.
    bytes: usize,
    is_echo: bool,
}

impl Answer {
    fn begin(peer: &mut Peer<'_>, id: u32, poured: &Poured) -> Answer {
        let path = peer.streams[&id].path();
        let (is_echo, is_stuck) = (path == "/echo", path == "/stuck");
        let length = BODY_BYTES.to_string();
        let fields = [("content-length", &*length)];
        peer.head(id, 200, if is_echo { &[] } else { &fields }, false);
        poured.answers.fetch_add(usize::from(is_stuck), SeqCst);
        Answer { id, is_stuck, bytes: if is_echo { 0 } else { BODY_BYTES }, is_echo }
    }

    /// Sends what is there, as far as its window goes; true if that was anything.
    fn pour(&mut self, peer: &mut Peer<'_>, poured: &Poured) -> bool {
        if self.is_echo {
            return self.echo(peer, poured);
        }
        if !self.is_stuck {
            poured.widest.fetch_max(peer.codec.window(self.id), SeqCst);
        }
        let n = peer.codec.send_data(self.id, &[b'x'; 16_384][..self.bytes.min(16_384)], self.bytes <= 16_384);
        self.bytes -= n;
        if self.is_stuck {
            poured.stuck.fetch_add(n, SeqCst);
        }
        n > 0
    }

    fn echo(&mut self, peer: &mut Peer<'_>, poured: &Poured) -> bool {
        let message = peer.streams[&self.id].body[self.bytes..].to_vec();
        if message.is_empty() {
            return false;
        }
        let n = peer.codec.send_data(self.id, &message, false);
        poured.messages.fetch_add(1, SeqCst);
        poured.late.fetch_add(usize::from(n < message.len()), SeqCst);
        self.bytes += n;
        n > 0
    }
}

/// A server that sends all of its answers at a time, as far as their windows let them through.
fn pouring() -> (Server, Arc<Poured>) {
    let poured = Arc::new(Poured::default());
    let figures = poured.clone();
    let server = scripted(Limits::default(), move |peer| {
        let mut open: Vec<Answer> = Vec::new();
        while peer.turn() {
            while let Some(id) = peer.asked() {
                open.push(Answer::begin(peer, id, &poured));
            }
            let mut goes_on = true;
            while goes_on {
                goes_on = open.iter_mut().fold(false, |sent, answer| answer.pour(peer, &poured) | sent);
                peer.flush();
            }
            open.retain(|answer| peer.codec.can_send(answer.id));
        }
    });
    (server, figures)
}

fn proxy(server: &Server) -> Terse {
    listen(&format!("http-reuse always\n server one {} proto h2", server.address()))
}

/// A client that leaves so many answers where they are, with this window for each.
fn stuck(terse: &Terse, poured: &Poured, window: u32) -> Client {
    let limits = Limits { stream_window: window, connection_window: 65_535, receive_budget: 65_535, ..Limits::default() };
    let mut client = Client::with(terse.address("web"), limits);
    client.consumes = false;
    let ids = client.open_all(&request("GET", "/stuck", &[]), STUCK);
    client.wait("the answers' heads", |client| {
        poured.answers.load(SeqCst) == STUCK && ids.iter().all(|id| window > 1 || client.streams[id].status() == 200)
    });
    client
}

/// The most that comes ahead of a client that reads none of its answers, and takes so many bytes at most.
fn ahead(window: u32, taken: usize) -> usize {
    let (server, poured) = pouring();
    let terse = proxy(&server);
    let client = stuck(&terse, &poured, window);
    // When another has got all of its answer, on the same connection, the server has sent what it may.
    let answer = Client::connect(terse.address("web")).get("/large");
    assert_eq!((answer.status(), answer.body.len(), server.accepted()), (200, BODY_BYTES, 1), "{window}");
    let (sent, widest) = (poured.stuck.load(SeqCst), poured.widest.load(SeqCst));
    println!("{window}: {sent} bytes sent, a window of {widest} beside them");
    assert!(sent >= STUCK * FIRST_WINDOW, "{window}: {sent}");
    assert!(widest >= FRAME_BYTES, "{window}: {widest}");
    drop(client);
    terse.end();
    sent - taken.min(sent)
}

#[test]
fn a_hundred_answers_that_are_not_taken_cost_little_and_stall_no_other() {
    let first = STUCK * FIRST_WINDOW + ANNOUNCED;
    for (window, taken) in [(0, 0), (1, STUCK)] {
        let ahead = ahead(window, taken);
        // What comes while another's answer is taken may open a window a little further.
        assert!(ahead <= first + FRAME_BYTES, "{window}: {ahead} bytes that are not taken");
    }
    // What a connection's first window lets through opens the windows of the streams that had it.
    let ahead = ahead(65_535, 65_535);
    assert!(ahead <= first + 64 * 1024, "{ahead} bytes that are not taken");
}

/// Windows that were opened for a client that read stay open when it reads no more: they have a limit together, and leave others theirs.
#[test]
fn answers_that_are_not_read_any_more_hold_a_limited_part() {
    let (server, poured) = pouring();
    let terse = proxy(&server);
    let limits = Limits { stream_window: 1 << 20, connection_window: 1 << 20, receive_budget: 16 << 20, ..Limits::default() };
    let mut client = Client::with(terse.address("web"), limits);
    client.consumes = false;
    client.open_all(&request("GET", "/stuck", &[]), STUCK);
    let taken = |client: &Client| client.streams.values().map(|answer| answer.body.len()).sum::<usize>();
    client.wait("what its connection lets through", |client| taken(client) > (16 << 20) - (256 << 10));
    let answer = Client::connect(terse.address("web")).get("/large");
    // With half of its budget unread, the connection gets no new streams: the other has one of its own.
    assert_eq!((answer.status(), answer.body.len()), (200, BODY_BYTES));
    let (ahead, widest) = (poured.stuck.load(SeqCst) - taken(&client), poured.widest.load(SeqCst));
    println!("{ahead} bytes ahead, a window of {widest} beside them");
    assert!(ahead <= STUCK * READ_WINDOW + (512 << 10), "{ahead} bytes that are not taken any more");
    assert!(widest >= FRAME_BYTES, "{widest}");
    drop(client);
    terse.end();
}

#[test]
fn messages_both_ways_beside_stuck_answers_never_wait() {
    let (server, poured) = pouring();
    let terse = proxy(&server);
    let _stuck = stuck(&terse, &poured, 0);
    let mut client = Client::connect(terse.address("web"));
    let id = client.open(&request("POST", "/echo", &[("content-type", "application/grpc")]), false);
    for count in 1..=300 {
        client.send(id, &[b'm'; 100], false);
        client.wait("the message back", |client| client.streams[&id].body.len() == 100 * count);
    }
    assert_eq!((poured.messages.load(SeqCst), poured.late.load(SeqCst), server.accepted()), (300, 0, 1));
    terse.end();
}

#[test]
fn stuck_answers_go_on_when_their_client_reads() {
    let (server, poured) = pouring();
    let terse = proxy(&server);
    let mut client = stuck(&terse, &poured, 1);
    client.consumes = true;
    let ids: Vec<u32> = client.streams.keys().copied().collect();
    for id in &ids {
        // A byte was there; more than the rest is allowed now.
        client.codec.want(*id, BODY_BYTES);
    }
    client.flush();
    for id in ids {
        assert_eq!(client.answer(id).body.len(), BODY_BYTES);
    }
    until("the end of all", || (poured.stuck.load(SeqCst) == STUCK * BODY_BYTES).then_some(()));
    terse.end();
}
