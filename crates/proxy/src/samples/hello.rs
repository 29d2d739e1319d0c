//! Fields of the first message of a TLS handshake (RFC 8446 section 4.1.2), read in passing: `req.ssl_sni` and its like.
//!
//! Nothing is decrypted and nothing is kept: the server for which the message is meant reads it all again. A message that is
//! split over records (RFC 8446 section 5.1) is put together.

use super::payload::{Raw, Read};
use crate::inspection::Side;
use std::borrow::Cow;
use terse_sample::{ArgList, Env, Fetch, Needs, Octets, Type, Value};

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("req.ssl_sni", Type::Str, "The server's name in a TLS client's first message.", |_, env| {
        hello(env, |hello| server_name(find(hello.extensions, SERVER_NAME)?)).map(Value::str)
    })
    .also(&["req_ssl_sni"])
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::each(
        "req.ssl_alpn",
        Type::Str,
        "The protocols in a TLS client's first message, the preferred one first.",
        first_protocol,
        protocols,
    )
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("req.ssl_ec_ext", Type::Bool, "True when a TLS client's first message names elliptic curves.", |_, env| {
        hello(env, |hello| find(hello.extensions, GROUPS)).map(|_| Value::Bool(true))
    })
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one(
        "req.ssl_st_ext",
        Type::Int,
        "Tickets in a TLS client's first message: 0 knows none, 1 would take one, 2 has one.",
        |_, env| {
            hello(env, |hello| match extension(hello.extensions, TICKET)? {
                None => Some(0),
                Some([]) => Some(1),
                Some(_) => Some(2),
            })
            .map(Value::Int)
        },
    )
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("req.ssl_cipherlist", Type::Bin, "The suites of ciphers in a TLS client's first message.", |_, env| {
        hello(env, |hello| Some(hello.ciphers)).map(binary)
    })
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("req.ssl_supported_groups", Type::Bin, "The groups in a TLS client's first message.", |_, env| {
        hello(env, |hello| list(find(hello.extensions, GROUPS)?)).map(binary)
    })
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("req.ssl_sigalgs", Type::Bin, "The algorithms of signatures in a TLS client's first message.", |_, env| {
        hello(env, |hello| list(find(hello.extensions, SIGNATURES)?)).map(binary)
    })
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("req.ssl_keyshare_groups", Type::Bin, "The groups of the keys in a TLS client's first message.", |_, env| {
        hello(env, |hello| key_groups(list(find(hello.extensions, KEY_SHARES)?)?)).map(|groups| Value::Bin(Octets::from(groups)))
    })
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one(
        "req.ssl_ver",
        Type::Int,
        "The version in a TLS client's first message: the major one, times 65536, and the minor.",
        |_, env| {
            let raw = Raw::of(env, Some(Side::Request))?;
            let version = match raw.bytes.first() {
                Some(&HANDSHAKE) => message(&raw, None).and_then(hello_version),
                _ => version(raw.bytes),
            };
            raw.settle(version).map(Value::Int)
        },
    )
    .also(&["req_ssl_ver"])
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("req.ssl_hello_type", Type::Int, "The type of a TLS client's first message: 1 is ClientHello.", |_, env| {
        handshake(env, Side::Request)
    })
    .also(&["req_ssl_hello_type"])
    .needs(Needs::BYTES.or(Needs::CLIENT)),
    Fetch::one("res.ssl_hello_type", Type::Int, "The type of a TLS server's first message: 2 is ServerHello.", |_, env| {
        handshake(env, Side::Response)
    })
    .also(&["rep_ssl_hello_type"])
    .needs(Needs::BYTES.or(Needs::RESPONSE)),
];

/// Extensions (RFC 8446 section 4.2).
const SERVER_NAME: u16 = 0;
const GROUPS: u16 = 10;
const SIGNATURES: u16 = 13;
const PROTOCOLS: u16 = 16;
const TICKET: u16 = 35;
const KEY_SHARES: u16 = 51;

/// The parts of a client's first message that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hello<'a> {
    ciphers: &'a [u8],
    extensions: &'a [u8],
}

