//! A line of a limited speed: everything that goes to a server and comes back, counted and held up.

use anyhow::Result;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The line. Its two directions do not hold each other up, as on a line that is both ways at once.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    ways: [Arc<Way>; 2],
}

/// A direction, shared by all connections.
struct Way {
    bytes: AtomicU64,
    bytes_per_second: u64,
    free_at: Mutex<Instant>,
}

/// Bytes that are sent at once: about four packets, so that connections take turns.
const PIECE_BYTES: usize = 6000;

impl Relay {
    /// A line to a server that carries so much in a second, each way.
    pub(super) fn to(server: SocketAddr, bytes_per_second: u64) -> Result<Relay> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let way = || Arc::new(Way { bytes: AtomicU64::new(0), bytes_per_second, free_at: Mutex::new(Instant::now()) });
        let ways = [way(), way()];
        let shared = ways.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client that cannot be connected sees its connection closed.
                let _ = join(client, server, &shared);
            }
        });
        Ok(Relay { address, ways })
    }

    /// Bytes to the server and from it so far.
    pub(super) fn carried(&self) -> [u64; 2] {
        [&self.ways[0], &self.ways[1]].map(|way| way.bytes.load(SeqCst))
    }
}

fn join(client: TcpStream, server: SocketAddr, ways: &[Arc<Way>; 2]) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let there = (client.try_clone()?, server.try_clone()?, ways[0].clone());
    let back = (server, client, ways[1].clone());
    for (from, to, way) in [there, back] {
        std::thread::spawn(move || way.carry(from, to));
    }
    Ok(())
}

impl Way {
    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut room = [0; PIECE_BYTES];
        while let Ok(n @ 1..) = from.read(&mut room) {
            self.bytes.fetch_add(n as u64, SeqCst);
            self.wait(n);
            if to.write_all(&room[..n]).is_err() {
                break;
            }
        }
        let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
    }

    /// Waits until the line has carried so many bytes more.
    #[allow(clippy::disallowed_methods, reason = "that a line takes its time is what it is for")]
    fn wait(&self, bytes: usize) {
        let takes = Duration::from_nanos(bytes as u64 * 1_000_000_000 / self.bytes_per_second);
        let until = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            *free_at = (*free_at).max(Instant::now()) + takes;
            *free_at
        };
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arrives_is_counted_and_takes_its_time() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::to(listener.local_addr().unwrap(), 1_000_000).unwrap();
        let serve = std::thread::spawn(move || {
            let (mut io, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            io.read_to_end(&mut all).unwrap();
            io.write_all(&all[..100]).unwrap();
            all.len()
        });
        let begun = Instant::now();
        let mut io = TcpStream::connect(relay.address).unwrap();
        io.write_all(&[7; 50_000]).unwrap();
        io.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        io.read_to_end(&mut back).unwrap();
        assert_eq!((serve.join().unwrap(), back.len(), relay.carried()), (50_000, 100, [50_000, 100]));
        assert!(begun.elapsed() >= Duration::from_millis(50));
    }
}
