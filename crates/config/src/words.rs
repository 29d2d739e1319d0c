//! Lines and words.

use std::ops::Range;
use std::time::Duration;

/// One word of a line, unquoted and expanded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// Its bytes. `\xHH` may make any.
    pub bytes: Vec<u8>,
    /// The bytes of the line that it was made from.
    pub span: Range<usize>,
}

impl Word {
    /// The word as text; empty when it is not UTF-8, which no keyword is.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }
}

/// A duration as HAProxy writes it.
pub fn parse_time(_word: &str) -> Result<Duration, String> {
    Err("not built".into())
}

/// A number of bytes as HAProxy writes it.
pub fn parse_size(_word: &str) -> Result<u64, String> {
    Err("not built".into())
}
