//! Head and tail of a stream: none (raw), zlib's (RFC 1950), gzip's (RFC 1952).

use libz_rs_sys::{Bytef, gz_header};
use std::slice;

/// Wrapper of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrap {
    /// No wrapper.
    Raw,
    /// zlib's head and Adler-32.
    Zlib,
    /// gzip's head, CRC-32 and length.
    Gzip,
}

impl Wrap {
    /// Initial checksum.
    pub(super) fn start(self) -> u32 {
        if self == Wrap::Zlib { 1 } else { 0 }
    }

    /// Returns the checksum with more bytes in it.
    pub(super) fn add(self, sum: u32, bytes: &[u8]) -> u32 {
        match self {
            Wrap::Raw => sum,
            Wrap::Zlib => zlib_rs::adler32::adler32(sum, bytes),
            Wrap::Gzip => zlib_rs::crc32::crc32(sum, bytes),
        }
    }

    /// Tail of the stream.
    pub(super) fn tail(self, sum: u32, length: u64) -> ([u8; 8], usize) {
        let mut tail = [0; 8];
        match self {
            Wrap::Raw => (tail, 0),
            Wrap::Zlib => {
                tail[..4].copy_from_slice(&sum.to_be_bytes());
                (tail, 4)
            }
            Wrap::Gzip => {
                tail[..4].copy_from_slice(&sum.to_le_bytes());
                tail[4..].copy_from_slice(&(length as u32).to_le_bytes());
                (tail, 8)
            }
        }
    }
}

/// zlib's head, with the checksum of the dictionary if there is one (RFC 1950 section 2.2).
pub(super) fn zlib(window_bits: u8, level: u8, is_hasty: bool, dictionary: Option<u32>) -> Vec<u8> {
    let effort: u16 = match level {
        _ if is_hasty => 0,
        0 | 1 => 0,
        2..=5 => 1,
        6 => 2,
        _ => 3,
    };
    let mut head = (8 + ((u16::from(window_bits) - 8) << 4)) << 8 | effort << 6;
    if dictionary.is_some() {
        head |= 0x20;
    }
    head += 31 - head % 31;
    let mut bytes = head.to_be_bytes().to_vec();
    bytes.extend(dictionary.into_iter().flat_map(u32::to_be_bytes));
    bytes
}

/// gzip's head without any settings of the program.
pub(super) fn plain_gzip(level: u8, is_hasty: bool) -> Vec<u8> {
    vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, effort(level, is_hasty), UNIX]
}

/// gzip's head with the program's settings (`deflateSetHeader`).
///
/// # Safety
/// The pointers in `head` are null or point to what zlib documents: `extra_len` bytes, and strings that end with a zero.
pub(super) unsafe fn gzip(head: &gz_header, level: u8, is_hasty: bool) -> Vec<u8> {
    let text = |at: *const Bytef| {
        // SAFETY: the caller vouches for a string.
        (!at.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(at.cast()) }.to_bytes_with_nul())
    };
    // SAFETY: the caller vouches for so many bytes.
    let extra = (!head.extra.is_null()).then(|| unsafe { slice::from_raw_parts(head.extra, head.extra_len as u16 as usize) });
    let (name, comment) = (text(head.name), text(head.comment));
    let flags = u8::from(head.text != 0)
        | u8::from(head.hcrc != 0) << 1
        | u8::from(extra.is_some()) << 2
        | u8::from(name.is_some()) << 3
        | u8::from(comment.is_some()) << 4;
    let mut bytes = vec![0x1f, 0x8b, 8, flags];
    bytes.extend_from_slice(&(head.time as u32).to_le_bytes());
    bytes.extend_from_slice(&[effort(level, is_hasty), head.os as u8]);
    if let Some(extra) = extra {
        bytes.extend_from_slice(&(extra.len() as u16).to_le_bytes());
        bytes.extend_from_slice(extra);
    }
    for text in [name, comment].into_iter().flatten() {
        bytes.extend_from_slice(text);
    }
    if head.hcrc != 0 {
        let sum = zlib_rs::crc32::crc32(0, &bytes) as u16;
        bytes.extend_from_slice(&sum.to_le_bytes());
    }
    bytes
}

fn effort(level: u8, is_hasty: bool) -> u8 {
    match level {
        9 => 2,
        _ if is_hasty || level < 2 => 4,
        _ => 0,
    }
}

/// Operating system of the origin.
const UNIX: u8 = 3;
