//! SETTINGS (RFC 9113 section 6.5, RFC 8441 section 3).

use super::error::{Code, Failure};
use super::frame::{ID_MOST, Kind, header};
use super::limits::Limits;

/// Settings of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The bytes of the table that its decoder has.
    pub header_table_bytes: u32,
    /// Streams that this side may open at a time.
    pub concurrent_streams: u32,
    /// The window that a stream begins with.
    pub initial_window: u32,
    /// The largest payload it takes.
    pub frame_bytes: u32,
    /// Whether it takes CONNECT with `:protocol`.
    pub extended_connect: bool,
}

/// The defaults of RFC 9113 section 6.5.2; of streams, which it does not limit, a hundred until more are allowed.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            header_table_bytes: 4096,
            concurrent_streams: 100,
            initial_window: WINDOW,
            frame_bytes: FRAME_BYTES as u32,
            extended_connect: false,
        }
    }
}

/// The window of a stream and of the connection before any SETTINGS.
pub(super) const WINDOW: u32 = 65_535;

/// The largest payload before any SETTINGS, and the largest that this side takes.
pub(super) const FRAME_BYTES: usize = 16_384;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;

impl Settings {
    /// Takes the payload of a frame from a peer that is a server, or a client. Each size of the table is passed to
    /// `resize`: of several, the least counts, too (RFC 7541 section 4.2).
    pub(super) fn read(&mut self, payload: &[u8], from_server: bool, mut resize: impl FnMut(usize)) -> Result<(), Failure> {
        for &[a, b, value @ ..] in payload.as_chunks::<6>().0 {
            let value = u32::from_be_bytes(value);
            match u16::from_be_bytes([a, b]) {
                HEADER_TABLE_SIZE => {
                    self.header_table_bytes = value;
                    resize(value as usize);
                }
                ENABLE_PUSH if value > 1 || from_server && value == 1 => return Err(Failure::protocol("ENABLE_PUSH")),
                MAX_CONCURRENT_STREAMS => self.concurrent_streams = value,
                INITIAL_WINDOW_SIZE if value > ID_MOST => {
                    return Err(Failure::new(Code::FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE"));
                }
                INITIAL_WINDOW_SIZE => self.initial_window = value,
                MAX_FRAME_SIZE if !(FRAME_BYTES as u32..1 << 24).contains(&value) => {
                    return Err(Failure::protocol("MAX_FRAME_SIZE"));
                }
                MAX_FRAME_SIZE => self.frame_bytes = value,
                // It cannot be taken back (RFC 8441 section 3).
                ENABLE_CONNECT_PROTOCOL if value > 1 || value == 0 && self.extended_connect => {
                    return Err(Failure::protocol("ENABLE_CONNECT_PROTOCOL"));
                }
                ENABLE_CONNECT_PROTOCOL => self.extended_connect = value == 1,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Appends the settings of this side.
pub(super) fn announce(limits: &Limits, is_server: bool, out: &mut Vec<u8>) {
    let ours = if is_server {
        [
            (MAX_CONCURRENT_STREAMS, limits.concurrent_streams),
            (INITIAL_WINDOW_SIZE, limits.stream_window),
            (MAX_HEADER_LIST_SIZE, limits.head_bytes as u32),
            (ENABLE_CONNECT_PROTOCOL, u32::from(limits.extended_connect)),
        ]
    } else {
        [
            (ENABLE_PUSH, 0),
            (MAX_CONCURRENT_STREAMS, 0),
            (INITIAL_WINDOW_SIZE, limits.stream_window),
            (MAX_HEADER_LIST_SIZE, limits.head_bytes as u32),
        ]
    };
    out.extend_from_slice(&header(ours.len() * 6, Kind::Settings, 0, 0));
    for (name, value) in ours {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: u16, value: u32, from_server: bool) -> Result<Settings, Code> {
        let mut settings = Settings::default();
        let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        settings.read(&payload, from_server, |_| {}).map(|()| settings).map_err(|failure| failure.code)
    }

    #[test]
    fn values_and_their_limits() {
        for (name, value, from_server, code) in [
            (ENABLE_PUSH, 2, false, Code::PROTOCOL_ERROR),
            (ENABLE_PUSH, 1, true, Code::PROTOCOL_ERROR),
            (INITIAL_WINDOW_SIZE, 1 << 31, false, Code::FLOW_CONTROL_ERROR),
            (MAX_FRAME_SIZE, 16_383, false, Code::PROTOCOL_ERROR),
            (MAX_FRAME_SIZE, 1 << 24, false, Code::PROTOCOL_ERROR),
            (ENABLE_CONNECT_PROTOCOL, 2, true, Code::PROTOCOL_ERROR),
        ] {
            assert_eq!(read(name, value, from_server), Err(code), "{name} {value}");
        }
        assert_eq!(read(ENABLE_PUSH, 1, false), Ok(Settings::default()));
        assert_eq!(read(0x99, 7, true), Ok(Settings::default()));
        assert_eq!(read(MAX_FRAME_SIZE, 16_777_215, true).unwrap().frame_bytes, 16_777_215);
        assert!(read(ENABLE_CONNECT_PROTOCOL, 1, true).unwrap().extended_connect);
    }
}
