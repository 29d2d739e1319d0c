//! Bytes of sockets: transports, buffers, timeouts, and the frames of HTTP/2.
//!
//! Exchanges, rules and proxies are not known here.

pub mod buffer;
pub mod cancel;
pub mod clock;
pub mod http2;
pub mod pause;
pub mod pipe;
pub mod silence;
pub mod tcp_info;
pub mod timer;
pub mod transport;
pub mod turn;
pub mod websocket;

pub use buffer::{BULK_BYTES, Buffer, Pool, Pools, TINY_BYTES};
pub use cancel::Cancel;
pub use http2::{Http2Stream, Multiplexed};
pub use pipe::{Pipe, PipeLimit, Pipes};
pub use silence::keep_silent;
pub use timer::{Timer, Wheel};
pub use transport::{Reader, Transport, Writer};
