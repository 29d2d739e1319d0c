//! The coder and the decoder of one direction each, in zlib's format (RFC 3749 section 2), on zlib-rs. Their state spans
//! records: each ends with a flush, and the next may refer to the records before it.
//!
//! A record that is stored bypasses the coder. The next one that is not begins with a state that was emptied and given the
//! last bytes that went by. So heads after small bodies still find the heads before them.

use super::Manner;
use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateFlush};

/// Compresses sent records.
pub(super) struct Packer {
    state: Option<Box<Deflate>>,
    /// Whether bytes bypassed the state since it was used.
    is_behind: bool,
    /// The last bytes that were sent, at most [`HISTORY_BYTES`].
    history: Vec<u8>,
    has_begun: bool,
}

/// Decompresses received records.
pub(super) struct Unpacker {
    state: Option<Box<Inflate>>,
}

/// The coder broke, or the input is not of the format. The connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// Memory of a packer, once it has packed: zlib-rs's state with a window of 32 KB and memory level 8, and the history.
pub(super) const PACKER_BYTES: usize = 384 << 10;
/// Memory of an unpacker.
pub(super) const UNPACKER_BYTES: usize = 64 << 10;

/// Level 6, as OpenSSL has it.
const LEVEL: i32 = 6;
const WINDOW_BITS: u8 = 15;
/// RFC 1950 section 2.2: deflate with that window, at a usual level.
const HEADER: [u8; 2] = [0x78, 0x9c];
const HISTORY_BYTES: usize = 4096;
/// RFC 1951 section 3.2.4: the most that a stored block carries.
const BLOCK_BYTES: usize = 65_535;

impl Packer {
    pub(super) const fn new() -> Packer {
        Packer { state: None, is_behind: false, history: Vec::new(), has_begun: false }
    }

    /// Packs a record into the room; returns its length there. Room for a kilobyte more than the record is enough for any.
    pub(super) fn pack(&mut self, record: &[u8], room: &mut [u8], manner: Manner) -> Result<usize, Broken> {
        if record.is_empty() {
            return Ok(0);
        }
        let mut at = 0;
        if !self.has_begun {
            room.get_mut(..HEADER.len()).ok_or(Broken)?.copy_from_slice(&HEADER);
            (self.has_begun, at) = (true, HEADER.len());
        }
        let packed = match manner {
            Manner::Stored => store(record, &mut room[at..]),
            Manner::Deflate => self.deflate(record, &mut room[at..]),
        }?;
        self.is_behind = manner == Manner::Stored;
        self.remember(record);
        Ok(at + packed)
    }

    fn deflate(&mut self, record: &[u8], room: &mut [u8]) -> Result<usize, Broken> {
        let is_behind = self.is_behind || self.state.is_none();
        let state = self.state.get_or_insert_with(|| Box::new(Deflate::new(LEVEL, false, WINDOW_BITS)));
        if is_behind {
            state.reset();
            if !self.history.is_empty() {
                state.set_dictionary(&self.history).map_err(|_| Broken)?;
            }
        }
        let (taken, given) = (state.total_in(), state.total_out());
        state.compress(record, room, DeflateFlush::SyncFlush).map_err(|_| Broken)?;
        let (taken, given) = ((state.total_in() - taken) as usize, (state.total_out() - given) as usize);
        // A full room may not hold all of the flush.
        if taken == record.len() && given < room.len() { Ok(given) } else { Err(Broken) }
    }

    fn remember(&mut self, record: &[u8]) {
        let record = &record[record.len().saturating_sub(HISTORY_BYTES)..];
        let surplus = (self.history.len() + record.len()).saturating_sub(HISTORY_BYTES);
        self.history.drain(..surplus);
        self.history.extend_from_slice(record);
    }
}

/// Writes blocks that hold the record as it is. The bytes before it ended at a byte's border, since they were flushed.
fn store(record: &[u8], room: &mut [u8]) -> Result<usize, Broken> {
    let mut at = 0;
    for block in record.chunks(BLOCK_BYTES) {
        let len = block.len() as u16;
        let [low, high] = len.to_le_bytes();
        let [not_low, not_high] = (!len).to_le_bytes();
        let head = [0, low, high, not_low, not_high];
        let place = room.get_mut(at..at + head.len() + block.len()).ok_or(Broken)?;
        place[..head.len()].copy_from_slice(&head);
        place[head.len()..].copy_from_slice(block);
        at += place.len();
    }
    Ok(at)
}

impl Unpacker {
    pub(super) const fn new() -> Unpacker {
        Unpacker { state: None }
    }

