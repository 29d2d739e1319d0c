//! A body that is collected: in memory of our own, or in memory that an engine has lent, which it then reads without a copy.

use crate::device::{Lent, Piece};
use std::ops::Deref;
use std::sync::Arc;

pub(crate) enum Collected {
    Own(Vec<u8>),
    Lent(Box<dyn Lent>),
}

impl Collected {
    /// The memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.memory_with(self.len())
    }

    /// The memory that it takes with so many bytes in it, which must not be more than it has room for.
    pub(crate) fn memory_with(&self, bytes: usize) -> usize {
        match self {
            Collected::Own(body) => body.capacity(),
            Collected::Lent(body) => body.memory(bytes),
        }
    }

    /// Bytes of the longest body that can be collected as it is.
    pub(crate) fn capacity(&mut self) -> usize {
        match self {
            Collected::Own(body) => body.capacity(),
            Collected::Lent(body) => body.filled().len() + body.room().len(),
        }
    }

    /// Takes bytes. Bytes that do not fit into lent memory move to our own.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if let Collected::Lent(body) = self {
            if let Some(room) = body.room().get_mut(..bytes.len()) {
                room.copy_from_slice(bytes);
                return body.advance(bytes.len());
            }
            *self = Collected::Own(body.filled().to_vec());
        }
        if let Collected::Own(body) = self {
            body.extend_from_slice(bytes);
        }
    }

    /// Moves to other memory.
    pub(crate) fn move_to(&mut self, mut to: Collected) {
        to.extend(self);
        *self = to;
    }

    /// In memory of our own, copied if it is not.
    pub(crate) fn into_own(self) -> Vec<u8> {
        match self {
            Collected::Own(body) => body,
            Collected::Lent(body) => body.filled().to_vec(),
        }
    }

    /// Nothing is added any more.
    pub(crate) fn into_piece(self) -> Arc<dyn Piece> {
        match self {
            Collected::Own(body) => Arc::new(body),
            Collected::Lent(body) => body.into_piece(),
        }
    }
}

