//! Results computed beforehand: a file for each body, found by a hash of few of its bytes.
//!
//! A file's name is its body's [`key`] and length. It holds CRC-32 and Adler-32 of the body, in little endian, and a raw deflate
//! stream.

use libdeflater::{CompressionLvl, Compressor};
use std::io;
use std::path::{Path, PathBuf};

/// Known result for a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// Its CRC-32.
    pub crc: u32,
    /// Its Adler-32.
    pub adler: u32,
    /// A raw deflate stream of it.
    pub stream: Vec<u8>,
}

impl Made {
    /// Computes it, at one of libdeflate's levels, 0 to 12.
    pub fn new(body: &[u8], level: i32) -> Made {
        let level = CompressionLvl::new(level.clamp(0, 12)).unwrap_or_default();
        let mut compressor = Compressor::new(level);
        let mut stream = vec![0; compressor.deflate_compress_bound(body.len())];
        let length = compressor.deflate_compress(body, &mut stream).unwrap_or(0);
        stream.truncate(length);
        Made { crc: libdeflater::crc32(body), adler: libdeflater::adler32(body), stream }
    }

    /// Writes it to a folder.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, folder: &Path, body: &[u8]) -> io::Result<()> {
        let bytes = [&self.crc.to_le_bytes()[..], &self.adler.to_le_bytes(), &self.stream].concat();
        std::fs::write(path(folder, body), bytes)
    }

    /// The result that was kept for a body, if any.
    pub fn read(folder: &Path, body: &[u8]) -> Option<Made> {
        let mut bytes = std::fs::read(path(folder, body)).ok()?;
        let (crc, rest) = bytes.split_first_chunk()?;
        let (adler, _) = rest.split_first_chunk()?;
        let (crc, adler) = (u32::from_le_bytes(*crc), u32::from_le_bytes(*adler));
        bytes.drain(..8);
        Some(Made { crc, adler, stream: bytes })
    }
}

/// A number for a body: its first and last bytes, and some between.
pub fn key(body: &[u8]) -> u64 {
    let mut sum = body.len() as u64;
    let mut add = |bytes: &[u8]| {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            sum = mix(sum ^ u64::from_le_bytes(word));
        }
    };
    add(&body[..body.len().min(END_BYTES)]);
    add(&body[body.len().saturating_sub(END_BYTES)..]);
    for part in body.chunks(STRIDE_BYTES) {
        add(&part[..part.len().min(SAMPLE_BYTES)]);
    }
    sum
}

/// A step of splitmix64: every bit of the input changes half of the output's.
pub(crate) fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn path(folder: &Path, body: &[u8]) -> PathBuf {
    folder.join(format!("{:016x}-{}", key(body), body.len()))
}

const END_BYTES: usize = 4096;
const STRIDE_BYTES: usize = 16 * 1024;
const SAMPLE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_by_their_bodies() {
        let folder = std::env::temp_dir().join(format!("terse-testcard-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let body: Vec<u8> = (0..200_000u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
        let made = Made::new(&body, 6);
        made.write(&folder, &body).unwrap();
        assert_eq!(Made::read(&folder, &body), Some(made));
        let mut other = body.clone();
        other[body.len() - 1] ^= 1;
        assert_eq!(Made::read(&folder, &other), None);
        assert_eq!(Made::read(&folder, b""), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
