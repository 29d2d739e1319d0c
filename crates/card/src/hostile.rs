//! A card's process that follows a script, for tests. Nothing that it does may lose an order, end an order twice, or
//! bring bytes from beyond its slot.
#![allow(unsafe_code)]

use crate::memory::{Layout, Memory};
use crate::remote::Incarnation;
use crate::segment::{Body, Segments};
use crate::wire::{MAX_BYTES, Reply, Told};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use terse_compress::device::{Failure, Order, Wrapper};
use terse_compress::{Level, Limit};

/// Plays a script: orders come, and the process answers, or does something else.
///
/// # Panics
/// An order is not ended exactly once, or with an impossible result.
#[allow(clippy::expect_used, reason = "it is a test")]
pub fn play(script: &[u8]) {
    let sockets = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (mine, theirs) = sockets.expect("a pair of sockets");
    let memory = Memory::create(LAYOUT).expect("memory");
    let file = memory.file().try_clone_to_owned().expect("a descriptor");
    let memory_of_its = Memory::attach(file, LAYOUT).expect("the same memory");
    let mut other = Other { socket: theirs, memory: memory_of_its, bodies: HashMap::new() };
    let limit = Arc::new(Limit::new(1 << 20));
    let segments = Segments::new(LAYOUT.largest, 2, limit.clone());
    let incarnation = Incarnation::new(mine, memory, segments.clone());
    let mut orders = Orders::default();
    let mut script = Script(script);
    while let Some(step) = script.byte() {
        match step % 8 {
            0 => incarnation.take(orders.next(script.byte().unwrap_or(0), None)),
            1 => incarnation.take(orders.next(script.byte().unwrap_or(0), Some(&segments))),
            2 | 3 => other.answer(&mut script),
            4 => other.say(script.some()),
            5 => other.write(&mut script),
            6 => other.read(),
            _ if script.byte().unwrap_or(0) % 2 == 0 => segments.rest(),
            _ => break,
        }
        // Processing by the attendant.
        while let Some(said) = incarnation.listen(RecvFlags::DONTWAIT) {
            let keeps_to_it = match said {
                Some(Reply::Ready(text) | Reply::Unfit(text)) => {
                    assert!(!text.chars().any(char::is_control) && text.len() <= 3 * MAX_BYTES);
                    true
                }
                Some(Reply::Done { ticket, slot, result, took_us }) => {
                    incarnation.done(ticket, slot as usize, result, Duration::from_micros(took_us))
                }
                None => false,
            };
            if !keeps_to_it {
                orders.check(&incarnation);
                break;
            }
        }
    }
    orders.check(&incarnation);
    drop(incarnation);
    segments.rest();
    assert_eq!(limit.used(), 0, "all segments have come back");
}

/// Orders so far, and the number of times that each was ended.
#[derive(Default)]
struct Orders(Vec<Arc<AtomicU32>>);

impl Orders {
    /// Creates an order: in a segment, if one is lent.
    fn next(&mut self, size: u8, segments: Option<&Arc<Segments>>) -> Order {
        let ended = Arc::new(AtomicU32::new(0));
        self.0.push(ended.clone());
        let bytes = usize::from(size) * LAYOUT.largest / 250;
        let ending = Box::new(move |result: Result<terse_compress::device::Coded, Failure>| {
            ended.fetch_add(1, Relaxed);
            if let Ok(coded) = result {
                assert!(coded.bytes.len() <= LAYOUT.room());
            }
        });
        let body = vec![size; bytes];
        let input = match segments.and_then(Segments::lend) {
            Some(mut lent) => {
                lent.room()[..bytes.min(LAYOUT.largest)].copy_from_slice(&body[..bytes.min(LAYOUT.largest)]);
                lent.advance(bytes);
                lent.into_piece().into()
            }
            None => body.into(),
        };
        Order::new(self.0.len() as u64, input, Wrapper::Gzip, Level(6), ending)
    }

