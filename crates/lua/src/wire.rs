//! Bytes both ways over a socket that a script holds: what waits to be sent, and what has come.
//!
//! A lock is held for one step and never while something is waited for. Whoever closes takes the socket out at once: Lua may keep the
//! object that held it for as long as it likes.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use terse_proxy::descriptors::Counted;
use tokio::io::AsyncWrite;
use tokio::net::{TcpStream, UnixStream};

/// When so much waits to be sent, it is sent.
pub(crate) const ENOUGH: usize = 16 * 1024;
/// How much is read, or taken from a script, at once.
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
    /// What it counts for among the process's descriptors.
    pub(crate) counted: Option<Counted>,
}

#[derive(Default)]
struct Inner {
    socket: Option<Socket>,
    /// What the socket counts for among the process's descriptors.
    counted: Option<Counted>,
    out: Vec<u8>,
    sent: usize,
    ready: Vec<u8>,
    /// The peer has said all.
    ended: bool,
}

impl Wire {
    /// Over a socket; without one it is closed.
    pub(crate) fn new(socket: Option<Socket>) -> Wire {
        Wire { inner: Mutex::new(Inner { socket, ..Inner::default() }) }
    }

    /// Over a socket that was opened.
    pub(crate) fn of(opened: Opened) -> Wire {
        let wire = Wire::new(None);
        wire.open(opened);
        wire
    }

    /// Begins anew, over this socket.
    pub(crate) fn open(&self, opened: Opened) {
        *self.lock() = Inner { socket: Some(opened.socket), counted: opened.counted, ..Inner::default() };
    }

    /// Lets go of the socket. What has come can still be taken.
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

    /// Puts bytes behind those that wait; whether so much waits that it should be sent.
    pub(crate) fn put(&self, bytes: &[u8]) -> bool {
        let mut inner = self.lock();
        inner.out.extend_from_slice(bytes);
        inner.out.len() - inner.sent >= ENOUGH
    }

    /// Sends what waits.
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

    /// Sends what waits, says that nothing more follows, and drops what comes until the other side has ended too: to close before that
    /// would be to lose what is on its way.
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

    /// Reads some more. False when nothing more comes.
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

    /// How many bytes have come, and whether that is all.
    pub(crate) fn waiting(&self) -> (usize, bool) {
        let inner = self.lock();
        (inner.ready.len(), inner.ended || inner.socket.is_none())
    }

    /// Looks at the bytes that have come.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        look(&self.lock().ready)
    }

    /// Takes the first of them.
    pub(crate) fn take(&self, n: usize) -> Vec<u8> {
        let mut inner = self.lock();
        let n = n.min(inner.ready.len());
        inner.ready.drain(..n).collect()
    }

    /// Waits until as many bytes are there as `enough` says of those that are, or no more come; then takes them.
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
