//! Streams to a server: opened by the head of a request, answered by heads that its connection's task brings.

use super::stream::{Asks, Stage};
use super::{Http2Stream, Multiplexed, Slot};
use crate::websocket;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use terse_http::h2::{Code, Event};
use terse_message::{Request, Response};

/// Meaning of the break of a stream to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The server has taken nothing of it (RFC 9113 section 8.7), or was not asked: its connection ended before the head had left.
    Refused,
    /// The server does not speak the protocol that was asked for over HTTP/2 (RFC 8441).
    NoProtocol,
    /// The server has broken HTTP/2's rules.
    Malformed,
    /// The server wants the request by HTTP/1.1.
    WantsHttp1,
    /// The server has reset it.
    Reset,
    /// The connection has ended. `true` for a single stream of it: the one that counts against the server.
    Ended(bool),
}

/// The most memory of a head that is kept, in bytes.
const SPARE_BYTES: usize = 4 * 1024;

/// The responses whose memory a connection keeps.
const SPARE: usize = 128;

impl Multiplexed {
    /// Number of further streams that the server takes, beside those that are reserved.
    pub fn free(&self) -> usize {
        let codec = self.codec.borrow();
        if self.is_half_closed() || self.is_killed() || codec.unconsumed() > self.most_unread.get() {
            return 0;
        }
        codec.free_streams().saturating_sub(self.reserved.get())
    }

    /// Streams that are open or reserved.
    pub fn streams(&self) -> usize {
        self.codec.borrow().open_streams() + self.reserved.get()
    }

    /// A stream to the server, which [`Http2Stream::request`] opens.
    pub fn reserve(self: &Rc<Self>) -> Rc<Http2Stream> {
        self.reserved.set(self.reserved.get() + 1);
        Rc::new(Http2Stream::new(self, 0, None))
    }

    /// Says that the connection ends, which has no stream any more.
    pub fn farewell(&self) {
        self.codec.borrow_mut().goaway(Code::NO_ERROR);
    }

    /// Whether a stream was not answered in time since the last call.
    pub fn take_doubt(&self) -> bool {
        self.is_doubted.replace(false)
    }

    /// Leaves the connection to a single session: its server knows a user by it. The first to ask has it.
    pub fn keep_to(&self, session: u64) {
        self.private_to.set(self.private_to.get().or(Some(session)));
    }

    /// The session that alone may have new streams of it.
    pub fn private_to(&self) -> Option<u64> {
        self.private_to.get()
    }

    /// Has the connection's task look again.
    pub fn stir(&self) {
        self.wake_task();
    }

    /// Gives back empty memory, for a connection that waits.
    pub fn shrink(&self) {
        self.codec.borrow_mut().shrink();
        self.spare.take();
    }

    /// Memory for a head.
    pub(super) fn empty_head(&self) -> Box<Response> {
        self.spare.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a head's memory back.
    pub(super) fn give_head(&self, head: Box<Response>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE && head.fields.capacity() <= SPARE_BYTES {
            spare.push(head);
        }
    }

    /// Gives a stream the head that has just come.
    pub fn take_head(&self, event: Event) {
        let (Event::Interim { id } | Event::Response { id, .. }) = event else { return };
        let mut head = self.empty_head();
        self.codec.borrow_mut().take_response(&mut head);
        if let Some(slot) = self.streams.borrow_mut().get(id) {
            slot.heads.push(head);
            slot.waker.take().into_iter().for_each(std::task::Waker::wake);
        }
    }
}

impl Http2Stream {
    /// Opens the stream with a request, whose `scheme` is that of its target; `ends` where no body follows. Returns the bytes
    /// of its encoded head. A stream that cannot be opened fails the task that sends or waits: [`Http2Stream::fate`].
    pub fn request(&self, request: &Request, scheme: &[u8], upgrades: bool, ends: bool) -> usize {
        if self.id() != 0 {
            return 0;
        }
        let mut codec = self.connection.codec.borrow_mut();
        let before = codec.output().len();
        let sent = if upgrades {
            if !codec.peer().extended_connect {
                self.asks.replace(Asks::Protocol { accept: None, name: Box::default() });
                return 0;
            }
            let (connect, protocol, accept) = websocket::to_http2(request);
            let sent = codec.send_request(&connect, scheme, Some(&protocol), false);
            self.asks.replace(Asks::Protocol { accept, name: protocol.into() });
            sent
        } else {
            codec.send_request(request, scheme, None, ends)
        };
        let Ok(id) = sent else { return 0 };
        let bytes = codec.output().len() - before;
        self.head_at.set(self.connection.sent.get() + codec.output().len() as u64);
        drop(codec);
        self.id.set(id);
        self.connection.reserved.set(self.connection.reserved.get().saturating_sub(1));
        self.connection.streams.borrow_mut().open.push_back(Slot::new(id, None));
        self.stage.set(if ends && !upgrades { Stage::End } else { Stage::Head });
        self.connection.wake_task();
        bytes
    }

