//! The wrappers round a deflate stream: gzip (RFC 1952), zlib (RFC 1950), none (RFC 1951).
//!
//! They are written here and not by the engine, so that a stream can change its engine's state on its way: only the checksum and the
//! length go through the whole body.

/// The wrapper's kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Gzip,
    Zlib,
    Raw,
}

/// The wrapper of one body.
#[derive(Debug)]
pub(super) struct Frame {
    format: Format,
    begun: bool,
    checksum: u32,
    /// The body's length, modulo two to the power of 32.
    length: u32,
}

impl Frame {
    pub(super) fn new(format: Format) -> Frame {
        Frame { format, begun: false, checksum: format.first_checksum(), length: 0 }
    }

    /// Takes bytes of the body; before the first, writes the head.
    pub(super) fn update(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(self.format.head());
        }
        self.length = self.length.wrapping_add(input.len() as u32);
        self.checksum = match self.format {
            Format::Gzip => zlib_rs::crc32::crc32(self.checksum, input),
            Format::Zlib => zlib_rs::adler32::adler32(self.checksum, input),
            Format::Raw => 0,
        };
    }

    /// Writes the tail.
    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::Gzip => {
                out.extend_from_slice(&self.checksum.to_le_bytes());
                out.extend_from_slice(&self.length.to_le_bytes());
            }
            Format::Zlib => out.extend_from_slice(&self.checksum.to_be_bytes()),
            Format::Raw => {}
        }
    }

    /// Begins another body.
    pub(super) fn reset(&mut self) {
        *self = Frame::new(self.format);
    }
}

impl Format {
    /// gzip: deflate, no flags, no time, no hint, system unknown. zlib: deflate with a window of 32 KB, default level, no dictionary.
    fn head(self) -> &'static [u8] {
        match self {
            Format::Gzip => &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
            Format::Zlib => &[0x78, 0x9c],
            Format::Raw => &[],
        }
    }

    fn first_checksum(self) -> u32 {
        u32::from(self == Format::Zlib)
    }
}