/// A value of the client's first message, once all of the message is there.
fn hello<'a, T>(env: &Env<'a>, get: impl FnOnce(Hello<'a>) -> Option<T>) -> Option<T> {
    let raw = Raw::of(env, Some(Side::Request))?;
    raw.settle(message(&raw, Some(CLIENT_HELLO)).and_then(client_hello)).and_then(get)
}

fn binary(bytes: &[u8]) -> Value<'_> {
    Value::Bin(Octets::from(bytes))
}

/// The first handshake message: its type, its length and its body.
fn message<'a>(raw: &Raw<'a>, wanted: Option<u8>) -> Read<&'a [u8]> {
    first_message(raw.bytes, wanted).and_then(|message| match message {
        Cow::Borrowed(message) => Read::Found(message),
        Cow::Owned(message) => Read::Found(raw.keep(message)),
    })
}

/// The same, of these records, once all of it is there; `wanted`: nothing but this type.
fn first_message(mut records: &[u8], wanted: Option<u8>) -> Read<Cow<'_, [u8]>> {
    let mut joined = Cow::Borrowed(&[][..]);
    loop {
        let Fragment { bytes, is_whole, behind } = match fragment(records) {
            Read::Found(fragment) => fragment,
            Read::More => return Read::More,
            Read::Never => return Read::Never,
        };
        match joined.is_empty() {
            true => joined = Cow::Borrowed(bytes),
            false => joined.to_mut().extend_from_slice(bytes),
        }
        if wanted.is_some_and(|wanted| joined.first().is_some_and(|kind| *kind != wanted)) {
            return Read::Never;
        }
        if let [_, a, b, c, rest @ ..] = &*joined {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if rest.len() >= length {
                let end = MESSAGE_HEAD + length;
                return Read::Found(match joined {
                    Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..end).unwrap_or(bytes)),
                    Cow::Owned(mut bytes) => {
                        bytes.truncate(end);
                        Cow::Owned(bytes)
                    }
                });
            }
        }
        if !is_whole {
            return Read::More;
        }
        records = behind;
    }
}

/// The part of a handshake in a record.
struct Fragment<'a> {
    bytes: &'a [u8],
    is_whole: bool,
    behind: &'a [u8],
}

/// The first record, as far as it is there.
fn fragment(bytes: &[u8]) -> Read<Fragment<'_>> {
    if bytes.first().is_some_and(|kind| *kind != HANDSHAKE) || bytes.get(1).is_some_and(|major| *major < 3) {
        return Read::Never;
    }
    let Some((length, rest)) = bytes.get(3..).and_then(u16_of) else { return Read::More };
    if !(1..=LARGEST_RECORD).contains(&length) {
        return Read::Never;
    }
    Read::Found(match rest.split_at_checked(length.into()) {
        Some((bytes, behind)) => Fragment { bytes, is_whole: true, behind },
        None => Fragment { bytes: rest, is_whole: false, behind: b"" },
    })
}

/// The parts of a whole message that is a ClientHello.
fn client_hello(message: &[u8]) -> Read<Hello<'_>> {
    message.get(MESSAGE_HEAD..).and_then(parts).map_or(Read::Never, Read::Found)
}

/// The version that a whole message begins with.
fn hello_version(message: &[u8]) -> Read<i64> {
    match message.get(MESSAGE_HEAD..) {
        Some([major, minor, ..]) => Read::Found(number(*major, *minor)),
        _ => Read::Never,
    }
}

/// The parts of a whole ClientHello.
fn parts(message: &[u8]) -> Option<Hello<'_>> {
    let ([major, minor], rest) =
        message.split_at_checked(34).map(|(head, rest)| (head.first_chunk(), rest)).and_then(|(v, r)| Some((v?, r)))?;
    if (*major, *minor) < (3, 1) {
        return None;
    }
    let (session, rest) = short(rest)?;
    if session.len() > 32 {
        return None;
    }
    let (ciphers, rest) = long(rest).filter(|(ciphers, _)| ciphers.len() >= 2)?;
    let (_, rest) = short(rest).filter(|(methods, _)| !methods.is_empty())?;
    let (extensions, _) = long(rest)?;
    Some(Hello { ciphers, extensions })
}

