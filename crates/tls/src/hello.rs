//! Content of clients' hellos, kept to tell clients apart by it: `tune.ssl.capture-buffer-size`.
//!
//! OpenSSL shows a callback of hellos only the extensions that it knows itself. So the message is read as it came, and
//! once: of a client that was asked for another hello the first one counts.

use crate::raw;
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslContextBuilder, SslRef};
use std::sync::{Arc, LazyLock};

/// A client's hello (RFC 8446 section 4.1.2). Lists are as they came, without their lengths; a missing list is empty.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Hello {
    /// The version at the front, which is TLS 1.2 in a hello of TLS 1.3.
    pub version: u16,
    /// Ciphers, two bytes each.
    pub ciphers: Vec<u8>,
    /// The XXH64 of all of them, also of those that are not kept.
    pub ciphers_hash: u64,
    /// The kinds of its extensions, two bytes each.
    pub extensions: Vec<u8>,
    /// Groups, two bytes each.
    pub groups: Vec<u8>,
    /// Formats of points, a byte each.
    pub point_formats: Vec<u8>,
    /// Algorithms of signatures, two bytes each.
    pub signatures: Vec<u8>,
    /// Versions, two bytes each.
    pub versions: Vec<u8>,
}

static KEPT: LazyLock<Option<Index<Ssl, Arc<Hello>>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

/// Keeps the hellos of a context's connections, of the lists of each so many bytes.
pub(crate) fn keep(context: &mut SslContextBuilder, most_bytes: usize) -> Result<(), ErrorStack> {
    raw::on_message(context, most_bytes)
}

/// Takes a message of a handshake that a client has sent.
pub(crate) fn take(ssl: &mut SslRef, message: &[u8], most_bytes: usize) {
    if let Some(index) = *KEPT
        && ssl.ex_data(index).is_none()
        && let Some(hello) = Hello::parse(message, most_bytes)
    {
        ssl.set_ex_data(index, Arc::new(hello));
    }
}

/// The hello of a connection, if it is kept.
pub(crate) fn kept(ssl: &SslRef) -> Option<Arc<Hello>> {
    ssl.ex_data((*KEPT)?).cloned()
}

impl Hello {
    fn parse(message: &[u8], most_bytes: usize) -> Option<Hello> {
        let (head, body) = message.split_at_checked(4).filter(|(head, _)| head[0] == CLIENT_HELLO)?;
        let body = body.get(..usize::try_from(u32::from_be_bytes([0, head[1], head[2], head[3]])).ok()?)?;
        let (version, rest) = body.split_first_chunk::<2>()?;
        let (_session, rest) = sized(rest.get(RANDOM_BYTES..)?, 1)?;
        let (ciphers, rest) = sized(rest, 2)?;
        let (_compression, rest) = sized(rest, 1)?;
        // Hellos of old versions have no extensions.
        let mut rest = sized(rest, 2).unwrap_or_default().0;
        let mut kinds = Vec::new();
        let (mut groups, mut point_formats, mut versions, mut signatures) = Default::default();
        let list = |body, width| sized(body, width).unwrap_or_default().0;
        while let Some((kind, behind)) = rest.split_first_chunk::<2>() {
            let (body, behind) = sized(behind, 2)?;
            rest = behind;
            kinds.extend_from_slice(kind);
            match u16::from_be_bytes(*kind) {
                GROUPS => groups = list(body, 2),
                POINT_FORMATS => point_formats = list(body, 1),
                SIGNATURES => signatures = list(body, 2),
                VERSIONS => versions = list(body, 1),
                _ => {}
            }
        }
        let mut room = most_bytes;
        let mut cut = |list: &[u8], unit: usize| {
            let len = list.len().min(room) / unit * unit;
            // After a list that was cut, the next list gets no room.
            room = if len < list.len() { 0 } else { room - len };
            list[..len].to_vec()
        };
        // HAProxy's order: the last lists, which are cut first, are those that fingerprints need least.
        Some(Hello {
            version: u16::from_be_bytes(*version),
            ciphers: cut(ciphers, 2),
            ciphers_hash: xxhash_rust::xxh64::xxh64(ciphers, 0),
            extensions: cut(&kinds, 2),
            groups: cut(groups, 2),
            point_formats: cut(point_formats, 1),
            versions: cut(versions, 2),
            signatures: cut(signatures, 2),
        })
    }
}

