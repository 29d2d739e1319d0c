//! A client's connection, as long as no exchange is in progress on it.

use crate::exchange::Broken;
use crate::io::{Buffer, Pools, Timer, Transport};
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::task::Poll;

/// A client's connection, or a stream of a connection: all that an idle connection is.
pub struct ClientConnection {
    /// The socket.
    pub io: Transport,
    /// Bytes that were read from it and have not yet gone on.
    pub buffer: Buffer,
    /// Its timer.
    pub timer: Timer,
}

impl ClientConnection {
    /// A connection of which nothing has been read.
    pub fn new(io: Transport, timer: Timer) -> ClientConnection {
        ClientConnection { io, buffer: Buffer::default(), timer }
    }

    /// Reads more into the buffer, under the deadline that the timer has.
    pub async fn more(&mut self) -> Result<(), Broken> {
        let ClientConnection { io, buffer, timer } = self;
        let read = poll_fn(|cx| match io.split().0.poll_read(cx, buffer) {
            Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            poll => poll,
        });
        match read.await {
            Ok(0) => Err(Broken::Closed),
            Ok(_) => Ok(()),
            Err(error) => Err(Broken::of(&error)),
        }
    }

    /// Reads more, without a limit; false when nothing more comes. While it waits with nothing in hand, it holds no buffer.
    pub async fn more_patiently(&mut self, pools: &Pools) -> bool {
        let ClientConnection { io, buffer, .. } = self;
        loop {
            buffer.release_if_empty();
            if buffer.is_released() {
                if poll_fn(|cx| io.poll_readable(cx)).await.is_err() {
                    return false;
                }
                *buffer = pools.small.get().await;
            }
            let read = poll_fn(|cx| match io.split().0.poll_read(cx, buffer) {
                // It seemed readable and was not: then the buffer is given back.
                Poll::Pending if buffer.is_empty() => Poll::Ready(None),
                poll => poll.map(Some),
            });
            match read.await {
                None => {}
                Some(read) => return read.is_ok_and(|n| n > 0),
            }
        }
    }

    /// Hands over the bytes that TLS has taken and the kernel has not, under the deadline that the timer has.
    pub async fn deliver(&mut self) {
        let ClientConnection { io, timer, .. } = self;
        poll_fn(|cx| match io.poll_flush(cx) {
            Poll::Pending if timer.is_due(cx) => Poll::Ready(()),
            poll => poll.map(drop),
        })
        .await;
    }

    /// Closes the sending side, if the client takes the bytes that TLS holds before the timer's deadline.
    pub async fn shut_down(&mut self) -> io::Result<()> {
        let ClientConnection { io, timer, .. } = self;
        let mut closing = std::pin::pin!(io.shutdown());
        poll_fn(|cx| match closing.as_mut().poll(cx) {
            Poll::Pending if timer.is_due(cx) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            poll => poll,
        })
        .await
    }
}
