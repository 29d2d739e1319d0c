//! The HTTP/1 codec: heads, chunked bodies, and the fields that end at each hop.

pub mod chunked;
pub mod encode;
pub mod head;
mod lines;
pub(crate) mod normal;
mod reading;
mod spelling;
pub mod target;

pub use chunked::{ChunkDecoder, Step};
pub use head::{MAX_FIELDS, Parsed, parse_request, parse_request_with, parse_response, too_large};
pub use reading::Reading;
pub use spelling::Spellings;
pub use target::Targets;