impl Deref for Collected {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Collected::Own(body) => body,
            Collected::Lent(body) => body.filled(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{DEFAULT_COLLECT_BYTES, IN_PLACE_NS};
    use crate::coder::{Engine, Tuning};
    use crate::coding::{Coding, Level};
    use crate::device::{Coded, Device, Failure, Order, Status};
    use crate::engine::{EngineId, EngineSettings};
    use crate::memory::{Memory, Owner, Raiser, Recall, Remembrance};
    use crate::offload::tests::block_on;
    use crate::offload::{Queue, Standing};
    use crate::{Compressor, Limit, Plan, Pool, Step, Workplace};
    use std::any::Any;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// A device that lends memory for a single body at a time.
    #[derive(Default)]
    struct Lender {
        fails: AtomicBool,
        /// Memory that it has lent, and orders whose bodies lay in it.
        lent: Arc<AtomicUsize>,
        found: AtomicUsize,
    }

    struct Room {
        bytes: Vec<u8>,
        filled: usize,
        lent: Arc<AtomicUsize>,
    }

    impl Device for Lender {
        fn submit(&self, batch: Vec<Order>) {
            for order in batch {
                let piece: Option<Arc<dyn Any + Send + Sync>> = order.input.only().map(|piece| piece.clone() as _);
                self.found.fetch_add(usize::from(piece.is_some_and(|piece| piece.is::<Room>())), Relaxed);
                if self.fails.load(Relaxed) {
                    order.end(Err(Failure::Died));
                    continue;
                }
                let (mut bytes, pool) = (Vec::new(), Pool::new(Tuning::default()));
                (Engine::of(Coding::Gzip).whole)(&order.input.joined(), order.level, &pool, &mut bytes).unwrap();
                order.end(Ok(Coded { bytes, took: Duration::ZERO }));
            }
        }

        fn overdue(&self, _: u64) {}

        fn status(&self) -> Status {
            Status::default()
        }

        fn lend(&self) -> Option<Box<dyn Lent>> {
            self.lent.fetch_update(Relaxed, Relaxed, |lent| (lent == 0).then_some(1)).ok()?;
            Some(Box::new(Room { bytes: vec![0; ROOM_BYTES], filled: 0, lent: self.lent.clone() }))
        }
    }

    impl Lent for Room {
        fn filled(&self) -> &[u8] {
            &self.bytes[..self.filled]
        }

        fn room(&mut self) -> &mut [u8] {
            &mut self.bytes[self.filled..]
        }

        fn advance(&mut self, bytes: usize) {
            self.filled += bytes;
        }

        fn memory(&self, bytes: usize) -> usize {
            bytes.next_multiple_of(4096)
        }

        fn into_piece(self: Box<Self>) -> Arc<dyn Piece> {
            Arc::<Room>::from(self)
        }
    }

    impl Piece for Room {
        fn bytes(&self) -> &[u8] {
            self.filled()
        }
    }

    impl Drop for Room {
        fn drop(&mut self) {
            self.lent.store(0, Relaxed);
        }
    }

    const ROOM_BYTES: usize = 1 << 20;
    const PLAN: Plan = Plan { coding: Coding::Gzip, level: Level(6) };

    struct Site {
        place: Arc<Workplace>,
        limit: Arc<Limit>,
        device: Arc<Lender>,
        queue: Arc<Queue>,
    }

    fn site(limit: usize) -> Site {
        let (limit, device) = (Arc::new(Limit::new(limit)), Arc::new(Lender::default()));
        let patience = Duration::from_secs(20);
        let settings =
            EngineSettings { deadline: patience, said_smallest: Some(100), largest: ROOM_BYTES, ..EngineSettings::default() };
        let queue = Arc::new(Queue::with_engines(1, 0, 8, vec![(settings, device.clone())]).unwrap());
        let deadline = Instant::now() + patience;
        while queue.engines()[0].standing() != Standing::Up {
            assert!(Instant::now() < deadline, "it never comes up");
            std::thread::yield_now();
        }
        let place = Arc::new(Workplace {
            pool: Arc::new(Pool::new(Tuning::default())),
            queue: Some(queue.clone()),
            budget: limit.clone(),
            in_place_ns: IN_PLACE_NS,
            meter: None,
            brake: None,
        });
        Site { place, limit, device, queue }
    }

    impl Site {
        fn compressor(&self, known_bytes: Option<usize>) -> Compressor {
            let mut compressor = Compressor::new(PLAN, known_bytes.map(|bytes| bytes as u64), ROOM_BYTES, &self.place);
            compressor.prefer(Some(EngineId(0)));
            compressor
        }

        /// Receives bytes where they can be received, up to the last thousand; returns their number.
        fn collect(&self, compressor: &mut Compressor, body: &[u8]) -> usize {
            let (mut at, mut received) = (0, 0);
            while at < body.len() {
                let left = body.len() - at;
                match compressor.room().filter(|_| left > 1000) {
                    Some(room) => {
                        let n = room.len().min(left - 1000);
                        room[..n].copy_from_slice(&body[at..at + n]);
                        compressor.received(n);
                        (at, received) = (at + n, received + n);
                    }
                    None => {
                        let n = left.min(10_000);
                        assert!(matches!(compressor.feed(&body[at..at + n]), Ok(Step::Done)));
                        at += n;
                    }
                }
                assert!(self.limit.used() >= at && compressor.has_pending());
            }
            received
        }

        fn finish(&self, compressor: Compressor) -> Vec<u8> {
            crate::coder::conformance::decode_whole(Coding::Gzip, &self.last(compressor))
        }

        fn last(&self, mut compressor: Compressor) -> Vec<u8> {
            let step = compressor.finish().unwrap();
            block_on(compressor.settle(step)).unwrap();
            let out = compressor.take_output().to_vec();
            drop(compressor);
            assert_eq!((self.limit.used(), self.device.lent.load(Relaxed)), (0, 0), "all has gone back");
            out
        }
    }

    fn text(bytes: usize) -> Vec<u8> {
        (0u32..)
            .flat_map(|i| format!("item {} is {}; ", i.wrapping_mul(2_654_435_761) >> 20, i % 17).into_bytes())
            .take(bytes)
            .collect()
    }

    #[test]
    fn a_body_for_an_engine_lies_in_its_memory() {
        let site = site(8 << 20);
        let body = text(900_000);
        for (known, fails) in [(true, false), (false, false), (true, true), (false, true)] {
            site.device.fails.store(fails, Relaxed);
            let before = site.device.found.load(Relaxed);
            let mut compressor = site.compressor(known.then_some(body.len()));
            let received = site.collect(&mut compressor, &body);
            assert!(received > 500_000, "{received}");
            assert_eq!(site.device.lent.load(Relaxed), 1);
            assert!(site.finish(compressor) == body, "known {known}, fails {fails}");
            assert_eq!(site.device.found.load(Relaxed), before + 1);
        }
        assert_eq!(site.queue.engines()[0].numbers().jobs.load(Relaxed), 2);
    }

    #[test]
    fn where_nothing_is_lent_a_body_is_collected_as_any() {
        let site = site(8 << 20);
        let body = text(900_000);
        let (mut first, mut second) = (site.compressor(Some(body.len())), site.compressor(Some(body.len())));
        assert!(site.collect(&mut first, &body) > 0 && site.collect(&mut second, &body) == 0);
        let Ok(Step::Away(job)) = second.finish() else { panic!("it is large enough to leave") };
        block_on(second.settle(Step::Away(job))).unwrap();
        assert!(crate::coder::conformance::decode_whole(Coding::Gzip, &second.take_output()) == body);
        drop(second);
        assert!(site.finish(first) == body);
        assert_eq!(site.device.found.load(Relaxed), 1);
        // A body that is done in place never leaves.
        let mut small = site.compressor(Some(8_000));
        assert_eq!(site.collect(&mut small, &body[..8_000]), 0);
        assert!(site.finish(small) == body[..8_000]);
    }

    #[test]
    fn a_pause_and_a_body_that_is_too_large_end_in_a_stream() {
        let site = site(32 << 20);
        let body = text(3 << 20);
        for pause in [true, false] {
            let mut compressor = site.compressor(None);
            let half = ROOM_BYTES / 2;
            site.collect(&mut compressor, &body[..half]);
            let (mut out, mut at) = (Vec::new(), half);
            let mut step = if pause { compressor.pause() } else { Ok(Step::Done) };
            loop {
                block_on(compressor.settle(step.unwrap())).unwrap();
                out.extend_from_slice(&compressor.take_output());
                compressor.delivered();
                let piece = &body[at..body.len().min(at + 60_000)];
                if piece.is_empty() {
                    break;
                }
                (step, at) = (compressor.feed(piece), at + piece.len());
            }
            out.extend_from_slice(&site.last(compressor));
            assert!(crate::coder::conformance::decode_whole(Coding::Gzip, &out) == body, "pause {pause}");
        }
    }

    #[test]
    fn without_memory_a_body_that_is_lent_to_streams() {
        let site = site(300_000);
        let body = text(900_000);
        let mut compressor = site.compressor(Some(body.len()));
        let mut out = Vec::new();
        let mut at = 0;
        while at < body.len() {
            let n = (body.len() - at).min(50_000);
            if let Some(room) = compressor.room() {
                let n = n.min(room.len());
                room[..n].copy_from_slice(&body[at..at + n]);
                compressor.received(n);
                at += n;
                continue;
            }
            let step = compressor.feed(&body[at..at + n]).unwrap();
            block_on(compressor.settle(step)).unwrap();
            out.extend_from_slice(&compressor.take_output());
            compressor.delivered();
            at += n;
            assert!(site.limit.used() <= 300_000);
        }
        out.extend_from_slice(&site.last(compressor));
        assert!(crate::coder::conformance::decode_whole(Coding::Gzip, &out) == body);
    }

    #[test]
    fn the_memory_of_bodies_knows_what_was_received() {
        let site = site(8 << 20);
        let memory = Arc::new(Memory::new(1 << 20));
        let raiser = Arc::new(Raiser::start(None).unwrap());
        let body = text(DEFAULT_COLLECT_BYTES);
        for expected in [Recall::New, Recall::Kept, Recall::Hit, Recall::Hit] {
            let mut compressor = site.compressor(Some(body.len()));
            let remembrance = Remembrance::new(memory.clone(), &Owner::new(&[7; 32], "test"), Level(6));
            compressor.remember(remembrance.with_raiser(raiser.clone(), Level(6)));
            assert!(site.collect(&mut compressor, &body) > 0);
            let step = compressor.finish().unwrap();
            block_on(compressor.settle(step)).unwrap();
            assert!(crate::coder::conformance::decode_whole(Coding::Gzip, &compressor.take_output()) == body);
            assert_eq!(compressor.recall(), Some(expected));
        }
    }
}
