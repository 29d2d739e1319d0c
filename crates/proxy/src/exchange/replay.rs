//! The sent part of a request's body, kept until its server has answered: so it can be sent again.
//!
//! ```text
//! receiver --consumed--> Recording --the attempt failed--> Again: the kept part, then the rest of the body
//!                          \--more than a buffer holds--> nothing: the request is sent once
//! ```

use super::framing::Framing;
use crate::io::Pool;
use std::cell::RefCell;
use std::rc::Rc;
use terse_message::body::Listener;

/// The bytes that were sent in an attempt.
#[derive(Clone)]
pub struct Recording(Rc<RefCell<Kept>>);

enum Kept {
    /// All of it, as long as the pool's buffers are not scarce and it fits into a buffer.
    All(Vec<u8>, Rc<Pool>),
    /// Not all of it.
    Lost,
}

impl Recording {
    /// A recording of nothing yet.
    pub fn new(pool: &Rc<Pool>) -> Recording {
        Recording(Rc::new(RefCell::new(Kept::All(Vec::new(), pool.clone()))))
    }

    /// The listener that hears the body.
    pub fn listener(&self) -> Box<dyn Listener> {
        Box::new(Recorder(self.clone()))
    }

    /// Whether all bytes that were sent are here.
    pub fn is_whole(&self) -> bool {
        matches!(&*self.0.borrow(), Kept::All(..))
    }

    /// Drops the kept bytes: the server has answered.
    pub fn forget(&self) {
        self.0.replace(Kept::Lost);
    }

    /// The body from its beginning on, where the rest of it is this; the rest alone, and false, where that is impossible.
    pub fn rewind(self, rest: Framing) -> (Framing, bool) {
        match self.0.replace(Kept::Lost) {
            Kept::All(bytes, _) if bytes.is_empty() => (rest, true),
            Kept::All(bytes, _) => (Framing::Again(Box::new(Again { bytes, at: 0, rest })), true),
            Kept::Lost => (rest, false),
        }
    }
}

struct Recorder(Recording);

impl Listener for Recorder {
    fn hear(&mut self, data: &[u8]) -> bool {
        let mut kept = self.0.0.borrow_mut();
        let Kept::All(bytes, pool) = &mut *kept else { return false };
        if pool.is_tight() || bytes.len() + data.len() > pool.size() {
            *kept = Kept::Lost;
            return false;
        }
        bytes.extend_from_slice(data);
        true
    }

    fn end(self: Box<Self>) {}
}

/// A body of which some was sent before.
pub struct Again {
    bytes: Vec<u8>,
    at: usize,
    rest: Framing,
}

impl Again {
    /// The rest of the bytes that were sent before.
    pub(super) fn data(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The framing of the rest.
    pub(super) fn rest(&self) -> &Framing {
        &self.rest
    }

    /// Takes the framing of the rest, without the bytes that were sent before.
    pub(super) fn take_rest(&mut self) -> Framing {
        std::mem::take(&mut self.rest)
    }

    /// Takes so much of it; the rest, where all of it has gone.
    pub(super) fn consume(&mut self, n: usize) -> Option<Framing> {
        self.at += n;
        self.data().is_empty().then(|| std::mem::take(&mut self.rest))
    }
}

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").field("bytes", &self.data().len()).field("rest", &self.rest).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use terse_compress::Limit;

    fn heard(pieces: &[&[u8]]) -> Recording {
        let recording = Recording::new(&Pool::new(8, Arc::new(Limit::new(1024))));
        let mut listener = recording.listener();
        pieces.iter().all(|piece| listener.hear(piece));
        recording
    }

    #[test]
    fn what_was_sent_comes_again_and_then_the_rest() {
        let (body, is_whole) = heard(&[b"abc", b"de"]).rewind(Framing::Exact(7));
        let Framing::Again(mut again) = body else { panic!("{body:?}") };
        assert!(is_whole);
        assert_eq!(again.data(), b"abcde");
        assert!(again.consume(3).is_none());
        assert!(matches!(again.consume(2), Some(Framing::Exact(7))));
    }

    #[test]
    fn nothing_sent_is_nothing_lost_and_too_much_is_not_kept() {
        assert!(matches!(heard(&[]).rewind(Framing::Exact(7)), (Framing::Exact(7), true)));
        let recording = heard(&[b"abcdefgh", b"i"]);
        assert!(!recording.is_whole());
        assert!(matches!(recording.rewind(Framing::Exact(7)), (Framing::Exact(7), false)));
    }
}
