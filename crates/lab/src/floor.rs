//! The floor of the cost of forwarding: a forwarder on one thread that parses nothing.
//!
//! A request costs two reads, two writes and two waits. Each client has a connection to the origin of its own. Bytes that one side
//! does not take yet are held, and nothing more is read for it meanwhile. A connection holds at most one read in each direction.

use crate::cores;
use anyhow::{Context, Result};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Address of the listener, and address that it forwards to.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Address for clients.
    pub listen: SocketAddr,
    /// The origin.
    pub to: SocketAddr,
    /// The core that its thread stays on.
    pub core: Option<usize>,
}

/// Forwards until the process ends.
pub fn run(options: &Options) -> Result<bool> {
    if let Some(core) = options.core {
        cores::pin_this_thread(core)?;
    }
    let listener = TcpListener::bind(options.listen).with_context(|| options.listen.to_string())?;
    println!("listening on {}", listener.local_addr()?);
    let (_held, stop) = UnixStream::pair()?;
    serve(&listener, options.to, &stop)?;
    Ok(true)
}

/// Forwards until the other end of `stop` is closed.
pub fn serve(listener: &TcpListener, to: SocketAddr, stop: &UnixStream) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&epoll, stop, EventData::new_u64(STOP), EventFlags::IN)?;
    let mut pairs = Pairs::default();
    let mut room = vec![0; ROOM_BYTES];
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
    loop {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Err(Errno::INTR) => continue,
            result => result?,
        };
        for event in &events {
            match event.data.u64() {
                STOP => return Ok(()),
                // A client that went away meanwhile, or for which there is no origin, sees a closed connection.
                LISTENER => _ = accept(listener, to).and_then(|pair| pairs.enter(pair, &epoll)),
                token => pairs.forward(token, event.flags, &epoll, &mut room),
            }
        }
        pairs.free.append(&mut pairs.gone);
    }
}

/// All pairs by number.
#[derive(Default)]
struct Pairs {
    all: Vec<Option<Pair>>,
    /// Numbers without a pair.
    free: Vec<usize>,
    /// The numbers freed in this turn: events that were taken with theirs must find no pair.
    gone: Vec<usize>,
}

impl Pairs {
    fn enter(&mut self, pair: Pair, epoll: &OwnedFd) -> io::Result<()> {
        let number = self.free.last().copied().unwrap_or(self.all.len());
        for (side, token) in pair.sides.iter().zip(number as u64 * 2..) {
            epoll::add(epoll, &side.socket, EventData::new_u64(token), side.watched)?;
        }
        match self.free.pop() {
            Some(_) => self.all[number] = Some(pair),
            None => self.all.push(Some(pair)),
        }
        Ok(())
    }

    fn forward(&mut self, token: u64, flags: EventFlags, epoll: &OwnedFd, room: &mut [u8]) {
        let (number, side) = ((token / 2) as usize, (token % 2) as usize);
        let Some(place) = self.all.get_mut(number) else { return };
        let Some(pair) = place else { return };
        if !matches!(pair.forward(side, flags, epoll, number, room), Ok(true)) {
            // Closing its sockets takes them out of the set.
            *place = None;
            self.gone.push(number);
        }
    }
}

fn accept(listener: &TcpListener, to: SocketAddr) -> io::Result<Pair> {
    let (client, _) = listener.accept()?;
    let origin = TcpStream::connect(to)?;
    let side = |socket: TcpStream| {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok::<_, io::Error>(Side { socket, held: Vec::new(), sent: 0, has_ended: false, watched: EventFlags::IN })
    };
    Ok(Pair { sides: [side(client)?, side(origin)?] })
}

/// A client and its connection to the origin.
struct Pair {
    sides: [Side; 2],
}

struct Side {
    socket: TcpStream,
    /// Bytes for it that it has not taken yet.
    held: Vec<u8>,
    /// Number of them that it has taken.
    sent: usize,
    /// True if it sends nothing more.
    has_ended: bool,
    /// Events that it is in the set for; none: it is not in it.
    watched: EventFlags,
}

