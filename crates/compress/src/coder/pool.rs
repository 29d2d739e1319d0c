//! States of coders, kept for the next body.

/// How the deflate family's incremental coder is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// `tune.zlib.windowsize`.
    pub window_bits: u8,
    /// `tune.zlib.memlevel`.
    pub memory_level: u8,
}

/// Coders' states, by kind and level.
pub struct Pool {
    _state: (),
}

impl Pool {
    /// An empty pool.
    pub fn new(_tuning: Tuning) -> Pool {
        unreachable!("not built yet")
    }
}
