//! A connection's two ends, whatever socket lies below.

use super::buffer::Buffer;
use super::http2::Http2Stream;
use super::pipe::Pipe;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{SockRef, TcpKeepalive};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use terse_tls::Secured;
use tokio::io::{AsyncWrite, Interest};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio::task::coop;

/// A connected stream socket.
#[derive(Debug)]
pub enum Transport {
    /// Over IPv4 or IPv6.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
    /// TLS over either. It is shared with the samples of the handshake's result.
    Tls(Rc<Secured>),
    /// A stream of HTTP/2.
    Stream(Rc<Http2Stream>),
}

/// The half that reads.
pub enum Reader<'a> {
    /// Over IPv4 or IPv6.
    Tcp(tcp::ReadHalf<'a>),
    /// Over a unix socket.
    Unix(unix::ReadHalf<'a>),
    /// TLS over either.
    Tls(&'a Secured),
    /// A stream of HTTP/2.
    Stream(&'a Http2Stream),
}

/// The half that writes.
pub enum Writer<'a> {
    /// Over IPv4 or IPv6.
    Tcp(tcp::WriteHalf<'a>),
    /// Over a unix socket.
    Unix(unix::WriteHalf<'a>),
    /// TLS over either.
    Tls(&'a Secured),
    /// A stream of HTTP/2.
    Stream(&'a Http2Stream),
}

/// Bytes that are discarded with a system call.
const DISCARDED_BYTES: usize = 4096;
/// Limit of such calls: 256 KB, which is more than is sent at once before the first answer. A peer that sends more is reset.
const DISCARDS: usize = 64;

impl Transport {
    /// Takes over a connected socket.
    pub fn from_tcp(io: TcpStream) -> Transport {
        // Everything is written in as few pieces as possible here: the kernel need not wait for more (RFC 1122's Nagle).
        let _ = io.set_nodelay(true);
        Transport::Tcp(io)
    }

    /// Sets a proxy's socket options: TCP's own keep-alive probes, and a close that does not wait.
    pub fn apply(&self, probes: Option<&TcpKeepalive>, reset: bool) {
        // A socket that refuses an option serves all the same.
        if let Transport::Tcp(io) = self
            && (probes.is_some() || reset)
        {
            let socket = SockRef::from(io);
            if let Some(probes) = probes {
                let _ = socket.set_tcp_keepalive(probes);
            }
            if reset {
                let _ = socket.set_linger(Some(Duration::ZERO));
            }
        }
    }

    /// Both halves, for as long as they are needed at the same time.
    pub fn split(&mut self) -> (Reader<'_>, Writer<'_>) {
        match self {
            Transport::Tcp(io) => {
                let (r, w) = io.split();
                (Reader::Tcp(r), Writer::Tcp(w))
            }
            Transport::Unix(io) => {
                let (r, w) = io.split();
                (Reader::Unix(r), Writer::Unix(w))
            }
            Transport::Tls(io) => (Reader::Tls(io), Writer::Tls(io)),
            Transport::Stream(io) => (Reader::Stream(io), Writer::Stream(io)),
        }
    }

    /// The socket that TLS is to be spoken over; `None` where TLS is spoken already.
    pub fn into_plain(self) -> Option<terse_tls::Socket> {
        match self {
            Transport::Tcp(io) => Some(terse_tls::Socket::Tcp(io)),
            Transport::Unix(io) => Some(terse_tls::Socket::Unix(io)),
            Transport::Tls(_) | Transport::Stream(_) => None,
        }
    }

    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        match self {
            Transport::Tcp(io) => SockRef::from(io),
            Transport::Unix(io) => SockRef::from(io),
            Transport::Tls(io) => io.socket(),
            Transport::Stream(io) => io.socket(),
        }
    }

    /// The stream of HTTP/2; `None` for a socket.
    pub fn stream(&self) -> Option<&Rc<Http2Stream>> {
        match self {
            Transport::Stream(io) => Some(io),
            Transport::Tcp(_) | Transport::Unix(_) | Transport::Tls(_) => None,
        }
    }

    /// Reads into any room; 0 at the end of the connection.
    pub fn poll_receive(&self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Transport::Tcp(io) => poll_read(io, cx, room),
            Transport::Unix(io) => poll_read(io, cx, room),
            Transport::Tls(io) => io.poll_read(cx, room),
            Transport::Stream(io) => io.poll_receive(cx, room),
        }
    }

    /// Writes some of the bytes; returns their number. A stream of HTTP/2 takes frames only.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Transport::Tcp(io) => poll_send(io, cx, bytes),
            Transport::Unix(io) => poll_send(io, cx, bytes),
            Transport::Tls(io) => io.poll_write(cx, &[IoSlice::new(bytes)]),
            Transport::Stream(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Ready once there are bytes to read, or the peer has closed. No system call.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Tcp(io) => poll_readable(io, cx),
            Transport::Unix(io) => poll_readable(io, cx),
            Transport::Tls(io) => io.poll_readable(cx),
            Transport::Stream(io) => io.poll_readable(cx),
        }
    }

    /// Whether the peer has sent bytes or closed while it should be silent: such a connection is not used again.
    ///
    /// The runtime answers at no cost where it knows of nothing. A read that just filled its room leaves that open: then the
    /// kernel is asked.
    pub fn is_stale(&self) -> bool {
        match self {
            Transport::Tcp(io) => is_readable(io) && io.try_read_with(|| peek(io)).is_ok(),
            Transport::Unix(io) => is_readable(io) && io.try_read_with(|| peek(io)).is_ok(),
            Transport::Tls(io) => io.is_stale(),
            Transport::Stream(io) => io.has_ended(),
        }
    }

    /// The same, asked of the kernel.
    pub fn has_ended(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let peeked = match self {
            Transport::Tcp(io) => SockRef::from(io).peek(&mut byte),
            Transport::Unix(io) => SockRef::from(io).peek(&mut byte),
            Transport::Tls(io) => return io.has_ended(),
            Transport::Stream(io) => return io.has_ended(),
        };
        !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Its TLS, where it has some.
    pub fn tls(&self) -> Option<&Rc<Secured>> {
        match self {
            Transport::Tcp(_) | Transport::Unix(_) | Transport::Stream(_) => None,
            Transport::Tls(io) => Some(io),
        }
    }

    /// Whether the kernel has taken all bytes that were written.
    pub fn is_sent(&self) -> bool {
        match self {
            Transport::Tcp(_) | Transport::Unix(_) | Transport::Stream(_) => true,
            Transport::Tls(io) => io.is_sent(),
        }
    }

    /// Hands the remaining bytes over to the kernel.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Tcp(_) | Transport::Unix(_) | Transport::Stream(_) => Poll::Ready(Ok(())),
            Transport::Tls(io) => io.poll_flush(cx),
        }
    }

    /// Takes received bytes that will not be read: to close with them unread would be to reset the connection (RFC 2525
    /// section 2.17).
    pub fn discard(&self) {
        if self.stream().is_some() {
            return;
        }
        let mut room = [std::mem::MaybeUninit::uninit(); DISCARDED_BYTES];
        for _ in 0..DISCARDS {
            if !matches!(self.socket().recv(&mut room), Ok(DISCARDED_BYTES)) {
                return;
            }
        }
    }

    /// Makes the close that follows a reset. Of a stream of HTTP/2 that has not ended, it is.
    pub fn reset(&self) {
        if self.stream().is_some() {
            return;
        }
        // A unix socket knows no reset.
        let _ = self.socket().set_linger(Some(std::time::Duration::ZERO));
    }

    /// Makes the end look like a broken connection, where there is TLS to tell the difference.
    pub fn break_off(&self) {
        if let Transport::Tls(io) = self {
            io.break_off();
        }
    }

    /// Closes the sending side.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.split().1.shutdown().await
    }

    /// The socket's descriptor, for queries of the kernel while it is open.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Transport::Tcp(io) => io.as_raw_fd(),
            Transport::Unix(io) => io.as_raw_fd(),
            Transport::Tls(io) => io.descriptor(),
            Transport::Stream(io) => io.descriptor(),
        }
    }

    /// This end's address, over IP.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Transport::Tcp(io) => io.local_addr().ok(),
            Transport::Unix(_) => None,
            Transport::Tls(io) => io.local(),
            Transport::Stream(io) => io.local(),
        }
    }
}

