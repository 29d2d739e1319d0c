//! Caches: small responses, kept in memory and sent to clients that ask again (RFC 9111).
//!
//! ```text
//!   http-request cache-use ── Key, look ──┬─ fresh, selected: Hit ──> its user: 304, or the response ──> rules, compression
//!                                         └─ none ──> the server
//!   http-response cache-store ── policy ── Recording ── sees the body as it comes, before decoder and coder ── end: kept
//!   an unsafe method succeeds ── forget
//! ```
//!
//! [`control`], [`freshness`], [`selection`] and [`precondition`] are the policy: pure functions, with all known facts as
//! arguments. [`shelf`] holds the stored responses, [`room`] counts their bytes.
//!
//! Invariants:
//! * A stored response is whole: a response that broke off, grew too large or was overtaken by a change of the resource is
//!   dropped.
//! * Responses that are stored, being recorded and being sent never exceed `total-max-size` together.
//! * No lock is held while bytes are copied, hashed or sent.
//! * A stored response is as the server sent it, before the proxy decodes or compresses it. So entity tags are the server's,
//!   and each hit is compressed, or answered with 304, as the server's own response would be.

mod control;
mod freshness;
mod hints;
mod keywords;
mod precondition;
mod recording;
mod room;
mod selection;
mod settings;
mod shelf;

pub use keywords::KEYWORDS;
pub use precondition::{is_held, not_modified};
pub use recording::Recording;
pub use selection::{Selecting, Selector};
pub use settings::{CacheName, CacheSettings, EarlyHints};

use control::RequestControl;
use hints::{Hints, Remembered};
use room::{Room, Space};
use shelf::{Listed, Shelf};
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_http::h1;
use terse_message::body::Pieces;
use terse_message::{BodyLength, Known, Malformed, Request, Response, Version, list};

/// A cache, shared by all workers.
pub struct Cache {
    /// Its name.
    pub name: Arc<str>,
    settings: CacheSettings,
    /// A power of two of them: a key's second word chooses.
    shelves: Box<[Mutex<Shelf>]>,
    room: Arc<Room>,
    /// Hints of responses that have gone.
    hints: Mutex<Remembered>,
    /// Which shelf makes room next.
    turn: AtomicUsize,
    secret: [u8; 32],
}

/// Key of a resource: the keyed BLAKE3 hash of its scheme, its host and its target. Without the secret, a client cannot make
/// two resources collide.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key([u64; 4]);

/// A kept response.
pub struct Entry {
    /// Its head, as lines of HTTP/1, without the fields that gave its length or belonged to a connection.
    pub head: Box<[u8]>,
    /// When it came, in milliseconds since 1970.
    pub came_ms: i64,
    body: Vec<Box<[u8]>>,
    body_bytes: u64,
    selector: Selector,
    key: Key,
    hints: Option<Hints>,
    /// Age of the response then, in seconds.
    age: u64,
    /// Until when it is fresh.
    fresh_until_ms: i64,
    space: Space,
}

/// State of a stream's caches, from the first `cache-use` rule on.
#[derive(Default)]
pub struct Caching {
    /// The caches that were asked, in the order of the rules.
    pub asked: Vec<Asked>,
    /// The cache that has answered.
    pub answered: Option<Arc<Cache>>,
    /// Recorder of the response; `None` when it is not stored.
    pub recording: Option<Box<Recording>>,
}

/// A lookup in a cache: the request as it was then. Rules may change it before they ask the next cache.
pub struct Asked {
    /// The cache.
    pub cache: Arc<Cache>,
    /// The resource.
    pub key: Key,
    /// Number of changes of the resource until then.
    changes: u64,
    selecting: Selecting,
    control: RequestControl,
    /// Whether a stored response is looked for at all.
    pub may_answer: bool,
    /// Whether the response to this request may be kept.
    may_store: bool,
    /// Whether the request had an Authorization field.
    authorized: bool,
}

/// A request's answer from a cache.
pub struct Hit {
    /// The response.
    pub entry: Arc<Entry>,
    /// Its age now, in seconds.
    pub age: u64,
}

/// Lower bound of a shelf's size, so that the entry that is asked for least is evicted first.
const SHELF_BYTES: usize = 4 << 20;
const MOST_SHELVES: usize = 16;

impl Cache {
    /// Creates an empty cache. `secret`: a key that is known to this process alone.
    pub fn new(name: Arc<str>, settings: CacheSettings, secret: &[u8; 32]) -> Cache {
        let bytes = settings.total_bytes();
        let shelves = 1 << (bytes / SHELF_BYTES).clamp(1, MOST_SHELVES).ilog2();
        Cache {
            name,
            settings,
            shelves: (0..shelves).map(|_| Mutex::default()).collect(),
            room: Arc::new(Room::new(bytes)),
            hints: Mutex::default(),
            turn: AtomicUsize::new(0),
            secret: *secret,
        }
    }