const HANDSHAKE: u8 = 0x16;
const CLIENT_HELLO: u8 = 1;
/// A message's type and length.
const MESSAGE_HEAD: usize = 4;

/// The content of an extension: `Some(None)` when it is not there, `None` when the list of extensions is broken.
fn extension(mut all: &[u8], wanted: u16) -> Option<Option<&[u8]>> {
    while all.len() >= 4 {
        let (kind, rest) = u16_of(all)?;
        let (data, rest) = long(rest)?;
        if kind == wanted {
            return Some(Some(data));
        }
        all = rest;
    }
    Some(None)
}

fn find(all: &[u8], wanted: u16) -> Option<&[u8]> {
    extension(all, wanted)?
}

/// The first name of the list, when it is the name of a host (RFC 6066 section 3).
fn server_name(data: &[u8]) -> Option<&[u8]> {
    match list(data)? {
        [0, name @ ..] => Some(long(name)?.0),
        _ => None,
    }
}

/// The entries after the length of their list.
fn list(data: &[u8]) -> Option<&[u8]> {
    long(data).map(|(entries, _)| entries).filter(|entries| entries.len() >= 2)
}

/// The group of each key (RFC 8446 section 4.2.8).
fn key_groups(mut entries: &[u8]) -> Option<Vec<u8>> {
    let mut groups = Vec::new();
    while let Some((group, rest)) = entries.split_first_chunk::<2>() {
        groups.extend_from_slice(group);
        entries = long(rest)?.1;
    }
    Some(groups)
}

fn first_protocol<'a>(_: &'a ArgList, env: &Env<'a>) -> Option<Value<'a>> {
    let names = hello(env, |hello| list(find(hello.extensions, PROTOCOLS)?))?;
    short(names).map(|(name, _)| Value::str(name))
}

fn protocols<'a>(_: &'a ArgList, env: &Env<'a>, visit: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    let Some(mut names) = hello(env, |hello| list(find(hello.extensions, PROTOCOLS)?)) else { return false };
    while let Some((name, rest)) = short(names) {
        if visit(Value::str(name)) {
            return true;
        }
        names = rest;
    }
    false
}

/// The type of the handshake message that comes first, once all of it is there.
fn handshake<'a>(env: &Env<'a>, side: Side) -> Option<Value<'a>> {
    let raw = Raw::of(env, Some(side))?;
    let kind = match raw.bytes.first() {
        Some(&HANDSHAKE) => message(&raw, None).and_then(|message| message.first().map_or(Read::Never, |kind| Read::Found(*kind))),
        _ => handshake_type(raw.bytes),
    };
    raw.settle(kind).map(|kind| Value::Int(kind.into()))
}

/// The same where the first record is no handshake record.
fn handshake_type(bytes: &[u8]) -> Read<u8> {
    let Some(kind) = bytes.first() else { return Read::More };
    if !is_record(*kind) {
        return Read::Never;
    }
    let [_, major, _, high, low, kind, a, b, c, rest @ ..] = bytes else { return Read::More };
    let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
    match () {
        () if *major < 3 || u16::from_be_bytes([*high, *low]) < 4 => Read::Never,
        () if rest.len() < length => Read::More,
        () => Read::Found(*kind),
    }
}

/// The version of the first message where its record is no handshake record: of SSL 3 and TLS, or of SSL 2 in its own frame.
fn version(bytes: &[u8]) -> Read<i64> {
    let Some(kind) = bytes.first() else { return Read::More };
    if !is_record(*kind) {
        return old_version(bytes);
    }
    let [_, major, _, high, low, _, _, _, _, hello_major, hello_minor, ..] = bytes else { return Read::More };
    let length = u16::from_be_bytes([*high, *low]);
    match () {
        () if *major < 3 || !(6..=LARGEST_RECORD).contains(&length) => Read::Never,
        () if bytes.len() - 5 < usize::from(length) => Read::More,
        () => Read::Found(number(*hello_major, *hello_minor)),
    }
}

