//! Subscriptions of scripts to events of servers, and the queues in which events wait for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use terse_balance::Operation;
use terse_balance::news::{Change, News, Subject};
use tokio::sync::Notify;

/// Events that may wait for a script.
pub(crate) const MOST_WAITING: usize = 100;
/// Most subscriptions.
pub(crate) const MOST: usize = 10_000;

/// Events that scripts may ask for, in the order of their bits.
pub(crate) const TYPES: [&str; 7] =
    ["SERVER_ADD", "SERVER_DEL", "SERVER_DOWN", "SERVER_UP", "SERVER_STATE", "SERVER_ADMIN", "SERVER_CHECK"];
const ADD: usize = 0;
pub(crate) const DEL: usize = 1;
const DOWN: usize = 2;
const UP: usize = 3;
pub(crate) const STATE: usize = 4;
pub(crate) const ADMIN: usize = 5;
const CHECK: usize = 6;

/// The subscriptions of a configuration's scripts.
#[derive(Default)]
pub(crate) struct Hub {
    subscriptions: Mutex<Vec<Weak<Subscription>>>,
}

/// A subscription.
pub(crate) struct Subscription {
    /// Bits of the events that it asks for.
    pub(crate) types: u8,
    /// The only server that it asks for: its backend and number.
    pub(crate) server: Option<(String, u32)>,
    inner: Mutex<Inner>,
    bell: Notify,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Event>,
    ended: bool,
    /// Events were dropped since the queue was empty.
    dropped: bool,
}

/// An event, apart from the server that it speaks of.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) kind: usize,
    pub(crate) name: String,
    pub(crate) puid: u32,
    pub(crate) rid: usize,
    pub(crate) backend: String,
    pub(crate) backend_id: u32,
    pub(crate) news: News,
    pub(crate) when: u64,
}

impl Hub {
    /// Takes news of a server to those that ask for them.
    pub(crate) fn hear(&self, subject: &Subject<'_>, news: &News) {
        let mut subscriptions = lock(&self.subscriptions);
        if subscriptions.is_empty() {
            return;
        }
        subscriptions.retain(|one| one.upgrade().is_some_and(|one| !lock(&one.inner).ended));
        for kind in kinds(news) {
            let event = Event {
                kind,
                name: subject.name.to_owned(),
                puid: subject.id,
                rid: subject.index,
                backend: subject.backend.to_owned(),
                backend_id: subject.backend_id,
                news: news.clone(),
                when: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            };
            subscriptions
                .iter()
                .filter_map(Weak::upgrade)
                .filter(|one| one.asks_for(&event))
                .for_each(|one| one.put(event.clone()));
        }
    }

    /// Adds a subscription; false where there are too many.
    pub(crate) fn add(&self, subscription: &Arc<Subscription>) -> bool {
        let mut subscriptions = lock(&self.subscriptions);
        let fits = subscriptions.len() < MOST;
        if fits {
            subscriptions.push(Arc::downgrade(subscription));
        }
        fits
    }
}

/// The events of news, in HAProxy's order.
fn kinds(news: &News) -> Vec<usize> {
    match news {
        News::Added => vec![ADD],
        News::Removed => vec![DEL],
        News::Checked(_) => vec![CHECK],
        News::Changed(Change { old, new, .. }) => {
            let (before, after) = (old.operation, new.operation);
            let admin = (old.admin != new.admin).then_some(ADMIN);
            let up = (before == Operation::Stopped && after != before).then_some(UP);
            let down = (after == Operation::Stopped && after != before).then_some(DOWN);
            let state = (before != after).then_some(STATE);
            [admin, up, down, state].into_iter().flatten().collect()
        }
    }
}

impl Subscription {
    /// A subscription to these events, of all servers or of one.
    pub(crate) fn new(types: u8, server: Option<(String, u32)>) -> Subscription {
        Subscription { types, server, inner: Mutex::default(), bell: Notify::new() }
    }

    fn asks_for(&self, event: &Event) -> bool {
        let is_server = self.server.as_ref().is_none_or(|(backend, puid)| *backend == event.backend && *puid == event.puid);
        is_server && (self.types >> event.kind & 1 == 1 || self.server.is_some() && event.kind == DEL)
    }

    fn put(&self, event: Event) {
        let mut inner = lock(&self.inner);
        match inner.waiting.len() < MOST_WAITING {
            true => inner.waiting.push_back(event),
            false => inner.dropped = true,
        }
        drop(inner);
        self.bell.notify_one();
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        lock(&self.inner).ended = true;
        self.bell.notify_one();
    }

    /// The next event; `None` once the subscription has ended. Second: whether some were dropped.
    pub(crate) async fn next(&self) -> Option<(Event, bool)> {
        loop {
            let heard = self.bell.notified();
            {
                let mut inner = lock(&self.inner);
                if inner.ended {
                    return None;
                }
                if let Some(event) = inner.waiting.pop_front() {
                    let dropped = inner.waiting.is_empty() && std::mem::take(&mut inner.dropped);
                    return Some((event, dropped));
                }
            }
            heard.await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
