//! gzip (RFC 1952): members in sequence, their heads, checksums and lengths.
//!
//! ```text
//!          head          deflate's end        checksum, length
//!   Head ────────> Body ───────────────> Tail ────────────────> Between ──> Ended: what follows is no member
//!    ^                                                          │  │ ^
//!    └────────────────────── the first byte of a member ────────┘  └─┘ zeros: a tape's padding
//! ```

use super::inflate::{Inflater, STATE_BYTES};
use super::{Decoder, Flaw, Next, Progress};
use zlib_rs::crc32::crc32;

/// The longest head of a member: its extra field has up to 64 KB, and a name or a comment has an end.
pub(super) const MAX_HEAD_BYTES: usize = 128 * 1024;

const MAGIC: [u8; 2] = [0x1f, 0x8b];
const DEFLATE: u8 = 8;

const HEADER_CRC: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
/// "Must be zero, and a decoder must give an error otherwise" (section 2.3.1.2).
const RESERVED: u8 = 0xe0;

pub(super) struct Gzip {
    at: At,
    head: Head,
    inflater: Inflater,
    /// Members that have ended.
    members: u64,
    checksum: u32,
    /// The member's length, modulo two to the power of 32.
    length: u32,
    tail: [u8; 8],
    tail_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Head,
    Body,
    Tail,
    Between,
    Ended,
}

/// The head of a member, as far as it has come.
#[derive(Default)]
struct Head {
    field: Field,
    /// Bytes so far, in all.
    bytes: usize,
    flags: u8,
    /// Of all bytes so far; counted where a checksum will follow.
    checksum: u32,
    /// The number that the two bytes make.
    number: u16,
    /// Bytes of the field that are missing.
    missing: usize,
}

/// The field that the next byte of a head belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Field {
    /// Magic, method, flags, time, hint, system: ten bytes.
    #[default]
    Fixed,
    ExtraLength,
    Extra,
    Name,
    Comment,
    Checksum,
}

impl Gzip {
    pub(super) fn new() -> Gzip {
        Gzip {
            at: At::Head,
            head: Head::default(),
            inflater: Inflater::new(),
            members: 0,
            checksum: 0,
            length: 0,
            tail: [0; 8],
            tail_bytes: 0,
        }
    }

    /// Parses the head's bytes at the front of the input; returns their number.
    fn read_head(&mut self, input: &[u8]) -> Result<usize, Flaw> {
        for (i, &byte) in input.iter().enumerate() {
            let done = match self.head.take(byte) {
                Ok(done) => done,
                // After a member, bytes that do not begin as a member are no part of the body.
                Err(Flaw::Format) if self.members > 0 && self.head.bytes <= MAGIC.len() => {
                    self.at = At::Ended;
                    return Ok(i);
                }
                Err(flaw) => return Err(flaw),
            };
            if done {
                (self.checksum, self.length) = (0, 0);
                self.at = At::Body;
                return Ok(i + 1);
            }
        }
        Ok(input.len())
    }

    /// Parses the tail's bytes at the front of the input; returns their number.
    fn read_tail(&mut self, input: &[u8]) -> Result<usize, Flaw> {
        let room = &mut self.tail[self.tail_bytes..];
        let n = room.len().min(input.len());
        room[..n].copy_from_slice(&input[..n]);
        self.tail_bytes += n;
        if self.tail_bytes == self.tail.len() {
            let [c0, c1, c2, c3, l0, l1, l2, l3] = self.tail;
            if u32::from_le_bytes([c0, c1, c2, c3]) != self.checksum {
                return Err(Flaw::Checksum);
            }
            if u32::from_le_bytes([l0, l1, l2, l3]) != self.length {
                return Err(Flaw::Length);
            }
            self.tail_bytes = 0;
            self.members += 1;
            self.at = At::Between;
        }
        Ok(n)
    }

    /// Skips padding after a member; returns its length.
    fn skip_padding(&mut self, input: &[u8]) -> usize {
        match input.iter().position(|&byte| byte != 0) {
            None => input.len(),
            Some(padding) => {
                if input.get(padding) == Some(&MAGIC[0]) {
                    self.head = Head::default();
                    self.inflater.reset();
                    self.at = At::Head;
                } else {
                    self.at = At::Ended;
                }
                padding
            }
        }
    }
}

