//! Bytes both ways over a socket that a script holds: buffers of bytes to be sent, and of received ones.
//!
//! A lock is held for one step and never during a wait. Closing takes the socket out at once: Lua may keep the object that
//! held it for as long as it likes.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use terse_proxy::descriptors::Counted;
use tokio::io::AsyncWrite;
use tokio::net::{TcpStream, UnixStream};

/// Waiting bytes from which on they are sent.
pub(crate) const ENOUGH: usize = 16 * 1024;
/// Bytes that are read, or taken from a script, at once.
pub(crate) const PIECE: usize = 16 * 1024;

/// A socket and its buffers.
pub(crate) struct Wire {
    inner: Mutex<Inner>,
}

/// The socket.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket that a script has opened.
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    /// Its share of the process's descriptors.
    pub(crate) counted: Option<Counted>,
}

#[derive(Default)]
struct Inner {
    socket: Option<Socket>,
    /// The socket's share of the process's descriptors.
    counted: Option<Counted>,
    out: Vec<u8>,
    sent: usize,
    ready: Vec<u8>,
    /// The peer has ended its stream.
    ended: bool,
}

impl Wire {
    /// A wire over a socket; without one it is closed.
    pub(crate) fn new(socket: Option<Socket>) -> Wire {
        Wire { inner: Mutex::new(Inner { socket, ..Inner::default() }) }
    }

    /// A wire over a socket that was opened.
    pub(crate) fn of(opened: Opened) -> Wire {
        let wire = Wire::new(None);
        wire.open(opened);
        wire
    }

    /// Begins anew, over this socket.
    pub(crate) fn open(&self, opened: Opened) {
        *self.lock() = Inner { socket: Some(opened.socket), counted: opened.counted, ..Inner::default() };
    }

    /// Closes the socket. Received bytes can still be taken.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        (inner.socket, inner.counted) = (None, None);
        inner.out = Vec::new();
    }

    /// Both addresses, this end's and the peer's, over IP.
    pub(crate) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        match &self.lock().socket {
            Some(Socket::Tcp(socket)) => Some((socket.local_addr().ok()?, socket.peer_addr().ok()?)),
            _ => None,
        }
    }

    /// Appends bytes to those that wait; returns whether so many wait that they should be sent.
    pub(crate) fn put(&self, bytes: &[u8]) -> bool {
        let mut inner = self.lock();
        inner.out.extend_from_slice(bytes);
        inner.out.len() - inner.sent >= ENOUGH
    }

    /// Sends the waiting bytes.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.lock();
        loop {
            let waiting = &inner.out[inner.sent.min(inner.out.len())..];
            if waiting.is_empty() {
                inner.out.clear();
                inner.sent = 0;
                return Poll::Ready(Ok(()));
            }
            let Some(socket) = &inner.socket else { return Poll::Ready(Err(ErrorKind::BrokenPipe.into())) };
            match socket.try_write(waiting) {
                Ok(n) => inner.sent += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(socket.poll_write_ready(cx))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// The same, awaited.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// Sends the waiting bytes, ends the sending side, and drops received bytes until the other side has ended too. To
    /// close before that would lose bytes that are on their way.
    pub(crate) fn poll_finish(&self, cx: &mut Context<'_>) -> Poll<()> {
        if ready!(self.poll_flush(cx)).is_err() {
            return Poll::Ready(());
        }
        {
            let inner = &mut *self.lock();
            let shut = match &mut inner.socket {
                Some(Socket::Tcp(socket)) => Pin::new(socket).poll_shutdown(cx),
                Some(Socket::Unix(socket)) => Pin::new(socket).poll_shutdown(cx),
                None => return Poll::Ready(()),
            };
            if shut.is_pending() {
                return Poll::Pending;
            }
        }
        while let Ok(true) = ready!(self.poll_more(cx)) {
            self.lock().ready.clear();
        }
        Poll::Ready(())
    }

    /// Reads some more. False when no more bytes come.
    pub(crate) fn poll_more(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let inner = &mut *self.lock();
        loop {
            if inner.ended {
                return Poll::Ready(Ok(false));
            }
            let Some(socket) = &inner.socket else { return Poll::Ready(Ok(false)) };
            let mut piece = [0; PIECE];
            match socket.try_read(&mut piece) {
                Ok(0) => inner.ended = true,
                Ok(n) => {
                    inner.ready.extend_from_slice(&piece[..n]);
                    return Poll::Ready(Ok(true));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(socket.poll_read_ready(cx))?,
                Err(error) => {
                    inner.ended = true;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// The same, awaited.
    pub(crate) async fn more(&self) -> io::Result<bool> {
        poll_fn(|cx| self.poll_more(cx)).await
    }

    /// Number of received bytes, and whether those are all.
    pub(crate) fn waiting(&self) -> (usize, bool) {
        let inner = self.lock();
        (inner.ready.len(), inner.ended || inner.socket.is_none())
    }

    /// Calls `look` with the received bytes.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        look(&self.lock().ready)
    }

    /// Takes the first `n` of them.
    pub(crate) fn take(&self, n: usize) -> Vec<u8> {
        let mut inner = self.lock();
        let n = n.min(inner.ready.len());
        inner.ready.drain(..n).collect()
    }

    /// Waits until there are as many bytes as `enough` asks for, given those that are there, or no more come; then takes
    /// them.
    pub(crate) async fn receive(&self, most: usize, enough: impl Fn(&[u8]) -> Option<usize>) -> io::Result<Vec<u8>> {
        loop {
            let (there, all) = self.waiting();
            match self.look(&enough) {
                Some(n) => return Ok(self.take(n)),
                None if all => return Ok(self.take(there)),
                None if most > 0 && there > most => return Err(ErrorKind::FileTooLarge.into()),
                None => {}
            }
            poll_fn(|cx| self.poll_more(cx)).await?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Socket {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.try_write(bytes),
            Socket::Unix(socket) => socket.try_write(bytes),
        }
    }

    fn try_read(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.try_read(room),
            Socket::Unix(socket) => socket.try_read(room),
        }
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(socket) => socket.poll_write_ready(cx),
            Socket::Unix(socket) => socket.poll_write_ready(cx),
        }
    }

    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(socket) => socket.poll_read_ready(cx),
            Socket::Unix(socket) => socket.poll_read_ready(cx),
        }
    }
}