impl Reader<'_> {
    /// Reads into the buffer's room; 0 at the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.poll_read_most(cx, buffer, usize::MAX)
    }

    /// The same, of so many bytes at most.
    pub fn poll_read_most(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer, most: usize) -> Poll<io::Result<usize>> {
        let room = buffer.room();
        let most = room.len().min(most);
        let n = ready!(self.poll_receive(cx, &mut room[..most]))?;
        buffer.advance(n);
        Poll::Ready(Ok(n))
    }

    /// Reads into any room; 0 at the end of the stream.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Reader::Tcp(io) => poll_read(io.as_ref(), cx, room),
            Reader::Unix(io) => poll_read(io.as_ref(), cx, room),
            Reader::Tls(io) => io.poll_read(cx, room),
            Reader::Stream(io) => io.poll_receive(cx, room),
        }
    }

    /// Reads into the buffer's room, and waits where there is nothing to read.
    pub async fn read(&mut self, buffer: &mut Buffer) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Moves up to `most` bytes of a plain TCP socket into an empty pipe, without waiting; 0 at the end of the stream.
    /// `None`: the bytes that have come must be read. Urgent data (RFC 6093) stops a pipe for good, and a read goes on after
    /// it.
    pub fn try_splice(&self, pipe: &mut Pipe<'_>, most: usize) -> io::Result<Option<usize>> {
        match self {
            Reader::Tcp(io) => io.as_ref().try_io(Interest::READABLE, || match pipe.fill(io.as_ref(), most) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && has_bytes(io.as_ref()) => Ok(None),
                filled => filled.map(Some),
            }),
            Reader::Unix(_) | Reader::Tls(_) | Reader::Stream(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Whether the peer speaks TLS and has closed without a close alert.
    pub fn is_truncated(&self) -> bool {
        matches!(self, Reader::Tls(io) if io.is_truncated())
    }

    /// Ready once there are bytes to read, or the peer has closed.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Reader::Tcp(io) => poll_readable(io.as_ref(), cx),
            Reader::Unix(io) => poll_readable(io.as_ref(), cx),
            Reader::Tls(io) => io.poll_readable(cx),
            Reader::Stream(io) => io.poll_readable(cx),
        }
    }

    /// The stream of HTTP/2; `None` for a socket.
    pub fn stream(&self) -> Option<&Http2Stream> {
        match self {
            Reader::Stream(io) => Some(io),
            Reader::Tcp(_) | Reader::Unix(_) | Reader::Tls(_) => None,
        }
    }

    /// Waits until the peer is [gone](terse_tls::gone).
    pub async fn gone(&self) {
        match self {
            Reader::Tcp(io) => terse_tls::gone(io.as_ref(), |interest| io.ready(interest)).await,
            Reader::Unix(io) => terse_tls::gone(io.as_ref(), |interest| io.ready(interest)).await,
            Reader::Tls(io) => io.gone().await,
            // The end of a stream cancels the task that serves it.
            Reader::Stream(_) => std::future::pending().await,
        }
    }
}

