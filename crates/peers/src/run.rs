//! Sections at work, on the control thread: connections to peers, and their renewal.
//!
//! ```text
//! to each peer:   wait until there is no connection --> connect --> hello --200--> Session --> a pause --> again
//! from any peer:  accept --> hello --> is it one of ours? --200--> Session; the connection before ends
//! ```
//!
//! Two processes that connect to each other at the same moment agree by their names: the one whose name comes first lets its own
//! connection go.

use crate::group::{Group, Peer};
use crate::hello::{self, Read, Status};
use crate::link::{self, Door, Stream};
use crate::message::{self, Short};
use crate::session::{Session, With};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use terse_balance::Address;
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_tls::Socket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

/// A socket of a section, non-blocking.
#[derive(Debug)]
pub struct Listening {
    /// The section, by its index.
    pub group: usize,
    /// The `bind` line, by its index in the section.
    pub bind: usize,
    /// The socket.
    pub socket: ListeningSocket,
}

/// A socket to accept from.
#[derive(Debug)]
pub enum ListeningSocket {
    /// Over IPv4 or IPv6.
    Tcp(std::net::TcpListener),
    /// A unix socket.
    Unix(std::os::unix::net::UnixListener),
}

/// Shares the tables of all sections until it is told to leave. Then the process that replaces this one, if there is
/// one, is sent all entries. `predecessor`: there was a process before, which will teach.
pub async fn run(groups: Vec<Arc<Group>>, sockets: Vec<Listening>, predecessor: bool, mut leave: watch::Receiver<bool>) {
    let own: Vec<Option<Door>> = groups.iter().enumerate().map(|(index, group)| own_door(index, group, &sockets)).collect();
    let mut tasks = JoinSet::new();
    for socket in sockets {
        if let Some(group) = groups.get(socket.group) {
            tasks.spawn(accept(group.clone(), socket.bind, socket.socket));
        }
    }
    for group in &groups {
        group.begin(predecessor, Instant::now());
        tasks.spawn(collect(group.clone()));
        tasks.spawn(tick(group.clone()));
        for peer in 0..group.peers.len() {
            tasks.spawn(dial(group.clone(), peer));
        }
    }
    // The sender of the order has gone, and everything with it.
    let _ = leave.wait_for(|leave| *leave).await;
    tasks.shutdown().await;
    for (group, door) in groups.iter().zip(own) {
        if let Some(door) = door {
            let _ = timeout(FAREWELL, teach(group.clone(), &door)).await;
        }
        group.tables.iter().for_each(|shared| shared.table.stop_sharing());
    }
}

/// Number of descriptors that a section with so many sockets may have open. They are the connections that each socket
/// accepts, one to each peer, another that is about to take its place, and the one to the next process.
pub fn descriptors(group: &Group, sockets: usize) -> usize {
    sockets * most_accepted(group) + 2 * group.peers.len() + 1
}

/// Limit of connections that each socket of a section accepts at a time. Further ones wait in the kernel.
fn most_accepted(group: &Group) -> usize {
    2 * group.peers.len() + SPARE
}

/// Destination of this process, and of the one that replaces it.
fn own_door(index: usize, group: &Group, sockets: &[Listening]) -> Option<Door> {
    let address = sockets.iter().filter(|socket| socket.group == index).find_map(|socket| match &socket.socket {
        ListeningSocket::Tcp(listener) => listener.local_addr().ok().map(|address| Address::Ip(reachable(address))),
        ListeningSocket::Unix(listener) => listener.local_addr().ok()?.as_pathname().map(|path| Address::Unix(path.to_owned())),
    })?;
    let connector = group.own_door.as_ref().and_then(|door| door.connector.clone());
    let is_plain = group.acceptors.iter().all(Option::is_none);
    (is_plain || connector.is_some()).then_some(Door { address, connector })
}

/// An unspecified address becomes this machine's own.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

/// Takes changes of tables: the first at once, those of the next moment together.
async fn collect(group: Arc<Group>) {
    loop {
        group.wake.notified().await;
        group.collect();
        sleep(MOMENT).await;
    }
}

async fn tick(group: Arc<Group>) {
    loop {
        group.tick(Instant::now());
        sleep(TICK).await;
    }
}

/// Keeps a connection to a peer.
async fn dial(group: Arc<Group>, index: usize) {
    let Some(peer) = group.peers.get(index) else { return };
    let mut turn = peer.turn.subscribe();
    loop {
        if turn.wait_for(|turn| *turn == 0).await.is_err() {
            return;
        }
        let link = tokio::select! {
            biased;
            // It has connected to us.
            _ = turn.wait_for(|turn| *turn != 0) => None,
            link = timeout(PATIENCE, greet(&group, peer)) => link.ok().and_then(Result::ok),
        };
        peer.asks.store(false, Relaxed);
        if let Some((stream, rest)) = link {
            let session = Session::new(group.clone(), With::Peer(index), true);
            serve(&group, Place::take(&group, With::Peer(index)), session, stream, rest).await;
        }
        sleep(pause()).await;
    }
}

