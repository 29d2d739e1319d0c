//! Decompresses streams: members and frames one after the other, checked as far as the format allows.
//!
//! Data after the last member that is no member is left alone and reported, as gzip does; zeros, which tapes pad with,
//! are not even reported.

mod brotli;
mod gzip;
mod input;
mod zstd;

pub use input::Input;

use crate::fault::Fault;
use crate::form::Form;
use crate::header::Header;
use std::io::Write;

/// Outcome of a stream.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Unpacked {
    /// Bytes of output.
    pub bytes: u64,
    /// Bytes of the first member's head and tail, for gzip.
    pub frame: u64,
    /// The head of the first member, for gzip.
    pub header: Header,
    /// Checksum in the last member's tail, for gzip.
    pub checksum: Option<u32>,
    /// Whether other data came after the last member.
    pub has_garbage: bool,
}

/// Format of an input: `wanted`, or that of its first bytes.
///
/// # Errors
/// An input that ends before its first bytes have come, or that has no format, or another one.
pub fn detect(input: &mut Input<'_>, wanted: Option<Form>) -> Result<Form, Fault> {
    let first = input.peek(4)?;
    let found = Form::of_magic(first);
    match (found, wanted) {
        (_, Some(Form::Brotli)) => Ok(Form::Brotli),
        (Some(found), None) => Ok(found),
        (Some(found), Some(wanted)) if found == wanted => Ok(found),
        _ if first.is_empty() => Err(Fault::End),
        (None, _) if is_old(first) => Err(Fault::Unsupported("compressed by compress, pack or zip".into())),
        (_, wanted) => Err(Fault::Format(wanted.unwrap_or(Form::Gzip).name())),
    }
}

/// Formats that gzip reads beside its own.
fn is_old(first: &[u8]) -> bool {
    matches!(first, [0x1f, 0x9d | 0x1e | 0xa0 | 0x9e, ..] | [b'P', b'K', 3, 4])
}

/// Decompresses all of an input, which has that format, to `sink`.
///
/// # Errors
/// The fault of the input, or of the sink; the sound data before it have been written.
pub fn unpack(form: Form, input: &mut Input<'_>, sink: &mut dyn Write) -> Result<Unpacked, Fault> {
    let mut unpacked = members(form, input, sink)?;
    unpacked.has_garbage = has_garbage(input)?;
    Ok(unpacked)
}

/// Decompresses like [`unpack`], but leaves the data after the last member unread.
///
/// # Errors
/// Those of [`unpack`].
pub fn members(form: Form, input: &mut Input<'_>, sink: &mut dyn Write) -> Result<Unpacked, Fault> {
    match form {
        Form::Gzip => gzip::unpack(input, sink),
        Form::Zstd => zstd::unpack(input, sink),
        Form::Brotli => brotli::unpack(input, sink),
    }
}

/// Output is made in portions of this size.
const ROOM: usize = 1 << 18;

/// Reads the rest, which is no member; returns whether it is anything but zeros.
fn has_garbage(input: &mut Input<'_>) -> Result<bool, Fault> {
    loop {
        let bytes = input.fill()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(true);
        }
        let length = bytes.len();
        input.consume(length);
    }
}

#[cfg(test)]
mod tests;
