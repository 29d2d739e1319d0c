//! Undoing gzip (RFC 1952), whole and piece by piece, by a decoder that is not terse's.

use flate2::{Crc, Decompress, FlushDecompress, Status};

/// Undoes a whole body.
///
/// # Panics
/// When it is not gzip, or not whole.
pub fn gunzip(coded: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::default();
    let plain = decoder.push(coded);
    assert!(decoder.is_done(), "cut off");
    plain
}

/// A decoder that gives out all bytes that can be known so far.
pub struct Decoder {
    inflate: Decompress,
    crc: Crc,
    /// Bytes that wait for more: of the head, or of the tail.
    frame: Vec<u8>,
    part: Part,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Data,
    Tail,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { inflate: Decompress::new(false), crc: Crc::new(), frame: Vec::new(), part: Part::Head }
    }
}

impl Decoder {
    /// Takes coded bytes, and gives all that they tell.
    ///
    /// # Panics
    /// When they are not gzip.
    pub fn push(&mut self, coded: &[u8]) -> Vec<u8> {
        let (mut plain, mut rest) = (Vec::new(), coded);
        if self.part == Part::Head {
            rest = self.take_frame(rest, HEAD_BYTES);
            if self.frame.len() < HEAD_BYTES {
                return plain;
            }
            assert_eq!(self.frame[..4], [0x1f, 0x8b, 8, 0], "a head without extra fields");
            self.frame.clear();
            self.part = Part::Data;
        }
        while self.part == Part::Data {
            plain.reserve(64 * 1024);
            let (read, written) = (self.inflate.total_in(), plain.len());
            let status = self.inflate.decompress_vec(rest, &mut plain, FlushDecompress::None).expect("deflate");
            rest = &rest[(self.inflate.total_in() - read) as usize..];
            self.crc.update(&plain[written..]);
            if status == Status::StreamEnd {
                self.part = Part::Tail;
            } else if plain.len() == written && rest.is_empty() {
                return plain;
            }
        }
        rest = self.take_frame(rest, TAIL_BYTES);
        assert!(rest.is_empty(), "bytes behind the end");
        if self.is_done() {
            let number = |at: usize| u32::from_le_bytes(self.frame[at..at + 4].try_into().unwrap());
            assert_eq!((number(0), number(4)), (self.crc.sum(), self.crc.amount()), "sum and length");
        }
        plain
    }

    /// True if the end has come.
    pub fn is_done(&self) -> bool {
        self.part == Part::Tail && self.frame.len() == TAIL_BYTES
    }

    fn take_frame<'a>(&mut self, bytes: &'a [u8], length: usize) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(bytes.len().min(length - self.frame.len()));
        self.frame.extend(taken);
        rest
    }
}

const HEAD_BYTES: usize = 10;
const TAIL_BYTES: usize = 8;
