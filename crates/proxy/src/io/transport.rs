//! A connection's two ends, whatever socket lies below.

use super::buffer::Buffer;
use socket2::SockRef;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// A connected stream socket.
#[derive(Debug)]
pub enum Transport {
    /// Over IPv4 or IPv6.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

/// The half that reads.
pub enum Reader<'a> {
    /// Over IPv4 or IPv6.
    Tcp(tcp::ReadHalf<'a>),
    /// Over a unix socket.
    Unix(unix::ReadHalf<'a>),
}

/// The half that writes.
pub enum Writer<'a> {
    /// Over IPv4 or IPv6.
    Tcp(tcp::WriteHalf<'a>),
    /// Over a unix socket.
    Unix(unix::WriteHalf<'a>),
}

impl Transport {
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
        }
    }

    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        match self {
            Transport::Tcp(io) => SockRef::from(io),
            Transport::Unix(io) => SockRef::from(io),
        }
    }

    /// Whether there is something to read, or the peer has closed. No system call.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Tcp(io) => io.poll_read_ready(cx),
            Transport::Unix(io) => io.poll_read_ready(cx),
        }
    }

    /// Whether the peer has said or closed anything while it should be silent: such a connection is not used again.
    pub fn is_stale(&self) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        self.poll_readable(&mut cx).is_ready()
    }

    /// The same, asked of the kernel.
    pub fn has_ended(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let peeked = match self {
            Transport::Tcp(io) => SockRef::from(io).peek(&mut byte),
            Transport::Unix(io) => SockRef::from(io).peek(&mut byte),
        };
        !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Tells the peer that nothing more comes.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.split().1.shutdown().await
    }

    /// The peer's address, over IP.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Transport::Tcp(io) => io.peer_addr().ok(),
            Transport::Unix(_) => None,
        }
    }

    /// The socket's descriptor, for what the kernel is asked about it while it is open.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Transport::Tcp(io) => io.as_raw_fd(),
            Transport::Unix(io) => io.as_raw_fd(),
        }
    }

    /// This end's address, over IP.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Transport::Tcp(io) => io.local_addr().ok(),
            Transport::Unix(_) => None,
        }
    }
}

impl Reader<'_> {
    /// Reads into the buffer's room; 0 at the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(buffer.room());
        ready!(match self {
            Reader::Tcp(io) => Pin::new(io).poll_read(cx, &mut room),
            Reader::Unix(io) => Pin::new(io).poll_read(cx, &mut room),
        })?;
        let n = room.filled().len();
        buffer.advance(n);
        Poll::Ready(Ok(n))
    }

    /// The same, awaited.
    pub async fn read(&mut self, buffer: &mut Buffer) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Whether there is something to read, or the peer has closed.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Reader::Tcp(io) => io.as_ref().poll_read_ready(cx),
            Reader::Unix(io) => io.as_ref().poll_read_ready(cx),
        }
    }
}

impl Writer<'_> {
    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        match self {
            Writer::Tcp(io) => SockRef::from(io.as_ref()),
            Writer::Unix(io) => SockRef::from(io.as_ref()),
        }
    }

    /// Writes some of the slices; how many bytes.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        // Nearly always there is room: asked first, before the runtime prepares for waiting.
        let tried = match (&*self, slices) {
            (Writer::Tcp(io), [one]) => io.try_write(one),
            (Writer::Tcp(io), _) => io.try_write_vectored(slices),
            (Writer::Unix(io), [one]) => io.try_write(one),
            (Writer::Unix(io), _) => io.try_write_vectored(slices),
        };
        if !matches!(&tried, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            return Poll::Ready(tried);
        }
        match (self, slices) {
            (Writer::Tcp(io), [one]) => Pin::new(io).poll_write(cx, one),
            (Writer::Tcp(io), _) => Pin::new(io).poll_write_vectored(cx, slices),
            (Writer::Unix(io), [one]) => Pin::new(io).poll_write(cx, one),
            (Writer::Unix(io), _) => Pin::new(io).poll_write_vectored(cx, slices),
        }
    }

    /// Tells the peer that nothing more comes.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        poll_fn(|cx| match self {
            Writer::Tcp(io) => Pin::new(io).poll_shutdown(cx),
            Writer::Unix(io) => Pin::new(io).poll_shutdown(cx),
        })
        .await
    }
}
