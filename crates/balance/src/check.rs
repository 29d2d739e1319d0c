//! Health checks.

use crate::farm::Farm;
use std::sync::Arc;

/// What a check says and expects.
#[derive(Clone, Default, Debug)]
pub struct Probe {}

/// Checks the servers of all farms, for ever. One task for each checked server, spawned on the runtime that polls this (the control
/// thread's); dropping the future ends them.
pub async fn run(_farms: Vec<Arc<Farm>>) {
    unreachable!("not built yet")
}
