//! Dictionaries that are learned from what passes: `compression dictionary auto`.
//!
//! ```text
//!   is_file     the response's head: a public, lasting file           worker
//!   announce    its pattern: is it told, are its bytes wanted?        worker, under the lock
//!   Recording   hears what its coder takes                            worker
//!   finish      once its client has all of it                         worker
//!   learn       SHA-256, then the versions of its host                thread of the learner, then under the lock
//!   store       its file, and files of before and of other nodes      thread of the learner
//!   find        a client says a hash                                  worker, under the lock
//! ```
//!
//! Invariants:
//! * A request that names no dictionary, and an answer that is no such file, do not come to the lock.
//! * No bytes are copied, hashed, compressed or given back under the lock.
//! * A body that was cut, that is too small or too large, or for which there was no memory, is dropped.

use super::store::{self, Place, Store};
use crate::offload::stand_back;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use terse_dictionary::stored::Kept;
use terse_dictionary::versions::{Announcement, Bounds, Client, Learned, Listed, Sample, Versions};
use terse_dictionary::{Dictionary, Hash, MOST_BYTES, Origin, Pattern};
use terse_message::{Known, Request};

/// Bytes of learned dictionaries and recordings, unless `tune.dictionary.memory` is set.
pub(crate) const DEFAULT_MEMORY: usize = 64 << 20;

/// A quarter of them is for recordings.
const RECORDINGS_SHARE: usize = 4;

/// The fewest bytes of a body: one that is smaller gains little.
pub(super) const LEAST_BYTES: u64 = 8 << 10;

/// Bodies that may wait for the thread; a further one is dropped.
const WAITING: usize = 16;

/// Niceness of the thread.
const NICE: u8 = 10;

/// What is learned, for all proxies of a process.
#[derive(Debug)]
pub struct Learner {
    versions: Mutex<Versions>,
    /// The limit of all bytes.
    most_bytes: AtomicUsize,
    /// Bytes of recordings.
    recorded: AtomicUsize,
    /// Whether a proxy wants it.
    is_wanted: AtomicBool,
    /// The folder, if there is one.
    place: OnceLock<Place>,
    store: store::Figures,
    /// Whether the folder is to be emptied.
    is_to_clear: AtomicBool,
    /// The way to the thread.
    give: OnceLock<SyncSender<Task>>,
}

impl Default for Learner {
    fn default() -> Learner {
        Learner {
            versions: Mutex::new(Versions::new(bounds(DEFAULT_MEMORY))),
            most_bytes: AtomicUsize::new(DEFAULT_MEMORY),
            recorded: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            place: OnceLock::new(),
            store: store::Figures::default(),
            is_to_clear: AtomicBool::new(false),
            give: OnceLock::new(),
        }
    }
}

/// What the thread is given.
#[derive(Debug)]
enum Task {
    /// A body that its client has had as a whole.
    Learn(Box<Recording>),
    /// It is to look at its flags.
    Wake,
}

fn bounds(most_bytes: usize) -> Bounds {
    Bounds::of(most_bytes - most_bytes / RECORDINGS_SHARE)
}

impl Learner {
    /// Sets the limit of bytes, before anything is learned; 0: nothing is.
    pub fn limit(&self, bytes: usize) {
        self.most_bytes.store(bytes, Relaxed);
        *self.lock() = Versions::new(bounds(bytes));
    }

    /// Sets the folder that keeps what is learned, before the thread starts.
    pub fn keep_in(&self, place: Option<Place>) {
        if let Some(place) = place {
            let _ = self.place.set(place);
        }
    }

    /// The folder, if there is one, and its figures.
    pub fn store(&self) -> Option<(&Place, &store::Figures)> {
        Some((self.place.get()?, &self.store))
    }

    /// Notes that a proxy wants it.
    pub(super) fn want(&self) {
        self.is_wanted.store(true, Relaxed);
    }

