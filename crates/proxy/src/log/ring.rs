//! Rings: the latest events in memory, for servers that are slow or away, and for `show events`.
//!
//! ```text
//!             oldest                                     newest
//!   events:  | 7 | 8 | 9 | 10 | 11 | 12 | 13 |            <- push
//!                  ^             ^
//!                  a server      a client of 'show events'
//! ```
//!
//! Invariants:
//! * A ring holds at most its size. An event that finds it full takes the place of the oldest, unless a server has not had
//!   the oldest: then the new event is lost, and counted.
//! * Clients of `show events` hold nothing back: overwritten events are missing in their output.
//! * The lock is held while a bounded number of bytes is copied, however many events there are, and for nothing else: a
//!   logging task never waits for a server.

use super::header::Form;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_config::Place;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A ring.
#[derive(Debug)]
pub struct Ring {
    /// Its name: of its section, or made for a target over a stream.
    pub name: Arc<str>,
    /// Description of the ring, for people.
    pub description: String,
    /// Form of the events' headers; `None`: that of the target that writes them.
    pub form: Option<Form>,
    /// The most bytes of an event.
    pub max_len: usize,
    /// Place of its section in the configuration.
    pub place: Place,
    capacity: usize,
    state: Mutex<State>,
    grown: Notify,
    dropped: AtomicU64,
}

/// A server's read position in a ring, by index: events that it has not had are not overwritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader(usize);

/// Separation of events on a stream (RFC 6587 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Framing {
    /// A line feed after each.
    #[default]
    Lines,
    /// Its length before each.
    OctetCounting,
    /// A NUL after each: `show events -0`.
    Nul,
}

#[derive(Default, Debug)]
struct State {
    bytes: VecDeque<u8>,
    /// End of each event, the oldest first, in bytes since the ring was made.
    ends: VecDeque<u64>,
    /// Begin of the oldest event, in bytes since the ring was made.
    start: u64,
    /// The number of the oldest event.
    first: u64,
    /// The number of the next event of each server.
    readers: Vec<u64>,
}

impl Ring {
    /// An empty ring.
    pub fn new(name: Arc<str>, capacity: usize, place: Place) -> Ring {
        Ring {
            description: name.to_string(),
            name,
            form: None,
            max_len: usize::MAX,
            place,
            capacity: capacity.max(LEAST_BYTES),
            state: Mutex::default(),
            grown: Notify::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Adds a reader, which will have all events from now on.
    pub fn attach(&self) -> Reader {
        let mut state = self.state();
        let next = state.next();
        state.readers.push(next);
        Reader(state.readers.len() - 1)
    }

    /// Appends an event, cut to the allowed length; false when it was lost.
    pub fn push(&self, event: &[u8]) -> bool {
        let len = event.len().min(self.max_len).min(self.capacity / 2);
        let event = event.get(..len).unwrap_or_default();
        let mut state = self.state();
        let kept = state.readers.iter().copied().min().unwrap_or(u64::MAX);
        while state.bytes.len() + COST * state.ends.len() + len + COST > self.capacity {
            if kept <= state.first {
                drop(state);
                self.dropped.fetch_add(1, Relaxed);
                return false;
            }
            state.forget_oldest();
        }
        state.bytes.extend(event);
        let end = state.start + state.bytes.len() as u64;
        state.ends.push_back(end);
        drop(state);
        self.grown.notify_waiters();
        true
    }

    /// Copies events from a number on, framed, until about `limit` bytes are there; returns the number of the next event.
    pub fn copy(&self, from: u64, framing: Framing, limit: usize, out: &mut Vec<u8>) -> u64 {
        let state = self.state();
        let mut number = from.max(state.first);
        while let Some((at, len)) = state.event(number)
            && out.len() < limit
        {
            if framing == Framing::OctetCounting {
                out.extend_from_slice(format!("{len} ").as_bytes());
            }
            let (head, tail) = state.bytes.as_slices();
            let part = |slice: &[u8], from: usize, to: usize, out: &mut Vec<u8>| {
                out.extend_from_slice(slice.get(from.min(slice.len())..to.min(slice.len())).unwrap_or_default());
            };
            part(head, at, at + len, out);
            part(tail, at.saturating_sub(head.len()), (at + len).saturating_sub(head.len()), out);
            match framing {
                Framing::Lines => out.push(b'\n'),
                Framing::Nul => out.push(0),
                Framing::OctetCounting => {}
            }
            number += 1;
        }
        number
    }

    /// The number of a server's next event.
    pub fn position(&self, reader: Reader) -> u64 {
        self.state().readers.get(reader.0).copied().unwrap_or_default()
    }

    /// Records that a server has had all events before this number.
    pub fn advance(&self, reader: Reader, next: u64) {
        let mut state = self.state();
        let end = state.next();
        if let Some(position) = state.readers.get_mut(reader.0) {
            *position = next.min(end);
        }
    }

    /// The number that the next event will have.
    pub fn end(&self) -> u64 {
        self.state().next()
    }

    /// Resolves when events come; to be enabled before a check whether there are some.
    pub fn growth(&self) -> Notified<'_> {
        self.grown.notified()
    }

    /// Events that were lost.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Its capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Takes the lock. Nothing panics under it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    /// Offset of an event in the bytes, and its length.
    fn event(&self, number: u64) -> Option<(usize, usize)> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let end = *self.ends.get(index)?;
        let begin = index.checked_sub(1).map_or(Some(self.start), |before| self.ends.get(before).copied())?;
        Some(((begin - self.start) as usize, (end - begin) as usize))
    }

