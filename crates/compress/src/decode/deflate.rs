//! `deflate`: the zlib format (RFC 1950), as RFC 9110 section 8.4.1.2 has it, or raw deflate (RFC 1951), as some servers send it.
//!
//! The first two bytes tell, as in browsers: those of zlib name method 8 and are a multiple of 31. A raw stream that begins so would
//! have to begin with a stored block and ones in its padding, which no coder writes.

use super::inflate::{Inflater, STATE_BYTES};
use super::{Decoder, Flaw, Next, Progress};
use zlib_rs::adler32::adler32;

const FIRST_CHECKSUM: u32 = 1;
/// The bit of the second byte that demands a dictionary.
const DICTIONARY: u8 = 1 << 5;

pub(super) struct Deflate {
    at: At,
    inflater: Inflater,
    /// The first two bytes, which belong to the stream where it is raw.
    first: [u8; 2],
    first_bytes: usize,
    checksum: u32,
    tail: [u8; 4],
    tail_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// The first two bytes.
    First,
    /// A raw stream; this number of the first bytes has been decoded.
    Raw(usize),
    Zlib,
    /// The checksum after a zlib stream.
    Tail,
    Ended,
}

impl Deflate {
    pub(super) fn new() -> Deflate {
        Deflate {
            at: At::First,
            inflater: Inflater::new(),
            first: [0; 2],
            first_bytes: 0,
            checksum: FIRST_CHECKSUM,
            tail: [0; 4],
            tail_bytes: 0,
        }
    }

    fn judge_first(&self) -> Result<At, Flaw> {
        let [method, flags] = self.first;
        if method & 0x0f != 8 || !u16::from_be_bytes(self.first).is_multiple_of(31) {
            return Ok(At::Raw(0));
        }
        if method >> 4 > 7 {
            return Err(Flaw::Window);
        }
        if flags & DICTIONARY != 0 { Err(Flaw::Dictionary) } else { Ok(At::Zlib) }
    }
}

impl Decoder for Deflate {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw> {
        let (mut taken, limit) = (0, out.len().saturating_add(room));
        loop {
            let rest = input.get(taken..).unwrap_or_default();
            let start = out.len();
            match self.at {
                At::Ended => return Ok(Progress { taken, next: Next::Ended }),
                At::First => {
                    let Some(&byte) = rest.first() else { return Ok(Progress { taken, next: Next::Input }) };
                    taken += 1;
                    self.first_bytes += 1;
                    self.first = [self.first[1], byte];
                    if self.first_bytes == self.first.len() {
                        self.at = self.judge_first()?;
                    }
                }
                At::Raw(done) if done < self.first.len() => {
                    let progress = self.inflater.push(&self.first[done..], out, limit - start)?;
                    self.at = At::Raw(done + progress.taken);
                    match progress.next {
                        Next::Ended => self.at = At::Ended,
                        Next::Input => {}
                        Next::Room => return Ok(Progress { taken, next: Next::Room }),
                    }
                }
                At::Raw(_) => {
                    let progress = self.inflater.push(rest, out, limit - start)?;
                    if progress.next == Next::Ended {
                        self.at = At::Ended;
                    }
                    return Ok(Progress { taken: taken + progress.taken, ..progress });
                }
                At::Zlib => {
                    let progress = self.inflater.push(rest, out, limit - start)?;
                    self.checksum = adler32(self.checksum, out.get(start..).unwrap_or_default());
                    taken += progress.taken;
                    match progress.next {
                        Next::Ended => self.at = At::Tail,
                        next => return Ok(Progress { taken, next }),
                    }
                }
                At::Tail => {
                    let Some(&byte) = rest.first() else { return Ok(Progress { taken, next: Next::Input }) };
                    taken += 1;
                    let [_, rest @ ..] = self.tail;
                    self.tail = [rest[0], rest[1], rest[2], byte];
                    self.tail_bytes += 1;
                    if self.tail_bytes == self.tail.len() {
                        if u32::from_be_bytes(self.tail) != self.checksum {
                            return Err(Flaw::Checksum);
                        }
                        self.at = At::Ended;
                    }
                }
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.at == At::Ended
    }

    fn reset(&mut self) {
        self.inflater.reset();
        (self.at, self.first_bytes, self.checksum, self.tail_bytes) = (At::First, 0, FIRST_CHECKSUM, 0);
    }

    fn memory(&self) -> usize {
        STATE_BYTES
    }
}
