//! The chunked transfer coding (RFC 9112 section 7.1), one step at a time.
//!
//! ```text
//!  Size --CR LF--> Data --size bytes--> DataEnd --CR LF--> Size
//!    \--(size 0) CR LF--> Trailers --empty line--> Done
//! ```
//! The decoder keeps no data: it returns the ranges of the input that are data. Chunk extensions are read and dropped, as
//! an intermediary that recodes may; trailers are kept, up to a limit.

use std::ops::Range;
use terse_message::Malformed;

/// The most bytes of one chunk-size line, extensions included. Longer lines serve only to waste time.
pub const MAX_SIZE_LINE: usize = 1024;

/// The most bytes of all trailers.
pub const MAX_TRAILERS: usize = 8 * 1024;

/// Result of a step of the decoder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Range of the input that is data.
    Data(Range<usize>),
    /// The input is used up.
    More,
    /// The body has ended; trailers, if any, are in [`ChunkDecoder::trailers`].
    End,
}

/// Decoder with its place in a chunked body.
#[derive(Clone, Debug, Default)]
pub struct ChunkDecoder {
    state: State,
    line: usize,
    trailers: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Size {
        value: u64,
        digits: u8,
    },
    /// After the digits: blanks, until a semicolon begins an extension of any text.
    Extension {
        value: u64,
        named: bool,
        cr: bool,
    },
    Data {
        left: u64,
    },
    DataEnd {
        cr: bool,
    },
    Trailers,
    Done,
    /// The error, which is returned again at each step: the bytes that follow are no part of a body.
    Failed(Malformed),
}

impl Default for State {
    fn default() -> State {
        State::Size { value: 0, digits: 0 }
    }
}

impl ChunkDecoder {
    /// Takes the next step: returns how many bytes of `input` it used, and their meaning. Called again with the rest until
    /// [`Step::More`] or [`Step::End`].
    ///
    /// # Errors
    /// The fault of the input. It is an error for good: no byte that follows is read as a part of the body, or as its end.
    pub fn step(&mut self, input: &[u8]) -> Result<(usize, Step), Malformed> {
        let stepped = self.advance(input);
        if let Err(malformed) = stepped {
            self.fail(malformed);
        }
        stepped
    }

    /// Ends the body with an error, for good.
    pub fn fail(&mut self, malformed: Malformed) {
        self.state = State::Failed(malformed);
    }

