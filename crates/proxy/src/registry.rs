//! The open streams of each worker, for those who list and end them: stats sockets, servers that are marked down, the hard stop.
//!
//! ```text
//! another thread -> Registries -> the worker's channel -> its Registry -> Cancel of the stream's task
//! ```
//!
//! A worker's registry is its own: a stream enters it and leaves it under no lock. Other threads send an order, which a task of the
//! worker carries out.

use crate::cancel::Cancel;
use crate::figures::Figures;
use crate::session::Session;
use crate::stream::Stream;
use crate::worker::Worker;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use terse_message::{Phase, Who};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A worker's open streams.
#[derive(Default)]
pub struct Registry {
    places: RefCell<Places>,
    count: Cell<usize>,
    /// Tells that a stream has ended.
    left: Notify,
}

#[derive(Default)]
struct Places {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
}

/// An open stream.
struct Entry {
    id: u64,
    start: Instant,
    session: Rc<Session>,
    cancel: Rc<Cancel>,
    figures: Rc<Figures>,
}

/// A stream's place in the registry; dropping it gives it up.
pub struct Open {
    worker: Rc<Worker>,
    place: usize,
}

/// Streams that are to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// The stream of that number.
    Of(u64),
    /// Those that the server in that slot counts.
    OnServer(usize),
    /// All.
    All,
}

/// An open stream, as it is shown.
#[derive(Clone, Debug)]
pub struct Listed {
    /// A number that no other stream of the process has.
    pub id: u64,
    /// How long it has been there.
    pub age: Duration,
    /// The index of its frontend.
    pub frontend: usize,
    /// The index of the address that its client came in by.
    pub bind: usize,
    /// The client's address, over IP.
    pub client: Option<SocketAddr>,
    /// The address that the client connected to, over IP.
    pub local: Option<SocketAddr>,
    /// The sockets of the client and of the server.
    pub sockets: (Option<RawFd>, Option<RawFd>),
    /// The number of its backend.
    pub backend: Option<usize>,
    /// The slot of its server.
    pub server: Option<usize>,
    /// How far it has come.
    pub phase: Phase,
    /// Bytes from the client, to the server, from the server, and to the client.
    pub bytes: [u64; 4],
}

impl Registry {
    /// Enters a stream, whose task is cancelled by this.
    pub fn enter(worker: &Rc<Worker>, stream: &Stream, cancel: &Rc<Cancel>) -> Open {
        let facts = &stream.facts;
        let entry = Entry {
            id: facts.id,
            start: facts.times.start,
            session: facts.session.clone(),
            cancel: cancel.clone(),
            figures: facts.figures.clone(),
        };
        cancel.clear();
        let registry = &worker.registry;
        let mut places = registry.places.borrow_mut();
        let place = match places.free.pop() {
            Some(place) => place,
            None => {
                places.entries.push(None);
                places.entries.len() - 1
            }
        };
        if let Some(room) = places.entries.get_mut(place) {
            *room = Some(entry);
        }
        registry.count.set(registry.count.get() + 1);
        Open { worker: worker.clone(), place }
    }

    /// Ends streams; says how many there are.
    pub fn end(&self, streams: Streams, why: Who) -> usize {
        let is_meant = |entry: &&Entry| match streams {
            Streams::Of(id) => entry.id == id,
            Streams::OnServer(slot) => entry.figures.server.get() == Some(slot),
            Streams::All => true,
        };
        let mut ended = 0;
        for entry in self.places.borrow().entries.iter().flatten().filter(is_meant) {
            entry.cancel.set(why);
            ended += 1;
        }
        ended
    }

    /// Waits until no stream is open.
    pub async fn emptied(&self) {
        while self.count.get() > 0 {
            self.left.notified().await;
        }
    }

    fn list(&self, now: Instant) -> Vec<Listed> {
        self.places.borrow().entries.iter().flatten().map(|entry| entry.listed(now)).collect()
    }
}

