//! The open streams of each worker, to be listed and ended: by stats sockets, servers that are marked down, the hard stop.
//!
//! ```text
//! another thread -> Registries -> the worker's channel -> its Registry -> Cancel of the stream's task
//! ```
//!
//! A worker's registry is its own: a task enters it and leaves it under no lock, for as long as it serves one stream after the other. Other
//! threads send an order, which a task of the worker carries out.

use crate::exchange::Cancel;
use crate::figures::Figures;
use crate::session::Session;
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
    /// Notified when a stream has ended.
    left: Notify,
}

#[derive(Default)]
struct Places {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
}

/// A task that serves streams; their figures say whether one is open.
struct Entry {
    session: Rc<Session>,
    cancel: Rc<Cancel>,
    figures: Rc<Figures>,
}

/// A task's place in the registry; dropping it gives it up.
pub struct Place {
    worker: Rc<Worker>,
    index: usize,
    cancel: Rc<Cancel>,
    figures: Rc<Figures>,
    /// Streams follow each other: a signal for the stream before is not meant for the next.
    is_reused: bool,
}

/// Streams that are to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// The stream of that number.
    Of(u64),
    /// The streams that the server in that slot counts.
    OnServer(usize),
    /// All.
    All,
}

/// An open stream, as it is shown.
#[derive(Clone, Debug)]
pub struct Listed {
    /// A number that no other stream of the process has.
    pub id: u64,
    /// Its age.
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
    /// Its phase.
    pub phase: Phase,
    /// Bytes from the client, to the server, from the server, and to the client.
    pub bytes: [u64; 4],
}

impl Registry {
    /// Enters the task of a session.
    pub fn enter(session: &Rc<Session>) -> Place {
        let mut place = Registry::enter_stream(session, session.cancel.clone());
        place.is_reused = true;
        place
    }

    /// Enters the task of a stream of a session; `cancel` ends it.
    pub fn enter_stream(session: &Rc<Session>, cancel: Rc<Cancel>) -> Place {
        let figures = Rc::<Figures>::default();
        let entry = Entry { session: session.clone(), cancel: cancel.clone(), figures: figures.clone() };
        let worker = session.worker.clone();
        let registry = &worker.registry;
        let mut places = registry.places.borrow_mut();
        let index = match places.free.pop() {
            Some(index) => index,
            None => {
                places.entries.push(None);
                places.entries.len() - 1
            }
        };
        if let Some(room) = places.entries.get_mut(index) {
            *room = Some(entry);
        }
        drop(places);
        registry.count.set(registry.count.get() + 1);
        Place { worker, index, cancel, figures, is_reused: false }
    }

    /// Ends streams; returns their number.
    pub fn end(&self, streams: Streams, why: Who) -> usize {
        let is_meant = |entry: &&Entry| match streams {
            _ if !entry.figures.is_open() => false,
            Streams::Of(id) => entry.figures.id.get() == id,
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

    /// Waits until no task serves streams any more.
    pub async fn emptied(&self) {
        while self.count.get() > 0 {
            self.left.notified().await;
        }
    }

    fn list(&self, now: Instant) -> Vec<Listed> {
        self.places.borrow().entries.iter().flatten().filter_map(|entry| entry.listed(now)).collect()
    }
}

impl Entry {
    /// The open stream, if there is one.
    fn listed(&self, now: Instant) -> Option<Listed> {
        let (session, figures) = (&*self.session, &*self.figures);
        let (client, local) = session.ends();
        let start = figures.start.get()?;
        Some(Listed {
            id: figures.id.get(),
            age: now.saturating_duration_since(start),
            frontend: session.frontend,
            bind: session.bind,
            client,
            local,
            sockets: (session.socket.get(), figures.server_socket.get()),
            backend: figures.backend.get(),
            server: figures.server.get(),
            phase: figures.phase.get(),
            bytes: [&figures.bytes_in, &figures.bytes_to_server, &figures.bytes_from_server, &figures.bytes_out].map(Cell::get),
        })
    }
}

impl Place {
    /// The figures of the task's next stream, which can be cancelled from then on. [`Figures::open`] has it
    /// listed.
    pub fn figures(&mut self) -> Rc<Figures> {
        if self.is_reused {
            self.cancel.clear();
        }
        // Parts of the stream before may still count: those figures stay its own.
        if Rc::strong_count(&self.figures) > 2 {
            self.renew();
        } else {
            self.figures.clear();
        }
        self.figures.clone()
    }

    #[cold]
    fn renew(&mut self) {
        self.figures = Rc::default();
        let mut places = self.worker.registry.places.borrow_mut();
        if let Some(Some(entry)) = places.entries.get_mut(self.index) {
            entry.figures = self.figures.clone();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let registry = &self.worker.registry;
        let mut places = registry.places.borrow_mut();
        let entry = places.entries.get_mut(self.index).and_then(Option::take);
        places.free.push(self.index);
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

    /// The workers' replies; a worker that computes for too long is left out.
    fn ask<T>(&self, order: impl Fn(Sender<T>) -> Order) -> Vec<T> {
        let (reply, replies) = channel();
        let asked = self.tell(|| order(reply.clone()));
        let until = Instant::now() + PATIENCE;
        let next = |_| replies.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
        (0..asked).map_while(next).collect()
    }
}

/// Time limit of the wait for workers.
const PATIENCE: Duration = Duration::from_secs(1);

/// Carries out the orders of other threads.
pub async fn serve(worker: Rc<Worker>) {
    let inbox = worker.plan.registries.workers.get(worker.index);
    let received = inbox.and_then(|inbox| inbox.received.lock().unwrap_or_else(PoisonError::into_inner).take());
    let Some(mut received) = received else { return };
    while let Some(order) = received.recv().await {
        // The asking thread may have given up waiting.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;

    #[test]
    fn a_stream_that_was_ended_before_its_task_began_is_not_served() {
        let trial = Trial::front("");
        let cancel = Rc::<Cancel>::default();
        cancel.set(Who::Client);
        let mut place = Registry::enter_stream(&trial.session, cancel.clone());
        drop(place.figures());
        let cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(cancel.poll(&cx).is_ready());
        trial.session.cancel.set(Who::Client);
        drop(Registry::enter(&trial.session).figures());
        assert!(trial.session.cancel.poll(&cx).is_pending(), "what was said of the stream before");
    }

    #[test]
    fn a_task_between_two_streams_is_neither_listed_nor_ended() {
        let trial = Trial::front("");
        let mut place = Registry::enter(&trial.session);
        let (registry, now) = (&trial.session.worker.registry, Instant::now());
        let ids = || registry.list(now).iter().map(|listed| listed.id).collect::<Vec<_>>();
        let figures = place.figures();
        assert_eq!((ids(), registry.end(Streams::All, Who::Killed)), (vec![], 0));
        figures.open(7, now);
        assert_eq!((ids(), registry.end(Streams::Of(8), Who::Killed), registry.end(Streams::Of(7), Who::Killed)), (vec![7], 0, 1));
        figures.close();
        assert_eq!(ids(), []);

        figures.bytes_in.set(5);
        let others = place.figures();
        others.open(8, now);
        assert_eq!((ids(), figures.bytes_in.get(), others.bytes_in.get()), (vec![8], 5, 0), "figures in use stay their stream's");
        drop(place);
        assert_eq!(ids(), []);
    }
}