/// SSL 2: two bytes of length or three, the type, the version, and three lengths.
fn old_version(bytes: &[u8]) -> Read<i64> {
    let [first, second, rest @ ..] = bytes else { return Read::More };
    let (length, padding, rest) = match (first & 0x80 != 0, rest) {
        (true, rest) => (usize::from(first & 0x7f) << 8 | usize::from(*second), 0, rest),
        (false, [padding, rest @ ..]) => (usize::from(first & 0x3f) << 8 | usize::from(*second), usize::from(*padding), rest),
        (false, []) => return Read::More,
    };
    let [kind, rest @ ..] = rest else { return Read::More };
    if *kind != CLIENT_HELLO {
        return Read::Never;
    }
    let [major, minor, a, b, c, d, e, f, rest @ ..] = rest else { return Read::More };
    let of = |high: &u8, low: &u8| usize::from(u16::from_be_bytes([*high, *low]));
    let (ciphers, session, challenge) = (of(a, b), of(c, d), of(e, f));
    let lengths = ciphers + session + challenge;
    match () {
        () if ciphers % 3 != 0 || !matches!(session, 0 | 16) || !(16..=32).contains(&challenge) => Read::Never,
        () if length != 9 + lengths => Read::Never,
        () if rest.len() < lengths + padding => Read::More,
        () => Read::Found(number(*major, *minor)),
    }
}

fn is_record(kind: u8) -> bool {
    matches!(kind, 0x14..=0x17 | 0xff)
}

fn number(major: u8, minor: u8) -> i64 {
    i64::from(major) << 16 | i64::from(minor)
}

/// Largest record: RFC 8446 section 5.2 and the allowance of older versions.
const LARGEST_RECORD: u16 = (1 << 14) + 2048;

/// Splits off a number of 16 bits.
fn u16_of(bytes: &[u8]) -> Option<(u16, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u16::from_be_bytes(*number), rest))
}

/// Splits off the bytes whose number the 8 bits before them give.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked((*length).into())
}

