//! A server of HTTP/2 in clear text that is hostile where its client asks for it by the path, and answers everything else.

use super::DRIP_EVERY;
use super::patterns::{BATCH_BYTES, ROOM_BYTES, wait};
use super::servers::{Misdeed, misdeeds};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Instant;
use terse_http::h2::{Code, Connection, Event, Limits};
use terse_message::{Request, Response};

/// A server at work, with a thread for each connection. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it at a free port; what its threads may run on is what this one may.
    pub fn start() -> io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ending = is_over.clone();
        let thread = std::thread::spawn(move || accept(&listener, &ending));
        Ok(Server { address, is_over, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, is_over: &AtomicBool) {
    let misdeeds = misdeeds();
    std::thread::scope(|scope| {
        while !is_over.load(Relaxed) {
            let tick = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&tick));
            while let Ok((socket, _)) = listener.accept() {
                let misdeeds = &misdeeds;
                // A client that closes, or resets, is what a hostile server has to expect.
                scope.spawn(move || drop(Talk::begin(socket, misdeeds).and_then(|talk| talk.serve(is_over))));
            }
        }
    });
}

/// A connection.
struct Talk<'a> {
    socket: TcpStream,
    codec: Connection,
    output: Vec<u8>,
    misdeeds: &'a [Misdeed],
    /// Streams on which something is done yet, and rounds that are left.
    busy: Vec<(u32, &'a Misdeed, u32)>,
    /// Streams whose windows are kept full.
    full: Vec<u32>,
}

impl<'a> Talk<'a> {
    fn begin(socket: TcpStream, misdeeds: &'a [Misdeed]) -> io::Result<Talk<'a>> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        // Its client's limits are tried, not its own.
        let limits = Limits { unfinished_streams: 1 << 40, ..Limits::default() };
        Ok(Talk { socket, codec: Connection::server(limits), output: Vec::new(), misdeeds, busy: Vec::new(), full: Vec::new() })
    }