    /// Takes the next head of the answer, interim or final, if it is there.
    pub fn next_head(&self, response: &mut Response) -> bool {
        let connection = &*self.connection;
        let head = connection.streams.borrow_mut().get(self.id()).and_then(Slot::next_head);
        let Some(mut head) = head else { return false };
        std::mem::swap(&mut *head, response);
        connection.give_head(head);
        if let Asks::Protocol { accept, name } = &*self.asks.borrow() {
            websocket::answer_in_http1(response, name, accept.as_deref());
        }
        true
    }

    /// Waits for the next head of the answer; an error where none comes.
    pub fn poll_head(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let connection = &*self.connection;
        let id = self.id();
        if connection.streams.borrow_mut().get(id).is_some_and(|slot| slot.has_head()) {
            return Poll::Ready(Ok(()));
        }
        if id == 0 {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        let codec = connection.codec.borrow();
        if codec.is_reset(id) || connection.is_half_closed() || codec.failure().is_some() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        drop(codec);
        self.wait(cx);
        Poll::Pending
    }

    /// Why the stream has broken off.
    pub fn fate(&self) -> Fate {
        let codec = self.connection.codec.borrow();
        let id = self.id();
        if id == 0 {
            let asks_protocol = matches!(*self.asks.borrow(), Asks::Protocol { .. });
            return if asks_protocol && !codec.is_going() { Fate::NoProtocol } else { Fate::Refused };
        }
        match codec.reset_by_peer(id) {
            Some(Code::REFUSED_STREAM) => return Fate::Refused,
            Some(Code::HTTP_1_1_REQUIRED) => return Fate::WantsHttp1,
            Some(_) => return Fate::Reset,
            None => {}
        }
        if codec.reset_code(id).is_some() || codec.failure().is_some() {
            return Fate::Malformed;
        }
        if self.connection.sent.get() < self.head_at.get() {
            return Fate::Refused;
        }
        Fate::Ended(!self.connection.is_blamed.replace(true))
    }

    /// The connection that carries it, to be kept.
    pub fn shared_connection(&self) -> Rc<Multiplexed> {
        self.connection.clone()
    }

    /// Waits until the stream is reset, or its connection has ended.
    pub fn poll_reset(&self, cx: &Context<'_>) -> Poll<()> {
        if self.connection.is_half_closed() || self.connection.codec.borrow().is_reset(self.id()) {
            return Poll::Ready(());
        }
        self.wait(cx);
        Poll::Pending
    }

    /// Reports that the server has not answered in time.
    pub fn doubt(&self) {
        self.connection.is_doubted.set(true);
    }

    /// The code by which the peer has reset the stream.
    pub fn reset_by_peer(&self) -> Option<u32> {
        self.connection.codec.borrow().reset_by_peer(self.id()).map(|code| code.0)
    }

    /// Releases the reservation of a stream that is not open, and chooses the code by which an unfinished stream is reset.
    pub(super) fn give_up(&self) {
        if self.id() == 0 {
            self.connection.reserved.set(self.connection.reserved.get().saturating_sub(1));
            return;
        }
        let codec = self.connection.codec.borrow();
        let is_over = codec.is_complete(self.id()) || codec.is_all_but_ended(self.id());
        drop(codec);
        self.code.set(if is_over { Code::NO_ERROR } else { Code::CANCEL });
        if !is_over {
            self.stage.set(Stage::Head);
        }
    }
}
