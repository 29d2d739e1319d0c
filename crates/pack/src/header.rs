//! gzip's head and tail (RFC 1952).

use crate::fault::Fault;
use crate::unpack::Input;

/// What a head says of the file.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its name, without a folder.
    pub name: Option<Vec<u8>>,
    /// When it was changed, in seconds since 1970; 0: unknown.
    pub time: u32,
}

/// Flags (section 2.3.1).
const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const UNKNOWN: u8 = 0xe0;

/// The system on which it was made: Unix.
const UNIX: u8 = 3;
/// Longer names and comments are no names; nobody needs them to be kept.
const MAX_TEXT: usize = 4096;

impl Header {
    /// Appends the head of a member.
    pub fn write(&self, level: u8, out: &mut Vec<u8>) {
        let name = self.name.as_deref().filter(|name| !name.is_empty() && !name.contains(&0));
        let flags = if name.is_some() { HAS_NAME } else { 0 };
        let effort = match level {
            1 => 4,
            9.. => 2,
            _ => 0,
        };
        out.extend_from_slice(&[0x1f, 0x8b, 8, flags]);
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&[effort, UNIX]);
        if let Some(name) = name {
            out.extend_from_slice(name);
            out.push(0);
        }
    }

    /// Reads the head of a member, magic number and all.
    ///
    /// # Errors
    /// An input that ends, a flag or a method that is unknown, a checksum that is wrong.
    pub fn read(input: &mut Input<'_>) -> Result<Header, Fault> {
        let mut seen = Vec::with_capacity(64);
        let mut fixed = [0; 10];
        for byte in &mut fixed {
            *byte = next(input, &mut seen)?;
        }
        let [_, _, method, flags, t0, t1, t2, t3, ..] = fixed;
        if method != 8 {
            return Err(Fault::Unsupported(format!("unknown method {method}")));
        }
        if flags & UNKNOWN != 0 {
            return Err(Fault::Unsupported(format!("has flags 0x{flags:x}")));
        }
        let mut header = Header { name: None, time: u32::from_le_bytes([t0, t1, t2, t3]) };
        if flags & HAS_EXTRA != 0 {
            let length = usize::from(u16::from_le_bytes([next(input, &mut seen)?, next(input, &mut seen)?]));
            for _ in 0..length {
                next(input, &mut seen)?;
            }
        }
        if flags & HAS_NAME != 0 {
            header.name = Some(text(input, &mut seen)?);
        }
        if flags & HAS_COMMENT != 0 {
            text(input, &mut seen)?;
        }
        if flags & HAS_CHECKSUM != 0 {
            let expected = libdeflater::crc32(&seen) as u16;
            if u16::from_le_bytes([next(input, &mut seen)?, next(input, &mut seen)?]) != expected {
                return Err(Fault::Checksum);
            }
        }
        Ok(header)
    }
}

/// A member's tail: checksum, and length modulo 2^32.
pub fn tail(checksum: u32, length: u64) -> [u8; 8] {
    let mut tail = [0; 8];
    tail[..4].copy_from_slice(&checksum.to_le_bytes());
    tail[4..].copy_from_slice(&(length as u32).to_le_bytes());
    tail
}

/// A byte, which counts into the head's checksum. What is beyond any head that is one's own need not be remembered.
fn next(input: &mut Input<'_>, seen: &mut Vec<u8>) -> Result<u8, Fault> {
    let byte = input.byte()?.ok_or(Fault::End)?;
    seen.push(byte);
    Ok(byte)
}

/// Bytes up to a zero.
fn text(input: &mut Input<'_>, seen: &mut Vec<u8>) -> Result<Vec<u8>, Fault> {
    let start = seen.len();
    while next(input, seen)? != 0 {
        if seen.len() - start > MAX_TEXT {
            return Err(Fault::Unsupported("a name or comment without end".into()));
        }
    }
    Ok(seen[start..seen.len() - 1].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Header, Fault> {
        Header::read(&mut Input::new(&mut &bytes[..]))
    }

    #[test]
    fn what_is_written_is_read() {
        for header in [Header::default(), Header { name: Some(b"a file.txt".to_vec()), time: 1_700_000_000 }] {
            let mut out = Vec::new();
            header.write(6, &mut out);
            assert_eq!(read(&out).unwrap(), header);
            for cut in 0..out.len() {
                assert!(matches!(read(&out[..cut]), Err(Fault::End)), "{cut}");
            }
        }
    }

    #[test]
    fn every_field_is_understood_or_refused() {
        let mut all = vec![0x1f, 0x8b, 8, HAS_CHECKSUM | HAS_EXTRA | HAS_NAME | HAS_COMMENT, 1, 0, 0, 0, 0, 3];
        all.extend_from_slice(b"\x03\0abcname\0comment\0");
        let sum = libdeflater::crc32(&all) as u16;
        all.extend_from_slice(&sum.to_le_bytes());
        assert_eq!(read(&all).unwrap(), Header { name: Some(b"name".to_vec()), time: 1 });
        all[13] ^= 1;
        assert!(matches!(read(&all), Err(Fault::Checksum)));
        assert!(matches!(read(&[0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 0]), Err(Fault::Unsupported(_))));
        assert!(matches!(read(&[0x1f, 0x8b, 8, 0x20, 0, 0, 0, 0, 0, 0]), Err(Fault::Unsupported(_))));
    }
}
