//! `filter trace`: writes the bytes that go through on standard error, and forwards them in pieces of any size.

use super::{Direction, Quota, TraceSettings};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

/// A trace of one direction of a stream.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    settings: Arc<TraceSettings>,
    direction: Direction,
    stream: u64,
    /// Bytes so far.
    offset: u64,
    /// The state of its chance: a stream's pieces are the same each time.
    chance: u64,
}

impl Tracer {
    pub(super) fn new(settings: &Arc<TraceSettings>, direction: Direction, stream: u64) -> Tracer {
        Tracer { settings: settings.clone(), direction, stream, offset: 0, chance: stream ^ (direction as u64) << 63 }
    }

    pub(super) fn quota(&mut self, bytes: usize) -> Quota {
        let most = match self.settings.most_bytes {
            0 => bytes,
            most => bytes.min(most),
        };
        Quota::Bytes(if self.settings.random { 1 + self.next() as usize % most.max(1) } else { most })
    }

    pub(super) fn take(&mut self, data: &[u8]) {
        if !self.settings.quiet {
            // Standard error may be gone; a trace is no reason to stop.
            let _ = std::io::stderr().write_all(self.line(data).as_bytes());
        }
        self.offset += data.len() as u64;
    }

    fn line(&self, data: &[u8]) -> String {
        let direction = if self.direction == Direction::In { "request" } else { "response" };
        let name = &self.settings.name;
        let mut line = format!("[{name}] stream={} {direction} offset={} forward={}\n", self.stream, self.offset, data.len());
        if self.settings.dumps {
            for (row, bytes) in data.chunks(16).enumerate() {
                let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02X} ")).collect();
                let text: String = bytes.iter().map(|b| if b.is_ascii_graphic() { char::from(*b) } else { '.' }).collect();
                // Writing to a string cannot fail.
                let _ = writeln!(line, "\t0x{:06X}: {hexadecimal:48} {text}", row * 16);
            }
        }
        line
    }

    /// splitmix64
    fn next(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Side;

    #[test]
    fn pieces_and_lines() {
        let settings =
            TraceSettings { name: "T".into(), side: Side::Before, quiet: true, random: true, dumps: true, most_bytes: 0 };
        let mut tracer = Tracer::new(&Arc::new(settings.clone()), Direction::Out, 7);
        let mut sizes = std::collections::HashSet::new();
        for _ in 0..200 {
            match tracer.quota(9) {
                Quota::Bytes(n) => sizes.insert(n),
                wait => panic!("{wait:?}"),
            };
        }
        assert_eq!(sizes.len(), 9);
        assert!((1..=9).all(|n| sizes.contains(&n)));
        tracer.take(b"abc");
        let line = tracer.line(b"a\x00bcdefghijklmnopq");
        assert!(line.starts_with("[T] stream=7 response offset=3 forward=18\n\t0x000000: 61 00 62 "), "{line}");
        assert!(line.ends_with("pq\n") && line.contains(" a.bcdefghijklmno\n"), "{line}");
        let fixed = Tracer::new(&Arc::new(TraceSettings { random: false, most_bytes: 4, ..settings }), Direction::In, 1).quota(9);
        assert_eq!(fixed, Quota::Bytes(4));
    }
}
