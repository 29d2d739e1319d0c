//! Header blocks to lines (RFC 7541 section 6).

use super::facts::STATIC;
use super::table::Table;
use super::{TABLE_BYTES, huffman, integer};
use std::ops::Range;

/// Decoder of a connection.
#[derive(Debug)]
pub struct Decoder {
    pub(super) table: Table,
    /// Table size that this side has announced.
    most: usize,
}

/// Place of a field in the buffer: `name: value CR LF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its name.
    pub name: Range<usize>,
    /// Its value, to the end of the buffer but for CR LF.
    pub value: Range<usize>,
    /// No hop may put it into a table (RFC 7541 section 6.2.3).
    pub never_indexed: bool,
}

/// Reason why a block is not read to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The bytes are no block: COMPRESSION_ERROR.
    Malformed,
    /// The caller has stopped the reading.
    Enough,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { table: Table::default(), most: TABLE_BYTES }
    }
}

impl Decoder {
    /// Reads a whole block. Each field is appended to `lines`, and `field` may change that or take it out again; with false it ends
    /// the reading, and the connection.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        lines: &mut Vec<u8>,
        mut field: impl FnMut(&mut Vec<u8>, Line) -> bool,
    ) -> Result<(), Stop> {
        let mut at_start = true;
        while let Some(&first) = block.first() {
            let start = lines.len();
            let line = match first {
                0x80.. => self.indexed(&mut block, lines),
                0x40.. => self.literal(&mut block, 6, lines),
                0x20.. => {
                    // Only in front of the first field (RFC 7541 section 4.2).
                    let size = integer::take(&mut block, 5).filter(|size| at_start && *size <= self.most);
                    self.table.resize(size.ok_or(Stop::Malformed)?);
                    continue;
                }
                _ => self.literal(&mut block, 4, lines),
            };
            at_start = false;
            let line = line.ok_or(Stop::Malformed)?;
            debug_assert!(line.name.start == start);
            if (0x40..0x80).contains(&first) {
                self.table.add(&lines[line.name.clone()], &lines[line.value.clone()], (0, 0));
            }
            if !field(lines, line) {
                return Err(Stop::Enough);
            }
        }
        Ok(())
    }

    #[inline]
    fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        match STATIC.get(index) {
            Some(entry) => Some(*entry),
            None => self.table.get(index - STATIC.len()),
        }
    }

    fn indexed(&self, block: &mut &[u8], lines: &mut Vec<u8>) -> Option<Line> {
        let index = integer::take(block, 7)?.checked_sub(1)?;
        let (line, name) = match STATIC.get(index) {
            Some((name, _)) => (static_line(index), name.len()),
            None => self.table.line(index - STATIC.len())?,
        };
        let start = lines.len();
        lines.extend_from_slice(line);
        let name = start..start + name;
        Some(Line { value: name.end + 2..lines.len() - 2, name, never_indexed: false })
    }

    fn literal(&self, block: &mut &[u8], prefix: u32, lines: &mut Vec<u8>) -> Option<Line> {
        let start = lines.len();
        let never_indexed = block.first()? & 0xf0 == 0x10;
        match integer::take(block, prefix)? {
            0 => text(block, lines)?,
            index => lines.extend_from_slice(self.entry(index)?.0),
        }
        let name = start..lines.len();
        lines.extend_from_slice(b": ");
        text(block, lines)?;
        let value = name.end + 2..lines.len();
        lines.extend_from_slice(b"\r\n");
        Some(Line { value, name, never_indexed })
    }
}

/// An entry of the static table as a line of a head.
#[inline]
fn static_line(index: usize) -> &'static [u8] {
    let (bytes, ends) = &STATIC_LINES;
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &bytes[usize::from(start)..usize::from(ends[index])]
}

/// All of them, one after the other, and the end of each.
static STATIC_LINES: ([u8; STATIC_BYTES], [u16; STATIC.len()]) = {
    let (mut bytes, mut ends) = ([0; STATIC_BYTES], [0; STATIC.len()]);
    let (mut at, mut i) = (0, 0);
    while i < STATIC.len() {
        let parts: [&[u8]; 4] = [STATIC[i].0, b": ", STATIC[i].1, b"\r\n"];
        let mut part = 0;
        while part < parts.len() {
            let mut byte = 0;
            while byte < parts[part].len() {
                bytes[at] = parts[part][byte];
                (at, byte) = (at + 1, byte + 1);
            }
            part += 1;
        }
        ends[i] = at as u16;
        i += 1;
    }
    (bytes, ends)
};

const STATIC_BYTES: usize = {
    let (mut bytes, mut i) = (0, 0);
    while i < STATIC.len() {
        bytes += STATIC[i].0.len() + STATIC[i].1.len() + 4;
        i += 1;
    }
    bytes
};

/// Appends a string (RFC 7541 section 5.2).
fn text(block: &mut &[u8], lines: &mut Vec<u8>) -> Option<()> {
    let coded = block.first()? & 0x80 != 0;
    let length = integer::take(block, 7)?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    if !coded {
        lines.extend_from_slice(text);
        return Some(());
    }
    // The shortest code has five bits.
    lines.reserve(length * 8 / 5 + 4);
    huffman::decode(text, lines).then_some(())
}
