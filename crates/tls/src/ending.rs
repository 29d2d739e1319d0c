//! Ends of connections: the alert that is sent, and the one that is received (RFC 8446 section 6.1).
//!
//! A connection that ends with close_notify is whole. Without it, an attacker may have cut the connection. The bytes that
//! have come so far are given to the reader, which asks then whether the stream is truncated. In the same way the other end
//! sees that bytes of ours are missing.

use crate::counters::{COUNTERS, drop_one};
use crate::secured::{Secured, State, counter};
use crate::wire::Wire;
use openssl::ssl::{Error, ErrorCode, ShutdownState, SslStream};
use socket2::SockRef;
use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll, ready};

impl Secured {
    /// Ends the sending of data, here and below.
    pub fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.close();
        ready!(self.poll_flush(cx))?;
        Poll::Ready(SockRef::from(&*self.socket).shutdown(Shutdown::Write))
    }

    /// Makes the end of this connection look like one that was cut off (RFC 8446 section 6.1). The data that was sent is
    /// not whole, and close_notify would claim that it is.
    pub fn break_off(&self) {
        self.breaks_off.set(true);
    }

    /// Sends close_notify, as far as the socket takes it.
    fn close(&self) {
        let mut stream = self.stream.borrow_mut();
        if self.state.get() == State::Open && !self.breaks_off.get() && !stream.get_shutdown().contains(ShutdownState::SENT) {
            // A peer that does not listen any more need not be told.
            let _ = stream.shutdown();
        }
    }

    /// Whether the other end has closed without close_notify: data may be missing (RFC 8446 section 6.1).
    pub fn is_truncated(&self) -> bool {
        let mut stream = self.stream.borrow_mut();
        stream.get_ref().truncated && !stream.get_shutdown().contains(ShutdownState::RECEIVED)
    }
}

/// The result of a failed read; `None`: there is nothing to read yet.
pub(crate) fn of_read(stream: &SslStream<Wire>, error: Error) -> Option<io::Result<usize>> {
    match error.code() {
        ErrorCode::WANT_READ => None,
        ErrorCode::ZERO_RETURN => Some(Ok(0)),
        _ if stream.get_ref().truncated => Some(Ok(0)),
        ErrorCode::SYSCALL => Some(Err(error.into_io_error().unwrap_or_else(|_| io::ErrorKind::ConnectionReset.into()))),
        _ => Some(Err(io::ErrorKind::InvalidData.into())),
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.close();
        drop_one(counter(self.side, &COUNTERS.clients, &COUNTERS.servers));
    }
}
