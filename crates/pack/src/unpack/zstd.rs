//! zstd: frames, with their checksums if they have one.

use super::{Input, ROOM, Unpacked};
use crate::fault::Fault;
use crate::form::Form;
use std::io::Write;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// Largest window, as a power of two: 128 MB, which is also zstd(1)'s default limit.
const WINDOW_BITS: u32 = 27;

pub(super) fn unpack(input: &mut Input<'_>, sink: &mut dyn Write) -> Result<Unpacked, Fault> {
    let mut state = DCtx::try_create().ok_or(Fault::Engine)?;
    state.set_parameter(DParameter::WindowLogMax(WINDOW_BITS)).map_err(|_| Fault::Engine)?;
    let mut unpacked = Unpacked::default();
    let mut room = vec![0u8; ROOM];
    while Form::of_magic(input.peek(4)?) == Some(Form::Zstd) {
        frame(&mut state, input, sink, &mut room, &mut unpacked.bytes)?;
    }
    Ok(unpacked)
}

fn frame(state: &mut DCtx<'_>, input: &mut Input<'_>, sink: &mut dyn Write, room: &mut [u8], bytes: &mut u64) -> Result<(), Fault> {
    loop {
        let source = input.fill()?;
        let at_end = source.is_empty();
        let (mut source, mut target) = (InBuffer::around(source), OutBuffer::around(room));
        let hint = state.decompress_stream(&mut target, &mut source).map_err(fault)?;
        let taken = source.pos();
        let made = target.as_slice();
        *bytes += made.len() as u64;
        sink.write_all(made).map_err(Fault::Write)?;
        let is_empty = made.is_empty();
        input.consume(taken);
        if hint == 0 {
            return Ok(());
        }
        if at_end && is_empty {
            return Err(Fault::End);
        }
    }
}

fn fault(code: zstd_safe::ErrorCode) -> Fault {
    let name = zstd_safe::get_error_name(code);
    if name.contains("checksum") {
        Fault::Checksum
    } else if name.contains("too much memory") {
        Fault::Unsupported(format!("a window of more than {} MB", (1u32 << WINDOW_BITS) >> 20))
    } else {
        Fault::Violated
    }
}
