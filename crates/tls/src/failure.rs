//! Reasons why a handshake failed: HAProxy's numbers, names and sentences (`fc_err` and its like), and OpenSSL's own error.

use std::ffi::c_ulong;

/// A handshake that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Cause of the failure.
    pub cause: Cause,
    /// OpenSSL's first error, packed as it packs them; 0: it had none.
    pub library: c_ulong,
}

/// Cause of a failed handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The other end closed before it had sent anything.
    Empty = 24,
    /// The other end closed, or the connection broke, in the middle.
    Abort = 25,
    /// The handshake took too long.
    Timeout = 26,
    /// A certificate above the other end's own cannot be verified.
    Authority = 30,
    /// The other end's certificate cannot be verified.
    Certificate = 31,
    /// The server's certificate is for another name.
    Mismatch = 33,
    /// Any other cause: no version or cipher in common, garbage, an alert.
    Handshake = 34,
}

impl Cause {
    /// HAProxy's number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// HAProxy's name.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Empty => "SSL_EMPTY",
            Cause::Abort => "SSL_ABORT",
            Cause::Timeout => "SSL_TIMEOUT",
            Cause::Authority => "SSL_CA_FAIL",
            Cause::Certificate => "SSL_CRT_FAIL",
            Cause::Mismatch => "SSL_MISMATCH_SNI",
            Cause::Handshake => "SSL_HANDSHAKE",
        }
    }

    /// HAProxy's sentence, as logs have it.
    pub const fn text(self) -> &'static str {
        match self {
            Cause::Empty => "Connection closed during SSL handshake",
            Cause::Abort => "Connection error during SSL handshake",
            Cause::Timeout => "Timeout during SSL handshake",
            Cause::Authority => "SSL client CA chain cannot be verified",
            Cause::Certificate => "SSL client certificate not trusted",
            Cause::Mismatch => "Server presented an SSL certificate different from the expected one",
            Cause::Handshake => "SSL handshake failure",
        }
    }
}

impl Failure {
    /// OpenSSL's number of the reason, without the part of the library that it comes from.
    pub fn reason(&self) -> u64 {
        self.library & 0x7f_ffff
    }

    /// OpenSSL's text of its error, as `openssl errstr` has it; `None` where it had none.
    pub fn words(&self) -> Option<String> {
        (self.library != 0).then(|| crate::raw::error_text(self.library))
    }
}
