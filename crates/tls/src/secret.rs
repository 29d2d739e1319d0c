//! Bytes that must not be found in memory once they are given up.

use crate::raw;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes that are overwritten before their memory is given back, also where growth moves them.
#[derive(Default)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// No bytes, with room for so many.
    pub fn with_room(len: usize) -> Secret {
        Secret(Vec::with_capacity(len))
    }

    /// So many zeros, for the caller to fill.
    pub fn zeros(len: usize) -> Secret {
        Secret(vec![0; len])
    }

    /// Adds bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        let len = self.0.len() + bytes.len();
        if len > self.0.capacity() {
            let mut larger = Secret::with_room(len.max(2 * self.0.capacity()));
            larger.0.extend_from_slice(&self.0);
            *self = larger;
        }
        self.0.extend_from_slice(bytes);
    }

    /// Takes the first bytes, all of them if there are not so many.
    pub fn take_front(&mut self, len: usize) -> Secret {
        let len = len.min(self.0.len());
        let front = Secret::from(self.0[..len].to_vec());
        let rest = self.0.len() - len;
        self.0.copy_within(len.., 0);
        raw::wipe(&mut self.0[rest..]);
        self.0.truncate(rest);
        front
    }

    /// All of it as text, which is no longer overwritten, with room for the end of a line; bytes that are not UTF-8 are
    /// lost.
    pub fn into_text(mut self) -> String {
        let len = self.0.len();
        self.extend(b"\n");
        self.cut(len);
        String::from_utf8(std::mem::take(&mut self.0)).unwrap_or_else(|error| {
            drop(Secret(error.into_bytes()));
            String::new()
        })
    }

    /// Drops the bytes after the first `len`.
    pub fn cut(&mut self, len: usize) {
        if let Some(rest) = self.0.get_mut(len..) {
            raw::wipe(rest);
            self.0.truncate(len);
        }
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text.into_bytes())
    }
}

impl Deref for Secret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Secret {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl fmt::Write for Secret {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend(text.as_bytes());
        Ok(())
    }
}

impl Clone for Secret {
    fn clone(&self) -> Secret {
        Secret(self.0.clone())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.0.len() == other.0.len() && openssl::memcmp::eq(&self.0, &other.0)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        raw::wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_and_go() {
        let mut secret = Secret::default();
        for piece in ["one", "", " two", " three"] {
            secret.extend(piece.as_bytes());
        }
        assert_eq!(&*secret.take_front(4), b"one ");
        secret.cut(3);
        secret.cut(9);
        assert_eq!(&*secret, b"two");
        assert_eq!((&*secret.take_front(9), secret.len()), (&b"two"[..], 0));
        assert_eq!(format!("{:?}", Secret::from("key".to_owned())), "Secret(3 bytes)");
        let text = Secret::from("key".to_owned()).into_text();
        assert_eq!((&*text, text.capacity() > 3), ("key", true));
        assert_eq!(Secret::from(vec![0xff]).into_text(), "");
    }
}