    /// The key of the resource that is asked for; `None` where the request does not name it. `over_tls`: whether the client
    /// speaks TLS.
    fn key(&self, request: &Request, over_tls: bool) -> Option<Key> {
        let authority = request.authority().filter(|authority| !authority.is_empty())?;
        let target = Some(request.path_and_query()).filter(|target| target.first() == Some(&b'/'))?;
        let implied = if over_tls { &b"https"[..] } else { b"http" };
        let scheme = request.scheme().map_or(Cow::Borrowed(implied), |scheme| scheme.to_ascii_lowercase().into());
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        // Both are hashed: a client without TLS that writes https must not choose the responses of clients with TLS.
        hasher.update(implied).update(b":").update(&scheme).update(b":");
        hasher.update(&authority.to_ascii_lowercase()).update(target);
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(hasher.finalize().as_bytes().as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Some(Key(words))
    }

    /// The lookup for a request that a rule sends here; `None` when it asks for no resource. `over_tls`: whether the client
    /// speaks TLS; `selecting`: the fields that choose among responses that vary.
    pub fn meet(self: &Arc<Self>, request: &Request, over_tls: bool, selecting: Selecting) -> Option<Asked> {
        let key = self.key(request, over_tls)?;
        let control = RequestControl::of(&request.fields);
        let authorized = request.fields.has(Known::Authorization);
        let (is_get, is_head) = (request.method() == b"GET", request.method() == b"HEAD");
        let is_modern = request.version >= Version::Http11 && request.body == BodyLength::None;
        Some(Asked {
            cache: self.clone(),
            key,
            changes: self.shelf(&key).changes(&key),
            selecting,
            control,
            may_answer: is_modern && (is_get || is_head) && !authorized && !control.no_cache,
            may_store: is_modern && is_get && !control.no_store,
            authorized,
        })
    }

    /// Returns the stored response for a request that [may have one](Asked::may_answer) from here.
    pub fn look(&self, asked: &Asked, now_ms: i64) -> Option<Hit> {
        let entry = self.shelf(&asked.key).look(&asked.key, &asked.selecting, now_ms)?;
        let control = &asked.control;
        let age = entry.age_s(now_ms);
        let fresh = u64::try_from((entry.fresh_until_ms - now_ms) / 1000).unwrap_or(0);
        let fits = control.max_age.is_none_or(|most| age <= most) && control.min_fresh.is_none_or(|least| fresh >= least);
        fits.then_some(Hit { entry, age })
    }

    /// Begins to record the response to a request that was looked up, once the head has come; `None` when it is not kept.
    /// `now_ms`: milliseconds since 1970; `delay_s`: the server's response time.
    pub fn record(self: &Arc<Self>, asked: &Asked, response: &Response, now_ms: i64, delay_s: u64) -> Option<Recording> {
        if !asked.may_store {
            return None;
        }
        if !self.settings.vary && response.fields.has(Known::Vary) {
            return None;
        }
        let selector = asked.selecting.selector(&response.fields)?;
        // The stored response must be selectable by the request that it answers.
        if !selector.admits(&asked.selecting) {
            return None;
        }
        // What was made with a dictionary is for those who hold it: nobody here knows whether another does.
        if response.fields.every(Known::ContentEncoding).flat_map(list::elements).any(terse_dictionary::is_coding) {
            return None;
        }
        let term = freshness::term(response, asked.authorized, self.settings.max_age(), now_ms / 1000, delay_s)?;
        let hints = (self.settings.early_hints != EarlyHints::Off).then(|| hints::of(&response.fields)).flatten();
        if self.settings.early_hints == EarlyHints::Only {
            hints.into_iter().for_each(|hints| self.remember(asked.key, hints));
            return None;
        }
        let head = recording::head(response, now_ms / 1000);
        let length = match response.body {
            BodyLength::Exact(length) => Some(length),
            BodyLength::None => Some(0),
            BodyLength::Framed | BodyLength::UntilClose => None,
        };
        let size = head.len() as u64 + length.unwrap_or(0);
        if size > self.settings.object_bytes() as u64 {
            return None;
        }
        let first = selector.is_any() || self.shelf(&asked.key).count(&asked.key, now_ms) < self.settings.variants();
        let ticket = first.then(|| self.shelf(&asked.key).begin(&asked.key, asked.changes, now_ms)).flatten()?;
        let mut recording = Recording::new(
            self,
            asked.key,
            ticket,
            Entry {
                body: Vec::new(),
                body_bytes: 0,
                came_ms: now_ms,
                age: term.age,
                fresh_until_ms: now_ms.saturating_add_unsigned(term.fresh.saturating_mul(1000)),
                space: Space::of(&self.room),
                selector,
                key: asked.key,
                hints,
                head,
            },
        );
        recording.settle_in().then_some(recording)
    }

    /// Forgets all responses of a resource, those that are being recorded, and those that have been asked for.
    pub fn forget(&self, key: &Key) {
        hints_of(&self.hints).forget(key);
        let gone = self.shelf(key).forget(key);
        drop(gone);
    }

    /// The links that are known to be worth fetching with a resource that is not stored, or no longer fresh.
    pub fn hints(&self, key: &Key) -> Option<Arc<[Box<[u8]>]>> {
        if self.settings.early_hints == EarlyHints::Off {
            return None;
        }
        let stale = self.shelf(key).hints(key);
        stale.or_else(|| hints_of(&self.hints).of(key))
    }

    /// Drops the separate hints of a resource that has a stored response again.
    fn settle_hints(&self, key: &Key) {
        if self.settings.early_hints != EarlyHints::Off {
            hints_of(&self.hints).forget(key);
        }
    }

    /// Keeps hints without their response, in blocks of a kilobyte, as HAProxy counts them.
    fn remember(&self, key: Key, hints: Hints) {
        let bytes = 64 + hints.iter().map(|hint| hint.len() + 16).sum::<usize>();
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        let most = match self.settings.early_hints {
            EarlyHints::Only => usize::MAX,
            _ => self.settings.hint_bytes() / (blocks * BLOCK_BYTES),
        };
        let mut space = Space::of(&self.room);
        if self.make_room(&mut space, blocks * BLOCK_BYTES) {
            hints_of(&self.hints).keep(key, hints, space, most);
        }
    }

    /// Hints that are kept without their response: of which resources, and how many bytes.
    pub fn list_hints(&self) -> Vec<(Key, usize)> {
        hints_of(&self.hints).list()
    }

    /// All that is kept, for people to look at.
    pub fn list(&self) -> Vec<Listed> {
        self.shelves.iter().flat_map(|shelf| lock(shelf).list()).collect()
    }

    /// Bytes that are free.
    pub fn free_bytes(&self) -> usize {
        self.room.free()
    }

    /// Takes room, evicting the least recently used entries; false when there is none.
    fn make_room(&self, space: &mut Space, bytes: usize) -> bool {
        loop {
            if space.grow(bytes) {
                return true;
            }
            let shelves = self.shelves.len();
            let gone = (0..shelves).find_map(|_| {
                let turn = self.turn.fetch_add(1, Relaxed);
                lock(&self.shelves[turn & (shelves - 1)]).pop_oldest()
            });
            match gone {
                Some(gone) => {
                    let hints = gone.hints.clone().map(|hints| (gone.key, hints));
                    // It may have to be freed: under no lock. Its hints need less than it has taken.
                    drop(gone);
                    hints.into_iter().for_each(|(key, hints)| self.remember(key, hints));
                }
                None if hints_of(&self.hints).pop_oldest() => {}
                None => return false,
            }
        }
    }

    fn shelf(&self, key: &Key) -> MutexGuard<'_, Shelf> {
        // The number of shelves is a power of two.
        lock(&self.shelves[key.0[1] as usize & (self.shelves.len() - 1)])
    }
}

