//! Functions that need a library of cryptography. Converters encrypt with AES and check JSON Web Tokens (the system's
//! OpenSSL); users have passwords (the system's libcrypt).
//!
//! It is a crate of its own so that nothing below it, the language of expressions above all, depends on OpenSSL. Keys and
//! certificates in files are read while the configuration is, and never again.
//!
//! Invariants:
//! * A secret that an expression is checked against is compared in a time that does not reveal where it differs.
//! * A file that holds a public key is never taken for the secret of an HMAC, whatever algorithm a token names.
//! * No content of a token makes a key valid that the configuration does not name for it.

#![allow(clippy::ptr_arg, reason = "checks of arguments share one signature, and some of them add arguments")]

mod aes;
mod allowed;
mod jwe;
mod jws;
mod key;
mod users;

use terse_config::Keyword;
use terse_sample::{Converter, Fetch};

/// The keywords of this crate.
pub const KEYWORDS: &[&[Keyword]] = &[allowed::KEYWORDS, users::KEYWORDS];

/// All tables of this crate.
pub const CONVERTERS: &[&[Converter]] = &[aes::CONVERTERS, jws::CONVERTERS, jwe::CONVERTERS];

/// The fetches of this crate.
pub const FETCHES: &[&[Fetch]] = &[users::FETCHES];

#[cfg(test)]
mod testing;
#[cfg(test)]
mod vectors;