    fn forget_oldest(&mut self) {
        if let Some(end) = self.ends.pop_front() {
            let len = (end - self.start) as usize;
            self.bytes.drain(..len.min(self.bytes.len()));
            self.start = end;
            self.first += 1;
        }
    }
}

/// Bytes that an event costs beside its own.
const COST: usize = size_of::<usize>();
/// A ring that holds no line would be of no use.
const LEAST_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(capacity: usize) -> Ring {
        Ring::new("r".into(), capacity, Place::nowhere())
    }

    fn lines(ring: &Ring, from: u64) -> (String, u64) {
        let mut out = Vec::new();
        let next = ring.copy(from, Framing::Lines, usize::MAX, &mut out);
        (String::from_utf8(out).unwrap(), next)
    }

    #[test]
    fn the_oldest_make_room() {
        let ring = ring(1024);
        (0..100).for_each(|n| assert!(ring.push(format!("{n:0>92}").as_bytes())));
        let (text, next) = lines(&ring, 0);
        assert_eq!((text.lines().count(), next), (10, 100));
        assert!(text.lines().next().unwrap().ends_with("090") && ring.dropped() == 0);
        assert_eq!(lines(&ring, 99).0.len(), 93);
        assert_eq!(lines(&ring, 100), (String::new(), 100));
    }

    #[test]
    fn what_a_server_has_not_had_is_kept() {
        let ring = ring(1024);
        let server = ring.attach();
        let taken = (0..100).filter(|n| ring.push(format!("{n:0>92}").as_bytes())).count();
        assert_eq!((taken, ring.dropped()), (10, 90));
        ring.advance(server, 4);
        assert_eq!(ring.position(server), 4);
        let taken = (0..100).filter(|_| ring.push(&[b'x'; 92])).count();
        assert_eq!(taken, 4);
        assert!(lines(&ring, 0).0.starts_with(&format!("{:0>92}\n", 4)));
    }

    #[test]
    fn frames() {
        let mut ring = ring(4096);
        ring.max_len = 5;
        ring.push(b"one");
        ring.push(b"longer than five");
        let framed = |framing| {
            let mut out = Vec::new();
            ring.copy(0, framing, usize::MAX, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(framed(Framing::OctetCounting), "3 one5 longe");
        assert_eq!(framed(Framing::Nul), "one\0longe\0");
        let mut out = Vec::new();
        assert_eq!(ring.copy(0, Framing::Lines, 1, &mut out), 1);
    }

    proptest! {
        #[test]
        fn a_reader_sees_each_event_once_and_whole(events in proptest::collection::vec("[a-z]{0,300}", 1..60), every in 1usize..5) {
            let ring = ring(2048);
            let server = ring.attach();
            let (mut sent, mut seen) = (Vec::new(), String::new());
            for (n, event) in events.iter().enumerate() {
                if ring.push(event.as_bytes()) {
                    sent.push(event.as_str());
                }
                if n % every == 0 {
                    let (text, next) = lines(&ring, ring.position(server));
                    ring.advance(server, next);
                    seen.push_str(&text);
                }
            }
            seen.push_str(&lines(&ring, ring.position(server)).0);
            prop_assert_eq!(seen.lines().collect::<Vec<_>>(), sent);
        }
    }
}
