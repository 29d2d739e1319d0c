//! Compresses an input piece by piece on several threads.
//!
//! ```text
//!   source ─> intake: an idle worker takes the next piece ─> its coder ─> outlet: waits for its turn ─> sink
//! ```
//!
//! There is no thread for reading and none for writing. A worker reads its next piece itself, while no other does. It
//! leaves the output at the outlet; if it is that piece's turn, it writes it and all that wait after it. Memory is
//! bounded because no worker takes another piece while [`WAITING_PER_WORKER`] for each worker wait at the outlet.

use crate::engine::{Coder, Engine, HISTORY_BYTES, Joiner, Piece};
use crate::fault::Fault;
use crate::form::Form;
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use zlib_rs::crc32::crc32_combine;

/// Plan of an input's compression.
pub(crate) struct Plan {
    pub(crate) engine: &'static Engine,
    pub(crate) level: u8,
    pub(crate) workers: usize,
    /// Length of the input, if it is known.
    pub(crate) input_bytes: Option<u64>,
}

/// Totals of a stream.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    pub(crate) taken: u64,
    pub(crate) given: u64,
    /// Bytes of gzip's head and tail within the output.
    pub(crate) frame: u64,
    /// CRC-32 of the input; only for gzip.
    pub(crate) checksum: u32,
}

/// Compresses all of `source` to `sink`, without gzip's head and tail.
pub(crate) fn compress(
    source: &mut (dyn Read + Send),
    sink: &mut (dyn Write + Send),
    plan: &Plan,
    progress: &Progress,
) -> Result<Totals, Fault> {
    let mut intake = Intake { source, piece_bytes: plan.piece_bytes(), ahead: None, history: Vec::new(), next: 0, ended: false };
    let first = intake.take()?;
    let workers = if intake.ended { 1 } else { plan.workers };
    let outlet = Outlet {
        next: 0,
        waiting: BTreeMap::new(),
        is_written_to: false,
        fault: None,
        totals: Totals::default(),
        joiner: (plan.engine.form == Form::Brotli).then(Joiner::new),
    };
    let line = Line {
        plan,
        progress,
        limit: workers * WAITING_PER_WORKER,
        intake: Mutex::new(intake),
        outlet: Mutex::new(outlet),
        sink: Mutex::new(sink),
        moved: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // On a system without another thread to give, this one does more.
            let _ = std::thread::Builder::new().name("gzip".into()).spawn_scoped(scope, || line.work(None));
        }
        line.work(first);
    });
    let outlet = line.outlet.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut totals = outlet.totals;
    match outlet.fault {
        Some(fault) => Err(fault),
        None => {
            if let Some(mut joiner) = outlet.joiner {
                let mut rest = Vec::new();
                joiner.finish(&mut rest)?;
                let sink = line.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
                sink.write_all(&rest).map_err(Fault::Write)?;
                totals.given += rest.len() as u64;
            }
            Ok(totals)
        }
    }
}

/// Pieces that may wait for their turn, for each worker.
const WAITING_PER_WORKER: usize = 2;
/// Pieces for each worker of a small input, so that all workers end at about the same time.
const PIECES_PER_WORKER: u64 = 4;
/// Lower limit of a piece for that, in bytes.
const MIN_PIECE_BYTES: u64 = 1 << 17;

impl Plan {
    fn piece_bytes(&self) -> usize {
        let most = self.engine.piece_bytes;
        match self.input_bytes {
            Some(bytes) if self.workers > 1 => {
                let share = (bytes / (self.workers as u64 * PIECES_PER_WORKER)).max(MIN_PIECE_BYTES);
                usize::try_from(share).unwrap_or(most).min(most)
            }
            _ => most,
        }
    }
}

struct Line<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    limit: usize,
    intake: Mutex<Intake<'a>>,
    outlet: Mutex<Outlet>,
    /// Locked only by the worker that has set [`Outlet::is_written_to`].
    sink: Mutex<&'a mut (dyn Write + Send)>,
    /// A piece was written, or the work failed.
    moved: Condvar,
}

/// Source of pieces.
struct Intake<'a> {
    source: &'a mut (dyn Read + Send),
    piece_bytes: usize,
    /// First byte of the next piece, already read: it must be known whether a piece is the last when it is coded.
    ahead: Option<u8>,
    /// End of the piece before it.
    history: Vec<u8>,
    /// Number of the next piece.
    next: usize,
    /// Whether the last piece was taken.
    ended: bool,
}

/// A piece in a worker's hands, with its own copy of everything.
struct Taken {
    number: usize,
    bytes: Vec<u8>,
    history: Vec<u8>,
    is_last: bool,
}

/// A coded piece.
struct Done {
    out: Vec<u8>,
    taken: u64,
    checksum: u32,
}

/// Output of pieces, in order.
struct Outlet {
    /// Number of the next piece to write.
    next: usize,
    waiting: BTreeMap<usize, Done>,
    is_written_to: bool,
    /// The first fault, which ends the work.
    fault: Option<Fault>,
    totals: Totals,
    joiner: Option<Joiner>,
}

