//! The way to a name server: a single socket, many questions in flight.
//!
//! ```text
//! askers -> Order -> the task of the name server -> one socket -> answers, by number, name and kind -> askers
//!                         \-- cut over UDP --> its task for TCP -> one connection
//! ```
//!
//! Invariants:
//! * A name server costs one descriptor for datagrams and one for a connection, however many questions are asked.
//! * A question has a random number of its own among those that are in flight. A message that fits no question is counted
//!   and dropped.
//! * After messages that fit no question, the socket is exchanged for another port as soon as no question waits for it. An
//!   attacker that guesses numbers begins again.

use crate::counters::{Count, Counters};
use crate::message::{self, Answer, Kind, Problem};
use crate::settings::NameServer;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

/// A name server, and its counters.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) server: NameServer,
    pub(crate) counters: Counters,
    /// The largest datagram.
    payload_bytes: u16,
    /// Time limit of an answer.
    patience: Duration,
    datagrams: Door,
    stream: Door,
}

/// Reason why a name server gave no good answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The question could not be sent.
    Unsent,
    /// No answer came in time.
    Late,
    /// The answer has this problem.
    Said(Problem),
}

/// Outcome of a question.
pub(crate) type Reply = Result<Answer, Failure>;

/// A question, and the way back to its asker.
#[derive(Debug)]
struct Order {
    name: Arc<str>,
    kind: Kind,
    reply: oneshot::Sender<Reply>,
    /// Content of a truncated answer, if this is asked again for its sake.
    cut: Option<Reply>,
    /// Whether a connection ended over it.
    tried: bool,
}

/// Entrance for questions. The other end waits for the task that asks them.
#[derive(Debug)]
struct Door {
    give: mpsc::UnboundedSender<Order>,
    take: Mutex<Option<mpsc::UnboundedReceiver<Order>>>,
}

impl Line {
    pub(crate) fn new(server: &NameServer, payload_bytes: u16, patience: Duration) -> Line {
        Line {
            server: server.clone(),
            counters: Counters::default(),
            payload_bytes,
            patience,
            datagrams: Door::new(),
            stream: Door::new(),
        }
    }

    /// Asks, and waits for the outcome. Dropping the future gives the question up.
    pub(crate) async fn ask(&self, name: &Arc<str>, kind: Kind) -> Reply {
        let (reply, answer) = oneshot::channel();
        let door = if self.server.stream { &self.stream } else { &self.datagrams };
        door.hand_in(Order { name: name.clone(), kind, reply, cut: None, tried: false });
        answer.await.unwrap_or(Err(Failure::Unsent))
    }

    /// Sends the questions that are handed in, for ever; dropping the future ends it. There is one such task.
    pub(crate) async fn serve(self: Arc<Line>) {
        let (Some(datagrams), Some(stream)) = (self.datagrams.open(), self.stream.open()) else { return };
        tokio::join!(self.serve_datagrams(datagrams), self.serve_stream(stream));
    }