/// The runtime's view of both kinds of sockets.
trait Socket: AsFd {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Writes, unless it is known that there is no room.
    fn try_send(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Runs a read that may find nothing there, unless nothing is known to be there.
    fn try_read_with<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R>;
}

impl Socket for TcpStream {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        TcpStream::poll_read_ready(self, cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        TcpStream::poll_write_ready(self, cx)
    }

    fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, || send(self, bytes))
    }

    fn try_read_with<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::READABLE, f)
    }
}

impl Socket for UnixStream {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        UnixStream::poll_read_ready(self, cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        UnixStream::poll_write_ready(self, cx)
    }

    fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, || send(self, bytes))
    }

    fn try_read_with<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::READABLE, f)
    }
}

fn send(io: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(io, bytes, SendFlags::NOSIGNAL)?)
}

fn has_bytes(io: impl AsFd) -> bool {
    peek(io).is_ok()
}

/// Finds bytes or the end without taking them; an error where there is nothing.
fn peek(io: impl AsFd) -> io::Result<()> {
    match rustix::net::recv(io, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Err(rustix::io::Errno::AGAIN) => Err(io::ErrorKind::WouldBlock.into()),
        // A reset is an end, too.
        _ => Ok(()),
    }
}

fn is_readable(io: &impl Socket) -> bool {
    io.try_read_with(|| Ok(())).is_ok()
}

/// Asks first, and prepares for waiting only where there is nothing.
fn poll_readable(io: &impl Socket, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    if is_readable(io) { Poll::Ready(Ok(())) } else { io.poll_read_ready(cx) }
}