impl Decoder for Gzip {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw> {
        let (mut taken, limit) = (0, out.len().saturating_add(room));
        loop {
            let rest = input.get(taken..).unwrap_or_default();
            match self.at {
                At::Ended => return Ok(Progress { taken, next: Next::Ended }),
                At::Body => {
                    let start = out.len();
                    let progress = self.inflater.push(rest, out, limit - start)?;
                    let made = out.get(start..).unwrap_or_default();
                    self.checksum = crc32(self.checksum, made);
                    self.length = self.length.wrapping_add(made.len() as u32);
                    taken += progress.taken;
                    match progress.next {
                        Next::Ended => self.at = At::Tail,
                        next => return Ok(Progress { taken, next }),
                    }
                }
                _ if rest.is_empty() => return Ok(Progress { taken, next: Next::Input }),
                At::Head => taken += self.read_head(rest)?,
                At::Tail => taken += self.read_tail(rest)?,
                At::Between => taken += self.skip_padding(rest),
            }
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.at, At::Between | At::Ended)
    }

    fn reset(&mut self) {
        self.inflater.reset();
        (self.at, self.head, self.members, self.tail_bytes) = (At::Head, Head::default(), 0, 0);
    }

    fn memory(&self) -> usize {
        STATE_BYTES
    }
}

impl Head {
    /// Takes a byte; true at the head's end.
    fn take(&mut self, byte: u8) -> Result<bool, Flaw> {
        self.bytes += 1;
        if self.bytes > MAX_HEAD_BYTES {
            return Err(Flaw::Head);
        }
        // The flags are known with the fourth byte; those before it have no checksum.
        if self.field != Field::Checksum {
            self.checksum = crc32(self.checksum, &[byte]);
        }
        let ended = match self.field {
            Field::Fixed => self.take_fixed(byte)?,
            Field::ExtraLength => self.take_number(byte),
            Field::Extra => {
                self.missing -= 1;
                self.missing == 0
            }
            Field::Name | Field::Comment => byte == 0,
            Field::Checksum => {
                let ended = self.take_number(byte);
                return if ended && self.number != self.checksum as u16 { Err(Flaw::Checksum) } else { Ok(ended) };
            }
        };
        Ok(ended && self.turn())
    }

    fn take_fixed(&mut self, byte: u8) -> Result<bool, Flaw> {
        match self.bytes {
            1 if byte != MAGIC[0] => return Err(Flaw::Format),
            2 if byte != MAGIC[1] => return Err(Flaw::Format),
            3 if byte != DEFLATE => return Err(Flaw::Format),
            4 if byte & RESERVED != 0 => return Err(Flaw::Format),
            4 => self.flags = byte,
            _ => {}
        }
        Ok(self.bytes == 10)
    }

    /// Takes a byte of a number's two, the lower first; true with the second.
    fn take_number(&mut self, byte: u8) -> bool {
        self.missing += 1;
        if self.missing == 1 {
            self.number = u16::from(byte);
            return false;
        }
        self.number |= u16::from(byte) << 8;
        self.missing = 0;
        true
    }

    /// Goes on to the next field that is there; true when there is none.
    fn turn(&mut self) -> bool {
        let extra = self.field == Field::ExtraLength && self.number > 0;
        if extra {
            (self.field, self.missing) = (Field::Extra, usize::from(self.number));
            return false;
        }
        let order = [(Field::ExtraLength, EXTRA), (Field::Name, NAME), (Field::Comment, COMMENT), (Field::Checksum, HEADER_CRC)];
        let rank = match self.field {
            Field::Fixed => 0,
            Field::ExtraLength | Field::Extra => 1,
            Field::Name => 2,
            Field::Comment => 3,
            Field::Checksum => 4,
        };
        match order.iter().skip(rank).find(|(_, flag)| self.flags & flag != 0) {
            Some((field, _)) => {
                self.field = *field;
                false
            }
            None => true,
        }
    }
}