/// The host name of the extension that asks for one (RFC 6066 section 3): a list of one entry, of type 0.
pub(crate) fn server_name(extension: &[u8]) -> Option<&[u8]> {
    let (entry, _) = sized(extension, 2)?;
    let (kind, rest) = entry.split_first()?;
    (*kind == 0).then(|| sized(rest, 2)).flatten().map(|(name, _)| name)
}

/// A list of two bytes each, without the meaningless values that clients insert (GREASE, RFC 8701).
pub fn without_grease(list: &[u8]) -> Vec<u8> {
    list.chunks(2).filter(|value| !matches!(value, [a, b] if a == b && a & 0xf == 0xa)).flatten().copied().collect()
}

/// The bytes that a length of so many bytes announces, and the bytes after them.
pub(crate) fn sized(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_at_checked(width)?;
    rest.split_at_checked(len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
}

const CLIENT_HELLO: u8 = 1;
const RANDOM_BYTES: usize = 32;
/// The number of the extension that asks for a host name.
pub(crate) const SERVER_NAME: u16 = 0;
const GROUPS: u16 = 10;
const POINT_FORMATS: u16 = 11;
const SIGNATURES: u16 = 13;
const VERSIONS: u16 = 43;

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Vec<u8> {
        let extensions =
            b"\x1a\x1a\0\0\0\x0a\0\x06\0\x04\x0a\x0a\0\x1d\0\x0b\0\x02\x01\0\0\x0d\0\x04\0\x02\x04\x03\0\x2b\0\x03\x02\x03\x04";
        let body = [&[3, 3][..], &[7; 32], b"\0\0\x04\x2a\x2a\x13\x01\x01\0\0", &[extensions.len() as u8], extensions].concat();
        [&[1, 0, 0, body.len() as u8][..], &body].concat()
    }

    #[test]
    fn hellos_are_taken_apart() {
        let found = Hello::parse(&hello(), 100).unwrap();
        assert_eq!((found.version, &found.ciphers[..]), (0x303, &[0x2a, 0x2a, 0x13, 1][..]));
        assert_eq!(found.extensions, [0x1a, 0x1a, 0, 10, 0, 11, 0, 13, 0, 43]);
        assert_eq!((&found.groups[..], &found.point_formats[..]), (&[10, 10, 0, 0x1d][..], &[0][..]));
        assert_eq!((&found.signatures[..], &found.versions[..]), (&[4, 3][..], &[3, 4][..]));
        assert_eq!(without_grease(&found.ciphers), [0x13, 1]);
        assert_eq!(without_grease(&[0x1a, 0x2a, 0xfa, 0xfa, 0x1b, 0x1b]), [0x1a, 0x2a, 0x1b, 0x1b]);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let all = Hello::parse(&hello(), 100).unwrap();
        for most in 0..40 {
            let Hello { ciphers, ciphers_hash, extensions, groups, point_formats, signatures, versions, .. } =
                Hello::parse(&hello(), most).unwrap();
            assert_eq!(ciphers_hash, all.ciphers_hash);
            let lists = [&ciphers, &extensions, &groups, &point_formats, &signatures, &versions];
            assert!(lists.iter().map(|list| list.len()).sum::<usize>() <= most, "{most}");
            // The kept lists are the start of all lists, in this order.
            let whole = [&all.ciphers, &all.extensions, &all.groups, &all.point_formats, &all.versions, &all.signatures];
            let kept = [&ciphers, &extensions, &groups, &point_formats, &versions, &signatures];
            let (whole, kept) = (whole.map(|list| &list[..]).concat(), kept.map(|list| &list[..]).concat());
            assert!(whole.starts_with(&kept) && kept.len() + 1 >= most.min(whole.len()), "{most}");
        }
    }

    #[test]
    fn what_is_cut_off_is_no_hello() {
        let whole = hello();
        for len in 0..whole.len() {
            assert_eq!(Hello::parse(&whole[..len], 100), None, "{len}");
        }
        assert_eq!(Hello::parse(&[&[2], &whole[1..]].concat(), 100), None);
    }
}
