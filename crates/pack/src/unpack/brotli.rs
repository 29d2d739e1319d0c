//! Brotli: one stream, which has no checksum: only its form can be checked.

use super::{Input, ROOM, Unpacked};
use crate::fault::Fault;
use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use std::io::Write;

pub(super) fn unpack(input: &mut Input<'_>, sink: &mut dyn Write) -> Result<Unpacked, Fault> {
    let mut state = BrotliState::new(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let mut unpacked = Unpacked::default();
    let mut room = vec![0u8; ROOM];
    let mut total = 0;
    loop {
        let source = input.fill()?;
        let (mut left, mut at, mut free, mut end) = (source.len(), 0, room.len(), 0);
        let at_end = left == 0;
        let result = BrotliDecompressStream(&mut left, &mut at, source, &mut free, &mut end, &mut room, &mut total, &mut state);
        input.consume(at);
        let made = room.get(..end).ok_or(Fault::Engine)?;
        sink.write_all(made).map_err(Fault::Write)?;
        unpacked.bytes += made.len() as u64;
        match result {
            BrotliResult::ResultSuccess => break,
            BrotliResult::ResultFailure => return Err(Fault::Violated),
            BrotliResult::NeedsMoreInput if at_end => return Err(Fault::End),
            _ => {}
        }
    }
    Ok(unpacked)
}