    fn advance(&mut self, input: &[u8]) -> Result<(usize, Step), Malformed> {
        if let State::Failed(malformed) = self.state {
            return Err(malformed);
        }
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            match self.state {
                State::Size { value, digits } => {
                    self.count_line()?;
                    match (byte as char).to_digit(16) {
                        // 15 digits: no overflow, and no disagreement with readers that have 64 bits and a sign.
                        Some(_) if digits == 15 => return Err(Malformed::ChunkSize),
                        Some(digit) => self.state = State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 },
                        None if digits == 0 => return Err(Malformed::ChunkSize),
                        None => match byte {
                            b'\r' => self.state = State::Extension { value, named: false, cr: true },
                            b';' | b' ' | b'\t' => self.state = State::Extension { value, named: byte == b';', cr: false },
                            _ => return Err(Malformed::ChunkSize),
                        },
                    }
                    at += 1;
                }
                State::Extension { value, named, cr } => {
                    self.count_line()?;
                    match (byte, cr) {
                        (b'\n', true) => {
                            self.line = 0;
                            self.state = if value == 0 { State::Trailers } else { State::Data { left: value } };
                        }
                        (b'\r', false) => self.state = State::Extension { value, named, cr: true },
                        (b'\n' | b'\r' | 0, _) | (_, true) => return Err(Malformed::LineEnd),
                        (b';', _) => self.state = State::Extension { value, named: true, cr },
                        (b' ' | b'\t', _) => {}
                        _ if named => {}
                        // `1 1`: is it a 1 or an 11? Any guess is wrong for some reader.
                        _ => return Err(Malformed::ChunkSize),
                    }
                    at += 1;
                }
                State::Data { left } => {
                    let n = left.min((input.len() - at) as u64);
                    self.state = if n == left { State::DataEnd { cr: false } } else { State::Data { left: left - n } };
                    return Ok((at + n as usize, Step::Data(at..at + n as usize)));
                }
                State::DataEnd { cr } => {
                    self.state = match (byte, cr) {
                        (b'\r', false) => State::DataEnd { cr: true },
                        (b'\n', true) => State::default(),
                        _ => return Err(Malformed::ChunkEnd),
                    };
                    at += 1;
                }
                State::Trailers => {
                    at += self.take_trailers(&input[at..])?;
                }
                State::Done => break,
                State::Failed(malformed) => return Err(malformed),
            }
        }
        Ok((at, if self.state == State::Done { Step::End } else { Step::More }))
    }

    /// Bytes of the chunk's data that have not come yet, where the next byte is one of them.
    pub fn left(&self) -> u64 {
        match self.state {
            State::Data { left } => left,
            _ => 0,
        }
    }

    /// Skips so many bytes of data, no more than are left, which have gone another way than through [`ChunkDecoder::step`].
    pub fn skip(&mut self, bytes: u64) {
        if let State::Data { left } = self.state {
            self.state = if bytes >= left { State::DataEnd { cr: false } } else { State::Data { left: left - bytes } };
        }
    }

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The trailer section, its last empty line included; empty when there were no trailers.
    pub fn trailers(&self) -> &[u8] {
        if self.trailers.len() > 2 { &self.trailers } else { b"" }
    }

    /// Takes bytes up to the empty line that ends the trailers.
    fn take_trailers(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        for (i, &byte) in input.iter().enumerate() {
            let last = self.trailers.last().copied();
            if (byte == b'\n') != (last == Some(b'\r')) {
                return Err(Malformed::LineEnd);
            }
            if self.trailers.len() == MAX_TRAILERS {
                return Err(Malformed::Trailer);
            }
            self.trailers.push(byte);
            if byte == b'\n' && (self.trailers.len() == 2 || self.trailers.ends_with(b"\r\n\r\n")) {
                self.state = State::Done;
                return Ok(i + 1);
            }
        }
        Ok(input.len())
    }

    fn count_line(&mut self) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > MAX_SIZE_LINE { Err(Malformed::ChunkSize) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// No end after a fault: bytes that look like one may be an attacker's.
    #[test]
    fn a_fault_is_one_for_good() {
        let wire = b"3\r\nabc\r\n5Z123\r\n0\r\n\r\n";
        let mut decoder = ChunkDecoder::default();
        assert_eq!(decoder.step(wire), Ok((6, Step::Data(3..6))));
        for _ in 0..2 {
            assert_eq!(decoder.step(&wire[6..]), Err(Malformed::ChunkSize));
            assert_eq!(decoder.step(b"\r\n"), Err(Malformed::ChunkSize));
            assert_eq!(decoder.step(b""), Err(Malformed::ChunkSize));
        }
        assert!(!decoder.is_done());
    }

    /// Feeds `input` in pieces; returns the data and the bytes that were left after the end.
    fn decode(input: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>, usize), Malformed> {
        let (mut decoder, mut data, mut used) = (ChunkDecoder::default(), Vec::new(), 0);
        for part in input.chunks(piece) {
            let mut at = 0;
            loop {
                let (n, step) = decoder.step(&part[at..])?;
                if let Step::Data(range) = &step {
                    data.extend_from_slice(&part[at..][range.clone()]);
                }
                at += n;
                match step {
                    Step::Data(_) => {}
                    Step::More => break,
                    Step::End => return Ok((data, decoder.trailers().to_vec(), used + at)),
                }
            }
            used += at;
        }
        Ok((data, Vec::new(), usize::MAX))
    }

    #[test]
    fn bodies_with_extensions_and_trailers() {
        let body = b"5\r\nhello\r\n6;a=b;c\r\n world\r\n000\r\nX-Sum: 1\r\nY: 2\r\n\r\nNEXT";
        for piece in 1..body.len() {
            let (data, trailers, used) = decode(body, piece).unwrap();
            assert_eq!(data, b"hello world");
            assert_eq!(trailers, b"X-Sum: 1\r\nY: 2\r\n\r\n");
            assert_eq!(&body[used..], b"NEXT");
        }
    }

    /// Blanks behind a size are taken, as RFC 9112 section 7.1.1 has it; what stands behind them is an extension or a fault.
    #[test]
    fn blanks_behind_a_size() {
        for line in ["5 ", "5\t", "5 \t ", "5 ;a=b", "5\t;\tx", "5; a b", "5 ;a\t\"b c\" ", "5;"] {
            let body = format!("{line}\r\nhello\r\n0{}\r\n\r\n", &line[1..]);
            for piece in [1, 2, 3, body.len()] {
                let (data, trailers, used) = decode(body.as_bytes(), piece).unwrap_or_else(|fault| panic!("{line:?}: {fault:?}"));
                assert_eq!((&data[..], &trailers[..], used), (&b"hello"[..], &b""[..], body.len()), "{line:?} by {piece}");
            }
        }
        for (line, why) in [
            ("5 5", Malformed::ChunkSize),
            ("5 \t5", Malformed::ChunkSize),
            ("5\u{b}", Malformed::ChunkSize),
            ("5 \u{b}", Malformed::ChunkSize),
            (" 5", Malformed::ChunkSize),
            ("\t5", Malformed::ChunkSize),
            ("5 \n", Malformed::LineEnd),
            ("5 \0", Malformed::LineEnd),
            ("5 ;\0", Malformed::LineEnd),
            ("5 \r5", Malformed::LineEnd),
        ] {
            let body = format!("{line}\r\nhello\r\n0\r\n\r\n");
            assert_eq!(decode(body.as_bytes(), 64).unwrap_err(), why, "{line:?}");
        }
    }

    #[test]
    fn data_may_go_another_way() {
        let mut decoder = ChunkDecoder::default();
        assert_eq!((decoder.step(b"b\r\nhel"), decoder.left()), (Ok((6, Step::Data(3..6))), 8));
        decoder.skip(5);
        assert_eq!(decoder.left(), 3);
        decoder.skip(3);
        assert_eq!((decoder.left(), decoder.step(b"\r\n0\r\n\r\n")), (0, Ok((7, Step::End))));
        decoder.skip(1);
        assert!(decoder.is_done() && decoder.left() == 0);
    }

    #[test]
    fn refuses_what_can_be_read_in_two_ways() {
        for (body, why) in [
            (&b"\r\n"[..], Malformed::ChunkSize),
            (b"-1\r\n", Malformed::ChunkSize),
            (b"0x5\r\nhello\r\n", Malformed::ChunkSize),
            (b"+5\r\n", Malformed::ChunkSize),
            (b"1000000000000000\r\n", Malformed::ChunkSize),
            (b"5\nhello\r\n", Malformed::ChunkSize),
            (b"1 1\r\na", Malformed::ChunkSize),
            (b"1\tx\r\na", Malformed::ChunkSize),
            (b"5;x\nhello\r\n", Malformed::LineEnd),
            (b"5;\rx\nhello", Malformed::LineEnd),
            (b"5\r\nhelloX", Malformed::ChunkEnd),
            (b"5\r\nhello\n", Malformed::ChunkEnd),
            (b"0\r\nA: b\n\r\n", Malformed::LineEnd),
            (b"0\r\n\n", Malformed::LineEnd),
            (b"0\r\nA: b\rc\r\n\r\n", Malformed::LineEnd),
        ] {
            assert_eq!(decode(body, 64).unwrap_err(), why, "{}", body.escape_ascii());
        }
        let long = [b"5;".to_vec(), vec![b'x'; MAX_SIZE_LINE]].concat();
        assert_eq!(decode(&long, 100).unwrap_err(), Malformed::ChunkSize);
        let many = [b"0\r\n".to_vec(), b"a: b\r\n".repeat(2000)].concat();
        assert_eq!(decode(&many, 100).unwrap_err(), Malformed::Trailer);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8), piece in 1usize..64) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
            let (data, _, used) = decode(&body, piece).unwrap();
            prop_assert_eq!(data, chunks.concat());
            prop_assert_eq!(used, body.len());
        }

        #[test]
        fn never_panics(input in prop::collection::vec(any::<u8>(), 0..200), piece in 1usize..64) {
            let _ = decode(&input, piece);
        }
    }
}
