//! Passing messages on: sockets on one side, a journal on the other.

use super::frame::{self, Frame};
use super::{Forwarder, HostRule};
use crate::access::Listener;
use crate::log::Logger;
use crate::log::message::{Message, one_line};
use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_tls::Socket;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, UdpSocket, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A forwarder at work.
pub(crate) struct Relay {
    forwarder: Arc<Forwarder>,
    logger: Rc<RefCell<Logger>>,
    connections: Arc<Semaphore>,
    /// The most bytes of a message.
    most: usize,
}

impl Relay {
    /// A relay of messages that are at most so long.
    pub(crate) fn new(forwarder: &Arc<Forwarder>, logger: &Rc<RefCell<Logger>>, most: usize) -> Rc<Relay> {
        let room = forwarder.settings.maxconn.min(Semaphore::MAX_PERMITS);
        let connections = Arc::new(Semaphore::new(room));
        Rc::new(Relay { forwarder: forwarder.clone(), logger: logger.clone(), connections, most })
    }

    /// Passes datagrams on, for as long as it is polled.
    pub(crate) async fn datagrams(self: Rc<Relay>, socket: UdpSocket) {
        let mut buffer = vec![0; self.most];
        loop {
            if socket.readable().await.is_err() {
                return;
            }
            for _ in 0..DATAGRAMS_AT_A_TIME {
                match socket.try_recv_from(&mut buffer) {
                    Ok((len, from)) => self.pass(buffer.get(..len).unwrap_or_default(), Some(from.ip())),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // An answer to a datagram that was sent long ago; the socket goes on.
                    Err(_) => {}
                }
            }
            // A flood leaves others of this thread their turn.
            tokio::task::yield_now().await;
        }
    }

    /// Accepts connections and relays the messages that come over them, for as long as it is polled.
    pub(crate) async fn streams(self: Rc<Relay>, listener: Listener, bind: usize) -> io::Result<()> {
        let listener = match listener {
            Listener::Tcp(listener) => Accepting::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Accepting::Unix(UnixListener::from_std(listener)?),
        };
        let mut clients = JoinSet::new();
        loop {
            // Those beyond the limit wait in the kernel.
            let Ok(permit) = self.connections.clone().acquire_owned().await else { return Ok(()) };
            let relay = self.clone();
            let accepted = match &listener {
                Accepting::Tcp(listener) => listener.accept().await.map(|(stream, from)| (Socket::Tcp(stream), Some(from.ip()))),
                Accepting::Unix(listener) => listener.accept().await.map(|(stream, _)| (Socket::Unix(stream), None)),
            };
            let accepted = accepted.map(|(socket, from)| {
                clients.spawn_local(async move {
                    relay.client(socket, from, bind).await;
                    drop(permit);
                });
            });
            match accepted {
                Ok(()) => self.forwarder.received.connections.fetch_add(1, Relaxed),
                Err(error) => {
                    EXHAUSTION.note(&error, Purpose::Log);
                    // No descriptor or no memory: others must release some first.
                    tokio::time::sleep(BREATH).await;
                    0
                }
            };
            while clients.try_join_next().is_some() {}
        }
    }

    /// Relays the messages of a client, after the handshake where there is TLS.
    async fn client(&self, socket: Socket, from: Option<IpAddr>, bind: usize) {
        let Some(acceptor) = self.forwarder.acceptors.get(bind).and_then(Option::as_ref) else {
            return match socket {
                Socket::Tcp(stream) => self.stream(stream, from).await,
                Socket::Unix(stream) => self.stream(stream, from).await,
            };
        };
        let Ok(secured) = acceptor.accept(socket, b"", None) else { return };
        let limit = self.forwarder.settings.client_timeout.unwrap_or(HANDSHAKE);
        match tokio::time::timeout(limit, secured.into_stream()).await {
            Ok(Ok(stream)) => self.stream(stream, from).await,
            Ok(Err(_)) | Err(_) => self.refuse(),
        }
    }

    /// Relays the messages of a connection, until it ends, is silent for too long, or does not speak syslog.
    async fn stream(&self, mut stream: impl AsyncRead + Unpin, from: Option<IpAddr>) {
        let (mut bytes, mut read) = (Vec::new(), 0);
        loop {
            match self.frames(&bytes, from) {
                Some(used) => {
                    bytes.drain(..used.min(bytes.len()));
                }
                None => return self.refuse(),
            }
            let limit = self.forwarder.settings.client_timeout.unwrap_or(Duration::MAX);
            bytes.reserve(READ_BYTES);
            match tokio::time::timeout(limit, stream.read_buf(&mut bytes)).await {
                Ok(Ok(n)) if n > 0 => read += n,
                // A message that is cut off is none.
                _ if !bytes.is_empty() => return self.refuse(),
                _ => return,
            }
            if read >= READ_BYTES {
                read = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    /// Relays the whole messages that the bytes begin with, and returns their length in bytes; `None` when the bytes are no
    /// message.
    fn frames(&self, bytes: &[u8], from: Option<IpAddr>) -> Option<usize> {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            match frame::first(rest, self.forwarder.settings.lines_only, self.most) {
                Frame::Message { from: start, to, end } => {
                    self.pass(rest.get(start..to).unwrap_or_default(), from);
                    used += end;
                }
                Frame::Partial => return Some(used),
                Frame::Malformed => return None,
            }
        }
    }

    fn refuse(&self) {
        self.forwarder.received.malformed.fetch_add(1, Relaxed);
        self.logger.borrow().count_dropped();
    }

    fn pass(&self, bytes: &[u8], from: Option<IpAddr>) {
        let Forwarder { settings, journal, received, .. } = &*self.forwarder;
        received.messages.fetch_add(1, Relaxed);
        let line = one_line(bytes);
        let mut logger = self.logger.borrow_mut();
        if settings.verbatim {
            return logger.relay(journal, &Message::raw(&line));
        }
        let mut message = Message::parse(&line);
        let sender = from.filter(|_| settings.host != HostRule::Keep).map(|ip| ip.to_canonical().to_string());
        let mut both = Vec::new();
        if let Some(sender) = &sender {
            let said = message.heading.host;
            message.heading.host = match settings.host {
                HostRule::Fill if !said.is_empty() => said,
                HostRule::Append if !said.is_empty() => {
                    both.extend_from_slice(said);
                    both.push(b',');
                    both.extend_from_slice(sender.as_bytes());
                    &both
                }
                _ => sender.as_bytes(),
            };
        }
        logger.relay(journal, &message);
    }
}

enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Number of datagrams that are relayed before other tasks have their turn.
const DATAGRAMS_AT_A_TIME: usize = 64;
/// Most bytes that are read from a connection at a time.
const READ_BYTES: usize = 8 * 1024;
/// Time limit of a handshake where no timeout is set.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Delay before the next accept when the kernel has no descriptor.
const BREATH: Duration = Duration::from_millis(100);
