//! Bodies: bytes in pieces that are in memory, and listeners on a body that passes.

/// Bytes in pieces.
pub trait Pieces: Send + Sync {
    /// A piece; empty after the last piece.
    fn piece(&self, index: usize) -> &[u8];
}

/// Hears a body on its way.
pub trait Listener {
    /// Hears bytes of it; false where it wants no more of them, and is dropped.
    fn hear(&mut self, data: &[u8]) -> bool;

    /// Signals the end of the body.
    fn end(self: Box<Self>);
}