    async fn serve_datagrams(&self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let (mut socket, mut flight) = (None, Flight::default());
        let mut bytes = vec![0; usize::from(self.payload_bytes) + 1];
        loop {
            let received = async {
                match &socket {
                    Some(socket) => UdpSocket::recv(socket, &mut bytes).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                order = orders.recv(), if flight.has_room() => match order {
                    Some(order) => self.send(order, &mut socket, &mut flight).await,
                    None => return,
                },
                received = received => match received {
                    Ok(length) if length > usize::from(self.payload_bytes) => self.counters.bump(Count::TooLarge),
                    Ok(length) => self.take(&bytes[..length], &mut flight, true),
                    // The name server's machine reports that its port is closed. That may be over before the time is.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(_) => socket = None,
                },
                () = flight.some_are_late() => self.expire(&mut flight),
            }
            if flight.is_suspect() {
                (socket, flight.foreign) = (None, 0);
            }
        }
    }

    async fn send(&self, order: Order, socket: &mut Option<UdpSocket>, flight: &mut Flight) {
        // Its asker has another answer by now.
        if order.reply.is_closed() {
            return;
        }
        if socket.is_none() {
            *socket = connected(self.server.address).await.map_err(|error| EXHAUSTION.note(&error, Purpose::Resolve)).ok();
        }
        let question =
            flight.number().and_then(|id| Some((id, message::question(id, &order.name, order.kind, self.payload_bytes)?)));
        let Some((id, question)) = question else {
            let _ = order.reply.send(Err(Failure::Said(Problem::Malformed)));
            return;
        };
        let sent = match socket {
            Some(socket) => match socket.send(&question).await {
                // An error of an earlier question.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(&question).await,
                sent => sent,
            },
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        match sent {
            Ok(_) => {
                self.counters.bump(Count::Sent);
                flight.enter(id, order, self.patience);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => flight.enter(id, order, self.patience),
            Err(_) => {
                self.counters.bump(Count::SendErrors);
                // The questions that wait for it time out.
                *socket = None;
                let _ = order.reply.send(Err(Failure::Unsent));
            }
        }
    }

    /// Takes a message. A cut one is asked for again over a connection (RFC 7766 section 5).
    fn take(&self, bytes: &[u8], flight: &mut Flight, over_datagrams: bool) {
        let Some(id) = bytes.first_chunk().map(|id| u16::from_be_bytes(*id)) else {
            return self.counters.bump(Count::Invalid);
        };
        let Some(open) = flight.open.get(&id) else {
            flight.foreign += 1;
            return self.counters.bump(Count::Outdated);
        };
        let outcome = message::answer(bytes, id, &open.order.name, open.order.kind);
        if matches!(outcome, Err(Problem::Foreign)) {
            // This may be a guess: the right answer may still come.
            flight.foreign += 1;
            return self.counters.bump(Count::Invalid);
        }
        let Some(Open { order, .. }) = flight.open.remove(&id) else { return };
        if order.reply.is_closed() {
            return self.counters.bump(Count::Outdated);
        }
        let outcome = outcome.map_err(Failure::Said);
        match outcome {
            Err(Failure::Said(Problem::Truncated)) if over_datagrams => {
                self.counters.bump(Count::Truncated);
                let cut = message::cut_answer(bytes, id, &order.name, order.kind).map_err(Failure::Said);
                self.stream.hand_in(Order { cut: Some(cut), ..order });
            }
            outcome => self.settle(order, outcome),
        }
    }

    fn expire(&self, flight: &mut Flight) {
        while let Some(order) = flight.late() {
            if !order.reply.is_closed() {
                self.settle(order, Err(Failure::Late));
            }
        }
    }

    fn settle(&self, order: Order, outcome: Reply) {
        match (order.cut, &outcome) {
            // Errors that were counted already.
            (Some(cut), Err(_)) => {
                if cut.is_ok() {
                    self.count(&cut);
                }
                let _ = order.reply.send(cut);
            }
            _ => {
                self.count(&outcome);
                let _ = order.reply.send(outcome);
            }
        }
    }

    fn count(&self, outcome: &Reply) {
        self.counters.bump(match outcome {
            Ok(answer) => {
                if answer.aliased {
                    self.counters.bump(Count::Aliases);
                }
                Count::Valid
            }
            Err(Failure::Unsent) => Count::SendErrors,
            Err(Failure::Late) => Count::Timeouts,
            Err(Failure::Said(problem)) => match problem {
                Problem::Absent => Count::Absent,
                Problem::Refused => Count::Refused,
                Problem::Malformed | Problem::Foreign => Count::Invalid,
                Problem::Truncated => Count::Truncated,
                Problem::Empty => Count::AnyErrors,
                Problem::DeadAlias => Count::AliasErrors,
                Problem::Other => Count::Other,
            },
        });
    }

    /// Makes a connection when there is a question, and closes it when there has been none for a while.
    async fn serve_stream(&self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut waiting: VecDeque<Order> = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let Some(order) = orders.recv().await else { return };
                waiting.push_back(order);
            }
            waiting.retain(|order| !order.reply.is_closed());
            if waiting.is_empty() {
                continue;
            }
            let connected = timeout(self.patience, TcpStream::connect(self.server.address)).await;
            let failure = match &connected {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => {
                    EXHAUSTION.note(error, Purpose::Resolve);
                    Some(Failure::Unsent)
                }
                Err(_) => Some(Failure::Late),
            };
            let (None, Ok(Ok(stream))) = (failure, connected) else {
                // Questions that have come meanwhile would wait as long for the same.
                while let Ok(order) = orders.try_recv() {
                    waiting.push_back(order);
                }
                waiting.drain(..).for_each(|order| self.settle(order, Err(failure.unwrap_or(Failure::Unsent))));
                continue;
            };
            let mut flight = Flight::default();
            let answered = self.converse(stream, &mut waiting, &mut orders, &mut flight).await;
            for Open { order, .. } in flight.open.into_values() {
                // A connection that brought answers and ended may have ended for its age; another one is worth a try.
                if order.tried && !answered {
                    self.settle(order, Err(Failure::Unsent));
                } else {
                    waiting.push_back(Order { tried: true, ..order });
                }
            }
        }
    }

    /// Asks over a connection until that ends; true if it brought an answer.
    async fn converse(
        &self,
        mut stream: TcpStream,
        waiting: &mut VecDeque<Order>,
        orders: &mut mpsc::UnboundedReceiver<Order>,
        flight: &mut Flight,
    ) -> bool {
        let (mut bytes, mut answered, mut used) = (Vec::new(), false, Instant::now());
        loop {
            while let Some(order) = waiting.pop_front() {
                if !self.write(order, &mut stream, flight).await {
                    return answered;
                }
                used = Instant::now();
            }
            tokio::select! {
                order = orders.recv(), if flight.has_room() => match order {
                    Some(order) => waiting.push_back(order),
                    None => return answered,
                },
                read = stream.read_buf(&mut bytes) => {
                    if !matches!(read, Ok(1..)) {
                        return answered;
                    }
                    while let Some(message) = first_message(&bytes) {
                        self.take(message, flight, false);
                        let length = 2 + message.len();
                        bytes.drain(..length);
                        (answered, used) = (true, Instant::now());
                    }
                    if flight.is_suspect() {
                        return answered;
                    }
                }
                () = flight.some_are_late() => self.expire(flight),
                () = sleep_until(used + IDLE), if flight.open.is_empty() => return answered,
            }
        }
    }

    /// Writes a question. On a stream it follows its length (RFC 1035 section 4.2.2). False: the connection is of no
    /// further use.
    async fn write(&self, order: Order, stream: &mut TcpStream, flight: &mut Flight) -> bool {
        if order.reply.is_closed() {
            return true;
        }
        let question =
            flight.number().and_then(|id| Some((id, message::question(id, &order.name, order.kind, self.payload_bytes)?)));
        let Some((id, question)) = question else {
            let _ = order.reply.send(Err(Failure::Said(Problem::Malformed)));
            return true;
        };
        // Names are short.
        let framed = [&(question.len() as u16).to_be_bytes(), &question[..]].concat();
        flight.enter(id, order, self.patience);
        let written = timeout(self.patience, stream.write_all(&framed)).await;
        let is_written = matches!(written, Ok(Ok(())));
        self.counters.bump(if is_written { Count::Sent } else { Count::SendErrors });
        is_written
    }
}

impl Door {
    fn new() -> Door {
        let (give, take) = mpsc::unbounded_channel();
        Door { give, take: Mutex::new(Some(take)) }
    }

