//! Entries of stick tables that streams and sessions track in numbered slots (`track-sc0`, `track-sc1`, ...), and the
//! counters of these entries.
//!
//! ```text
//! tcp-request connection, session ----> Session::tracks --+
//! tcp-request content, http-request --> Facts::tracks ----+--> counted: requests, errors, failures, bytes
//! http-response -----------------------^                  +--> read: sc0_conn_rate, ...
//! ```
//!
//! A slot is filled once: a key that a session tracks in it is not tracked again by its streams. A stream's slots end with
//! it.
//!
//! Invariant: a stream that tracks nothing pays for a look at two pointers.

pub mod codes;
pub mod key;
pub mod name;

use crate::facts::Facts;
use crate::io::clock;
use crate::session::Session;
use codes::Codes;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;
use terse_balance::table::{Data, Table, Tracked};
use terse_config::Setting;

/// Settings of `global` for counters and tables.
#[derive(Clone, Debug)]
pub struct TrackSettings {
    /// `tune.stick-counters`: number of slots.
    pub slots: usize,
    /// `http-err-codes`: statuses that count as errors of clients.
    pub errors: Codes,
    /// `http-fail-codes`: statuses that count as failures of servers.
    pub failures: Codes,
}

impl Default for TrackSettings {
    fn default() -> TrackSettings {
        TrackSettings { slots: 3, errors: Codes::ERRORS, failures: Codes::FAILURES }
    }
}

impl Setting for TrackSettings {
    fn inherit(&self) -> TrackSettings {
        self.clone()
    }
}

/// Numbered slots, as many as were ever filled.
#[derive(Default, Debug)]
pub struct Tracks(SmallVec<[Option<Tracked>; 3]>);

/// Number of requests, and their number in a period.
pub const REQUESTS: (Data, Data) = (Data::HttpReqCnt, Data::HttpReqRate);
/// The same of those that failed by their client's fault.
pub const ERRORS: (Data, Data) = (Data::HttpErrCnt, Data::HttpErrRate);
/// The same of those that failed by their server's fault.
pub const FAILURES: (Data, Data) = (Data::HttpFailCnt, Data::HttpFailRate);
const GLITCHES: (Data, Data) = (Data::GlitchCnt, Data::GlitchRate);
const SESSIONS: (Data, Data) = (Data::SessCnt, Data::SessRate);
const BYTES_IN: (Data, Data) = (Data::BytesInCnt, Data::BytesInRate);
const BYTES_OUT: (Data, Data) = (Data::BytesOutCnt, Data::BytesOutRate);

/// Emptied slots of streams that a worker keeps.
const KEPT: usize = 64;

impl Tracks {
    /// The tracked entry of a slot.
    pub fn get(&self, slot: usize) -> Option<&Tracked> {
        self.0.get(slot)?.as_ref()
    }

    fn put(&mut self, slot: usize, tracked: Tracked) {
        while self.0.len() <= slot {
            self.0.push(None);
        }
        self.0[slot] = Some(tracked);
    }

    fn count(&self, what: (Data, Data), n: u64, now_ms: u64) {
        self.0.iter().flatten().for_each(|tracked| tracked.count(what, n, now_ms));
    }

    /// Ends them all.
    pub fn release(&mut self, now_ms: u64) {
        self.0.drain(..).flatten().for_each(|tracked| tracked.release(now_ms));
    }
}

impl Facts {
    /// Looks at the tracked entry of a slot: the stream's, or else its session's.
    pub fn tracked<T>(&self, slot: usize, see: impl FnOnce(&Tracked) -> T) -> Option<T> {
        if let Some(tracked) = self.tracks.as_deref().and_then(|tracks| tracks.get(slot)) {
            return Some(see(tracked));
        }
        self.session.tracks.get()?.borrow().get(slot).map(see)
    }