impl Pair {
    /// Reads and writes as one side is ready for; false when both have ended.
    fn forward(&mut self, side: usize, flags: EventFlags, epoll: &OwnedFd, number: usize, room: &mut [u8]) -> io::Result<bool> {
        let other = 1 - side;
        if flags.contains(EventFlags::OUT) {
            self.sides[side].flush(self.sides[other].has_ended)?;
        }
        let is_readable = flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR);
        if is_readable && !self.sides[side].has_ended && self.sides[other].held.is_empty() {
            match self.sides[side].socket.read(room) {
                Ok(0) => {
                    self.sides[side].has_ended = true;
                    self.sides[other].flush(true)?;
                }
                Ok(count) => self.sides[other].send(&room[..count])?,
                Err(error) if is_for_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        for place in [side, other] {
            self.watch(place, epoll, number)?;
        }
        Ok(!self.sides.iter().all(|side| side.has_ended && side.held.is_empty()))
    }

    /// Waits for the events that a side can use now.
    fn watch(&mut self, place: usize, epoll: &OwnedFd, number: usize) -> io::Result<()> {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, !self.sides[place].has_ended && self.sides[1 - place].held.is_empty());
        let side = &mut self.sides[place];
        wanted.set(EventFlags::OUT, !side.held.is_empty());
        if wanted == side.watched {
            return Ok(());
        }
        let (socket, data) = (side.socket.as_fd(), EventData::new_u64((number * 2 + place) as u64));
        // A socket that is in the set for no event still wakes when it is hung up.
        match (side.watched.is_empty(), wanted.is_empty()) {
            (true, _) => epoll::add(epoll, socket, data, wanted)?,
            (_, true) => epoll::delete(epoll, socket)?,
            _ => epoll::modify(epoll, socket, data, wanted)?,
        }
        side.watched = wanted;
        Ok(())
    }
}

impl Side {
    /// Writes once, and holds the bytes that it does not take.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let count = match self.socket.write(bytes) {
            Err(error) if is_for_later(&error) => 0,
            result => result?,
        };
        self.held.extend_from_slice(&bytes[count..]);
        Ok(())
    }

    /// Writes the held bytes; then shuts the sending side down, if nothing follows.
    fn flush(&mut self, is_last: bool) -> io::Result<()> {
        if !self.held.is_empty() {
            match self.socket.write(&self.held[self.sent..]) {
                Err(error) if is_for_later(&error) => {}
                result => self.sent += result?,
            }
            if self.sent < self.held.len() {
                return Ok(());
            }
            self.held.clear();
            self.sent = 0;
        }
        if is_last { self.socket.shutdown(Shutdown::Write) } else { Ok(()) }
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Tokens that no connection has.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
/// The largest read, and so the most that is held in one direction.
const ROOM_BYTES: usize = 64 * 1024;
const EVENTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// More than sockets and the forwarder hold.
    const LOAD_BYTES: usize = 40 << 20;

    fn pattern() -> Vec<u8> {
        (0..LOAD_BYTES).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    /// Writes all of it, and signals when the other side does not take more.
    fn write_until_stuck(io: &mut TcpStream, all: &[u8], stuck: &mpsc::Sender<()>) {
        io.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut at = 0;
        while at < all.len() {
            match io.write(&all[at..]) {
                Ok(count) => at += count,
                Err(error) if is_for_later(&error) => _ = stuck.send(()),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn what_comes_is_forwarded_however_slowly_it_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = TcpListener::bind("127.0.0.1:0").unwrap();
        let (front, to) = (listener.local_addr().unwrap(), origin.local_addr().unwrap());
        let (held, stop) = UnixStream::pair().unwrap();
        let floor = std::thread::spawn(move || serve(&listener, to, &stop));
        let (stuck, is_stuck) = mpsc::channel();
        let serving = std::thread::spawn(move || {
            let (mut io, _) = origin.accept().unwrap();
            let mut word = [0; 4];
            io.read_exact(&mut word).unwrap();
            write_until_stuck(&mut io, &pattern(), &stuck);
            io.shutdown(Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            io.read_to_end(&mut rest).unwrap();
            (word, rest)
        });
        let mut io = TcpStream::connect(front).unwrap();
        io.write_all(b"take").unwrap();
        is_stuck.recv().unwrap();
        // The other direction stays open meanwhile.
        io.write_all(b"more").unwrap();
        let (mut whole, mut piece) = (Vec::new(), vec![0; 10_007]);
        loop {
            match io.read(&mut piece).unwrap() {
                0 => break,
                count => whole.extend_from_slice(&piece[..count]),
            }
        }
        assert!(whole == pattern());
        // One side's end leaves the other open.
        io.write_all(b" still").unwrap();
        drop(io);
        assert_eq!(serving.join().unwrap(), (*b"take", b"more still".to_vec()));
        drop(held);
        floor.join().unwrap().unwrap();
    }
}