impl Line<'_> {
    /// Works until the end, beginning with a piece that was taken before, if any.
    fn work(&self, first: Option<Taken>) {
        // Should a coder panic, no worker may wait for its piece.
        let guard = Abandon(self);
        if let Err(fault) = self.try_work(first) {
            self.fail(fault);
        }
        std::mem::forget(guard);
    }

    fn try_work(&self, first: Option<Taken>) -> Result<(), Fault> {
        let mut coder = (self.plan.engine.make)(self.plan.level)?;
        // No worker waits with a piece in hand: it may be the one that all others wait for.
        let mut piece = match first {
            None => self.take()?,
            first => first,
        };
        while let Some(taken) = piece {
            let number = taken.number;
            let done = self.code(&mut *coder, taken)?;
            self.deliver(number, done)?;
            piece = self.take()?;
        }
        Ok(())
    }

    /// Takes the next piece, as soon as there is room for it; `None` after the last, and when the work has ended.
    fn take(&self) -> Result<Option<Taken>, Fault> {
        if !self.may_go_on() {
            return Ok(None);
        }
        self.intake.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until there is room at the outlet; false when the work has ended.
    fn may_go_on(&self) -> bool {
        let mut outlet = self.outlet();
        while outlet.fault.is_none() && outlet.waiting.len() >= self.limit {
            outlet = self.moved.wait(outlet).unwrap_or_else(PoisonError::into_inner);
        }
        outlet.fault.is_none()
    }

    fn code(&self, coder: &mut dyn Coder, taken: Taken) -> Result<Done, Fault> {
        let piece = Piece { bytes: &taken.bytes, history: &taken.history, is_first: taken.number == 0, is_last: taken.is_last };
        let checksum = if self.plan.engine.form == Form::Gzip { libdeflater::crc32(piece.bytes) } else { 0 };
        let mut out = Vec::new();
        coder.code(&piece, &mut out)?;
        self.progress.add(piece.bytes.len() as u64);
        Ok(Done { out, taken: piece.bytes.len() as u64, checksum })
    }

    /// Leaves a piece at the outlet. The worker that brings the next piece in order writes.
    fn deliver(&self, number: usize, done: Done) -> Result<(), Fault> {
        let mut outlet = self.outlet();
        outlet.waiting.insert(number, done);
        if outlet.is_written_to {
            return Ok(());
        }
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(done) = outlet.take_next() {
            let bytes = outlet.join(done)?;
            outlet.is_written_to = true;
            drop(outlet);
            let written = sink.write_all(&bytes).map_err(Fault::Write);
            outlet = self.outlet();
            outlet.is_written_to = false;
            written?;
            self.moved.notify_all();
        }
        Ok(())
    }

    fn fail(&self, fault: Fault) {
        self.outlet().fault.get_or_insert(fault);
        self.moved.notify_all();
    }

    fn outlet(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work when it is dropped.
struct Abandon<'l, 'a>(&'l Line<'a>);

impl Drop for Abandon<'_, '_> {
    fn drop(&mut self) {
        self.0.fail(Fault::Engine);
    }
}

impl Intake<'_> {
    /// Reads the next piece; `None` after the last. The calling worker reads it, and so has it in its processor's
    /// cache.
    fn take(&mut self) -> Result<Option<Taken>, Fault> {
        if self.ended {
            return Ok(None);
        }
        // No read follows an error.
        self.ended = true;
        let wanted = self.piece_bytes + 1;
        let mut bytes = Vec::with_capacity(wanted);
        bytes.extend(self.ahead.take());
        let left = (wanted - bytes.len()) as u64;
        (&mut *self.source).take(left).read_to_end(&mut bytes).map_err(Fault::Read)?;
        if bytes.len() > self.piece_bytes {
            self.ahead = bytes.pop();
        }
        self.ended = self.ahead.is_none();
        let tail = bytes[bytes.len().saturating_sub(HISTORY_BYTES)..].to_vec();
        let history = std::mem::replace(&mut self.history, tail);
        let number = self.next;
        self.next += 1;
        Ok(Some(Taken { number, bytes, history, is_last: self.ended }))
    }
}

impl Outlet {
    fn take_next(&mut self) -> Option<Done> {
        let done = self.waiting.remove(&self.next)?;
        self.next += 1;
        self.totals.taken += done.taken;
        self.totals.checksum = crc32_combine(self.totals.checksum, done.checksum, done.taken);
        Some(done)
    }

    /// Output bytes of a piece.
    fn join(&mut self, done: Done) -> Result<Vec<u8>, Fault> {
        let bytes = match &mut self.joiner {
            Some(joiner) => {
                let mut joined = Vec::new();
                joiner.add(&done.out, &mut joined)?;
                joined
            }
            None => done.out,
        };
        self.totals.given += bytes.len() as u64;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of some bytes and then an error, which must not be read further.
    struct Broken(&'static [u8], bool);

    impl Read for Broken {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            assert!(!self.1, "read behind an error");
            let count = self.0.read(room)?;
            self.1 = count == 0;
            if self.1 { Err(std::io::Error::other("broken")) } else { Ok(count) }
        }
    }

    #[test]
    fn nothing_is_taken_behind_an_error() {
        let mut source = Broken(b"two pieces", false);
        let mut intake = Intake { source: &mut source, piece_bytes: 8, ahead: None, history: Vec::new(), next: 0, ended: false };
        let first = intake.take().ok().flatten().unwrap();
        assert_eq!((&*first.bytes, first.is_last, intake.ahead), (&b"two piec"[..], false, Some(b'e')));
        assert!(matches!(intake.take(), Err(Fault::Read(_))));
        assert!(matches!(intake.take(), Ok(None)));
    }

    #[test]
    fn a_piece_knows_whether_it_is_the_last() {
        for (input, pieces) in [(&b""[..], &[(0, true)][..]), (b"1234", &[(4, true)]), (b"12345", &[(4, false), (1, true)])] {
            let mut source = input;
            let mut intake =
                Intake { source: &mut source, piece_bytes: 4, ahead: None, history: Vec::new(), next: 0, ended: false };
            let mut taken = Vec::new();
            while let Some(piece) = intake.take().ok().flatten() {
                taken.push((piece.bytes.len(), piece.is_last));
            }
            assert_eq!(taken, pieces);
        }
    }
}