    /// Counts where the stream and its session track.
    #[inline]
    pub fn count_tracked(&self, what: (Data, Data), n: u64) {
        if self.tracks.is_some() || self.session.tracks.get().is_some() {
            self.count_at(what, n, self.now_ms());
        }
    }

    fn count_at(&self, what: (Data, Data), n: u64, now_ms: u64) {
        if let Some(tracks) = &self.tracks {
            tracks.count(what, n, now_ms);
        }
        if let Some(tracks) = self.session.tracks.get() {
            tracks.borrow().count(what, n, now_ms);
        }
    }

    /// Counts a server's status where it is an error or a failure.
    #[inline]
    pub fn count_status(&self, status: u16) {
        if self.tracks.is_some() || self.session.tracks.get().is_some() {
            let TrackSettings { errors, failures, .. } = &self.plan().tracking;
            if errors.has(status) {
                self.count_tracked(ERRORS, 1);
            }
            if failures.has(status) {
                self.count_tracked(FAILURES, 1);
            }
        }
    }

    /// Tracks a key in a slot of the stream that is not filled yet, nor its session's; returns the entry that it tracks now.
    pub fn track(&mut self, slot: usize, table: &Arc<Table>, key: &[u8], now_ms: u64) -> Option<&Tracked> {
        let tracked = table.track(key, now_ms)?;
        let worker = &self.session.worker;
        let tracks = self.tracks.get_or_insert_with(|| worker.slots.borrow_mut().pop().unwrap_or_default());
        tracks.put(slot, tracked);
        tracks.get(slot)
    }

    /// Counts the stream's bytes where it tracks, when it has ended.
    pub(crate) fn count_tracked_bytes(&self) {
        if self.tracks.is_some() || self.session.tracks.get().is_some() {
            let now_ms = self.end_ms();
            self.count_at(BYTES_IN, self.figures.bytes_in.get(), now_ms);
            self.count_at(BYTES_OUT, self.figures.bytes_out.get(), now_ms);
        }
    }

    /// Ends the tracking of the stream's entries.
    pub(crate) fn end_tracks(&mut self) {
        if let Some(mut tracks) = self.tracks.take() {
            tracks.release(self.end_ms());
            let mut kept = self.session.worker.slots.borrow_mut();
            if kept.len() < KEPT {
                kept.push(tracks);
            }
        }
    }

    /// The time of tables.
    pub fn now_ms(&self) -> u64 {
        self.plan().table_ms(clock::now())
    }

    fn end_ms(&self) -> u64 {
        self.plan().table_ms(self.times.end.unwrap_or_else(clock::now))
    }
}

impl Session {
    /// Tracks a key in a slot that is not filled yet, for as long as the connection lives.
    pub fn track(&self, slot: usize, table: &Arc<Table>, key: &[u8]) {
        let mut tracks = self.tracks.get_or_init(Box::default).borrow_mut();
        if tracks.get(slot).is_none()
            && let Some(tracked) = table.track(key, self.table_ms(clock::now()))
        {
            tracks.put(slot, tracked);
        }
    }

    /// Counts odd things that the client has done on its connection of HTTP/2, where it is tracked.
    pub fn count_glitches(&self, n: u64) {
        if let Some(tracks) = self.tracks.get() {
            tracks.borrow().count(GLITCHES, n, self.table_ms(clock::now()));
        }
    }

    /// Counts an accepted connection where it is tracked.
    pub(crate) fn count_accepted(&self) {
        if let Some(tracks) = self.tracks.get() {
            tracks.borrow().count(SESSIONS, 1, self.table_ms(clock::now()));
        }
    }

    /// Ends the tracking of the connection's entries.
    pub(crate) fn end_tracks(&mut self) {
        if let Some(tracks) = self.tracks.take() {
            tracks.borrow_mut().release(self.table_ms(clock::now()));
        }
    }

    fn table_ms(&self, at: Instant) -> u64 {
        self.worker.plan.table_ms(at)
    }
}

#[cfg(test)]
mod tests;