/// Connects to a peer and sends the hello.
async fn greet(group: &Group, peer: &Peer) -> io::Result<(Box<dyn Stream>, Vec<u8>)> {
    let mut stream = peer.door.connect().await.inspect_err(|error| {
        EXHAUSTION.note(error, Purpose::Peer);
    })?;
    peer.asks.store(true, Relaxed);
    let rest = hello(&mut stream, &peer.name, &group.own).await?;
    Ok((stream, rest))
}

/// Sends the hello, and awaits its acceptance; returns the bytes that have come after that.
async fn hello(stream: &mut Box<dyn Stream>, to: &str, from: &str) -> io::Result<Vec<u8>> {
    stream.write_all(&hello::write(to, from, std::process::id())).await?;
    let mut bytes = Vec::new();
    loop {
        match hello::read_status(&bytes) {
            Read::Whole(status, used) if status == Status::Welcome as u32 => return Ok(bytes.split_off(used)),
            Read::Whole(..) | Read::Wrong(_) => return Err(io::ErrorKind::ConnectionRefused.into()),
            Read::Partial if stream.read_buf(&mut bytes).await? == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Read::Partial => {}
        }
    }
}

/// Accepts connections of a line, for as long as it is polled.
async fn accept(group: Arc<Group>, bind: usize, socket: ListeningSocket) {
    let listener = match socket {
        ListeningSocket::Tcp(listener) => TcpListener::from_std(listener).map(Accepting::Tcp),
        ListeningSocket::Unix(listener) => UnixListener::from_std(listener).map(Accepting::Unix),
    };
    let Ok(listener) = listener else { return };
    let mut clients = JoinSet::new();
    loop {
        while clients.len() >= most_accepted(&group) {
            clients.join_next().await;
        }
        let accepted = match &listener {
            Accepting::Tcp(listener) => listener.accept().await.map(|(stream, _)| link::tcp(stream)),
            Accepting::Unix(listener) => listener.accept().await.map(|(stream, _)| Socket::Unix(stream)),
        };
        match accepted {
            Ok(socket) => drop(clients.spawn(welcome(group.clone(), bind, socket))),
            Err(error) => {
                EXHAUSTION.note(&error, Purpose::Peer);
                // No descriptor or no memory: others must be released first.
                sleep(BREATH).await;
            }
        }
        while clients.try_join_next().is_some() {}
    }
}

/// Receives the hello of a connection, and shares tables with it if it is a peer of the section.
async fn welcome(group: Arc<Group>, bind: usize, socket: Socket) {
    let acceptor = group.acceptors.get(bind).and_then(Option::as_ref);
    let heard = async {
        let mut stream = link::accepted(socket, acceptor).await?;
        let mut bytes = Vec::new();
        loop {
            match hello::read(&bytes) {
                Read::Partial if stream.read_buf(&mut bytes).await? == 0 => {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                Read::Partial => {}
                read => return Ok((stream, bytes, read)),
            }
        }
    };
    let Ok(Ok((mut stream, mut bytes, read))) = timeout(INTRODUCTION, heard).await else { return };
    // A client that has given up in the meantime must not end the connection that took the place of this one.
    if let Ok(Ok(0)) = timeout(Duration::ZERO, stream.read_buf(&mut bytes)).await {
        return;
    }
    let admitted = match read {
        Read::Whole(hello, used) => admit(&group, &hello.to, &hello.from).map(|with| (with, hello.timed, used)),
        Read::Wrong(status) => Err(status),
        Read::Partial => return,
    };
    let (with, timed, used) = match admitted {
        Ok(admitted) => admitted,
        Err(status) => {
            let _ = timeout(PATIENCE, stream.write_all(&status.line())).await;
            return;
        }
    };
    // From here on this process sends no hello to that peer: nothing is awaited in between.
    let place = Place::take(&group, with);
    if matches!(timeout(PATIENCE, stream.write_all(&Status::Welcome.line())).await, Ok(Ok(()))) {
        let session = Session::new(group.clone(), with, timed);
        serve(&group, place, session, stream, bytes.split_off(used)).await;
    }
}

/// Role of the sender of this hello.
fn admit(group: &Group, to: &str, from: &str) -> Result<With, Status> {
    if *to != *group.own {
        return Err(Status::WrongTarget);
    }
    if *from == *group.own {
        // Any sender may claim it: one at a time is accepted, while a predecessor is expected.
        return if group.expects_predecessor() { Ok(With::Predecessor) } else { Err(Status::Later) };
    }
    let index = group.peers.iter().position(|peer| *peer.name == *from).ok_or(Status::Stranger)?;
    match group.peers.get(index) {
        // Both have connected to each other.
        Some(peer) if peer.asks.load(Relaxed) && *group.own > *peer.name => Err(Status::Later),
        _ => Ok(With::Peer(index)),
    }
}

/// Sends all entries to the process that replaces this one.
async fn teach(group: Arc<Group>, door: &Door) -> io::Result<()> {
    let greet = async {
        let mut stream = door.connect().await?;
        let rest = hello(&mut stream, &group.own, &group.own).await?;
        Ok((stream, rest))
    };
    let (stream, rest) = timeout(GREETING, greet).await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))?;
    let session = Session::new(group.clone(), With::Successor, true);
    serve(&group, Place::take(&group, With::Successor), session, stream, rest).await;
    Ok(())
}

