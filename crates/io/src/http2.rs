//! A connection of HTTP/2, to a client or to a server, and its streams as transports of one exchange each.
//!
//! ```text
//! socket --connection's task--> codec --Http2Stream::poll_receive--> the exchange's buffer
//! socket <--connection's task-- codec <--Http2Stream::poll_send----- the exchange's sender
//! ```
//! A client opens its streams ([`Multiplexed::open`]). Streams to a server are reserved ([`Multiplexed::reserve`]), and
//! opened by the head of a request ([`Http2Stream::request`]).
//!
//! Invariants:
//! * The connection's task alone reads and writes the socket. Streams borrow the codec within a single poll, never over an
//!   await.
//! * A stream that appends wakes the connection's task, which so runs after all tasks that were ready: the frames of a round
//!   leave in a single system call.
//! * A response's head waits in its stream until data is to be sent after it or it is flushed: until then it can be taken
//!   back.
//! * Streams that wait for room are served in turn, a share of the room each.

mod stream;
mod upstream;

pub use stream::{Asks, Http2Stream, Progress, Then};
pub use upstream::Fate;

use super::transport::Transport;
use crate::Cancel;
use smallvec::SmallVec;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use terse_http::h2::Connection;
use terse_message::{Response, Who};

/// A connection that carries many streams.
pub struct Multiplexed {
    io: Transport,
    codec: RefCell<Connection>,
    streams: RefCell<Streams>,
    /// The connection's task, where it waits.
    task: Cell<Option<Waker>>,
    /// Limit of the output in bytes: the room that streams share.
    room: usize,
    /// Bytes that were written.
    sent: Cell<u64>,
    /// The bytes of a server's streams that may lie unread while it gets new ones.
    most_unread: Cell<usize>,
    state: Cell<State>,
    /// Whether a rule has the connection closed at once.
    is_killed: Cell<bool>,
    /// Streams of this side's that are not open yet.
    reserved: Cell<usize>,
    /// Heads whose memory serves the next responses.
    #[allow(clippy::vec_box, reason = "a head goes from here to its stream and back as it is")]
    spare: RefCell<Vec<Box<Response>>>,
    /// A server has not answered one of its streams in time.
    is_doubted: Cell<bool>,
    /// Tasks that wait for the peer's SETTINGS.
    waiting_to_know: RefCell<Vec<Waker>>,
    /// The break of a server's connection was counted against the server: its other streams do not count it again.
    is_blamed: Cell<bool>,
    /// The session whose user a server knows by this connection.
    private_to: Cell<Option<u64>>,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum State {
    Open,
    /// The client sends nothing more.
    HalfClosed,
    /// Nothing can be written any more.
    Broken,
}

/// The open streams, whose ids ascend.
#[derive(Default)]
struct Streams {
    open: VecDeque<Slot>,
    /// The place of the stream that was last looked up: it is often the next one, too.
    last: Cell<usize>,
    /// Streams that wait for room in the output, or in the connection's window.
    waiting: VecDeque<u32>,
    /// Counts how often room was given.
    turn: u64,
    /// Limit of a stream's appended bytes in a turn.
    share: usize,
}

struct Slot {
    id: u32,
    waker: Option<Waker>,
    /// Cancels the exchange of a client's stream.
    cancel: Option<Rc<Cancel>>,
    /// Heads of a server's answer that were not taken yet.
    heads: SmallVec<[Box<Response>; 1]>,
    /// The turn in which the stream has sent last, and how much.
    turn: u64,
    sent: usize,
    is_waiting: bool,
}

/// The bytes read in a poll: then other tasks have their turn.
const READ_BYTES: usize = 64 * 1024;

/// The least that a stream may append in a turn, in bytes: a frame.
const FRAME_BYTES: usize = 16 * 1024;

impl Slot {
    fn new(id: u32, cancel: Option<Rc<Cancel>>) -> Slot {
        Slot { id, waker: None, cancel, heads: SmallVec::new(), turn: 0, sent: 0, is_waiting: false }
    }

    fn next_head(&mut self) -> Option<Box<Response>> {
        (!self.heads.is_empty()).then(|| self.heads.remove(0))
    }

    fn has_head(&self) -> bool {
        !self.heads.is_empty()
    }

