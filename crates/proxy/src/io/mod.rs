//! Bytes between sockets: time-outs, buffers, transports, and bodies on their way.

pub mod buffer;
pub mod clock;
pub mod held;
pub mod http2;
pub mod pause;
pub mod pipe;
pub mod replay;
pub mod silence;
pub mod sink;
pub mod source;
pub mod tcp_info;
pub mod timer;
pub mod transport;
pub mod turn;

pub use buffer::{BULK_BYTES, Buffer, Pool, Pools, TINY_BYTES};
pub use held::{Held, Listener, Pieces};
pub use http2::{Http2Stream, Multiplexed};
pub use pipe::{Pipe, PipeLimit, Pipes};
pub use silence::keep_silent;
pub use sink::{Peer, Sink};
pub use source::{Broken, Incoming, Part, Source};
pub use timer::{Timer, Wheel};
pub use transport::{Reader, Transport, Writer};
