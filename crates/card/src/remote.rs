//! Device whose library runs in a process of its own.
//!
//! ```text
//!            spawned                 its socket ends, or a job is overdue
//!   absent ───────────> Incarnation ──────────────────────────────────────> absent, for a pause
//! ```
//!
//! The attendant, a thread, starts incarnations, receives their messages and sees their end. An incarnation that ends
//! takes its jobs with it: they go back as failures at once. The first end is followed by another start at once, each
//! further one without a job done in between by a longer pause.
//!
//! Invariants:
//! * A slot belongs to one order from the moment that it is reserved until its result is copied out. An incarnation
//!   whose process was given up hands out no slot again.
//! * A result is copied once, and judged in the copy: the process may still write to the slot.
//! * Segments outlive incarnations, as bodies do.

use crate::keeper::Keeper;
use crate::memory::{Layout, Memory};
use crate::segment::{Place, Segments};
use crate::wire::{Job, MAX_BYTES, Reply, Told};
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use std::any::Any;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use terse_compress::device::{Coded, Device, Failure, Lent, Order, Pieces, Status};
use terse_compress::{Budget, EngineSettings};

/// A library in a process of its own. Dropped, both end.
pub struct Remote {
    shared: Arc<Shared>,
    attendant: Option<JoinHandle<()>>,
}

struct Shared {
    keeper: Keeper,
    layout: Layout,
    segments: Arc<Segments>,
    state: Mutex<State>,
    ending: Condvar,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Incarnation>>,
    status: Status,
    stopped: bool,
}

/// Report of a process at its end.
#[derive(Default)]
struct Heard {
    /// Whether it has done a job.
    has_worked: bool,
    /// Reason of its end, if that is known.
    reason: Option<String>,
}

/// An incarnation of the card's process.
pub(crate) struct Incarnation {
    socket: OwnedFd,
    memory: Memory,
    segments: Arc<Segments>,
    slots: Mutex<Slots>,
}

struct Slots {
    list: Vec<Slot>,
    /// Numbers of segments whose descriptors were sent.
    known: HashSet<u64>,
    /// Whether no more jobs are handed over.
    closed: bool,
}

enum Slot {
    Free,
    /// Bytes are being copied.
    Reserved,
    /// The process has it. Its input is in a segment.
    Busy(Order),
}

impl Remote {
    /// Has the keeper start the library's process. Memory for bodies counts against `limit`.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn open(keeper: Keeper, settings: &EngineSettings, limit: Arc<dyn Budget>) -> io::Result<Remote> {
        let layout = Layout { slots: settings.jobs(), largest: settings.largest };
        let segments = Segments::new(settings.largest, settings.jobs() * LENT_PER_JOB, limit);
        let shared = Arc::new(Shared { keeper, layout, segments, state: Mutex::default(), ending: Condvar::new() });
        let attended = shared.clone();
        // The process is there when the first job comes, though not yet with its library.
        let first = shared.start();
        let attendant = std::thread::Builder::new().name("terse-card".into()).spawn(move || attended.attend(first))?;
        Ok(Remote { shared, attendant: Some(attendant) })
    }
}

impl Device for Remote {
    fn submit(&self, batch: Vec<Order>) {
        for order in batch {
            let current = self.shared.lock().current.clone();
            match current {
                Some(incarnation) => incarnation.take(order),
                None => order.end(Err(Failure::Refused)),
            }
        }
    }

    fn overdue(&self, ticket: u64) {
        let current = self.shared.lock().current.take_if(|current| current.has(ticket));
        if let Some(incarnation) = current {
            self.shared.lock().status.trouble = Some("killed: a job was not done at its deadline".into());
            self.shared.keeper.kill();
            incarnation.close().into_iter().for_each(|order| order.end(Err(Failure::Swept)));
        }
    }

    fn status(&self) -> Status {
        self.shared.lock().status.clone()
    }

    fn lend(&self) -> Option<Box<dyn Lent>> {
        self.shared.segments.lend()
    }

    fn rest(&self) {
        self.shared.segments.rest();
        let current = self.shared.lock().current.clone();
        if let Some(incarnation) = current {
            incarnation.forget();
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let current = {
            let mut state = self.shared.lock();
            state.stopped = true;
            state.current.take()
        };
        self.shared.ending.notify_all();
        if let Some(incarnation) = current {
            incarnation.close().into_iter().for_each(|order| order.end(Err(Failure::Refused)));
        }
        let _ = self.attendant.take().map(JoinHandle::join);
    }
}

impl Shared {
    /// Main loop of the attendant.
    fn attend(&self, first: io::Result<Option<Arc<Incarnation>>>) {
        let (mut started, mut in_vain) = (first, 0);
        loop {
            match started {
                Ok(Some(incarnation)) => {
                    let heard = self.hear(&incarnation);
                    in_vain = if heard.has_worked { 0 } else { in_vain + 1 };
                    self.buried(&incarnation, heard.reason);
                }
                Ok(None) => return,
                Err(error) => {
                    self.lock().status.trouble = Some(error.to_string());
                    in_vain += 1;
                }
            }
            if !self.pause(in_vain) {
                return;
            }
            started = self.start();
        }
    }

