//! How connections end: what is said of it, and what is heard (RFC 8446 section 6.1).
//!
//! An end that is said, by close_notify, is whole. One that is not may be somebody's who has cut the line: what has come so far is given
//! to whoever reads, who asks then whether it is truncated. In the same way the other end sees that something of ours is missing.

use crate::counters::{COUNTERS, drop_one};
use crate::secured::{Secured, State, counter};
use crate::wire::Wire;
use openssl::ssl::{Error, ErrorCode, ShutdownState, SslStream};
use socket2::SockRef;
use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll, ready};

impl Secured {
    /// Says that nothing more comes, here and below.
    pub fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.close();
        ready!(self.poll_flush(cx))?;
        Poll::Ready(SockRef::from(&*self.socket).shutdown(Shutdown::Write))
    }

    /// Sees to it that the end of this connection looks like one that was cut off (RFC 8446 section 6.1): what was sent is not whole, and
    /// close_notify would say that it is.
    pub fn break_off(&self) {
        self.breaks_off.set(true);
    }

    /// Says that nothing more comes, as far as the socket takes it.
    fn close(&self) {
        let mut stream = self.stream.borrow_mut();
        if self.state.get() == State::Open && !self.breaks_off.get() && !stream.get_shutdown().contains(ShutdownState::SENT) {
            // Who does not listen any more need not be told.
            let _ = stream.shutdown();
        }
    }

    /// Whether the other end has closed without saying so: something may be missing (RFC 8446 section 6.1).
    pub fn is_truncated(&self) -> bool {
        let mut stream = self.stream.borrow_mut();
        stream.get_ref().truncated && !stream.get_shutdown().contains(ShutdownState::RECEIVED)
    }
}

/// What a failed read means; `None`: there is nothing yet.
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