/// Registration of the one connection to a peer, or to the predecessor. A new one of a peer ends the one before.
struct Place<'a> {
    group: &'a Group,
    with: With,
    /// The peer, and the number of the connection.
    own: Option<(&'a Peer, u64)>,
}

impl<'a> Place<'a> {
    fn take(group: &'a Group, with: With) -> Place<'a> {
        let number = CONNECTIONS.fetch_add(1, Relaxed);
        let peer = match with {
            With::Peer(index) => group.peers.get(index),
            With::Predecessor => {
                group.seat_predecessor(Instant::now());
                None
            }
            With::Successor => None,
        };
        if let Some(peer) = peer {
            peer.take_over(number);
        }
        Place { group, with, own: peer.map(|peer| (peer, number)) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some((peer, number)) = self.own {
            peer.release(number);
        }
        if self.with == With::Predecessor {
            self.group.unseat_predecessor(Instant::now());
        }
    }
}

/// Shares tables over a connection until it ends, or another one to the same peer takes its place.
async fn serve(group: &Group, place: Place<'_>, mut session: Session, stream: Box<dyn Stream>, begun: Vec<u8>) {
    if let Some((peer, _)) = place.own {
        group.say(peer, "is connected", Instant::now());
    }
    let _ = converse(group, place.own, &mut session, stream, begun).await;
    session.end();
    if let Some((peer, number)) = place.own
        && peer.is_served_by(number)
    {
        group.say(peer, "is gone", Instant::now());
    }
}

async fn converse(
    group: &Group,
    own: Option<(&Peer, u64)>,
    session: &mut Session,
    stream: Box<dyn Stream>,
    begun: Vec<u8>,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (mut input, mut output, mut written) = (begun, Vec::new(), 0);
    let mut more = group.more.subscribe();
    let mut turn = own.map(|(peer, _)| peer.turn.subscribe());
    let now = tokio::time::Instant::now();
    // Times of the last data received, of the last data sent, and since when the other end accepts none of it.
    let (mut heard, mut said, mut taken) = (now, now, now);
    // Whether there may be more to send than was examined.
    let mut goes_on = false;
    loop {
        match session.receive(&input) {
            Ok(used) => drop(input.drain(..used)),
            Err(_) => {
                output.clear();
                message::write_failure(&mut output);
                let _ = timeout(PATIENCE, writer.write_all(&output)).await;
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        if written == output.len() {
            taken = tokio::time::Instant::now();
            output.clear();
            written = 0;
            more.mark_unchanged();
            goes_on = session.send(CHUNK_BYTES, &mut output);
        }
        if session.is_done() && output.is_empty() {
            return Ok(());
        }
        let waits = written < output.len();
        input.reserve(CHUNK_BYTES);
        let rest = output.get(written..).unwrap_or_default();
        tokio::select! {
            () = ended(&mut turn, own) => return Ok(()),
            read = reader.read_buf(&mut input) => match read? {
                0 => return Ok(()),
                _ => heard = tokio::time::Instant::now(),
            },
            sent = writer.write(rest), if waits => {
                written += sent?;
                said = tokio::time::Instant::now();
                taken = said;
            }
            () = sleep_until(taken + STALL), if waits => return Err(io::ErrorKind::TimedOut.into()),
            () = std::future::ready(()), if !waits && goes_on => {}
            changed = more.changed(), if !waits => changed.map_err(io::Error::other)?,
            () = sleep_until(said + BEAT), if !waits => {
                Short::Heartbeat.write(&mut output);
            }
            () = sleep_until(heard + SILENCE) => return Err(io::ErrorKind::TimedOut.into()),
        }
        // A long output leaves other tasks of this thread their turn.
        tokio::task::yield_now().await;
    }
}

/// Waits until another connection has taken the place of this one.
async fn ended(turn: &mut Option<watch::Receiver<u64>>, own: Option<(&Peer, u64)>) {
    match (turn, own) {
        (Some(turn), Some((_, number))) => drop(turn.wait_for(|turn| *turn != number).await.map(|_| ())),
        _ => std::future::pending().await,
    }
}

/// Time before the next attempt to reach a peer: random, so that two do not meet again and again.
fn pause() -> Duration {
    let random = RandomState::new().hash_one(());
    SHORTEST_PAUSE + Duration::from_millis(random % LONGEST_MORE_MS)
}

enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// Time limit to connect to a peer and be accepted there, or to write a line to an accepted connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit of an incoming connection's handshake and hello.
const INTRODUCTION: Duration = Duration::from_secs(2);
/// Least interval of looks for changes.
const MOMENT: Duration = Duration::from_millis(2);
const TICK: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_MORE_MS: u64 = 2000;
/// Silence after which a heartbeat is sent.
const BEAT: Duration = Duration::from_secs(3);
/// Silence after which the other end counts as gone.
const SILENCE: Duration = Duration::from_secs(5);
/// Time without progress of output after which the other end counts as gone.
const STALL: Duration = Duration::from_secs(30);
/// Time limit of the first answer of the process that replaces this one, if there is one: it serves already.
const GREETING: Duration = Duration::from_secs(1);
/// Time limit of its learning.
const FAREWELL: Duration = Duration::from_secs(5);
/// Pause of accepting when the kernel has no descriptor for it.
const BREATH: Duration = Duration::from_millis(100);
/// Connections beside those of peers: connections that are about to be refused.
const SPARE: usize = 8;
/// Size of a read or a write.
const CHUNK_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::group;

    fn counted(keys: usize) -> Arc<Group> {
        let group = group("a", &["b"], "type string size 1k store gpc0");
        let shared = &group.tables[0];
        for n in 0..keys {
            let entry = shared.table.obtain(format!("key{n}").as_bytes(), group.now_ms()).unwrap();
            shared.table.touch(&entry, group.now_ms());
        }
        group.collect();
        group
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_gone() {
        let group = counted(100);
        let (ours, theirs) = tokio::io::duplex(64);
        let (_unread, mut speaks) = tokio::io::split(theirs);
        let session = Session::new(group.clone(), With::Peer(0), true);
        let begun = tokio::time::Instant::now();
        let serving = serve(&group, Place::take(&group, With::Peer(0)), session, Box::new(ours), Vec::new());
        // It is alive, and never reads.
        let beats = async {
            loop {
                let mut beat = Vec::new();
                Short::Heartbeat.write(&mut beat);
                let _ = speaks.write_all(&beat).await;
                sleep(BEAT).await;
            }
        };
        tokio::select! {
            () = serving => {}
            () = beats => {}
        }
        let lasted = begun.elapsed();
        assert!(lasted >= STALL && lasted < STALL + BEAT && !group.peers[0].is_connected(), "{lasted:?}");
    }

    /// Of many entries that are gone none has a byte to write: the last entry is sent all the same.
    #[tokio::test(start_paused = true)]
    async fn what_comes_behind_much_that_is_gone_is_told() {
        let group = counted(0);
        let table = &group.tables[0].table;
        let note = |key: &str| {
            let entry = table.obtain(key.as_bytes(), group.now_ms()).unwrap();
            group.tables[0].recent().note(entry.clone(), usize::MAX);
            entry
        };
        for n in 0..5000 {
            assert!(table.remove(&note(&format!("key{n}"))));
        }
        note("last");
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let session = Session::new(group.clone(), With::Peer(0), true);
        let serving = serve(&group, Place::take(&group, With::Peer(0)), session, Box::new(ours), Vec::new());
        let told = async {
            let mut bytes = Vec::new();
            while !bytes.windows(4).any(|four| four == b"last") {
                assert_ne!(theirs.read_buf(&mut bytes).await.unwrap(), 0);
            }
        };
        let begun = tokio::time::Instant::now();
        tokio::select! {
            () = serving => panic!("it goes on"),
            () = told => assert!(begun.elapsed() < BEAT, "nobody waits for something to wake it"),
        }
    }

    #[test]
    fn each_socket_has_its_share_of_descriptors() {
        let group = group("a", &["b", "c"], "type string size 9");
        assert_eq!([0, 1, 3].map(|sockets| descriptors(&group, sockets)), [5, 17, 41]);
    }
}
