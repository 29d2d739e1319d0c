//! What the stats socket prints about servers.

use crate::farm::Farm;
use crate::server::Server;
use std::time::{Duration, Instant};

/// The line of `show servers state` (format version 1), without its line end.
pub fn state_line(_farm: &Farm, _server: &Server, _now: Instant) -> String {
    unreachable!("not built yet")
}

/// The word in `show stat`'s column `status`: `UP`, `DOWN 1/2`, `no check`, `MAINT`, `DRAIN`, ...
pub fn status(_server: &Server) -> String {
    unreachable!("not built yet")
}

/// For how long the server has been in its state (`lastchg`).
pub fn since_change(_farm: &Farm, _server: &Server, _now: Instant) -> Duration {
    unreachable!("not built yet")
}

/// How long it was down altogether (`downtime`).
pub fn downtime(_farm: &Farm, _server: &Server, _now: Instant) -> Duration {
    unreachable!("not built yet")
}