    fn serve(mut self, is_over: &AtomicBool) -> io::Result<()> {
        let (mut room, mut dripped) = (vec![0; ROOM_BYTES], Instant::now());
        while !is_over.load(Relaxed) {
            self.fill();
            if dripped.elapsed() >= DRIP_EVERY {
                dripped = Instant::now();
                self.drip();
            }
            wait(&self.socket, !self.output.is_empty())?;
            match self.socket.read(&mut room) {
                Ok(0) => return Ok(()),
                Ok(count) => self.receive(&room[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            match self.socket.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, mut input: &[u8]) {
        loop {
            let (used, event) = self.codec.receive(input, Instant::now());
            input = &input[used..];
            match event {
                None => break,
                Some(Event::Request { id, .. }) => self.take(id),
                Some(Event::Reset { id, .. }) => {
                    self.codec.release(id, Code::CANCEL);
                    self.busy.retain(|(busy, misdeed, _)| *busy != id || misdeed.drip.is_none());
                    self.full.retain(|full| *full != id);
                }
                Some(_) => {}
            }
        }
        self.flush();
    }

    /// Takes a request: what its path asks for, or a good answer.
    fn take(&mut self, id: u32) {
        let mut request = Request::default();
        self.codec.take_request(&mut request);
        let path = request.path_and_query().get(1..).unwrap_or_default();
        if let Some(misdeed) = self.misdeeds.iter().find(|misdeed| misdeed.name.as_bytes() == path) {
            // Frames of the codec's own come before those that it does not know of.
            self.flush();
            (misdeed.begin)(id, &mut self.output);
            if misdeed.fills {
                let mut response = Response::default();
                response.status = 200;
                self.codec.send_response(id, &response, false);
                self.full.push(id);
            }
            if misdeed.rounds > 0 || misdeed.drip.is_some() {
                self.busy.push((id, misdeed, misdeed.rounds));
            } else {
                self.forget(id);
            }
            return;
        }
        let mut response = Response::default();
        response.status = 200;
        response.fields.push(b"content-length", GOOD.len().to_string().as_bytes());
        self.codec.send_response(id, &response, false);
        self.codec.send_data(id, GOOD, true);
        self.codec.release(id, Code::NO_ERROR);
    }

    /// Makes room in the codec for another stream; what it would say of this one's end is left out.
    fn forget(&mut self, id: u32) {
        self.flush();
        self.codec.release(id, Code::CANCEL);
        let repeated = self.codec.output().len();
        self.codec.wrote(repeated);
    }

    /// Appends rounds while there is room, and data as far as windows let it through.
    fn fill(&mut self) {
        let room = BATCH_BYTES.saturating_sub(self.output.len());
        for id in &self.full {
            if self.codec.output().len() < room {
                self.codec.send_data(*id, &[b'x'; FILLING_BYTES], false);
            }
        }
        self.flush();
        for (id, misdeed, left) in &mut self.busy {
            while *left > 0 && self.output.len() < BATCH_BYTES {
                (misdeed.round)(*id, &mut self.output);
                *left -= 1;
            }
        }
        let mut done = Vec::new();
        self.busy.retain(|(id, misdeed, left)| {
            let is_busy = *left > 0 || misdeed.drip.is_some();
            done.extend((!is_busy).then_some(*id));
            is_busy
        });
        done.into_iter().for_each(|id| self.forget(id));
    }

    fn drip(&mut self) {
        for (id, drip) in self.busy.iter().filter_map(|(id, misdeed, _)| Some((*id, misdeed.drip?))) {
            drip(id, &mut self.output);
        }
    }

    fn flush(&mut self) {
        let bytes = self.codec.output();
        self.output.extend_from_slice(bytes);
        let count = bytes.len();
        self.codec.wrote(count);
    }
}

/// The data that is sent at once on a stream whose window is open.
const FILLING_BYTES: usize = 16_000;

/// What everything else is answered.
pub const GOOD: &[u8] = b"good";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use std::time::Duration;

    #[test]
    fn others_are_answered() {
        let server = Server::start().unwrap();
        let mut client = Client::connect_http2(server.address(), Duration::from_secs(10), None).unwrap();
        for _ in 0..3 {
            let reply = client.get("/other", &[]).unwrap();
            assert_eq!((reply.status, &reply.body[..]), (200, GOOD));
        }
    }

    /// What a client of good faith makes of each, by our codec in its role.
    #[test]
    fn our_codec_ends_each_by_its_cause() {
        let server = Server::start().unwrap();
        for misdeed in misdeeds().into_iter().filter(|misdeed| misdeed.cause.is_some()) {
            assert_eq!(ask(server.address(), &misdeed), misdeed.cause, "{}", misdeed.name);
        }
    }

    /// Asks for a misdeed, and says why the codec ended the connection; none where it did not.
    fn ask(server: SocketAddr, misdeed: &Misdeed) -> Option<&'static str> {
        let mut socket = TcpStream::connect(server).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut codec = Connection::client(Limits::default());
        let mut request = Request::default();
        request.set_method(b"GET");
        request.set_target(misdeed.path().as_bytes());
        request.fields.push(b"host", b"a.test");
        codec.send_request(&request, b"http", None, true).unwrap();
        let mut room = vec![0; ROOM_BYTES];
        loop {
            let count = socket.write(codec.output()).unwrap();
            codec.wrote(count);
            let count = socket.read(&mut room).ok().filter(|count| *count > 0)?;
            let mut input = &room[..count];
            loop {
                let (used, event) = codec.receive(input, Instant::now());
                input = &input[used..];
                match event {
                    Some(Event::Glitch(glitch)) => return Some(glitch.name()),
                    Some(Event::Failed(failure)) => return Some(failure.cause),
                    Some(Event::Response { .. }) => codec.take_response(&mut Response::default()),
                    Some(_) => {}
                    None => break,
                }
            }
        }
    }
}
