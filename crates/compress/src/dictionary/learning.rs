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

use super::store::{self, Found, Place, Store};
use crate::offload::stand_back;
use crate::policy::{forbids_transform, has_directive, has_prefix, is_coded, media_type};
use std::hash::{DefaultHasher, Hash as _, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use terse_dictionary::versions::{Announcement, Bounds, Client, Learned, Listed, Sample, Versions};
use terse_dictionary::{Dictionary, Hash, MOST_BYTES, Origin, Pattern};
use terse_message::{BodyLength, Fields, Known, Request, Response, date, list};

/// Bytes of learned dictionaries and recordings, unless `tune.dictionary.memory` is set.
pub(crate) const DEFAULT_MEMORY: usize = 64 << 20;

/// A quarter of them is for recordings.
const RECORDINGS_SHARE: usize = 4;

/// The fewest bytes of a body: one that is smaller gains little.
const LEAST_BYTES: u64 = 8 << 10;

/// For how many seconds an answer must be fresh.
const LEAST_FRESH_S: u64 = 86_400;

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
                        store.look(|found| self.restore(found, begun.elapsed().as_secs()));
                        store.touch(|| self.lock().list());
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
        let sample = Sample { pattern, mark, client, hash, bytes };
        let learned = self.with(|versions| versions.learn(&origin, sample, now));
        if let (Learned::Kept, Some(store)) = (learned, store) {
            let dictionary = self.lock().kept(&origin, &hash);
            dictionary.into_iter().for_each(|dictionary| store.keep(&origin, &dictionary));
        }
    }

    fn restore(&self, found: Found, now: u64) {
        let Found { origin, pattern, hash, bytes } = found;
        self.with(|versions| versions.restore(&origin, pattern, (hash, bytes), now));
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

    /// All that was learned, by origin and pattern.
    pub fn list(&self) -> Vec<Listed> {
        let mut list = self.lock().list();
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
    /// What its head says of it: [`mark`].
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

/// Whether a response to GET is a file that any client may have, and will have for long, as far as its head says. `is_personal`: the request
/// said whose it is. `now`: seconds since 1970.
pub fn is_file(response: &Response, bytes: Option<u64>, is_personal: bool, now: i64) -> bool {
    let fields = &response.fields;
    let content_type = fields.first(Known::ContentType).unwrap_or_default();
    let is_ended = match response.body {
        BodyLength::Exact(_) | BodyLength::Framed => true,
        // One that ends with its connection may have been cut.
        BodyLength::UntilClose | BodyLength::None => false,
    };
    response.status == 200
        && is_ended
        && bytes.is_none_or(|bytes| (LEAST_BYTES..=MOST_BYTES).contains(&bytes))
        && is_static(content_type)
        && (is_shared(fields, content_type) || !is_personal && !is_json(content_type))
        && !is_coded(fields)
        && !fields.has(Known::ContentRange)
        && !fields.has(Known::SetCookie)
        && fields.get(b"Use-As-Dictionary").is_none()
        && !UNSHARED.iter().any(|name| has_directive(fields, name))
        && !forbids_transform(fields)
        && varies_little(fields)
        && (has_directive(fields, b"immutable") || fresh_s(fields, now).is_some_and(|fresh| fresh >= LEAST_FRESH_S))
}

/// Directives of answers that are one client's, or that clients must not keep.
const UNSHARED: [&[u8]; 3] = [b"private", b"no-cache", b"no-store"];

/// Whether an answer is everybody's, whatever its request said of its client: it says so (RFC 9111 section 3.5), or it is a part of pages
/// that never changes.
fn is_shared(fields: &Fields, content_type: &[u8]) -> bool {
    has_directive(fields, b"public")
        || has_directive(fields, b"s-maxage")
        || has_directive(fields, b"immutable") && !is_json(content_type)
}

/// Whether a type is JSON, which may be anybody's data.
fn is_json(content_type: &[u8]) -> bool {
    let bare = media_type(content_type);
    let ends = |end: &[u8]| bare.len() >= end.len() && bare[bare.len() - end.len()..].eq_ignore_ascii_case(end);
    ends(b"/json") || ends(b"+json")
}

/// Whether a type is one of files that have releases: a script, a style, WebAssembly, JSON.
fn is_static(content_type: &[u8]) -> bool {
    const SCRIPTS: [&str; 5] = ["javascript", "x-javascript", "ecmascript", "x-ecmascript", "jsx"];
    let bare = media_type(content_type).to_ascii_lowercase();
    let is = |kind: &str, of: &str| bare.strip_prefix(kind.as_bytes()).is_some_and(|name| name == of.as_bytes());
    SCRIPTS.iter().any(|name| is("text/", name) || is("application/", name))
        || is("text/", "css")
        || ["wasm", "json"].iter().any(|name| is("application/", name))
        || has_prefix(&bare, b"application/") && bare.ends_with(b"+json")
}

/// Whether the answer is the same for all clients, but for its coding and the permission to read it.
fn varies_little(fields: &Fields) -> bool {
    let may = [Known::AcceptEncoding.name(), "Origin", Known::AvailableDictionary.name()];
    fields.values(b"vary").flat_map(list::elements).all(|name| may.iter().any(|may| name.eq_ignore_ascii_case(may.as_bytes())))
}

/// For how many seconds a client may take it from its cache, if the head says so.
fn fresh_s(fields: &Fields, now: i64) -> Option<u64> {
    // A number that is too large is very large (RFC 9111 section 1.2.2).
    let digits = |value: &[u8]| {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        is_number.then(|| std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(u64::MAX))
    };
    let mut ages = fields.every(Known::CacheControl).flat_map(list::elements).filter_map(|directive| {
        let at = memchr::memchr(b'=', directive)?;
        directive[..at].trim_ascii_end().eq_ignore_ascii_case(b"max-age").then(|| directive[at + 1..].trim_ascii_start())
    });
    let lifetime = match (ages.next(), ages.next()) {
        (Some(value), None) => digits(value)?,
        (Some(_), Some(_)) => return None,
        (None, _) => {
            let sent = fields.get(b"Date").and_then(|date| date::parse(date, now)).unwrap_or(now);
            u64::try_from(date::parse(fields.get(b"Expires")?, now)?.checked_sub(sent)?).ok()?
        }
    };
    match fields.get(b"Age") {
        None => Some(lifetime),
        Some(age) => lifetime.checked_sub(digits(age)?),
    }
}

/// What a head says of its body: two answers with the same mark have the same one, as far as their server keeps to its validators. `path`
/// is without its query, which changes more often than files do. None without a validator.
pub fn mark(path: &[u8], response: &Response, bytes: Option<u64>) -> Option<u64> {
    let (tag, modified) = (response.fields.first(Known::Etag), response.fields.get(b"Last-Modified"));
    if tag.is_none() && modified.is_none() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (path, tag, modified, bytes).hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::response;

    const FILE: &str = "200\nContent-Type: text/javascript\nContent-Length: 20000\n";
    const LASTING: &str = "Cache-Control: public, max-age=86400\n";
    const NOW: i64 = 784_111_777;

    fn takes(head: &str) -> bool {
        takes_of(head, false)
    }

    fn takes_of(head: &str, is_personal: bool) -> bool {
        let response = response(head);
        let bytes = if let BodyLength::Exact(bytes) = response.body { Some(bytes) } else { None };
        is_file(&response, bytes, is_personal, NOW)
    }

    #[test]
    fn what_a_known_client_gets_must_be_everybodys() {
        for (line, of_anyone, of_one) in [
            ("max-age=86400", true, false),
            ("max-age=86400, public", true, true),
            ("max-age=86400, s-maxage=5", true, true),
            ("immutable", true, true),
        ] {
            let head = format!("{FILE}Cache-Control: {line}\n");
            assert_eq!((takes_of(&head, false), takes_of(&head, true)), (of_anyone, of_one), "{line}");
            let head = format!("200\nContent-Type: application/Json\nCache-Control: {line}\n");
            let is_public = line.contains("public") || line.contains("s-maxage");
            assert_eq!((takes_of(&head, false), takes_of(&head, true)), (is_public, is_public), "JSON {line}");
        }
        let dated = format!("{FILE}Expires: Mon, 07 Nov 1994 08:49:37 GMT\n");
        assert!(takes_of(&dated, false) && !takes_of(&dated, true));
    }

    #[test]
    fn lasting_public_files_are_learned() {
        for lines in [
            LASTING,
            "Cache-Control: immutable\n",
            "Cache-Control: max-age=86400\nVary: Accept-Encoding, origin\n",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\nExpires: Mon, 07 Nov 1994 08:49:37 GMT\n",
            "Expires: Mon, 07 Nov 1994 08:49:37 GMT\n",
            "Cache-Control: max-age=90000\nAge: 3600\n",
            "Cache-Control: max-age=99999999999999999999999\nAge: 3600\n",
            "Expires: Fri, 31 Dec 9999 23:59:59 GMT\n",
        ] {
            assert!(takes(&format!("{FILE}{lines}")), "{lines}");
        }
        for kind in
            ["application/javascript; charset=utf-8", "text/css", "application/wasm", "application/json", "application/ld+json"]
        {
            assert!(takes(&format!("200\nContent-Type: {kind}\n{LASTING}")), "{kind}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for lines in [
            "",
            "Cache-Control: max-age=86399\n",
            "Cache-Control: max-age=90000, max-age=1\n",
            "Cache-Control: max-age=90000\nAge: 3601\n",
            "Cache-Control: max-age=x\n",
            "Cache-Control: max-age=+86400\n",
            "Cache-Control: max-age=90000\nAge: 99999999999999999999999\n",
            "Cache-Control: s-maxage=90000\n",
            "Expires: 0\n",
            "Expires: Mon, 07 Nov 1994 08:49:36 GMT\n",
            "Last-Modified: Mon, 07 Nov 1970 08:49:36 GMT\n",
            "Cache-Control: immutable, private\n",
            "Cache-Control: immutable, no-cache=\"x\"\n",
            "Cache-Control: immutable\nCache-Control: No-Store\n",
            "Cache-Control: immutable, no-transform\n",
        ] {
            assert!(!takes(&format!("{FILE}{lines}")), "{lines}");
        }
        for lines in [
            "Set-Cookie: a=b\n",
            "Vary: *\n",
            "Vary: Accept-Encoding, Cookie\n",
            "Use-As-Dictionary: match=\"/x\"\n",
            "Content-Encoding: gzip\n",
            "Content-Range: bytes 0-1/2\n",
        ] {
            assert!(!takes(&format!("{FILE}{LASTING}{lines}")), "{lines}");
        }
        for head in [
            "200\nContent-Type: text/html\n",
            "200\n",
            "203\nContent-Type: text/css\n",
            "200 close\nContent-Type: text/css\n",
            "200\nContent-Type: text/css\nContent-Length: 8191\n",
            "200\nContent-Type: text/css\nContent-Length: 4194305\n",
        ] {
            assert!(!takes(&format!("{head}{LASTING}")), "{head}");
        }
    }

    #[test]
    fn a_mark_is_a_validators() {
        let of = |path: &str, lines: &str| mark(path.as_bytes(), &response(&format!("{FILE}{lines}")), Some(1));
        assert_eq!(of("/a", ""), None);
        assert_eq!(of("/a", "ETag: \"x\"\n"), of("/a", "ETag: \"x\"\n"));
        for (path, lines) in [("/b", "ETag: \"x\"\n"), ("/a", "ETag: \"y\"\n"), ("/a", "Last-Modified: x\n")] {
            assert_ne!(of(path, lines), of("/a", "ETag: \"x\"\n"), "{path} {lines}");
        }
    }

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