/// Splits off the bytes whose number the 16 bits before them give.
fn long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = u16_of(bytes)?;
    rest.split_at_checked(length.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with these extensions.
    fn message(extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let mut all = Vec::new();
        for (kind, data) in extensions {
            all.extend(kind.to_be_bytes());
            all.extend((data.len() as u16).to_be_bytes());
            all.extend(*data);
        }
        let mut body = [&[3, 3][..], &[7; 32], &[0], &[0, 4, 0x13, 1, 0x13, 2], &[1, 0]].concat();
        body.extend((all.len() as u16).to_be_bytes());
        body.extend(all);
        let length = (body.len() as u32).to_be_bytes();
        let message = [&[1], &length[1..], &body[..]].concat();
        [&[22, 3, 1], &(message.len() as u16).to_be_bytes()[..], &message[..]].concat()
    }

    fn usual() -> Vec<u8> {
        message(&[(35, b""), (0, b"\0\x0e\0\0\x0bexample.com"), (16, b"\0\x0c\x02h2\x08http/1.1"), (10, b"\0\x02\0\x1d")])
    }

    fn found(bytes: &[u8]) -> Hello<'_> {
        match hello_of(bytes) {
            Read::Found(hello) => hello,
            other => panic!("{other:?}"),
        }
    }

    /// The hello of records, which lives as long as the test where they cut it.
    fn hello_of(bytes: &[u8]) -> Read<Hello<'_>> {
        first_message(bytes, Some(CLIENT_HELLO)).and_then(|message| {
            client_hello(match message {
                Cow::Borrowed(message) => message,
                Cow::Owned(message) => message.leak(),
            })
        })
    }

    fn kind_of(bytes: &[u8]) -> Read<u8> {
        first_message(bytes, None).and_then(|message| Read::Found(message[0]))
    }

    /// The records of a message, cut after so many bytes each.
    fn cut(message: &[u8], most: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[22, 3, 1], &(part.len() as u16).to_be_bytes()[..], part].concat();
        message.chunks(most).flat_map(record).collect()
    }

    #[test]
    fn what_a_client_says() {
        let bytes = usual();
        let hello = found(&bytes);
        assert_eq!(server_name(find(hello.extensions, SERVER_NAME).unwrap()), Some(&b"example.com"[..]));
        assert_eq!(extension(hello.extensions, TICKET), Some(Some(&b""[..])));
        assert_eq!(extension(hello.extensions, KEY_SHARES), Some(None));
        assert_eq!(list(find(hello.extensions, GROUPS).unwrap()), Some(&b"\0\x1d"[..]));
        assert_eq!(hello.ciphers, b"\x13\x01\x13\x02");
        assert_eq!(key_groups(b"\0\x1d\0\x01x\x11\xec\0\x02yy"), Some(b"\0\x1d\x11\xec".to_vec()));
        assert_eq!(first_message(&bytes, None).and_then(|message| hello_version(&message)), Read::Found(0x3_0003));
        assert_eq!(kind_of(&bytes), Read::Found(1));
    }

    #[test]
    fn records_cut_messages_anywhere() {
        let whole = usual();
        for most in 1..whole.len() - 5 {
            let bytes = cut(&whole[5..], most);
            let name = find(found(&bytes).extensions, SERVER_NAME).and_then(server_name);
            assert_eq!(name, Some(&b"example.com"[..]), "{most}");
            for length in [0, 1, 4, 5, 6, bytes.len() / 2, bytes.len() - 1] {
                assert_eq!(hello_of(&bytes[..length]), Read::More, "{most} {length}");
                assert_eq!(kind_of(&bytes[..length]), Read::More, "{most} {length}");
            }
            // A record of another type cuts off a message for good.
            let broken = [&bytes[..most + 5], &[21, 3, 1, 0, 2, 1, 0]].concat();
            assert_eq!(hello_of(&broken), Read::Never, "{most}");
        }
        // Bytes after the message in its record are another message.
        let two = [&whole[5..], &[20, 0, 0, 0]].concat();
        assert_eq!(found(&cut(&two, 1 << 14)), found(&whole));
    }

    #[test]
    fn a_part_of_it_is_waited_for() {
        let bytes = usual();
        for length in 0..bytes.len() {
            assert_eq!(hello_of(&bytes[..length]), Read::More, "{length}");
            assert_eq!(kind_of(&bytes[..length]), Read::More, "{length}");
        }
    }

    #[test]
    fn lengths_that_lie_lead_nowhere() {
        let bytes = usual();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                // Whatever comes of it, it comes: no panic, and nothing beyond the bytes.
                if let Read::Found(hello) = hello_of(&broken) {
                    let name = find(hello.extensions, SERVER_NAME).and_then(server_name).unwrap_or_default();
                    assert!(name.len() <= broken.len());
                    for wanted in [GROUPS, PROTOCOLS, KEY_SHARES] {
                        assert!(find(hello.extensions, wanted).is_none_or(|data| data.len() < broken.len()));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_tls_is_told_at_once() {
        assert_eq!(hello_of(b"GET / HTTP/1.1\r\n"), Read::Never);
        assert_eq!(hello_of(b"\x16\x02"), Read::Never);
        assert_eq!(hello_of(b"\x16\x03\x01\0\0"), Read::Never);
        assert_eq!(hello_of(b"\x16\x03\x01\0\x05\x02"), Read::Never);
        assert_eq!(handshake_type(b"SSH-2.0"), Read::Never);
        assert_eq!(version(b"SSH-2.0-OpenSSH"), Read::Never);
    }

    #[test]
    fn ssl_2_has_a_frame_of_its_own() {
        let hello = [&[0x80, 28, 1, 3, 1, 0, 3, 0, 0, 0, 16, 0, 0, 1][..], &[9; 16]].concat();
        assert_eq!(version(&hello), Read::Found(0x3_0001));
        for length in 0..hello.len() {
            assert_eq!(version(&hello[..length]), Read::More, "{length}");
        }
    }
}
