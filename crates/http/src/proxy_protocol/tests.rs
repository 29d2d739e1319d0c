//! Both versions, well formed and not.

use super::*;
use proptest::prelude::*;

fn addresses(from: &str, to: &str) -> Ends {
    Some((from.parse().unwrap(), to.parse().unwrap()))
}

fn read(bytes: &[u8]) -> Result<Option<(usize, Ends)>, Wrong> {
    parse(bytes).map(|head| head.map(|(length, told)| (length, told.addresses)))
}

#[test]
fn lines_of_version_1() {
    for (line, told) in [
        ("PROXY TCP4 192.0.2.1 203.0.113.9 1 65535\r\n", addresses("192.0.2.1:1", "203.0.113.9:65535")),
        ("PROXY TCP6 2001:db8::1 ::1 4000 443\r\n", addresses("[2001:db8::1]:4000", "[::1]:443")),
        ("PROXY UNKNOWN\r\n", None),
        ("PROXY UNKNOWN ffff::1 and more\r\n", None),
    ] {
        assert_eq!(read(line.as_bytes()), Ok(Some((line.len(), told))), "{line}");
        assert_eq!(read(format!("{line}GET /").as_bytes()), Ok(Some((line.len(), told))), "{line}");
        for end in 0..line.len() {
            assert_eq!(read(&line.as_bytes()[..end]), Ok(None), "{end} of {line}");
        }
    }
}

#[test]
fn what_is_no_line() {
    for (line, wrong) in [
        ("GET / HTTP/1.1\r\n", Wrong::NoHead),
        ("PROXI TCP4 ", Wrong::NoHead),
        ("PROXY TCP5 192.0.2.1 203.0.113.9 1 2\r\n", Wrong::Protocol),
        ("PROXY \r\n", Wrong::Protocol),
        ("PROXY TCP4 192.0.2.1 203.0.113.9 1 2\n", Wrong::Malformed),
        ("PROXY TCP4 192.0.2.1 203.0.113.9 1\r\n", Wrong::Malformed),
        ("PROXY TCP4 192.0.2.1 203.0.113.9 1 2 3\r\n", Wrong::Malformed),
        ("PROXY TCP4 192.0.2.1  203.0.113.9 1 2\r\n", Wrong::Malformed),
        ("PROXY TCP4 192.0.2.1 203.0.113.9 1 65536\r\n", Wrong::Malformed),
        ("PROXY TCP4 192.0.2.1 203.0.113.9 +1 2\r\n", Wrong::Malformed),
        ("PROXY TCP4 192.0.2.256 203.0.113.9 1 2\r\n", Wrong::Malformed),
        ("PROXY TCP4 ::1 ::1 1 2\r\n", Wrong::Malformed),
        ("PROXY TCP6 ::g ::1 1 2\r\n", Wrong::Malformed),
    ] {
        assert_eq!(read(line.as_bytes()), Err(wrong), "{line}");
    }
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(91));
    assert_eq!(long.len(), 107);
    assert_eq!(read(long.as_bytes()), Ok(Some((107, None))));
    assert_eq!(read(long.replace("\r\n", "x\r\n").as_bytes()), Err(Wrong::TooLong));
}

/// A head of version 2 with these bytes after the signature, its length written.
fn binary(start: [u8; 2], rest: &[u8]) -> Vec<u8> {
    let mut head = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    head.extend_from_slice(&start);
    head.extend_from_slice(&(rest.len() as u16).to_be_bytes());
    head.extend_from_slice(rest);
    head
}

#[test]
fn heads_of_version_2() {
    let ipv4 = [127, 0, 0, 1, 127, 0, 0, 2, 0, 42, 5, 57];
    let told = addresses("127.0.0.1:42", "127.0.0.2:1337");
    assert_eq!(read(&binary([0x21, 0x11], &ipv4)), Ok(Some((28, told))));
    let fields = |fields: &[u8]| parse(&binary([0x21, 0x11], &[&ipv4, fields].concat()));
    let (_, announced) = fields(b"\xea\0\x02ab\x02\0\0").unwrap().unwrap();
    assert_eq!(announced.fields().collect::<Vec<_>>(), [(0xea, &b"ab"[..]), (kind::AUTHORITY, b"")]);
    assert_eq!((announced.field(0xea), announced.field(0xeb)), (Some(&b"ab"[..]), None));
    for (wrong, why) in [
        (&b"\xea"[..], Wrong::Malformed),
        (b"\xea\0", Wrong::Malformed),
        (b"\xea\0\x03ab", Wrong::Malformed),
        (b"\xea\0\x01ab", Wrong::Malformed),
        (b"\x03\0\x02ab", Wrong::Malformed),
        (b"\x03\0\x04abcd", Wrong::Checksum),
        (&[b"\x02\x01\0".as_slice(), &[b'x'; 256]].concat(), Wrong::TooLong),
        (&[b"\x05\0\x81".as_slice(), &[b'x'; 129]].concat(), Wrong::TooLong),
        (&[b"\xea\x04\x01".as_slice(), &[b'x'; 1025]].concat(), Wrong::TooLong),
    ] {
        assert_eq!(fields(wrong), Err(why), "{}", wrong.escape_ascii());
    }
    assert_eq!(read(&binary([0x21, 0x11], &ipv4[..11])), Err(Wrong::Malformed));
    assert_eq!(read(&binary([0x21, 0x21], &[0; 35])), Err(Wrong::Malformed));
    assert_eq!(read(&binary([0x22, 0x11], &ipv4)), Err(Wrong::Malformed));
    assert_eq!(read(&binary([0x11, 0x11], &ipv4)), Err(Wrong::NoHead));
}

