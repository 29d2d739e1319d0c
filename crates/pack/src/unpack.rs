//! Decompresses streams: members and frames one behind the other, everything checked that the format lets be checked.
//!
//! What stands behind the last member and is none is left alone and reported, as gzip does; zeros, which tapes pad with, are not even
//! reported.

mod brotli;
mod gzip;
mod input;
mod zstd;

pub use input::Input;

use crate::fault::Fault;
use crate::form::Form;
use crate::header::Header;
use std::io::Write;

/// What came out of a stream.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Unpacked {
    /// Bytes.
    pub bytes: u64,
    /// Bytes of the first member's head and tail, for gzip.
    pub frame: u64,
    /// The head of the first member, for gzip.
    pub header: Header,
    /// The checksum that the last member says, for gzip.
    pub checksum: Option<u32>,
    /// Whether something that is no member stood behind the last one.
    pub has_garbage: bool,
}

/// Which format an input has: the one that `wanted` says, or what its first bytes tell.
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
/// What is wrong with the input, or with the sink; what is sound before that has gone out.
pub fn unpack(form: Form, input: &mut Input<'_>, sink: &mut dyn Write) -> Result<Unpacked, Fault> {
    let mut unpacked = members(form, input, sink)?;
    unpacked.has_garbage = has_garbage(input)?;
    Ok(unpacked)
}

/// The same, but leaves what stands behind the last member where it is.
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

/// Reads what is left, which is no member; whether it is anything but zeros.
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
