//! ISA-L, by its streaming interface for pieces and its stateless one for whole bodies.

use crate::{Coder, Mode, PIECE_BYTES, Program};
use isal_sys::igzip_lib as isal;
use std::mem::MaybeUninit;

/// What is measured.
pub fn program() -> Program {
    Program { name: "isal".into(), coding: "gzip", levels: (0..=3).collect(), has_parts: true, make }
}

struct Stream {
    stream: Box<isal::isal_zstream>,
    level: u32,
    tables: Vec<u8>,
}

fn make(level: i32) -> Option<Box<dyn Coder>> {
    let tables = match level {
        0 => isal::ISAL_DEF_LVL0_DEFAULT,
        1 => isal::ISAL_DEF_LVL1_DEFAULT,
        2 => isal::ISAL_DEF_LVL2_DEFAULT,
        _ => isal::ISAL_DEF_LVL3_DEFAULT,
    };
    // SAFETY: the structure is plain numbers and pointers, and is initialised before each use.
    let stream = unsafe { Box::new(MaybeUninit::zeroed().assume_init()) };
    Some(Box::new(Stream { stream, level: level.try_into().ok()?, tables: vec![0; tables as usize] }))
}

impl Coder for Stream {
    fn code(&mut self, body: &[u8], mode: Mode, out: &mut [u8]) -> Option<usize> {
        let stream = &mut *self.stream;
        // SAFETY: pointers and lengths are those of slices and of a vector that outlive the calls.
        unsafe {
            if mode == Mode::Whole {
                isal::isal_deflate_stateless_init(stream)
            } else {
                isal::isal_deflate_init(stream)
            }
            stream.level = self.level;
            (stream.level_buf, stream.level_buf_size) = (self.tables.as_mut_ptr(), self.tables.len().try_into().ok()?);
            stream.gzip_flag = isal::IGZIP_GZIP as u16;
            (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), out.len().try_into().ok()?);
            if mode == Mode::Whole {
                (stream.next_in, stream.avail_in) = (body.as_ptr().cast_mut(), body.len().try_into().ok()?);
                (stream.end_of_stream, stream.flush) = (1, 0);
                return (isal::isal_deflate_stateless(stream) == 0).then_some(stream.total_out as usize);
            }
            let last = body.len().saturating_sub(1) / PIECE_BYTES;
            for (index, part) in body.chunks(PIECE_BYTES).enumerate() {
                (stream.next_in, stream.avail_in) = (part.as_ptr().cast_mut(), part.len().try_into().ok()?);
                (stream.end_of_stream, stream.flush) = if index == last { (1, 0) } else { (0, isal::SYNC_FLUSH as u16) };
                if isal::isal_deflate(stream) != 0 || stream.avail_in > 0 {
                    return None;
                }
            }
            Some(stream.total_out as usize)
        }
    }
}
