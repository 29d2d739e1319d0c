//! A check's connection: TCP or a unix socket, and TLS over them.

use super::probe::Connect;
use crate::address::Address;
use crate::server::Server;
use crate::signature::Signature;
use crate::socks4;
use std::ffi::OsStr;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::task::ready;
use terse_tls::{Connector, Request, Secured, Socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

/// A connection to a server.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// TLS over either.
    Tls(Box<Secured>),
}

/// TLS settings of a connection.
pub(super) struct Security<'a> {
    pub(super) connector: &'a Connector,
    /// Server name (SNI).
    pub(super) name: Option<&'a str>,
    /// Offered protocols (ALPN).
    pub(super) protocols: Vec<&'a str>,
}

/// Connects, and has segments signed where there is a password.
async fn connect(to: SocketAddr, signature: Option<&Signature>) -> io::Result<TcpStream> {
    let Some(signature) = signature else { return TcpStream::connect(to).await };
    let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    signature.sign(&socket, to.ip())?;
    socket.connect(to).await
}

impl Stream {
    /// A connection to an address.
    pub(super) async fn to(address: SocketAddr) -> io::Result<Stream> {
        Stream::signed(address, None).await
    }

    async fn signed(address: SocketAddr, signature: Option<&Signature>) -> io::Result<Stream> {
        let stream = connect(address, signature).await?;
        // A check closes by a reset, so that its port need not wait for late packets.
        stream.set_zero_linger()?;
        Ok(Stream::Tcp(stream))
    }

    /// Connects to an address, through a SOCKS4 proxy where there is one.
    async fn by(proxy: Option<SocketAddr>, address: SocketAddr, signature: Option<&Signature>) -> io::Result<Stream> {
        let Some(proxy) = proxy else { return Stream::signed(address, signature).await };
        let mut stream = connect(proxy, signature).await?;
        stream.set_zero_linger()?;
        socks4::ask(&mut stream, address).await?;
        Ok(Stream::Tcp(stream))
    }

    /// Connects to a server, or to the address or port of a step in place of the server's.
    pub(super) async fn connect(server: &Server, to: &Connect) -> io::Result<Stream> {
        let settings = server.settings();
        let by_proxy = to.via_socks4 || to.as_server && settings.check.via_socks4;
        match settings.socks4.filter(|_| by_proxy) {
            None => Stream::connect_by(server, to, None).await,
            proxy => Box::pin(Stream::connect_by(server, to, proxy)).await,
        }
    }

    async fn connect_by(server: &Server, to: &Connect, proxy: Option<SocketAddr>) -> io::Result<Stream> {
        let aim = server.aim();
        let signature = server.settings().signature.as_ref();
        let open = |address: SocketAddr| Stream::by(proxy, address, signature);
        match (&*server.address(), (to.address, to.port)) {
            (Address::Unix(_) | Address::Abstract(_), (Some(ip), port)) => {
                let port = port.or(aim.check_port).unwrap_or(0);
                open(SocketAddr::new(ip, port)).await
            }
            (Address::Ip(address), (ip, port)) => {
                let ip = ip.or(aim.check_address).unwrap_or(address.ip());
                let port = port.or(aim.check_port).unwrap_or(address.port());
                open(SocketAddr::new(ip, port)).await
            }
            (Address::AsAsked(destination), (ip, port)) => {
                // A check has no client whose port could be used.
                let Some(port) = port.or(aim.check_port).or(destination.fixed_port()) else {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                };
                open(SocketAddr::new(ip.or(aim.check_address).unwrap_or(destination.ip), port)).await
            }
            (Address::Unix(path), _) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
            (Address::Abstract(name), _) => {
                Ok(Stream::Unix(UnixStream::connect(OsStr::from_bytes(&[b"\0", &name[..]].concat())).await?))
            }
        }
    }

    /// Starts TLS on the connection.
    ///
    /// # Errors
    /// The reason of the failed handshake, in the log's words.
    pub(super) async fn secure(self, security: Security<'_>) -> Result<Stream, String> {
        let socket = match self {
            Stream::Tcp(stream) => Socket::Tcp(stream),
            Stream::Unix(stream) => Socket::Unix(stream),
            Stream::Tls(_) => return Ok(self),
        };
        let Security { connector, name, protocols } = security;
        let secured =
            connector.connect(socket, name, Request::Check { protocols: &protocols }, None).map_err(|error| error.to_string())?;
        let mut secured = Box::new(secured);
        let stream = &mut *secured;
        let made = poll_fn(move |cx| {
            let stream = &mut *stream;
            stream.poll_handshake(cx)
        });
        match made.await {
            Ok(()) => Ok(Stream::Tls(secured)),
            Err(failure) => Err(failure.cause.text().to_owned()),
        }
    }

    /// Whether both ends agreed on a protocol of that name.
    pub(super) fn agreed_on(&self, protocol: &str) -> bool {
        let agreed = if let Stream::Tls(stream) = self { stream.handshake().protocol() } else { None };
        agreed.is_some_and(|agreed| agreed == protocol.as_bytes())
    }

    /// Our address and the server's, over IP.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok().zip(stream.peer_addr().ok()),
            Stream::Unix(_) | Stream::Tls(_) => None,
        }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes).await,
            Stream::Unix(stream) => stream.write_all(bytes).await,
            Stream::Tls(stream) => {
                let (stream, mut rest) = (&mut **stream, bytes);
                poll_fn(move |cx| {
                    let stream = &mut *stream;
                    while !rest.is_empty() {
                        let n = ready!(stream.poll_write(cx, &[IoSlice::new(rest)]))?;
                        rest = &rest[n..];
                    }
                    stream.poll_flush(cx)
                })
                .await
            }
        }
    }

    /// Appends the next bytes; returns their number.
    pub(super) async fn receive(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read_buf(bytes).await,
            Stream::Unix(stream) => stream.read_buf(bytes).await,
            Stream::Tls(stream) => {
                let (stream, mut room) = (&mut **stream, [0; 4096]);
                let read = poll_fn(|cx| {
                    let stream = &mut *stream;
                    stream.poll_read(cx, &mut room)
                });
                let n = read.await?;
                bytes.extend_from_slice(&room[..n]);
                Ok(n)
            }
        }
    }
}

/// An error in the log's words: HAProxy's name for it, and the system's.
pub(super) fn described(error: &io::Error) -> String {
    let text = error.to_string();
    let system = text.split(" (os error").next().unwrap_or_default();
    let name = match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED returned by OS",
        io::ErrorKind::ConnectionReset => "ECONNRESET returned by OS",
        io::ErrorKind::BrokenPipe => "EPIPE returned by OS",
        _ => "General socket error",
    };
    format!("{name} ({system})")
}