    /// Starts a new incarnation; `None` when the device is dropped.
    fn start(&self) -> io::Result<Option<Arc<Incarnation>>> {
        let (mine, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let memory = Memory::create(self.layout)?;
        let started = self.keeper.spawn(theirs.as_fd(), memory.file())?;
        let incarnation = Arc::new(Incarnation::new(mine, memory, self.segments.clone()));
        let mut state = self.lock();
        if state.stopped {
            return Ok(None);
        }
        state.status.process = Some(started.process);
        state.status.starts += 1;
        if let Some(before) = started.before.filter(|_| state.status.trouble.as_deref() == Some(ENDED)) {
            state.status.trouble = Some(format!("its process {before}"));
        }
        state.current = Some(incarnation.clone());
        Ok(Some(incarnation))
    }

    /// Processes the messages of the process until its end.
    fn hear(&self, incarnation: &Incarnation) -> Heard {
        let mut heard = Heard::default();
        loop {
            let Some(said) = incarnation.listen(RecvFlags::empty()) else { return heard };
            match said {
                Some(Reply::Ready(version)) => self.lock().status.version = Some(version),
                Some(Reply::Unfit(reason)) => heard.reason = Some(reason),
                Some(Reply::Done { ticket, slot, result, took_us }) => {
                    heard.has_worked |= result.is_ok();
                    if !incarnation.done(ticket, slot as usize, result, Duration::from_micros(took_us)) {
                        break;
                    }
                }
                None => break,
            }
        }
        heard.reason = Some("killed: it did not keep to the protocol".into());
        self.keeper.kill();
        heard
    }

    /// Records the end of an incarnation. If it was not closed by terse, one of its jobs has ended it.
    fn buried(&self, incarnation: &Arc<Incarnation>, reason: Option<String>) {
        let by_itself = {
            let mut state = self.lock();
            state.status.process = None;
            let by_itself = state.current.take_if(|current| Arc::ptr_eq(current, incarnation)).is_some();
            if by_itself {
                state.status.trouble = Some(reason.unwrap_or_else(|| ENDED.into()));
            }
            by_itself
        };
        let mut failure = if by_itself { Failure::Died } else { Failure::Swept };
        for order in incarnation.close() {
            order.end(Err(std::mem::replace(&mut failure, Failure::Swept)));
        }
    }

    /// Waits before the next start; false when the device is dropped.
    fn pause(&self, in_vain: u32) -> bool {
        let pause = match in_vain {
            0 | 1 => Duration::ZERO,
            more => FIRST_PAUSE.saturating_mul(1 << (more - 2).min(16)).min(LONGEST_PAUSE),
        };
        let until = Instant::now() + pause;
        let mut state = self.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.stopped || left.is_zero() {
                return !state.stopped;
            }
            state = self.ending.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incarnation {
    pub(crate) fn new(socket: OwnedFd, memory: Memory, segments: Arc<Segments>) -> Incarnation {
        let list = (0..memory.layout().slots).map(|_| Slot::Free).collect();
        Incarnation { socket, memory, segments, slots: Mutex::new(Slots { list, known: HashSet::new(), closed: false }) }
    }

    /// Receives the next message; `None` at its end, `Some(None)` where it is malformed.
    pub(crate) fn listen(&self, flags: RecvFlags) -> Option<Option<Reply>> {
        let mut message = [0; MAX_BYTES];
        let received = rustix::io::retry_on_intr(|| rustix::net::recv(&self.socket, &mut message[..], flags));
        let Ok((_, length @ 1..)) = received else { return None };
        Some(message.get(..length).and_then(Reply::read))
    }

    /// Hands a job over.
    pub(crate) fn take(&self, mut order: Order) {
        self.forget();
        let Some(slot) = self.reserve() else { return order.end(Err(Failure::Refused)) };
        let body = self.place(&order);
        let Some((body, (segment, file))) = body.as_ref().and_then(|body| Some((body, body.segment()?))) else {
            self.set(slot, Slot::Free);
            return order.end(Err(Failure::Refused));
        };
        let (bytes, wrapper, level) = (order.input.bytes() as u64, order.wrapper, order.level);
        let job = Job { ticket: order.ticket, segment, slot: slot as u32, bytes, wrapper, level };
        order.input = Pieces::new(vec![body.clone()]);
        let is_new = {
            let mut slots = self.slots();
            if slots.closed {
                drop(slots);
                return order.end(Err(Failure::Swept));
            }
            if let Some(place) = slots.list.get_mut(slot) {
                *place = Slot::Busy(order);
            }
            slots.known.insert(segment)
        };
        if job.send(&self.socket, is_new.then_some(file)).is_err() {
            if is_new {
                self.slots().known.remove(&segment);
            }
            // It is ending, and then the attendant may have given the order back already; or it does not even read.
            if let Some(order) = self.release(slot, job.ticket) {
                self.set(slot, Slot::Free);
                order.end(Err(Failure::Refused));
            }
        }
    }

    /// Makes the process drop segments that are gone. A message that cannot be sent now is sent the next time.
    fn forget(&self) {
        for number in self.segments.gone() {
            if self.slots().known.remove(&number) && !Told::forget(&self.socket, number) {
                self.slots().known.insert(number);
                self.segments.untold(number);
            }
        }
    }

    /// Place of an order's body: a segment that was lent for it, or a segment that it is copied to.
    fn place(&self, order: &Order) -> Option<Arc<Place>> {
        let lent = order.input.only().and_then(|piece| {
            let piece: Arc<dyn Any + Send + Sync> = piece.clone();
            piece.downcast::<Place>().ok().filter(|place| place.is_of(&self.segments))
        });
        lent.or_else(|| self.segments.copy(order.input.iter()))
    }

    /// Processes the result of a job; false if it is impossible.
    pub(crate) fn done(&self, ticket: u64, slot: usize, result: Result<u64, i32>, took: Duration) -> bool {
        let Some(order) = self.release(slot, ticket) else { return self.slots().closed };
        let result = match result {
            Err(code) => Err(Failure::Error(code)),
            Ok(bytes) => match usize::try_from(bytes).ok().and_then(|bytes| self.memory.take_coded(slot, bytes)) {
                Some(bytes) => Ok(Coded { bytes, took }),
                None => {
                    order.end(Err(Failure::Died));
                    return false;
                }
            },
        };
        self.set(slot, Slot::Free);
        order.end(result);
        true
    }

    /// Closes the connection; returns the remaining jobs.
    pub(crate) fn close(&self) -> Vec<Order> {
        let _ = shutdown(&self.socket, Shutdown::Both);
        let mut slots = self.slots();
        slots.closed = true;
        let left = slots.list.iter_mut().filter(|slot| matches!(slot, Slot::Busy(_)));
        let taken = left.map(|slot| std::mem::replace(slot, Slot::Reserved));
        taken.filter_map(|slot| if let Slot::Busy(order) = slot { Some(order) } else { None }).collect()
    }

    fn has(&self, ticket: u64) -> bool {
        self.slots().list.iter().any(|slot| matches!(slot, Slot::Busy(order) if order.ticket == ticket))
    }

    fn reserve(&self) -> Option<usize> {
        let mut slots = self.slots();
        if slots.closed {
            return None;
        }
        let slot = slots.list.iter().position(|slot| matches!(slot, Slot::Free))?;
        slots.list[slot] = Slot::Reserved;
        Some(slot)
    }

    /// Takes the order of that ticket out of a slot, which stays reserved.
    fn release(&self, slot: usize, ticket: u64) -> Option<Order> {
        let mut slots = self.slots();
        let place = slots.list.get_mut(slot).filter(|place| matches!(place, Slot::Busy(order) if order.ticket == ticket))?;
        match std::mem::replace(place, Slot::Reserved) {
            Slot::Busy(order) => Some(order),
            Slot::Free | Slot::Reserved => None,
        }
    }

    fn set(&self, slot: usize, to: Slot) {
        if let Some(place) = self.slots().list.get_mut(slot) {
            *place = to;
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Number of descriptors that an engine takes at most, nearly always. They are a segment for each body that is lent to
/// or copied, and the sockets and the memory of its process and its keeper.
pub fn descriptors(settings: &EngineSettings) -> usize {
    settings.jobs() * (LENT_PER_JOB + 1) + PROCESS_DESCRIPTORS
}

/// Sockets of the process and of its keeper, and memory for coded bodies, with those that are being replaced.
const PROCESS_DESCRIPTORS: usize = 4;

/// Reason of an incarnation's unexpected end, until the keeper knows more.
const ENDED: &str = "its process ended";

/// Limit of lent segments, for each job that the process may have: while it has one, the next body is on its way.
const LENT_PER_JOB: usize = 2;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendFlags, send};
    use terse_compress::Limit;

    #[test]
    fn what_could_not_be_said_is_said_the_next_time() {
        let (mine, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let memory = Memory::create(Layout { slots: 1, largest: 100 }).unwrap();
        let segments = Segments::new(100, 2, Arc::new(Limit::new(1 << 20)));
        drop(segments.copy([&b"body"[..]].into_iter()).unwrap());
        let incarnation = Incarnation::new(mine, memory, segments.clone());
        incarnation.slots().known.insert(1);
        segments.rest();
        let full = (0..).take_while(|_| send(&incarnation.socket, &[0; 8], SendFlags::DONTWAIT).is_ok()).count();
        incarnation.forget();
        assert!(incarnation.slots().known.contains(&1));
        for _ in 0..full {
            assert!(Told::receive(&theirs, RecvFlags::DONTWAIT).is_some());
        }
        incarnation.forget();
        assert!(matches!(Told::receive(&theirs, RecvFlags::DONTWAIT), Some(Told::Forget(1))));
        assert!(incarnation.slots().known.is_empty());
        assert_eq!(segments.gone(), []);
    }
}
