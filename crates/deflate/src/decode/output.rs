//! The output, and the bytes before it.

/// Room for output, and the bytes to which matches may refer that are not in it.
pub struct Output<'a> {
    pub(super) room: &'a mut [u8],
    pub(super) at: usize,
    pub(super) before: Before<'a>,
}

/// The bytes that were put out before the room's first byte.
#[derive(Clone, Copy)]
pub enum Before<'a> {
    /// It was kept.
    History(History<'a>),
    /// It is the room itself, which is used again and again: this number of its bytes, up to its end.
    Room(usize),
}

/// The last output of earlier calls, in a ring.
#[derive(Clone, Copy)]
pub struct History<'a> {
    ring: &'a [u8],
    next: usize,
    filled: usize,
}

impl History<'_> {
    /// No earlier output.
    pub const NONE: History<'static> = History { ring: &[], next: 0, filled: 0 };

    /// The bytes, in two parts: the older ones first.
    pub fn parts(&self) -> [&[u8]; 2] {
        let (new, old) = self.ring.split_at(self.next);
        [&old[..self.filled - self.next], new]
    }
}

/// Fill of a ring of up to 32 KB, which lies somewhere else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fill {
    /// Offset of the next byte.
    next: u16,
    filled: u16,
}

impl Fill {
    /// Puts bytes into the ring, of which the last stay.
    pub fn put(&mut self, ring: &mut [u8], bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(ring.len())..];
        let next = usize::from(self.next);
        let (first, second) = bytes.split_at(bytes.len().min(ring.len() - next));
        ring[next..next + first.len()].copy_from_slice(first);
        ring[..second.len()].copy_from_slice(second);
        self.next = if next + bytes.len() < ring.len() { next + bytes.len() } else { next + bytes.len() - ring.len() } as u16;
        self.filled = (usize::from(self.filled) + bytes.len()).min(ring.len()) as u16;
    }

    /// The content of the ring.
    pub fn history(self, ring: &[u8]) -> History<'_> {
        History { ring, next: self.next.into(), filled: self.filled.into() }
    }
}

impl<'a> Output<'a> {
    /// Room, of which the first `at` bytes have been put out.
    pub fn new(room: &'a mut [u8], at: usize, before: Before<'a>) -> Output<'a> {
        let at = at.min(room.len());
        Output { room, at, before }
    }

    /// Bytes in the room.
    pub fn put_out(&self) -> usize {
        self.at
    }

    /// The bytes that were put out.
    pub fn bytes(&self) -> &[u8] {
        &self.room[..self.at]
    }

    /// Bytes that fit.
    pub fn left(&self) -> usize {
        self.room.len() - self.at
    }

    /// Whether bytes after the output may be overwritten.
    pub(super) fn may_spill(&self) -> bool {
        matches!(self.before, Before::History(_))
    }

    /// The farthest distance.
    pub(super) fn reach(&self) -> usize {
        self.at + self.before.bytes(self.at)
    }

    /// Puts a byte; returns whether there was room for it.
    pub(super) fn put(&mut self, byte: u8) -> bool {
        let place = self.room.get_mut(self.at);
        let fits = place.is_some();
        if let Some(place) = place {
            *place = byte;
            self.at += 1;
        }
        fits
    }

    /// Puts as many of these as fit; returns their number.
    pub(super) fn put_all(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.left());
        self.room[self.at..self.at + count].copy_from_slice(&bytes[..count]);
        self.at += count;
        count
    }

    /// Puts bytes again that stand `distance` back, which is within [`Output::reach`], as many as fit; returns their number.
    pub(super) fn repeat(&mut self, distance: usize, length: usize) -> usize {
        let length = length.min(self.left());
        self.before.repeat(self.room, self.at, distance, length);
        self.at += length;
        length
    }
}

impl Before<'_> {
    /// Number of bytes before a room of which `at` are put out.
    fn bytes(&self, at: usize) -> usize {
        match self {
            Before::History(history) => history.filled,
            Before::Room(filled) => filled.saturating_sub(at),
        }
    }

    /// Puts bytes at a place of a room that stand `distance` back, and which are there.
    fn repeat(&self, room: &mut [u8], mut at: usize, distance: usize, length: usize) {
        let mut left = length;
        while left > 0 {
            let count = match distance.checked_sub(at) {
                None | Some(0) => {
                    // The bytes between the two are put out again and again.
                    let count = left.min(distance);
                    room.copy_within(at - distance..at - distance + count, at);
                    count
                }
                Some(back) => self.copy(back, room, at, left),
            };
            at += count;
            left -= count;
        }
    }

    /// Copies bytes that begin `back` before the room: as many as stand there side by side, or are wanted; returns their
    /// number.
    fn copy(&self, back: usize, room: &mut [u8], at: usize, most: usize) -> usize {
        match self {
            Before::History(History { ring, next, .. }) => {
                let from = if back <= *next { next - back } else { next + ring.len() - back };
                let count = most.min(back).min(ring.len() - from);
                room[at..at + count].copy_from_slice(&ring[from..from + count]);
                count
            }
            Before::Room(_) => {
                let from = room.len() - back;
                let count = most.min(back);
                room.copy_within(from..from + count, at);
                count
            }
        }
    }

    /// Puts bytes at a place of a room that stand `distance` back, before it, where `SPILL` more may be overwritten; returns
    /// whether they are there.
    #[inline(always)]
    pub(super) fn repeat_with_spill<const SPILL: usize>(&self, room: &mut [u8], at: usize, distance: usize, length: usize) -> bool {
        let Before::History(History { ring, next, filled }) = *self else { return false };
        let back = distance - at;
        if back > filled {
            return false;
        }
        let from = if back <= next { next - back } else { next + ring.len() - back };
        match ring.get(from..from + SPILL) {
            Some(bytes) if length <= back.min(SPILL) => room[at..at + SPILL].copy_from_slice(bytes),
            _ => self.repeat(room, at, distance, length),
        }
        true
    }
}
