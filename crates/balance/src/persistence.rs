//! Persistence: the cookie that brings a client back to its server.

use std::sync::Arc;

/// `cookie <name> ...`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CookieSettings {
    /// Its name.
    pub name: Arc<str>,
    /// What is done with it.
    pub mode: CookieMode,
    /// `indirect`: the server does not see it, and its own is taken out.
    pub indirect: bool,
    /// `nocache`: an answer that gets one is kept from caches.
    pub nocache: bool,
    /// `postonly`: only answers to POST get one.
    pub postonly: bool,
    /// `preserve`: one that the server sends is left alone.
    pub preserve: bool,
    /// What follows the value in Set-Cookie: `; path=/; domain=...; HttpOnly; Secure; <attributes>`.
    pub attributes: Arc<str>,
}

/// What is done with the persistence cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CookieMode {
    /// Only read: the server sets it.
    Passive,
    /// `rewrite`: the server's is given our value.
    Rewrite,
    /// `insert`: we set it.
    Insert,
    /// `prefix`: the server's own cookie is given a prefix.
    Prefix,
}

/// What a request's cookie said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Affinity {
    /// The server that must be used, by index.
    pub server: Option<usize>,
    /// What was found, for the log.
    pub found: CookieFound,
}

/// The third letter of the termination state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CookieFound {
    /// No persistence cookie is configured.
    Off = b'-',
    /// The request had none.
    None = b'N',
    /// It matches no server.
    Invalid = b'I',
    /// Its server is down.
    Down = b'D',
    /// Its server is used.
    Valid = b'V',
    /// It was there, but another rule chose.
    Unused = b'U',
}

/// The fourth letter of the termination state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CookieSent {
    /// No persistence cookie is configured.
    Off = b'-',
    /// The response has none.
    None = b'N',
    /// The server sent one, and it was left as it is.
    Passed = b'P',
    /// The server sent one, and it was taken out.
    Deleted = b'D',
    /// One was inserted.
    Inserted = b'I',
    /// The server sent one, and it was rewritten.
    Rewritten = b'R',
}