    /// Unpacks a record into the room; returns its length there. A record that does not fit is refused: none may be longer
    /// than the room (RFC 3749 section 3).
    pub(super) fn unpack(&mut self, record: &[u8], room: &mut [u8]) -> Result<usize, Broken> {
        if record.is_empty() {
            return Ok(0);
        }
        let state = self.state.get_or_insert_with(|| Box::new(Inflate::new(true, WINDOW_BITS)));
        let (taken, given) = (state.total_in(), state.total_out());
        state.decompress(record, room, InflateFlush::SyncFlush).map_err(|_| Broken)?;
        let (taken, given) = ((state.total_in() - taken) as usize, (state.total_out() - given) as usize);
        if given < room.len() {
            return if taken == record.len() { Ok(given) } else { Err(Broken) };
        }
        // There may be more inside, of the record or of the state.
        let (taken_before, given_before) = (state.total_in(), state.total_out());
        state.decompress(&record[taken..], &mut [0], InflateFlush::SyncFlush).map_err(|_| Broken)?;
        let is_all = (state.total_in() - taken_before) as usize == record.len() - taken;
        if is_all && state.total_out() == given_before { Ok(given) } else { Err(Broken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zlib_rs::Status;

    const RECORD: usize = 16_384;

    fn noise(len: usize, seed: u32) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 11) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn records_of_any_kind_in_any_manner_come_back() {
        let text = b"a line that comes again and again, with a number behind it: ".repeat(400);
        let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
        let (mut wire, mut plain) = (vec![0; RECORD + 1024], vec![0; RECORD]);
        for round in 0..60usize {
            let len = [1, 17, 300, 5000, RECORD][round % 5];
            let record = if round % 3 == 0 { noise(len, round as u32) } else { text[round..round + len].to_vec() };
            let manner = if round % 7 < 3 { Manner::Stored } else { Manner::Deflate };
            let packed = packer.pack(&record, &mut wire, manner).unwrap();
            assert!(packed <= len + 64 && (manner == Manner::Deflate || packed >= len), "{round}: {packed} of {len}");
            assert_eq!(unpacker.unpack(&wire[..packed], &mut plain), Ok(len), "{round}");
            assert_eq!(plain[..len], record, "{round}");
        }
    }

    #[test]
    fn the_state_spans_records_and_stored_ones_too() {
        let head = b"HTTP/1.1 200 OK\r\nServer: one\r\nContent-Type: text/plain; charset=utf-8\r\nVary: Accept-Encoding\r\n\r\n";
        let mut packer = Packer::new();
        let mut room = vec![0; RECORD + 1024];
        let first = packer.pack(head, &mut room, Manner::Deflate).unwrap();
        packer.pack(&noise(3000, 5), &mut room, Manner::Stored).unwrap();
        let second = packer.pack(head, &mut room, Manner::Deflate).unwrap();
        assert!(second < 20 && first > 80, "{first}, {second}");
    }

    #[test]
    fn another_zlib_reads_it() {
        let mut packer = Packer::new();
        let mut all = Vec::new();
        let mut room = vec![0; RECORD + 1024];
        for (record, manner) in [(&b"first"[..], Manner::Deflate), (&noise(RECORD, 9), Manner::Stored), (b"third", Manner::Deflate)]
        {
            let n = packer.pack(record, &mut room, manner).unwrap();
            all.extend_from_slice(&room[..n]);
        }
        assert_eq!(all[..1], [0x78], "zlib's header, once");
        let mut out = vec![0; RECORD + 100];
        let mut inflate = Inflate::new(true, 15);
        assert!(matches!(inflate.decompress(&all, &mut out, InflateFlush::SyncFlush), Ok(Status::Ok)));
        assert_eq!(inflate.total_out() as usize, RECORD + 10);
    }

    #[test]
    fn what_is_hostile_is_refused() {
        let mut room = vec![0; RECORD];
        let mut packer = Packer::new();
        let mut wire = vec![0; 2 * RECORD];
        let n = packer.pack(&vec![b'a'; RECORD + 1], &mut wire, Manner::Deflate).unwrap();
        assert_eq!(Unpacker::new().unpack(&wire[..n], &mut room), Err(Broken), "a byte too long");
        let n = Packer::new().pack(&vec![b'a'; RECORD], &mut wire, Manner::Deflate).unwrap();
        assert_eq!(Unpacker::new().unpack(&wire[..n], &mut room), Ok(RECORD), "as long as may be");
        let n = Packer::new().pack(&vec![b'a'; 9 * RECORD], &mut wire, Manner::Deflate).unwrap();
        assert_eq!(Unpacker::new().unpack(&wire[..n], &mut room), Err(Broken), "far too long");
        assert_eq!(Unpacker::new().unpack(b"not of zlib", &mut room), Err(Broken));
        assert_eq!(Unpacker::new().unpack(b"", &mut room), Ok(0));
        for seed in 0..200 {
            let _ = Unpacker::new().unpack(&[&[0x78, 0x9c][..], &noise(200, seed)].concat(), &mut room);
        }
    }
}
