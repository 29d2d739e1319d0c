//! The HTTP/1 codec: heads, bodies in chunks, and what ends at each hop.

pub mod chunked;
pub mod encode;
pub mod head;
pub mod hop;
mod lines;
pub mod malformed;
pub(crate) mod normal;
mod reading;
mod spelling;
pub mod target;

pub use chunked::{ChunkDecoder, Step};
pub use head::{MAX_FIELDS, Parsed, parse_request, parse_request_with, parse_response, unframe};
pub use hop::{Persistence, WEBSOCKET_ACCEPT, WEBSOCKET_KEY, is_asked_for, lacks_websocket_key, says_close};
pub use malformed::Malformed;
pub use reading::{Conformance, Reading};
pub use spelling::Spellings;
pub use target::Targets;