    fn open(&self) -> Option<mpsc::UnboundedReceiver<Order>> {
        self.take.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Hands a question in. Without a task at the other end, the asker gets the error that it was not sent.
    fn hand_in(&self, order: Order) {
        let _ = self.give.send(order);
    }
}

/// Questions that wait for answers on one socket.
#[derive(Default)]
struct Flight {
    open: HashMap<u16, Open>,
    /// Time limits, in the order of their sending.
    deadlines: VecDeque<(Instant, u16)>,
    /// Messages that fitted no question since the socket was opened.
    foreign: usize,
}

struct Open {
    order: Order,
    late: Instant,
}

impl Flight {
    fn has_room(&self) -> bool {
        self.open.len() < MOST_IN_FLIGHT
    }

    /// A random number that no question in flight has.
    fn number(&self) -> Option<u16> {
        (0..NUMBER_TRIES).map(|_| random_id()).find(|id| !self.open.contains_key(id))
    }

    fn enter(&mut self, id: u16, order: Order, patience: Duration) {
        let late = Instant::now() + patience;
        self.deadlines.push_back((late, id));
        self.open.insert(id, Open { order, late });
    }

    /// Returns when the oldest question is late.
    async fn some_are_late(&self) {
        match self.deadlines.front() {
            Some((late, _)) => sleep_until(*late).await,
            None => std::future::pending().await,
        }
    }

    /// Takes a question that is late.
    fn late(&mut self) -> Option<Order> {
        let now = Instant::now();
        while let Some((late, id)) = self.deadlines.front().copied().filter(|(late, _)| *late <= now) {
            self.deadlines.pop_front();
            // The number may be another question's by now.
            if self.open.get(&id).is_some_and(|open| open.late == late) {
                return self.open.remove(&id).map(|open| open.order);
            }
        }
        None
    }

    /// Whether the socket is worth exchanging.
    fn is_suspect(&self) -> bool {
        self.foreign > 0 && self.open.is_empty() || self.foreign >= MOST_FOREIGN
    }
}

async fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// The first whole message of a stream.
fn first_message(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

/// A question's number.
fn random_id() -> u16 {
    let mut bytes = [0; 2];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(2) => u16::from_ne_bytes(bytes),
        // An attacker still has to guess the port.
        _ => std::time::Instant::now().elapsed().subsec_nanos() as u16,
    }
}

/// Questions in flight to a name server, on each of its two sockets: a guess hits one of so many numbers.
pub(crate) const MOST_IN_FLIGHT: usize = 4096;

/// Tries to find a free number: enough with [`MOST_IN_FLIGHT`] of 65,536 numbers taken.
const NUMBER_TRIES: usize = 100;

/// Messages that fit no question before a socket is exchanged at once: these are guesses.
const MOST_FOREIGN: usize = 256;

/// Time for which a connection to a name server is kept without a question.
const IDLE: Duration = Duration::from_secs(10);