    fn cancel(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.set(Who::Client);
        }
    }
}

impl Streams {
    fn get(&mut self, id: u32) -> Option<&mut Slot> {
        let place = self.place(id)?;
        self.open.get_mut(place)
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        let last = self.last.get();
        match self.open.get(last) {
            Some(slot) if slot.id == id => Some(last),
            _ => self.search(id),
        }
    }

    /// Ids come in steps of two: without streams that have ended between them, the place is known.
    fn search(&self, id: u32) -> Option<usize> {
        let first = self.open.front()?.id;
        let guess = (id.checked_sub(first)? / 2) as usize;
        let place = match self.open.get(guess) {
            Some(slot) if slot.id == id => guess,
            _ => self.open.binary_search_by_key(&id, |slot| slot.id).ok()?,
        };
        self.last.set(place);
        Some(place)
    }

    /// Wakes all that wait.
    fn dismiss(&mut self) {
        while let Some(id) = self.waiting.pop_front() {
            if let Some(slot) = self.get(id) {
                slot.is_waiting = false;
                slot.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Gives room to streams that wait, as many as there is room for.
    fn give(&mut self, room: usize) {
        self.turn += 1;
        self.share = (room / self.waiting.len().max(1)).max(FRAME_BYTES);
        for _ in 0..room.div_ceil(self.share) {
            let Some(id) = self.waiting.pop_front() else { break };
            if let Some(slot) = self.get(id) {
                slot.is_waiting = false;
                slot.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }
}

impl Multiplexed {
    /// A connection over a transport.
    pub fn new(io: Transport, codec: Connection, room: usize) -> Rc<Multiplexed> {
        Rc::new(Multiplexed {
            io,
            codec: RefCell::new(codec),
            streams: RefCell::new(Streams { share: room, ..Streams::default() }),
            task: Cell::new(None),
            room,
            sent: Cell::new(0),
            most_unread: Cell::new(usize::MAX),
            state: Cell::new(State::Open),
            is_killed: Cell::new(false),
            reserved: Cell::new(0),
            spare: RefCell::default(),
            is_doubted: Cell::new(false),
            waiting_to_know: RefCell::default(),
            is_blamed: Cell::new(false),
            private_to: Cell::new(None),
        })
    }

    /// A connection to a server, which gets no new streams while more than `most_unread` bytes of its streams are not read.
    pub fn to_server(io: Transport, codec: Connection, room: usize, most_unread: usize) -> Rc<Multiplexed> {
        let connection = Multiplexed::new(io, codec, room);
        connection.most_unread.set(most_unread);
        connection
    }

    /// The transport below.
    pub fn io(&self) -> &Transport {
        &self.io
    }

    /// The transport, once no stream is left.
    pub fn into_io(self: Rc<Self>) -> Option<Transport> {
        Rc::into_inner(self).map(|connection| connection.io)
    }

    /// The codec, for the connection's task.
    pub fn codec(&self) -> RefMut<'_, Connection> {
        self.codec.borrow_mut()
    }

    /// The codec, to be looked at.
    pub fn peek(&self) -> Ref<'_, Connection> {
        self.codec.borrow()
    }

    /// Whether a rule has the connection closed at once.
    pub fn is_killed(&self) -> bool {
        self.is_killed.get()
    }

    /// Keeps the waker of the connection's task.
    pub fn register(&self, cx: &Context<'_>) {
        let kept = self.task.take().filter(|waker| waker.will_wake(cx.waker()));
        self.task.set(Some(kept.unwrap_or_else(|| cx.waker().clone())));
    }

    /// Reads bytes of the socket, with `room` for a piece of them, and feeds them to the connection's task. Returns the
    /// number of bytes read.
    pub fn read(&self, cx: &mut Context<'_>, room: &mut [u8], mut feed: impl FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while !self.is_half_closed() && self.peek().wants_input() {
            if taken >= READ_BYTES {
                cx.waker().wake_by_ref();
                break;
            }
            match self.io.poll_receive(cx, room) {
                Poll::Pending => break,
                Poll::Ready(Ok(n)) if n > 0 => {
                    taken += n;
                    feed(&room[..n]);
                }
                Poll::Ready(Ok(_)) => self.half_close(),
                Poll::Ready(Err(_)) => self.break_off(),
            }
        }
        taken
    }

    /// Writes the waiting output, as far as the socket takes it, and gives streams room. Returns whether anything was
    /// written.
    pub fn poll_output(&self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut wrote = false;
        loop {
            let mut codec = self.codec.borrow_mut();
            if codec.output().is_empty() {
                break;
            }
            match self.io.poll_write(cx, codec.output()) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => {
                    codec.wrote(n);
                    self.sent.set(self.sent.get() + n as u64);
                }
                Poll::Ready(Err(error)) => return Err(error),
            }
            wrote = true;
        }
        if wrote && !self.is_open() {
            self.codec.borrow_mut().release_output();
        }
        // TLS may have taken bytes that the kernel has not.
        if !self.io.is_sent()
            && let Poll::Ready(flushed) = self.io.poll_flush(cx)
        {
            flushed?;
        }
        self.give_room(cx);
        Ok(wrote)
    }

    /// Whether the kernel has taken all output.
    pub fn is_sent(&self) -> bool {
        self.codec.borrow().output().is_empty() && self.io.is_sent()
    }

    fn give_room(&self, cx: &Context<'_>) {
        let mut streams = self.streams.borrow_mut();
        if streams.waiting.is_empty() {
            return;
        }
        let mut codec = self.codec.borrow_mut();
        let room = codec.room();
        if room == 0 && self.is_half_closed() && codec.window(0) == 0 {
            // No room will come: each of the streams is to find that out.
            return streams.dismiss();
        }
        if room > 0 && codec.output().len() <= self.room / 2 {
            streams.give(room);
            // Streams that were given room may have no use for it.
            if !streams.waiting.is_empty() {
                cx.waker().wake_by_ref();
            }
        }
    }

    /// A stream that the client has opened.
    pub fn open(self: &Rc<Self>, id: u32) -> Rc<Http2Stream> {
        let cancel = Rc::<Cancel>::default();
        self.streams.borrow_mut().open.push_back(Slot::new(id, Some(cancel.clone())));
        Rc::new(Http2Stream::new(self, id, Some(cancel)))
    }

    /// Wakes all tasks that wait for the peer's SETTINGS.
    pub fn tell_known(&self) {
        self.waiting_to_know.take().into_iter().for_each(Waker::wake);
    }

    /// Waits until the peer's SETTINGS are there, or never will be.
    pub async fn known(&self) {
        std::future::poll_fn(|cx| {
            if self.codec.borrow().is_known() || self.is_half_closed() || self.codec.borrow().failure().is_some() {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting_to_know.borrow_mut();
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Wakes the task of a stream.
    pub fn wake(&self, id: u32) {
        if let Some(slot) = self.streams.borrow_mut().get(id) {
            slot.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Ends the exchange of a stream that its client has given up.
    pub fn cancel(&self, id: u32) {
        if let Some(slot) = self.streams.borrow_mut().get(id) {
            slot.cancel();
            slot.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// The client sends nothing more: streams whose requests are whole go on, the others end.
    pub fn half_close(&self) {
        self.state.set(self.state.get().max(State::HalfClosed));
        self.tell_known();
        let codec = self.codec.borrow();
        for slot in &mut self.streams.borrow_mut().open {
            if !codec.has_peer_ended(slot.id) {
                slot.cancel();
            }
            slot.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// All exchanges end: nothing that comes of them would be read.
    pub fn cancel_all(&self) {
        self.tell_known();
        for slot in &mut self.streams.borrow_mut().open {
            slot.cancel();
            slot.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Nothing can be sent any more: all exchanges end.
    pub fn break_off(&self) {
        self.state.set(State::Broken);
        self.cancel_all();
    }

    /// Whether the client sends nothing more.
    pub fn is_half_closed(&self) -> bool {
        self.state.get() >= State::HalfClosed
    }

    /// Whether the peer takes data of any stream, as far as the connection's window says.
    pub fn is_open(&self) -> bool {
        self.codec.borrow().window(0) > 0
    }

    /// Whether nothing can be sent any more.
    pub fn is_broken(&self) -> bool {
        self.state.get() == State::Broken
    }

    fn wake_task(&self) {
        self.task.take().into_iter().for_each(Waker::wake);
    }
}