impl Caching {
    /// The last lookup of this stream in a cache; `None` if there was none.
    pub fn asked_of(&self, cache: &Arc<Cache>) -> Option<&Asked> {
        self.asked.iter().rfind(|asked| Arc::ptr_eq(&asked.cache, cache))
    }

    /// Invalidates the resources that an unsafe method has changed (section 4.4).
    pub fn forget(&self) {
        self.asked.iter().for_each(|asked| asked.cache.forget(&asked.key));
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Entry {
    /// Parses the stored head into a response.
    ///
    /// # Errors
    /// None for a head that was recorded here.
    pub fn read_head(&self, response: &mut Response) -> Result<(), Malformed> {
        h1::parse_response(&self.head, b"GET", response).map(drop)
    }

    /// Bytes of its body.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Bytes that it takes.
    pub fn size_bytes(&self) -> usize {
        self.space.bytes()
    }

    /// For how many seconds it is fresh yet; less than 0 when it no longer is.
    pub fn fresh_s(&self, now_ms: i64) -> i64 {
        (self.fresh_until_ms - now_ms).div_euclid(1000)
    }

    /// Text, for people, that tells it from other responses of its resource.
    pub fn selector_text(&self) -> String {
        self.selector.text()
    }

    fn age_s(&self, now_ms: i64) -> u64 {
        self.age.saturating_add(u64::try_from((now_ms - self.came_ms) / 1000).unwrap_or(0))
    }

    fn is_fresh(&self, now_ms: i64) -> bool {
        now_ms < self.fresh_until_ms
    }
}

impl Pieces for Entry {
    fn piece(&self, index: usize) -> &[u8] {
        self.body.get(index).map_or(&[], |piece| piece)
    }
}

impl Key {
    /// Short form of the key, for people.
    pub fn short(&self) -> u32 {
        self.0[0] as u32
    }
}

/// Whether a method may change the resource that it is sent to (RFC 9110 section 9.2.1).
pub fn is_unsafe(method: &[u8]) -> bool {
    !matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
}

/// HAProxy's unit.
const BLOCK_BYTES: usize = 1024;

fn hints_of(hints: &Mutex<Remembered>) -> MutexGuard<'_, Remembered> {
    hints.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
