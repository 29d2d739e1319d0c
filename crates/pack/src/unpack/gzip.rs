//! gzip: members, each with its head, its deflate stream and its tail.

use super::{Input, ROOM, Unpacked};
use crate::fault::Fault;
use crate::header::Header;
use std::io::Write;
use terse_deflate::decode::{Inflate, Stop};

pub(super) fn unpack(input: &mut Input<'_>, sink: &mut dyn Write) -> Result<Unpacked, Fault> {
    let begin = input.taken();
    let header = Header::read(input)?;
    let frame = input.taken() - begin + TAIL_BYTES as u64;
    let mut unpacked = Unpacked { header, frame, ..Unpacked::default() };
    let mut inflate = Inflate::new();
    let mut room = vec![0; ROOM];
    loop {
        let (checksum, bytes) = member(&mut inflate, input, sink, &mut room)?;
        unpacked.bytes += bytes;
        unpacked.checksum = Some(checksum);
        if !input.peek(2)?.starts_with(&[0x1f, 0x8b]) {
            return Ok(unpacked);
        }
        Header::read(input)?;
        inflate.reset();
    }
}

/// Checksum and length (RFC 1952 section 2.3.1).
const TAIL_BYTES: usize = 8;

/// Decodes a member after its head; returns its checksum and its length, both verified.
fn member(inflate: &mut Inflate, input: &mut Input<'_>, sink: &mut dyn Write, room: &mut [u8]) -> Result<(u32, u64), Fault> {
    let (mut checksum, mut length) = (libdeflater::Crc::new(), 0u64);
    loop {
        let bytes = input.fill()?;
        let at_end = bytes.is_empty();
        let progress = inflate.decode(bytes, room).map_err(|_| Fault::Violated)?;
        input.consume(progress.taken);
        let made = room.get(..progress.given).ok_or(Fault::Engine)?;
        checksum.update(made);
        length += made.len() as u64;
        sink.write_all(made).map_err(Fault::Write)?;
        match progress.stop {
            Stop::End => break,
            _ if at_end && made.is_empty() => return Err(Fault::End),
            _ => {}
        }
    }
    let mut tail = [0; TAIL_BYTES];
    for byte in &mut tail {
        *byte = input.byte()?.ok_or(Fault::End)?;
    }
    let [c0, c1, c2, c3, l0, l1, l2, l3] = tail;
    if u32::from_le_bytes([c0, c1, c2, c3]) != checksum.sum() {
        return Err(Fault::Checksum);
    }
    if u32::from_le_bytes([l0, l1, l2, l3]) != length as u32 {
        return Err(Fault::Length);
    }
    Ok((checksum.sum(), length))
}
