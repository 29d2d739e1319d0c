//! Sockets to other processes, plain or over TLS.

use std::io;
use std::sync::Arc;
use terse_balance::Address;
use terse_tls::{Acceptor, Connector, Request, Socket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Address and TLS of a process.
#[derive(Clone, Default, Debug)]
pub struct Door {
    /// Listening address.
    pub address: Address,
    /// TLS connector.
    pub connector: Option<Arc<Connector>>,
}

impl Door {
    /// Opens a connection.
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let socket = match self.address.connect().await? {
            Socket::Tcp(stream) => tcp(stream),
            socket => socket,
        };
        match &self.connector {
            None => Ok(plain(socket)),
            Some(connector) => {
                let secured = connector.connect(socket, None, Request::Traffic, None)?.into_stream().await;
                Ok(Box::new(secured.map_err(|_| io::ErrorKind::ConnectionAborted)?))
            }
        }
    }
}

/// An accepted connection, after its TLS handshake where there is one.
pub(crate) async fn accepted(socket: Socket, acceptor: Option<&Arc<Acceptor>>) -> io::Result<Box<dyn Stream>> {
    match acceptor {
        None => Ok(plain(socket)),
        Some(acceptor) => {
            let secured = acceptor.accept(socket, b"", None)?.into_stream().await;
            Ok(Box::new(secured.map_err(|_| io::ErrorKind::ConnectionAborted)?))
        }
    }
}

/// A small message must not wait for the answer to the one before.
pub(crate) fn tcp(stream: TcpStream) -> Socket {
    let _ = stream.set_nodelay(true);
    Socket::Tcp(stream)
}

fn plain(socket: Socket) -> Box<dyn Stream> {
    match socket {
        Socket::Tcp(stream) => Box::new(stream),
        Socket::Unix(stream) => Box::new(stream),
    }
}