impl Entry {
    fn listed(&self, now: Instant) -> Listed {
        let (session, figures) = (&*self.session, &*self.figures);
        let (client, local) = session.ends();
        Listed {
            id: self.id,
            age: now.saturating_duration_since(self.start),
            frontend: session.frontend,
            bind: session.bind,
            client,
            local,
            sockets: (session.socket.get(), figures.server_socket.get()),
            backend: figures.backend.get(),
            server: figures.server.get(),
            phase: figures.phase.get(),
            bytes: [&figures.bytes_in, &figures.bytes_to_server, &figures.bytes_from_server, &figures.bytes_out].map(Cell::get),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let registry = &self.worker.registry;
        let mut places = registry.places.borrow_mut();
        let entry = places.entries.get_mut(self.place).and_then(Option::take);
        places.free.push(self.place);
        drop(places);
        drop(entry);
        registry.count.set(registry.count.get() - 1);
        registry.left.notify_one();
    }
}

/// The way of all threads to the workers' registries.
pub struct Registries {
    workers: Vec<Inbox>,
}

struct Inbox {
    orders: UnboundedSender<Order>,
    /// Until its worker takes it.
    received: Mutex<Option<UnboundedReceiver<Order>>>,
}

enum Order {
    End(Streams, Who, Option<Sender<usize>>),
    List(Sender<Vec<Listed>>),
}

impl Registries {
    /// For so many workers.
    pub fn new(workers: usize) -> Registries {
        let inbox = |_| {
            let (orders, received) = unbounded_channel();
            Inbox { orders, received: Mutex::new(Some(received)) }
        };
        Registries { workers: (0..workers.max(1)).map(inbox).collect() }
    }

    /// Has streams ended. It does not wait for that.
    pub fn end(&self, streams: Streams, why: Who) {
        self.tell(|| Order::End(streams, why, None));
    }

    /// Has a stream ended; false where there is none of that number. It is not for workers: it waits for them.
    pub fn end_one(&self, id: u64, why: Who) -> bool {
        let ended = self.ask(|reply| Order::End(Streams::Of(id), why, Some(reply)));
        ended.into_iter().sum::<usize>() > 0
    }

    /// The open streams of all workers, the oldest first. It is not for workers: it waits for them.
    pub fn list(&self) -> Vec<Listed> {
        let mut all: Vec<Listed> = self.ask(Order::List).into_iter().flatten().collect();
        all.sort_by_key(|listed| (std::cmp::Reverse(listed.age), listed.id));
        all
    }

    fn tell(&self, order: impl Fn() -> Order) -> usize {
        // A worker that has ended has no streams.
        self.workers.iter().filter(|worker| worker.orders.send(order()).is_ok()).count()
    }

    /// What the workers reply; one that computes for too long is left out.
    fn ask<T>(&self, order: impl Fn(Sender<T>) -> Order) -> Vec<T> {
        let (reply, replies) = channel();
        let asked = self.tell(|| order(reply.clone()));
        let until = Instant::now() + PATIENCE;
        let next = |_| replies.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
        (0..asked).map_while(next).collect()
    }
}

/// How long workers are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Carries out the orders of other threads.
pub async fn serve(worker: Rc<Worker>) {
    let inbox = worker.plan.registries.workers.get(worker.index);
    let received = inbox.and_then(|inbox| inbox.received.lock().unwrap_or_else(PoisonError::into_inner).take());
    let Some(mut received) = received else { return };
    while let Some(order) = received.recv().await {
        // Whoever has asked may have given up waiting.
        match order {
            Order::End(streams, why, reply) => {
                if let (Streams::OnServer(slot), Who::Down | Who::Replaced) = (streams, why) {
                    worker.idle.leave(slot);
                }
                let ended = worker.registry.end(streams, why);
                reply.map(|reply| reply.send(ended));
            }
            Order::List(reply) => drop(reply.send(worker.registry.list(Instant::now()))),
        }
    }
}
