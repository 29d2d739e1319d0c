//! Facts of a handshake that its session remembers beside OpenSSL's own, so that rules see the same when it is resumed.
//!
//! It travels in the session, in memory as in a ticket:
//!
//! ```text
//! signature | authority | authority_depth | certificate | root: length, DER of its name | above: certificates in DER
//!     4     |     4     |        4        |      4      |   2                           |
//! ```
//!
//! It is written while the handshake is made, and only then: later, other threads may have the session.

use crate::raw;
use crate::verification::{self, Errors, Verification};
use openssl::ssl::SslRef;
use openssl::x509::{X509Ref, X509StoreContextRef};

/// The remembered facts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Remembered<'a> {
    /// The kind of key that we signed with, by OpenSSL's number.
    pub(crate) signature: Option<i32>,
    /// Errors of the client's certificates that were tolerated.
    pub(crate) errors: Errors,
    /// The name of the root of the client's chain, in DER.
    pub(crate) root: &'a [u8],
    /// The certificates above the client's own, as they were sent, in DER.
    pub(crate) above: &'a [u8],
}

/// The most bytes that a session carries. Clients with OpenSSL 3.0 give up at tickets of 16 KB, in which the client's own
/// certificate is, too. A session that would carry more is not resumed.
const MOST_BYTES: usize = 8 * 1024;

impl Remembered<'_> {
    fn parse(note: &[u8]) -> Option<Remembered<'_>> {
        let number = |note: &mut &[u8]| {
            let (number, rest) = note.split_first_chunk()?;
            *note = rest;
            Some(i32::from_be_bytes(*number))
        };
        let mut rest = note;
        let signature = number(&mut rest).map(|signature| Some(signature).filter(|signature| *signature != 0))?;
        let errors = Errors { authority: number(&mut rest)?, authority_depth: number(&mut rest)?, certificate: number(&mut rest)? };
        let (len, rest) = rest.split_first_chunk()?;
        let (root, above) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        Some(Remembered { signature, errors, root, above })
    }

    /// Encodes it; `None` where it is too long.
    fn encode(&self) -> Option<Vec<u8>> {
        let Remembered { signature, errors: Errors { authority, authority_depth, certificate }, root, above } = self;
        let numbers = [signature.unwrap_or_default(), *authority, *authority_depth, *certificate];
        let mut note: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        note.extend_from_slice(&u16::try_from(root.len()).ok()?.to_be_bytes());
        note.extend_from_slice(root);
        note.extend_from_slice(above);
        Some(note).filter(|note| note.len() <= MOST_BYTES)
    }

    fn write(&self, ssl: &SslRef) {
        let Some(session) = ssl.session() else { return };
        match self.encode() {
            Some(note) => raw::set_session_note(session, &note),
            None => raw::end_session(session),
        }
    }
}

/// The facts that a connection's session remembers.
pub(crate) fn of(ssl: &SslRef) -> Option<Remembered<'_>> {
    Remembered::parse(raw::session_note(ssl.session()?))
}

/// Remembers a client's certificates, once they are verified as far as that has come.
pub(crate) fn note(ssl: &SslRef, chain: &X509StoreContextRef) {
    let der = |certificate: &X509Ref| certificate.to_der().ok();
    let root = chain.chain().and_then(|chain| chain.iter().last()?.subject_name().to_der().ok()).unwrap_or_default();
    let sent = raw::sent_certificates(chain).into_iter().flatten().skip(1);
    let above: Vec<u8> = sent.filter_map(der).flatten().collect();
    let errors = verification::of(ssl).map(Verification::errors).unwrap_or_default();
    Remembered { signature: None, errors, root: &root, above: &above }.write(ssl);
}

/// Remembers our own part before a ticket is made.
pub(crate) fn complete(ssl: &SslRef) {
    if !ssl.session_reused() {
        let signature = raw::signature_kind(ssl);
        Remembered { signature, ..of(ssl).unwrap_or_default() }.write(ssl);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let errors = Errors { authority: 19, authority_depth: 2, certificate: 10 };
        let all = Remembered { signature: Some(408), errors, root: b"root", above: b"above" };
        for remembered in [all, Remembered { root: b"", ..all }, Remembered { above: b"", signature: None, ..all }] {
            let note = remembered.encode().unwrap();
            assert_eq!(Remembered::parse(&note), Some(remembered));
            let least = note.len() - remembered.above.len();
            (0..least).for_each(|len| assert_eq!(Remembered::parse(&note[..len]), None, "{len}"));
        }
        assert_eq!(Remembered { above: &[0; MOST_BYTES], ..all }.encode(), None);
    }
}
