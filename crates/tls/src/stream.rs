//! A connection with the interface of the runtime's streams, for code that only carries bytes.

use crate::failure::Failure;
use crate::secured::Secured;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose handshake is made.
#[derive(Debug)]
pub struct Stream(Secured);

impl Secured {
    /// Makes the handshake. The caller limits its time.
    ///
    /// # Errors
    /// The reason why it failed.
    pub async fn into_stream(self) -> Result<Stream, Failure> {
        // Borrowed as its only owner does, it may be sent to another thread in the middle of this.
        let mut own = self;
        poll_fn(|cx| {
            let own = &mut own;
            own.poll_handshake(cx)
        })
        .await?;
        Ok(Stream(own))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if room.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let n = ready!(self.0.poll_read(cx, room.initialize_unfilled()))?;
        room.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_shutdown(cx)
    }
}