    /// Whether a proxy wants it, and there is memory for it.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed) && self.most_bytes.load(Relaxed) > 0
    }

    /// Starts the thread. To be called after the process has become a daemon. Without it nothing is announced. `say`: what is wrong with the
    /// folder, once a minute at most.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(self: &Arc<Learner>, say: impl Fn(&str) + Send + 'static) -> std::io::Result<()> {
        let (give, take) = sync_channel(WAITING);
        let learner = self.clone();
        // Its end is not waited for: it holds nothing but memory.
        std::thread::Builder::new().name("terse-learn".into()).spawn(move || {
            stand_back(NICE);
            learner.serve(&take, &say);
        })?;
        let _ = self.give.set(give);
        Ok(())
    }

    fn serve(&self, take: &Receiver<Task>, say: &dyn Fn(&str)) {
        let mut store = self.place.get().map(|place| Store::new(place, &self.store));
        let begun = Instant::now();
        let mut next_look = begun;
        loop {
            let task = match &mut store {
                None => take.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(store) => {
                    store.tell(say);
                    if self.is_to_clear.swap(false, Relaxed) {
                        store.clear();
                    }
                    let now = Instant::now();
                    if now >= next_look {
                        next_look = now + store::LOOK;
                        store.look(|kept| self.restore(kept, begun.elapsed().as_secs()));
                        store.touch(|| self.all());
                    }
                    take.recv_timeout(next_look.saturating_duration_since(Instant::now()))
                }
            };
            match task {
                Ok(Task::Learn(recording)) => self.learn(*recording, store.as_mut()),
                Ok(Task::Wake) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn learn(&self, mut recording: Recording, store: Option<&mut Store<'_>>) {
        let bytes: Arc<[u8]> = std::mem::take(&mut recording.bytes).into();
        let About { origin, pattern, mark, client, now } = recording.about.clone();
        let hash = Hash::of(&bytes);
        let kept = Kept { origin, pattern: pattern.clone(), hash, bytes: bytes.clone() };
        let sample = Sample { pattern, mark, client, hash, bytes };
        let learned = self.with(|versions| versions.learn(&kept.origin, sample, now));
        if let (Learned::Kept, Some(store)) = (learned, store) {
            store.keep(&kept);
        }
    }

    fn restore(&self, kept: Kept, now: u64) {
        self.with(|versions| versions.restore(kept, now));
    }

    /// Decides whether an answer is announced. `now`: seconds from any beginning, here and everywhere.
    pub fn announce(&self, origin: &Origin, pattern: &Pattern, mark: Option<u64>, now: u64) -> Announcement {
        match self.give.get() {
            Some(_) => self.with(|versions| versions.announce(origin, pattern, mark, now)),
            None => Announcement::Silent,
        }
    }

    /// Begins to record a body of so many bytes, as far as that is known.
    pub fn record(self: &Arc<Learner>, about: About, known_bytes: Option<u64>) -> Option<Box<Recording>> {
        let mut recording = Box::new(Recording { learner: self.clone(), about, bytes: Vec::new(), held: 0, is_lost: false });
        let first = known_bytes.map_or(Some(0), |bytes| usize::try_from(bytes).ok())?;
        recording.hold(first).then_some(recording)
    }

    /// The dictionary that clients of that origin may have, by its hash.
    pub(super) fn find(&self, origin: &Origin, hash: &Hash) -> Option<Arc<Dictionary>> {
        self.lock().find(origin, hash)
    }

    /// Leaves a host alone, whose server has dictionaries of its own.
    pub fn leave(&self, origin: &Origin, now: u64) {
        self.with(|versions| versions.leave(origin, now));
    }

    /// All that was learned, in no order.
    pub fn all(&self) -> Vec<Listed> {
        self.lock().list()
    }

    /// All that was learned, by origin and pattern.
    pub fn list(&self) -> Vec<Listed> {
        let mut list = self.all();
        let place = |listed: &Listed| {
            let dictionary = &listed.dictionary;
            (listed.origin.to_string(), dictionary.use_as.pattern.as_str().to_owned(), listed.since, dictionary.hash().0)
        };
        list.sort_by_cached_key(place);
        list
    }

    /// Forgets all of it, in the folder, too; returns how many dictionaries that were.
    pub fn clear(&self) -> usize {
        let mut versions = self.lock();
        let empty = versions.emptied();
        let before = std::mem::replace(&mut *versions, empty);
        drop(versions);
        self.is_to_clear.store(true, Relaxed);
        // A thread that has more to do than may wait needs no call.
        self.give.get().into_iter().for_each(|give| _ = give.try_send(Task::Wake));
        before.len()
    }

    /// Bytes that learned dictionaries count for, and the limit of all.
    pub fn bytes(&self) -> (usize, usize) {
        (self.lock().bytes(), self.most_bytes.load(Relaxed))
    }

    /// Does something under the lock. What has to go then goes after it.
    fn with<T>(&self, change: impl FnOnce(&mut Versions) -> T) -> T {
        let mut versions = self.lock();
        let (done, gone) = (change(&mut versions), versions.gone());
        drop(versions);
        drop(gone);
        done
    }

    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of a body before it comes.
#[derive(Clone, Debug)]
pub struct About {
    /// Whose it is.
    pub origin: Origin,
    /// The requests that it will be for.
    pub pattern: Pattern,
    /// What its head says of it: [`super::learnable::mark`].
    pub mark: Option<u64>,
    /// Its client.
    pub client: Client,
    /// When it came.
    pub now: u64,
}

/// A client's request, as it came.
#[derive(Debug)]
pub struct Asked {
    /// The origin, if Host names one.
    pub origin: Option<Origin>,
    /// The path, without a query.
    pub path: Box<[u8]>,
    /// Whether it has a cookie, or its client has shown a certificate.
    pub is_personal: bool,
    /// Whether it has a field Authorization: its answer is not learned.
    pub is_authorized: bool,
}

impl Asked {
    /// Reads a GET or HEAD before anything has changed it; none of another method.
    pub fn of(request: &Request, has_certificate: impl FnOnce() -> bool) -> Option<Asked> {
        let fields = &request.fields;
        matches!(request.method(), b"GET" | b"HEAD").then(|| Asked {
            origin: fields.first(Known::Host).and_then(|host| Origin::of(host, true)),
            path: request.path_and_query().split(|byte| *byte == b'?').next().unwrap_or_default().into(),
            is_personal: fields.has(Known::Cookie) || has_certificate(),
            is_authorized: fields.has(Known::Authorization),
        })
    }
}

/// A body on its way to its client.
#[derive(Debug)]
pub struct Recording {
    learner: Arc<Learner>,
    about: About,
    bytes: Vec<u8>,
    /// Bytes that count against the limit.
    held: usize,
    /// Whether it can become nothing any more.
    is_lost: bool,
}

impl Recording {
    /// Hears the next bytes.
    pub(crate) fn hear(&mut self, data: &[u8]) {
        const MOST: usize = MOST_BYTES as usize;
        let needed = self.bytes.len() + data.len();
        if self.is_lost {
            return;
        }
        if needed > MOST || needed > self.held && !self.hold((2 * self.held).clamp(needed, MOST)) {
            self.lose();
            return;
        }
        self.bytes.extend_from_slice(data);
    }

    /// Gives back what it holds: it becomes nothing.
    fn lose(&mut self) {
        (self.is_lost, self.bytes) = (true, Vec::new());
        self.learner.recorded.fetch_sub(std::mem::take(&mut self.held), Relaxed);
    }

    /// Ends it: its client has had all of it.
    pub(crate) fn finish(self: Box<Self>) {
        if self.is_lost || (self.bytes.len() as u64) < LEAST_BYTES {
            return;
        }
        if let Some(give) = self.learner.give.get().cloned() {
            // Where too many wait, this one goes.
            let _ = give.try_send(Task::Learn(self));
        }
    }

    /// Makes room for so many bytes, if recordings may have them.
    fn hold(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.held);
        let most = self.learner.most_bytes.load(Relaxed) / RECORDINGS_SHARE;
        if self.learner.recorded.fetch_add(more, Relaxed).saturating_add(more) > most {
            self.learner.recorded.fetch_sub(more, Relaxed);
            return false;
        }
        self.held += more;
        self.bytes.reserve_exact(bytes - self.bytes.len());
        true
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.learner.recorded.fetch_sub(self.held, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(client: u32) -> About {
        let client = Client::V4(client);
        let (origin, pattern) = (Origin::of(b"a", true).unwrap(), Pattern::new("/*.js").unwrap());
        About { origin, pattern, mark: None, client, now: 0 }
    }

    fn until(condition: impl Fn() -> bool) {
        let begun = std::time::Instant::now();
        while !condition() {
            assert!(begun.elapsed().as_secs() < 60, "it does not come");
            std::thread::yield_now();
        }
    }

    #[test]
    fn two_clients_bodies_become_a_dictionary() {
        let learner = Arc::new(Learner::default());
        learner.want();
        let origin = about(0).origin;
        let announce = || learner.announce(&origin, &about(0).pattern, None, 0);
        assert_eq!(announce(), Announcement::Silent, "nothing would take what is heard");
        learner.start(|_| {}).unwrap();
        assert_eq!(announce(), Announcement::Wanted);
        let body = vec![7; 20_000];
        for client in 1..=2 {
            let mut recording = learner.record(about(client), Some(20_000)).unwrap();
            body.chunks(3000).for_each(|piece| recording.hear(piece));
            assert!(learner.list().is_empty());
            recording.finish();
            until(|| learner.recorded.load(Relaxed) == 0);
        }
        until(|| learner.list().len() == 1);
        assert!(learner.find(&origin, &Hash::of(&body)).is_some_and(|found| found.bytes()[..] == body));
        assert!(learner.bytes().0 > body.len());
        assert_eq!(learner.clear(), 1);
        assert!(learner.list().is_empty());
    }

    #[test]
    fn recordings_have_bounds() {
        let learner = Arc::new(Learner::default());
        learner.limit(400_000);
        learner.start(|_| {}).unwrap();
        assert!(learner.record(about(1), Some(100_001)).is_none());
        assert_eq!(learner.recorded.load(Relaxed), 0);
        let mut first = learner.record(about(1), Some(80_000)).unwrap();
        let mut second = learner.record(about(1), None).unwrap();
        second.hear(&[0; 15_000]);
        assert!(!second.is_lost);
        second.hear(&[0; 15_000]);
        assert!(second.is_lost && second.bytes.is_empty());
        assert_eq!(learner.recorded.load(Relaxed), 80_000, "one that is lost holds nothing");
        first.hear(&[0; 80_000]);
        assert!(!first.is_lost);
        drop((first, second));
        assert_eq!(learner.recorded.load(Relaxed), 0);
        learner.limit(64 << 20);
        let mut long = learner.record(about(1), None).unwrap();
        (0..64).for_each(|_| long.hear(&[0; 64 << 10]));
        assert!(!long.is_lost);
        assert_eq!(learner.recorded.load(Relaxed), 4 << 20, "no more than a dictionary may have");
        long.hear(&[0]);
        assert!(long.is_lost, "more than a dictionary may have");
    }
}
