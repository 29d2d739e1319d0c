//! A response that is being kept while it goes by.

use super::shelf::Ticket;
use super::{Cache, Entry, Key};
use std::sync::Arc;
use terse_http::h1::encode;
use terse_message::body::Listener;
use terse_message::{Known, Response, date};

/// A response that is being kept. Unless it is finished, it was never there.
pub struct Recording {
    cache: Arc<Cache>,
    key: Key,
    ticket: Ticket,
    /// The entry under construction; `None` once it is too large.
    entry: Option<Entry>,
    /// Bytes of the last piece of the body so far.
    last: Vec<u8>,
}

/// Bytes of a piece.
const PIECE_BYTES: usize = 16 * 1024;
/// Approximate cost of an entry beside its bytes.
const COST_BYTES: usize = 512;

impl Recording {
    pub(super) fn new(cache: &Arc<Cache>, key: Key, ticket: Ticket, entry: Entry) -> Recording {
        Recording { cache: cache.clone(), key, ticket, entry: Some(entry), last: Vec::new() }
    }

    /// Takes the room for the head; false when there is none.
    pub(super) fn settle_in(&mut self) -> bool {
        let Some(entry) = &mut self.entry else { return false };
        let bytes = COST_BYTES + entry.head.len() + entry.selector.bytes();
        self.cache.make_room(&mut entry.space, bytes)
    }

    /// Takes bytes of the body; false when it does not fit.
    fn take(&mut self, mut data: &[u8]) -> bool {
        let Some(entry) = &mut self.entry else { return true };
        let most = self.cache.settings.object_bytes();
        if entry.head.len() as u64 + entry.body_bytes + data.len() as u64 > most as u64 {
            return false;
        }
        entry.body_bytes += data.len() as u64;
        while !data.is_empty() {
            if self.last.len() == self.last.capacity() {
                let full = std::mem::take(&mut self.last);
                entry.body.extend(Some(full.into_boxed_slice()).filter(|piece| !piece.is_empty()));
                // A short piece is most often the whole body.
                let size = if entry.body.is_empty() { data.len().min(PIECE_BYTES) } else { PIECE_BYTES };
                if !self.cache.make_room(&mut entry.space, size) {
                    return false;
                }
                self.last.reserve_exact(size);
            }
            let (now, later) = data.split_at(data.len().min(self.last.capacity() - self.last.len()));
            self.last.extend_from_slice(now);
            data = later;
        }
        true
    }
}

impl Listener for Recording {
    fn hear(&mut self, data: &[u8]) -> bool {
        if !self.take(data) {
            self.entry = None;
            self.last = Vec::new();
        }
        self.entry.is_some()
    }

    fn end(mut self: Box<Self>) {
        let Some(mut entry) = self.entry.take() else { return };
        let spare = self.last.capacity() - self.last.len();
        let last = std::mem::take(&mut self.last);
        entry.body.extend(Some(last.into_boxed_slice()).filter(|piece| !piece.is_empty()));
        entry.space.shrink_to(entry.space.bytes() - spare.min(entry.space.bytes()));
        let (came_ms, entry) = (entry.came_ms, Arc::new(entry));
        let mut shelf = self.cache.shelf(&self.key);
        let gone = shelf.end(&self.key, self.ticket).then(|| shelf.put(&self.key, entry, came_ms));
        // It may have to be freed: under no lock.
        drop(shelf);
        if gone.is_some() {
            self.cache.settle_hints(&self.key);
        }
        drop(gone);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.cache.shelf(&self.key).end(&self.key, self.ticket);
    }
}

/// Returns the lines of the head to store: without the fields that gave the length of the body or belonged to the connection
/// (RFC 9111 section 3.1), and with a Date (RFC 9110 section 6.6.1). `now`: seconds since 1970.
pub(super) fn head(response: &Response, now: i64) -> Box<[u8]> {
    let mut kept = Response::default();
    (kept.status, kept.version) = (response.status, response.version);
    kept.set_reason(response.reason());
    let fleeting = |name: &[u8]| {
        let is = |known: Known| name.eq_ignore_ascii_case(known.name().as_bytes());
        let framing = [
            Known::ContentLength,
            Known::TransferEncoding,
            Known::Trailer,
            Known::Connection,
            Known::KeepAlive,
            Known::ProxyConnection,
            Known::Upgrade,
        ];
        let proxies = [&b"Proxy-Authenticate"[..], b"Proxy-Authentication-Info", b"Proxy-Authorization", b"Age"];
        framing.into_iter().any(is) || proxies.iter().any(|one| name.eq_ignore_ascii_case(one))
    };
    for (name, value) in response.fields.iter().filter(|(name, _)| !fleeting(name)) {
        kept.fields.push(name, value);
    }
    if response.fields.get(b"Date").is_none()
        && let Some(date) = date::write(now)
    {
        kept.fields.push(b"Date", date.as_bytes());
    }
    let mut lines = Vec::new();
    encode::response_head(&kept, kept.version, encode::Connection::Implied, &mut lines);
    lines.into_boxed_slice()
}
