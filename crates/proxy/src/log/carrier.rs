//! From a ring to its server, over a stream.
//!
//! ```text
//!            +------------------------- wait a second <----------------+
//!            v                                                            |
//!        connect --timeout connect, refused------------------------------>+
//!            |                                                            |
//!            v                                                            |
//!   wait for events --> copy a batch --> write --timeout server, broken-->+
//!            ^                             |
//!            +---- the ring may forget ----+
//! ```
//!
//! Events that were written to a connection that then breaks may be lost in the kernel; everything after them is sent again
//! on the next connection, from the first event that was not written whole. The ring bounds the events that wait.

use super::ring::{Framing, Reader, Ring};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use terse_balance::{Address, Server};
use terse_tls::{Connector, Request, Socket};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// A task that sends a ring's events to a server.
#[derive(Debug)]
pub struct Carrier {
    pub(super) ring: Arc<Ring>,
    pub(super) reader: Reader,
    pub(super) peer: Peer,
    pub(super) framing: Framing,
    pub(super) connect_timeout: Duration,
    pub(super) server_timeout: Duration,
    pub(super) max_events: Option<u64>,
    /// TLS connector for a server with a fixed address.
    pub(super) connector: Option<Arc<Connector>>,
}

/// Location of a carrier's server.
#[derive(Debug)]
pub enum Peer {
    /// Here.
    Fixed(Address),
    /// The server's current address, which may change.
    Server(Arc<Server>),
}

/// Why a connection is given up.
enum End {
    /// It has carried its maximum of events.
    Worn,
    /// It broke.
    Broken,
}

impl Carrier {
    /// Whether the server has had all that was logged.
    pub(super) fn is_done(&self) -> bool {
        self.ring.position(self.reader) >= self.ring.end()
    }

    /// Carries events for as long as it is polled.
    pub(super) async fn run(&self) {
        loop {
            self.wait_for_events().await;
            let end = match timeout(self.connect_timeout, self.connect()).await {
                Ok(Ok(stream)) => self.carry(stream).await,
                Ok(Err(_)) | Err(_) => End::Broken,
            };
            if matches!(end, End::Broken) {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn wait_for_events(&self) {
        loop {
            let mut growth = pin!(self.ring.growth());
            growth.as_mut().enable();
            if !self.is_done() {
                return;
            }
            growth.await;
        }
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let address = match &self.peer {
            Peer::Fixed(address) => address.clone(),
            Peer::Server(server) => Address::clone(&server.address()),
        };
        let socket = address.connect().await?;
        let connector = match &self.peer {
            Peer::Fixed(_) => self.connector.as_deref(),
            Peer::Server(server) => server.connector().filter(|_| server.is_secure()),
        };
        match connector {
            Some(connector) => {
                let secured = connector.connect(socket, None, Request::Traffic, None)?.into_stream().await;
                Ok(Box::new(secured.map_err(|_| io::ErrorKind::ConnectionAborted)?))
            }
            None => Ok(match socket {
                Socket::Tcp(stream) => Box::new(stream),
                Socket::Unix(stream) => Box::new(stream),
            }),
        }
    }

    async fn carry(&self, mut stream: Box<dyn Stream>) -> End {
        let (mut batch, mut carried) = (Vec::new(), 0);
        loop {
            // A server that has closed is noticed before the next event is written to it.
            tokio::select! {
                biased;
                ended = drain(&mut *stream) => return ended,
                () = self.wait_for_events() => {}
            }
            let from = self.ring.position(self.reader);
            batch.clear();
            let limit = if self.max_events.is_some() { 1 } else { BATCH_BYTES };
            let next = self.ring.copy(from, self.framing, limit, &mut batch);
            match self.write(&mut *stream, &batch).await {
                Ok(()) => self.ring.advance(self.reader, next),
                Err(written) => {
                    self.ring.advance(self.reader, self.whole_events(from, next, written));
                    return End::Broken;
                }
            }
            carried += next - from;
            if self.max_events.is_some_and(|most| carried >= most) {
                let _ = stream.shutdown().await;
                return End::Worn;
            }
        }
    }

    /// Writes all of it; the error is how many bytes were.
    async fn write(&self, stream: &mut dyn Stream, bytes: &[u8]) -> Result<(), usize> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match timeout(self.server_timeout, stream.write(rest)).await {
                Ok(Ok(n)) if n > 0 => written += n,
                _ => return Err(written),
            }
        }
        Ok(())
    }

    /// The number of the first event of a batch that was not written whole.
    fn whole_events(&self, from: u64, next: u64, written: usize) -> u64 {
        let mut bytes = Vec::new();
        (from..next)
            .find(|number| {
                let before = bytes.len();
                self.ring.copy(*number, self.framing, before + 1, &mut bytes);
                bytes.len() > written
            })
            .unwrap_or(next)
    }
}

/// Reads and drops what a server sends, until it closes. Dropping it loses nothing that matters.
async fn drain(stream: &mut dyn Stream) -> End {
    let mut bytes = [0; 1024];
    while matches!(stream.read(&mut bytes).await, Ok(1..)) {}
    End::Broken
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Enough to fill a socket's buffer once, little enough to copy under a ring's lock.
const BATCH_BYTES: usize = 32 * 1024;
/// Delay before a carrier connects again.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::Place;
    use tokio::net::{TcpListener, TcpStream};

    fn carrier(ring: &Arc<Ring>, address: std::net::SocketAddr, framing: Framing) -> Carrier {
        Carrier {
            reader: ring.attach(),
            ring: ring.clone(),
            peer: Peer::Fixed(Address::Ip(address)),
            framing,
            connect_timeout: Duration::from_secs(5),
            server_timeout: Duration::from_secs(5),
            max_events: None,
            connector: None,
        }
    }

    fn ring(capacity: usize) -> Arc<Ring> {
        Arc::new(Ring::new("r".into(), capacity, Place::nowhere()))
    }

    /// Runs a carrier beside a test's own future.
    async fn beside<T>(carrier: &Carrier, test: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            () = carrier.run() => unreachable!("a carrier never ends"),
            outcome = timeout(Duration::from_secs(20), test) => outcome.expect("in time"),
        }
    }

    async fn read(stream: &mut TcpStream, len: usize) -> String {
        let mut bytes = vec![0; len];
        stream.read_exact(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test]
    async fn events_go_in_order_as_they_come() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ring = ring(4096);
        let carrier = carrier(&ring, listener.local_addr().unwrap(), Framing::OctetCounting);
        ring.push(b"one");
        beside(&carrier, async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_eq!(read(&mut stream, 5).await, "3 one");
            ring.push(b"four");
            assert_eq!(read(&mut stream, 6).await, "4 four");
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_comes_back_gets_what_waited() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ring = ring(4096);
        let carrier = carrier(&ring, listener.local_addr().unwrap(), Framing::Lines);
        ring.push(b"one");
        beside(&carrier, async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_eq!(read(&mut stream, 4).await, "one\n");
            drop(stream);
            ring.push(b"two");
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            while !text.ends_with("two\n") {
                text.push_str(&read(&mut stream, 1).await);
            }
        })
        .await;
    }

    #[test]
    fn whole_events_are_counted_by_their_bytes() {
        let ring = ring(4096);
        ["one", "three", "five5"].iter().for_each(|event| assert!(ring.push(event.as_bytes())));
        let carrier = carrier(&ring, ([127, 0, 0, 1], 1).into(), Framing::Lines);
        assert_eq!([0, 3, 4, 9, 10, 16].map(|written| carrier.whole_events(0, 3, written)), [0, 0, 1, 1, 2, 3]);
    }
}
