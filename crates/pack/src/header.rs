//! gzip's head and tail (RFC 1952).

use crate::fault::Fault;
use crate::unpack::Input;

/// Description of the file in a head.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Header {
    /// Name, without a folder.
    pub name: Option<Vec<u8>>,
    /// Time of change, in seconds since 1970; 0: unknown.
    pub time: u32,
    /// Whether it has a name that is longer than [`MAX_NAME`], and so than any file's.
    pub has_long_name: bool,
}

/// Flags (section 2.3.1).
const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const UNKNOWN: u8 = 0xe0;

/// Operating system of the origin: Unix.
const UNIX: u8 = 3;
/// Bytes of a name that are kept: no path is longer. Longer names, and comments of any length, are read and not kept.
const MAX_NAME: usize = 4096;

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

    /// Parses the head of a member, magic number and all.
    ///
    /// # Errors
    /// A truncated input, an unknown flag or method, or a wrong checksum.
    pub fn read(input: &mut Input<'_>) -> Result<Header, Fault> {
        let mut seen = libdeflater::Crc::new();
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
        let mut header = Header { time: u32::from_le_bytes([t0, t1, t2, t3]), ..Header::default() };
        if flags & HAS_EXTRA != 0 {
            let length = usize::from(u16::from_le_bytes([next(input, &mut seen)?, next(input, &mut seen)?]));
            for _ in 0..length {
                next(input, &mut seen)?;
            }
        }
        if flags & HAS_NAME != 0 {
            header.name = text(input, &mut seen, MAX_NAME)?;
            header.has_long_name = header.name.is_none();
        }
        if flags & HAS_COMMENT != 0 {
            text(input, &mut seen, 0)?;
        }
        if flags & HAS_CHECKSUM != 0 {
            let expected = seen.sum() as u16;
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

/// A byte, which counts into the head's checksum.
fn next(input: &mut Input<'_>, seen: &mut libdeflater::Crc) -> Result<u8, Fault> {
    let byte = input.byte()?.ok_or(Fault::End)?;
    seen.update(&[byte]);
    Ok(byte)
}

/// Bytes up to a zero; `None` when there are more than `most`.
fn text(input: &mut Input<'_>, seen: &mut libdeflater::Crc, most: usize) -> Result<Option<Vec<u8>>, Fault> {
    let (mut kept, mut length) = (Vec::new(), 0usize);
    loop {
        match next(input, seen)? {
            0 => return Ok(Some(kept).filter(|kept| kept.len() == length)),
            byte if length < most => kept.push(byte),
            _ => {}
        }
        length += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Header, Fault> {
        Header::read(&mut Input::new(&mut &bytes[..]))
    }

    #[test]
    fn what_is_written_is_read() {
        for header in [Header::default(), Header { name: Some(b"a file.txt".to_vec()), time: 1_700_000_000, ..Header::default() }] {
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
        assert_eq!(read(&all).unwrap(), Header { name: Some(b"name".to_vec()), time: 1, ..Header::default() });
        all[13] ^= 1;
        assert!(matches!(read(&all), Err(Fault::Checksum)));
        assert!(matches!(read(&[0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 0]), Err(Fault::Unsupported(_))));
        assert!(matches!(read(&[0x1f, 0x8b, 8, 0x20, 0, 0, 0, 0, 0, 0]), Err(Fault::Unsupported(_))));
    }

    #[test]
    fn names_and_comments_have_any_length() {
        for (name, comment) in [(MAX_NAME, 1), (MAX_NAME + 1, 100_000), (300_000, 0)] {
            let mut all = vec![0x1f, 0x8b, 8, HAS_CHECKSUM | HAS_NAME | HAS_COMMENT, 1, 0, 0, 0, 0, 3];
            all.extend([&vec![b'n'; name][..], b"\0", &vec![b'c'; comment], b"\0"].concat());
            all.extend_from_slice(&(libdeflater::crc32(&all) as u16).to_le_bytes());
            let header = read(&all).unwrap();
            let kept = (name <= MAX_NAME).then(|| vec![b'n'; name]);
            assert_eq!((header.name, header.has_long_name), (kept, name > MAX_NAME));
            assert!(matches!(read(&all[..11 + name]), Err(Fault::End)), "that is what is wrong");
        }
    }
}