    /// Ends the test: the remaining orders come back.
    fn check(&self, incarnation: &Incarnation) {
        incarnation.close().into_iter().for_each(|order| order.end(Err(Failure::Swept)));
        for ended in &self.0 {
            assert_eq!(ended.load(Relaxed), 1, "an order is ended once");
        }
        assert!(incarnation.close().is_empty());
    }
}

/// The other process.
struct Other {
    socket: OwnedFd,
    memory: Memory,
    bodies: HashMap<u64, Body>,
}

impl Other {
    /// Answers that a job is done, or a variant of that.
    fn answer(&self, script: &mut Script<'_>) {
        let [ticket, slot, low, high, code] = [(); 5].map(|()| script.byte().unwrap_or(0));
        let bytes = match high {
            255 => u64::MAX - u64::from(low),
            _ => u64::from(u16::from_le_bytes([low, high])),
        };
        let result = if code < 200 { Ok(bytes) } else { Err(i32::from(code.cast_signed())) };
        self.say(&Reply::Done { ticket: ticket.into(), slot: slot.into(), result, took_us: bytes }.write());
    }

    fn say(&self, message: &[u8]) {
        let _ = rustix::net::send(&self.socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Writes anywhere in a slot.
    fn write(&self, script: &mut Script<'_>) {
        let [slot, at] = [(); 2].map(|()| script.byte().unwrap_or(0));
        let Some((to, room)) = self.memory.coded(slot.into()) else { return };
        let bytes = script.some();
        let at = usize::from(at) * room / 256;
        let length = bytes.len().min(room - at);
        // SAFETY: so many bytes are in the mapping after that place, and the script is elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(at), length) };
    }

    /// Reads the messages: they follow the protocol, and bodies are read-only.
    #[allow(clippy::expect_used, reason = "it is a test")]
    fn read(&mut self) {
        while let Some(told) = Told::receive(&self.socket, RecvFlags::DONTWAIT) {
            let (job, file) = match told {
                Told::Do(job, file) => (job, file),
                Told::Forget(number) => {
                    self.bodies.remove(&number).expect("a segment that was known");
                    continue;
                }
            };
            assert!((job.slot as usize) < LAYOUT.slots && job.bytes <= LAYOUT.largest as u64);
            if let Some(file) = file {
                assert!(rustix::io::pwrite(&file, b"x", 0).is_err());
                assert!(self.bodies.insert(job.segment, Body::attach(&file).expect("a body")).is_none());
            }
            let base = self.bodies.get(&job.segment).expect("a segment that is known").base(job.bytes as usize);
            // A process that reported a job as done too early may find another body here.
            // SAFETY: so many bytes are mapped, and this thread alone writes them.
            let bytes = unsafe { std::slice::from_raw_parts(base.expect("so many bytes"), job.bytes as usize) };
            std::hint::black_box(bytes.iter().fold(0, |sum: u8, byte| sum ^ byte));
        }
    }
}

/// Rest of a script.
struct Script<'s>(&'s [u8]);

impl<'s> Script<'s> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes some bytes: their number is the next byte times four.
    fn some(&mut self) -> &'s [u8] {
        let length = (usize::from(self.byte().unwrap_or(0)) * 4).min(self.0.len());
        let (some, rest) = self.0.split_at(length);
        self.0 = rest;
        some
    }
}

const LAYOUT: Layout = Layout { slots: 3, largest: 5000 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_order_is_lost_whatever_the_process_does() {
        // splitmix64.
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb).to_le_bytes()[4]
        };
        for round in 0..2000 {
            // Small numbers have a meaning more often.
            let script: Vec<u8> = (0..200).map(|_| if round % 2 == 0 { random() % 8 } else { random() }).collect();
            play(&script);
        }
        play(&[0, 100, 6, 2, 1, 0, 10, 0, 0, 1, 255, 6, 2, 2, 0, 255, 255, 0]);
    }
}