/// Blocks that need not be known are passed over by their length.
#[test]
fn blocks_that_are_passed_over() {
    let (ipv4, ipv6) = ([3, 0, 4, 1, 127, 0, 0, 2, 0, 42, 5, 57], [9; 36]);
    let fields = b"\xea\0\x02ab";
    let found = |start, block: &[&[u8]]| {
        let head = binary(start, &block.concat());
        let (length, announced) = parse(&head).unwrap()?;
        assert_eq!((length, announced.addresses), (head.len(), None));
        announced.field(0xea).map(<[u8]>::to_vec)
    };
    for family in 0..=u8::MAX {
        let known = family >> 4 < 4 && family & 0xf < 3;
        for block in [&b""[..], b"abcdef", &ipv4, &[7; 500]] {
            assert_eq!(found([0x20, family], &[block]), None, "{family:x}");
            let tells = matches!(family, 0x11 | 0x21);
            match known {
                true if !tells => assert_eq!(found([0x21, family], &[block]), None, "{family:x}"),
                true => {}
                false => assert_eq!(read(&binary([0x21, family], block)), Err(Wrong::Malformed), "{family:x}"),
            }
        }
    }
    for (family, addresses) in [(0x00, &b""[..]), (0x11, &ipv4), (0x12, &ipv4), (0x21, &ipv6), (0x31, &[0; 216])] {
        assert_eq!(found([0x20, family], &[addresses, fields]).as_deref(), Some(&b"ab"[..]), "{family:x}");
        if !matches!(family, 0x11 | 0x21) {
            assert_eq!(found([0x21, family], &[addresses, fields]).as_deref(), Some(&b"ab"[..]), "{family:x}");
        }
    }
    assert_eq!(read(&binary([0x20, 0x00], b"\x03\0\x04abcd")), Err(Wrong::Checksum));
    assert_eq!(read(b"PROXY UNKNOWN \xff\xfe\r\n"), Ok(Some((18, None))));
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let ip = prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)];
    (ip, any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn pair() -> impl Strategy<Value = Ends> {
    proptest::option::of((address(), address()))
}

proptest! {
    #[test]
    fn version_1_is_read_as_it_was_written(told in pair(), behind in proptest::collection::vec(any::<u8>(), 0..20)) {
        let line = line(told);
        prop_assert_eq!(read(&[&line, &behind[..]].concat()), Ok(Some((line.len(), told.map(in_one_family)))));
        for end in 0..line.len() {
            prop_assert_eq!(read(&line[..end]), Ok(None));
        }
    }

    #[test]
    fn version_2_is_read_as_it_was_written(
        told in pair(),
        fields in proptest::collection::vec((0xe0u8..=0xef, proptest::collection::vec(any::<u8>(), 0..300)), 0..5),
        checksum: bool,
        flip in any::<prop::sample::Index>(),
    ) {
        let mut writer = Writer::new(told);
        for (kind, value) in &fields {
            writer.field(*kind, value);
        }
        if checksum {
            writer.checksum();
        }
        let head = writer.finish();
        let (length, announced) = parse(&head).unwrap().unwrap();
        prop_assert_eq!((length, announced.addresses), (head.len(), told.map(in_one_family)));
        let wanted: Vec<_> = fields.iter().map(|(kind, value)| (*kind, &value[..])).collect();
        prop_assert_eq!(announced.fields().filter(|(kind, _)| *kind != kind::CRC32C).collect::<Vec<_>>(), wanted);
        for end in 0..head.len() {
            prop_assert_eq!(parse(&head[..end]), Ok(None));
        }
        if checksum {
            // A wrong byte after the addresses is seen, whatever it is.
            let mut broken = head.clone();
            let at = 16 + flip.index(head.len() - 16);
            broken[at] ^= 1;
            prop_assert_ne!(parse(&broken), Ok(Some((length, announced))));
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), start in 0..3usize) {
        let start: &[u8] = [&b""[..], b"PROXY TCP", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x30"][start];
        let bytes = [start, &bytes[..]].concat();
        if let Ok(Some((length, _))) = parse(&bytes) {
            prop_assert!(length <= bytes.len());
        }
    }
}
