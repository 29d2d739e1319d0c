//! Early data (RFC 8446 section 2.3): bytes that a client sends with its hello, under a session of before, ahead of the
//! handshake.
//!
//! ```text
//! of a client:   Fresh -- early data --> Early -- all of it read, handshake made --> Open
//!                     \-- none -- handshake made --> Open
//! to a server:   Fresh -- session allows some --> Held -- the first write: sent early, handshake made, sent again if refused --> Open
//! ```
//!
//! Early data can be replayed by any party that has recorded it. So a client's early data is taken where its line has
//! `allow-0rtt`, each session once (OpenSSL sees to it). Its readers are told that the handshake is not made yet (RFC
//! 8470). A server is sent only data that does no harm when it arrives twice; callers know which that is.

use crate::counters::{COUNTERS, bump};
use crate::failure::{Cause, Failure};
use crate::raw::{self, EarlyStatus};
use crate::secured::{Secured, State, why};
use openssl::ssl::ErrorCode;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, ready};

/// The early data of a connection.
#[derive(Default)]
pub(crate) struct Early {
    /// Bytes that came and have not been given out.
    came: VecDeque<u8>,
    /// Whether any early data came.
    has_come: bool,
    /// Whether no more of it comes.
    is_whole: bool,
    /// Bytes that were sent.
    sent: Vec<u8>,
}

/// Outcome of a look for early data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Some early data has come.
    Came,
    /// No early data has come so far.
    Nothing,
    /// No more early data comes.
    Done,
}

/// Most bytes that a client may send early: OpenSSL's default.
pub(crate) const EARLY_BYTES: u32 = 16 * 1024;

impl Secured {
    /// Looks for early data with the hello; then the handshake continues after it.
    pub(crate) fn expect_early(&self) {
        *self.early.borrow_mut() = Some(Box::default());
    }

    /// Puts the handshake off until there are bytes to send with the hello.
    pub(crate) fn hold(&self) {
        *self.early.borrow_mut() = Some(Box::default());
        self.state.set(State::Held);
    }

    /// Whether early data has come that the other end's handshake does not vouch for yet.
    pub fn is_early(&self) -> bool {
        self.state.get() == State::Early
    }

    /// Whether early data has come at all.
    pub fn had_early(&self) -> bool {
        self.early.borrow().as_ref().is_some_and(|early| early.has_come)
    }

    /// Whether the first written bytes went ahead of the handshake, and were taken so.
    pub fn went_early(&self) -> bool {
        self.went_early.get()
    }

    /// Waits until the handshake is made, where early data came before it.
    pub fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while self.is_early() {
            if self.read_early()? == Progress::Nothing {
                ready!(self.poll_socket(cx))?;
            }
        }
        Poll::Ready(self.failure().map_or(Ok(()), Err))
    }

    /// Waits for early data, or for the sign that no more of it comes. It goes no further than to the first of it. So the
    /// reader of an early request is told so, however fast the rest of the handshake comes.
    pub(crate) fn poll_early(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while !self.has_early() {
            match self.read_early()? {
                Progress::Nothing => ready!(self.poll_socket(cx))?,
                Progress::Came => {}
                Progress::Done => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_socket(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let ready = ready!(self.poll_more(cx));
        Poll::Ready(ready.map_err(|_| self.fail(Failure { cause: Cause::Abort, library: 0 })))
    }

    /// Takes a record of early data; where there is no more of it, and there was some, makes the handshake after it.
    pub(crate) fn read_early(&self) -> Result<Progress, Failure> {
        let mut early = self.early.borrow_mut();
        let Some(early) = early.as_mut() else { return Ok(Progress::Done) };
        let mut stream = self.stream.borrow_mut();
        let mut room = [0; 4096];
        let mut done = Ok(());
        if !early.is_whole {
            match stream.read_early_data(&mut room) {
                Ok(0) => early.is_whole = true,
                Ok(n) => {
                    if !std::mem::replace(&mut early.has_come, true) {
                        bump(&COUNTERS.client_early);
                    }
                    // OpenSSL refuses more than `EARLY_BYTES`.
                    early.came.extend(&room[..n]);
                    self.state.set(State::Early);
                    return Ok(Progress::Came);
                }
                Err(error) => done = Err(error),
            }
        }
        if done.is_ok() && self.state.get() == State::Early {
            done = stream.do_handshake();
            if done.is_ok() {
                self.open(&stream);
            }
        }
        // An alert is worth sending, too.
        let _ = stream.get_mut().send_waiting();
        match done {
            Ok(()) => Ok(Progress::Done),
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(Progress::Nothing),
            Err(error) => {
                let failure = why(&stream, &error);
                Err(self.fail(failure))
            }
        }
    }

    /// Gives out early data, and returns the number of bytes; 0: none is left.
    pub(crate) fn give_early(&self, room: &mut [u8]) -> usize {
        let mut early = self.early.borrow_mut();
        let Some(early) = early.as_deref_mut() else { return 0 };
        let n = room.len().min(early.came.len());
        for (place, byte) in room.iter_mut().zip(early.came.drain(..n)) {
            *place = byte;
        }
        if early.came.is_empty() {
            early.came = VecDeque::new();
        }
        n
    }

    /// Whether early data is left that has not been given out.
    pub(crate) fn has_early(&self) -> bool {
        self.early.borrow().as_ref().is_some_and(|early| !early.came.is_empty())
    }

    /// Answers early data before the handshake is made.
    pub(crate) fn write_early(&self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.borrow_mut().write_early_data(bytes).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// The first write to a server: with the hello, as far as the session allows. The data goes once more after the
    /// handshake if the server did not take it so.
    pub(crate) fn poll_write_held(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let n = {
            let mut early = self.early.borrow_mut();
            let Some(early) = early.as_mut() else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
            if early.sent.is_empty() {
                let mut stream = self.stream.borrow_mut();
                let most = stream.ssl().session().map_or(0, |session| session.max_early_data());
                let bytes = &bytes[..bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX))];
                let n = stream.write_early_data(bytes).map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
                early.sent.extend_from_slice(&bytes[..n]);
            }
            early.sent.len()
        };
        ready!(self.poll_made(cx)).map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        let sent = self.early.borrow_mut().take().map(|early| early.sent).unwrap_or_default();
        let mut stream = self.stream.borrow_mut();
        if raw::early_status(stream.ssl()) == EarlyStatus::Accepted {
            bump(&COUNTERS.server_early);
            self.went_early.set(true);
            return Poll::Ready(Ok(n));
        }
        stream.ssl_write(&sent).map(|_| n).map_err(|_| io::ErrorKind::BrokenPipe.into()).into()
    }
}
