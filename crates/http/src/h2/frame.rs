//! Frames' headers, and the small frames that this side sends (RFC 9113 section 4.1 and 6).

use super::error::Code;

/// The kinds of RFC 9113.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Data,
    Headers,
    Priority,
    Reset,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    Unknown,
}

impl Kind {
    fn of(byte: u8) -> Kind {
        match byte {
            0 => Kind::Data,
            1 => Kind::Headers,
            2 => Kind::Priority,
            3 => Kind::Reset,
            4 => Kind::Settings,
            5 => Kind::PushPromise,
            6 => Kind::Ping,
            7 => Kind::GoAway,
            8 => Kind::WindowUpdate,
            9 => Kind::Continuation,
            _ => Kind::Unknown,
        }
    }
}

/// The nine bytes in front of a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) id: u32,
}

pub(super) const HEADER_BYTES: usize = 9;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

impl Header {
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Header {
        let [a, b, c, kind, flags, id @ ..] = *bytes;
        Header {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind: Kind::of(kind),
            flags,
            // The highest bit is reserved and ignored.
            id: u32::from_be_bytes(id) & ID_MOST,
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The highest stream, and the highest window.
pub(super) const ID_MOST: u32 = 0x7fff_ffff;

/// The first bytes of a client (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) fn header(length: usize, kind: Kind, flags: u8, id: u32) -> [u8; HEADER_BYTES] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = id.to_be_bytes();
    [a, b, c, kind as u8, flags, d, e, f, g]
}

pub(super) fn reset(id: u32, code: Code, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(4, Kind::Reset, 0, id));
    out.extend_from_slice(&code.0.to_be_bytes());
}

pub(super) fn window_update(id: u32, by: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(4, Kind::WindowUpdate, 0, id));
    out.extend_from_slice(&by.to_be_bytes());
}

pub(super) fn ping(payload: &[u8; 8], flags: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(8, Kind::Ping, flags, 0));
    out.extend_from_slice(payload);
}

pub(super) fn goaway(last: u32, code: Code, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(8, Kind::GoAway, 0, 0));
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// A payload without its padding (RFC 9113 section 6.1); `None` where that is longer than the payload.
pub(super) fn unpad(header: Header, payload: &[u8]) -> Option<&[u8]> {
    if !header.has(PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(padding))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_there_and_back() {
        let kinds = [
            Kind::Data,
            Kind::Headers,
            Kind::Priority,
            Kind::Reset,
            Kind::Settings,
            Kind::PushPromise,
            Kind::Ping,
            Kind::GoAway,
            Kind::WindowUpdate,
            Kind::Continuation,
        ];
        for (number, kind) in kinds.into_iter().enumerate() {
            let bytes = header(0x12_3456, kind, END_HEADERS, 0x7654_3210);
            assert_eq!(bytes, [0x12, 0x34, 0x56, number as u8, 4, 0x76, 0x54, 0x32, 0x10]);
            let read = Header::parse(&bytes);
            assert_eq!((read.length, read.kind, read.id), (0x12_3456, kind, 0x7654_3210));
            assert!(read.has(END_HEADERS) && !read.has(END_STREAM));
        }
        assert_eq!(Header::parse(&[0, 0, 0, 200, 0, 0xff, 0xff, 0xff, 0xff]).id, ID_MOST);
    }

    #[test]
    fn padding_is_taken_off() {
        let padded = Header::parse(&header(0, Kind::Data, PADDED, 1));
        assert_eq!(unpad(padded, b"\x02abc\0\0"), Some(&b"abc"[..]));
        assert_eq!(unpad(padded, b"\x02\0\0"), Some(&b""[..]));
        assert_eq!(unpad(padded, b"\x03\0\0"), None);
        assert_eq!(unpad(padded, b""), None);
    }
}