/// The same for a read. A read that did not fill the room has emptied the socket, and the kernel will signal when there is
/// more: so the runtime's readiness is cleared, which saves the read that would find that out.
fn poll_read(io: &impl Socket, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
    let turn = ready!(coop::poll_proceed(cx));
    loop {
        let mut read = None;
        let tried = io.try_read_with(|| {
            let n = rustix::net::recv(io.as_fd(), &mut *room, RecvFlags::empty())?.0;
            read = Some(n);
            if n == 0 || n == room.len() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        match (read, tried) {
            (Some(n), _) => {
                turn.made_progress();
                return Poll::Ready(Ok(n));
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                turn.made_progress();
                return Poll::Ready(Err(error));
            }
            (None, _) => ready!(io.poll_read_ready(cx))?,
        }
    }
}

/// Writes some of the bytes; returns their number.
fn poll_send(io: &impl Socket, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    loop {
        match io.try_send(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(io.poll_write_ready(cx))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => return Poll::Ready(sent),
        }
    }
}

impl Writer<'_> {
    /// The stream of HTTP/2; `None` for a socket.
    pub fn stream(&self) -> Option<&Http2Stream> {
        match self {
            Writer::Stream(io) => Some(io),
            Writer::Tcp(_) | Writer::Unix(_) | Writer::Tls(_) => None,
        }
    }

    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        match self {
            Writer::Tcp(io) => SockRef::from(io.as_ref()),
            Writer::Unix(io) => SockRef::from(io.as_ref()),
            Writer::Tls(io) => io.socket(),
            Writer::Stream(io) => io.socket(),
        }
    }

    /// Makes the end look like a broken connection, where there is TLS to tell the difference.
    pub fn break_off(&self) {
        if let Writer::Tls(io) = self {
            io.break_off();
        }
    }

    /// Waits until the peer is [gone](terse_tls::gone).
    pub async fn gone(&self) {
        match self {
            Writer::Tcp(io) => terse_tls::gone(io.as_ref(), |interest| io.ready(interest)).await,
            Writer::Unix(io) => terse_tls::gone(io.as_ref(), |interest| io.ready(interest)).await,
            Writer::Tls(io) => io.gone().await,
            Writer::Stream(_) => std::future::pending().await,
        }
    }

    /// Sets whether the next bytes to be written are compressed already ([`Secured::store_records`]).
    pub fn store(&self, stores: bool) {
        if let Writer::Tls(io) = self {
            io.store_records(stores);
        }
    }

    /// Writes some of the slices; returns the number of bytes.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        // Nearly always there is room: asked first, before the runtime prepares for waiting.
        let tried = match (&*self, slices) {
            (Writer::Tcp(io), [one]) => io.as_ref().try_io(Interest::WRITABLE, || send(io.as_ref(), one)),
            (Writer::Tcp(io), _) => io.try_write_vectored(slices),
            (Writer::Unix(io), [one]) => io.as_ref().try_io(Interest::WRITABLE, || send(io.as_ref(), one)),
            (Writer::Unix(io), _) => io.try_write_vectored(slices),
            (Writer::Tls(io), _) => return io.poll_write(cx, slices),
            (Writer::Stream(_), _) => return Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        };
        if !matches!(&tried, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            return Poll::Ready(tried);
        }
        match (self, slices) {
            (Writer::Tcp(io), [one]) => Pin::new(io).poll_write(cx, one),
            (Writer::Tcp(io), _) => Pin::new(io).poll_write_vectored(cx, slices),
            (Writer::Unix(io), [one]) => Pin::new(io).poll_write(cx, one),
            (Writer::Unix(io), _) => Pin::new(io).poll_write_vectored(cx, slices),
            (Writer::Tls(io), _) => io.poll_write(cx, slices),
            (Writer::Stream(_), _) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Writes bytes to a plain TCP socket which others follow at once: both may leave in a single packet.
    pub fn poll_send_ahead(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_tcp(cx, |io| Ok(rustix::net::send(io, bytes, SendFlags::NOSIGNAL | SendFlags::MORE)?))
    }

    /// Moves bytes of a pipe that holds some into a plain TCP socket; returns their number.
    pub fn poll_splice(&self, cx: &mut Context<'_>, pipe: &mut Pipe<'_>) -> Poll<io::Result<usize>> {
        self.poll_tcp(cx, |io| pipe.drain(io))
    }

    fn poll_tcp(&self, cx: &mut Context<'_>, mut write: impl FnMut(&TcpStream) -> io::Result<usize>) -> Poll<io::Result<usize>> {
        let Writer::Tcp(io) = self else { return Poll::Ready(Err(io::ErrorKind::InvalidInput.into())) };
        let io = io.as_ref();
        loop {
            match io.try_io(Interest::WRITABLE, || write(io)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(io.poll_write_ready(cx))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Closes the sending side.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        poll_fn(|cx| match self {
            Writer::Tcp(io) => Pin::new(io).poll_shutdown(cx),
            Writer::Unix(io) => Pin::new(io).poll_shutdown(cx),
            Writer::Tls(io) => io.poll_shutdown(cx),
            Writer::Stream(io) => io.poll_end(cx),
        })
        .await
    }
}
